//! Nobody takes the server: whatever one session runs, others are answered meanwhile, and each
//! statement ends when it is to.

mod support;

use support::{PATIENCE, Running};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls};

/// More than there are threads of any kind, on machines of a few cores.
const MANY: usize = 6;
/// No core ever gets through it.
const ENDLESS: &str = "select count(*) from t a, t b, t c, t d where a.v || b.v || d.v < c.v";

async fn connect(server: &Running) -> Client {
    let port = server.address.port();
    let config = format!("host=127.0.0.1 port={port} user=postgres");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(async move {
        // Ends with an error when a test stops the server.
        let _ = connection.await;
    });
    client
}

async fn clients(server: &Running) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..MANY {
        clients.push(connect(server).await);
    }
    clients
}

async fn answered(client: &Client, number: i32) {
    let statements = [
        "select 1 as one".to_owned(),
        format!("insert into small values ({number})"),
        format!("select id as one from small where id = {number}"),
        "select count(*) from pg_class".to_owned(),
    ];
    for sql in statements {
        let rows = timeout(PATIENCE, client.simple_query(&sql)).await;
        rows.expect("others are answered").expect("it succeeds");
    }
}

/// A server with a table, and as many endless statements as [`MANY`].
async fn beset() -> (Running, Vec<Client>, Vec<JoinHandle<Result<(), Error>>>) {
    let server = Running::start(|_| {}).await;
    let first = connect(&server).await;
    first
        .batch_execute(
            "create table t (id int primary key, v text); create table small (id int primary key); \
             insert into t select g, 'v' || g from generate_series(1, 2000) g",
        )
        .await
        .unwrap();
    let others = clients(&server).await;
    let mut running = Vec::new();
    for client in clients(&server).await {
        running.push(tokio::spawn(
            async move { client.batch_execute(ENDLESS).await },
        ));
    }
    (server, others, running)
}

#[tokio::test]
async fn endless_statements_leave_others_alone_and_the_server_stops_amid_them() {
    let (mut server, others, running) = beset().await;
    for round in 0..5 {
        for (place, client) in others.iter().enumerate() {
            answered(client, round * 100 + place as i32).await;
        }
    }
    assert!(running.iter().all(|task| !task.is_finished()));
    server.stop();
    for task in running {
        let ended = timeout(PATIENCE, task).await.unwrap().unwrap();
        assert!(ended.is_err(), "an endless statement has succeeded");
    }
    server.stopped().await;
}

#[tokio::test]
async fn endless_statements_end_by_cancel_timeout_and_with_their_clients() {
    let server = Running::start(|_| {}).await;
    let first = connect(&server).await;
    first
        .batch_execute(
            "create table t (id int primary key, v text); \
             insert into t select g, 'v' || g from generate_series(1, 2000) g",
        )
        .await
        .unwrap();
    let cancelled = connect(&server).await;
    let token = cancelled.cancel_token();
    let cancelled = tokio::spawn(async move { cancelled.batch_execute(ENDLESS).await });
    let timed = connect(&server).await;
    timed
        .batch_execute("set statement_timeout = '300ms'")
        .await
        .unwrap();
    let timed = tokio::spawn(async move { timed.batch_execute(ENDLESS).await });
    let mut vanishing = server.client().await;
    vanishing.send(&support::query(ENDLESS)).await;
    let ended = timeout(PATIENCE, timed).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
    while !cancelled.is_finished() {
        token.cancel_query(NoTls).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let ended = cancelled.await.unwrap();
    assert_eq!(ended.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
    drop(vanishing);
    server.until(|seen| seen.clients_vanished == 1).await;
    drop(first);
    // Less than any of them had.
    server.until(|_| server.charged() < 256 << 10).await;
    // And nothing of them runs any more: the next has the threads.
    let next = connect(&server).await;
    let counted = next.query_one("select count(*) from t a join t b using (id)", &[]);
    let counted = timeout(PATIENCE, counted).await.unwrap().unwrap();
    assert_eq!(counted.get::<_, i64>(0), 2000);
}

#[tokio::test]
async fn statements_over_many_rows_give_way() {
    let server = Running::start(|_| {}).await;
    let first = connect(&server).await;
    first
        .batch_execute(
            "create table t (id int primary key, v int); \
             insert into t select g, g from generate_series(1, 60000) g",
        )
        .await
        .unwrap();
    let others = clients(&server).await;
    for sql in [
        "update t set v = v + 1",
        "create index on t (v)",
        "insert into t select id + 100000, v from t where id > 0",
        "delete from t where v > 0",
    ] {
        let long = first.batch_execute(sql);
        let mut long = std::pin::pin!(long);
        let mut rounds = 0;
        loop {
            let round = async {
                for client in &others {
                    client.simple_query("select 1").await.unwrap();
                }
            };
            tokio::select! {
                biased;
                () = round => rounds += 1,
                ended = &mut long => {
                    ended.unwrap();
                    break;
                }
            }
        }
        assert!(rounds > 1, "{sql}: others were answered {rounds} times");
    }
}
