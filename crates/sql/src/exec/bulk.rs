//! Statements over a large table that no index bounds. A snapshot is scanned
//! in chunks that hold no partition for long. UPDATE and DELETE then change
//! each chunk's rows in a step of their own, looking again whether the row
//! still qualifies. Without a transaction they get one, so that the statement
//! is atomic.

use std::ops::ControlFlow;

use thermocline_engine::{
    Access, Charge, Isolation, RowId, Scope, SnapshotScan, Table, Tuples, give_way,
};

use super::insert::CHUNK_ROWS_MAX;
use super::locking::{Locking, lock_row};
use super::one_by_one::{FoundRow, bytes_of};
use super::pace::Pace;
use super::row::TupleRow;
use super::sink::Sink;
use super::{ExecContext, Stop, run};
use crate::bind::SMALL_TABLE_ROWS;
use crate::error::{Result, SqlError};
use crate::expr::EvalContext;
use crate::output::RowWriter;
use crate::plan::{LockMode, LockedRows, RowLock, Source};

/// Whether a change of these rows is done in parts.
pub(super) fn is_wanted(source: &Source, context: &ExecContext<'_>) -> bool {
    !source.is_bounded() && context.db.row_estimate(&source.table) > SMALL_TABLE_ROWS
}

/// Calls `each` with the rows of a snapshot that qualify, until it breaks.
pub(super) async fn scan(
    source: &Source,
    context: &mut ExecContext<'_>,
    evaluation: &EvalContext<'_>,
    may_leave: bool,
    mut each: impl FnMut(&TupleRow<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    scan_rows(source, context, evaluation, may_leave, |_, row| each(row)).await
}

async fn scan_rows(
    source: &Source,
    context: &mut ExecContext<'_>,
    evaluation: &EvalContext<'_>,
    may_leave: bool,
    mut each: impl FnMut(RowId, &TupleRow<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let table = &source.table;
    let read = std::slice::from_ref(table);
    context.db.all_there(context.options).await?;
    let snapshot = match context.txn.as_deref_mut() {
        Some(txn) => {
            // A scan beside the engine's accesses: validated as a whole.
            txn.enter(context.options, read).await?;
            txn.note_table_read(table)?;
            txn.snapshot()?
        }
        None => {
            let entry = context.db.enter(context.options, read).await?;
            context.db.snapshot_of(entry)
        }
    };
    let mut pace = Pace::new(context.db, context.options, may_leave);
    for partition in 0..context.db.partitions() {
        let mut scan = snapshot.scan(table, partition);
        loop {
            let each = |id, row: &TupleRow<'_>| match admits(source, row, evaluation)? {
                true => each(id, row),
                false => Ok(ControlFlow::Continue(())),
            };
            match chunk(&mut scan, table, &mut pace, each).await? {
                Chunk::More => {}
                Chunk::Last => break,
                Chunk::Broken => return Ok(()),
            }
        }
    }
    Ok(())
}

/// What follows a chunk of rows.
enum Chunk {
    /// Others.
    More,
    /// No other.
    Last,
    /// None is wanted.
    Broken,
}

/// Calls `each` with the rows of the next chunk, until it breaks. Rows may come under their
/// partition's lock: where they take long, those that are left are looked at after it.
async fn chunk(
    scan: &mut SnapshotScan,
    table: &Table,
    pace: &mut Pace<'_>,
    mut each: impl FnMut(RowId, &TupleRow<'_>) -> Result<ControlFlow<()>>,
) -> Result<Chunk> {
    let mut outcome = Ok(ControlFlow::Continue(()));
    let mut late: Vec<(RowId, Vec<u8>)> = Vec::new();
    let mut is_late = false;
    pace.begin();
    let more = scan
        .next_rows(&mut Tuples::to(|row, tuple| {
            if !matches!(outcome, Ok(ControlFlow::Continue(()))) {
                return;
            }
            if is_late {
                late.push((row, tuple.to_vec()));
                return;
            }
            outcome = each(row, &TupleRow { table, tuple });
            if outcome.is_ok() {
                match pace.row() {
                    Ok(over) => is_late = over,
                    Err(error) => outcome = Err(error),
                }
            }
        }))
        .await?;
    let mut flow = outcome?;
    if is_late {
        pace.leave()?;
        for (row, tuple) in &late {
            if flow.is_break() {
                break;
            }
            flow = each(*row, &TupleRow { table, tuple })?;
            if pace.row()? {
                give_way().await;
                pace.begin();
            }
        }
    }
    Ok(match (flow, more) {
        (ControlFlow::Break(()), _) => Chunk::Broken,
        (_, true) => Chunk::More,
        (_, false) => Chunk::Last,
    })
}

fn admits(source: &Source, row: &TupleRow<'_>, evaluation: &EvalContext<'_>) -> Result<bool> {
    match &source.condition {
        Some(condition) => condition.accepts(row, evaluation),
        None => Ok(true),
    }
}

/// Finds the rows of a snapshot that qualify, locks them, and shows them, until no other is wanted.
pub(super) async fn lock(
    read: &Locking<'_>,
    context: &mut ExecContext<'_>,
    rows: &mut RowWriter,
) -> Result<()> {
    let (source, evaluation) = (read.source, &read.evaluation);
    let mut sink = Sink::new(read.plan, read.window, *evaluation);
    let mut candidates = read.candidates();
    let find = |row, tuple: &TupleRow<'_>| {
        candidates.push(read, row, tuple)?;
        rows.holds_beside(candidates.bytes())?;
        Ok(ControlFlow::Continue(()))
    };
    scan_rows(source, context, evaluation, false, find).await?;
    let found = candidates.in_order();
    let table = &source.table;
    let wanted = read.wanted();
    each_locked(
        source,
        read.lock,
        &found,
        wanted,
        context,
        evaluation,
        |locked| {
            for found in locked {
                let tuple = &found.tuple;
                if sink.row(&TupleRow { table, tuple }, rows)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )
    .await?;
    sink.finish(rows)
}

/// Finds the rows of a snapshot that qualify, locks them, and gives them.
pub(super) async fn find_locked(
    source: &Source,
    context: &mut ExecContext<'_>,
    evaluation: &EvalContext<'_>,
    charge: &mut Charge,
) -> Result<Vec<FoundRow>> {
    let lock = RowLock {
        mode: LockMode::Update,
        locked: LockedRows::Wait,
    };
    let mut qualify: Vec<RowId> = Vec::new();
    let find = |row, _: &TupleRow<'_>| {
        qualify.push(row);
        Ok(ControlFlow::Continue(()))
    };
    scan_rows(source, context, evaluation, false, find).await?;
    let mut found = Vec::new();
    each_locked(
        source,
        lock,
        &qualify,
        u64::MAX,
        context,
        evaluation,
        |locked| {
            charge.grow(bytes_of(locked))?;
            found.append(locked);
            Ok(ControlFlow::Continue(()))
        },
    )
    .await?;
    Ok(found)
}

/// Locks these rows in parts, `wanted` of them at most, and gives each part to `take`, as far as its
/// rows qualify still.
async fn each_locked(
    source: &Source,
    lock: RowLock,
    found: &[RowId],
    wanted: u64,
    context: &mut ExecContext<'_>,
    evaluation: &EvalContext<'_>,
    mut take: impl FnMut(&mut Vec<FoundRow>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let table = &source.table;
    let mut left = found;
    let mut wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let mut locked: Vec<FoundRow> = Vec::new();
    while let Some(first) = left.first()
        && wanted > 0
    {
        let (db, options) = (context.db, context.options);
        let body = |access: &mut Access<'_>| -> std::result::Result<usize, Stop> {
            locked.clear();
            let mut pace = Pace::new(db, options, false);
            let mut seen = 0;
            for row in left.iter().take(CHUNK_ROWS_MAX) {
                if row.partition() != first.partition() || locked.len() == wanted {
                    break;
                }
                seen += 1;
                if lock_row(access, lock, table, *row)?
                    && let Some(tuple) = access.tuple(table, *row)?
                    && admits(source, &TupleRow { table, tuple }, evaluation)?
                {
                    locked.push(FoundRow::new(*row, tuple));
                }
                if pace.row()? {
                    break;
                }
            }
            Ok(seen)
        };
        let scope = Scope::One(first.partition());
        let seen = run(db, context.txn.as_deref_mut(), options, scope, body).await?;
        wanted -= locked.len();
        if take(&mut locked)?.is_break() {
            break;
        }
        left = left.get(seen..).unwrap_or_default();
        give_way().await;
    }
    Ok(())
}

/// Calls `change` in the engine for each row that qualifies; returns how many
/// it changed.
pub(super) async fn change(
    source: &Source,
    context: &mut ExecContext<'_>,
    evaluation: &EvalContext<'_>,
    leaves_partition: bool,
    rows: &mut RowWriter,
    mut change: impl FnMut(&mut Access<'_>, RowId, &mut RowWriter) -> std::result::Result<bool, Stop>,
) -> Result<u64> {
    let table = &source.table;
    let mut own = match context.txn {
        Some(_) => None,
        None => Some(context.db.begin(Isolation::ReadCommitted, false)),
    };
    if let Some(txn) = context.txn.as_deref_mut() {
        txn.note_table_read(table)?;
    }
    context.db.all_there(context.options).await?;
    let snapshot = match (own.as_mut(), context.txn.as_deref_mut()) {
        (Some(txn), _) | (None, Some(txn)) => {
            let read = std::slice::from_ref(table);
            txn.enter(context.options, read).await?;
            txn.snapshot()?
        }
        (None, None) => return Err(SqlError::internal("a bulk statement has no transaction")),
    };
    let mut changed = 0;
    for partition in 0..context.db.partitions() {
        let mut scan = snapshot.scan(table, partition);
        let mut more = true;
        while more {
            let mut candidates: Vec<RowId> = Vec::new();
            let qualifies = |row, tuple: &TupleRow<'_>| {
                if admits(source, tuple, evaluation)? {
                    candidates.push(row);
                }
                Ok(ControlFlow::Continue(()))
            };
            let mut pace = Pace::new(context.db, context.options, false);
            more = matches!(
                chunk(&mut scan, table, &mut pace, qualifies).await?,
                Chunk::More
            );
            let mut left = candidates.as_slice();
            while !left.is_empty() {
                let part = &left[..left.len().min(CHUNK_ROWS_MAX)];
                let mark = rows.mark();
                let (db, options) = (context.db, context.options);
                let body = |access: &mut Access<'_>| -> std::result::Result<(usize, u64), Stop> {
                    rows.rewind(mark);
                    let mut pace = Pace::new(db, options, false);
                    let (mut seen, mut changed) = (0, 0);
                    for row in part {
                        let still = match access.tuple(table, *row)? {
                            Some(tuple) => admits(source, &TupleRow { table, tuple }, evaluation)?,
                            None => false,
                        };
                        if still {
                            changed += u64::from(change(access, *row, rows)?);
                        }
                        seen += 1;
                        if pace.row()? {
                            break;
                        }
                    }
                    Ok((seen, changed))
                };
                let scope = if leaves_partition {
                    Scope::All
                } else {
                    Scope::One(partition)
                };
                let txn = match own.as_mut() {
                    Some(own) => Some(own),
                    None => context.txn.as_deref_mut(),
                };
                let (seen, now) = run(context.db, txn, context.options, scope, body).await?;
                changed += now;
                left = &left[seen..];
                if !left.is_empty() {
                    give_way().await;
                }
            }
        }
    }
    if let Some(own) = own {
        context.db.commit(own, context.options).await?;
    }
    Ok(changed)
}
