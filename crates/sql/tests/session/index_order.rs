//! ASC, DESC, NULLS FIRST and NULLS LAST of an index's key: kept and shown. They change no answer.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

/// Orders of two parts, as they are said and as PostgreSQL shows them, with `indoption`.
const ORDERS: [(&str, &str, &str); 7] = [
    ("a, b", "a, b", "0 0"),
    ("a asc, b desc", "a, b DESC", "0 3"),
    ("a desc, b desc", "a DESC, b DESC", "3 3"),
    ("a desc nulls last, b", "a DESC NULLS LAST, b", "1 0"),
    (
        "a nulls first, b desc nulls first",
        "a NULLS FIRST, b DESC",
        "2 3",
    ),
    ("a asc nulls last, lower(c) desc", "a, lower(c) DESC", "0 3"),
    ("b nulls first, c", "b NULLS FIRST, c", "2 0"),
];

fn shown(client: &mut Connection, table: &str) -> Vec<String> {
    client.rows(&format!(
        "select pg_get_indexdef(indexrelid), indoption from pg_index \
         where indrelid = '{table}'::regclass order by indexrelid"
    ))
}

fn expected(table: &str) -> Vec<String> {
    let mut expected: Vec<String> = Vec::new();
    for (number, (_, shown, options)) in ORDERS.iter().enumerate() {
        let name = format!("i{number}");
        expected.push(format!(
            "CREATE INDEX {name} ON public.{table} USING btree ({shown})|{options}"
        ));
    }
    expected
}

#[test]
fn orders_are_shown_as_they_were_said() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (a int, b int, c text)");
    for (number, (said, _, _)) in ORDERS.iter().enumerate() {
        client.tag(&format!("create index i{number} on t ({said})"));
    }
    assert_eq!(shown(&mut client, "t"), expected("t"));
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(shown(&mut client, "t"), expected("t"));
    // What is made like them is ordered like them.
    client.tag("create table u (like t including indexes)");
    let of_like = client
        .rows("select indoption from pg_index where indrelid = 'u'::regclass order by indexrelid");
    let mut like: Vec<&str> = ORDERS.iter().map(|(_, _, options)| *options).collect();
    let mut of_like: Vec<&str> = of_like.iter().map(String::as_str).collect();
    like.sort_unstable();
    of_like.sort_unstable();
    assert_eq!(of_like, like);
    client.tag("create table p (a int, b int) partition by range (a)");
    client.tag("create index on p (a desc, b)");
    client.tag("create table p1 partition of p for values from (0) to (10)");
    assert_eq!(
        client.rows("select indexdef from pg_indexes where tablename = 'p1'"),
        ["CREATE INDEX p1_a_b_idx ON public.p1 USING btree (a DESC, b)"]
    );
    assert_eq!(
        client.error("create index on t using hash (a desc)"),
        "0A000 access method \"hash\" does not support ASC/DESC options"
    );
}

#[test]
fn no_order_changes_an_answer() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, c text)");
    client.tag(
        "insert into t select nullif(i % 7, 0), nullif(i % 11, 0), 'c' || i % 5 \
         from generate_series(1, 500) i",
    );
    let directions = ["", " desc", " nulls first", " desc nulls last"];
    let mut queries = Vec::new();
    for one in directions {
        for other in directions {
            for condition in [
                "",
                "where a = 3",
                "where a > 4",
                "where a is null",
                "where b = 2",
            ] {
                queries.push(format!(
                    "select a, b from t {condition} order by a{one}, b{other} limit 60"
                ));
            }
        }
    }
    let answers = |client: &mut Connection| -> Vec<Vec<String>> {
        queries.iter().map(|query| client.rows(query)).collect()
    };
    let plain = answers(&mut client);
    for (number, (said, _, _)) in ORDERS.iter().enumerate() {
        client.tag(&format!("create index i{number} on t ({said})"));
        assert_eq!(answers(&mut client), plain, "{said}");
        client.tag(&format!("drop index i{number}"));
    }
}
