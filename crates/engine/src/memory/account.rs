//! What clients cause: one pool, a share of `memory_limit`, and an account for each
//! session under it. What a session is about to hold is charged
//! first: messages, syntax trees, plans, portals, results, parameters, noted reads,
//! values. What its transactions change has a share of its own ([`crate::parts::changes`]). Who gets nothing waits or is told 53200; nobody
//! else notices.
//!
//! Guarantees: the accounts together never hold more than the share. One account
//! never holds more than half of it. The last quarter of the share is for accounts that
//! hold little, so that small sessions go on whatever large ones do. A [`Charge`]
//! gives back what it holds when it is dropped. What waits is served in order, and
//! no wait is without end: two that hold what the other waits for get an error after
//! [`WAIT_MAX`], not each other's end.
//!
//! Assumes that what is charged is allocated soon and freed before its charge is.
//! What is idle and can be made again leaves before anything is refused: see
//! [`Reclaim`]. Cost: two or three atomics of the session's own; the pool's only for
//! chunks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::ground::error::{Error, Result};
use crate::ground::wait::Event;
use crate::memory::changes_share::ChangesShare;

/// The pool's share of `memory_limit`: one part of this many.
pub const CLIENTS_SHARE_DIVISOR: u64 = 4;
/// The longest wait for room in the pool.
pub const WAIT_MAX: Duration = Duration::from_secs(5);
/// What an account takes from the pool at a time: a quarter of what it holds,
/// between these.
const CHUNK_BYTES_MIN: u64 = 4 << 10;
const CHUNK_BYTES_MAX: u64 = 64 << 10;
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal),* $(,)?) => {
        /// What charged bytes are for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ChargeKind { $($(#[$doc])* $kind),* }

        impl ChargeKind {
            /// All kinds, in the order of the views.
            pub const ALL: &'static [ChargeKind] = &[$(ChargeKind::$kind),*];

            /// What the views call it.
            pub const fn name(self) -> &'static str {
                match self { $(ChargeKind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    /// The connection and its session at rest.
    Session = "session",
    /// Messages being received.
    Message = "message",
    /// Texts and syntax trees.
    Statement = "statement",
    /// Bound statements.
    Plan = "plan",
    /// Cursors and portals.
    Portal = "portal",
    /// Rows that the client has not read yet.
    Result = "result",
    /// Values of parameters.
    Parameters = "parameters",
    /// What transactions hold until they end, savepoints and all ([`crate::parts::changes`]).
    Changes = "changes",
    /// What an open transaction has noted as read.
    Reads = "reads",
    /// What expressions and aggregates build.
    Value = "value",
}

const KINDS: usize = ChargeKind::ALL.len();

/// Something idle that can be made again, such as plans.
pub trait Reclaim: Send + Sync {
    /// Gives `bytes` back, or more, if there are so many; of one account, or of all. How
    /// many it gave. Called by whoever needs them, who may hold a partition: it must be short,
    /// and call the database for nothing else.
    fn reclaim(&self, bytes: u64, of: Option<&Account>) -> u64;
}

/// The pool that all accounts draw on.
pub struct ClientPool {
    share: AtomicU64,
    granted: AtomicU64,
    granted_max: AtomicU64,
    refused: AtomicU64,
    waits: AtomicU64,
    next_ticket: AtomicU64,
    queue: Mutex<VecDeque<u64>>,
    waiting: AtomicUsize,
    pub(crate) freed: Event,
    reclaim: Mutex<Vec<Weak<dyn Reclaim>>>,
    /// A share of its own, and as large.
    pub(crate) changes: ChangesShare,
}

/// The pool at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientPoolReport {
    /// What clients may cause together, in bytes.
    pub share: u64,
    /// What their accounts hold, in bytes.
    pub granted: u64,
    /// The most they held.
    pub granted_max: u64,
    /// Who waits for room now.
    pub waiting: u64,
    /// Charges that had to wait.
    pub waits: u64,
    /// Charges that were refused.
    pub refused: u64,
    /// What transactions hold for their changes, in bytes, beside that: they have a share of
    /// their own, which is as large, and a quarter more for small ones.
    pub changes: u64,
}

impl fmt::Debug for ClientPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report().fmt(f)
    }
}

