//! Tables `USING columns` as sessions see them.

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
        ["r|memory", "t|columns", "u|columns"]
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
