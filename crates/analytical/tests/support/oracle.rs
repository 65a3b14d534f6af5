//! A running PostgreSQL: its tables are read into memory, its answers are compared with.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionConfig;
use futures::SinkExt;
use parking_lot::Mutex;
use thermocline_analytical::errors::query_error;
use thermocline_analytical::evaluate::Context;
use thermocline_analytical::lower::{Tables, lower};
use thermocline_analytical::run;
use thermocline_query::analyze::{Catalog, Stored, analyze};
use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::parse::parse;
use thermocline_query::tree::{Column, Relation};
use thermocline_query::types;
use thermocline_query::types::array::Array;
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::session::Session;

/// The columns' names and types, and rows of texts.
#[derive(Debug, Default)]
pub struct Table {
    /// Empty where they are not asked for.
    pub columns: Vec<(String, u32)>,
    pub rows: Vec<Vec<Option<String>>>,
    /// The columns that say the order, as far as they are shown.
    pub order: Vec<usize>,
    /// How long it took to plan.
    pub planned: Duration,
}

/// A result, or a code and a message.
pub type Answer = std::result::Result<Table, (String, String)>;

/// A table's oid, columns and rows.
type Cached = (Stored, Arc<Vec<Vec<Datum>>>);

pub struct Oracle {
    client: Arc<Client>,
    environment: Arc<Session>,
    by_name: Mutex<HashMap<String, Option<Arc<Cached>>>>,
}

/// What is compared of a statement that reads.
pub async fn connect(place: &str, database: &str) -> Oracle {
    let (host, port) = place.split_once(':').expect("host:port");
    let parameters = format!("host={host} port={port} user=postgres dbname={database}");
    let (client, connection) = tokio_postgres::connect(&parameters, NoTls)
        .await
        .expect("the oracle");
    tokio::spawn(connection);
    client
        .batch_execute("set timezone = 'UTC'; set datestyle = 'ISO, MDY'; set extra_float_digits = 1; set statement_timeout = '20s'")
        .await
        .expect("settings");
    let client = Arc::new(client);
    Oracle {
        environment: Arc::new(Session {
            client: Arc::clone(&client),
            plain: Plain::default(),
            known: Mutex::default(),
        }),
        client,
        by_name: Mutex::default(),
    }
}

/// A database made anew as a copy of another one.
pub async fn connect_to_copy(place: &str, database: &str, of: &str) -> Oracle {
    let outside = connect(place, "postgres").await;
    for sql in [
        format!("drop database if exists {database} with (force)"),
        format!("create database {database} template {of}"),
    ] {
        outside.ask(&sql).await.expect("a copy of the database");
    }
    connect(place, database).await
}

impl Oracle {
    /// PostgreSQL's answer.
    pub async fn ask(&self, sql: &str) -> Answer {
        match self.client.simple_query(sql).await {
            Ok(messages) => {
                let row = |message: &SimpleQueryMessage| match message {
                    SimpleQueryMessage::Row(row) => Some(
                        (0..row.len())
                            .map(|at| row.get(at).map(str::to_owned))
                            .collect(),
                    ),
                    _ => None,
                };
                Ok(Table {
                    rows: messages.iter().filter_map(row).collect(),
                    ..Table::default()
                })
            }
            Err(error) => Err(told(&error)),
        }
    }

    /// Sends the rows of `COPY … FROM STDIN`.
    pub async fn copy(&self, sql: &str, data: &str) {
        let sink = self.client.copy_in::<_, Bytes>(sql).await;
        let Ok(sink) = sink else {
            eprintln!("COPY is refused: {sql}");
            return;
        };
        let mut sink = pin!(sink);
        let sent = sink.send(Bytes::copy_from_slice(data.as_bytes())).await;
        if sent.is_err() || sink.finish().await.is_err() {
            eprintln!("COPY fails: {sql}");
        }
    }

    /// The names and types of a query's columns, where it can be prepared.
    pub async fn describe(&self, sql: &str) -> Option<Vec<(String, u32)>> {
        let statement = self.client.prepare(sql).await.ok()?;
        let columns = statement.columns().iter();
        let columns = columns.map(|column| (column.name().to_owned(), column.type_().oid()));
        Some(columns.collect())
    }

