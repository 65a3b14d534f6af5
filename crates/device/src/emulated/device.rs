//! The wrapper: a [`Device`] that lets another do the work and takes the time that a profile
//! says.
//!
//! Guarantees: what the device below guarantees; no operation ends before the profile's time.
//! Assumes that the one below is faster, which is measured when it is opened on the machine's
//! clock; operations that the one below made late are counted.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;

use super::model::{Access, End, Model, Request};
use super::placement::{Placement, Space};
use super::profiles::EmulatedProfile;
use super::reads::{Driven, Pending, Queue};
use super::speed::refuse_what_is_faster;
use super::time::Time;
use crate::device::check_name;
use crate::{
    Device, DeviceCounters, DeviceFile, DeviceProfile, OpenMode, ReadRequest, SimulatedClock,
};

/// A device that behaves as its profile says, over another that does the work.
pub struct EmulatedDevice {
    below: Arc<dyn Device>,
    driven: Arc<Driven>,
    space: Arc<Mutex<Space>>,
    pub(super) placements: Mutex<HashMap<String, Arc<Placement>>>,
}

/// What emulation took beside the waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulationCounts {
    /// Reads, writes and syncs that were emulated.
    pub operations: u64,
    /// Those that the device below ended later than the profile says.
    pub late: u64,
    /// How long threads spun, for waits that are too short to sleep.
    pub spun: Duration,
}

pub(super) struct Shared {
    pub model: Mutex<Model>,
    pub time: Time,
    pub counters: DeviceCounters,
    pub queue: Queue,
    profile: EmulatedProfile,
    operations: AtomicU64,
    late: AtomicU64,
}

impl EmulatedDevice {
    /// Emulates over the machine's clock.
    ///
    /// # Errors
    /// `Unsupported` if the device below is slower than the profile; the text says which of its
    /// figures is, and what to do. Else the error of the device below.
    pub fn new(below: Arc<dyn Device>, profile: EmulatedProfile) -> io::Result<EmulatedDevice> {
        refuse_what_is_faster(&*below, &profile)?;
        Self::over(below, profile, Time::of_the_machine())
    }

    /// Emulates over a simulator's clock, which every operation moves on. For one thread.
    ///
    /// # Errors
    /// None so far.
    pub fn simulated(
        below: Arc<dyn Device>,
        profile: EmulatedProfile,
        clock: SimulatedClock,
    ) -> io::Result<EmulatedDevice> {
        Self::over(below, profile, Time::of_a_simulator(clock))
    }

    fn over(below: Arc<dyn Device>, profile: EmulatedProfile, time: Time) -> io::Result<Self> {
        let shared = Shared {
            model: Mutex::new(Model::new(profile.clone())),
            time,
            counters: DeviceCounters::default(),
            queue: Queue::default(),
            profile,
            operations: AtomicU64::new(0),
            late: AtomicU64::new(0),
        };
        Ok(EmulatedDevice {
            below,
            driven: Arc::new(Driven::new(shared)?),
            space: Arc::default(),
            placements: Mutex::default(),
        })
    }

    /// What emulation took so far.
    #[must_use]
    pub fn counts(&self) -> EmulationCounts {
        let shared = &self.driven.shared;
        EmulationCounts {
            operations: shared.operations.load(Relaxed),
            late: shared.late.load(Relaxed),
            spun: shared.time.spun(),
        }
    }

    fn file(&self, below: Arc<dyn DeviceFile>, placement: Arc<Placement>) -> Arc<dyn DeviceFile> {
        Arc::new(EmulatedFile {
            below,
            placement,
            driven: Arc::clone(&self.driven),
        })
    }
}

impl Shared {
    pub fn arrive(&self, operation: Access, place: u64, bytes: u64) -> u64 {
        self.operations.fetch_add(1, Relaxed);
        let request = Request {
            operation,
            place,
            bytes,
        };
        // Under the lock, so that requests arrive in the order of their times.
        let mut model = self.model.lock();
        model.arrive(self.time.now_ns(), request)
    }

    pub fn since(&self, began_ns: u64) -> Duration {
        Duration::from_nanos(self.time.now_ns().saturating_sub(began_ns))
    }

