//! Every function that is here, called with sample values of its arguments'
//! types, on a running PostgreSQL and on ours: value, NULL and SQLSTATE are
//! the same. Types are read and shown by both, too.
//!
//! `ORACLE=host:port` names a PostgreSQL 15 that trusts `postgres`; without it the
//! test says that it skips. `FUNCTIONS=a,b` takes only functions whose names
//! begin so, `SAMPLES=n` at most n calls of each (default 60). `MISSING=1` lists
//! what PostgreSQL has over types that are here and we don't.

mod missing;
mod samples;
mod shapes;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use thermocline_query::call::{Call, Environment, Plain, Settings};
use thermocline_query::datum::{Datum, Record};
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::{self, Body, Function, Volatility};
use thermocline_query::types::{self, ids};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// What both are compared by.
#[derive(PartialEq, Eq, Debug)]
enum Answer {
    Rows(Vec<Option<String>>),
    Error(String),
}

/// No value and no rows of a test are larger.
const ROOM: usize = 16 << 20;

/// An environment that has room for what a test compares and no more.
#[derive(Default)]
struct Bounded(Plain);

impl Environment for Bounded {
    fn settings(&self) -> &Settings {
        self.0.settings()
    }

    fn transaction_time(&self) -> i64 {
        self.0.transaction_time()
    }

    fn statement_time(&self) -> i64 {
        self.0.statement_time()
    }

    fn room(&self, bytes: usize) -> Result<()> {
        if bytes > ROOM {
            return Err(QueryError::new("53200", "out of memory"));
        }
        Ok(())
    }

    fn check_interrupted(&self) -> Result<()> {
        Ok(())
    }

    fn call(&self, name: &str, arguments: &[Datum]) -> Result<Datum> {
        self.0.call(name, arguments)
    }
}

async fn oracle() -> Option<Client> {
    let Ok(place) = std::env::var("ORACLE") else {
        eprintln!("skipped: ORACLE=host:port names no PostgreSQL");
        return None;
    };
    let (host, port) = place.split_once(':').expect("host:port");
    let parameters = format!("host={host} port={port} user=postgres dbname=postgres");
    let (client, connection) = tokio_postgres::connect(&parameters, NoTls)
        .await
        .expect("the oracle");
    tokio::spawn(connection);
    client
        .batch_execute("set timezone = 'UTC'; set datestyle = 'ISO, MDY'; set extra_float_digits = 1; set statement_timeout = '5s'")
        .await
        .expect("settings");
    Some(client)
}

async fn ask(client: &Client, sql: &str) -> Answer {
    match client.simple_query(sql).await {
        Ok(messages) => Answer::Rows(
            messages
                .iter()
                .filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
                    _ => None,
                })
                .collect(),
        ),
        Err(error) => Answer::Error(
            error
                .code()
                .map_or_else(|| error.to_string(), |code| code.code().to_owned()),
        ),
    }
}

/// A type's name as a cast takes it, without the length that two of them have by themselves.
fn sql_name(oid: u32) -> String {
    match oid {
        ids::BIT => "\"bit\"".to_owned(),
        ids::BIT_ARRAY => "\"bit\"[]".to_owned(),
        ids::BPCHAR => "bpchar".to_owned(),
        ids::BPCHAR_ARRAY => "bpchar[]".to_owned(),
        oid => types::format_type(oid, -1),
    }
}

fn quoted(text: Option<&str>) -> String {
    text.map_or_else(
        || "NULL".to_owned(),
        |text| format!("'{}'", text.replace('\'', "''")),
    )
}

