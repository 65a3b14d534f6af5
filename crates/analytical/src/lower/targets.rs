//! The result's columns: expressions, and functions that give rows.

use std::sync::Arc;

use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::tree::{Distinctness, Expr, ExprKind, Query};

use super::query::has_query;
use super::{Lowerer, Rel};
use crate::evaluate::{as_column, column as bound_column, columns_of};
use crate::operators::generate::{Generate, Source};
use crate::sort_key::Direction;
use crate::udf::is_volatile;

fn is_set(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call(call) if call.function.returns_set())
}

fn has_set(expr: &Expr) -> bool {
    expr.any(&mut is_set)
}

/// The calls that give rows and have none within, put in place of by columns.
fn take_innermost(expr: &mut Expr, take: &mut dyn FnMut(Expr) -> usize) {
    if !has_set(expr) {
        return;
    }
    let mut within = false;
    expr.children(&mut |child| within = within || has_set(child));
    if within {
        expr.children_mut(&mut |child| take_innermost(child, take));
        return;
    }
    let id = take(expr.clone());
    expr.kind = bound_column(id, expr.oid).kind;
}

/// Of so many rows, or fewer, that LIMIT leaves, targets are computed when they are left: what is
/// carried until then is wider than what is computed of it.
const LATE_ROWS_MAX: i64 = 10_000;

/// The targets that are computed when the rows are in order, and only of those that LIMIT leaves.
/// None of them is asked by ORDER BY or DISTINCT. As in PostgreSQL they are those that change from
/// call to call, such as `nextval`; and what is computed at all where LIMIT leaves few rows: it need
/// not be computed of the others, and cannot fail for them.
fn late_targets(query: &Query, exprs: &[Expr], few: bool) -> Vec<usize> {
    let ordered = !query.order.is_empty() || query.limit.is_some() || query.offset.is_some();
    if !ordered || query.distinct != Distinctness::All {
        return Vec::new();
    }
    let late = exprs.iter().enumerate().filter(|(at, expr)| {
        let asked = query.order.iter().any(|order| order.target == *at);
        !asked && (is_volatile(expr) || few && is_computed(expr))
    });
    late.map(|(at, _)| at).collect()
}

fn is_computed(expr: &Expr) -> bool {
    !matches!(
        expr.kind,
        ExprKind::Column { .. } | ExprKind::Constant(_) | ExprKind::Parameter(_)
    )
}

/// The columns of the targets that are shown, as far as they are there.
fn shown_columns(query: &Query, ids: &[Option<usize>]) -> Vec<usize> {
    let shown = query.targets.iter().zip(ids);
    let shown = shown.filter(|(target, _)| !target.hidden);
    shown.filter_map(|(_, id)| *id).collect()
}

