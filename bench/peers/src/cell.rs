//! A cell of the matrix: one workload on one size of data.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a commit promises.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Answered before it is on the device: when the process or the machine dies, the last
    /// moment may be lost, and how much depends on the system.
    Relaxed,
    /// What was acknowledged is on the device.
    Synchronous,
}

/// A workload on a size of data. `reads` 0 means inserts of new rows only; the
/// other shares are completed by updates of whole rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Bytes of payload by bytes of memory limit.
    pub size_ratio: f64,
    /// Zipf's exponent; 0 is uniform.
    pub zipf: f64,
    /// The share of reads.
    pub reads: f64,
    /// Bytes of a row's payload.
    pub row_bytes: usize,
    /// Requests under way at a time.
    pub in_flight: usize,
    /// What a commit promises.
    pub durability: Durability,
}

impl Cell {
    /// Whether it inserts new rows.
    pub fn inserts(&self) -> bool {
        self.reads == 0.0
    }

    /// Rows that are loaded at this limit.
    pub fn rows(&self, memory_limit: u64) -> u64 {
        let bytes = memory_limit as f64 * self.size_ratio;
        ((bytes / self.row_bytes as f64) as u64).max(1)
    }

    /// Whether all rows fit into memory, with room to spare.
    pub fn surely_fits(&self) -> bool {
        self.size_ratio < 1.0
    }

    /// Whether the rows can't all be in memory: there the bound applies.
    pub fn is_larger_than_memory(&self) -> bool {
        self.size_ratio > 1.0
    }

    /// Whether a difference between two such cells would mean anything: a
    /// workload that only reads has no commits, and inserts choose no rows.
    pub fn is_meaningful(&self) -> bool {
        let commits = self.reads < 1.0 || self.durability == Durability::Relaxed;
        let chooses = !self.inserts() || self.zipf == 0.0;
        commits && chooses
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}x memory, {} B rows, ",
            self.size_ratio, self.row_bytes
        )?;
        if self.inserts() {
            write!(f, "inserts only")?;
        } else if self.zipf == 0.0 {
            write!(f, "uniform, {:.0}% reads", self.reads * 100.0)?;
        } else {
            write!(f, "Zipf {}, {:.0}% reads", self.zipf, self.reads * 100.0)?;
        }
        write!(f, ", {} in flight", self.in_flight)?;
        if self.durability == Durability::Synchronous {
            write!(f, ", synchronous")?;
        }
        Ok(())
    }
}
