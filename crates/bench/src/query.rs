//! A query with a stopwatch: waits until the server answers, and says how long
//! that took. Used to measure restarts, and by scripts instead of `psql`.

use std::time::{Duration, Instant};

use tokio_postgres::SimpleQueryMessage;

use crate::{Result, connect, runtime};

/// Time between two attempts to connect.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// `thermocline bench query`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Where the server is.
    #[arg(long, default_value = "postgres://postgres@127.0.0.1:5433/postgres")]
    pub url: String,
    /// How long to try, in seconds; 0 tries once.
    #[arg(long, default_value_t = 0)]
    pub wait: u64,
    /// Prints the milliseconds until the answer before the rows.
    #[arg(long)]
    pub time: bool,
    /// What to ask.
    pub sql: String,
}

/// Asks, and prints each row's values with `|` between them.
pub fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let end = begin + Duration::from_secs(options.wait);
    let rows = runtime()?.block_on(async {
        loop {
            let error = match connect(&options.url).await {
                Ok(client) => match client.simple_query(&options.sql).await {
                    Ok(rows) => return Ok(rows),
                    // The server has answered, though not as hoped.
                    Err(error) if error.as_db_error().is_some_and(answered) => {
                        return Err(described(&error));
                    }
                    Err(error) => error.into(),
                },
                Err(error) => error,
            };
            if Instant::now() >= end {
                return Err(error);
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    })?;
    if options.time {
        println!("{:.1}", begin.elapsed().as_secs_f64() * 1e3);
    }
    for message in rows {
        if let SimpleQueryMessage::Row(row) = message {
            let values: Vec<&str> = (0..row.len()).map(|i| row.get(i).unwrap_or("")).collect();
            println!("{}", values.join("|"));
        }
    }
    Ok(())
}

/// Whether the error is the query's own, rather than "not yet" or "no longer".
fn answered(error: &tokio_postgres::error::DbError) -> bool {
    !error.code().code().starts_with("57P0")
}

fn described(error: &tokio_postgres::Error) -> crate::Error {
    match error.as_db_error() {
        Some(db) => format!("{}: {} ({})", db.severity(), db.message(), db.code().code()).into(),
        None => error.to_string().into(),
    }
}
