//! The simple protocol: all statements of a text, each answered in turn.
//! Several are one implicit transaction, which BEGIN inside makes a real one;
//! the first error ends the text.

use std::sync::Arc;
use std::time::Instant;

use thermocline_engine::give_way;

use super::prepared::Prepared;
use super::run::Run;
use super::statement_log::Step;
use super::transaction::{Block, Company};
use super::{Client, Session};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::Formats;

impl Session {
    /// Runs the statements of `sql`; writes all answers but ReadyForQuery.
    pub async fn simple_query(&mut self, sql: &str, client: &mut Client) {
        let began = Instant::now();
        self.context.cancel.reset();
        // PostgreSQL forgets the unnamed statement and portal.
        self.statements.remove("");
        self.portals.remove("");
        let outcome = self.run_text(sql, client).await;
        self.log_step(began, &Step::Query, sql, &[], outcome.as_ref().err());
        self.forget_waits();
        if let Err(error) = outcome {
            self.tell_notices(client);
            // Of a session that has to end the client hears only that.
            if self.context.cancel.session_end().is_none() {
                messages::error_response(&mut client.out, "ERROR", &error);
            }
            if self.transaction.block() == Block::None {
                self.count_transaction(false);
            }
            self.failed().await;
        }
        self.idle();
    }

    async fn run_text(&mut self, sql: &str, client: &mut Client) -> Result<()> {
        let _charge = self.charge_text(sql).await?;
        let (statements, has_shape) = match self.texts.get(sql) {
            Some(statements) => (statements, false),
            None => {
                let has_shape = self.has_shape(sql);
                if has_shape && self.run_shaped(sql, client).await? {
                    client.flush_if_large().await?;
                    return self.end_implicit().await;
                }
                (self.texts.parse(sql)?, has_shape)
            }
        };
        if statements.is_empty() {
            messages::empty_query_response(&mut client.out);
            return Ok(());
        }
        let company = match statements.len() {
            1 => Company::Alone,
            _ => Company::Text,
        };
        for prepared in statements.iter() {
            let run = self.run_simple(prepared, company, client).await;
            run.map_err(|error| error.moved(prepared.before))?;
            client.flush_if_large().await?;
            if company == Company::Text {
                give_way().await;
            }
        }
        if let (true, [one]) = (has_shape, &*statements) {
            self.keep_shape(sql, one);
        }
        self.end_implicit().await
    }

    async fn run_simple(
        &mut self,
        prepared: &Arc<Prepared>,
        company: Company,
        client: &mut Client,
    ) -> Result<()> {
        let began = Instant::now();
        self.begin_count();
        if let Some(statement) = &prepared.statement {
            self.begin_statement(prepared, statement, company)?;
        }
        let own = self.transaction.block() == Block::None;
        let run = Run {
            prepared,
            planned: None,
            is_fresh: false,
            parameters: &[],
            formats: &Formats::Text,
            describe: true,
        };
        self.run(run, client).await?;
        self.end_run(prepared, own, began);
        Ok(())
    }

    /// Behind a statement that began at `began`, in a transaction of its own if that is over now.
    pub(super) fn end_run(&mut self, prepared: &Arc<Prepared>, own: bool, began: Instant) {
        if own && self.transaction.block() == Block::None {
            self.context
                .settings(crate::settings::Settings::end_transaction);
            self.count_transaction(true);
        }
        if let Some(counted) = self.counted_as(prepared) {
            self.count_execution(began, &counted, true);
        }
    }

    /// Whether what is done now is in a transaction block. What is done in a body is.
    pub(super) fn is_in_block(&self) -> bool {
        self.plpgsql.depth > 0 || self.transaction.is_in_block()
    }

    /// Warns of what has no effect where there is no transaction block. Whether there is none.
    pub(super) fn warn_outside_block(&self, what: &str, client: &mut Client) -> bool {
        let outside = !self.is_in_block();
        if outside {
            let message = format!("{what} can only be used in transaction blocks");
            self.notify(client, "WARNING", &SqlError::new("25P01", message));
        }
        outside
    }

    /// Refuses what has to be a transaction by itself where it is not.
    ///
    /// # Errors
    /// 25001.
    pub(super) fn need_by_itself(&mut self, what: &str) -> Result<()> {
        let why = match self.plpgsql.depth {
            0 => self.transaction.set_by_itself(),
            _ => Some("cannot be executed from a function"),
        };
        match why {
            Some(why) => Err(SqlError::new("25001", format!("{what} {why}"))),
            None => Ok(()),
        }
    }

    /// Begins an implicit transaction where there is none. Whether it did: who began it ends it.
    pub(super) fn begin_own(&mut self) -> bool {
        let own = self.transaction.block() == Block::None;
        if own {
            self.transaction.begin(Block::Implicit, &self.context);
        }
        own
    }

    /// Commits an implicit transaction.
    pub(super) async fn end_implicit(&mut self) -> Result<()> {
        if self.transaction.block() != Block::Implicit {
            return Ok(());
        }
        if let Err(error) = self.settle_deferred().await {
            self.settle_held(false);
            return Err(error);
        }
        let options = self.options();
        self.close_transaction_portals();
        let committed = self
            .transaction
            .commit(&self.engine.db, &options, &self.context)
            .await;
        self.settle_held(matches!(committed, Ok(true)));
        self.count_transaction(matches!(committed, Ok(true)));
        committed.map(drop)
    }

    /// Notes that the session waits for its client.
    pub(super) fn idle(&self) {
        self.context.set_state(match self.transaction.status() {
            b'T' => "idle in transaction",
            b'E' => "idle in transaction (aborted)",
            _ => super::context::IDLE,
        });
    }
}
