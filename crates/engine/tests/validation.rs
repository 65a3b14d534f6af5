//! Serializable transactions: what commits is as if they had run one after the other, in the
//! order of their commits, and none is refused unless what it read was changed.
//!
//! Histories by chance, each operation held against a model: at its commit a transaction's
//! reads must be what they would be then. Whoever is refused must have read a row, or an
//! interval of keys, that another commit has changed since its snapshot.

mod fixture;

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::steps::Steps;
use thermocline_engine::{
    Access, Change, Config, Database, Direction, Error, Isolation, Result, RunOptions, Scope,
    Table, Transaction, block_on,
};
use thermocline_values::value::ValueRef;

type Rows = BTreeMap<i64, String>;

const KEYS: u64 = 24;
const VALUES: u64 = 8;

/// The same numbers from the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn value(&mut self) -> String {
        format!("v{}", self.below(VALUES))
    }
}

#[derive(Debug, Clone)]
enum Op {
    Get(i64),
    /// Keys between two, by the primary key, the first so many.
    Range(i64, i64, usize),
    /// Values between two.
    Values(String, String),
    Value(String),
    Scan,
    Insert(i64, String),
    Set(i64, String),
    Delete(i64),
}

impl Op {
    fn random(chance: &mut Chance, ordered: bool) -> Op {
        let id = chance.below(KEYS) as i64;
        match chance.below(if ordered { 20 } else { 18 }) {
            0..5 => Op::Get(id),
            5..8 => Op::Insert(id, chance.value()),
            8..13 => Op::Set(id, chance.value()),
            13..15 => Op::Delete(id),
            15 => Op::Value(chance.value()),
            16 => {
                let (one, other) = (chance.value(), chance.value());
                Op::Values(one.clone().min(other.clone()), one.max(other))
            }
            17 => match chance.below(4) {
                0 => Op::Scan,
                _ => Op::Get(id),
            },
            _ => {
                let last = id + chance.below(5) as i64;
                let first = [usize::MAX, 2][chance.below(2) as usize];
                Op::Range(id, last, first)
            }
        }
    }

    /// What it reads of these rows, and what it makes of them.
    fn run(&self, rows: &mut Rows) -> Rows {
        let some = |wanted: &dyn Fn(i64, &str) -> bool| -> Rows {
            let all = rows.iter().filter(|(id, value)| wanted(**id, value));
            all.map(|(id, value)| (*id, value.clone())).collect()
        };
        match self {
            Op::Get(id) => some(&|other, _| other == *id),
            Op::Range(from, to, first) => some(&|id, _| (*from..=*to).contains(&id))
                .into_iter()
                .take(*first)
                .collect(),
            Op::Values(from, to) => some(&|_, value| (&from[..]..=&to[..]).contains(&value)),
            Op::Value(wanted) => some(&|_, value| value == wanted),
            Op::Scan => rows.clone(),
            Op::Insert(id, value) => {
                // Whether the key is taken is no read.
                rows.entry(*id).or_insert_with(|| value.clone());
                Rows::new()
            }
            Op::Set(id, value) => {
                let before = some(&|other, _| other == *id);
                if let Some(stored) = rows.get_mut(id) {
                    stored.clone_from(value);
                }
                before
            }
            Op::Delete(id) => {
                let before = some(&|other, _| other == *id);
                rows.remove(id);
                before
            }
        }
    }

    /// Whether it read what a row was, or is not any more. `seen`: what it has read.
    fn has_read(&self, seen: &Rows, id: i64, value: &str) -> bool {
        match self {
            Op::Get(read) | Op::Set(read, _) | Op::Delete(read) => id == *read,
            Op::Range(from, to, first) => {
                let last = match seen.len() == *first {
                    true => *seen.keys().next_back().unwrap_or(to),
                    false => *to,
                };
                (*from..=last).contains(&id)
            }
            Op::Values(from, to) => (&from[..]..=&to[..]).contains(&value),
            Op::Value(wanted) => value == wanted,
            Op::Scan => true,
            Op::Insert(..) => false,
        }
    }

