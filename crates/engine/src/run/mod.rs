//! Running statements: take the partitions, run the body, commit or undo; if
//! something was evicted or held, wait outside the locks and run it again
//! (004 §3.3).

pub(crate) mod batch;
pub(crate) mod commit;
pub(crate) mod index_keys;
pub(crate) mod interactive;
pub(crate) mod key_scan;
pub(crate) mod locking;
mod row_count;
pub(crate) mod savepoint;
pub(crate) mod scan_notes;
pub(crate) mod sequences;
pub(crate) mod snapshot;
pub(crate) mod validation;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use thermocline_device::Mutation;
use thermocline_storage::block_store::BlockPin;
use thermocline_storage::log::Lsn;

use crate::access::{Access, Guards, Obstacle, RunKind, Scratch};
use crate::catalog::table_lock::{Gate, LockMode};
use crate::ground::alone::if_alone;
use crate::ground::error::{Error, Result, log_failed};
use crate::ground::scope::Scope;
use crate::ground::txn_id::TxnId;
use crate::ground::wait::{WaitsFor, give_way};
use crate::memory::fetched::Fetched;
use crate::parts::Parts;
use crate::parts::changes::{Grant, Need};
use crate::parts::charging::Expected;
use crate::rows::fetch::{PlannedRead, plan};
use crate::run::interactive::Transaction;
use crate::transaction::table_locks::Visit;
use crate::transaction::{Isolation, RunOptions, TxnState};

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// How a run ended.
pub(crate) enum Outcome<R> {
    /// Done; what it wrote, or what an interactive transaction's statement read, is
    /// durable when the log is up to here.
    Done(R, Lsn),
    /// Done, and nothing was changed; what it read is durable when the log is up
    /// to here.
    Seen(R, Lsn),
    /// These tuples are needed first.
    Evicted(Vec<PlannedRead>, BlockPin),
    /// This transaction has to end first.
    Held(TxnId),
    /// This mode of a table's lock has to be taken first.
    Closed(Arc<Gate>, LockMode),
    /// The snapshot is too old for a write.
    Stale,
    /// There has to be room for this first.
    Lacks(Need),
}

/// What a run has from those before it.
pub(crate) struct Given<'a> {
    fetched: &'a Fetched,
    run: RunKind,
    grant: &'a mut Grant,
}

impl<'a> Given<'a> {
    pub fn new(fetched: &'a Fetched, run: RunKind, grant: &'a mut Grant) -> Self {
        Given {
            fetched,
            run,
            grant,
        }
    }
}

