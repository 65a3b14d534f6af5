//! Backups of a database at work, generations, recovery to a point in time,
//! and what damage and halts make of them.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use fixture::*;
use thermocline_device::{Clock, Device, OpenMode, SimulatedDevice, SystemClock};
use thermocline_engine::backup::{
    BackupOptions, BackupReport, RestoreOptions, RestoreReport, generations, restore,
};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::check::check;
use thermocline_engine::{Config, Database, Error, Result};

const LIMIT: u64 = 64 << 30;

fn shared(device: &SimulatedDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

fn config(device: &SimulatedDevice) -> Config {
    let mut config = Config::new(shared(device))
        .memory_limit(LIMIT)
        .partitions(2);
    config.background = false;
    config.log_segment_bytes = 64 << 10;
    config
}

fn back_up(db: &Database, target: &SimulatedDevice) -> Result<BackupReport> {
    db.backup(
        &shared(target),
        &BackupOptions::default(),
        &mut |done, all| {
            assert!(done <= all, "{done} of {all}");
        },
    )
}

fn restored(
    backup: &SimulatedDevice,
    options: &RestoreOptions,
) -> Result<(RestoreReport, SimulatedDevice)> {
    let device = SimulatedDevice::new();
    let clock = SystemClock::default();
    let report = restore(
        &shared(backup),
        &shared(&device),
        options,
        &clock,
        &mut |_, _| {},
    )?;
    Ok((report, device))
}

fn refused(backup: &SimulatedDevice, options: &RestoreOptions) -> Error {
    match restored(backup, options) {
        Err(error) => error,
        Ok((report, _)) => panic!("restored: {report:?}"),
    }
}

/// The rows of a restored directory, which must be sound, and go on working.
fn rows_of(device: &SimulatedDevice) -> BTreeMap<i64, String> {
    let mut findings = Vec::new();
    let report = check(&shared(device), &mut |event| {
        if let thermocline_engine::check::CheckEvent::Found(finding) = event {
            findings.push(finding.to_string());
        }
    });
    assert_eq!(report.expect("checks").findings, 0, "{findings:?}");
    let db = Database::open(config(device)).expect("opens");
    let t = table(&db, "t");
    let rows = all(&db, &t);
    insert(&db, &t, -1, "goes on").expect("inserts");
    db.close().expect("closes");
    drop(db);
    let db = Database::open(config(device)).expect("opens again");
    let t = table(&db, "t");
    assert_eq!(get(&db, &t, -1).expect("reads").as_deref(), Some("goes on"));
    rows
}

fn value(id: i64, round: i64) -> String {
    format!("{id}:{round}:{}", "v".repeat((id * 37 % 800) as usize))
}

fn filled(device: &SimulatedDevice, rows: i64) -> (Arc<Database>, BTreeMap<i64, String>) {
    let db = Database::open(config(device)).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    let mut expected = BTreeMap::new();
    for id in 0..rows {
        insert_lazily(&db, &t, id, &value(id, 0)).expect("inserts");
        expected.insert(id, value(id, 0));
    }
    (db, expected)
}

#[test]
fn generations_hold_what_was_there_and_copy_only_what_is_new() {
    let device = SimulatedDevice::new();
    let target = SimulatedDevice::new();
    let (db, mut expected) = filled(&device, 3000);
    let t = table(&db, "t");
    let mut states = Vec::new();
    let mut reports = Vec::new();
    for round in 1..4 {
        for id in (0..3000).step_by(97) {
            set(&db, &t, id, &value(id, round)).expect("updates");
            expected.insert(id, value(id, round));
        }
        delete(&db, &t, round).expect("deletes");
        expected.remove(&round);
        reports.push(back_up(&db, &target).expect("backs up"));
        states.push(expected.clone());
    }
    assert!(reports[0].blocks_copied == reports[0].blocks && reports[0].blocks > 1);
    for later in &reports[1..] {
        assert!(later.blocks_copied < later.blocks, "{later:?}");
        assert!(
            later.bytes_copied < reports[0].bytes_copied / 2,
            "{reports:?}"
        );
    }
    let listed = generations(&target).expect("lists");
    assert_eq!(listed.len(), 3);
    for (number, state) in states.iter().enumerate() {
        let options = RestoreOptions {
            generation: Some(number as u64 + 1),
            ..RestoreOptions::default()
        };
        let (report, copy) = restored(&target, &options).expect("restores");
        assert_eq!(report.lsn, reports[number].lsn);
        assert_eq!(&rows_of(&copy), state, "generation {}", number + 1);
    }
    let (_, newest) = restored(&target, &RestoreOptions::default()).expect("restores");
    assert_eq!(&rows_of(&newest), &states[2]);

    // What was restored is another database: its backups go elsewhere.
    let other = Database::open(config(&newest)).expect("opens");
    let refused = back_up(&other, &target).expect_err("another database");
    assert_eq!(refused.sqlstate(), "55000");
    assert_eq!(
        rows_of(&device),
        expected,
        "the database itself is as it was"
    );
}

#[test]
fn a_backup_under_load_is_one_moment() {
    let device = SimulatedDevice::new();
    let target = SimulatedDevice::new();
    let mut config = config(&device);
    config.background = true;
    config.checkpoint_log_bytes = 128 << 10;
    let db = Database::open(config).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..500 {
        insert_lazily(&db, &t, id, &value(id, 0)).expect("inserts");
    }
    // One writer: each commit adds a row and counts it in row 0. The rows of
    // any moment are 1000 … 1000 + n, where n is what row 0 says.
    set(&db, &t, 0, "0").expect("updates");
    let stop = AtomicBool::new(false);
    let acknowledged = AtomicI64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut next = 1;
            while !stop.load(Ordering::Relaxed) {
                let mut txn = db.begin(thermocline_engine::Isolation::Serializable, false);
                let new = tuple(&t, 1000 + next, &value(next, 0));
                in_txn(&mut txn, &db, |access| {
                    access.insert(&t, &new)?;
                    set_in(access, &t, 0, &next.to_string())?;
                    set_in(access, &t, next % 500, &value(next % 500, next)).map(|_| ())
                })
                .expect("writes");
                let options = thermocline_engine::RunOptions::new();
                thermocline_engine::block_on(db.commit(txn, &options)).expect("commits");
                acknowledged.store(next, Ordering::SeqCst);
                next += 1;
                // Row 0 keeps the count only.
                if next % 500 == 0 {
                    next += 1;
                }
            }
        });
        for generation in 1..4u64 {
            let before = acknowledged.load(Ordering::SeqCst);
            let report = back_up(&db, &target).expect("backs up");
            assert_eq!(report.generation, generation);
            let (_, copy) = restored(&target, &RestoreOptions::default()).expect("restores");
            let rows = rows_of(&copy);
            let count: i64 = rows[&0].parse().expect("a count");
            assert!(count >= before, "{count} of {before} acknowledged");
            let added: Vec<i64> = rows.range(1000..).map(|(id, _)| id - 1000).collect();
            let all: Vec<i64> = (1..=count).filter(|n| n % 500 != 0).collect();
            assert_eq!(added, all);
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(acknowledged.load(Ordering::SeqCst) > 20, "there was load");
    db.close().expect("closes");
    // Nothing is kept for backups that are over.
    let images = device.list().expect("lists");
    let images = images.iter().filter(|f| f.starts_with("checkpoint-"));
    assert!(images.count() <= 3 * 20, "old images are removed");
}

