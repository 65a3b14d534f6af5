//! ALTER … SET SCHEMA, and what comes to a schema as it is made.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

/// The statement is refused, in words that begin so.
fn refused(client: &mut Connection, sql: &str, begins: &str) {
    let error = client.error(sql);
    assert!(error.starts_with(begins), "{sql}: {error}");
}

/// The relations that are not the system's, by name, with their schemas.
const RELATIONS: &str = "select c.relname, n.nspname from pg_class c \
                         join pg_namespace n on n.oid = c.relnamespace \
                         where n.nspname in ('public', 'n', 'm') order by 1, 2";

#[test]
fn a_table_takes_along_what_is_its_own() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create schema n");
    client.tag(
        "create table t (id serial primary key, a int check (a > 0) unique, \
         g int generated always as identity)",
    );
    client.tag("create index ti on t (a, id)");
    client.tag("create view v as select a from t where a > 1");
    client.tag("create table child (t int references t)");
    client.tag("insert into t (a) values (1), (2)");
    client.tag("prepare p as select count(*) from t");
    assert_eq!(client.tag("alter table t set schema n"), "ALTER TABLE");
    assert_eq!(
        client.rows(RELATIONS),
        [
            "child|public",
            "t|n",
            "t_a_key|n",
            "t_g_seq|n",
            "t_id_seq|n",
            "t_pkey|n",
            "ti|n",
            "v|public"
        ]
    );
    assert_eq!(
        client.rows(
            "select conname, connamespace::regnamespace from pg_constraint \
             where conrelid in ('n.t'::regclass, 'child'::regclass) order by 1"
        ),
        [
            "child_t_fkey|public",
            "t_a_check|n",
            "t_a_key|n",
            "t_pkey|n"
        ]
    );
    refused(&mut client, "select * from t", "42P01");
    refused(&mut client, "execute p", "42P01");
    client.tag("insert into n.t (a) values (3)");
    client.tag("insert into child values (3)");
    refused(&mut client, "insert into child values (4)", "23503");
    refused(&mut client, "insert into n.t (a) values (-1)", "23514");
    assert_eq!(client.rows("select * from v order by 1"), ["2", "3"]);
    assert_eq!(
        client.rows("select pg_get_expr(adbin, adrelid) from pg_attrdef"),
        ["nextval('n.t_id_seq'::regclass)"]
    );
    let shown = client.rows("select pg_get_viewdef('v'::regclass)");
    assert!(shown[0].contains("n.t"), "{shown:?}");
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    let added = client.rows("insert into n.t (a) values (4) returning a, g");
    assert_eq!(added.len(), 1);
    assert_eq!(client.rows("select * from v order by 1"), ["2", "3", "4"]);
    // A new one has its old name.
    client.tag("create table t (a int)");
    client.tag("drop table t");
    client.tag("begin");
    client.tag("alter table n.t set schema public");
    client.tag("rollback");
    client.tag("alter table n.t set schema n");
    assert_eq!(client.rows("select count(*) from n.t"), ["4"]);
    server.is_sound();
}

#[test]
fn a_name_that_is_taken_keeps_a_table_where_it_is() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create schema n");
    client.tag("create table t (id serial primary key)");
    client.tag("create index ti on t (id)");
    let taken = |name: &str| format!("42P07 relation \"{name}\" already exists in schema \"n\"");
    for name in ["t", "ti", "t_pkey", "t_id_seq"] {
        client.tag(&format!("create sequence n.{name}"));
        refused(&mut client, "alter table t set schema n", &taken(name));
        client.tag(&format!("drop sequence n.{name}"));
    }
    client.tag("create type n.t as enum ('a')");
    let type_taken = "42710 type \"t\" already exists in schema \"n\"";
    refused(&mut client, "alter table t set schema n", type_taken);
    client.tag("create view v as select 1 as one");
    client.tag("create sequence n.v");
    refused(&mut client, "alter view v set schema n", &taken("v"));
    for (sql, error) in [
        (
            "alter table t set schema nope",
            "3F000 schema \"nope\" does not exist",
        ),
        (
            "alter table t set schema pg_catalog",
            "42501 permission denied for schema pg_catalog",
        ),
        (
            "alter table nope set schema n",
            "42P01 relation \"nope\" does not exist",
        ),
        (
            "alter table ti set schema n",
            "42809 cannot change schema of index \"ti\"",
        ),
        ("alter view t set schema n", "42809 \"t\" is not a view"),
        (
            "alter sequence v set schema n",
            "42809 \"v\" is not a sequence",
        ),
        (
            "alter sequence t_id_seq set schema n",
            "0A000 cannot move an owned sequence into another schema",
        ),
    ] {
        refused(&mut client, sql, error);
    }
    client.tag("create temp table own (a int)");
    refused(
        &mut client,
        "alter table own set schema n",
        "0A000 cannot move objects into or out of temporary schemas",
    );
    assert_eq!(
        client.query("alter table if exists nope set schema n"),
        [
            "N 42P01 relation \"nope\" does not exist, skipping",
            "C ALTER TABLE"
        ]
    );
}

