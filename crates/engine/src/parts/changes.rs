//! What changes take beside the tables until they are committed or taken back: images to undo
//! them, overlays, locks, savepoints, and the log's record, which is there twice. All
//! transactions together have one share of `memory_limit` for it ([`ChargeKind::Changes`]), and
//! what each takes of that is charged to its session's account before it is allocated.
//!
//! Guarantees: a run that holds its partitions never waits, and never takes what is not there.
//! It asks by steps. Where the share or memory has no room it is taken back
//! ([`Obstacle::Memory`](crate::access::Obstacle)). It waits for as much as it has come to need
//! and half as much again, while it holds nothing of the tables, and runs again with that. Rows
//! that it brings into memory are no part of the share, since they can leave later, but there
//! must be room for them, too. What one transaction may never have is refused at once (53200),
//! and who waits in vain is told after [`WAIT_MAX`].
//!
//! What small runs take costs two additions: as many as there are threads run at a time.

use crate::ground::error::{Error, Result};
use crate::ground::wait::WaitsFor;
use crate::memory::account::{Account, Charge, ChargeKind, WAIT_MAX};
use crate::parts::Parts;
use crate::parts::charging::Expected;
use crate::transaction::{RunOptions, TxnState};

/// A run may hold so much, and bring so much into memory, without asking, in bytes.
const RUN_FREE_BYTES: u64 = 128 << 10;
/// As much an open transaction: it is in the charge of its session.
const TRANSACTION_FREE_BYTES: u64 = 8 << 10;
/// A run asks for a quarter of what it has, between these, in bytes.
const STEP_BYTES_MIN: u64 = 64 << 10;
const STEP_BYTES_MAX: u64 = 4 << 20;
/// What a run lacks, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Need {
    /// Beside the tables, until it ends.
    pub held: u64,
    /// Of rows that it brings into memory.
    pub rows: u64,
    /// Beside the tables, until its transaction ends.
    pub kept: u64,
}

/// What a run has taken, and may take without asking, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// Beside the tables.
    pub held: u64,
    pub held_max: u64,
    /// Of rows that it has brought into memory.
    pub rows: u64,
    pub rows_max: u64,
}

impl Taken {
    /// Of a run that is bounded, or charged, otherwise.
    pub const UNBOUNDED: Taken = Taken {
        held: 0,
        held_max: u64::MAX,
        rows: 0,
        rows_max: u64::MAX,
    };

    /// Counts what is about to be taken; whether it has to be asked for.
    #[inline]
    pub fn count(&mut self, held: usize, rows: usize) -> bool {
        self.held += held as u64;
        self.rows += rows as u64;
        self.held > self.held_max || self.rows > self.rows_max
    }
}

/// What a run has been given, from one try to the next.
#[derive(Default)]
pub(crate) struct Grant {
    charge: Option<Charge>,
    /// Room for rows, which was made while it held nothing.
    rows: u64,
}

impl Grant {
    /// What a run that begins may take without asking.
    #[inline]
    pub fn beginning(&self) -> Taken {
        Taken {
            held_max: self.held_max(),
            rows_max: self.rows.max(RUN_FREE_BYTES),
            ..Taken::UNBOUNDED
        }
    }

    #[inline]
    fn held_max(&self) -> u64 {
        self.charged().max(RUN_FREE_BYTES)
    }

    /// What is charged.
    pub fn charged(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::bytes)
    }

    /// Under the locks of a run that has come to take so much: lets it go on if there is room.
    pub fn try_go_on(
        &mut self,
        parts: &Parts,
        account: Option<&Account>,
        taken: &mut Taken,
    ) -> Result<bool> {
        let held = taken.held;
        if held > taken.held_max {
            check_share(parts, held)?;
            let charge = self.charge.get_or_insert_with(|| nothing(parts, account));
            if !try_charge(parts, charge, [held + step(held), held]) {
                return Ok(false);
            }
            taken.held_max = self.held_max();
        }
        if taken.rows > taken.rows_max {
            let next = taken.rows + step(taken.rows);
            if !has_room(parts, next - taken.rows_max) {
                return Ok(false);
            }
            taken.rows_max = next;
        }
        Ok(true)
    }
}

