//! Statements and transactions that change many large rows under a small limit: what they hold
//! beside the tables is charged, the process stays below the limit, and what is refused leaves
//! all as it was. The limit is the process's, so this test has a process of its own.

mod fixture;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fixture::*;
use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{
    Access, Account, ChargeKind, Config, Database, Error, Isolation, Result, RunOptions, Scope,
    Table, Transaction, block_on,
};

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 96 * MIB;
/// What transactions may hold together, and one of them.
const SHARE: u64 = LIMIT / 4;
const ROW_BYTES: usize = 100_000;
const ROWS: i64 = 600;

fn text(id: i64, round: u32) -> String {
    format!("{id}:{round}:{}", "y".repeat(ROW_BYTES))
}

fn charged_to(account: &Account) -> RunOptions {
    RunOptions {
        account: Some(account.clone()),
        ..RunOptions::new()
    }
}

/// Changes these rows in one run.
fn update(db: &Database, t: &Table, ids: impl Iterator<Item = i64> + Clone) -> Result<i64> {
    block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        change_rows(access, t, ids.clone(), 1)
    }))
}

fn change_rows(
    access: &mut Access<'_>,
    t: &Table,
    ids: impl Iterator<Item = i64>,
    round: u32,
) -> Result<i64> {
    let mut changed = 0;
    for id in ids {
        changed += i64::from(set_in(access, t, id, &text(id, round))?);
    }
    Ok(changed)
}

fn update_in(
    txn: &mut Transaction,
    db: &Database,
    options: &RunOptions,
    t: &Table,
    id: i64,
) -> Result<i64> {
    let body = |access: &mut Access<'_>| change_rows(access, t, id..id + 1, 9);
    block_on(db.in_transaction(txn, options, scope(t, id), body))
}

fn insert_rows(access: &mut Access<'_>, t: &Table, ids: std::ops::Range<i64>) -> Result<()> {
    for id in ids {
        access.insert(t, &tuple(t, id, &text(id, 0)))?;
    }
    Ok(())
}

/// Each row's length and beginning, which tell all of it.
fn contents(db: &Arc<Database>, t: &Arc<Table>) -> BTreeMap<i64, (usize, String)> {
    let snapshot = db.snapshot();
    let mut rows = BTreeMap::new();
    for partition in 0..db.partitions() {
        let mut scan = snapshot.scan(t, partition);
        while block_on(scan.next_chunk(&mut |_, tuple| {
            let value = text_of(t, tuple);
            let id: i64 = value
                .split(':')
                .next()
                .and_then(|id| id.parse().ok())
                .expect("an id");
            let twice = rows.insert(id, (value.len(), value[..12].to_owned()));
            assert!(twice.is_none(), "row {id} was given twice");
        }))
        .expect("the scan reads")
        {}
    }
    rows
}

fn refused<R: std::fmt::Debug>(result: Result<R>) {
    let error = result.expect_err("it has no room");
    assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
    assert_eq!(error.sqlstate(), "53200");
}

/// Ends its thread when it goes.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn large_changes_stay_below_the_limit_and_are_whole_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let device = FileDevice::open(directory.path(), IoEngine::Auto).expect("a device");
    let device: Arc<dyn Device> = Arc::new(device);
    let config = Config::new(device).partitions(4).memory_limit(LIMIT);
    let db = Database::open(config).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    let (ended, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let beyond = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let resident = thermocline_device::resident_bytes().expect("the kernel says");
                most.fetch_max(resident, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let _ends = Ends(&ended);
        for id in 0..ROWS {
            insert_lazily(&db, &t, id, &text(id, 0)).expect("inserts");
        }
        let phase = |name: &str| {
            let most = most.swap(0, Ordering::Relaxed);
            println!("{name}: {} MiB at most", most / MIB);
            if most > LIMIT {
                beyond
                    .lock()
                    .expect("no panic")
                    .push(format!("{name}: {} MiB", most / MIB));
            }
            assert_eq!(
                db.clients().report().changes,
                0,
                "{name}: all is given back"
            );
        };
        phase("loading");
        one_run(&db, &t, &phase);
        many_inserts(&db, &t, &phase);
        open_transactions(&db, &t, &phase);
    });
    db.close().expect("closes");
    let beyond = beyond.into_inner().expect("no panic");
    assert!(
        beyond.is_empty(),
        "beyond the limit of {} MiB: {beyond:?}",
        LIMIT / MIB
    );
}

fn one_run(db: &Arc<Database>, t: &Arc<Table>, phase: &dyn Fn(&str)) {
    let before = contents(db, t);
    refused(update(db, t, 0..ROWS));
    phase("an update of all");
    let new = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        insert_rows(access, t, 10_000..10_400)
    }));
    refused(new);
    phase("an insert of 40 MB");
    assert_eq!(contents(db, t), before);
    // What fits is done, be the rows evicted or not, and others in the way or not.
    std::thread::scope(|scope| {
        for half in [0, ROWS / 2] {
            scope.spawn(move || {
                for first in (half..half + ROWS / 2).step_by(30) {
                    assert_eq!(update(db, t, first..first + 30).expect("3 MB"), 30);
                }
            });
        }
    });
    phase("updates of 3 MB");
    let mut expected = before;
    for (id, row) in &mut expected {
        let text = text(*id, 1);
        *row = (text.len(), text[..12].to_owned());
    }
    assert_eq!(contents(db, t), expected);
    let deleted = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        let mut deleted = 0;
        for id in 0..100 {
            deleted += i64::from(delete_in(access, t, id)?);
        }
        Ok(deleted)
    }));
    assert_eq!(deleted.expect("10 MB"), 100);
    phase("a delete of 10 MB");
    expected.retain(|id, _| *id >= 100);
    assert_eq!(contents(db, t), expected);
}

