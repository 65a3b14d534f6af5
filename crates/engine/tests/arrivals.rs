//! A start serves while partitions come: who waits for what, which comes first, what ends a
//! wait. What becomes of damage that is found late, and that it leaves what a whole start
//! leaves, byte for byte.

mod fixture;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fixture::*;
use thermocline_device::{Device, OpenMode, SimulatedClock, SimulatedDevice};
use thermocline_engine::catalog::{IndexDef, IndexKind, SequenceDef};
use thermocline_engine::steps::{Moment, Simulator, Steps};
use thermocline_engine::{
    Change, Config, Database, Error, Isolation, Result, RunOptions, Scope, Table, TryGet, block_on,
};
use thermocline_values::types::DataType;

const PARTITIONS: u16 = 4;

/// Partitions come when the test says so.
struct ByHand;

/// All come with the start; what copies pages takes as few at a time as with the other.
struct Whole;

impl Simulator for Whole {
    fn pause(&self, _: Moment) {}
}

impl Simulator for ByHand {
    fn pause(&self, _: Moment) {}

    fn brings_partitions(&self) -> bool {
        true
    }
}

fn config(device: &SimulatedDevice) -> Config {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device)
        .memory_limit(64 << 30)
        .partitions(PARTITIONS);
    config.background = false;
    config.log_segment_bytes = 128 << 10;
    config
}

fn open_by_hand(device: &SimulatedDevice) -> (Arc<Database>, Steps) {
    let mut config = config(device);
    config.simulator = Some(Arc::new(ByHand));
    let db = Database::open(config).expect("opens");
    let steps = Steps::new(&db);
    assert!(!steps.has_all_partitions());
    (db, steps)
}

type Rows = BTreeMap<i64, String>;

/// A directory with images, and with a log after them. That changes rows, leaves a
/// transaction open, commits one that began before the checkpoint, makes and drops a table,
/// an index and numbers.
fn directory() -> (Files, Rows) {
    let device = SimulatedDevice::new();
    let db = Database::open(config(&device)).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    let mut rows = Rows::new();
    for id in 0..600 {
        insert(&db, &t, id, &format!("before {id}")).expect("inserts");
        rows.insert(id, format!("before {id}"));
    }
    let begin = |from: i64| {
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        in_txn(&mut txn, &db, |access| {
            for id in from..from + 40 {
                access.insert(&t, &tuple(&t, id, "of a transaction"))?;
            }
            Ok(())
        })
        .expect("inserts");
        txn
    };
    let committed = begin(10_000);
    let rolled_back = begin(20_000);
    let open = begin(30_000);
    block_on(db.checkpoint()).expect("checkpoints");
    block_on(db.commit(committed, &RunOptions::new())).expect("commits");
    (10_000..10_040).for_each(|id| drop(rows.insert(id, "of a transaction".into())));
    block_on(db.rollback(rolled_back));
    std::mem::forget(open);
    for id in (0..600).step_by(3) {
        assert!(set(&db, &t, id, &format!("after {id}")).expect("updates"));
        rows.insert(id, format!("after {id}"));
    }
    for id in (0..600).step_by(7) {
        assert!(delete(&db, &t, id).expect("deletes"));
        rows.remove(&id);
    }
    (Files::clone(&files_of(&device)), rows)
}

