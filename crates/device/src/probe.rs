//! Measures what a device is like, by using it for a while.
//!
//! | file | holds |
//! |---|---|
//! | `load.rs` | operations one by one, by threads, and asynchronous ones at a depth |
//! | `tuples.rs` | the paper's microbenchmark: a hash table on the device |
//! | `kernel.rs`, `class.rs` | what the kernel says, and which sort of device it is |
//! | `times.rs`, `text.rs` | figures of many times; the report as people read it |
//!
//! Guarantees: stays near its time (one operation may overrun it); leaves nothing behind, since
//! its file has no name. Assumes that the device is otherwise idle. Where the device is not
//! direct it measures the page cache, and where a disk's own cache holds the whole file it
//! measures that cache: then the class is a guess on the fast side.

mod class;
mod kernel;
mod load;
mod text;
mod times;
mod tuples;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::emulated::Access;
use crate::random::SplitMix64;
use crate::{AlignedBuffer, Clock, Device, DeviceProfile, SECTOR_BYTES, SystemClock};

pub use class::Class;
use class::{Seen, classify};
pub use kernel::KernelWord;
use load::{Measured, Target};
pub use times::Times;
pub use tuples::Tuples;

/// The file is not smaller, so that it says something.
const FILE_BYTES_MIN: u64 = 8 << 20;
const FILE_BYTES_MAX: u64 = 256 << 20;
const CHUNK_BYTES: usize = 1 << 20;
/// The sizes that are measured, in bytes.
const SIZES: [usize; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const READ_DEPTHS: [usize; 6] = [2, 4, 8, 16, 32, 64];
const WRITE_DEPTHS: [usize; 3] = [8, 32, 64];
/// The depth that [`DeviceProfile::read_iops`] is of.
const PROFILE_DEPTH: usize = 32;
/// A device whose sectors take longer has no cache lines.
const LINES_BELOW_US: f64 = 20.0;
const LINE_BYTES: usize = 64;
/// 4 KB take so many times as long as a cache line, where lines can be used.
const LINE_RATIO: f64 = 2.0;

/// How to probe.
pub struct Probing {
    /// For about how long.
    pub time: Duration,
    /// What measures: the machine's clock, or that of a simulated device.
    pub clock: Arc<dyn Clock>,
    /// Whether threads may write at the same time; not on a simulator's clock.
    pub threads: bool,
    /// The file's size at most.
    pub file_bytes_max: u64,
}

impl Probing {
    /// On the machine's clock, for about this long.
    #[must_use]
    pub fn for_about(time: Duration) -> Probing {
        Probing {
            time,
            clock: Arc::new(SystemClock::new()),
            threads: true,
            file_bytes_max: FILE_BYTES_MAX,
        }
    }
}

/// Where the operations of a load go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Anywhere.
    Random,
    /// One behind the other.
    Sequential,
}

/// One load: what was done, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Reads, writes, or writes with their syncs.
    pub operation: Access,
    /// Where.
    pub pattern: Pattern,
    /// Bytes an operation, as asked; on a device of sectors a smaller one moves a sector.
    pub bytes: usize,
    /// How many were under way at a time.
    pub depth: usize,
    /// Their times.
    pub times: Times,
    /// Operations a second. Of writes in a row: with the sync at their end.
    pub per_second: f64,
}

impl Cell {
    /// MB (10^6 bytes) a second.
    #[must_use]
    pub fn mb_s(&self) -> f64 {
        self.per_second * self.bytes as f64 / 1e6
    }
}

/// What a probe found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The device, for people.
    pub device: String,
    /// Bytes of the file that was used.
    pub file_bytes: u64,
    /// The loads.
    pub cells: Vec<Cell>,
    /// The microbenchmark of the paper, for 1 and for 64 tuples.
    pub tuples: Vec<Tuples>,
    /// What the kernel says; of an emulated device nothing.
    pub kernel: Option<KernelWord>,
    /// Which sort of device it is.
    pub class: Class,
    /// The figures that policies are chosen by.
    pub profile: DeviceProfile,
}

impl Report {
    /// The load of this sort, if it was measured.
    #[must_use]
    pub fn cell(
        &self,
        operation: Access,
        pattern: Pattern,
        bytes: usize,
        depth: usize,
    ) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            (cell.operation, cell.pattern, cell.bytes, cell.depth)
                == (operation, pattern, bytes, depth)
        })
    }
}

