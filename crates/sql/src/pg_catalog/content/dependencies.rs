//! `pg_depend` and `pg_rewrite`: what needs what, as PostgreSQL notes it. `pg_dump` writes objects
//! in this order, and finds here whose a sequence is. What is derived from the definitions is
//! noted where PostgreSQL notes it; dependencies on what nobody can drop are not, as there.

use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_engine::catalog::{FIRST_USER_OID, Table};
use thermocline_engine::{TypeKind, ViewDef};

use super::Filler;
use super::partitions::inherited;
use crate::analysis::{self, NeededByView, functions_named};
use crate::ddl::{Named, columns_of, places};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids::{
    self, check_oid, default_oid, domain_check_oid, index_constraint_oid, row_type_oid, rule_oid,
};
use crate::pg_catalog::relations::{Relation, relation};
use crate::pg_catalog::session::{Names, SystemSession};

/// An object: the number of its catalog, its own, and its column's.
type Object = (u32, u32, i64);

/// How one object depends on another, by PostgreSQL's letters.
const NORMAL: &str = "n";
const AUTO: &str = "a";
const INTERNAL: &str = "i";
/// Of a partition's object on that of its table, and on the partition.
const PRIMARY: &str = "P";
const SECONDARY: &str = "S";

/// The catalogs' numbers.
struct Catalogs {
    class: u32,
    r#type: u32,
    constraint: u32,
    default: u32,
    schema: u32,
    function: u32,
    rule: u32,
    trigger: u32,
}

struct Found<'a> {
    session: &'a SystemSession,
    catalogs: Catalogs,
    rows: BTreeSet<(Object, Object, &'static str)>,
}

/// `pg_depend`
pub(super) fn dependencies(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "classid",
            "objid",
            "objsubid",
            "refclassid",
            "refobjid",
            "refobjsubid",
            "deptype",
        ],
    );
    let mut found = Found {
        session,
        catalogs: Catalogs::known(),
        rows: BTreeSet::new(),
    };
    for table in session.catalog.tables.values() {
        found.table(table);
    }
    found.sequences();
    found.types();
    found.functions();
    for view in session.catalog.all_views() {
        found.view(view);
    }
    let rows = found.rows.into_iter().map(|(of, on, kind)| {
        filler.row([
            Datum::oid(of.0),
            Datum::oid(of.1),
            Datum::Int(of.2),
            Datum::oid(on.0),
            Datum::oid(on.1),
            Datum::Int(on.2),
            Datum::text(kind),
        ])
    });
    rows.collect()
}

/// `pg_rewrite`: each view is a rule that gives its rows.
pub(super) fn rules(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "rulename",
            "ev_class",
            "ev_type",
            "ev_enabled",
            "is_instead",
        ],
    );
    let views = session.catalog.all_views();
    let rows = views.map(|view| {
        filler.row([
            Datum::oid(rule_oid(view.oid)),
            Datum::text("_RETURN"),
            Datum::oid(view.oid),
            Datum::text("1"),
            Datum::text("O"),
            Datum::Bool(true),
        ])
    });
    rows.collect()
}

impl Catalogs {
    fn known() -> Self {
        let of = |name: &str| relation("pg_catalog", name).map_or(0, |relation| relation.oid);
        Self {
            class: of("pg_class"),
            r#type: of("pg_type"),
            constraint: of("pg_constraint"),
            default: of("pg_attrdef"),
            schema: of("pg_namespace"),
            function: of("pg_proc"),
            rule: of("pg_rewrite"),
            trigger: of("pg_trigger"),
        }
    }
}

/// The number that a column has in the catalogs.
fn number(position: usize) -> i64 {
    position as i64 + 1
}

