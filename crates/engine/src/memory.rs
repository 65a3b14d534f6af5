//! `memory_limit`: a promise about the process's resident memory (design
//! point 7).
//!
//! The resident size is read from the kernel every few milliseconds; between
//! two readings the growth of the arena and of what clients cause is added, which
//! is where memory comes from fastest. Above the soft line the evictor works; above the hard line writers
//! wait (they do not fail); merges of fetched tuples stop before that. What is
//! not in arenas (indexes, directories, buffers) is in the reading, so nothing
//! escapes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use thermocline_storage::arena::Arena;

use crate::account::ClientPool;
use crate::wait::Event;

/// The slack below the line where writers wait is what memory grows in so many
/// readings, at the fastest seen lately: each reading forgets a part of it.
const SLACK_READINGS: u64 = 8;
const SLACK_FADES: u64 = 2048;

/// The process's resident memory and its limit.
pub(crate) struct Memory {
    limit: AtomicU64,
    arena: Arc<Arena>,
    /// Readings are the kernel's; in a simulation they are what the arena holds.
    reads_kernel: bool,
    /// The last reading of the resident size.
    resident: AtomicU64,
    resident_max: AtomicU64,
    /// Bytes between the lines where eviction begins and where writers wait.
    slack: AtomicU64,
    /// What the arena held when the reading was taken.
    arena_at_reading: AtomicU64,
    /// Bytes promised to others (analytical statements) and not yet resident.
    reserved: AtomicI64,
    /// Bytes that something else is about to take.
    expected: AtomicI64,
    /// What clients cause, and what of it was granted when the reading was taken.
    pub clients: Arc<ClientPool>,
    clients_at_reading: AtomicU64,
    /// Growth that is no sign of more to come: code that was forgotten and comes back
    /// as it is run, a buffer that is filled for the first time.
    foreseen: AtomicU64,
    /// Much code is run now and then: it would come back faster than rows can leave.
    keeps_code: AtomicBool,
    /// The evictor found nothing that could leave.
    drained: AtomicBool,
    /// … and what is left is mostly directory and indexes: each further row
    /// would take more of what can't be given.
    exhausted: AtomicBool,
    /// The device takes no blocks.
    device_refuses: AtomicBool,
    /// It is being learned which tuples are warm.
    learning: AtomicBool,
    /// Memory became free: writers that wait look again.
    pub freed: Event,
}

/// How the evictor should see the situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Room enough.
    None,
    /// This many bytes should leave.
    Evict(u64),
}

