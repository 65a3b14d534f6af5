//! DELETE.

use std::ops::ControlFlow;

use thermocline_engine::{Access, RowId};
use thermocline_values::value::Value;

use super::lookup::{Keys, Lookup, visit};
use super::pace::Pace;
use super::row::{TupleRow, write_row};
use super::{ExecContext, Stop, bulk, run};
use crate::error::Result;
use crate::expr::EvalContext;
use crate::output::RowWriter;
use crate::plan::DeletePlan;

pub(super) async fn delete(
    plan: &DeletePlan,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    let evaluation = EvalContext {
        parameters,
        now_us: context.now_us,
        session: context.session,
        styles: context.styles,
        outer: None,
    };
    let lookup = Lookup::of(&plan.source, &evaluation)?;
    if matches!(lookup.keys, Keys::Nothing) {
        return Ok(0);
    }
    if plan.by_key
        && context.txn.is_none()
        && let Keys::Point(key) = &lookup.keys
    {
        let table = &*plan.source.table;
        let body = |access: &mut Access<'_>| -> std::result::Result<u64, Stop> {
            Ok(access.delete_by_key(table, 0, key)?.into())
        };
        return run(context.db, None, context.options, lookup.scope, body).await;
    }
    if bulk::is_wanted(&plan.source, context) {
        return bulk::change(
            &plan.source,
            context,
            &evaluation,
            false,
            rows,
            |access, row, rows| remove(access, plan, row, &evaluation, rows),
        )
        .await;
    }
    let mark = rows.mark();
    let keys = &lookup.keys;
    let mut found = Vec::new();
    let mut targets: Vec<RowId> = Vec::new();
    let (db, options) = (context.db, context.options);
    let body = |access: &mut Access<'_>| -> std::result::Result<u64, Stop> {
        rows.rewind(mark);
        targets.clear();
        let mut pace = Pace::new(db, options, !matches!(keys, Keys::Row(_)));
        visit(
            access,
            &plan.source,
            keys,
            &evaluation,
            &mut found,
            &mut pace,
            |row, _| {
                targets.push(row);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let mut removed = 0;
        for row in &targets {
            pace.row()?;
            removed += u64::from(remove(access, plan, *row, &evaluation, rows)?);
        }
        Ok(removed)
    };
    let txn = context.txn.as_deref_mut();
    match run(context.db, txn, context.options, lookup.scope, body).await {
        Err(error) if error.takes_long => {
            rows.rewind(mark);
            let remove = |access: &mut Access<'_>, row, rows: &mut RowWriter| {
                remove(access, plan, row, &evaluation, rows)
            };
            bulk::change(&plan.source, context, &evaluation, false, rows, remove).await
        }
        ran => ran,
    }
}

/// Deletes one row; false when it is not there (any more).
fn remove(
    access: &mut Access<'_>,
    plan: &DeletePlan,
    row: RowId,
    context: &EvalContext<'_>,
    rows: &mut RowWriter,
) -> std::result::Result<bool, Stop> {
    let table = &*plan.source.table;
    let Some(tuple) = access.tuple(table, row)? else {
        return Ok(false);
    };
    if let Some(returning) = &plan.returning {
        write_row(returning, &TupleRow { table, tuple }, context, rows)?;
    }
    access.delete(table, row)?;
    Ok(true)
}
