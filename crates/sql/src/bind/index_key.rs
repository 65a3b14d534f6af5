//! What indexes are made of beside plain columns: expressions, and the predicates of partial ones.
//! Each is kept as a text, like what a generated column is computed by. Its value is in a column
//! that only indexes read ([`thermocline_engine::Hidden`]).

use std::sync::Arc;

use thermocline_engine::{IndexDef, Table};
use thermocline_query::analyze::Wanted;
use thermocline_query::immutable::is_immutable;
use thermocline_query::tree;

use super::BindContext;
use super::generated::generated_read;
use super::scalar::{Clause, analysed_target};
use crate::error::{Result, SqlError};
use crate::temporary::path_within;

/// The name of a column that is none.
const NAMELESS: &str = "?column?";

/// An expression of an index: its tree, over relation 0, and what PostgreSQL calls its column.
///
/// # Errors
/// As PostgreSQL: 42P17 for what may change by itself, 42803 and 42P20 for what no row gives.
pub(crate) fn index_expression(
    text: &str,
    table: &Arc<Table>,
    context: &BindContext<'_>,
) -> Result<(tree::Expr, String)> {
    let (wanted, clause) = (Wanted::Value, Clause::IndexExpression);
    let (_, target) = analysed_target(text, Some(table), wanted, clause, context)?;
    let name = match &*target.name {
        NAMELESS => "expr".to_owned(),
        name => name.to_owned(),
    };
    Ok((target.expr, name))
}

/// The predicate of an index, over relation 0.
///
/// # Errors
/// As [`index_expression`]; 42804 where it is not boolean.
pub(crate) fn index_predicate(
    text: &str,
    table: &Arc<Table>,
    context: &BindContext<'_>,
) -> Result<tree::Expr> {
    let (wanted, clause) = (Wanted::Condition("WHERE"), Clause::IndexPredicate);
    let target = analysed_target(text, Some(table), wanted, clause, context);
    Ok(target?.1.expr)
}

/// What an index over more than plain columns is made of.
pub(crate) struct IndexShape {
    /// The predicate's column, and the predicate.
    pub(crate) predicate: Option<(usize, tree::Expr)>,
    /// The columns of expressions, and these.
    pub(crate) expressions: Vec<(usize, tree::Expr)>,
}

impl BindContext<'_> {
    /// What an index is made of beside plain columns.
    ///
    /// # Errors
    /// Where a text does not mean anything any more.
    pub(crate) fn index_shape(&self, table: &Arc<Table>, index: &IndexDef) -> Result<IndexShape> {
        let path = path_within(&table.schema, self.search_path);
        let context = BindContext {
            search_path: &path,
            actor: None,
            ..self.of_kept()
        };
        let mut shape = IndexShape {
            predicate: None,
            expressions: Vec::new(),
        };
        for column in &index.columns {
            let Some(hidden) = &table.columns[*column].hidden else {
                continue;
            };
            let text = &hidden.text;
            match hidden.predicate {
                true => shape.predicate = Some((*column, index_predicate(text, table, &context)?)),
                false => {
                    let (expr, _) = index_expression(text, table, &context)?;
                    shape.expressions.push((*column, expr));
                }
            }
        }
        Ok(shape)
    }
}

/// 42P17 unless an index may be made of the expression.
pub(super) fn check_indexed(expr: &tree::Expr, clause: &str, table: Option<&Table>) -> Result<()> {
    if !is_immutable(expr) {
        let message = format!("functions in {clause} must be marked IMMUTABLE");
        return Err(SqlError::new("42P17", message));
    }
    match table.and_then(|table| generated_read(expr, table)) {
        Some(name) => Err(SqlError::unsupported(
            format!("an {clause} over generated column \"{name}\" is not supported"),
            "Index the column itself, or write what it is computed by.",
        )),
        None => Ok(()),
    }
}
