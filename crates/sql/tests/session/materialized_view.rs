//! Materialized views: what they hold and when, what hangs on them, who may refresh them, and that a
//! refresh is all or nothing.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

/// The SQLSTATE and message of a statement that must fail.
fn told(client: &mut Connection, sql: &str) -> String {
    let error = client.error(sql);
    let end = error.find(" [").unwrap_or(error.len());
    error[..end].to_owned()
}

/// A table of three rows, and a materialized view over it with a unique index.
fn prepared(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, a text, n numeric(10, 2));
         insert into t values (1, 'x', 1.5), (2, 'y', 2.5), (3, 'x', 4);
         create materialized view m as select a, sum(n) as total from t group by a;
         create unique index on m (a)",
    );
    client
}

const ALL: &str = "select * from m order by a";

#[test]
fn it_holds_what_the_query_gave_until_it_is_refreshed() {
    let server = Server::new();
    let mut client = prepared(&server);
    assert_eq!(
        client.tag("create materialized view o (i, name) as select id, a from t where id > 1"),
        "SELECT 2"
    );
    assert_eq!(
        client.rows("select name from o order by i desc"),
        ["x", "y"]
    );
    client.tag("insert into t values (4, 'z', 7); update t set n = 5 where id = 2");
    assert_eq!(client.rows(ALL), ["x|5.50", "y|2.50"]);
    assert_eq!(
        client.tag("refresh materialized view m"),
        "REFRESH MATERIALIZED VIEW"
    );
    assert_eq!(client.rows(ALL), ["x|5.50", "y|5.00", "z|7.00"]);
    // By its index, and together with tables.
    assert_eq!(client.rows("select total from m where a = 'y'"), ["5.00"]);
    assert!(
        client.rows("explain select total from m where a = 'y'")[0].contains("Index Scan"),
        "{:?}",
        client.rows("explain select total from m where a = 'y'")
    );
    assert_eq!(
        client.rows("select t.id from t join m using (a) where m.total > 6"),
        ["4"]
    );
    client.tag("set thermocline.path = analytical");
    assert_eq!(client.rows("select total from m where a = 'y'"), ["5.00"]);
    client.tag("reset thermocline.path");
    client.tag("delete from t; refresh materialized view m");
    assert!(client.rows(ALL).is_empty());
}

#[test]
fn it_is_kept_as_other_tables_are() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag(
        "create materialized view c using columns with (unload_priority = 3) as select id, a from t",
    );
    assert_eq!(client.rows("select a from c where id = 2"), ["y"]);
    client.tag("insert into t values (4, 'z', 7); refresh materialized view c");
    assert_eq!(client.rows("select count(*), max(a) from c"), ["4|z"]);
    assert_eq!(
        client.rows(
            "select relkind, relispopulated, amname from pg_class c join pg_am on pg_am.oid = relam
             where relname in ('c', 'm') order by relname"
        ),
        ["m|t|columns", "m|t|heap"]
    );
    // Types that tables have: domains, enums, arrays.
    client.tag("create domain d as int check (value > 0); create type e as enum ('p', 'q')");
    client.tag(
        "create materialized view k as select id::d as d, 'q'::e as e, array[id, 2] as l, n from t",
    );
    assert_eq!(
        client.rows("select * from k where d = 1"),
        ["1|q|{1,2}|1.50"]
    );
    assert_eq!(
        client.rows("select pg_typeof(d), pg_typeof(e) from k limit 1"),
        ["d|e"]
    );
}

