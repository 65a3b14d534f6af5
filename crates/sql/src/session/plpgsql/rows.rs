//! Statements of SQL in a body: prepared once, run as a client's are, their rows kept until the
//! body takes them.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use thermocline_engine::ChargeKind;
use thermocline_query::datum::Datum;
use thermocline_query::tree::Column;
use thermocline_values::value::Value;

use super::Machine;
use super::compiled::Site;
use super::frame::{Held, Typed};
use super::scope::{Asked, Scope};
use super::value::of_result;
use crate::bind::Command;
use crate::error::{Result, SqlError};
use crate::output::{Formats, OutputColumn, RowWriter};
use crate::parse::statement::Statement;
use crate::parse::{self};
use crate::plpgsql::tree::{Dynamic, Expression, Into, Source, Target};
use crate::session::kept::KeptRows;
use crate::session::prepared::{Planned, Prepared};
use crate::session::run::{Answer, Run};
use crate::session::unread::Rest;
use crate::session::{Client, ClientLink, SendFuture, Session};

/// Rows that are taken at a time.
const TAKEN_ROWS: usize = 64;
/// How often a statement is planned anew because of DDL beside it.
const STALE_PLANS_MAX: u32 = 5;

/// The rows of a statement that are not taken yet.
#[derive(Default)]
pub(super) struct FoundRows {
    kept: KeptRows,
    columns: Arc<[OutputColumn]>,
    taken: std::vec::IntoIter<Vec<Value>>,
    /// The rows that the statement has given or changed.
    pub(super) count: u64,
    /// It gives no rows by itself.
    pub(super) is_change: bool,
    /// It changes rows, and may give them back.
    changes_rows: bool,
}

impl FoundRows {
    /// The next row.
    pub(super) fn next(&mut self, session: &Session) -> Result<Option<Vec<Datum>>> {
        let row = match self.taken.next() {
            Some(row) => row,
            None => {
                let mut rows = RowWriter::values();
                self.kept.take(&self.columns, &mut rows, TAKEN_ROWS)?;
                self.taken = rows.take_values().into_iter();
                match self.taken.next() {
                    Some(row) => row,
                    None => return Ok(None),
                }
            }
        };
        let values = row.iter().zip(&*self.columns);
        let values = values.map(|(value, column)| of_result(session, value, column));
        values.collect::<Result<Vec<Datum>>>().map(Some)
    }

    /// The columns as variables have them.
    pub(super) fn columns(&self) -> Vec<Column> {
        let column = |of: &OutputColumn| Column {
            name: Arc::from(of.name.as_str()),
            oid: of.type_oid,
            modifier: of.type_modifier,
            origin: None,
        };
        self.columns.iter().map(column).collect()
    }
}

/// Nobody: what a command of a body would tell its client is left out.
struct NoClient;

impl ClientLink for NoClient {
    fn flush<'a>(&'a mut self, out: &'a mut BytesMut) -> SendFuture<'a, std::io::Result<()>> {
        out.clear();
        Box::pin(async { Ok(()) })
    }

    fn copy_data<'a>(&'a mut self) -> SendFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async { Ok(None) })
    }
}

impl Session {
    /// The rows of a query that has run and written what it did not stream to `rows`: kept, so that other
    /// statements can run while they are taken.
    pub(super) async fn found(
        &mut self,
        answer: Answer,
        rows: RowWriter,
        columns: Arc<[OutputColumn]>,
    ) -> Result<FoundRows> {
        let db = Arc::clone(&self.engine.db);
        let (kept, columns, count) = match answer {
            Answer::Whole(count) => {
                let mut kept = KeptRows::of(rows);
                kept.spill_if_large(db.spill())?;
                (kept, columns, count)
            }
            Answer::Kept(kept) => (kept, columns, 0),
            Answer::Stream(stream) => {
                let mut rest = Rest::stream(stream, &self.account);
                rest.keep_all(&db, &self.options()).await?;
                let (kept, columns) = rest.take_kept();
                (kept, columns, 0)
            }
        };
        Ok(FoundRows {
            kept,
            columns,
            count,
            ..FoundRows::default()
        })
    }
}

