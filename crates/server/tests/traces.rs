//! What real clients send, message by message, and whether the answers have PostgreSQL's form:
//! psql's commands, pg_dump, pgbench, psycopg, asyncpg, node-postgres, Go's drivers, SQLAlchemy.
//!
//! A trace (traces/*.wire) was recorded between a client and PostgreSQL 15.18. The client's
//! messages are sent as they stand. Compared are the server's: their order, the names and types
//! of columns and parameters, formats, command tags, errors, the state of the transaction. The
//! rows are not in the traces. Numbers that PostgreSQL gave to its own objects are not compared.

mod support;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use bytes::{Buf, BufMut, Bytes};
use support::{Message, Running, Wire, message};

/// Numbers of types from here on are users'.
const FIRST_USER_OID: u32 = 16_384;

/// A line of a trace, with those that continue it.
struct Line {
    connection: String,
    /// `>` from the client, `<` from the server.
    from: char,
    text: String,
}

fn lines(trace: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for text in trace.lines() {
        let begins = text.strip_prefix('c').and_then(|rest| {
            let (number, rest) = rest.split_once(' ')?;
            let rest = rest.trim_start();
            let from = rest.chars().next().filter(|c| "<>(".contains(*c))?;
            let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| (number, from, rest[1..].trim_start()))
        });
        match (begins, lines.last_mut()) {
            (Some((connection, from, text)), _) => lines.push(Line {
                connection: connection.to_owned(),
                from,
                text: text.to_owned(),
            }),
            (None, Some(last)) => {
                last.text.push('\n');
                last.text.push_str(text);
            }
            (None, None) => panic!("a trace begins with {text:?}"),
        }
    }
    lines
}

/// What stands between `name='` or `name=[` and its end, and what follows.
fn field<'t>(text: &'t str, name: &str, ends: char) -> (&'t str, &'t str) {
    let from = text.find(name).expect(name) + name.len() + 1;
    let length = text[from..].find(ends).expect(name);
    (&text[from..from + length], &text[from + length + 1..])
}

fn numbers(list: &str) -> Vec<u32> {
    let numbers = list.split(',').map(str::trim).filter(|n| !n.is_empty());
    numbers.map(|number| number.parse().unwrap()).collect()
}

/// The parameters of a Bind: Python's bytes and None, up to the list's end.
fn parameters(text: &str) -> (Vec<Option<Vec<u8>>>, &str) {
    let mut values = Vec::new();
    let mut rest = text.trim_start_matches('[');
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix(']') {
            return (values, after);
        }
        if let Some(after) = rest.strip_prefix("None") {
            values.push(None);
            rest = after;
            continue;
        }
        let quote = rest.as_bytes()[1];
        let mut value = Vec::new();
        let mut bytes = rest.bytes().enumerate().skip(2);
        let end = loop {
            match bytes.next().expect("a value without an end") {
                (at, byte) if byte == quote => break at,
                (_, b'\\') => match bytes.next().unwrap().1 {
                    b'x' => {
                        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
                        let high = digit(bytes.next().unwrap().1);
                        value.push(high << 4 | digit(bytes.next().unwrap().1));
                    }
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'r' => value.push(b'\r'),
                    other => value.push(other),
                },
                (_, byte) => value.push(byte),
            }
        };
        values.push(Some(value));
        rest = &rest[end + 1..];
    }
}

fn put_codes(body: &mut Vec<u8>, codes: &[u32]) {
    body.put_u16(codes.len() as u16);
    codes.iter().for_each(|code| body.put_u16(*code as u16));
}

