//! Temporary tables, views, sequences and indexes: whose they are, which names they hide, what
//! commits do with them, and that they end with their session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thermocline_device::SimulatedDevice;
use thermocline_engine::block_on;

use crate::fixture::{Connection, Server};

const OTHERS: &str = "0A000 cannot access temporary tables of other sessions";

/// The SQLSTATE and message of a statement that must fail.
fn told(client: &mut Connection, sql: &str) -> String {
    let error = client.error(sql);
    let end = error.find(" [").unwrap_or(error.len());
    error[..end].to_owned()
}

/// The NOTICEs of a statement that must not fail.
fn notices(client: &mut Connection, sql: &str) -> Vec<String> {
    let answers = client.query(sql);
    assert!(
        !answers.iter().any(|answer| answer.starts_with('E')),
        "{sql}: {answers:?}"
    );
    answers
        .into_iter()
        .filter_map(|answer| answer.strip_prefix("N ").map(str::to_owned))
        .collect()
}

fn end(mut client: Connection) {
    block_on(client.session.terminate());
}

/// What there is that is temporary, whosever it is.
fn left(client: &mut Connection) -> Vec<String> {
    client.rows(
        "select relname from pg_class where relpersistence = 't'
         union all select nspname from pg_namespace where nspname like 'pg\\_temp%' order by 1",
    )
}

#[test]
fn what_is_temporary_hides_other_names_and_takes_all_statements() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, a text); insert into t values (1, 'lasting')");
    client.tag("prepare read as select a from t");
    assert_eq!(client.rows("execute read"), ["lasting"]);
    assert_eq!(
        client.tag("create temp table t (id serial primary key, a text)"),
        "CREATE TABLE"
    );
    client.tag("insert into t (a) values ('x'), ('y'), ('z')");
    client.tag("create index on t (a)");
    client.tag("update t set a = 'w' where id = 1");
    client.tag("delete from t where a = 'y'");
    client.copy("copy t from stdin", &["7\tv\n"]);
    assert_eq!(
        client.rows("select * from t order by a"),
        ["7|v", "1|w", "3|z"]
    );
    assert_eq!(client.rows("select a from t where id = 3"), ["z"]);
    assert_eq!(client.rows("execute read"), ["w", "z", "v"]);
    assert_eq!(
        client.rows("select t.a, l.a from t join public.t l using (id)"),
        ["w|lasting"]
    );
    assert_eq!(
        client.rows("select pg_temp.t.a from pg_temp.t where id = 1"),
        ["w"]
    );
    assert_eq!(client.rows("select count(*) from pg_temp.t"), ["3"]);
    assert_eq!(client.rows("select currval('t_id_seq')"), ["3"]);
    client.tag("alter table t add column n int default 5");
    client.tag("alter table pg_temp.t rename column a to b");
    assert_eq!(client.rows("select b, n from t where id = 7"), ["v|5"]);
    client.tag("analyze pg_temp.t");
    client.tag("begin; lock table pg_temp.t; commit");
    client.tag("truncate t");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    client.tag("drop table t");
    assert_eq!(client.rows("select a from t"), ["lasting"]);
    assert_eq!(
        told(&mut client, "drop table pg_temp.t"),
        "42P01 table \"pg_temp.t\" does not exist"
    );
    // As in a table that lasts.
    client.tag("create temp table if not exists u as select 1 as one");
    let said = notices(&mut client, "create temp table if not exists u (one int)");
    assert_eq!(said, ["42P07 relation \"u\" already exists, skipping"]);
    assert_eq!(
        told(&mut client, "create local temporary table u (one int)"),
        "42P07 relation \"u\" already exists"
    );
    client.tag("create temp table pg_class (relname text)");
    assert_eq!(client.rows("select count(*) from pg_class"), ["0"]);
    client.tag("drop table pg_class");
}

