//! A run's result: as JSON with stable keys, and as a table for a person.

use std::fmt;

use serde::Serialize;

use super::Options;
use super::measure::{Measured, Tally};
use crate::machine::{self, Machine};
use crate::size;

/// What the database's process has used so far: bytes from and to devices, and
/// processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub cpu_us: u64,
}

/// The result of a run. What the run could not measure is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Operations a second.
    pub ops_per_s: Option<f64>,
    /// Median latency.
    pub p50_us: Option<f64>,
    /// 99 of 100 operations took no longer.
    pub p99_us: Option<f64>,
    /// 999 of 1000 operations took no longer.
    pub p999_us: Option<f64>,
    /// Accesses to tuples that were not in memory, as a share of all accesses.
    pub miss_share: Option<f64>,
    /// The largest resident memory of the database's process, load included,
    /// sampled every 10 ms. In process that includes the workload's own.
    pub rss_max_bytes: Option<u64>,
    /// Bytes read from devices for each operation.
    pub read_bytes_per_op: Option<f64>,
    /// Bytes written to devices for each operation (log, blocks, checkpoints).
    pub written_bytes_per_op: Option<f64>,
    /// Processor time of the database's process for each operation, in
    /// microseconds. In process that includes the workload's own.
    pub cpu_us_per_op: Option<f64>,
    /// Operations measured.
    pub operations: u64,
    /// Seconds measured.
    pub measured_s: f64,
    /// Seconds that loading took; `null` when the rows were there.
    pub load_s: Option<f64>,
    /// What was run.
    pub options: Options,
    /// What it ran against: the device in process, the server's version over the wire.
    pub target: String,
    /// What it ran on.
    pub machine: Machine,
    /// When.
    pub date: Option<String>,
    /// The commit that was checked out.
    pub commit: Option<String>,
}

impl Report {
    pub(super) fn new(
        options: &Options,
        tally: &Tally,
        measured: &Measured<Option<Usage>>,
        target: String,
        rss_max_bytes: Option<u64>,
        load_s: Option<f64>,
    ) -> Self {
        let operations = tally.operations();
        let measured_s = measured.elapsed.as_secs_f64();
        let usage = measured
            .before
            .zip(measured.after)
            .filter(|_| operations > 0);
        let per_op = |used: fn(&Usage) -> u64| {
            let (before, after) = usage?;
            let grown = used(&after).checked_sub(used(&before))?;
            Some(grown as f64 / operations as f64)
        };
        Report {
            ops_per_s: (operations > 0).then(|| operations as f64 / measured_s),
            p50_us: tally.latency_us(0.5),
            p99_us: tally.latency_us(0.99),
            p999_us: tally.latency_us(0.999),
            miss_share: tally.miss_share(),
            rss_max_bytes,
            read_bytes_per_op: per_op(|usage| usage.read_bytes),
            written_bytes_per_op: per_op(|usage| usage.written_bytes),
            cpu_us_per_op: per_op(|usage| usage.cpu_us),
            operations,
            measured_s,
            load_s,
            options: options.clone(),
            target,
            machine: machine::machine(),
            date: machine::date(),
            commit: machine::commit(),
        }
    }
}

fn figure(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) => format!("{value:.decimals$}"),
        None => "not measured".into(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        writeln!(f, "target          {}", self.target)?;
        writeln!(
            f,
            "workload        {} rows of {} bytes, Zipf {}, {:.0}% reads, {} threads, commit {}",
            options.rows,
            options.row_bytes,
            options.zipf,
            options.reads * 100.0,
            options.threads,
            if options.synchronous_commit {
                "synchronous"
            } else {
                "asynchronous"
            },
        )?;
        writeln!(f, "operations/s    {}", figure(self.ops_per_s, 0))?;
        writeln!(
            f,
            "latency (µs)    p50 {}, p99 {}, p99.9 {}",
            figure(self.p50_us, 1),
            figure(self.p99_us, 1),
            figure(self.p999_us, 1),
        )?;
        writeln!(
            f,
            "not in memory   {} (% of accesses)",
            figure(self.miss_share.map(|share| share * 100.0), 2)
        )?;
        let rss = self
            .rss_max_bytes
            .map_or("not measured".into(), size::display);
        match options.url {
            Some(_) => writeln!(f, "memory (RSS)    at most {rss}")?,
            None => writeln!(
                f,
                "memory (RSS)    at most {rss}, limit {}",
                size::display(options.memory_limit)
            )?,
        }
        writeln!(
            f,
            "device (B/op)   read {}, written {}",
            figure(self.read_bytes_per_op, 0),
            figure(self.written_bytes_per_op, 0),
        )?;
        writeln!(
            f,
            "processor       {} (µs/op)",
            figure(self.cpu_us_per_op, 2)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn report(usage: Option<Usage>, operations: u64) -> Report {
        let mut tally = Tally::new().expect("valid bounds");
        for _ in 0..operations {
            tally.record(Duration::from_micros(20), true, None);
        }
        let measured = Measured {
            elapsed: Duration::from_secs(2),
            before: Some(Usage {
                read_bytes: 1000,
                written_bytes: 0,
                cpu_us: 0,
            }),
            after: usage,
        };
        Report::new(
            &Options::default(),
            &tally,
            &measured,
            "model".into(),
            None,
            None,
        )
    }

    #[test]
    fn what_could_not_be_measured_is_null_and_never_zero() {
        let json = serde_json::to_value(report(None, 0)).expect("it can be written");
        for key in [
            "ops_per_s",
            "p50_us",
            "p99_us",
            "p999_us",
            "miss_share",
            "rss_max_bytes",
            "read_bytes_per_op",
            "written_bytes_per_op",
            "cpu_us_per_op",
        ] {
            assert!(
                json.get(key).is_some_and(|value| value.is_null()),
                "{key}: {json}"
            );
        }
        assert!(report(None, 0).to_string().contains("not measured"));
    }

    #[test]
    fn use_is_told_for_each_operation() {
        let usage = Usage {
            read_bytes: 11_000,
            written_bytes: 500,
            cpu_us: 1500,
        };
        let report = report(Some(usage), 100);
        assert_eq!(report.ops_per_s, Some(50.0));
        assert_eq!(report.read_bytes_per_op, Some(100.0));
        assert_eq!(report.written_bytes_per_op, Some(5.0));
        assert_eq!(report.cpu_us_per_op, Some(15.0));
    }
}
