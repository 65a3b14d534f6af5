//! The queries that clients send to the catalogs, as recorded: each gives the
//! rows in the `.out` file beside it. They were compared with PostgreSQL 15's
//! when they were recorded; what differs from it differs on purpose (there are
//! no foreign keys, one database, one role).

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::fixture::{Connection, Server};

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
