//! The queries that clients send to the catalogs, as recorded: each gives the
//! rows in the `.out` file beside it. They were compared with PostgreSQL 15's
//! when they were recorded; what differs from it differs on purpose (there are
//! no foreign keys, one database, one role).

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::fixture::{Connection, Server};
use crate::queries::runtime;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/catalog_queries")
}

fn read(name: &str) -> String {
    let path = directory().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn oid(client: &mut Connection, relation: &str) -> String {
    let rows = client.rows(&format!("select '{relation}'::regclass::oid"));
    rows[0].clone()
}

/// Runs a file of queries; columns and rows of each.
fn outcome(client: &mut Connection, file: &str) -> String {
    let (orders, customers) = (oid(client, "app.orders"), oid(client, "app.customers"));
    let mut out = String::new();
    for query in read(file).split("\n;;\n") {
        let sql = query
            .replace("{orders}", &orders)
            .replace("{customers}", &customers)
            .replace("{nothing}", "1000000");
        let first: String = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let first: String = first.chars().take(70).collect();
        let _ = writeln!(out, "-- {first}");
        for answer in client.query(&sql) {
            // Numbers of objects may change with every new table; names do not.
            let _ = writeln!(
                out,
                "{}",
                answer
                    .replace(&orders, "{orders}")
                    .replace(&customers, "{customers}")
            );
        }
    }
    out
}

fn check(name: &str) {
    let server = Server::new();
    let mut client = server.connect();
    for statement in read("schema.sql").lines() {
        client.tag(statement);
    }
    let found = outcome(&mut client, &format!("{name}.sql"));
    let path = directory().join(format!("{name}.out"));
    if std::env::var_os("RECORD_CATALOG_QUERIES").is_some() {
        std::fs::write(&path, &found).expect("the outcome is written");
    }
    let expected = read(&format!("{name}.out"));
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{name}");
    let failed: Vec<&str> = found
        .lines()
        .filter(|line| line.starts_with("E "))
        .collect();
    assert!(failed.is_empty(), "{name}: {failed:?}");
}

macro_rules! clients {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*
    };
}

clients!(
    psql,
    psycopg,
    asyncpg,
    pgx,
    sqlalchemy,
    sqlalchemy_psycopg3,
    pgbench,
    jdbc,
    people
);

#[test]
fn what_each_session_holds_is_shown_by_kind() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = Server::new();
    let mut client = server.connect_with(&[("application_name", "holds much")]);
    let _other = server.connect();
    client.tag("create table t (id int primary key)");
    client.tag("insert into t select g from generate_series(1, 1000) g");
    client
        .parse("s", "select * from t where id = $1", &[])
        .unwrap();
    client.sync().unwrap();
    client.tag("begin");
    client.tag("declare c cursor for select * from t, generate_series(1, 100) g");
    let all = "select session > 0, plan > 0, result > 0, bytes = session + message + statement + \
               plan + portal + result + parameters + changes + reads + value, \
               usename, state from thermocline_sessions where application_name";
    let mine = client.rows(&format!("{all} = 'holds much'"));
    assert_eq!(mine, ["t|t|t|t|postgres|active"]);
    let mine = client.rows("select bytes from thermocline_sessions where pid = pg_backend_pid()");
    assert_eq!(mine, [client.session.account().total().to_string()]);
    let other = client.rows(&format!("{all} <> 'holds much'"));
    assert_eq!(other, ["t|f|f|t|postgres|idle"]);
    client.tag("commit");
}