    /// The tables may have changed.
    pub fn forget(&self) {
        self.by_name.lock().clear();
        self.environment.known.lock().clear();
    }

    fn block<T>(&self, future: impl Future<Output = T>) -> T {
        tokio::task::block_in_place(|| Handle::current().block_on(future))
    }

    fn load(&self, name: &str) -> Option<Arc<Cached>> {
        if let Some(cached) = self.by_name.lock().get(name) {
            return cached.clone();
        }
        let loaded = self.block(self.read(name)).map(Arc::new);
        self.by_name.lock().insert(name.to_owned(), loaded.clone());
        loaded
    }

    async fn read(&self, quoted: &str) -> Option<Cached> {
        let columns = format!(
            "select a.attname, a.atttypid, a.atttypmod, c.oid, c.reltype,
                    coalesce(i.indkey::text, ''), c.relnamespace::regnamespace from pg_class c
             left join pg_attribute a on c.oid = a.attrelid and attnum > 0 and not attisdropped
             left join pg_index i on i.indrelid = c.oid and i.indisprimary
             where c.oid = to_regclass('{quoted}') order by attnum"
        );
        let rows = self.ask(&columns).await.ok()?.rows;
        let first = rows.first()?;
        let number =
            |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<i64>().ok());
        let oid = u32::try_from(number(&first[3])?).ok()?;
        let columns: Vec<Column> = rows
            .iter()
            .filter(|row| row[0].is_some())
            .enumerate()
            .map(|(at, row)| Column {
                name: row[0].as_deref().unwrap_or("").into(),
                // A type that is not known is read as text.
                oid: number(&row[1])
                    .and_then(|oid| u32::try_from(oid).ok())
                    .filter(|oid| {
                        types::by_oid(*oid).is_some() || types::element_of(*oid).is_some()
                    })
                    .unwrap_or(types::ids::TEXT),
                modifier: number(&row[2])
                    .and_then(|modifier| i32::try_from(modifier).ok())
                    .unwrap_or(-1),
                origin: Some((oid, i16::try_from(at + 1).unwrap_or(0))),
            })
            .collect();
        let primary_key = first[5]
            .as_deref()
            .unwrap_or("")
            .split_whitespace()
            .filter_map(|place| place.parse::<usize>().ok()?.checked_sub(1))
            .collect();
        let stored = Stored {
            oid,
            schema: first[6].as_deref().unwrap_or("").into(),
            primary_key,
            row_type: number(&first[4])
                .and_then(|oid| u32::try_from(oid).ok())
                .unwrap_or(0),
            columns,
            view: None,
            reader: None,
            is_partitioned: false,
        };
        let shown = stored.columns.iter().map(|column| {
            let name = column.name.replace('"', "\"\"");
            match is_of_names(column.oid) {
                true => format!("\"{name}\"::oid"),
                false => format!("\"{name}\""),
            }
        });
        let shown: Vec<String> = shown.collect();
        let sql = format!("select {} from {quoted}", shown.join(", "));
        let rows = self.ask(&sql).await.ok()?.rows;
        let rows = rows.iter().map(|row| {
            let values = row
                .iter()
                .zip(&stored.columns)
                .map(|(text, column)| match text {
                    Some(text) => value(column.oid, text),
                    None => Ok(Datum::Null),
                });
            values.collect::<Result<Vec<_>>>()
        });
        let rows = rows.collect::<Result<Vec<_>>>();
        let rows = rows
            .map_err(|error| eprintln!("table {quoted}: {error}"))
            .ok()?;
        Some((stored, Arc::new(rows)))
    }

    /// Our answer.
    pub async fn ours(&self, sql: &str) -> Answer {
        let result = self.compute(sql).await;
        result.map_err(|error| (error.sqlstate.to_owned(), error.message.clone()))
    }

    async fn compute(&self, sql: &str) -> Result<Table> {
        let mut planned = Duration::ZERO;
        let (lowered, columns, order) = {
            let parsed = parse(sql)?;
            let statement = parsed
                .statements()
                .stmts()
                .next()
                .ok_or_else(|| QueryError::internal("no statement"))?;
            let analyzed = analyze(statement, self, self.environment.as_ref(), &[])?;
            let context = Context::new(Arc::clone(&self.environment) as _, Arc::default());
            let begun = Instant::now();
            let lowered = lower(&analyzed.query, self, &context)?;
            planned += begun.elapsed();
            let columns = analyzed.query.columns();
            let columns: Vec<(String, u32)> = columns
                .iter()
                .map(|column| (column.name.to_string(), column.oid))
                .collect();
            let shown = |target: usize| {
                let targets = &analyzed.query.targets;
                let hidden = targets.iter().take(target).filter(|target| target.hidden);
                (!targets[target].hidden).then(|| target - hidden.count())
            };
            let order = analyzed.query.order.iter().map(|order| shown(order.target));
            let order: Vec<usize> = order.map_while(|place| place).collect();
            (lowered, columns, order)
        };
        if std::env::var("PLANS").is_ok() {
            eprintln!("{}", lowered.plan.display_indent());
        }
        let config = SessionConfig::new()
            .with_target_partitions(2)
            .with_batch_size(1000);
        let state = run::session(config, Arc::default(), Vec::new());
        let begun = Instant::now();
        let physical = run::physical(&state, &lowered, &|| ())
            .await
            .map_err(|error| query_error(&error))?;
        planned += begun.elapsed();
        if std::env::var("PLANS").is_ok() {
            let shown = datafusion::physical_plan::displayable(physical.as_ref());
            eprintln!("{}", shown.indent(false));
        }
        let mut rows = run::run(physical, lowered.types.clone(), state.task_ctx())?;
        let mut all = Vec::new();
        while let Some(batch) = rows.next().await? {
            for row in batch {
                let texts = row.iter().zip(&lowered.types).map(|(value, oid)| {
                    if value.is_null() {
                        return Ok(None);
                    }
                    let call = Call::new(self.environment.as_ref(), &[], *oid);
                    types::to_text(&call, *oid, value).map(Some)
                });
                all.push(texts.collect::<Result<Vec<_>>>()?);
            }
        }
        Ok(Table {
            columns,
            rows: all,
            order,
            planned,
        })
    }
}

