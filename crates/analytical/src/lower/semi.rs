//! Queries as conditions of their own: EXISTS and IN that only keep rows or leave them out.

use datafusion::common::JoinType;
use thermocline_query::error::Result;
use thermocline_query::tree::{Expr, ExprKind, Query, Subquery, SubqueryKind};

use super::expr::conjuncts;
use super::member::Members;
use super::query::has_query;
use super::subquery::substitute;
use super::{Lowerer, Rel};
use crate::evaluate::column as bound_column;

/// A query that has rows exactly where its FROM and WHERE have, and nothing else that matters.
fn is_plain(query: &Query, of_values: bool) -> bool {
    query.with.is_empty()
        && query.set_operation.is_none()
        && query.group.is_none()
        && query.having.is_none()
        && query.windows.is_empty()
        && !query.has_set_targets
        && query.limit.is_none()
        && query.offset.is_none()
        && !query.from.is_empty()
        && !(of_values && query.targets.iter().any(|target| has_query(&target.expr)))
}

impl Lowerer<'_> {
    /// Keeps the rows of which a condition is true, as a semi or an anti join. If it can not be
    /// one, the rows come back.
    pub(super) fn semi(&mut self, rel: Rel, condition: &Expr) -> Result<Result<Rel, Rel>> {
        let (subquery, negated) = match &condition.kind {
            ExprKind::Subquery(subquery) => (subquery, false),
            ExprKind::Not(inner) => match &inner.kind {
                ExprKind::Subquery(subquery) => (subquery, true),
                _ => return Ok(Err(rel)),
            },
            _ => return Ok(Err(rel)),
        };
        let of_values = match (subquery.kind, negated) {
            (SubqueryKind::Exists, _) => false,
            (SubqueryKind::Any, false) => true,
            _ => return Ok(Err(rel)),
        };
        if rel.is_one_row() || subquery.test.as_ref().is_some_and(has_query) {
            return Ok(Err(rel));
        }
        if is_plain(&subquery.query, of_values) {
            self.enter(&subquery.query);
            let inner = self.plain_rows(&subquery.query, of_values);
            self.scopes.pop();
            if let Some((inner, mut conditions, values)) = inner? {
                conditions.extend(self.test(subquery, &values)?);
                return self.semi_joined(rel, inner, conditions, negated).map(Ok);
            }
        }
        if of_values && self.refs_of_query(&subquery.query).is_empty() {
            let (inner, outputs) = self.query(&subquery.query, None, false)?;
            let values: Vec<Expr> = outputs
                .iter()
                .map(|id| bound_column(*id, self.types[*id]))
                .collect();
            let conditions = self.test(subquery, &values)?;
            return self.semi_joined(rel, inner, conditions, negated).map(Ok);
        }
        Ok(Err(rel))
    }

    fn semi_joined(
        &self,
        rel: Rel,
        inner: Rel,
        conditions: Vec<Expr>,
        negated: bool,
    ) -> Result<Rel> {
        let on = self.on(conditions, &rel, &inner);
        let kind = if negated {
            JoinType::LeftAnti
        } else {
            JoinType::LeftSemi
        };
        rel.joined(inner, kind, on)
    }

    /// The test of `ANY` over the values of a query.
    fn test(&self, subquery: &Subquery, values: &[Expr]) -> Result<Vec<Expr>> {
        let Some(test) = &subquery.test else {
            return Ok(Vec::new());
        };
        let mut test = self.bind(test)?;
        substitute(&mut test, values);
        Ok(conjuncts(test))
    }

    /// The rows of a plain query whose FROM refers to nothing outside; the conditions that do;
    /// the targets. `None` for other queries.
    #[allow(clippy::type_complexity, reason = "one caller")]
    fn plain_rows(
        &mut self,
        query: &Query,
        of_values: bool,
    ) -> Result<Option<(Rel, Vec<Expr>, Vec<Expr>)>> {
        for from in &query.from {
            if !self.tree_refs(query, from).is_empty() {
                return Ok(None);
            }
        }
        let parts = query.filter.clone().map(conjuncts).unwrap_or_default();
        let is_correlated = |lowerer: &Self, expr: &Expr| {
            let mut found = std::collections::BTreeSet::new();
            lowerer.expr_refs(expr, 0, &mut found);
            !found.is_empty()
        };
        // Nothing of the query itself is there yet: what is found is outside.
        let (correlated, own): (Vec<Expr>, Vec<Expr>) = parts
            .into_iter()
            .partition(|part| is_correlated(self, part));
        if correlated.iter().any(has_query) {
            return Ok(None);
        }
        let outer_targets = of_values
            && query
                .targets
                .iter()
                .any(|target| is_correlated(self, &target.expr));
        if outer_targets {
            return Ok(None);
        }
        let mut rel = self.members(query, Members::of_from(query), Rel::one_row())?;
        for part in own {
            rel = self.filter(rel, &part)?;
        }
        let correlated = correlated.iter().map(|part| self.bind(part));
        let correlated = correlated.collect::<Result<Vec<_>>>()?;
        let mut values = Vec::new();
        if of_values {
            for target in query.targets.iter().filter(|target| !target.hidden) {
                values.push(self.bind(&target.expr)?);
            }
        }
        Ok(Some((rel, correlated, values)))
    }
}
