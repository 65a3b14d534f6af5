//! Names in defaults and checks: they mean the same by any search path, and are shown as they are
//! seen.

use crate::fixture::Server;

#[test]
fn defaults_and_checks_mean_the_same_by_any_search_path() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create schema app; set search_path = app");
    client.tag("create type mood as enum ('sad', 'ok'); create sequence s start 5");
    client.tag(
        "create table t (id serial, n int default nextval('s'), m mood default 'ok'::mood, \
         check (m <> 'sad'::mood))",
    );
    client.tag("alter table t add column more bigint default nextval('s') * 10");
    client.tag(
        "alter table t add column last bigint; alter table t alter last set default nextval('s')",
    );
    client.tag("alter table t add check (m < 'sad'::mood or n > 0)");
    client.tag("reset search_path");
    client.tag("insert into app.t default values");
    assert_eq!(client.rows("select * from app.t"), ["1|5|ok|60|7"]);
    let error = client.error("insert into app.t (m) values ('sad')");
    assert!(error.starts_with("23514"), "{error}");
    let shown = "select pg_get_expr(adbin, adrelid) from pg_attrdef order by adnum";
    assert_eq!(
        client.rows(shown),
        [
            "nextval('app.t_id_seq'::regclass)",
            "nextval('app.s'::regclass)",
            "'ok'::app.mood",
            "(nextval('app.s'::regclass) * 10)",
            "nextval('app.s'::regclass)"
        ]
    );
    client.tag("set search_path = app");
    assert_eq!(
        client.rows(shown),
        [
            "nextval('t_id_seq'::regclass)",
            "nextval('s'::regclass)",
            "'ok'::mood",
            "(nextval('s'::regclass) * 10)",
            "nextval('s'::regclass)"
        ]
    );
    // A new name is one everywhere.
    client.tag("alter sequence s rename to \"New s\"; alter table t_id_seq rename to ids");
    client.tag("reset search_path");
    client.tag("insert into app.t (m) values ('ok')");
    assert_eq!(
        client.rows("select id, n, last from app.t where id > 1"),
        ["3|11|13"]
    );
    assert_eq!(
        client.rows(shown)[..2],
        [
            "nextval('app.ids'::regclass)",
            "nextval('app.\"New s\"'::regclass)"
        ]
    );
}

#[test]
fn a_sequence_that_a_column_comes_to_own_is_its_own() {
    let server = Server::new();
    let mut client = server.connect();
    // As pg_dump writes a serial column.
    client.tag("create table t (id int not null); create sequence t_id_seq as int");
    client.tag("alter table t_id_seq owner to postgres; alter sequence t_id_seq owned by t.id");
    client.tag("alter table only t alter column id set default nextval('t_id_seq'::regclass)");
    client.tag("insert into t default values");
    assert_eq!(
        client.rows("select pg_get_serial_sequence('t', 'id')"),
        ["public.t_id_seq"]
    );
    let owned = "select deptype, refobjid::regclass, refobjsubid from pg_depend \
                 where objid = 't_id_seq'::regclass and refclassid = 'pg_class'::regclass";
    assert_eq!(client.rows(owned), ["a|t|1"]);
    // Its default is another's next value, and no longer its own.
    client.tag(
        "create sequence other start 100; alter table t alter id set default nextval('other')",
    );
    client.tag("insert into t default values");
    assert_eq!(client.rows("select id from t order by id"), ["1", "100"]);
    client.tag("drop table t");
    assert_eq!(
        client.rows("select sequencename from pg_sequences"),
        ["other"]
    );
}

#[test]
fn functions_are_found_by_their_signatures() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create schema app; create type app.mood as enum ('sad')");
    client.tag("create function app.f(x app.mood) returns int language sql as 'select 1'");
    client.tag("create function app.f(x int) returns int language sql as 'select 2'");
    client.tag("create function app.g() returns int language sql as 'select 3'");
    let find =
        "select 'app.f(app.mood)'::regprocedure, 'app.g'::regproc, to_regproc('app.f') is null";
    assert_eq!(client.rows(find), ["app.f(app.mood)|app.g|t"]);
    assert!(client.error("select 'app.f'::regproc").starts_with("42725"));
    assert!(client.error("select 'app.h'::regproc").starts_with("42883"));
    client.tag("set search_path = app");
    assert_eq!(
        client.rows("select 'f(integer)'::regprocedure"),
        ["f(integer)"]
    );
    // The body of one that is loaded may name what is not there yet.
    client.tag("set check_function_bodies = off");
    client.tag(
        "create function later() returns bigint language sql as 'select count(*) from app.later'",
    );
    client.tag("create role alice; grant create on schema app to alice");
    assert_eq!(
        client.tag("alter function f(mood) owner to alice"),
        "ALTER FUNCTION"
    );
    // Who may call it is said as of tables.
    client.tag("grant usage on schema app to public");
    client.tag("revoke all on function g() from public; create role bob");
    let acl =
        "select proacl from pg_proc where proname = 'g' and pronamespace = 'app'::regnamespace";
    assert_eq!(client.rows(acl), ["{postgres=X/postgres}"]);
    client.tag("set role bob");
    assert_eq!(client.rows("select app.f(1)"), ["2"]);
    let error = client.error("select app.g()");
    assert_eq!(error, "42501 permission denied for function g");
    client.tag("reset role; grant execute on all functions in schema app to bob; set role bob");
    assert_eq!(client.rows("select app.g()"), ["3"]);
    assert_eq!(
        client.rows("select has_function_privilege('alice', 'app.g()', 'execute')"),
        ["f"]
    );
    client.tag("reset role");
    assert!(
        client
            .error("alter function f(text) owner to alice")
            .starts_with("42883")
    );
}

/// A kept text has no moment to be read at: PostgreSQL reads such a constant when it is made, and
/// what follows would get an old one.
#[test]
fn no_constant_of_the_moment_is_kept() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (i int, at timestamptz default now(), d date default current_date)");
    let refused = [
        "create table u (at timestamptz default 'now')",
        "create table u (d date default 'today'::date)",
        "create table u (d date check (d < 'tomorrow'))",
        "create table u (i int, g date generated always as (date 'yesterday' + i) stored)",
        "alter table t alter d set default 'today'",
        "alter table t add column e timestamp default 'now'",
        "alter table t add check (at > 'yesterday')",
        "create index on t ((d > 'today'))",
        "create index on t (i) where d > 'today'",
        "create domain day as date default 'today'",
        "create domain day as date check (value <= 'today')",
    ];
    for sql in refused {
        let error = client.error(sql);
        let begins =
            "0A000 a constant of the moment, such as 'now' or 'today', is not supported in";
        assert!(error.starts_with(begins), "{sql}: {error}");
    }
    client.tag("insert into t values (1)");
    assert_eq!(
        client.rows("select at = now() or at < now(), d = current_date from t"),
        ["t|t"]
    );
    // Words alone are texts.
    client.tag("create table v (a text default 'now', b text check (b <> 'today'))");
    client.tag("insert into v values (default, 'now')");
    assert_eq!(client.rows("table v"), ["now|now"]);
}
