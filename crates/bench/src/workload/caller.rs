//! One caller: in this process it calls the engine's procedures, over the wire it has a
//! connection and its prepared statements.
//!
//! A transaction that another one stood in the way of (40001, 40P01) is rolled back and
//! tried again, as a client has to, after a short random wait that grows. How often is counted.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use thermocline_engine::{Database, RunOptions};
use tokio_postgres::Client;

use super::{Ended, Level, Settings, Workload};
use crate::{Result, connect};

/// An operation that was tried so often will not succeed.
const RETRIES_MAX: u64 = 10_000;
/// The longest wait before the first of them, in microseconds; ...
const WAIT_US: u64 = 500;
/// ... it is doubled so often at most.
const WAIT_DOUBLINGS: u64 = 6;

/// Carries out operations.
#[allow(async_fn_in_trait)]
pub(super) trait Caller<O> {
    /// Carries out one: how it ended, and how often it was tried again.
    async fn run(&mut self, operation: &O) -> Result<(Ended, u64)>;
    /// Waits, and lets others go on.
    async fn rest(&self, time: Duration) -> Result<()>;
}

/// In this process.
pub(super) struct EngineCaller<'a, W> {
    pub workload: &'a W,
    pub db: &'a Arc<Database>,
    pub options: RunOptions,
}

impl<W: Workload> Caller<W::Operation> for EngineCaller<'_, W> {
    async fn run(&mut self, operation: &W::Operation) -> Result<(Ended, u64)> {
        let ended = self.workload.call(self.db, &self.options, operation).await;
        match ended {
            Ok(ended) => Ok((ended, 0)),
            Err(error) => match (error.downcast_ref::<thermocline_engine::Error>())
                .and_then(|error| self.workload.expected(operation, error.sqlstate()))
            {
                Some(name) => Ok((Ended::Expected(name), 0)),
                None => Err(format!("{operation:?}: {error}").into()),
            },
        }
    }

    async fn rest(&self, time: Duration) -> Result<()> {
        Ok(self.db.wait_for(&self.options, time).await?)
    }
}

/// Over the wire.
pub(super) struct WireCaller<'a, W: Workload> {
    workload: &'a W,
    connection: Client,
    statements: W::Statements,
    /// For waits only: what is drawn does not depend on them.
    random: StdRng,
}

impl<'a, W: Workload> WireCaller<'a, W> {
    pub async fn connect(
        workload: &'a W,
        settings: &Settings,
        url: &str,
        number: usize,
    ) -> Result<Self> {
        let connection = connect(url).await?;
        set(
            &connection,
            settings.isolation,
            settings.asynchronous_commit,
        )
        .await?;
        Ok(WireCaller {
            statements: workload.prepare(&connection).await?,
            workload,
            connection,
            random: StdRng::seed_from_u64(!settings.seed ^ number as u64),
        })
    }
}

/// Sets how transactions are kept apart, and whether commits wait.
async fn set(connection: &Client, level: Level, asynchronous: bool) -> Result<()> {
    let commit = if asynchronous { "off" } else { "on" };
    connection
        .batch_execute(&format!(
            "SET synchronous_commit = {commit};
             SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {}",
            level.sql()
        ))
        .await?;
    Ok(())
}

impl<W: Workload> Caller<W::Operation> for WireCaller<'_, W> {
    async fn run(&mut self, operation: &W::Operation) -> Result<(Ended, u64)> {
        let mut retries = 0;
        loop {
            let (connection, statements) = (&self.connection, &self.statements);
            let ended = self.workload.execute(connection, statements, operation);
            let error = match ended.await {
                Ok(ended) => return Ok((ended, retries)),
                Err(error) => error,
            };
            let state = (error.downcast_ref::<tokio_postgres::Error>())
                .and_then(|error| Some(error.code()?.code().to_owned()));
            let Some(state) = state else {
                return Err(format!("{operation:?}: {error}").into());
            };
            self.connection.batch_execute("ROLLBACK").await?;
            if let Some(name) = self.workload.expected(operation, &state) {
                return Ok((Ended::Expected(name), retries));
            }
            let conflict = matches!(state.as_str(), "40001" | "40P01");
            if !conflict && !self.workload.is_conflict(&state) || retries >= RETRIES_MAX {
                return Err(format!("{operation:?}: {}", described(&error)).into());
            }
            let longest = WAIT_US << retries.min(WAIT_DOUBLINGS);
            let wait = self.random.random_range(0..=longest);
            tokio::time::sleep(Duration::from_micros(wait)).await;
            retries += 1;
        }
    }

    async fn rest(&self, time: Duration) -> Result<()> {
        tokio::time::sleep(time).await;
        Ok(())
    }
}

/// The server's own words, which the error itself keeps to itself.
pub(super) fn described(error: &crate::Error) -> String {
    let server = error.downcast_ref::<tokio_postgres::Error>();
    match server.and_then(|error| error.as_db_error()) {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => error.to_string(),
    }
}