impl Found<'_> {
    fn add(&mut self, of: Object, on: Object, kind: &'static str) {
        self.rows.insert((of, on, kind));
    }

    fn in_schema(&mut self, of: Object, schema: &str) {
        if let Some(oid) = self.session.schema_oid(schema) {
            self.add(of, (self.catalogs.schema, oid, 0), NORMAL);
        }
    }

    /// Notes the type, if a user has made it.
    fn of_type(&mut self, of: Object, oid: u32) {
        if self.session.catalog.type_of(oid).is_some() {
            self.add(of, (self.catalogs.r#type, oid, 0), NORMAL);
        }
    }

    fn table(&mut self, table: &Table) {
        let class = self.catalogs.class;
        let of = (class, table.oid, 0);
        self.in_schema(of, &table.schema);
        let row_type = (self.catalogs.r#type, row_type_oid(table.oid), 0);
        self.add(row_type, of, INTERNAL);
        for (position, column) in table.live_columns() {
            let at = (class, table.oid, number(position));
            self.of_type(at, column.type_oid());
            let Some(text) = column
                .default
                .as_ref()
                .filter(|_| column.identity.is_none())
            else {
                continue;
            };
            let default = (self.catalogs.default, default_oid(table, position), 0);
            if column.generated {
                self.add(default, at, INTERNAL);
                for column in columns_of(text, table).unwrap_or_default() {
                    self.add(default, (class, table.oid, number(column)), NORMAL);
                }
            } else {
                self.add(default, at, AUTO);
            }
            self.named(default, text);
            if text.starts_with('\'') {
                // A constant of the column's type.
                self.of_type(default, column.data_type.oid());
            }
        }
        for index in &table.indexes {
            let of_index = (class, index.oid, 0);
            let of = match index.constraint {
                true => {
                    let of = (self.catalogs.constraint, index_constraint_oid(index), 0);
                    self.add(of_index, of, INTERNAL);
                    of
                }
                false => of_index,
            };
            let mut columns = index.include.clone();
            for column in &index.columns {
                match table.columns[*column].computed() {
                    Some(text) => {
                        let read = columns_of(text, table).unwrap_or_default();
                        self.named(of, text);
                        // What is compared with a column of a type may be a constant of it.
                        let has_constant = text.contains('\'');
                        for column in read.iter().filter(|_| has_constant) {
                            self.of_type(of, table.columns[*column].data_type.oid());
                        }
                        columns.extend(read);
                    }
                    None => columns.push(*column),
                }
            }
            columns.sort_unstable();
            columns.dedup();
            let mut plain = table.key_of(index).iter().chain(&index.include);
            if plain.all(|column| !table.columns[*column].is_seen()) {
                self.add(of, (class, table.oid, 0), AUTO);
            }
            for column in columns {
                self.add(of, (class, table.oid, number(column)), AUTO);
            }
        }
        for (at, check) in table.checks.iter().enumerate() {
            let of = (self.catalogs.constraint, check_oid(table, at), 0);
            let columns = columns_of(&check.expression, table).unwrap_or_default();
            if columns.is_empty() {
                self.add(of, (class, table.oid, 0), AUTO);
            }
            for column in columns {
                let column = (class, table.oid, number(column));
                self.add(of, column, AUTO);
                self.add(of, column, NORMAL);
            }
            self.named(of, &check.expression);
        }
        self.foreign_keys(table);
        self.partitions(table);
        for trigger in &table.triggers {
            let of = (self.catalogs.trigger, trigger.oid, 0);
            self.add(of, (self.catalogs.function, trigger.function, 0), NORMAL);
            self.add(of, (class, table.oid, 0), AUTO);
            let condition = trigger.condition.iter();
            let read = condition.flat_map(|text| columns_of(text, table).unwrap_or_default());
            for column in trigger.columns.iter().copied().chain(read) {
                self.add(of, (class, table.oid, number(column)), NORMAL);
            }
        }
    }

    fn foreign_keys(&mut self, table: &Table) {
        let class = self.catalogs.class;
        for key in &table.foreign_keys {
            let of = (self.catalogs.constraint, key.oid, 0);
            for column in &key.columns {
                self.add(of, (class, table.oid, number(*column)), AUTO);
            }
            for column in &key.referenced {
                self.add(of, (class, key.table, number(*column)), NORMAL);
            }
            let parent = self.session.catalog.table(key.table);
            let index = parent.and_then(|parent| {
                let index = parent.unique_over(&key.referenced)?;
                Some(parent.indexes[index].oid)
            });
            if let Some(index) = index {
                self.add(of, (class, index, 0), NORMAL);
            }
        }
    }

    /// What a partition has because its table has it, and the key of a partitioned table.
    fn partitions(&mut self, table: &Table) {
        let (class, constraint) = (self.catalogs.class, self.catalogs.constraint);
        let of = (class, table.oid, 0);
        for column in table.partitioned.iter().flat_map(|by| &by.columns) {
            self.add((class, table.oid, number(*column)), of, INTERNAL);
        }
        let session = self.session;
        let parent = table
            .partition_of
            .and_then(|oid| session.catalog.table(oid));
        let Some(parent) = parent else { return };
        self.add(of, (class, parent.oid, 0), AUTO);
        let mut link = |own: Object, above: Object| {
            self.add(own, above, PRIMARY);
            self.add(own, of, SECONDARY);
        };
        let all = parent.partitioned.iter().flat_map(|by| &by.partitions);
        let own = all.filter(|partition| partition.table == table.oid);
        for (above, own) in own.flat_map(|partition| &partition.indexes) {
            link((class, *own, 0), (class, *above, 0));
        }
        let keys = table.indexes.iter().filter(|index| index.constraint);
        let keys = keys.map(index_constraint_oid);
        for own in keys.chain(table.foreign_keys.iter().map(|key| key.oid)) {
            if let Some(above) = inherited(&session.catalog, table, own) {
                link((constraint, own, 0), (constraint, above, 0));
            }
        }
    }

    /// What an expression that is kept names.
    fn named(&mut self, of: Object, text: &str) {
        for place in places(text).unwrap_or_default() {
            match place.named {
                Named::Type(schema, name) => {
                    let oid = self.session.user_type(schema.as_deref(), &name);
                    self.of_type(of, oid.unwrap_or(0));
                }
                Named::Relation(name, _) => {
                    if let Some(oid) = self.session.relation_by_name(&name) {
                        self.add(of, (self.catalogs.class, oid, 0), NORMAL);
                    }
                }
                Named::Function(schema, name, _) => {
                    let (catalog, facts) = (&self.session.catalog, &self.session.facts);
                    let path = &facts.search_path;
                    let mut named = functions_named(catalog, path, schema.as_deref(), &name);
                    if let Some(oid) = named.next().map(|def| def.oid) {
                        self.add(of, (self.catalogs.function, oid, 0), NORMAL);
                    }
                }
                Named::Value | Named::Short(_) => {}
            }
        }
    }

    fn sequences(&mut self) {
        let session = self.session;
        let class = self.catalogs.class;
        for sequence in session.catalog.sequences.values() {
            let of = (class, sequence.oid, 0);
            self.in_schema(of, &sequence.schema);
            let Some((table, position)) = sequence.owned_by else {
                continue;
            };
            let table = session.catalog.table(table);
            let Some(column) = table.and_then(|table| table.columns.get(position)) else {
                continue;
            };
            let kind = match column.identity.is_some() && column.sequence == Some(sequence.oid) {
                true => INTERNAL,
                false => AUTO,
            };
            let owner = table.map_or(0, |table| table.oid);
            self.add(of, (class, owner, number(position)), kind);
        }
    }

    fn types(&mut self) {
        let session = self.session;
        let (class, r#type) = (self.catalogs.class, self.catalogs.r#type);
        for def in session.catalog.types.values() {
            let of = (r#type, def.oid, 0);
            self.in_schema(of, &def.schema);
            self.add((r#type, def.array(), 0), of, INTERNAL);
            match &def.kind {
                TypeKind::Enum(_) => {}
                TypeKind::Domain(domain) => {
                    self.of_type(of, domain.below);
                    for at in 0..domain.checks.len() {
                        let check = (self.catalogs.constraint, domain_check_oid(def.oid, at), 0);
                        self.add(check, of, AUTO);
                    }
                }
                TypeKind::Composite(attributes) => {
                    let relation = oids::of_composite(def);
                    self.add((class, relation, 0), of, INTERNAL);
                    for (at, attribute) in attributes.iter().enumerate() {
                        if !attribute.dropped {
                            self.of_type((class, relation, number(at)), attribute.type_oid);
                        }
                    }
                }
            }
        }
    }

    fn functions(&mut self) {
        let session = self.session;
        for def in session.catalog.functions.values() {
            let of = (self.catalogs.function, def.oid, 0);
            self.in_schema(of, &def.schema);
            self.of_type(of, def.result);
            let columns = def.columns.iter().map(|column| column.type_oid);
            for oid in def.types().chain(columns) {
                self.of_type(of, oid);
            }
        }
    }

    fn view(&mut self, view: &Arc<ViewDef>) {
        let session = self.session;
        let class = self.catalogs.class;
        let of = (class, view.oid, 0);
        self.in_schema(of, &view.schema);
        for (at, column) in view.columns.iter().enumerate() {
            self.of_type((class, view.oid, number(at)), column.type_oid);
        }
        let rule = (self.catalogs.rule, rule_oid(view.oid), 0);
        self.add(rule, of, INTERNAL);
        self.add(rule, of, NORMAL);
        let facts = session.facts.clone();
        let needed = analysis::needed_by_view(view, &session.catalog, &session.db, facts);
        let NeededByView { columns, types } = needed.unwrap_or_default();
        for read in view.reads.iter().filter(|read| read.oid >= FIRST_USER_OID) {
            if !columns.iter().any(|(oid, _)| *oid == read.oid) {
                self.add(rule, (class, read.oid, 0), NORMAL);
            }
        }
        for (oid, column) in columns {
            if oid >= FIRST_USER_OID {
                self.add(rule, (class, oid, number(column)), NORMAL);
            }
        }
        for oid in types {
            self.of_type(rule, oid);
        }
        for function in &view.functions {
            self.add(rule, (self.catalogs.function, function.oid, 0), NORMAL);
        }
    }
}
