//! Columns that a transaction adds and fills: its rows have them before anybody else's
//! definition does, in memory, in images and in the log.

mod fixture;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::check::check;
use thermocline_engine::steps::{Moment, Simulator, Steps};
use thermocline_engine::{Change, Config, Database, Isolation, RunOptions, Transaction, block_on};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

const ROWS: i64 = 40;

fn begin(db: &Arc<Database>) -> Transaction {
    db.begin(Isolation::Serializable, false)
}

fn run(db: &Arc<Database>, txn: &mut Transaction, change: Change) {
    block_on(db.ddl(txn, &RunOptions::new(), change)).expect("the definition changes");
}

/// ALTER TABLE t ADD COLUMN
fn widen(db: &Arc<Database>, txn: &mut Transaction, data_type: DataType, missing: Value) {
    let mut def = seen_by(txn).def.clone();
    let added = def.columns.len() as u16 - 1;
    let mut new = column(&format!("added{added}"), data_type, false);
    (new.added_in, new.missing) = (added, missing);
    def.columns.push(new);
    run(db, txn, Change::AlterTable(def));
}

fn fill(db: &Arc<Database>, txn: &mut Transaction, ids: std::ops::Range<i64>, added: ValueRef<'_>) {
    let t = seen_by(txn);
    for id in ids {
        let mut bytes = Vec::new();
        let values = [ValueRef::BigInt(id), ValueRef::Text("new"), added];
        t.encode_tuple(&values, &mut bytes);
        in_txn(txn, db, |access| match find(access, &t, id)? {
            Some(row) => access.update(&t, row, &bytes).map(drop),
            None => access.insert(&t, &bytes).map(drop),
        })
        .expect("writes");
    }
}

/// What the column has that was added, of each row.
fn added(db: &Arc<Database>) -> Vec<Value> {
    let t = table(db, "t");
    let mut txn = begin(db);
    let ids = all(db, &t).into_keys();
    let value = |id| {
        let read = in_txn(&mut txn, db, |access| {
            // None, too, while it is evicted: then this runs again.
            let Some(row) = find(access, &t, id)? else {
                return Ok(None);
            };
            let tuple = access.tuple(&t, row)?;
            Ok(tuple.map(|tuple| t.value(tuple, 2).to_owned()))
        });
        read.expect("reads").expect("is there")
    };
    ids.map(value).collect()
}

fn sound(device: &SimulatedDevice, db: Arc<Database>) {
    let problems = db.verify().expect("verifies").problems;
    assert_eq!(problems, Vec::<String>::new());
    db.close().expect("closes");
    drop(db);
    let device: Arc<dyn Device> = Arc::new(device.clone());
    assert_eq!(check(&device, &mut |_| {}).expect("checks").findings, 0);
}

/// A table of 40 rows, or one that the transaction makes itself, and then widens.
fn widened(kind: IndexKind, own: bool) -> (SimulatedDevice, Arc<Database>, Transaction) {
    let device = SimulatedDevice::new();
    let db = open_alone(&device);
    make_table(&db, "beside", kind);
    let mut txn;
    if own {
        txn = begin(&db);
        let def = table_def(&db, "t", kind);
        run(&db, &mut txn, Change::CreateTable(def));
    } else {
        let t = make_table(&db, "t", kind);
        for id in 0..ROWS {
            insert(&db, &t, id, "old").expect("inserts");
        }
        // Where the value lies in a tuple depends on the other columns.
        let index = value_index(&db, kind, false);
        create_index(&db, index);
        txn = begin(&db);
    }
    widen(&db, &mut txn, DataType::Integer, Value::Integer(7));
    (device, db, txn)
}

