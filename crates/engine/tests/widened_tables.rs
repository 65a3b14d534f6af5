//! Columns that a transaction adds and fills: its rows have them before anybody else's
//! definition does, in memory, in images and in the log.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::check::check;
use thermocline_engine::{Change, Database, Isolation, RunOptions, Transaction, block_on};
use thermocline_storage::types::DataType;
use thermocline_storage::value::{Value, ValueRef};

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
