//! Evicted rows that are used where they lie, as memory (000 §4.3): nothing is asked of the
//! device, nothing runs again, what is damaged is an error, and no block goes while it is used.

mod fixture;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fixture::*;
use thermocline_device::{
    Device, DeviceKind, EmulatedDevice, EmulatedProfile, FileDevice, IoEngine, OpenMode,
    SimulatedClock, SimulatedDevice, SystemClock,
};
use thermocline_engine::backup::{BackupOptions, RestoreOptions, restore};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::steps::Steps;
use thermocline_engine::tablespace::TablespaceDef;
use thermocline_engine::{
    Change, ColdAccess, Config, Database, Direction, PolicyCounts, Result, RunOptions, Scope,
    Table, TableDef, block_on,
};

const ROWS: i64 = 60;

fn open_on(device: Arc<dyn Device>) -> Arc<Database> {
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(2);
    config.background = false;
    config.log_segment_bytes = 1 << 20;
    Database::open(config).expect("opens")
}

fn options(said: &[(&str, &str)]) -> BTreeMap<String, String> {
    let said = said.iter().map(|(name, value)| (*name, *value));
    said.map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn make(db: &Arc<Database>, said: &[(&str, &str)]) -> Result<TablespaceDef> {
    make_at(db, "", said)
}

fn make_at(db: &Arc<Database>, location: &str, said: &[(&str, &str)]) -> Result<TablespaceDef> {
    let oid = db.allocate_oid();
    let def = db.make_tablespace(TablespaceDef {
        oid,
        number: 0,
        name: format!("space{oid}"),
        location: location.into(),
        options: options(said),
    })?;
    let made = ddl(db, Change::CreateTablespace(def.clone()));
    db.settle_tablespace(oid);
    made.map(|()| def)
}

fn say(db: &Arc<Database>, tablespace: u32, said: &[(&str, &str)]) -> Result<()> {
    let def = TableDef {
        tablespace,
        options: options(said),
        ..table(db, "t").def.clone()
    };
    ddl(db, Change::AlterTable(def))
}

fn text(id: i64) -> String {
    format!("{id}:{}", "x".repeat(1000))
}

fn evict(db: &Arc<Database>) -> Arc<Table> {
    let t = table(db, "t");
    block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
    assert_eq!(db.hot_rows(&t).0, 0);
    t
}

/// A table of rows of a kilobyte, all of which have left to memory that is no part of the process's.
fn evicted(
    kind: IndexKind,
    choices: &[(&str, &str)],
) -> (SimulatedDevice, Arc<Database>, Arc<Table>) {
    let device = SimulatedDevice::new();
    let db = open_on(Arc::new(device.clone()));
    let space = make(&db, &[("device", "nvram"), ("access", "byte")]).expect("is made");
    make_table(&db, "t", kind);
    say(&db, space.oid, choices).expect("the policy is changed");
    let t = table(&db, "t");
    for id in 0..ROWS {
        insert(&db, &t, id, &text(id)).expect("inserts");
    }
    let t = evict(&db);
    (device, db, t)
}

fn counts_of(db: &Database) -> PolicyCounts {
    db.policy_reports()[0].counts
}

#[test]
fn a_row_is_used_where_it_lies_and_becomes_hot_when_it_changes() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (device, db, t) = evicted(kind, &[]);
        let reads = || device.counters().snapshot().reads;
        let before = reads();
        for id in 0..ROWS {
            assert_eq!(get(&db, &t, id).expect("reads"), Some(text(id)));
        }
        let counts = counts_of(&db);
        assert_eq!((counts.restarts, counts.sync_reads), (0, 0));
        assert_eq!(
            (counts.byte_reads, counts.fetched, counts.not_merged),
            (60, 60, 60)
        );
        assert!(counts.bytes_read > 60_000 && counts.bytes_read < 70_000);
        assert_eq!(db.hot_rows(&t).0, 0, "nothing is merged on memory");
        for id in 0..10 {
            assert!(set(&db, &t, id, "short").expect("updates"));
        }
        let counts = counts_of(&db);
        assert_eq!((counts.restarts, counts.byte_reads), (0, 70));
        assert_eq!(db.hot_rows(&t).0, 10, "what was changed is hot");
        assert_eq!(reads(), before, "nothing is asked of the device");
        let mut expected: BTreeMap<i64, String> = (0..ROWS).map(|id| (id, text(id))).collect();
        expected.extend((0..10).map(|id| (id, "short".to_owned())));
        assert_eq!(all(&db, &t), expected);
    }
}

/// As many as one likes: nothing is kept of those that it has seen.
#[test]
fn a_statement_over_many_rows_does_not_run_again() {
    let (_, db, t) = evicted(IndexKind::BTree, &[]);
    let runs = AtomicBool::new(false);
    let found = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        assert!(!runs.swap(true, Ordering::Relaxed), "it runs once");
        let mut bytes = 0;
        let (from, to) = (Bound::Unbounded, Bound::Unbounded);
        access.range(&t, 0, from, to, Direction::Ascending, &mut |_, tuple| {
            bytes += text_of(&t, tuple).len();
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(bytes)
    }));
    assert_eq!(
        found.expect("reads"),
        (0..ROWS).map(|id| text(id).len()).sum::<usize>()
    );
    assert_eq!(counts_of(&db).byte_reads, ROWS as u64);
}

