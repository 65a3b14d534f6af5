//! Which tuples should stay in memory: policies of finding cold tuples, compared on traces
//! by the share of accesses that miss. Ids only: what the engine does beside its policies, and
//! the device, are not in the figures.
//!
//! Each trace is gone through once, and given to all policies chunk by chunk.

mod order_lines;
pub mod policies;
mod report;
mod traces;

#[cfg(test)]
mod tests;

use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use thermocline_engine::identification::Identification;

use crate::Result;
use policies::{Choice, Driven, Policy, TinyLfu};
pub use report::Report;
pub use traces::{Event, Shape, Trace};

/// Events given to one policy before the next one's turn, so that each finds what it
/// works on in the processor's caches.
const CHUNK: usize = 1 << 16;
/// Each policy has room for something at least.
const CAPACITY_MIN: usize = 100;

/// `thermocline bench identification`.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
pub struct Options {
    /// Tuples.
    #[arg(long, default_value_t = 400_000)]
    pub tuples: usize,
    /// The share of tuples that fits memory.
    #[arg(long, default_value_t = 0.125)]
    pub memory: f64,
    /// Accesses of a trace, as a multiple of its tuples; the last fifth is measured.
    #[arg(long, default_value_t = 25)]
    pub accesses: u64,
    /// The share of uses that aLRU takes into account.
    #[arg(long, default_value_t = 0.1)]
    pub sample: f64,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only these traces.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub trace: Vec<Trace>,
    /// Only these policies.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub policy: Vec<Policy>,
    /// Writes the report to this file, too.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tuples: 400_000,
            memory: 0.125,
            accesses: 25,
            sample: 0.1,
            seed: 1,
            trace: Vec::new(),
            policy: Vec::new(),
            json: None,
        }
    }
}

impl Options {
    /// What can't be run, and why.
    fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(what.into());
        if !(self.memory > 0.0 && self.memory <= 1.0) {
            return wrong("--memory is a share: above 0, at most 1");
        }
        if self.capacity() < CAPACITY_MIN {
            return wrong("--memory by --tuples must be 100 at least");
        }
        // Ids are of 32 bits, and inserts need some, too.
        let events = (self.tuples as u64).checked_mul(self.accesses.max(1));
        if events.is_none_or(|events| events > u64::from(u32::MAX) / 2) {
            return wrong("--tuples by --accesses must be below 2 billion");
        }
        if self.accesses < 5 {
            return wrong("--accesses must be at least 5");
        }
        if !(0.0..=1.0).contains(&self.sample) {
            return wrong("--sample is a share: from 0 to 1");
        }
        Ok(())
    }

    /// Tuples that fit memory.
    fn capacity(&self) -> usize {
        (self.tuples as f64 * self.memory) as usize
    }

    fn shape(&self) -> Shape {
        Shape {
            tuples: self.tuples,
            capacity: self.capacity(),
            accesses: self.tuples as u64 * self.accesses,
            seed: self.seed,
        }
    }

    fn traces(&self) -> Vec<Trace> {
        chosen(&self.trace)
    }

    fn policies(&self) -> Vec<Policy> {
        chosen(&self.policy)
    }

    fn choice(&self, policy: Policy, trace: Trace) -> Option<Box<dyn Choice>> {
        let (tuples, capacity) = (self.tuples, self.capacity());
        let driven = |identification| -> Option<Box<dyn Choice>> {
            Some(Box::new(Driven::new(identification, tuples, capacity)))
        };
        match policy {
            Policy::Best => Some(Box::new(trace.best(&self.shape())?)),
            Policy::TinyLfu => Some(Box::new(TinyLfu::new(capacity))),
            Policy::Temperature => driven(Identification::Temperature),
            Policy::S3Fifo => driven(Identification::S3Fifo),
            Policy::Clock => driven(Identification::Clock),
            Policy::Fifo => driven(Identification::Fifo),
            Policy::Lru => driven(Identification::Lru),
            Policy::Offline => driven(Identification::Offline),
            Policy::Alru => Some(Box::new(Driven::sampled_lru(tuples, capacity, self.sample))),
        }
    }
}

