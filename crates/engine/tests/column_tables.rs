//! Column tables (002): the delta is rows in place, the main row groups by column. What they hold
//! is what a table of rows holds, through merges, changes, snapshots, restarts and backups; and
//! what is damaged hurts those who need it.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::{AccessMethod, ColumnDef, IndexKind, TableDef};
use thermocline_engine::{
    Change, Config, Database, Error, GroupCounts, RunOptions, Scope, Snapshot, Table, block_on,
};
use thermocline_storage::columns::{ColumnTest, Test};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

const ROWS: i64 = 3000;

fn opened(device: &SimulatedDevice) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(1 << 30).partitions(2);
    config.background = false;
    Database::open(config).expect("the database opens")
}

fn column_table(db: &Arc<Database>, kind: IndexKind) -> Arc<Table> {
    let def = TableDef {
        access_method: AccessMethod::Columns,
        tablespace: 0,
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        triggers: Vec::new(),
        ..table_def(db, "t", kind)
    };
    ddl(db, Change::CreateTable(def)).expect("the table is made");
    table(db, "t")
}

fn text(id: i64) -> String {
    format!("state {} of {}", id % 5, id / 100)
}

fn filled(kind: IndexKind) -> (SimulatedDevice, Arc<Database>, Arc<Table>) {
    let device = SimulatedDevice::new();
    let db = opened(&device);
    let t = column_table(&db, kind);
    for id in 0..ROWS {
        insert(&db, &t, id, &text(id)).expect("inserts");
    }
    (device, db, t)
}

fn merge(db: &Arc<Database>, t: &Table) -> u64 {
    block_on(db.merge_delta(&RunOptions::new(), t)).expect("merges")
}

/// Rows in memory.
fn delta(db: &Database) -> u64 {
    let report = db
        .table_reports()
        .into_iter()
        .find(|report| report.name == "t");
    report.map_or(0, |report| report.hot)
}

fn expected() -> BTreeMap<i64, String> {
    (0..ROWS).map(|id| (id, text(id))).collect()
}

fn is_sound(db: &Database) {
    let verified = db.verify().expect("verifies");
    assert!(verified.is_sound(), "{:?}", verified.problems);
}

#[test]
fn a_merge_moves_the_delta_into_the_main_and_changes_nothing() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (device, db, t) = filled(kind);
        assert_eq!(delta(&db), ROWS as u64);
        assert_eq!(merge(&db, &t), ROWS as u64);
        assert_eq!(delta(&db), 0);
        assert_eq!(all(&db, &t), expected());
        is_sound(&db);
        let reports = db.table_reports().into_iter();
        let bytes: u64 = reports.map(|report| report.block_bytes).sum();
        assert!(bytes < 40 << 10, "{bytes} bytes of columns");
        for id in (0..ROWS).step_by(211) {
            assert_eq!(get(&db, &t, id).expect("reads"), Some(text(id)));
        }
        assert_eq!(delta(&db), 0, "a read leaves a row where it is");
        assert_eq!(merge(&db, &t), 0);
        // Changed rows are in the delta; what they had in the main is a hole.
        let mut rows = expected();
        for id in (0..ROWS).step_by(10) {
            set(&db, &t, id, "new").expect("updates");
            rows.insert(id, "new".into());
        }
        for id in (5..ROWS).step_by(100) {
            delete(&db, &t, id).expect("deletes");
            rows.remove(&id);
        }
        assert_eq!(delta(&db), 300);
        assert_eq!(all(&db, &t), rows);
        is_sound(&db);
        block_on(db.checkpoint()).expect("checkpoints");
        set(&db, &t, 1, "after the checkpoint").expect("updates");
        rows.insert(1, "after the checkpoint".into());
        drop(db);
        let db = opened(&device);
        let t = table(&db, "t");
        assert!(t.is_columns(), "it is one after a restart, too");
        assert_eq!(all(&db, &t), rows);
        is_sound(&db);
        merge(&db, &t);
        assert_eq!(all(&db, &t), rows);
        is_sound(&db);
    }
}

