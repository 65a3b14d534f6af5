//! Loading: in parts beside each other, each with a seed of its own, so that the rows are the
//! same however many threads there are.
//!
//! A table of completed loads gets its one row last. What is there is used again when that row
//! says the same shape; half a load and another load's tables are refused.

use std::io::IsTerminal;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rand::SeedableRng;
use rand::rngs::StdRng;
use thermocline_engine::catalog::Table;
use thermocline_engine::{Database, RunOptions, Scope, block_on};
use thermocline_values::value::{Value, ValueRef};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::cells::{Cell, int, text, text_of, wire_type};
use super::rows::Source;
use super::schema::TableSpec;
use super::{Settings, Workload};
use crate::{Result, connect, runtime, size};

/// Bytes of rows that a loading thread gathers before it writes them.
const GATHERED_BYTES: usize = 1 << 20;
/// Rows of one COPY, which is one transaction.
const COPY_ROWS: usize = 4096;
/// Bounds of one loading transaction in process.
const TRANSACTION_ROWS: usize = 1000;
const TRANSACTION_BYTES: usize = 256 << 10;

/// The table of completed loads.
fn load_table<W: Workload>(workload: &W) -> TableSpec {
    let columns = "id integer, shape varchar(200)";
    TableSpec::new(workload.load_table(), columns, &["id"], &["id"])
}

/// Whether what is there is what is asked for; an error when it is something else.
async fn is_loaded<W: Workload>(
    workload: &W,
    source: &Source<'_>,
    is_there: &[bool],
    noted: bool,
) -> Result<bool> {
    let (name, mark) = (workload.name(), workload.load_table());
    let tables = workload.tables();
    let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
    let remedy = format!(
        "take another directory or database, or drop {} and {mark}",
        names.join(", ")
    );
    let mut found = None;
    if noted {
        source
            .each(mark, &["shape"], |row| {
                found = Some(text_of(&row[0]).to_owned());
            })
            .await?;
    }
    let some = noted || is_there.contains(&true);
    match found {
        Some(found) if found != workload.shape() => Err(format!(
            "what is loaded for {name} is \"{found}\", not \"{}\"; {remedy}",
            workload.shape()
        )
        .into()),
        Some(_) if is_there.contains(&false) => Err(format!(
            "{mark} says that {name} is loaded, but tables are missing; {remedy}"
        )
        .into()),
        Some(_) => Ok(true),
        None if some => Err(format!(
            "tables of {name} are there, but a load was not completed; {remedy}"
        )
        .into()),
        None => Ok(false),
    }
}

/// Loads into the engine if need be; the seconds it took.
pub fn engine<W: Workload>(
    workload: &W,
    settings: &Settings,
    db: &Arc<Database>,
) -> Result<Option<f64>> {
    let is_there = |name: &str| db.catalog().table_by_name("public", name).is_some();
    let tables = workload.tables();
    let there: Vec<bool> = tables.iter().map(|table| is_there(table.name)).collect();
    let noted = is_there(workload.load_table());
    if block_on(is_loaded(workload, &Source::Engine(db), &there, noted))? {
        return Ok(None);
    }
    refuse_without_tables(workload, settings)?;
    let begin = Instant::now();
    for table in tables.iter().chain([&load_table(workload)]) {
        table.create(db)?;
    }
    let table_of = |spec: &TableSpec| -> Result<Arc<Table>> {
        let catalog = db.catalog();
        let table = catalog.table_by_name("public", spec.name).cloned();
        Ok(table.ok_or("a table that was made is not there")?)
    };
    let made: Vec<Arc<Table>> = tables.iter().map(table_of).collect::<Result<_>>()?;
    in_parts(workload, settings, || {
        let mut gathered: Vec<Gathered> = made.iter().map(|_| Gathered::default()).collect();
        let made = &made;
        Ok(move |row: Option<(usize, &[Value])>| match row {
            Some((place, values)) => {
                gathered[place].push(&made[place], values);
                match gathered[place].bytes.len() < GATHERED_BYTES {
                    true => Ok(()),
                    false => gathered[place].write(db, &made[place]),
                }
            }
            None => (gathered.iter_mut().zip(made))
                .try_for_each(|(gathered, table)| gathered.write(db, table)),
        })
    })?;
    // Durable together with all before it.
    let mark = table_of(&load_table(workload))?;
    let mut row = Gathered::default();
    row.push(&mark, &[int(1), text(workload.shape())]);
    row.write(db, &mark)?;
    Ok(Some(begin.elapsed().as_secs_f64()))
}

