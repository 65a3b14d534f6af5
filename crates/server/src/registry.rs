//! Who is connected: one slot a session, so that there are never more than
//! `max_connections`, and the key with which another connection may cancel it.
//! A slot frees itself when it is dropped, however its session ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use thermocline_engine::Cancel;

use crate::metrics::Metrics;

pub(crate) struct Registry {
    max_connections: usize,
    sessions: Mutex<Sessions>,
    metrics: Arc<Metrics>,
}

struct Sessions {
    by_process_id: HashMap<i32, Arc<Key>>,
    last_process_id: i32,
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
    pub(crate) fn new(max_connections: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            max_connections,
            sessions: Mutex::new(Sessions {
                by_process_id: HashMap::new(),
                last_process_id: 0,
            }),
            metrics,
        }
    }

    /// A place for one more session; none when all are taken.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Slot> {
        let mut sessions = self.sessions.lock();
        if sessions.by_process_id.len() >= self.max_connections {
            return None;
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
        Some(Slot {
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

    /// Cancels everything that runs.
    pub(crate) fn cancel_all(&self) {
        let keys: Vec<_> = self
            .sessions
            .lock()
            .by_process_id
            .values()
            .cloned()
            .collect();
        for key in keys {
            key.cancel();
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

    /// From now on the session can be cancelled.
    pub(crate) fn set_cancel(&self, cancel: Cancel) {
        let first = self.key.cancel.set(cancel).is_ok();
        assert!(first, "a slot belongs to one session");
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
        Arc::new(Registry::new(max_connections, Arc::new(Metrics::default())))
    }

    #[test]
    fn slots_are_bounded_and_come_back() {
        let registry = registry(2);
        let first = registry.enter().unwrap();
        let second = registry.enter().unwrap();
        assert_ne!(first.process_id, second.process_id);
        assert!(registry.enter().is_none());
        drop(first);
        let third = registry.enter().unwrap();
        assert_ne!(third.process_id, second.process_id);
        assert_eq!(registry.metrics.snapshot().connections_open, 2);
    }

    #[test]
    fn a_cancel_needs_the_key_and_something_that_runs() {
        let registry = registry(2);
        let slot = registry.enter().unwrap();
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
}
