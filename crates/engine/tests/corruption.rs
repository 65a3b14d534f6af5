//! Bytes that rot: whatever file they are in, what is read is either what was
//! written or an error that names the place. The rest stays readable, and the
//! database goes on with its work.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Config, Database, Error, Result, block_on};

const LIMIT: u64 = 64 << 30;
/// Positions that are damaged in each file, one at a time.
const SAMPLES: usize = 40;
/// The row of the last commit, the only one that a damaged end of the log may take.
const LAST: i64 = 999;

fn open_quietly(device: &SimulatedDevice) -> Result<Arc<Database>> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(LIMIT).partitions(2);
    config.background = false;
    config.log_segment_bytes = 64 << 10;
    Database::open(config)
}

type Tables = BTreeMap<&'static str, BTreeMap<i64, String>>;

/// A directory with a checkpoint and a log behind it, and what is in it.
fn written() -> (Files, Tables) {
    let device = SimulatedDevice::new();
    let db = open_quietly(&device).expect("opens");
    let mut tables = Tables::new();
    for (name, kind) in [("a", IndexKind::Hash), ("b", IndexKind::BTree)] {
        let t = make_table(&db, name, kind);
        let rows = tables.entry(name).or_default();
        for id in 0..60 {
            let value = format!("{name}{id}:{}", "v".repeat((id * 31 % 700) as usize));
            insert(&db, &t, id, &value).expect("inserts");
            rows.insert(id, value);
        }
    }
    block_on(db.checkpoint()).expect("checkpoints");
    for (name, rows) in &mut tables {
        let t = table(&db, name);
        for id in (0..60).step_by(9) {
            set(&db, &t, id, "changed").expect("updates");
            rows.insert(id, "changed".into());
        }
    }
    insert(&db, &table(&db, "a"), LAST, "last").expect("inserts");
    tables.get_mut("a").expect("a").insert(LAST, "last".into());
    (files_of(&device), tables)
}

/// A multiplicative generator: the same positions at each run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

fn damage_is_named(error: &Error, file: &str, place: &str) {
    let said = error.to_string();
    assert!(
        ["XX001", "58030"].contains(&error.sqlstate()),
        "{place}: {said}"
    );
    assert!(said.contains(file), "{place}: {file} is not named: {said}");
}

/// Reads everything. Rows that could not be read.
fn read_all(db: &Arc<Database>, tables: &Tables, file: &str, place: &str) -> usize {
    let mut unread = 0;
    for (name, rows) in tables {
        let Some(t) = db.catalog().table_by_name("public", name).cloned() else {
            panic!("{place}: table {name} is gone");
        };
        for (id, value) in rows {
            match get(db, &t, *id) {
                Ok(Some(found)) => assert_eq!(&found, value, "{place}: row {id} of {name}"),
                Ok(None) => assert!(
                    *id == LAST && file.starts_with("log-"),
                    "{place}: row {id} of {name} is gone without a word"
                ),
                Err(error) => {
                    damage_is_named(&error, "blocks", place);
                    let of = format!("table \"public.{name}\"");
                    assert!(error.to_string().contains(&of), "{place}: {error}");
                    unread += 1;
                }
            }
        }
        assert_eq!(get(db, &t, 7777).ok().flatten(), None, "{place}");
    }
    unread
}

#[test]
fn a_flipped_byte_is_an_error_that_names_its_file_or_changes_nothing() {
    let (files, tables) = written();
    let mut random = Seeded(1);
    let mut kinds = BTreeMap::new();
    for (name, (_, bytes)) in &files {
        if bytes.is_empty() {
            continue;
        }
        let heads = 0..bytes.len().min(48);
        let sampled = (0..SAMPLES).map(|_| random.below(bytes.len()));
        for at in heads.chain(sampled.collect::<Vec<_>>()) {
            let mut files = files.clone();
            let mask = 1u8 << random.below(8);
            files.get_mut(name).expect("there").1[at] ^= mask;
            let place = format!("{name} at byte {at}, mask {mask:02x}");
            let outcome = kinds.entry(name).or_insert([0; 3]);
            match open_quietly(&device_of(&files)) {
                Err(error) => {
                    damage_is_named(&error, name, &place);
                    outcome[0] += 1;
                }
                Ok(db) => match read_all(&db, &tables, name, &place) {
                    0 => outcome[1] += 1,
                    _ => outcome[2] += 1,
                },
            }
        }
    }
    println!("refused, unharmed, partly unreadable: {kinds:?}");
    let images = kinds.keys().filter(|n| n.starts_with("checkpoint-"));
    assert!(images.count() >= 3, "images and block table were damaged");
    assert!(kinds[&"manifest".to_owned()][0] > SAMPLES, "{kinds:?}");
    assert!(kinds[&"blocks".to_owned()][2] > 0, "{kinds:?}");
}

