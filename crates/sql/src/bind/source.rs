//! The query that an INSERT takes its rows from, as PostgreSQL reads it there: a text, a NULL or a
//! parameter that has no type of its own gets that of the column it is for.

use sqlparser::ast::{self, SelectItem, SetExpr};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use thermocline_engine::{Catalog, Table, TypeKind};
use thermocline_storage::types::DataType;

use super::data_type::written;
use super::insert::is_default;
use super::{Bindable, Refusal};
use crate::error::SqlError;

/// VALUES that only a query computes, as that query.
pub(super) fn of_values(
    table: &Table,
    catalog: &Catalog,
    columns: &[usize],
    values: &ast::Values,
) -> Bindable<ast::Query> {
    let mut rows = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        if row.content.len() != columns.len() {
            return Err(SqlError::syntax("VALUES lists must all be the same length").into());
        }
        let mut shown = Vec::with_capacity(columns.len());
        for (value, column) in row.content.iter().zip(columns) {
            if is_default(value) {
                return Err(Refusal::declined("DEFAULT beside a subquery"));
            }
            let typed = typed(value, table.columns[*column].data_type, catalog);
            shown.push(typed.unwrap_or_else(|| value.to_string()));
        }
        rows.push(format!("({})", shown.join(", ")));
    }
    one_query(&format!("VALUES {}", rows.join(", ")))
}

/// The SELECT with types where it has none; `None`: it is as it should be. DISTINCT and set
/// operations have looked at the values before, as texts.
pub(super) fn of_select(
    table: &Table,
    catalog: &Catalog,
    columns: &[usize],
    query: &ast::Query,
) -> Bindable<Option<ast::Query>> {
    let SetExpr::Select(select) = &*query.body else {
        return Ok(None);
    };
    if select.distinct.is_some() {
        return Ok(None);
    }
    let mut found = None;
    for (number, (item, column)) in select.projection.iter().zip(columns).enumerate() {
        let (SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }) = item
        else {
            // How many columns these are is not known here.
            break;
        };
        let Some(typed) = typed(value, table.columns[*column].data_type, catalog) else {
            continue;
        };
        let typed = one_expression(&typed)?;
        let query = found.get_or_insert_with(|| query.clone());
        if let SetExpr::Select(select) = &mut *query.body
            && let SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } =
                &mut select.projection[number]
        {
            *value = typed;
        }
    }
    Ok(found)
}

/// A value without a type, as one of a column's; `None` for any other.
fn typed(value: &ast::Expr, data_type: DataType, catalog: &Catalog) -> Option<String> {
    let of_rows = match data_type {
        DataType::Other { oid, .. } => catalog.type_of(oid),
        _ => None,
    };
    // A row becomes one of the column's own type.
    let is_row = of_rows.is_some_and(|def| matches!(def.kind, TypeKind::Composite(_)));
    let as_type = || format!("CAST({value} AS {})", written(data_type, catalog));
    if is_row {
        return Some(as_type());
    }
    let ast::Expr::Value(untyped) = value else {
        return None;
    };
    let is_untyped = matches!(
        untyped.value,
        ast::Value::SingleQuotedString(_) | ast::Value::Null | ast::Value::Placeholder(_)
    );
    is_untyped.then(as_type)
}

/// A query that was printed.
pub(super) fn one_query(text: &str) -> Bindable<ast::Query> {
    let parsed = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_query());
    parsed
        .map(|query| *query)
        .map_err(|error| SqlError::from_parser(&error, text).into())
}

/// An expression that was printed.
pub(super) fn one_expression(text: &str) -> Bindable<ast::Expr> {
    Parser::new(&PostgreSqlDialect {})
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|error| SqlError::from_parser(&error, text).into())
}
