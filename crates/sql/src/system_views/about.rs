//! What our views show, in words: what psql's `\d+` says of them and of their columns, and the
//! columns on the page of the system views (`reference.rs`).

/// A view of ours.
pub(super) struct About {
    /// Its name.
    pub(super) view: &'static str,
    /// What it shows.
    pub(super) text: &'static str,
    /// What its columns are.
    pub(super) columns: &'static [(&'static str, &'static str)],
}

/// All of them, as they are listed in the definitions.
pub(super) const ABOUT: [About; 11] = [
    About {
        view: "thermocline_memory",
        text: "Where the process's memory goes, one row for each use.",
        columns: &[("name", "the use"), ("bytes", "its bytes")],
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
            ("holes", "records in blocks whose rows have changed or gone"),
        ],
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
    },
    About {
        view: "thermocline_tablespaces",
        text: "One row for each [tablespace](../guides/tablespaces.md), `pg_default` (the data directory) first: \
               where it lies, whether it works, and what lies in it.",
        columns: &[
            ("spcname", "its name"),
            ("oid", "its number"),
            (
                "directory",
                "where its blocks lie; empty: in the data directory",
            ),
            (
                "state",
                "`there`; `refusing` if it refused a block a short time ago; otherwise why it is missing",
            ),
            ("device", "the class of its device; empty: the server's"),
            ("emulated", "whether its device is emulated"),
            (
                "read_us",
                "what was measured when it was made, if nothing said what its device is: a random read of 4 KB",
            ),
            ("reads_per_second", "such reads, 32 under way"),
            ("write_mb_s", "MB a second, written in a row"),
            ("sync_us", "a small write with its sync"),
            (
                "capacity",
                "the most bytes that its blocks may take; empty: no bound",
            ),
            ("tables", "tables whose evicted rows go there"),
            ("blocks", "blocks there"),
            ("block_bytes", "their bytes"),
            (
                "blocks_leaving",
                "of these, blocks of tables that have another tablespace by now",
            ),
            ("blocks_coming", "blocks of its tables that lie elsewhere"),
            ("file_bytes", "length of its file"),
            ("free_bytes", "free in that file"),
        ],
    },
    About {
        view: "thermocline_policies",
        text: "One row for each table: the [policy](../guides/policy.md) in force, and what \
               it did since the start, or since the table was emptied.",
        columns: &[
            ("schemaname", "the table's schema"),
            ("relname", "the table"),
            ("relid", "its number"),
            (
                "base",
                "the policy that the table's own options are added to: `server`, `generic` or `paper`",
            ),
            ("said", "the table's own options"),
            ("identification", "how its cold rows are found"),
            (
                "alru_sample",
                "the share of transactions that counts, for `alru`",
            ),
            (
                "offline_sample",
                "the share of uses that are logged, for `offline`",
            ),
            ("timing", "when rows leave"),
            ("retrieval", "how they come back"),
            ("read_unit", "what is read"),
            (
                "access",
                "whether they are read from the device, or used where they lie",
            ),
            ("merge", "what becomes of a row that was read"),
            ("merge_unit", "of that row, or of its block"),
            ("block_bytes", "bytes of a block"),
            ("compression", "how the rows of a block are written"),
            ("compaction", "when blocks with holes are emptied"),
            (
                "fill_factor",
                "with `lazy`, a block is emptied when a smaller share of its records lives",
            ),
            (
                "rows_identified",
                "rows that were found to be those that leave next",
            ),
            ("rows_evicted", "rows that left memory"),
            (
                "rows_evicted_clean",
                "of these, rows that left without a write",
            ),
            ("rows_fetched", "evicted rows that statements needed"),
            ("rows_merged", "how often such a row became hot"),
            (
                "rows_not_merged",
                "how often such a row was used and forgotten",
            ),
            (
                "rows_came_along",
                "rows that became hot because a row of their block did",
            ),
            (
                "restarts",
                "runs that were undone to read rows, and repeated",
            ),
            ("sync_reads", "reads for which the partition was held"),
            (
                "byte_reads",
                "rows that were used where they lay, without a read",
            ),
            (
                "bytes_written",
                "of blocks, by eviction, checkpoints and compaction",
            ),
            ("bytes_read", "of blocks, for statements"),
        ],
    },
    About {
        view: "thermocline_columns",
        text: "One row for each column of a [column table](../explain/columns.md).",
        columns: &[
            ("schemaname", "the table's schema"),
            ("relname", "the table"),
            ("relid", "its number"),
            ("attname", "the column"),
            ("rows_main", "rows of the table in row groups"),
            ("rows_delta", "rows of the table in memory, row by row"),
            (
                "groups",
                "row groups that have the column; older ones than the column do not",
            ),
            ("nulls", "how many NULLs are in them"),
            ("device_bytes", "what the column takes in them"),
            ("memory_bytes", "how much of that is in memory, too"),
            (
                "encodings",
                "how many groups have it in which encoding: `dictionary 3, run length 1`",
            ),
            (
                "groups_scanned",
                "row groups of the table that queries came to since the start",
            ),
            (
                "groups_skipped",
                "of these, groups in which no row met the conditions: no row was read",
            ),
            (
                "state",
                "`hot`: in memory; `cold`: not; `partly loaded`; `warm`: kept on the device, see `LOAD … WARM`",
            ),
            ("unload_priority", "from 0, what leaves memory last, to 9"),
        ],
    },
    About {
        view: "thermocline_column_use",
        text: "How each column of a [column table](../explain/columns.md) was used since the start of the server. A rewrite of the table begins again.",
        columns: &[
            ("schemaname", "the table's schema"),
            ("relname", "the table"),
            ("relid", "its number"),
            ("attname", "the column"),
            ("indexed", "whether an index begins with the column"),
            (
                "projections",
                "scans and queries by an index that read the column, and had no condition on it",
            ),
            ("conditions", "those that had a condition on it"),
            ("chunks", "chunks of it that scans went through"),
            (
                "chunk_values",
                "values that scans decoded there: all for a condition, and those of the rows that are left",
            ),
            ("chunk_bytes", "bytes of those chunks, as they are encoded"),
            (
                "single_values",
                "values that were read for single rows; a single row is read with all its columns",
            ),
            (
                "device_reads",
                "chunks and pages of it that were read from the device",
            ),
            ("device_bytes", "their bytes"),
        ],
    },
    About {
        view: "thermocline_policy",
        text: "The server's policy, for tables that do not say otherwise.",
        columns: &[("name", "what is chosen"), ("value", "the choice")],
    },
    About {
        view: "thermocline_counters",
        text: "Counters since the start, one row for each.",
        columns: &[("name", "what is counted"), ("value", "the count")],
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
