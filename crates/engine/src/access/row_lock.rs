//! Row locks that a statement asks for by themselves: `SELECT … FOR UPDATE`, waiting or not. What
//! a change locks is locked where it is made (`write.rs`).

use super::Access;
use crate::catalog::Table;
use crate::catalog::table_lock::LockMode;
use crate::ground::error::Result;
use crate::ground::row_id::RowId;

impl Access<'_> {
    /// Locks a row until the transaction ends (`SELECT … FOR UPDATE`). A
    /// one-shot transaction holds its partitions anyway.
    pub fn lock(&mut self, table: &Table, row: RowId) -> Result<()> {
        self.enter(table, LockMode::RowShare)?;
        let position = self.guards.position(row.partition())?;
        self.change(|access| access.lock_row(position, table, row))?;
        Ok(())
    }

    /// The same, unless another transaction has it locked; whether it is locked now.
    ///
    /// # Errors
    /// As for [`Access::lock`].
    pub fn try_lock(&mut self, table: &Table, row: RowId) -> Result<bool> {
        let position = self.guards.position(row.partition())?;
        if self.is_held_by_another(position, table, row) {
            return Ok(false);
        }
        self.lock(table, row)?;
        Ok(true)
    }

    fn is_held_by_another(&self, position: usize, table: &Table, row: RowId) -> bool {
        let stored = (table.def.storage, row.row());
        let state = self.guards.at(position);
        let Some(rows) = state.tables.rows(stored.0) else {
            return false;
        };
        let word = rows.directory().get(row.row());
        let inserted = || state.inserted_by(stored).map(|range| range.owner);
        let holders = [
            word.is_aside().then(|| state.locks.get(&stored).copied()),
            word.is_uncommitted().then(inserted),
        ];
        let own = self.txn.as_deref().map(|txn| txn.id);
        let mut holders = holders.into_iter().flatten().flatten();
        holders.any(|holder| Some(holder) != own)
    }
}
