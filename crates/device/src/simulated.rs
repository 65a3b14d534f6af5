//! A device in memory that crashes, fails and fills up on request: what crash tests run on.
//!
//! Guarantees, as the strictest reading of POSIX and the kindest of devices: a file's data
//! and length are durable after its `sync_data`; names after `sync_directory`; a rename is
//! atomic. A crash keeps a random part of all else, piece by piece, and the first few of the
//! changes of names. A sync that fails loses a random part for good. All from one seed.
//!
//! Faults: a chosen operation fails, the device is full, everything stops at the n-th
//! operation. A bit flips, a write or read goes astray, is lost or cut short
//! ([`Fault`]). Asynchronous reads stall until they are let go, in any order.

mod clock;
mod damage;
mod faults;
mod file;
mod image;
mod stalled;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::device::check_name;
use crate::random::SplitMix64;
use crate::{
    Device, DeviceCounters, DeviceFile, DeviceKind, DeviceProfile, OpenMode, SECTOR_BYTES,
};
pub use clock::SimulatedClock;
pub use damage::read_damaged;
pub use faults::{Fault, FaultCounts};
use file::SimulatedFile;
use image::Inode;
use stalled::StalledRead;

/// What can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `open`
    Open,
    /// `list`
    List,
    /// `rename`
    Rename,
    /// `remove`
    Remove,
    /// `sync_directory`
    SyncDirectory,
    /// `read_at`, or one request of `submit_reads`
    Read,
    /// `write_at`
    Write,
    /// `set_len`
    SetLen,
    /// `punch_hole`
    PunchHole,
    /// `sync_data`
    Sync,
}

/// A device in memory. Clones are handles on the same device.
#[derive(Clone)]
pub struct SimulatedDevice {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    stalled: Mutex<Vec<StalledRead>>,
    counters: DeviceCounters,
}

/// What faults call files without a name.
const TEMPORARY_NAME: &str = "temporary";

type Names = BTreeMap<String, u64>;

enum NameChange {
    Set(String, u64),
    Rename(String, String),
    Remove(String),
}

struct State {
    names: Names,
    names_durable: Names,
    names_pending: Vec<NameChange>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    /// Counts crashes; handles from before one are dead.
    generation: u64,
    capacity_bytes: Option<u64>,
    atomic_write_bytes: u64,
    failures: Vec<(Operation, io::ErrorKind)>,
    /// Faults to come, and the beginning of the names of the files they are for.
    faults: Vec<(String, Fault)>,
    counts: FaultCounts,
    /// Asynchronous reads wait until they are let go.
    stalls: bool,
    operations: u64,
    halt_at: Option<u64>,
    halted: bool,
    random: SplitMix64,
}

/// Whether an operation that may go on is the one at which the device halts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Ordinary,
    Last,
}

