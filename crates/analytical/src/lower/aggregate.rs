//! GROUP BY and aggregates.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{Aggregate, Expr as DfExpr, ExprFunctionExt, LogicalPlan, lit};
use thermocline_query::error::Result;
use thermocline_query::functions::{AggregateKind, Body};
use thermocline_query::tree::{AggregateCall, Expr, ExprKind, Grouping, Query, RelationKind};
use thermocline_query::types::ids;

use super::plan::{On, df};
use super::{Lowerer, Rel};
use crate::evaluate::column as bound_column;
use crate::form::Form;
use crate::operators::group::Group;
use crate::operators::states::{Aggregation, Internal, maker_of};
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
            ExprKind::Grouping(keys) if depth == 0 => self.groupings.push(keys),
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
        let mut keys = Vec::new();
        for expr in &grouping.exprs {
            let definition = self.define(expr)?;
            let (bound, with) = self.bound(expr, rel)?;
            rel = with;
            let id = self.fresh(expr.oid);
            replaced.push((definition, id));
            keys.push((id, bound));
        }
        let mut found = Found::default();
        for expr in after_groups(query) {
            found.in_expr(expr, 0);
        }
        let mut aggregates: Vec<(Aggregation, AggregateCall)> = Vec::new();
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
            let (aggregation, with) = self.aggregation(call.clone(), expr.oid, rel)?;
            rel = with;
            replaced.push((definition, aggregation.id));
            aggregates.push((aggregation, call));
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
        if groupings.is_empty() && firsts.is_empty() {
            let calls: Vec<&AggregateCall> = aggregates.iter().map(|(_, call)| call).collect();
            let of: Vec<&Aggregation> = aggregates.iter().map(|(of, _)| of).collect();
            if let Some(native) = self.native_group(&rel, &keys, &sets, &of, &calls, base)? {
                return Ok(native);
            }
        }
        let mut aggregates: Vec<Aggregation> = aggregates.into_iter().map(|(of, _)| of).collect();
        aggregates.extend(firsts);
        self.own_group(rel, keys, sets, groupings, aggregates, base)
    }

    fn own_group(
        &mut self,
        mut rel: Rel,
        keys: Vec<(usize, Expr)>,
        sets: Vec<Vec<usize>>,
        groupings: Vec<(usize, Vec<usize>)>,
        aggregates: Vec<Aggregation>,
        base: &Rel,
    ) -> Result<Rel> {
        let mut present = None;
        if !base.is_one_row() && sets.iter().any(Vec::is_empty) {
            // Every row of the domain has its group, even of no rows.
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
            rel = base.clone().joined(right, JoinType::Left, on)?;
            present = Some(mark);
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
            maker: maker_of(call.function)?,
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

    /// Groups by DataFusion, where keys and aggregates mean the same there.
    fn native_group(
        &mut self,
        rel: &Rel,
        keys: &[(usize, Expr)],
        sets: &[Vec<usize>],
        aggregations: &[&Aggregation],
        calls: &[&AggregateCall],
        base: &Rel,
    ) -> Result<Option<Rel>> {
        let [set] = sets else {
            return Ok(None);
        };
        let all_keys = set.len() == keys.len();
        let exact = keys
            .iter()
            .all(|(_, expr)| Form::of(expr.oid).is_exact() && expr.oid != ids::JSON);
        if !all_keys || !exact || (keys.is_empty() && !base.is_one_row()) {
            return Ok(None);
        }
        let mut results = Vec::with_capacity(calls.len());
        for (aggregation, call) in aggregations.iter().zip(calls) {
            match self.native_aggregate(aggregation, call) {
                Some(expr) => results.push(named(expr, aggregation.id)),
                None => return Ok(None),
            }
        }
        let added = keys.iter().map(|(id, expr)| (*id, self.scalar(expr)));
        let added: Vec<(usize, DfExpr)> = added.collect();
        let mut groups = base.columns.clone();
        groups.extend(keys.iter().map(|(id, _)| *id));
        let input = rel.clone().with(added)?;
        let exprs = groups.iter().map(|id| column(*id)).collect();
        if groups.is_empty() && results.is_empty() {
            return Ok(None);
        }
        let aggregate = Aggregate::try_new(Arc::new(input.plan), exprs, results);
        let mut columns = groups;
        columns.extend(aggregations.iter().map(|of| of.id));
        Ok(Some(Rel {
            plan: LogicalPlan::Aggregate(df(aggregate)?),
            columns,
        }))
    }

    fn native_aggregate(&self, of: &Aggregation, call: &AggregateCall) -> Option<DfExpr> {
        if of.distinct || !of.order.is_empty() || !of.direct.is_empty() {
            return None;
        }
        let expr = match (call.function.name, of.arguments.as_slice()) {
            ("count", []) => count(lit(1_i64)),
            ("count", [argument]) => count(self.native(argument)?),
            ("sum", [argument]) if matches!(argument.oid, ids::INT2 | ids::INT4) => {
                let argument = self.native(argument)?;
                let wide = datafusion::arrow::datatypes::DataType::Int64;
                sum(DfExpr::Cast(datafusion::logical_expr::Cast::new(
                    Box::new(argument),
                    wide,
                )))
            }
            ("min" | "max", [argument])
                if argument.oid == of.result
                    && Form::of(argument.oid).is_exact()
                    && matches!(
                        Form::of(argument.oid),
                        Form::Int2
                            | Form::Int4
                            | Form::Int8
                            | Form::Date
                            | Form::Timestamp
                            | Form::TimestampTz
                            | Form::Text
                    ) =>
            {
                let argument = self.native(argument)?;
                match call.function.name {
                    "min" => min(argument),
                    _ => max(argument),
                }
            }
            _ => return None,
        };
        match &of.filter {
            Some(filter) => expr.filter(self.native(filter)?).build().ok(),
            None => Some(expr),
        }
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
