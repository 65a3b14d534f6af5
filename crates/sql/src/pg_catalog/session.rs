//! What one catalog query is run against: the catalog it sees, the database's
//! counters, the session's facts; and the content of the relations it reads,
//! made once a query.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_engine::authority::{
    Authority, Grant, Object, PUBLIC, PUBLIC_SCHEMA_OID, Privileges,
};
use thermocline_engine::catalog::{IndexDef, Table};
use thermocline_engine::{Catalog, Database, TableReport, TypeKind};
use thermocline_query::types::array_of;

use super::content;
use super::datum::Datum;
use super::functions::quote_ident;
use super::oids;
use super::pg_type::type_by_name;
use super::relations::{self, Relation};
use crate::analysis::SessionFacts;
use crate::ddl::type_named;
use crate::error::Result;
use crate::privilege::denied;
use crate::temporary;

/// Knows the names behind numbers, and the numbers behind names.
pub(crate) trait Names {
    /// The relation's name, qualified unless it is visible.
    fn relation_name(&self, oid: u32) -> Option<String>;
    /// The relation that a text names.
    fn relation_by_name(&self, text: &str) -> Option<u32>;
    fn schema_name(&self, oid: u32) -> Option<String>;
    fn schema_by_name(&self, name: &str) -> Option<u32>;
    fn role_name(&self, oid: u32) -> Option<String>;
    fn role_by_name(&self, name: &str) -> Option<u32>;
    /// The type's name, for types that are not built in.
    fn type_name(&self, oid: u32) -> Option<String>;
    /// The type that a text names.
    fn type_by_name(&self, text: &str) -> Option<u32>;
}

/// The system's relations that only superusers read.
pub(crate) const HIDDEN: [&str; 12] = [
    "pg_authid",
    "pg_backend_memory_contexts",
    "pg_config",
    "pg_file_settings",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_largeobject",
    "pg_shadow",
    "pg_shmem_allocations",
    "pg_statistic",
    "pg_statistic_ext_data",
    "pg_user_mapping",
];

/// The rows of a relation.
pub(crate) type Content = Arc<Vec<Vec<Datum>>>;

/// Surroundings of a catalog query.
pub(crate) struct SystemSession {
    pub catalog: Arc<Catalog>,
    pub db: Arc<Database>,
    pub facts: SessionFacts,
    contents: Mutex<HashMap<u32, Content>>,
    reports: Mutex<Option<Arc<Vec<TableReport>>>>,
}

impl SystemSession {
    pub(crate) fn new(catalog: &Arc<Catalog>, db: &Arc<Database>, facts: SessionFacts) -> Self {
        Self {
            catalog: Arc::clone(catalog),
            db: Arc::clone(db),
            facts,
            contents: Mutex::default(),
            reports: Mutex::default(),
        }
    }

    /// The rows of a relation, with `tableoid` behind those of a table.
    pub(crate) fn content(&self, relation: &Relation) -> Result<Content> {
        if let Some(rows) = self.contents.lock().get(&relation.oid) {
            return Ok(Arc::clone(rows));
        }
        if HIDDEN.contains(&relation.name) && !self.facts.actor.is_superuser() {
            let kind = if relation.kind == "v" {
                "view"
            } else {
                "table"
            };
            return Err(denied(kind, relation.name));
        }
        let mut rows = content::rows(relation, self)?;
        if relation.has_table_oid() {
            for row in &mut rows {
                row.push(Datum::oid(relation.oid));
            }
        }
        let rows = Arc::new(rows);
        self.contents.lock().insert(relation.oid, Arc::clone(&rows));
        Ok(rows)
    }

