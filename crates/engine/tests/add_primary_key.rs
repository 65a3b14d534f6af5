//! A primary key for a table that has rows and lies anyhow: each row goes to the partition that its
//! key says, once, and with all indexes; or nothing has happened, whatever went wrong on the way.

mod fixture;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedClock, SimulatedDevice};
use thermocline_engine::catalog::{IndexDef, IndexKind, TableDef};
use thermocline_engine::steps::{Moment, Simulator, Steps};
use thermocline_engine::{
    Change, Config, Database, Error, Isolation, Result, RunOptions, Scope, Table, Transaction,
    block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

type Rows = BTreeMap<i64, String>;

const KINDS: [IndexKind; 2] = [IndexKind::BTree, IndexKind::Hash];

/// A table whose rows lie in any partition: no key says in which.
fn spread_table(db: &Database) -> TableDef {
    let columns = vec![
        column("id", DataType::BigInt, true),
        column("value", DataType::Text, false),
    ];
    TableDef::new(db.allocate_oid(), "t", columns)
}

fn key_of(db: &Database, kind: IndexKind) -> IndexDef {
    IndexDef {
        name: "t_pkey".into(),
        columns: vec![0],
        primary: true,
        constraint: true,
        ..value_index(db, kind, true)
    }
}

fn adds_key(db: &Arc<Database>, kind: IndexKind) -> Change {
    Change::CreateIndex {
        table: table(db, "t").def.oid,
        index: key_of(db, kind),
    }
}

/// Inserts rows, many at a time into one partition after the other, as COPY does.
fn load(db: &Arc<Database>, rows: &Rows) {
    let t = table(db, "t");
    let rows: Vec<Vec<u8>> = rows.iter().map(|(id, text)| tuple(&t, *id, text)).collect();
    for some in rows.chunks(50) {
        let insert = |access: &mut thermocline_engine::Access<'_>| {
            some.iter()
                .try_for_each(|row| access.insert(&t, row).map(drop))
        };
        let options = RunOptions::default();
        let inserted = db.one_shot(&options, Scope::One(db.spread()), insert);
        block_on(inserted).expect("inserts");
    }
}

/// Rows of all lengths, in no order: one has more than goes under one lock.
fn some_rows(count: i64) -> Rows {
    let id = |row: i64| row * 7919 % 1_000_003 - 500_000;
    let length = |row: i64| match row {
        700 => 600 << 10,
        701..703 => 200 << 10,
        _ => (row * 37 % 400) as usize,
    };
    let text = |row: i64| format!("{row}:{}", "v".repeat(length(row)));
    (0..count).map(|row| (id(row), text(row))).collect()
}

fn loaded(db: &Arc<Database>, count: i64) -> Rows {
    ddl(db, Change::CreateTable(spread_table(db))).expect("makes the table");
    let rows = some_rows(count);
    load(db, &rows);
    rows
}

/// Each row is found by its key, in the one partition where it must be.
fn check_key(db: &Arc<Database>, rows: &Rows) {
    let t = table(db, "t");
    assert_eq!(t.def.partition_key, [0]);
    assert_eq!(all(db, &t), *rows);
    for (id, text) in rows {
        assert!(matches!(scope(&t, *id), Scope::One(_)));
        let found = get_by_key(db, &t, *id).expect("reads");
        assert_eq!(found.as_ref(), Some(text), "row {id}");
    }
    assert_eq!(get_by_key(db, &t, 1 << 40).expect("reads"), None);
    let mut verified = db.verify().expect("verifies");
    // Files are not asked: a checkpoint may be under way.
    verified
        .problems
        .retain(|problem| problem.starts_with("table "));
    assert_eq!(verified.problems, Vec::<String>::new());
}

/// A row by its primary key, whichever of the indexes that is.
fn get_by_key(db: &Database, t: &Table, id: i64) -> Result<Option<String>> {
    let primary = t.def.indexes.iter().position(|index| index.primary);
    let primary = primary.expect("it has a key");
    let mut key = Vec::new();
    t.encode_index_key(primary, &[ValueRef::BigInt(id)], &mut key);
    block_on(db.one_shot(&RunOptions::new(), scope(t, id), |access| {
        let found = access.get(t, primary, &key)?;
        Ok(found.map(|(_, tuple)| text_of(t, tuple)))
    }))
}

