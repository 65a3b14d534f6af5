//! What the scans of a serializable transaction's statement have read. They run on other
//! threads, so they note it here, and the transaction takes it over when they have ended. Until
//! then the transaction must not do anything else: a snapshot that is taken anew is checked
//! against what it has noted.

use parking_lot::Mutex;

use super::index_keys::IndexKeys;
use super::interactive::Transaction;
use crate::catalog::Table;
use crate::ground::error::Result;
use crate::transaction::Isolation;
use crate::transaction::reads::{EVERYWHERE, ReadEntry, ReadWhat};

/// With more keys a table is noted as a whole.
const KEYS_MAX: usize = 1024;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct ScanNotes(Mutex<Vec<ReadEntry>>);

impl ScanNotes {
    /// A scan reads a whole table.
    pub fn table(&self, table: &Table) {
        self.note(table, EVERYWHERE, ReadWhat::Table);
    }

    /// A scan reads the rows with some keys of an index, and nothing else.
    pub fn keys(&self, table: &Table, keys: &IndexKeys) {
        if keys.len() > KEYS_MAX {
            return self.table(table);
        }
        for (partition, what) in keys.reads(table) {
            self.note(table, partition.unwrap_or(EVERYWHERE), what);
        }
    }

    fn note(&self, table: &Table, partition: u16, what: ReadWhat) {
        self.0.lock().push(ReadEntry {
            storage: table.def.storage,
            partition,
            table: table.def.oid,
            what,
        });
    }
}

impl Transaction {
    /// Whether it has to know what its statements read.
    ///
    /// # Errors
    /// It has ended.
    pub fn validates_reads(&mut self) -> Result<bool> {
        let state = self.state_mut()?;
        Ok(state.isolation == Isolation::Serializable && !state.read_only)
    }

    /// Takes over what the scans of a statement have noted.
    ///
    /// # Errors
    /// It has ended.
    pub fn take_notes(&mut self, notes: &ScanNotes) -> Result<()> {
        let state = self.state_mut()?;
        for read in std::mem::take(&mut *notes.0.lock()) {
            if !state.sees_draft_of(read.storage) {
                state.reads.note(read);
            }
        }
        Ok(())
    }
}
