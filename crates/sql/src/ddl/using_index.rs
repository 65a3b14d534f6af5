//! ADD PRIMARY KEY or UNIQUE … USING INDEX: an index that is there becomes a constraint's.

use std::sync::Arc;

use thermocline_engine::comment::CommentOn;
use thermocline_engine::ddl::Change;
use thermocline_engine::{IndexDef, Table, TableDef};

use super::create_table::{has_constraint, second_primary_key};
use super::{Definition, exists, names};
use crate::error::{Result, SqlError};
use crate::parse::constraint::UsingIndex;

impl Definition<'_> {
    /// Makes an index of the table a constraint's, whose name it takes.
    pub(super) async fn add_using_index(
        &mut self,
        table: &Arc<Table>,
        using: &UsingIndex,
    ) -> Result<()> {
        let at = self.index_for_constraint(table, &using.index)?;
        let mut index = table.indexes[at].clone();
        if let Some(name) = using.name.as_deref().map(names::truncated)
            && name != index.name
        {
            self.notice(
                "00000",
                format!(
                    "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"",
                    index.name
                ),
            );
            if self.catalog().relation_exists(&table.schema, &name) {
                return Err(exists(&name));
            }
            index.name = name;
        }
        if table.has_constraint(&index.name) {
            return Err(has_constraint(table, &index.name));
        }
        index.constraint = true;
        if using.primary {
            return self.primary_using(table, index).await;
        }
        let mut def = table.def.clone();
        def.indexes[at] = index;
        self.apply(Change::AlterTable(def)).await
    }

    /// The place of an index that a constraint may have.
    fn index_for_constraint(&self, table: &Table, name: &str) -> Result<usize> {
        let catalog = self.catalog();
        let Some((owner, at)) = catalog.index_by_name(&table.schema, name) else {
            return Err(match catalog.relation_exists(&table.schema, name) {
                true => SqlError::new("42809", format!("\"{name}\" is not an index")),
                false => SqlError::new("42704", format!("index \"{name}\" does not exist")),
            });
        };
        let index = &owner.indexes[at];
        if index.constraint {
            let message = format!("index \"{name}\" is already associated with a constraint");
            return Err(SqlError::new("55000", message));
        }
        if owner.oid != table.oid {
            let message = format!(
                "index \"{name}\" does not belong to table \"{}\"",
                table.name
            );
            return Err(SqlError::new("55000", message));
        }
        match stands_in_the_way(owner, index) {
            None => Ok(at),
            Some(message) => Err(SqlError::new("42809", message).with_detail(
                "Cannot create a primary key or unique constraint using such an index.",
            )),
        }
    }

    /// The index becomes that of the primary key.
    async fn primary_using(&mut self, table: &Arc<Table>, mut index: IndexDef) -> Result<()> {
        if table.indexes.iter().any(|other| other.primary) {
            return Err(second_primary_key(&table.name));
        }
        let old = index.oid;
        index.primary = true;
        let nullable = index.columns.iter().copied();
        let nullable: Vec<usize> = nullable
            .filter(|column| !table.columns[*column].not_null)
            .collect();
        for column in &nullable {
            self.verify_not_null(table, *column).await?;
        }
        // The rows of a table with a primary key lie by it, so its index is made as such. What was
        // said of the one before is said of it.
        let on = |oid| CommentOn::Relation { oid, column: 0 };
        let comment = self.catalog().comments.get(&on(old)).cloned();
        let change = Change::DropIndex {
            table: table.oid,
            index: old,
        };
        self.apply(change).await?;
        let left = self.current(table.oid)?;
        self.set_nullability(&left, &nullable, true).await?;
        index.oid = self.db.allocate_oid();
        let on = on(index.oid);
        let change = Change::CreateIndex {
            table: table.oid,
            index,
        };
        self.apply(change).await?;
        match comment {
            Some(text) => {
                let text = Some(text);
                self.apply(Change::Comment { on, text }).await
            }
            None => Ok(()),
        }
    }
}

/// Why no constraint may have an index.
fn stands_in_the_way(table: &TableDef, index: &IndexDef) -> Option<String> {
    let name = &index.name;
    let mut key = table.key_of(index).iter();
    if !index.unique {
        Some(format!("\"{name}\" is not a unique index"))
    } else if key.any(|column| table.columns[*column].hidden.is_some()) {
        Some(format!("index \"{name}\" contains expressions"))
    } else if table.predicate_of(index).is_some() {
        Some(format!("\"{name}\" is a partial index"))
    } else {
        None
    }
}
