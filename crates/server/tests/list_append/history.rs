//! Whether a history of serializable transactions over lists has a serial order (as Elle's
//! list-append finds it). A list tells its versions: what it holds is what was appended to it, in
//! order. So each read says what went before it, and what it did not see yet went behind it.
//!
//! Lists begin with a marker, which is negative. A reset replaces all lists at once by their
//! markers, after it has read them: so it says which lists came to their end with it.

use std::collections::{HashMap, HashSet};

/// A transaction that has committed.
#[derive(Debug, Default, Clone)]
pub struct Transaction {
    /// Whose it is; a session's transactions follow each other.
    pub session: usize,
    /// Key and list as they were read, own appends left out.
    pub reads: Vec<(usize, Vec<i64>)>,
    /// Key and value.
    pub appends: Vec<(usize, i64)>,
    /// A reset: the marker of all lists from now on.
    pub reset: Option<i64>,
}

/// What came of all transactions.
#[derive(Debug, Default)]
pub struct History {
    pub committed: Vec<Transaction>,
    /// Values whose transactions were rolled back.
    pub undone: HashSet<i64>,
    pub keys: usize,
}

/// Versions of a key's list under one marker: its longest form, and each value's writer.
struct Versions<'a> {
    longest: HashMap<(usize, i64), &'a [i64]>,
    /// By key and value; a marker's is the reset, and none of the first marker.
    writers: HashMap<(usize, i64), usize>,
    /// By marker: the reset that read it.
    ended_by: HashMap<i64, usize>,
}

impl History {
    /// What cannot be in any serial order.
    pub fn anomalies(&self) -> Vec<String> {
        let mut found = Vec::new();
        let versions = self.versions(&mut found);
        self.look_for_lost(&versions, &mut found);
        if found.is_empty() {
            let edges = self.edges(&versions);
            if let Some(circle) = circle(&edges) {
                let all: Vec<_> = circle.iter().map(|at| &self.committed[*at]).collect();
                found.push(format!("a circle of {} transactions: {all:?}", all.len()));
            }
        }
        found
    }

    fn versions(&self, found: &mut Vec<String>) -> Versions<'_> {
        let mut versions = Versions {
            longest: HashMap::new(),
            writers: HashMap::new(),
            ended_by: HashMap::new(),
        };
        for (at, transaction) in self.committed.iter().enumerate() {
            for append in &transaction.appends {
                versions.writers.insert(*append, at);
            }
            let Some(marker) = transaction.reset else {
                continue;
            };
            for key in 0..self.keys {
                versions.writers.insert((key, marker), at);
            }
            for (_, list) in &transaction.reads {
                let before = versions.ended_by.insert(list[0], at);
                if before.is_some_and(|other| other != at) {
                    found.push(format!("two resets ended the lists of {}", list[0]));
                }
            }
        }
        for (key, list) in self.committed.iter().flat_map(|t| &t.reads) {
            let (key, list) = (*key, list.as_slice());
            if list.first().is_none_or(|marker| *marker >= 0) {
                found.push(format!("key {key} was read as {list:?}"));
                continue;
            }
            if let Some(value) = list.iter().find(|value| self.undone.contains(value)) {
                found.push(format!("key {key}: {value} was rolled back, and read"));
            }
            let longest = versions.longest.entry((key, list[0])).or_insert(list);
            let (short, long) = match longest.len() < list.len() {
                true => (*longest, list),
                false => (list, *longest),
            };
            if !long.starts_with(short) {
                found.push(format!("key {key} was read as {short:?} and as {long:?}"));
            }
            *longest = long;
        }
        versions
    }

    /// Each value of a committed transaction is in one list, once. The last transaction reads all.
    fn look_for_lost(&self, versions: &Versions<'_>, found: &mut Vec<String>) {
        let mut seen: HashMap<(usize, i64), usize> = HashMap::new();
        for ((key, _), list) in &versions.longest {
            for value in *list {
                *seen.entry((*key, *value)).or_default() += 1;
            }
        }
        for append in self.committed.iter().flat_map(|t| &t.appends) {
            match seen.get(append) {
                Some(1) => {}
                None => found.push(format!("key {}: {} is lost", append.0, append.1)),
                Some(times) => found.push(format!("{append:?} is there {times} times")),
            }
        }
    }

    /// Of each transaction, those that come behind it.
    fn edges(&self, versions: &Versions<'_>) -> Vec<Vec<usize>> {
        let mut edges = vec![Vec::new(); self.committed.len()];
        let mut edge = |from: Option<usize>, to: Option<usize>| {
            if let (Some(from), Some(to)) = (from, to)
                && from != to
            {
                edges[from].push(to);
            }
        };
        let writer = |key, value| versions.writers.get(&(key, value)).copied();
        // What follows a version: the next one of the same marker, or the reset.
        let next = |key: usize, list: &[i64]| {
            let longest = versions.longest[&(key, list[0])];
            match longest.get(list.len()) {
                Some(value) => writer(key, *value),
                None => versions.ended_by.get(&list[0]).copied(),
            }
        };
        for ((key, _), list) in &versions.longest {
            for end in 1..=list.len() {
                edge(writer(*key, list[end - 1]), next(*key, &list[..end]));
            }
        }
        let mut last_of: HashMap<usize, usize> = HashMap::new();
        for (at, transaction) in self.committed.iter().enumerate() {
            for (key, list) in &transaction.reads {
                edge(writer(*key, list[list.len() - 1]), Some(at));
                edge(Some(at), next(*key, list));
            }
            edge(last_of.insert(transaction.session, at), Some(at));
        }
        edges
    }
}

