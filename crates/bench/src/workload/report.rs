//! A run's result: as JSON with stable keys, and as a table for a person. What the run could
//! not measure is `null`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::drive::Driven;
use super::tally::KindTally;
use super::{Kind, Workload};
use crate::machine::{self, Machine};
use crate::{Result, size};

/// Violations that are printed.
const VIOLATIONS_PRINTED: usize = 20;

/// Counters at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub evictions: Option<u64>,
    pub blocks_evicted: Option<u64>,
    pub misses: Option<u64>,
    pub rss_bytes: Option<u64>,
    pub cpu_us: Option<u64>,
}

/// One second of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Second {
    /// When it ended, in seconds from the beginning of measuring.
    pub end_s: f64,
    /// Operations that ended in it, by its length.
    pub ops_per_s: f64,
    /// Rows that left memory in it.
    pub evictions: Option<u64>,
    /// Blocks that were written for that.
    pub blocks_evicted: Option<u64>,
    /// Bytes read from devices.
    pub read_bytes: Option<u64>,
    /// Bytes written to devices.
    pub written_bytes: Option<u64>,
    /// The database's resident memory at its end.
    pub rss_bytes: Option<u64>,
}

/// What is told of one kind of transaction, or of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindReport {
    /// Its name.
    pub name: String,
    /// Its share by the specification, in percent.
    pub percent: f64,
    /// Its share of the operations that were measured, in percent.
    pub percent_measured: Option<f64>,
    /// Committed.
    pub done: u64,
    /// Failures that the specification expects, by name.
    pub expected_failures: BTreeMap<String, u64>,
    /// How often one was tried again after a conflict.
    pub retries: u64,
    /// Median latency.
    pub p50_us: Option<f64>,
    /// 95 of 100 took no longer.
    pub p95_us: Option<f64>,
    /// 99 of 100 took no longer.
    pub p99_us: Option<f64>,
    /// 999 of 1000 took no longer.
    pub p999_us: Option<f64>,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Operations a second, expected failures included.
    pub ops_per_s: f64,
    /// The figure that the specification asks for.
    pub headline: Option<(String, f64)>,
    /// Seconds measured.
    pub measured_s: f64,
    /// Operations measured.
    pub operations: u64,
    /// How often an operation was tried again after a conflict.
    pub retries: u64,
    /// Median latency.
    pub p50_us: Option<f64>,
    /// 99 of 100 operations took no longer.
    pub p99_us: Option<f64>,
    /// 999 of 1000 operations took no longer.
    pub p999_us: Option<f64>,
    /// Bytes read from devices.
    pub read_bytes: Option<u64>,
    /// Bytes written to devices.
    pub written_bytes: Option<u64>,
    /// Rows that left memory.
    pub evictions: Option<u64>,
    /// Rows that had to be read from the device.
    pub misses: Option<u64>,
    /// Processor time of the database's process for each operation; in process the workload's
    /// own, too.
    pub cpu_us_per_op: Option<f64>,
    /// The largest resident memory, sampled every 10 ms; of the first trial in process the
    /// load's, too.
    pub rss_max_bytes: Option<u64>,
    /// By kind of transaction.
    pub kinds: Vec<KindReport>,
    /// Second by second.
    pub seconds: Vec<Second>,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The workload.
    pub workload: String,
    /// What was loaded.
    pub shape: String,
    /// What it ran against: the device in process, the server's version over the wire.
    pub target: String,
    /// The policy, in process.
    pub policy: Option<String>,
    /// The memory limit, in process.
    pub memory_limit_bytes: Option<u64>,
    /// About how many bytes were loaded.
    pub data_bytes: u64,
    /// Seconds that loading took; `null` when the rows were there.
    pub load_s: Option<f64>,
    /// One for each trial.
    pub trials: Vec<Trial>,
    /// The largest resident memory of checks and the stop, in process.
    pub rss_max_bytes: Option<u64>,
    /// Whether the data was checked.
    pub checked: bool,
    /// What does not hold.
    pub violations: Vec<String>,
    /// What was chosen.
    pub options: serde_json::Value,
    /// What it ran on.
    pub machine: Machine,
    /// When.
    pub date: Option<String>,
    /// The commit that was checked out.
    pub commit: Option<String>,
}

fn quantiles(latency_ns: &hdrhistogram::Histogram<u64>) -> impl Fn(f64) -> Option<f64> + '_ {
    move |quantile| {
        let ns = latency_ns.value_at_quantile(quantile) as f64;
        (!latency_ns.is_empty()).then_some(ns / 1000.0)
    }
}

impl KindReport {
    fn new(kind: &Kind, tally: &KindTally, operations: u64) -> Self {
        let own = tally.operations();
        let quantile = quantiles(&tally.latency_ns);
        let expected = tally.expected.iter();
        KindReport {
            name: kind.name.into(),
            percent: kind.percent,
            percent_measured: (operations > 0).then(|| own as f64 * 100.0 / operations as f64),
            done: tally.done,
            expected_failures: expected.map(|(n, c)| ((*n).to_owned(), *c)).collect(),
            retries: tally.retries,
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
        }
    }
}

