//! Running one statement: its transaction, its plan, its rows to the client,
//! its command tag.

use crate::plan::Reason;
use std::pin::Pin;
use std::sync::Arc;

use thermocline_engine::{Catalog, ChargeKind, Error, RunOptions, ScanNotes};
use thermocline_values::value::Value;

use super::analytical::{Admitted, AnalyticalQuery, AnalyticalRows};
use super::context::now_us;
use super::kept::KeptRows;
use super::lookup::{Lookup, Place};
use super::plpgsql::Scope;
use super::prepared::{Planned, Prepared};
use super::sending::send_rows;
use super::transaction::{Block, Company};
use super::triggers::{Does, Mark};
use super::unread::Rest;
use super::{Client, Session};
use crate::bind::Command;
use crate::error::{Result, SqlError};
use crate::exec::{self, ExecContext};
use crate::messages;
use crate::output::{Formats, OutputColumn, RowWriter};
use crate::parse::statement::Ddl;
use crate::parse::{Query, Statement};
use crate::plan::{Plan, ShortPlan};
use crate::stack;
use crate::styles::Styles;
use crate::typed::TypedQuery;

/// A future of a rare way, apart on the heap: a statement's own moves and holds as much as the
/// largest of its ways, and its type is that of all of them.
pub(super) fn boxed<'f, T>(
    future: impl Future<Output = T> + Send + 'f,
) -> Pin<Box<dyn Future<Output = T> + Send + 'f>> {
    Box::pin(future)
}

/// How often a statement is bound anew because of DDL beside it.
const STALE_PLANS_MAX: u32 = 5;
/// The SQLSTATE of what needs more memory than it may have.
pub(super) const OUT_OF_MEMORY: &str = "53200";

/// How a query is answered.
pub(super) enum Answer {
    /// All its rows are written, so many.
    Whole(u64),
    /// They come as they are read.
    Stream(AnalyticalRows),
    /// They are there, kept.
    Kept(KeptRows),
}

/// A statement to run and how to answer.
pub(super) struct Run<'a> {
    pub(super) prepared: &'a Arc<Prepared>,
    /// The plan its parameters were read for, if it is a query's.
    pub(super) planned: Option<&'a Arc<Planned>>,
    /// That plan was looked at just now.
    pub(super) is_fresh: bool,
    pub(super) parameters: &'a [Value],
    pub(super) formats: &'a Formats,
    /// The simple protocol: RowDescription comes with the rows.
    pub(super) describe: bool,
}

impl Session {
    /// Before a statement: is it allowed now, and what does it see?
    pub(super) fn begin_statement(
        &mut self,
        prepared: &Arc<Prepared>,
        statement: &Statement,
        company: Company,
    ) -> Result<()> {
        self.begin_text(&prepared.shown_message(), statement, company)
    }

    /// As [`Session::begin_statement`], of a statement whose client sent this text.
    pub(super) fn begin_text(
        &mut self,
        text: &Arc<str>,
        statement: &Statement,
        company: Company,
    ) -> Result<()> {
        if self.transaction.is_failed() && !statement.ends_transaction() {
            return Err(SqlError::transaction_failed());
        }
        self.plpgsql.begin_statement();
        self.triggers.clear();
        let together = self.transaction.admit(company);
        let calls = matches!(statement, Statement::Call(call) if together && self.calls_body(call));
        if together
            && self.transaction.block() == Block::None
            && (calls || wants_transaction(statement))
        {
            self.transaction.begin(Block::Implicit, &self.context);
        }
        let now = now_us();
        let transaction_us = match self.transaction.block() {
            Block::None => now,
            Block::Implicit | Block::Explicit => self.transaction.began_us(),
        };
        let catalog = self.transaction.catalog(&self.engine.db);
        self.context
            .begin_statement(text, &catalog, now, transaction_us);
        Ok(())
    }

    /// How the engine is to run a statement that begins now.
    pub(super) fn options(&self) -> RunOptions {
        let (synchronous_commit, lock_timeout, timeout) = self.context.settings(|settings| {
            (
                settings.synchronous_commit(),
                settings.lock_timeout(),
                settings.statement_timeout(),
            )
        });
        RunOptions {
            synchronous_commit,
            lock_timeout,
            deadline: self
                .plpgsql
                .deadline
                .or_else(|| timeout.map(|timeout| self.engine.db.now() + timeout)),
            cancel: self.context.cancel.clone(),
            reads: Some(Arc::clone(&self.context.reads)),
            account: Some(self.account.clone()),
            session: u64::try_from(self.context.process_id).unwrap_or(0),
        }
    }

