//! WITH: queries that are computed once for several references, and recursive ones.

use std::sync::Arc;

use datafusion::common::JoinType;
use thermocline_query::error::Result;
use thermocline_query::tree::{CommonTable, ExprKind, Query, RelationKind, SetOperation};

use super::plan::{On, df};
use super::scope::{Common, Previous};
use super::{Lowerer, Rel, contradiction};
use crate::operators;
use crate::operators::recursion::{Previous as ReadPrevious, Recursion, Round};
use crate::operators::shared::{Generation, Shared};
use crate::udf::{column, is_volatile};

/// How often a query refers to a query of a WITH, `depth` queries within the one that has it.
fn references(query: &Query, depth: usize, place: usize) -> usize {
    let mut found = 0;
    for common in &query.with {
        found += references(&common.query, depth + 1, place);
    }
    for relation in &query.relations {
        match &relation.kind {
            RelationKind::Common { level, place: of } if (*level, *of) == (depth, place) => {
                found += 1;
            }
            RelationKind::Subquery(query, _) => found += references(query, depth + 1, place),
            _ => {}
        }
    }
    query.exprs(&mut |expr| {
        expr.any(&mut |expr| {
            if let ExprKind::Subquery(subquery) = &expr.kind {
                found += references(&subquery.query, depth + 1, place);
            }
            false
        });
    });
    found
}

fn is_shared(table: &CommonTable, place: usize) -> bool {
    let within = match table.recursive {
        true => references(&table.query, 1, place),
        false => 0,
    };
    if table.references < 2 + within && table.materialized != Some(true) {
        return false;
    }
    if table.recursive || table.materialized != Some(false) {
        return true;
    }
    let mut volatile = false;
    table
        .query
        .exprs(&mut |expr| volatile = volatile || is_volatile(expr));
    volatile
}

