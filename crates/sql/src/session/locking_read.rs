//! SELECT … FOR UPDATE of rows that a query finds (`short/locking.rs`), and statements that
//! run before the one they stand in (`short/before.rs`). All of it is one transaction.

use crate::typed::held;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use thermocline_engine::{Charge, ChargeKind};
use thermocline_values::value::Value;

use super::Session;
use super::by_query::bytes_of;
use crate::error::{Result, SqlError};
use crate::exec::Window;
use crate::expr::EvalContext;
use crate::output::{ColumnType, RowWriter};
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
            let own = self.begin_own();
            let mut charge = self.account.nothing(ChargeKind::Result);
            let mut given = parameters.to_vec();
            given.resize(after.own_parameters, Value::Null);
            for (number, before) in after.before.iter().enumerate() {
                let mut found =
                    RowWriter::values().charged(self.account.nothing(ChargeKind::Result));
                let ran = self.run_short(&before.plan, styles, &given, &mut found);
                ran.await.map_err(|error| behind(error, number > 0))?;
                found.check()?;
                let rows_of = found.take_values();
                if before.one_row && rows_of.len() > 1 {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(SqlError::new("21000", message));
                }
                // Once more in the arrays.
                charge.grow(rows_of.iter().map(|row| bytes_of(row)).sum())?;
                let of_column = |(at, column)| arrays::of_column(&rows_of, at, column, styles);
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
        styles: &Styles,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let own = self.begin_own();
        let typed = &plan.query.typed;
        let window = {
            let evaluation = EvalContext {
                parameters,
                now_us: self.context.transaction_us(),
                session: &*self.context,
                styles,
                outer: None,
            };
            Window::of(plan.limit.as_ref(), plan.offset.as_ref(), &evaluation)?
        };
        let asks_again = self.transaction.sees_commits_between(&self.context);
        let used = parameters
            .get(..typed.parameters.len())
            .unwrap_or(parameters);
        let db = Arc::clone(&self.engine.db);
        let catalog = self.transaction.catalog(&db);
        let options = self.options();
        let mut found = Found {
            window,
            rows: Vec::new(),
            of_rows: self.account.nothing(ChargeKind::Result),
            passed: 0,
            locked: HashMap::new(),
            of_locked: self.account.nothing(ChargeKind::Result),
            is_settled: false,
        };
        while !found.is_settled {
            found.rows.clear();
            found.of_rows.resize(0)?;
            (found.passed, found.is_settled) = (0, true);
            let mut stream = self.start_analytical(typed, &catalog, used).await?;
            let mut waiting: Vec<Vec<Value>> = Vec::new();
            let mut of_waiting = self.account.nothing(ChargeKind::Result);
            while !found.is_whole() {
                let mut batch = self.next_values(&mut stream, BATCH_ROWS, &options).await?;
                if batch.is_empty() {
                    break;
                }
                if plan.waits {
                    of_waiting.grow(batch.iter().map(|row| bytes_of(row)).sum())?;
                    waiting.append(&mut batch);
                }
                self.lock_found(plan, batch, parameters, &mut found).await?;
            }
            drop(stream);
            self.lock_found(plan, waiting, parameters, &mut found)
                .await?;
            found.is_settled |= !asks_again;
        }
        let columns = typed.output_columns();
        let shown = columns.len() - plan.key_columns();
        for row in &found.rows {
            rows.begin_row(shown);
            for (value, column) in row.iter().zip(&columns).take(shown) {
                match (column.data_type, value) {
                    (ColumnType::Scalar(data_type), value) => {
                        rows.value(value.as_ref(), &data_type);
                    }
                    (ColumnType::Other(of), Value::Text(text)) => rows.other(text, of)?,
                    (ColumnType::Other(of), value) => match held(of.oid(), column.type_modifier) {
                        Some(data_type) => rows.value(value.as_ref(), &data_type),
                        None => return Err(SqlError::internal("a value of no known type")),
                    },
                }
            }
            rows.end_row();
            rows.check()?;
        }
        if own {
            self.end_implicit().await?;
        }
        Ok(found.rows.len() as u64)
    }

    /// Locks rows, in their order, and keeps those of the window that are locked then.
    async fn lock_found(
        &mut self,
        plan: &LockingRead,
        rows: Vec<Vec<Value>>,
        parameters: &[Value],
        found: &mut Found,
    ) -> Result<()> {
        for row in rows {
            if found.is_whole() {
                break;
            }
            let mut first = row.len() - plan.key_columns();
            let mut is_locked = true;
            for (number, lock) in plan.locks.iter().enumerate() {
                let key = row[first..first + lock.key.len()].to_vec();
                first += lock.key.len();
                let place = (number, key);
                if let Some(known) = found.locked.get(&place) {
                    is_locked &= known;
                    continue;
                }
                found.of_locked.grow(bytes_of(&place.1))?;
                found.is_settled = false;
                let mut nothing = RowWriter::values();
                let by_key = (&lock.plan, plan.own_parameters);
                let one = std::slice::from_ref(&place.1);
                let count = self.each(by_key, one, parameters, &mut nothing).await?;
                is_locked &= count > 0;
                found.locked.insert(place, count > 0);
            }
            if !is_locked {
                continue;
            }
            if found.passed < found.window.offset {
                found.passed += 1;
                continue;
            }
            found.of_rows.grow(bytes_of(&row))?;
            found.rows.push(row);
        }
        Ok(())
    }
}

/// What a query has found and is locked.
struct Found {
    window: Window,
    rows: Vec<Vec<Value>>,
    of_rows: Charge,
    /// Locked rows before the window.
    passed: u64,
    /// Whether a row is locked or passed over, by table and key.
    locked: HashMap<(usize, Vec<Value>), bool>,
    of_locked: Charge,
    /// Nothing has been locked since the query was asked.
    is_settled: bool,
}

impl Found {
    fn is_whole(&self) -> bool {
        self.rows.len() as u64 >= self.window.limit
    }
}

/// An error of a statement, behind others or not: what they have done must not be done again, so
/// it cannot be told to whoever would run all of it once more.
fn behind(error: SqlError, is_behind: bool) -> SqlError {
    if is_behind && error.stale_plan {
        let message = "could not serialize access: a table was redefined meanwhile";
        return SqlError::new("40001", message);
    }
    if is_behind && error.wait.is_some() {
        return SqlError::unsupported(
            "a function that waits, such as pg_sleep, is not supported behind a change of rows",
            "Call it in a statement of its own.",
        );
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
