//! How long a query's rows may be. Operators hand on and put aside batches of so many rows,
//! whatever these are: of long rows it has to be few.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::session_state::SessionState;
use parking_lot::Mutex;
use thermocline_engine::{Database, Table};

use super::batch::batch_bytes;

/// For how long it is known what is in blocks: all of them are looked at.
const FRESH: Duration = Duration::from_secs(1);

/// What is known of the tables' rows in blocks.
#[derive(Default)]
pub(super) struct Widths(Mutex<Cold>);

#[derive(Default)]
struct Cold {
    /// When it was looked at, by the database's clock.
    at: Option<Duration>,
    /// Records and bytes by storage number.
    rows: BTreeMap<u32, (u64, u64)>,
}

impl Widths {
    /// The bytes of one row of each of the tables: on average, in memory or in blocks, whichever
    /// are longer.
    fn row_bytes(&self, db: &Database, tables: &[Arc<Table>]) -> u64 {
        let average = |(rows, bytes): (u64, u64)| bytes / rows.max(1);
        let mut cold = self.0.lock();
        let now = db.now();
        if cold.at.is_none_or(|at| now.saturating_sub(at) >= FRESH) {
            cold.rows = db.cold_rows();
            cold.at = Some(now);
        }
        let of = |table: &Arc<Table>| {
            let in_blocks = cold.rows.get(&table.def.storage).copied();
            average(db.hot_rows(table)).max(average(in_blocks.unwrap_or_default()))
        };
        tables.iter().map(of).sum()
    }

    /// The session for a query over these tables: batches of its rows are of two scans' batches
    /// at most.
    pub(super) fn fitted(
        &self,
        db: &Database,
        tables: &[Arc<Table>],
        state: &SessionState,
    ) -> SessionState {
        let mut state = state.clone();
        let most = 2 * batch_bytes(db.memory_limit()) as u64;
        let rows = most / self.row_bytes(db, tables).max(1);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX).max(1);
        if rows < state.config().batch_size()
            && let Ok(rows) = ConfigNonZeroUsize::try_new(rows)
        {
            state.config_mut().options_mut().execution.batch_size = rows;
        }
        state
    }
}
