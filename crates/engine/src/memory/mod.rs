//! `memory_limit`: a promise about the process's resident memory (design
//! point 7).
//!
//! The resident size is read from the kernel every few milliseconds. Between
//! two readings the growth of the arena, of what clients cause and of what they fetch is added, which
//! is where memory comes from fastest. Above the soft line the evictor works; above the hard line writers
//! wait (they do not fail); merges of fetched tuples stop before that. What is
//! not in arenas (indexes, directories, buffers) is in the reading, so nothing
//! escapes it.
//!
//! The program's code is resident, too, once it has run, and statements that run much of it
//! bring it in within milliseconds: while there are any, there is room for it whether it is
//! there or not. What came beyond is unmapped, and comes again if it is needed. What the
//! allocator holds and nobody uses goes back to the system before rows do.

pub(crate) mod account;
pub(crate) mod changes_share;
pub(crate) mod fetched;
pub(crate) mod floor;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use thermocline_storage::arena::Arena;

use crate::ground::error::Error;
use crate::ground::wait::Event;
use crate::memory::account::ClientPool;
use crate::memory::fetched::FetchedShare;
use crate::memory::floor::{Floor, floor_bytes};

/// The slack below the line where writers wait is what memory grows in so many
/// readings, at the fastest seen lately: each reading forgets a part of it.
const SLACK_READINGS: u64 = 8;
const SLACK_FADES: u64 = 2048;
/// Code has room for one part of the limit in so many, ...
const CODE_SHARE_DIVISOR: u64 = 4;
/// ... but for no more than this, in bytes: what planning a statement brings in.
const CODE_BYTES_MAX: u64 = 64 << 20;

/// The process's resident memory and its limit.
pub(crate) struct Memory {
    limit: AtomicU64,
    arena: Arc<Arena>,
    /// Readings are the kernel's; in a simulation they are what the arena holds.
    reads_kernel: bool,
    /// The last reading of the resident size, ...
    resident: AtomicU64,
    /// ... and of what of it are pages of files: code.
    files: AtomicU64,
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
    /// Growth that is no sign of more to come: a buffer that is filled for the first time.
    foreseen: AtomicU64,
    /// Statements under way that run much of the program's code.
    code_users: AtomicUsize,
    /// The room that code has; none if no such statement has run since all of it was taken out
    /// of memory.
    code_room: AtomicU64,
    /// The evictor found nothing that could leave.
    drained: AtomicBool,
    /// What directories and indexes may not take.
    pub floor: Floor,
    /// The evicted tuples that statements have fetched.
    pub fetched: Arc<FetchedShare>,
    fetched_at_reading: AtomicU64,
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
            files: AtomicU64::new(0),
            resident_max: AtomicU64::new(0),
            slack: AtomicU64::new(slack_max(limit)),
            arena_at_reading: AtomicU64::new(0),
            reserved: AtomicI64::new(0),
            expected: AtomicI64::new(0),
            clients: ClientPool::new(limit),
            clients_at_reading: AtomicU64::new(0),
            foreseen: AtomicU64::new(0),
            code_users: AtomicUsize::new(0),
            code_room: AtomicU64::new(0),
            drained: AtomicBool::new(false),
            floor: Floor::default(),
            fetched: Arc::default(),
            fetched_at_reading: AtomicU64::new(0),
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

    /// What can last: where eviction begins while memory grows fastest.
    fn lasting(&self) -> u64 {
        self.hard() - slack_max(self.limit())
    }

