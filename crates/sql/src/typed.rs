//! What statements have of `thermocline_query`: a query analysed once for all its runs, its
//! columns and parameters as clients see them, and its values on their way in and out. Who runs
//! it is elsewhere: `one_row`, `pg_catalog`.

pub(crate) mod arrays;
pub(crate) mod row_number;
pub(crate) mod stored;
mod stored_range;
pub(crate) mod value;
mod write;

use std::sync::Arc;

use parking_lot::Mutex;
use pg_raw_parse::Node;
use thermocline_engine::Table;
use thermocline_query::analyze::Analyzed;
use thermocline_query::call::{Call, Environment};
use thermocline_query::called_last::called_last;
use thermocline_query::datum::Datum;
use thermocline_query::error::QueryError;
use thermocline_query::functions::{Function, Volatility};
use thermocline_query::parse::Parsed;
use thermocline_query::tree::{Expr, ExprKind, Query};
use thermocline_query::types::domain::base_of;
use thermocline_query::types::{self, ids};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use crate::bind::{Bound, Command};
use crate::error::{Result, SqlError};
use crate::output::{ColumnType, OtherType, OutputColumn};
use crate::plan::Plan;
use crate::stack;

pub(crate) use write::write_value;

/// A query, analysed.
#[derive(Debug)]
pub struct TypedQuery {
    /// Its tree.
    pub(crate) query: Query,
    /// The numbers of the parameters' types.
    pub(crate) parameters: Vec<u32>,
    /// The users' tables that it names.
    pub(crate) tables: Vec<Arc<Table>>,
    /// It shows the session's own cursors or statements.
    pub(crate) shows_own: bool,
    /// It makes a series, which may be long.
    has_series: bool,
    /// It calls what does something, or what gives another value each time.
    pub(crate) is_volatile: bool,
    /// It calls functions that the session runs meanwhile.
    pub(crate) calls: bool,
    /// Its literals say what the time was when it was analysed (`now`, `today`).
    pub(crate) of_the_moment: bool,
    /// How deep its tree is, if views stand in it; else the statement's text says it.
    pub(crate) depth: u32,
}

impl Drop for TypedQuery {
    fn drop(&mut self) {
        if stack::is_deep(self.depth) {
            stack::with_room(self.depth, || drop(std::mem::take(&mut self.query)));
        }
    }
}

impl TypedQuery {
    pub(crate) fn of(analyzed: Analyzed) -> Self {
        Self {
            has_series: has_series(&analyzed.query),
            is_volatile: is_volatile(&analyzed.query),
            calls: calls(&analyzed.query),
            query: analyzed.query,
            parameters: analyzed.parameters,
            tables: Vec::new(),
            shows_own: false,
            of_the_moment: false,
            depth: 0,
        }
    }

    /// The same for another tree over the same tables.
    pub(crate) fn with_query(&self, query: Query) -> Self {
        Self {
            is_volatile: is_volatile(&query),
            calls: calls(&query),
            query,
            parameters: self.parameters.clone(),
            tables: self.tables.clone(),
            shows_own: self.shows_own,
            has_series: self.has_series,
            of_the_moment: self.of_the_moment,
            depth: self.depth,
        }
    }

    /// The same, whose columns with calls are computed last, where that matters.
    pub(crate) fn calling_last(mut self) -> Self {
        let query = &self.query;
        let has_end = !query.order.is_empty() || query.limit.is_some() || query.offset.is_some();
        if self.calls
            && has_end
            && let Some(last) = called_last(query)
        {
            self.query = last.into_query();
        }
        self
    }

    /// The same, whose tree is so deep.
    pub(crate) fn of_depth(mut self, depth: u32) -> Self {
        self.depth = depth;
        self
    }

    /// The same, whose literals say what the time is, if so.
    pub(crate) fn of_the_moment(mut self, of_the_moment: bool) -> Self {
        self.of_the_moment = of_the_moment;
        self
    }