    fn run_in(&self, access: &mut Access<'_>, t: &Table) -> Result<Rows> {
        let mut seen = Rows::new();
        let mut add = |tuple: &[u8]| {
            let ValueRef::BigInt(id) = t.value(tuple, 0) else {
                panic!("an id is a bigint");
            };
            seen.insert(id, text_of(t, tuple));
        };
        match self {
            Op::Get(id) => {
                if let Some((_, tuple)) = access.get(t, 0, &key(t, *id))? {
                    add(tuple);
                }
            }
            Op::Range(from, to, first) => {
                let (from, to) = (key(t, *from), key(t, *to));
                let (from, to) = (Bound::Included(&from[..]), Bound::Included(&to[..]));
                let mut left = *first;
                let mut each = |_, tuple: &[u8]| {
                    add(tuple);
                    left -= 1;
                    Ok(match left {
                        0 => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    })
                };
                access.range(t, 0, from, to, Direction::Ascending, &mut each)?;
            }
            Op::Values(from, to) => {
                let (from, to) = (value_key(t, from), value_key(t, to));
                let (from, to) = (Bound::Included(&from[..]), Bound::Included(&to[..]));
                let mut each = |_, tuple: &[u8]| {
                    add(tuple);
                    Ok(ControlFlow::Continue(()))
                };
                access.range(t, 1, from, to, Direction::Descending, &mut each)?;
            }
            Op::Value(value) => {
                let mut rows = Vec::new();
                access.find(t, 1, &value_key(t, value), &mut rows)?;
                for row in rows {
                    if let Some(tuple) = access.tuple(t, row)? {
                        add(tuple);
                    }
                }
            }
            Op::Scan => access.scan(t, &mut |_, tuple| {
                add(tuple);
                Ok(ControlFlow::Continue(()))
            })?,
            Op::Insert(id, value) => {
                access.insert(t, &tuple(t, *id, value))?;
            }
            Op::Set(id, _) | Op::Delete(id) => {
                let Some(row) = find(access, t, *id)? else {
                    return Ok(seen);
                };
                if let Some(tuple) = access.tuple(t, row)? {
                    add(tuple);
                }
                match self {
                    Op::Set(id, value) => {
                        access.update(t, row, &tuple(t, *id, value)).map(|_| ())?
                    }
                    _ => access.delete(t, row)?,
                }
            }
        }
        Ok(seen)
    }
}

fn value_key(t: &Table, value: &str) -> Vec<u8> {
    let mut key = Vec::new();
    t.encode_index_key(1, &[ValueRef::Text(value)], &mut key);
    key
}

/// An open transaction, and what it has done.
struct Open {
    txn: Transaction,
    /// Commits that there were at its snapshot.
    snapshot: usize,
    done: Vec<(Op, Rows)>,
}

/// A history under way.
struct History {
    db: Arc<Database>,
    t: Arc<Table>,
    now: Rows,
    /// What each commit has changed: a row before or after it.
    commits: Vec<Vec<(i64, String)>>,
    refreshes: u64,
    refused: usize,
}

/// The result of a future that does not wait for another transaction; None: it does.
fn unless_it_waits<R>(db: &Database, future: impl Future<Output = R>) -> Option<R> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return Some(result),
            Poll::Pending if !db.lock_waits().is_empty() => return None,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

