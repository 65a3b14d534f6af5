//! What a change of the catalog locks before it is looked at: tables, names, schemas, sequences,
//! views, types, functions, roles and rights.
//!
//! A change was made out of what the catalog said. Guarantees: what it is about is locked, and is
//! as it was then, or the change is refused.

use std::sync::Arc;

use crate::catalog::ddl::Change;
use crate::catalog::function::FunctionDef;
use crate::catalog::table_lock::LockedObject::{
    Authority, Function, Name, Schema, Sequence, Tablespace, TablespaceName, Type, View,
};
use crate::catalog::table_lock::{LockMode, LockedObject};
use crate::catalog::tablespace::TablespaceDef;
use crate::catalog::user_type::TypeDef;
use crate::catalog::view::{ViewDef, ViewRead, ViewType};
use crate::catalog::{Catalog, Commented, SequenceDef, TableDef, types_of, types_within};
use crate::ground::error::{Error, Result};
use crate::parts::Parts;
use crate::run::interactive::Transaction;
use crate::transaction::RunOptions;

const EXCLUSIVE: LockMode = LockMode::AccessExclusive;

/// What one change locks.
#[derive(Default)]
struct Locks {
    tables: Vec<(u32, LockMode)>,
    objects: Vec<(LockedObject, LockMode)>,
    /// Users' types of which something is made.
    types: Vec<u32>,
}

fn named(schema: &str, name: &str) -> LockedObject {
    Name(schema.to_owned(), name.to_owned())
}

impl Locks {
    fn of(change: &Change, catalog: &Catalog) -> Locks {
        let mut locks = Locks::default();
        locks.of_rows(change, catalog);
        locks.of_names(change, catalog);
        locks
    }

    /// Of schemas, and what has rows or numbers: tables, indexes, sequences.
    fn of_rows(&mut self, change: &Change, catalog: &Catalog) {
        match change {
            Change::CreateSchema(name) | Change::DropSchema(name) => {
                self.objects.push((Schema(name.clone()), EXCLUSIVE));
            }
            Change::CreateTable(def) => {
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
                self.objects
                    .push((named(&def.schema, &def.name), EXCLUSIVE));
                self.types.extend(types_of(catalog, def));
                if let Some(of) = &def.materialized {
                    self.of_query((&of.reads, &of.types), catalog);
                }
                self.of_tablespace(def);
                let indexes = def.indexes.iter();
                self.objects
                    .extend(indexes.map(|i| (named(&def.schema, &i.name), EXCLUSIVE)));
            }
            Change::DropTable(oid) => self.tables.push((*oid, EXCLUSIVE)),
            Change::Truncate {
                tables: all,
                restart_identity,
            } => {
                self.tables.extend(all.iter().map(|oid| (*oid, EXCLUSIVE)));
                let is_owned =
                    |def: &SequenceDef| def.owned_by.is_some_and(|(owner, _)| all.contains(&owner));
                let sequences = catalog.sequences.values();
                let owned = sequences.filter(|def| *restart_identity && is_owned(def));
                self.objects
                    .extend(owned.map(|def| (Sequence(def.oid), EXCLUSIVE)));
            }
            Change::DropIndex { table, .. } => self.tables.push((*table, EXCLUSIVE)),
            Change::AlterTable(def) => {
                self.tables.push((def.oid, EXCLUSIVE));
                let is_new = |name: &String| !catalog.relation_exists(&def.schema, name);
                let indexes = def.indexes.iter().map(|index| &index.name);
                let names = indexes.chain([&def.name]).filter(|name| is_new(name));
                self.objects
                    .extend(names.map(|new| (named(&def.schema, new), EXCLUSIVE)));
                self.types.extend(types_of(catalog, def));
                self.of_tablespace(def);
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
            }
            Change::CreateTrigger { table, trigger } => {
                self.tables.push((*table, LockMode::ShareRowExclusive));
                let def = catalog.functions.get(&trigger.function);
                let named = def.map(|def| Function(def.schema.clone(), def.name.clone()));
                self.objects
                    .extend(named.map(|function| (function, LockMode::Share)));
            }
            Change::CreateIndex { table, index } => {
                // As ALTER TABLE makes a constraint, and CREATE INDEX an index.
                let is_constraint = index.primary || index.constraint;
                let mode = match is_constraint {
                    true => EXCLUSIVE,
                    false => LockMode::Share,
                };
                self.tables.push((*table, mode));
                if let Some(def) = catalog.table(*table) {
                    self.objects
                        .push((named(&def.schema, &index.name), EXCLUSIVE));
                }
            }
            Change::CreateSequence(def) => {
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
                self.objects
                    .push((named(&def.schema, &def.name), EXCLUSIVE));
            }
            Change::AlterSequence(def) => {
                self.objects.push((Sequence(def.oid), EXCLUSIVE));
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
                if !catalog.relation_exists(&def.schema, &def.name) {
                    self.objects
                        .push((named(&def.schema, &def.name), EXCLUSIVE));
                }
            }
            Change::DropSequence(oid) | Change::RestartSequence { oid, .. } => {
                self.objects.push((Sequence(*oid), EXCLUSIVE));
            }
            _ => {}
        }
    }

