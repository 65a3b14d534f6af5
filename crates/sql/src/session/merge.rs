//! MERGE (`short/merge.rs`): the query runs on the analytical side, then each of its rows is
//! inserted, changed or deleted as the action that is for it says. All of it is one transaction, and
//! the query does not see what is changed. Under READ COMMITTED the rows that match are locked
//! first and the query is asked again, as for an UPDATE by query.

use std::collections::HashSet;

use thermocline_engine::ChargeKind;
use thermocline_values::value::Value;

use super::Session;
use super::by_query::bytes_of;
use crate::error::{Result, SqlError};
use crate::output::RowWriter;
use crate::plan::MergePlan;

impl Session {
    /// Runs the plan; how many rows were inserted, changed or deleted.
    pub(super) async fn merge(&mut self, plan: &MergePlan, parameters: &[Value]) -> Result<u64> {
        let own = self.begin_own();
        let locks = self.transaction.sees_commits_between(&self.context);
        let mut of_found = self.account.nothing(ChargeKind::Result);
        let mut of_keys = self.account.nothing(ChargeKind::Result);
        let mut nothing = RowWriter::values();
        let mut locked: HashSet<Vec<Value>> = HashSet::new();
        let found = loop {
            of_found.resize(0)?;
            let query = (&plan.query, &plan.targets[..]);
            let found = self
                .found_by(query, parameters, None, &mut of_found)
                .await?;
            let changes = found.iter().filter(|row| {
                let action = action_of(plan, row);
                locks && action.is_some_and(|action| plan.changes_row(action))
            });
            let keys = changes.map(|row| &row[..plan.key_columns]);
            let new: HashSet<&[Value]> = keys.filter(|key| !locked.contains(*key)).collect();
            of_keys.grow(new.iter().map(|key| bytes_of(key)).sum())?;
            let new: Vec<Vec<Value>> = new.into_iter().map(<[Value]>::to_vec).collect();
            if new.is_empty() {
                break found;
            }
            let lock = (&plan.lock, plan.own_parameters);
            self.each(lock, &new, parameters, &mut nothing).await?;
            locked.extend(new);
        };
        let mut changed: HashSet<&[Value]> = HashSet::new();
        let mut count = 0;
        // Rows one after the other that the same is done with are done together.
        for rows in found.chunk_by(|one, next| action_of(plan, one) == action_of(plan, next)) {
            let action = rows.first().and_then(|row| action_of(plan, row));
            let Some(action) = action else { continue };
            let Some(Some(done)) = plan.actions.get(action) else {
                continue;
            };
            if plan.changes_row(action) {
                for row in rows {
                    let key = &row[..plan.key_columns];
                    of_keys.grow(bytes_of(key))?;
                    if !changed.insert(key) {
                        return Err(twice());
                    }
                }
            }
            let done = (done, plan.own_parameters);
            count += self.each(done, rows, parameters, &mut nothing).await?;
        }
        if own {
            self.end_implicit().await?;
        }
        Ok(count)
    }
}

/// The action that is for a row of the query.
fn action_of(plan: &MergePlan, row: &[Value]) -> Option<usize> {
    match row.get(plan.key_columns) {
        Some(Value::Integer(action)) => usize::try_from(*action).ok(),
        _ => None,
    }
}

#[cold]
fn twice() -> SqlError {
    SqlError::new("21000", "MERGE command cannot affect row a second time")
        .with_hint("Ensure that not more than one source row matches any one target row.")
}