/// Loads over the wire if need be; the seconds it took.
pub fn wire<W: Workload>(workload: &W, settings: &Settings, url: &str) -> Result<Option<f64>> {
    let runtime = runtime()?;
    let connection = runtime.block_on(connect(url))?;
    let tables = workload.tables();
    let loaded = runtime.block_on(async {
        let mut there = Vec::new();
        for table in &tables {
            there.push(is_there(&connection, table.name).await?);
        }
        let noted = is_there(&connection, workload.load_table()).await?;
        is_loaded(workload, &Source::Wire(&connection), &there, noted).await
    })?;
    if loaded {
        return Ok(None);
    }
    refuse_without_tables(workload, settings)?;
    let begin = Instant::now();
    let ours = runtime.block_on(is_ours(&connection));
    for table in tables.iter().chain([&load_table(workload)]) {
        let made = runtime.block_on(connection.batch_execute(&table.sql(ours)));
        made.map_err(|error| {
            format!(
                "{}: {}",
                table.name,
                super::caller::described(&error.into())
            )
        })?;
    }
    let forms: Vec<Form> = tables.iter().map(Form::of).collect::<Result<_>>()?;
    in_parts(workload, settings, || {
        let runtime = crate::runtime()?;
        let connection = runtime.block_on(connect(url))?;
        let mut gathered: Vec<Vec<Cell>> = vec![Vec::new(); forms.len()];
        let forms = &forms;
        Ok(move |row: Option<(usize, &[Value])>| match row {
            Some((place, values)) => {
                let rows = &mut gathered[place];
                rows.extend(values.iter().cloned().map(Cell));
                match rows.len() < COPY_ROWS * values.len() {
                    true => Ok(()),
                    false => runtime.block_on(forms[place].copy(&connection, rows)),
                }
            }
            None => (gathered.iter_mut().zip(forms))
                .try_for_each(|(rows, form)| runtime.block_on(form.copy(&connection, rows))),
        })
    })?;
    runtime.block_on(async {
        let sql = format!("INSERT INTO {} VALUES (1, $1)", workload.load_table());
        connection.execute(&sql, &[&workload.shape()]).await?;
        if !ours {
            // Before the first plan is made for tables that were empty a moment ago.
            for table in &tables {
                let sql = format!("VACUUM ANALYZE {}", table.name);
                connection.batch_execute(&sql).await?;
            }
        }
        Result::Ok(())
    })?;
    Ok(Some(begin.elapsed().as_secs_f64()))
}

/// Who only checks does not load.
fn refuse_without_tables<W: Workload>(workload: &W, settings: &Settings) -> Result<()> {
    match settings.check_only {
        true => Err(format!("there are no tables of {} to be checked", workload.name()).into()),
        false => Ok(()),
    }
}

/// Whether the server is Thermocline: a setting that no other has.
pub(super) async fn is_ours(connection: &Client) -> bool {
    connection.batch_execute("SHOW memory_limit").await.is_ok()
}

async fn is_there(connection: &Client, table: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM pg_catalog.pg_class WHERE relname = $1 AND relkind = 'r'";
    Ok(!connection.query(sql, &[&table]).await?.is_empty())
}

