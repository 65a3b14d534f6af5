//! Voter: who calls, and that no phone has more votes than it may.

use super::calls::{NOBODY, PHONES, area_code_of, phone, state_of};
use super::{Calls, Options, Voter};
use crate::workload::{self, Limit, Settings};

fn options(phones: Option<u64>, votes: u64) -> Options {
    Options {
        settings: Settings::default(),
        contestants: 6,
        votes_per_phone: 2,
        phones,
        votes,
    }
}

fn settings(directory: &std::path::Path) -> Settings {
    Settings {
        data_dir: directory.join("data"),
        memory_limit: Limit::Bytes(128 << 20),
        partitions: 4,
        asynchronous_commit: true,
        warmup: 0,
        seconds: 1,
        ..Settings::default()
    }
}

#[test]
fn each_phone_has_an_area_code_and_no_two_are_one() {
    let mut seen = std::collections::HashSet::new();
    for number in 0..10_000 {
        let phone = phone(number, 10_000);
        assert!(seen.insert(phone), "{phone} twice");
        assert_ne!(state_of(area_code_of(phone)), "XX");
    }
    assert_ne!(state_of(area_code_of(phone(PHONES - 1, PHONES))), "XX");
    assert_eq!(state_of(200), "XX");
}

#[test]
fn one_call_in_a_hundred_is_for_nobody_and_a_seed_repeats_all() {
    let calls = |seed| Calls::new(6, PHONES, 0, seed);
    let nobody = calls(1)
        .take(1_000_000)
        .filter(|vote| vote.contestant == NOBODY);
    let share = nobody.count() as f64 / 1e6;
    assert!((share - 0.01).abs() < 0.001, "{share}");
    let draw = |seed| calls(seed).take(500).collect::<Vec<_>>();
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
}

#[test]
fn votes_are_counted_and_those_beyond_the_limit_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let workload = Voter::new(&options(Some(300), 100)).expect("it can be run");
    for _ in 0..2 {
        let report = workload::measure(&workload, &settings(directory.path())).expect("it runs");
        assert_eq!(report.violations, Vec::<String>::new());
        let failures = &report.trials[0].kinds[0].expected_failures;
        let names: Vec<&str> = failures.keys().map(String::as_str).collect();
        assert_eq!(names, [super::INVALID, super::TOO_MANY]);
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    for wrong in [
        Options {
            contestants: 0,
            ..options(None, 0)
        },
        Options {
            votes_per_phone: 0,
            ..options(None, 0)
        },
        options(Some(0), 0),
        options(Some(10), 11),
    ] {
        assert!(Voter::new(&wrong).is_err(), "{wrong:?}");
    }
}
