//! Advisory locks: locks on numbers, of sessions and of transactions, exclusive and shared.
//!
//! Whoever waits is let in as soon as nobody is in its way: there is no queue. Sessions that wait
//! for each other's advisory locks are found when the last of them begins to wait (40P01).
//! Circles through other locks are not: `lock_timeout` ends them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use thermocline_engine::{ChargeKind, Event, RunOptions, WaitsFor};
use thermocline_values::value::Value;

use super::Session;
use super::context::SessionContext;
use crate::error::{Result, SqlError, Wait};

/// Locks that a session may hold.
const LOCKS_MAX: usize = 16_384;
/// What a key of a session takes, in bytes.
const KEY_BYTES: u64 = 256;
/// How often one who waits looks whether its time is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What is locked, as `pg_locks` shows it: a number in two halves, or two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AdvisoryKey {
    pub(crate) class: u32,
    pub(crate) object: u32,
    pub(crate) is_pair: bool,
}

/// A lock that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdvisoryLock {
    pub(crate) key: AdvisoryKey,
    pub(crate) shared: bool,
    /// It goes with the transaction.
    pub(crate) of_transaction: bool,
}

/// What a session has of a key.
#[derive(Clone, Copy, Debug)]
struct Held {
    owner: i32,
    shared: bool,
    of_transaction: bool,
    times: u64,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<AdvisoryKey, Vec<Held>>,
    /// The keys that each session has something of.
    keys_of: BTreeMap<i32, BTreeSet<AdvisoryKey>>,
    waiting: BTreeMap<i32, AdvisoryLock>,
}

/// The advisory locks of all sessions.
#[derive(Debug, Default)]
pub(super) struct AdvisoryLocks {
    state: Mutex<State>,
    released: Event,
}

impl State {
    /// Those in whose way a lock is.
    fn in_the_way(&self, owner: i32, lock: AdvisoryLock) -> impl Iterator<Item = i32> {
        let held = self.held.get(&lock.key).into_iter().flatten();
        let others = held.filter(move |held| held.owner != owner && !(held.shared && lock.shared));
        others.map(|held| held.owner)
    }

    fn take(&mut self, owner: i32, lock: AdvisoryLock) -> Result<bool> {
        if self.in_the_way(owner, lock).next().is_some() {
            return Ok(false);
        }
        let own = self.keys_of.entry(owner).or_default();
        if own.len() >= LOCKS_MAX && !own.contains(&lock.key) {
            let message = format!("a session cannot hold more than {LOCKS_MAX} advisory locks");
            return Err(SqlError::new("53200", message)
                .with_hint("Release some with pg_advisory_unlock, or lock fewer numbers."));
        }
        own.insert(lock.key);
        let held = self.held.entry(lock.key).or_default();
        let is_same = |held: &&mut Held| {
            (held.owner, held.shared, held.of_transaction)
                == (owner, lock.shared, lock.of_transaction)
        };
        match held.iter_mut().find(is_same) {
            Some(held) => held.times += 1,
            None => held.push(Held {
                owner,
                shared: lock.shared,
                of_transaction: lock.of_transaction,
                times: 1,
            }),
        }
        Ok(true)
    }

    /// Takes away what `goes` says of what an owner has of a key.
    fn drop_held(&mut self, owner: i32, key: AdvisoryKey, goes: impl Fn(&Held) -> bool) {
        let Some(held) = self.held.get_mut(&key) else {
            return;
        };
        held.retain(|held| held.owner != owner || !goes(held));
        let has_some = held.iter().any(|held| held.owner == owner);
        if held.is_empty() {
            self.held.remove(&key);
        }
        if !has_some && let Some(own) = self.keys_of.get_mut(&owner) {
            own.remove(&key);
            if own.is_empty() {
                self.keys_of.remove(&owner);
            }
        }
    }

    /// Whether `owner` waits for somebody who waits for it.
    fn is_circle(&self, owner: i32) -> bool {
        let mut seen = BTreeSet::new();
        let mut left = vec![owner];
        while let Some(waiter) = left.pop() {
            let Some(lock) = self.waiting.get(&waiter) else {
                continue;
            };
            for holder in self.in_the_way(waiter, *lock) {
                if holder == owner {
                    return true;
                }
                if seen.insert(holder) {
                    left.push(holder);
                }
            }
        }
        false
    }
}

impl AdvisoryLocks {
    fn take(&self, owner: i32, lock: AdvisoryLock) -> Result<bool> {
        self.state.lock().take(owner, lock)
    }

    /// How many keys a session has something of.
    fn keys_of(&self, owner: i32) -> usize {
        let state = self.state.lock();
        state.keys_of.get(&owner).map_or(0, BTreeSet::len)
    }

