//! UPDATE and DELETE whose rows a query finds (`short/update.rs`): the query runs on the
//! analytical side, then each row is changed by its key. All of it is one transaction, and the
//! query does not see what is changed.
//!
//! A transaction with one snapshot is refused (40001) where somebody has changed such a row
//! since. Under READ COMMITTED the rows are locked first and the query is asked again, until it
//! finds none that is not locked: what is stored was computed from rows as they are.

use crate::typed::held;
use std::collections::HashSet;
use std::sync::Arc;

use thermocline_engine::{Charge, ChargeKind, give_way};
use thermocline_values::cast::CastContext;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::Session;
use super::run::OUT_OF_MEMORY;
use crate::error::Result;
use crate::expr::{CastPath, Datum};
use crate::output::RowWriter;
use crate::plan::{ByQuery, ReadQuery, ShortPlan};

/// Rows that the query hands on at a time, and changes between two pauses.
const BATCH_ROWS: usize = 256;
/// What a value takes beside its text, in bytes.
const VALUE_BYTES: usize = 48;

impl Session {
    /// Runs the plan; how many rows were changed.
    pub(super) async fn change_by_query(
        &mut self,
        plan: &ByQuery,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let own = self.begin_own();
        let locks = self.transaction.sees_commits_between(&self.context);
        let mut of_found = self.account.nothing(ChargeKind::Result);
        let mut of_locked = self.account.nothing(ChargeKind::Result);
        let mut locked: HashSet<Vec<Value>> = HashSet::new();
        let found = loop {
            of_found.resize(0)?;
            let query = (&plan.query, &plan.targets[..]);
            let once = Some(plan.key_columns);
            let found = self
                .found_by(query, parameters, once, &mut of_found)
                .await?;
            let keys = found.iter().map(|row| &row[..plan.key_columns]);
            let new = keys.filter(|key| locks && !locked.contains(*key));
            of_locked.grow(new.clone().map(bytes_of).sum())?;
            let new: Vec<Vec<Value>> = new.map(<[Value]>::to_vec).collect();
            if new.is_empty() {
                break found;
            }
            let mut nothing = RowWriter::values();
            self.each(
                (&plan.lock, plan.own_parameters),
                &new,
                parameters,
                &mut nothing,
            )
            .await?;
            locked.extend(new);
        };
        let changed = self
            .each(
                (&plan.change, plan.own_parameters),
                &found,
                parameters,
                rows,
            )
            .await?;
        if own {
            self.end_implicit().await?;
        }
        Ok(changed)
    }

    /// The rows that a query finds now, in the types of the table's columns; once each, by so many
    /// columns, where that is said. They are charged before they are kept.
    pub(super) async fn found_by(
        &mut self,
        (query, targets): (&ReadQuery, &[(DataType, String)]),
        parameters: &[Value],
        once: Option<usize>,
        charge: &mut Charge,
    ) -> Result<Vec<Vec<Value>>> {
        let typed = &query.typed;
        let db = Arc::clone(&self.engine.db);
        let catalog = self.transaction.catalog(&db);
        let columns = typed.output_columns();
        let mut paths = Vec::with_capacity(columns.len());
        for (column, (to, _)) in columns.iter().zip(targets) {
            let from = held(column.type_oid, column.type_modifier);
            paths.push(CastPath {
                from: from.unwrap_or(DataType::Text),
                to: *to,
                context: CastContext::Assignment,
            });
        }
        let used = parameters
            .get(..typed.parameters.len())
            .unwrap_or(parameters);
        let mut looked_up = match &query.short {
            Some(plan) => self.looked_up(plan, used).await?,
            None => None,
        };
        let mut stream = match looked_up {
            Some(_) => None,
            None => Some(self.start_analytical(typed, &catalog, used).await?),
        };
        let options = self.options();
        let styles = self.context.styles();
        let mut seen = HashSet::new();
        let mut found: Vec<Vec<Value>> = Vec::new();
        loop {
            let batch = match &mut stream {
                Some(stream) => self.next_values(stream, BATCH_ROWS, &options).await?,
                None => looked_up.take().unwrap_or_default(),
            };
            if batch.is_empty() {
                return Ok(found);
            }
            for given in batch {
                let mut row = Vec::with_capacity(given.len());
                for (value, path) in given.into_iter().zip(&paths) {
                    row.push(path.apply(Datum::Owned(value), &styles)?.into_value());
                }
                // A row that several others match is changed once, as in PostgreSQL.
                if let Some(columns) = once {
                    let key = &row[..columns];
                    if seen.contains(key) {
                        continue;
                    }
                    charge.grow(bytes_of(key))?;
                    seen.insert(key.to_vec());
                }
                charge.grow(bytes_of(&row))?;
                found.push(row);
            }
        }
    }

    /// The rows of a query that indexes lead to; none if they are too many for that.
    pub(super) async fn looked_up(
        &mut self,
        plan: &ShortPlan,
        parameters: &[Value],
    ) -> Result<Option<Vec<Vec<Value>>>> {
        if self.context.settings(|settings| settings.analytical_only()) {
            return Ok(None);
        }
        let (options, styles) = (self.options(), self.context.styles());
        let charge = self.account.nothing(ChargeKind::Result);
        let mut rows = RowWriter::values().charged(charge);
        let ran = self.run_plan(plan, (&options, &styles), parameters, &mut rows, true);
        match ran.await {
            Ok(_) => Ok(Some(rows.take_values())),
            Err(error) if error.takes_long || error.sqlstate == OUT_OF_MEMORY => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a plan for each row, whose values are its parameters behind so many of the statement.
    pub(super) async fn each(
        &mut self,
        (by_key, own_parameters): (&ShortPlan, usize),
        found: &[Vec<Value>],
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let options = self.options();
        let mut given = parameters.to_vec();
        given.resize(own_parameters, Value::Null);
        let styles = self.context.styles();
        let mut count = 0;
        for (number, row) in found.iter().enumerate() {
            if number % BATCH_ROWS == 0 {
                self.check_interrupted(&options)?;
                give_way().await;
            }
            given.truncate(own_parameters);
            given.extend(row.iter().cloned());
            if by_key.fires() {
                let changed = self.change_with_triggers(by_key, &styles, &given, rows);
                count += changed.await?;
                continue;
            }
            self.context.begin_waits();
            let with = (&options, &*styles);
            count += self.run_plan(by_key, with, &given, rows, false).await?;
        }
        Ok(count)
    }
}

/// What values take, in bytes.
pub(crate) fn bytes_of(values: &[Value]) -> u64 {
    let bytes = |value: &Value| match value {
        Value::Text(text) => VALUE_BYTES + text.len(),
        Value::Bytea(bytes) | Value::Other(_, bytes) => VALUE_BYTES + bytes.len(),
        _ => VALUE_BYTES,
    };
    values.iter().map(bytes).sum::<usize>() as u64
}
