//! A session over a database on a simulated device, and a client that shows
//! the answers as short texts: `T` columns, `D` row, `C` tag, `E` error.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use thermocline_device::SimulatedDevice;
use thermocline_engine::{Config, Database, block_on};
use thermocline_sql::session::SendFuture;
use thermocline_sql::{Client, ClientLink, Engine, Session, SqlError};

/// A server without its socket.
pub struct Server {
    pub engine: Arc<Engine>,
    next_process_id: Mutex<i32>,
}

impl Server {
    pub fn new() -> Self {
        Self::on(&Arc::new(SimulatedDevice::new()))
    }

    /// A server on a device that outlives it.
    pub fn on(device: &Arc<SimulatedDevice>) -> Self {
        // The limit is the process's: that of all tests together.
        let config = Config::new(Arc::clone(device) as _)
            .memory_limit(4 << 30)
            .partitions(4);
        Self::of(Database::open(config).expect("the database opens"))
    }

    /// The process dies, and the device has what was synced.
    pub fn crash(self, device: &SimulatedDevice) {
        device.halt_after(0);
        // Its threads find a dead device, and end before it is there again.
        let _ = self.engine.database().close();
        device.crash_losing_all();
        std::mem::forget(self);
    }

    pub fn of(database: Arc<Database>) -> Self {
        Self {
            engine: Engine::new(database).expect("the engine starts"),
            next_process_id: Mutex::new(0),
        }
    }

    /// Rows and indexes agree. Files and blocks are not asked: a checkpoint or an eviction may be
    /// under way.
    pub fn is_sound(&self) {
        let mut report = self.engine.database().verify().expect("verifies");
        let of_rows = |problem: &String| problem.starts_with("table ");
        report.problems.retain(of_rows);
        assert_eq!(report.problems, Vec::<String>::new());
    }

    pub fn connect(&self) -> Connection {
        self.connect_with(&[])
    }

    pub fn connect_with(&self, parameters: &[(&str, &str)]) -> Connection {
        let mut process_id = self.next_process_id.lock().unwrap();
        *process_id += 1;
        let parameters: Vec<(String, String)> = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let session = Session::new(
            Arc::clone(&self.engine),
            "postgres",
            "postgres",
            &parameters,
            *process_id,
            0,
        )
        .expect("the session starts");
        let wire = Arc::new(Mutex::new(Wire::default()));
        Connection {
            session,
            client: Client {
                out: BytesMut::new(),
                link: Box::new(Link(Arc::clone(&wire))),
            },
            wire,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let closed = self.engine.database().close();
        if !std::thread::panicking() {
            closed.expect("the database closes");
        }
    }
}

#[derive(Default)]
struct Wire {
    sent: Vec<u8>,
    flushes: usize,
    copied: VecDeque<Result<Option<Bytes>, SqlError>>,
}

struct Link(Arc<Mutex<Wire>>);

impl ClientLink for Link {
    fn flush<'a>(&'a mut self, out: &'a mut BytesMut) -> SendFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let mut wire = self.0.lock().unwrap();
            wire.sent.extend_from_slice(out);
            wire.flushes += 1;
            out.clear();
            Ok(())
        })
    }

    fn copy_data<'a>(&'a mut self) -> SendFuture<'a, Result<Option<Bytes>, SqlError>> {
        Box::pin(async move {
            let next = self.0.lock().unwrap().copied.pop_front();
            next.unwrap_or_else(|| Err(SqlError::new("08006", "the client is gone")))
        })
    }
}

/// A client's connection.
pub struct Connection {
    pub session: Session,
    pub client: Client,
    wire: Arc<Mutex<Wire>>,
}

impl Connection {
    /// A simple Query; the answers.
    pub fn query(&mut self, sql: &str) -> Vec<String> {
        block_on(self.session.simple_query(sql, &mut self.client));
        self.answers()
    }

