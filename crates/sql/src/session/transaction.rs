//! Transaction control: BEGIN to COMMIT, implicit transactions of several
//! statements, savepoints, the failed state. The engine's transaction begins
//! with the first statement that needs it, so that `SET TRANSACTION` can still
//! choose its level and its snapshot is not older than that statement. An
//! error ends the engine's transaction at once unless a savepoint may bring it
//! back: locks are not held for a client that has yet to say ROLLBACK.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thermocline_engine::{Catalog, Database, Isolation, RunOptions, Savepoint, Transaction};

use super::context::{SessionContext, now_us};
use super::references::ToRead;
use crate::error::{Result, SqlError};
use crate::parse::statement::{IsolationLevel, Modes, OnCommit};
use crate::settings::SavedSettings;

/// Whether statements belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    /// Each is its own transaction.
    None,
    /// Those of one message or pipeline; ends with it.
    Implicit,
    /// Those from BEGIN to COMMIT.
    Explicit,
}

struct SavepointState {
    name: String,
    point: Savepoint,
    settings: SavedSettings,
    read_only: bool,
    /// What was asked for before it.
    asked: usize,
    /// How many tables a commit was to read before it.
    to_read: usize,
}

/// What a statement that begins shares its transaction with, where no BEGIN says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Company {
    /// Nothing: the one statement of a Query message.
    Alone,
    /// The other statements of its Query message.
    Text,
    /// What is executed up to the Sync, which comes next if `sync_follows`. That is known of what
    /// has arrived only, so no answer may depend on it.
    Pipeline { sync_follows: bool },
}

/// The transaction of a session.
pub(super) struct TransactionState {
    block: Block,
    company: Company,
    /// Something was executed since the last Sync, and its transaction goes on.
    goes_on: bool,
    /// The statement that runs is a transaction by itself.
    by_itself: bool,
    failed: bool,
    transaction: Option<Transaction>,
    /// Its number, for others to see; 0 where there is none.
    number: Arc<AtomicU64>,
    /// A statement has run: the level is settled.
    settled: bool,
    isolation: IsolationLevel,
    read_only: bool,
    deferrable: bool,
    /// The session has something temporary: that may be changed in a transaction that only
    /// reads, and the session refuses all else.
    has_temporary: bool,
    began_us: i64,
    saved: Option<SavedSettings>,
    savepoints: Vec<SavepointState>,
    /// The temporary tables that a commit does something with. Those that are gone, or never
    /// came, are passed over.
    pub(super) on_commit: Vec<(u32, OnCommit)>,
    /// Tables that a commit reads for rows that refer to keys which went.
    pub(super) to_read: Vec<ToRead>,
}

impl TransactionState {
    pub(super) fn new(number: Arc<AtomicU64>) -> Self {
        Self {
            block: Block::None,
            company: Company::Alone,
            goes_on: false,
            by_itself: false,
            failed: false,
            transaction: None,
            number,
            settled: false,
            isolation: IsolationLevel::Serializable,
            read_only: false,
            deferrable: false,
            has_temporary: false,
            began_us: 0,
            saved: None,
            savepoints: Vec::new(),
            on_commit: Vec::new(),
            to_read: Vec::new(),
        }
    }

    pub(super) fn block(&self) -> Block {
        self.block
    }

    /// A statement begins. Whether it needs a transaction that may outlast it.
    pub(super) fn admit(&mut self, company: Company) -> bool {
        self.company = company;
        self.by_itself = false;
        let alone = match company {
            Company::Alone => true,
            Company::Text => false,
            Company::Pipeline { sync_follows } => sync_follows,
        };
        // What is to be done at commits has a transaction to be done in.
        !alone || !self.on_commit.is_empty()
    }

    /// Whether it is said that the statement that runs belongs to others: by BEGIN, or as they came
    /// in one text. What is executed up to a Sync is together, but no block.
    pub(super) fn is_in_block(&self) -> bool {
        match self.block {
            Block::None => false,
            Block::Implicit => !matches!(self.company, Company::Pipeline { .. }),
            Block::Explicit => true,
        }
    }

