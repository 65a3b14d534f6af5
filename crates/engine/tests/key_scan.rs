//! A scan by keys of an index gives the rows that a scan of all would give, each once, whatever others do
//! between its turns.

mod fixture;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use fixture::*;
use proptest::prelude::*;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{
    Database, IndexKeys, Isolation, KeyScan, RunOptions, Snapshot, Table, Transaction, block_on,
};
use thermocline_values::value::ValueRef;

/// Enough rows that a partition's take several turns.
const IDS: i64 = 300;
const LETTERS: u8 = 5;
/// What a turn gives: 64 KB of rows of 2 KB, and some more.
const TURN_ROWS_MAX: usize = 48;

/// What a scan looks for.
#[derive(Debug, Clone)]
enum Sought {
    Ids(BTreeSet<i64>),
    Letters(BTreeSet<u8>),
    /// Of the values; half open.
    Between(u8, u8),
}

#[derive(Debug, Clone)]
enum Step {
    /// Rows `id`, `id + every` and so on get another value, or go.
    Alone {
        id: i64,
        every: i64,
        letter: Option<u8>,
    },
    Within {
        id: i64,
        letter: Option<u8>,
    },
    End {
        commits: bool,
    },
    Open(Sought),
    /// One that sees what the open transaction has changed.
    OpenWithin(Sought),
    Turn {
        of: usize,
    },
    Leave,
}

