//! What a procedure's call adds to a run: its command goes to the log in place
//! of its changes, and at recovery inserted rows take the numbers that the
//! command recorded.

use std::sync::Arc;

use thermocline_storage::log::Lsn;

use super::Access;
use crate::catalog::Catalog;
use crate::format::command::{digest, tail};
use crate::format::record::{RecordKind, record_head};
use crate::ground::error::{Error, Result};
use crate::rows::row_state::{Numbers, TablePartition};

/// The numbers that a replayed command's inserts take, in order.
#[derive(Debug)]
pub(crate) struct RecordedRows {
    rows: Vec<(u32, u32)>,
    next: usize,
}

impl RecordedRows {
    pub fn new(rows: Vec<(u32, u32)>) -> Self {
        RecordedRows { rows, next: 0 }
    }

    /// The next row, which has to be one of `storage`, and free.
    pub fn take(&mut self, storage: u32, rows: &mut TablePartition) -> Result<u32> {
        match self.rows.get(self.next) {
            Some(&(recorded, row)) if recorded == storage && rows.take_number_again(row) => {
                self.next += 1;
                Ok(row)
            }
            _ => Err(Error::Corrupt("another row is inserted than before".into())),
        }
    }
}

impl Access<'_> {
    /// Logs this command (its head, see [`crate::procedure::command`]) when the
    /// run commits, not the changes.
    pub(crate) fn log_as(&mut self, command: Option<Arc<[u8]>>) {
        self.command = command;
    }

    /// Has a command run again, by the catalog that it ran with: gives the rows that it
    /// inserts these numbers.
    pub(crate) fn run_again(&mut self, rows: RecordedRows, catalog: &Arc<Catalog>) {
        self.recorded = Some(rows);
        self.applied = Some(catalog.clone());
    }

    /// Who has the numbers of the rows that go.
    pub(super) fn numbers(&self) -> Numbers {
        match self.recorded {
            None => Numbers::Listed,
            Some(_) => Numbers::Restoring,
        }
    }

    /// Whether the run did what a command's record says.
    pub(crate) fn did_as_recorded(&self, recorded_digest: u64) -> bool {
        let all_inserted = match &self.recorded {
            Some(recorded) => recorded.next == recorded.rows.len(),
            None => true,
        };
        all_inserted && digest(&self.scratch.changes.parts) == recorded_digest
    }

    /// Appends the command's record.
    pub(super) fn append_command(&self, head: &[u8]) -> Result<Lsn> {
        let tail = tail(&self.scratch.changes.parts, self.scratch.undo.inserted());
        self.parts
            .append_log(&[&record_head(RecordKind::Command, 0), head, &tail])
    }

    /// Whether the run holds this partition.
    pub(crate) fn holds(&self, partition: u16) -> bool {
        self.guards.position(partition).is_ok()
    }

    /// Whether the run holds all partitions.
    pub(crate) fn holds_all(&self) -> bool {
        self.guards.len() == self.parts.all_partitions().len()
    }
}
