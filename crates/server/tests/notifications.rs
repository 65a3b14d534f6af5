//! LISTEN and NOTIFY as clients see them: when messages come, to whom, in which order, and what
//! they may take.

mod support;

use bytes::Buf;
use support::{Message, Running, Wire, tags};

/// The channel and payload of a NotificationResponse.
fn told(message: &Message) -> String {
    assert_eq!(message.tag, b'A', "{message:?}");
    let mut body = message.body.clone();
    body.advance(4);
    let text = String::from_utf8(body.to_vec()).unwrap();
    let parts: Vec<&str> = text.split_terminator('\0').collect();
    parts.join(" ")
}

/// The notifications among some messages.
fn all_told(messages: &[Message]) -> Vec<String> {
    let among = messages.iter().filter(|message| message.tag == b'A');
    among.map(told).collect()
}

/// Runs statements that must not fail; the notifications that came with the answers.
async fn run(wire: &mut Wire, sql: &str) -> Vec<String> {
    let messages = wire.query(sql).await;
    let failed = messages.iter().find(|message| message.tag == b'E');
    assert!(failed.is_none(), "{sql}: {failed:?}");
    all_told(&messages)
}

async fn error(wire: &mut Wire, sql: &str) -> String {
    let messages = wire.query(sql).await;
    let failed = messages.iter().find(|message| message.tag == b'E');
    let failed = failed.unwrap_or_else(|| panic!("{sql}: {}", tags(&messages)));
    format!("{} {}", failed.sqlstate(), failed.field(b'M').unwrap())
}

async fn next(wire: &mut Wire) -> String {
    told(&wire.next().await.unwrap())
}

const NOTHING: [&str; 0] = [];

#[tokio::test]
async fn who_listens_is_told_when_it_is_committed() {
    let server = Running::start(|_| {}).await;
    let (mut listener, mut sender) = (server.client().await, server.client().await);
    run(&mut listener, "listen news; listen \"Other\"").await;
    // Idle: at once.
    run(&mut sender, "notify news, 'first'").await;
    assert_eq!(next(&mut listener).await, "news first");
    run(&mut sender, "notify \"Other\"").await;
    assert_eq!(next(&mut listener).await, "Other ");
    run(&mut sender, "notify other, 'nobody listens'").await;
    // In a transaction: when it commits, once each, in order.
    run(
        &mut sender,
        "begin; notify news, 'a'; select pg_notify('news', 'b'); notify news, 'a'; savepoint s; \
         notify news, 'c'; rollback to s; notify news, 'd'",
    )
    .await;
    assert_eq!(run(&mut listener, "select 1").await, NOTHING);
    run(&mut sender, "commit").await;
    for payload in ["a", "b", "d"] {
        assert_eq!(next(&mut listener).await, format!("news {payload}"));
    }
    for given_up in ["rollback", "select 1 / 0; commit"] {
        run(&mut sender, "begin; notify news, 'never'").await;
        sender.query(given_up).await;
        sender.query("rollback").await;
    }
    sender.query("notify news, 'never'; select 1 / 0").await;
    run(&mut sender, "notify news, 'last'").await;
    assert_eq!(next(&mut listener).await, "news last");
    // The sender's number is its own.
    run(&mut sender, "listen news").await;
    let messages = sender.query("notify news, 'own'").await;
    assert_eq!(tags(&messages), "CAZ");
    let mut body = messages[1].body.clone();
    let pid = body.get_i32().to_string();
    let shown = sender.query("select pg_backend_pid()").await;
    assert!(String::from_utf8_lossy(&shown[1].body).ends_with(&pid));
}

#[tokio::test]
async fn a_transaction_is_not_disturbed() {
    let server = Running::start(|_| {}).await;
    let (mut listener, mut sender) = (server.client().await, server.client().await);
    run(&mut listener, "listen a").await;
    run(&mut listener, "begin").await;
    run(&mut sender, "notify a, '1'; notify a, '2'").await;
    assert_eq!(run(&mut listener, "select 1").await, NOTHING);
    let failed = listener.query("select 1 / 0").await;
    assert_eq!(all_told(&failed), NOTHING);
    assert_eq!(run(&mut listener, "rollback").await, ["a 1", "a 2"]);
    // What a transaction listens to it does when it has committed.
    run(&mut listener, "begin; listen b; unlisten a").await;
    run(&mut sender, "notify b, 'too early'; notify a, 'in time'").await;
    assert_eq!(run(&mut listener, "commit").await, ["a in time"]);
    run(&mut sender, "notify b, 'now'; notify a, 'too late'").await;
    assert_eq!(next(&mut listener).await, "b now");
    run(&mut listener, "begin; listen c; rollback").await;
    assert_eq!(run(&mut sender, "notify c, 'not heard'").await, NOTHING);
    let channels = "select string_agg(c, ' ' order by c) from pg_listening_channels() c";
    let shown = listener.query(channels).await;
    assert!(shown[1].body.ends_with(b"b"), "{shown:?}");
}

