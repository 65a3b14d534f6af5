//! REFRESH MATERIALIZED VIEW: all or nothing, beside who reads, within bodies, and over a crash; and
//! CONCURRENTLY, which changes the rows that differ.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;
use crate::materialized_view::{ALL, prepared, told};

#[test]
fn a_refresh_that_fails_leaves_the_old_rows() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag("create table s (a int); insert into s values (1), (2)");
    client.tag("create materialized view d as select 10 / a as q from s");
    client.tag("create unique index on d (q)");
    client.tag("insert into s values (0)");
    let old = ["5", "10"];
    for refresh in [
        "refresh materialized view d",
        "refresh materialized view concurrently d",
    ] {
        assert_eq!(told(&mut client, refresh), "22012 division by zero");
        assert_eq!(client.rows("select q from d order by q"), old);
    }
    // So does a key that comes twice.
    client.tag("update s set a = 2 where a = 0");
    assert_eq!(
        client.error("refresh materialized view d"),
        "23505 could not create unique index \"d_q_idx\" [detail Key (q)=(5) is duplicated.]"
    );
    assert_eq!(
        told(&mut client, "refresh materialized view concurrently d"),
        "21000 new data for materialized view \"d\" contains duplicate rows without any null columns"
    );
    assert_eq!(client.rows("select q from d order by q"), old);
    // And a transaction that is taken back, as a whole or to a savepoint.
    client.tag("truncate s; insert into s values (5)");
    client.tag("begin; refresh materialized view d");
    assert_eq!(client.rows("table d"), ["2"]);
    client.tag("rollback");
    assert_eq!(client.rows("select q from d order by q"), old);
    client.tag("begin; savepoint s; refresh materialized view d; rollback to s; commit");
    assert_eq!(client.rows("select q from d order by q"), old);
    client.tag("begin; create materialized view x as select 1; rollback");
    assert!(told(&mut client, "table x").starts_with("42P01"));
    client.tag("begin; insert into s values (1); refresh materialized view d; commit");
    client.tag(
        "begin; alter materialized view d rename to e; refresh materialized view e;
         refresh materialized view concurrently e; refresh materialized view e;
         select * from e; create index more on e (q); refresh materialized view e;
         drop index more; alter materialized view e rename to d; commit",
    );
    assert_eq!(client.rows("select q from d order by q"), ["2", "10"]);
    server.is_sound();
}

#[test]
fn bodies_refresh_it() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag(
        "create function changed() returns trigger language plpgsql as $$
         begin refresh materialized view concurrently m; return null; end $$;
         create trigger t after insert or delete on t for each statement
         execute function changed()",
    );
    client.tag("insert into t values (4, 'z', 7)");
    assert_eq!(client.rows(ALL), ["x|5.50", "y|2.50", "z|7.00"]);
    client.tag(
        "do $$ begin
         create materialized view o as select id from t;
         refresh materialized view m;
         end $$",
    );
    assert_eq!(client.rows("select count(*) from o"), ["4"]);
    client.tag("delete from t where id < 4");
    assert_eq!(client.rows(ALL), ["z|7.00"]);
    assert_eq!(client.rows("select m, (m).total from m"), ["(z,7.00)|7.00"]);
}