/// A charge of nothing to this account, or to one of its own.
pub(crate) fn nothing(parts: &Parts, account: Option<&Account>) -> Charge {
    match account {
        Some(account) => account.nothing(ChargeKind::Changes),
        None => parts.memory.clients.open().nothing(ChargeKind::Changes),
    }
}

fn step(bytes: u64) -> u64 {
    (bytes / 4).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX)
}

/// Charges the first of these amounts that there is room for.
pub(crate) fn try_charge(parts: &Parts, charge: &mut Charge, amounts: [u64; 2]) -> bool {
    let before = charge.bytes();
    amounts.into_iter().any(|bytes| {
        let more = bytes.saturating_sub(before);
        has_room(parts, more) && charge.resize(bytes.max(before)).is_ok()
    })
}

/// Whether so much may be taken at once, under locks.
pub(crate) fn has_room(parts: &Parts, bytes: u64) -> bool {
    // Who works alone lets rows leave when he wants to.
    parts.works_alone() || parts.memory.has_room_for(bytes)
}

/// Refuses what one transaction may never hold.
fn check_share(parts: &Parts, bytes: u64) -> Result<()> {
    let limit = parts.memory.transaction_limit() as u64;
    match bytes <= limit {
        true => Ok(()),
        false => Err(beyond_share(bytes, limit)),
    }
}

#[cold]
fn beyond_share(bytes: u64, limit: u64) -> Error {
    Error::OutOfMemory(format!(
        "what one transaction changes, locks and notes, and its savepoints, may take {limit} \
         bytes, a quarter of memory_limit, and this one needs {bytes} or more"
    ))
}

#[cold]
fn all_taken(parts: &Parts, bytes: u64) -> Error {
    Error::OutOfMemory(format!(
        "what the transaction changes at once needs {bytes} bytes more, and other transactions \
         hold {} of the {} that all may have together, a quarter of memory_limit",
        parts.memory.clients.changes.held(),
        parts.memory.transaction_limit(),
    ))
}

#[cold]
fn no_room(bytes: u64) -> Error {
    Error::OutOfMemory(format!(
        "there is no room in memory for the {bytes} bytes that the transaction changes at once: \
         what can leave has left"
    ))
}

impl TxnState {
    /// Counts bytes that the transaction keeps until it ends, before they are allocated; false,
    /// and nothing is counted, where all transactions together have no room for it.
    ///
    /// # Errors
    /// 53200 where one may not have so much.
    #[inline]
    pub fn try_keep(&mut self, parts: &Parts, bytes: usize) -> Result<bool> {
        if (self.bytes + bytes) as u64 > self.charged() && !self.try_charge(parts, bytes)? {
            return Ok(false);
        }
        self.bytes += bytes;
        Ok(true)
    }

    /// As [`TxnState::try_keep`], of what cannot wait.
    ///
    /// # Errors
    /// 53200 where there is no room.
    pub fn keep(&mut self, parts: &Parts, bytes: usize) -> Result<()> {
        match self.try_keep(parts, bytes)? {
            true => Ok(()),
            false => Err(all_taken(parts, bytes as u64)),
        }
    }

    /// What it may keep without asking.
    #[inline]
    fn charged(&self) -> u64 {
        let charged = self.charge.as_ref().map_or(0, Charge::bytes);
        charged.max(TRANSACTION_FREE_BYTES)
    }

    #[cold]
    fn try_charge(&mut self, parts: &Parts, bytes: usize) -> Result<bool> {
        let wanted = (self.bytes + bytes) as u64;
        check_share(parts, wanted)?;
        let account = self.account.as_ref();
        let charge = (self.charge).get_or_insert_with(|| nothing(parts, account));
        Ok(try_charge(
            parts,
            charge,
            [wanted + step(wanted) / 4, wanted],
        ))
    }

