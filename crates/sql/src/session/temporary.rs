//! The end of what is temporary: at a commit that empties or drops a table, by DISCARD, when the
//! session ends, and after a crash, when nobody's session is there any more.
//!
//! ON COMMIT is done within the transaction that commits. While a session has such a table, each
//! of its statements is in a transaction that the session itself commits.

use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use thermocline_engine::ddl::Change;
use thermocline_engine::{Database, Isolation, RunOptions, Transaction, block_on};

use super::Session;
use super::transaction::TransactionState;
use crate::ddl::{drop_schema_with_all, drop_tables_with_all};
use crate::error::{Result, SqlError};
use crate::parse::statement::OnCommit;
use crate::temporary;

/// Nobody else has business with the tables of a session that ends: what is locked for longer
/// stays until the next start.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl TransactionState {
    /// Commits, and does before what is to be done ON COMMIT.
    pub(super) async fn commit_with_tables(
        &mut self,
        mut transaction: Transaction,
        db: &Arc<Database>,
        options: &RunOptions,
    ) -> Result<()> {
        if self.on_commit.is_empty() {
            return Ok(db.commit(transaction, options).await?);
        }
        if let Err(error) = settle_tables(&self.on_commit, &mut transaction, db, options).await {
            db.rollback(transaction).await;
            return Err(error);
        }
        db.commit(transaction, options).await?;
        let catalog = db.catalog();
        self.on_commit
            .retain(|(table, _)| catalog.table(*table).is_some());
        Ok(())
    }
}

/// Empties the tables that are not empty, and drops those that are to be dropped.
async fn settle_tables(
    on_commit: &[(u32, OnCommit)],
    transaction: &mut Transaction,
    db: &Arc<Database>,
    options: &RunOptions,
) -> Result<()> {
    let catalog = transaction.catalog();
    let of = |what: OnCommit| {
        let tables = on_commit.iter().filter(move |(_, then)| *then == what);
        tables.filter_map(|(oid, _)| catalog.table(*oid))
    };
    let dropped: Vec<u32> = of(OnCommit::Drop).map(|table| table.oid).collect();
    let emptied: Vec<u32> = of(OnCommit::DeleteRows)
        .filter(|table| db.row_estimate(table) > 0)
        .map(|table| table.oid)
        .collect();
    if !dropped.is_empty() {
        drop_tables_with_all(db, transaction, options, &dropped).await?;
    }
    if !emptied.is_empty() {
        let change = Change::Truncate {
            tables: emptied,
            restart_identity: false,
        };
        db.ddl(transaction, options, change).await?;
    }
    Ok(())
}

impl Session {
    /// DISCARD TEMP: drops what is temporary, in the session's transaction if there is one.
    pub(super) async fn discard_temporary(&mut self) -> Result<()> {
        let db = Arc::clone(&self.engine.db);
        let catalog = self.transaction.catalog(&db);
        let schema = self.context.temporary_schema();
        let Some(schema) = schema.filter(|schema| catalog.schema(schema).is_some()) else {
            return Ok(());
        };
        let own = self.begin_own();
        let options = self.options();
        let transaction = self.transaction.of_block(&db);
        let transaction =
            transaction.ok_or_else(|| SqlError::internal("a block without a transaction"))?;
        drop_schema_with_all(&db, transaction, &options, &schema).await?;
        if own {
            self.end_implicit().await?;
        }
        Ok(())
    }

    /// Drops what is temporary, in a transaction of its own, whatever ends the session.
    pub(super) async fn leave_nothing_temporary(&self) {
        let Some(schema) = self.context.temporary_schema() else {
            return;
        };
        if !self.context.has_temporary() {
            return;
        }
        if let Err(error) = drop_alone(&self.engine.db, &schema).await {
            tracing::warn!(
                user = self.context.user,
                process_id = self.context.process_id,
                "{schema} was not dropped: {}",
                error.message
            );
        }
    }
}

/// Nobody waits for it: what a crash brings back the next start drops.
async fn drop_alone(db: &Arc<Database>, schema: &str) -> Result<()> {
    let options = RunOptions {
        synchronous_commit: false,
        lock_timeout: Some(LOCK_TIMEOUT),
        ..RunOptions::new()
    };
    let mut transaction = db.begin(Isolation::ReadCommitted, false);
    match drop_schema_with_all(db, &mut transaction, &options, schema).await {
        Ok(()) => Ok(db.commit(transaction, &options).await?),
        Err(error) => {
            db.rollback(transaction).await;
            Err(error)
        }
    }
}

/// The largest number that a temporary schema has.
pub(super) fn last_number(db: &Database) -> u32 {
    let catalog = db.catalog();
    let names = catalog.schemas.iter().map(|schema| &schema.name);
    names
        .filter_map(|name| temporary::number_of(name))
        .max()
        .unwrap_or(0)
}

/// Drops the temporary schemas of sessions that a crash has ended. Not at once: it takes all
/// partitions, for which a start does not wait. No session meets them, since they keep their
/// numbers.
pub(super) fn drop_what_is_left(db: &Arc<Database>) {
    let catalog = db.catalog();
    let names = catalog.schemas.iter().map(|schema| &schema.name);
    let left: Vec<String> = names
        .filter(|name| temporary::is_temporary(name))
        .cloned()
        .collect();
    if left.is_empty() {
        return;
    }
    let db = Arc::clone(db);
    let thread = Builder::new().name("drop-temporary".to_owned());
    let spawned = thread.spawn(move || {
        for schema in &left {
            if let Err(error) = block_on(drop_alone(&db, schema)) {
                tracing::warn!(
                    "{schema} of an earlier run was not dropped: {}",
                    error.message
                );
            }
        }
    });
    if let Err(error) = spawned {
        tracing::warn!("temporary tables of an earlier run were not dropped: {error}");
    }
}
