//! SELECT and VALUES.

use std::ops::ControlFlow;

use thermocline_engine::{RowId, Table};
use thermocline_values::value::Value;

use super::lookup::{Keys, Lookup, visit};
use super::pace::Pace;
use super::row::{NumberedRow, TupleRow};
use super::sink::{Sink, Window};
use super::{ExecContext, Stop, bulk, join, run};
use crate::bind::SMALL_TABLE_ROWS;
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, NoRow};
use crate::output::RowWriter;
use crate::plan::{LockedRows, Path, RowLock, SelectPlan, Source};

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
        let mut sink = Sink::new(plan, window, evaluation);
        let may_leave = context.may_leave && !plan.is_volatile();
        let each = |tuple: &TupleRow<'_>| sink.row(tuple, rows);
        bulk::scan(source, context, &evaluation, may_leave, each).await?;
        sink.finish(rows)?;
        plan.used.count(&source.table, context.db);
        return Ok(rows.rows() - before);
    }

    let mark = rows.mark();
    let mut found = Vec::new();
    let keys = &lookup.keys;
    // What a volatile function does is done once.
    let may_leave = !matches!(keys, Keys::Point(_))
        && match plan.lock {
            None => context.may_leave,
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
            locked(
                access,
                plan,
                lock,
                source,
                keys,
                window,
                &evaluation,
                &mut pace,
                &mut sink,
                rows,
            )?;
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
            let sink = Sink::new(plan, window, evaluation);
            bulk::lock(source, lock, context, &evaluation, sink, rows).await?;
        }
        (ran, _) => ran?,
    }
    plan.used.count(&source.table, db);
    Ok(rows.rows() - before)
}

/// Gives a row to what becomes of it.
#[inline]
fn give(
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

/// Locks a row. Whether it is to be shown.
pub(super) fn lock_row(
    access: &mut thermocline_engine::Access<'_>,
    lock: RowLock,
    table: &Table,
    row: RowId,
) -> std::result::Result<bool, Stop> {
    match lock.locked {
        LockedRows::Wait => access.lock(table, row)?,
        LockedRows::Refuse | LockedRows::Skip if access.try_lock(table, row)? => {}
        LockedRows::Skip => return Ok(false),
        LockedRows::Refuse => {
            let relation = &table.name;
            let message = format!("could not obtain lock on row in relation \"{relation}\"");
            return Err(SqlError::new("55P03", message).into());
        }
    }
    Ok(true)
}

/// SELECT … FOR UPDATE: the rows are locked before they are shown, and shown
/// as they are then.
#[allow(clippy::too_many_arguments)]
fn locked(
    access: &mut thermocline_engine::Access<'_>,
    plan: &SelectPlan,
    lock: RowLock,
    source: &Source,
    keys: &Keys,
    window: Window,
    evaluation: &EvalContext<'_>,
    pace: &mut Pace<'_>,
    sink: &mut Sink<'_>,
    rows: &mut RowWriter,
) -> std::result::Result<(), Stop> {
    let table = &*source.table;
    let mut wanted = if plan.sort.is_empty() {
        usize::try_from(window.end()).unwrap_or(usize::MAX)
    } else {
        usize::MAX
    };
    let mut candidates = Vec::new();
    let mut found = Vec::new();
    let mut tried = 0;
    loop {
        candidates.clear();
        let candidate = |row, _: &TupleRow<'_>| {
            candidates.push(row);
            Ok(if candidates.len() >= wanted {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        };
        visit(
            access, source, keys, evaluation, &mut found, pace, candidate,
        )?;
        for row in &candidates[tried.min(candidates.len())..] {
            if !lock_row(access, lock, table, *row)? {
                continue;
            }
            if let Some(tuple) = access.tuple(table, *row)? {
                let tuple = TupleRow { table, tuple };
                if give(plan, sink, *row, &tuple, rows)?.is_break() {
                    return Ok(());
                }
            }
        }
        // More of them may be free than were asked for at first.
        if lock.locked != LockedRows::Skip || candidates.len() < wanted {
            return Ok(());
        }
        tried = candidates.len();
        wanted = wanted.saturating_mul(2);
    }
}
