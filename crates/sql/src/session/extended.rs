//! The extended protocol: Parse, Bind, Describe, Execute, Sync. What comes
//! between two Syncs is one implicit transaction, unless BEGIN made it a real
//! one. A statement whose Execute is followed by Sync is a transaction of its
//! own, if the server says so.

use std::sync::Arc;
use std::time::Instant;

use thermocline_engine::ChargeKind;

use super::kept::KeptRows;
use super::parameters::{self, Texts};
use super::portal::{Portal, PortalRows, no_portal};
use super::prepared::{Prepared, parameter_oids};
use super::run::{Answer, Run, command_complete, counted};
use super::statement_log::Step;
use super::transaction::{Block, Company};
use super::unread::Rest;
use super::{Client, Session};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{Formats, RowWriter};
use crate::parse::statement::Direction;
use crate::parse::{self, Query, Statement};
use crate::stack;

impl Session {
    /// Parse: a statement under a name.
    ///
    /// # Errors
    /// 42601 and others of the statement, 42P05 for a name in use.
    pub async fn parse(&mut self, name: &str, sql: &str, parameter_oids: &[u32]) -> Result<()> {
        let began = Instant::now();
        let parsed = self.parse_statement(name, sql, parameter_oids).await;
        let step = Step::Parse { statement: name };
        self.log_step(began, &step, sql, &[], parsed.as_ref().err());
        parsed
    }

    async fn parse_statement(
        &mut self,
        name: &str,
        sql: &str,
        parameter_oids: &[u32],
    ) -> Result<()> {
        if name.is_empty() {
            self.statements.remove("");
            if let Some(kept) = self.unnamed_texts.get(sql)
                && kept.declared == parameter_oids
                && self.lookup().is_as_new(&kept)
            {
                self.check_not_failed(kept.statement.as_ref())?;
                self.note_catalog(&kept);
                self.statements.set_unnamed(kept);
                return Ok(());
            }
        }
        let charge = self.charge_prepared(sql).await?;
        let text: Arc<str> = Arc::from(sql);
        let (mut statements, depth) = parse::parse_measured(&text)?;
        if statements.len() > 1 {
            return Err(SqlError::syntax(
                "cannot insert multiple commands into a prepared statement",
            ));
        }
        let statement = statements.pop();
        self.check_not_failed(statement.as_ref())?;
        let prepared = Prepared::new(Arc::clone(&text), statement, parameter_oids.to_vec());
        let prepared = prepared.named(name).of_depth(depth);
        // Errors of names and types belong to Parse.
        if let Some(query) = prepared.query() {
            self.note_catalog(&prepared);
            self.plan(&prepared, query).await?;
        }
        if !name.is_empty() || prepared.is_secret() {
            return self.statements.insert(prepared, charge, false);
        }
        let unnamed = match self.unnamed_texts.wants(sql) {
            true => {
                let unnamed = Arc::new(prepared);
                self.unnamed_texts.keep(text, Arc::clone(&unnamed), charge);
                unnamed
            }
            false => Arc::new(prepared.charged(charge)),
        };
        self.statements.set_unnamed(unnamed);
        Ok(())
    }

    /// 25P02 for what a failed transaction does not let through.
    fn check_not_failed(&self, statement: Option<&Statement>) -> Result<()> {
        let refused = statement.is_some_and(|statement| !statement.ends_transaction());
        if refused && self.transaction.is_failed() {
            return Err(SqlError::transaction_failed());
        }
        Ok(())
    }

    /// Shows the catalog as it is now to what is bound or described.
    fn note_catalog(&self, prepared: &Prepared) {
        let now = super::context::now_us();
        let catalog = self.transaction.catalog(&self.engine.db);
        self.context
            .begin_statement(&prepared.shown_message(), &catalog, now, now);
    }

