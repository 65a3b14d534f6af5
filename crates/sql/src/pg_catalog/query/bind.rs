//! Binding of queries: common table expressions, set operations, SELECT, ORDER
//! BY and limits.

use std::collections::BTreeSet;

use sqlparser::ast::{
    Cte as AstCte, Distinct as AstDistinct, Expr as AstExpr, GroupByExpr, LimitClause, OrderBy,
    OrderByExpr, OrderByKind, Query, Select as AstSelect, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, Value, ValueWithSpan,
};

use super::aggregate::AggregateCall;
use super::expr::{Expr, Order, SetCall, Typed};
use super::plan::{Body, Column, Cte, Distinct, QueryPlan, Select, SetOperation, WindowCall};
use super::scope::Scope;
use crate::analytics::{UNNAMED, column_name, folded};
use crate::bind::{SELECT_LIST_MAX, too_many_columns};
use crate::error::{Result, SqlError};
use crate::pg_catalog::pg_type::PgType;
use crate::pg_catalog::session::SystemSession;

/// A common table expression in reach.
#[derive(Debug, Clone)]
pub(super) struct KnownCte {
    pub name: String,
    pub id: usize,
    pub columns: Vec<Column>,
}

/// What a SELECT collects while its expressions are bound.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub aggregates: Vec<AggregateCall>,
    pub windows: Vec<WindowCall>,
    pub sets: Vec<SetCall>,
    /// Set-returning functions may stand here.
    pub sets_allowed: bool,
    pub aggregates_allowed: bool,
}

/// Binds one statement.
pub(crate) struct Binder<'a> {
    pub(super) session: &'a SystemSession<'a>,
    /// The queries around the expression being bound, the inmost last.
    pub(super) scopes: Vec<Scope>,
    pub(super) collected: Vec<Collected>,
    pub(super) ctes: Vec<KnownCte>,
    pub(super) parameters: Vec<Option<PgType>>,
    next_cte: usize,
    depth: usize,
}

/// Queries may be nested this deep.
const DEPTH_MAX: usize = 64;

impl<'a> Binder<'a> {
    /// With the parameter types that the client gave.
    pub(crate) fn new(session: &'a SystemSession<'a>, parameters: Vec<Option<PgType>>) -> Self {
        Self {
            session,
            scopes: Vec::new(),
            collected: Vec::new(),
            ctes: Vec::new(),
            parameters,
            next_cte: 0,
            depth: 0,
        }
    }

    /// The types of the parameters, as far as they are known.
    pub(crate) fn parameters(&self) -> &[Option<PgType>] {
        &self.parameters
    }

