//! SELECT … FOR UPDATE of rows that a query finds (`bind/locking_read.rs`), and statements that
//! run before the one they stand in (`bind/before.rs`). All of it is one transaction.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use thermocline_engine::ChargeKind;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::Session;
use super::by_query::bytes_of;
use super::transaction::Block;
use crate::error::{Result, SqlError};
use crate::output::{ColumnType, RowWriter};
use crate::parse::statement::IsolationLevel;
use crate::plan::{After, LockingRead};
use crate::styles::Styles;
use crate::typed::arrays;

/// Rows that the query hands on at a time.
const BATCH_ROWS: usize = 256;

impl Session {
    /// Runs the statements before it, then the statement itself; how many rows that had. A future
    /// of its own: each of them runs as any other.
    pub(super) fn run_after<'s>(
        &'s mut self,
        after: &'s After,
        styles: &'s Styles,
        parameters: &'s [Value],
        rows: &'s mut RowWriter,
    ) -> Pin<Box<dyn Future<Output = Result<u64>> + Send + 's>> {
        Box::pin(async move {
            let own = self.transaction.block() == Block::None;
            if own {
                self.transaction.begin(Block::Implicit, &self.context);
            }
            let mut charge = self.account.nothing(ChargeKind::Result);
            let mut given = parameters.to_vec();
            given.resize(after.own_parameters, Value::Null);
            for (number, before) in after.before.iter().enumerate() {
                let mut found =
                    RowWriter::values().charged(self.account.nothing(ChargeKind::Result));
                let ran = self.run_short(&before.plan, styles, &given, &mut found);
                ran.await.map_err(|error| behind(error, number > 0))?;
                let found = found.take_values();
                // As they are, and again in the arrays.
                let bytes: u64 = found.iter().map(|row| bytes_of(row)).sum();
                charge.grow(2 * bytes)?;
                let of_column = |(at, column)| arrays::of_column(&found, at, column, styles);
                let columns = before.columns.iter().enumerate().map(of_column);
                given.extend(columns.collect::<Result<Vec<Value>>>()?);
            }
            let ran = self.run_short(&after.plan, styles, &given, rows).await;
            let count = ran.map_err(|error| behind(error, true))?;
            if own {
                self.end_implicit().await?;
            }
            Ok(count)
        })
    }

    /// Finds, locks and writes rows. Under READ COMMITTED the query is asked again, until it finds
    /// none that is not locked.
    pub(super) async fn run_locking_read(
        &mut self,
        plan: &LockingRead,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let own = self.transaction.block() == Block::None;
        if own {
            self.transaction.begin(Block::Implicit, &self.context);
        }
        let Some(typed) = &plan.query.typed else {
            return Err(SqlError::internal("a row lock by a query without its tree"));
        };
        let asks_again = matches!(
            self.transaction.isolation(&self.context),
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted
        );
        let keys: usize = plan.locks.iter().map(|lock| lock.key.len()).sum();
        let columns = typed.output_columns();
        let shown = columns.len() - keys;
        let used = parameters
            .get(..typed.parameters.len())
            .unwrap_or(parameters);
        let db = Arc::clone(&self.engine.db);
        let catalog = self.transaction.catalog(&db);
        let options = self.options();
        let mut of_found = self.account.nothing(ChargeKind::Result);
        let mut of_locked = self.account.nothing(ChargeKind::Result);
        // Whether a row is locked or passed over, by table and key.
        let mut locked: HashMap<(usize, Vec<Value>), bool> = HashMap::new();
        let found = loop {
            of_found.resize(0)?;
            let mut found: Vec<Vec<Value>> = Vec::new();
            let mut stream = self.start_analytical(typed, &catalog, used).await?;
            loop {
                let next = stream.next_values(BATCH_ROWS);
                let mut batch = db.interruptible(&options, next).await??;
                if batch.is_empty() {
                    break;
                }
                of_found.grow(batch.iter().map(|row| bytes_of(row)).sum())?;
                found.append(&mut batch);
            }
            drop(stream);
            let mut is_settled = true;
            for row in &found {
                let mut first = shown;
                for (number, lock) in plan.locks.iter().enumerate() {
                    let key = &row[first..first + lock.key.len()];
                    first += lock.key.len();
                    let place = (number, key.to_vec());
                    if locked.contains_key(&place) {
                        continue;
                    }
                    of_locked.grow(bytes_of(key))?;
                    is_settled = false;
                    let mut nothing = RowWriter::values();
                    let by_key = (&lock.plan, plan.own_parameters);
                    let one = std::slice::from_ref(&place.1);
                    let count = self.each(by_key, one, parameters, &mut nothing).await?;
                    locked.insert(place, count > 0);
                }
            }
            if is_settled || !asks_again {
                break found;
            }
        };
        let mut count = 0;
        for row in found {
            let mut first = shown;
            let is_locked = plan.locks.iter().enumerate().all(|(number, lock)| {
                let key = row[first..first + lock.key.len()].to_vec();
                first += lock.key.len();
                locked.get(&(number, key)) == Some(&true)
            });
            if !is_locked {
                continue;
            }
            rows.begin_row(shown);
            for (value, column) in row.iter().zip(&columns).take(shown) {
                match (column.data_type, value) {
                    (ColumnType::Scalar(data_type), value) => {
                        rows.value(value.as_ref(), &data_type);
                    }
                    (ColumnType::Other(of), Value::Text(text)) => rows.other(text, of)?,
                    (ColumnType::Other(of), value) => {
                        match DataType::from_oid(of.oid(), column.type_modifier) {
                            Some(data_type) => rows.value(value.as_ref(), &data_type),
                            None => return Err(SqlError::internal("a value of no known type")),
                        }
                    }
                }
            }
            rows.end_row();
            rows.check()?;
            count += 1;
        }
        if own {
            self.end_implicit().await?;
        }
        Ok(count)
    }
}

/// An error of a statement, behind others or not: what they have done must not be done again, so
/// it cannot be told to whoever would run all of it once more.
fn behind(error: SqlError, is_behind: bool) -> SqlError {
    if is_behind && error.stale_plan {
        let message = "could not serialize access: a table was redefined meanwhile";
        return SqlError::new("40001", message);
    }
    if is_behind && error.awaited_session.is_some() {
        let message = "waiting for a session's end behind a change is not supported";
        return SqlError::unsupported(message);
    }
    error
}

#[cfg(test)]
mod tests {
    use thermocline_engine::Error;

    use super::*;

    #[test]
    fn what_is_done_is_not_done_again() {
        let stale = || SqlError::from(Error::StalePlan);
        assert!(behind(stale(), false).stale_plan);
        let told = behind(stale(), true);
        assert!(!told.stale_plan);
        assert_eq!(told.sqlstate, "40001");
    }
}