/// A value as a table holds it. What only a server can read stays as it is written.
pub fn value(oid: u32, text: &str) -> Result<Datum> {
    let plain = Plain::default();
    let input = |oid: u32| types::input(&Call::new(&plain, &[], oid), oid, text, -1);
    match oid {
        types::ids::PG_NODE_TREE | types::ids::ACLITEM => Ok(Datum::text(text)),
        types::ids::ACLITEM_ARRAY => match input(types::array_of(types::ids::TEXT))? {
            Datum::Array(array) => Ok(Datum::Array(Arc::new(Array {
                element: types::ids::ACLITEM,
                ..array.as_ref().clone()
            }))),
            other => Ok(other),
        },
        _ if is_of_names(oid) => input(types::ids::OID),
        _ => input(oid),
    }
}

/// Types that are numbers and shown as names.
fn is_of_names(oid: u32) -> bool {
    types::format_type(oid, -1).starts_with("reg")
}

fn told(error: &tokio_postgres::Error) -> (String, String) {
    match error.as_db_error() {
        Some(error) => (error.code().code().to_owned(), error.message().to_owned()),
        None => ("XXXXX".to_owned(), error.to_string()),
    }
}

impl Catalog for Oracle {
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Stored>> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let name = match schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(name)),
            None => quoted(name),
        };
        Ok(self.load(&name).map(|cached| cached.0.clone()))
    }

    fn composite(&self, oid: u32) -> Option<Vec<Column>> {
        let tables = self.by_name.lock();
        let mut tables = tables.values().flatten();
        tables
            .find(|cached| cached.0.row_type == oid)
            .map(|cached| cached.0.columns.clone())
    }
}

impl Tables for Oracle {
    fn table(&self, oid: u32, _: &Relation) -> Result<Arc<dyn TableProvider>> {
        Err(QueryError::internal(format!("no table {oid}")))
    }

    fn rows(&self, oid: u32) -> Option<Result<Vec<Vec<Datum>>>> {
        let tables = self.by_name.lock();
        let cached = tables
            .values()
            .flatten()
            .find(|cached| cached.0.oid == oid)?;
        Some(Ok(cached.1.as_ref().clone()))
    }
}
