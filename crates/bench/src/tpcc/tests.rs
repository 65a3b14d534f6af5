//! TPC-C in this process: a small database that is run and holds, and thirteen planted faults
//! that the checks find.

use std::ops::Bound;
use std::path::Path;

use thermocline_engine::{Call, Direction, Procedure, Result, Row, RunOptions, block_on};
use thermocline_values::value::Value;

use super::procedures::UNUSED_ITEM;
use super::{Operation, Options, Scale, Tpcc};
use crate::workload::cells::{int, int_of, money, money_of};
use crate::workload::rows::Source;
use crate::workload::{self, Ended, Limit, Opened, Settings, Workload};

fn settings(directory: &Path) -> Settings {
    Settings {
        data_dir: directory.join("data"),
        memory_limit: Limit::Bytes(256 << 20),
        partitions: 4,
        asynchronous_commit: true,
        callers: 4,
        warmup: 0,
        seconds: 1,
        check: workload::Checks::All,
        ..Settings::default()
    }
}

fn small() -> Tpcc {
    Tpcc {
        scale: Scale {
            warehouses: 2,
            items: 200,
            customers: 30,
        },
        single_warehouse: false,
        papers_tables: false,
    }
}

/// A small database after some hundred transactions.
fn after_some(directory: &Path) -> Opened {
    let (workload, settings) = (small(), settings(directory));
    let opened = workload::open(&workload, &settings).expect("it loads");
    let options = RunOptions::default();
    for operation in workload.drawer(0, 1, 7).take(400) {
        match block_on(workload.call(&opened.db, &options, &operation)) {
            Ok(ended) => assert_eq!(ended, Ended::Done),
            Err(error) => {
                let state = error
                    .downcast_ref::<thermocline_engine::Error>()
                    .expect("the engine's")
                    .sqlstate();
                assert_eq!(state, UNUSED_ITEM, "{operation:?}: {error}");
                assert!(workload.expected(&operation, state).is_some());
            }
        }
    }
    opened
}

fn violations(opened: &Opened, all: bool) -> Vec<String> {
    block_on(small().check(&Source::Engine(&opened.db), all, None)).expect("it can be read")
}

#[test]
fn a_run_holds_and_the_data_is_used_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (workload, settings) = (small(), settings(directory.path()));
    let first = workload::measure(&workload, &settings).expect("it runs");
    assert_eq!(first.violations, Vec::<String>::new());
    assert!(first.load_s.is_some() && first.checked);
    let trial = &first.trials[0];
    assert!(trial.operations > 0 && !trial.seconds.is_empty());
    let (name, per_minute) = trial.headline.clone().expect("new orders");
    assert_eq!(name, "new orders/min");
    assert!(per_minute > 0.0);
    for kind in &trial.kinds {
        let mut failures = kind.expected_failures.keys();
        assert!(failures.all(|failure| kind.name == "new_order" && failure == "unused item"));
    }
    let second = workload::measure(&workload, &settings).expect("it runs again");
    assert_eq!(second.load_s, None, "the rows were there");
    assert_eq!(second.violations, Vec::<String>::new());
    let other = Tpcc {
        scale: Scale {
            warehouses: 3,
            ..workload.scale
        },
        ..workload
    };
    let refused = workload::measure(&other, &settings).expect_err("another shape");
    assert!(refused.to_string().contains("2 warehouses"), "{refused}");
}

#[test]
fn an_open_loop_begins_as_many_as_it_is_told_in_each_trial() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        rate: Some(50.0),
        seconds: 2,
        trials: 2,
        ..settings(directory.path())
    };
    let report = workload::measure(&small(), &settings).expect("it runs");
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!(report.trials.len(), 2);
    for trial in &report.trials {
        assert!((60..=110).contains(&trial.operations), "{trial:?}");
        assert_eq!(trial.seconds.len(), 2);
    }
}

