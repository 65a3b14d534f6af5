//! Constraints that come to a table with rows: NOT VALID, VALIDATE CONSTRAINT, USING INDEX.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

const SHOWN: &str = "select conname, convalidated, pg_get_constraintdef(oid) \
                     from pg_constraint where conrelid = 't'::regclass order by 1";

/// The statement is refused, in words that begin so.
fn refused(client: &mut Connection, sql: &str, begins: &str) {
    let error = client.error(sql);
    assert!(error.starts_with(begins), "{sql}: {error}");
}

#[test]
fn a_check_that_is_not_valid_is_for_new_rows_only() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int)");
    client.tag("insert into t values (1, 1), (-1, null)");
    let tag = client.tag("alter table t add constraint pos check (a > 0) not valid");
    assert_eq!(tag, "ALTER TABLE");
    assert_eq!(client.rows(SHOWN), ["pos|f|CHECK ((a > 0)) NOT VALID"]);
    let violates = "23514 new row for relation \"t\" violates check constraint \"pos\"";
    refused(&mut client, "insert into t values (-2, 2)", violates);
    refused(&mut client, "update t set b = 9 where a = -1", violates);
    // A new type leaves it as it is.
    client.tag("alter table t alter column a type bigint using a * 1");
    assert_eq!(
        client.error("alter table t validate constraint pos"),
        "23514 check constraint \"pos\" of relation \"t\" is violated by some row"
    );
    assert_eq!(
        client.error("alter table t validate constraint nope"),
        "42704 constraint \"nope\" of relation \"t\" does not exist"
    );
    client.tag("delete from t where a < 0");
    client.tag("alter table t validate constraint pos");
    client.tag("alter table t validate constraint pos");
    assert_eq!(client.rows(SHOWN), ["pos|t|CHECK ((a > 0))"]);
    // All in one statement, and in a table without rows.
    assert_eq!(
        client
            .error("alter table t add constraint c check (false) not valid, validate constraint c"),
        "23514 check constraint \"c\" of relation \"t\" is violated by some row"
    );
    client.tag("create table n (a int, constraint c check (a > 0) not valid)");
    client.tag("create table k (a int primary key)");
    client.tag("create table m (a int, foreign key (a) references k not valid)");
    assert_eq!(
        client.rows(
            "select conname, convalidated from pg_constraint \
             where conrelid in ('n'::regclass, 'm'::regclass) order by 1"
        ),
        ["c|t", "m_a_fkey|t"]
    );
}

#[test]
fn what_is_not_valid_stays_so_over_a_crash() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table p (a int primary key)");
    client.tag("create table t (a int, b int)");
    client.tag("insert into t values (-1, 7)");
    client.tag("alter table t add constraint pos check (a > 0) not valid");
    client.tag("alter table t add constraint f foreign key (b) references p not valid");
    client.tag("alter table t add constraint b check (b > 0)");
    server.crash(&device);
    let shown = [
        "b|t|CHECK ((b > 0))",
        "f|f|FOREIGN KEY (b) REFERENCES p(a) NOT VALID",
        "pos|f|CHECK ((a > 0)) NOT VALID",
    ];
    // From the log, and from a checkpoint.
    for checkpoint in [true, false] {
        let server = Server::on(&device);
        let mut client = server.connect();
        assert_eq!(client.rows(SHOWN), shown);
        let violates = "23514 new row for relation \"t\" violates check constraint \"pos\"";
        refused(&mut client, "insert into t values (-2, null)", violates);
        if checkpoint {
            client.tag("checkpoint");
        }
        server.crash(&device);
    }
    let server = Server::on(&device);
    let mut client = server.connect();
    let error = client.error("alter table t validate constraint f");
    assert!(
        error.starts_with("23503 insert or update on table \"t\""),
        "{error}"
    );
    client.tag("insert into p values (7)");
    client.tag("alter table t validate constraint f");
    client.tag("update t set a = 1");
    client.tag("alter table t validate constraint pos");
    let valid =
        client.rows("select convalidated from pg_constraint where conrelid = 't'::regclass");
    assert_eq!(valid, ["t", "t", "t"]);
}