impl ClientPool {
    pub(crate) fn new(memory_limit: u64) -> Arc<Self> {
        Arc::new(ClientPool {
            share: AtomicU64::new(memory_limit / CLIENTS_SHARE_DIVISOR),
            granted: AtomicU64::new(0),
            granted_max: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            next_ticket: AtomicU64::new(0),
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            freed: Event::default(),
            reclaim: Mutex::default(),
            changes: ChangesShare::default(),
        })
    }

    pub(crate) fn set_memory_limit(&self, bytes: u64) {
        self.share.store(bytes / CLIENTS_SHARE_DIVISOR, Relaxed);
        self.freed.notify();
    }

    /// What the accounts hold, in bytes.
    #[inline]
    pub fn granted(&self) -> u64 {
        self.granted.load(Relaxed)
    }

    /// What clients cause in all, with what their transactions hold.
    #[inline]
    pub(crate) fn caused(&self) -> u64 {
        self.granted() + self.changes.held()
    }

    /// The pool now.
    pub fn report(&self) -> ClientPoolReport {
        ClientPoolReport {
            share: self.share.load(Relaxed),
            granted: self.granted(),
            granted_max: self.granted_max.load(Relaxed),
            waiting: self.waiting.load(Relaxed) as u64,
            waits: self.waits.load(Relaxed),
            refused: self.refused.load(Relaxed),
            changes: self.changes.held(),
        }
    }

    /// An account of a new session; it holds nothing.
    pub fn open(self: &Arc<Self>) -> Account {
        Account(Arc::new(Held {
            pool: self.clone(),
            by_kind: Default::default(),
            total: AtomicU64::new(0),
            slack: AtomicU64::new(0),
        }))
    }

    /// Names something that may be asked to give back what is idle.
    pub fn on_shortage(&self, reclaim: Weak<dyn Reclaim>) {
        self.reclaim.lock().push(reclaim);
    }

    /// Has what is idle given back, `bytes` or more if there is so much, of one account or of
    /// all; how many were.
    pub fn reclaim_idle(&self, bytes: u64, of: Option<&Account>) -> u64 {
        let all: Vec<_> = {
            let mut known = self.reclaim.lock();
            known.retain(|weak| weak.strong_count() > 0);
            known.iter().filter_map(Weak::upgrade).collect()
        };
        let mut given = 0;
        for idle in all {
            if given >= bytes {
                break;
            }
            given += idle.reclaim(bytes - given, of);
        }
        given
    }

    /// The most that one account may hold.
    pub fn account_max(&self) -> u64 {
        self.share.load(Relaxed) / 2
    }

    /// Accounts that hold less are small: the last quarter is theirs.
    fn small(&self) -> u64 {
        (self.share.load(Relaxed) / 128).clamp(64 << 10, 1 << 20)
    }

    /// Takes `bytes` for an account that holds `held` already.
    fn try_take(&self, bytes: u64, held: u64) -> bool {
        let share = self.share.load(Relaxed);
        let most = match held + bytes <= self.small() {
            true => share,
            false if held + bytes > self.account_max() => return false,
            false => share - share / 4,
        };
        let taken = self.granted.fetch_update(Relaxed, Relaxed, |granted| {
            Some(granted + bytes).filter(|sum| *sum <= most)
        });
        if let Ok(before) = taken {
            self.granted_max.fetch_max(before + bytes, Relaxed);
        }
        taken.is_ok()
    }

    fn give(&self, bytes: u64) {
        self.granted.fetch_sub(bytes, Relaxed);
        if self.waiting.load(Relaxed) > 0 {
            self.freed.notify();
        }
    }
}

/// What one session holds. Clones are the same account.
#[derive(Clone)]
pub struct Account(Arc<Held>);

