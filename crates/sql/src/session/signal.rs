//! `pg_cancel_backend` and `pg_terminate_backend`: a session has another one, or itself, stop;
//! and `pg_sleep`.
//!
//! Functions do not wait. One that has to, for a session's end or a time, says so with an error
//! that is none ([`SqlError::waits`]): the statement is run again when the wait is over, and finds
//! what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thermocline_engine::{RunOptions, SessionEnd};

use super::advisory::AdvisoryLock;
use super::calling::Calls;
use super::context::SessionContext;
use super::{Client, Session};
use crate::error::{Result, SqlError, Wait};
use crate::privilege::Actor;

/// How often it is looked whether a session has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// What another session is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// End its statement.
    Cancel,
    /// End; so many milliseconds are waited until it has.
    Terminate(i64),
}

/// How long `pg_sleep` sleeps at most: longer than any session lasts.
const LONGEST_SLEEP: f64 = 1e9;

/// What a statement waits for or has waited for.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The sessions, how long they have to end, and whether they ended in time.
    ends: BTreeMap<i32, (Duration, Option<bool>)>,
    /// Sleeps that are over.
    slept: usize,
    /// Sleeps that this run of the statement has come to.
    sleeps: usize,
    /// The advisory lock that was waited for, until the call that asked for it comes again.
    pub(super) granted: Option<AdvisoryLock>,
    /// Calls of functions that the session makes.
    pub(super) calls: Calls,
}

impl SessionContext {
    /// Stops what the session with this number does, or the session. False when there is no
    /// such session, or when it did not end in time, of which the client is warned.
    ///
    /// # Errors
    /// 42501 for a role that may not.
    pub(crate) fn signal(&self, actor: &Actor, process_id: i32, signal: Signal) -> Result<bool> {
        let timeout = match signal {
            Signal::Terminate(timeout) if timeout < 0 => {
                return Err(SqlError::new("22003", "\"timeout\" must not be negative"));
            }
            // PostgreSQL's function takes it for an integer of 32 bits, too.
            Signal::Terminate(timeout) => Duration::from_millis(timeout as u32 as u64),
            Signal::Cancel => Duration::ZERO,
        };
        let noted = self.waits.lock().ends.get(&process_id).copied();
        if let (Signal::Terminate(_), Some((_, Some(ended)))) = (signal, noted) {
            return Ok(ended);
        }
        let Some(other) = self.sessions.find(process_id) else {
            let warning = format!("PID {process_id} is not a PostgreSQL backend process");
            self.warn(warning);
            return Ok(false);
        };
        need_signal(actor, &other.user, signal)?;
        match signal {
            Signal::Cancel if other.is_active() => other.cancel.cancel(),
            Signal::Cancel => {}
            Signal::Terminate(_) => other.cancel.end_session(SessionEnd::Administrator),
        }
        if timeout.is_zero() {
            return Ok(true);
        }
        self.waits.lock().ends.insert(process_id, (timeout, None));
        Err(SqlError::waits(Wait::SessionEnd(process_id)))
    }

    /// Sleeps so many seconds; not at all if there are none, or no number is given.
    ///
    /// # Errors
    /// The wait, if this is the first time that the statement comes here.
    pub(super) fn sleep(&self, seconds: f64) -> Result<()> {
        if seconds.is_nan() || seconds <= 0.0 {
            return Ok(());
        }
        let mut waits = self.waits.lock();
        waits.sleeps += 1;
        if waits.sleeps <= waits.slept {
            return Ok(());
        }
        let time = Duration::from_secs_f64(seconds.min(LONGEST_SLEEP));
        Err(SqlError::waits(Wait::Time(time)))
    }

    /// Something begins that is run again by itself after a wait: it counts its own sleeps and calls. What
    /// has been counted is for [`Self::go_on_waiting`].
    pub(super) fn begin_waits(&self) -> (usize, usize, Calls) {
        let mut waits = self.waits.lock();
        let before = (waits.slept, waits.sleeps);
        (waits.slept, waits.sleeps) = (0, 0);
        (before.0, before.1, std::mem::take(&mut waits.calls))
    }

