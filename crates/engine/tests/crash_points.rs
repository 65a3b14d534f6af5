//! Every point, not a sample: a fixed script crosses inserts, updates, deletes,
//! a transaction over partitions, checkpoints, log rotation and a definition;
//! the device halts after each of its operations in turn and the process is
//! gone. After recovery the rows must be those of the script up to the last
//! step that was acknowledged, or one step further, and nothing by half.
//! Recovery itself is halted too, and done again.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{
    Change, Config, Database, Error, Isolation, Result, RunOptions, block_on,
};

type Rows = BTreeMap<i64, String>;

/// No other test shares this process's memory limit.
const LIMIT: u64 = 8 << 30;

fn try_open(device: &SimulatedDevice) -> Result<Arc<Database>> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(LIMIT).partitions(2);
    // Without threads every device operation is the script's own, so that the
    // same number halts at the same place.
    config.background = false;
    config.log_segment_bytes = 64 << 10;
    Database::open(config)
}

fn value(step: i64) -> String {
    format!("{step}:{}", "v".repeat(200 + (step * 37 % 900) as usize))
}

/// The steps of the script: each changes `rows` as it changes the database.
fn step(db: &Arc<Database>, number: i64, rows: &mut Rows) -> Result<()> {
    let t = || {
        db.catalog()
            .table_by_name("public", "t")
            .cloned()
            .ok_or_else(|| Error::Internal("the table is not there".into()))
    };
    match number {
        20 | 45 => block_on(db.checkpoint()),
        30 => {
            // One transaction over all partitions.
            let t = t()?;
            let mut txn = db.begin(Isolation::Serializable, false);
            let new: Vec<Vec<u8>> = (100..110).map(|id| tuple(&t, id, &value(id))).collect();
            in_txn(&mut txn, db, |access| {
                for tuple in &new {
                    access.insert(&t, tuple)?;
                }
                for id in 0..5 {
                    set_in(access, &t, id, "changed together")?;
                }
                delete_in(access, &t, 7)?;
                Ok(())
            })?;
            block_on(db.commit(txn, &RunOptions::new()))?;
            for id in 100..110 {
                rows.insert(id, value(id));
            }
            for (_, row) in rows.range_mut(0..5) {
                *row = "changed together".into();
            }
            rows.remove(&7);
            Ok(())
        }
        55 => {
            let change = Change::Truncate {
                tables: vec![t()?.def.oid],
                restart_identity: false,
            };
            ddl(db, change)?;
            rows.clear();
            Ok(())
        }
        n if n % 5 == 4 => {
            set(db, &*t()?, n - 3, &value(n))?;
            if let Some(row) = rows.get_mut(&(n - 3)) {
                *row = value(n);
            }
            Ok(())
        }
        n if n % 11 == 10 => {
            delete(db, &*t()?, n - 5)?;
            rows.remove(&(n - 5));
            Ok(())
        }
        n => {
            insert(db, &*t()?, n, &value(n))?;
            rows.insert(n, value(n));
            Ok(())
        }
    }
}

const STEPS: i64 = 64;

/// Runs the script until the device halts. The states after each step that was
/// acknowledged, and the one that was under way.
fn run(device: &SimulatedDevice) -> (Vec<Rows>, bool) {
    let mut states = Vec::new();
    let Ok(db) = try_open(device) else {
        return (states, false);
    };
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        make_table(&db, "t", IndexKind::Hash)
    }));
    if made.is_err() {
        return (states, false);
    }
    let mut rows = Rows::new();
    states.push(rows.clone());
    for number in 0..STEPS {
        if step(&db, number, &mut rows).is_err() {
            return (states, false);
        }
        states.push(rows.clone());
    }
    (states, true)
}

/// What the script would have made of it, one step further than acknowledged.
fn one_further(states: &[Rows]) -> Option<Rows> {
    let device = SimulatedDevice::new();
    let db = try_open(&device).ok()?;
    make_table(&db, "t", IndexKind::Hash);
    let mut rows = Rows::new();
    for number in 0..states.len() as i64 {
        if number >= STEPS {
            return None;
        }
        step(&db, number, &mut rows).ok()?;
    }
    Some(rows)
}

#[test]
fn a_halt_after_any_device_operation_loses_nothing_acknowledged() {
    std::panic::set_hook(Box::new(|_| {}));
    let whole = SimulatedDevice::new();
    let (states, finished) = run(&whole);
    assert!(finished);
    assert_eq!(states.len() as i64, STEPS + 1);
    let operations = whole.operations();
    let _ = std::panic::take_hook();
    assert!(
        operations > 200,
        "{operations} operations are too few a script"
    );
    let mut halted = 0;
    for halt in 0..operations {
        let device = SimulatedDevice::new();
        device.halt_after(halt);
        std::panic::set_hook(Box::new(|_| {}));
        let (states, finished) = run(&device);
        let _ = std::panic::take_hook();
        assert!(!finished, "the device halts after {halt} operations");
        halted += 1;
        device.crash(halt);
        if halt % 3 == 0 {
            // The first recovery does not get far either.
            device.halt_after(halt % 40);
            drop(try_open(&device));
            device.crash(halt + 1);
        }
        let db = match try_open(&device) {
            Ok(db) => db,
            Err(error) => panic!("halt {halt}: recovery failed: {error}"),
        };
        let found = db.catalog().table_by_name("public", "t").cloned();
        let Some(t) = found else {
            assert!(states.is_empty(), "halt {halt}: the table is lost");
            continue;
        };
        let rows = all(&db, &t);
        let acknowledged = states.last().cloned().unwrap_or_default();
        if rows != acknowledged {
            let further = one_further(&states).unwrap_or_default();
            let keys = |rows: &Rows| rows.keys().copied().collect::<Vec<_>>();
            assert!(
                rows == further,
                "halt {halt}, {} steps acknowledged: found {:?}, not {:?} nor {:?}",
                states.len() as i64 - 1,
                keys(&rows),
                keys(&acknowledged),
                keys(&further)
            );
        }
        for (id, value) in &rows {
            let found = get(&db, &t, *id);
            assert_eq!(
                found.ok().flatten().as_ref(),
                Some(value),
                "halt {halt}: row {id}"
            );
        }
    }
    println!("{halted} crash points of {operations} device operations");
}
