//! Metrics in Prometheus' text format: names with their units, and what they mean. All are read
//! without a lock that a statement holds while it runs or waits: partitions may be busy, the
//! device may be silent.

use std::fmt::{Display, Write};

use thermocline_sql::Engine;

use crate::metrics::Metrics;

/// The text being made.
#[derive(Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Help is ours; it has neither line breaks nor backslashes.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        debug_assert!(name.ends_with("_total"), "{name}");
        self.family(name, "counter", help);
        self.sample(name, "", value);
    }

    fn finish(self) -> String {
        self.0
    }
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

/// All that there is to tell; before there is a database little more than that.
pub(crate) fn metrics(health: &str, serves: Option<(&Engine, &Metrics)>) -> String {
    let mut out = Exposition::default();
    out.family(
        "thermocline_build_info",
        "gauge",
        "The program, always 1; its version is a label.",
    );
    let version = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");
    out.sample("thermocline_build_info", version, 1);
    out.gauge(
        "thermocline_healthy",
        "Whether /health answers 200: it serves, and the device has not failed.",
        u8::from(health == SERVES),
    );
    if let Some((engine, metrics)) = serves {
        memory(&mut out, engine);
        clients(&mut out, engine, metrics);
        engine_counters(&mut out, engine);
        device(&mut out, engine);
        checkpoints(&mut out, engine);
    }
    out.finish()
}

/// What /health says when all is well.
pub(crate) const SERVES: &str = "serves";

fn memory(out: &mut Exposition, engine: &Engine) {
    let report = engine.database().memory_gauges();
    out.gauge(
        "thermocline_memory_limit_bytes",
        "memory_limit: the process's resident memory stays below it.",
        report.limit,
    );
    out.gauge(
        "thermocline_memory_resident_bytes",
        "Resident memory of the process, as it was read a few milliseconds ago.",
        report.resident,
    );
    out.gauge(
        "thermocline_memory_resident_max_bytes",
        "The highest reading of resident memory since the start.",
        report.resident_max,
    );
    let by_use = "thermocline_memory_used_bytes";
    out.family(
        by_use,
        "gauge",
        "Memory by use; see thermocline_memory_share_bytes for how much each may take.",
    );
    for (part, bytes) in [
        ("arena", report.arena),
        ("metadata", report.metadata),
        ("log_buffers", report.log_buffers),
        ("read_buffers", report.read_buffers),
        ("fetched", report.fetched),
        ("analytical", report.analytical),
        ("clients", report.clients.granted),
        ("changes", report.clients.changes),
    ] {
        out.sample(by_use, &format!("use=\"{part}\""), bytes);
    }
    let share = "thermocline_memory_share_bytes";
    out.family(
        share,
        "gauge",
        "The most that a use of memory may take now; floor is what hot rows keep.",
    );
    for (part, bytes) in [
        ("floor", report.floor),
        ("metadata", report.metadata_max),
        ("versions", report.versions_max),
        ("clients", report.clients.share),
    ] {
        out.sample(share, &format!("use=\"{part}\""), bytes);
    }
    out.gauge(
        "thermocline_memory_huge_pages_bytes",
        "Memory of rows that lies in huge pages.",
        report.huge_pages,
    );
    out.gauge(
        "thermocline_open_snapshots",
        "Snapshots that transactions and analytical statements hold.",
        report.snapshots,
    );
    out.gauge(
        "thermocline_client_memory_waiting",
        "Sessions that wait for memory for what their clients ask.",
        report.clients.waiting,
    );
    out.counter(
        "thermocline_client_memory_waits_total",
        "Times that a session waited for memory for what its client asked.",
        report.clients.waits,
    );
    out.counter(
        "thermocline_client_memory_refusals_total",
        "Times that a client was refused memory (SQLSTATE 53200).",
        report.clients.refused,
    );
}

fn clients(out: &mut Exposition, engine: &Engine, metrics: &Metrics) {
    let server = metrics.snapshot();
    out.gauge(
        "thermocline_connections",
        "Sessions that are open.",
        server.connections_open,
    );
    for (name, help, value) in [
        (
            "thermocline_connections_accepted_total",
            "Sockets accepted.",
            server.connections_accepted,
        ),
        (
            "thermocline_connections_refused_total",
            "Clients refused because too many were there (SQLSTATE 53300).",
            server.connections_refused,
        ),
        (
            "thermocline_startups_failed_total",
            "Clients not let in for another reason, or that never said who they are.",
            server.startups_failed,
        ),
        (
            "thermocline_cancel_requests_total",
            "Requests to cancel a statement.",
            server.cancel_requests,
        ),
        (
            "thermocline_clients_vanished_total",
            "Clients that were gone while their statement ran.",
            server.clients_vanished,
        ),
        (
            "thermocline_session_panics_total",
            "Sessions that ended by a fault of the program.",
            server.panics,
        ),
        (
            "thermocline_messages_received_total",
            "Messages of clients.",
            server.messages_received,
        ),
        (
            "thermocline_received_bytes_total",
            "Bytes received from clients.",
            server.received_bytes,
        ),
        (
            "thermocline_sent_bytes_total",
            "Bytes sent to clients.",
            server.sent_bytes,
        ),
    ] {
        out.counter(name, help, value);
    }
    out.gauge(
        "thermocline_network_buffer_bytes",
        "Memory that network buffers hold.",
        server.buffer_bytes,
    );
    let name = "thermocline_transactions_total";
    out.family(name, "counter", "Transactions that have ended.");
    let (committed, rolled_back) = engine.transactions();
    out.sample(name, "outcome=\"committed\"", committed);
    out.sample(name, "outcome=\"rolled_back\"", rolled_back);
}

