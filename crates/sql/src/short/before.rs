//! What runs before a statement: the changes of its WITH list, its queries within that lock rows,
//! and subqueries that no row decides. What each of them gives goes into the statement as arrays,
//! one for each of its columns, and a query that unnests these stands in its place.
//!
//! In PostgreSQL a statement does not see what its WITH list changes. Here the changes come first,
//! so a statement that reads what its list changes is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_query::change::{Change, ChangeKind, Source};
use thermocline_query::datum::Datum;
use thermocline_query::functions::{self, Function, Volatility};
use thermocline_query::tree::{
    self, ArrayComparison, Column, CommonTable, ExprKind, From, FunctionCall, Query, Relation,
    RelationKind, Subquery, SubqueryKind, Subscript,
};
use thermocline_query::types::domain::base;
use thermocline_query::types::{array_of, element_of, ids};
use thermocline_query::walk::{expr_reads_rows_out, refers_out, tables_reached};
use thermocline_values::types::DataType;

use super::{Planner, target};
use crate::error::{Result, SqlError};
use crate::plan::{Before, BeforeColumn, LockingRead, ShortPlan};
use crate::typed::held;

/// What runs before a statement, so far.
pub(super) struct Befores {
    /// The numbers of the parameters' types: the statement's own, and those of the arrays.
    types: Vec<u32>,
    own_parameters: usize,
    before: Vec<Before>,
    /// The tables that are changed.
    changed: BTreeSet<u32>,
}

impl Befores {
    /// Of a statement whose parameters are of these types.
    pub(super) fn new(types: Vec<u32>) -> Self {
        Self {
            own_parameters: types.len(),
            types,
            before: Vec::new(),
            changed: BTreeSet::new(),
        }
    }

    /// The numbers of the types of the statement's own parameters.
    pub(super) fn own_types(&self) -> &[u32] {
        &self.types[..self.own_parameters]
    }

    /// The same with those of the arrays.
    pub(super) fn types(&self) -> &[u32] {
        &self.types
    }

    /// The plan behind what runs before it.
    pub(super) fn before(self, plan: ShortPlan) -> ShortPlan {
        plan.behind(self.before, self.own_parameters)
    }

    /// Has a plan with these columns run before; which parameter is the first of its arrays.
    fn push(&mut self, plan: ShortPlan, columns: &[Column]) -> usize {
        self.push_read(plan, columns, false)
    }

    /// The same of a query, which may have to give one row at most.
    pub(super) fn push_read(
        &mut self,
        plan: ShortPlan,
        columns: &[Column],
        one_row: bool,
    ) -> usize {
        let first = self.types.len();
        let columns: Vec<BeforeColumn> = columns.iter().map(given_as).collect();
        self.types.extend(columns.iter().map(array_oid));
        self.before.push(Before {
            plan,
            columns,
            one_row,
        });
        first
    }
}

/// How a column goes in.
fn given_as(column: &Column) -> BeforeColumn {
    let data_type = held(column.oid, column.modifier);
    match data_type {
        Some(data_type) if element_of(data_type.oid()).is_none() => BeforeColumn::Typed(data_type),
        other => BeforeColumn::Text(other.unwrap_or(DataType::Text)),
    }
}

/// The number of the type of the array of a column's values.
fn array_oid(column: &BeforeColumn) -> u32 {
    match column {
        BeforeColumn::Typed(data_type) => array_of(data_type.oid()),
        BeforeColumn::Text(_) => array_of(ids::TEXT),
    }
}

/// A value of an array as one of the column.
fn as_given(value: tree::Expr, column: &Column) -> tree::Expr {
    let value = match given_as(column) {
        BeforeColumn::Typed(_) => value,
        BeforeColumn::Text(_) => {
            tree::Expr::new(ExprKind::ThroughText(Box::new(value)), base(column.oid), -1)
        }
    };
    value.with_modifier(column.modifier)
}

