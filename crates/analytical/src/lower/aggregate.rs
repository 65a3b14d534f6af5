//! GROUP BY and aggregates.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr as DfExpr, lit};
use thermocline_query::error::Result;
use thermocline_query::functions::{AggregateKind, Body};
use thermocline_query::tree::{AggregateCall, Expr, ExprKind, Grouping, Query, RelationKind};
use thermocline_query::types::ids;

use super::native_group::Grouped;
use super::plan::On;
use super::{Lowerer, Rel};
use crate::evaluate::column as bound_column;
use crate::operators::group::Group;
use crate::operators::states::{Aggregation, Internal, What};
use crate::sort_key::Direction;
use crate::udf::{column, named};

/// What is computed of groups: GROUPING, and aggregates with the depth that they stand at.
#[derive(Default)]
struct Found<'q> {
    aggregates: Vec<(&'q Expr, usize)>,
    groupings: Vec<&'q [usize]>,
}

impl<'q> Found<'q> {
    fn in_query(&mut self, query: &'q Query, depth: usize) {
        for common in &query.with {
            self.in_query(&common.query, depth + 1);
        }
        for relation in &query.relations {
            match &relation.kind {
                RelationKind::Subquery(query, _) => self.in_query(query, depth + 1),
                RelationKind::Functions { calls, .. } => {
                    calls.iter().for_each(|(call, _)| self.in_expr(call, depth));
                }
                RelationKind::Values(rows, _) => {
                    rows.iter()
                        .flatten()
                        .for_each(|expr| self.in_expr(expr, depth));
                }
                RelationKind::Table(_) | RelationKind::Common { .. } => {}
            }
        }
        query.own_exprs(&mut |expr| self.in_expr(expr, depth));
    }

    fn in_expr(&mut self, expr: &'q Expr, depth: usize) {
        match &expr.kind {
            ExprKind::Aggregate(call) if call.level == depth => {
                self.aggregates.push((expr, depth));
                return;
            }
            ExprKind::Grouping(keys, level) if *level == depth => self.groupings.push(keys),
            ExprKind::Subquery(subquery) => self.in_query(&subquery.query, depth + 1),
            _ => {}
        }
        expr.children(&mut |child| self.in_expr(child, depth));
    }
}