    /// The same, which shows the session's own cursors or statements, if so.
    pub(crate) fn showing_own(mut self, shows: bool) -> Self {
        self.shows_own = shows;
        self
    }

    /// The same, which names these tables.
    pub(crate) fn over(mut self, tables: Vec<Arc<Table>>) -> Self {
        self.tables = tables;
        self
    }

    /// Whether it is for operators that put rows aside, and waits for its turn.
    pub(crate) fn needs_turn(&self) -> bool {
        self.has_series || self.calls || !self.tables.is_empty()
    }

    /// Bound, as `plan` runs it.
    pub(crate) fn bound(self, catalog_version: u64, plan: impl FnOnce(Arc<Self>) -> Plan) -> Bound {
        Bound {
            parameters: self.parameter_types(),
            columns: Some(self.output_columns()),
            plan: plan(Arc::new(self)),
            catalog_version,
            command: Command::Select,
        }
    }

    /// The result's columns.
    pub(crate) fn output_columns(&self) -> Vec<OutputColumn> {
        let columns = self.query.columns();
        let column = |column: &thermocline_query::tree::Column| {
            let (table_oid, column_number) = column.origin.unwrap_or_default();
            let (type_oid, type_modifier) = base_of(column.oid, column.modifier);
            OutputColumn {
                name: column.name.to_string(),
                type_oid,
                type_size: types::by_oid(type_oid).map_or(-1, |row| row.length),
                type_modifier,
                table_oid,
                column_number,
                data_type: column_type(column.oid, column.modifier),
            }
        };
        columns.iter().map(column).collect()
    }

    /// What the parameters' values are before they are data: texts of types that tables don't hold.
    fn parameter_types(&self) -> Vec<DataType> {
        let held = |oid: &u32| held(*oid, -1).unwrap_or(DataType::Text);
        self.parameters.iter().map(held).collect()
    }

    /// The parameters as data of their types.
    ///
    /// # Errors
    /// 22P02 and others for texts that are none of their type.
    pub(crate) fn arguments(
        &self,
        given: &[Value],
        environment: &dyn Environment,
    ) -> Result<Vec<Datum>> {
        arguments_of(&self.parameters, given, environment)
    }
}

fn is_volatile(query: &Query) -> bool {
    let calls = |function: &Function| function.volatility == Volatility::Volatile;
    let mut found = false;
    query.exprs(&mut |expr| {
        found = found
            || expr.any(&mut |expr| match &expr.kind {
                ExprKind::Call(call) | ExprKind::NullIf(call) | ExprKind::Distinct(call, _) => {
                    calls(call.function)
                }
                ExprKind::AnyOfArray(call) => calls(call.function),
                ExprKind::Subquery(subquery) => is_volatile(&subquery.query),
                _ => false,
            });
    });
    found
}

/// Whether a query calls functions that only the session runs.
pub(crate) fn calls(query: &Query) -> bool {
    let mut found = false;
    query.exprs(&mut |expr| found = found || has_call(expr));
    found
}

/// The same of an expression.
pub(crate) fn has_call(expr: &Expr) -> bool {
    expr.any(&mut |expr| match &expr.kind {
        ExprKind::Subquery(subquery) => calls(&subquery.query),
        _ => expr.is_called(),
    })
}

/// Parameters' values as data of these types.
///
/// # Errors
/// 22P02 and others for texts that are none of their type.
pub(crate) fn arguments_of(
    types_given: &[u32],
    given: &[Value],
    environment: &dyn Environment,
) -> Result<Vec<Datum>> {
    if given.len() < types_given.len() {
        let missing = format!("there is no parameter ${}", given.len() + 1);
        return Err(SqlError::new("42P02", missing));
    }
    let argument = |(given, oid): (&Value, &u32)| {
        let held = held(*oid, -1).is_some();
        match given {
            // It has no other value.
            Value::Text(text) if *oid == ids::VOID => Ok(Datum::text(text.as_str())),
            Value::Text(text) if !held || *oid == ids::BPCHAR => {
                let call = Call::new(environment, &[], *oid);
                Ok(types::input(&call, *oid, text, -1)?)
            }
            given => Ok(value::to_datum(given)),
        }
    };
    given.iter().zip(types_given).map(argument).collect()
}