    /// The number of a type that is not built in.
    pub(crate) fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        let path = &self.facts.search_path;
        if let Some(oid) = type_named(&self.catalog, path, schema, name) {
            return Some(oid);
        }
        let table = match schema {
            Some(schema) => self.relation_oid(temporary::meant(schema, path), name),
            None => {
                let mut path = self.search_path();
                path.find_map(|schema| self.relation_oid(schema, name))
            }
        };
        let table = self.catalog.table(table?)?;
        Some(oids::row_type_oid(table.oid))
    }

    /// Tuples and bytes of the tables.
    pub(crate) fn table_reports(&self) -> Arc<Vec<TableReport>> {
        let mut reports = self.reports.lock();
        Arc::clone(reports.get_or_insert_with(|| Arc::new(self.db.table_reports())))
    }

    pub(crate) fn table_report(&self, oid: u32) -> Option<TableReport> {
        self.table_reports()
            .iter()
            .find(|report| report.oid == oid)
            .cloned()
    }

    /// The owner's object id and name.
    pub(crate) fn owner(&self, object: &Object) -> (Datum, Datum) {
        let authority = &self.catalog.authority;
        let owner = authority.owner(object);
        (Datum::oid(owner), Datum::text(authority.role_name(owner)))
    }

    /// The grants on an object as `relacl` writes them; NULL for the default ones.
    pub(crate) fn acl(&self, object: &Object) -> Datum {
        let rights = self.catalog.authority.rights(object);
        let grants = rights.and_then(|rights| rights.grants.as_ref());
        grants.map_or(Datum::Null, |grants| {
            acl_items(&self.catalog.authority, grants)
        })
    }

    /// The grants on a schema, likewise. Those of `public` are not the default ones of a schema.
    pub(crate) fn schema_acl(&self, oid: u32) -> Datum {
        let object = Object::Schema(oid);
        match self.acl(&object) {
            Datum::Null if oid == PUBLIC_SCHEMA_OID => {
                let authority = &self.catalog.authority;
                let mut grants = authority.grants(&object);
                grants.sort_by_key(|grant| grant.grantee == PUBLIC);
                acl_items(authority, &grants)
            }
            known => known,
        }
    }

    /// Whether the statement's role may see a sequence's value.
    pub(crate) fn may_read_sequence(&self, oid: u32) -> bool {
        let object = Object::Sequence(oid);
        let has = self
            .catalog
            .authority
            .privileges(self.facts.actor.role(), &object);
        !(has & (Privileges::SELECT | Privileges::USAGE)).is_empty()
    }

    /// The grants on a column, likewise.
    pub(crate) fn column_acl(&self, table: u32, column: usize) -> Datum {
        let authority = &self.catalog.authority;
        let rights = authority.rights(&Object::Table(table));
        let grants = rights.and_then(|rights| rights.columns.get(&column));
        grants.map_or(Datum::Null, |grants| acl_items(authority, grants))
    }

    pub(crate) fn schema_oid(&self, name: &str) -> Option<u32> {
        match name {
            "pg_catalog" => Some(oids::PG_CATALOG),
            "information_schema" => Some(oids::INFORMATION_SCHEMA),
            "pg_toast" => Some(oids::PG_TOAST),
            _ => self
                .catalog
                .schemas
                .iter()
                .find(|schema| schema.name == name)
                .map(|schema| schema.oid),
        }
    }

    /// The index with this number, and its table.
    pub(crate) fn index(&self, oid: u32) -> Option<(&Arc<Table>, &IndexDef)> {
        self.catalog.tables.values().find_map(|table| {
            let index = table.indexes.iter().find(|index| index.oid == oid)?;
            Some((table, index))
        })
    }

    /// The schema and name of a relation.
    pub(crate) fn relation(&self, oid: u32) -> Option<(&str, &str)> {
        if let Some(table) = self.catalog.table(oid) {
            return Some((&table.schema, &table.name));
        }
        if let Some(sequence) = self.catalog.sequences.get(&oid) {
            return Some((&sequence.schema, &sequence.name));
        }
        if let Some(view) = self.catalog.views.get(&oid) {
            return Some((&view.schema, &view.name));
        }
        if let Some((table, index)) = self.index(oid) {
            return Some((&table.schema, &index.name));
        }
        let mut types = self.catalog.types.values();
        if let Some(def) = types.find(|def| oids::of_composite(def) == oid) {
            return Some((&def.schema, &def.name));
        }
        relations::relation_by_oid(oid).map(|relation| (relation.schema, relation.name))
    }

    fn relation_oid(&self, schema: &str, name: &str) -> Option<u32> {
        if let Some(table) = self.catalog.table_by_name(schema, name) {
            return Some(table.oid);
        }
        if let Some(sequence) = self.catalog.sequence_by_name(schema, name) {
            return Some(sequence.oid);
        }
        if let Some(view) = self.catalog.view_by_name(schema, name) {
            return Some(view.oid);
        }
        if let Some((table, index)) = self.catalog.index_by_name(schema, name) {
            return table.indexes.get(index).map(|index| index.oid);
        }
        if let Some(def) = self.catalog.type_by_name(schema, name)
            && matches!(def.kind, TypeKind::Composite(_))
        {
            return Some(oids::of_composite(def));
        }
        relations::relation(schema, name).map(|relation| relation.oid)
    }

    /// Schemas that unqualified names are looked up in: the session's temporary one and
    /// `pg_catalog` first, where they are not listed.
    pub(crate) fn search_path(&self) -> impl Iterator<Item = &str> {
        let listed = self.facts.creation_path.iter().map(String::as_str);
        let is_listed = |name: &str| listed.clone().any(|schema| schema == name);
        let own = temporary::first(&self.facts.search_path).filter(|own| !is_listed(own));
        let system = Some("pg_catalog").filter(|system| !is_listed(system));
        own.into_iter().chain(system).chain(listed)
    }

    /// The session's temporary schema, if it has made something.
    pub(crate) fn temporary_schema(&self) -> Option<u32> {
        let own = temporary::own(&self.facts.search_path)?;
        self.catalog.schema(own).map(|schema| schema.oid)
    }

    /// Whether a schema is another session's temporary one.
    pub(crate) fn is_others(&self, schema: &str) -> bool {
        temporary::is_others(schema, &self.facts.search_path)
    }

    /// Whether an unqualified name finds the relation.
    pub(crate) fn is_visible(&self, oid: u32) -> Option<bool> {
        let (schema, name) = self.relation(oid)?;
        let first = self
            .search_path()
            .find(|schema| self.relation_oid(schema, name).is_some());
        Some(first == Some(schema))
    }

    /// Whether an unqualified name finds the type.
    pub(crate) fn is_visible_type(&self, oid: u32) -> bool {
        let path = &self.facts.search_path;
        let own = self.catalog.type_of(oid);
        own.is_none_or(|def| type_named(&self.catalog, path, None, &def.name) == Some(def.oid))
    }

    /// Whether an unqualified name, with its arguments' types, finds the function.
    pub(crate) fn is_visible_function(&self, oid: u32) -> bool {
        let Some(def) = self.catalog.functions.get(&oid) else {
            return true;
        };
        let mut path = self.facts.search_path.iter();
        let first = path.find_map(|schema| {
            let mut named = self.catalog.functions_named(schema, &def.name);
            named.find(|other| other.types().eq(def.types()))
        });
        first.is_some_and(|first| first.oid == oid)
    }

    /// The functions that a text names, by the search path if it names no schema.
    pub(crate) fn functions_by_name(&self, text: &str) -> Vec<u32> {
        let built_in = |name: &str| {
            let all = thermocline_query::functions::named(name).iter();
            all.map(|function| function.oid).collect::<Vec<_>>()
        };
        let own = |schema: &str, name: &str| {
            let named = self.catalog.functions_named(schema, name);
            named.map(|def| def.oid).collect::<Vec<_>>()
        };
        match parts(text).as_slice() {
            [name] => {
                let path = self.facts.search_path.iter();
                let own = path.flat_map(|schema| own(schema, name));
                built_in(name).into_iter().chain(own).collect()
            }
            [schema, name] if schema == "pg_catalog" => built_in(name),
            [schema, name] | [_, schema, name] => own(schema, name),
            _ => Vec::new(),
        }
    }

    /// The bytes a relation takes, in memory and on the device.
    pub(crate) fn relation_bytes(&self, oid: u32) -> u64 {
        if oid == oids::DATABASE {
            let reports = self.table_reports();
            return reports
                .iter()
                .map(|report| report.hot_bytes + report.metadata_bytes + report.block_bytes)
                .sum();
        }
        self.table_report(oid).map_or(0, |report| {
            report.hot_bytes + report.metadata_bytes + report.block_bytes
        })
    }

    /// The value of a sequence, and whether it has been given.
    pub(crate) fn sequence_state(&self, oid: u32) -> Option<(i64, bool)> {
        self.db.last_value(self.catalog.sequences.get(&oid)?)
    }

    /// The last value a sequence gave, if it gave one.
    pub(crate) fn sequence_last_value(&self, oid: u32) -> Option<i64> {
        match self.sequence_state(oid) {
            Some((value, true)) => Some(value),
            _ => None,
        }
    }
}

