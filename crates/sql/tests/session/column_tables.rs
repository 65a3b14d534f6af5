//! Tables `USING columns` as sessions see them.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn a_column_table_is_a_table_whose_delta_vacuum_merges() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, state text, placed date) using columns");
    client.tag("create table u (id int) using column");
    client.tag("create table r (id int)");
    client.tag(
        "insert into t select n, 'state ' || n % 3, date '2024-01-01' + n % 100 \
         from generate_series(1, 2000) n",
    );
    let memory = "select tuples_hot > 0, tuples_cold from thermocline_tables where relname = 't'";
    assert_eq!(client.rows(memory), ["t|0"]);
    assert_eq!(client.tag("vacuum t"), "VACUUM");
    assert_eq!(client.rows(memory), ["f|2000"]);
    assert_eq!(
        client.rows("select state, count(*), sum(id) from t group by state order by state"),
        [
            "state 0|666|666333",
            "state 1|667|667000",
            "state 2|667|667667"
        ]
    );
    client.tag("update t set state = 'new' where id = 7");
    client.tag("delete from t where id = 8");
    assert_eq!(
        client.rows("select id, state, placed from t where id between 6 and 9"),
        [
            "6|state 0|2024-01-07",
            "7|new|2024-01-08",
            "9|state 0|2024-01-10"
        ]
    );
    client.tag("alter table t add column extra int default 5");
    assert_eq!(client.rows("select sum(extra) from t"), ["9995"]);
    // All column tables.
    assert_eq!(client.tag("vacuum"), "VACUUM");
    assert_eq!(client.rows(memory), ["f|1999"]);
    assert_eq!(
        client.rows(
            "select relname, amname from pg_class c join pg_am a on a.oid = c.relam \
             where relname in ('t', 'u', 'r') order by relname"
        ),
        ["r|heap", "t|columns", "u|columns"]
    );
}

#[test]
fn an_access_method_that_is_not_there_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    let refused = [
        ("lsm", "0A000 access method \"lsm\" is not supported yet"),
        ("nosuch", "42704 access method \"nosuch\" does not exist"),
    ];
    for (method, message) in refused {
        let statement = format!("create table t (a int) using {method}");
        assert_eq!(client.error(&statement), message);
    }
}

#[test]
fn a_view_shows_what_columns_take() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table r (id int)");
    client.tag("create table t (id int, state text, gone int, seldom int) using columns");
    client.tag(
        "insert into t select n, 'state ' || n % 3, n, nullif(n % 10, 0) from generate_series(1, 2000) n",
    );
    client.tag("alter table t drop column gone");
    client.tag("vacuum t");
    client.tag("insert into t values (2001, 'new', 1)");
    client.tag("alter table t add column younger int");
    client.tag("set thermocline.path = analytical");
    client.rows("select count(state) from t where id < 0");
    client.rows("select count(state) from t where id > 0");
    assert_eq!(
        client.rows(
            "select relname, attname, rows_main, rows_delta, groups, nulls, device_bytes > 0, \
                    memory_bytes > 0, groups_scanned, groups_skipped from thermocline_columns"
        ),
        [
            "t|id|2000|1|4|0|t|t|8|4",
            "t|state|2000|1|4|0|t|t|8|4",
            "t|seldom|2000|1|4|200|t|f|8|4",
            "t|younger|2000|1|0|0|f|f|8|4"
        ]
    );
    let encodings = "select encodings from thermocline_columns where attname = 'state'";
    assert_eq!(client.rows(encodings), ["dictionary 4"]);
    let held = "select bytes > 0 from thermocline_memory where name = 'column_chunks'";
    assert_eq!(client.rows(held), ["t"]);
}

#[test]
fn a_table_becomes_one_of_columns_and_one_of_rows_again() {
    let device = Arc::new(SimulatedDevice::new());
    let kind = "select amname from pg_class c join pg_am a on a.oid = c.relam where relname = 't'";
    let sums = "select count(*), sum(n), min(word), max(younger) from t";
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (id int primary key, n int, word text)");
    client.tag("insert into t select n, n * 2, 'word ' || n from generate_series(1, 1000) n");
    client.tag("alter table t add column younger int default 3");
    client.tag("create index on t (n)");
    assert_eq!(
        client.tag("alter table t set access method columns"),
        "ALTER TABLE"
    );
    assert_eq!(client.rows(kind), ["columns"]);
    assert_eq!(client.rows(sums), ["1000|1001000|word 1|3"]);
    let main = "select tuples_hot, tuples_cold from thermocline_tables where relname = 't'";
    // It passes over rows that a checkpoint is just copying.
    let mut merged = || {
        client.tag("vacuum t");
        client.rows(main) == ["0|1000"]
    };
    assert!((0..100).any(|_| merged()), "{:?}", client.rows(main));
    assert_eq!(client.rows("select id from t where n = 40"), ["20"]);
    // What is taken back was never there.
    client.tag("begin");
    client.tag("alter table t set access method heap");
    assert_eq!(client.rows(kind), ["heap"]);
    client.tag("rollback");
    assert_eq!(client.rows(kind), ["columns"]);
    client.tag("alter table t set access method columns");
    assert_eq!(client.rows(main), ["0|1000"], "it is one already");
    let refused = "42704 access method \"nosuch\" does not exist";
    assert_eq!(
        client.error("alter table t set access method nosuch"),
        refused
    );
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows(kind), ["columns"]);
    assert_eq!(client.rows(sums), ["1000|1001000|word 1|3"]);
    client.tag("alter table t set access method memory, drop column younger");
    assert_eq!(client.rows(kind), ["heap"]);
    assert_eq!(
        client.rows("select count(*), sum(n) from t"),
        ["1000|1001000"]
    );
}
