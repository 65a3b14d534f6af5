//! Which tuples leave, and that what changes meanwhile stays.

use super::*;

use crate::catalog::ddl::Change;
use crate::catalog::{ColumnDef, IndexDef, IndexKind, TableDef};
use crate::database::Database;
use crate::database::config::Config;
use crate::ground::scope::Scope;
use crate::policy::{Identification, Policy};
use crate::transaction::{Isolation, RunOptions};
use thermocline_device::SimulatedDevice;
use thermocline_device::block_on;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

/// The size of its blocks.
const BLOCK_BYTES: u32 = 16 << 10;

/// A database without threads, with a table of one bigint.
pub(crate) fn database() -> (Arc<Database>, Arc<Table>) {
    database_with(Policy::default())
}

fn database_with(policy: Policy) -> (Arc<Database>, Arc<Table>) {
    let mut config = Config::new(Arc::new(SimulatedDevice::new()))
        .memory_limit(64 << 30)
        .partitions(1);
    config.background = false;
    config.policy = Some(Policy {
        block_bytes: BLOCK_BYTES,
        ..policy
    });
    let db = Database::open(config).expect("opens");
    let def = TableDef {
        indexes: vec![IndexDef {
            oid: db.allocate_oid(),
            name: "t_pkey".into(),
            columns: vec![0],
            unique: true,
            primary: true,
            constraint: true,
            kind: IndexKind::Hash,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }],
        partition_key: vec![0],
        ..TableDef::new(
            db.allocate_oid(),
            "t",
            vec![ColumnDef {
                not_null: true,
                ..ColumnDef::new("id", DataType::BigInt)
            }],
        )
    };
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    block_on(db.ddl(&mut txn, &options, Change::CreateTable(def))).expect("makes the table");
    block_on(db.commit(txn, &options)).expect("commits");
    let table = db.catalog().table_by_name("public", "t").cloned();
    (db, table.expect("the table is there"))
}

fn load(db: &Database, table: &Table, rows: i64) {
    let options = RunOptions::default();
    let mut tuple = Vec::new();
    for id in 0..rows {
        tuple.clear();
        table.encode_tuple(&[ValueRef::BigInt(id)], &mut tuple);
        let run = db.one_shot(&options, Scope::One(0), |access| {
            access.insert(table, &tuple).map(|_| ())
        });
        block_on(run).expect("inserts");
    }
}

#[test]
fn after_a_load_what_is_used_comes_in_and_stays_before_what_is_not() {
    const ROWS: i64 = 10_000;
    let (db, table) = database();
    load(&db, &table, ROWS);
    // Memory is scarce, but not yet too tight to let anything in.
    db.memory()
        .expect(db.memory().soft() - db.memory().read_resident());
    let mut evictor = Evictor::new(16 << 10);
    let mut evicted = 0;
    let mut evict = |evictor: &mut Evictor, most: u64| {
        while evicted < most {
            evicted += evictor.evict(&db, 0, &table).expect("evicts").tuples;
        }
    };
    evict(&mut evictor, ROWS as u64 / 2);
    // Uses are looked at now and then only.
    for _ in 0..10 {
        evictor.cooling.look(&db);
        db.clock().sleep(std::time::Duration::from_millis(5));
    }
    assert!(db.memory().is_learning());
    let is_hot = |row: u32| {
        let mut state = db.all_partitions()[0].lock();
        state.table_mut(&table).directory().get(row).is_hot()
    };
    let cold: Vec<u32> = (0..ROWS as u32).filter(|row| !is_hot(*row)).collect();
    let used: Vec<u32> = cold.iter().copied().step_by(10).collect();
    for row in cold {
        let mut state = db.all_partitions()[0].lock();
        let rows = state.table_mut(&table);
        let word = rows.directory().get(row);
        rows.cool(row, word, 0);
    }
    let mut key = Vec::new();
    for row in &used {
        key.clear();
        // Row numbers are given out in the order of the inserts.
        table.encode_index_key(0, &[ValueRef::BigInt(i64::from(*row))], &mut key);
        let found = block_on(db.get(&RunOptions::default(), &table, 0, &key, |_| ()));
        assert!(found.expect("reads").is_some());
        assert!(is_hot(*row), "used once");
    }
    // The hand comes to them first.
    db.all_partitions()[0].lock().table_mut(&table).is_next(0);
    evict(&mut evictor, ROWS as u64 * 8 / 10);
    assert!(used.into_iter().all(is_hot));
}

