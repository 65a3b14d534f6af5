//! A query over a view, or over a query in FROM, as one over the table below: where that only
//! gives rows of a table, its columns are put in the place of the names that stand for them.

use thermocline_query::tree::{Distinctness, Expr, ExprKind, From, Query, RelationKind};

use super::expression::is_volatile;

/// The query over the table below; `None` for one that has no query below, or one that does more
/// than to give rows.
pub(super) fn pulled_up(query: &Query) -> Option<Query> {
    let inner = below(query).filter(|_| query.locks.is_empty())?;
    // It may be one over another.
    let deeper = pulled_up(inner);
    let inner = deeper.as_ref().unwrap_or(inner);
    is_table_only(inner).then(|| merged(query, inner))?
}

/// The query that is all of a query's FROM: in its place, or alone in the WITH.
fn below(query: &Query) -> Option<&Query> {
    let ([of], [From::Relation(0)]) = (query.relations.as_slice(), query.from.as_slice()) else {
        return None;
    };
    let inner = match (&of.kind, query.with.as_slice()) {
        (RelationKind::Subquery(inner, false), []) => &**inner,
        (RelationKind::Common { level: 0, place: 0 }, [common]) => {
            let is_plain = common.references == 1
                && common.by_changes == 0
                && common.change.is_none()
                && !common.recursive
                && common.materialized != Some(true);
            is_plain.then_some(&common.query)?
        }
        _ => return None,
    };
    is_rows_only(inner).then_some(inner)
}

/// Whether a query does no more than to give values for rows and to leave out some.
pub(super) fn is_rows_only(query: &Query) -> bool {
    query.with.is_empty()
        && query.group.is_none()
        && query.having.is_none()
        && query.windows.is_empty()
        && !query.has_set_targets
        && query.distinct == Distinctness::All
        && query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.set_operation.is_none()
        && query.locks.is_empty()
        && !query.targets.iter().any(|target| is_volatile(&target.expr))
}

fn is_table_only(query: &Query) -> bool {
    matches!(
        (query.relations.as_slice(), query.from.as_slice()),
        ([of], [From::Relation(0)]) if matches!(of.kind, RelationKind::Table(_))
    )
}

/// A query over the rows of the table that the inner one gives.
fn merged(query: &Query, inner: &Query) -> Option<Query> {
    let shown = inner.targets.iter().filter(|target| !target.hidden);
    let shown: Vec<&Expr> = shown.map(|target| &target.expr).collect();
    let mut merged = query.clone();
    let mut all = true;
    merged.exprs_mut(&mut |expr| all = all && substitute(expr, &shown).is_some());
    if !all {
        return None;
    }
    merged.with.clear();
    merged.relations.clone_from(&inner.relations);
    merged.from.clone_from(&inner.from);
    merged.filter = match (inner.filter.clone(), merged.filter.take()) {
        (Some(inner), Some(outer)) => {
            let location = outer.location;
            let both = ExprKind::And(vec![inner, outer]);
            Some(Expr::new(
                both,
                thermocline_query::types::ids::BOOL,
                location,
            ))
        }
        (inner, outer) => inner.or(outer),
    };
    Some(merged)
}

/// Puts what a query within gives in the place of its columns; `None` where it cannot be.
pub(super) fn substitute(expr: &mut Expr, shown: &[&Expr]) -> Option<()> {
    match &expr.kind {
        ExprKind::Column {
            level: 0, column, ..
        } => {
            *expr = (*shown.get(*column)?).clone();
            return Some(());
        }
        ExprKind::Subquery(_) | ExprKind::WholeRow { .. } => return None,
        _ => {}
    }
    let mut done = Some(());
    expr.children_mut(&mut |child| {
        if done.is_some() {
            done = substitute(child, shown);
        }
    });
    done
}
