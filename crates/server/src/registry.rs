//! Who is connected: one slot a session, so that there are never more than
//! `max_connections`, and the key with which another connection may cancel it. When the server
//! stops, all of them are asked to end as `pg_terminate_backend` asks one.
//! A slot frees itself when it is dropped, however its session ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use thermocline_engine::{Cancel, SessionEnd};
use thermocline_sql::error::SqlError;

use crate::metrics::Metrics;

pub(crate) struct Registry {
    max_connections: usize,
    /// Of these, for superusers only.
    reserved: usize,
    sessions: Mutex<Sessions>,
    metrics: Arc<Metrics>,
}

struct Sessions {
    by_process_id: HashMap<i32, Arc<Key>>,
    last_process_id: i32,
    /// The server stops: all sessions end once they are idle.
    closed: bool,
}

struct Key {
    secret: i32,
    /// Set once the session exists.
    cancel: OnceLock<Cancel>,
    /// A cancel of an idle session does nothing, as in PostgreSQL.
    running: AtomicBool,
}

/// A session's place.
pub(crate) struct Slot {
    registry: Arc<Registry>,
    key: Arc<Key>,
    pub(crate) process_id: i32,
}

impl Registry {
    pub(crate) fn new(max_connections: usize, reserved: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            max_connections,
            // One is for others, whatever was asked for.
            reserved: reserved.min(max_connections.saturating_sub(1)),
            sessions: Mutex::new(Sessions {
                by_process_id: HashMap::new(),
                last_process_id: 0,
                closed: false,
            }),
            metrics,
        }
    }

    /// A place for one more session.
    ///
    /// # Errors
    /// 53300 when all are taken, or those that are left are for superusers.
    pub(crate) fn enter(self: &Arc<Self>, superuser: bool) -> Result<Slot, SqlError> {
        let mut sessions = self.sessions.lock();
        let free = self
            .max_connections
            .saturating_sub(sessions.by_process_id.len());
        if free == 0 {
            return Err(SqlError::new("53300", "sorry, too many clients already"));
        }
        if free <= self.reserved && !superuser {
            return Err(SqlError::new(
                "53300",
                "remaining connection slots are reserved for non-replication superuser connections",
            ));
        }
        let mut process_id = sessions.last_process_id;
        loop {
            process_id = process_id.checked_add(1).unwrap_or(1);
            if !sessions.by_process_id.contains_key(&process_id) {
                break;
            }
        }
        sessions.last_process_id = process_id;
        let key = Arc::new(Key {
            secret: rand::random(),
            cancel: OnceLock::new(),
            running: AtomicBool::new(false),
        });
        sessions.by_process_id.insert(process_id, Arc::clone(&key));
        Metrics::add(&self.metrics.connections_open, 1);
        Ok(Slot {
            registry: Arc::clone(self),
            key,
            process_id,
        })
    }

    /// Cancels what the session runs, if the secret is its own.
    pub(crate) fn cancel(&self, process_id: i32, secret: i32) {
        Metrics::add(&self.metrics.cancel_requests, 1);
        let key = self
            .sessions
            .lock()
            .by_process_id
            .get(&process_id)
            .map(Arc::clone);
        match key {
            Some(key) if key.secret == secret => key.cancel(),
            Some(_) => tracing::warn!("wrong key in cancel request for process {process_id}"),
            None => tracing::debug!("cancel request for process {process_id}, which is not here"),
        }
    }

    /// Has all sessions end once they have nothing to do, those that begin later as well.
    pub(crate) fn close(&self) {
        self.sessions.lock().closed = true;
        self.for_each(Cancel::end_when_idle);
    }

    /// Has all sessions end, whatever they do.
    pub(crate) fn end_all(&self) {
        self.for_each(|cancel| cancel.end_session(SessionEnd::Administrator));
    }

    fn for_each(&self, ask: impl Fn(&Cancel)) {
        let sessions = self.sessions.lock();
        let keys: Vec<_> = sessions.by_process_id.values().cloned().collect();
        drop(sessions);
        for cancel in keys.iter().filter_map(|key| key.cancel.get()) {
            ask(cancel);
        }
    }
}

impl Key {
    fn cancel(&self) {
        if self.running.load(Relaxed)
            && let Some(cancel) = self.cancel.get()
        {
            cancel.cancel();
        }
    }
}

impl Slot {
    pub(crate) fn secret(&self) -> i32 {
        self.key.secret
    }

    /// From now on the session can be cancelled and ended.
    pub(crate) fn set_cancel(&self, cancel: Cancel) {
        let first = self.key.cancel.set(cancel.clone()).is_ok();
        assert!(first, "a slot belongs to one session");
        if self.registry.sessions.lock().closed {
            cancel.end_when_idle();
        }
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.key.running.store(running, Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let left = self
            .registry
            .sessions
            .lock()
            .by_process_id
            .remove(&self.process_id);
        assert!(left.is_some(), "a session leaves once");
        Metrics::subtract(&self.registry.metrics.connections_open, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(max_connections: usize) -> Arc<Registry> {
        let metrics = Arc::default();
        Arc::new(Registry::new(max_connections, 1, metrics))
    }

    #[test]
    fn slots_are_bounded_and_come_back() {
        let registry = registry(2);
        let refusal = |superuser| registry.enter(superuser).err().unwrap().message.clone();
        let first = registry.enter(false).unwrap();
        assert!(refusal(false).starts_with("remaining connection slots"));
        let second = registry.enter(true).unwrap();
        assert_ne!(first.process_id, second.process_id);
        assert_eq!(refusal(true), "sorry, too many clients already");
        assert_eq!(refusal(false), refusal(true));
        drop(first);
        let third = registry.enter(true).unwrap();
        assert_ne!(third.process_id, second.process_id);
        assert_eq!(registry.metrics.snapshot().connections_open, 2);
    }

    #[test]
    fn a_cancel_needs_the_key_and_something_that_runs() {
        let registry = registry(2);
        let slot = registry.enter(true).unwrap();
        let cancel = Cancel::new();
        slot.set_cancel(cancel.clone());
        registry.cancel(slot.process_id, slot.secret());
        assert!(!cancel.is_cancelled(), "idle");
        slot.set_running(true);
        registry.cancel(slot.process_id, slot.secret().wrapping_add(1));
        registry.cancel(slot.process_id + 1, slot.secret());
        assert!(!cancel.is_cancelled(), "wrong key");
        registry.cancel(slot.process_id, slot.secret());
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn a_stop_reaches_sessions_whenever_they_begin() {
        let registry = registry(3);
        let [before, during, after] = [(); 3].map(|()| registry.enter(true).unwrap());
        let cancels = [(); 3].map(|()| Cancel::new());
        before.set_cancel(cancels[0].clone());
        registry.close();
        during.set_cancel(cancels[1].clone());
        after.set_cancel(cancels[2].clone());
        for cancel in &cancels {
            assert_eq!(cancel.idle_end(), Some(SessionEnd::Administrator));
            assert_eq!(cancel.session_end(), None);
        }
        registry.end_all();
        assert!(cancels.iter().all(|cancel| cancel.session_end().is_some()));
    }
}
