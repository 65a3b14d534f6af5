//! `thermocline check`: reads a whole data directory and says what in it is not
//! as it was written. Exit codes: 0 sound, 1 damaged, 2 it can't be told.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use thermocline_device::{Device, DirectoryLock, FileDevice, IoEngine, lock_directory};
use thermocline_engine::check::{CheckEvent, check};

use super::progress::Progress;
use super::{refuse, say, size};

/// What to check.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The data directory; no server may have it open
    directory: PathBuf,
    /// Print findings and the summary as JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let (_lock, device) = match open(&options.directory) {
        Ok(opened) => opened,
        Err(why) => return refuse(&why),
    };
    let mut progress = Progress::new("checked");
    let checked = check(&device, &mut |event| match event {
        CheckEvent::Found(finding) => {
            progress.pause();
            if options.json {
                say(&json!({ "finding": finding }).to_string());
            } else {
                say(&finding.to_string());
            }
        }
        CheckEvent::Progress { done, total } => progress.tell(done, total),
    });
    drop(progress);
    let report = match checked {
        Ok(report) => report,
        Err(error) => return refuse(&format!("{}: {error}", options.directory.display())),
    };
    if options.json {
        say(&json!({ "report": report }).to_string());
    } else {
        say(&format!(
            "{}: checkpoint {}, {} tables, {} rows, {} blocks with {} records, {} log records, {}",
            match report.findings {
                0 => "sound".to_owned(),
                1 => "1 finding".to_owned(),
                n => format!("{n} findings"),
            },
            report.checkpoint,
            report.tables,
            report.rows,
            report.blocks,
            report.records,
            report.log_records,
            size::show(report.bytes)
        ));
    }
    match report.findings {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// A data directory that must be there, for this process alone.
pub(crate) fn open(path: &Path) -> Result<(DirectoryLock, Arc<dyn Device>), String> {
    let name = path.display();
    if !path.is_dir() {
        return Err(format!("{name}: not a directory"));
    }
    let lock = lock_directory(path).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => error.to_string(),
        _ => format!("{name}: {error}"),
    })?;
    let device = device(path)?;
    Ok((lock, device))
}

/// The device of a directory.
pub(crate) fn device(path: &Path) -> Result<Arc<dyn Device>, String> {
    match FileDevice::open(path, IoEngine::Threads) {
        Ok(device) => Ok(Arc::new(device)),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The device of a directory that is not to be changed.
pub(crate) fn for_reading(path: &Path) -> Result<Arc<dyn Device>, String> {
    match FileDevice::for_reading(path) {
        Ok(device) => Ok(Arc::new(device)),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