    /// The plan of a query for the catalog as it is now, with its parameters
    /// and columns settled.
    pub(super) async fn plan(&self, prepared: &Prepared, query: &Query) -> Result<Arc<Planned>> {
        let depth = prepared.depth;
        if stack::is_deep(depth) {
            return stack::roomy(depth, Box::pin(self.plan_now(prepared, query))).await;
        }
        self.plan_now(prepared, query).await
    }

    async fn plan_now(&self, prepared: &Prepared, query: &Query) -> Result<Arc<Planned>> {
        self.lookup().plan(prepared, query)
    }

    /// What statements are planned against now.
    pub(super) fn lookup(&self) -> Lookup<'_> {
        Lookup {
            db: &self.engine.db,
            catalog: self.transaction.catalog(&self.engine.db),
            context: &self.context,
            account: &self.account,
            scope: None,
            is_call: false,
            refreshes: None,
            only_planned: false,
        }
    }

    /// Runs a statement to its end and answers.
    pub(super) async fn run(&mut self, run: Run<'_>, client: &mut Client) -> Result<()> {
        let depth = run.prepared.depth;
        if stack::is_deep(depth) {
            return stack::roomy(depth, Box::pin(self.run_now(run, client))).await;
        }
        self.run_now(run, client).await
    }

    async fn run_now(&mut self, run: Run<'_>, client: &mut Client) -> Result<()> {
        let Some(statement) = &run.prepared.statement else {
            messages::empty_query_response(&mut client.out);
            return Ok(());
        };
        let Statement::Query(query) = statement else {
            return self.run_utility(statement, &run, client).await;
        };
        let mark = client.out.len();
        for attempt in 1.. {
            let fresh = run.planned.filter(|_| run.is_fresh && attempt == 1);
            // The catalog may have changed since the parameters were read.
            let current = match fresh {
                Some(planned) => Arc::clone(planned),
                None => self.plan(run.prepared, query).await?,
            };
            if fresh.is_none()
                && run
                    .planned
                    .is_some_and(|planned| planned.parameters != current.parameters)
            {
                return Err(SqlError::unsupported(
                    "cached plan must not change result type",
                    "Prepare the statement again.",
                ));
            }
            match self.run_query(query, &current, &run, client).await {
                Ok(count) => {
                    self.rows_processed = count;
                    command_complete(client, current.bound.command, count);
                    return Ok(());
                }
                // A DDL came between the plan and its run; nothing was done but calls, whose
                // results are kept.
                Err(error) if error.stale_plan && attempt < STALE_PLANS_MAX => {
                    client.out.truncate(mark);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) async fn run_query(
        &mut self,
        query: &Query,
        planned: &Arc<Planned>,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<u64> {
        let parameters = run.parameters;
        self.check_read_only(planned)?;
        if run.describe && planned.columns.is_some() {
            planned.describe(run.formats, &mut client.out);
        }
        let buffer = std::mem::take(&mut self.row_buffer);
        let charge = self.account.nothing(ChargeKind::Result);
        let mut rows = RowWriter::wire(buffer, run.formats.clone())
            .charged(charge)
            .styled(Arc::clone(&planned.settings.styles));
        let answer = self.answer(query, planned, parameters, &mut rows).await;
        self.tell_notices(client);
        let outcome = match answer {
            Ok(Answer::Whole(count)) => Ok(count),
            Ok(Answer::Stream(stream)) => {
                let unread = self.unread(Rest::stream(stream, &self.account));
                let sent = self.send_unread(&unread, &mut rows, usize::MAX, client);
                sent.await.map(|(count, _)| count)
            }
            Ok(Answer::Kept(kept)) => {
                let rest = Rest::kept(kept, planned.columns.clone().unwrap_or_default());
                let unread = self.unread(rest);
                let sent = self.send_unread(&unread, &mut rows, usize::MAX, client);
                sent.await.map(|(count, _)| count)
            }
            Err(error) => Err(error),
        };
        if outcome.is_ok() {
            send_rows(&self.engine.db, &mut rows, client).await?;
        }
        self.keep_buffer(rows);
        outcome
    }

    /// Runs a query by its plan. Its rows may be sent: no number in them comes again.
    pub(super) async fn answer(
        &mut self,
        query: &Query,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<Answer> {
        let statement = (query, planned);
        let answer = match &planned.calls {
            None => self.answer_now(query, planned, parameters, rows).await?,
            Some(calls) => {
                self.answer_after(calls, statement, parameters, rows)
                    .await?
            }
        };
        self.transaction.has_read(&self.engine.db)?;
        Ok(answer)
    }

    /// As [`Session::answer`], behind the calls that are made before the statement.
    pub(super) async fn answer_now(
        &mut self,
        query: &Query,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<Answer> {
        let mark = self.triggers.begin();
        let answer = self.answer_with_triggers(query, planned, parameters, rows, mark);
        let answer = answer.await;
        self.triggers.end(mark);
        answer
    }

    /// As [`Session::answer_now`], within the statement's part of the events.
    async fn answer_with_triggers(
        &mut self,
        query: &Query,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut RowWriter,
        mark: Mark,
    ) -> Result<Answer> {
        let start = rows.mark();
        let own = match &planned.bound.plan {
            Plan::Short(plan) if plan.takes_keys() || plan.fires() => self.begin_own(),
            Plan::Analytical { typed, .. } if typed.calls => self.begin_own(),
            _ => false,
        };
        let around = std::mem::replace(&mut self.plpgsql.has_begun, false);
        // A statement that waits more than once has one deadline.
        let mut options = None;
        let answer = loop {
            let answer = self.answer_by_plan(query, planned, parameters, rows);
            match answer.await {
                Err(error) => match error.wait {
                    Some(wait) => {
                        self.begin_with(wait);
                        let options = options.get_or_insert_with(|| self.options());
                        boxed(self.wait(wait, options)).await?;
                    }
                    None => return Err(error),
                },
                Ok(answer) => break answer,
            }
            self.triggers.back_to(mark);
            rows.rewind(start);
        };
        if self.transaction.is_unsettled() {
            boxed(self.settle_references()).await?;
        }
        if self.triggers.has_own() {
            self.fire_after().await?;
        }
        if own | std::mem::replace(&mut self.plpgsql.has_begun, around) {
            boxed(self.end_implicit()).await?;
        }
        self.context.keep_numbers(|| self.options()).await?;
        // A statement may end its own session.
        self.context.cancel.check_session()?;
        Ok(answer)
    }

    /// One that only reads and turns out to need more evicted rows
    /// than a statement may hold is answered by the analytical side, which reads in parts.
    async fn answer_by_plan(
        &mut self,
        query: &Query,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<Answer> {
        let plan = match &planned.bound.plan {
            Plan::Short(plan) => plan,
            Plan::Analytical { typed, .. } => {
                let stream = self.start_analytical(typed, &planned.catalog, parameters);
                let stream = boxed(stream).await?;
                return Ok(match typed.calls {
                    true => Answer::Kept(boxed(self.kept_of(stream)).await?),
                    false => Answer::Stream(stream),
                });
            }
        };
        let declared = &planned.parameter_oids;
        let start = rows.mark();
        let styles = &planned.settings.styles;
        let refused = match self.try_short(plan, styles, parameters, rows, true).await {
            Ok(count) => return Ok(Answer::Whole(count)),
            Err(error) if error.takes_long => error,
            Err(error) if error.sqlstate == OUT_OF_MEMORY && plan.only_reads() => error,
            Err(error) => return Err(error),
        };
        rows.rewind(start);
        let text = query.to_string();
        let place = Place {
            text: &text,
            declared,
        };
        let reason = match refused.takes_long {
            true => Reason::TakesLong,
            false => Reason::ReadsEvicted,
        };
        let bound = {
            let scope = planned.asked.as_deref().map(Scope::of_asked);
            let mut lookup = self.lookup();
            lookup.scope = scope.as_ref();
            lookup.analytical(place, reason)
        };
        // One that calls functions has called some by now, and calls none of them twice.
        if let Ok(Some(typed)) = bound.map(|bound| bound.plan.typed().cloned())
            && !typed.calls
        {
            let stream = self.start_analytical(&typed, &planned.catalog, parameters);
            match boxed(stream).await {
                Ok(stream) if are_described(stream.columns(), planned) => {
                    return Ok(Answer::Stream(stream));
                }
                Err(error) if refused.takes_long => return Err(error),
                _ => {}
            }
        }
        if refused.takes_long {
            let ran = self.run_short(plan, styles, parameters, rows).await;
            return ran.map(Answer::Whole);
        }
        Err(refused)
    }

    /// 57014 when the client or a time limit wants the statement to end.
    pub(super) fn check_interrupted(&self, options: &RunOptions) -> Result<()> {
        options.cancel.check()?;
        if options
            .deadline
            .is_some_and(|deadline| self.engine.db.now() >= deadline)
        {
            return Err(Error::Timeout.into());
        }
        Ok(())
    }

    /// Runs a plan of the short path to its end.
    pub(super) async fn run_short(
        &mut self,
        plan: &ShortPlan,
        styles: &Styles,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        self.try_short(plan, styles, parameters, rows, false).await
    }

    /// As [`Session::run_short`]; a SELECT that may leave and takes long is given up
    /// ([`SqlError::takes_long`]).
    async fn try_short(
        &mut self,
        plan: &ShortPlan,
        styles: &Styles,
        parameters: &[Value],
        rows: &mut RowWriter,
        may_leave: bool,
    ) -> Result<u64> {
        if plan.fires() && !matches!(plan, ShortPlan::After(_)) {
            let does = Does::of(plan);
            self.before_statement(&does).await?;
            let changed = match plan {
                ShortPlan::Insert(_) | ShortPlan::Update(_) | ShortPlan::Delete(_) => {
                    let changed = self.change_with_triggers(plan, styles, parameters, rows);
                    changed.await?
                }
                _ => boxed(self.run_in_session(plan, styles, parameters, rows)).await?,
            };
            self.behind_statement(&does).await?;
            return Ok(changed);
        }
        if let Some((target, query)) = plan.analytical_source() {
            return boxed(self.insert_select(target, query, parameters, rows)).await;
        }
        if plan.is_sessions() {
            return boxed(self.run_in_session(plan, styles, parameters, rows)).await;
        }
        let options = self.options();
        let start = rows.mark();
        let mut exec = self.execution(&options, styles, may_leave);
        match exec::execute(plan, &mut exec, parameters, rows).await {
            Err(error) if error.wait.is_some() => {
                let again = (plan, (&options, styles), parameters, may_leave);
                self.run_again(error, again, (rows, start)).await
            }
            ran => ran,
        }
    }

    /// What a plan of the short path is run with, as a part of the session's transaction.
    pub(super) fn execution<'a>(
        &'a mut self,
        options: &'a RunOptions,
        styles: &'a Styles,
        may_leave: bool,
    ) -> ExecContext<'a> {
        let now_us = self.context.transaction_us();
        let Self {
            engine,
            transaction,
            context,
            ..
        } = self;
        ExecContext {
            db: &engine.db,
            txn: transaction.of_block(&engine.db),
            options,
            now_us,
            session: &**context,
            styles,
            may_leave,
        }
    }

    /// Runs a plan with a query or a cursor within.
    async fn run_in_session(
        &mut self,
        plan: &ShortPlan,
        styles: &Styles,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        match plan {
            ShortPlan::ByQuery(plan) => self.change_by_query(plan, parameters, rows).await,
            ShortPlan::Merge(plan) => self.merge(plan, parameters).await,
            ShortPlan::CurrentOf(plan) => self.change_current(plan, parameters, rows).await,
            ShortPlan::LockingRead(plan) => {
                let read = self.run_locking_read(plan, styles, parameters, rows);
                read.await
            }
            ShortPlan::Computed(plan) => self.compute(plan, styles, parameters, rows).await,
            ShortPlan::After(plan) => self.run_after(plan, styles, parameters, rows).await,
            _ => Err(SqlError::internal("a plan that is not the session's")),
        }
    }

    /// The rows of an analytical query, of the session's transaction if there
    /// is one.
    pub(super) async fn start_analytical(
        &mut self,
        typed: &Arc<TypedQuery>,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
    ) -> Result<AnalyticalRows> {
        let engine = Arc::clone(&self.engine);
        let context = Arc::clone(&self.context);
        let analytical = AnalyticalQuery {
            engine: &engine,
            context: &context,
            typed,
            catalog,
            own: match typed.shows_own {
                true => Arc::new(self.own()),
                false => Arc::default(),
            },
        };
        let needs = analytical.prepare()?;
        let Some(turn_bytes) = needs.turn_bytes else {
            return analytical.rows(&needs, parameters, None).await;
        };
        let options = self.options();
        // They are locked to be read; a serializable transaction learns what was read of them, to
        // validate it when it commits.
        let tables = &typed.tables;
        let db = &engine.db;
        // Before the turn: whoever has one does not wait for others.
        let entry = match self.transaction.of_block(db) {
            Some(transaction) => {
                transaction.enter(&options, tables).await?;
                None
            }
            None => Some(db.enter(&options, tables).await?),
        };
        // Before the snapshot: one that waits for its turn gets old.
        let charge = self.turn(turn_bytes, needs.crowded).await?;
        let mut notes = None;
        let snapshot = match (entry, self.transaction.of_block(db)) {
            (None, Some(transaction)) => {
                if transaction.validates_reads()? {
                    notes = Some(Arc::new(ScanNotes::default()));
                }
                transaction.snapshot()?
            }
            (entry, _) => db.snapshot_of(entry.unwrap_or_default()),
        };
        let admitted = Admitted {
            snapshot,
            charge,
            notes: notes.clone(),
        };
        let rows = match typed.calls {
            true => {
                let calling = (needs, &options);
                let rows = self.calling_rows(&analytical, calling, parameters, Some(admitted));
                boxed(rows).await
            }
            false => analytical.rows(&needs, parameters, Some(admitted)).await,
        };
        if let (Some(notes), Some(transaction)) = (notes, self.transaction.of_block(db)) {
            transaction.take_notes(&notes)?;
        }
        rows
    }

    /// 25006 for a statement that writes in a read-only transaction.
    pub(super) fn check_read_only(&self, planned: &Planned) -> Result<()> {
        match &planned.bound.plan {
            Plan::Short(plan) if !plan.is_read_only() && !plan.changes_temporary() => {
                self.check_writable(command_name(planned.bound.command))
            }
            _ => Ok(()),
        }
    }

    /// 25006 in a read-only transaction.
    pub(super) fn check_writable(&self, command: &str) -> Result<()> {
        if self.transaction.is_read_only(&self.context) {
            return Err(SqlError::new(
                "25006",
                format!("cannot execute {command} in a read-only transaction"),
            ));
        }
        Ok(())
    }

    /// Counts a transaction that was one statement.
    pub(super) fn count_transaction(&self, well: bool) {
        use std::sync::atomic::Ordering::Relaxed;
        let counter = if well {
            &self.context.committed
        } else {
            &self.context.rolled_back
        };
        counter.fetch_add(1, Relaxed);
        self.context.end_advisory();
        match well {
            true => self.context.do_asked(),
            false => self.context.forget_asked(0),
        }
    }
}

/// Whether a statement is part of a transaction, or about one.
const fn wants_transaction(statement: &Statement) -> bool {
    if let Statement::Ddl(Ddl::CreateIndex(create)) = statement {
        // In an implicit one, too, it would not be by itself.
        return !create.concurrently;
    }
    matches!(
        statement,
        Statement::Query(_)
            | Statement::Explain(_)
            | Statement::Execute { .. }
            | Statement::Listen(_)
            | Statement::Unlisten(_)
            | Statement::Notify { .. }
            | Statement::Copy(_)
            | Statement::Do(_)
            | Statement::Ddl(_)
            | Statement::Declare(_)
            | Statement::Set(_)
            | Statement::Reset(_)
            | Statement::ResetAll
    )
}

pub(super) const fn command_name(command: Command) -> &'static str {
    match command {
        Command::Select => "SELECT",
        Command::Insert => "INSERT",
        Command::Update => "UPDATE",
        Command::Delete => "DELETE",
        Command::Merge => "MERGE",
    }
}

/// CommandComplete of a query, without a string of its own.
pub(super) fn command_complete(client: &mut Client, command: Command, count: u64) {
    let tag: &[u8] = match command {
        Command::Select => b"SELECT ",
        Command::Insert => b"INSERT 0 ",
        Command::Update => b"UPDATE ",
        Command::Delete => b"DELETE ",
        Command::Merge => b"MERGE ",
    };
    counted(client, tag, count);
}

/// CommandComplete of a tag and a number.
pub(super) fn counted(client: &mut Client, tag: &[u8], count: u64) {
    messages::message(&mut client.out, b'C', |out| {
        out.extend_from_slice(tag);
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        let mut left = count;
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        out.extend_from_slice(&digits[at..]);
        out.extend_from_slice(&[0]);
    });
}

/// Whether columns have the types that the client was told.
fn are_described(columns: &[OutputColumn], planned: &Planned) -> bool {
    let types = |columns: &[OutputColumn]| -> Vec<(u32, i32)> {
        let types = columns.iter().map(|c| (c.type_oid, c.type_modifier));
        types.collect()
    };
    planned
        .columns
        .as_deref()
        .is_some_and(|told| types(told) == types(columns))
}
