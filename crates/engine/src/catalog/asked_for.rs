//! How often a table's evicted rows are asked for: one count-min sketch for all its partitions, in
//! force while the table's policy merges the top of them (000 §4.2).
//!
//! It stays with the table whatever DDL makes of it, and is given up when the policy no longer
//! wants it. It is made again, empty, when the table has outgrown it.

use std::sync::Arc;

use parking_lot::RwLock;
use thermocline_storage::count_min::CountMin;

use crate::ground::row_id::RowId;
use crate::policy::Share;

/// See the module's head.
#[derive(Default)]
pub(crate) struct AskedFor(RwLock<Option<Arc<CountMin>>>);

impl std::fmt::Debug for AskedFor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AskedFor({} bytes)", self.bytes())
    }
}

impl AskedFor {
    /// An evicted row of a table of about so many rows is asked for.
    pub fn note(&self, row: RowId, rows: u64) {
        self.sketch(rows).add(row.number());
    }

    /// Whether a row is one of this share that is asked for most.
    pub fn is_top(&self, row: RowId, share: Share) -> bool {
        let sketch = self.0.read().clone();
        let share = f64::from(share.millionths()) / 1e6;
        sketch.is_some_and(|sketch| sketch.estimate(row.number()) >= sketch.cut(share))
    }

    /// Nobody wants to know any more.
    pub fn forget(&self) {
        *self.0.write() = None;
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.read().as_ref().map_or(0, |sketch| sketch.bytes())
    }

    fn sketch(&self, rows: u64) -> Arc<CountMin> {
        let good = |sketch: &&Arc<CountMin>| !sketch.is_outgrown(rows);
        if let Some(sketch) = self.0.read().as_ref().filter(good) {
            return sketch.clone();
        }
        let mut place = self.0.write();
        match place.as_ref().filter(good) {
            Some(sketch) => sketch.clone(),
            None => place.insert(Arc::new(CountMin::new(rows))).clone(),
        }
    }
}