#[test]
fn an_index_becomes_a_constraints() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, c int)");
    client.tag("insert into t values (1, 10, 100), (2, 20, 200), (null, 30, 300)");
    client.tag("create unique index ua on t (a)");
    client.tag("create unique index ub on t (b) include (c)");
    client.tag("create unique index uc on t (c, b)");
    client.tag("comment on index uc is 'kept'");
    client.tag("alter table t add unique using index ua");
    let said = client.query("alter table t add constraint k unique using index ub");
    let notice = "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"ub\" to \"k\"";
    assert_eq!(said, [format!("N 00000 {notice}"), "C ALTER TABLE".into()]);
    // The columns of a primary key take no NULL.
    client.tag("alter table t add constraint t_pkey primary key using index uc");
    assert_eq!(
        client.rows(SHOWN),
        [
            "k|t|UNIQUE (b) INCLUDE (c)",
            "t_pkey|t|PRIMARY KEY (c, b)",
            "ua|t|UNIQUE (a)"
        ]
    );
    let not_null = "select attname from pg_attribute where attrelid = 't'::regclass \
                    and attnotnull and attnum > 0 order by 1";
    assert_eq!(client.rows(not_null), ["b", "c"]);
    assert_eq!(
        client.rows("select obj_description('t_pkey'::regclass, 'pg_class')"),
        ["kept"]
    );
    assert_eq!(
        client
            .error("insert into t values (9, 30, 300)")
            .split(' ')
            .next(),
        Some("23505")
    );
    assert_eq!(
        client.rows("select a from t where c = 200 and b = 20"),
        ["2"]
    );
    client.tag("insert into t values (9, 30, 300) on conflict on constraint k do nothing");
    client.tag("create table child (c int, b int, foreign key (c, b) references t)");
    client.tag("alter table t drop constraint ua");
    assert_eq!(
        client.rows("select count(*) from pg_class where relname = 'ua'"),
        ["0"]
    );
    server.is_sound();
}

#[test]
fn not_every_index_becomes_a_constraints() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, constraint pos check (a > 0))");
    client.tag("insert into t values (1, null)");
    client.tag("create index plain on t (a)");
    client.tag("create unique index part on t (a) where a > 0");
    client.tag("create unique index expr on t ((a + 1))");
    client.tag("create unique index ub on t (b)");
    client.tag("create unique index ua on t (a)");
    client.tag("create table o (x int constraint taken unique)");
    client.tag("create unique index ox on o (x)");
    for (sql, error) in [
        (
            "add primary key using index nope",
            "42704 index \"nope\" does not exist",
        ),
        (
            "add primary key using index o",
            "42809 \"o\" is not an index",
        ),
        (
            "add primary key using index plain",
            "42809 \"plain\" is not a unique index",
        ),
        (
            "add primary key using index part",
            "42809 \"part\" is a partial index",
        ),
        (
            "add unique using index expr",
            "42809 index \"expr\" contains expressions",
        ),
        (
            "add unique using index ox",
            "55000 index \"ox\" does not belong to table \"t\"",
        ),
        (
            "add unique using index taken",
            "55000 index \"taken\" is already associated with a constraint",
        ),
        (
            "add primary key using index ub",
            "23502 column \"b\" of relation \"t\" contains null values",
        ),
        (
            "add constraint o unique using index ua",
            "42P07 relation \"o\" already exists",
        ),
        (
            "add constraint pos unique using index ua",
            "42710 constraint \"pos\" for relation \"t\" already exists",
        ),
        (
            "add constraint d unique using index ua deferrable",
            "0A000 deferrable constraints other than foreign keys are not supported",
        ),
    ] {
        refused(&mut client, &format!("alter table t {sql}"), error);
    }
    client.tag("alter table t add primary key using index ua");
    client.tag("update t set b = 1");
    assert_eq!(
        client.error("alter table t add primary key using index ub"),
        "42P16 multiple primary keys for table \"t\" are not allowed"
    );
    refused(
        &mut client,
        "create table q (a int, unique using index foo)",
        "0A000 cannot use an existing index in CREATE TABLE",
    );
    server.is_sound();
}
