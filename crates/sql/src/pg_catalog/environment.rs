//! The surroundings of a query over the catalogs as `thermocline_query` asks for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use thermocline_engine::{Catalog, Database};
use thermocline_query::call::{Environment, Settings};
use thermocline_query::datum::Datum as Typed;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::named;
use thermocline_query::types::ids;

use super::session::SystemSession;
use super::{convert, functions};
use crate::analytics::{SessionFacts, SettingChange};
use crate::error::SqlError;
use crate::typed::Awaited;

/// The share of memory that large values may take: one part of so many.
const MADE_SHARE_DIVISOR: u64 = 8;

/// See the head of this file.
pub(crate) struct SystemEnvironment {
    session: SystemSession,
    settings: Settings,
    changes: Mutex<Vec<SettingChange>>,
    /// Bytes of the large values that were made.
    made: AtomicU64,
    ended: Arc<AtomicBool>,
    pub(super) awaited: Awaited,
}

impl SystemEnvironment {
    pub(crate) fn new(catalog: &Arc<Catalog>, db: &Arc<Database>, facts: SessionFacts) -> Self {
        Self {
            session: SystemSession::new(catalog, db, facts),
            settings: Settings::default(),
            changes: Mutex::default(),
            made: AtomicU64::new(0),
            ended: Arc::default(),
            awaited: Awaited::default(),
        }
    }

    pub(crate) fn session(&self) -> &SystemSession {
        &self.session
    }

    /// Set by whom nobody waits for any more.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ended)
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
    pub(super) fn take_changes(&self) -> Vec<SettingChange> {
        std::mem::take(&mut self.changes.lock())
    }
}

impl Environment for SystemEnvironment {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn transaction_time(&self) -> i64 {
        self.session.facts.now_us
    }

    fn statement_time(&self) -> i64 {
        self.session.facts.now_us
    }

    fn room(&self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        let made = self.made.fetch_add(bytes, Ordering::Relaxed);
        let made = made.saturating_add(bytes);
        if made > self.session.db.memory_limit() / MADE_SHARE_DIVISOR {
            return Err(QueryError::from(
                SqlError::new("53200", "out of memory for a system catalog query")
                    .with_detail(format!("Its values take {made} bytes."))
                    .with_hint("Raise memory_limit, or have the query make shorter values."),
            ));
        }
        Ok(())
    }

    fn check_interrupted(&self) -> Result<()> {
        match self.ended.load(Ordering::Relaxed) {
            true => Err(QueryError::new(
                "57014",
                "canceling statement due to user request",
            )),
            false => Ok(()),
        }
    }

    fn call(&self, name: &str, arguments: &[Typed]) -> Result<Typed> {
        let arguments: Vec<_> = arguments.iter().map(convert::plain).collect();
        let answer =
            functions::call(name, &arguments, self).map_err(|error| self.awaited.note(error))?;
        let result = match named(name).first() {
            Some(function) => function.result,
            // How numbers of objects are read and written.
            None if name.ends_with("in") => ids::OID,
            None => ids::TEXT,
        };
        convert::typed(&answer, result, self)
    }
}