    /// Gives back a lock once; false where the session has none such.
    fn release(&self, owner: i32, lock: AdvisoryLock) -> bool {
        let mut state = self.state.lock();
        let held = state.held.get_mut(&lock.key).into_iter().flatten();
        let mut own = held.filter(|held| {
            (held.owner, held.shared, held.of_transaction)
                == (owner, lock.shared, lock.of_transaction)
        });
        let Some(held) = own.next() else {
            return false;
        };
        held.times -= 1;
        state.drop_held(owner, lock.key, |held| held.times == 0);
        drop(state);
        self.released.notify();
        true
    }

    /// Gives back all locks of an owner: of its transaction, of the session, or both.
    pub(super) fn release_all(&self, owner: i32, of_transaction: Option<bool>) {
        let mut state = self.state.lock();
        let keys = state.keys_of.get(&owner).cloned().unwrap_or_default();
        if keys.is_empty() {
            return;
        }
        for key in keys {
            state.drop_held(owner, key, |held| {
                of_transaction.is_none_or(|of| held.of_transaction == of)
            });
        }
        drop(state);
        self.released.notify();
    }

    /// Who has what this one waits for.
    pub(super) fn blockers(&self, owner: i32) -> Vec<i32> {
        let state = self.state.lock();
        let lock = state.waiting.get(&owner).copied();
        lock.map_or_else(Vec::new, |lock| state.in_the_way(owner, lock).collect())
    }

    /// Each lock with its session, and whether that has it or waits for it.
    pub(super) fn list(&self) -> Vec<(i32, AdvisoryLock, bool)> {
        let state = self.state.lock();
        let held = state.held.iter().flat_map(|(key, held)| {
            held.iter().map(|held| {
                let lock = AdvisoryLock {
                    key: *key,
                    shared: held.shared,
                    of_transaction: held.of_transaction,
                };
                (held.owner, lock, true)
            })
        });
        let waiting = state
            .waiting
            .iter()
            .map(|(owner, lock)| (*owner, *lock, false));
        held.chain(waiting).collect()
    }
}

/// Forgets that a session waits, however its wait ends.
struct Waiting<'l>(&'l AdvisoryLocks, i32);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting.remove(&self.1);
    }
}

impl SessionContext {
    /// A function of advisory locks, by its name.
    ///
    /// # Errors
    /// The wait for a lock that others have; 53200.
    pub(super) fn advisory(&self, name: &str, arguments: &[Value]) -> Result<Value> {
        let void = || Value::Text(String::new());
        let locks = self.sessions.advisory();
        if name == "pg_advisory_unlock_all" {
            self.end_advisory_of_session();
            return Ok(void());
        }
        let key = match arguments {
            [Value::BigInt(number)] => AdvisoryKey {
                class: (*number >> 32) as u32,
                object: *number as u32,
                is_pair: false,
            },
            [Value::Integer(class), Value::Integer(object)] => AdvisoryKey {
                class: *class as u32,
                object: *object as u32,
                is_pair: true,
            },
            _ => return Ok(Value::Null),
        };
        let shared = name.ends_with("_shared");
        if name.starts_with("pg_advisory_unlock") {
            let lock = AdvisoryLock {
                key,
                shared,
                of_transaction: false,
            };
            let released = locks.release(self.process_id, lock);
            self.charge_advisory(0)?;
            if !released {
                let mode = mode_of(shared);
                self.warn(format!("you don't own a lock of type {mode}"));
            }
            return Ok(Value::Boolean(released));
        }
        let lock = AdvisoryLock {
            key,
            shared,
            of_transaction: name.contains("_xact_"),
        };
        let tries = name.starts_with("pg_try_");
        let waited = self
            .waits
            .lock()
            .granted
            .take_if(|granted| *granted == lock);
        self.charge_advisory(1)?;
        let taken = waited.is_some() || locks.take(self.process_id, lock)?;
        if taken && lock.of_transaction {
            self.has_advisory.store(true, Relaxed);
        }
        match (tries, taken) {
            (true, taken) => Ok(Value::Boolean(taken)),
            (false, true) => Ok(void()),
            (false, false) => Err(SqlError::waits(Wait::Advisory(lock))),
        }
    }
}

impl SessionContext {
    /// Charges the session for the keys that it has, and for so many more.
    fn charge_advisory(&self, more: u64) -> Result<()> {
        let keys = self.sessions.advisory().keys_of(self.process_id) as u64;
        let mut charge = self.advisory_charge.lock();
        let nothing = || self.account.nothing(ChargeKind::Session);
        let charge = charge.get_or_insert_with(nothing);
        Ok(charge.resize((keys + more) * KEY_BYTES)?)
    }

    /// A statement has ended. The lock that it waited for goes if no call has taken it over.
    pub(super) fn forget_granted(&self, granted: Option<AdvisoryLock>) {
        if let Some(lock) = granted {
            self.sessions.advisory().release(self.process_id, lock);
        }
    }

