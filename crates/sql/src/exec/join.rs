//! Joins by nested loops: for each row of a table the index of the next one is asked. All
//! partitions are held meanwhile, so a join that goes over many rows soon leaves for the analytical
//! path.

use std::ops::ControlFlow;

use thermocline_engine::{Access, RowId, Scope};

use super::lookup::{Keys, visit};
use super::pace::Pace;
use super::sink::{Sink, Window};
use super::{ExecContext, Stop, run};
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, JoinedRow};
use crate::output::RowWriter;
use crate::plan::{JoinStep, SelectPlan, Source, StepKind};

/// The tuples that one look into a table has found. They are copied: the looks into the next
/// tables may move what the engine has in memory.
#[derive(Default)]
struct Level {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    found: Vec<RowId>,
}

impl Level {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn tuples(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.bytes[begin..*end])
    }
}

/// What all levels of the loops share.
struct Loops<'a, 'p> {
    sink: Sink<'a>,
    pace: Pace<'p>,
    /// Bytes that all levels hold.
    held: usize,
}

/// Runs a plan with joins.
///
/// # Errors
/// What expressions raise; [`SqlError::takes_long`] where the statement may leave.
pub(super) async fn select(
    plan: &SelectPlan,
    source: &Source,
    window: Window,
    evaluation: &EvalContext<'_>,
    context: &mut ExecContext<'_>,
    rows: &mut RowWriter,
) -> Result<()> {
    let keys = Keys::of(source, evaluation)?;
    if matches!(keys, Keys::Nothing) {
        return Sink::new(plan, window, *evaluation).finish(rows);
    }
    if context.may_leave && plan.departures.leaves_at_once() {
        return Err(SqlError::takes_long());
    }
    let mark = rows.mark();
    let mut levels: Vec<Level> = Vec::new();
    levels.resize_with(1 + plan.joins.len(), Level::default);
    let (db, options, may_leave) = (context.db, context.options, context.may_leave);
    let body = |access: &mut Access<'_>| -> std::result::Result<(), Stop> {
        rows.rewind(mark);
        let mut loops = Loops {
            sink: Sink::new(plan, window, *evaluation),
            pace: Pace::of_all_partitions(db, options, may_leave),
            held: 0,
        };
        let first = (source, &keys);
        loops.outermost(plan, first, &mut levels, window, evaluation, access, rows)?;
        loops.sink.finish(rows)?;
        Ok(())
    };
    let txn = context.txn.as_deref_mut();
    let ran = run(db, txn, options, Scope::All, body).await;
    plan.departures
        .tried(ran.as_ref().is_err_and(|error| error.takes_long));
    ran?;
    plan.used.count(&source.table, db);
    for step in &plan.joins {
        step.used.count(&step.source.table, db);
    }
    Ok(())
}

impl Loops<'_, '_> {
    /// Goes over the rows of the first table. Where only so many rows of the result matter, it
    /// takes as many of its rows at first, and then twice as many.
    #[allow(clippy::too_many_arguments)]
    fn outermost(
        &mut self,
        plan: &SelectPlan,
        (source, keys): (&Source, &Keys),
        levels: &mut [Level],
        window: Window,
        context: &EvalContext<'_>,
        access: &mut Access<'_>,
        rows: &mut RowWriter,
    ) -> std::result::Result<(), Stop> {
        let is_limited = plan.sort.is_empty() && plan.aggregate.is_none();
        let mut wanted = match is_limited {
            true => usize::try_from(window.end()).unwrap_or(usize::MAX),
            false => usize::MAX,
        };
        let mut tried = 0;
        let [first, deeper @ ..] = levels else {
            return Ok(());
        };
        loop {
            let mut seen = 0;
            self.fill(first, source, keys, context, access, rows, || {
                seen += 1;
                (seen > tried, seen >= wanted)
            })?;
            for tuple in first.tuples() {
                let row = JoinedRow {
                    before: None,
                    table: &source.table,
                    begin: 0,
                    tuple: Some(tuple),
                };
                let next = self.deeper(&plan.joins, &row, deeper, context, access, rows)?;
                if next.is_break() {
                    return Ok(());
                }
            }
            if seen < wanted {
                return Ok(());
            }
            tried = seen;
            wanted = wanted.saturating_mul(2);
        }
    }

    /// Copies the tuples that a look finds. `takes` says of each whether it is wanted, and whether
    /// it is the last.
    #[allow(clippy::too_many_arguments)]
    fn fill(
        &mut self,
        level: &mut Level,
        source: &Source,
        keys: &Keys,
        context: &EvalContext<'_>,
        access: &mut Access<'_>,
        rows: &mut RowWriter,
        mut takes: impl FnMut() -> (bool, bool),
    ) -> std::result::Result<(), Stop> {
        level.clear();
        let Level { bytes, ends, found } = level;
        let (held, capacity) = (&mut self.held, bytes.capacity());
        visit(
            access,
            source,
            keys,
            context,
            found,
            &mut self.pace,
            |_, row| {
                let (is_wanted, is_last) = takes();
                if is_wanted {
                    bytes.extend_from_slice(row.tuple);
                    ends.push(bytes.len());
                    rows.holds_beside(*held + bytes.capacity() - capacity)?;
                }
                Ok(match is_last {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            },
        )?;
        *held += bytes.capacity() - capacity;
        Ok(())
    }

    /// Joins the rows of the tables behind to a row.
    fn deeper(
        &mut self,
        steps: &[JoinStep],
        outer: &JoinedRow<'_>,
        levels: &mut [Level],
        context: &EvalContext<'_>,
        access: &mut Access<'_>,
        rows: &mut RowWriter,
    ) -> std::result::Result<ControlFlow<()>, Stop> {
        let ([step, behind @ ..], [level, deeper @ ..]) = (steps, levels) else {
            return Ok(self.sink.row(outer, rows)?);
        };
        // A look that finds nothing takes its time, too.
        self.pace.row_or_leave()?;
        let source = &step.source;
        let within = EvalContext {
            outer: Some(outer),
            ..*context
        };
        let keys = Keys::of(source, &within)?;
        let asks = matches!(step.kind, StepKind::Semi | StepKind::Anti);
        let mut any = false;
        self.fill(level, source, &keys, &within, access, rows, || {
            any = true;
            (!asks, asks)
        })?;
        if asks {
            return match any == (step.kind == StepKind::Semi) {
                true => self.deeper(behind, outer, deeper, context, access, rows),
                false => Ok(ControlFlow::Continue(())),
            };
        }
        let tuples = level.tuples().map(Some);
        let lone = (step.kind == StepKind::Left && !any).then_some(None);
        for tuple in tuples.chain(lone) {
            if let Some(after) = &step.after {
                let own = JoinedRow {
                    before: None,
                    table: &source.table,
                    begin: 0,
                    tuple,
                };
                if !after.accepts(&own, &within)? {
                    continue;
                }
            }
            let row = JoinedRow {
                before: Some(outer),
                table: &source.table,
                begin: step.begin,
                tuple,
            };
            let next = self.deeper(behind, &row, deeper, context, access, rows)?;
            if next.is_break() {
                return Ok(next);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
