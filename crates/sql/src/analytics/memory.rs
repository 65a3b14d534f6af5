//! The memory of analytical statements: one pool for all of them, a fixed
//! share of `memory_limit`, so that sorts and hash tables of any number of
//! statements together never take what the rows need. What is taken is charged
//! to the engine's limit, which evicts to make room. Operators that can go on
//! with files (sorts, aggregations, nested loops: `spilling.rs`) are sent there when most of
//! the share is used and they have more than their part. Others fail with
//! 53200 and say what to change.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

use thermocline_engine::Database;

use crate::error::SqlError;

/// The pool's share of the memory limit: one part of this many.
const SHARE_DIVISOR: u64 = 4;

/// The analytical share of a limit, in bytes.
fn share_of(memory_limit: u64) -> usize {
    usize::try_from(memory_limit / SHARE_DIVISOR).unwrap_or(usize::MAX)
}

/// The pool that DataFusion's operators draw on.
pub(crate) struct AnalyticalMemory {
    /// The engine whose limit is charged; none in tests of the pool alone.
    engine: Option<Arc<Database>>,
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    /// Of those in use, bytes that the engine did not grant: operators may
    /// grow a little without asking.
    ungranted_bytes: AtomicUsize,
    /// Operators that can go on with files.
    spillers: AtomicUsize,
}

impl fmt::Debug for AnalyticalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl AnalyticalMemory {
    /// A pool of the analytical share of `memory_limit` bytes.
    pub(crate) fn new(memory_limit: u64, engine: Option<Arc<Database>>) -> Self {
        Self {
            engine,
            limit_bytes: share_of(memory_limit),
            used_bytes: AtomicUsize::new(0),
            ungranted_bytes: AtomicUsize::new(0),
            spillers: AtomicUsize::new(0),
        }
    }

    fn grant(&self, bytes: usize) -> bool {
        self.engine
            .as_ref()
            .is_none_or(|engine| engine.try_reserve_memory(bytes as u64))
    }

    fn give_back(&self, bytes: usize) {
        let mut ungranted = 0;
        let _ = self
            .ungranted_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                ungranted = held.min(bytes);
                Some(held - ungranted)
            });
        if let Some(engine) = &self.engine
            && bytes > ungranted
        {
            engine.release_memory((bytes - ungranted) as u64);
        }
    }

    /// The bytes that may be used: they follow the engine's limit.
    pub(crate) fn limit_bytes(&self) -> usize {
        match &self.engine {
            Some(engine) => share_of(engine.memory_limit()),
            None => self.limit_bytes,
        }
    }

    /// Whether an operator that has `held` bytes may have more, so that `used` are in use: if
    /// it can go on with files, not for ever what others need.
    fn may_grow(&self, consumer: &MemoryConsumer, held: usize, used: usize) -> bool {
        let limit = self.limit_bytes();
        let fair = limit / self.spillers.load(Ordering::Relaxed).max(1);
        let roomy = limit - limit / 4;
        used <= limit && (!consumer.can_spill() || held <= fair || used <= roomy)
    }

    /// The bytes in use.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

impl fmt::Display for AnalyticalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "analytical memory, {} of {} bytes",
            self.used_bytes(),
            self.limit_bytes()
        )
    }
}

impl MemoryPool for AnalyticalMemory {
    fn name(&self) -> &str {
        "analytical"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.spillers.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.spillers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.used_bytes.fetch_add(additional, Ordering::Relaxed);
        if !self.grant(additional) {
            self.ungranted_bytes
                .fetch_add(additional, Ordering::Relaxed);
        }
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.used_bytes.fetch_sub(shrink, Ordering::Relaxed);
        self.give_back(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        let held = reservation.size() + additional;
        let grown = self
            .used_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(additional)
                    .filter(|used| self.may_grow(consumer, held, *used))
            });
        match grown {
            Ok(_) if self.grant(additional) => Ok(()),
            Ok(_) => {
                self.used_bytes.fetch_sub(additional, Ordering::Relaxed);
                Err(DataFusionError::ResourcesExhausted(format!(
                    "{} asks for {additional} bytes; memory_limit leaves no room for them",
                    consumer.name()
                )))
            }
            Err(used) => Err(DataFusionError::ResourcesExhausted(format!(
                "{} asks for {additional} bytes; {used} of {} are in use",
                consumer.name(),
                self.limit_bytes()
            ))),
        }
    }

    fn reserved(&self) -> usize {
        self.used_bytes()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit_bytes())
    }
}

/// 53200, with advice.
#[cold]
pub(crate) fn exhausted(detail: impl Into<String>) -> SqlError {
    SqlError::new("53200", "out of memory for analytical statements")
        .with_detail(detail)
        .with_hint(
            "Raise memory_limit (a quarter of it serves analytical statements), or have the \
             statement sort, group or join fewer rows.",
        )
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::MemoryConsumer;

    use super::*;

    #[test]
    fn the_pool_refuses_what_exceeds_its_share_and_takes_back_what_is_freed() {
        let memory = Arc::new(AnalyticalMemory::new(4000, None));
        let pool: Arc<dyn MemoryPool> = Arc::clone(&memory) as _;
        let reservation = MemoryConsumer::new("sort").register(&pool);
        reservation.try_grow(900).unwrap();
        let error = reservation.try_grow(200).unwrap_err();
        assert!(matches!(error, DataFusionError::ResourcesExhausted(_)));
        assert_eq!(memory.used_bytes(), 900);
        reservation.shrink(500);
        reservation.try_grow(600).unwrap();
        drop(reservation);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn who_can_go_on_with_files_leaves_the_last_quarter_to_who_has_less() {
        let memory = Arc::new(AnalyticalMemory::new(4000, None));
        let pool: Arc<dyn MemoryPool> = Arc::clone(&memory) as _;
        let spiller = |name| MemoryConsumer::new(name).with_can_spill(true);
        let (large, small) = (
            spiller("large").register(&pool),
            spiller("small").register(&pool),
        );
        large.try_grow(750).unwrap();
        assert!(large.try_grow(10).is_err(), "more than its half");
        small.try_grow(200).unwrap();
        let join = MemoryConsumer::new("join").register(&pool);
        join.try_grow(50).unwrap();
        assert!(join.try_grow(1).is_err());
        large.shrink(400);
        drop(small);
        large.try_grow(500).unwrap();
        drop((large, join));
        assert_eq!(memory.used_bytes(), 0);
    }
}
