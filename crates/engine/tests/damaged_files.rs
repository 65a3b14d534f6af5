//! Each file of a data directory, missing, shortened and extended: the database opens with all
//! that was acknowledged before its last checkpoint, or it is refused with the file's name.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::check::{CheckEvent, check};
use thermocline_engine::{Config, Database, Result, block_on};

/// Rows before the last checkpoint, and after it.
const BEFORE: i64 = 120;
const AFTER: i64 = 300;
const SEGMENT_BYTES: u64 = 32 << 10;

fn open_damaged(device: &SimulatedDevice) -> Result<Arc<Database>> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(2);
    config.background = false;
    config.log_segment_bytes = SEGMENT_BYTES;
    Database::open(config)
}

fn value(id: i64) -> String {
    format!("{id:0600}")
}

/// A directory with bases, deltas, blocks, a Block Table and several segments of log, to
/// both sides of the checkpoint's end of it.
fn directory() -> Files {
    let device = SimulatedDevice::new();
    let db = open_damaged(&device).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    let fill = |ids: std::ops::Range<i64>| {
        for id in ids {
            insert(&db, &t, id, &value(id)).expect("inserts");
        }
    };
    fill(0..BEFORE / 2);
    block_on(db.checkpoint()).expect("checkpoints");
    fill(BEFORE / 2..BEFORE - 1);
    // An open transaction's rows keep the log from before the checkpoint.
    fill(BEFORE - 1..BEFORE);
    block_on(db.checkpoint()).expect("checkpoints");
    fill(BEFORE..BEFORE + AFTER);
    files_of(&device)
}

/// A file's length and what it holds; None: it is missing.
type Damaged = Option<(u64, Vec<u8>)>;

/// What is found in the directory, with a file as it is given here.
struct Case<'a> {
    files: &'a Files,
    file: &'a str,
    damage: String,
    /// The log may end earlier, but not before the checkpoint.
    is_log: bool,
}

impl Case<'_> {
    /// Whether it opens.
    fn opens(&self) -> bool {
        let Case {
            files,
            file,
            damage,
            is_log,
        } = self;
        let device = device_of(files);
        let shared: Arc<dyn Device> = Arc::new(device.clone());
        let mut named = Vec::new();
        let checked = check(&shared, &mut |event| {
            if let CheckEvent::Found(finding) = event {
                named.push(finding.to_string());
            }
        });
        let db = match open_damaged(&device) {
            Ok(db) => db,
            Err(error) => {
                let said = error.to_string();
                let names = match is_log {
                    // Of several segments the one that is missing, or where that shows.
                    true => said.contains("log-"),
                    false => said.contains(file),
                };
                assert!(names, "{file} {damage}: {said}");
                assert_eq!(error.sqlstate(), "XX001", "{file} {damage}: {said}");
                // Without any description there is nothing to check.
                if checked.is_ok() {
                    assert!(
                        !named.is_empty(),
                        "{file} {damage}: check finds nothing: {said}"
                    );
                }
                return false;
            }
        };
        let t = table(&db, "t");
        let rows = all(&db, &t);
        let kept = match is_log {
            true => BEFORE,
            false => BEFORE + AFTER,
        };
        assert!(
            rows.len() as i64 >= kept,
            "{file} {damage}: {} rows",
            rows.len()
        );
        for (place, (id, found)) in rows.iter().enumerate() {
            assert_eq!(*id, place as i64, "{file} {damage}");
            assert_eq!(*found, value(*id), "{file} {damage}");
        }
        let problems = db.verify().expect("verifies").problems;
        assert_eq!(problems, Vec::<String>::new(), "{file} {damage}");
        true
    }
}

/// Lengths at which a file of this length may be cut.
fn cuts(length: u64, is_log: bool) -> Vec<u64> {
    let mut cuts = vec![0, 1, 4095, 4096, 4097, length / 4, length / 2, length - 1];
    cuts.extend([512, 8192, length * 3 / 4, length.saturating_sub(4096)]);
    if is_log {
        cuts.extend((0..length / 4096).map(|sector| sector * 4096));
        cuts.extend((0..length / 4096).map(|sector| sector * 4096 + 700));
    }
    cuts.retain(|cut| *cut < length);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

#[test]
fn a_file_that_is_missing_shortened_or_extended_is_named_or_does_no_harm() {
    let whole = directory();
    let mut names: Vec<&String> = whole.keys().collect();
    names.sort();
    let of = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    assert!(of("log-") >= 6 && of("checkpoint-") >= 5, "{names:?}");
    let (mut opened, mut refused) = (0, 0);
    for file in names {
        let is_log = file.starts_with("log-");
        let (length, bytes) = &whole[file];
        let mut cases: Vec<(String, Damaged)> = vec![("missing".into(), None)];
        for cut in cuts(*length, is_log) {
            let mut left = bytes.clone();
            left.truncate(cut as usize);
            cases.push((format!("cut to {cut}"), Some((cut, left))));
        }
        for more in [1, 4096, 70_000] {
            let mut longer = bytes.clone();
            cases.push((
                format!("{more} zeros longer"),
                Some((length + more, longer.clone())),
            ));
            longer.resize(*length as usize, 0);
            longer.extend((0..more).map(|at| (at * 31 % 251) as u8 + 1));
            cases.push((
                format!("{more} bytes longer"),
                Some((length + more, longer)),
            ));
        }
        for (damage, content) in cases {
            let mut files = whole.clone();
            match content {
                Some(content) => files.insert(file.clone(), content),
                None => files.remove(file),
            };
            let case = Case {
                files: &files,
                file,
                damage,
                is_log,
            };
            match case.opens() {
                true => opened += 1,
                false => refused += 1,
            }
        }
    }
    // Both kinds there are: neither is taken for granted.
    assert!(
        opened > 50 && refused > 50,
        "{opened} opened, {refused} refused"
    );
}

#[test]
fn a_gap_in_the_log_is_named() {
    let whole = directory();
    let segments: Vec<String> = whole
        .keys()
        .filter(|name| name.starts_with("log-"))
        .cloned()
        .collect();
    // Any two of them.
    for (place, first) in segments.iter().enumerate() {
        for second in &segments[place + 1..] {
            let mut files = whole.clone();
            files.remove(first);
            files.remove(second);
            let case = Case {
                files: &files,
                file: first,
                damage: format!("missing, and {second}"),
                is_log: true,
            };
            case.opens();
        }
    }
}
