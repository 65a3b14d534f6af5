//! What a client is told of a statement before it runs: the types of its parameters, and names
//! and types of its columns. Each statement of the scripts in sql/ is described by this server and by
//! PostgreSQL 15, which must say the same; then it runs on both. A prepared statement of a
//! script is described twice: with the types that it declares, and with none.

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use bytes::{BufMut, BytesMut};
use postgres::Postgres;
use support::{Message, Running, Wire, message, sync};

const SCRIPTS: [(&str, &str); 8] = [
    ("basics", include_str!("sql/basics.sql")),
    ("benchmarks", include_str!("sql/benchmarks.sql")),
    ("foreign_keys", include_str!("sql/foreign_keys.sql")),
    ("generated", include_str!("sql/generated.sql")),
    ("merge", include_str!("sql/merge.sql")),
    ("procedures", include_str!("sql/procedures.sql")),
    ("sql_bodies", include_str!("sql/sql_bodies.sql")),
    ("triggers", include_str!("sql/triggers.sql")),
];
/// The types that prepared statements of the scripts declare.
const TYPES: [(&str, u32); 11] = [
    ("int", 23),
    ("int4", 23),
    ("integer", 23),
    ("int8", 20),
    ("bigint", 20),
    ("int2", 21),
    ("float8", 701),
    ("numeric", 1700),
    ("text", 25),
    ("varchar", 1043),
    ("unknown", 0),
];

/// The statements of a script, without what psql does itself and the data of COPY.
fn statements(script: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut statement = String::new();
    let mut is_data = false;
    for line in script.lines() {
        if is_data {
            is_data = line != "\\.";
            continue;
        }
        let is_new = statement.is_empty();
        if is_new && (line.starts_with('\\') || line.starts_with("--") || line.trim().is_empty()) {
            continue;
        }
        statement.push_str(line);
        statement.push('\n');
        // A body between dollar signs has semicolons of its own.
        let in_body = statement.matches("$$").count() % 2 == 1;
        if in_body || !line.trim_end().ends_with(';') {
            continue;
        }
        let whole = std::mem::take(&mut statement);
        is_data = whole.contains("from stdin") || whole.contains("FROM STDIN");
        if !is_data {
            found.push(whole);
        }
    }
    assert_eq!(statement, "", "a script ends amid a statement");
    found
}

/// The types that `PREPARE name (types) AS statement` declares, and the statement.
fn prepared(statement: &str) -> Option<(Vec<u32>, &str)> {
    let rest = statement.strip_prefix("prepare ")?;
    let (head, rest) = rest.split_once(" as ")?;
    let types = head.split_once('(').map_or("", |(_, types)| types);
    let types = types.trim_end().trim_end_matches(')').split(',');
    let types = types.map(str::trim).filter(|name| !name.is_empty());
    let number = |name| {
        let found = TYPES.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("{name}: {statement}")).1
    };
    Some((types.map(number).collect(), rest))
}

/// What Parse and Describe of a statement are answered with.
async fn described(wire: &mut Wire, sql: &str, types: &[u32]) -> Vec<String> {
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_slice(sql.as_bytes());
    body.put_u8(0);
    body.put_u16(types.len() as u16);
    types.iter().for_each(|oid| body.put_u32(*oid));
    let asked = [message(b'P', &body), message(b'D', b"S\0"), sync()].concat();
    wire.send(&asked).await;
    let shown = |message: Message| match message.tag {
        b'E' => Some(format!("error {}", message.sqlstate())),
        b't' => Some(format!("parameters {:?}", oids(&message.body[2..]))),
        b'T' => Some(format!("columns {}", columns(&message.body))),
        b'n' => Some("no columns".to_owned()),
        _ => None,
    };
    let answer = wire.until(b'Z').await;
    answer.into_iter().filter_map(shown).collect()
}

fn oids(bytes: &[u8]) -> Vec<u32> {
    let of = |four: &[u8]| u32::from_be_bytes(four.try_into().unwrap());
    bytes.chunks_exact(4).map(of).collect()
}

/// Name, type, length and modifier of each column.
fn columns(mut bytes: &[u8]) -> String {
    use bytes::Buf;
    let mut shown = String::new();
    for _ in 0..bytes.get_u16() {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap();
        let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes.advance(end + 1 + 6);
        let (oid, length, modifier) = (bytes.get_u32(), bytes.get_i16(), bytes.get_i32());
        bytes.advance(2);
        // Types that a script made are numbered by each server.
        let oid = oid.min(16_384);
        shown.push_str(&format!("{name} {oid}/{length}/{modifier}, "));
    }
    shown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_described_as_postgresql_describes_them() {
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(reason) => {
            println!("Not compared with PostgreSQL: {reason}.");
            return;
        }
    };
    let mut differences = Vec::new();
    let mut count = 0;
    for (name, script) in SCRIPTS {
        // Each script begins with nothing.
        let server = Running::start(|_| {}).await;
        let mut ours = Wire::session(server.address).await;
        let mut theirs = Wire::session(postgres.address).await;
        let database = format!("create database {name}");
        theirs.query(&database).await;
        let mut theirs = Wire::of_database(postgres.address, name).await;
        for statement in statements(script) {
            let mut here = Vec::new();
            let mut asked = vec![(Vec::new(), statement.as_str())];
            if let Some((types, inner)) = prepared(&statement) {
                asked = vec![(types, inner), (Vec::new(), inner)];
            }
            for (types, sql) in asked {
                let found = described(&mut ours, sql, &types).await;
                let wanted = described(&mut theirs, sql, &types).await;
                count += 1;
                if found != wanted {
                    let shown = format!("{name}: {sql}  here  {found:?}\n  there {wanted:?}\n");
                    here.push((found, shown));
                }
            }
            ours.query(&statement).await;
            let ran = theirs.query(&statement).await;
            let failed = ran.iter().find(|message| message.tag == b'E');
            let failed = failed.map(|error| format!("error {}", error.sqlstate()));
            // An error may be told earlier than by PostgreSQL, which tells it when it runs.
            here.retain(|(found, _)| failed.is_none() || found.last() != failed.as_ref());
            differences.extend(here.into_iter().map(|(_, shown)| shown));
        }
        drop(server);
    }
    println!("{count} descriptions compared");
    assert!(
        differences.is_empty(),
        "{} of {count} differ:\n{}",
        differences.len(),
        differences.concat()
    );
}