/// The parts of a name as SQL writes it.
pub(super) fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for character in text.trim().chars() {
        let Some(part) = parts.last_mut() else { break };
        match character {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other if quoted => part.push(other),
            other => part.extend(other.to_lowercase()),
        }
    }
    parts
}

impl Names for SystemSession {
    fn relation_name(&self, oid: u32) -> Option<String> {
        let (schema, name) = self.relation(oid)?;
        let name = quote_ident(name);
        Some(if self.is_visible(oid) == Some(true) {
            name
        } else {
            format!("{}.{name}", quote_ident(schema))
        })
    }

    fn relation_by_name(&self, text: &str) -> Option<u32> {
        match parts(text).as_slice() {
            [name] => self
                .search_path()
                .find_map(|schema| self.relation_oid(schema, name)),
            [schema, name] | [_, schema, name] => {
                let schema = temporary::meant(schema, &self.facts.search_path);
                self.relation_oid(schema, name)
            }
            _ => None,
        }
    }

    fn schema_name(&self, oid: u32) -> Option<String> {
        match oid {
            oids::PG_CATALOG => Some("pg_catalog".to_owned()),
            oids::INFORMATION_SCHEMA => Some("information_schema".to_owned()),
            oids::PG_TOAST => Some("pg_toast".to_owned()),
            _ => self
                .catalog
                .schemas
                .iter()
                .find(|schema| schema.oid == oid)
                .map(|schema| quote_ident(&schema.name)),
        }
    }