#[test]
fn nobody_reads_it_before_its_query_has_run() {
    let server = Server::new();
    let mut client = prepared(&server);
    assert_eq!(
        client.tag("create materialized view e as select id from t with no data"),
        "CREATE MATERIALIZED VIEW"
    );
    const EMPTY: &str = "55000 materialized view \"e\" has not been populated";
    client.tag("create view over as select id from e");
    client.tag("prepare p as select count(*) from t");
    for query in [
        "select * from e",
        "select 1 from t where exists (select from e)",
        "table over",
        "create table x as select * from e",
    ] {
        assert_eq!(told(&mut client, query), EMPTY, "{query}");
    }
    // Only planned it may be.
    for query in ["explain select * from e", "explain table over"] {
        assert!(!client.rows(query).is_empty(), "{query}");
    }
    assert_eq!(told(&mut client, "explain analyze table e"), EMPTY);
    let populated = "select relispopulated from pg_class where relname = 'e'";
    assert_eq!(client.rows(populated), ["f"]);
    client.tag("refresh materialized view e");
    assert_eq!(client.rows("select count(*) from over"), ["3"]);
    assert_eq!(client.rows(populated), ["t"]);
    client.tag("prepare q as select count(*) from e");
    assert_eq!(client.rows("execute q"), ["3"]);
    client.tag("refresh materialized view e with no data");
    assert_eq!(told(&mut client, "execute q"), EMPTY);
    assert_eq!(
        told(
            &mut client,
            "refresh materialized view concurrently m with no data"
        ),
        "42601 CONCURRENTLY and WITH NO DATA options cannot be used together"
    );
    client.tag("create unique index on e (id)");
    assert_eq!(
        told(&mut client, "refresh materialized view concurrently e"),
        "0A000 CONCURRENTLY cannot be used when the materialized view is not populated"
    );
}

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
fn statements_change_it_by_refreshing_alone() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag("create view over as select * from m");
    const CHANGE: &str = "42809 cannot change materialized view \"m\"";
    for (sql, error) in [
        ("insert into m values ('q', 1)", CHANGE),
        ("insert into m select a, n from t", CHANGE),
        ("update m set total = 1", CHANGE),
        ("delete from m", CHANGE),
        (
            "merge into m using t on m.a = t.a when matched then delete",
            CHANGE,
        ),
        ("with d as (delete from m returning *) select 1", CHANGE),
        ("truncate m", "42809 \"m\" is not a table"),
        (
            "copy m from stdin",
            "42809 cannot copy to materialized view \"m\"",
        ),
        (
            "copy m to stdout",
            "42809 cannot copy from materialized view \"m\"",
        ),
        (
            "select * from m for update",
            "42809 cannot lock rows in materialized view \"m\"",
        ),
        (
            "update over set total = 1",
            "55000 cannot update view \"over\"",
        ),
        ("delete from over", "55000 cannot delete from view \"over\""),
        (
            "insert into over values ('q', 1)",
            "55000 cannot insert into view \"over\"",
        ),
        (
            "create table f (a text references m)",
            "42809 referenced relation \"m\" is not a table",
        ),
        ("drop table m", "42809 \"m\" is not a table"),
        ("drop view m", "42809 \"m\" is not a view"),
        (
            "drop materialized view t",
            "42809 \"t\" is not a materialized view",
        ),
        (
            "drop materialized view over",
            "42809 \"over\" is not a materialized view",
        ),
        (
            "refresh materialized view t",
            "0A000 \"t\" is not a materialized view",
        ),
        (
            "refresh materialized view over",
            "42809 \"over\" is not a table or materialized view",
        ),
        (
            "refresh materialized view nix",
            "42P01 relation \"nix\" does not exist",
        ),
        (
            "drop materialized view nix",
            "42P01 materialized view \"nix\" does not exist",
        ),
        (
            "create materialized view m as select 1",
            "42P07 relation \"m\" already exists",
        ),
        (
            "create materialized view x (a, b) as select 1",
            "42601 too many column names were specified",
        ),
        (
            "create materialized view x as select 1 as a, 2 as a",
            "42701 column \"a\" specified more than once",
        ),
        (
            "create unlogged materialized view x as select 1",
            "0A000 materialized views cannot be unlogged",
        ),
        (
            "alter materialized view t rename to u",
            "42809 \"t\" is not a materialized view",
        ),
        ("alter view m rename to u", "42809 \"m\" is not a view"),
        ("comment on table m is 'c'", "42809 \"m\" is not a table"),
    ] {
        assert_eq!(told(&mut client, sql), error, "{sql}");
    }
    for (action, name) in [
        ("add column x int", "ADD COLUMN"),
        ("drop column total", "DROP COLUMN"),
        (
            "alter column total type text",
            "ALTER COLUMN ... SET DATA TYPE",
        ),
        (
            "alter column total set not null",
            "ALTER COLUMN ... SET NOT NULL",
        ),
        (
            "alter column total set default 1",
            "ALTER COLUMN ... SET DEFAULT",
        ),
        ("add primary key (a)", "ADD CONSTRAINT"),
        ("disable trigger all", "DISABLE TRIGGER ALL"),
    ] {
        for kind in ["table", "materialized view"] {
            let sql = format!("alter {kind} m {action}");
            if kind == "materialized view" && action.starts_with("add primary") {
                continue;
            }
            let error = format!("42809 ALTER action {name} cannot be performed on relation \"m\"");
            assert_eq!(told(&mut client, &sql), error, "{sql}");
        }
    }
    client.tag("create temp table tt (a int)");
    assert_eq!(
        told(
            &mut client,
            "create materialized view x as select * from tt"
        ),
        "0A000 materialized views must not use temporary tables or views"
    );
    assert_eq!(client.rows(ALL), ["x|5.50", "y|2.50"]);
}