impl Memory {
    pub fn new(limit: u64, arena: Arc<Arena>, reads_kernel: bool) -> Self {
        let memory = Memory {
            limit: AtomicU64::new(limit),
            arena,
            reads_kernel,
            resident: AtomicU64::new(0),
            resident_max: AtomicU64::new(0),
            slack: AtomicU64::new(slack_max(limit)),
            arena_at_reading: AtomicU64::new(0),
            reserved: AtomicI64::new(0),
            expected: AtomicI64::new(0),
            clients: ClientPool::new(limit),
            clients_at_reading: AtomicU64::new(0),
            foreseen: AtomicU64::new(0),
            keeps_code: AtomicBool::new(false),
            drained: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            device_refuses: AtomicBool::new(false),
            learning: AtomicBool::new(false),
            freed: Event::default(),
        };
        memory.read_resident();
        memory
    }

    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
        self.clients.set_memory_limit(bytes);
        self.freed.notify();
    }

    /// Where eviction begins: so far below the line where writers wait as memory
    /// grows in a few readings. While it hardly grows, rows have the room.
    pub fn soft(&self) -> u64 {
        let slack = self.slack.load(Ordering::Relaxed);
        self.hard() - slack.min(slack_max(self.limit()))
    }

    /// Where writers wait.
    fn hard(&self) -> u64 {
        let limit = self.limit();
        limit - (limit / 64).clamp(4 << 20, 128 << 20)
    }

    /// Takes a reading; call it every few milliseconds.
    pub fn read_resident(&self) -> u64 {
        let arena = self.arena.used_bytes() as u64;
        let clients = self.clients.granted();
        let resident = match self.reads_kernel {
            true => resident_bytes().unwrap_or(arena),
            false => arena,
        };
        self.arena_at_reading.store(arena, Ordering::Relaxed);
        self.clients_at_reading.store(clients, Ordering::Relaxed);
        let before = self.resident.swap(resident, Ordering::Relaxed);
        if self.reads_kernel {
            self.keep_slack_for(resident.saturating_sub(before));
        }
        self.resident_max.fetch_max(resident, Ordering::Relaxed);
        resident
    }

    /// From now on code stays in memory.
    pub fn keep_code(&self) {
        self.keeps_code.store(true, Ordering::Relaxed);
    }

    /// Takes the program's code out of memory, of which little is run again.
    pub fn forget_code(&self) {
        if !self.reads_kernel || self.keeps_code.load(Ordering::Relaxed) {
            return;
        }
        let before = resident_bytes();
        thermocline_device::forget_code();
        if let (Some(before), Some(after)) = (before, resident_bytes()) {
            let forgotten = before.saturating_sub(after);
            self.foreseen.store(forgotten, Ordering::Relaxed);
        }
    }

    /// Says that a buffer of so many bytes is about to be filled.
    pub fn foresee(&self, bytes: u64) {
        self.foreseen.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Memory grew by so much between two readings.
    fn keep_slack_for(&self, grown: u64) {
        let foreseen = self.foreseen.load(Ordering::Relaxed);
        self.foreseen
            .store(foreseen.saturating_sub(grown), Ordering::Relaxed);
        let grown = grown.saturating_sub(foreseen);
        let slack = self.slack.load(Ordering::Relaxed);
        let wanted = (grown * SLACK_READINGS).max(slack - slack / SLACK_FADES);
        let most = slack_max(self.limit());
        self.slack
            .store(wanted.clamp(most / 8, most), Ordering::Relaxed);
    }

    pub fn resident_max(&self) -> u64 {
        self.resident_max.load(Ordering::Relaxed)
    }

    /// The resident size now, as far as is known.
    #[inline]
    fn projected(&self) -> u64 {
        let grown = (self.arena.used_bytes() as u64)
            .saturating_sub(self.arena_at_reading.load(Ordering::Relaxed));
        let clients = (self.clients.granted())
            .saturating_sub(self.clients_at_reading.load(Ordering::Relaxed));
        let reserved = self.reserved.load(Ordering::Relaxed).max(0) as u64;
        let expected = self.expected.load(Ordering::Relaxed).max(0) as u64;
        self.resident.load(Ordering::Relaxed) + grown + clients + reserved + expected
    }

    pub fn pressure(&self) -> Pressure {
        let (projected, soft) = (self.projected(), self.soft());
        if projected > soft {
            Pressure::Evict(projected - soft)
        } else {
            Pressure::None
        }
    }

    /// Whether tuples may become hot however cool they are: nothing has to
    /// leave for them.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.projected() + self.limit() / 100 < self.soft()
    }

    /// Says whether it is being learned which tuples are warm.
    pub fn set_learning(&self, learning: bool) {
        self.learning.store(learning, Ordering::Relaxed);
    }

    /// Whether it is being learned which tuples are warm.
    #[inline]
    pub fn is_learning(&self) -> bool {
        self.learning.load(Ordering::Relaxed)
    }

    /// Fetched tuples should not become hot now.
    #[inline]
    pub fn is_tight(&self) -> bool {
        self.projected() > (self.soft() + self.hard()) / 2
    }

    /// Statements have to wait. Not when no tuple is left to evict: then the
    /// limit is taken by something else, waiting frees nothing, and what each
    /// statement brings in leaves again before the next. Nor when the device takes no
    /// blocks: that may last, and statements that change something are refused.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.projected() > self.hard()
            && !self.drained.load(Ordering::Relaxed)
            && !self.device_refuses.load(Ordering::Relaxed)
    }

    /// Whether changes have to be refused: memory is full, and the device takes
    /// nothing that could leave.
    #[inline]
    pub fn cannot_grow(&self) -> bool {
        self.device_refuses.load(Ordering::Relaxed) && self.projected() > self.hard()
    }

    /// Says whether the device refused the last block, because it is full or has
    /// failed. Nobody cares while nothing has to leave.
    pub fn set_device_refuses(&self, refuses: bool) {
        let before = self.device_refuses.swap(refuses, Ordering::Relaxed);
        if refuses && !before {
            self.freed.notify();
        }
    }

    /// Says whether the evictor found nothing that could leave, though it
    /// should have, and if so what directory and indexes take, in bytes.
    pub fn set_drained(&self, metadata: Option<u64>) {
        self.drained.store(metadata.is_some(), Ordering::Relaxed);
        let exhausted = metadata.is_some_and(|bytes| bytes > self.limit() / 2);
        self.exhausted.store(exhausted, Ordering::Relaxed);
    }

    /// Whether no further row can be taken in without passing the limit.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed) && self.projected() > self.hard()
    }

    /// What the changes of one transaction may take.
    pub fn transaction_limit(&self) -> usize {
        (self.limit() / 4) as usize
    }

    /// What the evicted tuples that one statement has fetched may take.
    pub fn fetched_limit(&self) -> u64 {
        self.limit() / 4
    }

    /// Counts memory that will be taken soon; nobody's share of the limit.
    pub fn expect(&self, bytes: u64) {
        self.expected.fetch_add(bytes as i64, Ordering::Relaxed);
    }

    /// Takes back what [`Memory::expect`] counted.
    pub fn no_longer_expect(&self, bytes: u64) {
        self.expected.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    /// Reserves memory for an analytical statement; false if its share of the
    /// limit is used up, or if nothing can leave for it.
    pub fn try_reserve(&self, bytes: u64) -> bool {
        if self.device_refuses.load(Ordering::Relaxed) && self.projected() + bytes > self.hard() {
            return false;
        }
        let share = (self.limit() / 4) as i64;
        let before = self.reserved.fetch_add(bytes as i64, Ordering::Relaxed);
        if before + bytes as i64 > share {
            self.reserved.fetch_sub(bytes as i64, Ordering::Relaxed);
            return false;
        }
        true
    }

    pub fn release(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed).max(0) as u64
    }
}

