//! The pages on our views and on the settings of a session are printed from what the code has, and
//! compared with the pages that are there.

#[path = "../../../thermocline/tests/support/printed.rs"]
mod printed;

use std::fmt::Write as _;
use std::sync::Arc;

use thermocline_device::SimulatedDevice;
use thermocline_engine::{Config, Database};

use super::about::ABOUT;
use super::{counters, definition, memory, policy, recovery};
use crate::settings::{self, Kind};

/// A view whose first column has always the same names: each name, and what it is.
type Named = (&'static str, &'static [(&'static str, &'static str)]);

const NAMED: [Named; 4] = [
    (
        "thermocline_memory",
        &[
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
            (
                "column_chunks",
                "columns of column tables that stay in memory",
            ),
            ("warm_buffer", "pages of columns that are warm"),
            ("warm_buffer_max", "the most that these may take"),
            (
                "devices",
                "memory that stands for emulated devices; beside `resident` and the limit",
            ),
            ("analytical", "analytical queries"),
            ("clients", "what sessions hold"),
            ("clients_max", "the most that they held so far"),
            ("clients_share", "their share"),
            (
                "changes",
                "what changes take until they are committed or undone",
            ),
        ],
    ),
    (
        "thermocline_policy",
        &[
            ("identification", "how cold rows are found"),
            ("retrieval", "how they come back"),
            ("merge", "what becomes of a row that came back"),
            ("block_bytes", "bytes of a block"),
            (
                "compaction_percent",
                "a block is compacted below this share of live bytes",
            ),
        ],
    ),
    (
        "thermocline_counters",
        &[
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
            (
                "column_pages_read",
                "pages of row groups that were read for single rows",
            ),
        ],
    ),
    (
        "thermocline_recovery",
        &[
            ("partitions", "how many partitions are there"),
            ("images", "bytes of images read"),
            ("log", "bytes of log read"),
            (
                "settling",
                "the time for removing uncommitted rows and building missing indexes",
            ),
            ("warm-up", "sweeps that bring the warm rows back"),
        ],
    ),
];

#[test]
fn reference_views_are_as_the_code_has_them() {
    let db = Database::open(Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30))
        .unwrap();
    let mut text = String::new();
    for about in &ABOUT {
        let (_, columns) = definition(about.view).expect(about.view);
        let told: Vec<&str> = about.columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(told, columns, "{}", about.view);
        let rows = match about.view {
            "thermocline_memory" => memory(&db),
            "thermocline_policy" => policy(&db),
            "thermocline_counters" => counters(&db),
            "thermocline_recovery" => recovery(&db),
            _ => Vec::new(),
        };
        let names: Vec<_> = rows.iter().map(|row| row[0].as_text().unwrap()).collect();
        let named = NAMED.iter().find(|(view, _)| *view == about.view);
        let named = named.map_or(&[][..], |(_, rows)| rows);
        let told: Vec<_> = named.iter().map(|(name, _)| *name).collect();
        assert_eq!(told, names, "{}", about.view);

        let _ = writeln!(text, "## {}\n\n{}\n", about.view, about.text);
        for (heading, rows) in [("column", about.columns), ("in the first column", named)] {
            if rows.is_empty() {
                continue;
            }
            let _ = writeln!(text, "| {heading} | is |\n|---|---|");
            for (name, what) in rows {
                text.push_str(&printed::row(&[format!("`{name}`"), (*what).to_owned()]));
            }
            text.push('\n');
        }
    }
    printed::compare("docs/reference/views.md", "views", &text);
}

#[test]
fn each_view_of_ours_is_told_about() {
    let ours = super::DEFINITIONS
        .lines()
        .filter_map(|line| line.split('\t').nth(1));
    let ours: Vec<&str> = ours
        .filter(|name| name.starts_with("thermocline_"))
        .collect();
    for view in &ours {
        assert!(ABOUT.iter().any(|about| about.view == *view), "{view}");
    }
    assert_eq!(ours.len(), ABOUT.len());
}

/// What a setting takes.
fn values(kind: Kind) -> String {
    match kind {
        Kind::Bool => "`on`, `off`".to_owned(),
        Kind::Integer(least, most) => format!("{least} to {most}"),
        Kind::Real(least, most) if most == f64::MAX => format!("{least} and more"),
        Kind::Real(least, most) => format!("{least} to {most}"),
        Kind::Memory(..) => "a size".to_owned(),
        Kind::Milliseconds => "a time; a number alone is milliseconds, 0 is none".to_owned(),
        Kind::MillisecondsOrNever => "a time; a number alone is milliseconds".to_owned(),
        Kind::Enum(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        Kind::Text => "a text".to_owned(),
        Kind::Names => "names".to_owned(),
        Kind::Encoding => "an encoding".to_owned(),
        Kind::TimeZone => "a time zone".to_owned(),
        Kind::DateStyle => "a style and an order".to_owned(),
    }
}

#[test]
fn reference_settings_of_a_session_are_as_the_code_has_them() {
    let mut table = String::from("| setting | default | values | who | |\n|---|---|---|---|---|\n");
    let mut settings: Vec<_> = settings::all()
        .filter(|one| !one.description.starts_with("Accepted for compatibility"))
        .collect();
    settings.sort_by_key(|one| one.name.to_lowercase());
    for one in settings {
        // What the server sets when it starts.
        let default = match one.name {
            "max_connections"
            | "memory_limit"
            | "partitions"
            | "warm_buffer"
            | "superuser_reserved_connections" => "the server's".to_owned(),
            "server_version" => "15 and Thermocline's".to_owned(),
            _ if one.default.is_empty() => String::new(),
            _ => format!("`{}`", one.default),
        };
        let who = match (one.settable, one.superuser) {
            (false, _) => "nobody",
            (true, true) => "superusers",
            (true, false) => "",
        };
        table.push_str(&printed::row(&[
            format!("`{}`", one.name),
            default,
            match one.settable {
                true => values(one.kind),
                false => String::new(),
            },
            who.to_owned(),
            one.description.to_owned(),
        ]));
    }
    printed::compare("docs/reference/settings.md", "session", &table);
}
