//! What a run has its tables' policies count ([`PolicyCounts`](crate::rows::row_state::PolicyCounts)).

use super::Access;
use crate::rows::fetch::PlannedRead;

impl Access<'_> {
    /// The run is taken back, since these tuples, in the order of their blocks, have to be read first.
    pub(crate) fn count_restart(&mut self, reads: &[PlannedRead]) {
        let mut counted = Vec::new();
        let mut last = 0;
        for read in reads {
            let is_read_already = read.whole && last == read.address.block;
            last = read.address.block;
            let Ok(position) = self.guards.position(read.row.partition()) else {
                continue;
            };
            let tables = &mut self.guards.at_mut(position).tables;
            let Some(rows) = tables.rows_mut(read.storage) else {
                continue;
            };
            rows.count().fetched += 1;
            if !is_read_already {
                rows.count().bytes_read += read.range().1 as u64;
            }
            if !counted.contains(&read.storage) {
                counted.push(read.storage);
                rows.count().restarts += 1;
            }
        }
    }
}