/// The table is what it was before.
fn check_none(db: &Arc<Database>, rows: &Rows) {
    let t = table(db, "t");
    assert!(t.def.partition_key.is_empty());
    assert!(t.def.indexes.iter().all(|index| !index.primary));
    assert_eq!(all(db, &t), *rows);
    let mut verified = db.verify().expect("verifies");
    // Files are not asked: a checkpoint may be under way.
    verified
        .problems
        .retain(|problem| problem.starts_with("table "));
    assert_eq!(verified.problems, Vec::<String>::new());
}

#[test]
fn rows_go_where_their_key_says_with_all_indexes_and_stay_there() {
    for kind in KINDS {
        {
            let limit = 64 << 30;
            let (device, db) = simulated(limit);
            let rows = loaded(&db, 12_000);
            create_index(&db, value_index(&db, IndexKind::Hash, false));
            ddl(&db, adds_key(&db, kind)).expect("adds the key");
            check_key(&db, &rows);
            let t = table(&db, "t");
            let taken = insert(&db, &t, *rows.keys().next().expect("one"), "new");
            assert_eq!(taken.expect_err("it is there").sqlstate(), "23505");
            db.close().expect("closes");
            drop((t, db));
            device.crash(1);
            check_key(&open(&device, limit), &rows);
        }
    }
}

#[test]
fn an_empty_table_gets_its_key() {
    let (_, db) = simulated(64 << 30);
    let rows = loaded(&db, 0);
    ddl(&db, adds_key(&db, IndexKind::BTree)).expect("adds the key");
    check_key(&db, &rows);
}

fn refuses(refused: Result<()>, detail: &str) {
    match refused.expect_err("two rows have one key") {
        Error::UniqueViolation {
            detail: told,
            building: true,
            ..
        } => assert_eq!(told, detail),
        other => panic!("{other}"),
    }
}

#[test]
fn a_key_that_two_rows_have_is_told_and_the_table_stays() {
    for kind in KINDS {
        {
            let (_, db) = simulated(64 << 30);
            let mut rows = loaded(&db, 6000);
            let again = *rows.keys().nth(1234).expect("there are more");
            load(&db, &Rows::from([(again, "again".into())]));
            let key = || ddl(&db, adds_key(&db, kind));
            refuses(key(), &format!("Key (id)=({again}) is duplicated."));
            // Without either it goes.
            let t = table(&db, "t");
            let gone = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
                let mut all = Vec::new();
                access.scan(&t, &mut |row, tuple| {
                    all.push((row, text_of(&t, tuple)));
                    Ok(ControlFlow::Continue(()))
                })?;
                let is_second = |found: &&(_, String)| found.1 == "again";
                let (row, _) = all.iter().find(is_second).expect("it is there");
                access.delete(&t, *row)
            }));
            gone.expect("deletes");
            check_none(&db, &rows);
            key().expect("adds the key");
            check_key(&db, &rows);
            rows.remove(&again);
            assert!(delete(&db, &table(&db, "t"), again).expect("deletes"));
            check_key(&db, &rows);
        }
    }
}

#[test]
fn values_that_become_the_same_are_told_in_whichever_partitions_they_are() {
    let (_, db) = simulated(64 << 30);
    let rows = loaded(&db, 300);
    ddl(&db, adds_key(&db, IndexKind::BTree)).expect("adds the key");
    create_index(&db, value_index(&db, IndexKind::BTree, true));
    let t = table(&db, "t");
    let rewrite = |same: [i64; 2]| {
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        let shortened = |old: &Table, bytes: &[u8], new: &Table, out: &mut Vec<u8>| {
            let (id, text) = id_and_text(old, bytes);
            let text = if same.contains(&id) { "same" } else { &text };
            out.extend_from_slice(&tuple(new, id, text));
            Ok(())
        };
        let options = RunOptions::new();
        block_on(db.rewrite_table(&mut txn, &options, t.def.clone(), &shortened))?;
        block_on(db.commit(txn, &options))
    };
    let ids: Vec<i64> = rows.keys().copied().collect();
    let place = |id: &i64| match scope(&t, *id) {
        Scope::One(partition) => partition,
        _ => panic!("it has a key"),
    };
    let other = ids.iter().find(|id| place(id) != place(&ids[0]));
    let beside = ids[1..].iter().find(|id| place(id) == place(&ids[0]));
    for second in [other, beside] {
        let second = *second.expect("there are so many");
        refuses(
            rewrite([ids[0], second]),
            "Key (value)=(same) is duplicated.",
        );
        check_key(&db, &rows);
    }
}

