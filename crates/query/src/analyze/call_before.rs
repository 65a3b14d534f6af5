//! Calls of functions that are no queries (PL/pgSQL, several statements of SQL). The session makes them before the statement
//! runs, and what they give are parameters of it, behind its own: a value, or an array for each
//! column of the rows. So a call may stand only where PostgreSQL makes it once, whatever the rows
//! and the conditions are; or once for each row of a query (`calls_over.rs`).

use std::collections::HashSet;
use std::sync::Arc;

use super::calls_over::{CallsOver, over_rows};
use super::scope::Clause;
use super::sql_function::Given as InFrom;
use super::{Analyzer, SqlFunction};
use crate::change::{Change, ChangeKind, Given, Source, Statement};
use crate::error::{QueryError, Result};
use crate::functions;
use crate::tree::{Column, Expr, ExprKind, FunctionCall, Query, RelationKind};
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
}

/// 0A000 for a call where it might be made several times for a row, or not at all.
#[cold]
fn misplaced(name: &str, location: i32) -> QueryError {
    QueryError::unsupported(
        format!("a function that is no query cannot be called in such a place: {name}"),
        "Call it in the select list or in a condition of the outermost query, without groups and without CASE around it, or alone in FROM.",
    )
    .at(location)
}

impl Analyzer<'_> {
    /// A call that is made before the statement.
    pub(super) fn call_before(
        &mut self,
        function: &SqlFunction,
        arguments: Vec<Expr>,
        result: u32,
        location: i32,
    ) -> Result<Expr> {
        let name = &function.name;
        if result == ids::TRIGGER {
            return Err(QueryError::unsupported(
                "trigger functions can only be called as triggers",
                "Make a trigger that calls it.",
            )
            .at(location));
        }
        let is_alone = self.calls.are_taken && self.bodies.is_empty() && self.levels.len() == 1;
        if !is_alone {
            return Err(misplaced(name, location));
        }
        let in_from = self.level().clause == Clause::FromFunction;
        if in_from && (self.given.is_some() || !arguments.iter().all(is_before_rows)) {
            return Err(misplaced(name, location));
        }
        if function.returns_set && !in_from {
            return Err(QueryError::unsupported(
                format!("function {name} gives rows, which is supported in FROM only"),
                "Move it into FROM.",
            )
            .at(location));
        }
        let first = self.calls.types.len();
        self.calls.calls.push(CallBefore {
            function: function.clone(),
            arguments,
            result,
            rows: in_from.then(|| function.columns.clone()),
            first,
            location,
        });
        if in_from {
            self.given = Some(InFrom::Before);
            let nothing = ExprKind::Constant(crate::datum::Datum::Null);
            return Ok(Expr::new(nothing, result, location));
        }
        self.calls.types.push(result);
        Ok(Expr::new(
            ExprKind::Parameter(FIRST + first),
            result,
            location,
        ))
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

    /// Gives the parameters of calls their numbers, behind the statement's own; or takes the calls out of
    /// a query that is to make them for each row. Refuses calls that PostgreSQL may make several times or
    /// not at all.
    pub(super) fn settle_calls(
        &mut self,
        statement: &mut Statement,
    ) -> Result<(Vec<CallBefore>, Option<CallsOver>)> {
        let own = self.parameters.len();
        let mut calls = std::mem::take(&mut self.calls.calls);
        if calls.is_empty() {
            return Ok((calls, None));
        }
        let mut seen = Seen::default();
        match statement {
            Statement::Query(query) => seen.query(query),
            Statement::Change(change) => seen.change(change),
        }
        for argument in calls.iter().flat_map(|call| &call.arguments) {
            seen.expr(argument, true);
            seen.misplaced |= !is_before_rows(argument);
        }
        if seen.misplaced {
            let over = match statement {
                Statement::Query(query) => over_rows(query, &calls, own),
                Statement::Change(_) => None,
            };
            let refused = || misplaced(&calls[0].function.name, calls[0].location);
            return over
                .map(|over| (Vec::new(), Some(over)))
                .ok_or_else(refused);
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
        Ok((calls, None))
    }
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

/// Which call gave what an expression is, if one did.
pub(super) fn given_by(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Parameter(at) => at.checked_sub(FIRST),
        _ => None,
    }
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
        ExprKind::Call(call) => call.function.returns_set(),
        _ => false,
    })
}

/// What was seen of the parameters of calls.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) misplaced: bool,
}

impl Seen {
    fn query(&mut self, query: &Query) {
        let alone = query.from.is_empty()
            && query.filter.is_none()
            && query.limit.is_none()
            && query.offset.is_none()
            && query.group.is_none()
            && query.with.is_empty()
            && query.set_operation.is_none()
            && !query.has_set_targets;
        let in_from = query.from.len() == 1 && query.relations.len() == 1;
        let targets: Vec<*const Expr> = query
            .targets
            .iter()
            .map(|target| std::ptr::from_ref(&target.expr))
            .collect();
        let mut of_from: Vec<*const Expr> = Vec::new();
        if let (true, [relation]) = (in_from, query.relations.as_slice())
            && let RelationKind::Functions { calls, .. } = &relation.kind
        {
            of_from.extend(calls.iter().map(|(expr, _)| std::ptr::from_ref(expr)));
        }
        query.exprs(&mut |expr| {
            let here = std::ptr::from_ref(expr);
            let may = alone && targets.contains(&here) || of_from.contains(&here);
            self.expr(expr, may);
        });
    }

    /// Of an INSERT of VALUES each value is computed once.
    fn change(&mut self, change: &mut Change) {
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
            let may = values.contains(&std::ptr::from_ref(&*expr));
            self.expr(expr, may);
        });
        change.queries_mut(&mut |query| query.exprs(&mut |expr| self.expr(expr, false)));
    }

    /// `may` says that the expression is computed exactly once.
    pub(super) fn expr(&mut self, expr: &Expr, may: bool) {
        match &expr.kind {
            ExprKind::Parameter(at) if *at >= FIRST => self.misplaced |= !may,
            ExprKind::And(all) | ExprKind::Or(all) | ExprKind::Coalesce(all) => {
                for (at, one) in all.iter().enumerate() {
                    self.expr(one, may && at == 0);
                }
            }
            ExprKind::Case(case) => {
                if let Some(operand) = &case.operand {
                    self.expr(operand, may);
                }
                for (at, (condition, value)) in case.branches.iter().enumerate() {
                    self.expr(condition, may && at == 0);
                    self.expr(value, false);
                }
                self.expr(&case.otherwise, false);
            }
            _ => expr.children(&mut |child| self.expr(child, may)),
        }
    }
}