/// The same, and definitions in the log's tail.
fn directory_with_definitions() -> (Files, Rows) {
    let (files, mut rows) = directory();
    let device = device_of(&files);
    let db = Database::open(config(&device)).expect("opens");
    make_table(&db, "gone", IndexKind::BTree);
    let gone = table(&db, "gone");
    (0..50).for_each(|id| insert(&db, &gone, id, "x").expect("inserts"));
    let t = table(&db, "t");
    let index = IndexDef {
        oid: db.allocate_oid(),
        name: "by_value".into(),
        columns: vec![1],
        unique: false,
        primary: false,
        constraint: false,
        kind: IndexKind::BTree,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    let change = Change::CreateIndex {
        table: t.def.oid,
        index,
    };
    ddl(&db, change).expect("makes the index");
    let t = table(&db, "t");
    for id in 700..800 {
        insert(&db, &t, id, "late").expect("inserts");
        rows.insert(id, "late".into());
    }
    ddl(&db, Change::DropTable(gone.def.oid)).expect("drops");
    ddl(&db, Change::CreateSequence(numbers(&db))).expect("makes numbers");
    let catalog = db.catalog();
    let def = catalog.sequence_by_name("public", "numbers");
    let given = db.next_value(def.expect("is there")).expect("a number");
    block_on(db.wait_for_log(&RunOptions::new(), given.logged_to)).expect("is durable");
    (files_of(&device), rows)
}

fn numbers(db: &Database) -> SequenceDef {
    SequenceDef {
        oid: db.allocate_oid(),
        schema: "public".into(),
        name: "numbers".into(),
        data_type: DataType::BigInt,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cache: 1,
        cycle: false,
        owned_by: None,
        restarted_by: 0,
    }
}

fn id_in(t: &Table, partition: u16, rows: &Rows) -> i64 {
    let mut ids = rows.keys().copied();
    ids.find(|id| scope(t, *id) == Scope::One(partition))
        .expect("each partition has rows")
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<T>>>>;

fn poll<T>(answer: &mut Answer<T>) -> Poll<Result<T>> {
    answer
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn is_waiting<T>(answer: &mut Answer<T>) -> bool {
    poll(answer).is_pending()
}

fn ready<T>(answer: &mut Answer<T>) -> Result<T> {
    match poll(answer) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}

/// A row of a partition, read by its key.
fn reading(
    db: &Arc<Database>,
    t: &Arc<Table>,
    id: i64,
    options: RunOptions,
) -> Answer<Option<String>> {
    let (db, t) = (db.clone(), t.clone());
    Box::pin(async move {
        db.one_shot(&options, scope(&t, id), |access| get_in(access, &t, id))
            .await
    })
}

#[test]
fn the_partition_that_is_waited_for_comes_next_and_answers() {
    let (files, rows) = directory();
    let device = device_of(&files);
    let (db, steps) = open_by_hand(&device);
    let t = table(&db, "t");
    let ids: Vec<i64> = (0..PARTITIONS).map(|p| id_in(&t, p, &rows)).collect();
    let mut answers: Vec<_> = ids
        .iter()
        .map(|id| reading(&db, &t, *id, RunOptions::new()))
        .collect();
    // Asked for in this order; 1 by nobody.
    let order = [3usize, 0, 2];
    for place in order {
        assert!(is_waiting(&mut answers[place]));
    }
    let key = key(&t, ids[3]);
    let options = RunOptions::new();
    let tried = db.try_get(&options, &t, 0, &key, |tuple| text_of(&t, tuple));
    assert!(
        matches!(tried, Ok(TryGet::Wait)),
        "the short walk waits too"
    );
    for (number, place) in order.into_iter().enumerate() {
        for later in &order[number..] {
            assert!(is_waiting(&mut answers[*later]), "{later} before {place}");
        }
        assert!(steps.load());
        let report = db.recovery_report();
        assert_eq!(usize::from(report.partitions_there), number + 1);
        assert_eq!(report.whole_milliseconds, 0);
        let found = ready(&mut answers[place]).expect("reads");
        assert_eq!(found.as_ref(), rows.get(&ids[place]));
    }
    assert!(is_waiting(&mut answers[1]));
    assert!(steps.load());
    assert!(steps.has_all_partitions());
    assert!(!steps.load(), "nothing is left");
    assert_eq!(
        ready(&mut answers[1]).expect("reads").as_ref(),
        rows.get(&ids[1])
    );
    assert_eq!(db.recovery_report().partitions_there, PARTITIONS);
    assert_eq!(all(&db, &t), rows);
    assert!(db.verify().expect("verifies").is_sound());
}

#[test]
fn cancel_timeout_and_the_end_of_the_database_end_a_wait() {
    let (files, rows) = directory();
    let device = device_of(&files);
    let mut config = config(&device);
    let clock = SimulatedClock::new();
    config.clock = Arc::new(clock.clone());
    config.simulator = Some(Arc::new(ByHand));
    let db = Database::open(config).expect("opens");
    let steps = Steps::new(&db);
    let t = table(&db, "t");
    let id = id_in(&t, 2, &rows);

    let options = RunOptions::new();
    let mut answer = reading(&db, &t, id, options.clone());
    assert!(is_waiting(&mut answer));
    options.cancel.cancel();
    assert!(matches!(ready(&mut answer), Err(Error::Cancelled)));

    let mut options = RunOptions::new();
    options.deadline = Some(db.now() + Duration::from_secs(1));
    let mut answer = reading(&db, &t, id, options);
    assert!(is_waiting(&mut answer));
    clock.advance(Duration::from_secs(2));
    steps.tick();
    assert!(matches!(ready(&mut answer), Err(Error::Timeout)));

    let mut answer = reading(&db, &t, id, RunOptions::new());
    assert!(is_waiting(&mut answer));
    let before = files_of(&device);
    db.close().expect("closes");
    let error = ready(&mut answer).expect_err("it is the end");
    assert_eq!(error.sqlstate(), "57P01");
    let named = |files: &Files| files.get("manifest").cloned();
    assert!(
        named(&files_of(&device)) == named(&before),
        "no checkpoint without all partitions"
    );
    let db = Database::open(self::config(&device)).expect("opens");
    assert_eq!(all(&db, &table(&db, "t")), rows);
}

#[test]
fn who_needs_all_partitions_waits_for_all() {
    let (files, rows) = directory();
    let device = device_of(&files);
    let (db, steps) = open_by_hand(&device);
    let t = table(&db, "t");
    let mut waiting: Vec<(&str, Answer<()>)> = Vec::new();
    let one = db.clone();
    waiting.push((
        "a statement over all",
        Box::pin(async move {
            let options = RunOptions::new();
            one.one_shot(&options, Scope::All, |_| Ok(())).await
        }),
    ));
    let one = db.clone();
    waiting.push((
        "a checkpoint",
        Box::pin(async move { one.checkpoint().await }),
    ));
    let (one, of) = (db.clone(), t.clone());
    waiting.push((
        "a scan",
        Box::pin(async move {
            let snapshot = one.snapshot();
            for partition in 0..PARTITIONS {
                let mut scan = snapshot.scan(&of, partition);
                while scan.next_chunk(&mut |_, _| ()).await? {}
            }
            Ok(())
        }),
    ));
    let (one, of) = (db.clone(), t.clone());
    let (near, far) = (id_in(&t, 0, &rows), id_in(&t, 3, &rows));
    waiting.push((
        "rows of two partitions",
        Box::pin(async move {
            let keys = [key(&of, near), key(&of, far)];
            let mut found = 0;
            one.get_many(&RunOptions::new(), &of, 0, &keys, |_, _| found += 1)
                .await?;
            assert_eq!(found, 2);
            Ok(())
        }),
    ));
    // The last: the others go by the table as it was.
    let (one, of) = (db.clone(), t.clone());
    waiting.push((
        "a definition",
        Box::pin(async move {
            let options = RunOptions::new();
            let mut txn = one.begin(Isolation::ReadCommitted, false);
            let index = value_index(&one, IndexKind::BTree, false);
            let table = of.def.oid;
            one.ddl(&mut txn, &options, Change::CreateIndex { table, index })
                .await?;
            one.commit(txn, &options).await
        }),
    ));
    while !steps.has_all_partitions() {
        for (what, answer) in &mut waiting {
            assert!(is_waiting(answer), "{what}");
        }
        assert!(steps.load());
        if usize::from(db.recovery_report().partitions_there) == 2 {
            break;
        }
    }
    while steps.load() {}
    for (what, answer) in &mut waiting {
        for _ in 0..1000 {
            if let Poll::Ready(result) = poll(answer) {
                result.unwrap_or_else(|error| panic!("{what}: {error}"));
                break;
            }
            steps.flush_log();
        }
    }
    assert_eq!(all(&db, &table(&db, "t")), rows);
    assert!(db.verify().expect("verifies").is_sound());
}

/// What was committed while partitions came is there after a crash in the midst of it.
#[test]
fn a_crash_while_partitions_come_loses_nothing() {
    let (files, mut rows) = directory_with_definitions();
    let device = device_of(&files);
    for life in 0..6 {
        let (db, steps) = open_by_hand(&device);
        let t = table(&db, "t");
        for partition in 0..(life % PARTITIONS) + 1 {
            let id = id_in(&t, (partition + life) % PARTITIONS, &rows);
            let value = format!("life {life}");
            let (one, of, new) = (db.clone(), t.clone(), value.clone());
            let mut writing: Answer<bool> = Box::pin(async move {
                let options = RunOptions::new();
                one.one_shot(&options, scope(&of, id), |access| {
                    set_in(access, &of, id, &new)
                })
                .await
            });
            while is_waiting(&mut writing) {
                if !steps.load() {
                    steps.flush_log();
                }
            }
            rows.insert(id, value);
        }
        device.crash(u64::from(life));
    }
    let db = Database::open(config(&device)).expect("opens");
    assert_eq!(all(&db, &table(&db, "t")), rows);
    assert!(db.verify().expect("verifies").is_sound());
}

#[test]
fn any_order_leaves_what_a_whole_start_leaves() {
    let (files, rows) = directory_with_definitions();
    let images = |db: Arc<Database>, device: &SimulatedDevice| {
        let t = table(&db, "t");
        assert_eq!(all(&db, &t), rows);
        assert_eq!(ids_of(&db, &t, "late").len(), 100);
        assert!(db.catalog().table_by_name("public", "gone").is_none());
        assert!(db.verify().expect("verifies").is_sound());
        let catalog = db.catalog();
        let def = catalog.sequence_by_name("public", "numbers");
        let given = db.next_value(def.expect("is there")).expect("a number");
        assert!(given.value > 1);
        db.close().expect("closes");
        let mut images = files_of(device);
        images.retain(|name, _| name == "blocks" || name.starts_with("checkpoint-"));
        // The Block Table is in no order.
        images.retain(|name, _| !name.ends_with("-blocks"));
        images
    };
    let device = device_of(&files);
    let mut config = config(&device);
    config.simulator = Some(Arc::new(Whole));
    let whole = images(Database::open(config).expect("opens"), &device);
    for first in 0..PARTITIONS {
        let device = device_of(&files);
        let (db, steps) = open_by_hand(&device);
        let t = table(&db, "t");
        let id = id_in(&t, first, &rows);
        let mut answer = reading(&db, &t, id, RunOptions::new());
        assert!(is_waiting(&mut answer));
        while steps.load() {}
        // To read it would make it warmer than it was.
        drop(answer);
        let found = images(db, &device);
        assert!(found == whole, "partition {first} first");
    }
}

/// A partition that cannot be read is refused to who needs it, by name; others are read; and
/// nothing is written any more.
#[test]
fn damage_that_is_found_late_is_named_and_ends_writing() {
    let (files, rows) = directory();
    let name = files
        .keys()
        .find(|name| name.ends_with("-0002"))
        .expect("there is an image")
        .clone();
    let device = device_of(&files);
    let file = device.open(&name, OpenMode::Existing).expect("opens");
    file.write_at(&[0x5A; 8], 100).expect("writes");
    assert!(
        Database::open(config(&device)).is_err(),
        "a whole start is refused"
    );

    let (db, steps) = open_by_hand(&device);
    let t = table(&db, "t");
    let (lost, kept) = (id_in(&t, 2, &rows), id_in(&t, 1, &rows));
    let mut answer = reading(&db, &t, lost, RunOptions::new());
    assert!(is_waiting(&mut answer));
    while steps.load() {}
    let told = |result: Result<Option<String>>| {
        let error = result.expect_err("it is damaged");
        assert_eq!(error.sqlstate(), "XX001");
        assert!(error.to_string().contains(&name), "{error}");
    };
    told(ready(&mut answer));
    told(get(&db, &t, lost));
    let error = db.wait_for_partitions().expect_err("one is lost");
    assert!(error.to_string().contains(&name), "{error}");
    let options = RunOptions::new();
    let all = block_on(db.one_shot(&options, Scope::All, |_| Ok(())));
    assert_eq!(all.expect_err("one is lost").sqlstate(), "XX001");
    assert_eq!(get(&db, &t, kept).expect("reads").as_ref(), rows.get(&kept));
    let error = set(&db, &t, kept, "new").expect_err("nothing is written");
    assert_eq!(error.sqlstate(), "58030", "{error}");
    assert!(error.to_string().contains(&name), "{error}");
    assert!(db.stopped_because().is_some_and(|why| why.contains(&name)));
    let problems = db.take_problems();
    assert!(
        problems.iter().any(|problem| problem.contains(&name)),
        "{problems:?}"
    );
}

/// With threads: it serves, and then all are there.
#[test]
fn threads_bring_all_partitions() {
    let (files, rows) = directory_with_definitions();
    let device = device_of(&files);
    let mut config = config(&device);
    config.background = true;
    let db = Database::open(config).expect("opens");
    let t = table(&db, "t");
    for (id, value) in &rows {
        assert_eq!(get(&db, &t, *id).expect("reads").as_ref(), Some(value));
    }
    db.wait_for_partitions().expect("all come");
    let report = db.recovery_report();
    assert_eq!(report.partitions_there, PARTITIONS);
    assert!(report.rows > 0);
    assert!(db.verify().expect("verifies").is_sound());
    let mut checkpoint = pin!(db.checkpoint());
    block_on(checkpoint.as_mut()).expect("checkpoints");
    db.close().expect("closes");
}