    /// Bind: a portal of a statement with its parameters.
    ///
    /// # Errors
    /// 26000 for an unknown statement, 42P03 for a portal's name in use, 08P01
    /// and others for parameters that do not fit.
    pub async fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        parameter_formats: &[i16],
        parameters: &[Option<&[u8]>],
        result_formats: &[i16],
    ) -> Result<()> {
        let began = Instant::now();
        let prepared = self.prepared(statement).await?;
        let bound = self
            .bind_portal(
                portal,
                &prepared,
                parameter_formats,
                parameters,
                result_formats,
            )
            .await;
        let bound = self.noted_bind(began, (statement, portal), &prepared, bound)?;
        self.portals.insert(portal.to_owned(), bound);
        Ok(())
    }

    /// A portal that was bound, or why not, once that is logged.
    fn noted_bind(
        &self,
        began: Instant,
        (statement, portal): (&str, &str),
        prepared: &Prepared,
        bound: Result<Portal>,
    ) -> Result<Portal> {
        let step = Step::Bind { statement, portal };
        let values = bound.as_ref().map_or(&[][..], |bound| &bound.parameters);
        self.log_step(began, &step, &prepared.text, values, bound.as_ref().err());
        bound
    }

    async fn bind_portal(
        &mut self,
        portal: &str,
        prepared: &Arc<Prepared>,
        parameter_formats: &[i16],
        parameters: &[Option<&[u8]>],
        result_formats: &[i16],
    ) -> Result<Portal> {
        let statement = &*prepared.name;
        self.check_not_failed(prepared.statement.as_ref())?;
        if !portal.is_empty() && self.portals.contains_key(portal) {
            return Err(SqlError::new(
                "42P03",
                format!("cursor \"{portal}\" already exists"),
            ));
        }
        let charge = self.charge_parameters(parameters).await?;
        // What begins with this message has no time yet.
        let now_us = match self.transaction.block() {
            Block::None => super::context::now_us(),
            Block::Implicit | Block::Explicit => self.transaction.began_us(),
        };
        let (planned, parameters) = match prepared.query() {
            Some(query) => {
                let planned = self.plan(prepared, query).await?;
                let values = parameters::decode(
                    &planned.parameter_oids,
                    &planned.parameters,
                    statement,
                    (parameter_formats, parameters),
                    Texts {
                        styles: &planned.settings.styles,
                        now_us,
                    },
                )?;
                (Some(planned), values)
            }
            None => {
                let types = self.utility_parameters(prepared)?;
                let oids = parameter_oids(&types, &prepared.declared);
                let oids = &oids[..types.len()];
                let values = parameters::decode(
                    oids,
                    &types,
                    statement,
                    (parameter_formats, parameters),
                    Texts {
                        styles: &self.context.styles(),
                        now_us,
                    },
                )?;
                (None, values)
            }
        };
        let columns = match &planned {
            Some(planned) => planned.columns.as_ref().map_or(0, |columns| columns.len()),
            None => self
                .utility_columns(prepared)?
                .map_or(0, |columns| columns.len()),
        };
        // Formats for a statement without rows are of no consequence.
        let formats = if columns == 0 {
            Formats::Text
        } else {
            Formats::from_codes(result_formats, columns)?
        };
        Ok(Portal {
            prepared: Arc::clone(prepared),
            planned,
            parameters,
            formats,
            rows: PortalRows::Unstarted,
            is_fresh: false,
            held: false,
            stand: None,
            is_of_before: false,
            savepoints: 0,
            made_us: now_us,
            _charge: Some(charge),
        })
    }

    /// Describe of a statement: ParameterDescription, then RowDescription or
    /// NoData.
    ///
    /// # Errors
    /// 26000 for an unknown statement; 0A000 when its rows changed their shape.
    pub async fn describe_statement(&mut self, name: &str, client: &mut Client) -> Result<()> {
        let prepared = self.prepared(name).await?;
        let Some(query) = prepared.query() else {
            let types = self.utility_parameters(&prepared)?;
            let oids = parameter_oids(&types, &prepared.declared);
            messages::parameter_description(&mut client.out, oids.into_iter());
            match self.utility_columns(&prepared)? {
                Some(columns) => {
                    messages::row_description(&mut client.out, &columns, &Formats::Text);
                }
                None => messages::no_data(&mut client.out),
            }
            return Ok(());
        };
        if self.transaction.is_failed() {
            return Err(SqlError::transaction_failed());
        }
        let planned = self.plan(&prepared, query).await?;
        let oids = planned.parameter_oids.iter().copied();
        messages::parameter_description(&mut client.out, oids);
        match &planned.columns {
            Some(columns) => messages::row_description(&mut client.out, columns, &Formats::Text),
            None => messages::no_data(&mut client.out),
        }
        Ok(())
    }

    /// Describe of a portal: RowDescription or NoData.
    ///
    /// # Errors
    /// 34000 for an unknown portal.
    pub async fn describe_portal(&mut self, portal: &str, client: &mut Client) -> Result<()> {
        self.describe(self.portal(portal)?, client)
    }

    fn describe(&self, portal: &Portal, client: &mut Client) -> Result<()> {
        match &portal.planned {
            Some(planned) => planned.describe(&portal.formats, &mut client.out),
            None => match self.utility_columns(&portal.prepared)? {
                Some(columns) => {
                    messages::row_description(&mut client.out, &columns, &portal.formats);
                }
                None => messages::no_data(&mut client.out),
            },
        }
        Ok(())
    }

    /// Execute: up to `max_rows` rows of a portal, all for 0; then
    /// CommandComplete, PortalSuspended or EmptyQueryResponse.
    ///
    /// # Errors
    /// 34000 for an unknown portal, and the statement's own.
    pub async fn execute(
        &mut self,
        portal: &str,
        max_rows: u32,
        client: &mut Client,
    ) -> Result<()> {
        // Taken out while it runs; a transaction command may close all portals.
        let mut taken = self
            .portals
            .remove(portal)
            .ok_or_else(|| no_portal(portal))?;
        let (began, again) = self.begin_execution(&taken);
        let executed = self.execute_taken(&mut taken, max_rows, client).await;
        self.note_execution(began, portal, &taken, again, &executed);
        if executed? {
            self.portals.insert(portal.to_owned(), taken);
        }
        Ok(())
    }

    /// A batch of one statement: Bind of the unnamed portal, Describe if `describes`, Execute for
    /// all rows, and Sync. False, and nothing was done, where the statement takes in messages of
    /// its own, which passes over that Sync.
    ///
    /// # Errors
    /// Those of the messages before the Sync; an error of that one is written behind their answers.
    pub async fn run_batch(
        &mut self,
        statement: &str,
        parameter_formats: &[i16],
        parameters: &[Option<&[u8]>],
        result_formats: &[i16],
        describes: bool,
        client: &mut Client,
    ) -> Result<bool> {
        let began = Instant::now();
        let prepared = self.prepared(statement).await?;
        if matches!(prepared.statement, Some(Statement::Copy(_))) {
            return Ok(false);
        }
        let bound = self
            .bind_portal("", &prepared, parameter_formats, parameters, result_formats)
            .await;
        let mut portal = self.noted_bind(began, (statement, ""), &prepared, bound)?;
        drop(prepared);
        if !self.portals.is_empty() {
            self.portals.remove("");
        }
        portal.is_fresh = true;
        messages::bind_complete(&mut client.out);
        if describes {
            self.describe(&portal, client)?;
        }
        self.sync_follows = true;
        let (began, again) = self.begin_execution(&portal);
        let executed = self.execute_taken(&mut portal, 0, client).await;
        self.note_execution(began, "", &portal, again, &executed);
        // Sync closes all portals outside of a transaction.
        if executed? && self.transaction.block() != Block::None {
            portal.is_fresh = false;
            self.portals.insert(String::new(), portal);
        }
        if let Err(error) = self.sync().await {
            messages::error_response(&mut client.out, "ERROR", &error);
        }
        Ok(true)
    }

    /// When an execution begins, and whether the portal goes on.
    fn begin_execution(&self, taken: &Portal) -> (Instant, bool) {
        self.context.cancel.reset();
        let again = !matches!(taken.rows, PortalRows::Unstarted);
        (Instant::now(), again)
    }

    /// Logs and counts an execution.
    fn note_execution(
        &self,
        began: Instant,
        portal: &str,
        taken: &Portal,
        again: bool,
        executed: &Result<bool>,
    ) {
        self.forget_waits();
        let step = Step::Execute {
            statement: &taken.prepared.name,
            portal,
            again,
        };
        if executed.is_ok()
            && let Some(counted) = self.counted_as(&taken.prepared)
        {
            self.count_execution(began, &counted, !again);
        }
        let error = executed.as_ref().err();
        self.log_step(began, &step, &taken.prepared.text, &taken.parameters, error);
    }

    /// Executes a portal; whether it is still one afterwards.
    async fn execute_taken(
        &mut self,
        taken: &mut Portal,
        max_rows: u32,
        client: &mut Client,
    ) -> Result<bool> {
        let sync_follows = std::mem::take(&mut self.sync_follows);
        self.begin_count();
        let prepared = Arc::clone(&taken.prepared);
        let Some(statement) = &prepared.statement else {
            messages::empty_query_response(&mut client.out);
            return Ok(true);
        };
        self.begin_statement(&prepared, statement, Company::Pipeline { sync_follows })?;
        let own = self.transaction.block() == Block::None;
        self.execute_portal(taken, statement, max_rows, client)
            .await?;
        self.transaction.executed(statement.ends_transaction());
        if own && self.transaction.block() == Block::None {
            self.context
                .settings(crate::settings::Settings::end_transaction);
            self.count_transaction(true);
            return Ok(false);
        }
        Ok(!statement.ends_transaction())
    }

    async fn execute_portal(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        max_rows: u32,
        client: &mut Client,
    ) -> Result<()> {
        let rows_planned = portal
            .planned
            .clone()
            .filter(|planned| planned.columns.is_some());
        let unstarted = matches!(portal.rows, PortalRows::Unstarted);
        let Some(planned) = rows_planned.filter(|_| max_rows > 0 || !unstarted) else {
            if !unstarted {
                return Err(SqlError::new("55000", "portal cannot be run anymore"));
            }
            let run = Run {
                prepared: &portal.prepared,
                planned: portal.planned.as_ref(),
                is_fresh: portal.is_fresh,
                parameters: &portal.parameters,
                formats: &portal.formats,
                describe: false,
            };
            portal.rows = PortalRows::Finished;
            return self.run(run, client).await;
        };
        if let (true, Statement::Query(query)) = (unstarted, statement) {
            self.start_portal(portal, query).await?;
            self.tell_notices(client);
        }
        let limit = match max_rows {
            0 => usize::MAX,
            limit => limit as usize,
        };
        let (count, more) = self.send_portal_rows(portal, limit, client).await?;
        self.rows_processed = count;
        if more && max_rows > 0 {
            messages::portal_suspended(&mut client.out);
        } else {
            command_complete(client, planned.bound.command, count);
        }
        Ok(())
    }

    /// Runs the portal's query as far as rows can be taken from it.
    pub(super) async fn start_portal(&mut self, portal: &mut Portal, query: &Query) -> Result<()> {
        let depth = portal.prepared.depth;
        if stack::is_deep(depth) {
            return stack::roomy(depth, Box::pin(self.start_portal_now(portal, query))).await;
        }
        self.start_portal_now(portal, query).await
    }

    async fn start_portal_now(&mut self, portal: &mut Portal, query: &Query) -> Result<()> {
        let planned = self.plan(&portal.prepared, query).await?;
        self.check_read_only(&planned)?;
        let charge = self.account.nothing(ChargeKind::Portal);
        let mut rows = RowWriter::kept().charged(charge);
        let answer = self
            .answer(query, &planned, &portal.parameters, &mut rows)
            .await?;
        let db = Arc::clone(&self.engine.db);
        let rest = match answer {
            Answer::Whole(_) => {
                let mut kept = KeptRows::of(rows);
                kept.spill_if_large(db.spill())?;
                Rest::kept(kept, planned.columns.clone().unwrap_or_default())
            }
            Answer::Kept(kept) => Rest::kept(kept, planned.columns.clone().unwrap_or_default()),
            Answer::Stream(stream) => {
                let mut rest = Rest::stream(stream, &self.account);
                if rest.is_all_there() {
                    rest.keep_all(&db, &self.options()).await?;
                }
                rest
            }
        };
        portal.rows = PortalRows::Open(self.unread(rest));
        portal.planned = Some(planned);
        Ok(())
    }

    /// Sends up to `limit` rows of a started portal. How many, and whether there may be more.
    pub(super) async fn send_portal_rows(
        &mut self,
        portal: &mut Portal,
        limit: usize,
        client: &mut Client,
    ) -> Result<(u64, bool)> {
        let unread = match &portal.rows {
            PortalRows::Open(unread) => unread,
            PortalRows::Scroll(_) => {
                let forward = Direction::Forward(Some(limit as u64));
                let sent = self.send_scrolled(portal, forward, client).await?;
                return Ok((sent, sent == limit as u64));
            }
            PortalRows::Finished => return Ok((0, false)),
            PortalRows::Unstarted => {
                return Err(SqlError::internal("a portal that was not started"));
            }
        };
        let buffer = std::mem::take(&mut self.row_buffer);
        let rows = RowWriter::wire(buffer, portal.formats.clone());
        let shown = portal.stand.as_ref().map(|stand| stand.shown);
        let mut rows = rows.styled(self.context.styles()).hiding(shown);
        let (sent, more) = self.send_unread(unread, &mut rows, limit, client).await?;
        if let Some(stand) = &mut portal.stand {
            stand.at = rows.take_hidden().filter(|_| sent == limit as u64);
        }
        self.keep_buffer(rows);
        if !more {
            portal.rows = PortalRows::Finished;
        }
        Ok((sent, more))
    }

    /// FETCH's or MOVE's command tag.
    pub(super) fn fetched(client: &mut Client, skip: bool, count: u64) {
        counted(client, if skip { b"MOVE " } else { b"FETCH " }, count);
    }

    /// Close of a statement; an unknown one is no error.
    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Close of a portal; an unknown one is no error.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Sync: the end of an implicit transaction.
    ///
    /// # Errors
    /// 40001 and others when it cannot be committed; it is rolled back then.
    pub async fn sync(&mut self) -> Result<()> {
        self.sync_follows = false;
        self.transaction.synced();
        self.transaction
            .end_failed(&self.engine.db, &self.context)
            .await;
        let ended = match self.transaction.block() {
            Block::Implicit => self.end_implicit().await,
            Block::None => {
                self.close_transaction_portals();
                self.settle_held(true);
                Ok(())
            }
            Block::Explicit => Ok(()),
        };
        self.idle();
        ended
    }

    /// An error was answered; messages up to Sync will be passed over.
    pub fn extended_error(&mut self) {
        if self.transaction.block() == Block::None {
            self.count_transaction(false);
        }
        self.sync_follows = false;
        let ends = self.transaction.block() != Block::Explicit;
        self.transaction.fail();
        self.close_failed_portals();
        if ends {
            self.settle_held(false);
        }
    }
}
