//! What is left of a result while its client does not read it: rows that are kept, and the
//! analytical stream that the others come from. A stream has a turn, memory, and a snapshot;
//! there are not many turns. A client may be at rest for a while: a cursor between two
//! FETCHes, a SELECT whose client takes nothing in. Its result gives way when somebody waits
//! for a turn: who waits moves the rest of it into a temporary file, batch by batch, the
//! longest at rest first. Its owner notices nothing: it may come back between two batches and
//! goes on with the file, then with the stream.

use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use thermocline_engine::{Account, Charge, ChargeKind, Database, Event, RunOptions};

use super::Session;
use super::analytical::AnalyticalRows;
use super::kept::KeptRows;
use crate::error::{Result, SqlError};
use crate::output::{OutputColumn, RowWriter};

/// How long a result has been at rest before others may take its turn.
const REST_MIN: Duration = Duration::from_millis(100);
/// What a turn leaves of what a session may hold: one part in so many.
const LEFT_DIVISOR: u64 = 16;
/// How long a statement waits for its turn.
const TURN_WAIT_MAX: Duration = Duration::from_secs(60);
/// Rows that are moved at a time, unless they are long.
const MOVED_ROWS: usize = 1024;
/// What is set aside of a stream's charge for the rows that are kept of it, in bytes.
const KEPT_BYTES: u64 = 512 << 10;

/// A result as its owner holds it. Dropping it ends the statement.
pub(super) struct Unread(Arc<Shared>);

struct Shared {
    /// Empty while somebody has it.
    rest: Mutex<Option<Box<Rest>>>,
    returned: Event,
    /// It has a stream with a turn.
    live: AtomicBool,
    /// When its owner put it back, in milliseconds of the database's clock.
    rested_at: AtomicU64,
    account: Account,
}

/// The rows that were not read yet.
pub(super) struct Rest {
    columns: Arc<[OutputColumn]>,
    kept: KeptRows,
    stream: Option<AnalyticalRows>,
    /// Why there are no more rows than those that are kept.
    failed: Option<SqlError>,
}

impl Rest {
    /// Rows that are there.
    pub(super) fn kept(kept: KeptRows, columns: Arc<[OutputColumn]>) -> Self {
        Self {
            columns,
            kept,
            stream: None,
            failed: None,
        }
    }

    /// Rows that come from a stream.
    pub(super) fn stream(stream: AnalyticalRows, account: &Account) -> Self {
        Self {
            columns: stream.shared_columns(),
            kept: KeptRows::charged(account.nothing(ChargeKind::Portal)),
            stream: Some(stream),
            failed: None,
        }
    }

    /// Writes up to `rows_max` further rows, fewer where they are long; 0 when there are no
    /// more.
    pub(super) async fn next(&mut self, rows: &mut RowWriter, rows_max: usize) -> Result<usize> {
        let taken = self.kept.take(&self.columns, rows, rows_max)?;
        if taken > 0 {
            return Ok(taken);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(stream) = &mut self.stream else {
            return Ok(0);
        };
        let taken = stream.next(rows, rows_max).await?;
        if taken == 0 {
            self.stream = None;
        }
        Ok(taken)
    }

    /// Moves some rows from the stream to those that are kept; false when there is no stream.
    async fn keep_some(&mut self, db: &Database) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        if let Some(charge) = stream.set_aside(KEPT_BYTES) {
            self.kept = KeptRows::charged(charge);
        }
        let mut rows = RowWriter::kept();
        let moved = match stream.next(&mut rows, MOVED_ROWS).await {
            Ok(0) => {
                self.stream = None;
                self.kept.seal()
            }
            Ok(_) => self.kept.append(rows, db.spill()),
            Err(error) => Err(error),
        };
        if let Err(error) = moved {
            self.stream = None;
            self.failed = Some(error);
        }
        self.stream.is_some()
    }

    /// Moves all rows from the stream to those that are kept.
    ///
    /// # Errors
    /// The statement's own, those of a temporary file, 57014.
    pub(super) async fn keep_all(&mut self, db: &Database, options: &RunOptions) -> Result<()> {
        while db.interruptible(options, self.keep_some(db)).await? {
            yield_now().await;
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Whether all its rows are few: those of a stream are kept if so, and some if not.
    ///
    /// # Errors
    /// 57014.
    pub(super) async fn is_small(&mut self, db: &Database, options: &RunOptions) -> Result<bool> {
        // The second time it says that there are no more.
        for _ in 0..2 {
            if self.stream.is_some() {
                db.interruptible(options, self.keep_some(db)).await?;
            }
        }
        Ok(self.stream.is_none() && self.failed.is_none() && self.kept.are_few())
    }

    /// The rows that are kept, which are not here any more, and their columns.
    pub(super) fn take_kept(&mut self) -> (KeptRows, Arc<[OutputColumn]>) {
        (std::mem::take(&mut self.kept), Arc::clone(&self.columns))
    }

    /// Whether all its rows are in memory, or soon will be, and nothing else is held for them.
    pub(super) fn is_all_there(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| !stream.is_live())
    }
}

/// The rest while somebody takes rows from it; it goes back when this is dropped.
pub(super) struct Held<'a> {
    shared: &'a Shared,
    rest: Option<Box<Rest>>,
    /// The database's time, if it is the owner who has it.
    owner: Option<&'a Database>,
}

