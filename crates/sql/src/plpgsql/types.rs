//! The types of variables, by the catalog.

use std::sync::Arc;

use thermocline_engine::Catalog;
use thermocline_query::analyze::told_columns;
use thermocline_query::tree::Column;
use thermocline_query::types::domain::base;
use thermocline_query::types::ids;

use super::tree::{Body, Declared};
use crate::bind::{TypeNames, type_of_text};
use crate::ddl::find_relation;
use crate::error::{Result, SqlError};
use crate::parse::scan::Tokens;

/// The type of a variable.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    /// One value: the number of its type, and its modifier.
    Value(u32, i32),
    /// A row: the number of its type, 0 for none; its columns, none for `record`.
    Row(u32, Option<Arc<[Column]>>),
    Cursor,
}

/// The types of all variables of a body.
///
/// # Errors
/// 42704, 42P01 and 42703 for what is not there.
pub(crate) fn types_of(
    body: &Body,
    catalog: &Arc<Catalog>,
    search_path: &[String],
) -> Result<Vec<Type>> {
    let mut types: Vec<Type> = Vec::with_capacity(body.slots.len());
    for slot in &body.slots {
        let of = match &slot.declared {
            Declared::Type(text) => written(text, catalog, search_path)?,
            Declared::OfSlot(other) => types[*other].clone(),
            Declared::OfColumn(parts) => of_column(parts, catalog, search_path)?,
            Declared::RowOf(text) => row_of(text, catalog, search_path)?,
            Declared::Record => Type::Row(0, None),
            Declared::Known(ids::RECORD) => Type::Row(0, None),
            Declared::Known(oid) => known(*oid, -1),
            Declared::Any => Type::Value(0, -1),
            Declared::Cursor(_) => Type::Cursor,
        };
        types.push(of);
    }
    Ok(types)
}

/// A type by its number.
fn known(oid: u32, modifier: i32) -> Type {
    match told_columns(base(oid)) {
        Some(columns) if base(oid) == oid => Type::Row(oid, Some(columns.into())),
        _ => Type::Value(oid, modifier),
    }
}

fn written(text: &str, catalog: &Arc<Catalog>, search_path: &[String]) -> Result<Type> {
    let names = TypeNames {
        catalog,
        search_path,
    };
    match type_of_text(text, names) {
        Ok((oid, modifier)) => Ok(known(oid, modifier)),
        // The rows of a table are a type, too.
        Err(error) if error.sqlstate == "42704" => {
            row_of(text, catalog, search_path).map_err(|_| error)
        }
        Err(error) => Err(error),
    }
}

/// The parts of a name that stands alone in a text.
fn parts_of(text: &str) -> Vec<String> {
    let parts = Tokens::new(text).filter(|token| !token.is_symbol("."));
    parts
        .map(|token| match token.text().strip_prefix('"') {
            Some(quoted) => quoted.trim_end_matches('"').replace("\"\"", "\""),
            None => token.text().to_lowercase(),
        })
        .collect()
}

/// The columns of a table, as its rows have them.
fn columns_of(
    parts: &[String],
    catalog: &Arc<Catalog>,
    search_path: &[String],
) -> Result<Vec<Column>> {
    let shown = parts.join(".");
    let missing = || SqlError::new("42P01", format!("relation \"{shown}\" does not exist"));
    let (schema, name) = find_relation(catalog, search_path, parts).ok_or_else(missing)?;
    let table = catalog.table_by_name(&schema, &name).ok_or_else(|| {
        SqlError::unsupported(
            format!("the type of a row of \"{shown}\", which is no table, is not supported"),
            "Declare the variable as record.",
        )
    })?;
    let live = table.columns.iter().filter(|column| column.is_seen());
    let column = |column: &thermocline_engine::ColumnDef| Column {
        name: Arc::from(column.name.as_str()),
        oid: column.type_oid(),
        modifier: column.type_modifier(),
        origin: None,
    };
    Ok(live.map(column).collect())
}

fn row_of(text: &str, catalog: &Arc<Catalog>, search_path: &[String]) -> Result<Type> {
    let columns = columns_of(&parts_of(text), catalog, search_path)?;
    // Its rows are told by their columns.
    Ok(Type::Row(0, Some(columns.into())))
}

fn of_column(parts: &[String], catalog: &Arc<Catalog>, search_path: &[String]) -> Result<Type> {
    let Some((name, table)) = parts.split_last() else {
        return Err(SqlError::internal("a type of no column"));
    };
    let columns = columns_of(table, catalog, search_path)?;
    let column = columns.iter().find(|column| *column.name == **name);
    let column = column.ok_or_else(|| {
        let table = table.join(".");
        let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
        SqlError::new("42703", message)
    })?;
    Ok(known(column.oid, column.modifier))
}