/// The query that unnests the arrays of these columns, the first of which is this parameter.
fn unnested(first: usize, columns: &[Column]) -> Result<Query> {
    let mut unnest = functions::named("unnest").iter();
    let unnest = unnest.find(|function| function.arguments.first() == Some(&ids::ANYARRAY));
    let unnest = unnest.ok_or_else(|| SqlError::internal("no function unnest"))?;
    let mut calls = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    let mut targets = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let array = array_oid(&given_as(column));
        let element = element_of(array).unwrap_or(ids::TEXT);
        let call = FunctionCall {
            function: unnest,
            operator: None,
            types: Box::new([array]),
            arguments: vec![tree::Expr::new(ExprKind::Parameter(first + at), array, -1)],
        };
        calls.push((
            tree::Expr::new(ExprKind::Call(Box::new(call)), element, -1),
            1,
        ));
        arrays.push(Column {
            oid: element,
            modifier: -1,
            origin: None,
            ..column.clone()
        });
        let kind = ExprKind::Column {
            level: 0,
            relation: 0,
            column: at,
        };
        let mut shown = target(as_given(tree::Expr::new(kind, element, -1), column));
        shown.name = Arc::clone(&column.name);
        targets.push(shown);
    }
    Ok(Query {
        relations: vec![Relation {
            kind: RelationKind::Functions {
                calls,
                ordinality: false,
            },
            alias: Arc::from("given"),
            columns: arrays,
            reader: None,
        }],
        from: vec![From::Relation(0)],
        targets,
        ..Query::default()
    })
}

