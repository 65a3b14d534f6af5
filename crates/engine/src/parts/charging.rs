//! Charging what a client causes, and waiting for the room ([`crate::memory::account`]): for others to
//! give theirs back, in the order of coming, and for rows to leave memory.

use std::sync::Arc;
use std::time::Duration;

use crate::ground::error::{Error, Result};
use crate::memory::account::{Charge, ClientPool, Ticket, WAIT_MAX};
use crate::parts::Parts;
use crate::transaction::RunOptions;

/// A charge above this waits until rows have left for it.
const BURST_BYTES: u64 = 256 << 10;

impl Parts {
    /// Waits while memory is full. What takes memory in bursts, unlike statements
    /// of the short path, calls it before each.
    ///
    /// # Errors
    /// As [`Database::make_room`].
    pub async fn wait_for_room(&self) -> Result<()> {
        // The evictor, which takes the readings, may be waiting for the device.
        self.memory.read_resident();
        self.wait_for_memory().await?;
        self.check_growth()
    }

    /// The pool of what clients cause.
    pub fn clients(&self) -> &Arc<ClientPool> {
        &self.memory.clients
    }

    /// Lets `charge` grow by `bytes`, waiting for others to give room, in the order of
    /// coming, and for rows to leave memory. It is counted against the pool at once;
    /// the memory is there to be taken when this returns.
    ///
    /// # Errors
    /// 53200 for more than one account may hold, or after [`WAIT_MAX`]; 57014 on
    /// cancel and after the statement's deadline.
    pub async fn charge_waiting(
        &self,
        charge: &mut Charge,
        bytes: u64,
        options: &RunOptions,
    ) -> Result<()> {
        let waits = self.charge_within(charge, bytes, options, WAIT_MAX);
        waits.await
    }

    /// As [`Parts::charge_waiting`], for as long as `patience`: for who holds nothing
    /// that others wait for.
    ///
    /// # Errors
    /// As there.
    pub async fn charge_within(
        &self,
        charge: &mut Charge,
        bytes: u64,
        options: &RunOptions,
        patience: Duration,
    ) -> Result<()> {
        let (account, kind) = (charge.account().clone(), charge.kind());
        if !account.take_or_reclaim(kind, bytes) {
            let pool = account.pool();
            if account.total() + bytes > pool.account_max() || self.works_alone() {
                return Err(account.refusal(kind, bytes));
            }
            let until = self.now() + patience;
            let ticket = Ticket::enter(pool);
            loop {
                let freed = pool.freed.listen();
                if ticket.is_first() && account.take_or_reclaim(kind, bytes) {
                    break;
                }
                match self.or_interrupted(options, Some(until), freed).await {
                    Err(Error::LockTimeout) => return Err(account.refusal(kind, bytes)),
                    waited => waited?,
                }
            }
        }
        charge.has_grown(bytes);
        if bytes > BURST_BYTES {
            let room = self.make_room_beside(bytes);
            self.interruptible(options, room).await??;
        }
        Ok(())
    }

    /// Waits until rows have left for `bytes` that are about to be taken.
    async fn make_room_beside(&self, bytes: u64) -> Result<()> {
        let _expected = self.expect_memory(bytes);
        self.wait_for_room().await
    }

    /// Counts memory that is about to be taken, until this is dropped.
    pub(crate) fn expect_memory(&self, bytes: u64) -> Expected<'_> {
        self.memory.expect(bytes);
        Expected(self, bytes)
    }
}

/// See [`Parts::expect_memory`].
pub(crate) struct Expected<'a>(&'a Parts, u64);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.0.memory.no_longer_expect(self.1);
    }
}