impl Lowerer<'_> {
    fn common_at(&mut self, scope: usize, place: usize) -> Result<&mut Common> {
        self.scopes
            .get_mut(scope)
            .and_then(|scope| scope.with.get_mut(place))
            .ok_or_else(|| contradiction("a WITH that is not there"))
    }

    /// The rows of a reference to a query of a WITH, for each row of `base`.
    pub(super) fn common(
        &mut self,
        level: usize,
        place: usize,
        base: Rel,
    ) -> Result<(Rel, Vec<usize>)> {
        let scope = self.scopes.len().checked_sub(1 + level);
        let scope = scope.ok_or_else(|| contradiction("a WITH too far out"))?;
        let common = self.common_at(scope, place)?.clone();
        if let Some(previous) = &common.previous {
            return self.previous(&common, previous, base);
        }
        if !common.refs.is_empty() {
            return self.within(base, &common.refs, |lowerer, domain| {
                lowerer.at_scope(scope, |lowerer| {
                    lowerer.common_rows(scope, place, &common, domain)
                })
            });
        }
        if let Some((shared, outputs)) = &common.shared {
            let rel = Rel {
                plan: df(operators::plan(Arc::clone(shared) as _, Vec::new()))?,
                columns: outputs.clone(),
            };
            let rel = self.renamed(&rel)?;
            let outputs = rel.columns.clone();
            return Ok((base.crossed(rel)?, outputs));
        }
        let generation = std::mem::replace(&mut self.generation, Arc::clone(&common.generation));
        let rows = self.at_scope(scope, |lowerer| {
            lowerer.common_rows(scope, place, &common, None)
        });
        self.generation = generation;
        let (rel, outputs) = rows?;
        if !is_shared(&common.table, place) {
            return Ok((base.crossed(rel)?, outputs));
        }
        // A column may be shown twice.
        let exprs = outputs
            .iter()
            .map(|id| (self.fresh(self.types[*id]), column(*id)));
        let exprs: Vec<_> = exprs.collect();
        let ids: Vec<usize> = exprs.iter().map(|(id, _)| *id).collect();
        let rel = rel.with(exprs)?.only(&ids)?;
        let typed = self.typed(&ids);
        let generation = Arc::clone(&common.generation);
        let environment = Arc::clone(&self.context.environment);
        let shared = Arc::new(Shared::new(rel.plan, typed, generation, environment));
        self.common_at(scope, place)?.shared = Some((shared, ids));
        self.common(level, place, base)
    }

    /// Lowers something as it stands in a scope further out.
    fn at_scope<T>(
        &mut self,
        scope: usize,
        lower: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let inner = self.scopes.split_off((scope + 1).min(self.scopes.len()));
        let result = lower(self);
        self.scopes.truncate(scope + 1);
        self.scopes.extend(inner);
        result
    }

    fn common_rows(
        &mut self,
        scope: usize,
        place: usize,
        common: &Common,
        base: Option<Rel>,
    ) -> Result<(Rel, Vec<usize>)> {
        let query = &common.table.query;
        match (&query.set_operation, common.table.recursive) {
            (
                Some(SetOperation::Node {
                    all,
                    left,
                    right,
                    casts,
                    ..
                }),
                true,
            ) => {
                self.enter(query);
                let base = base.unwrap_or_else(Rel::one_row);
                let result =
                    self.recursion((scope, place, common), *all, (left, right), casts, base);
                self.scopes.pop();
                result
            }
            _ => self.query(query, base, false),
        }
    }

    fn recursion(
        &mut self,
        (scope, place, common): (usize, usize, &Common),
        all: bool,
        (left, right): (&SetOperation, &SetOperation),
        casts: &[Vec<thermocline_query::tree::Expr>; 2],
        base: Rel,
    ) -> Result<(Rel, Vec<usize>)> {
        let query = &common.table.query;
        let (first, of_first) = self.set_side(query, left, &casts[0], &base)?;
        let mut types: Vec<u32> = base.columns.iter().map(|id| self.types[*id]).collect();
        types.extend(of_first.iter().map(|id| self.types[*id]));
        let (round, generation) = (Round::default(), Generation::default());
        self.common_at(scope, place)?.previous = Some(Previous {
            round: Arc::clone(&round),
            columns: types,
        });
        let outer = std::mem::replace(&mut self.generation, Arc::clone(&generation));
        let next = self.set_side(query, right, &casts[1], &base);
        self.generation = outer;
        self.common_at(scope, place)?.previous = None;
        let (next, of_next) = next?;
        let outputs: Vec<usize> = of_first
            .iter()
            .map(|id| self.fresh(self.types[*id]))
            .collect();
        let domain = &base.columns;
        let columns = domain.iter().chain(&outputs).copied();
        let columns: Vec<usize> = columns.collect();
        let input = |of: &[usize]| domain.iter().chain(of).copied().collect::<Vec<usize>>();
        let recursion = Recursion {
            columns: self.typed(&columns),
            domain: domain.len(),
            distinct: !all,
            round,
            generation,
            inputs: [input(&of_first), input(&of_next)],
        };
        let plan = operators::plan(Arc::new(recursion), vec![first.plan, next.plan]);
        Ok((
            Rel {
                plan: df(plan)?,
                columns,
            },
            outputs,
        ))
    }

    /// The round before, within a recursive query.
    fn previous(
        &mut self,
        common: &Common,
        previous: &Previous,
        base: Rel,
    ) -> Result<(Rel, Vec<usize>)> {
        let types = previous.columns.iter();
        let columns: Vec<usize> = types.map(|oid| self.fresh(*oid)).collect();
        let operator = ReadPrevious {
            columns: self.typed(&columns),
            round: Arc::clone(&previous.round),
        };
        let rel = Rel {
            plan: df(operators::plan(Arc::new(operator), Vec::new()))?,
            columns: columns.clone(),
        };
        let domain = common.refs.len();
        let outputs = columns.get(domain..).unwrap_or_default().to_vec();
        if domain == 0 {
            return Ok((base.crossed(rel)?, outputs));
        }
        let keys = common.refs.iter().zip(&columns);
        let keys = keys.map(|(id, of)| (column(self.current(*id)), column(*of)));
        let on = On {
            keys: keys.collect(),
            filter: None,
            nulls_equal: true,
        };
        Ok((base.joined(rel, JoinType::Inner, on)?, outputs))
    }
}
