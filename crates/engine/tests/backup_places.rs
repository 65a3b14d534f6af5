//! Where a backup may go and where not, and that what it may not touch is as it was: files of
//! strangers, of other databases, of a data directory, of an archive.

mod fixture;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{
    Device, FileDevice, IoEngine, OpenMode, SimulatedDevice, SystemClock, lock_directory,
};
use thermocline_engine::backup::{
    BackupOptions, BackupReport, RestoreOptions, generations, restore,
};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Config, Database, Error, Result, block_on};

fn shared(device: &SimulatedDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

fn config(device: Arc<dyn Device>) -> Config {
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(2);
    config.background = false;
    config.log_segment_bytes = 64 << 10;
    config
}

fn filled(config: Config, rows: i64) -> Arc<Database> {
    let db = Database::open(config).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..rows {
        insert_lazily(&db, &t, id, &format!("row {id} {}", "v".repeat(100))).expect("inserts");
    }
    db
}

fn back_up(db: &Database, target: &SimulatedDevice) -> Result<BackupReport> {
    db.backup(&shared(target), &BackupOptions::default(), &mut |_, _| {})
}

fn put(device: &SimulatedDevice, name: &str) {
    let file = device.open(name, OpenMode::CreateNew).expect("makes");
    file.write_at(b"a stranger's", 0).expect("writes");
    file.sync_data().expect("syncs");
    device.sync_directory().expect("syncs");
}

/// Rows of the newest generation.
fn rows_of(target: &SimulatedDevice) -> usize {
    let copy = SimulatedDevice::new();
    let none = RestoreOptions::default();
    let clock = SystemClock::default();
    restore(
        &shared(target),
        &shared(&copy),
        &none,
        &clock,
        &mut |_, _| {},
    )
    .expect("restores");
    let db = Database::open(config(shared(&copy))).expect("opens");
    all(&db, &table(&db, "t")).len()
}

/// Names that a backup, a log and a checkpoint have, or nearly have.
const NAMES: [&str; 12] = [
    "notes.txt",
    "log-0000000000001000",
    "log-unfinished",
    "log-2026.txt",
    "checkpoint-00000001-0000",
    "checkpoint-00000001-blocks",
    "checkpoint-of-the-year",
    "blocks-00000001",
    "packs-00000001",
    "backup-new",
    "backup-begun",
    "blocks",
];

#[test]
fn a_directory_that_is_not_empty_is_refused_and_stays_as_it_is() {
    let device = SimulatedDevice::new();
    let db = filled(config(shared(&device)), 20);
    for name in NAMES {
        let target = SimulatedDevice::new();
        put(&target, name);
        let before = files_of(&target);
        let written = target.counters().snapshot().writes;
        let error = back_up(&db, &target).expect_err(name);
        let expected = if name == "backup-begun" {
            "XX001"
        } else {
            "55000"
        };
        assert_eq!(error.sqlstate(), expected, "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(target.counters().snapshot().writes, written, "{name}");
        assert!(files_of(&target) == before, "{name}");
    }
    // Another database, and this one.
    let other = SimulatedDevice::new();
    drop(filled(config(shared(&other)), 20));
    for place in [&other, &device] {
        let before = files_of(place);
        let error = back_up(&db, place).expect_err("a data directory");
        assert_eq!(error.sqlstate(), "55000", "{error}");
        assert!(error.hint().is_some());
        assert!(files_of(place) == before);
    }
}

#[test]
fn a_strangers_file_in_a_backups_directory_is_neither_removed_nor_replaced() {
    let device = SimulatedDevice::new();
    let db = filled(config(shared(&device)), 20);
    let target = SimulatedDevice::new();
    back_up(&db, &target).expect("backs up");
    // Names that no backup ever makes again do not matter.
    let harmless = [
        "notes.txt",
        "log-0000000000000fff",
        "log-2026.txt",
        "checkpoint-of-the-year",
        "checkpoint-1-0000",
        "blocks-00000007",
        "backup-2",
    ];
    for name in harmless {
        put(&target, name);
    }
    let strangers = files_of(&target);
    let in_the_way = [
        "blocks-",
        "packs-",
        "backup-new",
        "log-unfinished",
        "checkpoint-00000001-0099",
    ];
    for (next, name) in (2..).zip(in_the_way) {
        let name = match name.strip_suffix('-') {
            Some(_) => format!("{name}{next:08}"),
            None => name.to_owned(),
        };
        put(&target, &name);
        let before = files_of(&target);
        let error = back_up(&db, &target).expect_err("in the way");
        assert_eq!(error.sqlstate(), "58P02", "{name}: {error}");
        assert!(error.to_string().contains(&name), "{error}");
        assert!(files_of(&target) == before, "{name}");
        target.remove(&name).expect("removes");
        let t = table(&db, "t");
        insert(&db, &t, 1000 + next, "more").expect("inserts");
        back_up(&db, &target).expect("backs up");
    }
    assert_eq!(rows_of(&target), 25);
    let after = files_of(&target);
    for name in harmless {
        assert!(after[name] == strangers[name], "{name}");
    }
}

#[test]
fn the_first_backup_that_is_cut_off_anywhere_is_followed_by_one_that_succeeds() {
    let mut halts = 0;
    for halt in 0..400 {
        for seed in 0..3 {
            let device = SimulatedDevice::new();
            let target = SimulatedDevice::new();
            let db = filled(config(shared(&device)), 40);
            target.halt_after(halt);
            let cut_off: Option<Error> = back_up(&db, &target).err();
            if cut_off.is_none() {
                assert!(halts > 20, "{halts}");
                return;
            }
            halts += 1;
            target.crash(seed);
            put(&target, "notes.txt");
            match back_up(&db, &target) {
                Ok(_) => assert_eq!(rows_of(&target), 40, "halt {halt}"),
                // Nothing of the first survived: the directory is a stranger's now.
                Err(error) => assert_eq!(
                    (error.sqlstate(), files_of(&target).len()),
                    (
                        "55000",
                        1 + usize::from(files_of(&target).contains_key("backup-begun"))
                    ),
                    "halt {halt}: {error}"
                ),
            }
            assert!(files_of(&target).contains_key("notes.txt"));
        }
    }
    panic!("it never came to an end");
}

/// Everything below a directory: names, lengths and contents.
fn everything(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![path.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("lists") {
            let path = entry.expect("an entry").path();
            let kind = fs::symlink_metadata(&path).expect("is there").file_type();
            let contents = match kind.is_file() {
                true => fs::read(&path).expect("reads"),
                false => Vec::new(),
            };
            if kind.is_dir() {
                waiting.push(path.clone());
            }
            found.push((path.display().to_string(), contents));
        }
    }
    found.sort();
    found
}

#[test]
fn paths_lead_nowhere_else() {
    let root = tempfile::tempdir().expect("a directory");
    let root = root.path().canonicalize().expect("is there");
    let at = |name: &str| root.join(name);
    let open = |name: &str| -> Arc<dyn Device> {
        Arc::new(FileDevice::open(at(name), IoEngine::Threads).expect("opens"))
    };
    for name in ["allowed", "outside", "outside/inner", "allowed/full"] {
        fs::create_dir(at(name)).expect("makes");
    }
    fs::write(at("allowed/full/.hidden"), "").expect("writes");
    fs::create_dir(at("allowed/folder")).expect("makes");
    fs::create_dir(at("allowed/folder/inner")).expect("makes");
    std::os::unix::fs::symlink(at("outside"), at("allowed/link")).expect("links");
    std::os::unix::fs::symlink(at("nowhere"), at("allowed/dangling")).expect("links");
    let mut of_this = config(open("allowed/data"));
    of_this.archive = Some(open("allowed/archive"));
    of_this.backup_directories = vec![at("allowed")];
    let db = filled(of_this, 20);
    while db.archive_log().expect("archives") {}
    drop(filled(config(open("allowed/other")), 20));
    let other = filled(config(open("other")), 20);
    let options = BackupOptions::default();
    let by_client = |name: &str| {
        let path = at(name).display().to_string();
        block_on(db.backup_to(&path, &options))
    };
    let before = everything(&root);
    let refusals = [
        ("allowed/data", "55000"),
        ("allowed/data/backups", "55000"),
        ("allowed/archive", "55000"),
        ("allowed/archive/x/y", "55000"),
        ("allowed", "55000"),
        ("allowed/other", "55000"),
        ("allowed/other/backups", "55000"),
        ("allowed/full", "55000"),
        ("allowed/folder", "55000"),
        ("allowed/dangling", "42602"),
        ("allowed/missing/../x", "42602"),
        ("allowed/../outside", "42501"),
        ("allowed/link", "42501"),
        ("allowed/link/inner", "42501"),
        ("outside/inner", "42501"),
        ("allowed-too", "42501"),
    ];
    for (name, sqlstate) in refusals {
        let error = by_client(name).expect_err(name);
        assert_eq!(error.sqlstate(), sqlstate, "{name}: {error}");
        assert!(error.hint().is_some(), "{name}: {error}");
        assert!(everything(&root) == before, "{name} changed something");
    }
    // Without the setting a client may do nothing, the process itself what it may.
    let refused = block_on(other.backup_to(&at("allowed/new").display().to_string(), &options));
    assert_eq!(refused.expect_err("not set").sqlstate(), "42501");
    let into = |name: &str| other.backup_into(&at(name), &options, &mut |_, _| {});
    into("outside/inner").expect("backs up");
    into("outside/new/er").expect("backs up");
    assert!(everything(&root) != before);

    assert_eq!(by_client("allowed/new").expect("backs up").generation, 1);
    assert_eq!(
        by_client("allowed/data/../new").expect("again").generation,
        2
    );
    // Another database's backup, and one that another backup is writing.
    let before = everything(&at("allowed/new"));
    assert_eq!(
        into("allowed/new").expect_err("another's").sqlstate(),
        "55000"
    );
    let lock = lock_directory(&at("allowed/new")).expect("locks");
    let error = by_client("allowed/new").expect_err("is locked");
    assert_eq!(error.sqlstate(), "55006", "{error}");
    fs::create_dir(at("allowed/empty")).expect("makes");
    let empty = lock_directory(&at("allowed/empty")).expect("locks");
    let error = by_client("allowed/empty").expect_err("is locked");
    assert_eq!(error.sqlstate(), "55006", "{error}");
    drop((lock, empty));
    let without_lock = |mut files: Vec<(String, Vec<u8>)>| {
        files.retain(|(name, _)| !name.ends_with("/LOCK"));
        files
    };
    assert!(without_lock(everything(&at("allowed/new"))) == without_lock(before));
    let listed = FileDevice::for_reading(at("allowed/new")).expect("opens");
    assert_eq!(generations(&listed).expect("lists").len(), 2);
    db.close().expect("closes");
}

#[test]
fn an_archive_is_of_one_database() {
    let archive = SimulatedDevice::new();
    let device = SimulatedDevice::new();
    let with_archive = |device: &SimulatedDevice| {
        let mut config = config(shared(device));
        config.archive = Some(shared(&archive));
        config
    };
    let db = filled(with_archive(&device), 20);
    let t = table(&db, "t");
    for id in 100..200 {
        insert(&db, &t, id, &"v".repeat(800)).expect("inserts");
    }
    while db.archive_log().expect("archives") {}
    assert!(!archive.list().expect("lists").is_empty());
    drop((t, db));
    drop(Database::open(with_archive(&device)).expect("opens again"));
    let other = SimulatedDevice::new();
    let error = Database::open(with_archive(&other)).expect_err("another database's");
    assert_eq!(error.sqlstate(), "55000", "{error}");
    assert!(error.hint().is_some());
    // A data directory, and a backup's.
    for name in ["manifest", "backup-00000001"] {
        let place = SimulatedDevice::new();
        put(&place, name);
        let mut config = config(shared(&device));
        config.archive = Some(shared(&place));
        let error = Database::open(config).expect_err(name);
        assert_eq!(error.sqlstate(), "55000", "{error}");
    }
}
