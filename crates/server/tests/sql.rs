//! The SQL of the product, statement by statement: in sql/basics.sql, and by subject in the scripts
//! beside it. What benchmark kits send is in sql/benchmarks.sql, what drivers ask of types in
//! sql/drivers.sql, what psql shows of objects in sql/describe.sql. psql runs them against the server
//! and must print what it prints against PostgreSQL 15 (sql/….out; how to record it stands at the
//! head of the scripts). Where there is no psql the basic statements still run, through a driver,
//! and each must succeed or fail as recorded.

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use std::fmt::Write;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use support::Running;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

const SCRIPT: &str = include_str!("sql/basics.sql");
const EXPECTED: &str = include_str!("sql/basics.out");
/// Scripts, what is printed for each, and how they are called.
const SCRIPTS: [(&str, &str, &str); 15] = [
    (SCRIPT, EXPECTED, "basics"),
    (
        include_str!("sql/foreign_keys.sql"),
        include_str!("sql/foreign_keys.out"),
        "foreign_keys",
    ),
    (
        include_str!("sql/benchmarks.sql"),
        include_str!("sql/benchmarks.out"),
        "benchmarks",
    ),
    (
        include_str!("sql/describe.sql"),
        include_str!("sql/describe.out"),
        "describe",
    ),
    (
        include_str!("sql/generated.sql"),
        include_str!("sql/generated.out"),
        "generated",
    ),
    (
        include_str!("sql/partitions.sql"),
        include_str!("sql/partitions.out"),
        "partitions",
    ),
    (
        include_str!("sql/procedures.sql"),
        include_str!("sql/procedures.out"),
        "procedures",
    ),
    (
        include_str!("sql/drivers.sql"),
        include_str!("sql/drivers.out"),
        "drivers",
    ),
    (
        include_str!("sql/ranges.sql"),
        include_str!("sql/ranges.out"),
        "ranges",
    ),
    (
        include_str!("sql/rows_of_functions.sql"),
        include_str!("sql/rows_of_functions.out"),
        "rows_of_functions",
    ),
    (
        include_str!("sql/functions_over_rows.sql"),
        include_str!("sql/functions_over_rows.out"),
        "functions_over_rows",
    ),
    (
        include_str!("sql/calls_anywhere.sql"),
        include_str!("sql/calls_anywhere.out"),
        "calls_anywhere",
    ),
    (
        include_str!("sql/sql_bodies.sql"),
        include_str!("sql/sql_bodies.out"),
        "sql_bodies",
    ),
    (
        include_str!("sql/triggers.sql"),
        include_str!("sql/triggers.out"),
        "triggers",
    ),
    (
        include_str!("sql/merge.sql"),
        include_str!("sql/merge.out"),
        "merge",
    ),
];

/// The lines that only one of the two has, each with its number.
fn differences(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), found.lines().collect());
    // The longest common subsequence, from the ends.
    let mut common = vec![vec![0u32; found.len() + 1]; expected.len() + 1];
    for at in (0..expected.len()).rev() {
        for other in (0..found.len()).rev() {
            common[at][other] = if expected[at] == found[other] {
                common[at + 1][other + 1] + 1
            } else {
                common[at + 1][other].max(common[at][other + 1])
            };
        }
    }
    let (mut at, mut other, mut shown) = (0, 0, String::new());
    while at < expected.len() || other < found.len() {
        let both = at < expected.len() && other < found.len();
        if both && expected[at] == found[other] {
            (at, other) = (at + 1, other + 1);
        } else if at < expected.len()
            && (other == found.len() || common[at + 1][other] >= common[at][other + 1])
        {
            let _ = writeln!(shown, "{:4} -{}", at + 1, expected[at]);
            at += 1;
        } else {
            let _ = writeln!(shown, "{:4} +{}", at + 1, found[other]);
            other += 1;
        }
    }
    shown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_prints_what_it_prints_with_postgresql() {
    let Some(psql) = postgres::psql() else {
        println!("Not run with psql: there is none.");
        return;
    };
    for (script, expected, name) in SCRIPTS {
        let printed = printed(psql.clone(), script).await;
        assert!(
            printed == expected,
            "differs from {name}.out (-), found (+):\n{}",
            differences(expected, &printed)
        );
    }
}

