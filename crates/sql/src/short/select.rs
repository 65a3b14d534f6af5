//! Queries over one table, or over none, that the short path runs: their rows are bounded by an
//! index, or those of a small table, and each of them gives all that is asked for.

use std::sync::Arc;

use thermocline_query::tree::{self, Distinctness, ExprKind, From, Query, RelationKind, Target};
use thermocline_query::walk::columns_read;

use thermocline_engine::Table;
use thermocline_engine::authority::Privileges;

use super::expression::Lowering;
use super::{Planner, column_type};
use crate::error::Result;
use crate::plan::{OutputExpr, RowLock, SelectPlan, SortKey, choose, plain_keys};
use crate::typed::held;

impl Planner<'_> {
    /// The plan, if the short path runs the query.
    ///
    /// # Errors
    /// 42501 without the right to read a column.
    pub(super) fn select(
        &self,
        query: &Query,
        lock: Option<RowLock>,
    ) -> Result<Option<SelectPlan>> {
        let table = match self.only_table(query) {
            Some(table) => table,
            None => return Ok(None),
        };
        if let (Some(actor), Some(table)) = (self.context.actor, &table) {
            for (_, column) in columns_read(query) {
                actor.need_column(table, column, Privileges::SELECT)?;
            }
        }
        for target in &query.targets {
            self.may_use_sequences(&target.expr)?;
        }
        let relations: Vec<(&Table, usize)> = table.iter().map(|table| (&**table, 0)).collect();
        let lowering = Lowering {
            relations: &relations,
        };
        Ok(self.planned(query, table.as_ref(), &lowering, lock))
    }

    /// The table of a query without anything but rows, conditions and an order: none for a query
    /// without FROM.
    fn only_table(&self, query: &Query) -> Option<Option<Arc<Table>>> {
        let is_plain = query.with.is_empty()
            && query.group.is_none()
            && query.having.is_none()
            && query.windows.is_empty()
            && !query.has_set_targets
            && query.distinct == Distinctness::All
            && !query.with_ties
            && query.set_operation.is_none();
        if !is_plain {
            return None;
        }
        match (query.relations.as_slice(), query.from.as_slice()) {
            ([], []) => Some(None),
            ([of], [From::Relation(0)]) if of.sample.is_none() && of.reader.is_none() => {
                let RelationKind::Table(oid) = of.kind else {
                    return None;
                };
                Some(Some(Arc::clone(self.context.catalog.table(oid)?)))
            }
            _ => None,
        }
    }

    fn planned(
        &self,
        query: &Query,
        table: Option<&Arc<Table>>,
        lowering: &Lowering<'_>,
        lock: Option<RowLock>,
    ) -> Option<SelectPlan> {
        let gives = |expr: &tree::Expr| lowering.gives(expr).then(|| lowering.row(expr).ok())?;
        let count = |expr: &Option<tree::Expr>| match expr {
            None => Some(None),
            Some(expr) => Lowering::of_no_row().row(expr).ok().map(Some),
        };
        let shown = query.targets.iter().filter(|target| !target.hidden);
        let output = |target: &Target| {
            Some(OutputExpr {
                expr: gives(&target.expr)?,
                column_type: column_type(target.expr.oid, target.expr.modifier),
            })
        };
        let condition = match &query.filter {
            None => None,
            Some(filter) => Some(gives(filter)?),
        };
        let mut sort = Vec::with_capacity(query.order.len());
        for order in &query.order {
            let of = &query.targets[order.target].expr;
            // The storage knows the order of what it has keys of.
            held(of.oid, of.modifier).filter(|data_type| data_type.has_key())?;
            sort.push(SortKey {
                expr: gives(of)?,
                descending: order.descending,
                nulls_first: order.nulls_first,
            });
        }
        let mut plan = SelectPlan {
            source: None,
            condition: None,
            aggregate: None,
            output: shown.map(output).collect::<Option<_>>()?,
            sort,
            limit: count(&query.limit)?,
            offset: count(&query.offset)?,
            lock: lock.filter(|_| table.is_some()),
            numbered: false,
        };
        match table {
            None => plan.condition = condition,
            Some(table) => {
                let order = plain_keys(&plan.sort);
                let is_small = || self.context.is_small(table);
                let (source, ordered) = choose(
                    table,
                    condition,
                    order.as_deref().unwrap_or_default(),
                    || order.is_some() && (plan.limit.is_some() || is_small()),
                );
                if ordered && order.is_some() {
                    plan.sort.clear();
                }
                if !source.is_bounded() && !plan.ends_early(&source) && !is_small() {
                    return None;
                }
                plan.source = Some(source);
            }
        }
        Some(plan)
    }

    /// The query of an INSERT without the one around it that fits its columns, where that does no
    /// more than to cast them.
    pub(super) fn flattened(&self, source: &Query) -> Option<Query> {
        let ([of], [From::Relation(0)], None) = (
            source.relations.as_slice(),
            source.from.as_slice(),
            &source.filter,
        ) else {
            return None;
        };
        let RelationKind::Subquery(inner, _) = &of.kind else {
            return None;
        };
        if !inner.locks.is_empty() || self.only_table(inner).is_none() {
            return None;
        }
        let shown: Vec<&tree::Expr> = inner
            .targets
            .iter()
            .filter(|target| !target.hidden)
            .map(|target| &target.expr)
            .collect();
        let mut flat = Query::clone(inner);
        for target in &mut flat.targets {
            target.hidden = true;
        }
        let by = source.targets.len();
        for order in &mut flat.order {
            order.target += by;
        }
        let mut targets = source.targets.clone();
        for target in &mut targets {
            substitute(&mut target.expr, &shown)?;
        }
        targets.append(&mut flat.targets);
        flat.targets = targets;
        Some(flat)
    }
}

/// Puts what a query within gives in the place of its columns.
fn substitute(expr: &mut tree::Expr, shown: &[&tree::Expr]) -> Option<()> {
    match &expr.kind {
        ExprKind::Column {
            level: 0, column, ..
        } => {
            *expr = (*shown.get(*column)?).clone();
            return Some(());
        }
        ExprKind::Subquery(_) => return None,
        _ => {}
    }
    let mut done = Some(());
    expr.children_mut(&mut |child| {
        if done.is_some() {
            done = substitute(child, shown);
        }
    });
    done
}