    /// Takes a reading; call it every few milliseconds.
    pub fn read_resident(&self) -> u64 {
        let arena = self.arena.used_bytes() as u64;
        let clients = self.clients.caused();
        let fetched = self.fetched.held();
        let read = match self.reads_kernel {
            true => thermocline_device::resident(),
            false => None,
        };
        let (resident, files) = read.map_or((arena, 0), |read| (read.all, read.files));
        self.arena_at_reading.store(arena, Ordering::Relaxed);
        self.clients_at_reading.store(clients, Ordering::Relaxed);
        self.fetched_at_reading.store(fetched, Ordering::Relaxed);
        let files_before = self.files.swap(files, Ordering::Relaxed);
        let before = self.resident.swap(resident, Ordering::Relaxed);
        if self.reads_kernel {
            let own = resident.saturating_sub(files);
            self.keep_slack_for(own.saturating_sub(before.saturating_sub(files_before)));
        }
        self.resident_max.fetch_max(resident, Ordering::Relaxed);
        resident
    }

    /// A statement begins that runs much code, which comes faster than rows can leave: it has
    /// room until [`Memory::forget_code`]. Whether it had none before, so that rows have to
    /// leave for it.
    pub fn enter_code(&self) -> bool {
        self.code_users.fetch_add(1, Ordering::Relaxed);
        let room = code_room(self.limit());
        self.code_room.swap(room, Ordering::Relaxed) == 0
    }

    /// The statement has ended.
    pub fn leave_code(&self) {
        self.code_users.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether statements that run much code are under way; None if none has come since code
    /// was taken out.
    pub fn runs_code(&self) -> Option<bool> {
        let came = self.code_room.load(Ordering::Relaxed) > 0;
        came.then(|| self.code_users.load(Ordering::Relaxed) > 0)
    }

    /// Takes the program's code out of memory, of which little is run again.
    pub fn forget_code(&self) {
        if !self.reads_kernel || self.code_users.load(Ordering::Relaxed) > 0 {
            return;
        }
        self.code_room.store(0, Ordering::Relaxed);
        thermocline_device::forget_code();
    }

    /// Takes the program's code out of memory if it has more than half of its room, by the last
    /// reading, and there is no room for twice as much: it comes faster than readings are taken.
    pub fn forget_code_beyond_room(&self) {
        let half = code_room(self.limit()) / 2;
        if self.files.load(Ordering::Relaxed) > half && self.is_near() {
            thermocline_device::forget_code();
        }
    }

    /// As [`Memory::forget_code_beyond_room`], by a reading of its own where memory is short:
    /// for who runs much code that is not run again soon.
    pub fn look_at_code(&self) {
        if self.reads_kernel && self.is_near() {
            self.read_resident();
            self.forget_code_beyond_room();
        }
    }

    /// Whether there is no room for as much as code may take.
    fn is_near(&self) -> bool {
        self.projected() + code_room(self.limit()) > self.soft()
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

    /// Where the last reading is above the limit, what to tell the operator: who has how much.
    pub fn excess(&self) -> Option<String> {
        let (resident, limit) = (self.resident.load(Ordering::Relaxed), self.limit());
        let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / f64::from(1 << 20));
        (resident > limit).then(|| {
            format!(
                "memory: {} are resident, and memory_limit is {}: {} of rows in memory, {} of row \
                 directories, indexes and catalog, {} that clients cause, {} of fetched rows, {} of the \
                 program's code; {} are promised to analytical statements",
                mb(resident),
                mb(limit),
                mb(self.arena_at_reading.load(Ordering::Relaxed)),
                mb(self.floor.metadata()),
                mb(self.clients_at_reading.load(Ordering::Relaxed)),
                mb(self.fetched_at_reading.load(Ordering::Relaxed)),
                mb(self.files.load(Ordering::Relaxed)),
                mb(self.reserved()),
            )
        })
    }

    pub fn resident_max(&self) -> u64 {
        self.resident_max.load(Ordering::Relaxed)
    }

    /// The resident size now, as far as is known.
    #[inline]
    fn projected(&self) -> u64 {
        let grown = (self.arena.used_bytes() as u64)
            .saturating_sub(self.arena_at_reading.load(Ordering::Relaxed));
        let clients =
            (self.clients.caused()).saturating_sub(self.clients_at_reading.load(Ordering::Relaxed));
        let fetched =
            (self.fetched.held()).saturating_sub(self.fetched_at_reading.load(Ordering::Relaxed));
        let reserved = self.reserved.load(Ordering::Relaxed).max(0) as u64;
        let expected = self.expected.load(Ordering::Relaxed).max(0) as u64;
        let files = self.files.load(Ordering::Relaxed);
        let code = (self.code_room.load(Ordering::Relaxed)).saturating_sub(files);
        let beside = clients + fetched + reserved + expected + code;
        self.resident.load(Ordering::Relaxed) + grown + beside
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

    /// Whether `bytes` may be taken at once, be there something that could leave or not.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        self.projected() + bytes <= self.hard()
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
    /// should have.
    pub fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Relaxed);
    }

