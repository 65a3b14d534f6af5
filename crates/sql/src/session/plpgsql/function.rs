//! Calls of functions that are made before a statement (`thermocline_query::analyze::CallBefore`):
//! what they give goes into the statement as parameters behind its own.

use std::collections::HashMap;
use std::sync::Arc;

use thermocline_engine::{Catalog, Charge, ChargeKind};
use thermocline_query::analyze::{CallBefore, SqlFunction};
use thermocline_query::datum::{Datum, Record};
use thermocline_query::evaluate::{Evaluator, NoRow};
use thermocline_query::size;
use thermocline_query::tree::{Column, Expr};
use thermocline_query::types::array::Array;
use thermocline_query::types::domain::base;
use thermocline_query::types::{array_of, format_type};
use thermocline_values::value::Value;

use super::Entry;
use super::compiled::Compiled;
use super::frame::{Frame, Typed};
use super::value::as_parameter;
use super::within::Within;
use crate::analysis::{called, composite};
use crate::error::{Result, SqlError};
use crate::one_row::StatementEnvironment;
use crate::output::RowWriter;
use crate::parse::Query;
use crate::plpgsql::Signature;
use crate::session::charges::footprint;
use crate::session::prepared::Planned;
use crate::session::run::Answer;
use crate::session::shelf::Place;
use crate::session::{Call, SendFuture, Session};
use crate::typed::arguments_of;

/// The calls of a statement.
#[derive(Debug)]
pub(in crate::session) struct CallsBefore {
    calls: Vec<CallBefore>,
    /// The types of the statement's own parameters.
    own: Vec<u32>,
}

impl CallsBefore {
    /// Of a statement with parameters of these types, its own first.
    pub(in crate::session) fn new(calls: Vec<CallBefore>, types: &[u32]) -> Option<Self> {
        let width = |call: &CallBefore| call.rows.as_ref().map_or(1, Vec::len);
        let given: usize = calls.iter().map(width).sum();
        let own = types.get(..types.len().checked_sub(given)?)?.to_vec();
        (!calls.is_empty()).then_some(Self { calls, own })
    }

    fn functions(&self) -> Vec<(u32, u32)> {
        let calls = self.calls.iter();
        calls.map(|call| (call.function.oid, call.result)).collect()
    }

    /// Whether it is one call.
    pub(in crate::session) fn is_one(&self) -> bool {
        self.calls.len() == 1
    }

    /// How many parameters the statement has of its own.
    pub(in crate::session) fn own(&self) -> usize {
        self.own.len()
    }
}

/// What the calls of a statement gave, where DDL came before it could run. It is planned anew,
/// and the calls are not made again.
pub(super) struct Made {
    /// The statement, by its address: it lives until it has run.
    of: usize,
    /// The functions and their results' types.
    calls: Vec<(u32, u32)>,
    values: Vec<Value>,
    _charge: Charge,
}

/// A function that was called, as long as it is what it was.
pub(super) struct Kept {
    pub(super) catalog: Arc<Catalog>,
    pub(super) place: Arc<Place<Compiled>>,
}

impl Made {
    fn is_of(&self, query: &Query, calls: &CallsBefore) -> bool {
        self.of == address_of(query) && self.calls == calls.functions()
    }
}

fn address_of(query: &Query) -> usize {
    std::ptr::from_ref(query) as usize
}

/// The functions that a session has called, by their numbers and that of the table whose trigger
/// called them, 0 for none: the rows of other tables are others.
pub(super) type KeptFunctions = HashMap<(u32, u32), Kept>;

/// Functions that were called while a statement ran, by their numbers, and the catalogs that had them so.
pub(super) type CalledFunctions = HashMap<u32, (Arc<Catalog>, Arc<SqlFunction>)>;

/// How many functions a session keeps.
const KEPT_MAX: usize = 256;

