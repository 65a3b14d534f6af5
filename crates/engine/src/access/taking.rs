//! What a run takes of memory as it changes rows: counted with each change before it is made,
//! and asked for where it is much ([`crate::parts::changes`]). A run that gets no more is taken back.

use super::{Access, Obstacle};
use crate::ground::error::{Error, Result};
use crate::memory::account::Account;
use crate::parts::changes::{Grant, Need};

/// What one part of work holds that is done in parts, in bytes.
const PART_HELD_MAX: u64 = 1 << 20;

impl<'a> Access<'a> {
    /// Has it ask for what it takes.
    #[inline]
    pub(crate) fn bounded_by(&mut self, grant: &'a mut Grant, account: Option<&'a Account>) {
        self.taken = grant.beginning();
        (self.grant, self.account) = (Some(grant), account);
    }

    /// Counts what a change is about to hold beside the tables, and of rows to bring into
    /// memory.
    #[inline]
    pub(super) fn take(&mut self, held: usize, rows: usize) -> Result<()> {
        match self.taken.count(held, rows) {
            false => Ok(()),
            true => self.ask(),
        }
    }

    #[cold]
    pub(super) fn ask(&mut self) -> Result<()> {
        let Some(grant) = self.grant.as_deref_mut() else {
            return Ok(());
        };
        match grant.try_go_on(self.parts, self.account, &mut self.taken)? {
            true => Ok(()),
            false => Err(self.lacks(0)),
        }
    }

    /// Counts bytes that the transaction is about to keep.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<()> {
        let Some(txn) = self.txn.as_deref_mut() else {
            return Ok(());
        };
        match txn.try_keep(self.parts, bytes)? {
            true => Ok(()),
            false => {
                let kept = (txn.bytes + bytes) as u64;
                Err(self.lacks(kept))
            }
        }
    }

    fn lacks(&mut self, kept: u64) -> Error {
        self.blocked(Obstacle::Memory(Need {
            held: self.taken.held,
            rows: self.taken.rows,
            kept,
        }))
    }

    /// Whether it holds so much that what is done in parts should end a part.
    pub(crate) fn is_large(&self) -> bool {
        self.taken.held > PART_HELD_MAX || self.missing_bytes > PART_HELD_MAX
    }
}
