//! Counters of the engine, summed over all partitions. Relaxed atomics: they
//! are for views and benchmarks, nothing depends on them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// The engine's counters.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub $field: AtomicU64,)*
        }

        /// A reading of the engine's counters.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct CountersReading {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Counters {
            /// Reads all of them.
            pub fn read(&self) -> CountersReading {
                CountersReading {
                    $($field: self.$field.load(Ordering::Relaxed),)*
                }
            }
        }
    };
}

counters! {
    /// Evicted tuples that statements needed (reads of the device are fewer:
    /// two that need the same tuple share one).
    misses,
    /// Fetched tuples that became hot.
    merges,
    /// Evicted tuples that were replaced or deleted without being read.
    overwrites,
    /// Tuples that came back in the background after the start.
    warmed,
    /// Tuples that left memory.
    evictions,
    /// Of these, tuples that were clean and needed no write.
    clean_evictions,
    /// Blocks written by the evictor.
    blocks_evicted,
    /// Blocks written by checkpoints.
    blocks_checkpointed,
    /// Blocks given up after compaction or because nothing in them lived.
    blocks_freed,
    /// Tuples copied from block to block.
    tuples_compacted,
    /// Bytes written in blocks.
    block_bytes_written,
    /// Bytes written in images of partitions.
    image_bytes_written,
    /// Checkpoints completed.
    checkpoints,
    /// Statements that waited for memory.
    memory_waits,
    /// Bytes of log records appended.
    log_bytes,
    /// Serializable transactions that moved their snapshot forward.
    refreshes,
    /// How often what a serializable transaction had read was noted more coarsely, since it
    /// took too much memory: it may be refused for what it has not read.
    reads_joined,
    /// Moments whose snapshots were ended, since before-images took too much memory.
    snapshots_ended,
}

impl Counters {
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub fn missed(&self, tuples: u64) {
        Self::add(&self.misses, tuples);
    }

    pub fn merged(&self) {
        Self::add(&self.merges, 1);
    }

    pub fn waited_for_memory(&self) {
        Self::add(&self.memory_waits, 1);
    }

    pub fn logged(&self, end: u64) {
        self.log_bytes.fetch_max(end, Ordering::Relaxed);
    }
}
