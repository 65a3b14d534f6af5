//! Tablespaces: where evicted rows lie, what moves them, and what becomes of it all when a device
//! is full, is not there, or the process ends in the middle.

mod fixture;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, FileDevice, IoEngine, SimulatedDevice, SystemClock};
use thermocline_engine::backup::{BackupOptions, RestoreOptions, restore};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::check::check;
use thermocline_engine::steps::Steps;
use thermocline_engine::tablespace::{MEASURED, TablespaceDef};
use thermocline_engine::{
    Change, Config, Database, Error, Result, RunOptions, TablespaceReport, block_on,
};

const ROWS: i64 = 200;

fn config(device: Arc<dyn Device>) -> Config {
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(2);
    config.background = false;
    config.log_segment_bytes = 1 << 20;
    config
}

fn open_small(device: &SimulatedDevice) -> Arc<Database> {
    Database::open(config(Arc::new(device.clone()))).expect("opens")
}

fn open_in(directory: &Path) -> Arc<Database> {
    let device = FileDevice::open(directory, IoEngine::Threads).expect("the device opens");
    Database::open(config(Arc::new(device))).expect("opens")
}

/// A definition without a number, and no options.
fn named(db: &Database, name: &str, location: &str) -> TablespaceDef {
    TablespaceDef {
        oid: db.allocate_oid(),
        number: 0,
        name: name.into(),
        location: location.into(),
        options: BTreeMap::new(),
    }
}

fn make(db: &Arc<Database>, def: TablespaceDef) -> Result<TablespaceDef> {
    let def = db.make_tablespace(def)?;
    let made = ddl(db, Change::CreateTablespace(def.clone()));
    db.settle_tablespace(def.oid);
    made.map(|()| def)
}

/// What its device is like is measured once, is known after a start, and gives way to what is said.
#[test]
fn a_device_that_nobody_names_is_measured() {
    let below = tempfile::tempdir().expect("a directory");
    let (home, place) = (below.path().join("home"), below.path().join("place"));
    std::fs::create_dir_all(&place).expect("a directory");
    let db = open_in(&home);
    let location = place.to_str().expect("a name");
    let def = make(&db, named(&db, "one", location)).expect("is made");
    let found = both(&db).1;
    let measured = found.measured.expect("it was measured");
    assert!(
        measured.read_us > 0.0 && measured.reads_per_second > 0.0,
        "{measured}"
    );
    assert!(
        measured.sync_us > 0.0 && measured.write_mb_s > 0.0,
        "{measured}"
    );
    assert_eq!(found.device, Some(measured.kind));
    let mut said = named(&db, "two", location);
    said.options.insert("device".into(), "hdd".into());
    let said = make(&db, said).expect("is made");
    assert!(!said.options.contains_key(MEASURED));
    let mut forged = named(&db, "three", location);
    forged
        .options
        .insert(MEASURED.into(), "dram 1 1 1 1".into());
    assert_eq!(
        make(&db, forged).expect_err("nobody says it").sqlstate(),
        "22023"
    );
    drop(db);
    let db = open_in(&home);
    assert_eq!(db.tablespace_reports()[1], found);
    let mut changed = def.clone();
    changed.options.insert("device".into(), "nvram".into());
    db.look_at_tablespace(&mut changed);
    assert!(!changed.options.contains_key(MEASURED));
}

fn drop_it(db: &Arc<Database>, def: &TablespaceDef) -> Result<()> {
    let options = RunOptions::new();
    let mut txn = db.begin(thermocline_engine::Isolation::Serializable, false);
    let dropped = block_on(async {
        let change = Change::DropTablespace(def.oid);
        db.ddl(&mut txn, &options, change).await?;
        db.vacate_tablespace(def).await
    });
    let dropped = match dropped {
        Ok(()) => block_on(db.commit(txn, &options)),
        Err(error) => {
            block_on(db.rollback(txn));
            Err(error)
        }
    };
    db.settle_tablespace(def.oid);
    dropped
}

fn put_table_in(db: &Arc<Database>, name: &str, tablespace: u32) {
    let mut def = table(db, name).def.clone();
    def.tablespace = tablespace;
    ddl(db, Change::AlterTable(def)).expect("the table is altered");
}

/// What there is to say of the data directory, and of the one tablespace.
fn both(db: &Database) -> (TablespaceReport, TablespaceReport) {
    let reports = db.tablespace_reports();
    (reports[0].clone(), reports[1].clone())
}

