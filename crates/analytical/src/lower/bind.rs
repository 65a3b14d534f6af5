//! Expressions bound to the columns of plans, and which columns a query refers to.

use std::collections::BTreeSet;

use thermocline_query::error::Result;
use thermocline_query::tree::{Expr, ExprKind, Query, RelationKind};

use super::{Lowerer, contradiction};
use crate::evaluate::column;

/// Whether two bound expressions are the same. Queries in them are the same if they are written
/// the same.
fn same(a: &Expr, b: &Expr) -> bool {
    if a.oid != b.oid || std::mem::discriminant(&a.kind) != std::mem::discriminant(&b.kind) {
        return false;
    }
    if a.same(b) {
        return true;
    }
    let has_query = |expr: &Expr| expr.any(&mut |expr| matches!(expr.kind, ExprKind::Subquery(_)));
    has_query(a) && has_query(b) && format!("{a:?}") == format!("{b:?}")
}

impl Lowerer<'_> {
    /// The scope of a level that is seen from `depth` queries within the innermost scope.
    fn scope_at(&self, level: usize, depth: usize) -> Result<&super::Scope> {
        level
            .checked_sub(depth)
            .and_then(|out| self.scopes.len().checked_sub(1 + out))
            .and_then(|place| self.scopes.get(place))
            .ok_or_else(|| contradiction("a level too far out"))
    }

    fn resolve(&self, level: usize, depth: usize, relation: usize, at: usize) -> Result<usize> {
        let scope = self.scope_at(level, depth)?;
        scope
            .relations
            .get(relation)
            .and_then(|columns| columns.ids.get(at).copied().flatten())
            .ok_or_else(|| contradiction("a column that is not there"))
    }

    fn resolve_whole(&self, level: usize, depth: usize, relation: usize) -> Result<usize> {
        let scope = self.scope_at(level, depth)?;
        let columns = scope.relations.get(relation);
        columns
            .and_then(|columns| columns.whole)
            .ok_or_else(|| contradiction("a row that is not there"))
    }

    /// A bound expression as queries see it where it is: nothing replaced, columns by their first
    /// numbers. `None` if it refers to queries within.
    fn bind_first(&self, expr: &Expr, depth: usize) -> Option<Expr> {
        let mut bound = expr.clone();
        self.bind_first_mut(&mut bound, depth).then_some(bound)
    }

    fn bind_first_mut(&self, expr: &mut Expr, depth: usize) -> bool {
        match &mut expr.kind {
            ExprKind::Column {
                level,
                relation,
                column: at,
            } => {
                if *level < depth {
                    return false;
                }
                let Ok(id) = self.resolve(*level, depth, *relation, *at) else {
                    return false;
                };
                (*level, *relation, *at) = (0, 0, id);
            }
            ExprKind::WholeRow { level, relation } => {
                if *level < depth {
                    return false;
                }
                let Ok(id) = self.resolve_whole(*level, depth, *relation) else {
                    return false;
                };
                expr.kind = column(id, expr.oid).kind;
            }
            ExprKind::Aggregate(call) => {
                if call.level < depth {
                    return false;
                }
                call.level = 0;
            }
            ExprKind::Window(_) if depth > 0 => return false,
            _ => {}
        }
        let mut all = true;
        expr.children_mut(&mut |child| all = all && self.bind_first_mut(child, depth));
        all
    }

    /// The first number of the column that an expression has become.
    fn replaced(&self, expr: &Expr, depth: usize) -> Option<usize> {
        if let ExprKind::Grouping(keys, level) = &expr.kind
            && *level >= depth
        {
            let groupings = &self.scope_at(*level, depth).ok()?.groupings;
            return groupings
                .iter()
                .find(|(of, _)| of == keys)
                .map(|(_, id)| *id);
        }
        let kind = std::mem::discriminant(&expr.kind);
        let is_like = |other: &Expr| {
            other.oid == expr.oid
                && (std::mem::discriminant(&other.kind) == kind
                    || matches!(expr.kind, ExprKind::WholeRow { .. }))
        };
        let candidates = self.scopes.iter().rev().flat_map(|scope| &scope.replaced);
        let mut candidates = candidates.filter(|(other, _)| is_like(other)).peekable();
        candidates.peek()?;
        let bound = self.bind_first(expr, depth)?;
        candidates
            .find(|(other, _)| same(other, &bound))
            .map(|(_, id)| *id)
    }

    /// An expression bound here. Queries within it stay as they are.
    pub(super) fn bind(&self, expr: &Expr) -> Result<Expr> {
        let mut bound = expr.clone();
        self.bind_mut(&mut bound)?;
        Ok(bound)
    }

    fn bind_mut(&self, expr: &mut Expr) -> Result<()> {
        if let Some(id) = self.replaced(expr, 0) {
            expr.kind = column(self.current(id), expr.oid).kind;
            return Ok(());
        }
        match &mut expr.kind {
            ExprKind::Column {
                level,
                relation,
                column: at,
            } => {
                let id = self.resolve(*level, 0, *relation, *at)?;
                expr.kind = column(self.current(id), expr.oid).kind;
            }
            ExprKind::WholeRow { level, relation } => {
                let id = self.resolve_whole(*level, 0, *relation)?;
                expr.kind = column(self.current(id), expr.oid).kind;
            }
            ExprKind::Aggregate(_) => return Err(contradiction("an aggregate out of place")),
            ExprKind::Window(_) => return Err(contradiction("a window out of place")),
            ExprKind::Grouping(..) => return Err(contradiction("GROUPING out of place")),
            // Its test is bound with its query.
            ExprKind::Subquery(_) => return Ok(()),
            _ => {}
        }
        let mut result = Ok(());
        expr.children_mut(&mut |child| {
            if result.is_ok() {
                result = self.bind_mut(child);
            }
        });
        result
    }

    /// The definition of a grouping expression or an aggregate: bound, by first numbers.
    pub(super) fn define(&self, expr: &Expr) -> Result<Expr> {
        self.bind_first(expr, 0)
            .ok_or_else(|| contradiction("a group over queries within"))
    }

    /// As [`Self::define`], for what stands `depth` queries within.
    pub(super) fn define_at(&self, expr: &Expr, depth: usize) -> Result<Expr> {
        self.bind_first(expr, depth)
            .ok_or_else(|| contradiction("an aggregate over queries within"))
    }

    /// The columns (their first numbers) that a query within the innermost scope refers to.
    pub(super) fn refs_of_query(&self, query: &Query) -> Vec<usize> {
        let mut found = BTreeSet::new();
        self.query_refs(query, 1, &mut found);
        found.into_iter().collect()
    }

    /// The columns that an expression refers to, `depth` queries within the innermost scope.
    pub(super) fn expr_refs(&self, expr: &Expr, depth: usize, found: &mut BTreeSet<usize>) {
        if let Some(id) = self.replaced(expr, depth) {
            found.insert(id);
            return;
        }
        match &expr.kind {
            ExprKind::Column {
                level,
                relation,
                column,
            } if *level >= depth => {
                found.extend(self.resolve(*level, depth, *relation, *column).ok());
            }
            ExprKind::WholeRow { level, relation } if *level >= depth => {
                found.extend(self.resolve_whole(*level, depth, *relation).ok());
            }
            ExprKind::Subquery(subquery) => self.query_refs(&subquery.query, depth + 1, found),
            _ => {}
        }
        expr.children(&mut |child| self.expr_refs(child, depth, found));
    }

    pub(super) fn query_refs(&self, query: &Query, depth: usize, found: &mut BTreeSet<usize>) {
        for common in &query.with {
            self.query_refs(&common.query, depth + 1, found);
        }
        for relation in &query.relations {
            match &relation.kind {
                RelationKind::Subquery(query, _) => self.query_refs(query, depth + 1, found),
                RelationKind::Functions { calls, .. } => {
                    for (call, _) in calls {
                        self.expr_refs(call, depth, found);
                    }
                }
                RelationKind::Values(rows, _) => {
                    for expr in rows.iter().flatten() {
                        self.expr_refs(expr, depth, found);
                    }
                }
                RelationKind::Common { level, place } if *level >= depth => {
                    if let Ok(scope) = self.scope_at(*level, depth)
                        && let Some(common) = scope.with.get(*place)
                    {
                        found.extend(&common.refs);
                    }
                }
                RelationKind::Common { .. } | RelationKind::Table(_) => {}
            }
        }
        query.own_exprs(&mut |expr| self.expr_refs(expr, depth, found));
    }
}
