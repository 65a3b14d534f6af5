//! What the policy of a table has done in a partition, counted under its lock. A change of policy
//! leaves the counts; they begin anew with the process, and with a storage.

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// What a policy has done with rows.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct PolicyCounts {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl PolicyCounts {
            /// With what was done elsewhere.
            pub fn add(&mut self, other: &PolicyCounts) {
                $(self.$field += other.$field;)*
            }

            /// Each, with its name.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}

counts! {
    /// Rows that were found to be those that leave next.
    identified,
    /// Rows that left memory.
    evicted,
    /// Of these, clean ones: they had a copy, and nothing was written.
    evicted_clean,
    /// Rows that statements needed and that were not in memory.
    fetched,
    /// Of these, rows that became hot.
    merged,
    /// Of these, rows that were used beside the table and forgotten.
    not_merged,
    /// Rows that became hot with one that was asked for, since they lay in its block.
    came_along,
    /// Runs of statements that were taken back, since rows had to be read first.
    restarts,
    /// Reads for which the partition was held.
    sync_reads,
    /// Rows that were used where they lay on the device, without a request.
    byte_reads,
    /// Bytes of blocks that were written: by eviction, checkpoints and compaction.
    bytes_written,
    /// Bytes that were read for statements.
    bytes_read,
}
