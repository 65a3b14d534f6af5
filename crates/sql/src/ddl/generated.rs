//! What DDL does with generated columns: DROP EXPRESSION, new types, and columns that others are
//! computed by. Their expressions are kept as defaults are, and read nothing but plain columns of
//! their table.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{ReferenceAction, Table, TableDef};

use super::alter_table::column_named;
use super::dependents::quote_ident;
use super::{Definition, mentioned};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::parse::constraint::ForeignKey;
use crate::temporary::path_within;

impl Definition<'_> {
    /// ALTER COLUMN DROP EXPRESSION: the values stay, and are the client's from now on.
    ///
    /// # Errors
    /// 42703; 55000 for a column that is not generated.
    pub(super) async fn drop_expression(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        if_exists: bool,
    ) -> Result<()> {
        let column = column_named(table, name)?;
        if !table.columns[column].generated {
            let message = format!(
                "column \"{name}\" of relation \"{}\" is not a stored generated column",
                table.name
            );
            if if_exists {
                self.notice("00000", format!("{message}, skipping"));
                return Ok(());
            }
            return Err(SqlError::new("55000", message));
        }
        let mut def = table.def.clone();
        def.columns[column].generated = false;
        def.columns[column].default = None;
        self.apply(Change::AlterTable(def)).await
    }

    /// Drops the columns that are computed by a column that goes, or refuses to.
    ///
    /// # Errors
    /// 2BP01 where there are some and `cascade` is not given.
    pub(super) async fn drop_computed(
        &mut self,
        table: &Arc<Table>,
        column: usize,
        cascade: bool,
    ) -> Result<()> {
        let computed = computed_by(table, column)?;
        if computed.is_empty() {
            return Ok(());
        }
        let described = |place: &usize| {
            let (column, table) = (&table.columns[*place].name, &table.name);
            format!("column {column} of table {}", quote_ident(table))
        };
        let on = described(&column);
        if !cascade {
            let lines = computed
                .iter()
                .map(|place| format!("{} depends on {on}", described(place)));
            let lines: Vec<String> = lines.collect();
            let message = format!("cannot drop {on} because other objects depend on it");
            return Err(SqlError::new("2BP01", message)
                .with_detail(lines.join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for place in computed {
            self.notice("00000", format!("drop cascades to {}", described(&place)));
            let name = table.columns[place].name.clone();
            let table = self.current(table.oid)?;
            Box::pin(self.drop_column(&table, &name, true, true)).await?;
        }
        Ok(())
    }

    /// Gives a column the type that `def` says by now, as far as generated columns are concerned:
    /// what it is computed by is fitted to its old type first, as its values are.
    ///
    /// # Errors
    /// As PostgreSQL: 0A000 where another column is computed by it, 42611 for a USING, 42804 where
    /// the expression has no cast to the new type that may be left out.
    pub(super) fn alter_generated(
        &self,
        table: &Arc<Table>,
        def: &mut TableDef,
        column: usize,
        using: bool,
    ) -> Result<()> {
        let old = &table.columns[column];
        if let Some(place) = computed_by(table, column)?.first() {
            let message = "cannot alter type of a column used by a generated column";
            let hint = "Drop the generated column, change this one, and add it again.";
            return Err(SqlError::unsupported(message, hint).with_detail(format!(
                "Column \"{}\" is used by generated column \"{}\".",
                old.name, table.columns[*place].name
            )));
        }
        let Some(text) = old.generation() else {
            return Ok(());
        };
        if using {
            let message = "cannot specify USING when altering type of generated column";
            return Err(SqlError::new("42611", message)
                .with_detail(format!("Column \"{}\" is a generated column.", old.name)));
        }
        let (catalog, path) = (self.catalog(), path_within(&table.schema, self.search_path));
        let context = self.bind_context(&catalog, &path).of_kept();
        let typed = bind::type_of_generation(text, table, &context)?;
        let text = match typed == (old.data_type.oid(), old.data_type.typmod()) {
            true => text.to_owned(),
            false => format!("({text})::{}", old.data_type),
        };
        let to = def.columns[column].data_type;
        let bound = bind::bind_generated(&text, table, &old.name, to, &context);
        bound.map_err(|error| match error.sqlstate {
            "42804" => SqlError::new(
                "42804",
                format!(
                    "generation expression for column \"{}\" cannot be cast automatically to type {to}",
                    old.name
                ),
            ),
            _ => error,
        })?;
        def.columns[column].default = Some(text);
        Ok(())
    }
}

/// The columns that are computed by a column.
fn computed_by(table: &Table, column: usize) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for (place, other) in table.live_columns() {
        if let Some(text) = other.generation()
            && mentioned::columns(text, &table.def)?.contains(&column)
        {
            found.push(place);
        }
    }
    Ok(found)
}

/// 42601 for a foreign key that would give a generated column of these a value.
pub(super) fn gives_no_value(key: &ForeignKey, columns: &[usize], table: &Table) -> Result<()> {
    use ReferenceAction::{Cascade, SetDefault, SetNull};
    if !columns
        .iter()
        .any(|column| table.columns[*column].generated)
    {
        return Ok(());
    }
    let when = match (key.on_update, key.on_delete) {
        (Cascade | SetDefault | SetNull, _) => "UPDATE",
        (_, SetDefault | SetNull) => "DELETE",
        _ => return Ok(()),
    };
    Err(SqlError::syntax(format!(
        "invalid ON {when} action for foreign key constraint containing generated column"
    )))
}

/// 42601: a default for a generated column.
#[cold]
pub(super) fn is_generated(table: &Table, column: &str, drops: bool) -> SqlError {
    let error = SqlError::syntax(format!(
        "column \"{column}\" of relation \"{}\" is a generated column",
        table.name
    ));
    match drops {
        true => error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
        false => error,
    }
}