#[test]
fn rows_with_new_columns_come_through_a_crash() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        for (own, checkpoints) in [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1)] {
            let (device, db, mut txn) = widened(kind, own);
            if checkpoints == 2 {
                block_on(db.checkpoint()).expect("checkpoints");
            }
            fill(&db, &mut txn, ROWS - 10..ROWS + 30, ValueRef::Integer(9));
            if checkpoints > 0 {
                block_on(db.checkpoint()).expect("checkpoints");
            }
            block_on(db.commit(txn, &RunOptions::new())).expect("commits");
            device.crash(3);
            drop(db);
            for start in 0..3 {
                let db = open_alone(&device);
                let old = if own { 0 } else { ROWS as usize - 10 };
                let mut expected = vec![Value::Integer(7); old];
                expected.resize(old + 40, Value::Integer(9));
                let case = format!("{kind:?}, own {own}, {checkpoints}, start {start}");
                assert_eq!(added(&db), expected, "{case}");
                match start {
                    0 => {
                        device.crash(4);
                        drop(db);
                    }
                    _ => sound(&device, db),
                }
            }
        }
    }
}

#[test]
fn new_columns_that_are_rolled_back_leave_nothing() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (device, db, mut txn) = widened(kind, false);
        fill(&db, &mut txn, ROWS..ROWS + 30, ValueRef::Integer(9));
        block_on(db.checkpoint()).expect("checkpoints");
        fill(&db, &mut txn, ROWS + 30..ROWS + 60, ValueRef::Integer(9));
        block_on(db.rollback(txn));
        assert_eq!(all(&db, &table(&db, "t")).len() as i64, ROWS);
        let problems = db.verify().expect("verifies").problems;
        assert_eq!(problems, Vec::<String>::new());
        device.crash(5);
        drop(db);
        let db = open_alone(&device);
        let t = table(&db, "t");
        assert_eq!(t.def.columns.len(), 2);
        assert_eq!(all(&db, &t).len() as i64, ROWS);
        sound(&device, db);
    }
}

#[test]
fn a_column_after_one_that_a_crash_took_is_its_own() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        for (checkpoint, other) in [(false, false), (false, true), (true, false), (true, true)] {
            let (device, db, mut txn) = widened(kind, false);
            fill(&db, &mut txn, ROWS..ROWS + 30, ValueRef::Integer(9));
            if checkpoint {
                block_on(db.checkpoint()).expect("checkpoints");
            }
            // Something later in the log, so that the rows above are in it for certain.
            insert(&db, &table(&db, "beside"), 1, "beside").expect("inserts");
            device.crash(6);
            drop(db);

            let db = open_alone(&device);
            assert_eq!(all(&db, &table(&db, "t")).len() as i64, ROWS);
            if other {
                make_table(&db, "other", kind);
            }
            let mut txn = begin(&db);
            widen(&db, &mut txn, DataType::Text, Value::Text("none".into()));
            fill(&db, &mut txn, ROWS..ROWS + 5, ValueRef::Text("some"));
            block_on(db.commit(txn, &RunOptions::new())).expect("commits");
            device.crash(7);
            drop(db);

            let db = open_alone(&device);
            let mut expected = vec![Value::Text("none".into()); ROWS as usize];
            expected.resize(ROWS as usize + 5, Value::Text("some".into()));
            assert_eq!(added(&db), expected, "{kind:?}, {checkpoint}, {other}");
            sound(&device, db);
        }
    }
}

/// Does the next thing at each of a checkpoint's pauses at which one is due.
struct Beside {
    due: Vec<usize>,
    doing: Mutex<Option<Doing>>,
    pauses: AtomicUsize,
}

/// A transaction that widens `t` and is rolled back, and others after it, step by step.
struct Doing {
    db: Arc<Database>,
    kind: IndexKind,
    step: usize,
    txn: Option<Transaction>,
}

/// A transaction that is committed, and does not wait for the log's writer.
fn lazily(db: &Arc<Database>, what: impl FnOnce(&mut Transaction)) {
    let mut txn = begin(db);
    what(&mut txn);
    block_on(db.commit(txn, &RunOptions::default())).expect("commits");
}

impl Doing {
    const STEPS: usize = 5;

