//! How long a statement goes on at a stretch. A thread serves many sessions, and a body holds its
//! partitions: rows are cheap mostly, but what a function costs nobody knows before. So a statement
//! looks at the clock while it goes over rows, seldom where they are cheap. Whoever has gone on for
//! too long gives way or goes on elsewhere. Cancels and time limits are noticed then, too.

use std::time::{Duration, Instant};

use thermocline_engine::{Database, Error, RunOptions};

use crate::error::{Result, SqlError};

/// A statement that has gone on for so long lets others go first.
pub(super) const STRETCH: Duration = Duration::from_millis(20);

/// The same for one that goes on here afterwards, after others have had its partition.
const STRETCH_OF_ONE: Duration = Duration::from_millis(5);

/// The same for one that holds all partitions.
const STRETCH_OF_ALL: Duration = Duration::from_millis(2);

/// Rows before the first look: most statements have no more, and never look.
const ROWS_UNSEEN: u32 = 4;

/// Most rows between two looks.
const ROWS_BETWEEN_LOOKS_MAX: u32 = 32;

/// Looks are further apart where the rows between two took less than this, and as near as can be
/// where they took longer than [`LOOK_LATEST`].
const LOOK_EARLIEST: Duration = Duration::from_micros(50);
const LOOK_LATEST: Duration = Duration::from_micros(500);

/// See the head of this file.
pub(super) struct Pace<'a> {
    db: &'a Database,
    options: &'a RunOptions,
    /// The statement may be run elsewhere instead.
    may_leave: bool,
    /// How long it goes on at a stretch.
    stretch: Duration,
    /// When the stretch began, and when the last look was.
    times: Option<(Instant, Instant)>,
    /// Rows until the next look, and between looks.
    left: u32,
    between: u32,
}

impl<'a> Pace<'a> {
    pub(super) const fn new(db: &'a Database, options: &'a RunOptions, may_leave: bool) -> Self {
        Self {
            db,
            options,
            may_leave,
            stretch: match may_leave {
                true => STRETCH,
                false => STRETCH_OF_ONE,
            },
            times: None,
            left: ROWS_UNSEEN,
            between: 1,
        }
    }

    /// Of a statement that holds all partitions at once, which others are to have soon.
    pub(super) const fn of_all_partitions(
        db: &'a Database,
        options: &'a RunOptions,
        may_leave: bool,
    ) -> Self {
        Self {
            stretch: STRETCH_OF_ALL,
            ..Self::new(db, options, may_leave)
        }
    }

    /// Others were let go first: a new stretch.
    pub(super) fn begin(&mut self) {
        let now = Instant::now();
        self.times = Some((now, now));
    }

    /// Another row. Whether the stretch is over.
    ///
    /// # Errors
    /// 57014 when the client or a time limit wants the statement to end.
    #[inline]
    pub(super) fn row(&mut self) -> Result<bool> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(false);
        }
        self.look()
    }

    /// Another row. Who may leave does, once the stretch is over ([`SqlError::takes_long`]).
    ///
    /// # Errors
    /// As [`Pace::row`], and that.
    #[inline]
    pub(super) fn row_or_leave(&mut self) -> Result<()> {
        if self.row()? { self.leave() } else { Ok(()) }
    }

    /// The stretch is over: who may leave does ([`SqlError::takes_long`]).
    ///
    /// # Errors
    /// That.
    pub(super) fn leave(&self) -> Result<()> {
        match self.may_leave {
            true => Err(SqlError::takes_long()),
            false => Ok(()),
        }
    }

    /// Before so many rows more that each take as long as the stretch until now.
    ///
    /// # Errors
    /// As [`Pace::leave`].
    pub(super) fn leave_before(&self, rows: usize) -> Result<()> {
        let (began, _) = self
            .times
            .unwrap_or_else(|| (Instant::now(), Instant::now()));
        match began.elapsed().as_secs_f64() * rows as f64 > STRETCH.as_secs_f64() {
            true => self.leave(),
            false => Ok(()),
        }
    }

    fn look(&mut self) -> Result<bool> {
        self.options.cancel.check()?;
        if self.options.deadline.is_some_and(|at| self.db.now() >= at) {
            return Err(Error::Timeout.into());
        }
        let now = Instant::now();
        let (began, last) = self.times.unwrap_or((now, now));
        let took = now - last;
        if took > LOOK_LATEST {
            self.between = 1;
        } else if took < LOOK_EARLIEST {
            self.between = (self.between * 2).min(ROWS_BETWEEN_LOOKS_MAX);
        }
        self.times = Some((began, now));
        self.left = self.between;
        let is_over = now - began >= self.stretch;
        if is_over {
            self.left = 1;
        }
        Ok(is_over)
    }
}
