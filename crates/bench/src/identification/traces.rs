//! The traces: which tuples are used and inserted, one after the other. A trace is always
//! the same for the same seed, and all policies are given the same one.
//!
//! All tuples are cold at first, unless the trace begins with a load. It says when what follows is to be measured, and as
//! which of its columns.

use clap::ValueEnum;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use super::order_lines;
use super::policies::Best;
use crate::Result;
use crate::ycsb::{KeyChooser, Scatter};

/// YCSB's exponent.
const LATEST_EXPONENT: f64 = 0.99;
/// The share of inserts in YCSB's workload D.
const LATEST_INSERTS: f64 = 0.05;
/// Of all accesses, the last fifth is measured.
const MEASURED: f64 = 0.2;
/// The hot set that moves, by what fits memory, and how often it is passed over before it
/// moves; the figures are means over all moves.
const HOT_SET: f64 = 0.8;
const HOT_SETS: u64 = 4;
const PASSES: u64 = 12;
const PASSES_MEASURED: u64 = 4;
/// After a load: where what is measured ends, in accesses by what fits memory.
const LEARNING: [u64; 4] = [2, 5, 10, 20];
/// The share of accesses that go anywhere instead.
const STRAY: f64 = 0.05;

/// The traces by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
pub enum Trace {
    /// Zipf's law, exponent 0.5.
    #[value(name = "zipf-0.5")]
    #[serde(rename = "zipf-0.5")]
    Zipf050,
    /// Zipf's law, exponent 0.75.
    #[value(name = "zipf-0.75")]
    #[serde(rename = "zipf-0.75")]
    Zipf075,
    /// Zipf's law, exponent 1.
    #[value(name = "zipf-1.0")]
    #[serde(rename = "zipf-1.0")]
    Zipf100,
    /// Zipf's law, exponent 1.25.
    #[value(name = "zipf-1.25")]
    #[serde(rename = "zipf-1.25")]
    Zipf125,
    /// The load of all tuples in the order of their ids, then Zipf's law, exponent 0.75.
    #[value(name = "load-0.75")]
    #[serde(rename = "load-0.75")]
    Load075,
    /// The load, then exponent 1.
    #[value(name = "load-1.0")]
    #[serde(rename = "load-1.0")]
    Load100,
    /// All tuples alike.
    #[serde(rename = "uniform")]
    Uniform,
    /// A hot set that fits, and moves.
    #[serde(rename = "shift")]
    Shift,
    /// One scan of everything amid accesses by Zipf's law, exponent 1.
    #[serde(rename = "scan")]
    Scan,
    /// YCSB's workload D: new tuples are the likeliest.
    #[serde(rename = "latest")]
    Latest,
    /// TPC-C's order lines.
    #[serde(rename = "order-lines")]
    OrderLines,
}

/// How large a trace is.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Tuples at the beginning.
    pub tuples: usize,
    /// Tuples that fit memory.
    pub capacity: usize,
    /// Accesses, unless the trace has a length of its own.
    pub accesses: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A tuple is used.
    Access(u32),
    /// A tuple is inserted.
    Insert(u32),
    /// What follows belongs to this column, or is not measured.
    Measure(Option<usize>),
}

impl Shape {
    /// Accesses before what is measured.
    pub(super) fn warm(&self) -> u64 {
        self.accesses - (self.accesses as f64 * MEASURED) as u64
    }

    fn chooser(&self, exponent: f64) -> Result<KeyChooser> {
        KeyChooser::new(self.tuples as u64, exponent, self.seed)
    }

    fn hot_set(&self) -> u64 {
        ((self.capacity as f64 * HOT_SET) as u64).max(1)
    }
}

impl Trace {
    /// What is measured, for the table's head.
    pub fn columns(self) -> Vec<String> {
        match self {
            Trace::Zipf050 => vec!["Zipf 0.5".into()],
            Trace::Zipf075 => vec!["Zipf 0.75".into()],
            Trace::Zipf100 => vec!["Zipf 1.0".into()],
            Trace::Zipf125 => vec!["Zipf 1.25".into()],
            Trace::Load075 => load_columns("0.75"),
            Trace::Load100 => load_columns("1.0"),
            Trace::Uniform => vec!["uniform".into()],
            Trace::Shift => (1..=PASSES_MEASURED)
                .map(|pass| format!("shift, pass {pass}"))
                .collect(),
            Trace::Scan => vec!["before a scan".into(), "after it".into()],
            Trace::Latest => vec!["latest".into()],
            Trace::OrderLines => vec!["order lines".into()],
        }
    }

    /// About how many accesses there will be.
    pub fn length(self, shape: &Shape) -> u64 {
        match self {
            Trace::Shift => HOT_SETS * PASSES * shape.hot_set(),
            Trace::Load075 | Trace::Load100 => shape.tuples as u64 + shape.accesses,
            _ => shape.accesses,
        }
    }

