//! A number of a sequence that somebody was told does not come again, whatever crashes.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{
    Change, Config, Database, Isolation, Result, RunOptions, SequenceDef, block_on,
};
use thermocline_values::types::DataType;

fn definition(db: &Database, name: &str, increment: i64) -> SequenceDef {
    SequenceDef {
        oid: db.allocate_oid(),
        schema: "public".into(),
        name: name.into(),
        data_type: DataType::BigInt,
        start: 1,
        increment,
        min: -1_000_000,
        max: 1_000_000,
        cache: 1,
        cycle: false,
        owned_by: None,
        restarted_by: 0,
    }
}

fn find(db: &Arc<Database>, name: &str) -> Option<Arc<SequenceDef>> {
    db.catalog().sequence_by_name("public", name).cloned()
}

/// `SELECT nextval(…)`, as a session runs it: the number is told when this returns.
fn next(db: &Arc<Database>, name: &str) -> Result<i64> {
    let def = find(db, name).expect("is there");
    let given = db.next_value(&def)?;
    block_on(db.wait_for_log(&RunOptions::default(), given.logged_to))?;
    Ok(given.value)
}

fn try_open(device: &SimulatedDevice) -> Result<Arc<Database>> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(2);
    config.background = false;
    config.log_segment_bytes = 64 << 10;
    Database::open(config)
}