impl Planner<'_> {
    /// Has the changes of a WITH list, and its queries that lock rows, run before. Each of them
    /// has the queries before it.
    ///
    /// # Errors
    /// 0A000 where one would see what another changes.
    pub(super) fn take_list(&mut self, list: &mut [CommonTable]) -> Result<()> {
        for place in 0..list.len() {
            let (known, rest) = list.split_at_mut(place);
            let Some(common) = rest.first_mut() else {
                return Ok(());
            };
            let Some(change) = common.change.take() else {
                self.take_query(&mut common.query)?;
                is_read_once(common, known)?;
                continue;
            };
            let mut change = *change;
            for (own, known) in change.with_mut().iter_mut().zip(known) {
                own.query.clone_from(&known.query);
                own.change = None;
            }
            let gives = change.returning.is_some();
            let table = change.table;
            let columns = common.columns.clone();
            let (_, plan, _) = self.change(change)?;
            self.befores.changed.insert(table);
            let first = self.befores.push(plan, &columns);
            if gives {
                common.query = unnested(first, &columns)?;
            }
        }
        Ok(())
    }

    /// Refuses a query that reads what was changed before.
    pub(super) fn reads_unchanged(&self, query: &Query) -> Result<()> {
        let changed = &self.befores.changed;
        if changed.is_empty() || tables_reached(query).is_disjoint(changed) {
            return Ok(());
        }
        Err(SqlError::unsupported(
            "a statement that reads or changes what its WITH list changes is not supported",
            "Make them two statements of one transaction.",
        ))
    }

    /// The same of a change; but an INSERT without a conflict may add to what was changed.
    pub(super) fn changes_unchanged(&self, change: &mut Change) -> Result<()> {
        if self.befores.changed.is_empty() {
            return Ok(());
        }
        let mut targets = Vec::new();
        change.exprs_mut(&mut |expr| targets.push(target(expr.clone())));
        let mut scope = match &change.kind {
            ChangeKind::Update { query, .. } | ChangeKind::Delete { query, .. } => {
                Query::clone(query)
            }
            ChangeKind::Merge(merge) => merge.query.clone(),
            ChangeKind::Insert(insert) => {
                if let Source::Query(query) = &insert.source {
                    self.reads_unchanged(query)?;
                }
                let mut scope = insert.scope.clone();
                if insert.conflict.is_none() {
                    scope.relations.clear();
                }
                scope
            }
        };
        scope.targets = targets;
        self.reads_unchanged(&scope)
    }

    /// Has the queries within a query that lock rows run before.
    pub(super) fn take_locked(&mut self, query: &mut Query) -> Result<()> {
        for common in &mut query.with {
            self.take_query(&mut common.query)?;
        }
        for relation in &mut query.relations {
            if let RelationKind::Subquery(inner, _) = &mut relation.kind {
                self.take_query(inner)?;
            }
        }
        let mut done = Ok(());
        query.exprs_mut(&mut |expr| {
            if done.is_ok() {
                done = self.take_locked_of(expr);
            }
        });
        done
    }

    /// The same of an expression.
    pub(super) fn take_locked_of(&mut self, expr: &mut tree::Expr) -> Result<()> {
        if let ExprKind::Subquery(subquery) = &mut expr.kind {
            if let Some(value) = self.one_locked(subquery)? {
                *expr = value;
                return Ok(());
            }
            self.take_query(&mut subquery.query)?;
        }
        let mut done = Ok(());
        expr.children_mut(&mut |child| {
            if done.is_ok() {
                done = self.take_locked_of(child);
            }
        });
        done
    }

    /// The value of a subquery that locks one row at most.
    fn one_locked(&mut self, subquery: &mut Subquery) -> Result<Option<tree::Expr>> {
        let query = &subquery.query;
        let one = |limit: &tree::Expr| matches!(limit.kind, ExprKind::Constant(Datum::Int8(1)));
        let locks_one = !query.locks.is_empty() && query.limit.as_ref().is_some_and(one);
        if subquery.kind != SubqueryKind::Scalar || !locks_one {
            return Ok(None);
        }
        self.take_locked(&mut subquery.query)?;
        let columns = subquery.query.columns();
        let first = self.locked_before(&mut subquery.query, &columns)?;
        Ok(Some(self.first_of(first, &columns[0])))
    }

    fn take_query(&mut self, query: &mut Query) -> Result<()> {
        self.take_locked(query)?;
        if query.locks.is_empty() {
            return Ok(());
        }
        let columns = query.columns();
        let first = self.locked_before(query, &columns)?;
        *query = unnested(first, &columns)?;
        Ok(())
    }

    fn locked_before(&mut self, query: &mut Query, columns: &[Column]) -> Result<usize> {
        if refers_out(query, 1) {
            return Err(SqlError::unsupported(
                "a row lock in a correlated query is not supported",
                "Lock the rows by a statement of its own before.",
            ));
        }
        self.reads_unchanged(query)?;
        let plan = self.locking(std::mem::take(query))?;
        Ok(self.befores.push(plan, columns))
    }

    /// The first value of an array that is this parameter, as one of the column.
    pub(super) fn first_of(&self, parameter: usize, column: &Column) -> tree::Expr {
        let array = self.befores.types[parameter];
        let element = element_of(array).unwrap_or(ids::TEXT);
        let first = tree::Expr::constant(Datum::Int4(1), ids::INT4);
        let subscript = Subscript {
            value: tree::Expr::new(ExprKind::Parameter(parameter), array, -1),
            bounds: vec![(None, Some(first))],
            slice: false,
        };
        let value = tree::Expr::new(ExprKind::Subscript(Box::new(subscript)), element, -1);
        as_given(value, column)
    }

    /// Puts parameters in the place of subqueries that no row decides. `scope` has the WITH that
    /// they may name.
    ///
    /// # Errors
    /// 0A000 for one that cannot be asked before.
    pub(super) fn lift(&mut self, expr: &mut tree::Expr, scope: &Query) -> Result<()> {
        let is_value = matches!(&expr.kind, ExprKind::Subquery(_)) && !expr_reads_rows_out(expr, 0);
        if is_value {
            return self.lift_one(expr, scope);
        }
        self.lift_list(expr)?;
        let mut done = Ok(());
        expr.children_mut(&mut |child| {
            if done.is_ok() {
                done = self.lift(child, scope);
            }
        });
        done
    }

    /// Has `value op ANY (query)` ask an array of what the query gives, where that depends on no
    /// row, though the value does.
    fn lift_list(&mut self, expr: &mut tree::Expr) -> Result<()> {
        let ExprKind::Subquery(subquery) = &mut expr.kind else {
            return Ok(());
        };
        let any = match subquery.kind {
            SubqueryKind::Any => true,
            SubqueryKind::All => false,
            _ => return Ok(()),
        };
        let Some(ExprKind::Call(test)) = subquery.test.as_ref().map(|test| &test.kind) else {
            return Ok(());
        };
        let ([value, given], Some(operator)) = (test.arguments.as_slice(), test.operator) else {
            return Ok(());
        };
        let columns = subquery.query.columns();
        let is_column = matches!(given.kind, ExprKind::SubqueryColumn(0));
        let is_typed = columns
            .iter()
            .all(|column| matches!(given_as(column), BeforeColumn::Typed(_)));
        if !is_column || !is_typed || refers_out(&subquery.query, 1) {
            return Ok(());
        }
        let (function, value, types) = (test.function, value.clone(), [test.types[0], given.oid]);
        let query = std::mem::take(&mut subquery.query);
        let first = self.read_before(query, &columns)?;
        let array = tree::Expr::new(ExprKind::Parameter(first), self.befores.types[first], -1);
        expr.kind = ExprKind::AnyOfArray(Box::new(ArrayComparison {
            function,
            operator,
            any,
            value,
            array,
            types,
        }));
        Ok(())
    }

    /// Has a query run before that locks nothing.
    fn read_before(&mut self, query: Query, columns: &[Column]) -> Result<usize> {
        let read = LockingRead {
            query: self.read_query(query)?,
            locks: Vec::new(),
            limit: None,
            offset: None,
            waits: false,
            own_parameters: self.befores.types.len(),
        };
        let plan = ShortPlan::LockingRead(Arc::new(read));
        Ok(self.befores.push(plan, columns))
    }

    fn lift_one(&mut self, expr: &mut tree::Expr, scope: &Query) -> Result<()> {
        let (oid, location) = (base(expr.oid), expr.location);
        let taken = std::mem::replace(expr, tree::Expr::constant(Datum::Null, oid));
        let query = Query {
            with: scope.with.clone(),
            targets: vec![target(taken)],
            ..Query::default()
        };
        let columns = query.columns();
        let first = self.read_before(query, &columns)?;
        *expr = self.first_of(first, &columns[0]);
        expr.location = location;
        Ok(())
    }
}