    /// Binds a query.
    pub(crate) fn query(&mut self, query: &Query) -> Result<QueryPlan> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(SqlError::new("54001", "stack depth limit exceeded"));
        }
        let known = self.ctes.len();
        let plan = self.query_inner(query);
        self.ctes.truncate(known);
        self.depth -= 1;
        plan
    }

    fn query_inner(&mut self, query: &Query) -> Result<QueryPlan> {
        if !query.locks.is_empty() {
            return Err(SqlError::unsupported("FOR UPDATE on system catalogs"));
        }
        let mut ctes = Vec::new();
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                ctes.push(self.cte(cte, with.recursive)?);
            }
        }
        let order = order_list(query.order_by.as_ref())?;
        let (body, columns, order) = match query.body.as_ref() {
            SetExpr::Select(select) => {
                let (select, columns) = self.select(select, order)?;
                (Body::Select(Box::new(select)), columns, Vec::new())
            }
            other => {
                let (body, columns) = self.body(other)?;
                let order = self.output_order(order, &columns)?;
                (body, columns, order)
            }
        };
        let (limit, offset) = self.limits(query)?;
        Ok(QueryPlan {
            ctes,
            body,
            columns,
            order,
            limit,
            offset,
        })
    }

    fn cte(&mut self, cte: &AstCte, recursive: bool) -> Result<Cte> {
        let id = self.next_cte;
        self.next_cte += 1;
        let name = folded(&cte.alias.name);
        let aliases: Vec<String> = cte.alias.columns.iter().map(|c| folded(&c.name)).collect();
        let renamed = |mut columns: Vec<Column>| -> Result<Vec<Column>> {
            rename(&mut columns, &aliases, &name)?;
            Ok(columns)
        };
        if recursive
            && let SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier,
                left,
                right,
            } = cte.query.body.as_ref()
        {
            let (body, columns) = self.body(left)?;
            let columns = renamed(columns)?;
            let start = plain(body, columns.clone());
            self.ctes.push(KnownCte {
                name,
                id,
                columns: columns.clone(),
            });
            let (body, step_columns) = self.body(right)?;
            check_width(columns.len(), step_columns.len())?;
            let all = matches!(set_quantifier, SetQuantifier::All);
            return Ok(Cte {
                id,
                start,
                step: Some((plain(body, step_columns), all)),
            });
        }
        let mut start = self.query(&cte.query)?;
        let columns = renamed(start.columns)?;
        start.columns = columns.clone();
        self.ctes.push(KnownCte { name, id, columns });
        Ok(Cte {
            id,
            start,
            step: None,
        })
    }

    fn body(&mut self, body: &SetExpr) -> Result<(Body, Vec<Column>)> {
        match body {
            SetExpr::Select(select) => {
                let (select, columns) = self.select(select, Vec::new())?;
                Ok((Body::Select(Box::new(select)), columns))
            }
            SetExpr::Query(query) => {
                let plan = self.query(query)?;
                let columns = plan.columns.clone();
                Ok((Body::Nested(Box::new(plan)), columns))
            }
            SetExpr::Values(values) => {
                self.enter();
                let lists = values
                    .rows
                    .iter()
                    .map(|list| list.iter().map(|expr| self.expr(expr)).collect())
                    .collect::<Result<Vec<Vec<Typed>>>>();
                self.leave();
                values_body(lists?)
            }
            SetExpr::SetOperation {
                op,
                set_quantifier,
                left,
                right,
            } => {
                let operation = match op {
                    SetOperator::Union => SetOperation::Union,
                    SetOperator::Intersect => SetOperation::Intersect,
                    SetOperator::Except | SetOperator::Minus => SetOperation::Except,
                };
                let all = matches!(set_quantifier, SetQuantifier::All);
                let (left, mut left_columns) = self.body(left)?;
                let (right, right_columns) = self.body(right)?;
                check_width(left_columns.len(), right_columns.len())?;
                let mut left = plain(left, left_columns.clone());
                let mut right = plain(right, right_columns.clone());
                for (at, (column, other)) in left_columns.iter_mut().zip(&right_columns).enumerate()
                {
                    let common = super::coerce::common_type(&[column.data_type, other.data_type]);
                    cast_output(&mut left, at, common);
                    cast_output(&mut right, at, common);
                    column.data_type = common;
                    column.origin = None;
                }
                let body = Body::Set {
                    operation,
                    all,
                    left: Box::new(left),
                    right: Box::new(right),
                };
                Ok((body, left_columns))
            }
            _ => Err(SqlError::unsupported(
                "this form of query on system catalogs",
            )),
        }
    }

    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope::default());
        self.collected.push(Collected::default());
    }

    pub(super) fn leave(&mut self) -> Collected {
        self.scopes.pop();
        self.collected.pop().unwrap_or_default()
    }

    /// ORDER BY of a query that is not a plain SELECT: output columns.
    fn output_order(&mut self, order: Vec<&OrderByExpr>, columns: &[Column]) -> Result<Vec<Order>> {
        order
            .into_iter()
            .map(|item| {
                let index = match position(&item.expr, columns.len())? {
                    Some(at) => at,
                    None => match &item.expr {
                        AstExpr::Identifier(ident) => {
                            let name = folded(ident);
                            columns
                                .iter()
                                .position(|column| column.name == name)
                                .ok_or_else(|| SqlError::undefined_column(&name))?
                        }
                        _ => {
                            return Err(SqlError::unsupported(
                                "ORDER BY an expression over a set operation",
                            ));
                        }
                    },
                };
                Ok(order_of(item, Expr::Column { depth: 0, index }))
            })
            .collect()
    }

    fn limits(&mut self, query: &Query) -> Result<(Option<Expr>, Option<Expr>)> {
        self.enter();
        let mut bind = |expr: &AstExpr| -> Result<Expr> {
            let value = self.expr(expr)?;
            Ok(super::coerce::coerce(value, PgType::INT8, self)?.expr)
        };
        let mut limit = None;
        let mut offset = None;
        match &query.limit_clause {
            Some(LimitClause::LimitOffset {
                limit: count,
                offset: skip,
                ..
            }) => {
                limit = count.as_ref().map(&mut bind).transpose()?;
                offset = skip.as_ref().map(|skip| bind(&skip.value)).transpose()?;
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                return Err(SqlError::syntax("LIMIT #,# syntax is not supported"));
            }
            None => {}
        }
        if let Some(fetch) = &query.fetch {
            limit = match &fetch.quantity {
                Some(quantity) => Some(bind(quantity)?),
                None => Some(Expr::Constant(1i64.into())),
            };
        }
        self.leave();
        Ok((limit, offset))
    }

    fn select(
        &mut self,
        select: &AstSelect,
        order: Vec<&OrderByExpr>,
    ) -> Result<(Select, Vec<Column>)> {
        self.enter();
        let bound = self.select_inner(select, order);
        let collected = self.leave();
        let (mut select, columns) = bound?;
        select.aggregates = collected.aggregates;
        select.windows = collected.windows;
        select.sets = collected.sets;
        if !select.aggregates.is_empty() && select.group.is_none() {
            select.group = Some(Vec::new());
        }
        Ok((select, columns))
    }

    fn select_inner(
        &mut self,
        select: &AstSelect,
        order: Vec<&OrderByExpr>,
    ) -> Result<(Select, Vec<Column>)> {
        let mut from = self.from(&select.from)?;
        if let Some(condition) = &select.selection {
            self.conditions(condition, &mut from.conditions)?;
        }
        self.allow(true, true);
        let mut output: Vec<(Typed, Column)> = Vec::new();
        for item in &select.projection {
            self.select_item(item, &mut output)?;
            if output.len() > SELECT_LIST_MAX {
                return Err(too_many_columns());
            }
        }
        for (typed, column) in &mut output {
            if typed.is_unknown() {
                typed.data_type = PgType::TEXT;
                column.data_type = PgType::TEXT;
            }
        }
        self.allow(false, false);
        let group = self.group(select, &output)?;
        self.allow(false, true);
        let having = match &select.having {
            Some(having) => Some(self.condition(having)?),
            None => None,
        };
        self.allow(true, true);
        let order = order
            .into_iter()
            .map(|item| {
                let expr = self.order_expr(&item.expr, &output)?;
                Ok(order_of(item, expr))
            })
            .collect::<Result<Vec<_>>>()?;
        let distinct = match &select.distinct {
            None | Some(AstDistinct::All) => Distinct::No,
            Some(AstDistinct::Distinct) => Distinct::Rows,
            Some(AstDistinct::On(expressions)) => Distinct::On(
                expressions
                    .iter()
                    .map(|expr| self.order_expr(expr, &output))
                    .collect::<Result<_>>()?,
            ),
        };
        let (output, columns): (Vec<Typed>, Vec<Column>) = output.into_iter().unzip();
        let select = Select {
            from,
            group: group.or_else(|| having.as_ref().map(|_| Vec::new())),
            aggregates: Vec::new(),
            having,
            windows: Vec::new(),
            sets: Vec::new(),
            output: output.into_iter().map(|typed| typed.expr).collect(),
            order,
            distinct,
        };
        Ok((select, columns))
    }

    fn allow(&mut self, sets: bool, aggregates: bool) {
        if let Some(collected) = self.collected.last_mut() {
            collected.sets_allowed = sets;
            collected.aggregates_allowed = aggregates;
        }
    }

    fn select_item(&mut self, item: &SelectItem, output: &mut Vec<(Typed, Column)>) -> Result<()> {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let typed = self.expr(expr)?;
                let column = self.column_of(&typed, column_name(expr));
                output.push((typed, column));
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let typed = self.expr(expr)?;
                let column = self.column_of(&typed, folded(alias));
                output.push((typed, column));
            }
            SelectItem::Wildcard(_) => self.wildcard(None, output)?,
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let table = crate::analytics::last_part(name);
                self.wildcard(table.as_deref(), output)?;
            }
            _ => return Err(SqlError::unsupported("this item of a select list")),
        }
        Ok(())
    }

    fn wildcard(&mut self, table: Option<&str>, output: &mut Vec<(Typed, Column)>) -> Result<()> {
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        let before = output.len();
        for candidate in &scope.tables {
            if table.is_some_and(|table| table != candidate.alias) {
                continue;
            }
            for (at, column) in candidate.columns.iter().enumerate() {
                // The hidden column stays hidden; merged ones are shown once.
                if column.name == "tableoid"
                    || (table.is_none() && candidate.merged.contains(&column.name))
                {
                    continue;
                }
                let index = candidate.offset + at;
                let expr = Expr::Column { depth: 0, index };
                output.push((Typed::new(expr, column.data_type), column.clone()));
            }
        }
        if output.len() == before {
            return Err(match table {
                Some(table) => SqlError::new(
                    "42P01",
                    format!("missing FROM-clause entry for table \"{table}\""),
                ),
                None => SqlError::syntax("SELECT * with no tables specified is not valid"),
            });
        }
        Ok(())
    }

    fn column_of(&self, typed: &Typed, name: String) -> Column {
        let origin = match &typed.expr {
            Expr::Column { depth: 0, index } => self.scopes.last().and_then(|scope| {
                scope.tables.iter().find_map(|table| {
                    let at = index.checked_sub(table.offset)?;
                    table.columns.get(at)?.origin
                })
            }),
            _ => None,
        };
        Column {
            name: if name.is_empty() {
                UNNAMED.to_owned()
            } else {
                name
            },
            data_type: typed.data_type,
            origin,
        }
    }

    fn group(
        &mut self,
        select: &AstSelect,
        output: &[(Typed, Column)],
    ) -> Result<Option<Vec<Expr>>> {
        let GroupByExpr::Expressions(expressions, modifiers) = &select.group_by else {
            return Err(SqlError::unsupported("GROUP BY ALL"));
        };
        if expressions.is_empty() {
            return Ok(None);
        }
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported(
                "GROUP BY with modifiers on system catalogs",
            ));
        }
        expressions
            .iter()
            .map(|expr| {
                if let Some(at) = position(expr, output.len())? {
                    return Ok(output[at].0.expr.clone());
                }
                // An input column has precedence over an output name here.
                match self.expr(expr) {
                    Ok(typed) => Ok(typed.expr),
                    Err(error) => match named_output(expr, output) {
                        Some(typed) => Ok(typed.expr.clone()),
                        None => Err(error),
                    },
                }
            })
            .collect::<Result<Vec<_>>>()
            .map(Some)
    }

    /// An expression of ORDER BY: a position, an output name, or any.
    fn order_expr(&mut self, expr: &AstExpr, output: &[(Typed, Column)]) -> Result<Expr> {
        if let Some(at) = position(expr, output.len())? {
            return Ok(output[at].0.expr.clone());
        }
        if let Some(typed) = named_output(expr, output) {
            return Ok(typed.expr.clone());
        }
        Ok(self.expr(expr)?.expr)
    }

    /// Binds an expression and notes the columns of this query it looks at.
    pub(super) fn tracked(&mut self, expr: &AstExpr) -> Result<(Typed, BTreeSet<usize>)> {
        let before = self
            .scopes
            .last_mut()
            .map(|scope| std::mem::take(&mut scope.used))
            .unwrap_or_default();
        let typed = self.expr(expr);
        let used = match self.scopes.last_mut() {
            Some(scope) => std::mem::replace(&mut scope.used, before),
            None => BTreeSet::new(),
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.used.extend(used.iter().copied());
        }
        Ok((typed?, used))
    }
}

