//! Whether policies do what their names promise, on small traces.

use clap::{Parser, ValueEnum};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

fn small() -> Options {
    Options {
        tuples: 20_000,
        ..Options::default()
    }
}

/// A trace as short as may be.
fn short() -> Options {
    Options {
        accesses: 5,
        ..small()
    }
}

/// Miss shares by policy and column.
fn shares(options: &Options, policies: &[Policy], trace: Trace) -> Vec<Vec<f64>> {
    let bar = ProgressBar::hidden();
    let shares = measure(options, trace, policies, &bar).expect("a trace");
    let columns = |row: &Vec<Option<Shares>>| {
        let column = |shares: &Option<Shares>| shares.expect("measured").misses;
        row.iter().map(column).collect()
    };
    shares.iter().map(columns).collect()
}

fn real_policies() -> impl Iterator<Item = Policy> {
    let all = Policy::value_variants().iter().copied();
    all.filter(|policy| *policy != Policy::Best)
}

#[test]
fn the_command_lines_defaults_are_the_structs() {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }
    let line = Line::try_parse_from(["identification"]).expect("no argument is needed");
    assert_eq!(line.options, Options::default());
    let line = [
        "identification",
        "--trace",
        "zipf-0.5,scan",
        "--policy",
        "s3fifo",
    ];
    let line = Line::try_parse_from(line).expect("names");
    assert_eq!(line.options.trace, [Trace::Zipf050, Trace::Scan]);
    assert_eq!(line.options.policy, [Policy::S3Fifo]);
}

