//! Every aggregate that is here, over rows of sample values, on a running
//! PostgreSQL and on ours: value, NULL and SQLSTATE are the same.
//!
//! `ORACLE=host:port` names a PostgreSQL 15 that trusts `postgres`; without it the
//! test says that it skips. `FUNCTIONS=a,b` takes only aggregates whose names
//! begin so.

#[allow(dead_code, reason = "of the samples not all are taken")]
mod samples;

use std::cmp::Ordering;
use std::fmt::Write as _;

use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::functions::{self, Aggregate, AggregateKind, Body, Function, SortKey};
use thermocline_query::types::{self, ids};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Either a value or an error's code.
type Answer = Result<Option<String>, String>;
/// Rows of texts of arguments.
type Rows<'a> = Vec<Vec<Option<&'a str>>>;

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
        Ok(messages) => Ok(messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })),
        Err(error) => Err(error
            .code()
            .map_or_else(|| error.to_string(), |code| code.code().to_owned())),
    }
}

fn literal(text: Option<&str>, oid: u32) -> String {
    let quoted = text.map_or_else(
        || "NULL".to_owned(),
        |text| format!("'{}'", text.replace('\'', "''")),
    );
    let name = match oid {
        // Without a modifier, which would be 1.
        ids::BIT => "\"bit\"".to_owned(),
        ids::BPCHAR => "bpchar".to_owned(),
        oid => types::format_type(oid, -1),
    };
    format!("{quoted}::{name}")
}

/// `(values …) t(c0, c1)`
fn from(arguments: &[u32], rows: &Rows<'_>) -> String {
    let names: Vec<String> = (0..arguments.len().max(1))
        .map(|at| format!("c{at}"))
        .collect();
    let row = |row: &Vec<Option<&str>>| {
        let values: Vec<String> = row
            .iter()
            .zip(arguments)
            .map(|(text, oid)| literal(*text, *oid))
            .collect();
        if values.is_empty() {
            "(1)".to_owned()
        } else {
            format!("({})", values.join(", "))
        }
    };
    let (rows, filter) = if rows.is_empty() {
        (vec![row(&vec![None; arguments.len()])], " where false")
    } else {
        (rows.iter().map(row).collect(), "")
    };
    format!(
        "(values {}) t({}){filter}",
        rows.join(", "),
        names.join(", ")
    )
}

/// A column of sample rows, several of them: none, one, all, some, some twice.
fn sets<'a>(arguments: &[u32]) -> Vec<Rows<'a>> {
    let lists: Vec<Vec<Option<&str>>> = arguments.iter().map(|oid| samples::of(*oid)).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(3);
    let row = |number: usize| -> Vec<Option<&str>> {
        let pick = |(at, list): (usize, &Vec<Option<&'a str>>)| {
            list[(number + at * (number / longest + 1)) % list.len()]
        };
        lists.iter().enumerate().map(pick).collect()
    };
    let mut sets = vec![Vec::new(), (0..longest).map(row).collect()];
    sets.extend((0..longest).map(|number| vec![row(number)]));
    // A plain generator: the same rows in each run.
    let mut seed = 12345_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap_or(0)
    };
    for _ in 0..40 {
        let count = 1 + next() % 6;
        sets.push((0..count).map(|_| row(next() % (4 * longest))).collect());
    }
    sets
}

fn wanted(name: &str) -> bool {
    let wanted = std::env::var("FUNCTIONS").unwrap_or_default();
    wanted.split(',').any(|prefix| name.starts_with(prefix))
}

fn aggregates() -> impl Iterator<Item = (&'static Function, &'static Aggregate)> {
    functions::all().filter_map(|function| match function.body {
        Body::Aggregate(aggregate) if wanted(function.name) => Some((function, aggregate)),
        _ => None,
    })
}

/// What happened, over all.
#[derive(Default)]
struct Tally {
    calls: usize,
    different: usize,
    report: String,
}

impl Tally {
    fn note(&mut self, sql: &str, theirs: &Answer, ours: &Answer) {
        self.calls += 1;
        if theirs != ours {
            self.different += 1;
            if self.different < 60 {
                writeln!(
                    self.report,
                    "{sql}\n    PostgreSQL {theirs:?}\n    ours       {ours:?}"
                )
                .unwrap();
            }
        }
    }

    fn end(&self) {
        eprintln!("{} calls, {} different", self.calls, self.different);
        assert_eq!(self.different, 0, "\n{}", self.report);
    }
}

