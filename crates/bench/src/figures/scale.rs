//! How large what is measured is. The papers' ratios are kept (data by memory, bytes of a row,
//! shares of what can be evicted); sizes are scaled to the machine.

use super::setting::{Choices, Medium, OnDatabase, What, Work};
use crate::size;
use crate::ycsb_core::Mix;

/// Bytes of a row of YCSB, key included.
const ROW_BYTES: u64 = 1008;
/// What the program takes of `memory_limit` beside data, with 16 callers. The papers' memory is that
/// of data: at their sizes the program is nothing, at ours it would be half.
const PROGRAM_BYTES: u64 = 48 << 20;
/// Memory for TPC-C of one warehouse: 1.2 times what it has with 1000 customers a district, as 004 has
/// 12 GB for 10 GB at the beginning, ...
const TPCC_BYTES: u64 = 96 << 20;
/// ... and for each second, in which some thousand orders come: their indexes do not leave memory.
const TPCC_GROWTH_BYTES: u64 = 3 << 20;
/// 000's data is so many times its memory.
pub(super) const TIMES_000: u64 = 8;

/// Sizes and times of a set of runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    pub is_quick: bool,
    /// Memory for data.
    pub memory_bytes: u64,
    /// Block sizes of 000.2.
    pub blocks: Vec<u32>,
    /// Zipf's exponents, in the papers' order.
    pub skews: Vec<f64>,
    pub unpaced_s: u64,
    pub warmup_s: u64,
    /// How long TPC-C runs before, while its device takes no time: most customers' last order is of the
    /// run then, as it is in the papers' minutes.
    pub settling_s: u64,
    pub seconds: u64,
    /// Seconds of figures over time.
    pub long_s: u64,
    pub trials: u32,
    /// Milliseconds for each device of 000.1.
    pub device_ms: u64,
    /// Rows and updates of chains.
    pub chain: u32,
    pub repetitions: u32,
}

impl Scale {
    /// Minutes for all figures, on two cores.
    pub fn quick() -> Self {
        Scale {
            is_quick: true,
            memory_bytes: 128 << 20,
            blocks: [1, 4, 16, 1024].map(|kb| kb << 10).to_vec(),
            skews: vec![1.5, 1.0, 0.5],
            unpaced_s: 1,
            warmup_s: 1,
            settling_s: 8,
            seconds: 2,
            long_s: 10,
            trials: 1,
            device_ms: 3000,
            chain: 20_000,
            repetitions: 9,
        }
    }

    /// With the papers' number of trials, and all their settings that can be had here.
    pub fn full() -> Self {
        Scale {
            is_quick: false,
            memory_bytes: 256 << 20,
            blocks: [1, 4, 16, 64, 256, 1024].map(|kb| kb << 10).to_vec(),
            skews: vec![1.5, 1.25, 1.0, 0.75, 0.5],
            unpaced_s: 5,
            warmup_s: 15,
            settling_s: 20,
            seconds: 30,
            long_s: 60,
            trials: 3,
            device_ms: 30_000,
            chain: 100_000,
            repetitions: 25,
        }
    }

    /// Rows of YCSB so that the data is so many times the memory.
    pub fn rows(&self, times: u64) -> u64 {
        times * self.memory_bytes / ROW_BYTES
    }

    /// `memory_limit` for so much memory for data.
    pub fn limit(memory_bytes: u64) -> u64 {
        memory_bytes + PROGRAM_BYTES
    }

    pub fn database(&self, medium: Medium, work: Work, choices: Choices) -> OnDatabase {
        OnDatabase {
            medium,
            work,
            choices,
            memory_bytes: Self::limit(self.memory_bytes),
            fits: false,
            callers: 16,
            unpaced_s: self.unpaced_s,
            warmup_s: self.warmup_s,
            seconds: self.seconds,
            check: !self.is_quick,
        }
    }

    /// TPC-C with one warehouse, whose customers and orders at the beginning come to so many thousands a
    /// district.
    pub fn tpcc(
        &self,
        medium: Medium,
        choices: Choices,
        customers: i32,
        seconds: u64,
    ) -> OnDatabase {
        let work = Work::Tpcc {
            warehouses: 1,
            customers,
            items: 100_000,
        };
        OnDatabase {
            memory_bytes: Self::limit(self.tpcc_memory(seconds)),
            unpaced_s: self.settling_s,
            warmup_s: self.settling_s + self.warmup_s,
            seconds,
            ..self.database(medium, work, choices)
        }
    }

    /// Memory for its data.
    pub fn tpcc_memory(&self, seconds: u64) -> u64 {
        TPCC_BYTES + (self.settling_s + self.warmup_s + seconds) * TPCC_GROWTH_BYTES
    }

    /// YCSB as 000 has it: nine reads of ten, 8 times the memory, exponent 1.
    pub fn ycsb_000(&self) -> Work {
        self.ycsb(Mix::ReadHeavy, TIMES_000, 1.0)
    }

    pub fn ycsb(&self, mix: Mix, times: u64, zipf: f64) -> Work {
        Work::Ycsb {
            mix,
            rows: self.rows(times),
            row_bytes: 1000,
            zipf,
        }
    }

    /// The same with all data in memory: the papers' baseline.
    pub fn in_memory(&self, work: Work, times: u64) -> What {
        let on = self.database(Medium::Dram, work, Choices::generic().identification("off"));
        What::Database(Box::new(OnDatabase {
            fits: true,
            memory_bytes: (times + 2) * self.memory_bytes * 2,
            ..on
        }))
    }

    /// What the limit is, in words.
    pub fn words_of_limit(&self) -> String {
        let program = size::display(PROGRAM_BYTES);
        format!("the memory for data, and {program} for the program")
    }

    /// 000's settings in words, beside ours.
    pub fn words_000(&self) -> String {
        format!(
            "{} of data, {} of memory for it, rows of 1 KB; 16 callers on 2 threads; warm-up {} s, \
             measured {} s, {} trials",
            size::display(self.rows(TIMES_000) * ROW_BYTES),
            size::display(self.memory_bytes),
            self.warmup_s,
            self.seconds,
            self.trials
        )
    }

    /// 004's, for so many times the memory.
    pub fn words_004(&self, times: u64) -> String {
        format!(
            "{} of data, {} of memory for it, on an emulated HDD; 16 callers on 2 threads; warm-up \
             {} s, measured {} s, {} trials",
            size::display(self.rows(times) * ROW_BYTES),
            size::display(self.memory_bytes),
            self.warmup_s,
            self.seconds,
            self.trials
        )
    }
}

/// A skew on an axis.
pub(super) fn skew(zipf: f64) -> String {
    format!("{zipf}")
}

/// A size of blocks on an axis.
pub(super) fn kb(bytes: u32) -> String {
    format!("{} KB", bytes >> 10)
}
