use thermocline_device::block_on;
use thermocline_storage::row_directory::Word;
use thermocline_values::value::ValueRef;

use super::*;
use crate::cold::evict::tests::database;
use crate::database::Database;
use crate::ground::scope::Scope;
use crate::parts::checkpoint_state::Purpose;
use crate::rows::row_state::TablePartition;
use crate::transaction::RunOptions;

const ROWS: i64 = 20;

/// Findings of a directory whose checksums are all right, but in whose first
/// checkpoint `spoil` had a part.
fn findings_of(spoil: impl FnOnce(&Table, &mut TablePartition)) -> Vec<Finding> {
    let (db, table) = database();
    for id in 0..ROWS {
        let mut tuple = Vec::new();
        table.encode_tuple(&[ValueRef::BigInt(id)], &mut tuple);
        let options = RunOptions::default();
        let run = db.one_shot(&options, Scope::One(0), |access| {
            access.insert(&table, &tuple).map(|_| ())
        });
        block_on(run).expect("inserts");
    }
    evict_all(&db);
    spoil(&table, db.all_partitions()[0].lock().table_mut(&table));
    db.run_checkpoint(Purpose::Asked).expect("checkpoints");
    let mut findings = Vec::new();
    let device = db.device().clone();
    let report = check(&device, &mut |event| {
        if let CheckEvent::Found(finding) = event {
            findings.push(finding.clone());
        }
    });
    assert_eq!(report.expect("checks").findings, findings.len() as u64);
    findings
}

/// A checkpoint, and then each row is cold.
fn evict_all(db: &Database) {
    db.run_checkpoint(Purpose::Asked).expect("checkpoints");
    let mut state = db.all_partitions()[0].lock();
    for (_, rows) in state.tables.all_rows_mut() {
        for row in 0..rows.directory().appended() {
            let word = rows.directory().get(row);
            let Some(hot) = word.as_hot() else { continue };
            let address = rows.copy_of(hot);
            let fingerprint = {
                let tables = db.tables_by_storage();
                let table = tables.values().next().expect("a table");
                fingerprint_of(table, rows.heap().payload(hot.pointer()))
            };
            let address = address.expect("it is clean");
            rows.leave_clean(row, hot, address, fingerprint);
        }
    }
}

fn fingerprint_of(table: &Table, tuple: &[u8]) -> u8 {
    table.fingerprint(tuple, &mut Vec::new())
}

fn said(findings: &[Finding], what: &str) {
    assert!(
        findings.iter().any(|f| f.what.contains(what)),
        "{what}: {findings:?}"
    );
    assert!(
        findings
            .iter()
            .all(|f| f.table.as_deref() == Some("public.t"))
    );
}

#[test]
fn a_directory_that_was_not_spoiled_is_sound() {
    assert_eq!(findings_of(|_, _| {}), []);
}

#[test]
fn a_word_that_leads_to_another_rows_record_is_found() {
    let findings = findings_of(|_, rows| {
        let other = rows.directory().get(4);
        rows.spoil_word(3, other);
    });
    said(&findings, "row 3 refers to block");
}

#[test]
fn a_word_that_leads_to_no_block_is_found() {
    let findings = findings_of(|_, rows| {
        let cold = rows.directory().get(3).as_cold().expect("cold");
        let mut address = cold.address();
        address.block += 4000;
        rows.spoil_word(3, cold.with_address(address));
    });
    said(&findings, "row 3 refers to block");
}

#[test]
fn a_fingerprint_that_does_not_fit_is_found() {
    let findings = findings_of(|_, rows| {
        let word = rows.directory().get(3);
        let address = word.as_cold().expect("cold").address();
        let other = (0..=255)
            .map(|f| Word::cold(address, f))
            .find(|w| w.0 != word.0 && *w != word.with_temperature(0));
        rows.spoil_word(3, other.expect("another fingerprint"));
    });
    said(&findings, "fingerprint");
}

#[test]
fn a_row_that_its_index_does_not_lead_to_is_found() {
    let findings = findings_of(|table, rows| {
        let mut key = Vec::new();
        table.encode_index_key(0, &[ValueRef::BigInt(7)], &mut key);
        let removed = (0..ROWS as u32).any(|row| rows.indexes_mut()[0].index.remove(&key, row));
        assert!(removed, "the key was there");
    });
    said(&findings, "is not in index t_pkey");
    said(&findings, "19 entries for 20 rows");
}

#[test]
fn a_wrong_number_of_rows_is_found() {
    let findings = findings_of(|_, rows| rows.spoil_count());
    said(&findings, "21 rows are said to be there, 20 are");
}