impl Machine<'_> {
    /// The statement of an expression, prepared now or before.
    pub(super) async fn prepared(&mut self, of: &Expression) -> Result<Arc<Prepared>> {
        let known = self.compiled.sites.lock()[of.site].clone();
        if let Some(Site::Statement(prepared)) = known {
            return Ok(prepared);
        }
        let prepared = Arc::new(self.prepare(&of.text).await?);
        self.compiled.sites.lock()[of.site] = Some(Site::Statement(Arc::clone(&prepared)));
        Ok(prepared)
    }

    async fn prepare(&self, text: &str) -> Result<Prepared> {
        let charge = self.session.charge_prepared(text).await?;
        let mut parts = parse::parse_parts(text)?;
        let (Some(part), true) = (parts.pop(), parts.is_empty()) else {
            return Err(SqlError::unsupported(
                "several statements in one EXECUTE are not supported",
                "EXECUTE them one by one.",
            ));
        };
        let prepared = Prepared::new(Arc::from(text), Some(part.statement), Vec::new());
        // A plan of another shape serves as well: nobody was told of the first.
        Ok(prepared.undescribed().of_depth(part.depth).charged(charge))
    }

    /// The rows of a query of the body.
    pub(super) async fn query(&mut self, of: &Expression) -> Result<FoundRows> {
        let prepared = self.prepared(of).await?;
        let Some(Statement::Query(query)) = &prepared.statement else {
            return self.run_command(&prepared, &of.text).await;
        };
        let ran = self.run_prepared(&prepared, query, of).await;
        ran.map_err(|(error, ran)| match ran {
            true => of_statement(error, &of.text),
            false => error,
        })
    }

    /// As [`Machine::query`], for an expression: its errors are told by the line alone.
    pub(super) async fn query_of_expression(&mut self, of: &Expression) -> Result<FoundRows> {
        let prepared = self.prepared(of).await?;
        let Some(Statement::Query(query)) = &prepared.statement else {
            return Err(SqlError::internal("an expression that is no query"));
        };
        let ran = self.run_prepared(&prepared, query, of).await;
        ran.map_err(|(error, _)| error)
    }

    /// Runs a query or a change of rows whose names mean variables. An error says whether the
    /// statement has run.
    async fn run_prepared(
        &mut self,
        prepared: &Arc<Prepared>,
        query: &parse::Query,
        of: &Expression,
    ) -> Result<FoundRows, (SqlError, bool)> {
        let before = |error| (error, false);
        for attempt in 1.. {
            let planned = self.planned(prepared, of.names).map_err(before)?;
            let asked = planned.asked.clone().unwrap_or_default();
            let values = self.parameters(&asked).map_err(before)?;
            match self.run_planned(prepared, &planned, query, &values).await {
                Err(error) if error.stale_plan && attempt < STALE_PLANS_MAX => {}
                done => return done.map_err(|error| (error, true)),
            }
        }
        Err(before(SqlError::internal("a plan that is always stale")))
    }

    /// The plan of a statement for variables of the types that they have now.
    fn planned(&self, prepared: &Arc<Prepared>, names: Option<usize>) -> Result<Arc<Planned>> {
        let Some(query) = prepared.query() else {
            return Err(SqlError::internal("a plan of no query"));
        };
        let plan = || {
            let scope = Scope::new(&self.compiled.body, names, &self.frame.held);
            let mut lookup = self.session.lookup();
            lookup.scope = Some(&scope);
            lookup.plan(prepared, query)
        };
        let planned = crate::stack::with_room(prepared.depth, plan)?;
        let asked = planned.asked.clone().unwrap_or_default();
        if self.are_as_asked(&asked) {
            return Ok(planned);
        }
        prepared.forget_plan();
        crate::stack::with_room(prepared.depth, plan)
    }

    fn parameters(&self, asked: &[Asked]) -> Result<Vec<Value>> {
        let value = |one: &Asked| {
            self.as_parameter(Typed {
                value: self.asked(one),
                oid: one.oid,
                modifier: one.modifier,
            })
        };
        asked.iter().map(value).collect()
    }

    async fn run_planned(
        &mut self,
        prepared: &Arc<Prepared>,
        planned: &Arc<Planned>,
        query: &parse::Query,
        values: &[Value],
    ) -> Result<FoundRows> {
        let command = planned.bound.command;
        if self.compiled.reads_only && command != Command::Select {
            let name = crate::session::run::command_name(command);
            return Err(SqlError::unsupported(
                format!("{name} is not allowed in a non-volatile function"),
                "Declare the function VOLATILE.",
            ));
        }
        let session = &mut *self.session;
        session.check_read_only(planned)?;
        session.context.begin_waits();
        let charge = session.account.nothing(ChargeKind::Result);
        let mut rows = RowWriter::kept()
            .charged(charge)
            .styled(Arc::clone(&planned.settings.styles));
        let depth = prepared.depth;
        let answer: std::pin::Pin<Box<dyn Future<Output = Result<Answer>> + Send + '_>> =
            Box::pin(session.answer(query, planned, values, &mut rows));
        let answer = match crate::stack::is_deep(depth) {
            true => crate::stack::roomy(depth, Box::pin(answer)).await?,
            false => answer.await?,
        };
        let columns = planned.columns.clone().unwrap_or_default();
        Ok(FoundRows {
            is_change: planned.columns.is_none(),
            changes_rows: command != Command::Select,
            ..session.found(answer, rows, columns).await?
        })
    }

    /// Runs a command that is no query and no change of rows.
    async fn run_command(&mut self, prepared: &Arc<Prepared>, text: &str) -> Result<FoundRows> {
        let Some(statement) = &prepared.statement else {
            return Err(SqlError::syntax("a statement is missing"));
        };
        if !is_allowed(statement) {
            let word = text.split_whitespace().next().unwrap_or_default();
            return Err(SqlError::unsupported(
                format!("{} is not supported in PL/pgSQL", word.to_uppercase()),
                "Send it by itself. A block with EXCEPTION is a savepoint.",
            ));
        }
        if self.compiled.reads_only {
            return Err(SqlError::unsupported(
                "a command is not allowed in a non-volatile function",
                "Declare the function VOLATILE.",
            ));
        }
        let run = Run {
            prepared,
            planned: None,
            is_fresh: false,
            parameters: &[],
            formats: &Formats::Text,
            describe: false,
        };
        let mut client = Client {
            out: BytesMut::new(),
            link: Box::new(NoClient),
        };
        let ran = self.session.run_utility(statement, &run, &mut client).await;
        ran.map_err(|error| of_statement(error, text))?;
        Ok(FoundRows {
            is_change: true,
            ..FoundRows::default()
        })
    }

    /// The next row of those that were found.
    pub(super) fn next_row(&self, found: &mut FoundRows) -> Result<Option<Vec<Datum>>> {
        found.next(self.session)
    }

    /// Runs a statement of SQL to its end.
    pub(super) async fn sql(&mut self, of: &Expression, into: Option<&Into>) -> Result<()> {
        let found = self.query(of).await?;
        self.settle(found, into, false).await
    }

    /// PERFORM: a query whose rows nobody takes.
    pub(super) async fn perform(&mut self, of: &Expression) -> Result<()> {
        let mut found = self.query(of).await?;
        let mut count = 0;
        while self.next_row(&mut found)?.is_some() {
            count += 1;
        }
        self.counted(count)
    }

    /// EXECUTE: a text, with parameters of its own.
    pub(super) async fn execute(&mut self, of: &Dynamic, into: Option<&Into>) -> Result<()> {
        let found = self.dynamic(of).await?;
        self.settle(found, into, true).await
    }

    pub(super) async fn source(&mut self, of: &Source) -> Result<FoundRows> {
        match of {
            Source::Query(query) => self.query(query).await,
            Source::Dynamic(dynamic) => self.dynamic(dynamic).await,
        }
    }

    async fn dynamic(&mut self, of: &Dynamic) -> Result<FoundRows> {
        let Some(text) = self.text(&of.text).await? else {
            let message = "query string argument of EXECUTE is null";
            return Err(SqlError::new("22004", message));
        };
        let mut using = Vec::with_capacity(of.using.len());
        for one in &of.using {
            using.push(self.value(one).await?);
        }
        let declared: Vec<u32> = using.iter().map(|typed| typed.oid).collect();
        self.dynamic_text(&text, declared, using).await
    }

    async fn dynamic_text(
        &mut self,
        text: &str,
        declared: Vec<u32>,
        using: Vec<Typed>,
    ) -> Result<FoundRows> {
        let mut prepared = self.prepare(text).await?;
        prepared.declared = declared;
        let prepared = Arc::new(prepared);
        let Some(query) = prepared.query() else {
            return self.run_command(&prepared, text).await;
        };
        let mut values = Vec::with_capacity(using.len());
        for typed in using {
            values.push(self.as_parameter(typed)?);
        }
        for attempt in 1.. {
            let planned = self.session.plan(&prepared, query).await?;
            if planned.parameter_oids.len() > values.len() {
                let message = format!("there is no parameter ${}", values.len() + 1);
                return Err(SqlError::new("42P02", message));
            }
            match self.run_planned(&prepared, &planned, query, &values).await {
                Err(error) if error.stale_plan && attempt < STALE_PLANS_MAX => {}
                done => return done.map_err(|error| of_statement(error, text)),
            }
        }
        Err(SqlError::internal("a plan that is always stale"))
    }

    /// Sets what a statement tells: FOUND and the number of its rows.
    pub(super) fn counted(&mut self, count: u64) -> Result<()> {
        self.frame.row_count = count;
        self.found(count > 0)
    }

    pub(super) fn found(&mut self, found: bool) -> Result<()> {
        let held = Held::Value {
            oid: thermocline_query::types::ids::BOOL,
            modifier: -1,
            value: Datum::Bool(found),
        };
        self.frame.keep(self.compiled.body.found, held)
    }

    /// Takes the rows of a statement to where INTO says.
    async fn settle(
        &mut self,
        mut found: FoundRows,
        into: Option<&Into>,
        is_dynamic: bool,
    ) -> Result<()> {
        let Some(into) = into else {
            if !found.is_change && !is_dynamic {
                return Err(
                    SqlError::new("42601", "query has no destination for result data").with_hint(
                        "If you want to discard the results of a SELECT, use PERFORM instead.",
                    ),
                );
            }
            let mut count = found.count;
            if count == 0 && !found.is_change {
                while self.next_row(&mut found)?.is_some() {
                    count += 1;
                }
            }
            self.frame.row_count = count;
            return match is_dynamic {
                true => Ok(()),
                false => self.found(count > 0),
            };
        };
        if found.is_change {
            let message = "INTO used with a command that cannot return data";
            return Err(SqlError::new("42601", message));
        }
        // What a change gives back is one row, or an error, whatever INTO says.
        let one = into.strict || (found.changes_rows && !is_dynamic);
        let columns = found.columns();
        let first = self.next_row(&mut found)?;
        let second = match (&first, one) {
            (Some(_), true) => self.next_row(&mut found)?,
            _ => None,
        };
        match (&first, &second) {
            (None, _) if into.strict => {
                return Err(SqlError::new("P0002", "query returned no rows"));
            }
            (_, Some(_)) => {
                return Err(SqlError::new("P0003", "query returned more than one row")
                    .with_hint("Make sure the query returns a single row, or use LIMIT 1."));
            }
            _ => {}
        }
        let is_found = first.is_some();
        self.give_row(&into.targets, &columns, first).await?;
        self.frame.row_count = u64::from(is_found);
        match is_dynamic {
            true => Ok(()),
            false => self.found(is_found),
        }
    }

    /// Gives a row to its targets; NULLs where there is none.
    pub(super) async fn give_row(
        &mut self,
        targets: &[Target],
        columns: &[Column],
        row: Option<Vec<Datum>>,
    ) -> Result<()> {
        if let [Target { slot, field: None }] = targets
            && matches!(self.frame.held[*slot], Held::Row(_))
        {
            let values = row.unwrap_or_else(|| vec![Datum::Null; columns.len()]);
            // A row of one column that is a row itself is that row.
            if let ([Datum::Record(_)], [column]) = (values.as_slice(), columns) {
                let typed = Typed {
                    value: values[0].clone(),
                    oid: column.oid,
                    modifier: -1,
                };
                return self.store(*slot, typed).await;
            }
            return self.store_row(*slot, columns, values);
        }
        let mut values = row.unwrap_or_default().into_iter();
        for (at, target) in targets.iter().enumerate() {
            let value = values.next().unwrap_or_default();
            let typed = Typed {
                value,
                oid: columns.get(at).map_or(0, |column| column.oid),
                modifier: columns.get(at).map_or(-1, |column| column.modifier),
            };
            self.assign(target, typed).await?;
        }
        Ok(())
    }
}

/// Whether a command may stand in a body.
fn is_allowed(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Ddl(_)
            | Statement::Set(_)
            | Statement::Reset(_)
            | Statement::Lock(_)
            | Statement::SetConstraints { .. }
            | Statement::Notify { .. }
            | Statement::Listen(_)
            | Statement::Unlisten(_)
    )
}

/// An error with the statement that it comes from.
#[cold]
pub(super) fn of_statement(mut error: SqlError, text: &str) -> SqlError {
    let here = format!("SQL statement \"{text}\"");
    error.context = Some(match error.context.take() {
        None => here,
        Some(inner) => format!("{inner}\n{here}"),
    });
    error.position = None;
    error
}