fn guarded(run: impl FnOnce() -> Result<Option<String>>) -> Answer {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(error.sqlstate.to_owned()),
        Err(_) => Err("PANIC".to_owned()),
    }
}

fn read(call: &Call<'_>, oid: u32, text: Option<&str>) -> Result<Datum> {
    text.map_or(Ok(Datum::Null), |text| types::input(call, oid, text, -1))
}

fn shown(call: &Call<'_>, value: &Datum) -> Result<Option<String>> {
    match value {
        Datum::Null => Ok(None),
        value => types::to_text(call, call.result, value).map(Some),
    }
}

/// What the pseudo-types of an aggregate become.
fn instances(function: &Function) -> Vec<(Vec<u32>, u32)> {
    let pseudo = |oid: u32| {
        matches!(
            oid,
            ids::ANY | ids::ANYELEMENT | ids::ANYNONARRAY | ids::ANYARRAY
        )
    };
    if function.arguments == [ids::ANYRANGE] {
        let ranges = [ids::INT4RANGE, ids::NUMRANGE, ids::TSTZRANGE];
        return ranges.map(|oid| (vec![oid], oid)).to_vec();
    }
    if !function.arguments.iter().any(|oid| pseudo(*oid)) {
        return vec![(function.arguments.to_vec(), function.result)];
    }
    [ids::INT4, ids::TEXT, ids::NUMERIC, ids::INTERVAL, ids::BOOL]
        .iter()
        .map(|element| {
            let array = types::array_of(*element);
            let actual = |oid: &u32| match *oid {
                ids::ANYARRAY => array,
                oid if pseudo(oid) => *element,
                oid => oid,
            };
            let result = match (function.result, function.arguments) {
                // Of arrays an array of a dimension more.
                (ids::ANYARRAY, _) => array,
                (oid, _) if pseudo(oid) => *element,
                (oid, _) => oid,
            };
            (function.arguments.iter().map(actual).collect(), result)
        })
        .collect()
}

/// Feeds rows to a new state; `direct` and `order` are those of ordered sets.
fn feed(
    call: &Call<'_>,
    function: &Function,
    aggregate: &Aggregate,
    rows: &[Vec<Datum>],
    ordered: Option<(&[Datum], &[SortKey])>,
) -> Result<Option<String>> {
    let mut state = (aggregate.new)(call);
    for row in rows {
        if !(function.strict && row.iter().any(Datum::is_null)) {
            state.update(call, row)?;
        }
    }
    if let Some((direct, order)) = ordered {
        state.finish(call, direct, order)?;
    }
    let first = shown(call, &state.value(call)?)?;
    // It may be asked again.
    assert_eq!(first, shown(call, &state.value(call)?)?);
    Ok(first)
}

#[tokio::test]
async fn aggregates_answer_as_postgresql() {
    let Some(client) = oracle().await else { return };
    let environment = Plain::default();
    let mut tally = Tally::default();
    for (function, aggregate) in aggregates() {
        if aggregate.kind != AggregateKind::Normal {
            continue;
        }
        for (arguments, result) in instances(function) {
            if arguments.iter().any(|oid| samples::of(*oid).is_empty()) {
                continue;
            }
            for rows in sets(&arguments) {
                let columns: Vec<String> =
                    (0..arguments.len()).map(|at| format!("c{at}")).collect();
                let called = if columns.is_empty() {
                    "*".to_owned()
                } else {
                    columns.join(", ")
                };
                let sql = format!(
                    "select pg_catalog.{}({called}) from {}",
                    function.name,
                    from(&arguments, &rows)
                );
                let theirs = ask(&client, &sql).await;
                let ours = guarded(|| {
                    let call = Call::new(&environment, &arguments, result);
                    let mut values = Vec::new();
                    for row in &rows {
                        let row = row.iter().zip(&arguments);
                        let row = row.map(|(text, oid)| read(&call, *oid, *text));
                        values.push(row.collect::<Result<Vec<_>>>()?);
                    }
                    feed(&call, function, aggregate, &values, None)
                });
                tally.note(&sql, &theirs, &ours);
            }
        }
    }
    tally.end();
}

/// The order of two rows.
fn compare(keys: &[u32], order: &[SortKey], a: &[Datum], b: &[Datum]) -> Ordering {
    for ((oid, key), (a, b)) in keys.iter().zip(order).zip(a.iter().zip(b)) {
        let nulls = if key.nulls_first {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        let found = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => nulls,
            (false, true) => nulls.reverse(),
            (false, false) => {
                let found = types::compare(*oid, a, b).expect("an order");
                if key.descending {
                    found.reverse()
                } else {
                    found
                }
            }
        };
        if found != Ordering::Equal {
            return found;
        }
    }
    Ordering::Equal
}