#[test]
fn concurrently_changes_the_rows_that_differ() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag(
        "create table s (id int, f float8, j json, x text, n numeric);
         insert into s select i, i, '{\"a\": 1}', 'x' || i, i from generate_series(1, 1000) i;
         create materialized view k as select * from s;
         create unique index on k (id)",
    );
    let places = "select id, ctid from k order by id";
    let before = client.rows(places);
    client.tag(
        "delete from s where id = 1;
         update s set x = 'other' where id = 2;
         update s set j = '{\"a\":1}' where id = 3;
         update s set n = 4.0 where id = 4;
         insert into s values (2000, 1), (null, 1), (null, 1)",
    );
    client.tag("refresh materialized view concurrently k");
    let same = "select count(*) from (select id, f, j::text, x, n::text from %1 \
                except all select id, f, j::text, x, n::text from %2) d";
    for (one, other) in [("s", "k"), ("k", "s")] {
        let query = same.replace("%1", one).replace("%2", other);
        assert_eq!(client.rows(&query), ["0"], "{query}");
    }
    // Rows that were as they are now have stayed where they were.
    let after = client.rows(places);
    assert!(after.len() == 1002 && before.len() == 1000);
    let stayed = before.iter().filter(|row| after.contains(row)).count();
    assert_eq!(stayed, 996);
    client.tag("set extra_float_digits = 0");
    assert!(told(&mut client, "refresh materialized view concurrently k").starts_with("0A000"));
    client.tag("reset extra_float_digits");
    // Once more, and nothing is to be done but for rows that are the same.
    client.tag("refresh materialized view concurrently k");
    let counts = "select count(*), count(id) from k";
    assert_eq!(client.rows(counts), ["1002|1000"]);
    for (change, count) in [
        ("insert into s values (null, 1), (null, 2)", "1004|1000"),
        ("delete from s where id is null and f = 1", "1001|1000"),
        ("insert into s values (null, 2)", "1002|1000"),
    ] {
        client.tag(&format!(
            "{change}; refresh materialized view concurrently k"
        ));
        assert_eq!(client.rows(counts), [count], "{change}");
    }
    // A key that another row has.
    client.tag("create materialized view y as select id, x from s; create unique index on y (id)");
    client.tag("insert into s values (10, 1, null, 'once more')");
    assert_eq!(
        client.error("refresh materialized view concurrently y"),
        "23505 duplicate key value violates unique constraint \"y_id_idx\" \
         [detail Key (id)=(10) already exists.]"
    );
    client.tag("delete from s where x = 'once more'");
    // A key of several columns, of which a unique index includes the predicate, is none.
    client.tag("create materialized view p as select id, x from s");
    client.tag("create unique index on p (id) where id > 0; create unique index on p ((id + 1))");
    client.tag("create index on p (x)");
    let refused = client.error("refresh materialized view concurrently p");
    assert!(
        refused.starts_with("55000 cannot refresh materialized view \"public.p\" concurrently"),
        "{refused}"
    );
    client.tag("create unique index on p (x, id)");
    client.tag("update s set x = 'again' where id between 10 and 20");
    client.tag("refresh materialized view concurrently p");
    assert_eq!(
        client.rows("select count(*) from p where x = 'again'"),
        ["11"]
    );
    server.is_sound();
}

#[test]
fn who_reads_beside_a_refresh() {
    let server = Server::new();
    let mut client = prepared(&server);
    let mut reader = server.connect();
    client.tag("insert into t values (4, 'z', 7)");
    // Beside one that changes what differs nobody waits.
    client.tag("begin; refresh materialized view concurrently m");
    assert_eq!(reader.rows(ALL), ["x|5.50", "y|2.50"]);
    client.tag("commit");
    assert_eq!(reader.rows(ALL), ["x|5.50", "y|2.50", "z|7.00"]);
    // Another refresh does, and so does who reads beside one that changes all.
    client.tag("begin; refresh materialized view concurrently m");
    reader.tag("set lock_timeout = '50ms'");
    for waits in [
        "refresh materialized view concurrently m",
        "refresh materialized view m",
    ] {
        assert!(told(&mut reader, waits).starts_with("55P03"), "{waits}");
    }
    client.tag("commit; insert into t values (5, 'q', 1); begin; refresh materialized view m");
    assert!(told(&mut reader, ALL).starts_with("55P03"));
    client.tag("commit");
    assert_eq!(reader.rows(ALL).len(), 4);
    // Who has an older snapshot is told so, and does not see an empty view.
    reader.tag("begin isolation level repeatable read");
    assert_eq!(reader.rows("select count(*) from t"), ["5"]);
    client.tag("update t set n = 3; refresh materialized view m");
    assert!(told(&mut reader, ALL).starts_with("40001"));
    reader.tag("rollback");
    // One that reads it goes on with the rows that it has read.
    reader.tag("begin isolation level repeatable read");
    assert_eq!(reader.rows(ALL).len(), 4);
    client.tag("delete from t where a = 'q'; refresh materialized view concurrently m");
    assert_eq!(reader.rows(ALL).len(), 4);
    reader.tag("commit");
    assert_eq!(reader.rows(ALL).len(), 3);
    // What the query has read may change before the refresh is over.
    client.tag("begin isolation level repeatable read; refresh materialized view m");
    reader.tag("insert into t values (9, 'n', 1)");
    client.tag("commit");
    assert_eq!(reader.rows(ALL).len(), 3);
}

#[test]
fn it_is_there_after_a_crash() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = prepared(&server);
    client.tag("create view v as select * from m");
    client.tag("create materialized view e as select * from v with no data");
    client.tag("checkpoint; insert into t values (4, 'z', 7); refresh materialized view m");
    // One that was not committed leaves what was there.
    client.tag("insert into t values (5, 'q', 1)");
    client.tag("begin; refresh materialized view m");
    assert_eq!(client.rows(ALL).len(), 4);
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows(ALL), ["x|5.50", "y|2.50", "z|7.00"]);
    assert_eq!(
        told(&mut client, "table e"),
        "55000 materialized view \"e\" has not been populated"
    );
    client.tag("refresh materialized view concurrently m; refresh materialized view e");
    assert_eq!(client.rows("select count(*) from e"), ["4"]);
    assert!(told(&mut client, "drop table t").starts_with("2BP01"));
    server.is_sound();
}