fn order_list(order: Option<&OrderBy>) -> Result<Vec<&OrderByExpr>> {
    match order.map(|order| &order.kind) {
        None => Ok(Vec::new()),
        Some(OrderByKind::Expressions(expressions)) => Ok(expressions.iter().collect()),
        Some(OrderByKind::All(_)) => Err(SqlError::unsupported("ORDER BY ALL")),
    }
}

/// The direction of an ORDER BY item; NULL is the largest value.
pub(super) fn order_of(item: &OrderByExpr, expr: Expr) -> Order {
    let descending = item.options.asc == Some(false);
    Order {
        expr,
        descending,
        nulls_first: item.options.nulls_first.unwrap_or(descending),
    }
}

/// The output column that a bare number names.
fn position(expr: &AstExpr, columns: usize) -> Result<Option<usize>> {
    let AstExpr::Value(ValueWithSpan {
        value: Value::Number(text, _),
        ..
    }) = expr
    else {
        return Ok(None);
    };
    match text.parse::<usize>() {
        Ok(number) if (1..=columns).contains(&number) => Ok(Some(number - 1)),
        _ => Err(SqlError::new(
            "42P10",
            format!("ORDER BY position {text} is not in select list"),
        )),
    }
}

fn named_output<'o>(expr: &AstExpr, output: &'o [(Typed, Column)]) -> Option<&'o Typed> {
    let AstExpr::Identifier(ident) = expr else {
        return None;
    };
    let name = folded(ident);
    output
        .iter()
        .find(|(_, column)| column.name == name)
        .map(|(typed, _)| typed)
}