    fn go_on(&mut self) {
        let db = self.db.clone();
        match self.step {
            0 => {
                let mut txn = begin(&db);
                widen(&db, &mut txn, DataType::Integer, Value::Integer(7));
                fill(&db, &mut txn, ROWS - 5..ROWS + 15, ValueRef::Integer(9));
                self.txn = Some(txn);
            }
            1 => {
                if let Some(txn) = self.txn.take() {
                    block_on(db.rollback(txn));
                }
            }
            // Others' definitions, of another table and of this one.
            2 => lazily(&db, |txn| {
                let other = table_def(&db, "other", self.kind);
                run(&db, txn, Change::CreateTable(other));
            }),
            3 => lazily(&db, |txn| {
                let table = table(&db, "t").oid;
                let index = value_index(&db, self.kind, false);
                run(&db, txn, Change::CreateIndex { table, index });
            }),
            4 => lazily(&db, |txn| {
                widen(&db, txn, DataType::Text, Value::Text("none".into()));
                fill(&db, txn, ROWS..ROWS + 5, ValueRef::Text("some"));
            }),
            _ => {}
        }
        self.step += 1;
    }
}

impl Simulator for Beside {
    fn pause(&self, moment: Moment) {
        let mut doing = self.doing.lock().expect("no panic before");
        let Some(doing) = doing
            .as_mut()
            .filter(|_| moment == Moment::PartitionWritten)
        else {
            return;
        };
        let pause = self.pauses.fetch_add(1, Ordering::Relaxed);
        while self.due.get(doing.step) == Some(&pause) {
            doing.go_on();
        }
    }
}

/// A transaction that had widened a table was rolled back, and another one's definition made
/// all forget what rows it had logged: a start between could not read the log any more.
#[test]
fn what_was_rolled_back_beside_a_checkpoint_can_be_read_in_the_log() {
    // In which of four pauses each step comes; 9: after the checkpoint.
    let mut cases = vec![vec![]];
    for _ in 0..Doing::STEPS {
        cases = cases
            .into_iter()
            .flat_map(|case: Vec<usize>| {
                let from = case.last().copied().unwrap_or(0);
                let next = [0, 1, 3, 9].into_iter().filter(move |at| *at >= from);
                next.map(move |at| [&case[..], &[at]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    assert_eq!(cases.len(), 56);
    for (number, due) in cases.into_iter().enumerate() {
        let kind = [IndexKind::Hash, IndexKind::BTree][number % 2];
        let device = SimulatedDevice::new();
        let beside = Arc::new(Beside {
            due: due.clone(),
            doing: Mutex::default(),
            pauses: AtomicUsize::new(0),
        });
        let shared: Arc<dyn Device> = Arc::new(device.clone());
        let mut config = Config::new(shared).memory_limit(64 << 30).partitions(4);
        config.background = false;
        config.simulator = Some(beside.clone());
        let db = Database::open(config).expect("opens");
        lazily(&db, |txn| {
            let def = table_def(&db, "t", kind);
            run(&db, txn, Change::CreateTable(def));
        });
        let t = table(&db, "t");
        for id in 0..ROWS {
            insert_lazily(&db, &t, id, "old").expect("inserts");
        }
        *beside.doing.lock().expect("no panic") = Some(Doing {
            db: db.clone(),
            kind,
            step: 0,
            txn: None,
        });
        block_on(db.checkpoint()).expect("checkpoints");
        let mut doing = beside.doing.lock().expect("no panic").take();
        while let Some(doing) = doing.as_mut().filter(|doing| doing.step < Doing::STEPS) {
            doing.go_on();
        }
        Steps::new(&db).flush_log();
        drop((doing, t, db));
        for life in 0..3 {
            device.crash(life);
            let db = open_alone(&device);
            let mut expected = vec![Value::Text("none".into()); ROWS as usize];
            expected.resize(ROWS as usize + 5, Value::Text("some".into()));
            assert_eq!(added(&db), expected, "{due:?}, life {life}");
            if life == 1 {
                block_on(db.checkpoint()).expect("checkpoints");
            }
            if life == 2 {
                sound(&device, db);
            }
        }
    }
}