#[test]
fn what_is_asked_for_most_becomes_hot() {
    let (_, db, t) = evicted(IndexKind::Hash, &[("merge", "top(5%)")]);
    for id in 0..ROWS {
        get(&db, &t, id).expect("reads");
    }
    for _ in 0..200 {
        assert_eq!(get(&db, &t, 7).expect("reads"), Some(text(7)));
    }
    let hot = db.hot_rows(&t).0;
    assert!((1..10).contains(&hot), "{hot}");
    assert!(counts_of(&db).byte_reads < 150, "7 was hot soon");
}

/// What has to be read whole is: here all that lives in the block of a row becomes hot with it.
#[test]
fn a_block_that_comes_back_whole_is_read() {
    let (_, db, t) = evicted(
        IndexKind::Hash,
        &[("merge_unit", "block"), ("merge", "always")],
    );
    get(&db, &t, 0).expect("reads");
    let counts = counts_of(&db);
    assert_eq!(counts.byte_reads, 0);
    assert!(counts.came_along > 5, "{}", counts.came_along);
}

#[test]
fn a_damaged_tuple_is_an_error_and_the_others_are_there() {
    let (device, db, t) = evicted(IndexKind::Hash, &[]);
    let name = device.list().expect("lists");
    let name = name.iter().find(|name| name.starts_with("blocks-"));
    let file = device.open(name.expect("a file"), OpenMode::Existing);
    let file = file.expect("opens");
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    let needle = text(31);
    let mut places = bytes.windows(needle.len());
    let at = places.position(|window| window == needle.as_bytes());
    let at = at.expect("the row is there") + 500;
    file.write_at(b"y", at as u64).expect("writes");
    for _ in 0..2 {
        let error = get(&db, &t, 31).expect_err("it is damaged");
        assert_eq!(error.sqlstate(), "XX001");
        let told = error.to_string();
        assert!(
            told.contains("blocks-1") && told.contains("public.t"),
            "{told}"
        );
        assert!(set(&db, &t, 31, "new").is_err(), "nor is it changed");
    }
    for id in (0..ROWS).filter(|id| *id != 31) {
        assert_eq!(get(&db, &t, id).expect("reads"), Some(text(id)));
    }
}

#[test]
fn it_takes_the_time_of_the_cache_lines() {
    let clock = SimulatedClock::new();
    let below = Arc::new(SimulatedDevice::new());
    let profile = EmulatedProfile::of(DeviceKind::Nvram).expect("a profile");
    let device = EmulatedDevice::simulated(below, profile.clone(), clock.clone());
    let db = open_on(Arc::new(device.expect("is emulated")));
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, &text(1)).expect("inserts");
    let read_ns = |access: &str| {
        say(&db, 0, &[("access", access)]).expect("the data directory is memory");
        let t = evict(&db);
        let before = thermocline_device::Clock::now(&clock);
        assert_eq!(get(&db, &t, 1).expect("reads"), Some(text(1)));
        (thermocline_device::Clock::now(&clock) - before).as_nanos() as f64
    };
    let (block, byte) = (read_ns("block"), read_ns("byte"));
    let lines = |bytes| profile.mean_ns(thermocline_device::Access::Read, bytes, 1);
    assert!(byte >= lines(1024) && byte <= lines(1280), "{byte}");
    assert!(block >= lines(4096) - 1.0, "{block}");
}