#[test]
fn names_may_change_and_what_is_read_stays_or_goes_with_it() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag(
        "create view v as select a, total from m;
         create materialized view mm as select a, total * 2 as twice from v",
    );
    let refused = client.error("drop table t");
    assert!(
        refused.starts_with("2BP01 cannot drop table t because other objects depend on it")
            && refused.contains("materialized view m depends on table t")
            && refused.contains("view v depends on materialized view m")
            && refused.contains("materialized view mm depends on view v"),
        "{refused}"
    );
    assert!(
        told(&mut client, "drop materialized view m").starts_with(
            "2BP01 cannot drop materialized view m because other objects depend on it"
        )
    );
    assert!(told(&mut client, "alter table t drop column n").starts_with("2BP01"));
    let refused = client.error("alter table t alter column n type text");
    assert!(
        refused.starts_with("0A000 cannot alter type of a column used by a view or rule")
            && refused.contains("rule _RETURN on materialized view m depends on column \"n\""),
        "{refused}"
    );
    client.tag("create type e as enum ('p'); create materialized view ev as select 'p'::e as v");
    let refused = client.error("drop type e");
    assert!(
        refused.starts_with("2BP01 cannot drop type e because other objects depend on it")
            && refused.contains("materialized view ev depends on type e"),
        "{refused}"
    );
    client.tag("drop type e cascade");
    assert!(told(&mut client, "table ev").starts_with("42P01"));
    // What it reads gets other names, and so does it.
    client.tag("alter table t rename to u; alter table u rename column n to m");
    client.tag("alter table u add column more int; insert into u values (7, 'w', 1)");
    assert_eq!(
        client.tag("alter materialized view m rename to r"),
        "ALTER MATERIALIZED VIEW"
    );
    assert_eq!(
        client.tag("alter materialized view r rename column total to sum"),
        "ALTER MATERIALIZED VIEW"
    );
    client.tag("create schema other");
    assert_eq!(
        client.tag("alter materialized view r set schema other"),
        "ALTER MATERIALIZED VIEW"
    );
    client.tag("alter materialized view other.r set (unload_priority = 3)");
    client.tag("refresh materialized view other.r; refresh materialized view mm");
    client.tag("refresh materialized view concurrently other.r");
    assert_eq!(
        client.rows("select a, sum from other.r order by a"),
        ["w|1.00", "x|5.50", "y|2.50"]
    );
    assert_eq!(
        client.rows("select * from mm order by a"),
        ["w|2.00", "x|11.00", "y|5.00"]
    );
    assert_eq!(
        client.rows("select pg_get_viewdef('other.r'::regclass)"),
        [" SELECT a, sum FROM (select a, sum(n) as total from \
          (SELECT id, a, m AS n FROM u) t group by a) v(a, sum);"]
    );
    client.tag("drop schema other cascade");
    assert!(told(&mut client, "table mm").starts_with("42P01"));
    // Those within a schema that read one outside of it, which reads one within it.
    client.tag(
        "create schema s; create table s.t (a int); create view s.v as select a from s.t;
         create materialized view mm as select a from s.v; create view s.w as select a from mm",
    );
    client.tag("drop schema s cascade");
    assert!(told(&mut client, "table mm").starts_with("42P01"));
    client.tag("create materialized view z as select id from u");
    assert_eq!(
        client.tag("drop materialized view if exists nix, z"),
        "DROP MATERIALIZED VIEW"
    );
}