struct Held {
    pool: Arc<ClientPool>,
    by_kind: [AtomicU64; KINDS],
    total: AtomicU64,
    /// Taken from the pool and not charged yet.
    slack: AtomicU64,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.holds()).finish()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Each charge keeps its account: none is left.
        self.pool.give(*self.slack.get_mut());
    }
}

impl Account {
    /// What it holds of the pool, in bytes.
    pub fn total(&self) -> u64 {
        self.0.total.load(Relaxed)
    }

    /// What it holds of a kind, in bytes.
    pub fn held(&self, kind: ChargeKind) -> u64 {
        self.0.by_kind[kind as usize].load(Relaxed)
    }

    /// What it holds by kind, without the kinds of which it holds nothing.
    pub fn holds(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        ChargeKind::ALL
            .iter()
            .map(|kind| (kind.name(), self.held(*kind)))
            .filter(|(_, bytes)| *bytes > 0)
    }

    /// Whether this is the same account.
    pub fn is(&self, other: &Account) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The pool it draws on.
    pub fn pool(&self) -> &Arc<ClientPool> {
        &self.0.pool
    }

    /// A charge of nothing, to grow later.
    pub fn nothing(&self, kind: ChargeKind) -> Charge {
        Charge {
            account: self.clone(),
            kind,
            bytes: 0,
        }
    }

    /// Charges `bytes`; call it before they are allocated.
    ///
    /// # Errors
    /// 53200 where the account or the pool has no room; nothing is charged then.
    pub fn charge(&self, kind: ChargeKind, bytes: u64) -> Result<Charge> {
        let mut charge = self.nothing(kind);
        charge.resize(bytes)?;
        Ok(charge)
    }

    /// Takes `bytes` if there is room, giving up what is idle first.
    pub(crate) fn take_or_reclaim(&self, kind: ChargeKind, bytes: u64) -> bool {
        if self.take(kind, bytes) {
            return true;
        }
        if kind == ChargeKind::Changes {
            return false;
        }
        let pool = &self.0.pool;
        // Of one's own where that is what is lacking.
        let given = match (self.total() + bytes).checked_sub(pool.account_max()) {
            Some(lacking @ 1..) => pool.reclaim_idle(lacking, Some(self)),
            _ => pool.reclaim_idle(bytes.max(CHUNK_BYTES_MAX), None),
        };
        given > 0 && self.take(kind, bytes)
    }

    #[inline]
    fn take(&self, kind: ChargeKind, bytes: u64) -> bool {
        let held = &*self.0;
        if kind == ChargeKind::Changes {
            return self.take_for_changes(bytes);
        }
        let from_slack = held
            .slack
            .fetch_update(Relaxed, Relaxed, |slack| slack.checked_sub(bytes));
        if from_slack.is_err() && !self.take_from_pool(bytes) {
            return false;
        }
        held.by_kind[kind as usize].fetch_add(bytes, Relaxed);
        held.total.fetch_add(bytes, Relaxed);
        true
    }

    /// Of their share, which is not the account's.
    fn take_for_changes(&self, bytes: u64) -> bool {
        let (pool, own) = (&self.0.pool, &self.0.by_kind[ChargeKind::Changes as usize]);
        let most = pool.share.load(Relaxed);
        let taken = pool.changes.try_take(bytes, own.load(Relaxed), most);
        if taken {
            own.fetch_add(bytes, Relaxed);
        }
        taken
    }

    /// Takes what is charged now, and a chunk for what comes next if there is one.
    fn take_from_pool(&self, bytes: u64) -> bool {
        let Held {
            pool, slack, total, ..
        } = &*self.0;
        let own = slack.swap(0, Relaxed);
        let (held, lacking) = (total.load(Relaxed) + own, bytes.saturating_sub(own));
        let chunk = chunk(held);
        let taken = [lacking.max(chunk), lacking]
            .into_iter()
            .find(|bytes| pool.try_take(*bytes, held));
        // Another thread may have given some meanwhile.
        slack.fetch_add(
            own + taken.unwrap_or(0) - taken.map_or(0, |_| bytes),
            Relaxed,
        );
        taken.is_some()
    }

