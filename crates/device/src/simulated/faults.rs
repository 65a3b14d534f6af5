//! Faults of a simulated device that leave no trace but wrong bytes: what a database on
//! it must notice by its checksums. And how often each fault was met.

use super::{SimulatedDevice, State};
use crate::SECTOR_BYTES;
use crate::random::SplitMix64;

/// Something that goes wrong with one read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The write is reported done and was not.
    LostWrite,
    /// The write lands this many sectors further on (before, if negative).
    MisdirectedWrite {
        /// How far.
        sectors: i64,
    },
    /// Half of the bytes are written, and the write fails.
    ShortWrite,
    /// The read brings what lies this many sectors further on (before, if negative).
    MisdirectedRead {
        /// How far.
        sectors: i64,
    },
    /// The read brings half of the bytes and leaves the rest of the buffer as it was.
    ShortRead,
}

/// Which operations a fault is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Fault {
    fn direction(self) -> Direction {
        match self {
            Fault::LostWrite | Fault::MisdirectedWrite { .. } | Fault::ShortWrite => {
                Direction::Write
            }
            Fault::MisdirectedRead { .. } | Fault::ShortRead => Direction::Read,
        }
    }
}

/// How often each fault happened since the device was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// The power failed.
    pub crashes: u64,
    /// The device stopped at a chosen operation.
    pub halts: u64,
    /// Operations that failed with a chosen error, syncs included.
    pub failed_operations: u64,
    /// Writes and extensions refused because the device was full.
    pub full: u64,
    /// Bits flipped.
    pub bit_flips: u64,
    /// See [`Fault::LostWrite`].
    pub lost_writes: u64,
    /// See [`Fault::MisdirectedWrite`].
    pub misdirected_writes: u64,
    /// See [`Fault::ShortWrite`].
    pub short_writes: u64,
    /// See [`Fault::MisdirectedRead`].
    pub misdirected_reads: u64,
    /// See [`Fault::ShortRead`].
    pub short_reads: u64,
    /// Asynchronous reads that were let go later, in another order.
    pub stalled_reads: u64,
}

impl FaultCounts {
    /// Each count with its name.
    #[must_use]
    pub fn by_kind(&self) -> [(&'static str, u64); 11] {
        [
            ("crashes", self.crashes),
            ("halts", self.halts),
            ("failed_operations", self.failed_operations),
            ("full", self.full),
            ("bit_flips", self.bit_flips),
            ("lost_writes", self.lost_writes),
            ("misdirected_writes", self.misdirected_writes),
            ("short_writes", self.short_writes),
            ("misdirected_reads", self.misdirected_reads),
            ("short_reads", self.short_reads),
            ("stalled_reads", self.stalled_reads),
        ]
    }
}

/// Where a misdirected operation ends up.
pub(super) fn astray(offset: u64, sectors: i64) -> u64 {
    let distance = sectors.unsigned_abs() * SECTOR_BYTES as u64;
    if sectors < 0 {
        offset.saturating_sub(distance)
    } else {
        offset + distance
    }
}

impl State {
    /// The fault that is due for an operation on this file.
    pub(super) fn take_fault(&mut self, name: &str, direction: Direction) -> Option<Fault> {
        let due = |(prefix, fault): &(String, Fault)| {
            fault.direction() == direction && name.starts_with(prefix.as_str())
        };
        let number = self.faults.iter().position(due)?;
        let (_, fault) = self.faults.remove(number);
        let count = match fault {
            Fault::LostWrite => &mut self.counts.lost_writes,
            Fault::MisdirectedWrite { .. } => &mut self.counts.misdirected_writes,
            Fault::ShortWrite => &mut self.counts.short_writes,
            Fault::MisdirectedRead { .. } => &mut self.counts.misdirected_reads,
            Fault::ShortRead => &mut self.counts.short_reads,
        };
        *count += 1;
        Some(fault)
    }
}

impl SimulatedDevice {
    /// The next read or write of a file whose name begins so goes wrong like this.
    pub fn inject(&self, name_prefix: &str, fault: Fault) {
        let mut state = self.shared.state.lock();
        state.faults.push((name_prefix.to_owned(), fault));
    }

    /// Forgets the faults and failures that were asked for and have not happened.
    pub fn forget_faults(&self) {
        let mut state = self.shared.state.lock();
        state.faults.clear();
        state.failures.clear();
    }

    /// Flips a bit of a file, of what is seen and of what is durable. False when there is
    /// no such file, or the place is one that was never written.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u8) -> bool {
        let mut state = self.shared.state.lock();
        let Some(number) = state.names.get(name).copied() else {
            return false;
        };
        let flipped = state
            .inodes
            .get_mut(&number)
            .is_some_and(|inode| inode.flip_bit(offset, bit % 8));
        state.counts.bit_flips += u64::from(flipped);
        flipped
    }

    /// Flips a random bit among the written sectors of the files whose names begin so.
    /// The file and the byte; `None` if there is nothing written.
    pub fn flip_random_bit(&self, name_prefix: &str, seed: u64) -> Option<(String, u64)> {
        let mut random = SplitMix64::new(seed);
        let (name, offset) = {
            let state = self.shared.state.lock();
            let mut sectors = Vec::new();
            for (name, number) in &state.names {
                if let Some(inode) = state.inodes.get(number)
                    && name.starts_with(name_prefix)
                {
                    sectors.extend(inode.written_sectors().map(|sector| (name, sector)));
                }
            }
            if sectors.is_empty() {
                return None;
            }
            let (name, sector) = sectors[random.below(sectors.len() as u64) as usize];
            let within = random.below(SECTOR_BYTES as u64);
            (name.clone(), sector * SECTOR_BYTES as u64 + within)
        };
        let bit = random.below(8) as u8;
        self.flip_bit(&name, offset, bit).then_some((name, offset))
    }

    /// How often each fault happened.
    #[must_use]
    pub fn fault_counts(&self) -> FaultCounts {
        self.shared.state.lock().counts
    }
}
