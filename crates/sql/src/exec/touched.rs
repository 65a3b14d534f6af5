//! The rows that an INSERT … ON CONFLICT DO UPDATE has stored or updated: it may not come to one of
//! them again. They are those of the whole statement, in however many parts it is stored.

use std::collections::HashSet;

use thermocline_engine::{Charge, ChargeKind, RowId, RunOptions, Table};

use super::Stop;
use super::insert::second_time;
use crate::error::Result;
use crate::plan::InsertTarget;

/// About what a row's place in the set takes, bytes, when the set has just grown.
const BYTES_A_ROW: u64 = 48;

/// See the module.
#[derive(Default)]
pub struct Touched {
    /// None where the statement cannot come to a row twice.
    rows: Option<HashSet<(u32, RowId)>>,
    /// Those of the part that is being stored.
    latest: Vec<(u32, RowId)>,
    charge: Option<Charge>,
}

impl Touched {
    /// For a statement that stores so many rows, or more than one if that is not known.
    pub(crate) fn of(target: &InsertTarget, rows: usize, options: &RunOptions) -> Self {
        let conflict = target.conflict.as_ref();
        let updates = conflict.is_some_and(|conflict| conflict.update.is_some());
        let account = options.account.as_ref().filter(|_| updates && rows > 1);
        Self {
            rows: (updates && rows > 1).then(HashSet::new),
            latest: Vec::new(),
            charge: account.map(|account| account.nothing(ChargeKind::Result)),
        }
    }

    /// So many rows will come: they are charged.
    pub(super) fn expect(&mut self, rows: usize) -> Result<()> {
        match &mut self.charge {
            Some(charge) => Ok(charge.grow(BYTES_A_ROW * rows as u64)?),
            None => Ok(()),
        }
    }

    /// A part begins, or is begun again: it has touched nothing.
    pub(super) fn begin_part(&mut self) {
        if let Some(rows) = &mut self.rows {
            for row in self.latest.drain(..) {
                rows.remove(&row);
            }
        }
    }

    /// What the part has touched stays so.
    pub(super) fn end_part(&mut self) {
        self.latest.clear();
    }

    /// 21000 for a row that was touched before.
    pub(super) fn verify(&self, table: &Table, row: RowId) -> std::result::Result<(), Stop> {
        let rows = self.rows.as_ref();
        match rows.is_some_and(|rows| rows.contains(&(table.oid, row))) {
            true => Err(second_time()),
            false => Ok(()),
        }
    }

    pub(super) fn add(&mut self, table: &Table, row: RowId) {
        if let Some(rows) = &mut self.rows
            && rows.insert((table.oid, row))
        {
            self.latest.push((table.oid, row));
        }
    }
}
