//! An UPDATE that gives a row, named by its whole key, all its other columns anew: what
//! the row was is not needed, and an evicted row is replaced without being read where the
//! engine can do that ([`Access::overwrite`]).

use thermocline_engine::{Access, Scope, Table};
use thermocline_values::value::ValueRef;

use super::row::{TupleRow, verify_checks, write_row};
use super::{ExecContext, Stop, run};
use crate::error::Result;
use crate::expr::{Datum, EvalContext, Expr, NoRow};
use crate::output::RowWriter;
use crate::plan::{Fit, UpdatePlan, fit};

/// Makes the new tuple. False where it can't be stored: then it depends on whether there
/// is a row if that is an error.
pub(super) fn make_tuple(
    plan: &UpdatePlan,
    key: &[(usize, Expr)],
    context: &EvalContext<'_>,
    tuple: &mut Vec<u8>,
) -> Result<bool> {
    let table = &*plan.source.table;
    let mut given: Vec<(usize, Datum<'_>)> = Vec::with_capacity(table.columns.len());
    for (column, expr) in key {
        given.push((*column, expr.evaluate(&NoRow, context)?));
    }
    for (column, expr) in &plan.assignments {
        let Ok(value) = expr.evaluate(&NoRow, context) else {
            return Ok(false);
        };
        if value.is_null() && table.columns[*column].not_null {
            return Ok(false);
        }
        given.push((*column, value));
    }
    let mut values = vec![ValueRef::Null; table.columns.len()];
    for (column, value) in &given {
        values[*column] = value.as_ref();
    }
    for (column, _) in key {
        let Fit::Exact(value) = fit(values[*column], table.columns[*column].data_type) else {
            return Ok(false);
        };
        values[*column] = value;
    }
    tuple.clear();
    table.encode_tuple(&values, tuple);
    let new = TupleRow { table, tuple };
    Ok(verify_checks(&plan.checks, table, &new, context).is_ok())
}

/// Replaces the row with this key by `tuple`; how many there were.
pub(super) async fn overwrite(
    plan: &UpdatePlan,
    context: &mut ExecContext<'_>,
    evaluation: &EvalContext<'_>,
    (scope, key): (Scope, &[u8]),
    tuple: &[u8],
    rows: &mut RowWriter,
) -> Result<u64> {
    let table: &Table = &plan.source.table;
    let mark = rows.mark();
    let body = |access: &mut Access<'_>| -> std::result::Result<u64, Stop> {
        rows.rewind(mark);
        if access.overwrite(table, 0, key, tuple)?.is_none() {
            return Ok(0);
        }
        if let Some(returning) = &plan.returning {
            write_row(returning, &TupleRow { table, tuple }, evaluation, rows)?;
        }
        Ok(1)
    };
    run(context.db, None, context.options, scope, body).await
}
