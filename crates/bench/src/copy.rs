//! One COPY of many rows in one transaction. After a crash in its middle the
//! table must be as it was before; after its acknowledgement, complete.

use std::fmt::Write as _;
use std::pin::pin;

use bytes::Bytes;
use futures::SinkExt;

use crate::{Result, connect, runtime};

/// Bytes handed to the server at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// `thermocline bench copy`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Where the server is.
    #[arg(long, default_value = "postgres://postgres@127.0.0.1:5433/postgres")]
    pub url: String,
    /// The table, made when it is not there: (id bigint primary key, payload text).
    #[arg(long, default_value = "copied")]
    pub table: String,
    /// How many rows.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
}

/// Copies, and prints the number of rows that were acknowledged.
pub fn run(options: &Options) -> Result<()> {
    let table = &options.table;
    if !table.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
        return Err(format!("\"{table}\" is not a plain table name").into());
    }
    runtime()?.block_on(async {
        let client = connect(&options.url).await?;
        client
            .batch_execute(&format!(
                "CREATE TABLE IF NOT EXISTS {table} (id bigint PRIMARY KEY, payload text NOT NULL)"
            ))
            .await?;
        let sink = client
            .copy_in::<_, Bytes>(&format!("COPY {table} (id, payload) FROM STDIN"))
            .await?;
        let mut sink = pin!(sink);
        let mut chunk = String::with_capacity(CHUNK_BYTES + 256);
        for id in 0..options.rows {
            writeln!(chunk, "{id}\trow {id} of {} in one COPY", options.rows)?;
            if chunk.len() >= CHUNK_BYTES {
                sink.send(Bytes::copy_from_slice(chunk.as_bytes())).await?;
                chunk.clear();
            }
        }
        sink.send(Bytes::from(chunk)).await?;
        let copied = sink.finish().await?;
        println!("{copied}");
        Ok(())
    })
}