/// How much a counter grew.
fn grown(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

impl Trial {
    pub(super) fn new(
        kinds: &[Kind],
        driven: &Driven<Sample>,
        rss_max_bytes: Option<u64>,
    ) -> Result<Self> {
        let operations = driven.measured.operations();
        let measured_s = driven.elapsed.as_secs_f64();
        let latency = driven.measured.latency_ns()?;
        let quantile = quantiles(&latency);
        let pairs = driven.samples.iter().zip(driven.samples.iter().skip(1));
        let seconds = pairs.map(|((begin, before, from), (end, after, to))| Second {
            end_s: end.as_secs_f64(),
            ops_per_s: (after - before) as f64 / (*end - *begin).as_secs_f64().max(1e-9),
            evictions: grown(to.evictions, from.evictions),
            blocks_evicted: grown(to.blocks_evicted, from.blocks_evicted),
            read_bytes: grown(to.read_bytes, from.read_bytes),
            written_bytes: grown(to.written_bytes, from.written_bytes),
            rss_bytes: to.rss_bytes,
        });
        let first = driven.samples.first().map(|s| s.2).unwrap_or_default();
        let last = driven.samples.last().map(|s| s.2).unwrap_or_default();
        let per_op = |used: u64| used as f64 / operations as f64;
        let tallies = &driven.measured.kinds;
        Ok(Trial {
            ops_per_s: operations as f64 / measured_s.max(1e-9),
            headline: None,
            measured_s,
            operations,
            retries: tallies.iter().map(|kind| kind.retries).sum(),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            read_bytes: grown(last.read_bytes, first.read_bytes),
            written_bytes: grown(last.written_bytes, first.written_bytes),
            evictions: grown(last.evictions, first.evictions),
            misses: grown(last.misses, first.misses),
            cpu_us_per_op: grown(last.cpu_us, first.cpu_us)
                .filter(|_| operations > 0)
                .map(per_op),
            rss_max_bytes,
            kinds: (kinds.iter().zip(tallies))
                .map(|(kind, tally)| KindReport::new(kind, tally, operations))
                .collect(),
            seconds: seconds.collect(),
        })
    }
}

impl Report {
    pub(super) fn new<W: Workload>(
        workload: &W,
        target: String,
        load_s: Option<f64>,
        memory_limit_bytes: Option<u64>,
    ) -> Self {
        Report {
            workload: workload.name().into(),
            shape: workload.shape(),
            target,
            policy: None,
            memory_limit_bytes,
            data_bytes: workload.data_bytes(),
            load_s,
            trials: Vec::new(),
            rss_max_bytes: None,
            checked: false,
            violations: Vec::new(),
            options: serde_json::Value::Null,
            machine: machine::machine(),
            date: machine::date(),
            commit: machine::commit(),
        }
    }

    pub(super) fn with_options(mut self, options: serde_json::Value) -> Self {
        self.options = options;
        self
    }

    pub(super) fn note_violations(&mut self, violations: Vec<String>) {
        self.checked = true;
        self.violations = violations;
    }

    /// Whether nothing was found that does not hold.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.0}"))
}

fn bytes(value: Option<u64>) -> String {
    value.map_or("not measured".into(), size::display)
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "operations/s    {:.0}", self.ops_per_s)?;
        if let Some((name, value)) = &self.headline {
            writeln!(f, "{name:<15} {value:.0}")?;
        }
        writeln!(
            f,
            "latency (µs)    p50 {}, p99 {}, p99.9 {}",
            figure(self.p50_us),
            figure(self.p99_us),
            figure(self.p999_us)
        )?;
        writeln!(
            f,
            "device          read {}, written {}",
            bytes(self.read_bytes),
            bytes(self.written_bytes)
        )?;
        let count = |value: Option<u64>| value.map_or("not measured".into(), |n| n.to_string());
        writeln!(
            f,
            "rows            {} left memory, {} were read back",
            count(self.evictions),
            count(self.misses)
        )?;
        writeln!(
            f,
            "memory (RSS)    at most {}; processor {} µs an operation; {} tried again",
            bytes(self.rss_max_bytes),
            figure(self.cpu_us_per_op),
            self.retries
        )?;
        writeln!(
            f,
            "{:<24} {:>6} {:>8} {:>10} {:>9} {:>9} {:>9}  expected failures",
            "transaction", "%", "measured", "committed", "p50 µs", "p95 µs", "p99 µs"
        )?;
        for kind in &self.kinds {
            let failures = kind.expected_failures.iter();
            let failures: Vec<String> = failures.map(|(n, c)| format!("{n}: {c}")).collect();
            writeln!(
                f,
                "{:<24} {:>6.1} {:>8} {:>10} {:>9} {:>9} {:>9}  {}",
                kind.name,
                kind.percent,
                kind.percent_measured
                    .map_or("-".into(), |percent| format!("{percent:.2}")),
                kind.done,
                figure(kind.p50_us),
                figure(kind.p95_us),
                figure(kind.p99_us),
                failures.join(", ")
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "target          {}", self.target)?;
        writeln!(f, "workload        {} ({})", self.workload, self.shape)?;
        write!(
            f,
            "data            about {}",
            size::display(self.data_bytes)
        )?;
        match self.memory_limit_bytes {
            Some(limit) => writeln!(f, ", limit {}", size::display(limit))?,
            None => writeln!(f)?,
        }
        for trial in &self.trials {
            write!(f, "{trial}")?;
        }
        match (self.checked, self.violations.len()) {
            (false, _) => writeln!(f, "checks          none"),
            (true, 0) => writeln!(f, "checks          all hold"),
            (true, count) => {
                writeln!(f, "checks          {count} do not hold")?;
                for violation in self.violations.iter().take(VIOLATIONS_PRINTED) {
                    writeln!(f, "VIOLATION: {violation}")?;
                }
                Ok(())
            }
        }
    }
}
