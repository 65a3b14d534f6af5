//! WITH before an INSERT, UPDATE or DELETE: the list goes to the query that the change reads by.
//! And VALUES of an INSERT that only a query computes.

use sqlparser::ast::{self, SetExpr, Statement, With};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use thermocline_engine::Table;
use thermocline_storage::types::DataType;

use super::insert::is_default;
use super::{Bindable, Refusal};
use crate::error::SqlError;

/// The change that a WITH stands before.
pub(crate) fn changed(query: &ast::Query) -> Option<(&With, &Statement)> {
    let with = query.with.as_ref()?;
    match &*query.body {
        SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) => {
            Some((with, change))
        }
        _ => None,
    }
}

/// The INSERT with the list in its source.
pub(super) fn insert_with(with: &With, insert: &ast::Insert) -> Bindable<ast::Insert> {
    let mut insert = insert.clone();
    let Some(source) = &mut insert.source else {
        return Ok(insert);
    };
    match &mut source.with {
        None => source.with = Some(with.clone()),
        Some(own) => {
            let name = |table: &ast::Cte| table.alias.name.value.clone();
            let twice = |table: &ast::Cte| own.cte_tables.iter().any(|t| name(t) == name(table));
            if own.recursive != with.recursive || with.cte_tables.iter().any(twice) {
                return Err(Refusal::declined("this WITH within a WITH"));
            }
            own.cte_tables.splice(0..0, with.cte_tables.iter().cloned());
        }
    }
    Ok(insert)
}

/// The list of values as a query. Texts without a type get their columns' types, as VALUES of
/// an INSERT has them.
pub(super) fn values_as_query(
    table: &Table,
    columns: &[usize],
    values: &ast::Values,
) -> Bindable<ast::Query> {
    let mut rows = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        let mut shown = Vec::with_capacity(columns.len());
        for (value, column) in row.content.iter().zip(columns) {
            if is_default(value) {
                return Err(Refusal::declined("DEFAULT beside a subquery"));
            }
            shown.push(typed(value, table.columns[*column].data_type));
        }
        rows.push(format!("({})", shown.join(", ")));
    }
    let text = format!("VALUES {}", rows.join(", "));
    let parsed = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_query());
    parsed
        .map(|query| *query)
        .map_err(|error| SqlError::from_parser(&error, &text).into())
}

fn typed(value: &ast::Expr, data_type: DataType) -> String {
    let untyped = matches!(
        value,
        ast::Expr::Value(value) if matches!(
            value.value,
            ast::Value::SingleQuotedString(_) | ast::Value::Null | ast::Value::Placeholder(_)
        )
    );
    let name = match data_type {
        DataType::Char(_) | DataType::Varchar(_) => "text",
        other => other.base_name(),
    };
    match untyped {
        true => format!("CAST({value} AS {name})"),
        false => value.to_string(),
    }
}
