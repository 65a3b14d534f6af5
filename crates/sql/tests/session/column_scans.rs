//! Scans of column tables: what a filter asks is answered by row groups, and the rows that come of it are
//! those of a table of rows.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::{Connection, Server};

const ROWS: usize = 1500;

/// Types, and how a value of each is made of `@`, a number below 1500 that repeats in places.
const TYPES: [(&str, &str); 17] = [
    ("smallint", "(@ % 40 - 20)::smallint"),
    ("int", "@ - 700"),
    ("bigint", "(@ % 200)::bigint * 10000000000"),
    ("bool", "@ % 3 = 0"),
    (
        "real",
        "CASE @ % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' ELSE (@ % 50 - 25)::text END::real",
    ),
    (
        "float8",
        "CASE @ % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' ELSE (@ / 8.0 - 90)::text END::float8",
    ),
    (
        "numeric(9,2)",
        "CASE @ % 70 WHEN 0 THEN 'NaN' ELSE ((@ % 90 - 45) / 4.0)::text END::numeric",
    ),
    ("numeric(18,4)", "(@ % 300 - 150) / 8.0"),
    ("numeric(30,3)", "(@ % 300 - 150) / 8.0"),
    ("numeric", "(@ % 100 - 50) / 7.0"),
    (
        "text",
        "CASE @ % 5 WHEN 0 THEN '' WHEN 1 THEN 'ä ' ELSE 'text ' || @ % 60 END",
    ),
    ("varchar(9)", "'v' || @"),
    (
        "char(4)",
        "CASE @ % 4 WHEN 0 THEN '' ELSE 'c' || @ % 30 END",
    ),
    ("date", "date '2020-01-01' + @ % 800"),
    (
        "timestamp",
        "timestamp '2020-01-01' + @ * interval '5 hours'",
    ),
    ("bytea", "decode(lpad(to_hex(@ % 90), 4, '0'), 'hex')"),
    (
        "uuid",
        "('00000000-0000-0000-0000-' || lpad((@ % 77)::text, 12, '0'))::uuid",
    ),
];

/// A table of each kind with the same rows: some NULL, and in the column table some in the delta, some
/// changed and some gone since the merge.
fn filled(client: &mut Connection) {
    let columns: Vec<String> = (0..)
        .zip(TYPES)
        .map(|(at, (of, _))| format!("c{at} {of}"))
        .collect();
    let values: Vec<String> = (0..)
        .zip(TYPES)
        .map(|(at, (_, value))| {
            format!(
                "CASE WHEN n % 13 = {at} % 13 THEN NULL ELSE {} END",
                value.replace('@', "n")
            )
        })
        .collect();
    for (table, method) in [("r", "memory"), ("c", "columns")] {
        client.tag(&format!(
            "create table {table} (id int primary key, {}) using {method}",
            columns.join(", ")
        ));
        client.tag(&format!(
            "insert into {table} select n, {} from generate_series(1, {ROWS}) n",
            values.join(", ")
        ));
    }
    client.tag("vacuum c");
    for table in ["r", "c"] {
        client.tag(&format!("delete from {table} where id % 17 = 3"));
        client.tag(&format!(
            "update {table} set c1 = c1 + 1, c10 = 'new' where id % 19 = 4"
        ));
        client.tag(&format!("update {table} set c13 = null where id = 100"));
        client.tag(&format!(
            "alter table {table} add column younger int default 5"
        ));
        client.tag(&format!(
            "insert into {table} (id, c1, c10, younger) select n, n, 'late', null from generate_series({}, {}) n",
            ROWS + 1,
            ROWS + 50
        ));
    }
    client.tag("set thermocline.path = analytical");
}