    /// Directories and indexes were counted. What to tell the operator, if anything.
    pub fn note_metadata(&self, now: Duration, counted: u64) -> Option<String> {
        let resident = self.resident.load(Ordering::Relaxed);
        let beside = resident.saturating_sub(self.arena_at_reading.load(Ordering::Relaxed));
        let limits = (self.limit(), self.lasting());
        self.floor.note(now, counted, beside, limits)
    }

    /// What directories, indexes and catalog may take.
    pub fn metadata_max(&self) -> u64 {
        self.floor.metadata_max(self.limit(), self.lasting())
    }

    /// What of the limit is left to hot rows and to all that comes and goes.
    pub fn beyond_metadata(&self) -> u64 {
        self.metadata_max().saturating_sub(self.floor.metadata()) + floor_bytes(self.limit())
    }

    /// Refuses `what` if directories, indexes and catalog may not grow.
    pub fn check_floor(&self, what: &str) -> Result<(), Error> {
        match self.floor.refuses() {
            false => Ok(()),
            true => Err(self.floor.refusal(what, self.limit(), self.lasting())),
        }
    }

    /// Refuses an index of so many bytes that has no place.
    pub fn check_index(&self, bytes: u64) -> Result<(), Error> {
        let (limit, lasting) = (self.limit(), self.lasting());
        if !self.floor.refuses_index(bytes, limit, lasting) {
            return Ok(());
        }
        let what = format!("an index of {:.1} MB", bytes as f64 / f64::from(1 << 20));
        Err(self.floor.refusal(&what, limit, lasting))
    }

    /// What the changes of one transaction may take, and those of all.
    pub fn transaction_limit(&self) -> usize {
        (self.limit() / 4) as usize
    }

    /// What the evicted tuples that one statement has fetched may take, and those of all.
    pub fn fetched_limit(&self) -> u64 {
        self.limit() / 4
    }

    /// What the fetched tuples of all statements may take now: less than their limit where what
    /// can't leave has taken the memory.
    pub fn fetched_room(&self) -> u64 {
        let (limit, held) = (self.limit(), self.fetched.held());
        let can_leave = (self.arena.used_bytes() as u64).saturating_sub(floor_bytes(limit));
        let others = self.projected().saturating_sub(held + can_leave);
        self.hard().saturating_sub(others).min(self.fetched_limit())
    }