/// The types that stand for a polymorphic signature: what each pseudo-type becomes.
fn instances(function: &Function) -> Vec<Vec<u32>> {
    let polymorphic = |oid: &u32| {
        matches!(
            *oid,
            ids::ANYELEMENT
                | ids::ANYARRAY
                | ids::ANYNONARRAY
                | ids::ANYRANGE
                | ids::ANYCOMPATIBLE
                | ids::ANYCOMPATIBLEARRAY
                | ids::ANYCOMPATIBLENONARRAY
                | ids::ANY
        )
    };
    if !function.arguments.iter().any(polymorphic) {
        return vec![function.arguments.to_vec()];
    }
    let elements: &[u32] = match function.arguments.contains(&ids::ANYRANGE) {
        true => &[
            ids::INT4,
            ids::INT8,
            ids::NUMERIC,
            ids::DATE,
            ids::TIMESTAMP,
            ids::TIMESTAMPTZ,
        ],
        false => &[ids::INT4, ids::TEXT, ids::NUMERIC],
    };
    elements
        .iter()
        .map(|element| {
            function
                .arguments
                .iter()
                .map(|argument| match *argument {
                    ids::ANYARRAY | ids::ANYCOMPATIBLEARRAY => types::array_of(*element),
                    ids::ANYRANGE => range_over(*element),
                    oid if polymorphic(&oid) => *element,
                    oid => oid,
                })
                .collect()
        })
        .collect()
}

/// The range type whose ends are of this type.
fn range_over(element: u32) -> u32 {
    types::all()
        .map(|row| row.oid)
        .find(|oid| types::range::element_of(*oid) == Some(element))
        .unwrap_or(0)
}

fn result_type(function: &Function, arguments: &[u32]) -> u32 {
    let element = function
        .arguments
        .iter()
        .zip(arguments)
        .find_map(|(declared, actual)| match *declared {
            ids::ANYARRAY | ids::ANYCOMPATIBLEARRAY => types::element_of(*actual),
            ids::ANYRANGE => types::range::element_of(*actual),
            ids::ANYELEMENT
            | ids::ANYNONARRAY
            | ids::ANYCOMPATIBLE
            | ids::ANYCOMPATIBLENONARRAY => Some(*actual),
            _ => None,
        });
    match (function.result, element) {
        (ids::ANYARRAY | ids::ANYCOMPATIBLEARRAY, Some(element)) => types::array_of(element),
        (ids::ANYRANGE, Some(element)) => range_over(element),
        (
            ids::ANYELEMENT | ids::ANYNONARRAY | ids::ANYCOMPATIBLE | ids::ANYCOMPATIBLENONARRAY,
            Some(element),
        ) => element,
        (result, _) => result,
    }
}

/// A row's text; that of NULL is one of NULLs, as `from f(…)` gives it.
fn row_text(call: &Call<'_>, columns: &[(&str, u32)], row: Datum) -> Result<Option<String>> {
    let element = call
        .arguments
        .first()
        .and_then(|oid| types::element_of(*oid));
    let types: Arc<[u32]> = columns
        .iter()
        .map(|(_, oid)| match (*oid, element) {
            (ids::ANYELEMENT, Some(element)) => element,
            (oid, _) => oid,
        })
        .collect();
    let values = match row {
        Datum::Record(record) => record.values.clone(),
        _ => vec![Datum::Null; columns.len()],
    };
    let record = Record {
        modifiers: None,
        types,
        names: None,
        values,
    };
    types::to_text(call, ids::RECORD, &Datum::Record(Arc::new(record))).map(Some)
}

fn ours(
    environment: &dyn Environment,
    function: &Function,
    arguments: &[u32],
    texts: &[Option<&str>],
) -> Answer {
    let result = result_type(function, arguments);
    let call = Call::new(environment, arguments, result);
    let run = || -> Result<Vec<Option<String>>> {
        let mut values = Vec::new();
        for (oid, text) in arguments.iter().zip(texts) {
            values.push(match text {
                Some(text) => types::input(&call, *oid, text, -1)?,
                None => Datum::Null,
            });
        }
        let null = function.strict && values.iter().any(Datum::is_null);
        let rows = match function.body {
            Body::Row(_) if null => vec![Datum::Null],
            Body::Row(body) => vec![body(&call, &values)?],
            Body::Set(_) if null => Vec::new(),
            Body::Set(body) => body(&call, &values)?,
            _ => unreachable!("left out"),
        };
        if function.columns.len() > 1 {
            return rows
                .into_iter()
                .map(|row| row_text(&call, function.columns, row))
                .collect();
        }
        let show = |value: &Datum| match value {
            Datum::Null => Ok(None),
            value => types::to_text(&call, result, value).map(Some),
        };
        rows.iter().map(show).collect()
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(Ok(rows)) => Answer::Rows(rows),
        Ok(Err(error)) => Answer::Error(error.sqlstate.to_owned()),
        Err(_) => Answer::Error("PANIC".to_owned()),
    }
}

