//! `thermocline restore`: a data directory out of a backup, as of a moment if
//! the log since then was kept.

use std::path::PathBuf;
use std::process::ExitCode;

use thermocline_device::{
    Lies, SystemClock, directory_above_with, directory_entries, how_it_lies, lock_directory,
    make_private_directory, resolve_directory,
};
use thermocline_engine::backup::{RestoreOptions, restore};
use thermocline_values::datetime::parse_timestamptz;
use thermocline_values::text_format::write_text;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::check::{device, for_reading};
use super::progress::Progress;
use super::settings::FILE_NAME;
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
    /// Restore the state of this moment, e.g. '2026-11-21 12:00:00+00': every commit that
    /// was acknowledged by then, and none that began after it
    #[arg(long, value_name = "TIMESTAMP", conflicts_with = "to_lsn")]
    to_time: Option<String>,
    /// Restore the state at this position in the log, an LSN
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
    if let Err(why) = check_target(options) {
        return refuse(&why);
    }
    let logs: Result<Vec<_>, _> = options.log.iter().map(|path| for_reading(path)).collect();
    let (from, logs) = match for_reading(&options.from).and_then(|from| Ok((from, logs?))) {
        Ok(opened) => opened,
        Err(why) => return refuse(&why),
    };
    let _lock = match lock_directory(&options.directory) {
        Ok(lock) => lock,
        Err(error) => return refuse(&format!("{}: {error}", options.directory.display())),
    };
    if let Err(error) = make_private_directory(&options.directory, |name| name == FILE_NAME) {
        return refuse(&format!("{}: {error}", options.directory.display()));
    }
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

/// The new directory is empty, but for settings, and no part of anything else. Nothing is
/// written before this is known.
fn check_target(options: &Options) -> Result<(), String> {
    let target = &options.directory;
    let refused = |why: &str| format!("cannot restore into {}: {why}", target.display());
    let failed = |error: std::io::Error| refused(&error.to_string());
    let resolved = resolve_directory(target).map_err(failed)?;
    for other in options.log.iter().chain([&options.from]) {
        let other = resolve_directory(other).map_err(failed)?;
        match how_it_lies(&resolved, &other) {
            Lies::There => return Err(refused("it is where the backup or its log is")),
            Lies::Inside => return Err(refused("it lies in the backup or its log")),
            Lies::Apart | Lies::Around => {}
        }
    }
    if let Some(data) = directory_above_with(&resolved, &["manifest", "blocks"]) {
        return Err(refused(&format!("{} is a data directory", data.display())));
    }
    let entries = directory_entries(&resolved).map_err(failed)?;
    let other = |name: &&String| *name != FILE_NAME;
    match entries.iter().flatten().find(other) {
        Some(name) => Err(refused(&format!("the directory has {name}"))),
        None => Ok(()),
    }
}

/// A moment as PostgreSQL writes it, in UTC.
pub(crate) fn show_time(time_us: i64) -> String {
    let mut text = Vec::new();
    let value = ValueRef::TimestampTz(time_us - EPOCH_US);
    write_text(value, &DataType::TimestampTz, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