#[test]
fn the_catalogs_know_it() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag("comment on materialized view m is 'sums'; comment on column m.total is 'all'");
    assert_eq!(
        client.rows("select obj_description('m'::regclass), col_description('m'::regclass, 2)"),
        ["sums|all"]
    );
    assert_eq!(
        client.rows(
            "select schemaname, matviewname, matviewowner, tablespace, hasindexes, ispopulated,
             definition from pg_matviews"
        ),
        ["public|m|postgres|NULL|t|t| select a, sum(n) as total from t group by a;"]
    );
    for left_out in [
        "select 1 from pg_tables where tablename = 'm'",
        "select 1 from pg_views where viewname = 'm'",
        "select 1 from information_schema.tables where table_name = 'm'",
        "select 1 from information_schema.columns where table_name = 'm'",
        "select 1 from information_schema.views where table_name = 'm'",
        "select 1 from information_schema.table_privileges where table_name = 'm'",
    ] {
        assert!(client.rows(left_out).is_empty(), "{left_out}");
    }
    assert_eq!(
        client.rows(
            "select r.rulename, d.deptype, d.refobjid::regclass, d.refobjsubid
             from pg_rewrite r join pg_depend d on d.objid = r.oid
             where r.ev_class = 'm'::regclass order by 2, 3, 4"
        ),
        [
            "_RETURN|i|m|0",
            "_RETURN|n|t|2",
            "_RETURN|n|t|3",
            "_RETURN|n|m|0"
        ]
    );
    assert_eq!(
        client.rows("select indexname from pg_indexes where tablename = 'm'"),
        ["m_a_idx"]
    );
}

#[test]
fn its_owner_refreshes_it_by_his_own_rights() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag(
        "create role maker login; create role reader login;
         grant create on schema public to maker; create table s (a int);
         insert into s values (1), (2); grant select on s to maker",
    );
    let mut maker = server.connect();
    maker.tag("set role maker");
    maker.tag("create materialized view own as select a from s; create unique index on own (a)");
    assert_eq!(
        told(
            &mut maker,
            "create materialized view not_mine as select a from t"
        ),
        "42501 permission denied for table t"
    );
    assert!(told(&mut maker, "table not_mine").starts_with("42P01"));
    let mut reader = server.connect();
    reader.tag("set role reader");
    assert_eq!(
        told(&mut reader, "table own"),
        "42501 permission denied for materialized view own"
    );
    maker.tag("grant select on own to reader");
    assert_eq!(reader.rows("select count(*) from own"), ["2"]);
    for refused in [
        "refresh materialized view own",
        "refresh materialized view concurrently own",
        "drop materialized view own",
        "alter materialized view own rename to mine",
    ] {
        assert_eq!(
            told(&mut reader, refused),
            "42501 must be owner of materialized view own",
            "{refused}"
        );
    }
    // A superuser refreshes it, but what it reads is read by its owner.
    client.tag("insert into s values (3)");
    client.tag("refresh materialized view own");
    assert_eq!(reader.rows("select count(*) from own"), ["3"]);
    // Also by way of a view that reads by its reader's rights.
    client.tag(
        "create view invokers with (security_invoker) as select a from s;
         grant select on invokers to maker",
    );
    maker.tag("create materialized view far as select a from invokers");
    client.tag("refresh materialized view far");
    client.tag("revoke select on s from maker");
    assert_eq!(
        told(&mut client, "refresh materialized view far"),
        "42501 permission denied for table s"
    );
    for refresh in [
        "refresh materialized view own",
        "refresh materialized view concurrently own",
    ] {
        assert_eq!(
            told(&mut client, refresh),
            "42501 permission denied for table s"
        );
    }
    assert_eq!(
        client.tag("alter materialized view own owner to postgres"),
        "ALTER MATERIALIZED VIEW"
    );
    client.tag("refresh materialized view own");
    assert_eq!(
        told(&mut maker, "refresh materialized view own"),
        "42501 must be owner of materialized view own"
    );
    client.tag("drop owned by maker");
    assert!(told(&mut client, "table far").starts_with("42P01"));
    assert_eq!(client.rows("select count(*) from own"), ["3"]);
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