impl SimulatedDevice {
    /// An empty device without limits.
    #[must_use]
    pub fn new() -> SimulatedDevice {
        SimulatedDevice {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    names: Names::new(),
                    names_durable: Names::new(),
                    names_pending: Vec::new(),
                    inodes: BTreeMap::new(),
                    next_inode: 0,
                    generation: 0,
                    capacity_bytes: None,
                    atomic_write_bytes: SECTOR_BYTES as u64,
                    failures: Vec::new(),
                    faults: Vec::new(),
                    counts: FaultCounts::default(),
                    stalls: false,
                    operations: 0,
                    halt_at: None,
                    halted: false,
                    random: SplitMix64::new(0),
                }),
                stalled: Mutex::default(),
                counters: DeviceCounters::default(),
            }),
        }
    }

    /// The power fails. A part of what was not synced survives, chosen by the seed; open
    /// files are dead, faults that were asked for are forgotten, and the device is ready.
    pub fn crash(&self, seed: u64) {
        let mut state = self.shared.state.lock();
        let mut random = SplitMix64::new(seed);
        let names_kept = random.below(state.names_pending.len() as u64 + 1) as usize;
        state.restart(names_kept, |inode, atomic_bytes| {
            inode.persist_some(&mut random, atomic_bytes);
        });
        state.random = random;
    }

    /// The power fails, and nothing survives but what was synced.
    pub fn crash_losing_all(&self) {
        let mut state = self.shared.state.lock();
        state.restart(0, |inode, _| inode.persist_nothing());
    }

    /// The next such operation fails with this error. Failures asked for more than once
    /// happen one after the other.
    ///
    /// A write that fails does nothing. A sync that fails makes some of the writes before it
    /// durable and loses the others for good, though they are seen until the crash.
    pub fn fail_next(&self, operation: Operation, kind: io::ErrorKind) {
        self.shared.state.lock().failures.push((operation, kind));
    }

    /// Sets how many bytes the files may take; `None` is no limit. Growing past it is
    /// `StorageFull`.
    pub fn set_capacity_bytes(&self, bytes: Option<u64>) {
        self.shared.state.lock().capacity_bytes = bytes;
    }

    /// Sets the unit that a crash keeps or loses as a whole (a sector at first); smaller
    /// ones tear sectors.
    ///
    /// # Panics
    /// When `bytes` is 0.
    pub fn set_atomic_write_bytes(&self, bytes: u64) {
        assert!(bytes > 0, "a write cannot be atomic in pieces of 0 bytes");
        self.shared.state.lock().atomic_write_bytes = bytes;
    }

    /// How many operations were done so far, not counting reads and lists.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.shared.state.lock().operations
    }

    /// Whether the device has halted.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.shared.state.lock().halted
    }

    /// Halts the device after this many more operations (not counting reads and lists): the
    /// next one after them fails, possibly done in part, and so does everything from then
    /// on, until `crash`.
    pub fn halt_after(&self, operations: u64) {
        let mut state = self.shared.state.lock();
        state.halt_at = Some(state.operations + operations);
    }

    /// It does not halt, if it was to later.
    pub fn forget_halt(&self) {
        let mut state = self.shared.state.lock();
        if !state.halted {
            state.halt_at = None;
        }
    }

    fn directory<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut State, Turn) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.shared.state.lock();
        let result = state.take_turn(operation).and_then(|turn| {
            let done = act(&mut state, turn)?;
            turn.end(done)
        });
        if result.is_err() {
            self.shared.counters.error();
        }
        result
    }
}

impl Default for SimulatedDevice {
    fn default() -> SimulatedDevice {
        SimulatedDevice::new()
    }
}

impl Turn {
    fn end<T>(self, done: T) -> io::Result<T> {
        match self {
            Turn::Ordinary => Ok(done),
            Turn::Last => Err(halted()),
        }
    }
}

fn halted() -> io::Error {
    io::Error::other("the simulated device has halted")
}

