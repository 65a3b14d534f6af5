//! A statement that panics, in the real program: with `cargo test -p thermocline --features
//! stop-points --test panics`. Its own client is told XX000, and everybody else goes on. Amid
//! the engine's own change of a row the process stops, and nothing acknowledged is lost.
#![cfg(feature = "stop-points")]

mod support;

use support::{Running, directory, program};

async fn prepared(client: &tokio_postgres::Client) {
    let sql = "create table t (id int primary key, v int); create index on t (v); \
               insert into t values (1, 0), (2, 0), (3, 0)";
    client.batch_execute(sql).await.unwrap();
}

async fn sum(client: &tokio_postgres::Client) -> (i64, i64) {
    let row = client
        .query_one("select count(*), sum(v) from t", &[])
        .await;
    let row = row.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn a_panic_in_a_statement_is_its_own_clients_and_leaves_nothing_behind() {
    let directory = directory();
    // After the three inserts and the first update: amid the rows of the last one.
    let mut command = program(directory.path());
    command.args(["serve", "-p", "0"]);
    command.env("THERMOCLINE_PANIC_AT", "statement:7");
    let mut server = Running::start(&mut command);
    let (victim, other) = (server.connect().await, server.connect().await);
    prepared(&other).await;
    victim
        .batch_execute("begin; update t set v = 7 where id = 3")
        .await
        .unwrap();
    let error = victim
        .batch_execute("update t set v = 9")
        .await
        .unwrap_err();
    let error = error.as_db_error().expect("it is told why");
    assert_eq!(error.code().code(), "XX000");
    assert_eq!(error.severity(), "FATAL");
    assert!(error.message().starts_with("internal error: "), "{error}");
    // Nothing of it or its transaction is there, and nobody holds anything.
    assert_eq!(sum(&other).await, (3, 0));
    other.batch_execute("update t set v = v + 1").await.unwrap();
    assert_eq!(sum(&other).await, (3, 3));
    server.signal("TERM");
    assert!(server.wait().success());
}

#[tokio::test]
async fn a_panic_amid_a_change_stops_the_process_and_loses_nothing() {
    let directory = directory();
    let mut command = program(directory.path());
    command.args(["serve", "-p", "0"]);
    command.env("THERMOCLINE_PANIC_AT", "change:4");
    let mut server = Running::start(&mut command);
    let client = server.connect().await;
    prepared(&client).await;
    client
        .batch_execute("insert into t values (4, 5)")
        .await
        .unwrap_err();
    assert!(!server.wait().success());
    let mut command = program(directory.path());
    let mut server = Running::start(command.args(["serve", "-p", "0"]));
    let client = server.connect().await;
    assert_eq!(sum(&client).await, (3, 0));
    client
        .batch_execute("insert into t values (4, 5)")
        .await
        .unwrap();
    server.signal("TERM");
    assert!(server.wait().success());
}