/// The most that is left between the lines.
fn slack_max(limit: u64) -> u64 {
    (limit / 24).clamp(6 << 20, 128 << 20)
}

/// The log's buffer under a limit: two of them fit between the lines and the
/// limit, since a burst of commits fills them faster than readings are taken.
pub(crate) fn log_buffer_bytes(limit: u64) -> usize {
    (limit / 128).clamp(512 << 10, 4 << 20) as usize
}

fn resident_bytes() -> Option<u64> {
    thermocline_device::resident_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_refused_only_when_metadata_fills_the_limit() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let memory = Memory::new(64 << 20, arena, true);
        memory.expect(1 << 30);
        for (metadata, refused) in [
            (None, false),
            (Some(1 << 20), false),
            (Some(40 << 20), true),
        ] {
            memory.set_drained(metadata);
            assert_eq!(memory.is_exhausted(), refused);
        }
        memory.set_limit(1 << 40);
        assert!(!memory.is_exhausted());
    }

    #[test]
    fn eviction_begins_early_where_memory_grows_fast() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let memory = Memory::new(1 << 40, arena, true);
        let (hard, early) = (memory.hard(), memory.soft());
        for _ in 0..20_000 {
            memory.keep_slack_for(0);
        }
        let late = memory.soft();
        assert!(early < late && late < hard, "{early} {late} {hard}");
        memory.keep_slack_for(3 << 20);
        assert_eq!(memory.soft(), hard - (24 << 20));
        memory.keep_code();
        memory.forget_code();
        assert_eq!(memory.foreseen.load(Ordering::Relaxed), 0);
        memory.keep_slack_for(1 << 40);
        assert_eq!(memory.soft(), early);
        memory.set_limit(64 << 20);
        assert!(memory.soft() > 32 << 20);
        memory.set_limit(1 << 40);
        for _ in 0..20_000 {
            memory.keep_slack_for(0);
        }
        memory.foresee(5 << 20);
        memory.keep_slack_for(3 << 20);
        memory.keep_slack_for(2 << 20);
        assert_eq!(memory.soft(), late, "what was foreseen");
        memory.keep_slack_for(3 << 20);
        assert_eq!(memory.soft(), hard - (24 << 20));
    }

    #[test]
    fn what_is_expected_is_pressure_but_not_the_share_of_analytical_statements() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let limit = 1 << 40;
        let memory = Memory::new(limit, arena, true);
        assert_eq!(memory.pressure(), Pressure::None);
        memory.expect(limit);
        assert_ne!(memory.pressure(), Pressure::None);
        assert!(memory.try_reserve(limit / 4));
        assert!(!memory.try_reserve(1));
        memory.no_longer_expect(limit);
        assert_eq!(memory.pressure(), Pressure::None);
    }

    #[test]
    fn nobody_waits_for_what_the_device_keeps_from_leaving() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let limit = 1 << 40;
        let memory = Memory::new(limit, arena, true);
        memory.set_device_refuses(true);
        assert!(!memory.cannot_grow(), "there is room yet");
        memory.expect(limit);
        assert!(memory.cannot_grow());
        assert!(!memory.is_full());
        assert!(!memory.try_reserve(1), "nothing can leave for it");
        memory.set_device_refuses(false);
        assert!(!memory.cannot_grow());
        assert!(memory.is_full());
        assert!(memory.try_reserve(1));
    }
}