/// A calendar that is set by hand.
#[derive(Default)]
struct Calendar(AtomicU64);

impl Clock for Calendar {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
    fn unix_time_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed) as i64
    }
    fn sleep(&self, duration: Duration) {
        self.0
            .fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}

#[test]
fn any_moment_since_the_backup_comes_back_from_archive_and_log() {
    let device = SimulatedDevice::new();
    let target = SimulatedDevice::new();
    let archive = SimulatedDevice::new();
    let clock = Arc::new(Calendar(AtomicU64::new(1_000_000)));
    let open = || {
        let mut config = config(&device);
        config.clock = clock.clone();
        config.archive = Some(shared(&archive));
        Database::open(config).expect("opens")
    };
    let mut db = open();
    let mut t = make_table(&db, "t", IndexKind::Hash);
    let mut history: Vec<(i64, u64, BTreeMap<i64, String>)> = Vec::new();
    let mut rows = BTreeMap::new();
    let mut backed_up_at = 0;
    for number in 0..240i64 {
        clock.sleep(Duration::from_millis(10));
        if number % 3 == 2 {
            set(&db, &t, number - 2, &value(number, 1)).expect("updates");
            rows.insert(number - 2, value(number, 1));
        } else {
            insert(&db, &t, number, &value(number, 0)).expect("inserts");
            rows.insert(number, value(number, 0));
        }
        match number {
            40 => {
                back_up(&db, &target).expect("backs up");
                backed_up_at = history.len();
            }
            // The log before it goes, but for what the archive lacks.
            100 | 180 => {
                while db.archive_log().expect("archives") {}
                thermocline_engine::block_on(db.checkpoint()).expect("checkpoints");
            }
            140 => {
                drop(t);
                drop(db);
                device.crash(number as u64);
                db = open();
                t = table(&db, "t");
            }
            _ => {}
        }
        history.push((clock.unix_time_us(), 0, rows.clone()));
    }
    drop(t);
    drop(db);
    device.crash(7);
    assert!(archive.list().expect("lists").len() >= 2);
    let logs = vec![shared(&archive), shared(&device)];
    for (time, _, expected) in history[backed_up_at..].iter().step_by(13) {
        for to_time_us in [*time, time + 9_000] {
            let options = RestoreOptions {
                logs: logs.clone(),
                to_time_us: Some(to_time_us),
                ..RestoreOptions::default()
            };
            let (report, copy) = restored(&target, &options).expect("restores");
            assert!(report.time_us <= to_time_us);
            assert_eq!(&rows_of(&copy), expected, "at {to_time_us}");
        }
    }
    // All there is; and as far as the archive alone leads.
    let options = RestoreOptions {
        logs: logs.clone(),
        ..RestoreOptions::default()
    };
    let (report, copy) = restored(&target, &options).expect("restores");
    assert_eq!(rows_of(&copy), rows);
    let to_lsn = RestoreOptions {
        to_lsn: Some(report.lsn - 1),
        ..options
    };
    let (_, copy) = restored(&target, &to_lsn).expect("restores");
    assert_eq!(rows_of(&copy), history[history.len() - 2].2);
    let archive_only = RestoreOptions {
        logs: vec![shared(&archive)],
        ..RestoreOptions::default()
    };
    let (_, copy) = restored(&target, &archive_only).expect("restores");
    let found = rows_of(&copy);
    let place = history.iter().position(|(_, _, state)| *state == found);
    assert!(
        place.is_some_and(|at| at > backed_up_at),
        "a state that was"
    );

    // Before the backup there is nothing to begin with.
    let too_early = RestoreOptions {
        logs,
        to_time_us: Some(1_000_001),
        ..RestoreOptions::default()
    };
    let error = refused(&target, &too_early);
    assert_eq!(error.sqlstate(), "55000");
}

