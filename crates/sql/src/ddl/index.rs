//! CREATE INDEX and ALTER INDEX … RENAME.

use sqlparser::ast::{self, AlterIndexOperation, IndexType, ObjectName};
use thermocline_engine::ddl::Change;
use thermocline_engine::{IndexDef, IndexKind};

use super::create_table::{INDEX_COLUMNS_MAX, plain_columns, position, with_key};
use super::{Definition, exists, names};
use crate::error::{Result, SqlError};
use crate::parse::tokens::fold_parts;

impl Definition<'_> {
    pub(super) async fn create_index(&mut self, create: &ast::CreateIndex) -> Result<&'static str> {
        const TAG: &str = "CREATE INDEX";
        let table = self.find_table(&create.table_name)?;
        if create.predicate.is_some() {
            return Err(SqlError::unsupported(
                "partial indexes are not supported yet",
                "Leave the WHERE clause out: the index has all rows then.",
            ));
        }
        if !create.include.is_empty() {
            return Err(SqlError::unsupported(
                "INCLUDE columns are not supported yet",
                "Make them columns of the index, or leave them out.",
            ));
        }
        if create.nulls_distinct == Some(false) {
            return Err(SqlError::unsupported(
                "NULLS NOT DISTINCT is not supported yet",
                "Declare the columns NOT NULL.",
            ));
        }
        let kind = index_kind(create.using.as_ref())?;
        check_directions(&create.columns)?;
        let names = plain_columns(&create.columns)?;
        if names.len() > INDEX_COLUMNS_MAX {
            return Err(SqlError::new(
                "54011",
                format!("cannot use more than {INDEX_COLUMNS_MAX} columns in an index"),
            ));
        }
        if kind == IndexKind::Hash && create.unique {
            return Err(SqlError::unsupported(
                "access method \"hash\" does not support unique indexes",
                "Use btree, or a primary key WITH (primary_key = hash).",
            ));
        }
        let columns = names
            .iter()
            .map(|name| position(&table.def, name))
            .collect::<Result<Vec<_>>>()?;
        for column in &columns {
            with_key(&table.columns[*column])?;
        }
        let catalog = self.catalog();
        let taken = |name: &str| catalog.relation_exists(&table.schema, name);
        let name = match &create.name {
            Some(name) => {
                let parts = fold_parts(name);
                let name = names::truncated(parts.last().map_or("", String::as_str));
                if taken(&name) {
                    if create.if_not_exists {
                        self.notice(
                            "42P07",
                            format!("relation \"{name}\" already exists, skipping"),
                        );
                        return Ok(TAG);
                    }
                    return Err(exists(&name));
                }
                name
            }
            None => {
                let joined = names::joined(names.iter().map(String::as_str));
                names::choose(&table.name, &joined, "idx", taken)
            }
        };
        let index = IndexDef {
            oid: self.db.allocate_oid(),
            name,
            columns,
            unique: create.unique,
            primary: false,
            constraint: false,
            kind,
        };
        self.apply(Change::CreateIndex {
            table: table.oid,
            index,
        })
        .await?;
        Ok(TAG)
    }

    pub(super) async fn alter_index(
        &mut self,
        name: &ObjectName,
        operation: &AlterIndexOperation,
    ) -> Result<&'static str> {
        let AlterIndexOperation::RenameIndex { index_name } = operation;
        let parts = fold_parts(name);
        let found = self.find_relation(&parts);
        let catalog = self.catalog();
        let Some((table, at)) = found
            .as_ref()
            .and_then(|(schema, relation)| catalog.index_by_name(schema, relation))
        else {
            return Err(match found {
                Some((_, relation)) => {
                    SqlError::new("42809", format!("\"{relation}\" is not an index"))
                }
                None => SqlError::undefined_table(&parts.join(".")),
            });
        };
        let new_name = fold_parts(index_name).pop().unwrap_or_default();
        let new_name = names::truncated(&new_name);
        if catalog.relation_exists(&table.schema, &new_name) {
            return Err(exists(&new_name));
        }
        let mut def = table.def.clone();
        def.indexes[at].name = new_name;
        self.apply(Change::AlterTable(def)).await?;
        Ok("ALTER INDEX")
    }
}

fn index_kind(using: Option<&IndexType>) -> Result<IndexKind> {
    match using {
        None | Some(IndexType::BTree) => Ok(IndexKind::BTree),
        Some(IndexType::Hash) => Ok(IndexKind::Hash),
        Some(other) => {
            let name = other.to_string().to_lowercase();
            Err(match name.as_str() {
                "gin" | "gist" | "spgist" | "brin" | "bloom" => SqlError::unsupported(
                    format!("access method \"{name}\" is not supported"),
                    "Use btree or hash.",
                ),
                _ => SqlError::new("42704", format!("access method \"{name}\" does not exist")),
            })
        }
    }
}

/// An index is read in both directions, so all ascending and all descending
/// are one; a mix of both is not.
fn check_directions(columns: &[ast::IndexColumn]) -> Result<()> {
    let descending = |column: &ast::IndexColumn| column.column.options.asc == Some(false);
    let some = columns.iter().any(descending);
    let all = columns.iter().all(descending);
    if some && !all {
        return Err(SqlError::unsupported(
            "an index with ascending and descending columns is not supported yet",
            "Give all columns one direction: an index is read in both.",
        ));
    }
    let odd_nulls = columns.iter().any(|column| {
        column
            .column
            .options
            .nulls_first
            .is_some_and(|first| first != descending(column))
    });
    if odd_nulls {
        return Err(SqlError::unsupported(
            "NULLS FIRST and NULLS LAST of an index are not supported yet",
            "Leave NULLS FIRST and NULLS LAST out.",
        ));
    }
    Ok(())
}
