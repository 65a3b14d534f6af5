//! The program's parts: its settings and its subcommands. What people asked
//! for goes to stdout, everything else to stderr.

use std::fmt::Display;
use std::io::{Write, stdout};
use std::process::ExitCode;

pub(crate) mod advise;
pub(crate) mod backup;
pub(crate) mod certificate;
pub(crate) mod check;
mod duration;
pub(crate) mod flags;
pub(crate) mod help;
mod host;
mod kept;
mod log;
mod machine;
pub(crate) mod probe;
mod progress;
#[cfg(test)]
mod reference;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod settings;
mod size;
mod watch;

/// Prints a line. That nobody reads it any more is no reason to stop.
pub(crate) fn say(line: &str) {
    let mut stdout = stdout().lock();
    let written = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    if let Err(error) = written {
        tracing::debug!("stdout: {error}");
    }
}

/// One clear line, and the exit code for "not started".
pub(crate) fn refuse(why: &dyn Display) -> ExitCode {
    log::last_words(why);
    ExitCode::from(2)
}

/// One clear line, and the exit code for "failed while running".
pub(crate) fn fail(why: &dyn Display) -> ExitCode {
    log::last_words(why);
    ExitCode::FAILURE
}
