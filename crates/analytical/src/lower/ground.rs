//! A query without domains: below here a value of one is a value of the type that it is made of.
//! Only what is asked about a value that becomes one stays.

use std::borrow::Cow;

use thermocline_query::tree::{Expr, ExprKind, Query, RelationKind};
use thermocline_query::types::domain::{base, is_domain};

/// The query over the types that domains are made of.
pub(super) fn grounded(query: &Query) -> Cow<'_, Query> {
    match has_domains(query) {
        false => Cow::Borrowed(query),
        true => {
            let mut own = query.clone();
            ground(&mut own);
            Cow::Owned(own)
        }
    }
}

fn has_domains(query: &Query) -> bool {
    let mut found = false;
    query.exprs(&mut |expr| {
        found = found
            || expr.any(&mut |expr| match &expr.kind {
                ExprKind::Subquery(subquery) => is_domain(expr.oid) || has_domains(&subquery.query),
                _ => is_domain(expr.oid),
            });
    });
    found
}

fn ground(query: &mut Query) {
    for common in &mut query.with {
        for column in &mut common.columns {
            column.oid = base(column.oid);
        }
        ground(&mut common.query);
    }
    for relation in &mut query.relations {
        match &mut relation.kind {
            RelationKind::Subquery(inner, _) => ground(inner),
            // These make rows of what they are declared to give.
            RelationKind::Functions { .. } => continue,
            RelationKind::Table(_) | RelationKind::Common { .. } | RelationKind::Values(..) => {}
        }
        for column in &mut relation.columns {
            column.oid = base(column.oid);
        }
    }
    query.exprs_mut(&mut ground_expr);
}

fn ground_expr(expr: &mut Expr) {
    expr.children_mut(&mut ground_expr);
    if let ExprKind::Subquery(subquery) = &mut expr.kind {
        ground(&mut subquery.query);
    }
    if !is_domain(expr.oid) {
        return;
    }
    let below = base(expr.oid);
    // Both know what they make by their type.
    let is_made = match &expr.kind {
        ExprKind::Call(call) if call.function.returns_set() => return,
        ExprKind::Checked(_) | ExprKind::Call(_) => true,
        _ => false,
    };
    if is_made {
        let checked = std::mem::replace(expr, Expr::new(ExprKind::Element, below, expr.location));
        expr.modifier = checked.modifier;
        expr.kind = ExprKind::Relabel(Box::new(checked));
    }
    expr.oid = below;
}
