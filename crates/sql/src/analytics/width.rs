//! Batches for long rows. Operators hand on batches of so many rows, however long these are, and
//! hold several at a time: of long rows a batch has fewer.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::session_state::SessionState;
use parking_lot::Mutex;
use thermocline_engine::{Database, Table, TableBlocks};

use super::batch::batch_bytes;

/// How old what is known of blocks may be: finding it out looks at all of them.
const BLOCKS_AGE_MAX: Duration = Duration::from_secs(1);

/// What is known of how long rows are.
#[derive(Default)]
pub(super) struct Widths(Mutex<Blocks>);

#[derive(Default)]
struct Blocks {
    /// When they were looked at, by the database's clock.
    at: Option<Duration>,
    /// What they hold, by storage number.
    of: BTreeMap<u32, TableBlocks>,
}

impl Widths {
    /// The bytes of one row of each table: the average in memory or in blocks, whichever is more.
    fn row_bytes(&self, db: &Database, tables: &[Arc<Table>]) -> u64 {
        let average = |rows: u64, bytes: u64| bytes / rows.max(1);
        let hot = tables.iter().map(|table| db.hot_rows(table));
        let hot: Vec<u64> = hot.map(|(rows, bytes)| average(rows, bytes)).collect();
        let mut blocks = self.0.lock();
        let now = db.now();
        if blocks
            .at
            .is_none_or(|at| now.saturating_sub(at) >= BLOCKS_AGE_MAX)
        {
            blocks.of = db.table_blocks();
            blocks.at = Some(now);
        }
        let cold = |table: &Arc<Table>| {
            let of = blocks.of.get(&table.def.storage);
            of.map_or(0, |of| average(of.records, of.bytes))
        };
        let longer = tables
            .iter()
            .zip(hot)
            .map(|(table, hot)| hot.max(cold(table)));
        longer.sum()
    }

    /// The session for a query over these tables. A batch of rows that have one row of each
    /// table takes at most as much as two batches of a scan.
    pub(super) fn fitted(
        &self,
        db: &Database,
        tables: &[Arc<Table>],
        state: &SessionState,
    ) -> SessionState {
        let mut state = state.clone();
        if tables.is_empty() {
            return state;
        }
        let rows = rows_of(self.row_bytes(db, tables), db.memory_limit());
        if rows.get() < state.config().batch_size()
            && let Ok(rows) = ConfigNonZeroUsize::try_new(rows.get())
        {
            state.config_mut().options_mut().execution.batch_size = rows;
        }
        state
    }
}

/// How many rows of so many bytes a batch has: one at least.
fn rows_of(row_bytes: u64, memory_limit: u64) -> NonZeroUsize {
    let most = 2 * batch_bytes(memory_limit) as u64;
    let rows = usize::try_from(most / row_bytes.max(1)).unwrap_or(usize::MAX);
    NonZeroUsize::new(rows).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_long_rows_have_few() {
        let rows = |row_bytes| rows_of(row_bytes, 128 << 20).get();
        assert_eq!(rows(100_000), 5);
        assert_eq!(rows(512 << 10), 1);
        assert_eq!((rows(900 << 20), rows(u64::MAX)), (1, 1));
        // More than any batch has, so that it changes nothing.
        assert!(rows(0) > 8192 && rows(16) > 8192);
    }
}