    /// Of what a view's query names, beside tables.
    fn of_query(&mut self, (reads, types): (&[ViewRead], &[ViewType]), catalog: &Catalog) {
        let views = reads.iter().map(|read| read.oid);
        let views = views.filter(|oid| catalog.views.contains_key(oid));
        self.objects
            .extend(views.map(|oid| (View(oid), LockMode::Share)));
        let types = types.iter().filter_map(|named| catalog.type_of(named.oid));
        self.types.extend(types.map(|def| def.oid));
    }

    /// Of where a table's evicted rows go.
    fn of_tablespace(&mut self, def: &TableDef) {
        if def.tablespace != 0 {
            self.objects
                .push((Tablespace(def.tablespace), LockMode::Share));
        }
    }

    /// Of all else.
    fn of_names(&mut self, change: &Change, catalog: &Catalog) {
        match change {
            Change::CreateView(def) | Change::ReplaceView(def) => {
                if !catalog.relation_exists(&def.schema, &def.name) {
                    self.objects
                        .push((named(&def.schema, &def.name), EXCLUSIVE));
                }
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
                self.objects.push((View(def.oid), EXCLUSIVE));
                self.of_query((&def.reads, &def.types), catalog);
                let columns = def.columns.iter().map(|column| column.type_oid);
                let of_columns = columns.filter_map(|oid| catalog.type_of(oid));
                self.types.extend(of_columns.map(|def| def.oid));
            }
            Change::DropView(oid) => self.objects.push((View(*oid), EXCLUSIVE)),
            Change::CreateType(def) => {
                self.types.extend(types_within(catalog, def));
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
                self.objects
                    .push((named(&def.schema, &def.name), EXCLUSIVE));
            }
            Change::AlterType(def) => {
                self.types.extend(types_within(catalog, def));
                self.objects.push((Type(def.oid), EXCLUSIVE));
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
                self.objects
                    .push((named(&def.schema, &def.name), EXCLUSIVE));
            }
            Change::DropType(oid) => self.objects.push((Type(*oid), EXCLUSIVE)),
            Change::CreateFunction(def) | Change::ReplaceFunction(def) => {
                let of_types = def.types().chain([def.result]);
                let of_types = of_types.filter_map(|oid| catalog.type_of(oid));
                self.types.extend(of_types.map(|def| def.oid));
                self.objects
                    .push((Schema(def.schema.clone()), LockMode::Share));
                self.objects
                    .push((Function(def.schema.clone(), def.name.clone()), EXCLUSIVE));
                // Where it was, if it moves.
                let old = catalog.functions.get(&def.oid);
                let old = old.map(|old| Function(old.schema.clone(), old.name.clone()));
                self.objects.extend(old.map(|old| (old, EXCLUSIVE)));
            }
            Change::DropFunction(oid) => {
                let def = catalog.functions.get(oid);
                let named = def.map(|def| Function(def.schema.clone(), def.name.clone()));
                self.objects
                    .extend(named.map(|function| (function, EXCLUSIVE)));
            }
            Change::CreateTablespace(def) => {
                self.objects
                    .push((TablespaceName(def.name.clone()), EXCLUSIVE));
            }
            Change::AlterTablespace(def) => {
                self.objects.push((Tablespace(def.oid), EXCLUSIVE));
                self.objects
                    .push((TablespaceName(def.name.clone()), EXCLUSIVE));
            }
            Change::DropTablespace(oid) => self.objects.push((Tablespace(*oid), EXCLUSIVE)),
            Change::Authorize(_) => self.objects.push((Authority, LockMode::Exclusive)),
            Change::Comment { on, .. } => {
                let mode = LockMode::ShareUpdateExclusive;
                match on.locked(catalog) {
                    Commented::Table(oid) => self.tables.push((oid, mode)),
                    Commented::Object(object) => self.objects.extend(object.map(|of| (of, mode))),
                }
            }
            Change::CreateSchema(_)
            | Change::DropSchema(_)
            | Change::CreateTable(_)
            | Change::DropTable(_)
            | Change::Truncate { .. }
            | Change::AlterTable(_)
            | Change::CreateTrigger { .. }
            | Change::CreateIndex { .. }
            | Change::DropIndex { .. }
            | Change::CreateSequence(_)
            | Change::AlterSequence(_)
            | Change::RestartSequence { .. }
            | Change::DropSequence(_) => {}
        }
    }
}

