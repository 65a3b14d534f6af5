//! YCSB's core: reads and updates of one row by key, the rows chosen by Zipf's
//! law, in a table that may be many times larger than memory (004 §5.1, 000 §5).
//!
//! In process the engine is driven through its own face; with a URL, any server
//! that speaks PostgreSQL's protocol is. The table is the same in both cases:
//! `usertable (id bigint PRIMARY KEY, payload bytea NOT NULL)`. Beside it
//! `usertable_load` has one row that says that a load was completed. So what is
//! there can be used again, and half a load can't.

pub mod client;
mod drive;
mod engine_client;
pub mod in_process;
mod keys;
mod load;
mod report;
mod wire;

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Result, size};

pub use crate::measure;
pub use drive::drive;
pub use engine_client::EngineClient;
pub use keys::{KeyChooser, Scatter};
pub use report::Report;

/// Tasks a thread by default in process: enough reads in flight for a device,
/// and enough commits for a group.
const IN_FLIGHT_PER_THREAD: usize = 16;
/// The largest payload.
const ROW_BYTES_MAX: usize = 64 << 10;

/// `thermocline bench ycsb`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Options {
    /// The database's directory; loaded when it is empty, used again otherwise.
    #[arg(short = 'D', long, default_value = "thermocline-ycsb")]
    pub data_dir: PathBuf,
    /// Measure a server over the wire instead, e.g. postgres://postgres@127.0.0.1:5433/postgres.
    #[arg(long, conflicts_with_all = ["memory_limit"])]
    pub url: Option<String>,
    /// With --url: the server's process, to sample its memory and its device traffic.
    #[arg(long, requires = "url")]
    pub server_pid: Option<u32>,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Bytes of a row's payload.
    #[arg(long, default_value_t = 1000)]
    pub row_bytes: usize,
    /// Zipf's exponent; 0 is uniform, 1.0 Zipf's own law.
    #[arg(long, default_value_t = 1.0)]
    pub zipf: f64,
    /// The share of reads; the others are updates of the whole payload.
    #[arg(long, default_value_t = 0.9)]
    pub reads: f64,
    /// Threads; over the wire, connections.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Operations under way at a time, over all threads [default: 16 for each thread
    /// in process, one for each connection over the wire]
    #[arg(long)]
    pub in_flight: Option<usize>,
    /// Seconds before measuring begins.
    #[arg(long, default_value_t = 10)]
    pub warmup: u64,
    /// Seconds to measure.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// The database's memory limit (in process).
    #[arg(long, default_value = "512MB", value_parser = size::parse)]
    pub memory_limit: u64,
    /// Partitions of a new directory (in process); 0 lets the engine choose.
    #[arg(long, default_value_t = 0)]
    pub partitions: u16,
    /// The primary key of a new directory is a B+tree, not a hash index (in process): less
    /// memory a row where keys ascend.
    #[arg(long)]
    pub ordered: bool,
    /// Updates wait until they are on the device.
    #[arg(long)]
    pub synchronous_commit: bool,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Load the table, and end.
    #[arg(long)]
    pub load_only: bool,
    /// Write the report to this file, too.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Rows that a read asks for at once, by `get_many`; in process, with --reads 1.
    #[arg(long, default_value_t = 1)]
    pub batch: usize,
    /// Inserts new rows instead, numbered from here; for programs that measure
    /// with these clients.
    #[arg(skip)]
    #[serde(skip)]
    pub inserts_from: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            data_dir: "thermocline-ycsb".into(),
            url: None,
            server_pid: None,
            rows: 1_000_000,
            row_bytes: 1000,
            zipf: 1.0,
            reads: 0.9,
            threads: 2,
            in_flight: None,
            warmup: 10,
            seconds: 30,
            memory_limit: 512 << 20,
            partitions: 0,
            ordered: false,
            synchronous_commit: false,
            seed: 1,
            load_only: false,
            json: None,
            batch: 1,
            inserts_from: None,
        }
    }
}

impl Options {
    /// What can't be run, and why.
    fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(what.into());
        if self.rows == 0 || self.rows > i64::MAX as u64 {
            return wrong("--rows must be at least 1 and fit a bigint");
        }
        if !(8..=ROW_BYTES_MAX).contains(&self.row_bytes) {
            return wrong("--row-bytes must be from 8 to 65536");
        }
        if !self.zipf.is_finite() || self.zipf < 0.0 {
            return wrong("--zipf must be 0 or more");
        }
        if !(0.0..=1.0).contains(&self.reads) {
            return wrong("--reads is a share: from 0 to 1");
        }
        if self.threads == 0 || self.in_flight.is_some_and(|n| n < self.threads) {
            return wrong("--threads must be at least 1, and --in-flight at least --threads");
        }
        if self.batch == 0 || self.batch > 1 && (self.reads < 1.0 || self.url.is_some()) {
            return wrong(
                "--batch must be at least 1; more goes with --reads 1, and without --url",
            );
        }
        if self.seconds == 0 && !self.load_only {
            return wrong("--seconds must be at least 1");
        }
        Ok(())
    }

    /// Tasks of the thread (or connection) with this number.
    pub fn tasks_of(&self, thread: usize) -> usize {
        let each = match self.url {
            Some(_) => 1,
            None => IN_FLIGHT_PER_THREAD,
        };
        let all = self.in_flight.unwrap_or(self.threads * each);
        all / self.threads + usize::from(thread < all % self.threads)
    }
}

/// Loads if need be, runs, prints a table, and writes the JSON file.
pub fn run(options: Options) -> Result<()> {
    options.check()?;
    let report = match &options.url {
        Some(url) => wire::run(&options, url)?,
        None => in_process::run(&options)?,
    };
    let Some(report) = report else {
        return Ok(());
    };
    print!("{report}");
    if let Some(path) = &options.json {
        let mut text = serde_json::to_string_pretty(&report)?;
        text.push('\n');
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn the_command_lines_defaults_are_the_structs() {
        let line = Line::try_parse_from(["ycsb"]).expect("no argument is needed");
        assert_eq!(line.options, Options::default());
        let empty: Options = serde_json::from_str("{}").expect("no field is needed");
        assert_eq!(empty, Options::default());
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for wrong in [
            Options {
                rows: 0,
                ..Options::default()
            },
            Options {
                zipf: -0.5,
                ..Options::default()
            },
            Options {
                zipf: f64::NAN,
                ..Options::default()
            },
            Options {
                reads: 1.5,
                ..Options::default()
            },
            Options {
                threads: 0,
                ..Options::default()
            },
            Options {
                in_flight: Some(1),
                ..Options::default()
            },
            Options {
                seconds: 0,
                ..Options::default()
            },
            Options {
                batch: 16,
                ..Options::default()
            },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn tasks_are_shared_out_without_loss() {
        let options = Options {
            threads: 3,
            in_flight: Some(8),
            ..Options::default()
        };
        let all: usize = (0..3).map(|thread| options.tasks_of(thread)).sum();
        assert_eq!(all, 8);
    }
}