/// What was told, in this order. Ends with the first error: the device has halted.
fn live(db: &Arc<Database>, told: &mut Vec<(&'static str, i64)>) -> Result<()> {
    for step in 0..30 {
        for (name, count) in [("up", 9), ("down", 2)] {
            for _ in 0..count {
                told.push((name, next(db, name)?));
            }
        }
        match step % 10 {
            3 => block_on(db.checkpoint())?,
            // In a transaction that is rolled back, and of a sequence that it makes.
            5 => {
                let mut txn = db.begin(Isolation::Serializable, false);
                let own = definition(db, "own", 1);
                let change = Change::CreateSequence(own.clone());
                block_on(db.ddl(&mut txn, &RunOptions::new(), change))?;
                for _ in 0..3 {
                    let given = db.next_value(&own)?;
                    block_on(db.wait_for_log(&RunOptions::default(), given.logged_to))?;
                }
                told.push(("up", next(db, "up")?));
                if step == 15 {
                    block_on(db.checkpoint())?;
                }
                block_on(db.rollback(txn));
            }
            // Other steps between numbers leave no gap in what is logged.
            7 => {
                let mut def = (*find(db, "down").expect("is there")).clone();
                def.increment -= 1;
                ddl(db, Change::AlterSequence(def))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn no_number_comes_again_after_a_crash_at_any_operation() {
    let whole = SimulatedDevice::new();
    let db = try_open(&whole).expect("opens");
    for (name, increment) in [("up", 1), ("down", -1)] {
        let def = definition(&db, name, increment);
        ddl(&db, Change::CreateSequence(def)).expect("is made");
    }
    drop(db);
    let begin = files_of(&whole);
    let mut told = Vec::new();
    let device = device_of(&begin);
    live(&try_open(&device).expect("opens"), &mut told).expect("nothing fails");
    let operations = device.operations();
    assert!(
        told.len() > 300 && operations > 100,
        "{operations} operations"
    );
    for halt in 0..operations {
        let device = device_of(&begin);
        device.halt_after(halt);
        let mut told = Vec::new();
        if let Ok(db) = try_open(&device) {
            let _ = live(&db, &mut told);
        }
        device.crash(halt);
        let db = try_open(&device).expect("opens again");
        for (name, ahead) in [("up", 1), ("down", -1)] {
            let last = told.iter().rev().find(|(of, _)| *of == name);
            let last = last.map_or(1 - ahead, |(_, value)| *value);
            let next = next(&db, name).expect("gives");
            assert!(
                (next - last) * ahead > 0,
                "{halt}: {next} of {name} after {last}"
            );
            // Not far, either: a batch, and another that was being logged.
            assert!((next - last).abs() < 70 * 4, "{halt}: {next} after {last}");
        }
    }
}

/// What a transaction has made and counted with is its own until it commits; then it counts on.
#[test]
fn a_sequence_that_was_used_before_its_commit_goes_on_after_a_crash() {
    for checkpoint in [false, true] {
        let device = SimulatedDevice::new();
        let db = try_open(&device).expect("opens");
        let mut txn = db.begin(Isolation::Serializable, false);
        let def = definition(&db, "s", 1);
        let change = Change::CreateSequence(def.clone());
        block_on(db.ddl(&mut txn, &RunOptions::new(), change)).expect("is made");
        for _ in 0..5 {
            let _ = db.next_value(&def).expect("gives");
        }
        if checkpoint {
            block_on(db.checkpoint()).expect("checkpoints");
        }
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        device.crash(1);
        let db = try_open(&device).expect("opens");
        assert!(next(&db, "s").expect("gives") > 5);
    }
}

#[test]
fn what_was_set_and_what_began_again_outlive_a_crash() {
    for checkpoint in [false, true] {
        let device = SimulatedDevice::new();
        let db = try_open(&device).expect("opens");
        let t = make_table(&db, "t", IndexKind::Hash);
        let mut def = definition(&db, "s", 1);
        def.owned_by = Some((t.def.oid, 0));
        ddl(&db, Change::CreateSequence(def.clone())).expect("is made");
        for _ in 0..100 {
            next(&db, "s").expect("gives");
        }
        let restart = Change::Truncate {
            tables: vec![t.def.oid],
            restart_identity: true,
        };
        ddl(&db, restart).expect("truncates");
        if checkpoint {
            block_on(db.checkpoint()).expect("checkpoints");
        }
        device.crash(2);
        let db = try_open(&device).expect("opens");
        assert_eq!(next(&db, "s").expect("gives"), 1);
        let logged_to = db.set_value(&def, 500, true).expect("sets");
        block_on(db.wait_for_log(&RunOptions::default(), logged_to)).expect("is durable");
        if checkpoint {
            block_on(db.checkpoint()).expect("checkpoints");
        }
        device.crash(3);
        let db = try_open(&device).expect("opens");
        assert_eq!(next(&db, "s").expect("gives"), 501);
    }
}

#[test]
fn a_sequence_that_a_crash_cut_off_leaves_nothing_to_the_next_one() {
    let device = SimulatedDevice::new();
    let db = try_open(&device).expect("opens");
    let mut txn = db.begin(Isolation::Serializable, false);
    let own = definition(&db, "own", 1);
    let change = Change::CreateSequence(own.clone());
    block_on(db.ddl(&mut txn, &RunOptions::new(), change)).expect("is made");
    let given = db.next_value(&own).expect("a number");
    block_on(db.wait_for_log(&RunOptions::default(), given.logged_to)).expect("is durable");
    device.crash(1);
    drop((txn, db));
    // Made anew; the log still has what is of the first.
    let db = try_open(&device).expect("opens again");
    let down = definition(&db, "down", -1);
    assert_ne!(down.oid, own.oid);
    ddl(&db, Change::CreateSequence(down)).expect("is made");
    device.crash(2);
    drop(db);
    let db = try_open(&device).expect("opens once more");
    assert_eq!(next(&db, "down").expect("a number"), 1);
    assert_eq!(next(&db, "down").expect("a number"), 0);
}

/// A sequence begins again in a transaction, which then takes values of it. What rows have that
/// are there after a crash does not come again, whether that transaction is there or not. So it
/// is where it came beyond what was logged before.
#[test]
fn what_a_restart_gave_does_not_meet_rows_after_a_crash_at_any_operation() {
    for taken in [3, 100] {
        let whole = SimulatedDevice::new();
        let db = try_open(&whole).expect("opens");
        let t = make_table(&db, "t", IndexKind::Hash);
        let mut def = definition(&db, "s", 1);
        def.owned_by = Some((t.def.oid, 0));
        ddl(&db, Change::CreateSequence(def)).expect("is made");
        for _ in 0..20 {
            let id = next(&db, "s").expect("gives");
            insert(&db, &t, id, "before").expect("inserts");
        }
        drop((t, db));
        let begin = files_of(&whole);
        let change = |device: &SimulatedDevice| -> Result<()> {
            let db = try_open(device)?;
            let mut txn = db.begin(Isolation::Serializable, false);
            let restart = Change::Truncate {
                tables: vec![table(&db, "t").def.oid],
                restart_identity: true,
            };
            block_on(db.ddl(&mut txn, &RunOptions::new(), restart))?;
            let t = seen_by(&txn);
            let others = find(&db, "s").expect("is there");
            let def = txn.catalog().sequences[&others.oid].clone();
            for wanted in 1..=taken {
                let id = db.next_value(&def)?.value;
                assert_eq!(id, wanted, "it begins again at once");
                let other = db.next_value(&others)?.value;
                assert!(other > 20, "for others it goes on: {other}");
                let row = tuple(&t, id, "in it");
                in_txn(&mut txn, &db, |access| access.insert(&t, &row).map(drop))?;
            }
            block_on(db.commit(txn, &RunOptions::new()))?;
            Ok(())
        };
        let device = device_of(&begin);
        change(&device).expect("nothing fails");
        for halt in 0..=device.operations() {
            let device = device_of(&begin);
            device.halt_after(halt);
            let is_done = change(&device).is_ok();
            device.crash(halt);
            let db = try_open(&device).expect("opens again");
            let rows = all(&db, &table(&db, "t"));
            assert!(
                !is_done || rows.len() == taken as usize,
                "{halt}: {}",
                rows.len()
            );
            let next = next(&db, "s").expect("gives");
            let last = rows.last_key_value().map_or(0, |(id, _)| *id);
            assert!(next > last, "{halt}: {next} after {last}");
        }
    }
}
