//! The surroundings of an analysed query as `thermocline_query` asks for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::ThreadId;

use parking_lot::Mutex;
use thermocline_engine::{Catalog, Database};
use thermocline_query::call::{Asked, Environment, Settings};
use thermocline_query::datum::Datum as Typed;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::named;
use thermocline_query::types::{array_of, ids};

use super::ending::Ending;
use super::session::SystemSession;
use super::{convert, functions};
use crate::analysis::{Calls, Numbers, SessionFacts, SettingChange};
use crate::one_row::{OF_SEQUENCES, numbered};
use crate::session::Call;
use crate::typed::{Awaited, value};

/// What is smaller is made without asking.
const SMALL_BYTES: usize = 1 << 20;

/// See the head of this file.
pub(crate) struct SystemEnvironment {
    session: SystemSession,
    changes: Mutex<Vec<SettingChange>>,
    made: Option<Mutex<Made>>,
    ending: Arc<Ending>,
    pub(crate) awaited: Awaited,
    /// Whether anything has asked for the transaction's time.
    told_time: AtomicBool,
}

/// Whose memory values are made of.
pub(crate) trait Room: Send {
    /// Takes so many bytes more, until it is dropped.
    ///
    /// # Errors
    /// 53200 where there are none.
    fn grow(&self, bytes: usize) -> Result<()>;
}

/// The memory of the largest value, or batch of values, that each thread has made: threads make
/// them at once.
struct Made {
    room: Box<dyn Room>,
    of_threads: HashMap<ThreadId, usize>,
}

impl SystemEnvironment {
    /// Large values are made of this room; without one of any.
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        db: &Arc<Database>,
        facts: SessionFacts,
        room: Option<Box<dyn Room>>,
    ) -> Self {
        let made = room.map(|room| Made {
            room,
            of_threads: HashMap::new(),
        });
        Self {
            session: SystemSession::new(catalog, db, facts),
            changes: Mutex::default(),
            made: made.map(Mutex::new),
            ending: Arc::default(),
            awaited: Awaited::default(),
            told_time: AtomicBool::new(false),
        }
    }

    /// Whether anything has asked for the transaction's time.
    pub(crate) fn has_told_time(&self) -> bool {
        self.told_time.load(Relaxed)
    }

    pub(crate) fn session(&self) -> &SystemSession {
        &self.session
    }

    /// Whether the query is to end before its last row.
    pub(crate) fn ending(&self) -> Arc<Ending> {
        Arc::clone(&self.ending)
    }

    /// Notes what `set_config` asks for; the session applies it when the query has run.
    pub(super) fn change_setting(&self, change: SettingChange) {
        self.changes.lock().push(change);
    }

    /// The value that an earlier `set_config` of this query has given.
    pub(super) fn requested_setting(&self, name: &str) -> Option<String> {
        let changes = self.changes.lock();
        let mut last = changes.iter().rev();
        let found = last.find(|change| change.name.eq_ignore_ascii_case(name));
        found.map(|change| change.value.clone())
    }

    /// The settings that the query has changed.
    pub(crate) fn take_changes(&self) -> Vec<SettingChange> {
        std::mem::take(&mut self.changes.lock())
    }
}

impl Environment for SystemEnvironment {
    fn settings(&self) -> &Settings {
        self.session.facts.styles.settings()
    }

    fn transaction_time(&self) -> i64 {
        self.told_time.store(true, Relaxed);
        self.session.facts.now_us
    }

    fn statement_time(&self) -> i64 {
        self.session.facts.now_us
    }

    fn room(&self, bytes: usize) -> Result<()> {
        let Some(made) = self.made.as_ref().filter(|_| bytes > SMALL_BYTES) else {
            return Ok(());
        };
        let mut made = made.lock();
        let Made { room, of_threads } = &mut *made;
        let most = of_threads.entry(std::thread::current().id()).or_default();
        room.grow(bytes.saturating_sub(*most))?;
        *most = bytes.max(*most);
        Ok(())
    }

    fn check_interrupted(&self) -> Result<()> {
        match self.ending.is_due() {
            true => Err(QueryError::new(
                "57014",
                "canceling statement due to user request",
            )),
            false => Ok(()),
        }
    }

    fn called(&self, asked: &Asked<'_>) -> Result<Typed> {
        let Some(Calls(session)) = &self.session.facts.calls else {
            return Err(QueryError::unsupported(
                "a function of PL/pgSQL cannot be called in such a place",
                "Call it in a statement of its own.",
            ));
        };
        // The session's error has more to it.
        let given = session.ask(Call::of(asked));
        given.map_err(|error| self.awaited.keep(error))
    }

    fn call(&self, name: &str, arguments: &[Typed]) -> Result<Typed> {
        if let Some(Numbers(session)) = &self.session.facts.numbers
            && OF_SEQUENCES.contains(&name)
        {
            let answer = session.call(name, &numbered(arguments));
            let answer = answer.map_err(|error| self.awaited.note(error))?;
            return Ok(value::to_datum(&answer));
        }
        let arguments: Vec<_> = arguments.iter().map(convert::plain).collect();
        let answer =
            functions::call(name, &arguments, self).map_err(|error| self.awaited.note(error))?;
        let result = match named(name).first() {
            // The rows of a set come as an array.
            Some(function) if function.returns_set() => array_of(function.result),
            Some(function) => function.result,
            // How numbers of objects are read and written.
            None if name.ends_with("in") => ids::OID,
            None => ids::TEXT,
        };
        convert::typed(&answer, result, self)
    }
}
