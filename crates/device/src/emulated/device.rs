//! The wrapper: a [`Device`] that lets another do the work and takes the time that a profile
//! says.
//!
//! Guarantees: what the device below guarantees; no operation ends before the profile's time.
//! A write of a disk is on the platter when it ends: where its time is long enough the device
//! below syncs within it, so that a sync that follows is as short as the profile's.
//! Assumes that the one below is faster, which is measured when it is opened on the machine's
//! clock; operations that end late are counted.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

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
    /// Those that took more than a tenth longer than the profile says: the device below is too
    /// slow, or the machine too busy.
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
    /// What a sync of the device below may take; never, on a simulator's clock.
    sync_below_ns: u64,
    /// Whether requests take the profile's time.
    is_paced: AtomicBool,
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
        let sync_ns = refuse_what_is_faster(&*below, &profile)?;
        // Syncs vary; most take less than twice the median.
        Self::over(below, profile, Time::of_the_machine(), 2 * sync_ns)
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
        Self::over(below, profile, Time::of_a_simulator(clock), u64::MAX)
    }

    fn over(
        below: Arc<dyn Device>,
        profile: EmulatedProfile,
        time: Time,
        sync_below_ns: u64,
    ) -> io::Result<Self> {
        let shared = Shared {
            model: Mutex::new(Model::new(profile.clone())),
            time,
            counters: DeviceCounters::default(),
            queue: Queue::default(),
            profile,
            sync_below_ns,
            is_paced: AtomicBool::new(true),
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

    /// The profile that it keeps to.
    #[must_use]
    pub fn emulates(&self) -> &EmulatedProfile {
        &self.driven.shared.profile
    }

    /// Whether requests that begin from now on take the profile's time, as they do at first, or
    /// no longer than the device below does: so that data can be loaded and memory be warmed
    /// before something is measured.
    pub fn set_paced(&self, is_paced: bool) {
        self.driven.shared.is_paced.store(is_paced, Relaxed);
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

/// When an operation began and ended, in nanoseconds.
struct Took(u64, u64);

impl Took {
    fn duration(&self) -> Duration {
        Duration::from_nanos(self.1.saturating_sub(self.0))
    }
}

impl Shared {
    /// A request arrives: its ticket, and now.
    pub fn arrive(&self, operation: Access, place: u64, bytes: u64) -> (u64, u64) {
        self.operations.fetch_add(1, Relaxed);
        let request = Request {
            operation,
            place,
            bytes,
        };
        // Under the lock, so that requests arrive in the order of their times.
        let mut model = self.model.lock();
        let now = self.time.now_ns();
        (model.arrive(now, request), now)
    }

    /// Counts an operation that should have been over at `end` and is now, if that is late.
    pub fn note_late(&self, began: u64, end: u64, now: u64) {
        if now.saturating_sub(end) * 10 > end.saturating_sub(began) {
            self.late.fetch_add(1, Relaxed);
        }
    }

    /// Lets the device below act, waits for what the profile says since it began, and lets it
    /// do `meanwhile` what takes `meanwhile_ns` if there is the time.
    fn take_time(
        &self,
        operation: Access,
        (place, bytes): (u64, usize),
        act: impl FnOnce() -> io::Result<()>,
        (meanwhile, meanwhile_ns): (impl FnOnce() -> io::Result<()>, u64),
    ) -> (io::Result<()>, Took) {
        if !self.is_paced.load(Relaxed) {
            let began = self.time.now_ns();
            let result = act();
            return (result, Took(began, self.time.now_ns()));
        }
        let (ticket, began) = self.arrive(operation, place, bytes as u64);
        let mut result = act();
        let mut meanwhile = Some(meanwhile);
        loop {
            let now = self.time.now_ns();
            let end = self.model.lock().end(now, ticket);
            let (End::At(then) | End::NotBefore(then)) = end;
            if then.saturating_sub(now) > meanwhile_ns
                && result.is_ok()
                && let Some(act) = meanwhile.take()
            {
                result = act();
            }
            let ended = self.time.wait_until(then);
            if let End::At(end) = end {
                self.note_late(began, end, ended);
                return (result, Took(began, ended));
            }
        }
    }

    /// Waits for what the units take that were touched since `began`: whole ones, of memory its
    /// cache lines.
    fn touched(&self, began: u64, (place, bytes): (u64, usize)) {
        self.operations.fetch_add(1, Relaxed);
        let unit = self.profile.unit_bytes;
        let first = place - place % unit;
        let request = Request {
            operation: Access::Read,
            place: first,
            bytes: place + bytes as u64 - first,
        };
        let mut model = self.model.lock();
        let ticket = model.arrive(began, request);
        let (End::At(end) | End::NotBefore(end)) = model.end(began, ticket);
        drop(model);
        let ended = self.time.wait_until(end);
        self.note_late(began, end, ended);
    }

    fn sync(&self, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let outstanding = self.counters.begin();
        let nothing = (|| Ok(()), u64::MAX);
        let (result, took) = self.take_time(Access::Sync, (0, 0), act, nothing);
        self.counters.end(outstanding);
        match result {
            Ok(()) => self.counters.synced(took.duration()),
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
        let result = self.below.set_len(bytes);
        self.placement.changed();
        result
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let shared = &self.driven.shared;
        shared.counters.read_started();
        let outstanding = shared.counters.begin();
        let bytes = buffer.len();
        let (result, took) = shared.take_time(
            Access::Read,
            (self.placement.place(offset), bytes),
            || self.below.read_at(buffer, offset),
            (|| Ok(()), u64::MAX),
        );
        shared.counters.end(outstanding);
        let read = result.is_ok().then_some(bytes);
        shared.counters.read_finished(read, took.duration());
        result
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let shared = &self.driven.shared;
        let outstanding = shared.counters.begin();
        let write = || {
            let result = self.below.write_at(bytes, offset);
            self.placement.changed();
            result
        };
        let sync = || self.placement.sync(|| self.below.sync_data());
        let (result, _) = shared.take_time(
            Access::Write,
            (self.placement.place(offset), bytes.len()),
            write,
            (sync, shared.sync_below_ns),
        );
        shared.counters.end(outstanding);
        match result {
            Ok(()) => shared.counters.wrote(bytes.len()),
            Err(_) => shared.counters.error(),
        }
        result
    }

    fn sync_data(&self) -> io::Result<()> {
        let sync = || self.placement.sync(|| self.below.sync_data());
        self.driven.shared.sync(sync)
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let result = self.below.punch_hole(offset, bytes);
        self.placement.changed();
        result
    }

    fn look(
        &self,
        offset: u64,
        bytes: usize,
        see: &mut dyn FnMut(&[u8]) -> usize,
    ) -> io::Result<()> {
        let shared = &self.driven.shared;
        if !shared.profile.kind.is_memory() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let began = shared.time.now_ns();
        let mut touched = 0;
        self.below.look(offset, bytes, &mut |there| {
            touched = see(there);
            touched
        })?;
        if shared.is_paced.load(Relaxed) {
            let place = self.placement.place(offset);
            shared.touched(began, (place, touched));
        }
        Ok(())
    }

    fn submit_reads(&self, requests: Vec<ReadRequest>) {
        let shared = &self.driven.shared;
        if !shared.is_paced.load(Relaxed) {
            return self.below.submit_reads(self.counted(requests));
        }
        let mut forwarded = Vec::with_capacity(requests.len());
        for request in requests {
            shared.counters.read_started();
            let outstanding = shared.counters.begin();
            let place = self.placement.place(request.offset);
            let bytes = request.buffer.len() as u64;
            let (ticket, began_ns) = shared.arrive(Access::Read, place, bytes);
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

impl EmulatedFile {
    /// Reads that take what they take, counted as this device's.
    fn counted(&self, requests: Vec<ReadRequest>) -> Vec<ReadRequest> {
        let counted = requests.into_iter().map(|request| {
            let driven = Arc::clone(&self.driven);
            driven.shared.counters.read_started();
            let outstanding = driven.shared.counters.begin();
            let began = Instant::now();
            let completion = request.completion;
            ReadRequest {
                offset: request.offset,
                buffer: request.buffer,
                completion: Box::new(move |result| {
                    let bytes = result.as_ref().ok().map(|buffer| buffer.len());
                    let counters = &driven.shared.counters;
                    counters.end(outstanding);
                    counters.read_finished(bytes, began.elapsed());
                    completion(result);
                }),
            }
        });
        counted.collect()
    }
}