async fn seen(
    snapshot: &Snapshot,
    t: &Arc<Table>,
    columns: Option<&[usize]>,
) -> Vec<(i64, String)> {
    let mut rows = Vec::new();
    for partition in 0..2 {
        let mut scan = match columns {
            Some(columns) => snapshot.scan_columns(t, partition, columns, &Arc::default()),
            None => snapshot.scan(t, partition),
        };
        let each = &mut |_, tuple: &[u8]| {
            let id = match t.value(tuple, 0) {
                ValueRef::BigInt(id) => id,
                _ => -1,
            };
            let text = match t.value(tuple, 1) {
                ValueRef::Text(text) => text.to_owned(),
                _ => String::new(),
            };
            rows.push((id, text));
        };
        while scan.next_chunk(&mut *each).await.expect("scans") {}
    }
    rows.sort();
    rows
}

#[test]
fn a_snapshot_sees_what_was_through_changes_and_merges() {
    let (_device, db, t) = filled(IndexKind::Hash);
    merge(&db, &t);
    let snapshot = db.snapshot();
    for id in 0..ROWS / 2 {
        set(&db, &t, id, "new").expect("updates");
    }
    delete(&db, &t, ROWS - 1).expect("deletes");
    merge(&db, &t);
    let before: Vec<(i64, String)> = expected().into_iter().collect();
    assert_eq!(block_on(seen(&snapshot, &t, None)), before);
    drop(snapshot);
    let now = block_on(seen(&db.snapshot(), &t, None));
    assert_eq!(now.len(), before.len() - 1);
    assert!(
        now[..ROWS as usize / 2]
            .iter()
            .all(|(_, text)| text == "new")
    );
}

#[test]
fn a_scan_reads_the_columns_that_it_names() {
    let (_device, db, t) = filled(IndexKind::Hash);
    merge(&db, &t);
    let ids = block_on(seen(&db.snapshot(), &t, Some(&[0])));
    let wanted: Vec<(i64, String)> = (0..ROWS).map(|id| (id, String::new())).collect();
    assert_eq!(ids, wanted, "the other column is not there");
    let texts = block_on(seen(&db.snapshot(), &t, Some(&[1])));
    assert_eq!(texts.len(), ROWS as usize);
    assert!(
        texts
            .iter()
            .all(|(id, text)| *id == -1 && text.starts_with("state"))
    );
}

#[test]
fn a_scan_passes_over_groups_and_rows_that_have_not_what_is_asked() {
    let (_device, db, t) = filled(IndexKind::Hash);
    merge(&db, &t);
    // In the delta, of which nothing is left out.
    set(&db, &t, 7, "state 1").expect("updates");
    delete(&db, &t, 11).expect("deletes");
    let found = |tests: Vec<ColumnTest>| {
        let (mut ids, mut counts) = (Vec::new(), GroupCounts::default());
        for partition in 0..2 {
            let mut scan = db
                .snapshot()
                .scan_columns(&t, partition, &[0], &tests.clone().into());
            let each = &mut |_, tuple: &[u8]| match t.value(tuple, 0) {
                ValueRef::BigInt(id) => ids.push(id),
                other => panic!("{other:?}"),
            };
            while block_on(scan.next_chunk(&mut *each)).expect("scans") {}
            let of_partition = scan.group_counts();
            counts.groups += of_partition.groups;
            counts.skipped += of_partition.skipped;
        }
        ids.sort_unstable();
        (ids, counts)
    };
    let ids = |low, high| ColumnTest {
        column: 0,
        test: Test::Integers(vec![(low, high)]),
    };
    let texts = |low: &str| ColumnTest {
        column: 1,
        test: Test::Bytes(vec![(low.into(), Some([low.as_bytes(), b"\0"].concat()))]),
    };
    let (rows, counts) = found(Vec::new());
    assert_eq!((rows.len() as i64, counts.skipped), (ROWS - 1, 0));
    let groups = counts.groups;
    assert!(groups >= 2);
    assert_eq!(found(vec![ids(9, 12)]).0, [7, 9, 10, 12]);
    let (rows, counts) = found(vec![ids(ROWS, i64::MAX)]);
    assert_eq!(
        (rows, counts.skipped),
        (vec![7], groups),
        "the delta's row alone"
    );
    let wanted: Vec<i64> = (500..600).filter(|id| id % 5 == 2).collect();
    let with_delta: Vec<i64> = [7].into_iter().chain(wanted.clone()).collect();
    assert_eq!(found(vec![texts("state 2 of 5")]).0, with_delta);
    assert_eq!(
        found(vec![texts("state 2 of 5"), ids(0, 550)]).0[1..],
        wanted[..10]
    );
    assert_eq!(
        found(vec![ids(550, 700), texts("state 2 of 5")]).0[1..],
        wanted[10..]
    );
    // A younger column is not in the groups, and nothing is left out for it.
    let younger = ColumnTest {
        column: 9,
        test: Test::Null(true),
    };
    assert_eq!(found(vec![younger]).0.len() as i64, ROWS - 1);
}

