//! A query without FROM over one subquery: `SELECT EXISTS (…)`, `RETURN (SELECT …)`. The subquery is a
//! query of the short path that runs first, and its value is a parameter of the rest.

use std::sync::Arc;

use thermocline_query::datum::Datum;
use thermocline_query::tree::{Column, Distinctness, Expr, ExprKind, Query, SubqueryKind};
use thermocline_query::types::ids;

use super::{Planner, parameter_types, reading, target};
use crate::bind::{BindContext, Bound, Command};
use crate::error::Result;
use crate::one_row;
use crate::plan::{Plan, ShortPlan};
use crate::typed::TypedQuery;

/// The plan of such a query; none if it is another, or if the short path does not run its subquery.
///
/// # Errors
/// As [`reading`].
pub(crate) fn behind_a_subquery(
    typed: &TypedQuery,
    context: &BindContext<'_>,
) -> Result<Option<Bound>> {
    let query = &typed.query;
    if !query.from.is_empty() || !query.with.is_empty() || typed.is_volatile {
        return Ok(None);
    }
    let mut subqueries = 0;
    query.exprs(&mut |expr| {
        expr.any(&mut |expr| {
            subqueries += usize::from(matches!(expr.kind, ExprKind::Subquery(_)));
            false
        });
    });
    let found = query.targets.iter().find_map(|target| always(&target.expr));
    let (Some(ExprKind::Subquery(subquery)), 1) = (found.map(|expr| &expr.kind), subqueries) else {
        return Ok(None);
    };
    let Some(first) = asked_first(subquery.kind, &subquery.query) else {
        return Ok(None);
    };
    let columns = first.columns();
    let first = typed.with_query(first);
    let Ok(first) = reading(&first, context)? else {
        return Ok(None);
    };
    let Plan::Short(plan) = first.plan else {
        return Ok(None);
    };
    let mut planner = Planner::new(context, typed);
    let one_row = subquery.kind == SubqueryKind::Scalar;
    let parameter = planner.befores.push_read(plan, &columns, one_row);
    let mut rest = query.clone();
    for target in &mut rest.targets {
        put(&mut target.expr, &planner, (parameter, &columns[0]));
    }
    let mut rest = typed.with_query(rest);
    rest.parameters = planner.befores.types().to_vec();
    if !one_row::takes(&rest.query) {
        return Ok(None);
    }
    Ok(Some(Bound {
        parameters: parameter_types(&typed.parameters),
        columns: Some(rest.output_columns()),
        plan: Plan::Short(planner.befores.before(ShortPlan::OneRow(Arc::new(rest)))),
        catalog_version: context.catalog.version,
        command: Command::Select,
    }))
}

/// What is asked first: as many rows as the value needs.
fn asked_first(kind: SubqueryKind, query: &Query) -> Option<Query> {
    if !query.locks.is_empty() || query.set_operation.is_some() || query.with_ties {
        return None;
    }
    let mut first = query.clone();
    let most = match kind {
        // Its one column, and of types whose values texts say.
        SubqueryKind::Scalar if !matches!(query.columns()[0].oid, ids::RECORD | ids::VOID) => 2,
        SubqueryKind::Exists
            if query.group.is_none()
                && query.windows.is_empty()
                && query.distinct == Distinctness::All
                && !query.has_set_targets =>
        {
            first.targets = vec![target(Expr::constant(Datum::Int4(1), ids::INT4))];
            first.order.clear();
            1
        }
        _ => return None,
    };
    if first.limit.is_none() {
        first.limit = Some(Expr::constant(Datum::Int8(most), ids::INT8));
    }
    Some(first)
}

/// The subquery of an expression that is asked whatever the rest is.
fn always(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Subquery(_) => Some(expr),
        ExprKind::And(all) | ExprKind::Or(all) | ExprKind::Coalesce(all) => {
            all.first().and_then(always)
        }
        ExprKind::Case(case) => match &case.operand {
            Some(operand) => always(operand),
            None => case
                .branches
                .first()
                .and_then(|(condition, _)| always(condition)),
        },
        ExprKind::Relabel(inner)
        | ExprKind::ThroughText(inner)
        | ExprKind::Fit(inner, _)
        | ExprKind::Not(inner)
        | ExprKind::IsNull(inner, _)
        | ExprKind::Is(inner, ..) => always(inner),
        ExprKind::Call(call) => call.arguments.iter().find_map(always),
        _ => None,
    }
}

/// Puts the value in the place of the only subquery.
fn put(expr: &mut Expr, planner: &Planner<'_>, (parameter, column): (usize, &Column)) {
    let ExprKind::Subquery(subquery) = &expr.kind else {
        expr.children_mut(&mut |child| put(child, planner, (parameter, column)));
        return;
    };
    let value = planner.first_of(parameter, column);
    let value = match subquery.kind {
        SubqueryKind::Exists => Expr::new(
            ExprKind::IsNull(Box::new(value), false),
            expr.oid,
            expr.location,
        ),
        _ => value,
    };
    *expr = value;
}
