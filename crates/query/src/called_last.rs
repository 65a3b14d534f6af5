//! Columns with calls that only the session makes, computed behind ORDER BY and LIMIT, as PostgreSQL computes
//! those of volatile functions: a call may see what the one of the row before has done, and rows that are left
//! out have none.

use std::sync::Arc;

use crate::datum::Datum;
use crate::tree::{Distinctness, Expr, ExprKind, From, Query, Relation, RelationKind, Target};

/// The columns that are computed last, over those of the query below.
struct Last {
    /// What the query below shows without them.
    shown: usize,
    /// What they need of it besides.
    needed: Vec<Expr>,
    /// What the query below groups by.
    groups: Vec<Expr>,
}

/// A query without the columns that have calls, and all columns over its rows.
#[derive(Clone, Debug)]
pub struct CalledLast {
    /// What gives the rows.
    pub below: Query,
    /// The columns. Theirs are of relation 0, the query below.
    pub targets: Vec<Target>,
}

/// Takes such columns out of a query; none where none has calls, or where they cannot come last.
#[must_use]
pub fn called_last(query: &Query) -> Option<CalledLast> {
    let is_plain = !query.has_set_targets
        && query.distinct == Distinctness::All
        && !query.with_ties
        && query.set_operation.is_none();
    let orders: Vec<usize> = query.order.iter().map(|order| order.target).collect();
    let is_moved = |place: usize, target: &Target| {
        !target.hidden && !orders.contains(&place) && target.expr.any(&mut Expr::is_called)
    };
    let mut targets = query.targets.iter().enumerate();
    if !is_plain || !targets.any(|(place, target)| is_moved(place, target)) {
        return None;
    }
    let groups = query.group.iter().flat_map(|group| &group.exprs);
    let mut last = Last {
        shown: query.targets.iter().filter(|target| !target.hidden).count(),
        needed: Vec::new(),
        groups: groups.cloned().collect(),
    };
    let mut below = query.clone();
    let mut targets = Vec::with_capacity(last.shown);
    for (place, target) in below.targets.iter_mut().enumerate() {
        if target.hidden {
            continue;
        }
        let mut shown = target.clone();
        if is_moved(place, target) {
            last.lift(&mut shown.expr);
            target.expr.kind = ExprKind::Constant(Datum::Null);
        } else {
            last.show(&mut shown.expr, targets.len());
        }
        targets.push(shown);
    }
    below
        .targets
        .extend(last.needed.into_iter().map(|expr| Target {
            expr,
            name: Arc::from("?column?"),
            hidden: false,
            origin: None,
        }));
    Some(CalledLast { below, targets })
}

impl CalledLast {
    /// As one query over the other.
    #[must_use]
    pub fn into_query(self) -> Query {
        let columns = self.below.columns();
        Query {
            relations: vec![Relation {
                kind: RelationKind::Subquery(Box::new(self.below), false),
                alias: Arc::from("rows"),
                columns,
                reader: None,
            }],
            from: vec![From::Relation(0)],
            targets: self.targets,
            ..Query::default()
        }
    }
}

impl Last {
    /// Puts a column of the query below in the place of an expression.
    fn show(&self, expr: &mut Expr, column: usize) {
        expr.kind = ExprKind::Column {
            level: 0,
            relation: 0,
            column,
        };
    }

    /// Puts columns of the query below in the place of all that only it gives.
    fn lift(&mut self, expr: &mut Expr) {
        let is_of_below = match &expr.kind {
            ExprKind::Column { .. }
            | ExprKind::WholeRow { .. }
            | ExprKind::Subquery(_)
            | ExprKind::Aggregate(_)
            | ExprKind::Window(_)
            | ExprKind::Grouping(..) => true,
            _ => self.groups.iter().any(|group| group.same(expr)),
        };
        if !is_of_below {
            expr.children_mut(&mut |child| self.lift(child));
            return;
        }
        let known = self.needed.iter().position(|needed| needed.same(expr));
        let place = known.unwrap_or_else(|| {
            self.needed.push(expr.clone());
            self.needed.len() - 1
        });
        self.show(expr, self.shown + place);
    }
}