impl Lowerer<'_> {
    /// Whether LIMIT is known to leave few rows.
    fn leaves_few(&mut self, query: &Query) -> bool {
        let limit = query.limit.as_ref().filter(|limit| !has_query(limit));
        let Some(Ok(limit)) = limit.map(|limit| self.bind(limit)) else {
            return false;
        };
        columns_of([&limit]).is_empty()
            && matches!(self.constant(&limit), Ok(Datum::Int8(rows)) if rows <= LATE_ROWS_MAX)
    }

    /// The rest of a query: its result's columns, which of equal rows, their order and how many.
    pub(super) fn results(
        &mut self,
        query: &Query,
        mut rel: Rel,
        domain: &[usize],
        is_top: bool,
    ) -> Result<(Rel, Vec<usize>)> {
        let mut exprs = Vec::with_capacity(query.targets.len());
        for target in &query.targets {
            let (bound, with) = self.bound(&target.expr, rel)?;
            rel = with;
            exprs.push(bound);
        }
        let sets = exprs.iter().any(has_set);
        let ordered_by_sets = query
            .order
            .iter()
            .any(|order| exprs.get(order.target).is_some_and(has_set));
        let first = sets
            && !query.order.is_empty()
            && !ordered_by_sets
            && query.distinct != Distinctness::Distinct;
        let mut ids: Vec<Option<usize>> = vec![None; exprs.len()];
        let late = match sets {
            true => Vec::new(),
            false => late_targets(query, &exprs, self.leaves_few(query)),
        };
        rel = self.computed(rel, &exprs, &mut ids, &late)?;
        if first {
            // Rows that functions make of a row stay together, and are made of those that
            // DISTINCT ON leaves.
            if let Distinctness::On(places) = &query.distinct {
                rel = self.first_of_each(query, rel, domain, &ids, places)?;
            }
            let keys = self.order_keys(query, &ids);
            rel = self.ordered(rel, &keys)?;
        }
        rel = self.generated(rel, &mut exprs)?;
        rel = self.computed(rel, &exprs, &mut ids, &late)?;
        let mut shown = shown_columns(query, &ids);
        match &query.distinct {
            Distinctness::Distinct => rel = self.different(rel, domain, &shown)?,
            Distinctness::On(places) if !first => {
                rel = self.first_of_each(query, rel, domain, &ids, places)?;
            }
            _ => {}
        }
        let mut keys = match first {
            true => Vec::new(),
            false => self.order_keys(query, &ids),
        };
        if query.offset.is_some() && late.iter().any(|at| is_volatile(&exprs[*at])) {
            // They are computed of the rows that OFFSET passes over, too.
            rel = self.ordered(rel, &std::mem::take(&mut keys))?;
            rel = self.computed(rel, &exprs, &mut ids, &[])?;
        }
        if query.distinct == Distinctness::Distinct && !keys.is_empty() && !query.with_ties {
            // As PostgreSQL, which sorts by all columns to tell equal rows.
            let rest = shown.iter().map(|id| {
                let column = crate::evaluate::column(*id, self.types[*id]);
                (column, Direction::default())
            });
            keys.extend(rest);
        }
        rel = self.limit(query, rel, domain, keys, is_top)?;
        if !late.is_empty() {
            rel = self.computed(rel, &exprs, &mut ids, &[])?;
            shown = shown_columns(query, &ids);
        }
        if is_top {
            // The result's columns stand for themselves, even if one is shown twice.
            let mut outputs = Vec::with_capacity(shown.len());
            let mut added = Vec::new();
            for id in shown {
                if outputs.contains(&id) {
                    let copy = self.fresh(self.types[id]);
                    added.push((copy, crate::udf::column(id)));
                    outputs.push(copy);
                } else {
                    outputs.push(id);
                }
            }
            return Ok((rel.with(added)?, outputs));
        }
        Ok((rel, shown))
    }

    /// Computes those targets that give no rows and are not there yet, but for those at `late`.
    fn computed(
        &mut self,
        rel: Rel,
        exprs: &[Expr],
        ids: &mut [Option<usize>],
        late: &[usize],
    ) -> Result<Rel> {
        let mut added = Vec::new();
        for (at, (expr, slot)) in exprs.iter().zip(ids).enumerate() {
            if slot.is_some() || has_set(expr) || late.contains(&at) {
                continue;
            }
            *slot = Some(match as_column(expr) {
                Some(id) if self.types[id] == expr.oid => id,
                _ => {
                    let id = self.fresh(expr.oid);
                    added.push((id, self.scalar(expr)));
                    id
                }
            });
        }
        rel.with(added)
    }

    /// Runs the functions that give rows, the innermost first; those of one depth side by side.
    pub(super) fn generated(&mut self, mut rel: Rel, exprs: &mut [Expr]) -> Result<Rel> {
        while exprs.iter().any(has_set) {
            let mut taken: Vec<(usize, Expr)> = Vec::new();
            for expr in exprs.iter_mut() {
                take_innermost(expr, &mut |call| {
                    let id = self.fresh(call.oid);
                    taken.push((id, call));
                    id
                });
            }
            let inputs = self.typed(&columns_of(taken.iter().map(|(_, call)| call)));
            let sources = taken.into_iter().map(|(id, call)| {
                let oid = call.oid;
                Source::Call(call, vec![(id, oid)])
            });
            let generate = Generate {
                sources: sources.collect(),
                ordinality: None,
                inputs,
                context: self.context.clone(),
            };
            rel = rel.operated(Arc::new(generate))?;
        }
        Ok(rel)
    }

    pub(super) fn order_keys(
        &self,
        query: &Query,
        ids: &[Option<usize>],
    ) -> Vec<(Expr, Direction)> {
        let key = |order: &thermocline_query::tree::Order| {
            let id = ids.get(order.target).copied().flatten()?;
            let direction = Direction {
                descending: order.descending,
                nulls_first: order.nulls_first,
            };
            Some((bound_column(id, self.types[id]), direction))
        };
        query.order.iter().filter_map(key).collect()
    }
}
