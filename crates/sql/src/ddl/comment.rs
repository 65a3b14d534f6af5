//! COMMENT ON.

use thermocline_engine::comment::{COMMENT_BYTES_MAX, CommentOn};
use thermocline_engine::ddl::Change;

use super::Definition;
use crate::error::{Result, SqlError};
use crate::parse::statement::{Comment, CommentObject};
use crate::session::DATABASE_NAME;
use crate::temporary::not_others;

impl Definition<'_> {
    pub(super) async fn comment(&mut self, comment: &Comment) -> Result<&'static str> {
        let on = self.commented(&comment.object)?;
        if let Some(text) = &comment.text
            && text.len() > COMMENT_BYTES_MAX
        {
            let message = format!("a comment is longer than {COMMENT_BYTES_MAX} bytes");
            return Err(SqlError::new("54000", message).with_hint(
                "Comments are in memory with the catalog: keep long texts in a table.",
            ));
        }
        let text = comment.text.clone().filter(|text| !text.is_empty());
        self.apply(Change::Comment { on, text }).await?;
        Ok("COMMENT")
    }

    fn commented(&self, object: &CommentObject) -> Result<CommentOn> {
        let catalog = self.catalog();
        Ok(match object {
            CommentObject::Type(name) => CommentOn::Type(self.find_type(name)?.oid),
            CommentObject::Relation { kind, name } => CommentOn::Relation {
                oid: self.relation_of_kind(kind, name)?.0,
                column: 0,
            },
            CommentObject::Column { relation, column } => {
                let (oid, columns) = self.relation_of_kind("column", relation)?;
                let named = columns.iter().position(|name| name == column);
                let dropped = |at: &usize| {
                    let table = catalog.table(oid);
                    table.is_some_and(|table| !table.columns[*at].is_seen())
                };
                let Some(at) = named.filter(|at| !dropped(at)) else {
                    let name = relation.join(".");
                    let message =
                        format!("column \"{column}\" of relation \"{name}\" does not exist");
                    return Err(SqlError::new("42703", message));
                };
                CommentOn::Relation {
                    oid,
                    column: at as u32 + 1,
                }
            }
            CommentObject::Constraint { name, table } => {
                let (oid, _) = self.relation_of_kind("table", table)?;
                let table_of = catalog.table(oid);
                let there = table_of.is_some_and(|table| table.has_constraint(name));
                if !there {
                    let table = table.join(".");
                    let message =
                        format!("constraint \"{name}\" for table \"{table}\" does not exist");
                    return Err(SqlError::new("42704", message));
                }
                CommentOn::Constraint {
                    table: oid,
                    name: name.clone(),
                }
            }
            CommentObject::Routine(kind, (name, types)) => {
                let types = self.types_named(types.as_deref())?;
                CommentOn::Function(self.found_routine(&(name.clone(), types), *kind)?.oid)
            }
            CommentObject::Trigger { name, table } => {
                let (oid, _) = self.relation_of_kind("table", table)?;
                let of_table = catalog.table(oid);
                let mut triggers = of_table.iter().flat_map(|table| &table.triggers);
                if !triggers.any(|trigger| trigger.name == *name) {
                    let table = table.join(".");
                    let message =
                        format!("trigger \"{name}\" for table \"{table}\" does not exist");
                    return Err(SqlError::new("42704", message));
                }
                CommentOn::Trigger {
                    table: oid,
                    name: name.clone(),
                }
            }
            CommentObject::Schema(name) => match catalog.schema(name) {
                Some(schema) => CommentOn::Schema(schema.oid),
                None => return Err(super::no_schema(name)),
            },
            CommentObject::Role(name) => CommentOn::Role(self.role_oid(name)?),
            CommentObject::Database(name) if name == DATABASE_NAME => CommentOn::Database,
            CommentObject::Database(name) => {
                let message = format!("database \"{name}\" does not exist");
                return Err(SqlError::new("3D000", message));
            }
        })
    }

    /// The number and the columns of a relation, which is of this kind; `column`: of one that
    /// may have columns.
    fn relation_of_kind(&self, kind: &str, name: &[String]) -> Result<(u32, Vec<String>)> {
        let catalog = self.catalog();
        let Some((schema, relation)) = self.find_relation(name) else {
            return Err(SqlError::undefined_table(&name.join(".")));
        };
        not_others(&schema, self.search_path)?;
        let (of_kind, found) = if let Some(table) = catalog.table_by_name(&schema, &relation) {
            let columns = table.columns.iter().map(|column| column.name.clone());
            (table.kind(), (table.oid, columns.collect()))
        } else if let Some(view) = catalog.view_by_name(&schema, &relation) {
            let columns = view.columns.iter().map(|column| column.name.clone());
            ("view", (view.oid, columns.collect()))
        } else if let Some(sequence) = catalog.sequence_by_name(&schema, &relation) {
            ("sequence", (sequence.oid, Vec::new()))
        } else if let Some((table, at)) = catalog.index_by_name(&schema, &relation) {
            ("index", (table.indexes[at].oid, Vec::new()))
        } else {
            return Err(SqlError::undefined_table(&name.join(".")));
        };
        match kind == of_kind
            || (kind == "column" && matches!(of_kind, "table" | "view" | "materialized view"))
        {
            true => Ok(found),
            false => {
                let article = if kind == "index" { "an" } else { "a" };
                let message = match kind {
                    "column" => format!("\"{relation}\" has no columns to comment on"),
                    _ => format!("\"{relation}\" is not {article} {kind}"),
                };
                Err(SqlError::new("42809", message))
            }
        }
    }
}
