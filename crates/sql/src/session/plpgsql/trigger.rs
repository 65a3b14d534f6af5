//! Calls of the functions of triggers, and the conditions of triggers, which are computed as an
//! expression of a body over `old` and `new`.

use std::sync::Arc;

use thermocline_engine::{Table, TriggerDef, TriggerEvent};
use thermocline_query::analyze::SqlFunction;
use thermocline_query::datum::Datum;
use thermocline_query::tree::Column;
use thermocline_query::types::array::Array;
use thermocline_query::types::ids;

use super::Entry;
use super::compiled::Compiled;
use super::frame::{Held, Row, Typed};
use super::function::Kept;
use crate::error::{Result, SqlError};
use crate::plpgsql::{Signature, TEXTS};
use crate::session::charges::footprint;
use crate::session::{SendFuture, Session};

/// The columns of a table's rows as the functions of its triggers see them.
#[derive(Debug, Clone)]
pub(in crate::session) struct RowShape {
    pub(in crate::session) columns: Arc<[Column]>,
    /// Their places in the table.
    pub(in crate::session) places: Arc<[usize]>,
}

impl RowShape {
    pub(in crate::session) fn of(table: &Table) -> Self {
        let column = |def: &thermocline_engine::ColumnDef| Column {
            name: Arc::from(def.name.as_str()),
            oid: def.type_oid(),
            modifier: def.type_modifier(),
            origin: None,
        };
        Self {
            columns: table.live_columns().map(|(_, def)| column(def)).collect(),
            places: table.live_columns().map(|(place, _)| place).collect(),
        }
    }
}

/// The rows of a call for a row: each may be missing.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct Rows<'a> {
    pub(in crate::session) shape: &'a RowShape,
    pub(in crate::session) old: Option<&'a [Datum]>,
    pub(in crate::session) new: Option<&'a [Datum]>,
}

/// A call of a trigger's function.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct TriggerCall<'a> {
    pub(in crate::session) table: &'a Table,
    pub(in crate::session) trigger: &'a TriggerDef,
    pub(in crate::session) event: TriggerEvent,
    /// None: it is called for the statement.
    pub(in crate::session) rows: Option<Rows<'a>>,
}

impl TriggerCall<'_> {
    /// The variables that it begins with, as `crate::plpgsql` numbers them.
    fn variables(&self) -> Vec<Held> {
        let row = |values: fn(&Rows<'_>) -> Option<Vec<Datum>>| {
            Held::Row(match &self.rows {
                None => Row::default(),
                Some(rows) => Row {
                    oid: 0,
                    columns: Some(Arc::clone(&rows.shape.columns)),
                    values: values(rows),
                },
            })
        };
        let value = |oid, value| Held::Value {
            oid,
            modifier: -1,
            value,
        };
        let name = |text: &str| value(ids::NAME, Datum::text(text));
        let text = |text: &str| value(ids::TEXT, Datum::text(text));
        let arguments = &self.trigger.arguments;
        let count = i32::try_from(arguments.len()).unwrap_or(i32::MAX);
        let mut all = Array::of(
            ids::TEXT,
            arguments
                .iter()
                .map(|of| Datum::text(of.as_str()))
                .collect(),
        );
        // Its first element is that of 0.
        all.dimensions
            .iter_mut()
            .for_each(|dimension| dimension.1 = 0);
        vec![
            row(|rows| rows.new.map(<[Datum]>::to_vec)),
            row(|rows| rows.old.map(<[Datum]>::to_vec)),
            name(&self.trigger.name),
            text(if self.trigger.before {
                "BEFORE"
            } else {
                "AFTER"
            }),
            text(if self.trigger.row { "ROW" } else { "STATEMENT" }),
            text(self.event.name()),
            value(ids::OID, Datum::Oid(self.table.oid)),
            name(&self.table.name),
            name(&self.table.name),
            name(&self.table.schema),
            value(ids::INT4, Datum::Int4(count)),
            value(TEXTS, Datum::Array(Arc::new(all))),
        ]
    }

    /// What a function has given as a row of the table; none for NULL.
    fn row_given(&self, returned: Option<Typed>) -> Result<Option<Vec<Datum>>> {
        let Some(rows) = &self.rows else {
            return Ok(None);
        };
        let record = match returned.map(|typed| typed.value) {
            None | Some(Datum::Null) => return Ok(None),
            Some(Datum::Record(record)) => record,
            Some(_) => {
                return Err(SqlError::new(
                    "42804",
                    "cannot return non-composite value from function returning composite type",
                ));
            }
        };
        let columns = &rows.shape.columns;
        if record.values.len() != columns.len() {
            let detail = format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                record.values.len(),
                columns.len()
            );
            return Err(other_row().with_detail(detail));
        }
        for (at, column) in columns.iter().enumerate() {
            let modifier = record.modifiers.as_ref().map_or(-1, |all| all[at]);
            let is_same = record.types[at] == column.oid
                && (column.modifier < 0 || modifier == column.modifier);
            if !is_same {
                let shown = |oid, modifier| thermocline_query::types::format_type(oid, modifier);
                let detail = format!(
                    "Returned type {} does not match expected type {} in column {}.",
                    shown(record.types[at], modifier),
                    shown(column.oid, column.modifier),
                    at + 1
                );
                return Err(other_row().with_detail(detail));
            }
        }
        Ok(Some(record.values.clone()))
    }
}

