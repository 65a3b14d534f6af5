//! A result that was made whole, on its way out.

use std::vec::IntoIter;

use datafusion::execution::memory_pool::MemoryReservation;
use thermocline_query::datum::Datum;

use super::row_stream::Output;
use super::run::End;
use crate::analysis::SettingChange;
use crate::error::Result;
use crate::output::RowWriter;

/// The rows of a result.
pub(super) struct WholeResult {
    rows: IntoIter<Vec<Datum>>,
    output: Output,
    changes: Vec<SettingChange>,
    /// Its memory; and values are written for as long as somebody waits for them.
    _held: (MemoryReservation, End),
}

impl WholeResult {
    pub(super) fn new(
        rows: Vec<Vec<Datum>>,
        output: Output,
        changes: Vec<SettingChange>,
        held: (MemoryReservation, End),
    ) -> Self {
        Self {
            rows: rows.into_iter(),
            output,
            changes,
            _held: held,
        }
    }

    pub(super) fn setting_changes(&self) -> &[SettingChange] {
        &self.changes
    }

    /// Writes up to `rows_max` further rows, and returns how many.
    pub(super) fn write(&mut self, rows: &mut RowWriter, rows_max: usize) -> Result<usize> {
        let mut written = 0;
        for row in self.rows.by_ref().take(rows_max) {
            self.output.write(rows, row.iter().cloned().map(Ok))?;
            written += 1;
        }
        Ok(written)
    }
}
