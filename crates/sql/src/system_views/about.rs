//! What our views show, in words: what psql's `\d+` says of them and of their columns, and the
//! rows of the page on system views (`reference.rs`).

/// A view of ours.
pub(super) struct About {
    /// Its name.
    pub(super) view: &'static str,
    /// What it shows.
    pub(super) text: &'static str,
    /// What its columns are.
    pub(super) columns: &'static [(&'static str, &'static str)],
    /// The names in its first column, where they are always the same, and what each is.
    pub(super) rows: &'static [(&'static str, &'static str)],
}

/// All of them, as they are listed in the definitions.
pub(super) const ABOUT: [About; 7] = [
    About {
        view: "thermocline_memory",
        text: "Where the process's memory goes, one row for each use.",
        columns: &[("name", "the use"), ("bytes", "its bytes")],
        rows: &[
            ("limit", "`memory_limit`"),
            ("resident", "the process's resident memory"),
            ("resident_max", "its highest reading"),
            ("arena", "memory for hot rows"),
            ("huge_pages", "how much of it lies in huge pages"),
            ("tuples", "the hot rows in it"),
            ("directories", "row directories"),
            ("indexes", "indexes"),
            (
                "per_cold_tuple",
                "what a cold row still takes in memory: its word and its index entries",
            ),
            ("floor", "what hot rows keep: a sixth of the limit"),
            ("metadata", "row directories, indexes and catalog"),
            ("metadata_max", "how far these may grow"),
            ("versions", "old rows for open snapshots"),
            ("versions_max", "their share"),
            ("log_buffers", "buffers of the log"),
            ("read_buffers", "buffers of reads"),
            ("fetched", "evicted rows that statements have read"),
            ("analytical", "analytical queries"),
            ("clients", "what sessions hold"),
            ("clients_max", "the most that they held so far"),
            ("clients_share", "their share"),
            (
                "changes",
                "what changes take until they are committed or undone",
            ),
        ],
    },
    About {
        view: "thermocline_tables",
        text: "Hot and cold rows, one row for each table.",
        columns: &[
            ("schemaname", "the table's schema"),
            ("relname", "its name"),
            ("relid", "its number"),
            ("tuples_hot", "rows in memory"),
            ("tuples_cold", "rows on the device only"),
            ("hot_bytes", "memory of the hot rows"),
            ("metadata_bytes", "memory of row directory and indexes"),
            ("blocks", "blocks of cold rows"),
            ("block_bytes", "their bytes"),
            ("holes", "records in blocks that are no row's any more"),
        ],
        rows: &[],
    },
    About {
        view: "thermocline_devices",
        text: "What each device is and did.",
        columns: &[
            ("device", "its name"),
            ("kind", "its class"),
            ("emulated", "whether it is emulated"),
            ("read_latency_us", "its profile: the time of a read"),
            ("read_iops", "its profile: reads a second"),
            ("write_mb_s", "its profile: megabytes written a second"),
            ("sync_us", "its profile: the time of a sync"),
            ("reads", "reads so far"),
            ("read_bytes", "bytes read"),
            ("writes", "writes so far"),
            ("written_bytes", "bytes written"),
            ("syncs", "syncs so far"),
            ("errors", "operations that failed"),
            ("reads_in_flight", "reads under way"),
            ("read_latency_us_p50", "half of the reads took no longer"),
            ("read_latency_us_p99", "99 of 100 reads took no longer"),
            ("sync_latency_us_p50", "half of the syncs took no longer"),
            ("sync_latency_us_p99", "99 of 100 syncs took no longer"),
            ("free_bytes", "free space"),
            ("block_bytes", "space of blocks"),
            ("log_end", "how far the log goes"),
            ("log_durable", "how far it is on the device"),
            ("outstanding", "operations not answered yet"),
            ("oldest_outstanding_ms", "the age of the oldest of them"),
            ("longest_ms", "the longest operation so far"),
        ],
        rows: &[],
    },
    About {
        view: "thermocline_policy",
        text: "The policy in force.",
        columns: &[("name", "what is chosen"), ("value", "the choice")],
        rows: &[
            ("identification", "how cold rows are found"),
            ("retrieval", "how they come back"),
            ("merge", "what becomes of a row that came back"),
            ("block_bytes", "bytes of a block"),
            (
                "compaction_percent",
                "a block is compacted below this share of live bytes",
            ),
        ],
    },
    About {
        view: "thermocline_counters",
        text: "Counters since the start, one row for each.",
        columns: &[("name", "what is counted"), ("value", "the count")],
        rows: &[
            ("misses", "evicted rows that statements needed"),
            ("merges", "of these, rows that became hot"),
            ("overwrites", "evicted rows changed without a read"),
            ("warmed", "rows brought back after a start"),
            ("evictions", "rows that left memory"),
            (
                "clean_evictions",
                "of these, rows that left without a write",
            ),
            ("blocks_evicted", "blocks written by eviction"),
            ("blocks_checkpointed", "blocks written by checkpoints"),
            ("blocks_freed", "blocks given up"),
            ("tuples_compacted", "rows that compaction copied"),
            ("block_bytes_written", "bytes written in blocks"),
            (
                "image_bytes_written",
                "bytes written in images of checkpoints",
            ),
            ("checkpoints", "checkpoints"),
            ("checkpoint_last_ms", "how long the last checkpoint took"),
            (
                "checkpoint_last_image_bytes",
                "how much of directories and indexes it wrote",
            ),
            (
                "checkpoint_longest_hold_us",
                "the longest that statements of a partition waited for a checkpoint",
            ),
            ("recovery_ms", "the start: until it served"),
            (
                "recovery_whole_ms",
                "the start: until all partitions were there",
            ),
            ("recovery_rows", "rows in that start"),
            ("recovery_log_records", "records of log in that start"),
            ("memory_waits", "statements that waited for memory"),
            ("log_bytes", "bytes of log written"),
            (
                "refreshes",
                "serializable transactions that moved their snapshot",
            ),
            (
                "reads_joined",
                "times that the reads of a transaction were noted more coarsely",
            ),
            (
                "snapshots_ended",
                "snapshots that ended for want of memory (`72000`)",
            ),
        ],
    },
    About {
        view: "thermocline_sessions",
        text: "What each session holds, in bytes.",
        columns: &[
            ("pid", "the session's number"),
            ("usename", "its user"),
            ("application_name", "what the client calls itself"),
            ("state", "as in `pg_stat_activity`"),
            ("bytes", "all that follows together"),
            ("session", "the connection at rest"),
            ("message", "the message being received"),
            ("statement", "texts and syntax trees"),
            ("plan", "prepared statements"),
            ("portal", "cursors"),
            (
                "result",
                "rows not read yet, and batches of an analytical statement",
            ),
            ("parameters", "values of parameters"),
            ("changes", "uncommitted changes"),
            ("reads", "what a serializable transaction has noted as read"),
            ("value", "values that expressions make"),
        ],
        rows: &[],
    },
    About {
        view: "thermocline_recovery",
        text: "What the last start did, and what of it goes on.",
        columns: &[
            ("part", "the part of the start"),
            ("unit", "what is counted"),
            ("done", "how many are done"),
            ("total", "how many there are"),
            ("under_way", "whether it goes on"),
            ("milliseconds", "how long it took"),
        ],
        rows: &[
            ("partitions", "how many partitions are there"),
            ("images", "bytes of images read"),
            ("log", "bytes of log read"),
            (
                "settling",
                "the time for removing uncommitted rows and building missing indexes",
            ),
            ("warm-up", "sweeps that bring the warm rows back"),
        ],
    },
];

/// A comment on a view of ours or a column of it: the view's number, the column's (0 for the view),
/// the text.
pub(crate) fn comments() -> impl Iterator<Item = (u32, u16, &'static str)> {
    ABOUT.iter().flat_map(|about| {
        let oid = super::definition(about.view).map_or(0, |(oid, _)| oid);
        let columns = (1..).zip(about.columns.iter().map(|(_, text)| *text));
        let all = std::iter::once((0, about.text)).chain(columns);
        all.map(move |(column, text)| (oid, column, text))
    })
}
