//! Calls of functions that are no queries (PL/pgSQL, several statements of SQL). Where PostgreSQL makes a
//! call exactly once, the session makes it before the statement runs. What it gives is a parameter behind the
//! statement's own: a value, or an array for each column of the rows. All other calls stay in the tree
//! ([`crate::functions::CALLED`]), and the session makes them while the statement runs.

use std::collections::HashSet;
use std::sync::Arc;

use super::coerce::is_polymorphic;
use super::scope::Clause;
use super::sql_function::{Given as InFrom, not_at_the_top};
use super::{Analyzer, SqlFunction};
use crate::change::{Change, ChangeKind, Given, Source, Statement};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions;
use crate::tree::{Column, Expr, ExprKind, FunctionCall, Query};
use crate::types::{self, format_type, ids};

/// The number of the first parameter of calls, while a statement is analysed.
const FIRST: usize = 1 << 20;

/// A call to be made before a statement runs.
#[derive(Clone, Debug)]
pub struct CallBefore {
    /// The function.
    pub function: SqlFunction,
    /// Its arguments, all of them, over the statement's parameters and those of calls before.
    pub arguments: Vec<Expr>,
    /// The number of the type of its value.
    pub result: u32,
    /// The columns of its rows, where it stands in FROM.
    pub rows: Option<Vec<Column>>,
    /// Which of the parameters of calls is its first.
    pub first: usize,
    /// Where it stands in the statement, in bytes.
    pub location: i32,
}

/// The rows of a call in FROM: an expression for each column, and the columns.
type RowsBefore = (Vec<(Expr, usize)>, Vec<Column>);

/// The calls of a statement, so far.
#[derive(Clone, Debug, Default)]
pub(super) struct CallsBefore {
    /// Whether the statement may have any.
    pub(super) are_taken: bool,
    pub(super) calls: Vec<CallBefore>,
    /// The types of their parameters.
    pub(super) types: Vec<u32>,
    /// The functions that the statement calls by itself.
    pub(super) functions: Vec<SqlFunction>,
}

