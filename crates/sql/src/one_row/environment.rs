//! The session as functions of `thermocline_query` see it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use thermocline_query::call::{Asked, Environment, Settings};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::clock;
use thermocline_values::value::Value;

use crate::error::SqlError;
use crate::expr::SessionInfo;
use crate::styles::Styles;
use crate::typed::{Awaited, value};

/// See the head of this file.
pub(crate) struct StatementEnvironment<'a> {
    session: &'a dyn SessionInfo,
    now_us: i64,
    styles: &'a Styles,
    pub(super) awaited: Awaited,
    /// This run of the statement has taken or given back an advisory lock.
    advisory: AtomicBool,
    /// Whether anything has asked for the transaction's time.
    told_time: AtomicBool,
}

impl<'a> StatementEnvironment<'a> {
    /// Of a statement whose transaction began at `now_us` (microseconds since 2000-01-01 UTC).
    pub(crate) fn new(session: &'a dyn SessionInfo, now_us: i64, styles: &'a Styles) -> Self {
        Self {
            session,
            now_us,
            styles,
            awaited: Awaited::default(),
            advisory: AtomicBool::new(false),
            told_time: AtomicBool::new(false),
        }
    }

    /// Whether anything has asked for the transaction's time.
    pub(crate) fn has_told_time(&self) -> bool {
        self.told_time.load(Relaxed)
    }
}

/// The arguments of a function of sequences, whose numbers are integers to the session.
pub(crate) fn numbered(arguments: &[Datum]) -> Vec<Value> {
    let argument = |given: &Datum| match given {
        Datum::Oid(oid) => Value::BigInt(i64::from(*oid)),
        given => value::of_datum(given),
    };
    arguments.iter().map(argument).collect()
}

/// How long `pg_sleep` and its like sleep by their argument.
fn seconds(argument: Option<&Datum>) -> f64 {
    const MICROSECONDS: f64 = 1e6;
    match argument {
        Some(Datum::Float8(seconds)) => *seconds,
        Some(Datum::Interval(time)) => {
            let days = f64::from(time.months) * 30.0 + f64::from(time.days);
            days * 86_400.0 + time.micros as f64 / MICROSECONDS
        }
        Some(Datum::TimestampTz(until)) if *until == i64::MAX => f64::INFINITY,
        Some(Datum::TimestampTz(until)) => {
            let left = until.saturating_sub(clock());
            left as f64 / MICROSECONDS
        }
        _ => 0.0,
    }
}

impl StatementEnvironment<'_> {
    /// A function's error, which may be a wait.
    fn wait(&self, error: SqlError) -> QueryError {
        if error.wait.is_some() && self.advisory.load(Relaxed) {
            // The statement would run again, and what it has locked would count twice.
            return QueryError::unsupported(
                "a statement that has taken an advisory lock cannot wait for anything else",
                "Ask for the lock in a statement of its own.",
            );
        }
        self.awaited.note(error)
    }

    /// The error of a statement that ended with this one.
    #[cold]
    pub(crate) fn told(&self, error: impl Into<SqlError>) -> SqlError {
        self.awaited.told(error)
    }
}

impl Environment for StatementEnvironment<'_> {
    fn settings(&self) -> &Settings {
        self.styles.settings()
    }

    fn transaction_time(&self) -> i64 {
        self.told_time.store(true, Relaxed);
        self.now_us
    }

    fn statement_time(&self) -> i64 {
        let time = self.session.call("statement_timestamp", &[]);
        match time {
            Ok(Value::TimestampTz(time)) => time,
            _ => self.now_us,
        }
    }

    fn room(&self, bytes: usize) -> Result<()> {
        self.session
            .room_for_value(bytes as u64)
            .map_err(QueryError::from)
    }

    fn check_interrupted(&self) -> Result<()> {
        self.session.check_interrupted().map_err(QueryError::from)
    }

    fn called(&self, asked: &Asked<'_>) -> Result<Datum> {
        let given = self.session.called(asked);
        given.map_err(|error| self.wait(error))
    }

    fn call(&self, name: &str, arguments: &[Datum]) -> Result<Datum> {
        if super::SLEEPS.contains(&name) {
            let slept = self.session.sleep(seconds(arguments.first()));
            slept.map_err(|error| self.wait(error))?;
            return Ok(Datum::Text("".into()));
        }
        let of_sequence = super::OF_SEQUENCES.contains(&name);
        let is_advisory = super::ADVISORY.contains(&name);
        if !of_sequence && !is_advisory && !super::SESSION_FUNCTIONS.contains(&name) {
            return Err(QueryError::unsupported(
                format!("function {name} is not supported"),
                "Leave the call out, or compute its result in the application.",
            ));
        }
        let arguments = match of_sequence {
            true => numbered(arguments),
            false => arguments.iter().map(value::of_datum).collect(),
        };
        let answer = self.session.call(name, &arguments);
        let answer = answer.map_err(|error| self.wait(error))?;
        self.advisory.fetch_or(is_advisory, Relaxed);
        Ok(value::to_datum(&answer))
    }
}
