//! What new objects are granted by themselves (ALTER DEFAULT PRIVILEGES): by who makes them, by
//! their kind, in any schema or in one. What holds in any schema stands in the place of PostgreSQL's
//! own defaults; what holds in one schema comes on top.

use super::authority::{Authority, DefaultsKind, DefaultsOf, Grant, Object};

impl DefaultsKind {
    /// The kind of an object, if it has defaults.
    #[must_use]
    pub fn of(object: &Object) -> Option<Self> {
        match object {
            Object::Table(_) => Some(Self::Table),
            Object::Sequence(_) => Some(Self::Sequence),
            Object::Function(_) => Some(Self::Function),
            Object::Type(_) => Some(Self::Type),
            Object::Schema(_) => Some(Self::Schema),
            Object::Procedure(_) | Object::Database => None,
        }
    }

    /// An object of the kind, which there is none of.
    #[must_use]
    pub fn object(self) -> Object {
        const NONE: u32 = 0;
        match self {
            Self::Table => Object::Table(NONE),
            Self::Sequence => Object::Sequence(NONE),
            Self::Function => Object::Function(NONE),
            Self::Type => Object::Type(NONE),
            Self::Schema => Object::Schema(NONE),
        }
    }
}

impl Authority {
    /// What `of` says: PostgreSQL's own defaults where nothing else was said for any schema, and
    /// nothing where nothing was said for one.
    #[must_use]
    pub fn default_grants(&self, of: &DefaultsOf) -> Vec<Grant> {
        match (self.defaults.get(of), of.schema) {
            (Some(grants), _) => grants.clone(),
            (None, None) => of.kind.object().built_in_grants(of.role),
            (None, Some(_)) => Vec::new(),
        }
    }

    /// Changes what [`Self::default_grants`] gives.
    pub fn set_default_grants(&mut self, of: DefaultsOf, grants: Vec<Grant>) {
        self.defaults.remove(&of);
        let known = self.default_grants(&of);
        let same = known.len() == grants.len() && known.iter().all(|one| grants.contains(one));
        if !same {
            self.defaults.insert(of, grants);
        }
    }

    /// The grants on a new object of `role`; None where nothing was said of such objects.
    #[must_use]
    pub fn grants_of_new(
        &self,
        role: u32,
        schema: Option<u32>,
        object: &Object,
    ) -> Option<Vec<Grant>> {
        let kind = DefaultsKind::of(object)?;
        let anywhere = DefaultsOf {
            role,
            schema: None,
            kind,
        };
        let there = schema.map(|_| DefaultsOf { schema, ..anywhere });
        let more = there.and_then(|there| self.defaults.get(&there));
        if more.is_none() && !self.defaults.contains_key(&anywhere) {
            return None;
        }
        let mut grants = self.default_grants(&anywhere);
        for grant in more.into_iter().flatten() {
            let same = |known: &&mut Grant| {
                (known.grantee, known.grantor) == (grant.grantee, grant.grantor)
            };
            match grants.iter_mut().find(same) {
                Some(known) => {
                    known.privileges |= grant.privileges;
                    known.grantable |= grant.grantable;
                }
                None => grants.push(*grant),
            }
        }
        Some(grants)
    }
}