impl Lowerer<'_> {
    /// The groups of rows, for each row of `base`.
    pub(super) fn group(
        &mut self,
        query: &Query,
        grouping: &Grouping,
        mut rel: Rel,
        base: &Rel,
    ) -> Result<Rel> {
        let mut replaced = Vec::new();
        let mut ids = Vec::new();
        let mut bounds = Vec::new();
        for expr in &grouping.exprs {
            let definition = self.define(expr)?;
            let (bound, with) = self.bound(expr, rel)?;
            rel = with;
            let id = self.fresh(expr.oid);
            replaced.push((definition, id));
            ids.push(id);
            bounds.push(bound);
        }
        // Functions that give rows do so before the rows are grouped.
        rel = self.generated(rel, &mut bounds)?;
        let keys: Vec<(usize, Expr)> = ids.into_iter().zip(bounds).collect();
        let mut found = Found::default();
        for expr in after_groups(query) {
            found.in_expr(expr, 0);
        }
        let mut aggregates: Vec<Aggregation> = Vec::new();
        for (expr, depth) in found.aggregates {
            let mut definition = self.define_at(expr, depth)?;
            if let ExprKind::Aggregate(call) = &mut definition.kind {
                call.level = 0;
            }
            if replaced
                .iter()
                .any(|(other, _): &(Expr, usize)| other.same(&definition))
            {
                continue;
            }
            let call = self.bound_call(expr, depth)?;
            let (aggregation, with) = self.aggregation(call, expr.oid, rel)?;
            rel = with;
            replaced.push((definition, aggregation.id));
            aggregates.push(aggregation);
        }
        let mut groupings: Vec<(usize, Vec<usize>)> = Vec::new();
        for keys in found.groupings {
            if !groupings.iter().any(|(_, of)| of == keys) {
                groupings.push((self.fresh(ids::INT4), keys.to_vec()));
            }
        }
        let raw = self.raw_columns();
        if let Some(scope) = self.scopes.last_mut() {
            scope.replaced = replaced;
            scope.groupings = groupings.iter().map(|(id, of)| (of.clone(), *id)).collect();
        }
        let firsts = self.left_over(query, &raw);
        let sets = match grouping.sets.as_slice() {
            [] => vec![(0..keys.len()).collect()],
            sets => sets.to_vec(),
        };
        aggregates.extend(firsts);
        let mut present = None;
        if !base.is_one_row() && sets.iter().any(Vec::is_empty) {
            let (with, mark) = self.with_domain(rel, base)?;
            rel = with;
            present = Some(mark);
        }
        if matches!(sets.as_slice(), [set] if set.len() == keys.len()) {
            let of = Grouped {
                domain: &base.columns,
                keys: &keys,
                aggregates: &aggregates,
                present,
            };
            if let Some(native) = self.natively(&rel, &of)? {
                // All keys are in the one set.
                let zeros = groupings.iter().map(|(id, _)| (*id, lit(0_i32)));
                return native.with(zeros.collect());
            }
        }
        let mut group = Group {
            domain: self.typed(&base.columns),
            keys,
            sets,
            groupings,
            aggregates,
            present,
            inputs: Vec::new(),
            context: self.context.clone(),
        };
        group.inputs = self.typed(&group.used());
        rel.operated(Arc::new(group))
    }

    /// The rows with one more for each of `base`, which stands for no row: every row of the domain
    /// has its group, even of no rows. The answer is the column that is NULL there.
    fn with_domain(&mut self, rel: Rel, base: &Rel) -> Result<(Rel, usize)> {
        let (marked, mark) = self.marked(rel)?;
        let mut columns: Vec<usize> = marked.columns.clone();
        columns.retain(|id| !base.columns.contains(id));
        let mut pairs = Vec::new();
        let mut exprs: Vec<DfExpr> = columns.iter().map(|id| column(*id)).collect();
        for id in &base.columns {
            let new = self.fresh(self.types[*id]);
            exprs.push(named(column(*id), new));
            pairs.push((column(*id), column(new)));
            columns.push(new);
        }
        let right = Rel {
            plan: super::plan::project(&marked, exprs)?,
            columns,
        };
        let on = On {
            keys: pairs,
            filter: None,
            nulls_equal: true,
        };
        Ok((base.clone().joined(right, JoinType::Left, on)?, mark))
    }

    /// The call, bound to the rows that are grouped. One that stands in a query further in is of
    /// those rows, too.
    fn bound_call(&self, expr: &Expr, depth: usize) -> Result<AggregateCall> {
        let mut expr = expr.clone();
        expr.raise_levels(0, depth.cast_signed().saturating_neg());
        let ExprKind::Aggregate(call) = expr.kind else {
            return Err(super::contradiction("an aggregate that is none"));
        };
        let mut bound = *call;
        let mut result = Ok(());
        let mut bind = |expr: &mut Expr| match self.bind(expr) {
            Ok(new) => *expr = new,
            Err(error) => result = Err(error),
        };
        bound.direct.iter_mut().for_each(&mut bind);
        bound.arguments.iter_mut().for_each(&mut bind);
        bound.order.iter_mut().for_each(|key| bind(&mut key.expr));
        bound.filter.iter_mut().for_each(&mut bind);
        result.map(|()| bound)
    }

    /// An aggregate that is ready to run.
    pub(super) fn aggregation(
        &mut self,
        mut call: AggregateCall,
        oid: u32,
        mut rel: Rel,
    ) -> Result<(Aggregation, Rel)> {
        let exprs = call
            .direct
            .iter_mut()
            .chain(&mut call.arguments)
            .chain(call.order.iter_mut().map(|key| &mut key.expr))
            .chain(&mut call.filter);
        for expr in exprs {
            let taken = std::mem::replace(
                expr,
                Expr::constant(thermocline_query::datum::Datum::Null, expr.oid),
            );
            (*expr, rel) = self.extract(taken, rel, &[])?;
        }
        let order: Vec<(Expr, Direction)> = call
            .order
            .iter()
            .map(|key| {
                (
                    key.expr.clone(),
                    Direction {
                        descending: key.descending,
                        nulls_first: key.nulls_first,
                    },
                )
            })
            .collect();
        let within_group = matches!(
            &call.function.body,
            Body::Aggregate(aggregate) if aggregate.kind != AggregateKind::Normal
        );
        let arguments = match within_group {
            true => order.iter().map(|(expr, _)| expr.clone()).collect(),
            false => call.arguments,
        };
        let aggregation = Aggregation {
            id: self.fresh(oid),
            what: What::Function(call.function),
            strict: call.function.strict,
            direct: call.direct,
            arguments,
            types: call.types.iter().copied().collect(),
            result: oid,
            order,
            distinct: call.distinct,
            filter: call.filter,
            within_group,
        };
        Ok((aggregation, rel))
    }

    /// All columns of the scope's relations.
    fn raw_columns(&self) -> BTreeSet<usize> {
        let relations = self.scopes.last().map(|scope| scope.relations.as_slice());
        relations
            .unwrap_or_default()
            .iter()
            .flat_map(|columns| columns.ids.iter().flatten().copied().chain(columns.whole))
            .collect()
    }

    /// Columns that are used after grouping and are no keys: those that a key decides. Of a group
    /// the first one is taken.
    fn left_over(&mut self, query: &Query, raw: &BTreeSet<usize>) -> Vec<Aggregation> {
        let mut used = BTreeSet::new();
        for expr in after_groups(query) {
            self.expr_refs(expr, 0, &mut used);
        }
        let mut firsts = Vec::new();
        for id in used.intersection(raw) {
            let oid = self.types[*id];
            let new = self.fresh(oid);
            let from = bound_column(*id, oid);
            firsts.push(Aggregation::internal(
                new,
                Internal::First,
                vec![from.clone()],
                oid,
            ));
            if let Some(scope) = self.scopes.last_mut() {
                scope.replaced.push((from, new));
            }
        }
        firsts
    }
}

/// Whether a query asks nothing of its rows: one group of whatever there is, without aggregates.
/// PostgreSQL does not read the rows then.
pub(super) fn asks_nothing_of_rows(query: &Query) -> bool {
    let grand = query.group.as_ref().is_some_and(|group| {
        group.exprs.is_empty() && group.sets.iter().all(Vec::is_empty) && group.sets.len() <= 1
    });
    if !grand {
        return false;
    }
    let mut found = Found::default();
    for expr in after_groups(query) {
        found.in_expr(expr, 0);
    }
    found.aggregates.is_empty() && found.groupings.is_empty()
}

/// The expressions that are asked of groups.
fn after_groups(query: &Query) -> Vec<&Expr> {
    let mut exprs: Vec<&Expr> = query.targets.iter().map(|target| &target.expr).collect();
    exprs.extend(&query.having);
    for window in &query.windows {
        exprs.extend(&window.partition);
        exprs.extend(window.order.iter().map(|key| &key.expr));
        for bound in [&window.start, &window.end] {
            if let thermocline_query::tree::Bound::Preceding(expr)
            | thermocline_query::tree::Bound::Following(expr) = bound
            {
                exprs.push(expr);
            }
        }
    }
    exprs
}
