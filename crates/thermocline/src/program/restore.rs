//! `thermocline restore`: a data directory out of a backup, as of a moment if
//! the log since then was kept.

use std::path::PathBuf;
use std::process::ExitCode;

use thermocline_device::{SystemClock, lock_directory};
use thermocline_engine::backup::{RestoreOptions, restore};
use thermocline_storage::datetime::parse_timestamptz;
use thermocline_storage::text_format::write_text;
use thermocline_storage::types::DataType;
use thermocline_storage::value::ValueRef;

use super::check::device;
use super::progress::Progress;
use super::{fail, refuse, say};

/// From 1970 to 2000, where timestamps begin, in microseconds.
const EPOCH_US: i64 = 946_684_800_000_000;

/// What to restore.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The backup's directory
    from: PathBuf,
    /// The new data directory; it must be empty
    directory: PathBuf,
    /// As of this moment, e.g. '2026-11-21 12:00:00+00': every commit that was
    /// acknowledged by then, and none that began after it
    #[arg(long, value_name = "TIMESTAMP", conflicts_with = "to_lsn")]
    to_time: Option<String>,
    /// As of this LSN
    #[arg(long, value_name = "LSN")]
    to_lsn: Option<u64>,
    /// Begin with this generation [default: the newest that is old enough]
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
    /// A directory with log kept since the backup: the archive, or what is left
    /// of the data directory; may be given several times
    #[arg(long, value_name = "DIRECTORY")]
    log: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let to_time_us = match options
        .to_time
        .as_deref()
        .map(parse_timestamptz)
        .transpose()
    {
        Ok(time) => time.map(|time| time.saturating_add(EPOCH_US)),
        Err(error) => return refuse(&format!("--to-time: {}", error.message)),
    };
    for directory in options.log.iter().chain([&options.from]) {
        if !directory.is_dir() {
            return refuse(&format!("{}: not a directory", directory.display()));
        }
    }
    let logs: Result<Vec<_>, _> = options.log.iter().map(|path| device(path)).collect();
    let (from, logs) = match device(&options.from).and_then(|from| Ok((from, logs?))) {
        Ok(opened) => opened,
        Err(why) => return refuse(&why),
    };
    let _lock = match lock_directory(&options.directory) {
        Ok(lock) => lock,
        Err(error) => return refuse(&format!("{}: {error}", options.directory.display())),
    };
    let target = match device(&options.directory) {
        Ok(target) => target,
        Err(why) => return refuse(&why),
    };
    let wanted = RestoreOptions {
        generation: options.generation,
        logs,
        to_lsn: options.to_lsn,
        to_time_us,
    };
    let mut progress = Progress::new("restored");
    let restored = restore(
        &from,
        &target,
        &wanted,
        &SystemClock::new(),
        &mut |done, total| {
            progress.tell(done, total);
        },
    );
    drop(progress);
    match restored {
        Ok(report) => {
            say(&format!(
                "restored generation {} up to LSN {}, {}",
                report.generation,
                report.lsn,
                show_time(report.time_us)
            ));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

/// A moment as PostgreSQL writes it, in UTC.
pub(crate) fn show_time(time_us: i64) -> String {
    let mut text = Vec::new();
    let value = ValueRef::TimestampTz(time_us - EPOCH_US);
    write_text(value, &DataType::TimestampTz, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
