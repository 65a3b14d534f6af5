//! Queries over one table, or over none, that the short path runs: their rows are bounded by an
//! index, or those of a small table, and each of them gives all that is asked for.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_query::tree::{
    self, Distinctness, ExprKind, From, Grouping, Query, Relation, RelationKind,
};
use thermocline_query::types::domain::base;
use thermocline_query::types::ids;

use super::expression::{Lowering, is_volatile};
use super::group::{Groups, ordered};
use super::partitions::PARTITIONED;
use super::pull_up::{pulled_up, substitute};
use super::{Planner, column_type};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{
    AggregateFunction, ColumnsUsed, OrderKey, OutputExpr, Path, Reason, RowLock, SelectPlan,
    SortKey, choose, plain_keys,
};

impl Planner<'_> {
    /// The plan, or why the short path does not run the query.
    ///
    /// # Errors
    /// 42501 without the right to use a sequence.
    pub(super) fn select(
        &self,
        query: &Query,
        lock: Option<RowLock>,
    ) -> Result<std::result::Result<SelectPlan, Reason>> {
        let pulled_up = pulled_up(query);
        let query = pulled_up.as_ref().unwrap_or(query);
        let grouped = distinct_as_groups(query);
        let query = grouped.as_ref().unwrap_or(query);
        let table = match self.only_table(query) {
            Ok(table) => table,
            Err(reason) => return Ok(Err(reason)),
        };
        for target in &query.targets {
            self.context.may_use_sequences(&target.expr)?;
        }
        Ok(self.planned(query, table.as_ref(), lock))
    }

    /// The table of a query without anything but rows, conditions, groups and an order: none for
    /// a query without FROM.
    fn only_table(&self, query: &Query) -> std::result::Result<Option<Arc<Table>>, Reason> {
        plain_form(query)?;
        match (query.relations.as_slice(), query.from.as_slice()) {
            ([], []) => Ok(None),
            ([of], [From::Relation(0)]) => self.table_below(of).map(Some),
            _ => Err(Reason::Form("a join")),
        }
    }

    /// The table that a relation is.
    pub(super) fn table_below(&self, of: &Relation) -> std::result::Result<Arc<Table>, Reason> {
        match of.kind {
            RelationKind::Table(oid) => match self.context.catalog.table(oid) {
                None => Err(Reason::Form("a system catalog")),
                Some(table) if table.partitioned.is_some() => Err(PARTITIONED),
                Some(table) => Ok(Arc::clone(table)),
            },
            RelationKind::Subquery(..) => Err(Reason::Form("a view or a subquery")),
            _ => Err(Reason::Form("a relation that is not a table")),
        }
    }

    pub(super) fn planned(
        &self,
        query: &Query,
        table: Option<&Arc<Table>>,
        lock: Option<RowLock>,
    ) -> std::result::Result<SelectPlan, Reason> {
        let relations: Vec<(&Table, usize)> = table.iter().map(|table| (&***table, 0)).collect();
        let rows = Lowering::of_tables(&relations);
        let condition = query.filter.as_ref();
        let condition = condition.map(|filter| rows.given(filter)).transpose()?;
        if query.group.is_some() && table.is_none() {
            return Err(Reason::Form("an aggregate without FROM"));
        }
        let mut plan = of_rows(query, &rows)?;
        match table {
            None => plan.condition = condition,
            Some(table) => {
                plan.lock = lock;
                plan.used = ColumnsUsed::of(query, 0, table);
                self.find_rows(&mut plan, table, condition)?;
            }
        }
        Ok(plan)
    }

    /// Chooses the access path; what no index bounds is for others if the table is large.
    fn find_rows(
        &self,
        plan: &mut SelectPlan,
        table: &Arc<Table>,
        condition: Option<Expr>,
    ) -> std::result::Result<(), Reason> {
        let extreme = lone_extreme(plan);
        let order = match (extreme, &plan.aggregate) {
            (Some(key), _) => Some(vec![key]),
            (None, Some(_)) => None,
            (None, None) => plain_keys(&plan.sort),
        };
        let is_small = || self.context.is_small(table);
        let few_wanted = plan.limit.is_some() || extreme.is_some();
        let (source, ordered) = choose(
            table,
            condition,
            order.as_deref().unwrap_or_default(),
            || order.is_some() && (few_wanted || is_small()),
        );
        if ordered && order.is_some() {
            match &mut plan.aggregate {
                None => plan.sort.clear(),
                Some(aggregate) if extreme.is_some() => {
                    aggregate.first_row_decides = matches!(source.path, Path::Probe(_));
                }
                Some(_) => {}
            }
        }
        if !source.is_bounded() && !plan.ends_early(&source) && !is_small() {
            return Err(Reason::LargeScan(table.name.clone()));
        }
        plan.source = Some(source);
        Ok(())
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
        if !inner.locks.is_empty() || inner.group.is_some() || self.only_table(inner).is_err() {
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

/// `SELECT DISTINCT` as groups by all that is shown, where nothing else is asked of the rows.
pub(super) fn distinct_as_groups(query: &Query) -> Option<Query> {
    let is_plain = query.distinct == Distinctness::Distinct
        && query.group.is_none()
        && query.having.is_none()
        && query.locks.is_empty()
        && !query.relations.is_empty()
        && plain_form(query).is_err_and(|reason| reason == DISTINCT);
    let mut targets = query.targets.iter();
    if !is_plain || targets.any(|target| target.hidden || is_volatile(&target.expr)) {
        return None;
    }
    let exprs: Vec<tree::Expr> = query.targets.iter().map(|of| of.expr.clone()).collect();
    let mut grouped = query.clone();
    grouped.distinct = Distinctness::All;
    grouped.group = Some(Grouping {
        sets: vec![(0..exprs.len()).collect()],
        exprs,
    });
    Some(grouped)
}

/// Last among the forms that [`plain_form`] refuses.
const DISTINCT: Reason = Reason::Form("DISTINCT");

/// Whether a query has nothing but rows, conditions, groups and an order.
pub(super) fn plain_form(query: &Query) -> std::result::Result<(), Reason> {
    let forms = [
        (!query.with.is_empty(), "WITH"),
        (query.set_operation.is_some(), "a set operation"),
        (!query.windows.is_empty(), "a window function"),
        (query.has_set_targets, "a set in the select list"),
        (query.with_ties, "WITH TIES"),
    ];
    match forms.iter().find(|(has, _)| *has) {
        Some((_, form)) => Err(Reason::Form(form)),
        None if query.distinct != Distinctness::All => Err(DISTINCT),
        None => Ok(()),
    }
}

/// What becomes of the rows of a query, however they are found.
pub(super) fn of_rows(
    query: &Query,
    rows: &Lowering<'_>,
) -> std::result::Result<SelectPlan, Reason> {
    let count = |expr: &Option<tree::Expr>| {
        let expr = expr.as_ref();
        expr.map(|expr| Lowering::of_no_row().given(expr))
            .transpose()
    };
    let mut groups = Groups::of(query, rows)?;
    let mut gives = |expr: &tree::Expr| match &mut groups {
        Some(groups) => groups.given(expr),
        None => rows.given(expr),
    };
    let mut output = Vec::with_capacity(query.targets.len());
    for target in query.targets.iter().filter(|target| !target.hidden) {
        if is_char_of_any_length(&target.expr) {
            return Err(Reason::Form("a value of char of any length"));
        }
        output.push(OutputExpr {
            expr: gives(&target.expr)?,
            column_type: column_type(target.expr.oid, target.expr.modifier),
        });
    }
    let mut sort = Vec::with_capacity(query.order.len());
    for order in &query.order {
        let of = &query.targets[order.target].expr;
        // The storage knows the order of what it has keys of.
        ordered(of)?;
        let expr = gives(of)?;
        let shown = query.targets[..order.target].iter();
        let shown = shown.filter(|target| !target.hidden).count();
        let is_shown = !query.targets[order.target].hidden && expr.is_volatile();
        sort.push(SortKey {
            expr,
            shown: is_shown.then_some(shown),
            descending: order.descending,
            nulls_first: order.nulls_first,
        });
    }
    let having = query.having.as_ref().map(gives).transpose()?;
    if groups.as_ref().is_some_and(Groups::asks_nothing) {
        return Err(Reason::Form("a group that asks nothing of its rows"));
    }
    Ok(SelectPlan {
        source: None,
        joins: Vec::new(),
        departures: Arc::default(),
        condition: None,
        aggregate: groups.map(|groups| groups.plan(having)),
        output,
        sort,
        limit: count(&query.limit)?,
        offset: count(&query.offset)?,
        lock: None,
        numbered: false,
        used: ColumnsUsed::default(),
    })
}

/// Whether an expression gives a `char(n)` whose length its type does not say: it is computed
/// without its blanks, which have to be shown.
fn is_char_of_any_length(expr: &tree::Expr) -> bool {
    expr.modifier == -1
        && base(expr.oid) == ids::BPCHAR
        && !matches!(
            expr.kind,
            ExprKind::Column { .. } | ExprKind::Constant(_) | ExprKind::Parameter(_)
        )
}

/// `min(column)` or `max(column)` as the only aggregate: an index in that order answers it with
/// its first row.
fn lone_extreme(plan: &SelectPlan) -> Option<OrderKey> {
    let aggregate = plan.aggregate.as_ref()?;
    let [call] = aggregate.calls.as_slice() else {
        return None;
    };
    if !aggregate.groups.is_empty() || call.filter.is_some() {
        return None;
    }
    let Some(Expr::Column(column)) = call.argument else {
        return None;
    };
    let descending = match call.function {
        AggregateFunction::Minimum => false,
        AggregateFunction::Maximum => true,
        _ => return None,
    };
    Some(OrderKey {
        column,
        descending,
        nulls_first: descending,
    })
}