/// Refuses a query of a list that changes read and something else reads, too, where it may give one
/// this and the other that: it is computed for each of them. `known` are the queries before it.
fn is_read_once(common: &CommonTable, known: &[CommonTable]) -> Result<()> {
    let is_shared = common.by_changes > 0 && common.references + common.by_changes > 1;
    let reads_others = refers_out(&common.query, 1);
    let mut all = known.iter().filter(|_| reads_others).chain([common]);
    if !is_shared || all.all(|one| is_steady(&one.query)) {
        return Ok(());
    }
    let message = format!(
        "WITH part \"{}\" is read by a change and once more, which is not supported",
        common.name
    );
    Err(SqlError::unsupported(
        message,
        "Make it a statement of its own before, in one transaction.",
    ))
}

/// Whether a query gives the same each time in a statement, whatever others commit: it reads
/// nothing and calls nothing volatile.
fn is_steady(query: &Query) -> bool {
    let is_volatile = |function: &Function| function.volatility == Volatility::Volatile;
    let mut calls = false;
    query.exprs(&mut |expr| {
        calls |= expr.any(&mut |expr| match &expr.kind {
            ExprKind::Call(call) => is_volatile(call.function),
            ExprKind::Subquery(subquery) => !is_steady(&subquery.query),
            _ => false,
        });
    });
    !calls && tables_reached(query).is_empty()
}
