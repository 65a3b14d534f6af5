//! What is counted of operations: how many of each kind, how they ended, how long they took.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::Ended;
use crate::Result;

/// The longest latency that is told from longer ones.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Two digits: a twentieth of a megabyte a histogram.
const LATENCY_DIGITS: u8 = 2;

/// Of one kind of transaction.
#[derive(Debug, Clone)]
pub struct KindTally {
    /// How long they took, in nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// How many were committed.
    pub done: u64,
    /// How many failed in ways that the specification expects, by name.
    pub expected: BTreeMap<&'static str, u64>,
    /// How often one was tried again after a conflict with another.
    pub retries: u64,
}

/// Of all kinds, in the workload's order.
#[derive(Debug, Clone)]
pub struct Tally {
    /// One for each kind.
    pub kinds: Vec<KindTally>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(kinds: usize) -> Result<Self> {
        let one = KindTally {
            latency_ns: Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS)?,
            done: 0,
            expected: BTreeMap::new(),
            retries: 0,
        };
        Ok(Tally {
            kinds: vec![one; kinds],
        })
    }

    /// Counts an operation.
    pub fn record(&mut self, kind: usize, latency: Duration, ended: Ended, retries: u64) {
        let counted = &mut self.kinds[kind];
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        counted.latency_ns.saturating_record(ns.max(1));
        counted.retries += retries;
        match ended {
            Ended::Done => counted.done += 1,
            Ended::Expected(name) => *counted.expected.entry(name).or_default() += 1,
        }
    }

    /// Adds what others counted.
    pub fn add(&mut self, other: &Tally) -> Result<()> {
        for (mine, others) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.latency_ns.add(&others.latency_ns)?;
            mine.done += others.done;
            mine.retries += others.retries;
            for (name, count) in &others.expected {
                *mine.expected.entry(name).or_default() += count;
            }
        }
        Ok(())
    }

    /// How many operations were counted.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(KindTally::operations).sum()
    }

    /// How long all of them took.
    pub fn latency_ns(&self) -> Result<Histogram<u64>> {
        let mut all = Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS)?;
        for kind in &self.kinds {
            all.add(&kind.latency_ns)?;
        }
        Ok(all)
    }
}

impl KindTally {
    /// How many there were, committed or not.
    pub fn operations(&self) -> u64 {
        self.done + self.expected.values().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_counted_is_added_up_by_kind_and_end() {
        let mut all = Tally::new(2).expect("valid bounds");
        for _ in 0..3 {
            let mut thread = Tally::new(2).expect("valid bounds");
            thread.record(0, Duration::from_micros(5), Ended::Done, 2);
            thread.record(1, Duration::from_micros(50), Ended::Expected("no row"), 0);
            all.add(&thread).expect("the same bounds");
        }
        assert_eq!(all.operations(), 6);
        assert_eq!((all.kinds[0].done, all.kinds[0].retries), (3, 6));
        assert_eq!(all.kinds[1].expected["no row"], 3);
        assert_eq!(all.latency_ns().expect("added up").len(), 6);
    }
}
