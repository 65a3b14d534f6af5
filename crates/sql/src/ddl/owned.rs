//! REASSIGN OWNED and DROP OWNED: what is left to do before a role can be dropped.

use std::collections::BTreeSet;

use thermocline_engine::authority::{Authority, FIRST_ROLE_OID, Object};

use super::Definition;
use super::grant::own;
use crate::error::{Result, SqlError};
use crate::parse::grant::OwnedBy;

impl Definition<'_> {
    /// Either, of all that the roles own.
    pub(super) async fn owned_by(&mut self, command: &OwnedBy) -> Result<&'static str> {
        let actor = self.actor()?;
        let mut roles = BTreeSet::new();
        for name in &command.roles {
            let role = self.role_oid(name)?;
            if !actor.authority().has_privileges_of(actor.role(), role) {
                let what = match command.new_owner {
                    Some(_) => "reassign objects",
                    None => "drop objects",
                };
                return Err(SqlError::new(
                    "42501",
                    format!("permission denied to {what}"),
                ));
            }
            if role == FIRST_ROLE_OID {
                let what = match command.new_owner {
                    Some(_) => "reassign ownership of",
                    None => "drop",
                };
                let why = format!(
                    "cannot {what} objects owned by role {name} because they are required by the database system"
                );
                return Err(SqlError::new("2BP01", why));
            }
            roles.insert(role);
        }
        match &command.new_owner {
            Some(new) => self.reassign(&roles, new).await,
            None => self.drop_owned(&roles, command.cascade).await,
        }
    }

    async fn reassign(&mut self, roles: &BTreeSet<u32>, new: &str) -> Result<&'static str> {
        let actor = self.actor()?;
        let new = self.role_oid(new)?;
        if !actor.authority().is_member(actor.role(), new) {
            return Err(SqlError::new(
                "42501",
                "permission denied to reassign objects",
            ));
        }
        let mut authority = (**actor.authority()).clone();
        for object in owned(&authority, roles) {
            let old = authority.owner(&object);
            own(&mut authority, object, old, new);
        }
        self.authorize(authority).await?;
        Ok("REASSIGN OWNED")
    }

    /// What hangs on the objects stands in the way without CASCADE, as for DROP; what the roles
    /// were granted is revoked.
    async fn drop_owned(&mut self, roles: &BTreeSet<u32>, cascade: bool) -> Result<&'static str> {
        let actor = self.actor()?;
        let objects = owned(actor.authority(), roles);
        let relations = objects.iter().filter_map(|object| match object {
            Object::Table(oid) => Some(*oid),
            _ => None,
        });
        let relations: Vec<u32> = relations.collect();
        self.drop_together(&relations, cascade).await?;
        for object in &objects {
            if let Object::Sequence(oid) = object
                && self.catalog().sequences.contains_key(oid)
            {
                self.drop_sequence(*oid, cascade).await?;
            }
        }
        for object in &objects {
            let catalog = self.catalog();
            if let Object::Function(oid) = object
                && let Some(def) = catalog.functions.get(oid)
            {
                self.drop_function(def, cascade).await?;
            }
        }
        for object in &objects {
            let catalog = self.catalog();
            if let Object::Type(oid) = object
                && let Some(def) = catalog.types.get(oid)
            {
                self.drop_type_def(def, cascade).await?;
            }
        }
        for object in &objects {
            let catalog = self.catalog();
            let schema = match object {
                Object::Schema(oid) => catalog.schemas.iter().find(|schema| schema.oid == *oid),
                _ => None,
            };
            let name = schema.map(|schema| [schema.name.clone()]);
            if let Some(name) = name {
                self.drop_schema(&name, true, cascade).await?;
            }
        }
        let mut authority = (*self.catalog().authority).clone();
        let of_them: Vec<Object> = authority
            .objects()
            .map(|(object, _)| object.clone())
            .collect();
        for object in of_them {
            let old = authority.owner(&object);
            if roles.contains(&old) {
                // A procedure is of the program, and is not dropped.
                own(&mut authority, object.clone(), old, FIRST_ROLE_OID);
            }
            let rights = authority.rights_mut(object);
            for grants in rights.grants.iter_mut().chain(rights.columns.values_mut()) {
                grants.retain(|grant| {
                    !roles.contains(&grant.grantee) && !roles.contains(&grant.grantor)
                });
            }
            rights.columns.retain(|_, grants| !grants.is_empty());
        }
        authority.defaults.retain(|of, _| !roles.contains(&of.role));
        for grants in authority.defaults.values_mut() {
            grants.retain(|grant| !roles.contains(&grant.grantee));
        }
        self.authorize(authority).await?;
        Ok("DROP OWNED")
    }
}

fn owned(authority: &Authority, roles: &BTreeSet<u32>) -> Vec<Object> {
    let objects = authority.objects();
    objects
        .filter(|(_, rights)| roles.contains(&rights.owner))
        .map(|(object, _)| object.clone())
        .collect()
}
