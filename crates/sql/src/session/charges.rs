//! What a session charges to its account before it takes it: itself, the texts it parses,
//! prepared statements, values of parameters. What is small is in the charge of the session
//! itself.

use std::sync::Arc;

use thermocline_engine::{Account, Charge, ChargeKind, Database};

use super::Session;
use super::prepared::{Kept, Prepared};
use crate::error::{Result, SqlError};
use crate::parse;

/// A session with its buffers, caches and small statements, in bytes.
const AT_REST_BYTES: u64 = 52 << 10;
/// Texts up to here are parsed without a charge of their own, in bytes.
const SMALL_TEXT_BYTES: usize = 2 << 10;
/// A charge up to here is for memory that need not be made first, in bytes.
const SMALL_CHARGE_BYTES: u64 = 64 << 10;
/// What the plan of a prepared statement takes beside its tree, in bytes.
const PLAN_BYTES: u64 = 8 << 10;
/// Values of parameters are in the message, decoded, and bound.
const PARAMETER_COPIES: u64 = 3;
/// A value of a parameter beside its bytes.
const PARAMETER_BYTES: u64 = 64;

/// What a text takes parsed and bound.
pub(super) fn footprint(sql: &str) -> u64 {
    parse::footprint(sql) + PLAN_BYTES
}

/// The account of a new session, with the session charged.
pub(super) fn at_rest(db: &Database) -> Result<(Account, Charge)> {
    let account = db.clients().open();
    let charge = account
        .charge(ChargeKind::Session, AT_REST_BYTES)
        .map_err(|_| {
            SqlError::new("53300", "sorry, there is no memory for one more client")
                .with_hint("Close idle connections, or raise memory_limit.")
        })?;
    Ok((account, charge))
}

impl Session {
    /// What parsing and running `sql` once will take; waits for it.
    pub(super) async fn charge_text(&self, sql: &str) -> Result<Option<Charge>> {
        if sql.len() <= SMALL_TEXT_BYTES {
            return Ok(None);
        }
        let charge = self.charge(ChargeKind::Statement, parse::footprint(sql));
        charge.await.map(Some)
    }

    /// What a prepared statement will hold.
    pub(super) async fn charge_prepared(&self, sql: &str) -> Result<Charge> {
        self.charge(ChargeKind::Plan, footprint(sql)).await
    }

    /// What something kept will hold.
    pub(super) async fn charge_kept(&self, bytes: u64) -> Result<Charge> {
        self.charge(ChargeKind::Plan, bytes).await
    }

    /// The prepared statement of this name; parsed again if it has left memory.
    ///
    /// # Errors
    /// 26000 for an unknown one; 53200 without memory for it.
    pub(super) async fn prepared(&self, name: &str) -> Result<Arc<Prepared>> {
        match self.statements.get(name)? {
            Kept::Here(prepared) => Ok(prepared),
            Kept::Left(named) => {
                let charge = self.charge_prepared(named.text()).await?;
                named.remake(charge)
            }
        }
    }

    /// What the values of parameters will take.
    pub(super) async fn charge_parameters(&self, values: &[Option<&[u8]>]) -> Result<Charge> {
        let bytes: usize = values.iter().flatten().map(|value| value.len()).sum();
        let bytes = bytes as u64 * PARAMETER_COPIES + values.len() as u64 * PARAMETER_BYTES;
        self.charge(ChargeKind::Parameters, bytes).await
    }

    async fn charge(&self, kind: ChargeKind, bytes: u64) -> Result<Charge> {
        let mut charge = self.account.nothing(kind);
        if bytes <= SMALL_CHARGE_BYTES && charge.grow(bytes).is_ok() {
            return Ok(charge);
        }
        let db = Arc::clone(&self.engine.db);
        db.charge_waiting(&mut charge, bytes, &self.options())
            .await?;
        Ok(charge)
    }
}