fn engine_counters(out: &mut Exposition, engine: &Engine) {
    let counters = engine.database().counters();
    for (name, help, value) in [
        (
            "thermocline_cold_reads_total",
            "Evicted rows that statements needed from the device.",
            counters.misses,
        ),
        (
            "thermocline_merges_total",
            "Rows that came from the device and stayed in memory.",
            counters.merges,
        ),
        (
            "thermocline_overwrites_total",
            "Evicted rows that were replaced or deleted without being read.",
            counters.overwrites,
        ),
        (
            "thermocline_warmed_rows_total",
            "Rows that came back in the background after the start.",
            counters.warmed,
        ),
        (
            "thermocline_evictions_total",
            "Rows that left memory.",
            counters.evictions,
        ),
        (
            "thermocline_clean_evictions_total",
            "Of these, rows that needed no write.",
            counters.clean_evictions,
        ),
        (
            "thermocline_blocks_freed_total",
            "Blocks given up since nothing in them lives.",
            counters.blocks_freed,
        ),
        (
            "thermocline_compacted_rows_total",
            "Rows that compaction copied from block to block.",
            counters.tuples_compacted,
        ),
        (
            "thermocline_block_written_bytes_total",
            "Bytes written in blocks of rows.",
            counters.block_bytes_written,
        ),
        (
            "thermocline_image_written_bytes_total",
            "Bytes of images that checkpoints wrote.",
            counters.image_bytes_written,
        ),
        (
            "thermocline_memory_waits_total",
            "Statements that waited for memory.",
            counters.memory_waits,
        ),
        (
            "thermocline_snapshot_refreshes_total",
            "Serializable transactions that moved their snapshot forward.",
            counters.refreshes,
        ),
        (
            "thermocline_reads_joined_total",
            "Times that what a serializable transaction read was noted more coarsely for want of memory.",
            counters.reads_joined,
        ),
        (
            "thermocline_snapshots_ended_total",
            "Moments whose snapshots were ended for the memory they kept (SQLSTATE 72000).",
            counters.snapshots_ended,
        ),
    ] {
        out.counter(name, help, value);
    }
}

fn device(out: &mut Exposition, engine: &Engine) {
    let database = engine.database();
    out.gauge(
        "thermocline_device_failed",
        "Whether the log has stopped for good, since a write or sync failed: 1 until a restart.",
        u8::from(database.stopped_because().is_some()),
    );
    for report in database.device_reports() {
        let device = &report.counters;
        for (name, help, value) in [
            (
                "thermocline_device_reads_total",
                "Reads of the device.",
                device.reads,
            ),
            (
                "thermocline_device_read_bytes_total",
                "Bytes read from the device.",
                device.read_bytes,
            ),
            (
                "thermocline_device_writes_total",
                "Writes of the device.",
                device.writes,
            ),
            (
                "thermocline_device_written_bytes_total",
                "Bytes written to the device.",
                device.written_bytes,
            ),
            (
                "thermocline_device_syncs_total",
                "Syncs of the device.",
                device.syncs,
            ),
            (
                "thermocline_device_errors_total",
                "Operations of the device that failed.",
                device.errors,
            ),
            (
                "thermocline_log_written_bytes_total",
                "The place of the log's end: bytes of log ever made.",
                report.log_end,
            ),
        ] {
            out.counter(name, help, value);
        }
        for (name, help, latency) in [
            (
                "thermocline_device_read_duration_seconds",
                "Time from a read's submission to its completion; quantiles since the start.",
                &device.read_latency,
            ),
            (
                "thermocline_device_sync_duration_seconds",
                "Time that syncs took; quantiles since the start.",
                &device.sync_latency,
            ),
        ] {
            out.family(name, "summary", help);
            for quantile in [0.5, 0.99] {
                let value = latency.quantile_us(quantile) / 1e6;
                out.sample(name, &format!("quantile=\"{quantile}\""), value);
            }
            out.sample(&format!("{name}_sum"), "", latency.total_us as f64 / 1e6);
            out.sample(&format!("{name}_count"), "", latency.count());
        }
        out.gauge(
            "thermocline_device_outstanding_operations",
            "Operations that the device has not answered yet.",
            device.outstanding.operations,
        );
        out.gauge(
            "thermocline_device_oldest_outstanding_seconds",
            "For how long the device has not answered the oldest of them.",
            device.outstanding.oldest.as_secs_f64(),
        );
        out.gauge(
            "thermocline_device_free_bytes",
            "Free space of the device.",
            report.free_bytes,
        );
        out.gauge(
            "thermocline_device_block_bytes",
            "Space that blocks of rows take.",
            report.block_bytes,
        );
        out.gauge(
            "thermocline_log_not_durable_bytes",
            "Bytes of log that are not on the device yet.",
            report.log_end.saturating_sub(report.log_durable),
        );
    }
}

fn checkpoints(out: &mut Exposition, engine: &Engine) {
    let database = engine.database();
    let report = database.checkpoint_report();
    let recovery = database.recovery_report();
    out.counter(
        "thermocline_checkpoints_total",
        "Checkpoints completed.",
        database.counters().checkpoints,
    );
    out.gauge(
        "thermocline_checkpoint_last_duration_seconds",
        "How long the last checkpoint took.",
        seconds(report.last_milliseconds),
    );
    out.gauge(
        "thermocline_checkpoint_longest_hold_seconds",
        "The longest time that statements of a partition waited for a checkpoint.",
        report.longest_hold_us as f64 / 1e6,
    );
    out.gauge(
        "thermocline_partitions_missing",
        "Partitions that are not there yet after the start.",
        u64::from(database.partitions() - recovery.partitions_there),
    );
    out.gauge(
        "thermocline_recovery_duration_seconds",
        "How long the start took until it served.",
        seconds(recovery.milliseconds),
    );
}
