//! Joins.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::logical_expr::Expr as DfExpr;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::tree::{Expr, From, JoinKind, Query};
use thermocline_query::types::ids;

use super::expr::conjuncts;
use super::member::Members;
use super::plan::On;
use super::query::has_query;
use super::{Lowerer, Rel};
use crate::operators::order::Numbered;
use crate::udf::{column, named};

impl Lowerer<'_> {
    /// How two relations are joined where these bound conditions are true.
    pub(super) fn on(&self, conditions: Vec<Expr>, left: &Rel, right: &Rel) -> On {
        let is_left = |id: usize| left.columns.contains(&id);
        let is_right = |id: usize| right.columns.contains(&id);
        let mut on = On::default();
        let mut rest = Vec::new();
        for condition in conditions {
            match self.key_pair(&condition, &is_left, &is_right) {
                Some(pair) => on.keys.push(pair),
                None => rest.push(condition),
            }
        }
        on.filter = self.predicate(&rest);
        on
    }

    pub(super) fn conditions(&self, condition: Option<&Expr>) -> Result<Vec<Expr>> {
        let Some(condition) = condition else {
            return Ok(Vec::new());
        };
        let parts = conjuncts(condition.clone());
        parts.iter().map(|part| self.bind(part)).collect()
    }

    /// The rows of a join for each row of `base`.
    pub(super) fn join(
        &mut self,
        query: &Query,
        kind: JoinKind,
        (left, right): (&From, &From),
        condition: Option<&Expr>,
        base: Rel,
    ) -> Result<Rel> {
        match kind {
            JoinKind::Inner => {
                let members = Members::of_join((left, right), condition);
                self.members(query, members, base)
            }
            JoinKind::Left => self.left_join(query, (left, right), condition, base),
            JoinKind::Right => self.left_join(query, (right, left), condition, base),
            JoinKind::Full => self.full_join(query, (left, right), condition, base),
        }
    }

    fn left_join(
        &mut self,
        query: &Query,
        (left, right): (&From, &From),
        condition: Option<&Expr>,
        base: Rel,
    ) -> Result<Rel> {
        let left = self.from(query, left, base)?;
        let refs = self.tree_refs(query, right);
        if condition.is_some_and(has_query) {
            return self.left_join_of_matches(query, left, right, condition);
        }
        if refs.is_empty() {
            let right = self.from(query, right, Rel::one_row())?;
            let on = self.on(self.conditions(condition)?, &left, &right);
            return left.joined(right, JoinType::Left, on);
        }
        let applied = self.apply(left, &refs, None, |lowerer, domain| {
            let inner = lowerer.from(query, right, domain)?;
            Ok((inner, ()))
        })?;
        let mut on = applied.on();
        let conditions = self.conditions(condition)?;
        on.filter = match (on.filter.take(), self.predicate(&conditions)) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        };
        applied.outer.joined(applied.inner, JoinType::Left, on)
    }

    /// A left join whose condition has queries: first the pairs that match, by the number of
    /// their left row, then the left rows with them.
    fn left_join_of_matches(
        &mut self,
        query: &Query,
        left: Rel,
        right: &From,
        condition: Option<&Expr>,
    ) -> Result<Rel> {
        let number = self.fresh(ids::INT8);
        let left = left.operated(Arc::new(Numbered { id: number }))?;
        let left = self.shared(left)?;
        let before = left.columns.clone();
        let mut matches = self.from(query, right, left.clone())?;
        let added: Vec<usize> = matches
            .columns
            .iter()
            .copied()
            .filter(|id| !before.contains(id))
            .collect();
        if let Some(condition) = condition {
            matches = self.filter(matches, condition)?;
        }
        let of_match = self.fresh(ids::INT8);
        let mut kept = added;
        kept.push(of_match);
        let matches = matches
            .with(vec![(of_match, column(number))])?
            .only(&kept)?;
        let on = On {
            keys: vec![(column(number), column(of_match))],
            ..On::default()
        };
        left.joined(matches, JoinType::Left, on)
    }

    fn full_join(
        &mut self,
        query: &Query,
        (left, right): (&From, &From),
        condition: Option<&Expr>,
        base: Rel,
    ) -> Result<Rel> {
        if condition.is_some_and(has_query) {
            return Err(QueryError::unsupported(
                "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
                "Write a UNION ALL of a LEFT JOIN and the rows of the right side that have no match.",
            ));
        }
        if !base.is_one_row() {
            let mut refs = self.tree_refs(query, left);
            refs.extend(self.tree_refs(query, right));
            if let Some(condition) = condition {
                let mut found = std::collections::BTreeSet::new();
                self.expr_refs(condition, 0, &mut found);
                refs.extend(found);
            }
            refs.sort_unstable();
            refs.dedup();
            let (rel, ()) = self.within(base, &refs, |lowerer, domain| {
                let domain = domain.unwrap_or_else(Rel::one_row);
                let rel =
                    lowerer.full_join_within(query, (left, right), condition, &refs, &domain)?;
                Ok((rel, ()))
            })?;
            return Ok(rel);
        }
        let left = self.from(query, left, Rel::one_row())?;
        let right = self.from(query, right, Rel::one_row())?;
        let on = self.on(self.conditions(condition)?, &left, &right);
        left.joined(right, JoinType::Full, on)
    }

    /// A full join over a domain, which both sides have.
    fn full_join_within(
        &mut self,
        query: &Query,
        (left, right): (&From, &From),
        condition: Option<&Expr>,
        refs: &[usize],
        domain: &Rel,
    ) -> Result<Rel> {
        let left = self.from(query, left, domain.clone())?;
        let (left, mark) = self.marked(left)?;
        let other = self.renamed(domain)?;
        let before = self.renames.clone();
        for (id, new) in refs.iter().zip(&other.columns) {
            self.renames.insert(*id, *new);
        }
        let right = self.from(query, right, other.clone());
        self.renames = before;
        let right = right?;
        let keys = domain.columns.iter().zip(&other.columns);
        let on = On {
            keys: keys.map(|(a, b)| (column(*a), column(*b))).collect(),
            filter: self.predicate(&self.conditions(condition)?),
            nulls_equal: true,
        };
        let rel = left.joined(right, JoinType::Full, on)?;
        let exprs = rel.columns.iter().map(|id| {
            let place = domain.columns.iter().position(|of| of == id);
            let Some(twin) = place.and_then(|place| other.columns.get(place)) else {
                return column(*id);
            };
            let case = datafusion::logical_expr::Case::new(
                None,
                vec![(Box::new(column(mark).is_not_null()), Box::new(column(*id)))],
                Some(Box::new(column(*twin))),
            );
            named(DfExpr::Case(case), *id)
        });
        Ok(Rel {
            plan: super::plan::project(&rel, exprs.collect())?,
            columns: rel.columns,
        })
    }
}
