//! What is given to a function of SQL, in the place of its arguments: in its body, or beside it as
//! a row of its own.

use std::sync::Arc;

use crate::tree::{Column, Expr, ExprKind, From, Query, Relation, RelationKind};
use crate::types::ids;

/// Whether an argument may stand as often as the body names it.
pub(super) const fn is_plain(given: &Expr) -> bool {
    matches!(
        given.kind,
        ExprKind::Constant(_) | ExprKind::Parameter(_) | ExprKind::Column { .. }
    )
}

pub(super) fn mentions(expr: &Expr, argument: usize) -> usize {
    let mut count = 0;
    expr.any(&mut |expr| {
        count += match &expr.kind {
            ExprKind::Parameter(at) if *at == argument => 1,
            // It may be asked for each row.
            ExprKind::Subquery(_) => 2,
            _ => 0,
        };
        false
    });
    count
}

/// A query over the rows of another, without columns yet.
pub(super) fn around(query: Query) -> Query {
    let columns = query.columns();
    Query {
        relations: vec![Relation {
            kind: RelationKind::Subquery(Box::new(query), true),
            alias: Arc::from("body"),
            columns,
            reader: None,
        }],
        from: vec![From::Relation(0)],
        ..Query::default()
    }
}

/// The body's query with the arguments in it, as a query within the one at hand. What is not plain
/// is computed once, as a row of its own; a strict function's query has no rows where an argument
/// is NULL.
pub(super) fn over_arguments(mut query: Query, arguments: &[Expr], strict: bool) -> Query {
    if arguments.iter().all(is_plain) && (!strict || arguments.is_empty()) {
        put_into_query(&mut query, 1, arguments);
        return query;
    }
    let column = |relation: usize, column: usize, oid: u32, modifier: i32| {
        let kind = ExprKind::Column {
            level: 0,
            relation,
            column,
        };
        Expr::new(kind, oid, -1).with_modifier(modifier)
    };
    let named = arguments.iter().enumerate();
    let named: Vec<Expr> = named
        .map(|(at, argument)| column(0, at, argument.oid, argument.modifier))
        .collect();
    put_into_query(&mut query, 1, &named);
    let row = arguments.iter().map(|argument| {
        let mut argument = argument.clone();
        argument.raise_levels(0, 1);
        argument
    });
    let given = Relation {
        kind: RelationKind::Values(vec![row.collect()], true),
        alias: Arc::from("arguments"),
        columns: arguments
            .iter()
            .map(|argument| Column {
                name: Arc::from("argument"),
                oid: argument.oid,
                modifier: argument.modifier,
                origin: None,
            })
            .collect(),
        reader: None,
    };
    let is_given = |argument: &Expr| {
        let kind = ExprKind::IsNull(Box::new(argument.clone()), false);
        Expr::new(kind, ids::BOOL, -1)
    };
    let filter = strict.then(|| ExprKind::And(named.iter().map(is_given).collect()));
    let shown = query.columns().into_iter().enumerate();
    let target = |(at, of): (usize, Column)| crate::tree::Target {
        expr: column(1, at, of.oid, of.modifier),
        name: of.name,
        hidden: false,
        origin: None,
    };
    let targets = shown.map(target).collect();
    let mut whole = around(query);
    whole.relations.insert(0, given);
    Query {
        from: vec![From::Relation(0), From::Relation(1)],
        filter: filter.map(|kind| Expr::new(kind, ids::BOOL, -1)),
        targets,
        ..whole
    }
}

/// Puts arguments in the place of parameters, so many queries further in.
pub(super) fn put_into(expr: &mut Expr, depth: usize, arguments: &[Expr]) {
    match &mut expr.kind {
        ExprKind::Parameter(at) => {
            if let Some(argument) = arguments.get(*at) {
                *expr = argument.clone();
                expr.raise_levels(0, depth.cast_signed());
            }
            return;
        }
        ExprKind::Subquery(subquery) => {
            put_into_query(&mut subquery.query, depth + 1, arguments);
        }
        _ => {}
    }
    expr.children_mut(&mut |child| put_into(child, depth, arguments));
}

fn put_into_query(query: &mut Query, depth: usize, arguments: &[Expr]) {
    for common in &mut query.with {
        put_into_query(&mut common.query, depth + 1, arguments);
    }
    for relation in &mut query.relations {
        if let RelationKind::Subquery(inner, lateral) = &mut relation.kind {
            // What is given may be of a row further out.
            *lateral = true;
            put_into_query(inner, depth + 1, arguments);
        }
    }
    query.exprs_mut(&mut |expr| put_into(expr, depth, arguments));
}
