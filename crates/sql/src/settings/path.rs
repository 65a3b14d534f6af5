//! The schemas that unqualified names are looked for in, and those that new relations go to: what
//! `search_path` lists, with the session's temporary schema before it unless it stands in it.

use std::sync::Arc;

use super::Settings;
use crate::temporary;

/// Both paths; they are one where the temporary schema is not before the others.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    search: Arc<[String]>,
    creation: Arc<[String]>,
}

impl Default for Paths {
    fn default() -> Self {
        let nothing: Arc<[String]> = Arc::new([]);
        Self {
            search: Arc::clone(&nothing),
            creation: nothing,
        }
    }
}

impl Paths {
    /// What they are for these names; they are the same as before where nothing has changed, for
    /// those who compare them.
    pub(super) fn changed(
        &self,
        listed: Vec<String>,
        role: &str,
        temporary_schema: Option<&str>,
    ) -> Self {
        let mut names = Vec::with_capacity(listed.len());
        for name in listed {
            let name = match name.as_str() {
                "$user" => role.to_owned(),
                _ => name,
            };
            match (name.as_str(), temporary_schema) {
                (temporary::ALIAS, Some(own)) => names.push(own.to_owned()),
                // What is in other sessions' cannot be used.
                (other, own) if temporary::is_temporary(other) && own != Some(other) => {}
                _ => names.push(name),
            }
        }
        let creation = same_or_new(&self.creation, &names);
        let search = match temporary_schema {
            Some(own) if temporary::own(&names).is_none() => {
                names.insert(0, own.to_owned());
                same_or_new(&self.search, &names)
            }
            _ if *self.search == *names => Arc::clone(&self.search),
            _ => Arc::clone(&creation),
        };
        Self { search, creation }
    }
}

fn same_or_new(before: &Arc<[String]>, names: &[String]) -> Arc<[String]> {
    match **before == *names {
        true => Arc::clone(before),
        false => Arc::from(names),
    }
}

impl Settings {
    /// Where unqualified names are looked for.
    #[must_use]
    pub fn search_path(&self) -> Arc<[String]> {
        Arc::clone(&self.read.paths.search)
    }

    /// The first schema there is of these gets new relations. `pg_temp` is among them as that
    /// where the session has no temporary schema yet.
    #[must_use]
    pub fn creation_path(&self) -> Arc<[String]> {
        Arc::clone(&self.read.paths.creation)
    }

    /// The session's temporary schema, once it has one; it need not be there.
    #[must_use]
    pub fn temporary_schema(&self) -> Option<&str> {
        self.temporary_schema.as_deref()
    }

    /// Gives the session its temporary schema.
    pub(crate) fn set_temporary_schema(&mut self, name: String) {
        self.temporary_schema = Some(name);
        self.refresh();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_temporary_schema_comes_first_unless_it_is_listed() {
        let listed = |path: &str| {
            let mut settings = Settings::new("me", &[]);
            settings.set_temporary_schema("pg_temp_2".to_owned());
            settings
                .set("search_path", Some(&[path.to_owned()]), false)
                .unwrap();
            let join = |path: Arc<[String]>| path.join(" ");
            (join(settings.search_path()), join(settings.creation_path()))
        };
        let both = |path: &str| (path.to_owned(), path.to_owned());
        assert_eq!(
            listed("$user, public"),
            ("pg_temp_2 me public".to_owned(), "me public".to_owned())
        );
        assert_eq!(listed("public, pg_temp"), both("public pg_temp_2"));
        assert_eq!(listed("pg_temp_2, a"), both("pg_temp_2 a"));
        assert_eq!(
            listed("pg_temp_1, a"),
            ("pg_temp_2 a".to_owned(), "a".to_owned())
        );
        let mut settings = Settings::new("me", &[]);
        settings
            .set("search_path", Some(&["pg_temp".to_owned()]), false)
            .unwrap();
        assert_eq!(*settings.creation_path(), ["pg_temp".to_owned()]);
    }
}