/// A query of a body alone.
fn plain(body: Body, columns: Vec<Column>) -> QueryPlan {
    QueryPlan {
        ctes: Vec::new(),
        body,
        columns,
        order: Vec::new(),
        limit: None,
        offset: None,
    }
}

fn check_width(left: usize, right: usize) -> Result<()> {
    if left == right {
        return Ok(());
    }
    Err(SqlError::new(
        "42601",
        "each UNION query must have the same number of columns",
    ))
}

/// Gives columns the names of an alias list.
pub(super) fn rename(columns: &mut [Column], aliases: &[String], table: &str) -> Result<()> {
    if aliases.len() > columns.len() {
        return Err(SqlError::new(
            "42P10",
            format!(
                "table \"{table}\" has {} columns available but {} columns specified",
                columns.len(),
                aliases.len()
            ),
        ));
    }
    for (column, alias) in columns.iter_mut().zip(aliases) {
        column.name.clone_from(alias);
    }
    Ok(())
}

fn values_body(lists: Vec<Vec<Typed>>) -> Result<(Body, Vec<Column>)> {
    let width = lists.first().map_or(0, Vec::len);
    if lists.iter().any(|list| list.len() != width) {
        return Err(SqlError::new(
            "42601",
            "VALUES lists must all be the same length",
        ));
    }
    let types: Vec<PgType> = (0..width)
        .map(|at| {
            let types: Vec<PgType> = lists.iter().map(|list| list[at].data_type).collect();
            match super::coerce::common_type(&types) {
                PgType::UNKNOWN => PgType::TEXT,
                known => known,
            }
        })
        .collect();
    let columns = types
        .iter()
        .enumerate()
        .map(|(at, data_type)| Column {
            name: format!("column{}", at + 1),
            data_type: *data_type,
            origin: None,
        })
        .collect();
    let lists = lists
        .into_iter()
        .map(|list| {
            list.into_iter()
                .zip(&types)
                .map(|(typed, target)| cast_to(typed.expr, typed.data_type, *target))
                .collect()
        })
        .collect();
    Ok((Body::Values(lists), columns))
}

fn cast_to(expr: Expr, from: PgType, to: PgType) -> Expr {
    if from.oid == to.oid || (from.is_integer() && to.is_integer()) {
        return expr;
    }
    Expr::Cast {
        value: Box::new(expr),
        from,
        to,
    }
}

/// Casts an output column of a query.
fn cast_output(plan: &mut QueryPlan, at: usize, to: PgType) {
    let Some(column) = plan.columns.get_mut(at) else {
        return;
    };
    let from = std::mem::replace(&mut column.data_type, to);
    if from.oid == to.oid {
        return;
    }
    let cast = |expr: &mut Expr| {
        let value = std::mem::replace(expr, Expr::Row(Vec::new()));
        *expr = cast_to(value, from, to);
    };
    match &mut plan.body {
        Body::Select(select) => select.output.get_mut(at).into_iter().for_each(cast),
        Body::Values(lists) => lists
            .iter_mut()
            .filter_map(|list| list.get_mut(at))
            .for_each(cast),
        Body::Nested(inner) => cast_output(inner, at, to),
        Body::Set { left, right, .. } => {
            cast_output(left, at, to);
            cast_output(right, at, to);
        }
    }
}