#[test]
fn all_that_can_be_temporary_goes_to_the_sessions_schema() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table lasting (a int)");
    for made in [
        "create temp table a (id int)",
        "create global temporary table b (id int)",
        "create table pg_temp.c (id int)",
        "create temp table d as select 1 as id",
        "create table pg_temp.e as select 2 as id",
        "select 3 as id into temp f",
        "select 4 as id into temporary table g",
        "create temp view v as select * from lasting",
        "create or replace temporary view w as select 1 as one",
        "create temporary sequence s",
        "create sequence pg_temp.r",
        "create temp table h (id int) on commit preserve rows",
    ] {
        client.tag(made);
    }
    assert_eq!(
        client.rows("select id from f union all select id from g order by id"),
        ["3", "4"]
    );
    client.tag("set search_path = pg_temp, public; create table i (id int)");
    client.tag("create view x as select 1 as one; create table j as select 1 as one");
    assert_eq!(
        client.rows(
            "select current_schema() = (current_schemas(false))[1], current_schema() ~ '^pg_temp_'"
        ),
        ["t|t"]
    );
    client.tag("reset search_path");
    let there = client.rows(
        "select string_agg(relname, ' ' order by relname) from pg_class
         where relpersistence = 't' and relnamespace = pg_my_temp_schema()",
    );
    assert_eq!(there, ["a b c d e f g h i j r s v w x"]);
    for (made, refused) in [
        (
            "create temp table public.k (id int)",
            "42P16 cannot create temporary relation in non-temporary schema",
        ),
        (
            "create temp view public.k as select 1",
            "42P16 cannot create temporary relation in non-temporary schema",
        ),
        (
            "create temp table nowhere.k (id int)",
            "3F000 schema \"nowhere\" does not exist",
        ),
        (
            "create table k (id int) on commit drop",
            "42P16 ON COMMIT can only be used on temporary tables",
        ),
        (
            "create table k on commit preserve rows as select 1 as id",
            "42P16 ON COMMIT can only be used on temporary tables",
        ),
        (
            "create schema pg_temp",
            "42939 unacceptable schema name \"pg_temp\"",
        ),
        (
            "alter view v set schema public",
            "0A000 cannot move objects into or out of temporary schemas",
        ),
        (
            "create table k (id int default nextval('s'))",
            "42P01 relation \"s\" does not exist",
        ),
        (
            "alter sequence s owned by lasting.a",
            "55000 sequence must be in same schema as table it is linked to",
        ),
    ] {
        assert_eq!(told(&mut client, made), refused, "{made}");
    }
}

#[test]
fn a_default_that_lasts_means_no_temporary_sequence() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create sequence s start 100; create table t (id int default nextval('s'), a int)");
    client.tag("create temp sequence s");
    client.tag("insert into t (a) values (1)");
    client.tag("create temp table t2 (id int default nextval('s'))");
    client.tag("insert into t2 default values");
    assert_eq!(client.rows("select id from t"), ["100"]);
    assert_eq!(client.rows("select id from t2"), ["1"]);
    assert_eq!(
        client.rows("select nextval('s'), nextval('public.s')"),
        ["2|101"]
    );
}

#[test]
fn a_view_over_what_is_temporary_is_temporary() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table lasting (a int); create view v as select a from lasting");
    client.tag("create temp table t (a int); insert into t values (1)");
    let said = notices(
        &mut client,
        "create or replace view v as select a + 1 as b from t",
    );
    assert_eq!(said, ["00000 view \"v\" will be a temporary view"]);
    let said = notices(&mut client, "create view w as select * from v");
    assert_eq!(said, ["00000 view \"w\" will be a temporary view"]);
    assert_eq!(client.rows("select * from w"), ["2"]);
    assert_eq!(client.rows("select count(*) from public.v"), ["0"]);
    assert_eq!(
        told(&mut client, "create view public.u as select * from t"),
        "42P16 cannot create temporary relation in non-temporary schema"
    );
    assert_eq!(
        told(&mut client, "drop table t"),
        "2BP01 cannot drop table t because other objects depend on it"
    );
    client.tag("drop table t cascade");
    assert_eq!(
        told(&mut client, "table w"),
        "42P01 relation \"w\" does not exist"
    );
}