impl Session {
    /// Answers a statement behind its calls. All of it is one transaction.
    pub(in crate::session) fn answer_after<'a>(
        &'a mut self,
        calls: &'a CallsBefore,
        (query, planned): (&'a Query, &'a Planned),
        parameters: &'a [Value],
        rows: &'a mut RowWriter,
    ) -> SendFuture<'a, Result<Answer>> {
        Box::pin(async move {
            let own = self.begin_own();
            let made = match self.plpgsql.made.take() {
                Some(made) if made.is_of(query, calls) => made,
                _ => {
                    // All calls are a part of one statement.
                    let outer = self.plpgsql.deadline;
                    self.plpgsql.deadline = self.options().deadline;
                    let made = self.make(calls, query, parameters).await;
                    self.plpgsql.deadline = outer;
                    made?
                }
            };
            let answer = self.answer_now(query, planned, &made.values, rows).await;
            if matches!(&answer, Err(error) if error.stale_plan) {
                self.plpgsql.made = Some(made);
            }
            let answer = answer?;
            if own {
                self.end_implicit().await?;
            }
            Ok(answer)
        })
    }

    /// Makes the calls of a statement.
    fn make<'a>(
        &'a mut self,
        calls: &'a CallsBefore,
        query: &'a Query,
        parameters: &'a [Value],
    ) -> SendFuture<'a, Result<Made>> {
        Box::pin(async move {
            let mut values = parameters.to_vec();
            let mut charge = self.account.nothing(ChargeKind::Parameters);
            let mut known = {
                let styles = self.context.styles();
                let now = self.context.transaction_us();
                let environment = StatementEnvironment::new(&*self.context, now, &styles);
                arguments_of(&calls.own, parameters, &environment)?
            };
            for call in &calls.calls {
                let given = self.call_before(call, &known).await?;
                for typed in given {
                    charge.grow(2 * size::beyond(&typed.value) as u64)?;
                    known.push(typed.value.clone());
                    values.push(as_parameter(self, typed)?);
                }
            }
            Ok(Made {
                of: address_of(query),
                calls: calls.functions(),
                values,
                _charge: charge,
            })
        })
    }

    /// Makes a call; its value, or an array for each column of its rows.
    async fn call_before(&mut self, call: &CallBefore, known: &[Datum]) -> Result<Vec<Typed>> {
        let arguments = self.arguments_before(call, known).await?;
        let (function, result) = (&call.function, call.result);
        Ok(match &call.rows {
            None => vec![Typed {
                value: self.value_of(function, arguments, result).await?,
                oid: result,
                modifier: -1,
            }],
            Some(columns) => {
                let shown = columns.as_slice().into();
                let rows = self.rows_of(function, arguments, result, &shown).await?;
                let nulls = || vec![vec![Datum::Null; columns.len()]];
                by_columns(columns, rows.unwrap_or_else(nulls))
            }
        })
    }

    /// What a call gives that an expression comes to: a value, or an array of rows. A row of several columns is
    /// a record.
    pub(in crate::session) async fn value_of_call(&mut self, call: &Call) -> Result<Datum> {
        let function = self.numbered(call.function)?;
        let arguments = call.arguments.clone();
        if !function.returns_set {
            return self.value_of(&function, arguments, call.result).await;
        }
        let catalog = self.transaction.catalog(&self.engine.db);
        let composite = || composite(&catalog, base(call.result));
        let columns = match function.columns.is_empty() {
            true => composite(),
            false => Some(function.columns.clone()),
        };
        let are_values = columns.as_ref().is_none_or(|_| function.columns.len() == 1);
        let columns = columns.unwrap_or_else(|| vec![column_of(&function, call.result)]);
        let columns: Arc<[Column]> = columns.into();
        let rows = self.rows_of(&function, arguments, call.result, &columns);
        let rows = rows.await?.unwrap_or_default().into_iter();
        let row = |mut row: Vec<Datum>| match are_values {
            true => row.pop().unwrap_or_default(),
            false => record_of(&columns, row),
        };
        let rows = rows.map(row).collect();
        Ok(Datum::Array(Arc::new(Array::of(base(call.result), rows))))
    }

    /// The value that a call gives, the row of its OUT arguments as a record.
    async fn value_of(
        &mut self,
        function: &SqlFunction,
        arguments: Vec<Typed>,
        result: u32,
    ) -> Result<Datum> {
        let columns: Arc<[Column]> = match function.columns.len() {
            0 | 1 => Arc::from([column_of(function, result)]),
            _ => function.columns.as_slice().into(),
        };
        let rows = self.rows_of(function, arguments, result, &columns).await?;
        let Some(mut row) = rows.map(|mut rows| rows.pop().unwrap_or_default()) else {
            return Ok(Datum::Null);
        };
        Ok(match columns.len() {
            1 => row.pop().unwrap_or_default(),
            _ => record_of(&columns, row),
        })
    }

    /// The rows that a call gives, of these columns: one, where the function gives no set. None where it is not
    /// called for a NULL.
    async fn rows_of(
        &mut self,
        function: &SqlFunction,
        arguments: Vec<Typed>,
        result: u32,
        columns: &Arc<[Column]>,
    ) -> Result<Option<Vec<Vec<Datum>>>> {
        let is_null = |typed: &Typed| typed.value.is_null();
        if function.strict && arguments.iter().any(is_null) {
            return Ok(function.returns_set.then(Vec::new));
        }
        let is_value = matches!(&**columns, [one] if one.oid == result);
        let compiled = self.function(function, 0).await?;
        let shape = (Arc::clone(columns), !is_value);
        let entry = Entry::Arguments(arguments);
        let frame = self.call_compiled(&compiled, entry, shape).await?;
        Ok(Some(rows_of(function, frame)))
    }

    /// The function of this number.
    fn numbered(&mut self, number: u32) -> Result<Arc<SqlFunction>> {
        let catalog = self.transaction.catalog(&self.engine.db);
        if let Some((of, function)) = self.plpgsql.called.get(&number)
            && Arc::ptr_eq(of, &catalog)
        {
            return Ok(Arc::clone(function));
        }
        let def = catalog.functions.get(&number).ok_or_else(|| {
            SqlError::new(
                "42883",
                format!("function with OID {number} does not exist"),
            )
        })?;
        let function = Arc::new(called(def));
        let known = &mut self.plpgsql.called;
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        known.insert(number, (catalog, Arc::clone(&function)));
        Ok(function)
    }

    async fn arguments_before(&mut self, call: &CallBefore, known: &[Datum]) -> Result<Vec<Typed>> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for expr in &call.arguments {
            arguments.push(Typed {
                value: self.value_over(expr, known).await?,
                oid: expr.oid,
                modifier: expr.modifier,
            });
        }
        Ok(arguments)
    }

    /// The value of an expression over these parameters.
    pub(super) async fn value_over(&mut self, expr: &Expr, known: &[Datum]) -> Result<Datum> {
        self.context.begin_waits();
        let mut options = None;
        loop {
            let computed = {
                let styles = self.context.styles();
                let now = self.context.transaction_us();
                let environment = StatementEnvironment::new(&*self.context, now, &styles);
                let evaluator = Evaluator {
                    environment: &environment,
                    parameters: known,
                };
                let value = evaluator.evaluate(expr, &NoRow);
                value.map_err(|error| environment.told(error))
            };
            match computed {
                Ok(value) => return Ok(value),
                Err(error) => {
                    let Some(wait) = error.wait else {
                        return Err(error);
                    };
                    let options = options.get_or_insert_with(|| self.options());
                    self.wait(wait, options).await?;
                }
            }
        }
    }

    /// What was read before, as long as it is what it was.
    pub(super) fn known_function(&self, key: (u32, u32)) -> Option<Arc<Compiled>> {
        let catalog = self.transaction.catalog(&self.engine.db);
        let kept = self.plpgsql.functions.get(&key)?;
        let is_current = Arc::ptr_eq(&kept.catalog, &catalog);
        kept.place.get(&self.engine.shelf).filter(|_| is_current)
    }

    pub(super) fn keep_function(&mut self, key: (u32, u32), kept: Kept) {
        if self.plpgsql.functions.len() >= KEPT_MAX {
            self.plpgsql.functions.clear();
        }
        self.plpgsql.functions.insert(key, kept);
    }

    /// The body of a function, read now or before. `table` is that of the trigger that calls it.
    pub(super) async fn function(
        &mut self,
        function: &SqlFunction,
        table: u32,
    ) -> Result<Arc<Compiled>> {
        let key = (function.oid, table);
        if let Some(compiled) = self.known_function(key) {
            return Ok(compiled);
        }
        let catalog = self.transaction.catalog(&self.engine.db);
        let types = function.arguments.iter();
        let types: Vec<String> = types.map(|of| format_type(of.oid, -1)).collect();
        let name = format!("{}({})", function.name, types.join(","));
        let charge = self.charge_kept(footprint(&function.body)).await?;
        let signature = Signature::of(function);
        let within = Within::of(function, &catalog);
        let entered = within.as_ref().map(|within| within.enter(&self.context));
        let entered = entered.transpose()?;
        let compiled = Compiled::new(self, &name, &function.body, &signature);
        drop(entered);
        let mut compiled = compiled?;
        compiled.within = within;
        compiled.reads_only = function.reads_only;
        let compiled = Arc::new(compiled);
        let place = self.engine.shelf.place(Arc::clone(&compiled), charge);
        self.keep_function(key, Kept { catalog, place });
        Ok(compiled)
    }
}