#[test]
fn what_is_asked_is_shown_and_groups_without_it_are_passed_over() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, state text, price numeric(12,2), placed date) using columns");
    client.tag(
        "insert into t select n, 'state ' || n % 3, n / 4.0, date '2024-01-01' + n / 10 \
         from generate_series(1, 4000) n",
    );
    client.tag("vacuum t");
    client.tag("set thermocline.path = analytical");
    let query = "select count(*), sum(price) from t where placed < timestamp '2024-01-03' and price > 2 and state in ('state 1', 'none') and 100 > id";
    assert_eq!(client.rows(query), ["4|14.50"]);
    let plan = client.rows(&format!("explain {query}")).join("\n");
    for asked in ["placed <", "price >", "state IN 2", "id <"] {
        assert!(plan.contains(asked), "{plan}");
    }
    let skipped = "explain analyze select * from t where price > 4000";
    let plan = client.rows(skipped).join("\n");
    assert!(plan.contains("Row Groups: 4, skipped: 4"), "{plan}");
    client.tag("insert into t values (4001, 'new', 1, date '2030-01-01')");
    assert_eq!(client.rows("select state from t where id > 4000"), ["new"]);
    // A table of rows is asked nothing.
    client.tag("create table r (id int)");
    let plan = client
        .rows("explain select * from r where id > 5")
        .join("\n");
    assert!(!plan.contains("asked"), "{plan}");
}

#[test]
fn a_column_table_gives_the_rows_that_a_table_of_rows_gives() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    // All columns, and each alone.
    let all = |table: &str| format!("select {table} from {table} order by id");
    assert_eq!(client.rows(&all("c")), client.rows(&all("r")));
    for at in 0..TYPES.len() {
        let one = |table: &str| format!("select c{at}, id from {table} order by id");
        assert_eq!(client.rows(&one("c")), client.rows(&one("r")));
    }
    let comparison = (
        0..TYPES.len() + 2,
        select(vec![
            "=", "<>", "<", "<=", ">", ">=", "between", "in", "null", "not null", "turned",
            "numeric",
        ]),
        any::<(Index, Index)>(),
    );
    let query = prop::collection::vec(comparison, 1..4);
    let config = Config {
        cases: 150,
        failure_persistence: None,
        ..Config::default()
    };
    let client = RefCell::new(client);
    let outcome = TestRunner::new(config).run(&query, |comparisons| {
        let condition = |(at, operator, (a, b)): &(usize, &str, (Index, Index))| {
            let (column, value) = match TYPES.get(*at) {
                Some((of, value)) => (format!("c{at}"), format!("({value})::{of}")),
                None if *at == TYPES.len() => ("id".to_owned(), "@".to_owned()),
                None => ("younger".to_owned(), "(@ % 7)".to_owned()),
            };
            let constant = |index: &Index| value.replace('@', &(index.index(ROWS) + 1).to_string());
            let (a, b) = (constant(a), constant(b));
            match *operator {
                "between" => format!("{column} between {a} and {b}"),
                "in" => format!("{column} in ({a}, {b})"),
                "null" => format!("{column} is null"),
                "not null" => format!("{column} is not null"),
                "turned" => format!("{a} < {column}"),
                // Another type than the column's.
                "numeric" if matches!(*at, 0..3 | 6..10) => {
                    format!("{column} >= ({a})::numeric + 0.5")
                }
                "numeric" if *at == 13 => {
                    format!("{column} < ({a})::timestamp + interval '1 hour'")
                }
                "numeric" => format!("{column} = {a}"),
                operator => format!("{column} {operator} {a}"),
            }
        };
        let conditions: Vec<String> = comparisons.iter().map(condition).collect();
        // Of what is not in all groups, or is no vector, rows are made.
        let shown = comparisons.iter().filter(|(at, ..)| *at < TYPES.len());
        let shown: String = shown.map(|(at, ..)| format!(", c{at}")).collect();
        let of = |table: &str| {
            let conditions = conditions.join(" and ");
            format!("select id{shown} from {table} where {conditions} order by id")
        };
        let found = client.borrow_mut().rows(&of("c"));
        prop_assert_eq!(
            &found,
            &client.borrow_mut().rows(&of("r")),
            "{}",
            conditions.join(" and ")
        );
        Ok(())
    });
    outcome.expect("the same rows");
}
