//! The calls of triggers before a row is changed.

use std::sync::Arc;

use thermocline_engine::{Table, TriggerDef, TriggerEvent};
use thermocline_query::datum::Datum;
use thermocline_values::value::Value;

use super::super::Session;
use super::super::plpgsql::{RowShape, Rows, TriggerCall};
use crate::error::Result;
use crate::typed::value;

/// What a statement does to rows of a table.
pub(super) struct Changed<'a> {
    pub(super) table: &'a Arc<Table>,
    pub(super) shape: &'a RowShape,
    pub(super) event: TriggerEvent,
    /// The columns that an UPDATE names.
    assigned: Option<&'a [usize]>,
}

impl<'a> Changed<'a> {
    pub(super) const fn of(
        table: &'a Arc<Table>,
        shape: &'a RowShape,
        event: TriggerEvent,
        assigned: Option<&'a [usize]>,
    ) -> Self {
        Self {
            table,
            shape,
            event,
            assigned,
        }
    }

    /// The triggers for each row that are called, before or behind, with their places.
    pub(super) fn triggers(&self, before: bool) -> impl Iterator<Item = (usize, &'a TriggerDef)> {
        let (event, assigned) = (self.event, self.assigned);
        let all = self.table.triggers.iter().enumerate();
        all.filter(move |(_, trigger)| {
            trigger.row
                && trigger.before == before
                && trigger.is_for(event)
                && is_of_columns(trigger, event, assigned)
        })
    }

    /// The triggers for the statement that are called, before or behind, with their places.
    pub(super) fn of_statement(
        &self,
        before: bool,
    ) -> impl Iterator<Item = (usize, &'a TriggerDef)> {
        let (event, assigned) = (self.event, self.assigned);
        let all = self.table.triggers.iter().enumerate();
        all.filter(move |(_, trigger)| {
            !trigger.row
                && trigger.before == before
                && trigger.is_for(event)
                && is_of_columns(trigger, event, assigned)
        })
    }

    /// Whether there are such triggers.
    pub(super) fn any(&self, before: bool) -> bool {
        self.triggers(before).next().is_some()
    }

    /// A tuple as the functions of triggers see it.
    pub(super) fn row_of(&self, tuple: &[u8]) -> Result<Vec<Datum>> {
        let places = self.shape.places.iter();
        let value = |place: &usize| {
            let data_type = &self.table.columns[*place].data_type;
            Ok(value::to_query(self.table.value(tuple, *place), data_type)?)
        };
        places.map(value).collect()
    }

    /// Values of a row that is to be stored. What is generated is not computed yet.
    fn row_before(&self, values: &[Value]) -> Result<Vec<Datum>> {
        let places = self.shape.places.iter();
        let value = |place: &usize| {
            let column = &self.table.columns[*place];
            match column.generated {
                true => Ok(Datum::Null),
                false => Ok(value::to_query(values[*place].as_ref(), &column.data_type)?),
            }
        };
        places.map(value).collect()
    }

    fn take(&self, given: &[Datum], values: &mut [Value]) -> Result<()> {
        for (place, given) in self.shape.places.iter().zip(given) {
            values[*place] = value::to_stored(given, &self.table.columns[*place].data_type)?;
        }
        Ok(())
    }
}

/// Whether a trigger is for an UPDATE of these columns.
pub(super) fn is_of_columns(
    trigger: &TriggerDef,
    event: TriggerEvent,
    assigned: Option<&[usize]>,
) -> bool {
    let (TriggerEvent::Update, Some(assigned), false) =
        (event, assigned, trigger.columns.is_empty())
    else {
        return true;
    };
    trigger
        .columns
        .iter()
        .any(|column| assigned.contains(column))
}

impl Session {
    /// Calls the BEFORE triggers for a row, which may change the values that are to be stored;
    /// false where one of them leaves the row out.
    pub(super) async fn call_before_row(
        &mut self,
        changed: &Changed<'_>,
        old: Option<&[u8]>,
        mut new: Option<&mut Vec<Value>>,
    ) -> Result<bool> {
        if !changed.any(true) {
            return Ok(true);
        }
        let db = Arc::clone(&self.engine.db);
        // What foreign keys ask of this statement is not for those within it.
        let transaction = self.transaction.of_block(&db);
        let held = transaction.map(|transaction| transaction.hold_expected());
        let called = self.call_each_before_row(changed, old, &mut new).await;
        if let (Some(held), Some(transaction)) = (held, self.transaction.of_block(&db)) {
            transaction.resume_expected(held);
        }
        called
    }

    async fn call_each_before_row(
        &mut self,
        changed: &Changed<'_>,
        old: Option<&[u8]>,
        new: &mut Option<&mut Vec<Value>>,
    ) -> Result<bool> {
        let old = old.map(|tuple| changed.row_of(tuple)).transpose()?;
        for (_, trigger) in changed.triggers(true) {
            let row = match new {
                Some(values) => Some(changed.row_before(values)?),
                None => None,
            };
            let call = TriggerCall {
                table: changed.table,
                trigger,
                event: changed.event,
                rows: Some(Rows {
                    shape: changed.shape,
                    old: old.as_deref(),
                    new: row.as_deref(),
                }),
            };
            if trigger.condition.is_some() && !self.meets_condition(call).await? {
                continue;
            }
            let given = self.call_trigger(call).await?;
            self.is_not_redefined(changed.table)?;
            let Some(given) = given else {
                return Ok(false);
            };
            if let Some(values) = new {
                changed.take(&given, values)?;
            }
        }
        Ok(true)
    }
}