#[test]
fn who_only_checks_does_not_load() {
    let directory = tempfile::tempdir().expect("a directory");
    let check_only = Settings {
        check_only: true,
        ..settings(directory.path())
    };
    assert!(workload::measure(&small(), &check_only).is_err());
    std::fs::create_dir(&check_only.data_dir).expect("an empty directory");
    let refused = workload::measure(&small(), &check_only).expect_err("nothing is there");
    assert!(refused.to_string().contains("no tables"), "{refused}");
}

#[test]
fn half_a_load_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (workload, settings) = (small(), settings(directory.path()));
    let opened = workload::open(&workload, &settings).expect("it loads");
    let forget = Procedure::new("forget", |call, _| {
        let table = call.table("tpcc_load")?;
        let row = call.get(&table, &[int(1)])?;
        if let Some(row) = row {
            call.delete(&table, &row)?;
        }
        Ok(Vec::new())
    });
    opened.db.register_procedure(forget).expect("a new name");
    block_on(opened.db.call(&RunOptions::new(), "forget", &[])).expect("it is called");
    opened.db.close().expect("it closes");
    drop(opened);
    let refused = workload::measure(&workload, &settings).expect_err("half a load");
    assert!(refused.to_string().contains("not completed"), "{refused}");
}

#[test]
fn the_last_item_of_a_new_order_may_be_unused_and_nothing_of_it_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = after_some(directory.path());
    let next = |opened: &Opened| {
        let mut sum = 0;
        let source = Source::Engine(&opened.db);
        block_on(source.each("district", &["d_next_o_id"], |row| sum += int_of(&row[0])))
            .expect("it can be read");
        sum
    };
    let before = next(&opened);
    let workload = small();
    let unused = workload.drawer(0, 1, 9).find(|operation| {
        matches!(operation, Operation::NewOrder { lines, .. }
            if lines.iter().any(|line| line.item > workload.scale.items))
    });
    let unused = unused.expect("one in a hundred");
    let options = RunOptions::default();
    let ended = block_on(workload.call(&opened.db, &options, &unused));
    assert!(ended.is_err());
    assert_eq!(next(&opened), before);
    assert_eq!(violations(&opened, true), Vec::<String>::new());
}

/// The first row below a prefix of a table's ordered primary key.
fn first(call: &mut Call<'_, '_>, table: &str, prefix: &[Value]) -> Result<Row> {
    let index = format!("{table}_pkey");
    let table = call.table(table)?;
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let rows = call.range(&table, &index, prefix, bounds, Direction::Ascending, 1)?;
    Ok(rows.into_iter().next().expect("there is one"))
}

/// Changes a column of the row with this primary key.
fn change(
    call: &mut Call<'_, '_>,
    table: &str,
    key: &[i64],
    column: &str,
    changed: impl Fn(&Value) -> Value,
) -> Result<()> {
    let table = call.table(table)?;
    let key: Vec<Value> = key.iter().map(|part| int(*part)).collect();
    let mut row = call.get(&table, &key)?.expect("it is there");
    let column = table.def.column_named(column).expect("a column");
    row.values[column] = changed(&row.values[column]);
    call.update(&table, &row)
}

fn more_money(value: &Value) -> Value {
    money(money_of(value) + 1)
}

type Plant = fn(&mut Call<'_, '_>) -> Result<()>;

