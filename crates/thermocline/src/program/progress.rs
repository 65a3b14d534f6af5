//! How far a long piece of work is, on stderr: one line that is written over
//! on a terminal, a line every ten seconds elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use super::size;

/// Between two lines in a log; on a terminal a fiftieth of it.
const INTERVAL: Duration = Duration::from_secs(10);

/// Prints progress.
pub(crate) struct Progress {
    what: &'static str,
    begun: Instant,
    last: Instant,
    on_terminal: bool,
    written: bool,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Self {
        let now = Instant::now();
        Self {
            what,
            begun: now,
            last: now,
            on_terminal: stderr().is_terminal(),
            written: false,
        }
    }

    /// Tells bytes done and bytes in all, now and then.
    pub(crate) fn tell(&mut self, done: u64, total: u64) {
        let interval = if self.on_terminal {
            INTERVAL / 50
        } else {
            INTERVAL
        };
        if self.last.elapsed() < interval {
            return;
        }
        self.last = Instant::now();
        let rate = done as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let line = format!(
            "{} {:.0} % of {}, {} a second",
            self.what,
            done as f64 * 100.0 / total.max(1) as f64,
            size::show(total),
            size::show(rate as u64)
        );
        self.write(&line);
    }

    /// Tells what comes next and the share done, now and then.
    pub(crate) fn step(&mut self, step: &str, share: f64) {
        if self.on_terminal || self.last.elapsed() >= INTERVAL || !self.written {
            self.last = Instant::now();
            let line = format!("{} {:.0} %: {step}", self.what, share * 100.0);
            self.write(&line);
        }
    }

    fn write(&mut self, line: &str) {
        let mut stderr = stderr().lock();
        // Nobody may be reading.
        let _ = if self.on_terminal {
            write!(stderr, "\r{line:<60}")
        } else {
            writeln!(stderr, "{line}")
        };
        self.written = true;
    }

    /// Leaves the line on the terminal, so that others may be printed.
    pub(crate) fn pause(&mut self) {
        if self.written && self.on_terminal {
            let _ = writeln!(stderr());
            self.written = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.pause();
    }
}