impl Deref for Held<'_> {
    type Target = Rest;

    fn deref(&self) -> &Rest {
        self.rest.as_ref().expect("it is there until the drop")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Rest {
        self.rest.as_mut().expect("it is there until the drop")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(rest) = &mut self.rest {
            let live = match &mut rest.stream {
                Some(stream) => {
                    stream.rest();
                    stream.is_live()
                }
                None => false,
            };
            self.shared.live.store(live, Relaxed);
        }
        if let Some(db) = self.owner {
            let now = db.now().as_millis() as u64;
            self.shared.rested_at.store(now, Relaxed);
        }
        *self.shared.rest.lock() = self.rest.take();
        self.shared.returned.notify();
    }
}

impl Shared {
    fn take<'a>(&'a self, owner: Option<&'a Database>) -> Option<Held<'a>> {
        let rest = self.rest.lock().take()?;
        Some(Held {
            shared: self,
            rest: Some(rest),
            owner,
        })
    }
}

impl Unread {
    /// Rows to go on with, as long as nobody else moves some of them.
    ///
    /// # Errors
    /// 57014 on cancel and after the statement's deadline.
    pub(super) async fn go_on<'a>(
        &'a self,
        db: &'a Database,
        options: &RunOptions,
    ) -> Result<Held<'a>> {
        loop {
            let returned = self.0.returned.listen();
            if let Some(held) = self.0.take(Some(db)) {
                return Ok(held);
            }
            db.interruptible(options, returned).await?;
        }
    }
}

/// The results with a turn, of all sessions.
#[derive(Default)]
pub(crate) struct UnreadResults {
    live: Mutex<Vec<Weak<Shared>>>,
}

impl UnreadResults {
    /// Takes in a result of a session at this time of the database's clock.
    pub(super) fn enter(&self, rest: Rest, account: &Account, now: Duration) -> Unread {
        let live = !rest.is_all_there();
        let shared = Arc::new(Shared {
            rest: Mutex::new(Some(Box::new(rest))),
            returned: Event::default(),
            live: AtomicBool::new(live),
            rested_at: AtomicU64::new(now.as_millis() as u64),
            account: account.clone(),
        });
        if live {
            let mut known = self.live.lock();
            known.retain(|other| {
                other
                    .upgrade()
                    .is_some_and(|other| other.live.load(Relaxed))
            });
            known.push(Arc::downgrade(&shared));
        }
        Unread(shared)
    }

    /// The result that has been at rest for the longest, of one account or of all.
    fn longest_at_rest(&self, db: &Database, of: Option<&Account>) -> Option<Arc<Shared>> {
        // What is one's own need not be waited for.
        let rest = if of.is_some() {
            Duration::ZERO
        } else {
            REST_MIN
        };
        let ripe = db.now().saturating_sub(rest).as_millis() as u64;
        let known = self.live.lock();
        let resting = known.iter().filter_map(Weak::upgrade).filter(|shared| {
            shared.live.load(Relaxed)
                && shared.rested_at.load(Relaxed) <= ripe
                && of.is_none_or(|account| account.is(&shared.account))
                && shared.rest.lock().is_some()
        });
        resting.min_by_key(|shared| shared.rested_at.load(Relaxed))
    }

    /// Has the result that has been at rest for the longest moved to the device, unless its
    /// owner comes back to it; false when there is none.
    async fn give_way(&self, db: &Database, of: Option<&Account>) -> bool {
        let Some(shared) = self.longest_at_rest(db, of) else {
            return false;
        };
        // The last one is its owner's.
        while Arc::strong_count(&shared) > 1 {
            let Some(mut held) = shared.take(None) else {
                break;
            };
            if !held.keep_some(db).await {
                break;
            }
            drop(held);
            yield_now().await;
        }
        true
    }
}

impl Session {
    /// Waits for a turn of an analytical statement that takes `bytes`. It is before the
    /// statement's snapshot is taken: a snapshot that waits gets old. Where operators are
    /// `crowded`, one result at rest gives its memory up in any case.
    ///
    /// # Errors
    /// 53200 after a minute, and where the session holds too much; 57014.
    pub(super) async fn turn(&self, bytes: u64, crowded: bool) -> Result<Charge> {
        let db = &*self.engine.db;
        let (unread, options) = (&self.engine.unread, self.options());
        let most = db.clients().account_max();
        // With many cores it may be more than a small limit ever gives.
        let bytes = bytes.min(most / 2);
        // What else the session does (a plan, a message) finds some left.
        while self.account.total() + bytes > most - most / LEFT_DIVISOR {
            let own = unread.give_way(db, Some(&self.account));
            if !db.interruptible(&options, own).await? {
                break;
            }
        }
        if crowded {
            let one = unread.give_way(db, None);
            db.interruptible(&options, one).await?;
        }
        let mut charge = self.account.nothing(ChargeKind::Result);
        {
            let mut granted = pin!(db.charge_within(&mut charge, bytes, &options, TURN_WAIT_MAX));
            let mut others = pin!(async {
                loop {
                    if !unread.give_way(db, None).await
                        && db.wait_for(&options, REST_MIN).await.is_err()
                    {
                        return;
                    }
                }
            });
            let mut over = false;
            poll_fn(|context| {
                if let Poll::Ready(granted) = granted.as_mut().poll(context) {
                    return Poll::Ready(granted);
                }
                if !over {
                    over = others.as_mut().poll(context).is_ready();
                    // What gave way may have been enough.
                    return granted.as_mut().poll(context);
                }
                Poll::Pending
            })
            .await?;
        }
        Ok(charge)
    }
}

/// Lets others run.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