impl History {
    fn new(kind: IndexKind, spread: bool, reads_bytes_max: Option<usize>) -> (History, Steps) {
        let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new());
        let mut config = Config::new(device).memory_limit(64 << 30).partitions(4);
        config.background = false;
        config.reads_bytes_max = reads_bytes_max;
        let db = Database::open(config).expect("opens");
        let mut def = table_def(&db, "t", kind);
        def.indexes.push(value_index(&db, IndexKind::BTree, false));
        if spread {
            def.partition_key.clear();
        }
        ddl(&db, Change::CreateTable(def)).expect("the table is made");
        let history = History {
            t: table(&db, "t"),
            now: Rows::new(),
            commits: Vec::new(),
            refreshes: 0,
            refused: 0,
            db: db.clone(),
        };
        (history, Steps::new(&db))
    }

    /// What `done` makes of the rows, if it read what it reads now.
    fn replay(&self, done: &[(Op, Rows)]) -> Rows {
        let mut rows = self.now.clone();
        for (op, seen) in done {
            let expected = op.run(&mut rows);
            assert_eq!(&expected, seen, "{op:?} of {done:?}");
        }
        rows
    }

    fn commit(&mut self, done: &[(Op, Rows)]) {
        let rows = self.replay(done);
        let mut changed = Vec::new();
        for (old, new) in [(&self.now, &rows), (&rows, &self.now)] {
            // One that was given the value that it had was changed, too.
            let was_set = |id: &i64| {
                done.iter()
                    .any(|(op, _)| matches!(op, Op::Set(set, _) if set == id))
            };
            let differ = old
                .iter()
                .filter(|(id, value)| new.get(*id) != Some(value) || was_set(id));
            changed.extend(differ.map(|(id, value)| (*id, value.clone())));
        }
        self.now = rows;
        self.commits.push(changed);
    }

    /// Someone was refused: something of what it had read was changed by others.
    fn check_refused(&mut self, open: &Open, precise: bool) {
        let later = self.commits[open.snapshot..].iter().flatten();
        let mut read_and_changed = later.filter(|(id, value)| {
            let mut reads = open.done.iter();
            reads.any(|(op, seen)| op.has_read(seen, *id, value))
        });
        let any = read_and_changed.next().is_some();
        assert!(
            any || !precise,
            "refused for nothing: {:?}, beside {:?}",
            open.done,
            &self.commits[open.snapshot..]
        );
        self.refused += 1;
    }

    fn step(&mut self, open: &mut Option<Open>, chance: &mut Chance, precise: bool) {
        let db = self.db.clone();
        let options = RunOptions::default();
        let Some(mut this) = open.take() else {
            *open = Some(Open {
                txn: db.begin(Isolation::Serializable, false),
                snapshot: usize::MAX,
                done: Vec::new(),
            });
            return;
        };
        if chance.below(8) == 0 {
            let writes = this.done.iter().any(|(op, seen)| match op {
                Op::Insert(..) => true,
                Op::Set(..) | Op::Delete(..) => !seen.is_empty(),
                _ => false,
            });
            let committed = unless_it_waits(&db, db.commit(this.txn, &options));
            match committed.expect("a commit waits for nobody") {
                Ok(()) if writes => self.commit(&this.done),
                // It read one snapshot, and may be older than what was committed since.
                Ok(()) => {}
                Err(Error::Serialization(_)) => {
                    this.txn = db.begin(Isolation::Serializable, false);
                    self.check_refused(&this, precise);
                }
                Err(error) => panic!("{error}"),
            }
            return;
        }
        let op = Op::random(chance, self.t.def.indexes[0].kind == IndexKind::BTree);
        let t = &self.t;
        let body = |access: &mut Access<'_>| op.run_in(access, t);
        let run = db.in_transaction(&mut this.txn, &options, Scope::All, body);
        let done = unless_it_waits(&db, run);
        let refreshes = db.counters().refreshes;
        if this.snapshot == usize::MAX || refreshes > self.refreshes {
            this.snapshot = self.commits.len();
        }
        self.refreshes = refreshes;
        match done {
            Some(Ok(seen)) => {
                this.done.push((op, seen));
                *open = Some(this);
            }
            // Its own insert would be a second one: not done, as by the model.
            Some(Err(Error::UniqueViolation { .. })) => *open = Some(this),
            Some(Err(Error::Serialization(_))) => self.check_refused(&this, precise),
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }

    fn one_shot(&mut self, chance: &mut Chance) {
        let op = Op::random(chance, self.t.def.indexes[0].kind == IndexKind::BTree);
        let (db, t) = (self.db.clone(), self.t.clone());
        let options = RunOptions::default();
        let run = db.one_shot(&options, Scope::All, |access| op.run_in(access, &t));
        match unless_it_waits(&db, run) {
            Some(Ok(seen)) => self.commit(&[(op, seen)]),
            Some(Err(Error::UniqueViolation { .. })) | None => {}
            Some(Err(error)) => panic!("{error}"),
        }
    }

    /// Many steps; how many transactions were refused.
    fn run(mut self, steps: &Steps, seed: u64, precise: bool) -> usize {
        let mut chance = Chance(seed);
        for _ in 0..3 {
            self.one_shot(&mut chance);
        }
        let mut open: [Option<Open>; 3] = [None, None, None];
        for _ in 0..400 {
            match chance.below(30) {
                0 => self.one_shot(&mut chance),
                1 => {
                    steps.leave_memory(0);
                    while steps.evict().expect("evicts") {}
                    steps.leave_memory(32 << 20);
                }
                n => self.step(&mut open[n as usize % 3], &mut chance, precise),
            }
            steps.collect_versions();
        }
        drop(open);
        assert_eq!(all(&self.db, &self.t), self.now);
        self.refused
    }
}