/// Loads all parts with all threads. `writer_of` makes what a thread gives its rows to; without
/// a row it writes what it has gathered.
fn in_parts<W: Workload, F>(
    workload: &W,
    settings: &Settings,
    writer_of: impl Fn() -> Result<F> + Sync,
) -> Result<()>
where
    F: FnMut(Option<(usize, &[Value])>) -> Result<()>,
{
    let (next, parts) = (AtomicU64::new(0), workload.parts());
    let bar = progress_bar(parts);
    let thread = || -> Result<()> {
        let mut writer = writer_of()?;
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return writer(None);
            }
            let seed = settings.seed ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut random = StdRng::seed_from_u64(seed);
            workload.part(part, &mut random, &mut |table, row| {
                writer(Some((table, row)))
            })?;
            bar.inc(1);
        }
    };
    let ended: Vec<Result<()>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.threads).map(|_| scope.spawn(thread)).collect();
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err("a loader panicked".into()))
        });
        ended.collect()
    });
    bar.finish_and_clear();
    ended.into_iter().collect()
}

/// A bar on stderr; nothing where stderr is not a terminal.
fn progress_bar(parts: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(parts);
    let template = "loading {wide_bar} {human_pos}/{human_len} parts, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Says on stderr what loading did.
pub(super) fn print_loaded<W: Workload>(workload: &W, seconds: f64) {
    eprintln!(
        "loaded {} ({}, about {}) in {seconds:.1} s",
        workload.name(),
        workload.shape(),
        size::display(workload.data_bytes()),
    );
}

/// Tuples back to back, for one table of the engine.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// Of each: its partition, if the table has a key for it, and where it lies.
    rows: Vec<(Option<u16>, usize, usize)>,
}

impl Gathered {
    fn push(&mut self, table: &Table, values: &[Value]) {
        let start = self.bytes.len();
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        table.encode_tuple(&values, &mut self.bytes);
        let partition = table.partition_of_tuple(&self.bytes[start..]);
        self.rows.push((partition, start, self.bytes.len()));
    }

    /// Inserts partition by partition, so that no two threads wait for each other for long.
    fn write(&mut self, db: &Arc<Database>, table: &Table) -> Result<()> {
        self.rows.sort_by_key(|row| row.0);
        let options = RunOptions::default();
        for partition in self.rows.chunk_by(|a, b| a.0 == b.0) {
            let row_bytes = (partition[0].2 - partition[0].1).max(1);
            let rows = (TRANSACTION_BYTES / row_bytes).clamp(1, TRANSACTION_ROWS);
            for some in partition.chunks(rows) {
                let scope = some[0].0.map_or(Scope::All, Scope::One);
                block_on(db.one_shot(&options, scope, |access| {
                    for (_, start, end) in some {
                        access.insert(table, &self.bytes[*start..*end])?;
                    }
                    Ok(())
                }))?;
            }
        }
        self.bytes.clear();
        self.rows.clear();
        Ok(())
    }
}

/// How rows of a table are copied over the wire.
struct Form {
    sql: String,
    types: Vec<Type>,
}

impl Form {
    fn of(table: &TableSpec) -> Result<Self> {
        let columns = table.parsed_columns()?;
        let wire = |column: &super::schema::Column| {
            let wire = wire_type(&column.data_type);
            wire.ok_or_else(|| format!("{} cannot be copied", column.name).into())
        };
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let names = names.join(", ");
        Ok(Form {
            sql: format!("COPY {} ({names}) FROM STDIN BINARY", table.name),
            types: columns.iter().map(wire).collect::<Result<_>>()?,
        })
    }

    async fn copy(&self, connection: &Client, cells: &mut Vec<Cell>) -> Result<()> {
        if cells.is_empty() {
            return Ok(());
        }
        let sink = connection.copy_in(&self.sql).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &self.types));
        for row in cells.chunks(self.types.len()) {
            let row: Vec<&(dyn ToSql + Sync)> = row.iter().map(|cell| cell as _).collect();
            writer.as_mut().write(&row).await?;
        }
        writer.finish().await?;
        cells.clear();
        Ok(())
    }
}