/// Who runs a statement.
pub(crate) enum Who<'a> {
    /// Nobody's transaction; what it was let in to when it had to wait.
    Visitor(&'a Visit),
    /// An interactive transaction.
    Transaction(&'a mut TxnState),
}

impl Parts {
    /// Runs an autocommitted statement. `body` may run several times and must
    /// reset its output first. Returns when the commit, and every commit whose
    /// result the statement saw, is durable as the options ask.
    pub async fn one_shot<R>(
        &self,
        options: &RunOptions,
        scope: Scope,
        mut body: impl FnMut(&mut Access<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut fetched = Fetched::new();
        let mut run = RunKind::default();
        let mut visit = Visit::default();
        let (mut grant, mut room) = (Grant::default(), None);
        loop {
            self.admit_with(options, &room).await?;
            self.there(options, &scope).await?;
            let who = Who::Visitor(&visit);
            match self.attempt(
                options,
                &scope,
                who,
                Given::new(&fetched, run, &mut grant),
                &mut body,
            )? {
                Outcome::Done(result, lsn) => {
                    drop((room, fetched));
                    self.make_durable(options, lsn).await?;
                    self.see_out(grant.charged()).await;
                    return Ok(result);
                }
                Outcome::Seen(result, lsn) => {
                    drop(fetched);
                    // There is nothing to be taken back: it need not wait for ever.
                    if self.log().durable_lsn() < lsn {
                        let durable = self.wait_durable(options, lsn);
                        self.interruptible(options, durable).await??;
                    }
                    return Ok(result);
                }
                Outcome::Evicted(reads, pin) => {
                    self.fetch(options, &reads, &mut fetched).await?;
                    drop(pin);
                }
                Outcome::Held(holder) => {
                    // What it has been given others may have meanwhile.
                    (grant, room) = (Grant::default(), None);
                    fetched.release_large(self.memory().fetched_limit());
                    self.visit_holder(&mut visit, options, holder).await?;
                }
                Outcome::Lacks(need) => {
                    drop(room.take());
                    room = Some(self.wait_to_change(options, &mut grant, None, need).await?);
                }
                Outcome::Closed(gate, mode) => {
                    (grant, room) = (Grant::default(), None);
                    fetched.release_large(self.memory().fetched_limit());
                    visit.leave();
                    self.visit(&mut visit, options, &gate, mode).await?;
                }
                Outcome::Stale => return Err(Error::Internal("a one-shot has no snapshot".into())),
            }
            run.attempt += 1;
        }
    }

    /// Runs a body of the engine's own on one partition: nothing is checked,
    /// nothing committed.
    pub(crate) async fn one_shot_unchecked<R>(
        &self,
        partition: u16,
        mut body: impl FnMut(&mut Access<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut fetched = Fetched::new();
        let options = RunOptions::default();
        let nobody = Visit::default();
        let mut run = RunKind {
            read_only: true,
            attempt: 0,
        };
        loop {
            let scope = Scope::One(partition);
            let who = Who::Visitor(&nobody);
            let grant = &mut Grant::default();
            match self.attempt(
                &options,
                &scope,
                who,
                Given::new(&fetched, run, grant),
                &mut body,
            )? {
                Outcome::Done(result, _) | Outcome::Seen(result, _) => return Ok(result),
                Outcome::Evicted(reads, pin) => {
                    self.fetch(&options, &reads, &mut fetched).await?;
                    drop(pin);
                }
                Outcome::Held(_) | Outcome::Closed(..) | Outcome::Stale | Outcome::Lacks(_) => {
                    return Err(Error::Internal("an unchecked run waits for nobody".into()));
                }
            }
            run.attempt += 1;
        }
    }

    /// Runs one statement, or a part of a bulk statement, of an interactive
    /// transaction. An error leaves the transaction as it was before.
    pub async fn in_transaction<R>(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        scope: Scope,
        mut body: impl FnMut(&mut Access<'_>) -> Result<R>,
    ) -> Result<R> {
        let state = txn.state_mut()?;
        if state.isolation != Isolation::ReadCommitted && state.snapshot.is_none() {
            state.snapshot = Some(self.transactions().open_snapshot());
        }
        if state.account.is_none() {
            state.account.clone_from(&options.account);
        }
        let mut fetched = Fetched::new();
        let mut run = RunKind::default();
        let (mut grant, mut room) = (Grant::default(), None);
        loop {
            self.admit_with(options, &room).await?;
            self.there(options, &scope).await?;
            self.tidy_reads(state);
            let who = Who::Transaction(state);
            match self.attempt(
                options,
                &scope,
                who,
                Given::new(&fetched, run, &mut grant),
                &mut body,
            )? {
                Outcome::Done(result, lsn) | Outcome::Seen(result, lsn) => {
                    drop((room, fetched));
                    self.wait_durable(options, lsn).await?;
                    self.see_out(grant.charged()).await;
                    return Ok(result);
                }
                Outcome::Evicted(reads, pin) => {
                    self.fetch(options, &reads, &mut fetched).await?;
                    drop(pin);
                }
                Outcome::Held(holder) => {
                    (grant, room) = (Grant::default(), None);
                    fetched.release_large(self.memory().fetched_limit());
                    self.wait_for_holder(state.id, options, holder).await?;
                }
                Outcome::Closed(gate, mode) => {
                    (grant, room) = (Grant::default(), None);
                    fetched.release_large(self.memory().fetched_limit());
                    self.lock_for(state, options, &gate, mode).await?;
                }
                Outcome::Stale => self.refresh(options, state).await?,
                Outcome::Lacks(need) => {
                    drop(room.take());
                    let waits = self.wait_to_change(options, &mut grant, Some(state), need);
                    room = Some(waits.await?);
                }
            }
            run.attempt += 1;
        }
    }

    /// Looks at what foreign keys make the transaction expect when a statement ends.
    ///
    /// # Errors
    /// 23503.
    pub async fn verify_expected(&self, txn: &mut Transaction, options: &RunOptions) -> Result<()> {
        let catalog = txn.catalog();
        while txn.any_unseen() {
            let body = |access: &mut Access<'_>| access.verify_expected(&catalog);
            self.in_transaction(txn, options, Scope::All, body).await?;
            give_way().await;
        }
        Ok(())
    }

    /// One run of a body under the locks of its partitions.
    pub(crate) fn attempt<R>(
        &self,
        options: &RunOptions,
        scope: &Scope,
        who: Who<'_>,
        given: Given<'_>,
        body: &mut impl FnMut(&mut Access<'_>) -> Result<R>,
    ) -> Result<Outcome<R>> {
        let Given {
            fetched,
            run,
            grant,
        } = given;
        let (txn, visit) = match who {
            Who::Visitor(visit) => (None, Some(visit)),
            Who::Transaction(txn) => (Some(txn), None),
        };
        let interactive = txn.is_some();
        let reads = txn
            .as_ref()
            .map(|txn| (txn.reads.mark(), txn.expected.mark()));
        let scratch = SCRATCH.take().unwrap_or_default();
        let mut access = Access::new(self, self.lock(scope)?, txn, fetched, scratch, run);
        access.visit = visit;
        access.bounded_by(grant, options.account.as_ref());
        let counts = options.reads.as_deref().filter(|_| run.attempt == 0);
        let uses = counts.map_or(0, |_| access.guards.uses());
        let seen = access
            .snapshot
            .map(|at| self.transactions().check_snapshot(at));
        let result = seen.unwrap_or(Ok(())).and_then(|()| access.run(body));
        if let Some(counts) = counts {
            counts.used(access.guards.uses().saturating_sub(uses));
        }
        let outcome = self.conclude(options, interactive, &mut access, result);
        if !matches!(outcome, Ok(Outcome::Done(..) | Outcome::Seen(..)))
            && let (Some(txn), Some((reads, expected))) = (access.txn.as_deref_mut(), reads)
        {
            // What this run did is taken back: what it saw need not stay true.
            txn.expected.forget_since(expected);
            if outcome.is_ok() {
                txn.reads.forget_since(reads);
            }
        }
        SCRATCH.set(Some(access.into_scratch()));
        outcome
    }

    fn conclude<R>(
        &self,
        options: &RunOptions,
        interactive: bool,
        access: &mut Access<'_>,
        result: Result<R>,
    ) -> Result<Outcome<R>> {
        if let Some(obstacle) = access.obstacle.take() {
            access.undo();
            return Ok(match obstacle {
                Obstacle::Held(holder) => Outcome::Held(holder),
                Obstacle::Closed(gate, mode) => Outcome::Closed(gate, mode),
                Obstacle::Stale => Outcome::Stale,
                Obstacle::Memory(need) => Outcome::Lacks(need),
            });
        }
        if access.evicted() {
            let planned = plan(self.blocks(), access.missing().iter().copied());
            return self.fetch_first(access, planned);
        }
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                access.undo();
                return Err(error);
            }
        };
        let changed = access.has_changes();
        if changed
            && let Err(error) = self.check_growth()
            && !access.only_deletes()
        {
            // Not before the run: what only reads goes on.
            access.undo();
            return Err(error);
        }
        let logged = if interactive {
            access.finish_statement().map(|()| None)
        } else if changed {
            let unread = access.unseen().next().is_some();
            let unseen = unread.then(|| self.transactions().begin_unseen());
            if matches!(unseen, Some(None)) && !Mutation::OverwrittenUnseen.is_made() {
                // A snapshot has opened that wants to see what was not read.
                let planned = plan(self.blocks(), access.unseen());
                return self.fetch_first(access, planned);
            }
            access.commit_one_shot(options.synchronous_commit).map(Some)
        } else {
            Ok(None)
        };
        match logged {
            Ok(Some(lsn)) if options.synchronous_commit => Ok(Outcome::Done(result, lsn)),
            Ok(_) => {
                let seen = access.guards.iter_mut().map(|state| state.last_commit);
                let seen = seen.max().unwrap_or_default();
                Ok(if changed || interactive {
                    Outcome::Done(result, seen)
                } else {
                    Outcome::Seen(result, seen)
                })
            }
            Err(error) => {
                access.undo();
                Err(error)
            }
        }
    }

    /// Takes a run back that needs tuples first. They are planned before that and before
    /// the locks go, so that no block goes meanwhile.
    fn fetch_first<R>(
        &self,
        access: &mut Access<'_>,
        planned: Result<(Vec<PlannedRead>, BlockPin)>,
    ) -> Result<Outcome<R>> {
        access.undo();
        let (mut reads, pin) = planned?;
        reads.sort_unstable_by_key(|r| (r.address.block, r.address.slot));
        reads.dedup_by_key(|r| (r.address.block, r.address.slot));
        access.count_restart(&reads);
        self.count().missed(reads.len() as u64);
        Ok(Outcome::Evicted(reads, pin))
    }

    /// Takes the locks of a scope, in order.
    pub(crate) fn lock(&self, scope: &Scope) -> Result<Guards<'_>> {
        match scope {
            Scope::One(partition) => match self.all_partitions().get(*partition as usize) {
                Some(partition) => Ok(Guards::One(partition.lock())),
                None => Err(Error::Internal(format!(
                    "there is no partition {partition}"
                ))),
            },
            Scope::Many(wanted) => {
                let mut wanted = wanted.clone();
                wanted.sort_unstable();
                wanted.dedup();
                let mut guards = Vec::with_capacity(wanted.len());
                for partition in wanted {
                    match self.all_partitions().get(partition as usize) {
                        Some(partition) => guards.push(partition.lock()),
                        None => {
                            return Err(Error::Internal(format!(
                                "there is no partition {partition}"
                            )));
                        }
                    }
                }
                Ok(Guards::Many(guards))
            }
            Scope::All => Ok(Guards::Many(
                self.all_partitions().iter().map(|p| p.lock()).collect(),
            )),
        }
    }

    /// Waits until there is room in memory and in the log's buffer. Before the
    /// locks are taken, so that nobody waits for a device while holding one.
    pub(crate) async fn admit(&self, options: &RunOptions) -> Result<()> {
        self.admit_with(options, &None).await
    }

    /// As [`Parts::admit`]; who has had room made has it.
    async fn admit_with(&self, options: &RunOptions, room: &Option<Expected<'_>>) -> Result<()> {
        self.check_open()?;
        self.pulse().beat();
        options.cancel.check()?;
        if !self.log().has_room() {
            if self.works_alone() {
                self.log().step();
            } else {
                let room = async { self.log().room().await.map_err(log_failed) };
                self.interruptible(options, room).await??;
            }
        }
        if room.is_none() && self.memory().is_full() {
            let _note = options.cancel.note_wait(WaitsFor::Memory);
            self.interruptible(options, self.wait_for_memory())
                .await??;
        }
        Ok(())
    }

    /// Waits while memory is full and something can leave, but not beyond the end of
    /// the database.
    pub(crate) async fn wait_for_memory(&self) -> Result<()> {
        while self.memory().is_full() && !self.works_alone() {
            let freed = self.memory().freed.listen();
            self.check_open()?;
            if !self.memory().is_full() {
                break;
            }
            self.poke_evictor();
            self.count().waited_for_memory();
            freed.await;
        }
        Ok(())
    }

    /// Whether there is nobody else who would end a wait: the caller writes the log
    /// itself, and evicts when it wants to.
    pub(crate) fn works_alone(&self) -> bool {
        !self.settings().background && self.settings().simulator.is_none()
    }

    pub(crate) async fn wait_durable(&self, options: &RunOptions, lsn: Lsn) -> Result<()> {
        if !options.synchronous_commit
            || self.log().durable_lsn() >= lsn
            || Mutation::AcknowledgedEarly.is_made()
        {
            return Ok(());
        }
        if self.works_alone() {
            return self.log().wait_durable_blocking(lsn).map_err(log_failed);
        }
        let _note = options.cancel.note_wait(WaitsFor::Log);
        self.log().wait_durable(lsn).await.map_err(log_failed)
    }

    /// As [`Parts::wait_durable`], of the statement's own commit. No cancel ends this wait, so a
    /// thread that has nothing else to do may write the log itself.
    pub(crate) async fn make_durable(&self, options: &RunOptions, lsn: Lsn) -> Result<()> {
        if options.synchronous_commit && self.settings().background {
            if_alone(|| self.log().flush_here(lsn));
        }
        self.wait_durable(options, lsn).await
    }

    /// Waits until a transaction has ended, or locks were given back: they may be its own. Those
    /// that are given back just before this begins are waited for until it ends.
    pub(crate) async fn wait_for_end(&self, options: &RunOptions, holder: TxnId) -> Result<()> {
        let until = options.lock_timeout.map(|t| self.clock().now() + t);
        if !self.transactions().is_active(holder) {
            return self.check_gone(holder);
        }
        let _note = options.cancel.note_wait(WaitsFor::Transaction);
        let given_back = self.transactions().given_back();
        loop {
            let ended = self.transactions().ended.listen();
            let is_over = !self.transactions().is_active(holder)
                || self.transactions().given_back() != given_back;
            if is_over {
                return Ok(());
            }
            self.or_interrupted(options, until, ended).await?;
        }
    }

    /// A transaction that has ended holds nothing; who met it just before has only to
    /// try again. Better an error than to try for ever.
    fn check_gone(&self, holder: TxnId) -> Result<()> {
        for partition in self.all_partitions() {
            let state = partition.lock_any();
            let locked = state.locks.iter().find(|(_, owner)| **owner == holder);
            let inserted = state.uncommitted_of(holder);
            let row = locked.map(|(row, _)| *row);
            if let Some(row) = row.or_else(|| inserted.first().map(|(row, _)| *row)) {
                return Err(Error::Internal(format!(
                    "transaction {} has ended and still holds row ({},{}) of storage {} ({})",
                    holder.0,
                    state.id,
                    row.1,
                    row.0,
                    if locked.is_some() {
                        "locked"
                    } else {
                        "inserted"
                    },
                )));
            }
        }
        Ok(())
    }

    /// Runs a future that is not the engine's, but not beyond a cancel or the
    /// statement's deadline; it is dropped then.
    pub async fn interruptible<R>(
        &self,
        options: &RunOptions,
        future: impl Future<Output = R>,
    ) -> Result<R> {
        let mut output = None;
        let whole = async { output = Some(future.await) };
        self.or_interrupted(options, None, whole).await?;
        output.ok_or_else(|| Error::Internal("a future ended without its output".into()))
    }

    /// Waits so long, to the next tick of the database's clock.
    ///
    /// # Errors
    /// 57014 on cancel and after the statement's deadline.
    pub async fn wait_for(&self, options: &RunOptions, time: Duration) -> Result<()> {
        let until = self.clock().now() + time;
        let waited = self.or_interrupted(options, Some(until), std::future::pending());
        match waited.await {
            Err(Error::LockTimeout) => Ok(()),
            other => other,
        }
    }

    /// Waits for `event`, but not beyond a cancel, the statement's deadline or
    /// the lock timeout.
    pub(crate) async fn or_interrupted(
        &self,
        options: &RunOptions,
        lock_until: Option<Duration>,
        event: impl Future<Output = ()>,
    ) -> Result<()> {
        let mut event = pin!(event);
        loop {
            // Anew each time: not all that happens there ends this statement.
            let mut cancelled = pin!(options.cancel.event().listen());
            let now = self.clock().now();
            options.cancel.check()?;
            if options.deadline.is_some_and(|d| now >= d) {
                return Err(Error::Timeout);
            }
            if lock_until.is_some_and(|d| now >= d) {
                return Err(Error::LockTimeout);
            }
            let timed = options.deadline.is_some() || lock_until.is_some();
            let mut tick = pin!(self.tick().listen());
            self.pulse().beat();
            let happened = poll_fn(|context| {
                if event.as_mut().poll(context).is_ready() {
                    return Poll::Ready(true);
                }
                if cancelled.as_mut().poll(context).is_ready()
                    || (timed && tick.as_mut().poll(context).is_ready())
                {
                    return Poll::Ready(false);
                }
                Poll::Pending
            })
            .await;
            if happened {
                return Ok(());
            }
        }
    }

    pub(crate) fn append_log(&self, pieces: &[&[u8]]) -> Result<Lsn> {
        let lsn = self.append_growing(pieces).map_err(log_failed)?;
        self.count().logged(lsn);
        Ok(lsn)
    }

    /// A read-only statement of the caller's own thread, for the embedded
    /// library: as `one_shot`, without waiting for anything but the device.
    pub fn one_shot_blocking<R>(
        &self,
        options: &RunOptions,
        scope: Scope,
        body: impl FnMut(&mut Access<'_>) -> Result<R>,
    ) -> Result<R> {
        thermocline_device::block_on(self.one_shot(options, scope, body))
    }
}