#[test]
fn a_missing_or_shortened_file_is_an_error_that_names_it() {
    let (files, tables) = written();
    let last_log = files.keys().rfind(|n| n.starts_with("log-0"));
    for name in files.keys().filter(|n| !n.starts_with("log-spare-")) {
        let kind = name.split('-').next().expect("a name");
        // Nothing behind the last segment shows that there was one.
        if Some(name) != last_log {
            let mut without = files.clone();
            without.remove(name);
            let error = open_quietly(&device_of(&without)).expect_err("is missed");
            damage_is_named(&error, kind, name);
        }

        let mut short = files.clone();
        let file = short.get_mut(name).expect("there");
        file.1.truncate(file.1.len() / 2);
        file.0 = file.1.len() as u64;
        match open_quietly(&device_of(&short)) {
            Err(error) => damage_is_named(&error, kind, name),
            // Half of the last segment: the log's end comes earlier.
            Ok(db) => {
                assert!(name.starts_with("log-"), "{name} opens though it is cut");
                let t = table(&db, "b");
                assert_eq!(
                    get(&db, &t, 1).expect("reads").as_ref(),
                    tables["b"].get(&1)
                );
            }
        }
    }
}

#[test]
fn the_database_goes_on_with_a_damaged_block() {
    let device = SimulatedDevice::new();
    let handle: Arc<dyn Device> = Arc::new(device.clone());
    let open = || {
        let mut config = Config::new(handle.clone())
            .memory_limit(LIMIT)
            .partitions(1);
        config.checkpoint_log_bytes = u64::MAX;
        Database::open(config).expect("opens")
    };
    let value = |id: i64, round: u32| format!("{id}:{round}:{}", "w".repeat(2000));
    let db = open();
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..4000 {
        insert_lazily(&db, &t, id, &value(id, 0)).expect("inserts");
    }
    db.close().expect("closes");
    drop(db);
    // A byte of one record in each of the first two blocks.
    let mut files = files_of(&device);
    let blocks = &mut files.get_mut("blocks").expect("there").1;
    let needle = |id: i64| format!("{id}:0:ww").into_bytes();
    let mut at_of = |id: i64| {
        let needle = needle(id);
        let at = blocks.windows(needle.len()).position(|w| w == needle);
        let at = at.expect("the row is in a block");
        blocks[at + 9] ^= 4;
        at
    };
    let places = [at_of(11), at_of(900)];
    assert!(places[1] - places[0] > 1 << 20, "two blocks: {places:?}");
    put_files(&*handle, &files);

    let db = open();
    let t = table(&db, "t");
    for id in [11, 900] {
        let error = get(&db, &t, id).expect_err("the row is damaged");
        assert_eq!(error.sqlstate(), "XX001");
        assert!(error.to_string().contains("table \"public.t\""), "{error}");
    }
    // A scan needs the row, too, and says so.
    let snapshot = db.snapshot();
    let mut scan = snapshot.scan(&t, 0);
    let scanned = loop {
        match block_on(scan.next_chunk(&mut |_, _| {})) {
            Ok(true) => {}
            Ok(false) => panic!("the scan passed over damage"),
            Err(error) => break error,
        }
    };
    assert_eq!(scanned.sqlstate(), "XX001");
    drop(snapshot);
    // Holes everywhere: the damaged blocks are the sparsest, and compaction
    // still gets to the others; checkpoints are made as ever.
    for id in (0..4000).filter(|id| id % 4 != 3 && ![11, 900].contains(id)) {
        let changed = block_on(db.one_shot(
            &thermocline_engine::RunOptions::default(),
            scope(&t, id),
            |access| set_in(access, &t, id, &value(id, 1)),
        ));
        assert!(changed.expect("updates"));
    }
    block_on(db.checkpoint()).expect("checkpoints");
    let begun = Instant::now();
    while db.counters().tuples_compacted < 500 {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "compaction is stuck: {:?}",
            db.take_problems()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let problems = db.take_problems();
    assert!(
        problems.iter().any(|p| p.contains("blocks at byte")),
        "{problems:?}"
    );
    assert!(problems.len() < 10, "said once, not for ever: {problems:?}");
    block_on(db.checkpoint()).expect("checkpoints");
    for id in (0..4000).filter(|id| ![11, 900].contains(id)) {
        let round = u32::from(id % 4 != 3);
        assert_eq!(get(&db, &t, id).expect("reads"), Some(value(id, round)));
    }
    assert!(get(&db, &t, 11).is_err(), "still named");
    // A new value needs nothing of the old one.
    db.close().expect("closes");
}