    /// What is around goes on.
    pub(super) fn go_on_waiting(&self, before: (usize, usize, Calls)) {
        let mut waits = self.waits.lock();
        (waits.slept, waits.sleeps, waits.calls) = before;
    }

    pub(super) fn warn(&self, message: String) {
        let warning = SqlError::new("01000", message);
        self.notices.lock().push(("WARNING", warning));
    }
}

fn need_signal(actor: &Actor, user: &str, signal: Signal) -> Result<()> {
    if actor.may_signal(user) {
        return Ok(());
    }
    let other = actor.authority().role_by_name(user);
    let superuser = other.is_some_and(|other| other.superuser);
    Err(SqlError::new(
        "42501",
        match (signal, superuser) {
            (Signal::Cancel, true) => "must be a superuser to cancel superuser query",
            (Signal::Cancel, false) => {
                "must be a member of the role whose query is being canceled or member of pg_signal_backend"
            }
            (Signal::Terminate(_), true) => "must be a superuser to terminate superuser process",
            (Signal::Terminate(_), false) => {
                "must be a member of the role whose process is being terminated or member of pg_signal_backend"
            }
        },
    ))
}

impl Session {
    /// Waits as a function of the statement has asked for.
    ///
    /// # Errors
    /// 57014 and others when the statement has to end itself.
    pub(super) async fn wait(&mut self, wait: Wait, options: &RunOptions) -> Result<()> {
        match wait {
            Wait::SessionEnd(process_id) => self.await_session_end(process_id, options).await?,
            Wait::Time(time) => {
                self.engine.db.wait_for(options, time).await?;
                self.context.waits.lock().slept += 1;
            }
            Wait::Advisory(lock) => self.await_advisory(lock, options).await?,
            Wait::Call => self.make_asked(options).await?,
        }
        let mut waits = self.context.waits.lock();
        waits.sleeps = 0;
        waits.calls.begin_again();
        Ok(())
    }

    /// Waits as a statement's error has it, which is none itself.
    pub(super) async fn wait_of(&mut self, error: &SqlError, options: &RunOptions) -> Result<()> {
        match error.wait {
            Some(wait) => self.wait(wait, options).await,
            None => Err(error.clone()),
        }
    }

    async fn await_session_end(&self, process_id: i32, options: &RunOptions) -> Result<()> {
        let awaited = self.context.waits.lock().ends.get(&process_id).copied();
        let timeout = awaited.map_or(Duration::ZERO, |(timeout, _)| timeout);
        let db = &self.engine.db;
        let until = db.now() + timeout;
        let sought = self.engine.sessions.find(process_id);
        let is_there = || {
            let found = self.engine.sessions.find(process_id);
            matches!((&sought, found), (Some(sought), Some(found)) if Arc::ptr_eq(sought, &found))
        };
        let mut ended = !is_there();
        while !ended && db.now() < until {
            db.wait_for(options, LOOK_INTERVAL.min(until - db.now()))
                .await?;
            ended = !is_there();
        }
        if !ended {
            let milliseconds = timeout.as_millis();
            let plural = if milliseconds == 1 { "" } else { "s" };
            self.context.warn(format!(
                "backend with PID {process_id} did not terminate within {milliseconds} millisecond{plural}"
            ));
        }
        let mut waits = self.context.waits.lock();
        waits.ends.insert(process_id, (timeout, Some(ended)));
        Ok(())
    }

    /// A statement has ended, however: the next one waits anew.
    pub(super) fn forget_waits(&self) {
        let mut waits = self.context.waits.lock();
        waits.ends.clear();
        waits.slept = 0;
        waits.sleeps = 0;
        waits.calls = Calls::default();
        let granted = waits.granted.take();
        drop(waits);
        self.context.forget_granted(granted);
    }

    /// Tells the client what the statement's functions have to say.
    pub(super) fn tell_notices(&self, client: &mut Client) {
        let notices = std::mem::take(&mut *self.context.notices.lock());
        for (severity, notice) in &notices {
            self.notify(client, severity, notice);
        }
    }
}