    /// Gives back what the session has, and keeps what a transaction has.
    pub(super) fn end_advisory_of_session(&self) {
        let locks = self.sessions.advisory();
        locks.release_all(self.process_id, Some(false));
        // Less is never refused.
        let _ = self.charge_advisory(0);
    }

    /// The transaction has ended.
    pub(super) fn end_advisory(&self) {
        if self.has_advisory.load(Relaxed) && self.has_advisory.swap(false, Relaxed) {
            let locks = self.sessions.advisory();
            locks.release_all(self.process_id, Some(true));
            let _ = self.charge_advisory(0);
        }
    }
}

/// What PostgreSQL calls the lock.
pub(crate) fn mode_of(shared: bool) -> &'static str {
    match shared {
        true => "ShareLock",
        false => "ExclusiveLock",
    }
}

impl Session {
    /// Waits for an advisory lock, and takes it for the call that asked for it.
    ///
    /// # Errors
    /// 57014, 55P03, 40P01.
    pub(super) async fn await_advisory(
        &self,
        lock: AdvisoryLock,
        options: &RunOptions,
    ) -> Result<()> {
        let db = &self.engine.db;
        let locks = self.engine.sessions.advisory();
        let own = self.context.process_id;
        let until = options.lock_timeout.map(|timeout| db.now() + timeout);
        let _note = options.cancel.note_wait(WaitsFor::Advisory);
        let _waiting = Waiting(locks, own);
        locks.state.lock().waiting.insert(own, lock);
        loop {
            let released = locks.released.listen();
            {
                let mut state = locks.state.lock();
                if state.take(own, lock)? {
                    break;
                }
                if state.is_circle(own) {
                    return Err(SqlError::new("40P01", "deadlock detected")
                        .with_detail("Sessions wait for each other's advisory locks."));
                }
            }
            if until.is_some_and(|until| db.now() >= until) {
                return Err(thermocline_engine::Error::LockTimeout.into());
            }
            let mut time = pin!(db.wait_for(options, LOOK_INTERVAL));
            let mut released = pin!(released);
            poll_fn(|context| match released.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => time.as_mut().poll(context),
            })
            .await?;
        }
        self.context.waits.lock().granted = Some(lock);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Take(i32, u32, bool, bool),
        Release(i32, u32, bool, bool),
        ReleaseAll(i32, Option<bool>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let owner = || 0..3i32;
        prop_oneof![
            4 => (owner(), 0..3u32, any::<bool>(), any::<bool>())
                .prop_map(|(owner, key, shared, of)| Step::Take(owner, key, shared, of)),
            3 => (owner(), 0..3u32, any::<bool>(), any::<bool>())
                .prop_map(|(owner, key, shared, of)| Step::Release(owner, key, shared, of)),
            1 => (owner(), any::<Option<bool>>())
                .prop_map(|(owner, of)| Step::ReleaseAll(owner, of)),
        ]
    }

    fn lock(object: u32, shared: bool, of_transaction: bool) -> AdvisoryLock {
        let key = AdvisoryKey {
            class: 0,
            object,
            is_pair: false,
        };
        AdvisoryLock {
            key,
            shared,
            of_transaction,
        }
    }

    proptest! {
        /// Against a list of all that was taken and not given back.
        #[test]
        fn locks_are_those_of_a_list(steps in prop::collection::vec(step(), 1..60)) {
            let locks = AdvisoryLocks::default();
            let mut model: Vec<(i32, AdvisoryLock)> = Vec::new();
            for step in steps {
                match step {
                    Step::Take(owner, key, shared, of) => {
                        let wanted = lock(key, shared, of);
                        let free = model.iter().all(|(other, held)| {
                            *other == owner
                                || held.key != wanted.key
                                || held.shared && shared
                        });
                        prop_assert_eq!(locks.take(owner, wanted).unwrap(), free);
                        model.extend(free.then_some((owner, wanted)));
                    }
                    Step::Release(owner, key, shared, of) => {
                        let wanted = (owner, lock(key, shared, of));
                        let at = model.iter().position(|held| *held == wanted);
                        prop_assert_eq!(locks.release(owner, wanted.1), at.is_some());
                        at.map(|at| model.remove(at));
                    }
                    Step::ReleaseAll(owner, of) => {
                        locks.release_all(owner, of);
                        model.retain(|(other, held)| {
                            *other != owner || of.is_some_and(|of| held.of_transaction != of)
                        });
                    }
                }
                for owner in 0..3 {
                    let own = model.iter().filter(|(of, _)| *of == owner);
                    let keys: BTreeSet<_> = own.map(|(_, held)| held.key).collect();
                    prop_assert_eq!(locks.keys_of(owner), keys.len());
                }
            }
            locks.release_all(0, None);
            locks.release_all(1, None);
            locks.release_all(2, None);
            let state = locks.state.lock();
            prop_assert!(state.held.is_empty() && state.keys_of.is_empty());
        }
    }
}