/// The column of a function that gives one value.
fn column_of(function: &SqlFunction, result: u32) -> Column {
    Column {
        name: Arc::clone(&function.name),
        oid: result,
        modifier: -1,
        origin: None,
    }
}

/// A row as one value.
fn record_of(columns: &[Column], values: Vec<Datum>) -> Datum {
    Datum::Record(Arc::new(Record {
        types: columns.iter().map(|column| column.oid).collect(),
        names: Some(columns.iter().map(|of| Arc::clone(&of.name)).collect()),
        modifiers: Some(columns.iter().map(|of| of.modifier).collect()),
        values,
    }))
}

/// The rows that a call has given: one, where it gives no set.
fn rows_of(function: &SqlFunction, frame: Frame) -> Vec<Vec<Datum>> {
    match function.returns_set {
        true => frame.rows,
        false => vec![frame.rows.into_iter().next_back().unwrap_or_default()],
    }
}

/// Rows as an array for each column.
fn by_columns(columns: &[Column], rows: Vec<Vec<Datum>>) -> Vec<Typed> {
    let mut arrays: Vec<Vec<Datum>> = columns
        .iter()
        .map(|_| Vec::with_capacity(rows.len()))
        .collect();
    for row in rows {
        let mut values = row.into_iter();
        for array in &mut arrays {
            array.push(values.next().unwrap_or_default());
        }
    }
    let typed = |(column, elements): (&Column, Vec<Datum>)| Typed {
        value: Datum::Array(Arc::new(Array::of(base(column.oid), elements))),
        oid: array_of(base(column.oid)),
        modifier: -1,
    };
    columns.iter().zip(arrays).map(typed).collect()
}