fn sought() -> impl Strategy<Value = Sought> {
    prop_oneof![
        prop::collection::btree_set(0..IDS + 20, 0..200).prop_map(Sought::Ids),
        prop::collection::btree_set(0..LETTERS, 0..4).prop_map(Sought::Letters),
        (0..LETTERS, 0..=LETTERS).prop_map(|(from, to)| Sought::Between(from, to)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let letter = || prop::option::weighted(0.8, 0..LETTERS);
    prop_oneof![
        5 => (0..IDS, 1..20i64, letter())
            .prop_map(|(id, every, letter)| Step::Alone { id, every, letter }),
        3 => (0..IDS, letter()).prop_map(|(id, letter)| Step::Within { id, letter }),
        1 => any::<bool>().prop_map(|commits| Step::End { commits }),
        3 => sought().prop_map(Step::Open),
        1 => sought().prop_map(Step::OpenWithin),
        10 => (0..3usize).prop_map(|of| Step::Turn { of }),
        1 => Just(Step::Leave),
    ]
}

fn value(letter: u8) -> String {
    char::from(b'a' + letter).to_string().repeat(2000)
}

fn change(db: &Arc<Database>, txn: &mut Transaction, id: i64, letter: Option<u8>) -> bool {
    let t = seen_by(txn);
    let options = RunOptions {
        lock_timeout: Some(Duration::from_millis(1)),
        ..RunOptions::new()
    };
    let done = block_on(db.in_transaction(txn, &options, scope(&t, id), |access| {
        match (find(access, &t, id)?, letter) {
            (Some(row), None) => access.delete(&t, row).map(drop),
            (Some(row), Some(letter)) => {
                let new = tuple(&t, id, &value(letter));
                access.update(&t, row, &new).map(drop)
            }
            (None, None) => Ok(()),
            (None, Some(letter)) => access.insert(&t, &tuple(&t, id, &value(letter))).map(drop),
        }
    }));
    done.is_ok()
}

impl Sought {
    fn keys(&self, table: &Table, has_intervals: bool) -> Option<IndexKeys> {
        let key = |index: usize, value: ValueRef<'_>| {
            let mut key = Vec::new();
            table.encode_index_key(index, &[value], &mut key);
            key
        };
        let of_letter = |letter: u8| key(1, ValueRef::Text(&value(letter)));
        Some(match self {
            Sought::Ids(ids) => {
                let points = ids.iter().map(|id| key(0, ValueRef::BigInt(*id)).into());
                IndexKeys::points(table, 0, points.collect(), 1)
            }
            Sought::Letters(letters) => {
                let points = letters.iter().map(|letter| of_letter(*letter).into());
                IndexKeys::points(table, 1, points.collect(), 1)
            }
            Sought::Between(from, to) => {
                let interval = (
                    Bound::Included(of_letter(*from)),
                    Bound::Excluded(of_letter(*to)),
                );
                if !has_intervals || from >= to {
                    return None;
                }
                IndexKeys::intervals(table, 1, vec![interval])
            }
        })
    }

    fn takes(&self, id: i64, text: &str) -> bool {
        let letter = text.as_bytes()[0] - b'a';
        match self {
            Sought::Ids(ids) => ids.contains(&id),
            Sought::Letters(letters) => letters.contains(&letter),
            Sought::Between(from, to) => (*from..*to).contains(&letter),
        }
    }
}

/// A scan under way, and what it is to give.
struct Open {
    scans: Vec<KeyScan>,
    given: Vec<(i64, String)>,
    expected: BTreeMap<i64, String>,
    table: Arc<Table>,
}

impl Open {
    fn new(db: &Database, t: &Arc<Table>, snapshot: &Snapshot, sought: &Sought) -> Option<Self> {
        let is_tree = t.indexes[1].kind == IndexKind::BTree;
        let keys = Arc::new(sought.keys(t, is_tree)?);
        let mut expected = scan_all(snapshot, db, t);
        expected.retain(|id, text| sought.takes(*id, text));
        let counted = block_on(snapshot.count_keys(t, &keys, u64::MAX)).expect("counts");
        assert!(
            counted == 0 || !keys.is_empty(),
            "nothing is counted of no keys"
        );
        let partitions = (0..db.partitions()).rev();
        Some(Self {
            scans: partitions
                .map(|p| snapshot.scan_keys(t, p, &keys))
                .collect(),
            given: Vec::new(),
            expected,
            table: Arc::clone(t),
        })
    }

    /// False at the end.
    fn turn(&mut self) -> bool {
        let Some(scan) = self.scans.last_mut() else {
            return false;
        };
        let (t, given) = (&self.table, &mut self.given);
        let before = given.len();
        let more = block_on(scan.next_rows(&mut |_, tuple: &[u8]| {
            let ValueRef::BigInt(id) = t.value(tuple, 0) else {
                panic!("an id is a bigint");
            };
            given.push((id, text_of(t, tuple)));
        }));
        let in_turn = given.len() - before;
        assert!(in_turn <= TURN_ROWS_MAX, "a turn gives {in_turn} rows");
        if !more.expect("the snapshot is not too old") {
            self.scans.pop();
        }
        !self.scans.is_empty()
    }

    fn finish(mut self) {
        while self.turn() {}
        self.given.sort();
        let expected: Vec<_> = self.expected.into_iter().collect();
        let ids = |rows: &[(i64, String)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(ids(&self.given), ids(&expected));
        assert!(self.given == expected, "rows have other values");
    }
}

fn walk(steps: &[Step], kind: IndexKind) {
    let (_, db) = simulated(64 << 20);
    make_table(&db, "t", kind);
    create_index(&db, value_index(&db, kind, false));
    let t = table(&db, "t");
    for id in 0..IDS {
        insert_lazily(&db, &t, id, &value((id % i64::from(LETTERS)) as u8)).expect("inserts");
    }
    let begin = || db.begin(Isolation::ReadCommitted, false);
    let mut within = begin();
    let mut open: Vec<Open> = Vec::new();
    for step in steps {
        match step {
            Step::Alone { id, every, letter } => {
                for id in (*id..IDS).step_by(*every as usize) {
                    let mut alone = begin();
                    match change(&db, &mut alone, id, *letter) {
                        true => drop(block_on(db.commit(alone, &RunOptions::default()))),
                        false => block_on(db.rollback(alone)),
                    }
                }
            }
            Step::Within { id, letter } => {
                if !change(&db, &mut within, *id, *letter) {
                    block_on(db.rollback(std::mem::replace(&mut within, begin())));
                }
            }
            Step::End { commits } => {
                let ended = std::mem::replace(&mut within, begin());
                match commits {
                    true => drop(block_on(db.commit(ended, &RunOptions::default()))),
                    false => block_on(db.rollback(ended)),
                }
            }
            Step::Open(sought) => open.extend(Open::new(&db, &t, &db.snapshot(), sought)),
            Step::OpenWithin(sought) => {
                let snapshot = within.snapshot().expect("the transaction goes on");
                // It is read before its transaction does anything else.
                if let Some(open) = Open::new(&db, &t, &snapshot, sought) {
                    open.finish();
                }
            }
            Step::Turn { of } => {
                if let Some(open) = open.get_mut(*of) {
                    open.turn();
                }
            }
            Step::Leave => drop(block_on(db.evict(&RunOptions::new(), &t, u64::MAX))),
        }
    }
    open.into_iter().for_each(Open::finish);
    block_on(db.rollback(within));
    // The limit is the whole process's: the next case has all of it.
    db.close().expect("closes");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        // A case that failed leaves its database open.
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_scan_by_keys_gives_what_a_scan_of_all_has_of_them(
        steps in prop::collection::vec(step(), 1..40),
        is_hash in any::<bool>(),
    ) {
        walk(&steps, if is_hash { IndexKind::Hash } else { IndexKind::BTree });
    }
}

#[test]
fn rows_that_are_read_by_keys_again_and_again_become_hot() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (_, db) = simulated(64 << 20);
        let t = make_table(&db, "t", kind);
        for id in 0..IDS {
            insert_lazily(&db, &t, id, &value(0)).expect("inserts");
        }
        block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
        let before = db.hot_rows(&t).0;
        let snapshot = db.snapshot();
        let keys = Sought::Ids(BTreeSet::from([7, 8])).keys(&t, true);
        let keys = Arc::new(keys.expect("has keys"));
        for _ in 0..10 {
            for partition in 0..db.partitions() {
                let mut scan = snapshot.scan_keys(&t, partition, &keys);
                while block_on(scan.next_rows(&mut |_, _: &[u8]| ())).expect("reads") {}
            }
        }
        assert_eq!(db.hot_rows(&t).0, before + 2, "{kind:?}");
        // Who reads much leaves all where it is.
        let all = Sought::Ids((0..IDS).collect()).keys(&t, true);
        let all = Arc::new(all.expect("has keys"));
        for _ in 0..10 {
            let mut scan = snapshot.scan_keys(&t, 0, &all);
            while block_on(scan.next_rows(&mut |_, _: &[u8]| ())).expect("reads") {}
        }
        assert!(db.hot_rows(&t).0 <= before + 2 + 64, "{kind:?}");
        db.close().expect("closes");
    }
}