fn evict_all(db: &Arc<Database>, name: &str) {
    let t = table(db, name);
    block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
}

fn fill(db: &Arc<Database>, name: &str, kind: IndexKind) {
    let t = make_table(db, name, kind);
    for id in 0..ROWS {
        insert(db, &t, id, &expected(id)).expect("inserts");
    }
}

fn expected(id: i64) -> String {
    format!("{id} {}", "x".repeat(1000))
}

fn expected_rows() -> BTreeMap<i64, String> {
    (0..ROWS).map(|id| (id, expected(id))).collect()
}

fn compact_all(db: &Arc<Database>) {
    let steps = Steps::new(db);
    for _ in 0..1000 {
        if !steps.compact().expect("compacts") {
            return;
        }
    }
    panic!("compaction never ends");
}

fn assert_sound(db: &Database) {
    let verified = db.verify().expect("verifies");
    assert!(verified.is_sound(), "{verified:?}");
}

#[test]
fn rows_leave_to_the_tablespace_of_their_table_and_move_when_it_has_another() {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    let def = named(&db, "cold", "");
    let def = make(&db, def).expect("makes a tablespace");
    fill(&db, "t", IndexKind::Hash);
    fill(&db, "other", IndexKind::BTree);
    put_table_in(&db, "t", def.oid);
    evict_all(&db, "t");
    evict_all(&db, "other");
    let (home, cold) = both(&db);
    assert!(
        cold.blocks > 0 && cold.block_bytes >= 1000 * ROWS as u64,
        "{cold:?}"
    );
    assert!(home.block_bytes >= 1000 * ROWS as u64, "{home:?}");
    assert_eq!(
        (cold.tables, cold.coming_blocks, home.leaving_blocks),
        (1, 0, 0)
    );
    assert_sound(&db);
    assert_eq!(all(&db, &table(&db, "t")), expected_rows());
    // After a crash what was written there is found there.
    block_on(db.checkpoint()).expect("a checkpoint");
    drop(db);
    device.crash(1);
    let db = open_small(&device);
    assert_eq!(all(&db, &table(&db, "t")), expected_rows());
    assert_sound(&db);
    // It moves out, and another in, without anybody reading a row.
    put_table_in(&db, "t", 0);
    put_table_in(&db, "other", def.oid);
    let (home, cold) = both(&db);
    assert!(
        cold.leaving_blocks > 0 && cold.coming_blocks > 0,
        "{cold:?}"
    );
    assert_eq!(home.leaving_blocks, cold.coming_blocks);
    compact_all(&db);
    let (home, cold) = both(&db);
    assert_eq!((home.leaving_blocks, cold.leaving_blocks), (0, 0));
    assert!(cold.blocks > 0);
    assert_sound(&db);
    for name in ["t", "other"] {
        assert_eq!(db.hot_rows(&table(&db, name)).0, 0, "{name} was not read");
        assert_eq!(all(&db, &table(&db, name)), expected_rows(), "{name}");
    }
}

#[test]
fn a_tablespace_is_dropped_when_nothing_lies_in_it_and_not_before() {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    let def = named(&db, "cold", "");
    let def = make(&db, def).expect("makes a tablespace");
    let taken = named(&db, "cold", "");
    let again = make(&db, taken).expect_err("the name is taken");
    assert_eq!(again.sqlstate(), "42710");
    fill(&db, "t", IndexKind::Hash);
    put_table_in(&db, "t", def.oid);
    evict_all(&db, "t");
    let refused = drop_it(&db, &def).expect_err("a table has it");
    assert_eq!(refused.sqlstate(), "55000");
    put_table_in(&db, "t", 0);
    let refused = drop_it(&db, &def).expect_err("blocks lie in it");
    assert_eq!(refused.sqlstate(), "55000");
    assert_eq!(all(&db, &table(&db, "t")), expected_rows());
    compact_all(&db);
    drop_it(&db, &def).expect("drops it");
    assert_eq!(db.tablespace_reports().len(), 1);
    let files = device.list().expect("lists");
    assert!(
        !files.iter().any(|file| file.starts_with("blocks-")),
        "{files:?}"
    );
    // The number may serve again, for another.
    drop(db);
    device.crash(2);
    let db = open_small(&device);
    assert_eq!(all(&db, &table(&db, "t")), expected_rows());
    let def = named(&db, "new", "");
    let def = make(&db, def).expect("makes another");
    put_table_in(&db, "t", def.oid);
    compact_all(&db);
    assert!(both(&db).1.blocks > 0);
    assert_eq!(all(&db, &table(&db, "t")), expected_rows());
    assert_sound(&db);
}

