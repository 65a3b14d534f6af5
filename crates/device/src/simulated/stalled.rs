//! Asynchronous reads of a simulated device, at once or when they are let go.
//!
//! A read that stalls sees what the file holds when it is let go, not when it was asked
//! for: space that was given to somebody else meanwhile shows.

use std::sync::Arc;
use std::time::Duration;

use super::file::SimulatedFile;
use super::{Shared, SimulatedDevice};
use crate::device::{not_at_a_sector, past_the_end};
use crate::{ReadRequest, SECTOR_BYTES, Ticket};

/// A read that was asked for and has no outcome yet.
pub(super) struct StalledRead {
    name: String,
    inode: u64,
    generation: u64,
    request: ReadRequest,
    ticket: Ticket,
}

impl StalledRead {
    pub fn new(
        name: &str,
        inode: u64,
        generation: u64,
        request: ReadRequest,
        ticket: Ticket,
    ) -> Self {
        StalledRead {
            name: name.to_owned(),
            inode,
            generation,
            request,
            ticket,
        }
    }

    /// Reads, and tells whoever asked. The device's locks must not be held.
    pub fn complete(self, device: &Arc<Shared>) {
        let (offset, mut buffer) = (self.request.offset, self.request.buffer);
        let result = if offset.is_multiple_of(SECTOR_BYTES as u64) {
            let file = SimulatedFile {
                device: Arc::clone(device),
                name: self.name.clone(),
                inode: self.inode,
                generation: self.generation,
                is_handle: false,
            };
            match file.read(&mut buffer, offset) {
                Ok(0) if !buffer.is_empty() => Err(past_the_end(&self.name, offset, buffer.len())),
                other => other.map(|_| ()),
            }
        } else {
            Err(not_at_a_sector(&self.name, offset))
        };
        let bytes = result.is_ok().then_some(buffer.len());
        device.counters.end(self.ticket);
        device.counters.read_finished(bytes, Duration::ZERO);
        (self.request.completion)(result.map(|()| buffer));
    }
}

impl SimulatedDevice {
    /// Lets asynchronous reads stall from now on, until [`SimulatedDevice::let_go`]; or
    /// lets all go that do, and stalls none any more. A crash ends it, too.
    pub fn set_stalls(&self, stalls: bool) {
        self.shared.state.lock().stalls = stalls;
        if !stalls {
            while self.let_go(0) {}
        }
    }

    /// How many reads have no outcome yet.
    #[must_use]
    pub fn stalled_reads(&self) -> usize {
        self.shared.stalled.lock().len()
    }

    /// Ends the `number`-th of the stalled reads (counted around). False if there is none.
    pub fn let_go(&self, number: usize) -> bool {
        let read = {
            let mut stalled = self.shared.stalled.lock();
            if stalled.is_empty() {
                return false;
            }
            let number = number % stalled.len();
            stalled.remove(number)
        };
        self.shared.state.lock().counts.stalled_reads += 1;
        read.complete(&self.shared);
        true
    }
}