/// The client's message that a line tells of; none where the connection itself does it.
fn client_message(text: &str) -> Option<Vec<u8>> {
    let (kind, rest) = text.split_once([' ', '\n']).unwrap_or((text, ""));
    let terminated = |text: &str| [text.as_bytes(), b"\0"].concat();
    Some(match kind {
        "Query" => message(b'Q', &terminated(rest)),
        "Parse" => {
            let (name, rest) = field(rest, "stmt=", '\'');
            let (oids, rest) = field(rest, "oids=", ']');
            let sql = rest.trim_start().strip_prefix("sql=").unwrap();
            let mut body = [terminated(name), terminated(sql)].concat();
            let oids = numbers(oids);
            body.put_u16(oids.len() as u16);
            oids.iter().for_each(|oid| body.put_u32(*oid));
            message(b'P', &body)
        }
        "Bind" => {
            let (portal, rest) = field(rest, "portal=", '\'');
            let (statement, rest) = field(rest, "stmt=", '\'');
            let (formats, rest) = field(rest, "pfmt=", ']');
            let (values, rest) = parameters(rest.trim_start().strip_prefix("params=").unwrap());
            let (results, _) = field(rest, "rfmt=", ']');
            let mut body = [terminated(portal), terminated(statement)].concat();
            put_codes(&mut body, &numbers(formats));
            body.put_u16(values.len() as u16);
            for value in values {
                body.put_i32(value.as_ref().map_or(-1, |value| value.len() as i32));
                body.put_slice(&value.unwrap_or_default());
            }
            put_codes(&mut body, &numbers(results));
            message(b'B', &body)
        }
        "Describe" | "Close" => {
            let (of, name) = rest.split_once(' ').unwrap();
            let tag = if kind == "Close" { b'C' } else { b'D' };
            let name = terminated(name.trim_matches('\''));
            message(tag, &[of.as_bytes(), &name].concat())
        }
        "Execute" => {
            let (portal, rest) = field(rest, "portal=", '\'');
            let max: u32 = rest.trim().strip_prefix("max=").unwrap().parse().unwrap();
            message(
                b'E',
                &[terminated(portal), max.to_be_bytes().into()].concat(),
            )
        }
        "Sync" => message(b'S', b""),
        "Flush" => message(b'H', b""),
        "CopyDone" => message(b'c', b""),
        "SSLRequest" | "Startup" | "Terminate" | "CopyData" => return None,
        other => panic!("no message {other:?}"),
    })
}

/// One row for a COPY of the columns `cust bigint, qty smallint`: the traces have none.
fn copied_row(is_binary: bool) -> Vec<u8> {
    if !is_binary {
        return message(b'd', b"1\t2\n");
    }
    let mut row = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02".to_vec();
    row.put_i32(8);
    row.put_i64(1);
    row.put_i32(2);
    row.put_i16(2);
    row.put_i16(-1);
    message(b'd', &row)
}

fn name_of(text: &str) -> &str {
    text.split_once(' ').map_or(text, |(name, _)| name)
}

/// Whether the traces tell of it in its place: rows are left out, and some messages come at any time.
fn is_told(tag: u8) -> bool {
    !matches!(tag, b'S' | b'N' | b'D' | b'd' | b'A')
}

/// A number of a user's own object has no meaning in another database.
fn shown_oid(oid: u32) -> String {
    match oid < FIRST_USER_OID {
        true => oid.to_string(),
        false => "user".to_owned(),
    }
}

/// A message of the server, as the traces tell it.
fn shown(message: &Message) -> String {
    let mut body: Bytes = message.body.clone();
    let text = |body: &Bytes| {
        let end = body.iter().position(|byte| *byte == 0).unwrap();
        String::from_utf8_lossy(&body[..end]).into_owned()
    };
    match message.tag {
        b'T' => {
            let mut line = "RowDescription".to_owned();
            for _ in 0..body.get_u16() {
                let name = text(&body);
                body.advance(name.len() + 1 + 6);
                let oid = shown_oid(body.get_u32());
                body.advance(6);
                write!(line, " {name}:oid{oid}/fmt{}", body.get_u16()).unwrap();
            }
            line
        }
        b't' => {
            let oids: Vec<_> = (0..body.get_u16())
                .map(|_| shown_oid(body.get_u32()))
                .collect();
            format!("ParameterDescription [{}]", oids.join(", "))
        }
        b'C' => tag_word(&format!("CommandComplete {}", text(&body))),
        b'Z' => format!("ReadyForQuery {}", char::from(body[0])),
        b'E' => format!("Error {}", message.sqlstate()),
        b'1' => "ParseComplete".to_owned(),
        b'2' => "BindComplete".to_owned(),
        b'3' => "CloseComplete".to_owned(),
        b'n' => "NoData".to_owned(),
        b's' => "PortalSuspended".to_owned(),
        b'I' => "EmptyQuery".to_owned(),
        b'G' => "CopyInResponse".to_owned(),
        b'H' => "CopyOutResponse".to_owned(),
        b'c' => "CopyDone".to_owned(),
        other => format!("? {}", char::from(other)),
    }
}

/// A tag without the number of rows: those of catalogs differ.
fn tag_word(line: &str) -> String {
    line.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ')
        .to_owned()
}