    /// A simple Query that must not fail; its rows.
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        let answers = self.query(sql);
        assert!(
            !answers.iter().any(|answer| answer.starts_with('E')),
            "{sql}: {answers:?}"
        );
        answers
            .into_iter()
            .filter_map(|answer| answer.strip_prefix("D ").map(str::to_owned))
            .collect()
    }

    /// A simple Query that must not fail; its last tag.
    pub fn tag(&mut self, sql: &str) -> String {
        let answers = self.query(sql);
        let failed = answers.iter().any(|answer| answer.starts_with("E "));
        assert!(!failed, "{sql}: {answers:?}");
        answers
            .iter()
            .rev()
            .find_map(|answer| answer.strip_prefix("C "))
            .unwrap_or_else(|| panic!("{sql}: {answers:?}"))
            .to_owned()
    }

    /// A simple Query that must fail; SQLSTATE and message.
    pub fn error(&mut self, sql: &str) -> String {
        let answers = self.query(sql);
        answers
            .iter()
            .find_map(|answer| answer.strip_prefix("E "))
            .unwrap_or_else(|| panic!("{sql}: {answers:?}"))
            .to_owned()
    }

    /// A COPY FROM with this input, in these pieces.
    pub fn copy(&mut self, sql: &str, pieces: &[&str]) -> Vec<String> {
        let bytes: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        self.copy_bytes(sql, &bytes)
    }

    pub fn copy_bytes(&mut self, sql: &str, pieces: &[&[u8]]) -> Vec<String> {
        {
            let mut wire = self.wire.lock().unwrap();
            wire.copied = pieces
                .iter()
                .map(|piece| Ok(Some(Bytes::copy_from_slice(piece))))
                .collect();
            wire.copied.push_back(Ok(None));
        }
        self.query(sql)
    }

    /// A COPY FROM that the client gives up.
    pub fn copy_fail(&mut self, sql: &str, piece: &str) -> Vec<String> {
        {
            let mut wire = self.wire.lock().unwrap();
            wire.copied = [
                Ok(Some(Bytes::copy_from_slice(piece.as_bytes()))),
                Err(SqlError::new("57014", "COPY from stdin failed: enough")),
            ]
            .into();
        }
        self.query(sql)
    }

    pub fn status(&self) -> char {
        char::from(self.session.transaction_status())
    }

    pub fn flushes(&self) -> usize {
        self.wire.lock().unwrap().flushes
    }

    /// What was sent since this was last asked, as short texts.
    pub fn answers(&mut self) -> Vec<String> {
        let bytes = self.raw();
        messages(&bytes)
    }

    pub fn raw(&mut self) -> Vec<u8> {
        let mut wire = self.wire.lock().unwrap();
        wire.sent.extend_from_slice(&self.client.out);
        self.client.out.clear();
        std::mem::take(&mut wire.sent)
    }

    // ---- the extended protocol

    pub fn parse(&mut self, name: &str, sql: &str, oids: &[u32]) -> Result<(), SqlError> {
        let parsed = block_on(self.session.parse(name, sql, oids));
        self.noted(parsed)
    }

    /// Bind with text parameters and results.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        values: &[Option<&str>],
    ) -> Result<(), SqlError> {
        let values: Vec<Option<&[u8]>> = values
            .iter()
            .map(|value| value.map(str::as_bytes))
            .collect();
        let bound = block_on(self.session.bind(portal, statement, &[], &values, &[]));
        self.noted(bound)
    }

    pub fn execute(&mut self, portal: &str, max_rows: u32) -> Result<Vec<String>, SqlError> {
        let executed = block_on(self.session.execute(portal, max_rows, &mut self.client));
        self.noted(executed)?;
        Ok(self.answers())
    }

    pub fn describe(&mut self, statement: &str) -> Result<Vec<String>, SqlError> {
        let described = block_on(self.session.describe_statement(statement, &mut self.client));
        self.noted(described)?;
        Ok(self.answers())
    }

    pub fn describe_portal(&mut self, portal: &str) -> Result<Vec<String>, SqlError> {
        let described = block_on(self.session.describe_portal(portal, &mut self.client));
        self.noted(described)?;
        Ok(self.answers())
    }

    pub fn sync(&mut self) -> Result<(), SqlError> {
        block_on(self.session.sync())
    }

    /// As the server does when a message of the extended protocol fails.
    fn noted<T>(&mut self, outcome: Result<T, SqlError>) -> Result<T, SqlError> {
        if outcome.is_err() {
            self.session.extended_error();
        }
        outcome
    }
}

/// Backend messages as short texts.
pub fn messages(mut bytes: &[u8]) -> Vec<String> {
    let mut shown = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
        let (body, left) = rest.split_at(length);
        shown.push(message(head[0], body));
        bytes = left;
    }
    assert!(bytes.is_empty(), "half a message: {bytes:?}");
    shown
}

fn message(tag: u8, body: &[u8]) -> String {
    let mut reader = Reader(body);
    match tag {
        b'T' => {
            let columns: Vec<String> = (0..reader.u16())
                .map(|_| {
                    let name = reader.string();
                    let _table = reader.take(6);
                    let oid = reader.u32();
                    let _size_and_modifier = reader.take(6);
                    let format = reader.u16();
                    let binary = if format == 1 { "b" } else { "" };
                    format!("{name}:{oid}{binary}")
                })
                .collect();
            format!("T {}", columns.join(" "))
        }
        b'D' => {
            let values: Vec<String> = (0..reader.u16())
                .map(|_| match reader.u32() {
                    u32::MAX => "NULL".to_owned(),
                    length => {
                        let bytes = reader.take(length as usize);
                        match std::str::from_utf8(bytes) {
                            Ok(text) if !text.contains(char::is_control) => text.to_owned(),
                            _ => format!("{bytes:02x?}"),
                        }
                    }
                })
                .collect();
            format!("D {}", values.join("|"))
        }
        b'C' => format!("C {}", reader.string()),
        b't' => {
            let oids: Vec<String> = (0..reader.u16())
                .map(|_| reader.u32().to_string())
                .collect();
            format!("t {}", oids.join(" "))
        }
        b'E' | b'N' => error(tag, reader),
        b'd' => format!("d {}", String::from_utf8_lossy(body)),
        b'G' | b'H' => format!("{} {}", char::from(tag), body.len()),
        other => char::from(other).to_string(),
    }
}

fn error(tag: u8, mut reader: Reader<'_>) -> String {
    let mut fields = Vec::new();
    while reader.0.first().is_some_and(|code| *code != 0) {
        let code = char::from(reader.take(1)[0]);
        fields.push((code, reader.string()));
    }
    let field = |wanted: char| {
        fields
            .iter()
            .find(|(code, _)| *code == wanted)
            .map(|(_, text)| text.clone())
    };
    let mut shown = format!(
        "{} {} {}",
        char::from(tag),
        field('C').unwrap_or_default(),
        field('M').unwrap_or_default()
    );
    for (code, label) in [('D', "detail"), ('P', "position"), ('W', "context")] {
        if let Some(text) = field(code) {
            shown.push_str(&format!(" [{label} {text}]"));
        }
    }
    shown
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn string(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8_lossy(self.take(end)).into_owned();
        self.take(1);
        text
    }
}
