//! Results that their clients do not read: how much of them is in memory, and that nobody
//! else waits for their turns.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use thermocline_engine::{ChargeKind, block_on};
use thermocline_sql::session::SendFuture;
use thermocline_sql::{ClientLink, SqlError};

use crate::fixture::{Connection, Server, messages};
use crate::queries::runtime;

/// Rows of it do not fit into a batch, and are sorted.
const SERIES: &str = "select g, repeat('x', 100) from generate_series(1, 30000) g order by g";

/// A client that takes nothing until it is told to.
#[derive(Clone, Default)]
struct Stubborn {
    reads: Arc<AtomicBool>,
    tried: Arc<AtomicUsize>,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl ClientLink for Stubborn {
    fn flush<'a>(&'a mut self, out: &'a mut BytesMut) -> SendFuture<'a, io::Result<()>> {
        Box::pin(async move {
            poll_fn(|context| {
                self.tried.fetch_add(1, Relaxed);
                if self.reads.load(Relaxed) {
                    return Poll::Ready(());
                }
                let waker = context.waker().clone();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(5));
                    waker.wake();
                });
                Poll::Pending
            })
            .await;
            self.sent.lock().unwrap().extend_from_slice(out);
            out.clear();
            Ok(())
        })
    }

    fn copy_data<'a>(&'a mut self) -> SendFuture<'a, Result<Option<Bytes>, SqlError>> {
        Box::pin(async { Err(SqlError::new("08006", "the client is gone")) })
    }
}

/// Runs `sql` for a client that does not read, `meanwhile` once it is stuck, and then has the
/// client read; the answers.
fn unread(client: Connection, sql: &str, meanwhile: impl FnOnce()) -> (Connection, Vec<String>) {
    let link = Stubborn::default();
    let mut connection = client;
    connection.client.link = Box::new(link.clone());
    let runtime = tokio::runtime::Handle::try_current().ok();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let _entered = runtime.as_ref().map(tokio::runtime::Handle::enter);
            block_on(connection.session.simple_query(sql, &mut connection.client));
        });
        // It reads in the end, whatever happens here: the session must come to its end.
        let reading = Reading(&link);
        wait_until(|| link.tried.load(Relaxed) > 0);
        meanwhile();
        drop(reading);
        running.join().unwrap();
    });
    let mut sent = std::mem::take(&mut *link.sent.lock().unwrap());
    sent.extend_from_slice(&connection.client.out);
    connection.client.out.clear();
    (connection, messages(&sent))
}

struct Reading<'a>(&'a Stubborn);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.reads.store(true, Relaxed);
    }
}

fn wait_until(mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn rows_of(answers: &[String]) -> usize {
    answers.iter().filter(|a| a.starts_with("D ")).count()
}

#[test]
fn cursors_give_way_to_more_cursors_and_to_others_and_lose_no_row() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = Server::new();
    let db = server.engine.database();
    let mut client = server.connect();
    client.tag("begin");
    // More than there are turns for one session.
    let cursors = 40;
    for at in 0..cursors {
        client.tag(&format!("declare c{at} cursor for {SERIES}"));
        let first = client.rows(&format!("fetch 1 from c{at}"));
        assert!(first[0].starts_with("1|xxx"), "{first:?}");
    }
    let report = db.spill().report();
    assert!(report.files > 0 && report.files < cursors, "{report:?}");
    let held = client.session.account().total();
    assert!(held <= db.clients().account_max(), "{held}");
    // The rest of the pool is taken: whoever comes gets the turn of a cursor at rest.
    let share = db.clients().report().share;
    let account = db.clients().open();
    let _most = account.charge(ChargeKind::Message, share / 4).unwrap();
    let mut other = server.connect();
    let began = Instant::now();
    assert_eq!(
        other.rows(&format!("select count(*) from ({SERIES}) s")),
        ["30000"]
    );
    assert!(began.elapsed() < Duration::from_secs(30));
    // Some rows come from a file, and then from a stream.
    for at in 0..cursors {
        let rows = client.rows(&format!("fetch 10 from c{at}"));
        assert!(rows[0].starts_with("2|") && rows.len() == 10, "{rows:?}");
        assert_eq!(client.tag(&format!("move 1000 in c{at}")), "MOVE 1000");
    }
    for at in [0, 1, cursors - 1] {
        let rows = client.rows(&format!("fetch all from c{at}"));
        assert_eq!(rows.len(), 30_000 - 1011);
        assert!(rows[0].starts_with("1012|"), "{}", rows[0]);
        assert_eq!(client.tag(&format!("fetch 1 from c{at}")), "FETCH 0");
    }
    client.tag("commit");
    assert_eq!(db.spill().report().files, 0);
    assert!(client.session.account().total() < 1 << 20);
}

