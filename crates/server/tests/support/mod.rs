//! A server over a fresh database, and a client that speaks bytes.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod database;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thermocline_server::{Config, Metrics, Rules, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Nothing in these tests takes longer, unless it is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The server that THERMOCLINE_SERVER says (`127.0.0.1:5433`), a release build for a long run, say;
/// else one of the test's own, which runs as long as it is held.
pub async fn server_under_test() -> (SocketAddr, Option<Running>) {
    if let Ok(address) = std::env::var("THERMOCLINE_SERVER") {
        return (address.parse().expect("an address and a port"), None);
    }
    let server = Running::start(|_| {}).await;
    (server.address, Some(server))
}

/// A running server; stops when told.
pub struct Running {
    pub address: SocketAddr,
    pub metrics: Arc<Metrics>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    _database: database::TestDatabase,
}

impl Running {
    pub async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let database = database::TestDatabase::open();
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            stop_grace: Duration::from_millis(300),
            rules: Rules::parse("host all all 127.0.0.0/8 trust").unwrap(),
            ..Config::default()
        };
        change(&mut config);
        let server = Server::bind(config).await.unwrap();
        let address = server.local_addr().unwrap();
        let metrics = server.metrics();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(database.engine(), async {
            let _ = stopped.await;
        }));
        Self {
            address,
            metrics,
            stop: Some(stop),
            task,
            _database: database,
        }
    }

    /// Sets `memory_limit`, in bytes.
    pub fn set_memory_limit(&self, bytes: u64) {
        let engine = self._database.engine();
        engine.database().set_memory_limit(bytes);
    }

    /// What the accounts of all sessions hold, in bytes.
    pub fn charged(&self) -> u64 {
        self._database.engine().database().clients().granted()
    }

    /// Begins to stop; [`Running::stopped`] waits for the end of it.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub async fn stopped(self) {
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }

    /// Waits until the counters are as wanted.
    pub async fn until(&self, wanted: impl Fn(&thermocline_server::MetricsSnapshot) -> bool) {
        let reached = timeout(PATIENCE, async {
            while !wanted(&self.metrics.snapshot()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(reached.await.is_ok(), "{:?}", self.metrics.snapshot());
    }

    pub async fn client(&self) -> Wire {
        Wire::session(self.address).await
    }
}

/// A message of the server.
#[derive(Debug, Clone)]
pub struct Message {
    pub tag: u8,
    pub body: Bytes,
}

impl Message {
    /// A field of an ErrorResponse.
    pub fn field(&self, wanted: u8) -> Option<String> {
        assert!(matches!(self.tag, b'E' | b'N'), "{self:?}");
        self.body.split(|byte| *byte == 0).find_map(|field| {
            let (tag, text) = field.split_first()?;
            (*tag == wanted).then(|| String::from_utf8_lossy(text).into_owned())
        })
    }

    pub fn sqlstate(&self) -> String {
        self.field(b'C').unwrap()
    }
}

/// The tags of messages, as text.
pub fn tags(messages: &[Message]) -> String {
    messages
        .iter()
        .map(|message| char::from(message.tag))
        .collect()
}

/// What the rows of an answer say, as text.
pub fn rows_as_text(messages: &[Message]) -> Vec<Vec<Option<String>>> {
    let rows = messages.iter().filter(|message| message.tag == b'D');
    rows.map(|row| {
        let mut body = row.body.clone();
        let columns = body.get_u16();
        let value = |_| {
            let length = usize::try_from(body.get_i32()).ok()?;
            Some(String::from_utf8(body.split_to(length).to_vec()).unwrap())
        };
        (0..columns).map(value).collect()
    })
    .collect()
}

/// A client that speaks bytes.
pub struct Wire {
    pub stream: TcpStream,
    input: BytesMut,
    pub process_id: i32,
    pub secret: i32,
}

impl Wire {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            input: BytesMut::new(),
            process_id: 0,
            secret: 0,
        }
    }

    /// A session of `postgres`, here or on a PostgreSQL.
    pub async fn session(address: SocketAddr) -> Self {
        Self::of_database(address, "postgres").await
    }

    /// A session of `postgres` in a database.
    pub async fn of_database(address: SocketAddr, database: &str) -> Self {
        let mut wire = Self::connect(address).await;
        wire.startup(3 << 16, &[("user", "postgres"), ("database", database)])
            .await;
        wire.until(b'Z').await;
        wire
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub async fn startup(&mut self, version: i32, parameters: &[(&str, &str)]) {
        let mut body = BytesMut::new();
        body.put_i32(version);
        for (name, value) in parameters {
            put_string(&mut body, name);
            put_string(&mut body, value);
        }
        body.put_u8(0);
        let mut packet = BytesMut::new();
        packet.put_i32(body.len() as i32 + 4);
        packet.put_slice(&body);
        self.send(&packet).await;
    }

    /// The next message; none when the server has closed.
    pub async fn next(&mut self) -> Option<Message> {
        let next = timeout(PATIENCE, async {
            loop {
                if self.input.len() >= 5 {
                    let length = (&self.input[1..5]).get_u32() as usize;
                    if self.input.len() > length {
                        let mut frame = self.input.split_to(1 + length);
                        let tag = frame[0];
                        frame.advance(5);
                        let body = frame.freeze();
                        if tag == b'K' {
                            let mut key = body.clone();
                            self.process_id = key.get_i32();
                            self.secret = key.get_i32();
                        }
                        return Some(Message { tag, body });
                    }
                }
                if matches!(self.stream.read_buf(&mut self.input).await, Ok(0) | Err(_)) {
                    assert!(self.input.is_empty(), "a cut message: {:?}", self.input);
                    return None;
                }
            }
        });
        next.await.expect("the server did not answer")
    }

    /// All messages up to the first with this tag.
    pub async fn until(&mut self, tag: u8) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await;
            let message =
                message.unwrap_or_else(|| panic!("closed instead of {tag} after {messages:?}"));
            let found = message.tag == tag;
            messages.push(message);
            if found {
                return messages;
            }
        }
    }

    /// The last words before the server closes.
    pub async fn fatal(&mut self) -> Message {
        let mut last = None;
        while let Some(message) = self.next().await {
            last = Some(message);
        }
        let error = last.expect("closed without a word");
        assert_eq!(error.field(b'S').unwrap(), "FATAL");
        error
    }

    pub async fn query(&mut self, sql: &str) -> Vec<Message> {
        let query = query(sql);
        self.send(&query).await;
        self.until(b'Z').await
    }
}

fn put_string(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

/// One message of a client.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.put_i32(body.len() as i32 + 4);
    out.put_slice(body);
    out
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

/// Bind of the unnamed portal without parameters, results as text.
pub fn bind(statement: &str) -> Vec<u8> {
    message(b'B', format!("\0{statement}\0\0\0\0\0\0\0").as_bytes())
}

pub fn execute() -> Vec<u8> {
    message(b'E', b"\0\0\0\0\0")
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

pub fn flush() -> Vec<u8> {
    message(b'H', b"")
}
