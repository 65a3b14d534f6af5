//! SmallBank's mix, the sum of balances after a run, and a balance that was tampered with.

use thermocline_engine::{Procedure, RunOptions, block_on};
use thermocline_values::value::Value;

use super::draw::KINDS;
use super::{Callers, Options, SmallBank};
use crate::workload::cells::int_of;
use crate::workload::rows::Source;
use crate::workload::{self, Limit, Settings, Since, Tally, Workload};

fn options(customers: i64, hot: i64) -> Options {
    Options {
        settings: Settings::default(),
        customers,
        hot,
        hot_percent: 90,
    }
}

fn settings(directory: &std::path::Path) -> Settings {
    Settings {
        data_dir: directory.join("data"),
        memory_limit: Limit::Bytes(128 << 20),
        partitions: 4,
        asynchronous_commit: true,
        callers: 8,
        warmup: 0,
        seconds: 2,
        ..Settings::default()
    }
}

#[test]
fn a_million_transactions_have_the_mix_and_the_hot_customers() {
    const DRAWS: usize = 1_000_000;
    let mut counts = [0u64; 6];
    let mut hot = 0u64;
    for operation in Callers::new(100_000, 100, 90, 0, 1).take(DRAWS) {
        counts[operation.kind()] += 1;
        if let super::Operation::SendPayment { from, to } = operation {
            assert_ne!(from, to);
            hot += u64::from(from < 100 && to < 100);
        }
    }
    for (count, kind) in counts.iter().zip(KINDS) {
        let found = *count as f64 * 100.0 / DRAWS as f64;
        assert!((found - kind.percent).abs() < 0.5, "{}: {found}", kind.name);
    }
    let share = hot as f64 / counts[3] as f64;
    assert!((share - 0.9).abs() < 0.005, "{share}");
}

#[test]
fn the_same_seed_draws_the_same_operations() {
    let draw = |seed| {
        Callers::new(1000, 10, 50, 3, seed)
            .take(500)
            .collect::<Vec<_>>()
    };
    assert_eq!(draw(4), draw(4));
    assert_ne!(draw(4), draw(5));
}

#[test]
fn all_balances_sum_to_what_was_committed() {
    let directory = tempfile::tempdir().expect("a directory");
    // Few customers: they run out of money, checks overdraw.
    let workload = SmallBank::new(&options(40, 10)).expect("it can be run");
    let settings = settings(directory.path());
    for _ in 0..2 {
        let report = workload::measure(&workload, &settings).expect("it runs");
        assert_eq!(report.violations, Vec::<String>::new());
        assert!(report.trials[0].operations > 1000);
    }
}

#[test]
fn money_that_appeared_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let workload = SmallBank::new(&options(1000, 10)).expect("it can be run");
    let opened = workload::open(&workload, &settings(directory.path())).expect("it loads");
    let source = Source::Engine(&opened.db);
    let since = Since {
        baseline: block_on(workload.baseline(&source)).expect("it can be read"),
        tally: Tally::new(6).expect("valid bounds"),
    };
    let check = || block_on(workload.check(&source, false, Some(&since))).expect("it can be read");
    assert_eq!(check(), Vec::<String>::new());
    let tamper = Procedure::new("tamper", |call, _| {
        let savings = call.table("savings")?;
        if let Some(mut row) = call.get(&savings, &[Value::BigInt(7)])? {
            row.values[1] = Value::BigInt(int_of(&row.values[1]) + 1);
            call.update(&savings, &row)?;
        }
        Ok(Vec::new())
    });
    opened.db.register_procedure(tamper).expect("a new name");
    block_on(opened.db.call(&RunOptions::default(), "tamper", &[])).expect("it is called");
    assert_eq!(check().len(), 1);
}

#[test]
fn what_cannot_be_run_is_refused() {
    for wrong in [options(1, 1), options(10, 11), options(10, 1)] {
        assert!(SmallBank::new(&wrong).is_err(), "{wrong:?}");
    }
}