#[test]
fn wherever_the_process_ends_the_rows_are_there_and_the_tablespace_is_whole_or_not_there() {
    let run = |db: &Arc<Database>| -> Result<()> {
        let def = named(db, "cold", "");
        let def = make(db, def)?;
        let mut altered = table(db, "t").def.clone();
        altered.tablespace = def.oid;
        ddl(db, Change::AlterTable(altered))?;
        let t = table(db, "t");
        block_on(db.evict(&RunOptions::new(), &t, u64::MAX))?;
        block_on(db.checkpoint())?;
        let mut altered = table(db, "t").def.clone();
        altered.tablespace = 0;
        ddl(db, Change::AlterTable(altered))?;
        let steps = Steps::new(db);
        while steps.compact()? {}
        drop_it(db, &def)
    };
    let begin = |device: &SimulatedDevice| {
        let db = open_small(device);
        fill(&db, "t", IndexKind::Hash);
        db
    };
    let mut ended = false;
    for halt in 0..400 {
        let device = SimulatedDevice::new();
        let db = begin(&device);
        device.halt_after(halt);
        ended = run(&db).is_ok();
        drop(db);
        device.crash(halt);
        let db = open_small(&device);
        assert_eq!(all(&db, &table(&db, "t")), expected_rows(), "halt {halt}");
        assert_sound(&db);
        let reports = db.tablespace_reports();
        for report in &reports {
            assert_eq!(report.missing, None, "halt {halt}");
        }
        let places = device.list().expect("lists");
        let files = places.iter().filter(|f| f.starts_with("blocks-")).count();
        assert_eq!(files, reports.len() - 1, "halt {halt}: {places:?}");
        // It goes on from there.
        if reports.len() > 1 {
            put_table_in(&db, "t", reports[1].oid);
            evict_all(&db, "t");
            compact_all(&db);
            assert_eq!(all(&db, &table(&db, "t")), expected_rows(), "halt {halt}");
        }
        if ended {
            break;
        }
    }
    assert!(ended, "the run never ended");
}

#[test]
fn one_that_is_full_sends_rows_home_and_gets_them_when_it_has_room() {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    let mut def = named(&db, "small", "");
    def.options.insert("capacity".into(), "16MB".into());
    let def = make(&db, def).expect("makes a tablespace");
    make_table(&db, "t", IndexKind::Hash);
    put_table_in(&db, "t", def.oid);
    let t = table(&db, "t");
    let value = "x".repeat(60_000);
    for id in 0..600 {
        insert(&db, &t, id, &value).expect("inserts");
    }
    evict_all(&db, "t");
    let (home, small) = both(&db);
    assert!(small.file_bytes <= 16 << 20, "{small:?}");
    assert!(small.blocks > 0 && small.refuses, "{small:?}");
    assert!(
        home.blocks > 0 && small.coming_blocks == home.blocks,
        "{home:?}"
    );
    let problems = db.take_problems();
    assert!(
        problems.iter().any(|p| p.contains("public.t")),
        "{problems:?}"
    );
    assert_eq!(all(&db, &table(&db, "t")).len(), 600);
    let mut larger = def.clone();
    larger.options.insert("capacity".into(), "1GB".into());
    ddl(&db, Change::AlterTablespace(larger)).expect("alters it");
    compact_all(&db);
    let (home, small) = both(&db);
    assert_eq!(
        (home.blocks, small.coming_blocks),
        (0, 0),
        "{home:?} {small:?}"
    );
    assert_sound(&db);
    assert_eq!(all(&db, &table(&db, "t")).len(), 600);
}

