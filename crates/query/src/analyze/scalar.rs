//! Expressions outside of queries: a value for a column, a condition, a default. They stand as the
//! only target of a query over the relations that they may read.

use pg_raw_parse::Node;

use super::call_before::CallsBefore;
use super::sql_function::Bodies;
use super::{Analyzed, Analyzer, Catalog};
use crate::call::Environment;
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::tree::Expr;
use crate::types::format_type;

/// What an expression's value is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted<'a> {
    /// To be shown, as it is.
    Value,
    /// To decide; the clause's name.
    Condition(&'a str),
    /// To be stored in a column.
    Column {
        /// The column's name.
        name: &'a str,
        /// The number of its type.
        oid: u32,
        /// Its modifier.
        modifier: i32,
    },
}

/// Analyses the target of `SELECT expression FROM …` as `wanted` says. Types of parameters that
/// nothing settles stay 0.
///
/// # Errors
/// As PostgreSQL's analysis; 42804 where the value does not suit.
pub fn analyze_scalar(
    statement: Node<'_>,
    catalog: &dyn Catalog,
    environment: &dyn Environment,
    declared: &[u32],
    wanted: Wanted<'_>,
) -> Result<Analyzed> {
    if let Some(variables) = catalog.variables() {
        variables.begin();
    }
    let mut analyzer = Analyzer {
        catalog,
        environment,
        parameters: declared.to_vec(),
        levels: Vec::new(),
        takes_changes: false,
        named: None,
        variables: catalog.variables(),
        calls: CallsBefore::default(),
        bodies: Bodies::default(),
        given: None,
        given_name: None,
        rows_given: Vec::new(),
    };
    let Node::SelectStmt(select) = statement else {
        return Err(QueryError::unsupported(
            "a statement other than SELECT is not supported as an expression",
            "Write an expression.",
        ));
    };
    let mut query = analyzer.query_undecided(select)?;
    let [target] = query.targets.as_mut_slice() else {
        return Err(QueryError::unsupported(
            "several columns in place of one expression are not supported",
            "Write one expression, or a ROW(...).",
        ));
    };
    let expr = std::mem::replace(&mut target.expr, Expr::constant(Datum::Null, 0));
    target.expr = match wanted {
        Wanted::Value => analyzer.decide_unknown(expr)?,
        Wanted::Condition(clause) => analyzer.coerce_to_bool(expr, clause)?,
        Wanted::Column {
            name,
            oid,
            modifier,
        } => {
            let (source, location) = (expr.oid, expr.location);
            let stored = analyzer.coerce_to(expr, oid, modifier, Context::Assignment)?;
            stored.ok_or_else(|| {
                QueryError::new(
                    "42804",
                    format!(
                        "column \"{name}\" is of type {} but expression is of type {}",
                        format_type(oid, -1),
                        format_type(source, -1)
                    ),
                )
                .with_hint("You will need to rewrite or cast the expression.")
                .at(location)
            })?
        }
    };
    super::settle(&mut query, &analyzer.parameters);
    Ok(Analyzed {
        query,
        parameters: analyzer.parameters,
    })
}