#[test]
fn a_disk_and_an_unknown_word_are_refused() {
    let db = open_on(Arc::new(SimulatedDevice::new()));
    make_table(&db, "t", IndexKind::Hash);
    let disk = make(&db, &[("device", "ssd")]).expect("is made");
    let memory = make(&db, &[("device", "dram")]).expect("is made");
    let byte = [("access", "byte")];
    let refused = |done: Result<()>| {
        let error = done.expect_err("it is refused");
        assert_eq!(error.sqlstate(), "22023", "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("nvram")));
    };
    refused(say(&db, 0, &byte));
    refused(say(&db, disk.oid, &byte));
    say(&db, memory.oid, &byte).expect("it is memory");
    refused(say(&db, disk.oid, &byte));
    for device in ["xpoint", "hdd"] {
        let def = TablespaceDef {
            options: options(&[("device", device)]),
            ..memory.clone()
        };
        refused(ddl(&db, Change::AlterTablespace(def)));
    }
    refused(make(&db, &[("device", "ssd"), ("access", "byte")]).map(drop));
    refused(make(&db, &[("access", "byte")]).map(drop));
    let error = make(&db, &[("device", "dram"), ("access", "bit")]).expect_err("no such word");
    assert_eq!(error.sqlstate(), "22023");
    assert!(error.to_string().contains("block or byte"), "{error}");
    // What was made for those that were refused is gone.
    assert_eq!(db.tablespace_reports().len(), 3);
}

/// Rows are read in a file that is mapped while others change, leave, and are moved, and while
/// the file is cut and its space used again.
#[test]
fn no_block_goes_while_it_is_used() {
    let below = tempfile::tempdir().expect("a directory");
    let (home, place) = (below.path().join("home"), below.path().join("place"));
    std::fs::create_dir_all(&place).expect("a directory");
    let open = || {
        let device = FileDevice::open(&home, IoEngine::Threads).expect("the device opens");
        open_on(Arc::new(device))
    };
    let db = open();
    let location = place.to_str().expect("a name");
    let said = [
        ("device", "nvram"),
        ("access", "byte"),
        ("block_size", "4kB"),
    ];
    let space = make_at(&db, location, &said).expect("is made");
    make_table(&db, "t", IndexKind::Hash);
    say(&db, space.oid, &[]).expect("the table is altered");
    let t = table(&db, "t");
    let rows = 200;
    for id in 0..rows {
        insert(&db, &t, id, &text(id)).expect("inserts");
    }
    evict(&db);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for of in 0..2 {
            let (db, t, is_over) = (&db, &t, &is_over);
            threads.spawn(move || {
                let mut id = of;
                while !is_over.load(Ordering::Relaxed) {
                    id = (id + 7) % rows;
                    let found = get(db, t, id).expect("reads").expect("is there");
                    assert!(found.starts_with(&format!("{id}:")), "{id}: {found}");
                    assert!(found.ends_with("xxx") && found.len() > 900);
                }
            });
        }
        let steps = Steps::new(&db);
        for round in 0..12 {
            let changed = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
                for id in (round % 3..rows).step_by(2) {
                    let value = format!("{id}:{}", "x".repeat(1000 + round as usize));
                    assert!(set_in(access, &t, id, &value)?);
                }
                Ok(())
            }));
            changed.expect("updates");
            block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
            while steps.compact().expect("compacts") {}
            block_on(db.checkpoint()).expect("a checkpoint");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let expected = all(&db, &t);
    assert_eq!(expected.len(), rows as usize);
    let counts = counts_of(&db);
    assert!(counts.byte_reads > 1000, "{}", counts.byte_reads);
    assert_eq!(counts.restarts, 0);
    assert!(db.verify().expect("verifies").is_sound());
    drop((t, db));
    let db = open();
    let t = table(&db, "t");
    for (id, value) in expected {
        assert_eq!(get(&db, &t, id).expect("reads"), Some(value));
    }
    assert!(counts_of(&db).byte_reads >= rows as u64);
}

/// The data directory that a restore brings all blocks to lies on a disk.
#[test]
fn what_was_on_memory_is_read_by_block_after_a_restore() {
    let place = tempfile::tempdir().expect("a directory");
    let shared = |device: &SimulatedDevice| -> Arc<dyn Device> { Arc::new(device.clone()) };
    let db = open_on(shared(&SimulatedDevice::new()));
    let location = place.path().to_str().expect("a name");
    let said = [("device", "nvram"), ("access", "byte")];
    let space = make_at(&db, location, &said).expect("is made");
    make_table(&db, "t", IndexKind::Hash);
    say(&db, space.oid, &[("access", "byte")]).expect("the table is altered");
    let t = table(&db, "t");
    for id in 0..ROWS {
        insert(&db, &t, id, &text(id)).expect("inserts");
    }
    let t = evict(&db);
    assert_eq!(get(&db, &t, 1).expect("reads"), Some(text(1)));
    assert_eq!(db.policy_of(&t).access, ColdAccess::Byte);
    let (backup, restored) = (SimulatedDevice::new(), SimulatedDevice::new());
    let options = BackupOptions::default();
    db.backup(&shared(&backup), &options, &mut |_, _| {})
        .expect("backs up");
    restore(
        &shared(&backup),
        &shared(&restored),
        &RestoreOptions::default(),
        &SystemClock::default(),
        &mut |_, _| {},
    )
    .expect("restores");
    let db = open_on(shared(&restored));
    let t = table(&db, "t");
    assert_eq!(db.policy_of(&t).access, ColdAccess::Block);
    for id in 0..ROWS {
        assert_eq!(get(&db, &t, id).expect("reads"), Some(text(id)));
    }
    assert_eq!(counts_of(&db).byte_reads, 0);
    // What says so already may be changed otherwise.
    let renamed = TablespaceDef {
        name: "renamed".into(),
        ..(**db.catalog().tablespaces.get(&space.oid).expect("is there")).clone()
    };
    ddl(&db, Change::AlterTablespace(renamed)).expect("it is renamed");
    let said = [("access", "byte"), ("merge", "always")];
    say(&db, space.oid, &said).expect("the policy is changed");
}