/// Arguments as a call lists them, the last one behind `variadic`.
fn listed(arguments: &[String], variadic: &str) -> String {
    match arguments.split_last() {
        None => String::new(),
        Some((last, [])) => format!("{variadic}{last}"),
        Some((last, others)) => format!("{}, {variadic}{last}", others.join(", ")),
    }
}

/// Every `step`-th of all combinations of `lists`, so that at most `most` come.
fn combinations<'a>(
    lists: &[Vec<Option<&'a str>>],
    most: usize,
    seed: usize,
) -> Vec<Vec<Option<&'a str>>> {
    let all: usize = lists.iter().map(Vec::len).product();
    let step = (all / most.max(1)).max(1);
    // A step that shares no factor with the lists' lengths walks over all of them.
    let step = if step > 1 { step | 1 } else { 1 };
    let mut chosen = Vec::new();
    let mut at = seed % step;
    while at < all {
        let mut rest = at;
        chosen.push(
            lists
                .iter()
                .map(|list| {
                    let value = list[rest % list.len()];
                    rest /= list.len();
                    value
                })
                .collect(),
        );
        at += step;
    }
    chosen
}

/// What answers otherwise and may, and why.
const EXCUSED: &[(&str, &str)] = &[
    ("age", "depends on the time"),
    ("now", "depends on the time"),
    ("statement_timestamp", "depends on the time"),
    ("transaction_timestamp", "depends on the time"),
    (
        "pg_timezone_abbrevs",
        "depends on the time and on the machine's zones",
    ),
    ("pg_timezone_names", "depends on the machine's zones"),
    ("regclass", "asks a catalog"),
    ("jsonb_cmp", "the size of the number means nothing"),
    ("repeat", "PostgreSQL repeats nothing for as long as it may"),
    ("bpchar", "a length beyond all is 54000, not XX000"),
];