    /// Gives back what is charged for what it no longer keeps.
    pub fn settle(&mut self) {
        let kept = self.bytes as u64;
        if let Some(charge) = self.charge.as_mut().filter(|c| c.bytes() > kept) {
            // To less, which never fails.
            let _ = charge.resize(kept);
        }
    }
}

impl Parts {
    /// Waits for what a run needs, which was taken back for it. The room for its rows counts as
    /// taken until what is returned is dropped.
    ///
    /// # Errors
    /// 53200 where it may not have so much, or after [`WAIT_MAX`].
    pub(crate) async fn wait_to_change(
        &self,
        options: &RunOptions,
        grant: &mut Grant,
        txn: Option<&mut TxnState>,
        need: Need,
    ) -> Result<Expected<'_>> {
        // It runs from its beginning: what it came to was perhaps not all.
        let limit = self.memory.transaction_limit() as u64;
        let ample = |bytes: u64| bytes + bytes / 2;
        if need.held > 0 {
            check_share(self, need.held)?;
            let wanted = ample(need.held).min(limit);
            let account = options.account.as_ref();
            let charge = (grant.charge).get_or_insert_with(|| nothing(self, account));
            self.charge_changes(options, charge, wanted).await?;
        }
        if let Some(txn) = txn.filter(|_| need.kept > 0) {
            check_share(self, need.kept)?;
            let wanted = ample(need.kept).min(limit);
            let account = txn.account.as_ref();
            let charge = (txn.charge).get_or_insert_with(|| nothing(self, account));
            self.charge_changes(options, charge, wanted).await?;
        }
        grant.rows = grant.rows.max(ample(need.rows));
        self.room_to_change(options, grant.rows + grant.charged() + ample(need.kept))
            .await
    }

    /// Charges `bytes` in all, as soon as others have given room.
    async fn charge_changes(
        &self,
        options: &RunOptions,
        charge: &mut Charge,
        bytes: u64,
    ) -> Result<()> {
        let _note = options.cancel.note_wait(WaitsFor::Memory);
        let until = self.now() + WAIT_MAX;
        let share = &self.memory.clients.changes;
        let _waiting = share.wait();
        loop {
            let freed = share.freed.listen();
            if charge.bytes() >= bytes || charge.resize(bytes).is_ok() {
                return Ok(());
            }
            let lacking = bytes - charge.bytes();
            if self.works_alone() {
                return Err(all_taken(self, lacking));
            }
            match self.or_interrupted(options, Some(until), freed).await {
                Err(Error::LockTimeout) => return Err(all_taken(self, lacking)),
                waited => waited?,
            }
        }
    }

    /// Waits until rows have left for `bytes` that a run will take, whatever else could leave:
    /// they count as taken until what is returned is dropped.
    pub(crate) async fn room_to_change(
        &self,
        options: &RunOptions,
        bytes: u64,
    ) -> Result<Expected<'_>> {
        let expected = self.expect_memory(bytes);
        let _note = options.cancel.note_wait(WaitsFor::Memory);
        let until = self.now() + WAIT_MAX;
        self.memory.read_resident();
        loop {
            let freed = self.memory.freed.listen();
            if has_room(self, 0) {
                return Ok(expected);
            }
            self.check_open()?;
            self.check_growth()?;
            self.poke_evictor();
            self.counters.waited_for_memory();
            match self.or_interrupted(options, Some(until), freed).await {
                Err(Error::LockTimeout) => return Err(no_room(bytes)),
                waited => waited?,
            }
        }
    }

    /// A large record that was appended is in the log's buffers until it is written: waits for
    /// that whatever the statement would wait for, so that its charge lasts as long.
    pub(crate) async fn see_out(&self, charged: u64) {
        let is_large = charged > crate::memory::log_buffer_bytes(self.memory.limit()) as u64;
        if is_large && !self.works_alone() {
            // Whether it is durable others want to know.
            let _ = self.log.wait_durable(self.log.appended_lsn()).await;
        }
    }
}
