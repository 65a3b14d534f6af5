//! Rows of column tables that are read by pages (002 §2.1). Few rows of large groups are what was written,
//! whatever is said of the columns, and however little room there is. What is damaged hurts the rows that
//! lie there. What was loaded is in memory again after a start.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::{AccessMethod, IndexKind, Residence, TableDef};
use thermocline_engine::{Change, Config, Database, Error, RunOptions, Table, block_on};

const ROWS: i64 = 3000;

fn opened_with(device: &SimulatedDevice, background: bool, limit: u64) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(limit).partitions(2);
    config.background = background;
    config.warm_buffer = Some(1 << 20);
    Database::open(config).expect("the database opens")
}

fn opened(device: &SimulatedDevice) -> Arc<Database> {
    opened_with(device, false, 1 << 30)
}

/// A text that no other row has anything of.
fn text(id: i64) -> String {
    let mut state = id.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let letter = |_| {
        state = state.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    (0..180 + id % 60).map(letter).collect()
}

fn filled() -> (SimulatedDevice, Arc<Database>, Arc<Table>) {
    let device = SimulatedDevice::new();
    let db = opened(&device);
    let def = TableDef {
        access_method: AccessMethod::Columns,
        ..table_def(&db, "t", IndexKind::Hash)
    };
    ddl(&db, Change::CreateTable(def)).expect("the table is made");
    let t = table(&db, "t");
    for id in 0..ROWS {
        insert(&db, &t, id, &text(id)).expect("inserts");
    }
    let merged = block_on(db.merge_delta(&RunOptions::new(), &t)).expect("merges");
    assert_eq!(merged, ROWS as u64);
    (device, db, t)
}

fn keep(db: &Arc<Database>, residence: Residence) -> Arc<Table> {
    let mut def = table(db, "t").def.clone();
    for column in &mut def.columns {
        column.residence = residence;
    }
    ddl(db, Change::AlterTable(def)).expect("alters");
    let t = table(db, "t");
    block_on(db.unload_columns(&RunOptions::new(), &t, &[0, 1])).expect("leaves");
    t
}

/// Bytes of the texts on the device, and in memory.
fn bytes(db: &Database) -> (u64, u64) {
    let reports = db.column_reports().expect("reports");
    let texts = reports.last().expect("a column");
    (texts.device_bytes, texts.memory_bytes)
}

#[test]
fn a_row_is_read_without_its_group() {
    let (device, db, mut t) = filled();
    for residence in [Residence::ByUse, Residence::Warm] {
        t = keep(&db, residence);
        let (all, none) = bytes(&db);
        assert!(all > 500 << 10 && none == 0, "{none} of {all}");
        assert_eq!(get(&db, &t, 1234).expect("reads"), Some(text(1234)));
        let (_, here) = bytes(&db);
        assert!(here > 0 && here < 40 << 10, "{here} of {all}");
        for id in (0..ROWS).step_by(7) {
            assert_eq!(get(&db, &t, id).expect("reads"), Some(text(id)), "{id}");
        }
    }
    // All texts do not fit in a megabyte's buffer with the rest: pages came and went.
    assert!(db.memory_report().warm_buffer <= 1 << 20);
    // What changes and what is deleted goes by the row, and not by where it was read.
    set(&db, &t, 70, "new").expect("updates");
    delete(&db, &t, 77).expect("deletes");
    assert_eq!(get(&db, &t, 70).expect("reads"), Some("new".into()));
    assert_eq!(get(&db, &t, 77).expect("reads"), None);
    block_on(db.checkpoint()).expect("checkpoints");
    drop((db, t));
    let db = opened(&device);
    let t = table(&db, "t");
    assert!(t.def.columns.iter().all(|c| c.residence == Residence::Warm));
    let mut expected: BTreeMap<i64, String> = (0..ROWS).map(|id| (id, text(id))).collect();
    expected.insert(70, "new".into());
    expected.remove(&77);
    for id in 0..300 {
        let found = get(&db, &t, id).expect("reads");
        assert_eq!(found.as_ref(), expected.get(&id), "{id}");
    }
    let before = db.memory_report().warm_buffer;
    assert_eq!(all(&db, &t), expected);
    assert_eq!(
        db.memory_report().warm_buffer,
        before,
        "a scan leaves nothing"
    );
}

#[test]
fn columns_are_loaded_as_far_as_they_have_room() {
    let (device, db, _) = filled();
    let options = RunOptions::new();
    let t = keep(&db, Residence::Hot);
    block_on(db.check_columns_fit(&options, &t, &[0, 1])).expect("has room");
    block_on(db.load_columns(&options, &t, &[0, 1])).expect("comes");
    let hot = |db: &Database| {
        let reports = db.column_reports().expect("reports");
        reports.iter().all(|report| report.state() == "hot")
    };
    assert!(hot(&db));
    block_on(db.unload_columns(&RunOptions::new(), &t, &[0, 1])).expect("leaves");
    assert!(!hot(&db));
    block_on(db.checkpoint()).expect("checkpoints");
    drop(db);
    // It comes back behind whoever asks for rows.
    let db = opened_with(&device, true, 1 << 30);
    let begun = Instant::now();
    while !hot(&db) {
        assert!(begun.elapsed() < Duration::from_secs(30), "it comes back");
        std::thread::sleep(Duration::from_millis(10));
    }
    let found = get(&db, &table(&db, "t"), 5).expect("reads");
    assert_eq!(found, Some(text(5)));
    db.close().expect("stops");
}

#[test]
fn a_damaged_chunk_does_not_keep_the_others_from_coming_back() {
    let (device, db, _) = filled();
    keep(&db, Residence::Hot);
    block_on(db.checkpoint()).expect("checkpoints");
    drop(db);
    let mut files = files_of(&device);
    let (_, blocks) = files.get_mut("blocks").expect("is there");
    // A text of the first group.
    let first = (0..ROWS)
        .filter_map(|id| {
            let wanted = &text(id).into_bytes()[..100];
            blocks.windows(100).position(|bytes| bytes == wanted)
        })
        .take(20)
        .min();
    blocks[first.expect("a text is there") + 50] ^= 1;
    let db = opened_with(&device_of(&files), true, 1 << 30);
    let texts_in_memory = || {
        let reports = db.column_reports().expect("reports");
        let texts = reports.last().expect("a column");
        (texts.groups_in_memory, texts.groups)
    };
    let begun = Instant::now();
    while texts_in_memory().0 + 1 < texts_in_memory().1 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the others come");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(texts_in_memory(), (1, 2));
    db.close().expect("stops");
}

#[test]
fn what_has_no_room_is_not_loaded() {
    let device = SimulatedDevice::new();
    let db = opened_with(&device, false, 64 << 20);
    let def = TableDef {
        access_method: AccessMethod::Columns,
        ..table_def(&db, "t", IndexKind::Hash)
    };
    ddl(&db, Change::CreateTable(def)).expect("the table is made");
    let t = table(&db, "t");
    let long = |id: i64| (0..40).map(|n| text(id * 40 + n)).collect::<String>();
    for id in 0..2400 {
        insert(&db, &t, id, &long(id)).expect("inserts");
        if id % 400 == 399 {
            block_on(db.merge_delta(&RunOptions::new(), &t)).expect("merges");
        }
    }
    let error = block_on(db.check_columns_fit(&RunOptions::new(), &t, &[1]));
    let error = error.expect_err("has no room");
    assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
    assert!(
        error.to_string().contains("a quarter of memory_limit"),
        "{error}"
    );
    block_on(db.check_columns_fit(&RunOptions::new(), &t, &[0])).expect("has room");
    for id in (0..2400).step_by(31) {
        assert_eq!(get(&db, &t, id).expect("reads"), Some(long(id)), "{id}");
    }
}

#[test]
fn a_damaged_page_fails_the_rows_on_it_and_no_others() {
    let (device, db, _) = filled();
    block_on(db.checkpoint()).expect("checkpoints");
    drop(db);
    let mut files = files_of(&device);
    let (_, blocks) = files.get_mut("blocks").expect("is there");
    let wanted = text(1500);
    let at = blocks
        .windows(100)
        .position(|bytes| bytes == &wanted.as_bytes()[..100]);
    blocks[at.expect("a text is there") + 50] ^= 1;
    let db = opened(&device_of(&files));
    let t = table(&db, "t");
    let mut failed = Vec::new();
    for id in 0..ROWS {
        match get(&db, &t, id) {
            Ok(found) => assert_eq!(found, Some(text(id)), "{id}"),
            Err(error) => {
                assert!(matches!(error, Error::Corrupt(_)), "{error}");
                let said = error.to_string();
                assert!(said.contains("page") && said.contains("public.t"), "{said}");
                failed.push(id);
            }
        }
    }
    assert!(failed.contains(&1500), "{failed:?}");
    // A page of 4 KB has some twenty texts.
    assert!(failed.len() < 30, "{}", failed.len());
    assert!(!db.verify().expect("verifies").is_sound());
}