#[test]
fn of_a_directory_that_is_not_there_only_the_rows_that_lie_in_it_are_missed() {
    let root = tempfile::tempdir().expect("a directory");
    let (data, far) = (root.path().join("data"), root.path().join("far"));
    std::fs::create_dir(&far).expect("makes it");
    let place = far.to_string_lossy().into_owned();
    let db = open_in(&data);
    let def = named(&db, "far", &place);
    let def = make(&db, def).expect("makes a tablespace");
    fill(&db, "t", IndexKind::Hash);
    fill(&db, "near", IndexKind::Hash);
    put_table_in(&db, "t", def.oid);
    evict_all(&db, "t");
    evict_all(&db, "near");
    assert!(both(&db).1.blocks > 0);
    db.close().expect("closes");
    drop(db);
    let away = root.path().join("away");
    std::fs::rename(&far, &away).expect("moves it away");
    let db = open_in(&data);
    let problems = db.take_problems();
    assert!(
        problems.iter().any(|p| p.contains("\"far\"")),
        "{problems:?}"
    );
    assert_eq!(all(&db, &table(&db, "near")), expected_rows());
    let t = table(&db, "t");
    let error = get(&db, &t, 1).expect_err("it cannot be read");
    assert_eq!(error.sqlstate(), "58030", "{error}");
    assert!(error.to_string().contains("far"), "{error}");
    // New rows of it go home, and nothing stands still.
    insert(&db, &t, 1000, "new").expect("inserts");
    evict_all(&db, "t");
    assert_eq!(get(&db, &t, 1000).expect("reads").as_deref(), Some("new"));
    block_on(db.checkpoint()).expect("a checkpoint");
    assert!(both(&db).1.missing.is_some());
    db.close().expect("closes");
    drop(db);
    std::fs::rename(&away, &far).expect("brings it back");
    let db = open_in(&data);
    compact_all(&db);
    let (home, cold) = both(&db);
    assert_eq!((home.leaving_blocks, cold.coming_blocks), (0, 0));
    let mut rows = expected_rows();
    rows.insert(1000, "new".into());
    assert_eq!(all(&db, &table(&db, "t")), rows);
    assert_sound(&db);
}

#[test]
fn a_location_that_cannot_be_is_refused_and_leaves_nothing() {
    let root = tempfile::tempdir().expect("a directory");
    let data = root.path().join("data");
    let db = open_in(&data);
    let file = root.path().join("file");
    std::fs::write(&file, "").expect("writes");
    let inside = data.join("inside");
    std::fs::create_dir(&inside).expect("makes it");
    let text = |path: &Path| path.to_string_lossy().into_owned();
    for (location, sqlstate) in [
        ("relative/path".to_owned(), "42P17"),
        (text(&root.path().join("nowhere")), "58P01"),
        (text(&file), "42809"),
        (text(&inside), "42P17"),
        (text(&data), "42P17"),
        (text(root.path()), "42P17"),
    ] {
        let def = named(&db, "bad", &location);
        let error = make(&db, def).expect_err("refused");
        assert_eq!(error.sqlstate(), sqlstate, "{location}: {error}");
    }
    for (option, value) in [("capacity", "1kB"), ("emulate", "tape"), ("colour", "red")] {
        let mut def = named(&db, "bad", "");
        def.options.insert(option.into(), value.into());
        let error = make(&db, def).expect_err("refused");
        assert_eq!(error.sqlstate(), "22023", "{error}");
    }
    assert_eq!(db.tablespace_reports().len(), 1);
    let left = std::fs::read_dir(root.path()).expect("lists").count();
    assert_eq!(left, 2, "nothing but the data directory and the file");
    // A location may be shared: each database has a directory of its own there.
    let shared = tempfile::tempdir().expect("a directory");
    let place = text(shared.path());
    let other = tempfile::tempdir().expect("a directory");
    let two = open_in(&other.path().join("data"));
    for db in [&db, &two] {
        let def = named(db, "shared", &place);
        make(db, def).expect("makes it");
    }
    assert_eq!(std::fs::read_dir(shared.path()).expect("lists").count(), 2);
    // One that another process uses is not taken from it.
    let busy = std::fs::read_dir(shared.path()).expect("lists");
    for entry in busy {
        let path = entry.expect("an entry").path();
        assert!(thermocline_device::lock_directory(&path).is_err());
    }
}

