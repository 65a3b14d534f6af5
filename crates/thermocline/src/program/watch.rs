//! Says in the log what nobody else would hear of: problems of the background's work, a
//! device that does not answer, a log that has stopped.
//!
//! A thread of its own, which waits for no device and takes no lock that is held while
//! one is waited for.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use thermocline_engine::Database;

/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// An operation that the device has not answered for so long is worth a word.
const STALL: Duration = Duration::from_secs(5);
/// The same thing is said again after this time.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// Watches the database for as long as it is there.
pub(super) fn start(database: Arc<Database>) -> io::Result<()> {
    let database = Arc::downgrade(&database);
    thread::Builder::new()
        .name("watcher".into())
        .spawn(move || watch(&database))?;
    Ok(())
}

fn watch(database: &Weak<Database>) {
    let mut said = Said::default();
    let mut stalled = false;
    while let Some(database) = database.upgrade() {
        for problem in database.take_problems() {
            if said.is_news(&problem) {
                tracing::warn!("{problem}");
            }
        }
        if let Some(why) = database.stopped_because()
            && said.is_news(&why)
        {
            tracing::error!("{why}. Check the device, then restart");
        }
        let outstanding = database.device().counters().outstanding();
        if outstanding.oldest >= STALL {
            stalled = true;
            if said.is_news("stall") {
                tracing::warn!(
                    "the device does not answer: {} operations outstanding, the oldest for {:.1} s",
                    outstanding.operations,
                    outstanding.oldest.as_secs_f64()
                );
            }
        } else if stalled {
            stalled = false;
            said.forget("stall");
            tracing::warn!(
                "the device answers again; the longest operation so far took {:.1} s",
                outstanding.longest.as_secs_f64()
            );
        }
        drop(database);
        thread::sleep(LOOK_INTERVAL);
    }
}

/// What was said lately.
#[derive(Default)]
struct Said(Vec<(String, Instant)>);

impl Said {
    /// Whether this was not said lately; it counts as said from now on.
    fn is_news(&mut self, what: &str) -> bool {
        self.0.retain(|(_, when)| when.elapsed() < SAID_AGAIN);
        let news = self.0.iter().all(|(said, _)| said != what);
        if news {
            self.0.push((what.to_owned(), Instant::now()));
        }
        news
    }

    fn forget(&mut self, what: &str) {
        self.0.retain(|(said, _)| said != what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_is_not_said_twice_in_a_row() {
        let mut said = Said::default();
        assert!(said.is_news("full"));
        assert!(!said.is_news("full"));
        assert!(said.is_news("stall"));
        said.forget("full");
        assert!(said.is_news("full"));
        assert!(!said.is_news("stall"));
    }
}