    fn schema_by_name(&self, name: &str) -> Option<u32> {
        self.schema_oid(parts(name).first()?)
    }

    fn role_name(&self, oid: u32) -> Option<String> {
        let role = self.catalog.authority.roles.get(&oid)?;
        Some(role.name.clone())
    }

    fn role_by_name(&self, name: &str) -> Option<u32> {
        let name = parts(name);
        let role = self.catalog.authority.role_by_name(name.first()?)?;
        Some(role.oid)
    }

    fn type_name(&self, oid: u32) -> Option<String> {
        if let Some(def) = self.catalog.type_of(oid) {
            let path = &self.facts.search_path;
            let visible = type_named(&self.catalog, path, None, &def.name) == Some(def.oid);
            let mut name = quote_ident(&def.name);
            if !visible {
                name = format!("{}.{name}", quote_ident(&def.schema));
            }
            if oid != def.oid {
                name.push_str("[]");
            }
            return Some(name);
        }
        let table = self
            .catalog
            .tables
            .keys()
            .find(|table| oids::row_type_oid(**table) == oid)?;
        self.relation_name(*table)
    }

    fn type_by_name(&self, text: &str) -> Option<u32> {
        if let Some(oid) = type_by_name(text) {
            return Some(oid);
        }
        let (name, array) = match text.trim().strip_suffix("[]") {
            Some(element) => (element, true),
            None => (text, false),
        };
        let oid = match parts(name).as_slice() {
            [name] => self.user_type(None, name)?,
            [schema, name] | [_, schema, name] => self.user_type(Some(schema), name)?,
            _ => return None,
        };
        match array {
            false => Some(oid),
            true => Some(array_of(oid)).filter(|oid| *oid != 0),
        }
    }
}

pub(super) fn acl_items(authority: &Authority, grants: &[Grant]) -> Datum {
    let role = |oid: u32| match oid {
        PUBLIC => String::new(),
        oid => quote_ident(&authority.role_name(oid)),
    };
    Datum::array(grants.iter().map(|grant| {
        let mut item = role(grant.grantee);
        item.push('=');
        for (letter, _, privilege) in Privileges::LETTERS {
            if grant.privileges.contains(privilege) {
                item.push(letter);
                if grant.grantable.contains(privilege) {
                    item.push('*');
                }
            }
        }
        item.push('/');
        item.push_str(&role(grant.grantor));
        Datum::text(item)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_as_sql_writes_them() {
        assert_eq!(parts("App.Orders"), ["app", "orders"]);
        assert_eq!(parts("\"App.x\".\"O\""), ["App.x", "O"]);
        assert_eq!(parts("t"), ["t"]);
    }
}
