//! CREATE INDEX and ALTER INDEX … RENAME.

use thermocline_engine::ddl::Change;
use thermocline_engine::{IndexDef, IndexKind};

use super::create_table::{INDEX_COLUMNS_MAX, position, with_key};
use super::{Definition, exists, names};
use crate::error::{Result, SqlError};
use crate::parse::table::CreateIndex;

impl Definition<'_> {
    pub(super) async fn create_index(&mut self, create: &CreateIndex) -> Result<&'static str> {
        const TAG: &str = "CREATE INDEX";
        let table = self.find_table(&create.table)?;
        let kind = index_kind(create.access_method.as_deref())?;
        let names = &create.columns;
        if names.len() > INDEX_COLUMNS_MAX {
            return Err(SqlError::new(
                "54011",
                format!("cannot use more than {INDEX_COLUMNS_MAX} columns in an index"),
            ));
        }
        if kind == IndexKind::Hash && create.unique {
            return Err(SqlError::unsupported(
                "access method \"hash\" does not support unique indexes",
                "Use btree, which is the default.",
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
                let name = names::truncated(name);
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

    pub(super) async fn rename_index(
        &mut self,
        parts: &[String],
        if_exists: bool,
        to: &str,
    ) -> Result<&'static str> {
        const TAG: &str = "ALTER INDEX";
        let found = self.find_relation(parts);
        if found.is_none() && if_exists {
            let name = parts.join(".");
            self.notice(
                "42P01",
                format!("relation \"{name}\" does not exist, skipping"),
            );
            return Ok(TAG);
        }
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
        let new_name = names::truncated(to);
        if catalog.relation_exists(&table.schema, &new_name) {
            return Err(exists(&new_name));
        }
        let mut def = table.def.clone();
        def.indexes[at].name = new_name;
        self.apply(Change::AlterTable(def)).await?;
        Ok(TAG)
    }
}

fn index_kind(method: Option<&str>) -> Result<IndexKind> {
    match method {
        None | Some("btree") => Ok(IndexKind::BTree),
        Some("hash") => Ok(IndexKind::Hash),
        Some(name @ ("gin" | "gist" | "spgist" | "brin" | "bloom")) => Err(SqlError::unsupported(
            format!("access method \"{name}\" is not supported"),
            "Use btree or hash.",
        )),
        Some(name) => {
            let message = format!("access method \"{name}\" does not exist");
            Err(SqlError::new("42704", message))
        }
    }
}