/// Files end where the kernel's signed offsets end.
fn check_size(end: Option<u64>) -> io::Result<()> {
    match end {
        Some(end) if i64::try_from(end).is_ok() => Ok(()),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{name}: no such file"))
}

impl State {
    fn take_turn(&mut self, operation: Operation) -> io::Result<Turn> {
        if self.halted {
            return Err(halted());
        }
        let mut turn = Turn::Ordinary;
        if !matches!(operation, Operation::Read | Operation::List) {
            if self.halt_at == Some(self.operations) {
                self.halted = true;
                self.counts.halts += 1;
                turn = Turn::Last;
            }
            self.operations += 1;
        }
        match self.failures.iter().position(|&(of, _)| of == operation) {
            Some(index) => {
                self.counts.failed_operations += 1;
                Err(self.failures.remove(index).1.into())
            }
            None => Ok(turn),
        }
    }

    fn restart(&mut self, names_kept: usize, mut decide: impl FnMut(&mut Inode, u64)) {
        for change in self.names_pending.drain(..).take(names_kept) {
            change.apply(&mut self.names_durable);
        }
        self.names_pending.clear();
        self.names = self.names_durable.clone();
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.inodes.retain(|number, _| named.contains(number));
        for inode in self.inodes.values_mut() {
            decide(inode, self.atomic_write_bytes);
            inode.restart();
            inode.open_handles = 0;
        }
        self.generation += 1;
        self.failures.clear();
        self.faults.clear();
        self.counts.crashes += 1;
        self.stalls = false;
        self.halt_at = None;
        self.halted = false;
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.names_pending.push(change);
    }

    /// Forgets files that no name and no handle leads to any more, not even after a crash.
    fn forget_unreachable(&mut self) {
        if self.names_pending.is_empty() {
            let named: BTreeSet<u64> = self.names.values().copied().collect();
            self.inodes
                .retain(|number, inode| inode.open_handles > 0 || named.contains(number));
        }
    }

    fn used_bytes(&self) -> u64 {
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.inodes
            .iter()
            .filter(|(number, inode)| inode.open_handles > 0 || named.contains(number))
            .map(|(_, inode)| inode.live().allocated_bytes())
            .fold(0, u64::saturating_add)
    }

    fn check_room(&mut self, growth_bytes: u64) -> io::Result<()> {
        match self.capacity_bytes {
            Some(capacity)
                if growth_bytes > 0
                    && self.used_bytes().saturating_add(growth_bytes) > capacity =>
            {
                self.counts.full += 1;
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Set(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            NameChange::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl Device for SimulatedDevice {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DeviceFile>> {
        check_name(name)?;
        let (inode, generation) = self.directory(Operation::Open, |state, _| {
            let number = match (state.names.get(name), mode) {
                (Some(_), OpenMode::CreateNew) => {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                (Some(&number), _) => number,
                (None, OpenMode::Existing) => return Err(not_found(name)),
                (None, _) => {
                    let number = state.next_inode;
                    state.next_inode += 1;
                    state.inodes.insert(number, Inode::default());
                    state.change_names(NameChange::Set(name.to_owned(), number));
                    number
                }
            };
            if let Some(inode) = state.inodes.get_mut(&number) {
                inode.open_handles += 1;
            }
            Ok((number, state.generation))
        })?;
        Ok(Arc::new(SimulatedFile {
            device: Arc::clone(&self.shared),
            name: name.to_owned(),
            inode,
            generation,
            is_handle: true,
        }))
    }

    fn temporary(&self) -> io::Result<Arc<dyn DeviceFile>> {
        let (inode, generation) = self.directory(Operation::Open, |state, _| {
            let number = state.next_inode;
            state.next_inode += 1;
            let inode = state.inodes.entry(number).or_default();
            inode.open_handles += 1;
            Ok((number, state.generation))
        })?;
        Ok(Arc::new(SimulatedFile {
            device: Arc::clone(&self.shared),
            name: TEMPORARY_NAME.to_owned(),
            inode,
            generation,
            is_handle: true,
        }))
    }

    fn remove_temporary(&self) -> io::Result<()> {
        // A crash has forgotten them.
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.directory(Operation::List, |state, _| {
            Ok(state.names.keys().cloned().collect())
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.directory(Operation::Rename, |state, _| {
            if !state.names.contains_key(from) {
                return Err(not_found(from));
            }
            if from != to {
                state.change_names(NameChange::Rename(from.to_owned(), to.to_owned()));
            }
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.directory(Operation::Remove, |state, _| {
            if !state.names.contains_key(name) {
                return Err(not_found(name));
            }
            state.change_names(NameChange::Remove(name.to_owned()));
            Ok(())
        })
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory(Operation::SyncDirectory, |state, turn| {
            // At the last turn the crash decides how many of the names survive.
            if turn == Turn::Ordinary {
                state.names_durable = state.names.clone();
                state.names_pending.clear();
                state.forget_unreachable();
            }
            Ok(())
        })?;
        self.shared.counters.synced(Duration::ZERO);
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.shared.state.lock();
        Ok(match state.capacity_bytes {
            Some(capacity) => capacity.saturating_sub(state.used_bytes()),
            None => u64::MAX,
        })
    }

    fn counters(&self) -> &DeviceCounters {
        &self.shared.counters
    }

    fn profile(&self) -> DeviceProfile {
        DeviceProfile {
            emulated: true,
            ..DeviceProfile::typical(DeviceKind::Generic)
        }
    }

    fn describe(&self) -> String {
        "simulated, in memory".to_owned()
    }
}

#[cfg(test)]
mod tests;