    /// Lets the device below act, and waits for what the profile says since it began.
    fn take_time<T>(
        &self,
        operation: Access,
        place: u64,
        bytes: u64,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let ticket = self.arrive(operation, place, bytes);
        let result = act();
        loop {
            let now = self.time.now_ns();
            let end = self.model.lock().end(now, ticket);
            match end {
                End::At(end) => {
                    if now > end && !self.time.is_simulated() {
                        self.late.fetch_add(1, Relaxed);
                    }
                    self.time.wait_until(end);
                    return result;
                }
                End::NotBefore(then) => self.time.wait_until(then),
            }
        }
    }

    fn sync(&self, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let began = self.time.now_ns();
        let outstanding = self.counters.begin();
        let result = self.take_time(Access::Sync, 0, 0, act);
        self.counters.end(outstanding);
        match result {
            Ok(()) => self.counters.synced(self.since(began)),
            Err(_) => self.counters.error(),
        }
        result
    }
}

impl Device for EmulatedDevice {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DeviceFile>> {
        check_name(name)?;
        let below = self.below.open(name, mode)?;
        let mut placements = self.placements.lock();
        let placement = placements
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Placement::new(&self.space)));
        Ok(self.file(below, Arc::clone(placement)))
    }

    fn temporary(&self) -> io::Result<Arc<dyn DeviceFile>> {
        let below = self.below.temporary()?;
        Ok(self.file(below, Arc::new(Placement::new(&self.space))))
    }

    fn remove_temporary(&self) -> io::Result<()> {
        self.below.remove_temporary()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.below.list()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.below.rename(from, to)?;
        let mut placements = self.placements.lock();
        if let Some(placement) = placements.remove(from) {
            placements.insert(to.to_owned(), placement);
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.below.remove(name)?;
        self.placements.lock().remove(name);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.driven.shared.sync(|| self.below.sync_directory())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.below.free_bytes()
    }

    fn counters(&self) -> &DeviceCounters {
        &self.driven.shared.counters
    }

    fn profile(&self) -> DeviceProfile {
        self.driven.shared.profile.summary()
    }

    fn path(&self) -> Option<&Path> {
        self.below.path()
    }

    fn describe(&self) -> String {
        let kind = self.driven.shared.profile.kind;
        format!("emulated {} over {}", kind.name(), self.below.describe())
    }
}

struct EmulatedFile {
    below: Arc<dyn DeviceFile>,
    placement: Arc<Placement>,
    driven: Arc<Driven>,
}

impl DeviceFile for EmulatedFile {
    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.below.set_len(bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let shared = &self.driven.shared;
        shared.counters.read_started();
        let outstanding = shared.counters.begin();
        let began = shared.time.now_ns();
        let bytes = buffer.len();
        let place = self.placement.place(offset);
        let result = shared.take_time(Access::Read, place, bytes as u64, || {
            self.below.read_at(buffer, offset)
        });
        shared.counters.end(outstanding);
        let read = result.is_ok().then_some(bytes);
        shared.counters.read_finished(read, shared.since(began));
        result
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let shared = &self.driven.shared;
        let outstanding = shared.counters.begin();
        let place = self.placement.place(offset);
        let result = shared.take_time(Access::Write, place, bytes.len() as u64, || {
            self.below.write_at(bytes, offset)
        });
        shared.counters.end(outstanding);
        match result {
            Ok(()) => shared.counters.wrote(bytes.len()),
            Err(_) => shared.counters.error(),
        }
        result
    }

    fn sync_data(&self) -> io::Result<()> {
        self.driven.shared.sync(|| self.below.sync_data())
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.below.punch_hole(offset, bytes)
    }

    fn submit_reads(&self, requests: Vec<ReadRequest>) {
        let shared = &self.driven.shared;
        let mut forwarded = Vec::with_capacity(requests.len());
        for request in requests {
            shared.counters.read_started();
            let outstanding = shared.counters.begin();
            let began_ns = shared.time.now_ns();
            let place = self.placement.place(request.offset);
            let ticket = shared.read_arrives(place, request.buffer.len());
            let driven = Arc::clone(&self.driven);
            let completion = request.completion;
            forwarded.push(ReadRequest {
                offset: request.offset,
                buffer: request.buffer,
                completion: Box::new(move |result| {
                    driven.shared.hand_over(Pending {
                        ticket,
                        began_ns,
                        outstanding,
                        result,
                        completion,
                    });
                }),
            });
        }
        shared.drive_after(|| self.below.submit_reads(forwarded));
    }
}
