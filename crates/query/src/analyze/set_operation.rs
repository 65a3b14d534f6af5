//! UNION, INTERSECT and EXCEPT.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::SelectStmt;
use pg_raw_parse::raw::SetOperation as Operation;

use super::Analyzer;
use super::coerce::{can_coerce, common_modifier, common_type};
use super::order::check_equality;
use super::scope::Clause;
use super::select::Recursive;
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::tree::{
    Column, Expr, ExprKind, Order, Query, Relation, RelationKind, SetKind, SetOperation, Target,
};
use crate::types::ids;

impl Analyzer<'_> {
    pub(super) fn set_operation_query(
        &mut self,
        select: &SelectStmt,
        recursive: Recursive<'_>,
    ) -> Result<Query> {
        let (operation, columns) = self.set_operation(select, recursive, true)?;
        let first = operation.leaves()[0];
        let mut query = Query::default();
        query.targets = columns
            .iter()
            .enumerate()
            .map(|(column, of)| {
                let kind = ExprKind::Column {
                    level: 0,
                    relation: first,
                    column,
                };
                Target {
                    expr: Expr::new(kind, of.oid, -1).with_modifier(of.modifier),
                    name: Arc::clone(&of.name),
                    hidden: false,
                    origin: None,
                }
            })
            .collect();
        query.set_operation = Some(operation);
        query.order = self.set_order(select, &mut query.targets)?;
        self.limits(select, &mut query)?;
        if !select.locking_clause().is_empty() {
            return Err(QueryError::unsupported(
                "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT",
                "Lock the rows in queries of their own.",
            ));
        }
        Ok(query)
    }

    /// ORDER BY over the result's columns only.
    fn set_order(&mut self, select: &SelectStmt, targets: &mut Vec<Target>) -> Result<Vec<Order>> {
        let mut order: Vec<Order> = Vec::new();
        let shown = targets.len();
        for sort in select.sort_clause().iter() {
            let plain = matches!(sort.node(), Node::ColumnRef(_) | Node::A_Const(_));
            let refused = || {
                QueryError::unsupported("invalid UNION/INTERSECT/EXCEPT ORDER BY clause", "Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
                    .with_detail("Only result column names can be used, not expressions or functions.")
                    .at(sort.location)
            };
            if !plain {
                return Err(refused());
            }
            let target = self.named_target(sort.node(), targets, Clause::Order)?;
            if target >= shown {
                return Err(refused());
            }
            let (descending, nulls_first) = self.direction(sort, &mut targets[target].expr)?;
            if !order.iter().any(|one| one.target == target) {
                order.push(Order {
                    target,
                    descending,
                    nulls_first,
                });
            }
        }
        Ok(order)
    }

    fn set_operation(
        &mut self,
        select: &SelectStmt,
        recursive: Recursive<'_>,
        top: bool,
    ) -> Result<(SetOperation, Vec<Column>)> {
        let inner = !select.sort_clause().is_empty()
            || !matches!(select.limit_count(), Node::None)
            || !matches!(select.limit_offset(), Node::None)
            || select.with_clause().is_some();
        if select.op == Operation::SETOP_NONE || inner && !top {
            return self.set_leaf(select);
        }
        let (Some(left), Some(right)) = (select.larg(), select.rarg()) else {
            return Err(QueryError::internal("a set operation has two sides"));
        };
        let (left, mut left_columns) =
            stacker::maybe_grow(128 << 10, 4 << 20, || self.set_operation(left, None, false))?;
        if let Some((place, aliases)) = recursive {
            self.decide_leaf(&left, &mut left_columns)?;
            self.settle_recursive(place, left_columns.clone(), aliases)?;
        }
        let (right, right_columns) = stacker::maybe_grow(128 << 10, 4 << 20, || {
            self.set_operation(right, None, false)
        })?;
        let (kind, name) = match select.op {
            Operation::SETOP_UNION => (SetKind::Union, "UNION"),
            Operation::SETOP_INTERSECT => (SetKind::Intersect, "INTERSECT"),
            _ => (SetKind::Except, "EXCEPT"),
        };
        if left_columns.len() != right_columns.len() {
            return Err(QueryError::new(
                "42601",
                format!("each {name} query must have the same number of columns"),
            ));
        }
        let mut columns = Vec::new();
        let mut casts = [Vec::new(), Vec::new()];
        for (at, (left_column, right_column)) in left_columns.iter().zip(&right_columns).enumerate()
        {
            let sides = [
                self.leaf_expr(&left, at, left_column),
                self.leaf_expr(&right, at, right_column),
            ];
            let oid = common_type(&[&sides[0], &sides[1]], name)?;
            let modifier = common_modifier(&[&sides[0], &sides[1]], oid);
            for (side, (operation, column)) in [(&left, left_column), (&right, right_column)]
                .into_iter()
                .enumerate()
            {
                let cast = self.set_cast(operation, at, column, oid, name)?;
                casts[side].push(cast);
            }
            let one = Expr::constant(Datum::Null, oid);
            if !select.all {
                check_equality(&one)?;
            }
            columns.push(Column {
                name: Arc::clone(&left_column.name),
                oid,
                modifier,
                origin: None,
            });
        }
        let node = SetOperation::Node {
            kind,
            all: select.all,
            left: Box::new(left),
            right: Box::new(right),
            casts,
        };
        Ok((node, columns))
    }

    fn set_leaf(&mut self, select: &SelectStmt) -> Result<(SetOperation, Vec<Column>)> {
        let query = self.query_undecided(select)?;
        let columns = query.columns();
        let place = self.level().relations.len();
        let relation = Relation {
            kind: RelationKind::Subquery(Box::new(query), false),
            alias: Arc::from(format!("*SELECT* {}", place + 1)),
            columns: columns.clone(),
            reader: None,
        };
        self.level().relations.push(relation);
        Ok((SetOperation::Leaf(place), columns))
    }

    /// The column of a side, with the place in the statement of what it is.
    fn leaf_expr(&mut self, side: &SetOperation, at: usize, column: &Column) -> Expr {
        let location = match side {
            SetOperation::Leaf(relation) => self
                .leaf_target(*relation, at)
                .map_or(-1, |target| target.expr.location),
            SetOperation::Node { .. } => -1,
        };
        Expr::new(ExprKind::SubqueryColumn(at), column.oid, location).with_modifier(column.modifier)
    }

    fn leaf_target(&mut self, relation: usize, at: usize) -> Option<&mut Target> {
        match &mut self.level().relations[relation].kind {
            RelationKind::Subquery(query, _) => query
                .targets
                .iter_mut()
                .filter(|target| !target.hidden)
                .nth(at),
            _ => None,
        }
    }

    /// A side's column as the common type. A literal of a leaf becomes one where it stands.
    fn set_cast(
        &mut self,
        side: &SetOperation,
        at: usize,
        column: &Column,
        oid: u32,
        name: &str,
    ) -> Result<Expr> {
        if let SetOperation::Leaf(relation) = side
            && column.oid == ids::UNKNOWN
            && let Some(target) = self.leaf_target(*relation, at)
            && matches!(
                target.expr.kind,
                ExprKind::Constant(_) | ExprKind::Parameter(_)
            )
        {
            let expr = target.expr.clone();
            let cast = self.coerce(expr, oid, -1, Context::Implicit)?;
            if let Some(target) = self.leaf_target(*relation, at) {
                target.expr = cast;
            }
            self.level().relations[*relation].columns[at].oid = oid;
            return Ok(Expr::new(ExprKind::SubqueryColumn(at), oid, -1));
        }
        let expr = self.leaf_expr(side, at, column);
        if !can_coerce(&[expr.oid], &[oid], Context::Implicit) {
            return Err(super::coerce::cannot_cast(expr.oid, oid).at(expr.location));
        }
        self.coerce_to_common(expr, oid, name)
    }

    /// The literals of a recursive query's first side are texts.
    fn decide_leaf(&mut self, side: &SetOperation, columns: &mut [Column]) -> Result<()> {
        for (at, column) in columns.iter_mut().enumerate() {
            if column.oid == ids::UNKNOWN {
                self.set_cast(side, at, &column.clone(), ids::TEXT, "UNION")?;
                column.oid = ids::TEXT;
            }
        }
        Ok(())
    }
}