fn has_series(query: &Query) -> bool {
    let mut found = false;
    query.exprs(&mut |expr| {
        found = found
            || expr.any(&mut |expr| match &expr.kind {
                ExprKind::Call(call) => call.function.name == "generate_series",
                ExprKind::Subquery(subquery) => has_series(&subquery.query),
                _ => false,
            });
    });
    found
}

/// The query within the statement of a text.
pub(crate) fn query_of(parsed: &Parsed) -> Option<Node<'_>> {
    Some(match parsed.statements().stmts().next()? {
        Node::PrepareStmt(prepare) => prepare.query(),
        Node::ExplainStmt(explain) => explain.query(),
        Node::DeclareCursorStmt(declare) => declare.query(),
        Node::CopyStmt(copy) => copy.query(),
        other => other,
    })
}

/// The type in which tables hold values of a type, of a domain's that of what it is made of;
/// `None` where none do.
pub(crate) fn held(oid: u32, modifier: i32) -> Option<DataType> {
    let (oid, modifier) = base_of(oid, modifier);
    DataType::from_oid(oid, modifier)
}

/// The type of a result column; values of types that tables don't hold are texts of their types.
fn column_type(oid: u32, modifier: i32) -> ColumnType {
    let (oid, modifier) = base_of(oid, modifier);
    match oid {
        ids::NUMERIC | ids::BPCHAR => ColumnType::Other(OtherType(oid)),
        _ => match DataType::from_oid(oid, modifier) {
            Some(data_type) if data_type.other().is_none() => ColumnType::Scalar(data_type),
            _ => ColumnType::Other(OtherType(oid)),
        },
    }
}

/// An error with its place in the text, in characters from 1.
pub(crate) fn positioned(error: QueryError, text: &str) -> SqlError {
    // What may not be done has no place in the text, in PostgreSQL either.
    let placed = error.location.filter(|_| error.sqlstate != "42501");
    let position = placed.and_then(|at| {
        let before = text.get(..usize::try_from(at).ok()?)?;
        u32::try_from(before.chars().count() + 1).ok()
    });
    SqlError::from(error).with_position(position)
}

impl From<QueryError> for SqlError {
    #[cold]
    fn from(error: QueryError) -> Self {
        let mut own = Self::new(error.sqlstate, error.message.clone());
        own.detail.clone_from(&error.detail);
        own.hint.clone_from(&error.hint);
        own.missing_column.clone_from(&error.missing_column);
        own
    }
}

/// What a function of a statement waits for. It is told as an error, which the words of
/// `thermocline_query` do not carry (`session/signal.rs`).
#[derive(Default)]
pub(crate) struct Awaited(Mutex<Option<SqlError>>);

impl Awaited {
    /// A function's error in the words of `thermocline_query`; the statement ends with the error itself.
    #[cold]
    pub(crate) fn keep(&self, error: SqlError) -> QueryError {
        *self.0.lock() = Some(error.clone());
        error.into()
    }

    /// A function's error in the words of `thermocline_query`.
    #[cold]
    pub(crate) fn note(&self, error: SqlError) -> QueryError {
        if error.wait.is_some() {
            *self.0.lock() = Some(error.clone());
        }
        error.into()
    }

    /// The error of a statement that ended with this one.
    #[cold]
    pub(crate) fn told(&self, error: impl Into<SqlError>) -> SqlError {
        self.0.lock().take().unwrap_or_else(|| error.into())
    }
}

impl From<SqlError> for QueryError {
    #[cold]
    fn from(error: SqlError) -> Self {
        let mut own = Self::new(error.sqlstate, error.message.clone());
        own.detail.clone_from(&error.detail);
        own.hint.clone_from(&error.hint);
        own
    }
}