/// What a trace says that the server said, in the same form.
fn told(text: &str) -> String {
    match name_of(text) {
        "RowDescription" => {
            let columns = text.split(":oid").map(|part| {
                let digits = part.bytes().take_while(u8::is_ascii_digit).count();
                match part[..digits].parse::<u32>() {
                    Ok(oid) => format!("{}{}", shown_oid(oid), &part[digits..]),
                    Err(_) => part.to_owned(),
                }
            });
            columns.collect::<Vec<_>>().join(":oid")
        }
        "CommandComplete" => tag_word(text),
        "Error" => {
            let codes = text.split(' ').filter_map(|word| word.strip_prefix('C'));
            let code = codes.into_iter().find(|code| code.len() == 5);
            format!("Error {}", code.expect("an error has a code"))
        }
        _ => text.to_owned(),
    }
}

/// What a connection was sent since the server's last word.
struct Talk {
    wire: Wire,
    sent: Vec<String>,
    /// The last simple query: it says what form its COPY has.
    copy: String,
}

/// How a trace went.
#[derive(Default)]
struct Outcome {
    exchanges: usize,
    differences: Vec<String>,
}

async fn replay(server: &Running, trace: &str) -> Outcome {
    let mut talks: HashMap<String, Talk> = HashMap::new();
    let mut outcome = Outcome::default();
    let lines = lines(trace);
    let mut at = 0;
    while at < lines.len() {
        let line = &lines[at];
        if !talks.contains_key(&line.connection) {
            let talk = Talk {
                wire: server.client().await,
                sent: Vec::new(),
                copy: String::new(),
            };
            talks.insert(line.connection.clone(), talk);
        }
        let talk = talks.get_mut(&line.connection).unwrap();
        if line.from == '>' {
            let bytes = match name_of(&line.text) {
                "CopyData" => Some(copied_row(
                    talk.copy.to_ascii_lowercase().contains("binary"),
                )),
                _ => client_message(&line.text),
            };
            if name_of(&line.text) == "Query" {
                talk.copy.clone_from(&line.text);
            }
            if let Some(bytes) = bytes {
                talk.sent.push(line.text.clone());
                talk.wire.send(&bytes).await;
            }
            at += 1;
            continue;
        }
        // All that the server said to it before it spoke again.
        let own = |line: &&Line| line.connection == lines[at].connection;
        let answer: Vec<_> = lines[at..]
            .iter()
            .take_while(|line| own(line) && line.from != '>')
            .collect();
        at += answer.len();
        let of_start = ["Authentication", "ParameterStatus", "BackendKeyData"];
        let is_start = of_start.contains(&name_of(&answer[0].text));
        let expected: Vec<_> = answer
            .iter()
            .filter(|line| line.from == '<' && name_of(&line.text) != "ParameterStatus")
            .map(|line| told(&line.text))
            .collect();
        if is_start || expected.is_empty() {
            continue;
        }
        outcome.exchanges += 1;
        let mut found = Vec::new();
        while found.len() < expected.len() {
            let message = talk.wire.next().await.expect("the connection is there");
            if is_told(message.tag) {
                found.push(shown(&message));
            }
            // Behind an error nothing comes that was expected but this.
            if message.tag == b'Z' {
                break;
            }
        }
        let sent = std::mem::take(&mut talk.sent);
        if found != expected {
            let sent = sent.join("\n  ");
            let difference = format!("{sent}\n    was {expected:?}\n    is  {found:?}");
            outcome.differences.push(difference);
        }
    }
    outcome
}

#[tokio::test]
async fn clients_get_the_messages_that_postgresql_sent_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let setup = std::fs::read_to_string(folder.join("setup.sql")).unwrap();
    let mut traces: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "wire"))
        .collect();
    traces.sort();
    let server = Running::start(|_| {}).await;
    let made = server.client().await.query(&setup).await;
    let refused = made.iter().find(|message| message.tag == b'E');
    assert!(refused.is_none(), "{refused:?}");
    let (mut exchanges, mut differences) = (0, Vec::new());
    for path in &traces {
        let outcome = replay(&server, &std::fs::read_to_string(path).unwrap()).await;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        println!("{name}: {} exchanges", outcome.exchanges);
        exchanges += outcome.exchanges;
        let of_file = outcome.differences.into_iter();
        differences.extend(of_file.map(|difference| format!("{name}: {difference}")));
    }
    assert!(exchanges > 500, "only {exchanges} exchanges were tried");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