fn id_and_text(table: &Table, tuple: &[u8]) -> (i64, String) {
    let ValueRef::BigInt(id) = table.value(tuple, 0) else {
        panic!("an id is a bigint");
    };
    (id, text_of(table, tuple))
}

fn key_within(db: &Arc<Database>, txn: &mut Transaction) {
    block_on(db.ddl(txn, &RunOptions::new(), adds_key(db, IndexKind::BTree))).expect("adds it");
}

#[test]
fn it_is_taken_back_whole_or_to_a_savepoint() {
    let (device, db) = simulated(64 << 30);
    let mut rows = loaded(&db, 2000);
    let mut txn = db.begin(Isolation::Serializable, false);
    key_within(&db, &mut txn);
    block_on(db.rollback(txn));
    check_none(&db, &rows);

    let mut txn = db.begin(Isolation::Serializable, false);
    let before = txn.savepoint(0).expect("a savepoint");
    key_within(&db, &mut txn);
    block_on(txn.rollback_to(&before)).expect("goes back");
    key_within(&db, &mut txn);
    let t = seen_by(&txn);
    let behind = txn.savepoint(0).expect("a savepoint");
    let ids: Vec<i64> = rows.keys().copied().take(3).collect();
    in_txn(&mut txn, &db, |access| {
        assert!(set_in(access, &t, ids[0], "changed")?);
        assert!(delete_in(access, &t, ids[1])?);
        access.insert(&t, &tuple(&t, 1 << 40, "new")).map(drop)
    })
    .expect("changes");
    block_on(txn.rollback_to(&behind)).expect("goes back");
    in_txn(&mut txn, &db, |access| {
        assert_eq!(get_in(access, &t, ids[0])?, rows.get(&ids[0]).cloned());
        assert_eq!(get_in(access, &t, 1 << 40)?, None);
        assert!(set_in(access, &t, ids[2], "changed")?);
        assert!(delete_in(access, &t, ids[1])?);
        Ok(())
    })
    .expect("changes");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    rows.insert(ids[2], "changed".into());
    rows.remove(&ids[1]);
    check_key(&db, &rows);
    drop((t, db));
    device.crash(2);
    check_key(&open(&device, 64 << 30), &rows);
}

#[test]
fn a_statement_that_is_cancelled_leaves_the_table_as_it_was() {
    let (_, db) = simulated(64 << 30);
    let rows = loaded(&db, 3000);
    let t = table(&db, "t");
    let options = RunOptions::new();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    let cancels = |_: &Table, bytes: &[u8], _: &Table, new: &mut Vec<u8>| {
        options.cancel.cancel();
        new.extend_from_slice(bytes);
        Ok(())
    };
    let rewritten = db.rewrite_table(&mut txn, &options, t.def.clone(), &cancels);
    assert_eq!(block_on(rewritten).expect_err("ends").sqlstate(), "57014");
    block_on(db.rollback(txn));
    check_none(&db, &rows);
}

