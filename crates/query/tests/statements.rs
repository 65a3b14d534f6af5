//! Statements that read no table, analysed and evaluated here and answered by a running
//! PostgreSQL: names, types, values and errors are the same.
//!
//! `ORACLE=host:port` names a PostgreSQL 15 that trusts `postgres`; without it the test says
//! that it skips. `STATEMENTS=file` takes the statements of a file, one a line.

use std::fmt::Write as _;

use thermocline_query::analyze::{Analyzed, Catalog, Stored, analyze};
use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::evaluate::{Evaluator, NoRow};
use thermocline_query::parse::parse;
use thermocline_query::types;
use tokio_postgres::{Client, NoTls};

/// A catalog without relations.
struct Empty;

impl Catalog for Empty {
    fn relation(&self, _: Option<&str>, _: &str) -> Result<Option<Stored>> {
        Ok(None)
    }
}

fn analyzed(sql: &str, environment: &Plain) -> Result<Analyzed> {
    let parsed = parse(sql)?;
    let statement = parsed.statements().stmts().next().expect("a statement");
    analyze(statement, &Empty, environment, &[])
}

/// Columns' names and types, and the values of the one row.
type Row = (Vec<(String, u32)>, Vec<Option<String>>);

fn ours(sql: &str, environment: &Plain) -> Result<Row> {
    let analyzed = analyzed(sql, environment)?;
    let evaluator = Evaluator {
        environment,
        parameters: &[],
    };
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for target in analyzed
        .query
        .targets
        .iter()
        .filter(|target| !target.hidden)
    {
        columns.push((target.name.to_string(), target.expr.oid));
        let value = evaluator.evaluate(&target.expr, &NoRow)?;
        let call = Call::new(environment, &[], target.expr.oid);
        values.push(match value {
            Datum::Null => None,
            value => Some(types::to_text(&call, target.expr.oid, &value)?),
        });
    }
    Ok((columns, values))
}

async fn theirs(client: &Client, sql: &str) -> std::result::Result<Row, String> {
    let code = |error: tokio_postgres::Error| match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
    };
    let prepared = client.prepare(sql).await.map_err(code)?;
    let columns = prepared
        .columns()
        .iter()
        .map(|column| (column.name().to_owned(), column.type_().oid()))
        .collect();
    let mut values = Vec::new();
    for message in client.simple_query(sql).await.map_err(code)? {
        if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
            values = (0..row.len())
                .map(|at| row.get(at).map(str::to_owned))
                .collect();
        }
    }
    Ok((columns, values))
}

const STATEMENTS: &str = include_str!("statements.sql");

#[tokio::test]
async fn statements_without_tables_answer_as_postgresql() {
    let Ok(place) = std::env::var("ORACLE") else {
        eprintln!("skipped: ORACLE=host:port names no PostgreSQL");
        return;
    };
    let (host, port) = place.split_once(':').expect("host:port");
    let parameters = format!("host={host} port={port} user=postgres dbname=postgres");
    let (client, connection) = tokio_postgres::connect(&parameters, NoTls)
        .await
        .expect("the oracle");
    tokio::spawn(connection);
    client
        .batch_execute("set timezone = 'UTC'")
        .await
        .expect("settings");
    let environment = Plain::default();
    let file = std::env::var("STATEMENTS")
        .ok()
        .map(|path| std::fs::read_to_string(path).expect("the file"));
    let (mut report, mut asked, mut different) = (String::new(), 0, 0);
    for sql in file.as_deref().unwrap_or(STATEMENTS).lines() {
        let sql = sql.trim();
        if sql.is_empty() || sql.starts_with("--") {
            continue;
        }
        asked += 1;
        let theirs = theirs(&client, sql).await;
        let run = std::panic::AssertUnwindSafe(|| ours(sql, &environment));
        let ours = match std::panic::catch_unwind(run) {
            Ok(answer) => answer.map_err(|error| format!("{} {}", error.sqlstate, error.message)),
            Err(_) => Err("panic".to_owned()),
        };
        if theirs != ours {
            different += 1;
            writeln!(
                report,
                "{sql}\n    PostgreSQL {theirs:?}\n    ours       {ours:?}"
            )
            .unwrap();
        }
    }
    eprintln!("{asked} statements, {different} different");
    assert_eq!(different, 0, "\n{report}");
}
