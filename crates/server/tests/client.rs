//! A real driver over the wire: types, pipelines, COPY, errors, transactions.

mod support;

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt, future};
use support::Running;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

async fn connect(server: &Running) -> Client {
    let address = server.address;
    let config = format!(
        "host={} port={} user=postgres",
        address.ip(),
        address.port()
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(async move {
        // Ends with an error when a test stops the server.
        let _ = connection.await;
    });
    client
}

#[tokio::test]
async fn simple_queries_may_hold_several_statements() {
    let server = Running::start(|_| {}).await;
    let client = connect(&server).await;
    let messages = client
        .simple_query(
            "create table t (id int primary key, v text); \
             insert into t values (1, 'a'), (2, null); select v from t order by id",
        )
        .await
        .unwrap();
    let values: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
            _ => None,
        })
        .collect();
    assert_eq!(values, [Some("a".to_owned()), None]);
    // They are one transaction.
    let error = client
        .batch_execute("insert into t values (3, 'c'); insert into t values (1, 'again')")
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
    let rows = client.query("select id from t", &[]).await.unwrap();
    assert_eq!(rows.len(), 2);
}

#[tokio::test]
async fn prepared_statements_take_and_return_binary_values() {
    let server = Running::start(|_| {}).await;
    let client = connect(&server).await;
    client
        .batch_execute(
            "create table t (id bigint primary key, small smallint, real real, double float8, \
             yes bool, v varchar(20), bytes bytea)",
        )
        .await
        .unwrap();
    let insert = client
        .prepare("insert into t values ($1, $2, $3, $4, $5, $6, $7)")
        .await
        .unwrap();
    let inserted = client
        .execute(
            &insert,
            &[
                &7i64,
                &-3i16,
                &1.5f32,
                &-0.25f64,
                &true,
                &"warm",
                &&b"\x00\xff"[..],
            ],
        )
        .await
        .unwrap();
    assert_eq!(inserted, 1);
    let row = client
        .query_one("select * from t where id = $1", &[&7i64])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i16>(1), -3);
    assert_eq!(row.get::<_, f32>(2).to_bits(), 1.5f32.to_bits());
    assert_eq!(row.get::<_, f64>(3).to_bits(), (-0.25f64).to_bits());
    assert!(row.get::<_, bool>(4));
    assert_eq!(row.get::<_, &str>(5), "warm");
    assert_eq!(row.get::<_, &[u8]>(6), b"\x00\xff");
    let none = client
        .query_opt("select * from t where id = $1", &[&8i64])
        .await
        .unwrap();
    assert!(none.is_none());
}

#[tokio::test]
async fn a_driver_may_pipeline() {
    let server = Running::start(|_| {}).await;
    let client = connect(&server).await;
    client
        .batch_execute("create table t (id int primary key)")
        .await
        .unwrap();
    let insert = client.prepare("insert into t values ($1)").await.unwrap();
    let ids: Vec<i32> = (0..500).collect();
    let all = ids.iter().map(|id| {
        let (client, insert) = (&client, &insert);
        async move { client.execute(insert, &[id]).await }
    });
    let inserted = future::try_join_all(all).await.unwrap();
    assert_eq!(inserted.iter().sum::<u64>(), 500);
    let rows = client
        .query("select id from t order by id", &[])
        .await
        .unwrap();
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, ids);
}

#[tokio::test]
async fn copy_goes_in_and_out() {
    let server = Running::start(|_| {}).await;
    let client = connect(&server).await;
    client
        .batch_execute("create table t (id int primary key, v text)")
        .await
        .unwrap();
    let sink = client.copy_in("copy t from stdin").await.unwrap();
    let mut sink = Box::pin(sink);
    let mut expected = Vec::new();
    for id in 0..20_000 {
        let line = format!("{id}\trow {id}\n");
        expected.push(line.trim_end().to_owned());
        sink.send(Bytes::from(line)).await.unwrap();
    }
    assert_eq!(sink.as_mut().finish().await.unwrap(), 20_000);
    let out = client.copy_out("copy t to stdout").await.unwrap();
    let pieces: Vec<Bytes> = out.try_collect().await.unwrap();
    let text = String::from_utf8(pieces.concat()).unwrap();
    let mut found: Vec<_> = text.lines().map(str::to_owned).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    // One wrong line, and nothing of it stays.
    let sink = client.copy_in("copy t from stdin").await.unwrap();
    let mut sink = Box::pin(sink);
    sink.send(Bytes::from_static(b"20000\tfine\nwrong\tno number\n"))
        .await
        .unwrap();
    let error = sink.as_mut().finish().await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INVALID_TEXT_REPRESENTATION));
    let row = client
        .query_one("select count(*) from t", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 20_000);
}

#[tokio::test]
async fn a_driver_cancels_what_it_waits_for() {
    let server = Running::start(|_| {}).await;
    let mut holder = server.client().await;
    support::database::hold_a_row(&mut holder).await;
    let client = connect(&server).await;
    let token = client.cancel_token();
    let waiting = client.batch_execute(support::database::WAITING);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        token.cancel_query(NoTls).await.unwrap();
    };
    let (outcome, ()) = future::join(waiting, cancel).await;
    assert_eq!(outcome.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
    client.batch_execute("select 1").await.unwrap();
}

/// Of a few batches a join makes hundreds of millions of rows, which nobody has to wait for.
#[tokio::test]
async fn a_join_of_very_many_rows_lets_others_go_on_and_ends_in_time() {
    let server = Running::start(|_| {}).await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    client
        .batch_execute(
            "create table h (id int primary key, k int); \
             insert into h select g, 1 from generate_series(1, 20000) g; \
             set statement_timeout = '2s'",
        )
        .await
        .unwrap();
    let join = tokio::spawn(async move {
        let query = "select a.k, count(*) from h a join h b on a.k = b.k group by 1";
        client.query(query, &[]).await
    });
    let patience = Duration::from_secs(30);
    while !join.is_finished() {
        let read = other.query_one("select k from h where id = 7", &[]);
        let row = tokio::time::timeout(patience, read).await.unwrap().unwrap();
        assert_eq!(row.get::<_, i32>(0), 1);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let error = join.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
}

#[tokio::test]
async fn a_transaction_is_whole_or_not_at_all() {
    let server = Running::start(|_| {}).await;
    let mut client = connect(&server).await;
    client
        .batch_execute("create table t (id int primary key)")
        .await
        .unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute("insert into t values (1)", &[])
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute("insert into t values (2)", &[])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    // A failed one stays failed until its end.
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute("insert into t values (3)", &[])
        .await
        .unwrap();
    transaction
        .execute("insert into t values (2)", &[])
        .await
        .unwrap_err();
    let error = transaction.query("select 1", &[]).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
    drop(transaction);
    // A client that leaves in the middle leaves nothing behind.
    let other = connect(&server).await;
    other
        .batch_execute("begin; insert into t values (4)")
        .await
        .unwrap();
    drop(other);
    server.until(|metrics| metrics.connections_open == 1).await;
    let rows = client.query("select id from t", &[]).await.unwrap();
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, [2]);
}

#[tokio::test]
async fn settings_given_at_the_start_hold() {
    let server = Running::start(|_| {}).await;
    let config = format!(
        "host=127.0.0.1 port={} user=postgres application_name=tests options='-c statement_timeout=5s'",
        server.address.port()
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    for (name, value) in [("application_name", "tests"), ("statement_timeout", "5s")] {
        let messages = client.simple_query(&format!("show {name}")).await.unwrap();
        let found = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(found, Some(value));
    }
}
