//! The locks that DDL takes before it looks at a definition: what it makes of it is made of
//! the one that is in force when the lock is granted.

use std::sync::Arc;

use sqlparser::ast::{AlterTableOperation, ObjectType, Statement as Sql};
use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::{Catalog, LockMode, Table};

use super::{Definition, find_relation};
use crate::error::Result;
use crate::parse::statement::Ddl;
use crate::parse::tokens::fold_parts;

impl Definition<'_> {
    /// Locks the tables that a statement names as it needs them. Names that mean nothing, and
    /// tables of others, the statement refuses itself.
    pub(super) async fn lock_named(&mut self, statement: &Ddl) -> Result<()> {
        let statement = match statement {
            Ddl::Parsed(statement) => statement,
            Ddl::Role(_) | Ddl::Grant(_) | Ddl::OwnedBy(_) | Ddl::Owner { .. } => {
                return self.lock_authority().await;
            }
            _ => return Ok(()),
        };
        let exclusive = LockMode::AccessExclusive;
        let (names, mode) = match &**statement {
            Sql::CreateIndex(create) => (vec![&create.table_name], LockMode::Share),
            Sql::AlterTable(alter) => {
                let of_owner =
                    |operation: &_| matches!(operation, AlterTableOperation::OwnerTo { .. });
                if alter.operations.iter().any(of_owner) {
                    self.lock_authority().await?;
                }
                (vec![&alter.name], exclusive)
            }
            Sql::AlterIndex { name, .. } => (vec![name], exclusive),
            Sql::Truncate(truncate) => {
                let names = truncate.table_names.iter();
                (names.map(|target| &target.name).collect(), exclusive)
            }
            Sql::Drop {
                object_type: ObjectType::Table | ObjectType::Index,
                names,
                ..
            } => (names.iter().collect(), exclusive),
            _ => return Ok(()),
        };
        let truncates = matches!(&**statement, Sql::Truncate(_));
        for name in names {
            let name = fold_parts(name);
            while let Some(table) = self.table_of(&name) {
                if !self.may_lock(&table, truncates)? {
                    break;
                }
                let (db, options) = (self.db, self.options);
                db.lock_to_define(self.txn, options, &table, mode).await?;
                if self.table_of(&name).is_none_or(|now| now.oid == table.oid) {
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