    /// The room that chunks of columns have, which `held` bytes of them take: they leave as other
    /// rows do where memory is short, and may grow where there is room. None: as before.
    pub fn columns_room(&self, held: u64) -> Option<u64> {
        let floor = columns_floor(self.limit());
        match self.pressure() {
            Pressure::Evict(bytes) => Some(held.saturating_sub(bytes).max(floor)),
            Pressure::None if self.has_room() => Some(columns_most(self.limit())),
            Pressure::None => None,
        }
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
        let nothing_leaves =
            self.device_refuses.load(Ordering::Relaxed) || self.drained.load(Ordering::Relaxed);
        if nothing_leaves && self.projected() + bytes > self.hard() {
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

/// The room that chunks of columns have in memory however short it is: one part of the limit in so
/// many.
const COLUMNS_FLOOR_DIVISOR: u64 = 16;
/// And while nothing has to leave for them.
const COLUMNS_MOST_DIVISOR: u64 = 4;

/// The room that chunks of columns may have under a limit.
pub(crate) fn columns_most(limit: u64) -> u64 {
    limit / COLUMNS_MOST_DIVISOR
}

/// The buffer of warm columns has one part in so many of the limit, unless a setting says otherwise.
const WARM_BUFFER_DIVISOR: u64 = 32;
/// It has one part in so many at most.
const WARM_BUFFER_MOST_DIVISOR: u64 = 4;
/// It has so many bytes at least.
pub(crate) const WARM_BUFFER_MIN: u64 = 1 << 20;

/// Bytes that the buffer of warm columns may have at most.
pub(crate) fn warm_buffer_most(limit: u64) -> u64 {
    limit / WARM_BUFFER_MOST_DIVISOR
}

/// Bytes of the buffer of warm columns, by what a setting says of it.
pub(crate) fn warm_room(limit: u64, said: Option<u64>) -> u64 {
    let room = said.unwrap_or(limit / WARM_BUFFER_DIVISOR);
    room.clamp(WARM_BUFFER_MIN, warm_buffer_most(limit))
}

/// The room that chunks of columns have under a limit in any case.
pub(crate) fn columns_floor(limit: u64) -> u64 {
    limit / COLUMNS_FLOOR_DIVISOR
}

/// The room that code has under a limit.
fn code_room(limit: u64) -> u64 {
    (limit / CODE_SHARE_DIVISOR).min(CODE_BYTES_MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator learns of it, and who has how much.
    #[test]
    fn what_is_resident_beyond_the_limit_is_told() {
        let arena = Arc::new(Arena::reserve(4 << 20).expect("address space"));
        let memory = Memory::new(1 << 40, arena, true);
        assert_eq!(memory.excess(), None);
        memory.set_limit(1 << 20);
        let told = memory.excess().expect("this process has more");
        assert!(told.contains("memory_limit is 1.0 MB"), "{told}");
        assert!(told.contains("0.0 MB that clients cause"), "{told}");
    }

    #[test]
    fn rows_are_refused_only_when_metadata_leaves_hot_rows_their_floor() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let memory = Memory::new(1 << 40, arena, true);
        let now = Duration::ZERO;
        assert!(memory.note_metadata(now, 1 << 30).is_none());
        assert!(memory.check_floor("a row").is_ok());
        assert!(memory.check_index(1 << 30).is_ok());
        assert!(memory.check_index(1 << 40).is_err());
        assert!(memory.note_metadata(now, 9 << 37).is_some());
        assert!(memory.check_floor("a row").is_err());
        memory.set_limit(1 << 42);
        memory.note_metadata(now, 9 << 37);
        assert!(memory.check_floor("a row").is_ok());
    }

    #[test]
    fn code_has_room_while_a_statement_runs_much_of_it() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let memory = Memory::new(1 << 40, arena, true);
        assert_eq!(memory.runs_code(), None);
        let without = memory.projected();
        assert!(memory.enter_code(), "the first brings it in");
        assert!(!memory.enter_code());
        let files = memory.files.load(Ordering::Relaxed);
        assert_eq!(memory.projected(), without + CODE_BYTES_MAX - files);
        memory.leave_code();
        memory.forget_code();
        assert_eq!(memory.runs_code(), Some(true));
        memory.leave_code();
        assert_eq!(memory.runs_code(), Some(false));
        memory.forget_code();
        assert_eq!(memory.runs_code(), None);
        assert_eq!(memory.projected(), without);
        assert!(memory.enter_code(), "it is gone");
    }

    #[test]
    fn code_takes_a_part_of_a_small_limit_only() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let memory = Memory::new(1 << 40, arena, true);
        memory.set_limit(64 << 20);
        memory.enter_code();
        assert_eq!(memory.code_room.load(Ordering::Relaxed), 16 << 20);
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