    /// The statement that runs has to be a transaction by itself. Why it can't be, if it can't.
    pub(super) fn set_by_itself(&mut self) -> Option<&'static str> {
        match self.is_in_block() {
            true => Some("cannot run inside a transaction block"),
            false if self.goes_on => Some("cannot be executed within a pipeline"),
            false => {
                self.by_itself = true;
                None
            }
        }
    }

    /// A statement of a pipeline was executed, and `ended` its transaction or not.
    pub(super) fn executed(&mut self, ended: bool) {
        self.goes_on = !ended && !self.by_itself;
    }

    /// A Sync has come: what was executed before it is over.
    pub(super) fn synced(&mut self) {
        self.goes_on = false;
    }

    /// How many savepoints there are.
    pub(super) fn savepoints(&self) -> usize {
        self.savepoints.len()
    }

    /// Whether there is a savepoint to go back to.
    pub(super) fn has_savepoints(&self) -> bool {
        !self.savepoints.is_empty()
    }

    pub(super) fn is_failed(&self) -> bool {
        self.failed
    }

    /// `I`, `T` or `E`, as ReadyForQuery says it.
    pub(super) fn status(&self) -> u8 {
        match (self.block, self.failed) {
            (Block::Explicit, true) => b'E',
            (Block::Explicit, false) => b'T',
            (Block::None | Block::Implicit, _) => b'I',
        }
    }

    pub(super) fn began_us(&self) -> i64 {
        self.began_us
    }

    pub(super) fn is_read_only(&self, context: &SessionContext) -> bool {
        match self.block {
            Block::None => context.settings(|settings| settings.default_read_only()),
            Block::Implicit | Block::Explicit => self.read_only,
        }
    }

    pub(super) fn is_deferrable(&self, context: &SessionContext) -> bool {
        match self.block {
            Block::None => context.settings(|settings| settings.default_deferrable()),
            Block::Implicit | Block::Explicit => self.deferrable,
        }
    }

    pub(super) fn isolation(&self, context: &SessionContext) -> IsolationLevel {
        match self.block {
            Block::None => context.settings(|settings| settings.default_isolation()),
            Block::Implicit | Block::Explicit => self.isolation,
        }
    }

    /// Whether each statement has a snapshot of its own.
    pub(super) fn sees_commits_between(&self, context: &SessionContext) -> bool {
        matches!(
            self.isolation(context),
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted
        )
    }

    /// A transaction of several statements begins; an implicit one becomes a
    /// real one.
    pub(super) fn begin(&mut self, block: Block, context: &SessionContext) {
        if self.block == Block::None {
            let (isolation, read_only, deferrable, saved) = context.settings(|settings| {
                (
                    settings.default_isolation(),
                    settings.default_read_only(),
                    settings.default_deferrable(),
                    settings.save(),
                )
            });
            self.isolation = isolation;
            self.read_only = read_only;
            self.deferrable = deferrable;
            self.saved = Some(saved);
            self.has_temporary = context.has_temporary();
            self.settled = false;
            self.to_read.clear();
            self.began_us = now_us();
        }
        self.block = block;
    }

    /// SET TRANSACTION, and the modes of BEGIN.
    pub(super) fn set_modes(&mut self, modes: Modes) -> Result<()> {
        if let Some(isolation) = modes.isolation {
            if self.settled && isolation != self.isolation {
                return Err(SqlError::new(
                    "25001",
                    "SET TRANSACTION ISOLATION LEVEL must be called before any query",
                ));
            }
            if !self.savepoints.is_empty() && isolation != self.isolation {
                return Err(SqlError::new(
                    "25001",
                    "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
                ));
            }
            self.isolation = isolation;
        }
        if let Some(read_only) = modes.read_only {
            if self.settled && self.read_only && !read_only {
                return Err(SqlError::new(
                    "25001",
                    "transaction read-write mode must be set before any query",
                ));
            }
            self.read_only = read_only;
        }
        if let Some(deferrable) = modes.deferrable.filter(|wanted| *wanted != self.deferrable) {
            let refused = match (self.savepoints.is_empty(), self.settled) {
                (false, _) => Some("cannot be called within a subtransaction"),
                (true, true) => Some("must be called before any query"),
                (true, false) => None,
            };
            if let Some(why) = refused {
                let message = format!("SET TRANSACTION [NOT] DEFERRABLE {why}");
                return Err(SqlError::new("25001", message));
            }
            self.deferrable = deferrable;
        }
        // What a savepoint may take back is the session's to see to.
        if !self.savepoints.is_empty() {
            return Ok(());
        }
        if let (Some(transaction), false) = (&mut self.transaction, self.settled) {
            let read_only = self.read_only && !self.has_temporary;
            transaction.set_isolation(engine_isolation(self.isolation), read_only);
        }
        Ok(())
    }

    /// A query was answered. Under REPEATABLE READ all that follow see what was committed by then,
    /// even if it read no table.
    pub(super) fn has_read(&mut self, db: &Arc<Database>) -> Result<()> {
        if self.isolation == IsolationLevel::RepeatableRead
            && let Some(transaction) = self.of_block(db)
        {
            transaction.see_from_now()?;
        }
        Ok(())
    }

    /// The engine's transaction of this block, begun if it is not; `None`
    /// when the statement is a transaction of its own.
    pub(super) fn of_block(&mut self, db: &Arc<Database>) -> Option<&mut Transaction> {
        if self.block == Block::None {
            return None;
        }
        self.settled = true;
        Some(self.opened(db))
    }

    fn opened(&mut self, db: &Arc<Database>) -> &mut Transaction {
        let isolation = engine_isolation(self.isolation);
        let read_only = self.read_only && !self.has_temporary;
        let number = &self.number;
        self.transaction.get_or_insert_with(|| {
            let transaction = db.begin(isolation, read_only);
            number.store(transaction.id(), Ordering::Relaxed);
            transaction
        })
    }

    /// Whether keys have gone that foreign keys may refer to, or rows refer to others that have
    /// not been found.
    pub(super) fn is_unsettled(&mut self) -> bool {
        let transaction = self.transaction.as_mut();
        transaction.is_some_and(Transaction::has_unseen)
    }

    /// The engine's transaction has ended.
    fn ended(&self) {
        self.number.store(0, Ordering::Relaxed);
    }

    /// The catalog as this session's transaction sees it.
    pub(super) fn catalog(&self, db: &Arc<Database>) -> Arc<Catalog> {
        match &self.transaction {
            Some(transaction) => transaction.catalog(),
            None => db.catalog(),
        }
    }

    /// Ends the block with its changes; false when it had failed and was
    /// rolled back instead.
    pub(super) async fn commit(
        &mut self,
        db: &Arc<Database>,
        options: &RunOptions,
        context: &SessionContext,
    ) -> Result<bool> {
        if self.failed {
            self.rollback(db, context).await;
            return Ok(false);
        }
        self.block = Block::None;
        self.goes_on = false;
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            let committed = self.commit_with_tables(transaction, db, options).await;
            self.ended();
            if let Err(error) = committed {
                context.forget_asked(0);
                context.end_advisory();
                self.restore_settings(context);
                return Err(error);
            }
        }
        self.saved = None;
        context.settings(crate::settings::Settings::end_transaction);
        context.end_advisory();
        context.do_asked();
        Ok(true)
    }

    /// Ends the block without its changes.
    pub(super) async fn rollback(&mut self, db: &Arc<Database>, context: &SessionContext) {
        self.block = Block::None;
        self.goes_on = false;
        self.failed = false;
        context.end_advisory();
        context.forget_asked(0);
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            db.rollback(transaction).await;
            self.ended();
        }
        self.restore_settings(context);
    }

    fn restore_settings(&mut self, context: &SessionContext) {
        if let Some(saved) = self.saved.take() {
            context.settings(|settings| settings.restore(&saved));
        }
    }

    /// A statement failed: nothing of the block will be kept.
    pub(super) fn fail(&mut self) {
        self.failed = self.block != Block::None;
    }

    /// Gives up what a failed transaction holds, if no savepoint can bring it
    /// back. An implicit one is over; an explicit one waits for its ROLLBACK.
    pub(super) async fn end_failed(&mut self, db: &Arc<Database>, context: &SessionContext) {
        if !self.failed {
            return;
        }
        if self.block == Block::Implicit {
            self.rollback(db, context).await;
        } else if self.savepoints.is_empty()
            && let Some(transaction) = self.transaction.take()
        {
            db.rollback(transaction).await;
            self.ended();
        }
    }

    pub(super) fn savepoint(
        &mut self,
        name: &str,
        db: &Arc<Database>,
        context: &SessionContext,
    ) -> Result<()> {
        self.require_block("SAVEPOINT")?;
        self.begin_inner(name, db, context)
    }

    /// A savepoint of a block of PL/pgSQL, which stands in any transaction of several statements.
    pub(super) fn begin_inner(
        &mut self,
        name: &str,
        db: &Arc<Database>,
        context: &SessionContext,
    ) -> Result<()> {
        let transaction = self.opened(db);
        let point = transaction.savepoint(size_of::<SavepointState>() + name.len())?;
        self.savepoints.push(SavepointState {
            name: name.to_owned(),
            point,
            settings: context.settings(|settings| settings.save()),
            read_only: self.read_only,
            asked: context.asked(),
            to_read: self.to_read.len(),
        });
        Ok(())
    }

    pub(super) fn release(&mut self, name: &str) -> Result<()> {
        self.require_block("RELEASE SAVEPOINT")?;
        self.release_inner(name)
    }

    pub(super) fn release_inner(&mut self, name: &str) -> Result<()> {
        let at = self.find_savepoint(name)?;
        // As in PostgreSQL it is a mode of the savepoint.
        self.read_only = self.savepoints[at].read_only;
        self.savepoints.truncate(at);
        if let (true, Some(transaction)) = (self.savepoints.is_empty(), &mut self.transaction) {
            transaction.forget_savepoints();
        }
        Ok(())
    }

    pub(super) async fn rollback_to(&mut self, name: &str, context: &SessionContext) -> Result<()> {
        self.require_block("ROLLBACK TO SAVEPOINT")?;
        self.rollback_inner(name, context).await
    }

    pub(super) async fn rollback_inner(
        &mut self,
        name: &str,
        context: &SessionContext,
    ) -> Result<()> {
        let at = self.find_savepoint(name)?;
        let Some(transaction) = &mut self.transaction else {
            return Err(SqlError::internal("a savepoint without a transaction"));
        };
        let state = &self.savepoints[at];
        transaction.rollback_to(&state.point).await?;
        context.settings(|settings| settings.restore(&state.settings));
        context.forget_asked(state.asked);
        self.to_read.truncate(state.to_read);
        self.read_only = state.read_only;
        self.savepoints.truncate(at + 1);
        self.failed = false;
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.savepoints
            .iter()
            .rposition(|savepoint| savepoint.name == name)
            .ok_or_else(|| SqlError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    fn require_block(&self, command: &str) -> Result<()> {
        if self.block == Block::Explicit {
            return Ok(());
        }
        Err(SqlError::new(
            "25P01",
            format!("{command} can only be used in transaction blocks"),
        ))
    }
}

const fn engine_isolation(level: IsolationLevel) -> Isolation {
    match level {
        IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
        IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        IsolationLevel::Serializable => Isolation::Serializable,
    }
}