/// All, if none was named.
fn chosen<T: clap::ValueEnum>(named: &[T]) -> Vec<T> {
    let all = T::value_variants();
    if named.is_empty() { all } else { named }.to_vec()
}

/// Accesses of a column, how many of them missed, and how many made a tuple hot.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    accesses: u64,
    misses: u64,
    admitted: u64,
}

impl Count {
    /// None: the trace has no such accesses.
    fn shares(&self) -> Option<Shares> {
        let share = |part: u64| part as f64 / self.accesses as f64;
        (self.accesses > 0).then(|| Shares {
            misses: share(self.misses),
            admitted: share(self.admitted),
        })
    }
}

/// What a policy did in a column, as shares of its accesses.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shares {
    misses: f64,
    admitted: f64,
}

/// A policy under way.
struct Runner {
    choice: Box<dyn Choice>,
    capacity: usize,
    column: Option<usize>,
    counts: Vec<Count>,
}

impl Runner {
    fn take(&mut self, events: &[Event]) {
        for &event in events {
            match event {
                Event::Access(tuple) => {
                    let hit = self.choice.access(tuple);
                    if let Some(column) = self.column {
                        let admitted = !hit && self.choice.is_hot(tuple);
                        self.counts[column].accesses += 1;
                        self.counts[column].misses += u64::from(!hit);
                        self.counts[column].admitted += u64::from(admitted);
                    }
                }
                Event::Insert(tuple) => self.choice.insert(tuple),
                Event::Measure(column) => self.column = column,
            }
            assert!(
                self.choice.hot() <= self.capacity,
                "more tuples are hot than fit"
            );
        }
    }
}

/// What the policies did on a trace, by policy and column.
fn measure(
    options: &Options,
    trace: Trace,
    policies: &[Policy],
    bar: &ProgressBar,
) -> Result<Vec<Vec<Option<Shares>>>> {
    let columns = trace.columns().len();
    let shape = options.shape();
    let mut runners: Vec<Option<Runner>> = policies
        .iter()
        .map(|&policy| {
            Some(Runner {
                choice: options.choice(policy, trace)?,
                capacity: shape.capacity,
                column: None,
                counts: vec![Count::default(); columns],
            })
        })
        .collect();
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut give = |chunk: &mut Vec<Event>| {
        for runner in runners.iter_mut().flatten() {
            runner.take(chunk);
        }
        bar.inc(chunk.len() as u64);
        chunk.clear();
    };
    trace.run(&shape, &mut |event| {
        chunk.push(event);
        if chunk.len() == CHUNK {
            give(&mut chunk);
        }
    })?;
    give(&mut chunk);
    Ok(runners
        .iter()
        .map(|runner| match runner {
            Some(runner) => runner.counts.iter().map(Count::shares).collect(),
            None => vec![None; columns],
        })
        .collect())
}

/// Goes through the traces, prints a table, and writes the JSON file.
pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    let report = compare(options)?;
    print!("{report}");
    if let Some(path) = &options.json {
        let mut text = serde_json::to_string_pretty(&report)?;
        text.push('\n');
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn compare(options: &Options) -> Result<Report> {
    let (traces, policies) = (options.traces(), options.policies());
    let shape = options.shape();
    let length = traces.iter().map(|trace| trace.length(&shape)).sum();
    let bar = progress_bar(length);
    let mut report = Report::new(options, &policies);
    for trace in traces {
        bar.set_message(trace.columns().swap_remove(0));
        // What the others are measured by is needed even if it is not shown.
        let mut measured = policies.clone();
        measured.push(Policy::Best);
        let mut shares = measure(options, trace, &measured, &bar)?;
        let best = shares.pop().unwrap_or_default();
        report.add(&trace.columns(), &shares, &best);
    }
    bar.finish_and_clear();
    Ok(report)
}

/// A bar on stderr; nothing where stderr is not a terminal.
fn progress_bar(events: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(events);
    let template = "{msg:16} {wide_bar} {human_pos}/{human_len} accesses, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
