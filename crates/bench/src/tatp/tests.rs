//! TATP's mix, its expected failures, and a run in this process.

use super::draw::KINDS;
use super::{Callers, Operation, Options, Tatp};
use crate::workload::chance::nurand_law;
use crate::workload::{self, Limit, Settings};

fn workload(subscribers: i64) -> Tatp {
    let options = Options {
        settings: Settings::default(),
        subscribers,
        non_uniform: false,
    };
    Tatp::new(&options).expect("it can be run")
}

#[test]
fn a_million_transactions_have_the_mix_of_the_specification() {
    const DRAWS: usize = 1_000_000;
    let mut counts = [0u64; 7];
    for operation in Callers::new(100_000, false, 0, 1).take(DRAWS) {
        counts[operation.kind()] += 1;
    }
    for (count, kind) in counts.iter().zip(KINDS) {
        let found = *count as f64 * 100.0 / DRAWS as f64;
        assert!((found - kind.percent).abs() < 0.5, "{}: {found}", kind.name);
    }
}

#[test]
fn the_same_seed_draws_the_same_operations() {
    let draw = |caller, seed| -> Vec<Operation> {
        Callers::new(1000, true, caller, seed).take(500).collect()
    };
    assert_eq!(draw(1, 4), draw(1, 4));
    assert_ne!(draw(1, 4), draw(1, 5));
    assert_ne!(draw(1, 4), draw(2, 4));
}

/// The hottest hundredth of subscribers by the law, and as they are drawn.
#[test]
fn subscribers_are_uniform_unless_the_other_law_is_asked_for() {
    const SUBSCRIBERS: i64 = 3000;
    const DRAWS: usize = 300_000;
    let share_of = |non_uniform, hottest: &dyn Fn(i64) -> bool| {
        let mut callers = Callers::new(SUBSCRIBERS, non_uniform, 0, 3);
        let hits = (0..DRAWS).filter(|_| hottest(callers.subscriber())).count();
        hits as f64 / DRAWS as f64
    };
    // With A of 65 535 and so few subscribers the law is counted out for a smaller A of its form.
    let (law, _) = nurand_law(4095, 1, SUBSCRIBERS, 0);
    assert!(law.iter().max() > law.iter().min());
    let tenth = |id: i64| id <= SUBSCRIBERS / 10;
    let uniform = share_of(false, &tenth);
    assert!((uniform - 0.1).abs() < 0.005, "{uniform}");
    let other = share_of(true, &tenth);
    assert!((other - 0.1).abs() > 0.005, "{other}");
}

/// The share of `get_new_destination` that finds one, counted out over all rows and inputs: the
/// facility is there and active, and of 0 to 3 forwardings one has begun and not ended.
fn share_with_a_destination() -> f64 {
    let (mut found, mut all) = (0.0, 0.0);
    for chosen in 0..8u32 {
        // The number of forwardings is chosen first, then which.
        let weight = match chosen.count_ones() {
            0 | 3 => 1.0,
            _ => 1.0 / 3.0,
        };
        for start in [0, 8, 16] {
            for end in 1..=24 {
                let misses = [0, 8, 16].iter().enumerate().map(|(place, begun)| {
                    let open = (1..=8).filter(|hours| end < begun + hours).count() as f64 / 8.0;
                    match chosen >> place & 1 == 1 && *begun <= start {
                        true => 1.0 - open,
                        false => 1.0,
                    }
                });
                found += weight * (1.0 - misses.product::<f64>());
                all += weight;
            }
        }
    }
    0.625 * 0.85 * found / all
}

#[test]
fn a_run_fails_as_often_as_expected_and_in_no_other_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        data_dir: directory.path().join("data"),
        memory_limit: Limit::Bytes(128 << 20),
        partitions: 4,
        asynchronous_commit: true,
        callers: 4,
        warmup: 0,
        seconds: 2,
        ..Settings::default()
    };
    let report = workload::measure(&workload(5000), &settings).expect("it runs");
    assert_eq!(report.violations, Vec::<String>::new());
    let kinds = &report.trials[0].kinds;
    let success = |kind: usize| {
        let kind = &kinds[kind];
        let failed: u64 = kind.expected_failures.values().sum();
        assert!(kind.done + failed > 100, "{kind:?}");
        kind.done as f64 / (kind.done + failed) as f64
    };
    assert_eq!((success(0), success(4)), (1.0, 1.0));
    let near = |kind: usize, share: f64| {
        let found = success(kind);
        assert!(
            (found - share).abs() < 0.06,
            "{}: {found}",
            kinds[kind].name
        );
    };
    near(1, share_with_a_destination());
    near(2, 0.625);
    near(3, 0.625);
    near(5, 0.3125);
    near(6, 0.3125);
    let again = workload::measure(&workload(5000), &settings).expect("it runs again");
    assert_eq!(again.load_s, None);
    assert_eq!(again.violations, Vec::<String>::new());
}

#[test]
fn no_subscribers_are_refused() {
    let options = Options {
        settings: Settings::default(),
        subscribers: 0,
        non_uniform: false,
    };
    assert!(Tatp::new(&options).is_err());
}
