//! The result of a catalog query on its way out.

use std::sync::Arc;
use std::vec::IntoIter;

use datafusion::execution::memory_pool::MemoryReservation;
use thermocline_query::datum::Datum;

use super::environment::SystemEnvironment;
use crate::analytics::SettingChange;
use crate::error::Result;
use crate::output::RowWriter;
use crate::typed::write_value;

/// The rows of a catalog query.
pub(crate) struct CatalogRows {
    rows: IntoIter<Vec<Datum>>,
    /// Type and modifier of each column.
    types: Vec<(u32, i32)>,
    /// Knows names behind numbers.
    environment: Arc<SystemEnvironment>,
    changes: Vec<SettingChange>,
    _held: MemoryReservation,
}

impl CatalogRows {
    pub(super) fn new(
        rows: Vec<Vec<Datum>>,
        types: Vec<(u32, i32)>,
        environment: Arc<SystemEnvironment>,
        held: MemoryReservation,
    ) -> Self {
        Self {
            rows: rows.into_iter(),
            types,
            changes: environment.take_changes(),
            environment,
            _held: held,
        }
    }

    pub(crate) fn setting_changes(&self) -> &[SettingChange] {
        &self.changes
    }

    /// Writes up to `rows_max` further rows, and returns how many.
    pub(crate) fn write(&mut self, rows: &mut RowWriter, rows_max: usize) -> Result<usize> {
        let mut written = 0;
        for row in self.rows.by_ref().take(rows_max) {
            rows.begin_row(self.types.len());
            for (value, of) in row.iter().zip(&self.types) {
                write_value(rows, &*self.environment, *of, value)?;
            }
            rows.end_row();
            written += 1;
        }
        Ok(written)
    }
}