#[tokio::test]
async fn who_stops_listening_is_told_nothing() {
    let server = Running::start(|_| {}).await;
    let mut sender = server.client().await;
    for stop in ["unlisten a", "unlisten *", "discard all"] {
        let mut listener = server.client().await;
        run(&mut listener, "listen a; listen a; listen b").await;
        run(&mut listener, stop).await;
        run(&mut sender, "notify a, 'x'").await;
        assert_eq!(run(&mut listener, "select 1").await, NOTHING, "{stop}");
        run(&mut sender, "notify b, 'y'").await;
        if stop == "unlisten a" {
            assert_eq!(next(&mut listener).await, "b y");
        } else {
            assert_eq!(run(&mut listener, "select 1").await, NOTHING, "{stop}");
        }
    }
    // Who has gone takes no room.
    for _ in 0..10 {
        run(&mut sender, "notify a, 'x'; notify b, 'y'").await;
    }
    let usage = sender
        .query("select pg_notification_queue_usage() = 0")
        .await;
    assert!(usage[1].body.ends_with(b"t"), "{usage:?}");
}

#[tokio::test]
async fn all_get_the_same_order() {
    let server = Running::start(|_| {}).await;
    let mut listeners = Vec::new();
    for _ in 0..3 {
        let mut listener = server.client().await;
        run(&mut listener, "listen a; listen b").await;
        listeners.push(listener);
    }
    let senders = (0..4).map(|number| {
        let address = server.address;
        tokio::spawn(async move {
            let mut sender = Wire::connect(address).await;
            sender
                .startup(3 << 16, &[("user", "postgres"), ("database", "postgres")])
                .await;
            sender.until(b'Z').await;
            for count in 0..50 {
                let text = format!(
                    "begin; notify a, '{number} {count}'; notify b, '{number} {count}'; commit"
                );
                run(&mut sender, &text).await;
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    let mut orders = Vec::new();
    for listener in &mut listeners {
        let mut order = Vec::new();
        for _ in 0..400 {
            order.push(next(listener).await);
        }
        orders.push(order);
    }
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
    // Those of one transaction are beside each other.
    for pair in orders[0].chunks(2) {
        assert_eq!(pair[0].replacen('a', "b", 1), pair[1]);
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    let long = "x".repeat(64);
    let payload = "x".repeat(8000);
    for (sql, expected) in [
        (
            format!("notify a, '{payload}'"),
            "22023 payload string too long",
        ),
        (
            "select pg_notify('', 'x')".to_owned(),
            "22023 channel name cannot be empty",
        ),
        (
            "select pg_notify(null, 'x')".to_owned(),
            "22023 channel name cannot be empty",
        ),
        (
            format!("select pg_notify('{long}', '')"),
            "22023 channel name too long",
        ),
        ("notify".to_owned(), "42601 syntax error at end of input"),
        (
            "notify a, 5".to_owned(),
            "42601 syntax error at or near \"5\"",
        ),
    ] {
        assert_eq!(error(&mut wire, &sql).await, expected, "{sql}");
    }
    run(&mut wire, "create table t (id int primary key, v text)").await;
    run(
        &mut wire,
        "insert into t values (1, 'one'), (2, 'two'); listen t",
    )
    .await;
    assert_eq!(
        run(&mut wire, "select pg_notify('t', v) from t where id = 1").await,
        ["t one"]
    );
    let mut both = run(&mut wire, "select pg_notify('t', a.v) from t a, t b").await;
    both.sort();
    assert_eq!(both, ["t one", "t two"]);
}

#[tokio::test]
async fn a_listener_that_does_not_take_them_does_not_fill_the_memory() {
    let server = Running::start(|_| {}).await;
    let (mut listener, mut sender) = (server.client().await, server.client().await);
    run(&mut listener, "listen a").await;
    run(&mut listener, "begin").await;
    let payload = "x".repeat(7900);
    let text = format!("select pg_notify('a', n || '{payload}') from generate_series(1, 20000) n");
    let mut refused = None;
    for _ in 0..100 {
        let messages = sender.query(&text).await;
        if let Some(error) = messages.iter().find(|message| message.tag == b'E') {
            refused = Some(error.sqlstate());
            break;
        }
    }
    assert_eq!(refused.as_deref(), Some("54000"));
    // Nothing of the refused statement is sent, and the others go on.
    run(&mut sender, "select 1; create table t (a int primary key)").await;
    drop(listener);
    let mut heard = server.client().await;
    run(&mut heard, "listen a").await;
    while error_of(&mut sender, "notify a, 'again'").await.is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(next(&mut heard).await, "a again");
}

async fn error_of(wire: &mut Wire, sql: &str) -> Option<String> {
    let messages = wire.query(sql).await;
    let failed = messages.iter().find(|message| message.tag == b'E');
    failed.map(Message::sqlstate)
}
