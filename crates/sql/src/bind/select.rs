//! SELECT and VALUES: what the short path runs of them, and why it declines
//! the rest.

use sqlparser::ast::{
    self, GroupByExpr, LimitClause, LockType, NonBlock, OrderByKind, Query, Select, SetExpr,
    TableFactor, TableWithJoins,
};
use std::sync::Arc;
use thermocline_engine::authority::Privileges;
use thermocline_storage::types::DataType;

use super::aggregate::{Aggregation, calls_aggregate};
use super::scope::{Relation, find_table, folded, name_parts};
use super::typed::{Binder, Typed};
use super::{Bindable, BoundPlan, Refusal};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::output::OutputColumn;
use crate::plan::{
    AggregateFunction, AggregatePlan, LockMode, LockedRows, OrderKey, OutputExpr, Path, RowLock,
    SelectPlan, ShortPlan, SortKey, ValuesPlan, choose, plain_keys,
};

/// The clauses around a SELECT's body.
#[derive(Default)]
pub(super) struct Around<'q> {
    order_by: &'q [ast::OrderByExpr],
    pub(super) limit: Option<&'q ast::Expr>,
    pub(super) offset: Option<&'q ast::Expr>,
    lock: Option<RowLock>,
}

impl Binder<'_> {
    pub(super) fn query(&mut self, query: &Query) -> Bindable<BoundPlan> {
        if query.with.is_some() {
            return Err(Refusal::declined("WITH"));
        }
        if query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty()
        {
            return Err(Refusal::declined("this form of query"));
        }
        let around = around(query)?;
        match &*query.body {
            SetExpr::Select(select) => {
                let bound = self.select(select, &around)?;
                self.check_lock_names(query)?;
                Ok(bound)
            }
            SetExpr::Values(values) => self.values(values, &around),
            SetExpr::Query(inner)
                if around.order_by.is_empty()
                    && around.limit.is_none()
                    && around.offset.is_none()
                    && around.lock.is_none() =>
            {
                self.query(inner)
            }
            SetExpr::SetOperation { .. } => Err(Refusal::declined("a set operation")),
            _ => Err(Refusal::declined("this form of query")),
        }
    }

    fn select(&mut self, select: &Select, around: &Around<'_>) -> Bindable<BoundPlan> {
        if select.distinct.is_some() {
            return Err(Refusal::declined("DISTINCT"));
        }
        if select.into.is_some() {
            return Err(Refusal::declined("SELECT INTO"));
        }
        if select.top.is_some()
            || !select.lateral_views.is_empty()
            || select.prewhere.is_some()
            || !select.connect_by.is_empty()
            || !select.named_window.is_empty()
            || select.qualify.is_some()
        {
            return Err(Refusal::declined("this form of SELECT"));
        }
        let mut needs = Privileges::SELECT;
        if around.lock.is_some() {
            needs |= Privileges::UPDATE;
        }
        self.from(&select.from, needs)?;
        let condition = select
            .selection
            .as_ref()
            .map(|selection| {
                if calls_aggregate(selection) {
                    let message = "aggregate functions are not allowed in WHERE";
                    return Err(SqlError::new("42803", message).into());
                }
                self.condition_of(selection, "WHERE")
            })
            .transpose()?;

        self.begin_aggregation(select, around)?;
        let (output, columns) = self.select_list(&select.projection)?;
        let having = select
            .having
            .as_ref()
            .map(|having| {
                let typed = self.expression(having)?;
                self.condition(typed, "HAVING")
            })
            .transpose()?;
        let sort = self.sort_keys(around.order_by, &output, &columns)?;
        let aggregation = self.aggregation.take();
        let limit = self.row_count(around.limit)?;
        let offset = self.row_count(around.offset)?;

        let mut plan = SelectPlan {
            source: None,
            condition: None,
            aggregate: None,
            output,
            sort,
            limit,
            offset,
            lock: around.lock,
            numbered: false,
        };
        let grouped = aggregation.is_some();
        plan.aggregate = aggregation.map(|aggregation| AggregatePlan {
            groups: aggregation
                .groups
                .into_iter()
                .map(|(expr, _)| expr)
                .collect(),
            calls: aggregation.calls,
            having,
            first_row_decides: false,
        });
        if let Some(relation) = self.relations.first() {
            let table = Arc::clone(&relation.table);
            self.choose_source(&mut plan, &table, condition)?;
        } else {
            if grouped {
                return Err(Refusal::declined("an aggregate without FROM"));
            }
            if plan.lock.is_some() {
                plan.lock = None;
            }
            plan.condition = condition;
        }
        if plan.lock.is_some() && plan.aggregate.is_some() {
            let message = "FOR UPDATE is not allowed with aggregate functions";
            return Err(SqlError::unsupported(message).into());
        }
        Ok((ShortPlan::Select(Arc::new(plan)), Some(columns)))
    }

    /// A lock clause names the table, if it names any.
    fn check_lock_names(&self, query: &Query) -> Bindable<()> {
        let Some(relation) = self.relations.first() else {
            return Ok(());
        };
        for of in query.locks.iter().filter_map(|lock| lock.of.as_ref()) {
            let name = name_parts(of)?.pop().unwrap_or_default();
            if name != relation.alias {
                let message =
                    format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause");
                return Err(SqlError::new("42P01", message).into());
            }
        }
        Ok(())
    }

    /// One table or none.
    fn from(&mut self, from: &[TableWithJoins], needs: Privileges) -> Bindable<()> {
        let table = match from {
            [] => return Ok(()),
            [TableWithJoins { relation, joins }] if joins.is_empty() => relation,
            _ => return Err(Refusal::declined("a join")),
        };
        let relation = self.relation(table, needs)?;
        self.relations.push(relation);
        Ok(())
    }

    pub(super) fn relation(
        &mut self,
        factor: &TableFactor,
        needs: Privileges,
    ) -> Bindable<Relation> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } = factor
        else {
            return Err(Refusal::declined("a relation that is not a table"));
        };
        if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
            return Err(Refusal::declined("a table with hints"));
        }
        let table = find_table(self.context, name, needs)?;
        let shown = alias.as_ref().map(|alias| folded(&alias.name));
        let mut relation = Relation::new(table, shown, 0);
        if let Some(alias) = alias {
            let live = table.live();
            if alias.columns.len() > live.len() {
                let message = format!(
                    "table \"{}\" has {} columns available but {} columns specified",
                    relation.alias,
                    live.len(),
                    alias.columns.len()
                );
                return Err(SqlError::new("42P10", message).into());
            }
            let names = alias.columns.iter().map(|column| folded(&column.name));
            relation.column_aliases = live.into_iter().zip(names).collect();
        }
        Ok(relation)
    }

    /// Binds GROUP BY, and switches to the row of an aggregation if there is
    /// one.
    fn begin_aggregation(&mut self, select: &Select, around: &Around<'_>) -> Bindable<()> {
        let GroupByExpr::Expressions(groups, modifiers) = &select.group_by else {
            return Err(Refusal::declined("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(Refusal::declined("GROUP BY with modifiers"));
        }
        let aggregates = calls_aggregate(&select.projection)
            || select.having.is_some()
            || around.order_by.iter().any(|key| calls_aggregate(&key.expr));
        if groups.is_empty() && !aggregates {
            return Ok(());
        }
        let mut aggregation = Aggregation::default();
        for group in groups {
            if matches!(
                group,
                ast::Expr::Rollup(_) | ast::Expr::Cube(_) | ast::Expr::GroupingSets(_)
            ) {
                return Err(Refusal::declined("grouping sets"));
            }
            let expr = self.group_expression(group, &select.projection)?;
            let typed = self.expression(expr)?;
            let (expr, data_type) = self.settled(typed)?;
            super::with_order(data_type)?;
            aggregation.groups.push((expr, data_type));
        }
        self.aggregation = Some(aggregation);
        Ok(())
    }

    /// A number in GROUP BY is a position; a name that is no column may be an
    /// output column's.
    fn group_expression<'q>(
        &self,
        group: &'q ast::Expr,
        projection: &'q [ast::SelectItem],
    ) -> Bindable<&'q ast::Expr> {
        if let Some(position) = position_literal(group) {
            return match position
                .checked_sub(1)
                .and_then(|position| projection.get(position))
            {
                Some(
                    ast::SelectItem::UnnamedExpr(expr)
                    | ast::SelectItem::ExprWithAlias { expr, .. },
                ) => Ok(expr),
                Some(_) => Err(Refusal::declined("GROUP BY a position behind *")),
                None => {
                    let message = format!("GROUP BY position {position} is not in select list");
                    Err(SqlError::new("42P10", message).into())
                }
            };
        }
        let ast::Expr::Identifier(ident) = group else {
            return Ok(group);
        };
        if super::scope::find_column(&self.relations, std::slice::from_ref(ident), "").is_ok() {
            return Ok(group);
        }
        let name = folded(ident);
        Ok(projection
            .iter()
            .find_map(|item| match item {
                ast::SelectItem::ExprWithAlias { expr, alias } if folded(alias) == name => {
                    Some(expr)
                }
                _ => None,
            })
            .unwrap_or(group))
    }

    /// ORDER BY: positions and output names first, then expressions.
    fn sort_keys(
        &mut self,
        order_by: &[ast::OrderByExpr],
        output: &[OutputExpr],
        columns: &[OutputColumn],
    ) -> Bindable<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order_by.len());
        for key in order_by {
            if key.with_fill.is_some() {
                return Err(Refusal::declined("WITH FILL"));
            }
            let by_name = match &key.expr {
                ast::Expr::Identifier(ident) => {
                    let name = folded(ident);
                    let mut matching = (0..columns.len()).filter(|at| columns[*at].name == name);
                    let first = matching.next();
                    if let Some(first) = first
                        && matching.any(|other| output[other].expr != output[first].expr)
                    {
                        let message = format!("ORDER BY \"{name}\" is ambiguous");
                        return Err(Refusal::from(SqlError::new("42702", message))
                            .at(self.context.sql, ident.span));
                    }
                    first
                }
                _ => None,
            };
            let expr = if let Some(position) = position_literal(&key.expr) {
                match position.checked_sub(1).and_then(|at| output.get(at)) {
                    Some(output) => {
                        output.column_type.with_order()?;
                        output.expr.clone()
                    }
                    None => {
                        let message = format!("ORDER BY position {position} is not in select list");
                        return Err(SqlError::new("42P10", message).into());
                    }
                }
            } else if let Some(at) = by_name {
                output[at].column_type.with_order()?;
                output[at].expr.clone()
            } else {
                let typed = self.expression(&key.expr)?;
                let (expr, data_type) = self.settled(typed)?;
                super::with_order(data_type)?;
                expr
            };
            let descending = key.options.asc == Some(false);
            keys.push(SortKey {
                expr,
                descending,
                nulls_first: key.options.nulls_first.unwrap_or(descending),
            });
        }
        Ok(keys)
    }

    /// LIMIT and OFFSET.
    pub(super) fn row_count(&mut self, count: Option<&ast::Expr>) -> Bindable<Option<Expr>> {
        let Some(count) = count else {
            return Ok(None);
        };
        let relations = std::mem::take(&mut self.relations);
        let bound = self.expression(count);
        self.relations = relations;
        let typed: Typed = bound?;
        let name = typed.type_name();
        match self.implicit_or_rounded(typed)? {
            Some(expr) => Ok(Some(expr)),
            None => {
                let message = format!("argument of LIMIT must be type bigint, not type {name}");
                Err(SqlError::new("42804", message).into())
            }
        }
    }

    fn implicit_or_rounded(&mut self, typed: Typed) -> Bindable<Option<Expr>> {
        if typed
            .data_type()
            .is_some_and(|data_type| data_type.is_number())
        {
            return Ok(Some(self.explicit(typed, DataType::BigInt)?));
        }
        self.implicit(typed, DataType::BigInt)
    }

    /// Chooses the access path, and declines what no index bounds if the
    /// table is large.
    fn choose_source(
        &mut self,
        plan: &mut SelectPlan,
        table: &Arc<thermocline_engine::Table>,
        condition: Option<Expr>,
    ) -> Bindable<()> {
        let lone_extreme = lone_extreme(plan);
        let order: Option<Vec<OrderKey>> = match lone_extreme {
            Some(key) => Some(vec![key]),
            None if plan.aggregate.is_some() => None,
            None => plain_keys(&plan.sort),
        };
        let few_wanted = plan.limit.is_some() || lone_extreme.is_some();
        let (source, ordered) = choose(
            table,
            condition,
            order.as_deref().unwrap_or_default(),
            || order.is_some() && (few_wanted || self.context.is_small(table)),
        );
        let ordered = ordered && order.is_some();
        if let (Some(aggregate), true) = (&mut plan.aggregate, lone_extreme.is_some() && ordered) {
            aggregate.first_row_decides = matches!(source.path, Path::Probe(_));
        }
        if plan.aggregate.is_none() && ordered {
            plan.sort.clear();
        }
        if !source.is_bounded() && !plan.ends_early(&source) && !self.context.is_small(table) {
            return Err(Refusal::declined(format!(
                "table \"{}\" is large and no index bounds the rows; a scan of it",
                table.name
            )));
        }
        plan.source = Some(source);
        Ok(())
    }

    fn values(&mut self, values: &ast::Values, around: &Around<'_>) -> Bindable<BoundPlan> {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        if values.rows.iter().any(|row| row.content.len() != width) {
            let message = "VALUES lists must all be the same length";
            return Err(SqlError::syntax(message).into());
        }
        let mut by_column: Vec<Vec<Typed>> = vec![Vec::new(); width];
        for row in &values.rows {
            for (column, expr) in by_column.iter_mut().zip(&row.content) {
                column.push(self.expression(expr)?);
            }
        }
        let mut rows = vec![Vec::with_capacity(width); values.rows.len()];
        let mut types = Vec::with_capacity(width);
        let mut columns = Vec::with_capacity(width);
        for (number, column) in by_column.into_iter().enumerate() {
            let (exprs, common) = self.common(column, "VALUES")?;
            for (row, expr) in rows.iter_mut().zip(exprs) {
                row.push(expr);
            }
            columns.push(OutputColumn::scalar(
                format!("column{}", number + 1),
                common,
            ));
            types.push(common);
        }
        let output: Vec<OutputExpr> = columns
            .iter()
            .enumerate()
            .map(|(number, column)| OutputExpr {
                expr: Expr::Column(number),
                column_type: column.data_type,
            })
            .collect();
        let plan = ValuesPlan {
            rows,
            types,
            sort: self.sort_keys(around.order_by, &output, &columns)?,
            limit: self.row_count(around.limit)?,
            offset: self.row_count(around.offset)?,
        };
        Ok((ShortPlan::Values(Arc::new(plan)), Some(columns)))
    }
}

