//! FOREIGN KEY constraints: made, validated, dropped, and in the way of what they need.
//!
//! A table's definition has its foreign keys. That of the table referred to names the tables
//! that refer to it: so plans for either are made anew when a foreign key comes or goes.

use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_engine::authority::Privileges;
use thermocline_engine::ddl::Change;
use thermocline_engine::{Access, ForeignKeyDef, LockMode, Scope, Table, TableDef};
use thermocline_query::types::format_type;
use thermocline_values::types::DataType;

use super::create_table::has_constraint;
use super::generated::gives_no_value;
use super::{Definition, names};
use crate::error::{Result, SqlError};
use crate::parse::constraint::ForeignKey;
use crate::pg_catalog::quote_ident;
use crate::plan::{Reference, ReferredTo, fits};
use crate::temporary::is_temporary;

/// A foreign key and its table.
pub(super) struct Referrer {
    pub(super) table: Arc<Table>,
    pub(super) number: usize,
}

impl Referrer {
    fn def(&self) -> &ForeignKeyDef {
        &self.table.foreign_keys[self.number]
    }
}

impl Definition<'_> {
    /// Adds a foreign key to a table, of this column if it stands at one. `new`: the table has no
    /// rows yet.
    pub(super) async fn add_foreign_key(
        &mut self,
        oid: u32,
        key: &ForeignKey,
        column: Option<&str>,
        new: bool,
    ) -> Result<()> {
        let table = self.current(oid)?;
        let parent = self.parent(&table, key).await?;
        // As it is now, and may be the table itself.
        let table = self.current(oid)?;
        let mut def = self.foreign_key_def(&table, &parent, key, column)?;
        // A new table has no rows that were not looked at.
        def.validated |= new;
        let validated = def.validated;
        let mut changed = table.def.clone();
        changed.foreign_keys.push(def);
        let number = changed.foreign_keys.len() - 1;
        self.apply(Change::AlterTable(changed)).await?;
        let mut referred = self.current(parent.oid)?.def.clone();
        if !referred.referenced_by.contains(&oid) {
            referred.referenced_by.push(oid);
            self.link(referred).await?;
        }
        match validated && !new {
            true => self.verify_references(oid, number).await,
            false => Ok(()),
        }
    }

    /// Changes what a table's definition says of who refers to it, which needs no right on it.
    pub(super) async fn link(&mut self, def: TableDef) -> Result<()> {
        let change = Change::AlterTable(def);
        Ok(self.db.ddl(self.txn, self.options, change).await?)
    }

    /// The table that a foreign key refers to, locked.
    async fn parent(&mut self, table: &Arc<Table>, key: &ForeignKey) -> Result<Arc<Table>> {
        let found = self.find_table(&key.table);
        let is_materialized = found.as_ref().is_ok_and(|table| table.is_materialized());
        if is_materialized || self.find_view(&key.table).is_some() {
            let message = format!(
                "referenced relation \"{}\" is not a table",
                key.table.last().map_or("", String::as_str)
            );
            return Err(SqlError::new("42809", message));
        }
        let found = found?;
        if found.partitioned.is_some() {
            return Err(SqlError::unsupported(
                format!(
                    "a foreign key that refers to partitioned table \"{}\" is not supported",
                    found.name
                ),
                "Refer to a table that is not partitioned.",
            ));
        }
        let temporary = is_temporary(&table.schema);
        if temporary != is_temporary(&found.schema) {
            let which = if temporary { "temporary" } else { "permanent" };
            return Err(SqlError::new(
                "42P16",
                format!("constraints on {which} tables may reference only {which} tables"),
            ));
        }
        let catalog = self.catalog();
        self.actor()?
            .need_table(&catalog, &found, Privileges::REFERENCES)?;
        if found.oid != table.oid {
            let mode = LockMode::AccessExclusive;
            self.db
                .lock_to_define(self.txn, self.options, &found, mode)
                .await?;
        }
        self.current(found.oid)
    }

    fn foreign_key_def(
        &self,
        table: &Table,
        parent: &Table,
        key: &ForeignKey,
        column: Option<&str>,
    ) -> Result<ForeignKeyDef> {
        let named: Vec<&str> = match column {
            Some(column) => vec![column],
            None => key.columns.iter().map(String::as_str).collect(),
        };
        let columns = places(table, &named)?;
        gives_no_value(key, &columns, table)?;
        let referenced = match key.referenced.as_slice() {
            [] => {
                let mut indexes = parent.indexes.iter();
                let primary = indexes.find(|index| index.primary);
                let primary = primary.ok_or_else(|| {
                    let name = &parent.name;
                    let message =
                        format!("there is no primary key for referenced table \"{name}\"");
                    SqlError::new("42704", message)
                })?;
                primary.columns.clone()
            }
            names => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                places(parent, &names)?
            }
        };
        if parent.unique_over(&referenced).is_none() {
            return Err(SqlError::new(
                "42830",
                format!(
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    parent.name
                ),
            ));
        }
        if columns.len() != referenced.len() {
            return Err(SqlError::new(
                "42830",
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        let joined = names::joined(named.iter().copied());
        let name = match &key.name {
            Some(name) => names::truncated(name),
            None => names::choose(&table.name, &joined, "fkey", |name| {
                table.has_constraint(name)
            }),
        };
        if table.has_constraint(&name) {
            return Err(has_constraint(table, &name));
        }
        for (column, to) in columns.iter().zip(&referenced) {
            let (column, to) = (&table.columns[*column], &parent.columns[*to]);
            let (from, into) = (column.data_type, to.data_type);
            // As PostgreSQL: a number that may have decimals is not looked for among integers.
            let may_be_none = matches!(from, DataType::Numeric { .. }) && into.is_integer();
            if may_be_none || !suits(from, into) {
                return Err(incompatible(&name, (&column.name, &to.name), (from, into)));
            }
        }
        let mut set: Vec<&str> = key.set_columns.iter().map(String::as_str).collect();
        set.sort_unstable();
        set.dedup();
        let set_columns = places(table, &set)?;
        if let Some(other) = set_columns.iter().find(|set| !columns.contains(set)) {
            let message = format!(
                "column \"{}\" referenced in ON DELETE SET action must be part of foreign key",
                table.columns[*other].name
            );
            return Err(SqlError::new("42P10", message));
        }
        Ok(ForeignKeyDef {
            oid: self.db.allocate_oid(),
            name,
            columns,
            table: parent.oid,
            referenced,
            match_full: key.match_full,
            on_update: key.on_update,
            on_delete: key.on_delete,
            set_columns,
            deferrable: key.deferrable,
            deferred: key.deferred,
            validated: key.validated,
        })
    }

    /// 23503 unless all rows refer to one that is there.
    pub(super) async fn verify_references(&mut self, oid: u32, number: usize) -> Result<()> {
        let table = self.current(oid)?;
        let catalog = self.catalog();
        let columns = &table.foreign_keys[number].columns;
        let references = Reference::of(&catalog, &table, |column| columns.contains(column));
        let reference = references.into_iter().find(|one| one.number == number);
        let Some(reference) = reference else {
            return Err(SqlError::internal("a foreign key that refers to no index"));
        };
        let parent = Arc::clone(&reference.parent);
        let referenced = &table.foreign_keys[number].referenced;
        // Rows that the transaction is too old to see, too.
        let snapshot = self.txn.snapshot_of_now()?;
        for partition in 0..self.db.partitions() {
            let mut scan = snapshot.scan(&table, partition);
            let mut more = true;
            while more {
                self.options.cancel.check()?;
                let rows: Mutex<Vec<(Vec<u8>, Vec<u8>)>> = Mutex::default();
                more = scan
                    .next_chunk(&mut |_, tuple| {
                        let mut key = Vec::with_capacity(32);
                        match reference.key(&table, tuple, &mut key) {
                            ReferredTo::Nothing => {}
                            // No row has such a key.
                            ReferredTo::Mixed | ReferredTo::NoRow => {
                                rows.lock().push((Vec::new(), tuple.to_vec()));
                            }
                            ReferredTo::Key => rows.lock().push((key, tuple.to_vec())),
                        }
                    })
                    .await?;
                let rows = rows.into_inner();
                let body = |access: &mut Access<'_>| {
                    for (key, tuple) in &rows {
                        let is_there =
                            !key.is_empty() && access.has_key(&parent, referenced, key)?;
                        if !is_there && !access.evicted() {
                            return Err(table.reference_violation(number, &parent, tuple));
                        }
                    }
                    Ok(())
                };
                self.db
                    .in_transaction(self.txn, self.options, Scope::All, body)
                    .await?;
            }
        }
        Ok(())
    }

    /// VALIDATE CONSTRAINT, of a foreign key or a CHECK.
    pub(super) async fn validate_constraint(
        &mut self,
        table: &Arc<Table>,
        name: &str,
    ) -> Result<()> {
        if let Some(at) = table.checks.iter().position(|check| check.name == name) {
            return self.validate_check(table, at).await;
        }
        let mut def = table.def.clone();
        let Some(number) = def.foreign_keys.iter().position(|key| key.name == name) else {
            let relation = &table.name;
            return Err(match table.has_constraint(name) {
                true => SqlError::new(
                    "42809",
                    format!(
                        "constraint \"{name}\" of relation \"{relation}\" is not a foreign key or check constraint"
                    ),
                ),
                false => no_constraint(name, table),
            });
        };
        if def.foreign_keys[number].validated {
            return Ok(());
        }
        def.foreign_keys[number].validated = true;
        self.apply(Change::AlterTable(def)).await?;
        self.verify_references(table.oid, number).await
    }

    /// ALTER CONSTRAINT
    pub(super) async fn alter_constraint(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        (deferrable, deferred): (bool, bool),
    ) -> Result<()> {
        let mut def = table.def.clone();
        let Some(key) = def.foreign_keys.iter_mut().find(|key| key.name == name) else {
            return Err(match table.has_constraint(name) {
                true => SqlError::new(
                    "42809",
                    format!(
                        "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                        table.name
                    ),
                ),
                false => no_constraint(name, table),
            });
        };
        (key.deferrable, key.deferred) = (deferrable, deferred);
        self.apply(Change::AlterTable(def)).await
    }

    /// Drops a foreign key.
    pub(super) async fn drop_foreign_key(&mut self, oid: u32, name: &str) -> Result<()> {
        let table = self.current(oid)?;
        let mut def = table.def.clone();
        let Some(number) = def.foreign_keys.iter().position(|key| key.name == name) else {
            return Ok(());
        };
        let dropped = def.foreign_keys.remove(number);
        let refers = def
            .foreign_keys
            .iter()
            .any(|key| key.table == dropped.table);
        if dropped.table == oid && !refers {
            def.referenced_by.retain(|by| *by != oid);
        }
        // Who owns the table referred to may drop it with those that refer to it.
        self.link(def).await?;
        match refers || dropped.table == oid {
            true => Ok(()),
            false => self.unlink(oid, dropped.table).await,
        }
    }

    async fn unlink(&mut self, table: u32, from: u32) -> Result<()> {
        let Some(parent) = self.catalog().table(from).cloned() else {
            return Ok(());
        };
        let mut def = parent.def.clone();
        def.referenced_by.retain(|by| *by != table);
        self.link(def).await
    }

    /// Before tables are dropped: those that stay are not referred to by them any more, and do not
    /// refer to them.
    ///
    /// # Errors
    /// 2BP01 where one that stays refers to them and `cascade` is not given.
    pub(super) async fn free_of_references(&mut self, tables: &[u32], cascade: bool) -> Result<()> {
        let catalog = self.catalog();
        let on = |referrer: &Referrer| {
            let oid = referrer.def().table;
            let parent = catalog.table(oid).map_or("", |parent| parent.name.as_str());
            format!("table {}", quote_ident(parent))
        };
        let referrers = self.referrers(tables, tables, |_| true);
        let what = match tables {
            [table] => {
                let name = catalog
                    .table(*table)
                    .map_or("", |table| table.name.as_str());
                format!("table {}", quote_ident(name))
            }
            _ => "desired object(s)".to_owned(),
        };
        self.drop_referrers(&referrers, &what, on, cascade).await?;
        for oid in tables {
            let Some(table) = self.catalog().table(*oid).cloned() else {
                continue;
            };
            let mut parents: Vec<u32> = table.foreign_keys.iter().map(|key| key.table).collect();
            parents.sort_unstable();
            parents.dedup();
            for parent in parents.iter().filter(|parent| !tables.contains(parent)) {
                self.unlink(*oid, *parent).await?;
            }
        }
        Ok(())
    }

    /// Before an index is dropped: no foreign key needs it.
    ///
    /// # Errors
    /// 2BP01 where one does and `cascade` is not given.
    pub(super) async fn free_of_need(
        &mut self,
        table: &Table,
        index: u32,
        what: &str,
        cascade: bool,
    ) -> Result<()> {
        let mut without = table.def.clone();
        without.indexes.retain(|def| def.oid != index);
        let needs = |key: &ForeignKeyDef| without.unique_over(&key.referenced).is_none();
        let referrers = self.referrers(&[table.oid], &[], needs);
        let mut indexes = table.indexes.iter();
        let name = indexes.find(|def| def.oid == index);
        let name = name.map_or("", |def| def.name.as_str());
        // A column that goes takes its indexes along.
        let on = |_: &Referrer| match what.starts_with("column ") {
            true => what.to_owned(),
            false => format!("index {}", quote_ident(name)),
        };
        self.drop_referrers(&referrers, what, on, cascade).await
    }

    /// The foreign keys of other tables than these that refer to tables.
    fn referrers(
        &self,
        tables: &[u32],
        without: &[u32],
        which: impl Fn(&ForeignKeyDef) -> bool,
    ) -> Vec<Referrer> {
        let catalog = self.catalog();
        let mut found = Vec::new();
        for oid in tables {
            let Some(parent) = catalog.table(*oid) else {
                continue;
            };
            let by = parent.referenced_by.iter();
            for table in by.filter(|by| !without.contains(by)) {
                let Some(table) = catalog.table(*table) else {
                    continue;
                };
                for (number, key) in table.foreign_keys.iter().enumerate() {
                    if key.table == *oid && which(key) {
                        found.push(Referrer {
                            table: Arc::clone(table),
                            number,
                        });
                    }
                }
            }
        }
        found
    }

    /// Drops foreign keys that hang on what goes, or refuses to.
    async fn drop_referrers(
        &mut self,
        referrers: &[Referrer],
        what: &str,
        on: impl Fn(&Referrer) -> String,
        cascade: bool,
    ) -> Result<()> {
        if referrers.is_empty() {
            return Ok(());
        }
        let described = |referrer: &Referrer| {
            format!(
                "constraint {} on table {}",
                quote_ident(&referrer.def().name),
                quote_ident(&referrer.table.name)
            )
        };
        if !cascade {
            let depend = if what.starts_with("desired") {
                "them"
            } else {
                "it"
            };
            let lines = referrers.iter();
            let lines = lines.map(|one| format!("{} depends on {}", described(one), on(one)));
            return Err(SqlError::new(
                "2BP01",
                format!("cannot drop {what} because other objects depend on {depend}"),
            )
            .with_detail(lines.collect::<Vec<_>>().join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let lines = referrers.iter();
        let lines: Vec<String> = lines
            .map(|one| format!("drop cascades to {}", described(one)))
            .collect();
        self.notices.push(match lines.as_slice() {
            [line] => SqlError::new("00000", line.as_str()),
            lines => SqlError::new(
                "00000",
                format!("drop cascades to {} other objects", lines.len()),
            )
            .with_detail(lines.join("\n")),
        });
        for referrer in referrers {
            let name = referrer.def().name.clone();
            self.drop_foreign_key(referrer.table.oid, &name).await?;
        }
        Ok(())
    }

    /// The tables that TRUNCATE empties: with CASCADE those that refer to others of them, too.
    ///
    /// # Errors
    /// 0A000 where a table stays that refers to one of them.
    pub(super) fn truncated_together(
        &mut self,
        tables: Vec<u32>,
        cascade: bool,
    ) -> Result<Vec<u32>> {
        let mut together = tables;
        loop {
            let referrers = self.referrers(&together, &together, |_| true);
            let Some(referrer) = referrers.first() else {
                return Ok(together);
            };
            let name = &referrer.table.name;
            if !cascade {
                let catalog = self.catalog();
                let parent = catalog.table(referrer.def().table);
                let parent = parent.map_or("", |parent| parent.name.as_str());
                let instead = format!(
                    "Truncate table \"{name}\" at the same time, or use TRUNCATE ... CASCADE."
                );
                return Err(SqlError::unsupported(
                    "cannot truncate a table referenced in a foreign key constraint",
                    instead,
                )
                .with_detail(format!("Table \"{name}\" references \"{parent}\".")));
            }
            self.notice("00000", format!("truncate cascades to table \"{name}\""));
            together.push(referrer.table.oid);
        }
    }

    /// 42804 where a foreign key over the column, or one that refers to it, does not go with its
    /// new type.
    pub(super) fn suits_foreign_keys(
        &self,
        table: &Table,
        column: usize,
        to: DataType,
    ) -> Result<()> {
        let catalog = self.catalog();
        let others = self.referrers(&[table.oid], &[], |_| true);
        let own = table.foreign_keys.iter();
        let own = own.filter_map(|key| Some((key, table, &**catalog.table(key.table)?)));
        let others = others.iter();
        let others = others.map(|one| (one.def(), &*one.table, table));
        for (key, child, parent) in own.chain(others) {
            for (from, into) in key.columns.iter().zip(&key.referenced) {
                let is_it = |of: &Table, place: usize| of.oid == table.oid && place == column;
                let changes = [is_it(child, *from), is_it(parent, *into)];
                let (from, into) = (&child.columns[*from], &parent.columns[*into]);
                let types = match changes {
                    [false, false] => continue,
                    [true, false] => (to, into.data_type),
                    [false, true] => (from.data_type, to),
                    [true, true] => (to, to),
                };
                if !suits(types.0, types.1) {
                    return Err(incompatible(&key.name, (&from.name, &into.name), types));
                }
            }
        }
        Ok(())
    }

    /// 55006 where foreign keys of the table are still to be looked at in this transaction.
    pub(super) fn nothing_is_pending(&self, table: &Table, command: &str) -> Result<()> {
        if !self.txn.is_pending_on(table.oid) {
            return Ok(());
        }
        let name = &table.name;
        let message = format!("cannot {command} \"{name}\" because it has pending trigger events");
        Err(SqlError::new("55006", message))
    }
}

#[cold]
fn incompatible(
    name: &str,
    (column, to): (&str, &str),
    (from, into): (DataType, DataType),
) -> SqlError {
    let message = format!("foreign key constraint \"{name}\" cannot be implemented");
    let [from, into] = [from, into].map(|data_type| format_type(data_type.oid(), -1));
    SqlError::new("42804", message).with_detail(format!(
        "Key columns \"{column}\" and \"{to}\" are of incompatible types: {from} and {into}."
    ))
}

/// Whether values of two types are looked for among each other.
fn suits(one: DataType, other: DataType) -> bool {
    fits(one, other) && fits(other, one)
}

/// The places of a foreign key's columns.
fn places(table: &Table, names: &[&str]) -> Result<Vec<usize>> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = table.column_named(name).ok_or_else(|| {
            let message =
                format!("column \"{name}\" referenced in foreign key constraint does not exist");
            SqlError::new("42703", message)
        })?;
        if columns.contains(&column) {
            return Err(SqlError::new(
                "42701",
                format!("column \"{name}\" appears twice in foreign key constraint"),
            ));
        }
        super::create_table::with_key(&table.columns[column])?;
        columns.push(column);
    }
    Ok(columns)
}

#[cold]
pub(super) fn no_constraint(name: &str, table: &Table) -> SqlError {
    let message = format!(
        "constraint \"{name}\" of relation \"{}\" does not exist",
        table.name
    );
    SqlError::new("42704", message)
}
