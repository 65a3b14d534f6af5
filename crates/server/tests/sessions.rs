//! Sessions are seen, ended and bounded: `pg_terminate_backend` and its like wherever a session
//! is, idle timeouts, reserved connections, sockets that say nothing, who waits for whom.

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use std::time::{Duration, Instant};

use postgres::psql;
use support::database::{WAITING, hold_a_row, rows};
use support::{
    Message, PATIENCE, Running, Wire, bind, execute, message, parse, query, rows_as_text, tags,
};

async fn ask(wire: &mut Wire, sql: &str) -> Vec<Vec<Option<String>>> {
    let messages = wire.query(sql).await;
    let failed = messages.iter().find(|message| message.tag == b'E');
    assert!(failed.is_none(), "{sql}: {failed:?}");
    rows_as_text(&messages)
}

async fn ask_one(wire: &mut Wire, sql: &str) -> Option<String> {
    let mut rows = ask(wire, sql).await;
    assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
    rows.remove(0).remove(0)
}

/// Waits until a condition on sessions holds.
async fn until(wire: &mut Wire, condition: &str) {
    let begin = Instant::now();
    let sql = format!("select count(*) from pg_stat_activity where {condition}");
    while ask_one(wire, &sql).await.as_deref() == Some("0") {
        assert!(begin.elapsed() < PATIENCE, "{condition}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn sessions_there(wire: &mut Wire, pid: i32) -> Option<String> {
    let sql = format!("select count(*) from pg_stat_activity where pid = {pid}");
    ask_one(wire, &sql).await
}

/// A session of another role.
async fn client_of(server: &Running, user: &str) -> Wire {
    let mut wire = Wire::connect(server.address).await;
    wire.startup(3 << 16, &[("user", user), ("database", "postgres")])
        .await;
    wire.until(b'Z').await;
    wire
}

/// Ends a session and waits until it has; what it was told.
async fn terminated(admin: &mut Wire, mut victim: Wire) -> Message {
    let pid = victim.process_id;
    let sql = format!("select pg_terminate_backend({pid}, 10000)");
    assert_eq!(ask_one(admin, &sql).await.as_deref(), Some("t"));
    assert_eq!(sessions_there(admin, pid).await.as_deref(), Some("0"));
    let told = victim.fatal().await;
    assert_eq!(told.sqlstate(), "57P01");
    let words = "terminating connection due to administrator command";
    assert_eq!(told.field(b'M').unwrap(), words);
    told
}

#[tokio::test]
async fn a_session_is_ended_wherever_it_is() {
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;

    // Idle.
    let idle = server.client().await;
    terminated(&mut admin, idle).await;

    // In a transaction: its row is free at once.
    let mut holder = server.client().await;
    hold_a_row(&mut holder).await;
    terminated(&mut admin, holder).await;
    assert_eq!(tags(&admin.query(WAITING).await), "CZ");

    // Waiting for a row.
    let mut holder = server.client().await;
    holder.query("begin").await;
    holder.query(WAITING).await;
    let mut waiting = server.client().await;
    waiting.send(&query(WAITING)).await;
    until(&mut admin, "wait_event_type = 'Lock'").await;
    terminated(&mut admin, waiting).await;
    terminated(&mut admin, holder).await;

    // Amid a batch, between two messages of it.
    let mut batch = server.client().await;
    batch
        .send(&[parse("", "select 1"), bind(""), execute()].concat())
        .await;
    terminated(&mut admin, batch).await;

    // Reading a message that does not come to its end.
    let mut sending = server.client().await;
    sending.send(b"Q\0\x10\0\0select").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    terminated(&mut admin, sending).await;

    // In a COPY from a client that sends nothing.
    let mut copying = server.client().await;
    copying
        .query("create table copied (id int primary key)")
        .await;
    copying.send(&query("copy copied from stdin")).await;
    copying.until(b'G').await;
    copying.send(&message(b'd', b"1\n")).await;
    until(&mut admin, "state = 'active' and wait_event = 'ClientRead'").await;
    terminated(&mut admin, copying).await;
    let count = ask_one(&mut admin, "select count(*) from copied").await;
    assert_eq!(count.as_deref(), Some("0"));

    // Running on the analytical path.
    let mut busy = server.client().await;
    let long = "select count(*) from generate_series(1, 100000) as a(n), \
                generate_series(1, 100000) as b(m) where n % 7 = m % 5";
    busy.send(&query(long)).await;
    let running = format!("pid = {} and state = 'active'", busy.process_id);
    until(&mut admin, &running).await;
    terminated(&mut admin, busy).await;
}

#[tokio::test]
async fn what_is_temporary_goes_however_the_session_ends() {
    const LEFT: &str = "select count(*) from pg_class where relpersistence = 't'";
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;
    let made = "create temp table t (id int primary key); insert into t values (1)";
    let none = async |admin: &mut Wire| {
        let begin = Instant::now();
        while ask_one(admin, LEFT).await.as_deref() != Some("0") {
            assert!(begin.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };

    let mut lost = server.client().await;
    ask(&mut lost, made).await;
    assert_eq!(ask_one(&mut admin, LEFT).await.as_deref(), Some("2"));
    drop(lost);
    none(&mut admin).await;

    let mut leaving = server.client().await;
    ask(&mut leaving, made).await;
    leaving.send(&message(b'X', b"")).await;
    none(&mut admin).await;

    // Whoever waits for its end finds nothing of it.
    let mut ended = server.client().await;
    ask(&mut ended, made).await;
    ask(&mut ended, "begin; insert into t values (2)").await;
    terminated(&mut admin, ended).await;
    assert_eq!(ask_one(&mut admin, LEFT).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_ended_without_a_cut_message() {
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;
    let mut deaf = server.client().await;
    deaf.send(&query(&rows(3_000_000))).await;
    until(&mut admin, "wait_event = 'ClientWrite'").await;
    let pid = deaf.process_id;
    let sql = format!("select pg_terminate_backend({pid}, 10000)");
    assert_eq!(ask_one(&mut admin, &sql).await.as_deref(), Some("t"));
    assert_eq!(sessions_there(&mut admin, pid).await.as_deref(), Some("0"));
    // What it reads now are whole messages up to an end, with a last word or without.
    let mut left = Vec::new();
    use tokio::io::AsyncReadExt;
    let read = tokio::time::timeout(PATIENCE, deaf.stream.read_to_end(&mut left)).await;
    assert!(read.is_ok(), "the socket is still open");
    assert!(left.len() < 64 << 20, "{} bytes", left.len());
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_client_that_does_not_read() {
    let mut server = Running::start(|_| {}).await;
    let mut admin = server.client().await;
    let mut deaf = server.client().await;
    deaf.send(&query(&rows(3_000_000))).await;
    until(&mut admin, "wait_event = 'ClientWrite'").await;
    let begin = Instant::now();
    server.stop();
    assert_eq!(admin.fatal().await.sqlstate(), "57P01");
    server.stopped().await;
    assert!(begin.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn a_session_ends_itself_and_one_that_is_not_there_is_a_warning() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    for function in ["pg_terminate_backend", "pg_cancel_backend"] {
        for from in ["", " from pg_stat_activity limit 1"] {
            let messages = wire
                .query(&format!("select {function}(999999){from}"))
                .await;
            assert_eq!(tags(&messages), "TNDCZ", "{function}{from}");
            let notice = &messages[1];
            assert_eq!(notice.field(b'S').unwrap(), "WARNING");
            assert_eq!(notice.sqlstate(), "01000");
            let words = "PID 999999 is not a PostgreSQL backend process";
            assert_eq!(notice.field(b'M').unwrap(), words);
            assert_eq!(rows_as_text(&messages)[0][0].as_deref(), Some("f"));
        }
    }
    for nothing in [
        "select pg_terminate_backend(null)",
        "select pg_terminate_backend(1, null)",
    ] {
        assert_eq!(ask_one(&mut wire, nothing).await, None, "{nothing}");
    }
    let messages = wire.query("select pg_terminate_backend(1, -1)").await;
    let error = messages.iter().find(|message| message.tag == b'E').unwrap();
    assert_eq!(error.sqlstate(), "22003");
    wire.send(&query("select pg_terminate_backend(pg_backend_pid())"))
        .await;
    assert_eq!(wire.fatal().await.sqlstate(), "57P01");
    let mut wire = server.client().await;
    let sql = "select pg_terminate_backend(pid) from pg_stat_activity where pid = pg_backend_pid()";
    wire.send(&query(sql)).await;
    assert_eq!(wire.fatal().await.sqlstate(), "57P01");
}

#[tokio::test]
async fn a_statement_is_cancelled_and_an_idle_session_is_not() {
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;
    let mut holder = server.client().await;
    hold_a_row(&mut holder).await;
    let mut waiting = server.client().await;
    let sql = format!("select pg_cancel_backend({})", waiting.process_id);
    assert_eq!(ask_one(&mut admin, &sql).await.as_deref(), Some("t"));
    assert_eq!(tags(&waiting.query("select 1").await), "TDCZ");
    waiting.send(&query(WAITING)).await;
    until(&mut admin, "wait_event_type = 'Lock'").await;
    assert_eq!(ask_one(&mut admin, &sql).await.as_deref(), Some("t"));
    let messages = waiting.until(b'Z').await;
    assert_eq!(messages[0].sqlstate(), "57014");
    assert_eq!(tags(&waiting.query("select 1").await), "TDCZ");
}

#[tokio::test]
async fn only_who_may_stops_others() {
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;
    for sql in [
        "create role anna login",
        "create role bert login",
        "create role guard login",
        "grant pg_signal_backend to guard",
    ] {
        ask(&mut admin, sql).await;
    }
    let mut anna = client_of(&server, "anna").await;
    let bert = client_of(&server, "bert").await;
    let mut guard = client_of(&server, "guard").await;
    let terminate = |pid: i32| format!("select pg_terminate_backend({pid})");
    let cancel = |pid: i32| format!("select pg_cancel_backend({pid})");
    let of = "must be a member of the role whose";
    for (sql, words) in [
        (
            terminate(bert.process_id),
            format!("{of} process is being terminated or member of pg_signal_backend"),
        ),
        (
            cancel(bert.process_id),
            format!("{of} query is being canceled or member of pg_signal_backend"),
        ),
        (
            terminate(admin.process_id),
            "must be a superuser to terminate superuser process".to_owned(),
        ),
        (
            cancel(admin.process_id),
            "must be a superuser to cancel superuser query".to_owned(),
        ),
    ] {
        let messages = anna.query(&sql).await;
        let error = messages.iter().find(|message| message.tag == b'E').unwrap();
        assert_eq!(error.sqlstate(), "42501", "{sql}");
        assert_eq!(error.field(b'M').unwrap(), words);
    }
    let messages = guard.query(&terminate(admin.process_id)).await;
    assert!(messages.iter().any(|message| message.tag == b'E'));
    terminated(&mut guard, bert).await;
    let other = client_of(&server, "anna").await;
    terminated(&mut anna, other).await;
}

#[tokio::test]
async fn who_does_nothing_for_too_long_is_ended() {
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;

    let mut idle = server.client().await;
    let begin = Instant::now();
    idle.query("set idle_session_timeout = '150ms'").await;
    let told = idle.fatal().await;
    assert_eq!(told.sqlstate(), "57P05");
    let words = "terminating connection due to idle-session timeout";
    assert_eq!(told.field(b'M').unwrap(), words);
    assert!(begin.elapsed() >= Duration::from_millis(150));

    let mut holder = server.client().await;
    hold_a_row(&mut holder).await;
    holder.query("set idle_session_timeout = 1").await;
    holder
        .query("set idle_in_transaction_session_timeout = '200ms'")
        .await;
    let mut waiting = server.client().await;
    assert_eq!(tags(&waiting.query(WAITING).await), "CZ");
    let told = holder.fatal().await;
    assert_eq!(told.sqlstate(), "25P03");
    let words = "terminating connection due to idle-in-transaction timeout";
    assert_eq!(told.field(b'M').unwrap(), words);

    // Statements may take as long as they do, and a failed transaction counts as one.
    let mut busy = server.client().await;
    busy.query("set idle_in_transaction_session_timeout = '100ms'")
        .await;
    let sql = "select count(*) from generate_series(1, 3000000) as a(n) where n % 7 = 1";
    assert_eq!(ask(&mut busy, sql).await.len(), 1);
    tokio::time::sleep(Duration::from_millis(250)).await;
    busy.query("begin").await;
    busy.query("nonsense").await;
    assert_eq!(busy.fatal().await.sqlstate(), "25P03");
    assert_eq!(ask_one(&mut admin, "select 1").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn the_last_connections_are_for_superusers() {
    let server = Running::start(|config| {
        config.max_connections = 5;
        config.superuser_reserved_connections = 2;
    })
    .await;
    let mut admin = server.client().await;
    ask(&mut admin, "create role anna login").await;
    let mut others = Vec::new();
    for _ in 0..2 {
        others.push(client_of(&server, "anna").await);
    }
    let refused = |user: &'static str| async {
        let mut wire = Wire::connect(server.address).await;
        wire.startup(3 << 16, &[("user", user), ("database", "postgres")])
            .await;
        let told = wire.fatal().await;
        (told.sqlstate(), told.field(b'M').unwrap())
    };
    let reserved =
        "remaining connection slots are reserved for non-replication superuser connections";
    assert_eq!(
        refused("anna").await,
        ("53300".to_owned(), reserved.to_owned())
    );
    others.push(server.client().await);
    others.push(server.client().await);
    for user in ["anna", "postgres"] {
        let words = "sorry, too many clients already".to_owned();
        assert_eq!(refused(user).await, ("53300".to_owned(), words));
    }
}

#[tokio::test]
async fn sockets_that_say_nothing_keep_nobody_out() {
    let server = Running::start(|config| config.max_connections = 5).await;
    let mut there = server.client().await;
    let mut silent = Vec::new();
    for number in 0..500 {
        let mut wire = Wire::connect(server.address).await;
        match number % 3 {
            0 => {}
            1 => wire.send(b"\0\0\0").await,
            _ => wire.send(b"\0\0\0\x28\0\x03\0\0user\0").await,
        }
        silent.push(wire);
        if number % 50 == 49 {
            let begin = Instant::now();
            let mut admin = server.client().await;
            assert_eq!(ask_one(&mut admin, "select 1").await.as_deref(), Some("1"));
            assert!(begin.elapsed() < Duration::from_secs(5));
        }
    }
    server
        .until(|metrics| metrics.connections_refused >= 500 - 64 - 10)
        .await;
    // A session never gives way.
    assert_eq!(ask_one(&mut there, "select 1").await.as_deref(), Some("1"));
    let told = silent[0].fatal().await;
    assert_eq!(told.sqlstate(), "53300");
}

#[tokio::test]
async fn who_does_what_and_waits_for_whom_is_seen() {
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;
    let mut holder = server.client().await;
    hold_a_row(&mut holder).await;
    let mut waiting = server.client().await;
    waiting.send(&query(WAITING)).await;
    until(&mut admin, "wait_event_type = 'Lock'").await;
    let (held, waits) = (holder.process_id, waiting.process_id);

    let columns = "client_addr, client_port > 0, state, wait_event_type, wait_event, \
                   backend_xid is not null, backend_start <= xact_start, xact_start <= query_start, \
                   query_start <= state_change, usename, datname, backend_type";
    let seen = |pid: i32| format!("select {columns} from pg_stat_activity where pid = {pid}");
    let row = ask(&mut admin, &seen(held)).await.remove(0);
    let row: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap()).collect();
    assert_eq!(
        row,
        [
            "127.0.0.1",
            "t",
            "idle in transaction",
            "Client",
            "ClientRead",
            "t",
            "t",
            "t",
            "t",
            "postgres",
            "postgres",
            "client backend"
        ]
    );
    let row = ask(&mut admin, &seen(waits)).await.remove(0);
    assert_eq!(row[2].as_deref(), Some("active"));
    assert_eq!(row[3].as_deref(), Some("Lock"));
    assert_eq!(row[4].as_deref(), Some("transactionid"));

    let blocking = ask_one(&mut admin, &format!("select pg_blocking_pids({waits})")).await;
    assert_eq!(blocking, Some(format!("{{{held}}}")));
    let blocking = ask_one(&mut admin, &format!("select pg_blocking_pids({held})")).await;
    assert_eq!(blocking.as_deref(), Some("{}"));
    let blocked = |by: i32| {
        format!("select pg_catalog.pg_isolation_test_session_is_blocked({waits}, '{{{by},7}}')")
    };
    assert_eq!(
        ask_one(&mut admin, &blocked(held)).await.as_deref(),
        Some("t")
    );
    assert_eq!(
        ask_one(&mut admin, &blocked(waits)).await.as_deref(),
        Some("f")
    );

    let locks = "select l.pid, l.mode, l.granted from pg_locks l join pg_locks h \
                 on h.transactionid = l.transactionid and h.granted \
                 where l.locktype = 'transactionid' and not l.granted";
    let rows = ask(&mut admin, locks).await;
    let expected = [waits.to_string(), "ShareLock".to_owned(), "f".to_owned()];
    assert_eq!(rows, [expected.map(Some).to_vec()]);
    let tables = format!(
        "select c.relname, l.mode, l.granted from pg_locks l join pg_class c on c.oid = l.relation \
         where l.pid = {held} and l.mode like 'Row%'"
    );
    let rows = ask(&mut admin, &tables).await;
    let expected = ["held", "RowExclusiveLock", "t"];
    assert_eq!(rows, [expected.map(|text| Some(text.to_owned())).to_vec()]);

    holder.query("rollback").await;
    assert_eq!(tags(&waiting.until(b'Z').await), "CZ");
    let none = ask_one(&mut admin, &format!("select pg_blocking_pids({waits})")).await;
    assert_eq!(none.as_deref(), Some("{}"));

    // Others see that a session is there, and no more.
    ask(&mut admin, "create role anna login").await;
    let mut anna = client_of(&server, "anna").await;
    let columns = "usename, query, state, client_addr, backend_start, xact_start, wait_event";
    let sql = format!("select {columns} from pg_stat_activity where pid = {held}");
    let row = ask(&mut anna, &sql).await.remove(0);
    assert_eq!(row[0].as_deref(), Some("postgres"));
    assert_eq!(row[1].as_deref(), Some("<insufficient privilege>"));
    assert!(row[2..].iter().all(Option::is_none), "{row:?}");
}

#[tokio::test]
async fn a_cancel_reaches_a_copy_whose_client_sends_nothing() {
    let server = Running::start(|_| {}).await;
    let mut admin = server.client().await;
    let mut copying = server.client().await;
    copying
        .query("create table copied (id int primary key)")
        .await;
    copying.send(&query("copy copied from stdin")).await;
    copying.until(b'G').await;
    until(&mut admin, "state = 'active' and wait_event = 'ClientRead'").await;
    let sql = format!("select pg_cancel_backend({})", copying.process_id);
    assert_eq!(ask_one(&mut admin, &sql).await.as_deref(), Some("t"));
    let messages = copying.until(b'Z').await;
    assert_eq!(messages[0].sqlstate(), "57014");
    // What it sends of the COPY after that is passed over.
    copying.send(&message(b'd', b"1\n")).await;
    copying.send(&message(b'c', b"")).await;
    assert_eq!(
        ask_one(&mut copying, "select 1").await.as_deref(),
        Some("1")
    );
}

#[tokio::test]
async fn psql_says_why_its_session_ended() {
    let Some(psql) = psql() else {
        eprintln!("there is no psql");
        return;
    };
    let server = Running::start(|_| {}).await;
    let (host, port) = (
        server.address.ip().to_string(),
        server.address.port().to_string(),
    );
    let run = move |sql: &str| {
        let mut command = std::process::Command::new(&psql);
        command.args(["-X", "-h", &host, "-p", &port, "-U", "postgres"]);
        command.args(["-d", "postgres", "-c", sql]);
        tokio::task::spawn_blocking(move || {
            let output = command.output().unwrap();
            String::from_utf8(output.stderr).unwrap()
        })
    };
    let said = run("select pg_terminate_backend(pg_backend_pid())").await;
    let said = said.unwrap();
    let words = "FATAL:  terminating connection due to administrator command";
    assert!(said.starts_with(words), "{said}");
    let said = run("select pg_cancel_backend(999999)").await.unwrap();
    let words = "WARNING:  PID 999999 is not a PostgreSQL backend process";
    assert_eq!(said.trim_end(), words);
}

#[tokio::test]
async fn a_driver_learns_why_its_session_ended() {
    let server = Running::start(|_| {}).await;
    let config = format!(
        "host=127.0.0.1 port={} user=postgres",
        server.address.port()
    );
    let connect = || tokio_postgres::connect(&config, tokio_postgres::NoTls);
    let (admin, connection) = connect().await.unwrap();
    tokio::spawn(connection);
    let (victim, connection) = connect().await.unwrap();
    let ended = tokio::spawn(connection);
    let sql = "select pg_backend_pid()";
    let pid: i32 = victim.query_one(sql, &[]).await.unwrap().get(0);
    let sql = "select pg_terminate_backend($1, 5000), pg_blocking_pids($1)";
    let row = admin.query_one(sql, &[&pid]).await.unwrap();
    assert!(row.get::<_, bool>(0));
    assert!(row.get::<_, Vec<i32>>(1).is_empty());
    let error = ended.await.unwrap().unwrap_err();
    assert_eq!(error.code().unwrap().code(), "57P01");
}