#[test]
fn a_backup_has_the_blocks_of_tablespaces_and_a_restore_brings_them_home() {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    let def = named(&db, "cold", "");
    let def = make(&db, def).expect("makes a tablespace");
    fill(&db, "t", IndexKind::Hash);
    fill(&db, "near", IndexKind::BTree);
    put_table_in(&db, "t", def.oid);
    evict_all(&db, "t");
    evict_all(&db, "near");
    let backup = SimulatedDevice::new();
    let shared = |device: &SimulatedDevice| -> Arc<dyn Device> { Arc::new(device.clone()) };
    let back_up = || {
        let options = BackupOptions::default();
        db.backup(&shared(&backup), &options, &mut |_, _| {})
            .expect("backs up")
    };
    back_up();
    // A second generation has what moved since, and a tablespace that came since is known by the log.
    put_table_in(&db, "near", def.oid);
    compact_all(&db);
    back_up();
    let restored = SimulatedDevice::new();
    let clock = SystemClock::default();
    for generation in [Some(1), None] {
        let restored = SimulatedDevice::new();
        let options = RestoreOptions {
            generation,
            ..RestoreOptions::default()
        };
        restore(
            &shared(&backup),
            &shared(&restored),
            &options,
            &clock,
            &mut |_, _| {},
        )
        .expect("restores");
        let report = check(&shared(&restored), &mut |_| {}).expect("checks");
        assert_eq!(report.findings, 0, "{report:?}");
        let db = open_small(&restored);
        for name in ["t", "near"] {
            assert_eq!(all(&db, &table(&db, name)), expected_rows(), "{name}");
        }
        assert!(both(&db).1.blocks > 0);
        assert_sound(&db);
    }
    let with_log = RestoreOptions {
        logs: vec![shared(&device)],
        generation: Some(1),
        ..RestoreOptions::default()
    };
    let def = named(&db, "later", "");
    let later = make(&db, def).expect("makes another");
    put_table_in(&db, "near", later.oid);
    restore(
        &shared(&backup),
        &shared(&restored),
        &with_log,
        &clock,
        &mut |_, _| {},
    )
    .expect("restores");
    let db = open_small(&restored);
    assert_eq!(db.tablespace_reports().len(), 3);
    evict_all(&db, "near");
    compact_all(&db);
    assert_eq!(all(&db, &table(&db, "near")), expected_rows());
    assert_sound(&db);
}

#[test]
fn a_check_reads_the_blocks_of_tablespaces() {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    let def = named(&db, "cold", "");
    let def = make(&db, def).expect("makes a tablespace");
    fill(&db, "t", IndexKind::Hash);
    put_table_in(&db, "t", def.oid);
    evict_all(&db, "t");
    db.close().expect("closes");
    drop(db);
    let shared: Arc<dyn Device> = Arc::new(device.clone());
    let sound = check(&shared, &mut |_| {}).expect("checks");
    assert_eq!(sound.findings, 0, "{sound:?}");
    assert!(sound.records >= ROWS as u64);
    let mut files = files_of(&device);
    let blocks = files.get_mut("blocks-1").expect("its file");
    let of_a_row = blocks.1.windows(8).position(|bytes| bytes == b"xxxxxxxx");
    blocks.1[of_a_row.expect("a row's text")] ^= 0xff;
    let damaged: Arc<dyn Device> = Arc::new(device_of(&files));
    let found = check(&damaged, &mut |_| {}).expect("checks");
    assert!(found.findings > 0, "{found:?}");
    let db = Database::open(config(damaged)).expect("opens");
    let t = table(&db, "t");
    let wrong: Vec<Error> = (0..ROWS).filter_map(|id| get(&db, &t, id).err()).collect();
    assert!(!wrong.is_empty() && wrong.len() < ROWS as usize / 2);
    assert!(wrong.iter().all(|error| error.sqlstate() == "XX001"));
}

#[test]
fn many_are_made_at_once_and_each_has_a_number_of_its_own() {
    let (_device, db) = simulated(64 << 30);
    fill(&db, "t", IndexKind::Hash);
    let made: Vec<TablespaceDef> = std::thread::scope(|scope| {
        let make_one = |number: usize| {
            let db = &db;
            scope.spawn(move || {
                let def = named(db, &format!("space{number}"), "");
                db.make_tablespace(def).expect("makes the place")
            })
        };
        let all: Vec<_> = (0..8).map(make_one).collect();
        all.into_iter()
            .map(|one| one.join().expect("made"))
            .collect()
    });
    let numbers: std::collections::BTreeSet<u16> = made.iter().map(|def| def.number).collect();
    assert_eq!(numbers.len(), made.len());
    // Whoever hears of an error looks at the catalog, which says that one of them is there.
    ddl(&db, Change::CreateTablespace(made[0].clone())).expect("defines it");
    put_table_in(&db, "t", made[0].oid);
    evict_all(&db, "t");
    for def in &made {
        db.settle_tablespace(def.oid);
    }
    let reports = db.tablespace_reports();
    assert_eq!(reports.len(), 2);
    assert!(reports[1].blocks > 0, "{reports:?}");
    assert_eq!(all(&db, &table(&db, "t")), expected_rows());
}