/// The newest generation begins at the start, at an LSN that no record of the log has.
#[test]
fn a_backup_of_a_start_without_a_write_hides_no_older_one() {
    let device = SimulatedDevice::new();
    let target = SimulatedDevice::new();
    let (db, mut rows) = filled(&device, 50);
    back_up(&db, &target).expect("backs up");
    let archive = SimulatedDevice::new();
    let last = RestoreOptions {
        generation: Some(1),
        logs: vec![shared(&archive), shared(&device)],
        ..RestoreOptions::default()
    };
    set(&db, &table(&db, "t"), 7, "later").expect("updates");
    rows.insert(7, "later".into());
    drop(db);
    for writes in [false, false, true, false] {
        device.crash(7);
        let mut config = config(&device);
        config.archive = Some(shared(&archive));
        let db = Database::open(config).expect("opens");
        while db.archive_log().expect("archives") {}
        back_up(&db, &target).expect("backs up");
        let (_, copy) = restored(&target, &last).expect("restores");
        assert_eq!(rows_of(&copy), rows);
        if writes {
            set(&db, &table(&db, "t"), 8, "later still").expect("updates");
            rows.insert(8, "later still".into());
        }
    }
}

fn flip(device: &SimulatedDevice, name: &str, at: u64) {
    let file = device.open(name, OpenMode::Existing).expect("opens");
    let mut byte = [0];
    file.read_at(&mut byte, at).expect("reads");
    file.write_at(&[byte[0] ^ 8], at).expect("writes");
}