#[cold]
fn other_row() -> SqlError {
    let message = "returned row structure does not match the structure of the triggering table";
    SqlError::new("42804", message)
}

impl Session {
    /// Calls a trigger's function; the row that it gives, none for NULL and for a call for the
    /// statement.
    pub(in crate::session) fn call_trigger<'a>(
        &'a mut self,
        call: TriggerCall<'a>,
    ) -> SendFuture<'a, Result<Option<Vec<Datum>>>> {
        Box::pin(async move {
            let function = self.function_of(call.trigger)?;
            let compiled = self.function(&function, call.table.oid).await?;
            let entry = Entry::Held(call.variables());
            let shape = (Arc::from([]), false);
            self.context.trigger_depth(1);
            let called = self.call_compiled(&compiled, entry, shape).await;
            self.context.trigger_depth(-1);
            call.row_given(called?.returned).map_err(|error| {
                let name = &compiled.name;
                error.with_context(format!("PL/pgSQL function {name} during function exit"))
            })
        })
    }

    /// Whether a trigger's condition is true, if it has one.
    pub(in crate::session) fn meets_condition<'a>(
        &'a mut self,
        call: TriggerCall<'a>,
    ) -> SendFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Some(condition) = &call.trigger.condition else {
                return Ok(true);
            };
            let compiled = self.condition(call.trigger, call.table, condition).await?;
            let entry = Entry::Held(call.variables());
            let shape = (Arc::from([]), false);
            let called = self.call_compiled(&compiled, entry, shape).await;
            let given = called.map_err(|mut error| {
                // It stands in no function.
                error.context = None;
                error
            })?;
            let value = given.returned.map(|typed| typed.value);
            Ok(matches!(value, Some(Datum::Bool(true))))
        })
    }

    fn function_of(&self, trigger: &TriggerDef) -> Result<SqlFunction> {
        let catalog = self.transaction.catalog(&self.engine.db);
        let def = catalog.functions.get(&trigger.function);
        let def = def.ok_or_else(|| SqlError::internal("a trigger without its function"))?;
        Ok(crate::analysis::called(def))
    }

    /// A trigger's condition as a body, read now or before.
    async fn condition(
        &mut self,
        trigger: &TriggerDef,
        table: &Table,
        condition: &str,
    ) -> Result<Arc<Compiled>> {
        let key = (trigger.oid, table.oid);
        if let Some(compiled) = self.known_function(key) {
            return Ok(compiled);
        }
        let catalog = self.transaction.catalog(&self.engine.db);
        let charge = self.charge_kept(footprint(condition)).await?;
        let signature = Signature {
            of_trigger: true,
            ..Signature::default()
        };
        let body = format!("BEGIN RETURN ({condition}); END");
        let compiled = Arc::new(Compiled::new(self, &trigger.name, &body, &signature)?);
        let place = self.engine.shelf.place(Arc::clone(&compiled), charge);
        self.keep_function(key, Kept { catalog, place });
        Ok(compiled)
    }
}