    /// The best choice, where it is known.
    pub fn best(self, shape: &Shape) -> Option<Best> {
        let scatter = Scatter::new(shape.tuples as u64);
        match self {
            Trace::Shift | Trace::OrderLines => None,
            Trace::Latest => Some(Best::newest(shape.tuples, shape.capacity)),
            _ => Some(Best::fixed(scatter, shape.tuples, shape.capacity)),
        }
    }

    /// Goes through the trace.
    pub fn run(self, shape: &Shape, to: &mut dyn FnMut(Event)) -> Result<()> {
        match self {
            Trace::Zipf050 => zipf(shape, 0.5, to),
            Trace::Zipf075 => zipf(shape, 0.75, to),
            Trace::Zipf100 => zipf(shape, 1.0, to),
            Trace::Zipf125 => zipf(shape, 1.25, to),
            Trace::Load075 => load(shape, 0.75, to),
            Trace::Load100 => load(shape, 1.0, to),
            Trace::Uniform => zipf(shape, 0.0, to),
            Trace::Shift => shift(shape, to),
            Trace::Scan => scan(shape, to),
            Trace::Latest => latest(shape, to),
            Trace::OrderLines => {
                order_lines::run(shape, to);
                Ok(())
            }
        }
    }
}

fn zipf(shape: &Shape, exponent: f64, to: &mut dyn FnMut(Event)) -> Result<()> {
    let mut chooser = shape.chooser(exponent)?;
    for number in 0..shape.accesses {
        if number == shape.warm() {
            to(Event::Measure(Some(0)));
        }
        to(Event::Access(chooser.key() as u32));
    }
    Ok(())
}

fn load_columns(exponent: &str) -> Vec<String> {
    let mut from = 0;
    let mut columns = Vec::new();
    for to in LEARNING {
        columns.push(format!("loaded, {exponent}: {from}–{to}"));
        from = to;
    }
    columns.push(format!("{exponent}: at the end"));
    columns
}

fn load(shape: &Shape, exponent: f64, to: &mut dyn FnMut(Event)) -> Result<()> {
    for tuple in 0..shape.tuples as u32 {
        to(Event::Insert(tuple));
    }
    let mut chooser = shape.chooser(exponent)?;
    let mut column = None;
    for number in 0..shape.accesses {
        let now = if number < shape.warm() {
            let passes = number / shape.capacity as u64;
            LEARNING.iter().position(|&end| passes < end)
        } else {
            Some(LEARNING.len())
        };
        if now != column {
            to(Event::Measure(now));
            column = now;
        }
        to(Event::Access(chooser.key() as u32));
    }
    Ok(())
}

/// Hot sets have no tuple in common, as long as there are enough tuples.
fn shift(shape: &Shape, to: &mut dyn FnMut(Event)) -> Result<()> {
    let tuples = shape.tuples as u64;
    let scatter = Scatter::new(tuples);
    let mut random = StdRng::seed_from_u64(shape.seed);
    let hot_set = shape.hot_set();
    for set in 0..HOT_SETS {
        for pass in 0..PASSES {
            let measured = set > 0 && pass < PASSES_MEASURED;
            to(Event::Measure(measured.then_some(pass as usize)));
            for number in 0..hot_set {
                while random.random_bool(STRAY) {
                    to(Event::Access(random.random_range(0..tuples) as u32));
                }
                let rank = (set * hot_set + number) % tuples;
                to(Event::Access(scatter.key(rank) as u32));
            }
        }
    }
    Ok(())
}

/// Two tuples are scanned for each other access.
fn scan(shape: &Shape, to: &mut dyn FnMut(Event)) -> Result<()> {
    let mut chooser = shape.chooser(1.0)?;
    // A short while, so that what the scan has done is not yet made good.
    let measured = (shape.tuples / 4) as u64;
    let scan = shape.tuples as u64 / 2 * 3;
    let warm = shape.accesses.saturating_sub(scan + 2 * measured);
    for _ in 0..warm {
        to(Event::Access(chooser.key() as u32));
    }
    to(Event::Measure(Some(0)));
    for _ in 0..measured {
        to(Event::Access(chooser.key() as u32));
    }
    to(Event::Measure(None));
    for tuple in 0..shape.tuples as u32 {
        to(Event::Access(tuple));
        if tuple % 2 == 0 {
            to(Event::Access(chooser.key() as u32));
        }
    }
    to(Event::Measure(Some(1)));
    for _ in 0..measured {
        to(Event::Access(chooser.key() as u32));
    }
    Ok(())
}

fn latest(shape: &Shape, to: &mut dyn FnMut(Event)) -> Result<()> {
    let mut chooser = shape.chooser(LATEST_EXPONENT)?;
    let mut tuples = shape.tuples as u32;
    for number in 0..shape.accesses {
        if number == shape.warm() {
            to(Event::Measure(Some(0)));
        }
        if chooser.random().random_bool(LATEST_INSERTS) {
            to(Event::Insert(tuples));
            tuples += 1;
        } else {
            to(Event::Access(tuples - 1 - chooser.rank() as u32));
        }
    }
    Ok(())
}
