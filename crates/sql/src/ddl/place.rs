//! Where relations are: the schema that a name leads to, and the one that a new relation goes to.
//! A new one is temporary if it is said to be, or if its name or the search path leads to the
//! session's temporary schema. That is made when something first goes there.

use thermocline_engine::Catalog;
use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::ddl::Change;

use super::{Definition, names, no_schema};
use crate::error::{Result, SqlError};
use crate::session::DATABASE_NAME;
use crate::temporary;

/// The schema and name of a relation that is there, of any kind.
pub(crate) fn find_relation(
    catalog: &Catalog,
    search_path: &[String],
    parts: &[String],
) -> Option<(String, String)> {
    match parts {
        [name] => search_path
            .iter()
            .find(|schema| catalog.relation_exists(schema, name))
            .map(|schema| (schema.clone(), name.clone())),
        [schema, name] | [_, schema, name] => {
            let schema = temporary::meant(schema, search_path);
            catalog
                .relation_exists(schema, name)
                .then(|| (schema.to_owned(), name.clone()))
        }
        _ => None,
    }
}

/// What decides where a new relation goes.
pub(crate) struct CreationPlace<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) search_path: &'a [String],
    pub(crate) creation_path: &'a [String],
}

impl CreationPlace<'_> {
    /// The schema and name that a new relation gets. Of all but the session's temporary one the
    /// schema is there.
    ///
    /// # Errors
    /// 3F000 where there is no such schema, 42P16 for what is to be temporary elsewhere, 42501
    /// and 42601 for names that cannot be.
    pub(crate) fn of(&self, parts: &[String], is_temporary: bool) -> Result<(String, String)> {
        let own = temporary::own(self.search_path);
        let (schema, name) = match parts {
            [name] => (self.schema(own, is_temporary)?, name),
            [schema, name] | [_, schema, name] => {
                (temporary::meant(schema, self.search_path).to_owned(), name)
            }
            _ => return Err(SqlError::syntax("improper relation name")),
        };
        if matches!(schema.as_str(), "pg_catalog" | "information_schema") {
            return Err(SqlError::new(
                "42501",
                format!("permission denied for schema {schema}"),
            ));
        }
        if own != Some(schema.as_str()) {
            if self.catalog.schema(&schema).is_none() {
                return Err(no_schema(&schema));
            }
            let refused = match (temporary::is_temporary(&schema), is_temporary) {
                (true, _) => Some("cannot create relations in temporary schemas of other sessions"),
                (false, true) => Some("cannot create temporary relation in non-temporary schema"),
                (false, false) => None,
            };
            if let Some(refused) = refused {
                return Err(SqlError::new("42P16", refused));
            }
        }
        if name.is_empty() {
            return Err(SqlError::syntax("zero-length delimited identifier"));
        }
        Ok((schema, names::truncated(name)))
    }

    /// The schema of a name without one.
    fn schema(&self, own: Option<&str>, is_temporary: bool) -> Result<String> {
        let mut path = self.creation_path.iter().map(String::as_str);
        let there = |schema: &&str| own == Some(*schema) || self.catalog.schema(schema).is_some();
        let found = match own {
            Some(own) if is_temporary => Some(own),
            _ => path.find(there),
        };
        found
            .map(str::to_owned)
            .ok_or_else(|| SqlError::new("3F000", "no schema has been selected to create in"))
    }
}

impl Definition<'_> {
    /// The schema and name that a new relation gets. The schema is there.
    pub(super) async fn new_name(
        &mut self,
        parts: &[String],
        is_temporary: bool,
    ) -> Result<(String, String)> {
        let place = CreationPlace {
            catalog: &self.catalog(),
            search_path: self.search_path,
            creation_path: self.creation_path,
        };
        let (schema, name) = place.of(parts, is_temporary)?;
        if temporary::is_temporary(&schema) {
            self.make_temporary_schema(&schema).await?;
        }
        Ok((schema, name))
    }

    /// Whoever may make something temporary may do everything in there: it belongs to nobody.
    async fn make_temporary_schema(&mut self, schema: &str) -> Result<()> {
        let actor = self.actor()?;
        let has = actor
            .authority()
            .privileges(actor.role(), &Object::Database);
        if !actor.is_superuser() && !has.contains(Privileges::TEMPORARY) {
            return Err(SqlError::new(
                "42501",
                format!(
                    "permission denied to create temporary tables in database \"{DATABASE_NAME}\""
                ),
            ));
        }
        if self.catalog().schema(schema).is_none() {
            let change = Change::CreateSchema(schema.to_owned());
            self.db.ddl(self.txn, self.options, change).await?;
        }
        Ok(())
    }
}
