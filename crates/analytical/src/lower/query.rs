//! A query: its clauses in the order in which they are computed.

use std::sync::Arc;

use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::tree::{Expr, ExprKind, Query};

use super::aggregate::asks_nothing_of_rows;
use super::expr::conjuncts;
use super::member::Members;
use super::scope::{Common, Scope, used_columns};
use super::{Lowerer, Rel};
use crate::evaluate::columns_of;
use crate::udf::is_volatile;

/// Whether there is a query within an expression.
pub(super) fn has_query(expr: &Expr) -> bool {
    expr.any(&mut |expr| matches!(expr.kind, ExprKind::Subquery(_)))
}

impl Lowerer<'_> {
    /// The rows of a query for each row of `base`, which are different ones: all columns of
    /// `base`, and those of the query's result that are shown.
    pub(super) fn query(
        &mut self,
        query: &Query,
        base: Option<Rel>,
        is_top: bool,
    ) -> Result<(Rel, Vec<usize>)> {
        self.enter(query);
        let result = self.clauses(query, base.unwrap_or_else(Rel::one_row), is_top);
        self.scopes.pop();
        result
    }

    /// Opens the scope of a query.
    pub(super) fn enter(&mut self, query: &Query) {
        let used = used_columns(query);
        self.scopes.push(Scope {
            relations: vec![super::scope::RelationColumns::default(); used.len()],
            used,
            ..Scope::default()
        });
        for table in &query.with {
            let refs = self.refs_of_query(&table.query);
            let common = Common {
                table: Arc::new(table.clone()),
                refs,
                shared: None,
                previous: None,
                generation: Arc::clone(&self.generation),
            };
            if let Some(scope) = self.scopes.last_mut() {
                scope.with.push(common);
            }
        }
    }

    fn clauses(&mut self, query: &Query, base: Rel, is_top: bool) -> Result<(Rel, Vec<usize>)> {
        let mut rel = match &query.set_operation {
            Some(operation) => self.set_operation(query, operation, &base)?,
            None if asks_nothing_of_rows(query) => base.clone(),
            None => self.members(query, Members::of_query(query), base.clone())?,
        };
        if !asks_nothing_of_rows(query) {
            if let Some(filter) = &query.filter {
                rel = self.filter(rel, filter)?;
            }
            if let Some(group) = &query.group {
                rel = self.group(query, group, rel, &base)?;
            }
        }
        if let Some(having) = &query.having {
            rel = self.filter(rel, having)?;
        }
        rel = self.windows(query, rel, &base.columns)?;
        self.results(query, rel, &base.columns, is_top)
    }

    /// Only the rows of which this is true.
    pub(super) fn filter(&mut self, mut rel: Rel, filter: &Expr) -> Result<Rel> {
        let conditions = conjuncts(filter.clone());
        let (with_query, plain): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(has_query);
        let plain = plain.iter().map(|condition| self.bind(condition));
        let mut plain = plain.collect::<Result<Vec<_>>>()?;
        // What has no columns is decided here: pushed down it would not be the same.
        let mut nothing = false;
        plain.retain(|condition| match self.decided(condition) {
            Some(holds) => {
                nothing |= !holds;
                false
            }
            None => true,
        });
        if nothing {
            return Ok(rel.without_rows());
        }
        if let Some(predicate) = self.predicate(&plain) {
            rel = rel.filtered(predicate)?;
        }
        for condition in with_query {
            rel = match self.semi(rel, &condition)? {
                Ok(rel) => rel,
                Err(rel) => {
                    let bound = self.bind(&condition)?;
                    let (bound, rel) = self.extract(bound, rel, &[])?;
                    match self.predicate(&[bound]) {
                        Some(predicate) => rel.filtered(predicate)?,
                        None => rel,
                    }
                }
            };
        }
        Ok(rel)
    }

    /// Whether a condition without columns is true, where it can be told.
    fn decided(&self, condition: &Expr) -> Option<bool> {
        if !columns_of([condition]).is_empty() || is_volatile(condition) {
            return None;
        }
        let value = self.constant(condition).ok()?;
        Some(matches!(value, Datum::Bool(true)))
    }

    /// A bound expression and the relation with what its queries give.
    pub(super) fn bound(&mut self, expr: &Expr, rel: Rel) -> Result<(Expr, Rel)> {
        let bound = self.bind(expr)?;
        self.extract(bound, rel, &[])
    }
}