impl Analyzer<'_> {
    /// A call of a function that is no query.
    pub(super) fn call_body(
        &mut self,
        function: &SqlFunction,
        arguments: Vec<Expr>,
        (result, columns): (u32, Vec<Column>),
        location: i32,
    ) -> Result<Expr> {
        if result == ids::TRIGGER {
            return Err(QueryError::unsupported(
                "trigger functions can only be called as triggers",
                "Make a trigger that calls it.",
            )
            .at(location));
        }
        let level = self.level();
        if function.returns_set
            && level.clause == Clause::FromFunction
            && level.from_call != location
        {
            return Err(not_at_the_top(location));
        }
        if function.arguments.iter().any(|of| is_polymorphic(of.oid)) {
            let message = format!(
                "a function of any types is not supported in such a place: {}",
                function.name
            );
            let hint = "Name the types of its arguments, or call it in FROM.";
            return Err(QueryError::unsupported(message, hint).at(location));
        }
        let is_own = self.calls.are_taken && self.bodies.is_empty() && self.levels.len() == 1;
        let level = self.level();
        let in_from = level.clause == Clause::FromFunction && level.from_call == location;
        if in_from && is_own && self.given.is_none() && arguments.iter().all(is_before_rows) {
            let first = self.calls.types.len();
            self.calls.calls.push(CallBefore {
                function: function.clone(),
                arguments,
                result,
                rows: Some(columns),
                first,
                location,
            });
            self.given = Some(InFrom::Before);
            let nothing = ExprKind::Constant(Datum::Null);
            return Ok(Expr::new(nothing, result, location));
        }
        if function.returns_set && result == ids::RECORD && columns.is_empty() {
            let message = format!(
                "rows of any columns are not supported over other rows: function {}",
                function.name
            );
            let hint = "Declare its columns with RETURNS TABLE or OUT arguments.";
            return Err(QueryError::unsupported(message, hint).at(location));
        }
        if in_from && columns.len() > 1 {
            self.given = Some(InFrom::Columns(columns));
        }
        if is_own
            && !self
                .calls
                .functions
                .iter()
                .any(|known| known.oid == function.oid)
        {
            self.calls.functions.push(function.clone());
        }
        let called = (function.oid, function.returns_set);
        Ok(Expr::called(called, arguments, result, location))
    }

    /// The rows of the call that was made last: an array for each column. `defined` are the
    /// columns that the statement says, `name` that of a column of its own.
    pub(super) fn rows_before(&mut self, defined: Vec<Column>, name: &str) -> Result<RowsBefore> {
        let Some(call) = self.calls.calls.last() else {
            return Err(QueryError::internal("no call before the statement"));
        };
        let (result, location) = (call.result, call.location);
        let given = call.rows.clone().unwrap_or_default();
        let columns = match (result, given.is_empty(), defined.is_empty()) {
            (_, false, true) => given,
            (_, false, false) => {
                let message = "a column definition list is redundant for a function with OUT \
                               parameters";
                return Err(QueryError::new("42601", message).at(location));
            }
            (ids::RECORD, true, false) => defined,
            (ids::RECORD, true, true) => {
                let message =
                    "a column definition list is required for functions returning \"record\"";
                return Err(QueryError::new("42601", message).at(location));
            }
            (_, true, false) => {
                let message =
                    "a column definition list is only allowed for functions returning \"record\"";
                return Err(QueryError::new("42601", message).at(location));
            }
            (_, true, true) => match self.catalog.composite(types::domain::base(result)) {
                Some(columns) => columns,
                None => vec![Column {
                    name: Arc::from(name),
                    oid: result,
                    modifier: -1,
                    origin: None,
                }],
            },
        };
        let first = call.first;
        let mut unnest = functions::named("unnest").iter();
        let unnest = unnest.find(|function| function.arguments.first() == Some(&ids::ANYARRAY));
        let unnest = unnest.ok_or_else(|| QueryError::internal("no function unnest"))?;
        let mut calls = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            let array = types::array_of(types::domain::base(column.oid));
            if array == 0 {
                let shown = format_type(column.oid, -1);
                return Err(QueryError::unsupported(
                    format!("rows of PL/pgSQL with a column of type {shown} are not supported"),
                    "Give the column another type, for example text.",
                )
                .at(location));
            }
            self.calls.types.push(array);
            let call = FunctionCall {
                function: unnest,
                operator: None,
                types: Box::new([array]),
                arguments: vec![Expr::new(
                    ExprKind::Parameter(FIRST + first + at),
                    array,
                    -1,
                )],
            };
            let call = ExprKind::Call(Box::new(call));
            calls.push((Expr::new(call, column.oid, location), 1));
        }
        if let Some(call) = self.calls.calls.last_mut() {
            call.rows = Some(columns.clone());
        }
        Ok((calls, columns))
    }

    /// Takes out of a statement the calls that are made before it, and gives their parameters their numbers,
    /// behind the statement's own.
    pub(super) fn settle_calls(&mut self, statement: &mut Statement) -> Vec<CallBefore> {
        let own = self.parameters.len();
        if !self.calls.functions.is_empty() {
            match statement {
                Statement::Query(query) if is_one_row(query) => {
                    for target in &mut query.targets {
                        self.calls.settle(&mut target.expr, true);
                    }
                }
                Statement::Query(query) => self.calls.settle_condition(query.filter.as_mut()),
                Statement::Change(change) => self.calls.settle_change(change),
            }
        }
        let mut calls = std::mem::take(&mut self.calls.calls);
        if calls.is_empty() {
            return calls;
        }
        let mut place = |expr: &mut Expr| placed(expr, own);
        match statement {
            Statement::Query(query) => query.exprs_mut(&mut place),
            Statement::Change(change) => change.exprs_mut(&mut place),
        }
        for call in &mut calls {
            call.arguments.iter_mut().for_each(&mut place);
        }
        self.parameters.append(&mut self.calls.types);
        calls
    }
}

