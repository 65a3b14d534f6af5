//! Numerics of any length, NaN and the infinities: in columns, keys, operators and aggregates.

use crate::fixture::{Connection, Server};

const PROBES: [&str; 12] = [
    "'NaN'::numeric",
    "'Infinity'::numeric",
    "'-Infinity'::numeric",
    "0",
    "1.50",
    "99.99",
    "-7.000000000000000000000000000000000000000000000000001",
    "7.00000000000000000000000000000000000000000000000000",
    "7.00000000000000000000000000000000000000000000000001",
    "1e60",
    "-123456789012345678901234567890123456789012345678.5",
    "1e-60",
];

/// A table of all probes in columns of each width; a column that cannot hold one has NULL.
fn filled(server: &Server) -> Connection {
    let mut client = server.connect();
    client.query(
        "create table t (id int primary key, free numeric, long numeric(60, 2), \
         small numeric(4, 2), whole int)",
    );
    for (at, probe) in PROBES.iter().enumerate() {
        let held = |most: &str| {
            format!("case when {probe} = numeric 'NaN' or abs({probe}) < {most} then {probe} end")
        };
        let tag = client.tag(&format!(
            "insert into t values ({at}, {probe}, {}, {}, \
             case when abs({probe}) < 1000 then ({probe})::int end)",
            held("1e58"),
            held("99.995"),
        ));
        assert_eq!(tag, "INSERT 0 1");
    }
    client
}

#[test]
fn an_index_finds_what_comparing_finds() {
    let server = Server::new();
    let mut client = filled(&server);
    let columns = ["free", "long", "small", "whole"];
    for column in columns {
        client.query(&format!("create index on t ({column})"));
    }
    let mut found = 0;
    for column in columns {
        for probe in PROBES {
            for operator in ["=", "<", "<=", ">", ">="] {
                let ask = |what: &str| {
                    format!("select id from t where {what} {operator} {probe} order by id")
                };
                // The sum has no index.
                let compared = client.rows(&ask(&format!("{column} + 0")));
                for path in ["auto", "analytical"] {
                    client.query(&format!("set thermocline.path = {path}"));
                    let sql = ask(column);
                    assert_eq!(client.rows(&sql), compared, "{path}: {sql}");
                }
                client.query("reset thermocline.path");
                found += compared.len();
            }
        }
    }
    assert!(found > 200, "{found} rows");
}

#[test]
fn values_come_back_in_order_and_survive_an_update() {
    let server = Server::new();
    let mut client = filled(&server);
    let order = [
        "-Infinity",
        "-123456789012345678901234567890123456789012345678.5",
        "-7.000000000000000000000000000000000000000000000000001",
        "0",
        "0.000000000000000000000000000000000000000000000000000000000001",
        "1.50",
        "7.00000000000000000000000000000000000000000000000000",
        "7.00000000000000000000000000000000000000000000000001",
        "99.99",
        "1000000000000000000000000000000000000000000000000000000000000",
        "Infinity",
        "NaN",
    ];
    client.query("create unique index on t (free)");
    for path in ["auto", "analytical"] {
        client.query(&format!("set thermocline.path = {path}"));
        assert_eq!(client.rows("select free from t order by free"), order);
        assert_eq!(
            client.rows("select free from t group by free order by free desc limit 2"),
            ["NaN", "Infinity"]
        );
    }
    client.query("reset thermocline.path");
    for taken in ["'nan'", "1.5", "1e60", "7.000"] {
        let error = client.error(&format!("insert into t values (99, {taken})"));
        assert!(error.starts_with("23505"), "{error}");
    }
    // In the short path's arithmetic, and back to the small form.
    client.query("update t set free = free * 1e40, small = 'NaN' where id = 4");
    client.query("update t set free = free / 1e40 where id = 4");
    assert_eq!(
        client.rows("select free = 1.5, small from t where id = 4"),
        ["t|NaN"]
    );
    client.query("update t set small = 1.25 where id = 4");
    assert_eq!(client.rows("select small from t where id = 4"), ["1.25"]);
}

#[test]
fn sums_averages_and_bounds_are_exact() {
    let server = Server::new();
    let mut client = filled(&server);
    for path in ["auto", "analytical"] {
        client.query(&format!("set thermocline.path = {path}"));
        assert_eq!(
            client.rows("select sum(free), avg(free), max(free) from t where id in (4, 9)"),
            [
                "1000000000000000000000000000000000000000000000000000000000001.50|\
                 500000000000000000000000000000000000000000000000000000000000.75|\
                 1000000000000000000000000000000000000000000000000000000000000"
            ]
        );
        assert_eq!(
            client.rows("select sum(free), avg(small), min(small) from t where id < 2"),
            ["NaN|NaN|NaN"]
        );
        assert_eq!(
            client.rows("select sum(free), max(free) from t where id in (1, 2)"),
            ["NaN|Infinity"]
        );
    }
    client.query("reset thermocline.path");
    for (sql, expected) in [
        ("insert into t (id, long) values (20, 1e58)", "22003"),
        ("insert into t (id, small) values (20, 'Infinity')", "22003"),
        ("insert into t (id, small) values (20, 99.995)", "22003"),
        (
            "insert into t (id, free) values (20, 9e131071 + 9e131071)",
            "22003",
        ),
        ("insert into t (id, whole) values (20, 1e60)", "22003"),
        (
            "insert into t (id, whole) values (20, 'NaN'::numeric)",
            "0A000",
        ),
        ("select free % 0 from t where id = 9", "22012"),
        ("create table u (v numeric(1001))", "22023"),
        ("create table u (v numeric(5, 1001))", "22023"),
    ] {
        let error = client.error(sql);
        assert!(error.starts_with(expected), "{sql}: {error}");
    }
    client.query("create table u (id int primary key, v numeric(3, -2), w numeric(2, 4))");
    client.query("insert into u values (1, 12345, 0.00994), (2, -99949, -0.00001)");
    assert_eq!(
        client.rows("select v, w from u order by id"),
        ["12300|0.0099", "-99900|0.0000"]
    );
}