#[test]
fn commits_empty_and_drop_what_is_to_be_emptied_and_dropped() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create temp table t (id serial, a int unique) on commit delete rows");
    // Each statement is a transaction.
    assert_eq!(client.tag("insert into t (a) values (1)"), "INSERT 0 1");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    client.copy("copy t (a) from stdin", &["1\n2\n"]);
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    client.tag("begin; insert into t (a) values (1), (2)");
    assert_eq!(client.rows("select count(*) from t"), ["2"]);
    client.tag("commit");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    // A text is a transaction, and so is a batch.
    assert_eq!(
        client.rows("insert into t (a) values (1); select count(*) from t"),
        ["1"]
    );
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    client
        .parse("", "insert into t (a) values (1)", &[])
        .unwrap();
    client.bind("", "", &[]).unwrap();
    client.session.sync_follows(true);
    assert_eq!(client.execute("", 0).unwrap(), ["C INSERT 0 1"]);
    client.sync().unwrap();
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    client.tag("create temp view v as select * from t");
    client.tag("begin; insert into t (a) values (9); savepoint s; drop view v; drop table t");
    client.tag("rollback to s; commit");
    assert_eq!(client.rows("select count(*) from v"), ["0"]);
    // Sequences go on.
    assert!(client.rows("insert into t (a) values (1) returning id > 5") == ["t"]);

    client.tag("create temp table gone (a int) on commit drop");
    assert_eq!(
        told(&mut client, "table gone"),
        "42P01 relation \"gone\" does not exist"
    );
    client.tag("begin; create temp table gone on commit drop as select 5 as a");
    client.tag("create view over as select * from gone; create index on gone (a)");
    assert_eq!(client.rows("select * from over"), ["5"]);
    client.tag("commit");
    for name in ["gone", "over"] {
        let error = told(&mut client, &format!("table {name}"));
        assert_eq!(error, format!("42P01 relation \"{name}\" does not exist"));
    }
    // What is rolled back, or dropped by hand, is in no commit's way.
    client.tag("begin; create temp table gone (a int) on commit drop; rollback");
    client.tag("begin; create temp table gone (a int) on commit drop; drop table gone; commit");
    client.query("begin; create temp table gone (a int) on commit drop; select 1 / 0");
    client.tag("rollback");
    client.tag("create temp table gone (a int)");
    assert_eq!(client.rows("select count(*) from gone"), ["0"]);
}

#[test]
fn a_transaction_that_only_reads_may_write_what_is_temporary() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table lasting (a int); create temp table t (a int)");
    client.tag("begin read only; insert into t values (1), (2)");
    client.tag("update t set a = a + 1");
    client.tag("delete from t where a = 2");
    client.copy("copy t from stdin", &["8\n"]);
    assert_eq!(client.rows("select a from t order by a"), ["3", "8"]);
    assert!(
        client
            .error("insert into lasting values (1)")
            .starts_with("25006")
    );
    client.tag("rollback; begin read only");
    assert!(
        client
            .error("create temp table u (a int)")
            .starts_with("25006")
    );
    client.tag("rollback; set default_transaction_read_only = on");
    client.tag("insert into t values (1)");
    assert!(
        client
            .error("insert into lasting values (1)")
            .starts_with("25006")
    );
    assert!(client.error("copy lasting from stdin").starts_with("25006"));
}