impl CallsBefore {
    /// Of an INSERT of VALUES each value is computed once.
    fn settle_change(&mut self, change: &mut Change) {
        if let ChangeKind::Update { query, .. } | ChangeKind::Delete { query, .. } =
            &mut change.kind
        {
            self.settle_condition(query.filter.as_mut());
        }
        let mut values: HashSet<*const Expr> = HashSet::new();
        if let ChangeKind::Insert(insert) = &change.kind
            && let Source::Rows(rows) = &insert.source
        {
            for given in rows.iter().flatten() {
                if let Given::Value(expr) = given {
                    values.insert(std::ptr::from_ref(expr));
                }
            }
        }
        change.exprs_mut(&mut |expr| {
            if values.contains(&std::ptr::from_ref(&*expr)) {
                self.settle(expr, true);
            }
        });
    }

    /// What a function gives that changes nothing, and whose arguments are of no row, is the same for all rows.
    /// As a parameter it may bound them by an index, as in PostgreSQL.
    fn settle_condition(&mut self, condition: Option<&mut Expr>) {
        match condition {
            Some(Expr {
                kind: ExprKind::And(all),
                ..
            }) => all.iter_mut().for_each(|one| self.settle(one, false)),
            Some(one) => self.settle(one, false),
            None => {}
        }
    }

    /// Puts parameters in the place of the calls within an expression, as far as they are made whatever its
    /// other parts give. `is_once`: it is computed exactly once.
    fn settle(&mut self, expr: &mut Expr, is_once: bool) {
        match &mut expr.kind {
            ExprKind::And(all) | ExprKind::Or(all) | ExprKind::Coalesce(all) => {
                let first = all.first_mut().into_iter();
                first.for_each(|one| self.settle(one, is_once));
            }
            ExprKind::Case(case) => {
                if let Some(operand) = &mut case.operand {
                    self.settle(operand, is_once);
                }
                if let Some((condition, _)) = case.branches.first_mut() {
                    self.settle(condition, is_once);
                }
            }
            _ => expr.children_mut(&mut |child| self.settle(child, is_once)),
        }
        if expr.is_called() {
            self.settle_call(expr, is_once);
        }
    }

    fn settle_call(&mut self, expr: &mut Expr, is_once: bool) {
        let (Some(number), ExprKind::Call(call)) = (expr.called_number(), &mut expr.kind) else {
            return;
        };
        let arguments = call.arguments.get(1..).unwrap_or_default();
        let mut known = self.functions.iter();
        let function = known.find(|known| known.oid == number);
        let may = |function: &&SqlFunction| {
            !function.returns_set
                && (is_once || function.reads_only)
                && arguments.iter().all(is_before_rows)
        };
        let Some(function) = function.filter(may) else {
            return;
        };
        let first = self.types.len();
        self.calls.push(CallBefore {
            function: function.clone(),
            arguments: call.arguments.split_off(1),
            result: expr.oid,
            rows: None,
            first,
            location: expr.location,
        });
        self.types.push(expr.oid);
        expr.kind = ExprKind::Parameter(FIRST + first);
    }
}

/// Whether a query gives one row, whose columns it computes once.
fn is_one_row(query: &Query) -> bool {
    query.from.is_empty()
        && query.filter.is_none()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.group.is_none()
        && query.with.is_empty()
        && query.set_operation.is_none()
        && !query.has_set_targets
}

fn placed(expr: &mut Expr, own: usize) {
    if let ExprKind::Parameter(at) = &mut expr.kind
        && *at >= FIRST
    {
        *at = own + (*at - FIRST);
    }
    expr.children_mut(&mut |child| placed(child, own));
}

/// Whether a parameter is what a call gives.
pub(super) fn is_of_call(at: usize) -> bool {
    at >= FIRST
}

/// Whether an argument can be computed before there are rows.
fn is_before_rows(expr: &Expr) -> bool {
    !expr.any(&mut |expr| match &expr.kind {
        ExprKind::Column { .. }
        | ExprKind::WholeRow { .. }
        | ExprKind::Subquery(_)
        | ExprKind::Aggregate(_)
        | ExprKind::Window(_)
        | ExprKind::Grouping(..) => true,
        ExprKind::Call(call) => call.function.returns_set() || expr.is_called(),
        _ => false,
    })
}