/// What psql prints for a script that it runs on a new server.
async fn printed(psql: PathBuf, script: &'static str) -> String {
    let server = Running::start(|_| {}).await;
    let port = server.address.port().to_string();
    tokio::task::spawn_blocking(move || {
        let mut output = tempfile::tempfile().unwrap();
        let mut running = Command::new(psql)
            .args(["-X", "-q", "-a", "-h", "127.0.0.1", "-p", &port])
            .args(["-U", "postgres", "postgres"])
            .env("PGCLIENTENCODING", "UTF8")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(output.try_clone().unwrap())
            .stderr(output.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut input = running.stdin.take().unwrap();
        input.write_all(script.as_bytes()).unwrap();
        drop(input);
        assert!(running.wait().unwrap().success());
        let mut text = String::new();
        std::io::Seek::rewind(&mut output).unwrap();
        std::io::Read::read_to_string(&mut output, &mut text).unwrap();
        text
    })
    .await
    .unwrap()
}

/// A statement of the script, and the error recorded for it.
struct Step {
    sql: String,
    /// What a COPY reads.
    data: Option<String>,
    sqlstate: Option<String>,
}

/// The statements of the script, without psql's commands.
fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut statement = String::new();
    let mut script = SCRIPT.lines().peekable();
    let mut recorded = EXPECTED.lines().peekable();
    while let Some(line) = script.next() {
        if line.starts_with('\\') || line.starts_with("--") || line.is_empty() {
            continue;
        }
        statement.push_str(line);
        statement.push('\n');
        if !line.ends_with(';') {
            continue;
        }
        // Its last line is in the recording, and then what came of it.
        recorded.find(|recorded| *recorded == line).expect(line);
        let sqlstate = recorded
            .peek()
            .and_then(|next| next.strip_prefix("ERROR:  "))
            .map(str::to_owned);
        let sql = std::mem::take(&mut statement);
        let data = (sql.starts_with("copy") && sql.contains("stdin")).then(|| {
            let lines = script.by_ref().take_while(|line| *line != "\\.");
            lines.map(|line| format!("{line}\n")).collect()
        });
        steps.push(Step {
            sql,
            data,
            sqlstate,
        });
    }
    steps
}

type Outcome = Result<usize, tokio_postgres::Error>;

async fn copy_in(client: &Client, sql: &str, data: String) -> Outcome {
    let mut sink = Box::pin(client.copy_in(sql).await?);
    sink.send(Bytes::from(data)).await?;
    sink.as_mut().finish().await.map(|_| 0)
}

async fn copy_out(client: &Client, sql: &str) -> Outcome {
    let pieces: Vec<Bytes> = client.copy_out(sql).await?.try_collect().await?;
    assert!(!pieces.is_empty(), "{sql}");
    Ok(0)
}

/// How many rows psql has counted.
fn recorded_rows() -> usize {
    let counts = EXPECTED.lines().filter_map(|line| {
        let line = line.strip_prefix('(')?;
        let count = line
            .strip_suffix(" rows)")
            .or_else(|| line.strip_suffix(" row)"))?;
        count.parse::<usize>().ok()
    });
    counts.sum()
}

#[tokio::test]
async fn a_driver_gets_the_recorded_errors_and_no_others() {
    let server = Running::start(|_| {}).await;
    let config = format!(
        "host=127.0.0.1 port={} user=postgres",
        server.address.port()
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut wrong = String::new();
    let mut rows = 0;
    for step in steps() {
        let Step {
            sql,
            data,
            sqlstate,
        } = step;
        let outcome = if let Some(data) = data {
            copy_in(&client, &sql, data).await
        } else if sql.starts_with("copy") {
            copy_out(&client, &sql).await
        } else {
            client.simple_query(&sql).await.map(|messages| {
                let is_row =
                    |message: &&SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(_));
                messages.iter().filter(is_row).count()
            })
        };
        let found = match outcome {
            Ok(count) => {
                rows += count;
                None
            }
            Err(error) => Some(match error.as_db_error() {
                Some(error) => error.code().code().to_owned(),
                None => error.to_string(),
            }),
        };
        if found != sqlstate {
            let _ = writeln!(wrong, "{sql}  expected {sqlstate:?}, found {found:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(rows, recorded_rows());
}
