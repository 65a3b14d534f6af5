//! What foreign keys ask for when a statement ends: rows that refer to keys which went go, change
//! or are refused, and what rows refer to is looked for.
//!
//! An action is a statement by the referring columns, of whoever may do anything: the right was
//! needed to make the constraint. What it takes away is followed likewise. The engine looks again
//! when the transaction commits; where no index leads to the rows that refer, the table is
//! locked against others' changes until then, and read.

use std::collections::HashSet;
use std::sync::Arc;

use thermocline_engine::{
    Access, Catalog, Database, LockMode, ReferenceAction, Referring, RemovedKey, RunOptions, Scope,
    Table, Transaction,
};
use thermocline_values::cast::CastContext;
use thermocline_values::value::{Value, ValueRef};

use super::Session;
use super::transaction::Block;
use super::triggers::Does;
use crate::bind::BindContext;
use crate::error::{Result, SqlError};
use crate::expr::{CastPath, Datum, Expr};
use crate::output::RowWriter;
use crate::plan::{DeletePlan, Fit, ShortPlan, UpdatePlan, fit, referring_index, source_by_key};

/// A foreign key of a table.
#[derive(Clone, Copy)]
struct Key<'a> {
    catalog: &'a Catalog,
    /// The table referred to.
    parent: &'a Arc<Table>,
    /// The table that refers to it.
    table: &'a Arc<Table>,
    /// Its place among that table's.
    number: usize,
}

/// A deferred foreign key without an index over its columns, and a key that went.
#[derive(Clone)]
pub(super) struct ToRead {
    table: u32,
    constraint: u32,
    removed: RemovedKey,
}

/// A key that went, as the referring columns have it.
struct Gone {
    /// The tuple that had it.
    old: Arc<[u8]>,
    values: Vec<Value>,
    /// What is in its place.
    new: Option<Vec<Value>>,
}

impl Session {
    /// Does what foreign keys ask for when a statement ends.
    pub(super) async fn settle_references(&mut self) -> Result<()> {
        if !self.transaction.is_unsettled() {
            return Ok(());
        }
        let db = Arc::clone(&self.engine.db);
        let options = self.options();
        loop {
            self.check_interrupted(&options)?;
            let Some(txn) = self.transaction.of_block(&db) else {
                return Ok(());
            };
            let removed = txn.take_removed_keys();
            if removed.is_empty() {
                return Ok(db.verify_expected(txn, &options).await?);
            }
            let mut tables: Vec<u32> = removed.iter().map(|key| key.table).collect();
            tables.sort_unstable();
            tables.dedup();
            lock_referring(&db, txn, &options, &tables).await?;
            let catalog = txn.catalog();
            let mut does = Vec::new();
            for oid in tables {
                let Some(parent) = catalog.table(oid) else {
                    continue;
                };
                let removed: Vec<&RemovedKey> =
                    removed.iter().filter(|key| key.table == oid).collect();
                for table in &parent.referenced_by {
                    let Some(table) = catalog.table(*table) else {
                        continue;
                    };
                    let keys = table.foreign_keys.iter().enumerate();
                    let keys = keys.filter(|(_, key)| key.table == oid);
                    for number in keys.map(|(number, _)| number) {
                        let key = Key {
                            catalog: &catalog,
                            parent,
                            table,
                            number,
                        };
                        Box::pin(self.follow(key, &removed, &mut does)).await?;
                    }
                }
            }
            if !does.is_empty() {
                does.reverse();
                self.behind_statement(&does).await?;
            }
        }
    }

    /// Before a commit: reads tables for what was put off to it and no index tells. An error has
    /// ended the transaction.
    pub(super) async fn settle_deferred(&mut self) -> Result<()> {
        if self.transaction.to_read.is_empty() || self.transaction.is_failed() {
            return Ok(());
        }
        let settled = Box::pin(self.read_deferred()).await;
        if settled.is_err() {
            let (engine, context) = (&self.engine, &self.context);
            self.transaction.rollback(&engine.db, context).await;
        }
        settled
    }