pub(super) fn around(query: &Query) -> Bindable<Around<'_>> {
    let mut around = Around::default();
    if let Some(order_by) = &query.order_by {
        match &order_by.kind {
            OrderByKind::Expressions(keys) => around.order_by = keys,
            OrderByKind::All(_) => return Err(Refusal::declined("ORDER BY ALL")),
        }
    }
    match &query.limit_clause {
        None => {}
        Some(LimitClause::LimitOffset {
            limit,
            offset,
            limit_by,
        }) if limit_by.is_empty() => {
            around.limit = limit.as_ref();
            around.offset = offset.as_ref().map(|offset| &offset.value);
        }
        Some(_) => return Err(Refusal::declined("this form of LIMIT")),
    }
    if let Some(fetch) = &query.fetch {
        if fetch.with_ties || fetch.percent || around.limit.is_some() || fetch.quantity.is_none() {
            return Err(Refusal::declined("this form of FETCH"));
        }
        around.limit = fetch.quantity.as_ref();
    }
    around.lock = row_lock(query.locks.iter());
    Ok(around)
}

/// What clauses say of one table's rows: of several NOWAIT is the strongest, then SKIP LOCKED, as
/// in PostgreSQL.
pub(super) fn row_lock<'q>(clauses: impl Iterator<Item = &'q ast::LockClause>) -> Option<RowLock> {
    clauses.fold(None, |before: Option<RowLock>, clause| {
        let mode = match clause.lock_type {
            LockType::Update => LockMode::Update,
            LockType::Share => before.map_or(LockMode::Share, |before| before.mode),
        };
        let locked = match (clause.nonblock, before.map(|before| before.locked)) {
            (Some(NonBlock::Nowait), _) | (_, Some(LockedRows::Refuse)) => LockedRows::Refuse,
            (Some(NonBlock::SkipLocked), _) | (_, Some(LockedRows::Skip)) => LockedRows::Skip,
            _ => LockedRows::Wait,
        };
        Some(RowLock { mode, locked })
    })
}

/// The number of a bare integer literal, which means a position.
fn position_literal(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// `min(column)` or `max(column)` as the only aggregate: an index in that
/// order answers it with its first row.
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