#[tokio::test]
async fn functions_answer_as_postgresql() {
    let Some(client) = oracle().await else { return };
    let wanted = std::env::var("FUNCTIONS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').collect();
    let most = std::env::var("SAMPLES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(60);
    let environment = Bounded::default();
    let (mut calls, mut report, mut different) = (0, String::new(), 0);
    for function in functions::all() {
        let callable = matches!(function.body, Body::Row(_) | Body::Set(_))
            && function.volatility != Volatility::Volatile;
        let excused = EXCUSED.iter().any(|(name, _)| *name == function.name);
        if !callable
            || excused
            || !wanted
                .iter()
                .any(|prefix| function.name.starts_with(prefix))
        {
            continue;
        }
        for arguments in instances(function) {
            let lists: Vec<_> = arguments.iter().map(|oid| samples::of(*oid)).collect();
            if lists.iter().any(Vec::is_empty) {
                continue;
            }
            let mut shown = 0;
            for texts in combinations(&lists, most, 0) {
                let typed: Vec<_> = arguments
                    .iter()
                    .zip(&texts)
                    .map(|(oid, text)| format!("{}::{}", quoted(*text), sql_name(*oid)))
                    .collect();
                // Arguments of any types are not an array.
                let variadic = if matches!(function.variadic, 0 | ids::ANY) {
                    ""
                } else {
                    "variadic "
                };
                let schema = if function.name.starts_with("_pg_") {
                    "information_schema"
                } else {
                    "pg_catalog"
                };
                let called = format!(
                    "{schema}.\"{}\"({})",
                    function.name,
                    listed(&typed, variadic)
                );
                let sql = if function.columns.len() > 1 {
                    format!("select f::text from {called} as f")
                } else {
                    format!("select {called}")
                };
                let ours = ours(&environment, function, &arguments, &texts);
                if matches!(&ours, Answer::Error(code) if code == "53200") {
                    // Too large to compare.
                    continue;
                }
                let theirs = ask(&client, &sql).await;
                calls += 1;
                if theirs != ours {
                    different += 1;
                    shown += 1;
                    if shown <= 4 {
                        writeln!(
                            report,
                            "{sql}\n    PostgreSQL {theirs:?}\n    ours       {ours:?}"
                        )
                        .unwrap();
                    }
                }
            }
        }
    }
    eprintln!("{calls} calls, {different} different");
    assert_eq!(different, 0, "\n{report}");
}

#[tokio::test]
async fn types_are_read_and_shown_as_by_postgresql() {
    let Some(client) = oracle().await else { return };
    let environment: &dyn Environment = &Plain::default();
    let call = Call::new(environment, &[], ids::TEXT);
    let (mut report, mut different) = (String::new(), 0);
    let all = types::all()
        .flat_map(|row| [row.oid, row.array])
        .filter(|oid| *oid != 0);
    for oid in all {
        for text in samples::of(oid)
            .into_iter()
            .chain(samples::BAD.iter().map(|text| Some(*text)))
            .flatten()
        {
            if samples::of(oid).is_empty() {
                continue;
            }
            let sql = format!("select {}::{}", quoted(Some(text)), sql_name(oid));
            let theirs = ask(&client, &sql).await;
            let read = types::input(&call, oid, text, -1)
                .and_then(|value| types::to_text(&call, oid, &value));
            let ours = match read {
                Ok(text) => Answer::Rows(vec![Some(text)]),
                Err(error) => Answer::Error(error.sqlstate.to_owned()),
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
    }
    assert_eq!(different, 0, "\n{report}");
}

#[tokio::test]
async fn binary_forms_are_those_of_postgresql() {
    let Some(client) = oracle().await else { return };
    let environment: &dyn Environment = &Plain::default();
    let call = Call::new(environment, &[], ids::TEXT);
    let messages = client
        .simple_query("select oid, typsend::regproc::text from pg_type where typsend <> 0")
        .await
        .expect("pg_type");
    let mut senders = HashMap::new();
    for message in &messages {
        if let SimpleQueryMessage::Row(row) = message
            && let (Some(oid), Some(name)) = (row.get(0), row.get(1))
        {
            senders.insert(oid.parse::<u32>().unwrap_or(0), name.to_owned());
        }
    }
    let (mut report, mut different) = (String::new(), 0);
    let all = types::all()
        .flat_map(|row| [row.oid, row.array])
        .filter(|oid| *oid != 0);
    for oid in all {
        let Some(send) = senders.get(&oid) else {
            continue;
        };
        for text in samples::of(oid).into_iter().flatten() {
            let sql = format!(
                "select encode(pg_catalog.{send}({}::{}), 'hex')",
                quoted(Some(text)),
                sql_name(oid)
            );
            let theirs = ask(&client, &sql).await;
            let sent = types::input(&call, oid, text, -1).and_then(|value| {
                let mut bytes = Vec::new();
                types::send(&call, oid, &value, &mut bytes)?;
                let back = types::receive(&call, oid, &bytes, -1)?;
                let texts = [&value, &back].map(|value| types::to_text(&call, oid, value));
                if texts[0] != texts[1] {
                    return Err(QueryError::internal(format!("read back as {:?}", texts[1])));
                }
                Ok(bytes)
            });
            let ours = match sent {
                Ok(bytes) => {
                    let mut hex = String::new();
                    for byte in bytes {
                        write!(hex, "{byte:02x}").unwrap();
                    }
                    Answer::Rows(vec![Some(hex)])
                }
                Err(error) => Answer::Error(error.to_string()),
            };
            // What can't be read has no binary form either.
            let both_fail = matches!((&theirs, &ours), (Answer::Error(_), Answer::Error(_)));
            if theirs != ours && !both_fail {
                different += 1;
                writeln!(
                    report,
                    "{sql}\n    PostgreSQL {theirs:?}\n    ours       {ours:?}"
                )
                .unwrap();
            }
        }
    }
    assert_eq!(different, 0, "\n{report}");
}

#[test]
fn every_function_has_a_number_of_its_own() {
    let mut seen = HashSet::new();
    let twice: Vec<_> = functions::all()
        .filter(|function| !seen.insert(function.oid))
        .map(|function| (function.oid, function.name))
        .collect();
    assert!(twice.is_empty(), "{twice:?}");
}