#[test]
fn a_full_device_refuses_it_and_the_table_stays() {
    let device = SimulatedDevice::new();
    let db = open_alone(&device);
    let rows = loaded(&db, 4000);
    block_on(db.checkpoint()).expect("checkpoints");
    device.set_capacity_bytes(Some(1 << 40));
    let used = (1 << 40) - device.free_bytes().expect("says");
    device.set_capacity_bytes(Some(used));
    // What the log has ready takes it some times.
    let refused = (0..200).find_map(|_| {
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        let options = RunOptions::new();
        let made = block_on(db.ddl(&mut txn, &options, adds_key(&db, IndexKind::BTree)));
        block_on(db.rollback(txn));
        made.err()
    });
    assert_eq!(refused.expect("is refused").sqlstate(), "53100");
    check_none(&db, &rows);
    device.set_capacity_bytes(None);
    block_on(db.checkpoint()).expect("checkpoints");
    ddl(&db, adds_key(&db, IndexKind::BTree)).expect("adds the key");
    check_key(&db, &rows);
}

/// Nothing runs while a step pauses.
struct Alone;

impl Simulator for Alone {
    fn pause(&self, _: Moment) {}
}

/// In one thread, whose every device operation is the script's own.
fn open_scripted(device: &SimulatedDevice) -> Result<Arc<Database>> {
    let mut config = Config::new(Arc::new(device.clone())).partitions(2);
    config.background = false;
    config.clock = Arc::new(SimulatedClock::new());
    config.simulator = Some(Arc::new(Alone));
    config.memory_limit = thermocline_engine::MEMORY_LIMIT_MIN;
    config.log_segment_bytes = 64 << 10;
    Database::open(config)
}

fn drive<F: Future>(steps: &Steps, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..10_000 {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        steps.flush_log();
    }
    panic!("it waits for something that never happens");
}

/// Makes a table, fills it, takes some rows out of memory and adds the key. Whether all rows were
/// acknowledged, and whether the key was.
fn scripted(device: &SimulatedDevice, rows: &Rows) -> (bool, bool) {
    let mut done = (false, false);
    let mut run = || -> Result<()> {
        let db = open_scripted(device)?;
        let steps = Steps::new(&db);
        let options = RunOptions::new();
        let define = |change| {
            let mut txn = db.begin(Isolation::Serializable, false);
            drive(&steps, db.ddl(&mut txn, &options, change))?;
            drive(&steps, db.commit(txn, &options))
        };
        define(Change::CreateTable(spread_table(&db)))?;
        let t = table(&db, "t");
        drive(
            &steps,
            db.one_shot(&options, Scope::All, |access| {
                let mut rows = rows.iter();
                rows.try_for_each(|(id, text)| access.insert(&t, &tuple(&t, *id, text)).map(drop))
            }),
        )?;
        done.0 = true;
        steps.leave_memory(0);
        steps.evict()?;
        steps.leave_memory(16 << 20);
        define(adds_key(&db, IndexKind::BTree))?;
        done.1 = true;
        drive(&steps, db.checkpoint())
    };
    let _ = run();
    done
}

#[test]
fn a_halt_after_any_device_operation_leaves_all_rows_with_the_key_or_without() {
    let rows: Rows = (0..900)
        .map(|id| (id, "v".repeat((id % 300) as usize)))
        .collect();
    let whole = SimulatedDevice::new();
    assert_eq!(scripted(&whole, &rows), (true, true));
    let operations = whole.operations();
    assert!(operations > 20, "{operations} are too few");
    let (mut with, mut without) = (0, 0);
    for halt in 0..operations {
        let device = SimulatedDevice::new();
        device.halt_after(halt);
        let (loaded, keyed) = scripted(&device, &rows);
        device.crash(halt);
        let db = open_scripted(&device).unwrap_or_else(|e| panic!("halt {halt}: {e}"));
        let there = db.catalog().table_by_name("public", "t").cloned();
        let Some(t) = there else {
            assert!(!loaded, "halt {halt}: the table is lost");
            continue;
        };
        if t.def.partition_key.is_empty() {
            assert!(!keyed, "halt {halt}: the key is lost");
            match loaded || !all(&db, &t).is_empty() {
                true => check_none(&db, &rows),
                false => assert!(!loaded),
            }
            without += 1;
        } else {
            check_key(&db, &rows);
            with += 1;
        }
    }
    assert!(
        with > 0 && without > 0,
        "{with} and {without} of {operations}"
    );
}
