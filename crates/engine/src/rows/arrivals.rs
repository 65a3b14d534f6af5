//! After a start partitions come one by one ([`crate::restart`]), and a statement is answered
//! as soon as those are there that it needs.
//!
//! Whoever runs a statement waits here before it takes locks, as long as the statement may, and
//! what is waited for comes next. Who needs all (definitions, checkpoints, backups, compaction)
//! waits for all. Upkeep that may see a partition as it comes takes it by
//! [`Partition::lock_any`](crate::rows::partition::Partition::lock_any). A partition that cannot be
//! read never comes: who needs it is told why, and the database takes no more writes.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::ground::wait::Event;

thread_local! {
    static LOADS: Cell<bool> = const { Cell::new(false) };
}

/// While it is there this thread brings partitions, and may lock those that are not there.
pub(crate) struct Loader {
    before: bool,
}

impl Loader {
    pub fn enter() -> Self {
        Loader {
            before: LOADS.replace(true),
        }
    }

    /// Whether this thread brings partitions.
    pub fn is_here() -> bool {
        LOADS.get()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        LOADS.set(self.before);
    }
}

/// Which partitions are there, and which are waited for.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// Partitions that are not there; those that never will be included.
    missing: AtomicUsize,
    inner: Mutex<Inner>,
    /// A partition is there, or never will be.
    pub changed: Event,
    /// The same, for threads that wait with nothing else to do.
    signal: Condvar,
}

#[derive(Default)]
struct Inner {
    /// By partition.
    states: Vec<Arrival>,
    /// Waited for, the first first.
    wanted: VecDeque<u16>,
    /// Nobody who could bring one but those who need it.
    by_hand: bool,
    closed: bool,
}

#[derive(Debug, Clone)]
enum Arrival {
    Coming,
    There,
    /// It never will be there: why not.
    Lost(Error),
}

impl Arrivals {
    /// So many partitions are to come. `by_hand`: nobody brings them but those who ask for it.
    pub fn expect(&self, partitions: usize, by_hand: bool) {
        let mut inner = self.inner.lock();
        inner.states = vec![Arrival::Coming; partitions];
        inner.by_hand = by_hand;
        self.missing.store(partitions, Ordering::Release);
    }

    /// Whether all partitions are there.
    #[inline]
    pub fn are_complete(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }

    /// Whether nobody brings partitions but those who ask for them.
    pub fn are_brought_by_hand(&self) -> bool {
        self.inner.lock().by_hand
    }

    /// Partitions that are not there.
    pub fn missing(&self) -> usize {
        self.missing.load(Ordering::Acquire)
    }

    /// A partition is there.
    pub fn arrived(&self, partition: u16) {
        self.set(partition, Arrival::There);
        self.missing.fetch_sub(1, Ordering::AcqRel);
        self.tell();
    }

    /// A partition never will be there.
    pub fn lost(&self, partition: u16, why: Error) {
        self.set(partition, Arrival::Lost(why));
        self.tell();
    }

