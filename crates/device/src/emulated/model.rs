//! When a request of an emulated device is over: a pure model. It has no clock; whoever asks
//! says what time it is, in nanoseconds, and time never goes back.
//!
//! A request arrives and gets a ticket. With channels its end is known at once. On a disk it
//! is known when the head begins with it; until then the model says when to ask again.

use std::collections::HashMap;

use super::mechanics::{Disk, nanoseconds};
use super::profiles::EmulatedProfile;
use crate::random::SplitMix64;

/// What is asked of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// What was written is made durable.
    Sync,
}

/// A request: what, where on the device, and how many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub operation: Access,
    pub place: u64,
    pub bytes: u64,
}

/// What is known of a request's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is over then. The ticket is not known any more.
    At(u64),
    /// Ask again then.
    NotBefore(u64),
}

/// A device's state.
#[derive(Debug)]
pub(super) struct Model {
    profile: EmulatedProfile,
    now: u64,
    tickets: u64,
    ends: HashMap<u64, u64>,
    random: SplitMix64,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// When each channel is free, and when the wire that they share is.
    Channels(Vec<u64>, u64),
    Disk(Disk),
}

impl Model {
    pub fn new(profile: EmulatedProfile) -> Model {
        let work = match profile.mechanics {
            Some(_) => Work::Disk(Disk::new()),
            None => Work::Channels(vec![0; profile.channels.max(1)], 0),
        };
        Model {
            profile,
            now: 0,
            tickets: 0,
            ends: HashMap::new(),
            random: SplitMix64::new(0x656d_756c),
            work,
        }
    }

    /// A request arrives: its ticket.
    pub fn arrive(&mut self, now: u64, request: Request) -> u64 {
        self.pass(now);
        let ticket = self.tickets;
        self.tickets += 1;
        let request = Request {
            bytes: self.profile.whole_units(request.bytes),
            ..request
        };
        let base = self.base_ns(request.operation);
        let now = self.now;
        match (&mut self.work, request.operation) {
            (Work::Channels(channels, wire), Access::Read | Access::Write) => {
                let end = through_a_channel(&self.profile, channels, wire, now, base, request);
                self.ends.insert(ticket, end);
            }
            (Work::Disk(disk), Access::Read | Access::Write) => {
                disk.arrive(now, ticket, request);
            }
            (work, Access::Sync) => {
                if let Work::Disk(disk) = work {
                    disk.sync();
                }
                self.ends.insert(ticket, now + base);
            }
        }
        ticket
    }

    /// What is known of a request's end by now.
    pub fn end(&mut self, now: u64, ticket: u64) -> End {
        self.pass(now);
        match (self.ends.remove(&ticket), &self.work) {
            (Some(end), _) => End::At(end),
            (None, Work::Disk(disk)) => End::NotBefore(disk.free_at().max(self.now)),
            // A ticket that nobody gave out, or that was asked for twice.
            (None, Work::Channels(..)) => End::At(self.now),
        }
    }

    /// Time passes: the disk begins what it has time for.
    fn pass(&mut self, now: u64) {
        self.now = self.now.max(now);
        if let Work::Disk(disk) = &mut self.work {
            while let Some((ticket, end)) = disk.begin(self.now, &self.profile) {
                self.ends.insert(ticket, end);
            }
        }
    }

    fn base_ns(&mut self, operation: Access) -> u64 {
        let base = self.profile.base_ns(operation);
        let spread = base * self.profile.spread_percent / 100;
        if spread == 0 || operation == Access::Sync {
            return base;
        }
        base - spread + self.random.below(2 * spread + 1)
    }
}

/// The request goes to the channel that is free first, and its bytes over the wire that all
/// share: when it is over. The wire has room for a request's bytes at any time since its begin.
fn through_a_channel(
    profile: &EmulatedProfile,
    channels: &mut [u64],
    wire: &mut u64,
    now: u64,
    base: u64,
    request: Request,
) -> u64 {
    let Some(channel) = channels.iter_mut().min() else {
        return now;
    };
    let begin = now.max(*channel);
    let rate = profile.rate(request.operation);
    let alone = begin + base + nanoseconds(request.bytes, profile.request_rate.min(rate));
    *wire = begin.max(*wire) + nanoseconds(request.bytes, rate);
    *channel = alone.max(*wire);
    *channel
}

#[cfg(test)]
mod tests;