/// Direct arguments of a type that ordered sets take.
fn direct_samples(oid: u32) -> Vec<Option<&'static str>> {
    match oid {
        ids::FLOAT8 => vec![
            Some("0"),
            Some("0.25"),
            Some("0.5"),
            Some("0.3333333"),
            Some("0.99"),
            Some("1"),
            Some("-0.1"),
            Some("1.5"),
            Some("NaN"),
            None,
        ],
        _ => vec![
            Some("{0,0.5,1}"),
            Some("{0.9,NULL,0.1,0.1}"),
            Some("{{0.2,0.4},{0.6,0.8}}"),
            Some("[0:1]={0.5,0.7}"),
            Some("{}"),
            Some("{2}"),
            None,
        ],
    }
}

/// Aggregates with `WITHIN GROUP`, in each order.
#[tokio::test]
async fn ordered_sets_answer_as_postgresql() {
    let Some(client) = oracle().await else { return };
    let environment = Plain::default();
    let mut tally = Tally::default();
    for (function, aggregate) in aggregates() {
        // The types of the direct arguments and of the keys.
        let shapes: Vec<(Vec<u32>, Vec<u32>, u32)> = match aggregate.kind {
            AggregateKind::Normal => continue,
            AggregateKind::OrderedSet { direct } => instances(function)
                .into_iter()
                .map(|(arguments, result)| {
                    let (direct, keys) = arguments.split_at(direct);
                    (direct.to_vec(), keys.to_vec(), result)
                })
                .collect(),
            AggregateKind::Hypothetical => [
                vec![ids::INT4],
                vec![ids::TEXT],
                vec![ids::NUMERIC],
                vec![ids::INT2, ids::BOOL],
            ]
            .into_iter()
            .map(|keys| (keys.clone(), keys, function.result))
            .collect(),
        };
        for (direct, keys, result) in shapes {
            let order_of = |number: usize| {
                let key = |at: usize| SortKey {
                    descending: (number >> at) & 1 == 1,
                    nulls_first: (number >> (at + 1)) & 1 == 1,
                };
                (0..keys.len()).map(key).collect::<Vec<_>>()
            };
            let choices: Vec<Vec<Option<&str>>> = match aggregate.kind {
                AggregateKind::Hypothetical => sets(&direct).concat(),
                _ if direct.is_empty() => vec![Vec::new()],
                _ => direct_samples(direct[0])
                    .into_iter()
                    .map(|one| vec![one])
                    .collect(),
            };
            let arguments: Vec<u32> = direct.iter().chain(&keys).copied().collect();
            for (number, rows) in sets(&keys).into_iter().enumerate() {
                let order = order_of(number);
                for step in 0..choices.len().min(4) {
                    let chosen = &choices[(number * 4 + step) % choices.len()];
                    let by: Vec<String> = order
                        .iter()
                        .enumerate()
                        .map(|(at, key)| {
                            format!(
                                "c{at}{}{}",
                                if key.descending { " desc" } else { "" },
                                if key.nulls_first {
                                    " nulls first"
                                } else {
                                    " nulls last"
                                }
                            )
                        })
                        .collect();
                    let given: Vec<String> = chosen
                        .iter()
                        .zip(&direct)
                        .map(|(text, oid)| literal(*text, *oid))
                        .collect();
                    let sql = format!(
                        "select pg_catalog.{}({}) within group (order by {}) from {}",
                        function.name,
                        given.join(", "),
                        by.join(", "),
                        from(&keys, &rows)
                    );
                    let theirs = ask(&client, &sql).await;
                    let ours = guarded(|| {
                        let call = Call::new(&environment, &arguments, result);
                        let mut values = Vec::new();
                        for row in &rows {
                            let row = row.iter().zip(&keys);
                            let row = row.map(|(text, oid)| read(&call, *oid, *text));
                            values.push(row.collect::<Result<Vec<_>>>()?);
                        }
                        values.sort_by(|a, b| compare(&keys, &order, a, b));
                        let given = chosen.iter().zip(&direct);
                        let given = given.map(|(text, oid)| read(&call, *oid, *text));
                        let given = given.collect::<Result<Vec<_>>>()?;
                        feed(&call, function, aggregate, &values, Some((&given, &order)))
                    });
                    tally.note(&sql, &theirs, &ours);
                }
            }
        }
    }
    tally.end();
}