/// Measures a device. `progress` is told what comes next, and the share that is done.
///
/// # Errors
/// `StorageFull` if there is no room for the file; `InvalidData` if the device gives other bytes
/// than were written; else the device's.
pub fn probe(
    device: &dyn Device,
    how: &Probing,
    progress: &mut dyn FnMut(&str, f64),
) -> io::Result<Report> {
    with_probe(device, how, progress, |probe| probe.run(device))
}

/// Does something with a new file, which is gone afterwards.
fn with_probe<T>(
    device: &dyn Device,
    how: &Probing,
    progress: &mut dyn FnMut(&str, f64),
    act: impl FnOnce(Probe<'_>) -> io::Result<T>,
) -> io::Result<T> {
    let bytes = file_bytes(device, how)?;
    let target = Target {
        file: device.temporary()?,
        bytes,
        clock: Arc::clone(&how.clock),
    };
    let acted = act(Probe {
        target,
        how,
        progress,
        weight_done: 0.0,
        unit_bytes: SECTOR_BYTES,
        cells: Vec::new(),
        tuples: Vec::new(),
    });
    let removed = device.remove_temporary();
    let acted = acted?;
    removed?;
    Ok(acted)
}

/// A short look: what it takes to tell the sort of a device, and the figures of its profile. Takes about a
/// third of the time that is given.
///
/// # Errors
/// Those of [`probe()`].
pub fn glance(device: &dyn Device, how: &Probing) -> io::Result<(Class, DeviceProfile)> {
    let report = with_probe(device, how, &mut |_, _| (), |probe| probe.glance(device))?;
    Ok((report.class, report.profile))
}

/// The paper's microbenchmark alone (000 §2): a hash table on the device, 1 and 64 tuples of 1 KB
/// an operation, each for half of the time that is left when the file is written.
///
/// # Errors
/// Those of [`probe()`].
pub fn probe_tuples(device: &dyn Device, how: &Probing) -> io::Result<Vec<Tuples>> {
    with_probe(device, how, &mut |_, _| (), |mut probe| {
        probe.fill()?;
        probe.look_for_lines()?;
        let run = |tuples| tuples::run(&probe.target, tuples, probe.unit_bytes, how.time / 2);
        [1, 64].into_iter().map(run).collect()
    })
}

fn file_bytes(device: &dyn Device, how: &Probing) -> io::Result<u64> {
    let free = device.free_bytes()?;
    let bytes = how.file_bytes_max.min(free / 4) / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
    if bytes >= FILE_BYTES_MIN {
        return Ok(bytes);
    }
    let message = format!(
        "too little room: {} MB are free, and a probe needs {} MB, of which it uses a quarter; \
         free some, or give another directory",
        free >> 20,
        FILE_BYTES_MIN >> 18
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}

struct Probe<'a> {
    target: Target,
    how: &'a Probing,
    progress: &'a mut dyn FnMut(&str, f64),
    weight_done: f64,
    /// What a small operation moves at least.
    unit_bytes: usize,
    cells: Vec<Cell>,
    tuples: Vec<Tuples>,
}

/// The share of the time that each step has, of `ALL`.
mod weight {
    pub const FILL: f64 = 10.0;
    pub const LINE: f64 = 1.0;
    pub const RANDOM: f64 = 2.0;
    pub const SEQUENTIAL: f64 = 1.0;
    pub const DEPTH: f64 = 1.0;
    pub const SYNC: f64 = 4.0;
    pub const LONG: f64 = 10.0;
    pub const TUPLES: f64 = 8.0;
    pub const ALL: f64 =
        FILL + 2.0 * LINE + 12.0 * (RANDOM + SEQUENTIAL) + 9.0 * DEPTH + SYNC + LONG + 2.0 * TUPLES;
}

impl Probe<'_> {
    fn run(mut self, device: &dyn Device) -> io::Result<Report> {
        self.fill()?;
        self.look_for_lines()?;
        for bytes in SIZES {
            self.load(Access::Read, Pattern::Random, bytes)?;
            self.load(Access::Read, Pattern::Sequential, bytes)?;
        }
        self.read_depths()?;
        for bytes in SIZES {
            self.load(Access::Write, Pattern::Sequential, bytes)?;
            self.load(Access::Write, Pattern::Random, bytes)?;
        }
        self.write_depths()?;
        let written_mb = self.written_at_random() / 1_000_000;
        let long = self.long_writes()?;
        self.syncs()?;
        for tuples in [1, 64] {
            let name = format!("hash table, {tuples} tuples an operation");
            let time = self.step(&name, weight::TUPLES);
            let run = tuples::run(&self.target, tuples, self.unit_bytes, time)?;
            self.tuples.push(run);
        }
        (self.progress)("done", 1.0);
        Ok(self.report(device, &long, written_mb))
    }

    fn glance(mut self, device: &dyn Device) -> io::Result<Report> {
        self.fill()?;
        self.look_for_lines()?;
        self.load(Access::Read, Pattern::Random, SECTOR_BYTES)?;
        self.read_depth(PROFILE_DEPTH)?;
        self.load(Access::Write, Pattern::Sequential, CHUNK_BYTES)?;
        let long = self.long_writes()?;
        self.syncs()?;
        Ok(self.report(device, &long, 0))
    }

    fn long_writes(&mut self) -> io::Result<Times> {
        let time = self.step("random writes, at length", weight::LONG);
        let (target, bytes) = (&self.target, SECTOR_BYTES);
        let long = target.one_at_a_time(Access::Write, Pattern::Random, bytes, time)?;
        Ok(Times::of(long.times))
    }

    fn syncs(&mut self) -> io::Result<()> {
        let time = self.step("small writes with their sync", weight::SYNC);
        let (target, bytes) = (&self.target, SECTOR_BYTES);
        let sync = target.one_at_a_time(Access::Sync, Pattern::Random, bytes, time)?;
        self.keep(Access::Sync, Pattern::Random, bytes, 1, sync);
        Ok(())
    }

    /// The next step's time.
    fn step(&mut self, what: &str, weight: f64) -> Duration {
        (self.progress)(what, self.weight_done / weight::ALL);
        self.weight_done += weight;
        self.how.time.mul_f64(weight / weight::ALL)
    }

    /// Writes the file, as far as time allows.
    fn fill(&mut self) -> io::Result<()> {
        let time = self.step("the file is written", weight::FILL);
        // Not zeros: some devices do not store those.
        let mut chunk = AlignedBuffer::new_zeroed(CHUNK_BYTES);
        SplitMix64::new(0x7465_6d70).fill(&mut chunk);
        let begun = self.target.clock.now();
        let mut bytes = 0;
        while bytes < self.target.bytes
            && (bytes < FILE_BYTES_MIN || self.target.clock.now() - begun < time)
        {
            self.target.file.write_at(&chunk, bytes)?;
            bytes += CHUNK_BYTES as u64;
        }
        self.target.bytes = bytes;
        self.target.file.sync_data()
    }

    /// Whether small pieces cost less than sectors: then the device is used by the byte.
    fn look_for_lines(&mut self) -> io::Result<()> {
        let time = self.step("cache lines", weight::LINE);
        let read = |bytes| {
            self.target
                .one_at_a_time(Access::Read, Pattern::Random, bytes, time)
        };
        let sector_us = Times::of(read(SECTOR_BYTES)?.times).median_us;
        if sector_us >= LINES_BELOW_US {
            return Ok(());
        }
        let line = read(LINE_BYTES)?;
        if Times::of(line.times.clone()).median_us * LINE_RATIO > sector_us {
            return Ok(());
        }
        self.unit_bytes = LINE_BYTES;
        self.keep(Access::Read, Pattern::Random, LINE_BYTES, 1, line);
        let time = self.step("cache lines", weight::LINE);
        let line = self
            .target
            .one_at_a_time(Access::Write, Pattern::Random, LINE_BYTES, time)?;
        self.keep(Access::Write, Pattern::Random, LINE_BYTES, 1, line);
        Ok(())
    }

    fn load(&mut self, operation: Access, pattern: Pattern, bytes: usize) -> io::Result<()> {
        let (name, weight) = match pattern {
            Pattern::Random => ("random", weight::RANDOM),
            Pattern::Sequential => ("sequential", weight::SEQUENTIAL),
        };
        let verb = match operation {
            Access::Read => "reads",
            _ => "writes",
        };
        let time = self.step(&format!("{name} {verb} of {} KB", bytes >> 10), weight);
        let moved = bytes.next_multiple_of(self.unit_bytes);
        let measured = self.target.one_at_a_time(operation, pattern, moved, time)?;
        self.keep(operation, pattern, bytes, 1, measured);
        Ok(())
    }

    fn read_depths(&mut self) -> io::Result<()> {
        READ_DEPTHS
            .into_iter()
            .try_for_each(|depth| self.read_depth(depth))
    }

    fn read_depth(&mut self, depth: usize) -> io::Result<()> {
        let time = self.step(&format!("reads of 4 KB, {depth} at once"), weight::DEPTH);
        let measured = self.target.reads_at_depth(SECTOR_BYTES, depth, time)?;
        self.keep(Access::Read, Pattern::Random, SECTOR_BYTES, depth, measured);
        Ok(())
    }

    fn write_depths(&mut self) -> io::Result<()> {
        for depth in WRITE_DEPTHS.into_iter().filter(|_| self.how.threads) {
            let time = self.step(&format!("writes of 4 KB, {depth} at once"), weight::DEPTH);
            let measured = self.target.writes_by_threads(SECTOR_BYTES, depth, time)?;
            self.keep(
                Access::Write,
                Pattern::Random,
                SECTOR_BYTES,
                depth,
                measured,
            );
        }
        Ok(())
    }

    fn keep(
        &mut self,
        operation: Access,
        pattern: Pattern,
        bytes: usize,
        depth: usize,
        measured: Measured,
    ) {
        let seconds = measured.elapsed.as_secs_f64().max(1e-9);
        self.cells.push(Cell {
            operation,
            pattern,
            bytes,
            depth,
            per_second: measured.times.len() as f64 / seconds,
            times: Times::of(measured.times),
        });
    }

    fn written_at_random(&self) -> u64 {
        let written = self
            .cells
            .iter()
            .filter(|cell| (cell.operation, cell.pattern) == (Access::Write, Pattern::Random));
        let bytes = |cell: &Cell| cell.times.count * cell.bytes.max(self.unit_bytes) as u64;
        written.map(bytes).sum()
    }

    fn report(self, device: &dyn Device, long: &Times, written_mb: u64) -> Report {
        let emulated = device.profile().emulated;
        let kernel = match device.path() {
            Some(path) if !emulated => Some(KernelWord::of(path)),
            _ => None,
        };
        let find = |operation, pattern, bytes, depth| {
            let mut cells = self.cells.iter();
            cells.find(|cell| {
                (cell.operation, cell.pattern, cell.bytes, cell.depth)
                    == (operation, pattern, bytes, depth)
            })
        };
        let read = find(Access::Read, Pattern::Random, SECTOR_BYTES, 1);
        let deep = find(Access::Read, Pattern::Random, SECTOR_BYTES, PROFILE_DEPTH);
        let stream = find(Access::Write, Pattern::Sequential, CHUNK_BYTES, 1);
        let sync = find(Access::Sync, Pattern::Random, SECTOR_BYTES, 1);
        let read_us = read.map_or(0.0, |cell| cell.times.median_us);
        let class = classify(&Seen {
            read_us,
            by_line: self.unit_bytes == LINE_BYTES,
            read_deviation_us: read.map_or(0.0, |cell| cell.times.deviation_us),
            write_deviation_us: long.deviation_us,
            writes: long.count,
            written_mb,
            cached: device.is_cached(),
            kernel: kernel.clone(),
        });
        let profile = DeviceProfile {
            kind: class.kind,
            read_latency_us: read_us,
            read_iops: deep.map_or(0.0, |cell| cell.per_second),
            sequential_write_mb_s: stream.map_or(0.0, Cell::mb_s),
            sync_us: sync.map_or(0.0, |cell| cell.times.median_us),
            emulated,
        };
        Report {
            device: device.describe(),
            file_bytes: self.target.bytes,
            cells: self.cells,
            tuples: self.tuples,
            kernel,
            class,
            profile,
        }
    }
}

#[cfg(test)]
mod tests;