#[test]
fn names_are_the_same_everywhere() {
    for policy in Policy::value_variants() {
        let option = policy.to_possible_value().expect("not hidden");
        let json = serde_json::to_value(policy).expect("a string");
        assert_eq!(option.get_name(), policy.name());
        assert_eq!(json, policy.name());
    }
    for trace in Trace::value_variants() {
        let option = trace.to_possible_value().expect("not hidden");
        let json = serde_json::to_value(trace).expect("a string");
        assert_eq!(json, option.get_name());
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    for wrong in [
        Options {
            memory: 0.0,
            ..small()
        },
        Options {
            memory: f64::NAN,
            ..small()
        },
        Options {
            tuples: 100,
            ..small()
        },
        Options {
            tuples: 1 << 31,
            ..small()
        },
        Options {
            accesses: 1,
            ..small()
        },
        Options {
            sample: 1.5,
            ..small()
        },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    assert!(Options::default().check().is_ok());
}

/// Accesses and inserts at random, in turns of few and of many tuples, so that every
/// policy has to evict what it holds dear.
#[test]
fn memory_is_never_exceeded_and_used() {
    for capacity in [2, 7, 100, 1000] {
        let options = Options {
            tuples: 4000,
            memory: capacity as f64 / 4000.0,
            ..Options::default()
        };
        for policy in real_policies() {
            let mut random = StdRng::seed_from_u64(7);
            let mut choice = options
                .choice(policy, Trace::OrderLines)
                .expect("a real one");
            let mut tuples = 4000;
            for step in 0..60_000 {
                let most = if step / 10_000 % 2 == 0 { tuples } else { 300 };
                if random.random_bool(0.05) {
                    choice.insert(tuples);
                    tuples += 1;
                } else {
                    choice.access(random.random_range(0..most));
                }
                assert!(choice.hot() <= capacity, "{policy:?}, {capacity}");
            }
            assert!(choice.hot() * 10 >= capacity * 9, "{policy:?}, {capacity}");
        }
    }
}

#[test]
fn the_chain_of_lru_is_the_naive_one() {
    for seed in 0..50 {
        let mut random = StdRng::seed_from_u64(seed);
        let capacity = random.random_range(1..20);
        let mut tuples = 30;
        let mut lru = Driven::new(Identification::Lru, tuples as usize, capacity);
        let mut sampled = Driven::sampled_lru(tuples as usize, capacity, 1.0);
        // The last used one is the last.
        let mut naive: Vec<u32> = Vec::new();
        for _ in 0..2000 {
            let inserts = random.random_bool(0.02);
            let tuple = if inserts {
                tuples
            } else {
                random.random_range(0..tuples)
            };
            let hit = naive.contains(&tuple);
            naive.retain(|other| *other != tuple);
            naive.push(tuple);
            if naive.len() > capacity {
                naive.remove(0);
            }
            if inserts {
                tuples += 1;
                lru.insert(tuple);
                sampled.insert(tuple);
            } else {
                assert_eq!(lru.access(tuple), hit, "seed {seed}");
                assert_eq!(sampled.access(tuple), hit, "seed {seed}");
            }
            assert_eq!(lru.hot(), naive.len());
        }
    }
}

#[test]
fn what_was_just_inserted_is_a_hit() {
    let options = short();
    for policy in real_policies() {
        let mut choice = options
            .choice(policy, Trace::OrderLines)
            .expect("a real one");
        let mut inserted = options.tuples as u32;
        let mut number = 0;
        let run = Trace::Zipf100.run(&options.shape(), &mut |event| {
            if let Event::Access(tuple) = event {
                choice.access(tuple);
            }
            number += 1;
            if number % 10 == 0 {
                choice.insert(inserted);
                assert!(choice.access(inserted), "{policy:?}");
                inserted += 1;
            }
        });
        run.expect("a trace");
    }
}

#[test]
fn temperature_is_near_the_best_choice_under_zipfs_law() {
    let policies = [
        Policy::Best,
        Policy::Temperature,
        Policy::Lru,
        Policy::Clock,
        Policy::S3Fifo,
    ];
    let shares = shares(&small(), &policies, Trace::Zipf100);
    let temperature = shares[1][0];
    assert!(temperature < shares[0][0] * 1.15, "{shares:?}");
    assert!(
        shares[2..].iter().all(|other| temperature < other[0]),
        "{shares:?}"
    );
}

/// A tenth of all uses tells enough of how frequent they are.
#[test]
fn offline_is_near_the_best_choice_under_zipfs_law() {
    let policies = [Policy::Best, Policy::Offline, Policy::Lru];
    let shares = shares(&small(), &policies, Trace::Zipf100);
    assert!(shares[1][0] < shares[0][0] * 1.15, "{shares:?}");
    assert!(shares[1][0] < shares[2][0] * 0.85, "{shares:?}");
}

#[test]
fn no_policy_is_better_than_the_best() {
    let mut policies = vec![Policy::Best];
    policies.extend(real_policies());
    for trace in [Trace::Zipf050, Trace::Zipf125, Trace::Latest] {
        let shares = shares(&short(), &policies, trace);
        let best = shares[0][0];
        assert!(
            shares.iter().all(|share| share[0] > best * 0.99),
            "{trace:?}: {shares:?}"
        );
    }
}

#[test]
fn temperature_follows_a_hot_set_that_moves() {
    let passes = shares(&small(), &[Policy::Temperature], Trace::Shift).remove(0);
    assert!(passes[0] > 0.8, "it has moved: {passes:?}");
    assert!(passes[2] < 0.15 && passes[3] < 0.15, "{passes:?}");
}

/// A load leaves the last tuples in memory, which are no better than others.
#[test]
fn after_a_load_temperature_learns_as_quickly_as_lru() {
    for trace in [Trace::Load075, Trace::Load100] {
        let shares = shares(&small(), &[Policy::Temperature, Policy::Lru], trace);
        for (temperature, lru) in shares[0].iter().zip(&shares[1]) {
            assert!(*temperature < lru * 1.1, "{trace:?}: {shares:?}");
        }
        let end = shares[0].len() - 1;
        assert!(shares[0][end] < shares[1][end] * 0.85, "{shares:?}");
    }
}

/// Under uniform use all tuples are alike: letting one in is work for nothing.
#[test]
fn learning_ends_where_there_is_nothing_to_learn() {
    let options = small();
    let mut choice = Driven::new(
        Identification::Temperature,
        options.tuples,
        options.capacity(),
    );
    for tuple in 0..options.tuples as u32 {
        choice.insert(tuple);
    }
    let mut random = StdRng::seed_from_u64(7);
    let mut admitted_share = |passes: usize| {
        let accesses = passes * options.capacity();
        let mut admitted = 0;
        for _ in 0..accesses {
            let tuple = random.random_range(0..options.tuples as u32);
            admitted += usize::from(!choice.access(tuple) && choice.is_hot(tuple));
        }
        admitted as f64 / accesses as f64
    };
    assert!(admitted_share(2) > 0.8, "what is used comes in at first");
    admitted_share(8);
    assert!(admitted_share(50) < 0.1);
}

#[test]
fn a_scan_does_not_drive_out_what_is_warm() {
    let shares = shares(&small(), &[Policy::Temperature, Policy::Lru], Trace::Scan);
    let cost = |row: &Vec<f64>| row[1] - row[0];
    assert!(cost(&shares[0]) < 0.02, "{shares:?}");
    assert!(cost(&shares[1]) > 0.02, "the scan is one: {shares:?}");
}

#[test]
fn a_load_is_followed_by_all_its_columns() {
    let options = small();
    for trace in [Trace::Load075, Trace::Load100] {
        let columns = trace.columns().len();
        let (mut inserts, mut accesses) = (0, vec![0; columns]);
        let mut column = None;
        let run = trace.run(&options.shape(), &mut |event| match event {
            Event::Insert(tuple) => {
                assert_eq!((tuple, column), (inserts, None));
                inserts += 1;
            }
            Event::Access(_) => {
                if let Some(column) = column {
                    accesses[column] += 1;
                }
            }
            Event::Measure(now) => column = now,
        });
        run.expect("a trace");
        assert_eq!(inserts as usize, options.tuples);
        let passes = |passes: usize| passes * options.capacity();
        let end = options.tuples * 5;
        assert_eq!(
            accesses,
            [passes(2), passes(3), passes(5), passes(10), end],
            "{trace:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let other = Options { seed: 2, ..short() };
    for trace in [Trace::Latest, Trace::OrderLines] {
        let once = shares(&short(), &[Policy::Alru], trace);
        assert_eq!(once, shares(&short(), &[Policy::Alru], trace));
        assert_ne!(once, shares(&other, &[Policy::Alru], trace));
    }
}

#[test]
fn the_table_has_a_row_for_each_policy_and_dashes_for_what_is_not_known() {
    let options = Options {
        trace: vec![Trace::Uniform, Trace::OrderLines],
        policy: vec![Policy::Best, Policy::Fifo],
        ..short()
    };
    let report = compare(&options).expect("a report");
    let text = report.to_string();
    let rows: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(rows[0], "| policy | bytes | uniform | order lines |");
    assert!(rows[2].starts_with("| `best` | – | 87."), "{text}");
    assert!(rows[2].ends_with("| – |"), "{text}");
    assert!(rows[3].starts_with("| `fifo` | 0.00 | 87."), "{text}");
    assert!(rows[3].contains("(+0)"), "{text}");
    // Whatever misses comes in.
    let admitted = text.lines().find(|line| line.starts_with("| let in"));
    assert_eq!(admitted, Some("| let in | uniform | order lines |"));
    assert!(text.contains("\n| `best` | 0.0 | – |"), "{text}");
    assert!(text.contains("\n| `fifo` | 87."), "{text}");
}
