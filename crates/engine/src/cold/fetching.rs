//! Reading evicted tuples for a statement: waiting for room for them ([`crate::memory::fetched`]), then
//! for the device.

use crate::ground::error::{Error, Result};
use crate::ground::wait::WaitsFor;
use crate::memory::account::WAIT_MAX;
use crate::memory::fetched::{Fetched, WAIT_LONGEST};
use crate::parts::Parts;
use crate::rows::fetch::{PlannedRead, span_bytes};
use crate::transaction::RunOptions;

impl Parts {
    /// Reads evicted tuples, as many as a statement may have beside the table
    /// ([`Error::OutOfMemory`]). A statement that is cancelled meanwhile leaves the
    /// reads to themselves: their buffers are the device's until they are over.
    pub(crate) async fn fetch(
        &self,
        options: &RunOptions,
        reads: &[PlannedRead],
        fetched: &mut Fetched,
    ) -> Result<()> {
        if let Some(counts) = &options.reads {
            counts.fetched(reads.len() as u64);
        }
        let most = self.memory().fetched_limit();
        // What comes beyond the most that it may have is an error.
        let bytes = span_bytes(reads).min(most.saturating_sub(fetched.counted()));
        let is_large = fetched.is_large_with(bytes, most) && !self.works_alone();
        self.count_fetched(options, bytes, fetched, is_large)
            .await?;
        // Rows leave for them first: they come faster than readings are taken.
        let _expected = is_large.then(|| self.expect_memory(bytes));
        if is_large {
            self.interruptible(options, self.wait_for_memory())
                .await??;
        }
        let _note = options.cancel.note_wait(WaitsFor::Read);
        self.interruptible(options, self.fetcher().fetch(reads, fetched, most))
            .await??;
        fetched.settle();
        Ok(())
    }

    /// Counts what reads may bring; what is large when there is room for it.
    async fn count_fetched(
        &self,
        options: &RunOptions,
        bytes: u64,
        fetched: &mut Fetched,
        is_large: bool,
    ) -> Result<()> {
        let share = &self.memory().fetched;
        if !is_large {
            share.take(bytes);
        } else if !self.try_take_fetched(bytes, fetched) {
            let _note = options.cancel.note_wait(WaitsFor::Memory);
            let longest = self.now() + WAIT_LONGEST;
            let mut until = self.now() + WAIT_MAX;
            let mut grants = share.grants();
            loop {
                let freed = share.freed.listen();
                if self.try_take_fetched(bytes, fetched) {
                    break;
                }
                match self.or_interrupted(options, Some(until), freed).await {
                    Err(Error::LockTimeout) => {
                        let seen = std::mem::replace(&mut grants, share.grants());
                        if seen == grants || self.now() >= longest {
                            return Err(all_taken(bytes));
                        }
                        until = (self.now() + WAIT_MAX).min(longest);
                    }
                    waited => waited?,
                }
            }
        }
        fetched.count(share, bytes);
        Ok(())
    }

    /// Takes `bytes` more from the share, if it may have them now.
    fn try_take_fetched(&self, bytes: u64, fetched: &mut Fetched) -> bool {
        let (share, room) = (&self.memory().fetched, self.memory().fetched_room());
        match fetched.is_empty() {
            true => share.try_take(bytes, room),
            false => share.try_take_more(fetched, bytes, room),
        }
    }
}

#[cold]
fn all_taken(bytes: u64) -> Error {
    Error::OutOfMemory(format!(
        "the evicted rows that the statement needs take up to {bytes} bytes, and other statements \
         have what there is for theirs, at most a quarter of memory_limit: try again, or take fewer at a time"
    ))
}
