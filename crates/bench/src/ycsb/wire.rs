//! YCSB over the wire: prepared statements, one connection a thread, several
//! operations pipelined on each when more are in flight than connections.
//!
//! What only the server's machine can tell (memory, device traffic) is measured
//! when its process is named, is on this machine and is the server's only one.
//! What was in memory is not visible to a client.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client as Connection, Statement};

use super::Options;
use super::client::{Client, Noise};
use super::drive::drive;
use super::keys::KeyChooser;
use super::load::{LOAD_TABLE, Loaded, TABLE, print_loaded, progress_bar};
use super::measure::{Phase, Warmup};
use super::report::{Report, Usage};
use crate::rss::{self, Sampler};
use crate::{Result, connect, runtime};

/// Rows of one COPY, which is one transaction.
const COPY_ROWS: u64 = 4096;

/// Loads if need be, and measures.
pub(super) fn run(options: &Options, url: &str) -> Result<Option<Report>> {
    let server = options.server_pid.filter(|pid| rss::is_alone(*pid));
    let sampler = server.map(Sampler::start);
    let (load_s, target) = prepare(options, url)?;
    if options.load_only {
        return Ok(None);
    }
    let phase = Phase::default();
    let counters = || {
        let (read_bytes, written_bytes) = rss::device_bytes(server?)?;
        Some(Usage {
            read_bytes,
            written_bytes,
            cpu_us: rss::cpu_us(server?)?,
        })
    };
    let warmup = Warmup::For(Duration::from_secs(options.warmup));
    let connections = async |number| clients(options, url, number).await;
    let (measured, all) = drive(options, &phase, warmup, connections, counters)?;
    let rss_max_bytes = sampler.and_then(Sampler::stop);
    Ok(Some(Report::new(
        options,
        &all,
        &measured,
        target,
        rss_max_bytes,
        load_s,
    )))
}

async fn clients(options: &Options, url: &str, number: usize) -> Result<Vec<WireClient>> {
    let connection = Arc::new(connect(url).await?);
    let commit = if options.synchronous_commit {
        "on"
    } else {
        "off"
    };
    connection
        .batch_execute(&format!("SET synchronous_commit = {commit}"))
        .await?;
    let read = connection
        .prepare(&format!("SELECT payload FROM {TABLE} WHERE id = $1"))
        .await?;
    let update = connection
        .prepare(&format!("UPDATE {TABLE} SET payload = $2 WHERE id = $1"))
        .await?;
    Ok((0..options.tasks_of(number))
        .map(|_| WireClient {
            connection: connection.clone(),
            read: read.clone(),
            update: update.clone(),
            row_bytes: options.row_bytes,
        })
        .collect())
}

struct WireClient {
    connection: Arc<Connection>,
    read: Statement,
    update: Statement,
    row_bytes: usize,
}

impl Client for WireClient {
    async fn read(&mut self, key: u64) -> Result<Option<bool>> {
        let row = self
            .connection
            .query_one(&self.read, &[&(key as i64)])
            .await?;
        let payload: &[u8] = row.try_get(0)?;
        if payload.len() != self.row_bytes {
            return Err(format!("row {key} has {} bytes", payload.len()).into());
        }
        Ok(None)
    }

    async fn update(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>> {
        let rows = self
            .connection
            .execute(&self.update, &[&(key as i64), &payload])
            .await?;
        if rows != 1 {
            return Err(format!("an update of row {key} changed {rows} rows").into());
        }
        Ok(None)
    }
}

/// Loads if need be; the seconds it took, and what the server calls itself.
fn prepare(options: &Options, url: &str) -> Result<(Option<f64>, String)> {
    runtime()?.block_on(async {
        let connection = connect(url).await?;
        let version: String = connection
            .query_one("SELECT version()", &[])
            .await?
            .try_get(0)?;
        if Loaded::check(
            found(&connection).await?,
            is_there(&connection, TABLE).await?,
            options,
        )? {
            return Ok((None, version));
        }
        let begin = Instant::now();
        load(&connection, options).await?;
        let seconds = begin.elapsed().as_secs_f64();
        print_loaded(options, seconds);
        Ok((Some(seconds), version))
    })
}

async fn is_there(connection: &Connection, table: &str) -> Result<bool> {
    let rows = connection
        .query(
            "SELECT 1 FROM pg_catalog.pg_class WHERE relname = $1",
            &[&table],
        )
        .await?;
    Ok(!rows.is_empty())
}

async fn found(connection: &Connection) -> Result<Option<Loaded>> {
    if !is_there(connection, LOAD_TABLE).await? {
        return Ok(None);
    }
    let sql = format!("SELECT row_count, row_bytes FROM {LOAD_TABLE} WHERE id = 1");
    let Some(row) = connection.query_opt(&sql, &[]).await? else {
        return Ok(None);
    };
    Ok(Some(Loaded {
        rows: row.try_get(0)?,
        row_bytes: row.try_get(1)?,
    }))
}

async fn load(connection: &Connection, options: &Options) -> Result<()> {
    connection
        .batch_execute(&format!(
            "CREATE TABLE {TABLE} (id bigint PRIMARY KEY, payload bytea NOT NULL);
             CREATE TABLE {LOAD_TABLE}
                 (id bigint PRIMARY KEY, row_count bigint NOT NULL, row_bytes bigint NOT NULL)"
        ))
        .await?;
    let bar = progress_bar(options.rows);
    let mut chooser = KeyChooser::new(options.rows, 0.0, options.seed)?;
    let noise = Noise::new(&mut chooser, options.row_bytes);
    let mut first = 0;
    while first < options.rows {
        let end = (first + COPY_ROWS).min(options.rows);
        let sink = connection
            .copy_in(&format!("COPY {TABLE} (id, payload) FROM STDIN BINARY"))
            .await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT8, Type::BYTEA]));
        for key in first..end {
            let payload = noise.payload(chooser.key(), options.row_bytes);
            writer.as_mut().write(&[&(key as i64), &payload]).await?;
        }
        writer.finish().await?;
        bar.inc(end - first);
        first = end;
    }
    bar.finish_and_clear();
    let loaded = Loaded::of(options);
    connection
        .execute(
            &format!("INSERT INTO {LOAD_TABLE} VALUES (1, $1, $2)"),
            &[&loaded.rows, &loaded.row_bytes],
        )
        .await?;
    Ok(())
}
