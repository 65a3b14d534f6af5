//! What both ways of loading share: the tables, their check, the progress bar.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Options;
use crate::Result;

/// The table of the rows.
pub(super) const TABLE: &str = "usertable";
/// The table of completed loads.
pub(super) const LOAD_TABLE: &str = "usertable_load";

/// What the load table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loaded {
    pub rows: i64,
    pub row_bytes: i64,
}

impl Loaded {
    pub fn of(options: &Options) -> Self {
        Loaded {
            rows: options.rows as i64,
            row_bytes: options.row_bytes as i64,
        }
    }

    /// Whether what was loaded is what the options ask for; an error when it is
    /// something else.
    pub fn check(found: Option<Loaded>, table_there: bool, options: &Options) -> Result<bool> {
        match found {
            Some(found) if found == Loaded::of(options) => Ok(true),
            Some(found) => Err(format!(
                "{TABLE} holds {} rows of {} bytes, not {} of {}; \
                 use another directory, or drop {TABLE} and {LOAD_TABLE}",
                found.rows, found.row_bytes, options.rows, options.row_bytes
            )
            .into()),
            None if table_there => Err(format!(
                "{TABLE} is there, but its load was not completed; \
                 use another directory, or drop {TABLE} and {LOAD_TABLE}"
            )
            .into()),
            None => Ok(false),
        }
    }
}

/// A bar on stderr; nothing where stderr is not a terminal.
pub(super) fn progress_bar(rows: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(rows);
    let template = "loading {wide_bar} {human_pos}/{human_len} rows, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Says on stderr what loading did.
pub(super) fn print_loaded(options: &Options, seconds: f64) {
    eprintln!(
        "loaded {} rows of {} bytes in {seconds:.1} s ({:.0} rows/s)",
        options.rows,
        options.row_bytes,
        options.rows as f64 / seconds
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_load_of_the_same_shape_is_used_again() {
        let options = Options::default();
        let same = Some(Loaded::of(&options));
        let other = Some(Loaded {
            rows: 5,
            row_bytes: 1000,
        });
        assert!(Loaded::check(same, true, &options).expect("used again"));
        assert!(!Loaded::check(None, false, &options).expect("to be loaded"));
        assert!(Loaded::check(other, true, &options).is_err());
        assert!(Loaded::check(None, true, &options).is_err());
    }
}
