//! The choices of what stays in memory, behind one trait, so that a trace can be
//! given to all of them. They keep ids only; no tuple is moved. Those that the engine has are the
//! engine's.
//!
//! Assumes that ids are numbered from 0, and that a new tuple's id is the next one.

mod best;
mod driven;
mod sketch;
mod tiny_lfu;

use clap::ValueEnum;
use serde::Serialize;

pub use best::Best;
pub use driven::Driven;
pub use tiny_lfu::TinyLfu;

/// Chooses which tuples are hot. After each call at most `capacity` are.
pub trait Choice {
    /// A tuple is used. True: it was hot.
    fn access(&mut self, tuple: u32) -> bool;
    /// A new tuple, or a change of one: it has to be hot now.
    fn insert(&mut self, tuple: u32);
    /// How many tuples are hot.
    fn hot(&self) -> usize;
    /// Whether this one is.
    fn is_hot(&self, tuple: u32) -> bool;
}

/// The policies by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The best that could be done knowing how likely each tuple is.
    Best,
    /// Our default: uses of hot and cold tuples are counted.
    Temperature,
    /// W-TinyLFU.
    #[value(name = "tinylfu")]
    TinyLfu,
    /// S3-FIFO.
    #[value(name = "s3fifo")]
    S3Fifo,
    /// A hand over the row directory; what was used has two chances at most.
    Clock,
    /// A hand over the row directory; use does not count.
    Fifo,
    /// A chain of all hot tuples in the order of their last use.
    Lru,
    /// The same, of which only a sample of uses takes part.
    Alru,
    /// An analysis of a log of uses lists the cold tuples.
    Offline,
}

/// What a policy has to remember, in bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overhead {
    /// For each hot tuple.
    pub hot: f64,
    /// For every tuple, hot or cold.
    pub every: f64,
}

impl Overhead {
    /// All of it in bytes, by hot tuples, when this share of tuples is hot.
    pub fn bytes_per_hot_tuple(self, memory: f64) -> f64 {
        (self.hot + self.every / memory) / 8.0
    }
}

impl Policy {
    /// The name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Best => "best",
            Policy::Temperature => "temperature",
            Policy::TinyLfu => "tinylfu",
            Policy::S3Fifo => "s3fifo",
            Policy::Clock => "clock",
            Policy::Fifo => "fifo",
            Policy::Lru => "lru",
            Policy::Alru => "alru",
            Policy::Offline => "offline",
        }
    }

    /// What it remembers, packed as an engine would; `None` for [`Policy::Best`], which
    /// is told. That a tuple is hot at all is in its directory word.
    pub fn overhead(self, capacity: usize) -> Option<Overhead> {
        let (hot, every) = match self {
            Policy::Best => return None,
            Policy::Temperature => (0.0, 3.0),
            // Two ids and the list; the sketch.
            Policy::TinyLfu => (66.0 + sketch::bits(capacity) as f64 / capacity as f64, 0.0),
            // An id, the queue, the counter; ghosts are an id each.
            Policy::S3Fifo => (32.0 + 1.0 + 2.0 + 0.9 * 32.0, 0.0),
            Policy::Clock => (2.0, 0.0),
            Policy::Fifo => (0.0, 0.0),
            Policy::Lru | Policy::Alru => (64.0, 0.0),
            // A record of the log, the list; an estimate, and whether it was given out.
            Policy::Offline => (32.0 + 2.0, 33.0),
        };
        Some(Overhead { hot, every })
    }
}
