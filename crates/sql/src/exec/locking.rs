//! SELECT … FOR UPDATE: the rows are locked before they are shown, and shown as they are then. Of a
//! limited number of rows in an order, no other is locked than those that are shown, or were looked at
//! before them: others may want them.

use std::ops::ControlFlow;

use thermocline_engine::{Access, RowId, Table};
use thermocline_values::value::Value;

use super::Stop;
use super::lookup::{Keys, visit};
use super::pace::Pace;
use super::row::{NumberedRow, TupleRow};
use super::select::give;
use super::sink::{Sink, Window, compare, kept_bytes};
use crate::error::{Result, SqlError};
use crate::expr::EvalContext;
use crate::output::RowWriter;
use crate::plan::{LockedRows, RowLock, SelectPlan, SortKey, Source};

/// A SELECT that locks what it shows.
#[derive(Clone, Copy)]
pub(super) struct Locking<'p> {
    pub(super) plan: &'p SelectPlan,
    pub(super) lock: RowLock,
    pub(super) source: &'p Source,
    pub(super) window: Window,
    pub(super) evaluation: EvalContext<'p>,
}

/// The rows that qualify, as they are found.
pub(super) struct Candidates<'p> {
    /// In this order they are locked; in any if it is empty.
    sort: &'p [SortKey],
    rows: Vec<RowId>,
    /// What each is ordered by, if they are.
    keys: Vec<Vec<Value>>,
    bytes: usize,
}

impl Candidates<'_> {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What they take in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// One more, which is `tuple`.
    pub(super) fn push(
        &mut self,
        read: &Locking<'_>,
        row: RowId,
        tuple: &TupleRow<'_>,
    ) -> Result<()> {
        let mut keys = Vec::with_capacity(self.sort.len());
        for key in self.sort {
            let value = match read.plan.numbered {
                true => {
                    let number = row.number().cast_signed();
                    let numbered = NumberedRow {
                        row: *tuple,
                        number,
                    };
                    key.expr.evaluate(&numbered, &read.evaluation)?.into_value()
                }
                false => key.expr.evaluate(tuple, &read.evaluation)?.into_value(),
            };
            keys.push(value);
        }
        self.bytes += size_of::<RowId>();
        self.rows.push(row);
        if !keys.is_empty() {
            self.bytes += kept_bytes(&keys);
            self.keys.push(keys);
        }
        Ok(())
    }

    /// Their numbers, in the order in which they are to be locked.
    pub(super) fn in_order(self) -> Vec<RowId> {
        let Self {
            sort, rows, keys, ..
        } = self;
        if sort.is_empty() {
            return rows;
        }
        let mut ordered: Vec<_> = keys.into_iter().zip(rows).collect();
        ordered.sort_by(|(a, _), (b, _)| compare(sort, a, b));
        ordered.into_iter().map(|(_, row)| row).collect()
    }
}

impl<'p> Locking<'p> {
    /// How many rows are to be locked at most.
    pub(super) fn wanted(&self) -> u64 {
        match self.plan.sort.is_empty() || self.is_in_order() {
            true => self.window.end(),
            false => u64::MAX,
        }
    }

    /// Whether the order says which rows are locked. What a volatile function gives says nothing.
    fn is_in_order(&self) -> bool {
        self.window.end() < u64::MAX
            && self.plan.aggregate.is_none()
            && !self.plan.sort.iter().any(|key| key.expr.is_volatile())
    }

    /// None yet.
    pub(super) fn candidates(&self) -> Candidates<'p> {
        Candidates {
            sort: match self.is_in_order() {
                true => &self.plan.sort,
                false => &[],
            },
            rows: Vec::new(),
            keys: Vec::new(),
            bytes: 0,
        }
    }

    /// Locks and shows them all in one run.
    pub(super) fn locked(
        &self,
        access: &mut Access<'_>,
        keys: &Keys,
        pace: &mut Pace<'_>,
        sink: &mut Sink<'_>,
        rows: &mut RowWriter,
    ) -> std::result::Result<(), Stop> {
        let table = &*self.source.table;
        let mut left = self.wanted();
        // How many have to be found before one is locked.
        let mut enough = match self.plan.sort.is_empty() {
            true => usize::try_from(left).unwrap_or(usize::MAX),
            false => usize::MAX,
        };
        let mut found = Vec::new();
        let mut tried = 0;
        loop {
            let mut candidates = self.candidates();
            let candidate = |row, tuple: &TupleRow<'_>| {
                candidates.push(self, row, tuple)?;
                rows.holds_beside(candidates.bytes())?;
                Ok(match candidates.len() >= enough {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            };
            let evaluation = &self.evaluation;
            visit(
                access,
                self.source,
                keys,
                evaluation,
                &mut found,
                pace,
                candidate,
            )?;
            let seen = candidates.len();
            for row in candidates.in_order().into_iter().skip(tried) {
                if left == 0 {
                    return Ok(());
                }
                if !lock_row(access, self.lock, table, row)? {
                    continue;
                }
                if let Some(tuple) = access.tuple(table, row)? {
                    left -= 1;
                    let tuple = TupleRow { table, tuple };
                    if give(self.plan, sink, row, &tuple, rows)?.is_break() {
                        return Ok(());
                    }
                }
            }
            // More of them may be free than were asked for at first.
            if self.lock.locked != LockedRows::Skip || seen < enough {
                return Ok(());
            }
            tried = seen;
            enough = enough.saturating_mul(2);
        }
    }
}

/// Locks a row. Whether it is to be shown.
pub(super) fn lock_row(
    access: &mut Access<'_>,
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
