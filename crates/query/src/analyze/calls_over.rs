//! Calls of functions that are no queries, made for each row of a query. The query gives the columns
//! that they need, and the session computes the rest row by row: conditions with calls first, then
//! columns with calls. A call stands only where PostgreSQL makes it once for each row.

use super::CallBefore;
use super::call_before::{Seen, given_by};
use crate::datum::Datum;
use crate::tree::{Distinctness, Expr, ExprKind, Order, Query, Target};

/// What is computed over each row of a query. Expressions are over parameters: the statement's own,
/// then what the calls gave, then the row's columns.
#[derive(Clone, Debug)]
pub struct CallsOver {
    /// The calls, each behind those whose values it takes.
    pub calls: Vec<CallBefore>,
    /// The conditions that a row has to fulfil.
    pub conditions: Vec<OverRow>,
    /// The columns that calls make, by their places.
    pub columns: Vec<(usize, OverRow)>,
    /// How many columns the statement has: the row's first.
    pub shown: usize,
    /// How many rows at most, where there are conditions.
    pub limit: Option<Expr>,
    /// How many rows are left out first, where there are conditions.
    pub offset: Option<Expr>,
}

/// An expression over a row.
#[derive(Clone, Debug)]
pub struct OverRow {
    /// The calls that it needs, by their places.
    pub calls: Vec<usize>,
    /// The expression.
    pub expr: Expr,
}

/// Where parameters of calls and columns of the row begin.
struct Places {
    own: usize,
    calls: usize,
    shown: usize,
    columns: Vec<Expr>,
    /// What the query groups by.
    groups: Vec<Expr>,
    /// A call stands in the test of a subquery, or in what an aggregate or a window takes.
    is_within: bool,
}

/// Takes the calls out of a query, if each is made once for each of its rows. `own` is the number of
/// the statement's parameters.
pub(super) fn over_rows(query: &mut Query, calls: &[CallBefore], own: usize) -> Option<CallsOver> {
    let is_plain = !query.has_set_targets
        && query.distinct == Distinctness::All
        && !query.with_ties
        && query.set_operation.is_none()
        && query.locks.is_empty();
    if !is_plain || calls.iter().any(|call| call.rows.is_some()) {
        return None;
    }
    let mut seen = Seen::default();
    let arguments = calls.iter().flat_map(|call| &call.arguments);
    arguments.for_each(|argument| seen.expr(argument, true));
    let groups = query.group.iter().flat_map(|group| &group.exprs);
    let mut places = Places {
        own,
        calls: calls.len(),
        shown: query.targets.iter().filter(|target| !target.hidden).count(),
        columns: Vec::new(),
        groups: groups.cloned().collect(),
        is_within: false,
    };
    let mut over = CallsOver {
        calls: calls.to_vec(),
        conditions: Vec::new(),
        columns: Vec::new(),
        shown: places.shown,
        limit: None,
        offset: None,
    };
    let mut take = |expr: &mut Expr| {
        seen.expr(expr, true);
        let needed = needed_by(expr, calls);
        places.lift(expr);
        OverRow {
            calls: needed,
            expr: expr.clone(),
        }
    };
    let is_of_rows = query.group.is_none() && query.windows.is_empty();
    if let Some(filter) = query.filter.take_if(|filter| has_call(filter)) {
        if !is_of_rows {
            return None;
        }
        let all = match filter.kind {
            ExprKind::And(all) => all,
            _ => vec![filter],
        };
        let (with_calls, mut without): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(has_call);
        over.conditions
            .extend(with_calls.into_iter().map(|mut expr| take(&mut expr)));
        query.filter = match without.len() {
            0 | 1 => without.pop(),
            _ => {
                let oid = without[0].oid;
                Some(Expr::new(ExprKind::And(without), oid, -1))
            }
        };
    }
    let mut place = 0;
    for target in &mut query.targets {
        if has_call(&target.expr) {
            if target.hidden {
                return None;
            }
            over.columns.push((place, take(&mut target.expr)));
            target.expr.kind = ExprKind::Constant(Datum::Null);
        }
        place += usize::from(!target.hidden);
    }
    let place_of = |target: usize| {
        query.targets[..target]
            .iter()
            .filter(|of| !of.hidden)
            .count()
    };
    let orders = |order: &Order| {
        let column = place_of(order.target);
        !query.targets[order.target].hidden && over.columns.iter().any(|(at, _)| *at == column)
    };
    if query.order.iter().any(orders) {
        return None;
    }
    if !over.conditions.is_empty() {
        over.limit = query.limit.take();
        over.offset = query.offset.take();
    }
    for call in &mut over.calls {
        for argument in &mut call.arguments {
            places.lift(argument);
        }
    }
    let mut is_left = seen.misplaced || places.is_within;
    let columns = places.columns.into_iter().map(|expr| Target {
        expr,
        name: "?column?".into(),
        hidden: false,
        origin: None,
    });
    query.targets.extend(columns);
    query.exprs(&mut |expr| is_left |= has_call(expr));
    (!is_left).then_some(over)
}

/// Whether a call stands in an expression.
fn has_call(expr: &Expr) -> bool {
    expr.any(&mut |expr| given_by(expr).is_some())
}

/// The calls that an expression needs, each behind those whose values it takes.
fn needed_by(expr: &Expr, calls: &[CallBefore]) -> Vec<usize> {
    let mut needed = Vec::new();
    expr.any(&mut |expr| {
        needed.extend(given_by(expr));
        false
    });
    let mut at = 0;
    while let Some(call) = needed.get(at).and_then(|place| calls.get(*place)) {
        for argument in &call.arguments {
            argument.any(&mut |expr| {
                needed.extend(given_by(expr));
                false
            });
        }
        at += 1;
    }
    needed.sort_unstable();
    needed.dedup();
    needed
}

impl Places {
    /// Puts a parameter in the place of each column and subquery, which become columns of the row.
    fn lift(&mut self, expr: &mut Expr) {
        if let Some(call) = given_by(expr) {
            expr.kind = ExprKind::Parameter(self.own + call);
            return;
        }
        let is_of_row = match &expr.kind {
            ExprKind::Column { .. } | ExprKind::WholeRow { .. } => true,
            ExprKind::Subquery(_)
            | ExprKind::Aggregate(_)
            | ExprKind::Window(_)
            | ExprKind::Grouping(..) => {
                self.is_within |= has_call(expr);
                true
            }
            _ => self.groups.iter().any(|group| group.same(expr)),
        };
        if !is_of_row {
            expr.children_mut(&mut |child| self.lift(child));
            return;
        }
        let place = self.own + self.calls + self.shown + self.columns.len();
        self.columns.push(expr.clone());
        expr.kind = ExprKind::Parameter(place);
    }
}