/// Faults, and the condition that each breaks.
const FAULTS: [(&str, &str, Plant); 13] = [
    ("a wrong sum of a district", "condition 1:", |call| {
        change(call, "district", &[1, 3], "d_ytd", more_money)
    }),
    ("a gap in order numbers", "condition 2:", |call| {
        change(call, "district", &[2, 7], "d_next_o_id", |next| {
            int(int_of(next) + 1)
        })
    }),
    ("a lost new order amid others", "condition 3:", |call| {
        let table = call.table("new_order")?;
        let oldest = first(call, "new_order", &[int(1), int(5)])?;
        let next = [int(1), int(5), int(int_of(&oldest.values[2]) + 1)];
        let second = call.get(&table, &next)?.expect("there are several");
        call.delete(&table, &second)
    }),
    ("a lost order line", "condition 4:", |call| {
        let table = call.table("order_line")?;
        let line = first(call, "order_line", &[int(1), int(1)])?;
        call.delete(&table, &line)
    }),
    ("an order line twice", "condition 4:", |call| {
        let table = call.table("order_line")?;
        let mut line = first(call, "order_line", &[int(1), int(1)])?;
        line.values[3] = int(77);
        call.insert(&table, &line.values)
    }),
    ("a new order with a carrier", "condition 5:", |call| {
        let new = first(call, "new_order", &[int(1), int(2)])?;
        let key = [1, 2, int_of(&new.values[2])];
        change(call, "orders", &key, "o_carrier_id", |_| int(4))
    }),
    (
        "a line that moved to another order",
        "condition 6:",
        |call| {
            let table = call.table("order_line")?;
            let mut line = first(call, "order_line", &[int(2), int(2)])?;
            call.delete(&table, &line)?;
            line.values[2] = int(2);
            line.values[3] = int(66);
            call.insert(&table, &line.values)
        },
    ),
    ("a delivered line without a date", "condition 7:", |call| {
        let key = [1, 4, 1, 1];
        change(call, "order_line", &key, "ol_delivery_d", |_| Value::Null)
    }),
    (
        "a wrong sum of a warehouse and its district",
        "condition 8:",
        |call| {
            change(call, "warehouse", &[1], "w_ytd", more_money)?;
            change(call, "district", &[1, 1], "d_ytd", more_money)
        },
    ),
    (
        "money that moved to another district",
        "condition 9:",
        |call| {
            change(call, "district", &[1, 1], "d_ytd", more_money)?;
            change(call, "district", &[1, 2], "d_ytd", |ytd| {
                money(money_of(ytd) - 1)
            })
        },
    ),
    ("a wrong balance", "condition 10:", |call| {
        change(call, "customer", &[2, 9, 11], "c_balance", more_money)
    }),
    ("a delivery that was not counted", "condition 11:", |call| {
        let count = |count: &Value| int(int_of(count) - 1);
        change(call, "customer", &[1, 6, 3], "c_delivery_cnt", count)
    }),
    ("a payment that was not added up", "condition 12:", |call| {
        let less = |ytd: &Value| money(money_of(ytd) - 100);
        change(call, "customer", &[1, 6, 3], "c_ytd_payment", less)
    }),
];

#[test]
fn each_planted_fault_is_found_by_its_condition() {
    for (fault, condition, plant) in FAULTS {
        let directory = tempfile::tempdir().expect("a directory");
        let opened = after_some(directory.path());
        assert_eq!(violations(&opened, true), Vec::<String>::new());
        let procedure = Procedure::new("plant", move |call, _| {
            plant(call)?;
            Ok(Vec::new())
        });
        opened.db.register_procedure(procedure).expect("a new name");
        block_on(opened.db.call(&RunOptions::default(), "plant", &[])).expect("it is planted");
        let found = violations(&opened, true);
        assert!(
            found.iter().any(|found| found.starts_with(condition)),
            "{fault}: {found:?}"
        );
        let always = [
            "condition 1:",
            "condition 2:",
            "condition 3:",
            "condition 4:",
        ];
        if always.contains(&condition) {
            assert!(!violations(&opened, false).is_empty(), "{fault}");
        }
        opened.db.close().expect("it closes");
    }
}

#[test]
fn what_is_no_scale_is_refused() {
    let options = |warehouses, items, customers| Options {
        settings: Settings::default(),
        warehouses,
        single_warehouse: false,
        papers_tables: false,
        items,
        customers,
    };
    for wrong in [
        options(0, 100_000, 3000),
        options(1, 0, 3000),
        options(1, 100_000, 3001),
    ] {
        assert!(Tpcc::new(&wrong).is_err(), "{wrong:?}");
    }
    assert!(Tpcc::new(&options(1, 100_000, 3000)).is_ok());
}
