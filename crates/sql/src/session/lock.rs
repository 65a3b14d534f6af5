//! LOCK TABLE.
//!
//! A name may mean another table when the wait for its lock is over, so it is looked up again
//! until it means the table that is locked. Whoever may not do with a table what the
//! lock is for gets no place in its line.

use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::{LockMode, Table, Transaction};

use super::Session;
use crate::ddl::find_relation;
use crate::error::{Result, SqlError};
use crate::parse::statement::LockTables;
use crate::privilege::{Actor, denied};
use crate::temporary::not_others;

impl Session {
    /// LOCK TABLE.
    pub(super) async fn lock_tables(&mut self, lock: &LockTables) -> Result<()> {
        if !self.is_in_block() {
            return Err(SqlError::new(
                "25P01",
                "LOCK TABLE can only be used in transaction blocks",
            ));
        }
        let options = self.options();
        let search_path = self.context.settings(|settings| settings.search_path());
        let role = self.context.settings(|settings| settings.role());
        let db = self.engine.db.clone();
        let Some(txn) = self.transaction.of_block(&db) else {
            return Err(SqlError::internal("a block without a transaction"));
        };
        for name in &lock.tables {
            let found = loop {
                let catalog = txn.catalog();
                let Some((schema, relation)) = find_relation(&catalog, &search_path, name) else {
                    break false;
                };
                let table = catalog.table_by_name(&schema, &relation).cloned();
                let Some(table) = table.filter(|table| !table.is_materialized()) else {
                    return Err(SqlError::new(
                        "42809",
                        format!("cannot lock relation \"{relation}\""),
                    ));
                };
                not_others(&schema, &search_path)?;
                check_rights(&Actor::named(&role, &catalog)?, &table, lock.mode)?;
                db.lock_table(txn, &options, &table, lock.mode, !lock.nowait)
                    .await?;
                if means_still(txn, &search_path, name, &table) {
                    for leaf in txn.catalog().leaves_of(&table) {
                        if leaf.oid != table.oid {
                            db.lock_table(txn, &options, &leaf, lock.mode, !lock.nowait)
                                .await?;
                        }
                    }
                    break true;
                }
            };
            // Nobody changes what is the system's.
            let system = name.iter().any(|part| part.starts_with("pg_"));
            if !found && !system {
                return Err(SqlError::undefined_table(&name.join(".")));
            }
        }
        Ok(())
    }
}

/// Whether a name means the same table as before.
fn means_still(txn: &Transaction, search_path: &[String], name: &[String], table: &Table) -> bool {
    let catalog = txn.catalog();
    let found = find_relation(&catalog, search_path, name);
    let now = found.and_then(|(schema, relation)| {
        let table = catalog.table_by_name(&schema, &relation);
        table.map(|table| table.oid)
    });
    now == Some(table.oid)
}

/// 42501 unless the role may do something with the table that needs such a lock.
fn check_rights(actor: &Actor, table: &Table, mode: LockMode) -> Result<()> {
    let removing = Privileges::UPDATE | Privileges::DELETE | Privileges::TRUNCATE;
    let one_of = match mode {
        LockMode::AccessShare => Privileges::SELECT,
        LockMode::RowExclusive => removing | Privileges::INSERT,
        _ => removing,
    };
    let object = Object::Table(table.oid);
    let has = actor.authority().privileges(actor.role(), &object);
    match actor.is_superuser() || !(has & one_of).is_empty() {
        true => Ok(()),
        false => Err(denied(table.kind(), &table.name)),
    }
}