#[test]
fn others_see_it_and_cannot_use_it() {
    let server = Server::new();
    let mut client = server.connect();
    let mut other = server.connect();
    client.tag(
        "create temp table t (id int primary key); insert into t values (1);
         create temp sequence s; create temp view v as select * from t",
    );
    let schema = client
        .rows("select pg_my_temp_schema()::regnamespace")
        .remove(0);
    assert_eq!(
        other.rows(
            "select relname, relpersistence from pg_class where relpersistence = 't' order by 1"
        ),
        ["s|t", "t|t", "t_pkey|t", "v|t"]
    );
    assert_eq!(
        other.rows(&format!(
            "select nspname, pg_is_other_temp_schema(oid), pg_my_temp_schema() from pg_namespace
             where nspname = '{schema}'"
        )),
        [format!("{schema}|t|0")]
    );
    assert_eq!(
        other.rows(
            "select count(*) from information_schema.tables where table_schema like 'pg\\_temp%'"
        ),
        ["0"]
    );
    other.tag("create table mine (id int)");
    for sql in [
        "select * from SCHEMA.t",
        "select id from SCHEMA.t where id = 1",
        "select count(*), max(id) from SCHEMA.t join SCHEMA.v using (id)",
        "insert into SCHEMA.t values (2)",
        "update SCHEMA.t set id = 5",
        "delete from SCHEMA.t",
        "copy SCHEMA.t to stdout",
        "truncate SCHEMA.t",
        "alter table SCHEMA.t add column a int",
        "create index on SCHEMA.t (id)",
        "begin; lock table SCHEMA.t",
        "rollback; select nextval('SCHEMA.s')",
        "select setval('SCHEMA.s', 5)",
        "create view over as select * from SCHEMA.v",
        "create table as_well as select * from SCHEMA.t",
        "insert into mine select * from SCHEMA.t",
    ] {
        let sql = sql.replace("SCHEMA", &schema);
        assert_eq!(told(&mut other, &sql), OTHERS, "{sql}");
    }
    other.tag("rollback");
    assert_eq!(
        told(&mut other, &format!("create table {schema}.mine (id int)")),
        "42P16 cannot create relations in temporary schemas of other sessions"
    );
    assert_eq!(
        told(&mut other, "select * from pg_temp_99.t"),
        "42P01 relation \"pg_temp_99.t\" does not exist"
    );
    // Nor by the path.
    other.tag(&format!("set search_path = {schema}, public"));
    assert_eq!(
        told(&mut other, "table t"),
        "42P01 relation \"t\" does not exist"
    );
    other.tag("create temp table t (a text); insert into t values ('mine')");
    assert_eq!(other.rows("table t"), ["mine"]);
    assert_eq!(client.rows("table t"), ["1"]);
    // Whoever may drop it, may.
    other.tag(&format!("drop table {schema}.t cascade"));
    assert_eq!(
        told(&mut client, "table t"),
        "42P01 relation \"t\" does not exist"
    );
}

#[test]
fn catalogs_show_what_is_temporary() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.rows("select pg_my_temp_schema(), current_schemas(true)"),
        ["0|{pg_catalog,public}"]
    );
    client.tag("create table t (a int); create temp table t (a serial); create temp view v as select 1 as one");
    let schema = client.rows("select nspname from pg_namespace where oid = pg_my_temp_schema()");
    let schema = &schema[0];
    for (query, rows) in [
        (
            "select current_schemas(true), current_schemas(false), current_schema()",
            vec![format!("{{{schema},pg_catalog,public}}|{{public}}|public")],
        ),
        (
            "select pg_is_other_temp_schema(pg_my_temp_schema()), pg_is_other_temp_schema(0)",
            vec!["f|f".into()],
        ),
        (
            "select relnamespace = pg_my_temp_schema(), pg_table_is_visible(oid), oid::regclass::text
             from pg_class where relname = 't' order by 1",
            vec!["f|f|public.t".into(), "t|t|t".into()],
        ),
        (
            "select 'pg_temp.t'::regclass::text, to_regclass('pg_temp.nothing') is null",
            vec!["t|t".into()],
        ),
        (
            "select table_name, table_type from information_schema.tables
             where table_schema like 'pg\\_temp%' order by 1",
            vec!["t|LOCAL TEMPORARY".into(), "v|VIEW".into()],
        ),
        (
            "select pg_get_expr(adbin, adrelid) from pg_attrdef",
            vec!["nextval('t_a_seq'::regclass)".into()],
        ),
        ("show search_path", vec!["\"$user\", public".into()]),
    ] {
        assert_eq!(client.rows(query), rows, "{query}");
    }
    client.tag("set search_path = public, pg_temp");
    assert_eq!(
        client.rows("select current_schemas(true), 't'::regclass, 'pg_temp.t'::regclass"),
        [format!("{{pg_catalog,public,{schema}}}|t|{schema}.t")]
    );
}

