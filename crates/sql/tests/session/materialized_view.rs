//! Materialized views: what they hold and when, what hangs on them, and who may refresh them. How a
//! refresh goes is in `refresh.rs`.

use crate::fixture::{Connection, Server};

/// The SQLSTATE and message of a statement that must fail.
pub fn told(client: &mut Connection, sql: &str) -> String {
    let error = client.error(sql);
    let end = error.find(" [").unwrap_or(error.len());
    error[..end].to_owned()
}

/// A table of three rows, and a materialized view over it with a unique index.
pub fn prepared(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, a text, n numeric(10, 2));
         insert into t values (1, 'x', 1.5), (2, 'y', 2.5), (3, 'x', 4);
         create materialized view m as select a, sum(n) as total from t group by a;
         create unique index on m (a)",
    );
    client
}

/// Its rows.
pub const ALL: &str = "select * from m order by a";

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