    async fn read_deferred(&mut self) -> Result<()> {
        // A savepoint may bring back rows that are gone now: then the commit reads again.
        let to_read = match self.transaction.has_savepoints() {
            true => self.transaction.to_read.clone(),
            false => std::mem::take(&mut self.transaction.to_read),
        };
        let db = Arc::clone(&self.engine.db);
        for one in to_read {
            let catalog = self.transaction.catalog(&db);
            let Some(table) = catalog.table(one.table) else {
                continue;
            };
            let mut keys = table.foreign_keys.iter();
            let Some(number) = keys.position(|key| key.oid == one.constraint) else {
                continue;
            };
            let Some(parent) = catalog.table(table.foreign_keys[number].table) else {
                continue;
            };
            let key = Key {
                catalog: &catalog,
                parent,
                table,
                number,
            };
            if let Some(gone) = key.gone(&one.removed)? {
                self.read_for(key, &[gone], true).await?;
            }
        }
        Ok(())
    }

    /// SET CONSTRAINTS, of these names or of all.
    pub(super) async fn set_constraints(
        &mut self,
        names: Option<&[Vec<String>]>,
        deferred: bool,
    ) -> Result<()> {
        if self.transaction.block() == Block::None {
            // It lasts as long as the statement.
            return Ok(());
        }
        let db = Arc::clone(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let Some(txn) = self.transaction.of_block(&db) else {
            return Ok(());
        };
        let catalog = txn.catalog();
        let constraints = match names {
            None => None,
            Some(names) => {
                let named = names.iter().map(|name| named(&catalog, &search_path, name));
                Some(named.collect::<Result<Vec<_>>>()?.concat())
            }
        };
        txn.set_constraints(constraints.as_deref(), deferred);
        if !deferred {
            Box::pin(self.read_deferred()).await?;
        }
        self.settle_references().await
    }

    /// Does with the rows that refer to keys which went what their foreign key says.
    /// Its triggers for the statement are to be called behind it.
    async fn follow(
        &mut self,
        key: Key<'_>,
        removed: &[&RemovedKey],
        does: &mut Vec<Does>,
    ) -> Result<()> {
        let def = &key.table.foreign_keys[key.number];
        let (mut deleted, mut changed) = (Vec::new(), Vec::new());
        for removed in removed {
            if let Some(gone) = key.gone(removed)? {
                match gone.new {
                    None => deleted.push(gone),
                    Some(_) => changed.push(gone),
                }
            }
        }
        for (gone, action) in [(deleted, def.on_delete), (changed, def.on_update)] {
            if gone.is_empty() {
                continue;
            }
            if let Some(plan) = self.action(key, action, gone[0].new.is_some())? {
                let rows: Vec<Vec<Value>> = gone.iter().map(Gone::parameters).collect();
                let mut nothing = RowWriter::values();
                if plan.fires() {
                    let now = Does::of(&plan);
                    self.before_statement(&now).await?;
                    does.extend(now);
                }
                self.each((&plan, 0), &rows, &[], &mut nothing).await?;
            }
            let at_once = action != ReferenceAction::NoAction;
            self.expect_none(key, &gone, at_once).await?;
        }
        Ok(())
    }

    /// What is done with each row that refers to a key, whose parameters are the key's values and
    /// then the new ones; none where they stay as they are.
    fn action(
        &self,
        key: Key<'_>,
        action: ReferenceAction,
        changed: bool,
    ) -> Result<Option<ShortPlan>> {
        let def = &key.table.foreign_keys[key.number];
        let source = source_by_key(key.table, &def.columns, 0);
        let set = match def.set_columns.is_empty() || changed {
            true => &def.columns,
            false => &def.set_columns,
        };
        let search_path = self.context.settings(|settings| settings.search_path());
        let context = BindContext::new(key.catalog, &search_path);
        let assignments: Vec<(usize, Expr)> = match action {
            ReferenceAction::NoAction | ReferenceAction::Restrict => return Ok(None),
            ReferenceAction::Cascade if !changed => {
                return Ok(Some(ShortPlan::Delete(Arc::new(DeletePlan {
                    source,
                    returning: None,
                    by_key: false,
                }))));
            }
            ReferenceAction::Cascade => {
                let new = (def.columns.len()..).map(Expr::Parameter);
                def.columns.iter().copied().zip(new).collect()
            }
            ReferenceAction::SetNull => {
                let null = |column: &usize| (*column, Expr::Constant(Value::Null));
                set.iter().map(null).collect()
            }
            ReferenceAction::SetDefault => {
                let default =
                    |column: &usize| Ok((*column, context.default_of(key.table, *column)?));
                set.iter().map(default).collect::<Result<_>>()?
            }
        };
        let plan = UpdatePlan::of(&context, source, assignments, None)?;
        Ok(Some(ShortPlan::Update(Arc::new(plan))))
    }

    /// Expects that nobody refers to keys which went.
    async fn expect_none(&mut self, key: Key<'_>, gone: &[Gone], at_once: bool) -> Result<()> {
        let db = Arc::clone(&self.engine.db);
        let options = self.options();
        let Some(txn) = self.transaction.of_block(&db) else {
            return Err(SqlError::internal("a block without a transaction"));
        };
        let def = &key.table.foreign_keys[key.number];
        let Some(index) = referring_index(key.table, def) else {
            db.lock_table(txn, &options, key.table, LockMode::Share, true)
                .await?;
            return self.read_for(key, gone, at_once).await;
        };
        for gone in gone {
            let values: Vec<ValueRef<'_>> = index
                .order
                .iter()
                .map(|at| gone.values[*at].as_ref())
                .collect();
            let mut bytes = Vec::with_capacity(32);
            key.table.encode_index_key(index.index, &values, &mut bytes);
            let referring = Referring {
                index: key.table.indexes[index.index].oid,
                key: bytes.into(),
                whole: index.whole,
            };
            let (parent, table) = ((&**key.parent, &gone.old), (&**key.table, key.number));
            txn.expect_no_child(parent, table, referring, at_once)?;
        }
        Ok(())
    }

    /// Reads a table, which is locked, for rows that refer to keys which went.
    async fn read_for(&mut self, key: Key<'_>, gone: &[Gone], at_once: bool) -> Result<()> {
        let db = Arc::clone(&self.engine.db);
        let options = self.options();
        let Some(txn) = self.transaction.of_block(&db) else {
            return Err(SqlError::internal("a block without a transaction"));
        };
        let mut sought: HashSet<Vec<u8>> = HashSet::with_capacity(gone.len());
        for gone in gone {
            let values: Vec<ValueRef<'_>> = gone.values.iter().map(Value::as_ref).collect();
            let mut bytes = Vec::with_capacity(32);
            key.table.encode_reference(key.number, &values, &mut bytes);
            sought.insert(bytes);
        }
        // Rows that the transaction is too old to see refer to the keys, too.
        let snapshot = txn.snapshot_of_now()?;
        let mut found: HashSet<Vec<u8>> = HashSet::new();
        for partition in 0..db.partitions() {
            let mut scan = snapshot.scan(key.table, partition);
            let mut bytes = Vec::new();
            let mut more = true;
            while more {
                self.check_interrupted(&options)?;
                more = scan
                    .next_chunk(&mut |_, tuple| {
                        bytes.clear();
                        key.table.reference_of(key.number, tuple, &mut bytes);
                        if sought.contains(&bytes) && !found.contains(&bytes) {
                            found.insert(bytes.clone());
                        }
                    })
                    .await?;
            }
        }
        drop(snapshot);
        let def = &key.table.foreign_keys[key.number];
        for gone in gone {
            let values: Vec<ValueRef<'_>> = gone.values.iter().map(Value::as_ref).collect();
            let mut bytes = Vec::with_capacity(32);
            key.table.encode_reference(key.number, &values, &mut bytes);
            if !found.contains(&bytes) || self.is_again(key, &gone.old).await? {
                continue;
            }
            let txn = self.transaction.of_block(&db);
            if !at_once && txn.is_some_and(|txn| txn.is_deferred(def)) {
                self.transaction.to_read.push(ToRead {
                    table: key.table.oid,
                    constraint: def.oid,
                    removed: RemovedKey {
                        table: key.parent.oid,
                        old: gone.old.clone(),
                        new: None,
                    },
                });
                continue;
            }
            let violation = key
                .table
                .still_referenced(key.number, key.parent, &gone.old);
            return Err(violation.into());
        }
        Ok(())
    }

    /// Whether a row has the key again that a tuple had.
    async fn is_again(&mut self, key: Key<'_>, old: &[u8]) -> Result<bool> {
        let db = Arc::clone(&self.engine.db);
        let options = self.options();
        let Some(txn) = self.transaction.of_block(&db) else {
            return Ok(false);
        };
        let columns = &key.table.foreign_keys[key.number].referenced;
        let body = |access: &mut Access<'_>| access.has_key_of(key.parent, columns, old);
        let scope = Scope::All;
        Ok(db.in_transaction(txn, &options, scope, body).await?)
    }
}

/// Keeps the tables that refer to these as they are defined until the transaction ends: the rows
/// that refer are found by their indexes when it commits, too.
async fn lock_referring(
    db: &Database,
    txn: &mut Transaction,
    options: &RunOptions,
    tables: &[u32],
) -> Result<()> {
    let catalog = txn.catalog();
    for parent in tables.iter().filter_map(|oid| catalog.table(*oid)) {
        for table in &parent.referenced_by {
            if let Some(table) = catalog.table(*table) {
                db.lock_table(txn, options, table, LockMode::RowShare, true)
                    .await?;
            }
        }
    }
    Ok(())
}

/// The foreign keys of a name, in the first schema that has some.
fn named(catalog: &Catalog, search_path: &[String], name: &[String]) -> Result<Vec<u32>> {
    let Some((name, schema)) = name.split_last() else {
        return Ok(Vec::new());
    };
    let schemas = match schema.last() {
        Some(schema) => std::slice::from_ref(schema),
        None => search_path,
    };
    for schema in schemas {
        let tables = catalog.tables.values();
        let tables = tables.filter(|table| table.schema == *schema);
        let keys = tables.flat_map(|table| &table.foreign_keys);
        let found: Vec<_> = keys.filter(|key| key.name == *name).collect();
        if let Some(key) = found.iter().find(|key| !key.deferrable) {
            let message = format!("constraint \"{}\" is not deferrable", key.name);
            return Err(SqlError::new("42809", message));
        }
        if !found.is_empty() {
            return Ok(found.iter().map(|key| key.oid).collect());
        }
    }
    let message = format!("constraint \"{name}\" does not exist");
    Err(SqlError::new("42704", message))
}

impl Key<'_> {
    /// A removed key as the referring columns have it; none where nobody can refer to it.
    fn gone(&self, removed: &RemovedKey) -> Result<Option<Gone>> {
        let def = &self.table.foreign_keys[self.number];
        let columns = || def.referenced.iter().zip(&def.columns);
        let mut values = Vec::with_capacity(def.columns.len());
        for (from, to) in columns() {
            let value = self.parent.value(&removed.old, *from);
            match fit(value, self.table.columns[*to].data_type) {
                Fit::Exact(value) if value != ValueRef::Null => values.push(value.to_owned()),
                _ => return Ok(None),
            }
        }
        let Some(new) = &removed.new else {
            return Ok(Some(Gone {
                old: removed.old.clone(),
                values,
                new: None,
            }));
        };
        let same = |(from, _): (&usize, &usize)| {
            self.parent.value(&removed.old, *from) == self.parent.value(new, *from)
        };
        if columns().all(same) {
            return Ok(None);
        }
        let mut replacing = Vec::with_capacity(def.columns.len());
        for (from, to) in columns() {
            let path = CastPath {
                from: self.parent.columns[*from].data_type,
                to: self.table.columns[*to].data_type,
                context: CastContext::Assignment,
            };
            let value = Datum::Ref(self.parent.value(new, *from));
            let value = match path.from == path.to {
                true => value,
                false => path.apply(value, crate::styles::Styles::plain())?,
            };
            replacing.push(value.into_value());
        }
        Ok(Some(Gone {
            old: removed.old.clone(),
            values,
            new: Some(replacing),
        }))
    }
}

impl Gone {
    fn parameters(&self) -> Vec<Value> {
        let mut parameters = self.values.clone();
        parameters.extend(self.new.iter().flatten().cloned());
        parameters
    }
}
