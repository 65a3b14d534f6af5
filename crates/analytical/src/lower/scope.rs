//! What the expressions of a query may refer to.

use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_query::tree::{CommonTable, Expr, ExprKind, Query, Relation, RelationKind};

use crate::operators::recursion::Round;
use crate::operators::shared::{Generation, Shared};

/// A query of a WITH.
#[derive(Clone)]
pub(super) struct Common {
    /// It.
    pub table: Arc<CommonTable>,
    /// The columns of queries further out that it refers to.
    pub refs: Vec<usize>,
    /// Its rows, once they are planned; columns that they have.
    pub shared: Option<(Arc<Shared>, Vec<usize>)>,
    /// Within itself: the round before; its columns, first those of the domain.
    pub previous: Option<Previous>,
    /// The recursion that the WITH stands in.
    pub generation: Generation,
}

/// What a recursive query reads of itself.
#[derive(Clone)]
pub(super) struct Previous {
    pub round: Round,
    /// The types of the columns, first those of the domain.
    pub columns: Vec<u32>,
}

/// What the columns of a relation have become.
#[derive(Clone, Default)]
pub(super) struct RelationColumns {
    /// Their numbers, as far as they are used.
    pub ids: Vec<Option<usize>>,
    /// The number of the whole row.
    pub whole: Option<usize>,
}

/// A query that is being lowered.
#[derive(Clone, Default)]
pub(super) struct Scope {
    /// The columns of its relations.
    pub relations: Vec<RelationColumns>,
    /// Bound expressions that are columns now: grouping expressions, aggregates, windows.
    pub replaced: Vec<(Expr, usize)>,
    /// `GROUPING`: the keys and the columns.
    pub groupings: Vec<(Vec<usize>, usize)>,
    /// The queries of its WITH.
    pub with: Vec<Common>,
    /// Which columns of its relations are used.
    pub used: Vec<Used>,
}

/// Which columns of a relation are used.
#[derive(Clone, Default, Debug)]
pub(super) struct Used {
    /// Of those that are read by themselves, the types that they are read as.
    pub columns: Vec<Option<u32>>,
    pub whole: bool,
}

/// Which columns of a query's relations are used, by itself and by queries within it.
pub(super) fn used_columns(query: &Query) -> Vec<Used> {
    let mut used: Vec<Used> = query
        .relations
        .iter()
        .map(|relation| Used {
            columns: vec![None; relation.columns.len()],
            whole: false,
        })
        .collect();
    in_query(query, 0, &mut |relation, column| {
        let Some(used) = used.get_mut(relation) else {
            return;
        };
        match column {
            Some((column, oid)) => {
                if let Some(read) = used.columns.get_mut(column) {
                    *read = Some(oid);
                }
            }
            None => used.whole = true,
        }
    });
    used
}

/// The relations of the query that an expression of it refers to.
pub(super) fn relations_of_expr(expr: &Expr, found: &mut BTreeSet<usize>) {
    in_expr(expr, 0, &mut |relation, _| {
        found.insert(relation);
    });
}

/// The relations of the query that one of its relations refers to.
pub(super) fn relations_of_relation(relation: &Relation, found: &mut BTreeSet<usize>) {
    in_relation(relation, 0, &mut |relation, _| {
        found.insert(relation);
    });
}

/// Tells of columns of the query `depth` further out: the relation, and the column and its type, or all.
type Tell<'f> = &'f mut dyn FnMut(usize, Option<(usize, u32)>);

fn in_query(query: &Query, depth: usize, tell: Tell<'_>) {
    for common in &query.with {
        in_query(&common.query, depth + 1, tell);
    }
    for relation in &query.relations {
        in_relation(relation, depth, tell);
    }
    query.own_exprs(&mut |expr| in_expr(expr, depth, tell));
}

fn in_relation(relation: &Relation, depth: usize, tell: Tell<'_>) {
    match &relation.kind {
        RelationKind::Subquery(query, _) => in_query(query, depth + 1, tell),
        RelationKind::Functions { calls, .. } => {
            calls
                .iter()
                .for_each(|(call, _)| in_expr(call, depth, tell));
        }
        RelationKind::Values(rows, _) => {
            rows.iter()
                .flatten()
                .for_each(|expr| in_expr(expr, depth, tell));
        }
        RelationKind::Table(_) | RelationKind::Common { .. } => {}
    }
}

fn in_expr(expr: &Expr, depth: usize, tell: Tell<'_>) {
    match &expr.kind {
        ExprKind::Column {
            level,
            relation,
            column,
        } if *level == depth => tell(*relation, Some((*column, expr.oid))),
        ExprKind::WholeRow { level, relation } if *level == depth => tell(*relation, None),
        ExprKind::Subquery(subquery) => in_query(&subquery.query, depth + 1, tell),
        _ => {}
    }
    expr.children(&mut |child| in_expr(child, depth, tell));
}
