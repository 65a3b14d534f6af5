//! Inner joins in another order than they are written in give the same rows, and clearly better orders are
//! taken.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::{Connection, Server};

const TABLES: usize = 5;
const COLUMNS: [&str; 3] = ["a", "b", "c"];

type Row = [Option<i64>; 3];

/// A column of a table.
type Place = (usize, usize);

#[derive(Debug, Clone)]
enum Condition {
    Equal(Place, Place),
    Less(Place, Place),
    Is(Place, i64),
}

#[derive(Debug, Clone)]
struct Case {
    tables: Vec<Vec<Row>>,
    conditions: Vec<Condition>,
    /// Whether each table is joined with a comma, and not by JOIN … ON.
    commas: Vec<bool>,
}

fn case() -> impl Strategy<Value = Case> {
    let value = || prop::option::weighted(0.85, 0..5i64);
    let row = || [value(), value(), value()];
    let table = || prop::collection::vec(row(), 1..11);
    let place = || (0..TABLES, 0..COLUMNS.len());
    let condition = prop_oneof![
        6 => (place(), place()).prop_map(|(a, b)| Condition::Equal(a, b)),
        1 => (place(), place()).prop_map(|(a, b)| Condition::Less(a, b)),
        2 => (place(), 0..5i64).prop_map(|(a, value)| Condition::Is(a, value)),
    ];
    (
        prop::collection::vec(table(), TABLES),
        prop::collection::vec(condition, 3..9),
        prop::collection::vec(any::<bool>(), TABLES),
    )
        .prop_map(|(tables, conditions, commas)| Case {
            tables,
            conditions,
            commas,
        })
}

impl Condition {
    fn text(&self) -> String {
        let name = |(table, column): &Place| format!("t{table}.{}", COLUMNS[*column]);
        match self {
            Condition::Equal(a, b) => format!("{} = {}", name(a), name(b)),
            Condition::Less(a, b) => format!("{} < {}", name(a), name(b)),
            Condition::Is(a, value) => format!("{} = {value}", name(a)),
        }
    }

    /// The last table that it names.
    fn last(&self) -> usize {
        match self {
            Condition::Equal(a, b) | Condition::Less(a, b) => a.0.max(b.0),
            Condition::Is(a, _) => a.0,
        }
    }

    fn holds(&self, rows: &[Row]) -> bool {
        let value = |(table, column): &Place| rows[*table][*column];
        match self {
            Condition::Equal(a, b) => value(a).is_some() && value(a) == value(b),
            Condition::Less(a, b) => {
                value(a).is_some() && value(b).is_some_and(|b| value(a) < Some(b))
            }
            Condition::Is(a, wanted) => value(a) == Some(*wanted),
        }
    }
}

impl Case {
    fn query(&self) -> String {
        let mut from = "t0".to_owned();
        let mut filter = vec!["true".to_owned()];
        let of = |table: usize| {
            self.conditions
                .iter()
                .filter(move |one| one.last() == table)
        };
        filter.extend(of(0).map(Condition::text));
        for table in 1..TABLES {
            let conditions: Vec<String> = of(table).map(Condition::text).collect();
            // A comma binds less than JOIN: what stands behind it would not see what is before.
            if self.commas[table] || conditions.is_empty() {
                from = format!("{from} cross join t{table}");
                filter.extend(conditions);
            } else {
                from = format!("{from} join t{table} on {}", conditions.join(" and "));
            }
        }
        let sums: Vec<String> = (0..TABLES)
            .map(|n| format!("coalesce(sum(t{n}.a), 0)"))
            .collect();
        format!(
            "select count(*), {} from {from} where {}",
            sums.join(", "),
            filter.join(" and ")
        )
    }

    fn answer(&self) -> String {
        let mut totals = [0; TABLES + 1];
        self.walk(&mut Vec::new(), &mut totals);
        let texts: Vec<String> = totals.iter().map(i64::to_string).collect();
        texts.join("|")
    }

    fn walk(&self, rows: &mut Vec<Row>, totals: &mut [i64; TABLES + 1]) {
        let table = rows.len();
        if table == TABLES {
            totals[0] += 1;
            for (total, row) in totals[1..].iter_mut().zip(rows) {
                *total += row[0].unwrap_or(0);
            }
            return;
        }
        for row in &self.tables[table] {
            rows.push(*row);
            let mut asked = self.conditions.iter().filter(|one| one.last() == table);
            if asked.all(|condition| condition.holds(rows)) {
                self.walk(rows, totals);
            }
            rows.pop();
        }
    }
}

fn fill(client: &mut Connection, case: &Case) {
    for (number, rows) in case.tables.iter().enumerate() {
        client.tag(&format!("truncate t{number}"));
        let text = |value: &Option<i64>| value.map_or("null".to_owned(), |value| value.to_string());
        let row = |row: &Row| {
            let values: Vec<String> = row.iter().map(text).collect();
            format!("({})", values.join(", "))
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        client.tag(&format!(
            "insert into t{number} (a, b, c) values {}",
            rows.join(", ")
        ));
    }
}

#[test]
fn any_order_gives_the_same_rows() {
    let server = Server::new();
    let mut client = server.connect();
    for number in 0..TABLES {
        let key = if number % 2 == 0 {
            "id serial primary key, "
        } else {
            ""
        };
        client.tag(&format!(
            "create table t{number} ({key}a int, b bigint, c smallint)"
        ));
    }
    let client = RefCell::new(client);
    let mut runner = TestRunner::new(Config {
        cases: 40,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    });
    let ran = runner.run(&case(), |case| {
        let client = &mut *client.borrow_mut();
        fill(client, &case);
        let query = case.query();
        assert_eq!(client.rows(&query), [case.answer()], "{query}");
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

#[test]
fn a_filtered_table_is_joined_before_one_that_makes_many_rows() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table sales (item int, day int, amount int)");
    client.tag("create table stock (item int, place int)");
    client.tag("create table days (id int primary key, year int, name text)");
    client.tag("create table items (id int primary key, name text)");
    client.tag("insert into items select n, 'i' || n from generate_series(0, 99) n");
    client.tag("insert into days select n, n / 50, 'd' || n from generate_series(0, 999) n");
    client.tag("insert into stock select n % 100, n from generate_series(0, 2999) n");
    client.tag("insert into sales select n % 100, n % 1000, n from generate_series(0, 3999) n");
    let query = "select count(*), sum(s.amount) from sales s join stock k on k.item = s.item
         join items i on i.id = s.item join days d on d.id = s.day where d.year = 3";
    assert_eq!(
        client.rows(query),
        client.rows(
            "select count(*) * 30, sum(amount) * 30 from sales where day between 150 and 199"
        )
    );
    let plan = client.rows(&format!("explain {query}"));
    let scan = |table: &str| {
        let line = plan
            .iter()
            .find(|line| line.contains(&format!("SnapshotScan: public.{table},")));
        let line = line.unwrap_or_else(|| panic!("no scan of {table}: {plan:?}"));
        line.len() - line.trim_start().len()
    };
    // What is joined last stands least deep.
    assert!(scan("stock") < scan("days"), "{}", plan.join("\n"));
}