#[test]
fn what_was_used_longest_ago_leaves_first() {
    const ROWS: i64 = 10_000;
    let (db, table) = database_with(Policy {
        identification: Identification::Lru,
        ..Policy::default()
    });
    let options = RunOptions::default();
    load(&db, &table, ROWS);
    // The first come last.
    let mut key = Vec::new();
    for id in 0..ROWS / 4 {
        key.clear();
        table.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
        let found = block_on(db.get(&options, &table, 0, &key, |_| ()));
        assert!(found.expect("reads").is_some());
    }
    let mut evictor = Evictor::new(64 << 10);
    let is_hot = |row: u32| {
        let mut state = db.all_partitions()[0].lock();
        state.table_mut(&table).directory().get(row).is_hot()
    };
    let mut evicted = 0;
    while evicted < 5000 {
        let step = evictor.evict(&db, 0, &table).expect("evicts");
        assert!(step.tuples > 0);
        evicted += step.tuples;
    }
    // Row numbers are given out in the order of the inserts.
    let (used, unused) = (0..ROWS as u32 / 4, ROWS as u32 / 4..ROWS as u32);
    assert!(used.clone().all(is_hot));
    let first_hot = unused.clone().find(|row| is_hot(*row)).expect("some stay");
    assert_eq!(u64::from(first_hot - unused.start), evicted);
    assert!((first_hot..unused.end).all(is_hot));
}

#[test]
fn an_old_copy_is_not_taken_for_one_that_another_made_since() {
    let (db, table) = database();
    let mut tuple = Vec::new();
    table.encode_tuple(&[ValueRef::BigInt(1)], &mut tuple);
    let mut state = db.all_partitions()[0].lock();
    let rows = state.table_mut(&table);
    let row = rows.take_number().expect("a row number");
    rows.insert(row, &tuple, false).expect("room");
    let hot = rows.directory().get(row).as_hot().expect("it is hot");

    let mut evictor = Evictor::new(1 << 20);
    evictor.begin_block(&db, &table);
    assert!(evictor.copy(rows, &table, row, hot));
    // Before the evictor has written, the tuple is changed where it lies,
    // and a checkpoint copies it, into the first slot of its block, too.
    let word = rows.directory().get(row);
    let changed = rows.change(row, word, &tuple, 0).expect("room");
    rows.free_aside(changed.past);
    let mut checkpoint = Evictor::new(1 << 20);
    checkpoint.begin_block(&db, &table);
    assert!(checkpoint.copy(rows, &table, row, hot));
    assert_eq!(evictor.picked[0].slot, checkpoint.picked[0].slot);
    drop(state);

    let old = evictor.write_block(&db, 0, &table, Leaving::Evicted);
    assert_eq!(old.expect("writes"), Evicted::default());
    let new = checkpoint.write_block(&db, 0, &table, Leaving::Kept);
    assert_eq!(new.expect("writes").tuples, 1);
}

#[test]
fn of_a_scan_what_was_used_often_stays_in_memory_under_s3_fifo() {
    const ROWS: i64 = 10_000;
    let (db, table) = database_with(Policy {
        identification: Identification::S3Fifo,
        ..Policy::default()
    });
    load(&db, &table, ROWS);
    // Row numbers are given out in the order of the inserts.
    let used = 0..ROWS as u32 / 10;
    let read = |id: i64| {
        let mut key = Vec::new();
        table.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
        let found = block_on(db.get(&RunOptions::default(), &table, 0, &key, |_| ()));
        assert!(found.expect("reads").is_some());
    };
    (0..3).for_each(|_| used.clone().for_each(|row| read(i64::from(row))));
    let mut evictor = Evictor::new(16 << 10);
    let mut evicted = 0;
    while evicted < ROWS as u64 / 2 {
        let step = evictor.evict(&db, 0, &table).expect("evicts");
        assert!(step.tuples > 0);
        evicted += step.tuples;
    }
    let is_hot = |row: u32| {
        let mut state = db.all_partitions()[0].lock();
        state.table_mut(&table).directory().get(row).is_hot()
    };
    assert!(used.clone().all(is_hot));
    let gone = (used.end..ROWS as u32).filter(|row| !is_hot(*row)).count();
    assert_eq!(gone as u64, evicted);
}
