//! YCSB's mixes, the law of its keys, and runs in this process.

use super::draw::{self, kinds};
use super::{Callers, Mix, Operation, Options, YcsbCore};
use crate::workload::{self, Checks, Limit, Settings};

const MIXES: [Mix; 7] = [
    Mix::A,
    Mix::B,
    Mix::C,
    Mix::D,
    Mix::E,
    Mix::F,
    Mix::ReadHeavy,
];

fn options(mix: Mix, rows: u64, zipf: f64) -> Options {
    Options {
        mix,
        settings: Settings::default(),
        rows,
        one_payload: false,
        row_bytes: 1000,
        zipf,
    }
}

#[test]
fn a_million_operations_of_each_mix_have_its_shares() {
    const DRAWS: usize = 1_000_000;
    for mix in MIXES {
        let mut counts = [0u64; 5];
        for operation in Callers::new(mix, 100_000, 0.99, (0, 1), 1).take(DRAWS) {
            counts[operation.kind()] += 1;
        }
        for (count, kind) in counts.iter().zip(kinds(mix)) {
            let found = *count as f64 * 100.0 / DRAWS as f64;
            assert!(
                (found - kind.percent).abs() < 0.5,
                "{mix:?} {}: {found}",
                kind.name
            );
        }
    }
}

fn hottest_tenth(rows: u64, zipf: f64, draws: usize) -> f64 {
    let reads = Callers::new(Mix::C, rows, zipf, (0, 1), 5).take(draws);
    let hot = reads.filter(|operation| match operation {
        Operation::Read { number } => *number < rows / 10,
        _ => false,
    });
    hot.count() as f64 / draws as f64
}

/// By the sums of the law itself: the hottest tenth of ten million keys gets 86 of 100 accesses
/// at an exponent of 1 (1 / rank, the first million by all ten).
#[test]
fn the_hottest_tenth_gets_what_zipfs_law_gives_it() {
    for (rows, zipf) in [
        (10_000_000, 1.0),
        (100_000, 0.0),
        (100_000, 0.5),
        (100_000, 0.99),
        (100_000, 1.25),
        (100_000, 1.5),
    ] {
        let sum = |to: u64| -> f64 { (1..=to).map(|rank| (rank as f64).powf(-zipf)).sum() };
        let expected = sum(rows / 10) / sum(rows);
        let found = hottest_tenth(rows, zipf, 1_000_000);
        assert!(
            (found - expected).abs() < 0.002,
            "{zipf}: {found}, not {expected}"
        );
        if rows == 10_000_000 {
            assert!((found - 0.862).abs() < 0.002, "{found}");
        }
    }
}

#[test]
fn the_latest_rows_are_read_most_and_each_caller_has_its_own() {
    let callers = |caller| Callers::new(Mix::D, 1000, 0.99, (caller, 2), 3).take(50_000);
    let (mut inserted, mut own, mut reads) = (std::collections::HashSet::new(), 0, 0);
    for operation in callers(0) {
        match operation {
            Operation::Insert { number, .. } => assert!(inserted.insert(number)),
            Operation::Read { number } => {
                reads += 1;
                own += u64::from(inserted.contains(&number));
                assert!(number < 1000 || inserted.contains(&number), "not there yet");
            }
            _ => panic!("not of this mix"),
        }
    }
    assert!(own * 2 > reads, "{own} of {reads} are of what was inserted");
    for operation in callers(1) {
        if let Operation::Insert { number, .. } = operation {
            assert!(inserted.insert(number), "two callers insert {number}");
        }
    }
}

#[test]
fn the_same_seed_draws_the_same_operations() {
    let draw = |seed| -> Vec<Operation> {
        let callers = Callers::new(Mix::E, 1000, 1.2, (0, 4), seed);
        callers.take(500).collect()
    };
    assert_eq!(draw(4), draw(4));
    assert_ne!(draw(4), draw(5));
    assert_eq!(draw::text(7, 100).len(), 100);
}

#[test]
fn each_mix_runs_and_no_row_is_lost() {
    for one_payload in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        for (seed, mix) in (1..).zip(MIXES) {
            let settings = Settings {
                data_dir: directory.path().join("data"),
                memory_limit: Limit::Bytes(256 << 20),
                partitions: 4,
                asynchronous_commit: true,
                warmup: 0,
                seconds: 1,
                seed,
                check: Checks::All,
                ..Settings::default()
            };
            let options = Options {
                one_payload,
                ..options(mix, 2000, 0.99)
            };
            let workload = YcsbCore::new(&options).expect("it can be run");
            let report = workload::measure(&workload, &settings).expect("it runs");
            assert_eq!(report.violations, Vec::<String>::new(), "{mix:?}");
            assert!(report.trials[0].operations > 0, "{mix:?}");
            assert_eq!(report.load_s.is_some(), mix == Mix::A, "{mix:?}");
        }
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    for wrong in [
        options(Mix::A, 0, 0.99),
        options(Mix::A, 1000, -0.1),
        options(Mix::A, 1000, 1.6),
        options(Mix::A, 1000, f64::NAN),
    ] {
        assert!(YcsbCore::new(&wrong).is_err(), "{wrong:?}");
    }
}
