//! DISTINCT, ORDER BY, LIMIT.

use std::sync::Arc;

use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, Sort, lit};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::tree::{Exclusion, Expr, FrameUnit, Query};
use thermocline_query::types::ids;

use super::query::has_query;
use super::{Lowerer, Rel};
use crate::evaluate::{column as bound_column, columns_of};
use crate::form::Form;
use crate::operators::frames::{Edge, Frame};
use crate::operators::order::Ordered;
use crate::operators::window::Function;
use crate::sort_key::Direction;
use crate::udf::{RowFunction, column};

/// How many rows: known, or a column's value.
enum Count {
    Known(Option<usize>),
    Column(usize),
}

fn whole_partition() -> Frame {
    Frame {
        unit: FrameUnit::Rows,
        start: Edge::Unbounded,
        end: Edge::Unbounded,
        exclusion: Exclusion::None,
        order: None,
    }
}

impl Lowerer<'_> {
    /// DISTINCT ON: the first row of those that agree in the targets at `places`; `columns` are
    /// those of the targets, as far as they are there.
    pub(super) fn first_of_each(
        &mut self,
        query: &Query,
        rel: Rel,
        domain: &[usize],
        columns: &[Option<usize>],
        places: &[usize],
    ) -> Result<Rel> {
        let mut partition = self.domain_keys(domain);
        for id in places.iter().filter_map(|place| *columns.get(*place)?) {
            partition.push((bound_column(id, self.types[id]), Direction::default()));
        }
        let order = self.order_keys(query, columns);
        let number = self.fresh(ids::INT8);
        let function = Function::Ranking("row_number", Vec::new());
        let functions = vec![(number, ids::INT8, function)];
        self.windowed(rel, &partition, &order, functions, whole_partition())?
            .filtered(column(number).eq(lit(1_i64)))
    }

    /// Sorted, so that what is above sees the order.
    pub(super) fn ordered(&mut self, rel: Rel, keys: &[(Expr, Direction)]) -> Result<Rel> {
        let (rel, key) = self.key_column(rel, keys)?;
        rel.operated(Arc::new(Ordered { key }))
    }

    fn sorted(&mut self, rel: Rel, keys: &[(Expr, Direction)]) -> Result<Rel> {
        let mut added = Vec::new();
        let mut sort = Vec::with_capacity(keys.len());
        for (expr, direction) in keys {
            let by = match Form::of(expr.oid).is_exact() && expr.oid != ids::JSON {
                true => self.scalar(expr),
                false => {
                    let id = self.fresh(ids::BYTEA);
                    let key = RowFunction::key(expr, &|id| self.types[id], &self.context);
                    added.push((id, key));
                    column(id)
                }
            };
            sort.push(SortExpr::new(
                by,
                !direction.descending,
                direction.nulls_first,
            ));
        }
        let rel = rel.with(added)?;
        Ok(Rel {
            columns: rel.columns,
            plan: LogicalPlan::Sort(Sort {
                expr: sort,
                input: Arc::new(rel.plan),
                fetch: None,
            }),
        })
    }

    fn count(&mut self, expr: Option<&Expr>, is_limit: bool, rel: Rel) -> Result<(Count, Rel)> {
        let Some(expr) = expr else {
            return Ok((Count::Known(None), rel));
        };
        let bound = if has_query(expr) {
            None
        } else {
            Some(self.bind(expr)?)
        };
        match bound {
            Some(bound) if columns_of([&bound]).is_empty() => {
                let rows = match self.constant(&bound)? {
                    Datum::Null => None,
                    Datum::Int8(rows) => {
                        Some(usize::try_from(rows).map_err(|_| negative(is_limit))?)
                    }
                    _ => return Err(QueryError::internal("a limit that is no number")),
                };
                Ok((Count::Known(rows), rel))
            }
            _ => {
                let (bound, rel) = self.bound(expr, rel)?;
                let id = self.fresh(ids::INT8);
                let rel = rel.with(vec![(id, self.scalar(&bound))])?;
                Ok((Count::Column(id), rel))
            }
        }
    }

    /// Orders the rows and takes some of them, for each of the domain.
    pub(super) fn limit(
        &mut self,
        query: &Query,
        rel: Rel,
        domain: &[usize],
        keys: Vec<(Expr, Direction)>,
        is_top: bool,
    ) -> Result<Rel> {
        let (limit, rel) = self.count(query.limit.as_ref(), true, rel)?;
        let (offset, rel) = self.count(query.offset.as_ref(), false, rel)?;
        if let (Count::Known(limit), Count::Known(offset)) = (&limit, &offset) {
            let offset = offset.unwrap_or(0);
            if limit.is_none() && offset == 0 {
                return match (keys.is_empty(), is_top) {
                    (true, _) => Ok(rel),
                    (false, true) => self.sorted(rel, &keys),
                    (false, false) => self.ordered(rel, &keys),
                };
            }
            let ties = query.with_ties && limit.is_some_and(|limit| limit > 0);
            if domain.is_empty() && !ties {
                let rel = match keys.is_empty() {
                    true => rel,
                    false => self.sorted(rel, &keys)?,
                };
                return rel.limited(offset, *limit);
            }
        }
        let partition = self.domain_keys(domain);
        let (number, rank) = (self.fresh(ids::INT8), self.fresh(ids::INT8));
        let function = |name| Function::Ranking(name, Vec::new());
        let functions = vec![
            (number, ids::INT8, function("row_number")),
            (rank, ids::INT8, function("rank")),
        ];
        let rel = self.windowed(rel, &partition, &keys, functions, whole_partition())?;
        let rows = |rows: usize| lit(i64::try_from(rows).unwrap_or(i64::MAX));
        let skipped = match &offset {
            Count::Known(offset) => rows(offset.unwrap_or(0)),
            Count::Column(id) => or_zero(column(*id)),
        };
        let past = column(number).gt(skipped.clone());
        // Without an order all rows are equal; PostgreSQL wants one with WITH TIES.
        let place = if query.with_ties { rank } else { number };
        let within = match &limit {
            Count::Known(None) => None,
            Count::Known(Some(limit)) => Some(match &offset {
                Count::Known(offset) => {
                    let last = limit.saturating_add(offset.unwrap_or(0));
                    column(place).lt_eq(rows(last))
                }
                Count::Column(id) => column(place).lt_eq(or_zero(column(*id)) + rows(*limit)),
            }),
            Count::Column(id) => {
                let last = column(*id) + skipped;
                Some(column(*id).is_null().or(column(place).lt_eq(last)))
            }
        };
        let rel = match within {
            Some(within) => rel.filtered(past.and(within))?,
            None => rel.filtered(past)?,
        };
        match (keys.is_empty(), is_top) {
            (true, _) => Ok(rel),
            (false, true) => self.sorted(rel, &keys),
            (false, false) => self.ordered(rel, &keys),
        }
    }
}

fn or_zero(expr: DfExpr) -> DfExpr {
    DfExpr::Case(datafusion::logical_expr::Case::new(
        None,
        vec![(Box::new(expr.clone().is_null()), Box::new(lit(0_i64)))],
        Some(Box::new(expr)),
    ))
}

#[cold]
fn negative(is_limit: bool) -> QueryError {
    match is_limit {
        true => QueryError::new("2201W", "LIMIT must not be negative"),
        false => QueryError::new("2201X", "OFFSET must not be negative"),
    }
}
