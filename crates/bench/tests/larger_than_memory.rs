//! Workloads in this process with a limit below their data: rows leave memory and come back
//! while transactions run, and the data holds. The limit is of a process's memory: each workload
//! has a process of its own.

use std::process::Command;

use thermocline_bench::tatp::{self, Tatp};
use thermocline_bench::tpcc::{self, Tpcc};
use thermocline_bench::voter::{self, Voter};
use thermocline_bench::workload::{self, Checks, Limit, Settings, Workload};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn holds<W: Workload>(workload: &W, limit_bytes: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        data_dir: directory.path().join("data"),
        memory_limit: Limit::Bytes(limit_bytes),
        asynchronous_commit: true,
        warmup: 0,
        seconds: 3,
        check: Checks::All,
        ..Settings::default()
    };
    let report = workload::measure(workload, &settings);
    let report = report.unwrap_or_else(|error| panic!("{}: {error}", workload.name()));
    assert_eq!(report.violations, Vec::<String>::new(), "{report}");
    let trial = &report.trials[0];
    assert!(trial.misses > Some(0), "nothing was read back: {report}");
    assert!(
        trial
            .seconds
            .iter()
            .all(|second| second.evictions.is_some())
    );
}

/// Which workload a process of its own is to run.
const WORKLOAD: &str = "LARGER_THAN_MEMORY";

#[test]
fn data_of_more_than_memory_holds_every_condition() {
    match std::env::var(WORKLOAD) {
        Ok(workload) => run(&workload),
        Err(_) => ["voter", "tatp", "tpcc"].into_iter().for_each(run_apart),
    }
}

fn run_apart(workload: &str) {
    let own = std::env::current_exe().expect("its own path");
    let test = ["--exact", "data_of_more_than_memory_holds_every_condition"];
    let ended = Command::new(own)
        .args(test)
        .env(WORKLOAD, workload)
        .output();
    let ended = ended.expect("it can be started");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{workload}: {said}");
    assert!(said.contains("1 passed"), "{workload}: {said}");
}

fn run(workload: &str) {
    let settings = Settings::default();
    match workload {
        "voter" => {
            let options = voter::Options {
                settings,
                contestants: 6,
                votes_per_phone: 2,
                phones: Some(900_000),
                votes: 900_000,
            };
            holds(&Voter::new(&options).expect("it can be run"), 80 << 20);
        }
        "tatp" => {
            let options = tatp::Options {
                settings,
                subscribers: 120_000,
                non_uniform: false,
            };
            holds(&Tatp::new(&options).expect("it can be run"), 96 << 20);
        }
        _ => {
            let options = tpcc::Options {
                settings,
                warehouses: 1,
                single_warehouse: true,
                papers_tables: false,
                items: 100_000,
                customers: 3000,
            };
            holds(
                &Tpcc::new(&options).expect("by the specification"),
                80 << 20,
            );
        }
    }
}