    fn give(&self, kind: ChargeKind, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let Held {
            pool,
            slack,
            total,
            by_kind,
        } = &*self.0;
        by_kind[kind as usize].fetch_sub(bytes, Relaxed);
        if kind == ChargeKind::Changes {
            return pool.changes.give(bytes);
        }
        let kept = chunk(total.fetch_sub(bytes, Relaxed) - bytes);
        let before = slack.fetch_add(bytes, Relaxed) + bytes;
        if before <= 2 * kept && pool.waiting.load(Relaxed) == 0 {
            return;
        }
        let mut given = 0;
        let _ = slack.fetch_update(Relaxed, Relaxed, |slack| {
            given = slack.saturating_sub(kept);
            Some(slack - given)
        });
        pool.give(given);
    }

    /// Why so much cannot be had.
    #[cold]
    pub(crate) fn refusal(&self, kind: ChargeKind, bytes: u64) -> Error {
        use fmt::Write;
        let pool = &self.0.pool;
        pool.refused.fetch_add(1, Relaxed);
        let report = pool.report();
        let mut detail = format!(
            "{bytes} bytes are asked for; this session holds {} of the {} that one may hold",
            self.total(),
            pool.account_max()
        );
        for (at, (name, held)) in self.holds().enumerate() {
            let _ = write!(detail, "{} {name} {held}", if at == 0 { ":" } else { "," });
        }
        let _ = write!(
            detail,
            "; all sessions hold {} of {}.",
            report.granted, report.share
        );
        Error::ShareUsed {
            what: kind.name(),
            detail,
        }
    }
}

fn chunk(held: u64) -> u64 {
    (held / 4).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// Charged bytes, given back when this is dropped.
pub struct Charge {
    account: Account,
    kind: ChargeKind,
    bytes: u64,
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.bytes)
    }
}

impl Charge {
    /// What is charged, in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The account that is charged.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What is charged.
    pub(crate) fn kind(&self) -> ChargeKind {
        self.kind
    }

    /// Holds `bytes` more, which were taken from its account.
    pub(crate) fn has_grown(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Charges `bytes` in all.
    ///
    /// # Errors
    /// 53200 where there is no room for more; what was charged stays so.
    #[inline]
    pub fn resize(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.bytes {
            return self.grow(bytes - self.bytes);
        }
        if bytes < self.bytes {
            self.account.give(self.kind, self.bytes - bytes);
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Charges `bytes` more.
    ///
    /// # Errors
    /// As [`Charge::resize`].
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        if !self.account.take_or_reclaim(self.kind, bytes) {
            return Err(self.account.refusal(self.kind, bytes));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Splits `bytes` off, or all if it is less, to be held by something else.
    pub fn split(&mut self, bytes: u64) -> Charge {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Charge {
            account: self.account.clone(),
            kind: self.kind,
            bytes,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.give(self.kind, self.bytes);
    }
}

/// A place in the pool's queue.
pub(crate) struct Ticket<'a> {
    pool: &'a ClientPool,
    number: u64,
}

impl<'a> Ticket<'a> {
    pub fn enter(pool: &'a ClientPool) -> Self {
        let mut queue = pool.queue.lock();
        let number = pool.next_ticket.fetch_add(1, Relaxed);
        queue.push_back(number);
        pool.waiting.fetch_add(1, Relaxed);
        pool.waits.fetch_add(1, Relaxed);
        Ticket { pool, number }
    }

    pub fn is_first(&self) -> bool {
        self.pool.queue.lock().front() == Some(&self.number)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.pool.queue.lock().retain(|other| *other != self.number);
        self.pool.waiting.fetch_sub(1, Relaxed);
        self.pool.freed.notify();
    }
}

#[cfg(test)]
mod tests;