#[test]
fn sequences_and_functions_move() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create schema n");
    client.tag("create schema m");
    client.tag("create sequence s");
    client.tag("create table t (a bigint default nextval('s'), b int)");
    assert_eq!(
        client.tag("alter sequence s set schema n"),
        "ALTER SEQUENCE"
    );
    assert_eq!(
        client.rows("insert into t (b) values (1) returning a"),
        ["1"]
    );
    client.tag("alter table n.s set schema public");
    assert_eq!(
        client.rows("insert into t (b) values (1) returning a"),
        ["2"]
    );

    client.tag("create function f(int) returns int language sql as 'select $1 + 1'");
    assert_eq!(
        client.tag("alter function f(int) set schema n"),
        "ALTER FUNCTION"
    );
    assert_eq!(client.rows("select n.f(1)"), ["2"]);
    refused(&mut client, "select f(1)", "42883");
    client.tag("create function f(int) returns int language sql as 'select 0'");
    client.tag("create function f(text) returns int language sql as 'select 0'");
    refused(
        &mut client,
        "alter function f(int) set schema n",
        "42723 function f(integer) already exists in schema \"n\"",
    );
    refused(
        &mut client,
        "alter function f set schema m",
        "42725 function name \"f\" is not unique",
    );
    client.tag("alter function f(text) set schema n");
    client.tag("create procedure pr() language plpgsql as 'begin null; end'");
    assert_eq!(
        client.tag("alter procedure pr() set schema n"),
        "ALTER PROCEDURE"
    );
    client.tag("call n.pr()");
    assert_eq!(
        client.tag("alter routine n.pr() set schema m"),
        "ALTER ROUTINE"
    );
    refused(
        &mut client,
        "alter function m.pr() set schema n",
        "42809 m.pr() is not a function",
    );
    refused(
        &mut client,
        "alter procedure pr() set schema n",
        "42883 procedure pr() does not exist",
    );
    // A trigger calls its function wherever that is.
    client.tag("create function tr() returns trigger language plpgsql as 'begin return new; end'");
    client.tag("create trigger w before insert on t for each row execute function tr()");
    client.tag("alter function tr() set schema m");
    client.tag("insert into t (b) values (5)");
}

#[test]
fn who_moves_a_table_owns_it_and_may_create_there() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create schema n");
    client.tag("create role r");
    client.tag("create table t (a serial)");
    client.tag("create function f() returns int language sql as 'select 1'");
    client.tag("set role r");
    refused(
        &mut client,
        "alter table t set schema n",
        "42501 must be owner of table t",
    );
    refused(
        &mut client,
        "alter function f() set schema n",
        "42501 must be owner of function f",
    );
    client.tag("reset role");
    client.tag("grant create on schema public to r");
    client.tag("alter table t owner to r");
    client.tag("alter function f() owner to r");
    client.tag("set role r");
    let denied = "42501 permission denied for schema n";
    refused(&mut client, "alter table t set schema n", denied);
    refused(&mut client, "alter function f() set schema n", denied);
    client.tag("reset role");
    client.tag("grant create, usage on schema n to r");
    client.tag("set role r");
    client.tag("alter table t set schema n");
    client.tag("alter function f() set schema n");
    client.tag("insert into n.t default values");
    assert_eq!(client.rows("select a, n.f() from n.t"), ["1|1"]);
}

#[test]
fn a_schema_is_made_with_what_is_in_it() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create role own");
    client.tag("create table t (other int)");
    client.tag("create function tr() returns trigger language plpgsql as 'begin return new; end'");
    let tag = client.tag(
        "create schema n create view v as select a as create from t grant select on v to own \
         create index i on t (b) create table t (a int primary key default nextval('sq'), b int) \
         create sequence sq create table c (x int references t) \
         create trigger w before insert on t for each row execute function tr()",
    );
    assert_eq!(tag, "CREATE SCHEMA");
    assert_eq!(
        client.rows(RELATIONS),
        ["c|n", "i|n", "sq|n", "t|n", "t|public", "t_pkey|n", "v|n"]
    );
    client.tag("insert into n.t (b) values (5)");
    client.tag("insert into n.c values (1)");
    refused(&mut client, "insert into n.c values (2)", "23503");
    client.tag("set role own");
    refused(
        &mut client,
        "select * from n.v",
        "42501 permission denied for schema n",
    );
    client.tag("reset role");
    assert_eq!(client.rows("select \"create\" from n.v"), ["1"]);

    // As the owner, and its.
    client.tag("create schema authorization own create table mine (a int)");
    assert_eq!(
        client.rows("select schemaname, tableowner from pg_tables where tablename = 'mine'"),
        ["own|own"]
    );
    for (sql, error) in [
        (
            "create schema m create table n.x (a int)",
            "42P15 CREATE specifies a schema (n) different from the one being created (m)",
        ),
        (
            "create schema m create view v as select * from nope",
            "42P01",
        ),
        (
            "create schema m create table t (a int) create table t (a int)",
            "42P07 relation \"t\" already exists",
        ),
        (
            "create schema if not exists m create table t (a int)",
            "0A000 CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
        ),
        ("create schema m create temp table t (a int)", "42P16"),
        (
            "create schema authorization nobody",
            "42704 role \"nobody\" does not exist",
        ),
    ] {
        refused(&mut client, sql, error);
    }
    // Nothing is left of what failed.
    assert_eq!(
        client.rows("select count(*) from pg_namespace where nspname = 'm'"),
        ["0"]
    );
}
