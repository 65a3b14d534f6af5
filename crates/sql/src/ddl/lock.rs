//! The locks that DDL takes before it looks at a definition: what it makes of it is made of
//! the one that is in force when the lock is granted.

use std::sync::Arc;

use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::{Catalog, LockMode, Table};

use super::{Definition, find_relation};
use crate::error::Result;
use crate::parse::schema::{Moved, SetSchema};
use crate::parse::statement::{Ddl, Dropped};
use crate::parse::table::AlterOperation;
use crate::parse::trigger::TriggerCommand;

impl Definition<'_> {
    /// Locks the tables that a statement names as it needs them. Names that mean nothing, and
    /// tables of others, the statement refuses itself.
    pub(super) async fn lock_named(&mut self, statement: &Ddl) -> Result<()> {
        let exclusive = LockMode::AccessExclusive;
        let (names, mode) = match statement {
            Ddl::Role(_)
            | Ddl::Grant(_)
            | Ddl::DefaultPrivileges(_)
            | Ddl::OwnedBy(_)
            | Ddl::Owner { .. } => {
                return self.lock_authority().await;
            }
            Ddl::CreateIndex(create) => {
                // What is computed for an index has its place in the rows, which are written anew.
                let mode = match create.computes() {
                    true => exclusive,
                    false => LockMode::Share,
                };
                (std::slice::from_ref(&create.table), mode)
            }
            Ddl::AlterTable(alter) => {
                let of_owner = |operation: &_| matches!(operation, AlterOperation::Owner(_));
                if alter.operations.iter().any(of_owner) {
                    self.lock_authority().await?;
                }
                (std::slice::from_ref(&alter.name), exclusive)
            }
            Ddl::Trigger(command) => {
                let mode = match command {
                    TriggerCommand::Create(_) => LockMode::ShareRowExclusive,
                    _ => exclusive,
                };
                (std::slice::from_ref(command.table()), mode)
            }
            Ddl::SetSchema(SetSchema {
                moved: Moved::Relation(_, name),
                ..
            }) => (std::slice::from_ref(name), exclusive),
            Ddl::RenameIndex { name, .. } | Ddl::AttachIndex { name, .. } => {
                (std::slice::from_ref(name), exclusive)
            }
            Ddl::Refresh(refresh) => {
                let mode = match refresh.concurrently {
                    true => LockMode::Exclusive,
                    false => exclusive,
                };
                (std::slice::from_ref(&refresh.name), mode)
            }
            Ddl::Truncate(truncate) => (truncate.tables.as_slice(), exclusive),
            Ddl::Drop(drop)
                if matches!(
                    drop.kind,
                    Dropped::Table | Dropped::Materialized | Dropped::Index
                ) =>
            {
                (drop.names.as_slice(), exclusive)
            }
            _ => return Ok(()),
        };
        let truncates = matches!(statement, Ddl::Truncate(_));
        for name in names {
            while let Some(table) = self.table_of(name) {
                if !self.may_lock(&table, truncates)? {
                    break;
                }
                let (db, options) = (self.db, self.options);
                db.lock_to_define(self.txn, options, &table, mode).await?;
                if self.table_of(name).is_none_or(|now| now.oid == table.oid) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Keeps roles and rights as they are, to make others out of them.
    pub(super) async fn lock_authority(&mut self) -> Result<()> {
        Ok(self.db.lock_authority(self.txn, self.options).await?)
    }

    /// The table of this name, or that of the index of this name.
    fn table_of(&self, name: &[String]) -> Option<Arc<Table>> {
        let catalog: Arc<Catalog> = self.catalog();
        let (schema, relation) = find_relation(&catalog, self.search_path, name)?;
        let index = || {
            catalog
                .index_by_name(&schema, &relation)
                .map(|(table, _)| table)
        };
        let table = catalog.table_by_name(&schema, &relation);
        table.or_else(index).cloned()
    }

    fn may_lock(&self, table: &Table, to_truncate: bool) -> Result<bool> {
        let actor = self.actor()?;
        let object = Object::Table(table.oid);
        let catalog = self.catalog();
        let schema = catalog.schema(&table.schema);
        Ok(actor.owns(&object)
            || schema.is_some_and(|schema| actor.owns(&Object::Schema(schema.oid)))
            || to_truncate
                && actor
                    .authority()
                    .privileges(actor.role(), &object)
                    .contains(Privileges::TRUNCATE))
    }
}
