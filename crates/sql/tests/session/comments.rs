//! COMMENT ON, and where its texts are seen.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn comments_are_seen_and_go_with_their_objects() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create schema s; create table s.t (id int primary key, v int,
             constraint small check (v < 10), constraint one unique (v));
         create view w as select id as x from s.t; create sequence n; create role clerk;
         create index i on s.t (v, id)",
    );
    for comment in [
        "comment on table s.t is 'It''s a table'",
        "comment on column s.t.v is E'of\\tit'",
        "comment on column w.x is 'of a view'",
        "comment on view w is 'a view'",
        "comment on index s.i is 'an index'",
        "comment on sequence n is 'numbers'",
        "comment on schema s is 'a schema'",
        "comment on constraint small on s.t is 'a check'",
        "comment on constraint one on s.t is 'a key'",
        "comment on role clerk is 'a role'",
        "comment on database postgres is 'the database'",
    ] {
        assert_eq!(client.tag(comment), "COMMENT", "{comment}");
    }
    let described = "select c.relname, d.objsubid, d.description from pg_description d \
                     join pg_class c on c.oid = d.objoid and d.classoid = 'pg_class'::regclass \
                     where d.objoid >= 16384 order by 1, 2";
    assert_eq!(
        client.rows(described),
        [
            "i|0|an index",
            "n|0|numbers",
            "t|0|It's a table",
            "t|2|[6f, 66, 09, 69, 74]",
            "w|0|a view",
            "w|1|of a view",
        ]
    );
    for (function, text) in [
        (
            "obj_description('s.t'::regclass, 'pg_class')",
            "It's a table",
        ),
        ("obj_description('s.t'::regclass)", "It's a table"),
        ("obj_description('s.t'::regclass, 'pg_type')", "NULL"),
        ("col_description('w'::regclass, 1)", "of a view"),
        ("col_description('w'::regclass, 2)", "NULL"),
        (
            "(select string_agg(obj_description(oid, 'pg_constraint'), ' ' order by conname) \
             from pg_constraint where conrelid = 's.t'::regclass)",
            "a key a check",
        ),
        (
            "obj_description((select oid from pg_namespace where nspname = 's'), 'pg_namespace')",
            "a schema",
        ),
        (
            "(select shobj_description(oid, 'pg_authid') from pg_roles where rolname = 'clerk')",
            "a role",
        ),
        (
            "(select shobj_description(oid, 'pg_database') from pg_database)",
            "the database",
        ),
    ] {
        assert_eq!(
            client.rows(&format!("select {function}")),
            [text],
            "{function}"
        );
    }
    client.tag("begin; comment on table s.t is 'other'; savepoint a; comment on view w is null");
    assert_eq!(
        client.rows("select obj_description('s.t'::regclass), obj_description('w'::regclass)"),
        ["other|NULL"]
    );
    client.tag("rollback to a");
    assert_eq!(
        client.rows("select obj_description('w'::regclass)"),
        ["a view"]
    );
    client.tag("rollback; alter table s.t rename to u; comment on column s.u.v is ''");
    assert_eq!(
        client.rows("select obj_description('s.u'::regclass), col_description('s.u'::regclass, 2)"),
        ["It's a table|NULL"]
    );
    client.tag(
        "drop view w; drop table s.u; create view w as select 1 as x; drop role clerk;
         drop sequence n",
    );
    assert_eq!(
        client.rows("select description from pg_description where objoid >= 16384"),
        ["a schema"]
    );
    assert_eq!(
        client.rows("select description from pg_shdescription"),
        ["the database"]
    );
}

#[test]
fn two_comment_at_once() {
    let server = Server::new();
    let (mut one, mut other) = (server.connect(), server.connect());
    one.tag("create table a (id int primary key); create table b (id int primary key)");
    one.tag("begin; comment on table a is 'x'");
    other.tag("begin; comment on table b is 'y'; comment on column b.id is 'z'");
    one.tag("commit");
    other.tag("commit");
    assert_eq!(
        one.rows("select description from pg_description where objoid >= 16384 order by 1"),
        ["x", "y", "z"]
    );
}

#[test]
fn what_is_not_there_gets_no_comment() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key); create view w as select 1; create role clerk");
    for (comment, error) in [
        (
            "table none is 'x'",
            "42P01 relation \"none\" does not exist",
        ),
        ("view t is 'x'", "42809 \"t\" is not a view"),
        ("index w is 'x'", "42809 \"w\" is not an index"),
        (
            "column t.none is 'x'",
            "42703 column \"none\" of relation \"t\" does not exist",
        ),
        ("column id is 'x'", "42601 column name must be qualified"),
        (
            "constraint none on t is 'x'",
            "42704 constraint \"none\" for table \"t\" does not exist",
        ),
        ("schema none is 'x'", "3F000 schema \"none\" does not exist"),
        ("role none is 'x'", "42704 role \"none\" does not exist"),
        (
            "database none is 'x'",
            "3D000 database \"none\" does not exist",
        ),
        (
            "function nobody() is 'x'",
            "42883 function nobody() does not exist",
        ),
        ("table t is x", "42601 syntax error at or near \"x\""),
    ] {
        let told = client.error(&format!("comment on {comment}"));
        assert!(told.starts_with(error), "{comment}: {told}");
    }
    let long = "x".repeat((64 << 10) + 1);
    let told = client.error(&format!("comment on table t is '{long}'"));
    assert!(told.starts_with("54000"), "{told}");
    client.tag("set role clerk");
    for object in [
        "table t",
        "column t.id",
        "view w",
        "schema public",
        "role clerk",
    ] {
        let told = client.error(&format!("comment on {object} is 'x'"));
        assert!(told.starts_with("42501"), "{object}: {told}");
    }
}

#[test]
fn comments_are_there_after_a_crash() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (id int primary key); comment on table t is 'in a checkpoint'");
    client.tag("checkpoint; comment on column t.id is 'in the log'");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(
        client.rows(
            "select objsubid, description from pg_description where objoid >= 16384 order by 1"
        ),
        ["0|in a checkpoint", "1|in the log"]
    );
}
