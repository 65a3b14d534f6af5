//! The mixes of YCSB's core, and which rows they are about.

use std::sync::LazyLock;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::Mix;
use crate::Result;
use crate::workload::chance::alphanumeric;
use crate::workload::{Kind, place_by_share};
use crate::ycsb::Scatter;

/// Keys are scattered over so many.
const KEYS: u64 = 1 << 48;
/// The most rows that are loaded; above them are those that callers insert.
pub(super) const ROWS_MAX: u64 = 1 << 32;
/// Numbers that one run may insert.
const INSERTS_MAX: u64 = 1 << 34;
/// Runs whose inserts have other numbers, by their seeds.
const RUNS: u64 = 1 << 13;
/// The longest scan.
const SCAN_MAX: i32 = 100;
/// Bytes of the text that fields are cut from.
const TEXT_BYTES: usize = 64 << 10;

const READ: usize = 0;
const UPDATE: usize = 1;
pub(super) const INSERT: usize = 2;
const SCAN: usize = 3;

/// The operations and their shares.
pub(super) fn kinds(mix: Mix) -> [Kind; 5] {
    let percents = match mix {
        Mix::A => [50.0, 50.0, 0.0, 0.0, 0.0],
        Mix::B => [95.0, 5.0, 0.0, 0.0, 0.0],
        Mix::C => [100.0, 0.0, 0.0, 0.0, 0.0],
        Mix::D => [95.0, 0.0, 5.0, 0.0, 0.0],
        Mix::E => [0.0, 0.0, 5.0, 95.0, 0.0],
        Mix::F => [50.0, 0.0, 0.0, 0.0, 50.0],
        Mix::ReadHeavy => [90.0, 10.0, 0.0, 0.0, 0.0],
    };
    let names = ["read", "update", "insert", "scan", "read_modify_write"];
    std::array::from_fn(|place| Kind {
        name: names[place],
        percent: percents[place],
    })
}

/// The key of the row with this number.
pub(super) fn key(number: u64) -> i64 {
    Scatter::new(KEYS).key(number) as i64
}

/// A text of so many bytes, by a number.
pub(super) fn text(choice: u64, bytes: usize) -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut random = StdRng::seed_from_u64(1);
        alphanumeric(&mut random, TEXT_BYTES, TEXT_BYTES)
    });
    let start = choice as usize % (TEXT_BYTES - bytes);
    &TEXT[start..start + bytes]
}

/// An operation, on rows by their numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "a choice is of the field and of its text")]
pub enum Operation {
    /// All fields of a row.
    Read { number: u64 },
    /// One field of a row.
    Update { number: u64, choice: u64 },
    /// A new row.
    Insert { number: u64, choice: u64 },
    /// So many rows from this one on, in the order of keys.
    Scan { number: u64, length: i32 },
    /// All fields are read, and one is written.
    ReadModifyWrite { number: u64, choice: u64 },
}

impl Operation {
    /// The place among [`kinds`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Operation::Read { .. } => READ,
            Operation::Update { .. } => UPDATE,
            Operation::Insert { .. } => INSERT,
            Operation::Scan { .. } => SCAN,
            Operation::ReadModifyWrite { .. } => 4,
        }
    }
}

/// What one client does.
#[derive(Debug)]
pub struct Callers {
    mix: Mix,
    kinds: [Kind; 5],
    rows: u64,
    exponent: f64,
    zipf: Zipf<f64>,
    /// The number of the first row that it inserts, the step to the next, and how many it has.
    first: u64,
    step: u64,
    inserted: u64,
    random: StdRng,
}

/// Ranks from 1 to `count`.
fn law(count: u64, exponent: f64) -> Result<Zipf<f64>> {
    Ok(Zipf::new(count as f64, exponent)?)
}

impl Callers {
    pub(super) fn new(
        mix: Mix,
        rows: u64,
        exponent: f64,
        (caller, callers): (usize, usize),
        seed: u64,
    ) -> Self {
        let run = StdRng::seed_from_u64(seed).random_range(0..RUNS);
        Callers {
            mix,
            kinds: kinds(mix),
            rows,
            exponent,
            zipf: law(rows, exponent).expect("checked before the run"),
            first: ROWS_MAX + run * INSERTS_MAX + caller as u64,
            step: callers as u64,
            inserted: 0,
            random: StdRng::seed_from_u64(seed.wrapping_add((caller as u64) << 20)),
        }
    }

    /// A rank from 0: the hottest.
    fn rank(&mut self) -> u64 {
        let rank = self.zipf.sample(&mut self.random) as u64;
        // Rounding may lead past either end.
        rank.clamp(1, self.rows + self.inserted) - 1
    }

    /// The row with this rank by age, the newest first.
    fn latest(&self, rank: u64) -> u64 {
        match rank < self.inserted {
            true => self.first + (self.inserted - 1 - rank) * self.step,
            false => self.rows - 1 - (rank - self.inserted).min(self.rows - 1),
        }
    }

    fn number(&mut self) -> u64 {
        let rank = self.rank();
        match self.mix {
            Mix::D => self.latest(rank),
            _ => rank.min(self.rows - 1),
        }
    }

    fn insert(&mut self) -> u64 {
        let number = self.first + self.inserted * self.step;
        self.inserted += 1;
        if self.mix == Mix::D
            && let Ok(zipf) = law(self.rows + self.inserted, self.exponent)
        {
            self.zipf = zipf;
        }
        number
    }
}

impl Iterator for Callers {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let kind = place_by_share(&self.kinds, self.random.random_range(0.0..100.0));
        let choice: u64 = self.random.random();
        Some(match kind {
            READ => Operation::Read {
                number: self.number(),
            },
            UPDATE => Operation::Update {
                number: self.number(),
                choice,
            },
            INSERT => Operation::Insert {
                number: self.insert(),
                choice,
            },
            SCAN => Operation::Scan {
                number: self.number(),
                length: self.random.random_range(1..=SCAN_MAX),
            },
            _ => Operation::ReadModifyWrite {
                number: self.number(),
                choice,
            },
        })
    }
}