/// Transactions each of which comes before itself, if there are any: the first strongly connected
/// component of more than one (Tarjan's, with a stack of its own).
fn circle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    const NONE: usize = usize::MAX;
    let mut index = vec![NONE; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let (mut stack, mut calls, mut count) = (Vec::new(), Vec::new(), 0);
    for root in 0..edges.len() {
        if index[root] == NONE {
            calls.push((root, 0));
        }
        while let Some((at, done)) = calls.pop() {
            if done == 0 {
                index[at] = count;
                low[at] = count;
                count += 1;
                stack.push(at);
                on_stack[at] = true;
            } else {
                let child = edges[at][done - 1];
                if on_stack[child] {
                    low[at] = low[at].min(low[child]);
                }
            }
            if let Some(child) = edges[at].get(done) {
                calls.push((at, done + 1));
                if index[*child] == NONE {
                    calls.push((*child, 0));
                }
                continue;
            }
            if low[at] == index[at] {
                let begin = stack.iter().rposition(|node| *node == at)?;
                let component = stack.split_off(begin);
                component.iter().for_each(|node| on_stack[*node] = false);
                if component.len() > 1 {
                    return Some(component);
                }
            }
        }
    }
    None
}

/// A transaction of a made-up history, in a session of its own.
fn made_up(reads: &[(usize, &[i64])], appends: &[(usize, i64)]) -> Transaction {
    static SESSIONS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    Transaction {
        session: SESSIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        reads: reads
            .iter()
            .map(|(key, list)| (*key, list.to_vec()))
            .collect(),
        appends: appends.to_vec(),
        reset: None,
    }
}

fn told(committed: Vec<Transaction>) -> Vec<String> {
    let history = History {
        committed,
        undone: HashSet::from([99]),
        keys: 2,
    };
    history.anomalies()
}

#[test]
fn a_serial_history_has_no_anomaly() {
    let reset = Transaction {
        reset: Some(-2),
        ..made_up(&[(0, &[-1, 1, 2]), (1, &[-1])], &[])
    };
    let history = vec![
        made_up(&[], &[(0, 1)]),
        made_up(&[(0, &[-1, 1])], &[(0, 2)]),
        reset,
        made_up(&[(0, &[-2])], &[(1, 3)]),
        made_up(&[(0, &[-2]), (1, &[-2, 3])], &[]),
    ];
    assert_eq!(told(history), [""; 0]);
}

#[test]
fn anomalies_are_found() {
    let one = |history, word: &str| {
        let found = told(history);
        assert!(found.iter().any(|text| text.contains(word)), "{found:?}");
    };
    // A lost append.
    let history = vec![made_up(&[], &[(0, 1)]), made_up(&[(0, &[-1])], &[])];
    one(history, "lost");
    // Of a transaction that was rolled back.
    one(vec![made_up(&[(0, &[-1, 99])], &[])], "rolled back");
    // Two orders of one list.
    let appends = made_up(&[], &[(0, 1), (0, 2)]);
    let reads = made_up(&[(0, &[-1, 1, 2])], &[]);
    let other = made_up(&[(0, &[-1, 2])], &[]);
    one(vec![appends, reads, other], "was read as");
    // Write skew.
    let history = vec![
        made_up(&[(0, &[-1])], &[(1, 1)]),
        made_up(&[(1, &[-1])], &[(0, 2)]),
        made_up(&[(0, &[-1, 2]), (1, &[-1, 1])], &[]),
    ];
    one(history, "circle of 2");
    // A read of the lists before a reset, and of one behind it.
    let reset = Transaction {
        reset: Some(-2),
        ..made_up(&[(0, &[-1]), (1, &[-1])], &[])
    };
    let skewed = made_up(&[(0, &[-1]), (1, &[-2])], &[]);
    one(vec![reset.clone(), skewed], "circle of 2");
    // A table that is empty, where it never was.
    one(vec![reset, made_up(&[(0, &[])], &[])], "was read as []");
}