#[test]
fn an_unread_stream_gives_its_turn_away_and_goes_on_when_it_is_read() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = Server::new();
    let db = Arc::clone(server.engine.database());
    let client = server.connect();
    let mut other = server.connect();
    let (mut client, answers) = unread(client, SERIES, || {
        let _entered = runtime.enter();
        let share = db.clients().report().share;
        let taken: Vec<_> = [share / 2, share / 4 - (50 << 20)]
            .into_iter()
            .map(|bytes| {
                db.clients()
                    .open()
                    .charge(ChargeKind::Message, bytes)
                    .unwrap()
            })
            .collect();
        let began = Instant::now();
        assert_eq!(
            other.rows(&format!("select count(*) from ({SERIES}) s")),
            ["30000"]
        );
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(db.spill().report().files, 1, "what was not read");
        drop(taken);
    });
    assert_eq!(rows_of(&answers), 30_000);
    assert_eq!(answers.last().unwrap(), "C SELECT 30000");
    assert_eq!(db.spill().report().files, 0);
    client.client.link = Box::new(Stubborn {
        reads: Arc::new(AtomicBool::new(true)),
        ..Stubborn::default()
    });
}

#[test]
fn a_whole_result_that_nobody_reads_leaves_memory() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, pad text)");
    client.tag(
        "insert into t select g, repeat(chr(97 + g % 26), 1000) from generate_series(1, 5000) g",
    );
    let account = client.session.account().clone();
    let db = Arc::clone(server.engine.database());
    let sql = "select id, pad from t where id >= 1 order by id";
    // What a volatile function is in stays on the short path, however long it takes.
    let whole = "select id, pad from t where id >= 1 and random() < 2 order by id";
    let (mut client, answers) = unread(client, whole, || {
        wait_until(|| db.spill().report().files == 1);
        wait_until(|| account.held(ChargeKind::Result) < 512 << 10);
    });
    assert_eq!(rows_of(&answers), 5000);
    assert!(answers[1].starts_with("D 1|bbb") && answers[5000].starts_with("D 5000|"));
    assert_eq!(
        (account.held(ChargeKind::Result), db.spill().report().files),
        (0, 0)
    );
    // Without room it is answered as a stream, or refused.
    client.client.link = Box::new(Stubborn {
        reads: Arc::new(AtomicBool::new(true)),
        ..Stubborn::default()
    });
    let most = db.clients().account_max() - account.total();
    let _full = account
        .charge(ChargeKind::Message, most - (1 << 20))
        .unwrap();
    for sql in [
        sql,
        "select id, pad from t where id >= 1 order by pad",
        "select pad || id, count(*) from t where id > 0 group by 1",
    ] {
        block_on(client.session.simple_query(sql, &mut client.client));
        let out = std::mem::take(&mut client.client.out);
        let answers = messages(&out);
        assert!(
            answers.iter().any(|a| a.starts_with("E 53200 ")),
            "{answers:?}"
        );
    }
    assert_eq!(account.held(ChargeKind::Result), 0);
}

#[test]
fn rows_that_were_written_and_held_cursors_are_kept_on_the_device() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = Server::new();
    let db = server.engine.database();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, pad text)");
    let insert = "insert into t select g, repeat('y', 1000) from generate_series(1, 3000) g \
                  returning id, pad";
    client.parse("insert", insert, &[]).unwrap();
    client.bind("p", "insert", &[]).unwrap();
    assert_eq!(client.execute("p", 2).unwrap().len(), 3);
    assert_eq!(db.spill().report().files, 1);
    let held = client.session.account().held(ChargeKind::Portal);
    assert!(held > 0 && held < 512 << 10, "{held}");
    let rest = client.execute("p", 0).unwrap();
    assert_eq!(rest.len(), 2999);
    assert!(rest[0].starts_with("D 3|yyy") && rest[2997].starts_with("D 3000|"));
    client.sync().unwrap();
    assert_eq!(db.spill().report().files, 0);

    client.tag("begin");
    client.tag(&format!("declare held cursor with hold for {SERIES}"));
    client.tag("declare few cursor with hold for select id from t where id < 4 order by 1");
    client.tag("commit");
    assert_eq!(db.spill().report().files, 1, "the few are in memory");
    client.tag("delete from t");
    assert_eq!(client.rows("fetch 2 from few"), ["1", "2"]);
    assert_eq!(client.tag("move 29998 in held"), "MOVE 29998");
    assert_eq!(client.rows("fetch all from held").len(), 2);
    assert_eq!(client.rows("fetch all from few"), ["3"]);
    client.tag("close all");
    assert_eq!(db.spill().report().files, 0);
    assert_eq!(client.session.account().held(ChargeKind::Portal), 0);
}