    /// The database ends: nobody waits any more.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.tell();
    }

    fn set(&self, partition: u16, arrival: Arrival) {
        let mut inner = self.inner.lock();
        inner.wanted.retain(|wanted| *wanted != partition);
        if let Some(state) = inner.states.get_mut(usize::from(partition)) {
            *state = arrival;
        }
    }

    fn tell(&self) {
        // Who looks and then waits has the lock in between.
        drop(self.inner.lock());
        self.changed.notify();
        self.signal.notify_all();
    }

    /// The first that is waited for, and that `is_free` says is nobody's yet.
    pub fn first_wanted(&self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        let inner = self.inner.lock();
        inner.wanted.iter().copied().find(|wanted| is_free(*wanted))
    }

    /// Has these come before others. Of all none is first.
    pub fn want(&self, scope: &Scope) {
        let mut inner = self.inner.lock();
        let partitions = match scope {
            Scope::One(partition) => std::slice::from_ref(partition),
            Scope::Many(partitions) => &partitions[..],
            Scope::All => return,
        };
        for partition in partitions {
            let state = inner.states.get(usize::from(*partition));
            let is_coming = matches!(state, Some(Arrival::Coming));
            if is_coming && !inner.wanted.contains(partition) {
                inner.wanted.push_back(*partition);
            }
        }
    }

    /// Whether all of these are there; an error if one never will be.
    pub fn have(&self, scope: &Scope) -> Result<bool> {
        let inner = self.inner.lock();
        if inner.closed {
            return Err(Error::ShuttingDown);
        }
        let is_there = |state: Option<&Arrival>| match state {
            Some(Arrival::Lost(why)) => Err(why.clone()),
            Some(Arrival::Coming) => Ok(false),
            Some(Arrival::There) | None => Ok(true),
        };
        let of = |partition: &u16| is_there(inner.states.get(usize::from(*partition)));
        let mut all = true;
        match scope {
            Scope::One(partition) => all = of(partition)?,
            Scope::Many(partitions) => {
                for partition in partitions {
                    all &= of(partition)?;
                }
            }
            Scope::All => {
                for state in &inner.states {
                    all &= is_there(Some(state))?;
                }
            }
        }
        Ok(all)
    }

    /// Waits with nothing else to do. An error if one of them never will be there.
    pub fn wait(&self, scope: &Scope) -> Result<()> {
        self.want(scope);
        while !self.have(scope)? {
            let mut inner = self.inner.lock();
            let coming = inner.states.iter();
            if coming.into_iter().any(|s| matches!(s, Arrival::Coming)) && !inner.closed {
                let a_while = std::time::Duration::from_millis(20);
                self.signal.wait_for(&mut inner, a_while);
            }
        }
        Ok(())
    }

    /// Waits for a partition whose lock was asked for before it is there. Statements wait for
    /// theirs before; this is for whoever forgot it.
    pub fn wait_for(&self, partition: u16) {
        let by_hand = self.are_brought_by_hand();
        assert!(
            !by_hand,
            "partition {partition} is not there, and nobody waited for it"
        );
        if let Err(error) = self.wait(&Scope::One(partition))
            && !matches!(error, Error::ShuttingDown)
        {
            panic!("partition {partition} is locked, which cannot be read: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coming(partitions: usize) -> Arrivals {
        let arrivals = Arrivals::default();
        arrivals.expect(partitions, true);
        arrivals
    }

    #[test]
    fn what_is_waited_for_comes_first_in_the_order_of_asking() {
        let arrivals = coming(8);
        let any = |_| true;
        assert_eq!(arrivals.first_wanted(any), None);
        arrivals.want(&Scope::All);
        assert_eq!(arrivals.first_wanted(any), None, "of all none is first");
        arrivals.want(&Scope::One(5));
        arrivals.want(&Scope::Many(vec![2, 5, 7]));
        assert_eq!(arrivals.first_wanted(any), Some(5));
        assert_eq!(arrivals.first_wanted(|p| p != 5), Some(2), "5 is under way");
        arrivals.arrived(5);
        assert_eq!(arrivals.first_wanted(any), Some(2));
        arrivals.want(&Scope::One(5));
        assert_eq!(arrivals.first_wanted(|p| p != 2), Some(7), "5 is there");
    }

    #[test]
    fn who_needs_a_lost_partition_is_told_why_and_others_are_not() {
        let arrivals = coming(3);
        arrivals.arrived(0);
        arrivals.lost(1, Error::Corrupt("checkpoint-1".into()));
        assert!(arrivals.have(&Scope::One(0)).expect("it is there"));
        assert!(!arrivals.have(&Scope::One(2)).expect("it comes"));
        for scope in [Scope::One(1), Scope::Many(vec![0, 1]), Scope::All] {
            let error = arrivals.have(&scope).expect_err("it is lost");
            assert_eq!(error.sqlstate(), "XX001", "{scope:?}");
        }
        arrivals.arrived(2);
        assert!(!arrivals.are_complete(), "one never comes");
        arrivals.close();
        let error = arrivals.have(&Scope::One(2)).expect_err("the end");
        assert_eq!(error.sqlstate(), "57P01");
    }

    #[test]
    fn a_thread_is_a_loader_as_long_as_it_says_so() {
        assert!(!Loader::is_here());
        let loader = Loader::enter();
        drop(Loader::enter());
        assert!(Loader::is_here());
        drop(loader);
        assert!(!Loader::is_here());
    }
}