#[test]
fn random_histories_are_serial_and_nobody_is_refused_for_nothing() {
    let mut refused = 0;
    for seed in 0..40 {
        for (kind, spread) in [
            (IndexKind::Hash, false),
            (IndexKind::BTree, false),
            (IndexKind::BTree, true),
        ] {
            let (history, steps) = History::new(kind, spread, None);
            refused += history.run(&steps, seed, true);
        }
    }
    assert!(refused > 100, "{refused}: too few to be of use");
}

#[test]
fn histories_whose_reads_are_joined_are_serial() {
    for seed in 0..30 {
        let (history, steps) = History::new(IndexKind::BTree, seed % 2 == 0, Some(300));
        let db = history.db.clone();
        history.run(&steps, seed, false);
        assert!(db.counters().reads_joined > 0);
    }
}

fn run_in<R>(
    db: &Database,
    txn: &mut Transaction,
    body: impl FnMut(&mut Access<'_>) -> Result<R>,
) -> Result<R> {
    block_on(db.in_transaction(txn, &RunOptions::default(), Scope::All, body))
}

/// An insert into a partition was held against every read by key there, and 16 384 reads
/// became reads of whole tables. It took few statements to reach that where rows are spread.
#[test]
fn transactions_with_keys_of_their_own_all_commit() {
    for spread in [false, true] {
        let (history, _) = History::new(IndexKind::BTree, spread, None);
        let (db, t) = (&history.db, &history.t);
        let (writers, options) = (20, RunOptions::default());
        for id in 0..writers * 500 {
            let tuple = tuple(t, id, "before");
            let insert = db.one_shot(&options, Scope::All, |access| {
                access.insert(t, &tuple).map(|_| ())
            });
            block_on(insert).expect("inserts");
        }
        let begin = |_| db.begin(Isolation::Serializable, false);
        let mut open: Vec<Transaction> = (0..writers).map(begin).collect();
        for round in 0..500 {
            for (writer, txn) in open.iter_mut().enumerate() {
                let own = writer as i64 * 500 + round;
                run_in(db, txn, |access| {
                    assert!(set_in(access, t, own, "after")?);
                    let new = tuple(t, 1_000_000 + own, "new");
                    access.insert(t, &new).map(|_| ())
                })
                .expect("keys of its own");
            }
        }
        for txn in open {
            block_on(db.commit(txn, &RunOptions::default())).expect("nothing it read has changed");
        }
        let rows = all(db, t);
        let after = rows.values().filter(|value| *value != "before").count();
        assert_eq!(after as i64, writers * 1000, "spread: {spread}");
        assert_eq!(db.counters().reads_joined, 0);
    }
}

/// What a transaction throws away itself is nobody else's change.
#[test]
fn what_one_has_read_may_be_truncated_and_dropped() {
    for isolation in [Isolation::Serializable, Isolation::RepeatableRead] {
        for drops in [false, true] {
            let (history, _) = History::new(IndexKind::Hash, false, None);
            let (db, t) = (&history.db, &history.t);
            insert_lazily(db, t, 1, "one").expect("inserts");
            let options = RunOptions::default();
            let mut txn = db.begin(isolation, false);
            run_in(db, &mut txn, |access| Op::Scan.run_in(access, t)).expect("reads");
            run_in(db, &mut txn, |access| get_in(access, t, 1)).expect("reads");
            run_in(db, &mut txn, |access| set_in(access, t, 1, "two")).expect("sets");
            let oid = t.def.oid;
            let change = match drops {
                true => Change::DropTable(oid),
                false => Change::Truncate {
                    tables: vec![oid],
                    restart_identity: false,
                },
            };
            block_on(db.ddl(&mut txn, &options, change)).expect("defines");
            block_on(db.commit(txn, &options)).expect("nobody else was there");
            let left = db.catalog().table(oid).map(|t| all(db, t).len());
            assert_eq!(left, (!drops).then_some(0));
        }
    }
}