#[test]
fn roles_need_no_right_on_a_schema() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create role maker login; create role other; grant other to maker");
    client.tag("revoke all on schema public from public; create temp table early (a int)");
    client.tag("set session authorization maker");
    assert!(
        client
            .error("create table lasting (a int)")
            .starts_with("42501")
    );
    client.tag("create temp table t (id serial, a int); insert into t (a) values (1)");
    client.tag("create temp view v as select a from t; create temp sequence s");
    assert_eq!(
        client.rows("select pg_get_userbyid(relowner) from pg_class where relname = 't'"),
        ["maker"]
    );
    assert_eq!(client.rows("select id, a from t join v using (a)"), ["1|1"]);
    assert_eq!(
        told(&mut client, "select * from early"),
        "42501 permission denied for table early"
    );
    client.tag("set role other");
    assert_eq!(
        told(&mut client, "select * from t"),
        "42501 permission denied for table t"
    );
    client.tag("create temp table u (a int)");
    client.tag("reset session authorization");
    client
        .tag("revoke temporary on database postgres from public; set session authorization maker");
    assert_eq!(
        told(&mut client, "create temp table w (a int)"),
        "42501 permission denied to create temporary tables in database \"postgres\""
    );
    // All goes, whoever it belongs to.
    client.tag("discard temp");
    client.tag("reset session authorization");
    assert!(left(&mut client).is_empty());
}

#[test]
fn it_goes_with_the_session_and_when_it_is_discarded() {
    let server = Server::new();
    let mut watcher = server.connect();
    let made = "create table lasting (a int);
                create temp table t (id serial primary key); insert into t default values;
                create temp view v as select * from t; create temp view w as select * from v;
                create temp sequence s owned by t.id; create temp sequence r;
                create temp view one as select 1 as one";
    for discard in ["discard temp", "discard temporary", "discard all"] {
        let mut client = server.connect();
        client.tag(made);
        assert_eq!(left(&mut watcher).len(), 9);
        client.tag(discard);
        assert!(left(&mut watcher).is_empty());
        assert_eq!(
            told(&mut client, "table t"),
            "42P01 relation \"t\" does not exist"
        );
        // And from the beginning.
        client.tag("create temp table t (a int)");
        client.tag("begin; discard temp; rollback");
        assert_eq!(client.rows("table t"), [""; 0]);
        // Amid a transaction.
        client.tag("begin; create temp table u (a int); insert into t values (1)");
        end(client);
        assert!(left(&mut watcher).is_empty());
        watcher.tag("drop table lasting");
    }
    let mut client = server.connect();
    client.tag("begin; create temp table t (a int); rollback");
    assert!(left(&mut watcher).is_empty());
    assert_eq!(client.rows("select pg_my_temp_schema()"), ["0"]);
    client.tag("create temp table t (a int)");
    assert_eq!(client.rows("table t"), [""; 0]);
}

#[test]
fn what_a_crash_leaves_behind_is_dropped() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag(
        "create table lasting (a int); insert into lasting values (1);
         create temp table t (id serial primary key); insert into t default values;
         create temp view v as select * from t; create temp sequence s",
    );
    let schema = client
        .rows("select pg_my_temp_schema()::regnamespace")
        .remove(0);
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    // Nobody meets what was another's.
    client.tag("create temp table t (a text); insert into t values ('new')");
    let begin = Instant::now();
    while client.rows(&format!(
        "select 1 from pg_namespace where nspname = '{schema}'"
    )) == ["1"]
    {
        assert!(begin.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(&mut client).len(), 2);
    assert_eq!(client.rows("select t.a, l.a from t, lasting l"), ["new|1"]);
    end(client);
    drop(server);
    let server = Server::on(&device);
    assert!(left(&mut server.connect()).is_empty());
}