#[test]
fn a_column_that_is_added_reads_its_default_in_old_groups() {
    let (device, db, t) = filled(IndexKind::BTree);
    merge(&db, &t);
    let added = ColumnDef {
        missing: thermocline_values::value::Value::Integer(7),
        ..column("extra", DataType::Integer, false)
    };
    let mut def = t.def.clone();
    def.columns.push(added);
    ddl(&db, Change::AlterTable(def)).expect("the column is added");
    let t = table(&db, "t");
    let extras = |db: &Arc<Database>, t: &Arc<Table>| {
        let snapshot = db.snapshot();
        let mut sum = 0;
        for partition in 0..2 {
            let mut scan = snapshot.scan_columns(t, partition, &[2], &Arc::default());
            let each = &mut |_, tuple: &[u8]| match t.value(tuple, 2) {
                ValueRef::Integer(value) => sum += i64::from(value),
                other => panic!("{other:?}"),
            };
            while block_on(scan.next_chunk(&mut *each)).expect("scans") {}
        }
        sum
    };
    assert_eq!(extras(&db, &t), 7 * ROWS);
    // Rows of both layouts in one group.
    let options = RunOptions::new();
    let run = db.one_shot(&options, Scope::All, |access| {
        for id in ROWS..ROWS + 100 {
            let mut tuple = Vec::new();
            let values = [
                ValueRef::BigInt(id),
                ValueRef::Text("x"),
                ValueRef::Integer(1),
            ];
            t.encode_tuple(&values, &mut tuple);
            access.insert(&t, &tuple)?;
        }
        Ok(())
    });
    block_on(run).expect("inserts");
    merge(&db, &t);
    block_on(db.checkpoint()).expect("checkpoints");
    is_sound(&db);
    drop(db);
    let db = opened(&device);
    assert_eq!(extras(&db, &table(&db, "t")), 7 * ROWS + 100);
}

#[test]
fn a_damaged_chunk_fails_who_needs_it_and_nobody_else() {
    let (device, db, t) = filled(IndexKind::Hash);
    merge(&db, &t);
    block_on(db.checkpoint()).expect("checkpoints");
    drop((db, t));
    let mut files = files_of(&device);
    let (_, blocks) = files.get_mut("blocks").expect("is there");
    // The texts of a group are in its last chunk: a dictionary has them in order.
    let at = blocks.windows(7).position(|bytes| bytes == b"state 1");
    blocks[at.expect("a text is there") + 3] ^= 1;
    let db = opened(&device_of(&files));
    let t = table(&db, "t");
    let ids = block_on(seen(&db.snapshot(), &t, Some(&[0])));
    assert_eq!(ids.len(), ROWS as usize, "the other column is readable");
    let (mut read, mut failed) = (0, 0);
    for id in 0..200 {
        match get(&db, &t, id) {
            Ok(found) => {
                assert_eq!(found, Some(text(id)));
                read += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::Corrupt(_)), "{error}");
                let said = error.to_string();
                assert!(
                    said.contains("column 2") && said.contains("public.t"),
                    "{said}"
                );
                failed += 1;
            }
        }
    }
    assert!(read > 0 && failed > 0, "one group of two is damaged");
    assert!(!db.verify().expect("verifies").is_sound());
}
