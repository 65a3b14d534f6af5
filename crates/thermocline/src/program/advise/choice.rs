//! Which columns are hot, warm and cold under a limit: three ways to choose, as pure functions over the
//! columns and their counters.
//!
//! | way | what it does |
//! |---|---|
//! | whole tables | the least used tables go warm, with all their columns |
//! | by frequency | Algorithms 1 and 2 of paper 002: the least used columns go warm |
//! | by cost | the columns that save the most time of the device stay hot |
//!
//! As printed Algorithm 1 never ends where the limit is out of reach, and a single condition without an index keeps
//! a column in memory for good. Here it ends and names what is missing, and such columns come last. The
//! buffer of warm pages counts as memory as soon as a column is warm.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::knapsack::{self, Item};

/// A column, as far as the choice goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    pub table: String,
    pub name: String,
    /// What it takes in memory.
    pub bytes: u64,
    /// How many statements used it.
    pub uses: u64,
    /// Statements had conditions on it, and no index begins with it.
    pub has_open_condition: bool,
    /// Nanoseconds of the device that scans of it take, if it is not in memory.
    pub scan_ns: u64,
    /// And reads of single rows.
    pub single_ns: u64,
}

/// Where a column is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    Hot,
    Warm,
    Cold,
}

/// How much memory there is for columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For all of them.
    pub memory: u64,
    /// Of this, what the pages of warm columns have, if there are any.
    pub buffer: u64,
}

/// Where each column is kept, and what that comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub states: Vec<State>,
    /// Bytes of the hot columns, and the buffer.
    pub memory: u64,
    /// How far that is above the limit.
    pub shortfall: u64,
    /// Nanoseconds of the device for what was counted.
    pub device_ns: u64,
}

impl Choice {
    fn of(columns: &[Column], limits: Limits, states: Vec<State>) -> Self {
        let bytes_of = |wanted: State| {
            let all = columns.iter().zip(&states);
            let there = all.filter(|(_, state)| **state == wanted);
            there.map(|(column, _)| column.bytes).sum::<u64>()
        };
        let is_warm = states.contains(&State::Warm);
        let memory = bytes_of(State::Hot) + if is_warm { limits.buffer } else { 0 };
        // Single rows are taken to be read evenly, so the buffer has as large a part of their pages as
        // it has of the bytes.
        let warm_bytes = bytes_of(State::Warm).max(1);
        let missed = warm_bytes.saturating_sub(limits.buffer);
        let device = columns.iter().zip(&states).map(|(column, state)| {
            let single = match state {
                State::Hot => return 0,
                State::Warm => {
                    let ns = u128::from(column.single_ns) * u128::from(missed);
                    (ns / u128::from(warm_bytes)) as u64
                }
                State::Cold => column.single_ns,
            };
            column.scan_ns.saturating_add(single)
        });
        Self {
            device_ns: device.fold(0, u64::saturating_add),
            shortfall: memory.saturating_sub(limits.memory),
            memory,
            states,
        }
    }
}

/// Makes these groups of columns warm, one after the other, until memory is enough. What no statement used is cold
/// from the start.
fn warm_until_it_fits(columns: &[Column], limits: Limits, groups: &[Vec<usize>]) -> Choice {
    let mut states = vec![State::Cold; columns.len()];
    let used = |group: &&Vec<usize>| group.iter().any(|place| columns[*place].uses > 0);
    let groups: Vec<&Vec<usize>> = groups.iter().filter(used).collect();
    for place in groups.iter().copied().flatten() {
        states[*place] = State::Hot;
    }
    let mut choice = Choice::of(columns, limits, states.clone());
    for group in groups {
        if choice.shortfall == 0 {
            break;
        }
        for place in group {
            states[*place] = State::Warm;
        }
        choice = Choice::of(columns, limits, states.clone());
    }
    choice
}

/// The least used tables go warm first. A table is used as often as its most used column.
pub(super) fn whole_tables(columns: &[Column], limits: Limits) -> Choice {
    let mut tables: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, column) in columns.iter().enumerate() {
        tables.entry(&column.table).or_default().push(place);
    }
    let mut tables: Vec<(&str, Vec<usize>)> = tables.into_iter().collect();
    tables.sort_by_key(|(name, places)| {
        let uses = places.iter().map(|place| columns[*place].uses).max();
        let bytes: u64 = places.iter().map(|place| columns[*place].bytes).sum();
        (uses, Reverse(bytes), *name)
    });
    let groups: Vec<Vec<usize>> = tables.into_iter().map(|(_, places)| places).collect();
    warm_until_it_fits(columns, limits, &groups)
}

/// Algorithm 1 over the order of Algorithm 2: the least used columns go warm first; those with conditions that
/// no index answers go last; of equals the larger first, then by name.
pub(super) fn by_frequency(columns: &[Column], limits: Limits) -> Choice {
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|place| {
        let column = &columns[*place];
        let last = column.has_open_condition;
        let name = (&column.table, &column.name);
        (last, column.uses, Reverse(column.bytes), name)
    });
    let groups: Vec<Vec<usize>> = order.into_iter().map(|place| vec![place]).collect();
    warm_until_it_fits(columns, limits, &groups)
}

/// The least time of the device: a knapsack with all memory and nothing warm, one beside the buffer, and
/// the two other ways. Columns of which single rows are read are warm if not hot.
pub(super) fn by_cost(columns: &[Column], limits: Limits) -> Choice {
    let items = columns.iter().map(|column| Item {
        weight: column.bytes,
        value: column.scan_ns.saturating_add(column.single_ns),
    });
    let items: Vec<Item> = items.collect();
    let beside = |buffer: u64| {
        let hot = knapsack::best(&items, limits.memory.saturating_sub(buffer));
        let state = |(column, is_hot): (&Column, bool)| match is_hot {
            true => State::Hot,
            false if buffer > 0 && column.single_ns > 0 => State::Warm,
            false => State::Cold,
        };
        let states = columns.iter().zip(hot).map(state).collect();
        Choice::of(columns, limits, states)
    };
    let ways = [
        beside(0),
        beside(limits.buffer),
        by_frequency(columns, limits),
        whole_tables(columns, limits),
    ];
    let least = |choice: &Choice| (choice.shortfall, choice.device_ns, choice.memory);
    let [first, rest @ ..] = ways;
    let better = |best: Choice, other: Choice| match least(&other) < least(&best) {
        true => other,
        false => best,
    };
    rest.into_iter().fold(first, better)
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
