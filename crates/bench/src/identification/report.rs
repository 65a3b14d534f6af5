//! The comparison's result: as JSON with stable keys, and as a markdown table.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::policies::Policy;
use super::{Options, Shares};
use crate::machine::{self, Machine};

/// The result. What is not known is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was measured, in order.
    pub columns: Vec<String>,
    /// A policy each.
    pub rows: Vec<Row>,
    /// What was run.
    pub options: Options,
    /// What it ran on.
    pub machine: Machine,
    /// When.
    pub date: Option<String>,
    /// The commit that was checked out.
    pub commit: Option<String>,
}

/// A policy's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The policy.
    pub policy: Policy,
    /// What it has to remember, by hot tuples.
    pub bytes_per_hot_tuple: Option<f64>,
    /// By column.
    pub figures: BTreeMap<String, Figure>,
}

/// A policy's figures in a column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// Accesses to cold tuples, as a share of all accesses.
    pub miss_share: Option<f64>,
    /// Misses beyond those of the best choice, as a share of them.
    pub above_best: Option<f64>,
    /// Accesses that made a cold tuple hot, as a share of all accesses.
    pub admitted_share: Option<f64>,
}

impl Report {
    pub(super) fn new(options: &Options, policies: &[Policy]) -> Self {
        let row = |&policy: &Policy| Row {
            policy,
            bytes_per_hot_tuple: policy
                .overhead(options.capacity())
                .map(|overhead| overhead.bytes_per_hot_tuple(options.memory)),
            figures: BTreeMap::new(),
        };
        Report {
            columns: Vec::new(),
            rows: policies.iter().map(row).collect(),
            options: options.clone(),
            machine: machine::machine(),
            date: machine::date(),
            commit: machine::commit(),
        }
    }

    /// Adds a trace's columns: shares by policy, and the best choice's.
    pub(super) fn add(
        &mut self,
        columns: &[String],
        shares: &[Vec<Option<Shares>>],
        best: &[Option<Shares>],
    ) {
        self.columns.extend_from_slice(columns);
        for (row, shares) in self.rows.iter_mut().zip(shares) {
            for ((column, shares), best) in columns.iter().zip(shares).zip(best) {
                let miss_share = shares.map(|shares| shares.misses);
                let above_best = miss_share
                    .zip(best.map(|best| best.misses).filter(|&best| best > 0.0))
                    .map(|(share, best)| share / best - 1.0);
                let figure = Figure {
                    miss_share,
                    above_best,
                    admitted_share: shares.map(|shares| shares.admitted),
                };
                row.figures.insert(column.clone(), figure);
            }
        }
    }
}

/// Percent, and in brackets how many percent more than the best choice's.
fn cell(policy: Policy, figure: Option<&Figure>) -> String {
    let Some((figure, share)) = figure.and_then(|figure| Some((figure, figure.miss_share?))) else {
        return "–".into();
    };
    let percent = share * 100.0;
    match figure.above_best {
        // Adding 0 takes the sign from a zero.
        Some(above) if policy != Policy::Best => {
            format!("{percent:.1} ({:+.0})", (above * 100.0).round() + 0.0)
        }
        _ => format!("{percent:.1}"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capacity = self.options.capacity();
        writeln!(f, "| policy | bytes | {} |", self.columns.join(" | "))?;
        writeln!(f, "|---|---:|{}", "---:|".repeat(self.columns.len()))?;
        for row in &self.rows {
            let bytes = row
                .bytes_per_hot_tuple
                .map_or("–".into(), |bytes| format!("{bytes:.2}"));
            write!(f, "| `{}` | {bytes} |", row.policy.name())?;
            for column in &self.columns {
                write!(f, " {} |", cell(row.policy, row.figures.get(column)))?;
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "{} tuples, of which {capacity} fit memory. Percent of accesses that miss; in brackets, how many \
             percent more misses than the best choice has, where that is known.",
            self.options.tuples
        )?;
        writeln!(
            f,
            "After a load (all tuples inserted, in the order of their ids): misses by how many accesses there \
             were since, as multiples of the tuples that fit."
        )?;
        writeln!(
            f,
            "Bytes: what a policy has to remember, packed, by hot tuples. lru, alru: two 4-byte ids for each \
             hot tuple. clock: 2 bits for each hot tuple. fifo: nothing. s3fifo: an id, 3 bits, and 0.9 ghosts \
             of 4 bytes for each hot tuple. offline: a record of its log for each hot tuple, an estimate of 4 \
             bytes for every tuple. tinylfu: two ids, 2 bits and its sketch for each hot tuple. \
             temperature: 3 bits for every tuple, hot or cold (in this engine they and clock's lie in the \
             row's directory word, and take nothing more)."
        )?;
        writeln!(f)?;
        self.write_admitted(f)
    }
}

impl Report {
    /// What coming into memory costs is not in the misses.
    fn write_admitted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| let in | {} |", self.columns.join(" | "))?;
        writeln!(f, "|---|{}", "---:|".repeat(self.columns.len()))?;
        for row in &self.rows {
            write!(f, "| `{}` |", row.policy.name())?;
            for column in &self.columns {
                let figure = row.figures.get(column);
                match figure.and_then(|figure| figure.admitted_share) {
                    Some(share) => write!(f, " {:.1} |", share * 100.0)?,
                    None => write!(f, " – |")?,
                }
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        writeln!(f, "Percent of accesses that made a cold tuple hot.")
    }
}
