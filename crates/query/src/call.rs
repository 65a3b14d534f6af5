//! What a function knows beside its arguments: the types it was resolved to,
//! the session's settings and time, and room for what it makes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// PostgreSQL's longest value: 1 GB less one byte.
pub const VALUE_BYTES_MAX: usize = 0x3fff_ffff;
/// What is smaller is made without asking for room.
pub const SMALL_VALUE_BYTES: usize = 8 << 10;

/// How dates are written, the first half of `DateStyle`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateStyle {
    /// `ISO`
    #[default]
    Iso,
    /// `SQL`
    Sql,
    /// `Postgres`
    Postgres,
    /// `German`
    German,
}

/// How ambiguous dates are read, the second half of `DateStyle`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateOrder {
    /// `MDY`
    #[default]
    Mdy,
    /// `DMY`
    Dmy,
    /// `YMD`
    Ymd,
}

/// How intervals are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IntervalStyle {
    /// `postgres`
    #[default]
    Postgres,
    /// `postgres_verbose`
    PostgresVerbose,
    /// `sql_standard`
    SqlStandard,
    /// `iso_8601`
    Iso8601,
}

/// How `bytea` is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ByteaOutput {
    /// `hex`
    #[default]
    Hex,
    /// `escape`
    Escape,
}

/// The settings of a session that functions and types depend on.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `TimeZone`
    pub time_zone: jiff::tz::TimeZone,
    /// `TimeZone` as it was written.
    pub time_zone_name: String,
    /// `DateStyle`, how dates are written.
    pub date_style: DateStyle,
    /// `DateStyle`, how dates are read.
    pub date_order: DateOrder,
    /// `IntervalStyle`
    pub interval_style: IntervalStyle,
    /// `bytea_output`
    pub bytea_output: ByteaOutput,
    /// `extra_float_digits`
    pub extra_float_digits: i32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            time_zone: jiff::tz::TimeZone::UTC,
            time_zone_name: "UTC".to_owned(),
            date_style: DateStyle::default(),
            date_order: DateOrder::default(),
            interval_style: IntervalStyle::default(),
            bytea_output: ByteaOutput::default(),
            extra_float_digits: 1,
        }
    }
}

/// What the server answers to a function.
pub trait Environment: Send + Sync {
    /// The session's settings.
    fn settings(&self) -> &Settings;

    /// When the transaction began, in microseconds since 2000-01-01 UTC.
    fn transaction_time(&self) -> i64;

    /// When the statement began, in microseconds since 2000-01-01 UTC.
    fn statement_time(&self) -> i64;

    /// Asks for room for a large value, before it is made.
    ///
    /// # Errors
    /// 53200 where there is none.
    fn room(&self, bytes: usize) -> Result<()>;

    /// Whether the statement is to go on; asked now and then by what takes long.
    ///
    /// # Errors
    /// 57014 and others.
    fn check_interrupted(&self) -> Result<()>;

    /// Calls a function that asks about the server, its session or its
    /// catalog, by name.
    ///
    /// # Errors
    /// As the function's in PostgreSQL.
    fn call(&self, name: &str, arguments: &[Datum]) -> Result<Datum>;

    /// Calls a function that only the session runs: its value, or an array of its rows.
    ///
    /// # Errors
    /// The function's own; 0A000 where nobody runs it.
    fn called(&self, asked: &Asked<'_>) -> Result<Datum> {
        let _ = asked;
        Err(QueryError::unsupported(
            "a function that is no query cannot be called in such a place",
            "Call it in a statement of its own.",
        ))
    }
}

/// A call of a user's function that only the session runs.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The function's number.
    pub function: u32,
    /// The numbers of its arguments' types.
    pub types: &'a [u32],
    /// The number of the type of its value.
    pub result: u32,
    /// The arguments.
    pub arguments: &'a [Datum],
}

/// An environment that has nothing but settings: for constants and for tests.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// The settings.
    pub settings: Settings,
}

impl Environment for Plain {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn transaction_time(&self) -> i64 {
        0
    }

    fn statement_time(&self) -> i64 {
        0
    }

    fn room(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn check_interrupted(&self) -> Result<()> {
        Ok(())
    }

    fn call(&self, name: &str, _: &[Datum]) -> Result<Datum> {
        Err(QueryError::unsupported(
            format!("function {name} is not supported without a session"),
            "Call it in a statement of a session.",
        ))
    }
}

/// The environment of a text that is kept, which is read again and again, and has no moment.
#[derive(Debug, Default)]
pub struct Timeless {
    plain: Plain,
    asked_time: AtomicBool,
}

impl Timeless {
    /// Whether the text means the same whenever it is read.
    ///
    /// # Errors
    /// 0A000.
    pub fn check(&self) -> Result<()> {
        match self.asked_time.load(Relaxed) {
            true => Err(of_the_moment()),
            false => Ok(()),
        }
    }
}

/// The error of a text that is kept and asked for the time.
#[cold]
#[must_use]
pub fn of_the_moment() -> QueryError {
    QueryError::unsupported(
        "a constant of the moment, such as 'now' or 'today', is not supported in defaults, \
         conditions and expressions of a table",
        "Use CURRENT_TIMESTAMP or CURRENT_DATE, or write the moment itself.",
    )
}

impl Environment for Timeless {
    fn settings(&self) -> &Settings {
        self.plain.settings()
    }

    fn transaction_time(&self) -> i64 {
        self.asked_time.store(true, Relaxed);
        0
    }

    fn statement_time(&self) -> i64 {
        self.transaction_time()
    }

    fn room(&self, bytes: usize) -> Result<()> {
        self.plain.room(bytes)
    }

    fn check_interrupted(&self) -> Result<()> {
        Ok(())
    }

    fn call(&self, name: &str, arguments: &[Datum]) -> Result<Datum> {
        self.plain.call(name, arguments)
    }
}

/// One call of a function.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The server.
    pub environment: &'a dyn Environment,
    /// The numbers of the arguments' types, as the call was resolved.
    pub arguments: &'a [u32],
    /// The number of the result's type.
    pub result: u32,
}

impl<'a> Call<'a> {
    /// A call within `environment`.
    #[must_use]
    pub const fn new(environment: &'a dyn Environment, arguments: &'a [u32], result: u32) -> Self {
        Self {
            environment,
            arguments,
            result,
        }
    }

    /// The same for a value of another type that is read or shown meanwhile.
    #[must_use]
    #[inline]
    pub const fn making(&self, result: u32) -> Self {
        Self { result, ..*self }
    }

    /// The session's settings.
    #[must_use]
    pub fn settings(&self) -> &'a Settings {
        self.environment.settings()
    }

    /// Asks for room before a value of `bytes` is made. To be called by
    /// whatever makes more than it was given.
    ///
    /// # Errors
    /// 54000 beyond PostgreSQL's longest value, 53200 where there is no room.
    pub fn room(&self, bytes: usize) -> Result<()> {
        if bytes > VALUE_BYTES_MAX {
            return Err(QueryError::new("54000", "requested length too large"));
        }
        if bytes > SMALL_VALUE_BYTES {
            self.environment.room(bytes)?;
        }
        Ok(())
    }
}