/// A transaction may insert more than memory has, and be rolled back.
fn many_inserts(db: &Arc<Database>, t: &Arc<Table>, phase: &dyn Fn(&str)) {
    let before = contents(db, t);
    let options = RunOptions::new();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    let insert = |txn: &mut Transaction, ids: std::ops::Range<i64>| {
        for first in ids.step_by(10) {
            let body = |access: &mut Access<'_>| insert_rows(access, t, first..first + 10);
            block_on(db.in_transaction(txn, &options, Scope::All, body)).expect("inserts");
        }
    };
    insert(&mut txn, 20_000..20_200);
    let savepoint = txn.savepoint(0).expect("a savepoint");
    insert(&mut txn, 30_000..31_000);
    block_on(txn.rollback_to(&savepoint)).expect("goes back");
    let held = db.clients().report().changes;
    assert!(
        held < 64 << 10,
        "{held} bytes of a transaction that holds little"
    );
    insert(&mut txn, 40_000..41_000);
    block_on(db.rollback(txn));
    phase("120 MB rolled back");
    assert_eq!(contents(db, t), before);
}

/// Transactions that have changed much stay open, beside each other.
fn open_transactions(db: &Arc<Database>, t: &Arc<Table>, phase: &dyn Fn(&str)) {
    let before = contents(db, t);
    let mut open = Vec::new();
    for first in [100, 200, 300, 400] {
        let account = db.clients().open();
        // The third waits in vain, the last loses patience.
        let deadline = (open.len() > 2).then(|| db.now() + Duration::from_millis(300));
        let options = RunOptions {
            deadline,
            ..charged_to(&account)
        };
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        let mut changed = 0;
        let last = loop {
            match update_in(&mut txn, db, &options, t, first + changed) {
                Ok(_) if changed < 25 => changed += 1,
                last => break last,
            }
        };
        let held = account.held(ChargeKind::Changes);
        // The image before, the new one here and twice in the log.
        let counted = changed as u64 * 4 * ROW_BYTES as u64;
        assert!(held >= counted, "{held} bytes are charged for {counted}");
        let all = db.clients().report().changes;
        assert!(all <= SHARE + SHARE / 4, "{all} of {SHARE}");
        open.push((txn, account, last, changed));
    }
    let ends: Vec<_> = open.iter().map(|o| o.2.as_ref().err()).collect();
    assert!(
        matches!(
            ends[..],
            [
                None,
                None,
                Some(Error::OutOfMemory(_)),
                Some(Error::Timeout)
            ]
        ),
        "{ends:?}"
    );
    let (mut first, account, ..) = open.remove(0);
    let held = account.held(ChargeKind::Changes);
    let savepoint = first.savepoint(0).expect("a savepoint");
    drop(open);
    for id in 130..140 {
        update_in(&mut first, db, &charged_to(&account), t, id).expect("there is room again");
    }
    assert!(account.held(ChargeKind::Changes) > held);
    block_on(first.rollback_to(&savepoint)).expect("goes back");
    assert!(account.held(ChargeKind::Changes) <= held + 4096);
    block_on(db.commit(first, &charged_to(&account))).expect("commits");
    assert_eq!(account.held(ChargeKind::Changes), 0);
    phase("four large transactions");
    let after = contents(db, t);
    let changed = after.iter().filter(|(id, row)| before[id] != **row);
    assert_eq!(changed.count(), 26);
}

#[test]
fn what_a_run_holds_is_charged_before_it_is_there() {
    let device = thermocline_device::SimulatedDevice::new();
    let db = open_alone(&device);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..40 {
        insert(&db, &t, id, &text(id, 0)).expect("inserts");
    }
    let account = db.clients().open();
    let options = charged_to(&account);
    let changed = block_on(db.one_shot(&options, Scope::All, |access| {
        for id in 0..40 {
            change_rows(access, &t, id..id + 1, 1)?;
            let counted = (id + 1) as u64 * 3 * ROW_BYTES as u64;
            let held = account.held(ChargeKind::Changes);
            assert!(held + (128 << 10) >= counted, "{held} of {counted}");
        }
        Ok(())
    }));
    changed.expect("there is room");
    assert_eq!(account.held(ChargeKind::Changes), 0);
    // What is small is nobody's.
    let small = block_on(db.one_shot(&options, scope(&t, 1), |access| {
        set_in(access, &t, 1, "small")?;
        Ok(account.held(ChargeKind::Changes))
    }));
    assert_eq!(small.expect("changes"), 0);
}
