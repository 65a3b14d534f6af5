//! Workloads over the wire, against PostgreSQL 15 where it is installed: they load, run, hold,
//! are used again, and are refused where they must be.

#[path = "../../server/tests/support/postgres.rs"]
mod postgres;

use postgres::Postgres;
use thermocline_bench::smallbank::{self, SmallBank};
use thermocline_bench::tatp::{self, Tatp};
use thermocline_bench::tpcc::{self, Tpcc};
use thermocline_bench::voter::{self, Voter};
use thermocline_bench::workload::{self, Checks, Report, Settings, Workload};
use thermocline_bench::ycsb_core::{self, Mix, YcsbCore};

fn postgres() -> Option<(Postgres, String)> {
    match Postgres::start() {
        Ok(running) => {
            let url = format!("postgres://postgres@{}/postgres", running.address);
            Some((running, url))
        }
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn settings(url: &str) -> Settings {
    Settings {
        url: Some(url.to_owned()),
        callers: 4,
        warmup: 0,
        seconds: 2,
        check: Checks::All,
        ..Settings::default()
    }
}

fn small_tpcc(warehouses: i32) -> Tpcc {
    let options = tpcc::Options {
        settings: Settings::default(),
        warehouses,
        single_warehouse: false,
        papers_tables: false,
        items: 200,
        customers: 30,
    };
    Tpcc::new(&options).expect("it can be run")
}

/// Runs a statement, as whoever meddles with the data would.
fn on(url: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .expect("it connects");
        tokio::spawn(async move { drop(connection.await) });
        client.batch_execute(sql).await.expect("it is run");
    });
}

/// Runs it twice: the second time with what the first has loaded.
fn runs_and_holds<W: Workload>(workload: &W, url: &str) -> Report {
    let first = workload::measure(workload, &settings(url)).expect("it runs");
    assert!(first.load_s.is_some());
    assert_eq!(first.violations, Vec::<String>::new());
    assert!(first.trials[0].operations > 0);
    let second = workload::measure(workload, &settings(url)).expect("it runs again");
    assert_eq!(second.load_s, None, "the rows were there");
    assert_eq!(second.violations, Vec::<String>::new());
    first
}

#[test]
fn tpcc_runs_on_postgresql_and_holds() {
    let Some((_postgres, url)) = postgres() else {
        return;
    };
    let report = runs_and_holds(&small_tpcc(2), &url);
    assert!(
        report.target.starts_with("PostgreSQL 15"),
        "{}",
        report.target
    );
    let check_only = Settings {
        check_only: true,
        ..settings(&url)
    };
    on(
        &url,
        "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 3 AND ol_o_id = 4 AND ol_number = 5",
    );
    let found = workload::measure(&small_tpcc(2), &check_only).expect("it is checked");
    assert!(found.trials.is_empty(), "nothing was to be run");
    for condition in ["condition 4:", "condition 6:"] {
        let is_it = |found: &&String| found.starts_with(condition);
        assert_eq!(found.violations.iter().filter(is_it).count(), 1, "{found}");
    }
    let other = workload::measure(&small_tpcc(3), &settings(&url)).expect_err("another load");
    assert!(other.to_string().contains("2 warehouses"), "{other}");
    on(&url, "DELETE FROM tpcc_load");
    let half = workload::measure(&small_tpcc(2), &settings(&url)).expect_err("half a load");
    assert!(half.to_string().contains("not completed"), "{half}");
}

#[test]
fn a_server_without_tables_is_not_checked() {
    let Some((_postgres, url)) = postgres() else {
        return;
    };
    let check_only = Settings {
        check_only: true,
        ..settings(&url)
    };
    let refused = workload::measure(&small_tpcc(1), &check_only).expect_err("nothing is there");
    assert!(refused.to_string().contains("no tables"), "{refused}");
}

#[test]
fn tatp_runs_on_postgresql_and_fails_as_often_as_expected() {
    let Some((_postgres, url)) = postgres() else {
        return;
    };
    let options = tatp::Options {
        settings: Settings::default(),
        subscribers: 2000,
        non_uniform: true,
    };
    let report = runs_and_holds(&Tatp::new(&options).expect("it can be run"), &url);
    let kinds = &report.trials[0].kinds;
    for (kind, share) in [(0, 1.0), (2, 0.625), (4, 1.0)] {
        let kind = &kinds[kind];
        let all = kind.done + kind.expected_failures.values().sum::<u64>();
        let found = kind.done as f64 / all as f64;
        assert!((found - share).abs() < 0.1, "{}: {found}", kind.name);
    }
}

#[test]
fn smallbank_runs_on_postgresql_and_its_balances_add_up() {
    let Some((_postgres, url)) = postgres() else {
        return;
    };
    let options = smallbank::Options {
        settings: Settings::default(),
        customers: 1000,
        hot: 20,
        hot_percent: 90,
    };
    runs_and_holds(&SmallBank::new(&options).expect("it can be run"), &url);
}

#[test]
fn voter_runs_on_postgresql_and_keeps_its_limit() {
    let Some((_postgres, url)) = postgres() else {
        return;
    };
    let options = voter::Options {
        settings: Settings::default(),
        contestants: 6,
        votes_per_phone: 2,
        phones: Some(500),
        votes: 100,
    };
    let report = runs_and_holds(&Voter::new(&options).expect("it can be run"), &url);
    assert!(report.trials[0].kinds[0].done > 0);
}

#[test]
fn ycsb_runs_on_postgresql_and_loses_no_row() {
    let Some((_postgres, url)) = postgres() else {
        return;
    };
    for (seed, mix) in (1..).zip([Mix::A, Mix::D, Mix::E, Mix::F]) {
        let options = ycsb_core::Options {
            mix,
            settings: Settings::default(),
            rows: 1000,
            one_payload: false,
            row_bytes: 1000,
            zipf: 1.2,
        };
        let workload = YcsbCore::new(&options).expect("it can be run");
        let settings = Settings {
            seed,
            ..settings(&url)
        };
        let report = workload::measure(&workload, &settings).expect("it runs");
        assert_eq!(report.violations, Vec::<String>::new(), "{mix:?}");
        assert!(report.trials[0].operations > 0, "{mix:?}");
    }
}
