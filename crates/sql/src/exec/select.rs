//! SELECT and VALUES.

use std::ops::ControlFlow;

use thermocline_engine::RowId;
use thermocline_values::value::Value;

use super::locking::Locking;
use super::lookup::{Keys, Lookup, visit};
use super::pace::Pace;
use super::row::{NumberedRow, TupleRow};
use super::sink::{Sink, Window};
use super::{ExecContext, Stop, bulk, join, run};
use crate::bind::SMALL_TABLE_ROWS;
use crate::error::Result;
use crate::expr::{EvalContext, NoRow};
use crate::output::RowWriter;
use crate::plan::{Path, SelectPlan, Source};

pub(super) async fn select(
    plan: &SelectPlan,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    let before = rows.rows();
    let session = context.session;
    let evaluation = EvalContext {
        parameters,
        now_us: context.now_us,
        session,
        styles: context.styles,
        outer: None,
    };
    let window = Window::of(plan.limit.as_ref(), plan.offset.as_ref(), &evaluation)?;
    let Some(source) = &plan.source else {
        let mut sink = Sink::new(plan, window, evaluation);
        let wanted = match &plan.condition {
            Some(condition) => condition.accepts(&NoRow, &evaluation)?,
            None => true,
        };
        if wanted && window.limit > 0 {
            let _ = sink.row(&NoRow, rows)?;
        }
        sink.finish(rows)?;
        return Ok(rows.rows() - before);
    };
    if window.limit == 0 {
        return Ok(0);
    }
    if !plan.joins.is_empty() {
        join::select(plan, source, window, &evaluation, context, rows).await?;
        return Ok(rows.rows() - before);
    }
    let lookup = Lookup::of(source, &evaluation)?;
    if matches!(lookup.keys, Keys::Nothing) {
        Sink::new(plan, window, evaluation).finish(rows)?;
        return Ok(rows.rows() - before);
    }
    let scans = matches!(lookup.keys, Keys::Scan)
        && plan.lock.is_none()
        && context.db.row_estimate(&source.table) > SMALL_TABLE_ROWS;
    if scans {
        let may_leave = context.may_leave && !plan.is_volatile();
        scan(plan, source, window, evaluation, may_leave, context, rows).await?;
        return Ok(rows.rows() - before);
    }

    let mark = rows.mark();
    let mut found = Vec::new();
    let keys = &lookup.keys;
    // Who may not leave the short path goes over the rows of a snapshot: not where the order of an
    // index says which rows count, nor where it leads to a part of a large table.
    let is_of_all = || {
        plan.limit.is_none()
            && plan.offset.is_none()
            && context.db.row_estimate(&source.table) <= SMALL_TABLE_ROWS
    };
    let scans_instead =
        !context.may_leave && !plan.numbered && (matches!(keys, Keys::Scan) || is_of_all());
    // What a volatile function does is done once.
    let may_leave = !matches!(keys, Keys::Point(_))
        && match plan.lock {
            None => context.may_leave || scans_instead,
            // Locks go on in parts; the order of an index would be lost.
            Some(_) => matches!(source.path, Path::Scan),
        }
        && !plan.is_volatile();
    let (db, options) = (context.db, context.options);
    let body = |access: &mut thermocline_engine::Access<'_>| -> std::result::Result<(), Stop> {
        rows.rewind(mark);
        let mut pace = Pace::new(db, options, may_leave);
        let mut sink = Sink::new(plan, window, evaluation);
        if let Some(lock) = plan.lock {
            let read = Locking {
                plan,
                lock,
                source,
                window,
                evaluation,
            };
            read.locked(access, keys, &mut pace, &mut sink, rows)?;
        } else {
            visit(
                access,
                source,
                keys,
                &evaluation,
                &mut found,
                &mut pace,
                |row, tuple| Ok(give(plan, &mut sink, row, tuple, rows)?),
            )?;
        }
        sink.finish(rows)?;
        Ok(())
    };
    let txn = context.txn.as_deref_mut();
    match (run(db, txn, options, lookup.scope, body).await, plan.lock) {
        (Err(error), Some(lock)) if error.takes_long => {
            rows.rewind(mark);
            let read = Locking {
                plan,
                lock,
                source,
                window,
                evaluation,
            };
            bulk::lock(&read, context, rows).await?;
        }
        (Err(error), None) if error.takes_long && !context.may_leave => {
            rows.rewind(mark);
            scan(plan, source, window, evaluation, false, context, rows).await?;
            return Ok(rows.rows() - before);
        }
        (ran, _) => ran?,
    }
    plan.used.count(&source.table, db);
    Ok(rows.rows() - before)
}

/// Goes over the rows of a snapshot, and gives way to others between.
async fn scan(
    plan: &SelectPlan,
    source: &Source,
    window: Window,
    evaluation: EvalContext<'_>,
    may_leave: bool,
    context: &mut ExecContext<'_>,
    rows: &mut RowWriter,
) -> Result<()> {
    let mut sink = Sink::new(plan, window, evaluation);
    let each = |tuple: &TupleRow<'_>| sink.row(tuple, rows);
    bulk::scan(source, context, &evaluation, may_leave, each).await?;
    sink.finish(rows)?;
    plan.used.count(&source.table, context.db);
    Ok(())
}

/// Gives a row to what becomes of it.
#[inline]
pub(super) fn give(
    plan: &SelectPlan,
    sink: &mut Sink<'_>,
    row: RowId,
    tuple: &TupleRow<'_>,
    rows: &mut RowWriter,
) -> Result<ControlFlow<()>> {
    if plan.numbered {
        let numbered = NumberedRow {
            row: *tuple,
            number: row.number().cast_signed(),
        };
        return sink.row(&numbered, rows);
    }
    sink.row(tuple, rows)
}