/// Whether what a change was made out of is in one catalog as it is in another.
fn is_as_made(change: &Change, catalog: &Catalog, now: &Catalog) -> bool {
    if let Change::CreateTrigger { trigger, .. } = change {
        let function = |of: &Catalog| of.functions.get(&trigger.function).cloned();
        if function(catalog) != function(now) {
            return false;
        }
    }
    match change {
        Change::AlterTable(TableDef { oid, .. })
        | Change::CreateTrigger { table: oid, .. }
        | Change::CreateIndex { table: oid, .. }
        | Change::DropIndex { table: oid, .. } => match (catalog.table(*oid), now.table(*oid)) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        },
        Change::AlterSequence(SequenceDef { oid, .. }) => {
            catalog.sequences.get(oid) == now.sequences.get(oid)
        }
        Change::CreateView(def) | Change::ReplaceView(def) => {
            let old = catalog.views.get(&def.oid) == now.views.get(&def.oid);
            old && are_as_read(&def.reads, catalog, now)
        }
        Change::AlterType(TypeDef { oid, .. }) | Change::DropType(oid) => {
            catalog.types.get(oid) == now.types.get(oid)
        }
        Change::ReplaceFunction(FunctionDef { oid, .. }) | Change::DropFunction(oid) => {
            catalog.functions.get(oid) == now.functions.get(oid)
        }
        Change::AlterTablespace(TablespaceDef { oid, .. }) | Change::DropTablespace(oid) => {
            catalog.tablespaces.get(oid) == now.tablespaces.get(oid)
        }
        Change::CreateTable(def) => {
            let reads = def.materialized.iter().flat_map(|of| &of.reads);
            are_as_read(reads, catalog, now)
                && (def.tablespace == 0 || now.tablespaces.contains_key(&def.tablespace))
        }
        Change::Authorize(_) => Arc::ptr_eq(&catalog.authority, &now.authority),
        _ => true,
    }
}

/// Whether what a query reads is in one catalog as it is in another.
fn are_as_read<'r>(
    reads: impl IntoIterator<Item = &'r ViewRead>,
    catalog: &Catalog,
    now: &Catalog,
) -> bool {
    reads.into_iter().all(|read| {
        let table = |catalog: &Catalog| {
            let table = catalog.table(read.oid);
            table.map(|table| (table.name.clone(), table.columns.clone()))
        };
        let view = |catalog: &Catalog| catalog.views.get(&read.oid).cloned();
        table(catalog) == table(now) && view(catalog) == view(now)
    })
}

impl Parts {
    /// Locks what a change is about. It was made out of what the catalog said: who waited and
    /// finds that it says something else by now has to make it anew.
    pub(crate) async fn lock_objects(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        change: &Change,
        catalog: &Catalog,
    ) -> Result<()> {
        let Locks {
            tables,
            mut objects,
            types,
        } = Locks::of(change, catalog);
        match change {
            Change::CreateView(ViewDef { reads, .. })
            | Change::ReplaceView(ViewDef { reads, .. }) => {
                self.lock_what_is_read(txn, options, reads).await?;
            }
            Change::CreateTable(def) => {
                let reads = def.materialized.iter().map(|of| &of.reads);
                for reads in reads {
                    self.lock_what_is_read(txn, options, reads).await?;
                }
            }
            _ => {}
        }
        for (oid, mode) in tables {
            self.hold(txn, options, oid, mode).await?;
        }
        if let Change::DropTable(oid) = change {
            // With the table locked, as it is now.
            let owned = txn.catalog();
            let owned = owned.sequences.values();
            let owned = owned.filter(|s| s.owned_by.is_some_and(|(owner, _)| owner == *oid));
            objects.extend(owned.map(|sequence| (Sequence(sequence.oid), EXCLUSIVE)));
        }
        objects.extend(types.iter().map(|oid| (Type(*oid), LockMode::Share)));
        let state = txn.state_mut()?;
        for (object, mode) in objects {
            self.lock_object(state, options, object, mode).await?;
        }
        let now = txn.catalog();
        for oid in types {
            if let (Some(def), None) = (catalog.types.get(&oid), now.types.get(&oid)) {
                let message = format!("type \"{}\" does not exist", def.name);
                return Err(Error::catalog("42704", message));
            }
        }
        match is_as_made(change, catalog, &now) {
            true => Ok(()),
            false => Err(Error::StalePlan),
        }
    }

    /// Locks a table that the transaction is about to change.
    async fn hold(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        oid: u32,
        mode: LockMode,
    ) -> Result<()> {
        let Some(shared) = self.catalog().table(oid).cloned() else {
            return Ok(());
        };
        self.lock_to_define(txn, options, &shared, mode).await?;
        // As it is now.
        let Some(shared) = self.catalog().table(oid).cloned() else {
            return Ok(());
        };
        let held = &mut self.draft(txn)?.held;
        if held.iter().all(|table| table.def.oid != oid) {
            held.push(shared);
        }
        Ok(())
    }
}
