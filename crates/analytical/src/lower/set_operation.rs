//! UNION, INTERSECT, EXCEPT.

use std::sync::Arc;

use datafusion::logical_expr::{Expr as DfExpr, lit};
use thermocline_query::error::Result;
use thermocline_query::tree::{Expr, ExprKind, Query, RelationKind, SetKind, SetOperation};
use thermocline_query::types::ids;

use super::native_group::Grouped;
use super::subquery::substitute;
use super::{Lowerer, Rel, contradiction};
use crate::evaluate::column as bound_column;
use crate::operators::generate::{Generate, Source};
use crate::operators::group::Group;
use crate::operators::states::{Aggregation, Internal};
use crate::udf::column;

impl Lowerer<'_> {
    /// The rows of a set operation, for each row of `base`. Its columns are those of the first
    /// leaf's relation.
    pub(super) fn set_operation(
        &mut self,
        query: &Query,
        operation: &SetOperation,
        base: &Rel,
    ) -> Result<Rel> {
        let (rel, outputs) = self.set_node(query, operation, base)?;
        let first = operation.leaves().first().copied().unwrap_or(0);
        let relation = self
            .scopes
            .last_mut()
            .and_then(|scope| scope.relations.get_mut(first))
            .ok_or_else(|| contradiction("a set operation without relations"))?;
        relation.ids = outputs.into_iter().map(Some).collect();
        Ok(rel)
    }

    /// One side, with its casts.
    pub(super) fn set_side(
        &mut self,
        query: &Query,
        side: &SetOperation,
        casts: &[Expr],
        base: &Rel,
    ) -> Result<(Rel, Vec<usize>)> {
        let (mut rel, mut outputs) = self.set_node(query, side, base)?;
        let columns: Vec<Expr> = outputs
            .iter()
            .map(|id| bound_column(*id, self.types[*id]))
            .collect();
        let mut added = Vec::new();
        for (output, cast) in outputs.iter_mut().zip(casts) {
            if matches!(cast.kind, ExprKind::SubqueryColumn(_)) && cast.oid == self.types[*output] {
                continue;
            }
            let mut cast = cast.clone();
            substitute(&mut cast, &columns);
            let id = self.fresh(cast.oid);
            added.push((id, self.scalar(&cast)));
            *output = id;
        }
        rel = rel.with(added)?;
        Ok((rel, outputs))
    }

    fn set_node(
        &mut self,
        query: &Query,
        node: &SetOperation,
        base: &Rel,
    ) -> Result<(Rel, Vec<usize>)> {
        match node {
            SetOperation::Leaf(place) => {
                let relation = query.relations.get(*place).map(|relation| &relation.kind);
                let base = (!base.is_one_row()).then(|| base.clone());
                match relation {
                    Some(RelationKind::Subquery(inner, _)) => self.query(inner, base, false),
                    _ => Err(contradiction("a set operation over no query")),
                }
            }
            SetOperation::Node {
                kind,
                all,
                left,
                right,
                casts,
            } => {
                let left = self.set_side(query, left, &casts[0], base)?;
                let right = self.set_side(query, right, &casts[1], base)?;
                self.combined(*kind, *all, left, right, &base.columns)
            }
        }
    }

    fn combined(
        &mut self,
        kind: SetKind,
        all: bool,
        (left, of_left): (Rel, Vec<usize>),
        (right, of_right): (Rel, Vec<usize>),
        domain: &[usize],
    ) -> Result<(Rel, Vec<usize>)> {
        let outputs: Vec<usize> = of_left
            .iter()
            .map(|id| self.fresh(self.types[*id]))
            .collect();
        let mut columns = [domain, &outputs].concat();
        let mut of_left = [domain, &of_left].concat();
        let mut of_right = [domain, &of_right].concat();
        if kind == SetKind::Union {
            let rel = Rel::union(vec![(left, of_left), (right, of_right)], columns)?;
            let rel = match all {
                true => rel,
                false => self.different(rel, domain, &outputs)?,
            };
            return Ok((rel, outputs));
        }
        let sides = [self.fresh(ids::BOOL), self.fresh(ids::BOOL)];
        let left = left.with(vec![(sides[0], lit(true))])?;
        let right = right.with(vec![(sides[1], lit(false))])?;
        of_left.push(sides[0]);
        of_right.push(sides[1]);
        let side = self.fresh(ids::BOOL);
        columns.push(side);
        let rel = Rel::union(vec![(left, of_left), (right, of_right)], columns)?;
        let counts = [self.fresh(ids::INT8), self.fresh(ids::INT8)];
        let is_left = bound_column(side, ids::BOOL);
        let is_right = Expr::new(ExprKind::Not(Box::new(is_left.clone())), ids::BOOL, -1);
        let aggregates = counts.iter().zip([is_left, is_right]).map(|(id, filter)| {
            let mut count = Aggregation::internal(*id, Internal::Count, Vec::new(), ids::INT8);
            count.filter = Some(filter);
            count
        });
        let aggregates = aggregates.collect();
        let rel = self.grouped(rel, domain, &outputs, aggregates)?;
        let [of_left, of_right] = counts.map(column);
        let zero = || lit(0_i64);
        let rel = rel.filtered(match (kind, all) {
            (SetKind::Intersect, _) => of_left.clone().gt(zero()).and(of_right.clone().gt(zero())),
            (_, false) => of_left.clone().gt(zero()).and(of_right.clone().eq(zero())),
            (_, true) => of_left.clone().gt(of_right.clone()),
        })?;
        if !all {
            return Ok((rel, outputs));
        }
        let copies = match kind {
            SetKind::Intersect => DfExpr::Case(datafusion::logical_expr::Case::new(
                None,
                vec![(
                    Box::new(of_left.clone().lt(of_right.clone())),
                    Box::new(of_left),
                )],
                Some(Box::new(of_right)),
            )),
            _ => of_left - of_right,
        };
        let count = self.fresh(ids::INT8);
        let rel = rel.with(vec![(count, copies)])?;
        let generate = Generate {
            sources: vec![Source::Repeat(count)],
            ordinality: None,
            inputs: vec![(count, ids::INT8)],
            context: self.context.clone(),
        };
        Ok((rel.operated(Arc::new(generate))?, outputs))
    }

    /// Groups by columns, which stay what they are called.
    fn grouped(
        &mut self,
        rel: Rel,
        domain: &[usize],
        keys: &[usize],
        aggregates: Vec<Aggregation>,
    ) -> Result<Rel> {
        let mut different = keys.to_vec();
        different.sort_unstable();
        different.dedup();
        different.retain(|id| !domain.contains(id));
        let keys = different
            .iter()
            .map(|id| (*id, bound_column(*id, self.types[*id])));
        let keys: Vec<(usize, Expr)> = keys.collect();
        let mut domain = domain.to_vec();
        let mut rel = rel;
        if keys.is_empty() && domain.is_empty() {
            // Without keys there is a group even of no rows; none is wanted.
            let (marked, mark) = self.marked(rel)?;
            rel = marked;
            domain.push(mark);
        }
        let of = Grouped {
            domain: &domain,
            keys: &keys,
            aggregates: &aggregates,
            present: None,
        };
        if let Some(native) = self.natively(&rel, &of)? {
            return Ok(native);
        }
        let mut group = Group {
            domain: self.typed(&domain),
            sets: vec![(0..keys.len()).collect()],
            keys,
            groupings: Vec::new(),
            aggregates,
            present: None,
            inputs: Vec::new(),
            context: self.context.clone(),
        };
        group.inputs = self.typed(&group.used());
        rel.operated(Arc::new(group))
    }

    /// The different rows by these columns, which stay what they are called.
    pub(super) fn different(&mut self, rel: Rel, domain: &[usize], keys: &[usize]) -> Result<Rel> {
        self.grouped(rel, domain, keys, Vec::new())
    }
}