#[test]
fn damage_is_named_in_the_database_and_in_the_backup() {
    let device = SimulatedDevice::new();
    let target = SimulatedDevice::new();
    let (db, expected) = filled(&device, 2000);
    back_up(&db, &target).expect("backs up");
    for name in target.list().expect("lists") {
        let length = target.open(&name, OpenMode::Existing).expect("opens").len();
        let length = length.expect("has a length");
        // Within what is written for sure.
        let at = (length / 2).min(3000);
        if name.starts_with("log-") || length == 0 {
            continue;
        }
        flip(&target, &name, at);
        let error = refused(&target, &RestoreOptions::default());
        assert_eq!(error.sqlstate(), "XX001", "{error}");
        assert!(error.to_string().contains(&name), "{name}: {error}");
        flip(&target, &name, at);
    }
    let (_, copy) = restored(&target, &RestoreOptions::default()).expect("restores");
    assert_eq!(rows_of(&copy), expected);

    // New blocks, one of which rots before the next backup.
    let t = table(&db, "t");
    for id in 0..500 {
        set(&db, &t, id, &value(id, 1)).expect("updates");
    }
    thermocline_engine::block_on(db.checkpoint()).expect("checkpoints");
    let bytes = files_of(&device)["blocks"].1.clone();
    let needle = value(77, 1).into_bytes();
    let at = bytes.windows(needle.len()).position(|w| w == needle);
    flip(&device, "blocks", at.expect("the row is there") as u64 + 4);
    let error = back_up(&db, &target).expect_err("damaged");
    assert_eq!(error.sqlstate(), "XX001");
    assert!(error.to_string().contains("public.t"), "{error}");
    let (report, copy) = restored(&target, &RestoreOptions::default()).expect("restores");
    assert_eq!((report.generation, rows_of(&copy)), (1, expected));
}

#[test]
fn a_backup_that_is_cut_off_leaves_the_one_before_and_the_next_succeeds() {
    let mut halts = 0;
    for halt in (0..400).step_by(3) {
        let device = SimulatedDevice::new();
        let target = SimulatedDevice::new();
        let (db, before) = filled(&device, 60);
        back_up(&db, &target).expect("backs up");
        let t = table(&db, "t");
        insert(&db, &t, 500, "later").expect("inserts");
        target.halt_after(halt);
        let cut_off: Option<Error> = back_up(&db, &target).err();
        target.crash(halt);
        let (_, copy) = restored(&target, &RestoreOptions::default()).expect("restores");
        let rows = rows_of(&copy);
        let mut after = before.clone();
        after.insert(500, "later".into());
        if cut_off.is_none() {
            assert_eq!(rows, after);
            break;
        }
        halts += 1;
        assert!(rows == before || rows == after, "halt {halt}");
        back_up(&db, &target).expect("backs up");
        let (_, copy) = restored(&target, &RestoreOptions::default()).expect("restores");
        assert_eq!(rows_of(&copy), after, "halt {halt}");
    }
    assert!(halts > 5, "{halts}");
}

#[test]
fn nothing_is_restored_over_something_or_from_nothing() {
    let device = SimulatedDevice::new();
    let target = SimulatedDevice::new();
    let (db, _) = filled(&device, 10);
    let clock = SystemClock::default();
    let none = RestoreOptions::default();
    let error = refused(&target, &none);
    assert_eq!(error.sqlstate(), "55000");
    back_up(&db, &target).expect("backs up");
    let error = restore(
        &shared(&target),
        &shared(&device),
        &none,
        &clock,
        &mut |_, _| {},
    );
    assert_eq!(error.expect_err("not empty").sqlstate(), "55000");
    // A restore that was cut off is no database.
    let copy = SimulatedDevice::new();
    copy.halt_after(12);
    let cut = restore(
        &shared(&target),
        &shared(&copy),
        &none,
        &clock,
        &mut |_, _| {},
    );
    cut.expect_err("is cut off");
    copy.crash(1);
    if !copy.list().expect("lists").is_empty() {
        let error = Database::open(config(&copy)).expect_err("no manifest");
        assert_eq!(error.sqlstate(), "XX001");
    }
}
