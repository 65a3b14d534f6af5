//! CREATE TABLE (LIKE …); DROP of what is never there; what says only how PostgreSQL stores.

use crate::fixture::Server;

#[test]
fn a_table_is_like_another() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create domain d as int check (value > 0);
         create table t (id int primary key generated always as identity (start 5),
            a varchar(5) not null default 'x', b d, s serial, check (length(a) < 4), unique (a, b));
         create index on t (b);
         alter table t add column gone int",
    );
    client.tag("alter table t drop column gone");
    let described = |client: &mut crate::fixture::Connection, table: &str| {
        client.rows(&format!(
            "select attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull
                 || ' ' || atthasdef || attidentity::text
             from pg_attribute where attrelid = '{table}'::regclass and attnum > 0
                 and not attisdropped order by attnum"
        ))
    };
    client.tag("create table plain (z int, like t, y int)");
    assert_eq!(
        described(&mut client, "plain"),
        [
            "z integer false false",
            "id integer true false",
            "a character varying(5) true false",
            "b d false false",
            "s integer true false",
            "y integer false false"
        ]
    );
    client.tag("insert into plain (id, a, s) values (1, 'long', 2)");
    client.tag("create table whole (like t including all)");
    assert_eq!(
        described(&mut client, "whole"),
        [
            "id integer true falsea",
            "a character varying(5) true true",
            "b d false false",
            "s integer true true"
        ]
    );
    // The sequence of the serial column is the same one, that of the identity column is not.
    client.tag("insert into t (b) values (1)");
    client.tag("insert into whole (b) values (1)");
    assert_eq!(client.rows("select id, a, b, s from whole"), ["5|x|1|2"]);
    assert_eq!(
        client.rows("select indexname from pg_indexes where tablename = 'whole' order by 1"),
        ["whole_a_b_key", "whole_b_idx", "whole_pkey"]
    );
    for (sql, error) in [
        ("insert into whole (a) values ('long')", "23514"),
        ("insert into whole (b) values (-1)", "23514"),
        ("insert into whole (b) values (1)", "23505"),
        ("create table x (id int, like t)", "42701"),
        ("create table x (like none)", "42P01"),
        ("create table x (like whole_pkey)", "42809"),
    ] {
        assert!(client.error(sql).starts_with(error), "{sql}");
    }
    client.tag("create view v as select id as one, a || 'y' as two from t");
    client.tag("create table of_view (like v including all)");
    assert_eq!(
        described(&mut client, "of_view"),
        ["one integer false false", "two text false false"]
    );
    client.tag("create role reader");
    client.tag("set role reader");
    let told = client.error("create temp table x (like t)");
    assert_eq!(told, "42501 permission denied for table t");
}

#[test]
fn what_is_never_there_is_dropped_in_vain() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key)");
    for (what, sqlstate, message) in [
        (
            "trigger a on t",
            "42704",
            "trigger \"a\" for table \"t\" does not exist",
        ),
        ("trigger a on u", "42P01", "relation \"u\" does not exist"),
        (
            "rule a on t",
            "42704",
            "rule \"a\" for relation \"t\" does not exist",
        ),
        (
            "policy a on t",
            "42704",
            "policy \"a\" for table \"t\" does not exist",
        ),
        ("extension a", "42704", "extension \"a\" does not exist"),
        (
            "materialized view a",
            "42P01",
            "materialized view \"a\" does not exist",
        ),
        (
            "foreign table a",
            "42P01",
            "foreign table \"a\" does not exist",
        ),
        (
            "statistics a",
            "42704",
            "statistics object \"a\" does not exist",
        ),
        ("server a", "42704", "server \"a\" does not exist"),
    ] {
        let told = client.error(&format!("drop {what}"));
        assert_eq!(told, format!("{sqlstate} {message}"), "{what}");
        let (kind, rest) = what.split_once(" a").unwrap();
        let tag = format!("DROP {}", kind.to_uppercase());
        assert_eq!(client.tag(&format!("drop {kind} if exists a{rest}")), tag);
    }
    assert!(client.error("drop aggregate sum(int)").starts_with("0A000"));
}

#[test]
fn how_postgresql_stores_changes_nothing() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, a text)");
    for change in [
        "alter a set statistics 100",
        "alter a set storage external",
        "alter a set (n_distinct = 5)",
        "cluster on t_pkey",
        "set without cluster",
        "replica identity full",
    ] {
        assert_eq!(
            client.tag(&format!("alter table t {change}")),
            "ALTER TABLE"
        );
    }
    let told = client.error("alter table none alter a set statistics 100");
    assert!(told.starts_with("42P01"), "{told}");
}

#[test]
fn a_schema_is_its_authorizations() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create role clerk; create schema authorization clerk");
    client.tag("create schema other authorization clerk");
    assert_eq!(
        client.rows(
            "select nspname || ' ' || pg_get_userbyid(nspowner) from pg_namespace
             where nspname in ('clerk', 'other') order by 1"
        ),
        ["clerk clerk", "other clerk"]
    );
}
