//! What a commit asks of the kinds of tables that a run has changed, beside rows in place: those
//! are in the record by their values ([`crate::rows::kind`]).
//!
//! Before the record each has its part on the device, and the record names it; after the record
//! it learns where that lies. A run that is undone undoes them, too.

use thermocline_storage::log::Lsn;

use super::Access;
use crate::ground::error::{Error, Result};
use crate::rows::kind::Durability;

impl Access<'_> {
    /// Has each kind that was changed prepare its part of the commit. What is named is added to
    /// the changes that go into the record.
    ///
    /// # Errors
    /// The device's; the run can still be undone.
    #[inline]
    pub(crate) fn prepare_kinds(&mut self) -> Result<()> {
        match self.scratch.kinds.is_empty() {
            true => Ok(()),
            false => self.prepare_changed_kinds(),
        }
    }

    #[cold]
    fn prepare_changed_kinds(&mut self) -> Result<()> {
        let kinds = std::mem::take(&mut self.scratch.kinds);
        let prepared = kinds.iter().try_for_each(|(position, storage)| {
            let state = self.guards.at_mut(*position);
            let partition = state.id;
            let gone = || Error::Internal(format!("storage {storage} is not there"));
            let kind = state.tables.kind_mut(*storage).ok_or_else(gone)?;
            let number = kind.prepare()?;
            match (kind.durability(), number) {
                (Durability::Logged, None) => {}
                (Durability::Rooted | Durability::Persistent, Some(number)) => {
                    self.scratch.changes.name(*storage, partition, number);
                }
                (durability, number) => {
                    let wrong = format!("a {durability:?} kind prepared {number:?}");
                    return Err(Error::Internal(wrong));
                }
            }
            Ok(())
        });
        self.scratch.kinds = kinds;
        prepared
    }

    /// Tells each kind that was changed where the commit's record ends.
    #[inline]
    pub(crate) fn tell_kinds(&mut self, lsn: Lsn) {
        for (position, storage) in self.scratch.kinds.drain(..) {
            if let Some(kind) = self.guards.at_mut(position).tables.kind_mut(storage) {
                kind.committed(lsn);
            }
        }
    }

    /// Takes back what was changed of kinds that have their own way to.
    #[inline]
    pub(super) fn undo_kinds(&mut self) {
        for (position, storage) in self.scratch.kinds.drain(..) {
            if let Some(kind) = self.guards.at_mut(position).tables.kind_mut(storage) {
                kind.undo();
            }
        }
    }

    /// Whether a call of a procedure may be logged in place of its changes: what kinds have
    /// prepared has to be named.
    #[inline]
    pub(super) fn may_log_command(&self) -> bool {
        self.scratch.kinds.is_empty() && self.parts.checkpoint_state().allows_commands()
    }

    /// For tests: a table of a kind of tests, to be changed by this run.
    ///
    /// # Errors
    /// An interactive transaction would have to keep its changes beside the table.
    #[cfg(test)]
    pub(crate) fn kind_to_change(
        &mut self,
        table: &crate::catalog::Table,
        partition: u16,
    ) -> Result<&mut crate::rows::kind::Kind> {
        if self.txn.is_some() {
            return Err(Error::Internal("kinds of tests know one-shots only".into()));
        }
        self.begin_write(table)?;
        let position = self.guards.position(partition)?;
        let changed = (position, table.def.storage);
        if !self.scratch.kinds.contains(&changed) {
            self.scratch.kinds.push(changed);
        }
        let state = self.guards.at_mut(position);
        state.kind_of(table, self.parts.device())
    }
}
