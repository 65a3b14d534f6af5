//! `check` over a directory that nobody has open: it finds nothing where
//! nothing is wrong, and whatever was damaged, with file and place.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::check::{CheckEvent, CheckReport, Finding, check};
use thermocline_engine::{Config, Database, Isolation, block_on};

fn open(device: &SimulatedDevice) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(2);
    config.background = false;
    config.log_segment_bytes = 64 << 10;
    Database::open(config).expect("opens")
}

fn checked(device: &SimulatedDevice) -> (CheckReport, Vec<Finding>) {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut findings = Vec::new();
    let mut last = (0, 0);
    let report = check(&device, &mut |event| match event {
        CheckEvent::Found(finding) => findings.push(finding.clone()),
        CheckEvent::Progress { done, total } => {
            assert!(done >= last.0 && done <= total, "progress goes forward");
            last = (done, total);
        }
    });
    let report = report.expect("can be checked");
    assert_eq!(report.findings, findings.len() as u64);
    (report, findings)
}

/// Tables of both kinds of index, with holes, cold rows, a log behind the
/// checkpoint, an open transaction and a definition in the log.
fn lived_in(seed: i64) -> SimulatedDevice {
    let device = SimulatedDevice::new();
    let db = open(&device);
    let a = make_table(&db, "a", IndexKind::Hash);
    let b = make_table(&db, "b", IndexKind::BTree);
    let value = |id: i64| format!("{id}:{}", "v".repeat(((id + seed) * 37 % 900) as usize));
    for id in 0..200 {
        insert_lazily(&db, &a, id, &value(id)).expect("inserts");
        insert_lazily(&db, &b, id, &value(id)).expect("inserts");
    }
    block_on(db.checkpoint()).expect("checkpoints");
    for id in (0..200).step_by(3) {
        set(&db, &a, id, "changed").expect("updates");
        delete(&db, &b, id).expect("deletes");
    }
    let mut txn = db.begin(Isolation::Serializable, false);
    let open_row = tuple(&a, 5000, "not committed");
    in_txn(&mut txn, &db, |access| {
        access.insert(&a, &open_row).map(|_| ())
    })
    .expect("inserts");
    block_on(db.checkpoint()).expect("checkpoints");
    let c = make_table(&db, "c", IndexKind::Hash);
    for id in 0..20 {
        insert(&db, &a, 1000 + id, "after").expect("inserts");
        insert(&db, &c, id, "new").expect("inserts");
    }
    std::mem::forget(txn);
    device
}

#[test]
fn a_sound_directory_has_no_findings_whatever_was_done_to_it() {
    for seed in 0..6 {
        let device = lived_in(seed);
        let before = files_of(&device);
        let (report, findings) = checked(&device);
        assert_eq!(findings, []);
        assert_eq!(report.tables, 2, "the third is in the log");
        assert_eq!(report.checkpoint, 2);
        // 200 of a, and the open transaction's; of b, those not deleted.
        assert_eq!(report.rows, 201 + 133);
        assert!(report.records > report.rows && report.log_records >= 40);
        assert_eq!(files_of(&device), before, "nothing is changed");
        // After a crash at any point, and after the recovery from it.
        device.crash(seed as u64);
        assert_eq!(checked(&device).1, []);
        let db = open(&device);
        assert_eq!(all(&db, &table(&db, "a")).len(), 220);
        db.close().expect("closes");
        drop(db);
        assert_eq!(checked(&device).1, []);
    }
}

#[test]
fn what_is_damaged_is_found_where_it_is() {
    let files = files_of(&lived_in(1));
    let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, (_, bytes)) in &files {
        let kind = name.split('-').next().expect("a name");
        // Little of a log segment is taken.
        let places = if kind == "log" { 600 } else { 30 };
        for number in 0..places {
            let at = bytes.len() * number / places;
            if name.starts_with("log-spare-") || bytes.is_empty() {
                continue;
            }
            let mut files = files.clone();
            files.get_mut(name).expect("there").1[at] ^= 0x10;
            let (report, findings) = checked(&device_of(&files));
            if report.findings == 0 {
                // Padding, free space, the log before the checkpoint or its end.
                assert!(["blocks", "log"].contains(&kind), "{name} at {at}");
                continue;
            }
            *kinds.entry(kind).or_default() += 1;
            let named = findings.iter().any(|f| {
                f.file == *name && f.offset.is_none_or(|o| o <= at as u64)
                    || kind == "log" && f.file == "log"
            });
            assert!(named, "{name} at {at}: {findings:?}");
            if name == "blocks" && at > 8192 {
                let table = findings[0].table.as_deref();
                assert!(
                    matches!(table, Some("public.a" | "public.b")),
                    "{findings:?}"
                );
            }
        }
    }
    for kind in ["blocks", "checkpoint", "log", "manifest"] {
        assert!(kinds.get(kind).is_some_and(|found| *found > 3), "{kinds:?}");
    }
}

#[test]
fn an_image_in_anothers_place_and_a_missing_file_are_found() {
    let device = lived_in(2);
    let files = files_of(&device);
    let mut swapped = files.clone();
    let image = |n: u32| format!("checkpoint-00000002-{n:04}");
    let first = files[&image(0)].clone();
    swapped.insert(image(1), first);
    let (_, findings) = checked(&device_of(&swapped));
    assert!(findings.iter().any(|f| f.file == image(1)), "{findings:?}");

    let mut without = files.clone();
    without.remove("blocks");
    let (_, findings) = checked(&device_of(&without));
    assert!(findings.iter().any(|f| f.file == "blocks"), "{findings:?}");
}

#[test]
fn where_there_is_no_database_nothing_can_be_checked() {
    let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new());
    let error = check(&device, &mut |_| {}).expect_err("there is none");
    assert_eq!(error.sqlstate(), "3D000");
}
