//! What indexes over more than plain columns say of a query. An expression that is indexed becomes
//! the column that holds its value. The column of a predicate that the query's WHERE implies is asked
//! for, too. So whoever chooses between indexes knows columns only.
//!
//! Only conditions and ORDER BY are looked at, and only where each row has a row of the table: what
//! an outer join adds has NULL in the column, whatever the expression gives of NULLs.

use std::sync::Arc;

use thermocline_engine::{Catalog, Table};
use thermocline_query::change::Statement;
use thermocline_query::datum::Datum;
use thermocline_query::functions;
use thermocline_query::implied::{conjuncts, is_implied};
use thermocline_query::tree::{
    Distinctness, Expr, ExprKind, From, FunctionCall, JoinKind, Query, RelationKind,
};
use thermocline_query::types::ids;

use crate::bind::{BindContext, IndexShape};
use crate::error::Result;
use crate::privilege::Actor;

/// See the head of this file.
pub(super) struct Indexed<'a> {
    /// The tables that the statement names.
    pub(super) tables: &'a [Arc<Table>],
    pub(super) catalog: &'a Catalog,
    pub(super) search_path: &'a [String],
    pub(super) actor: &'a Actor,
}

impl Indexed<'_> {
    /// Has a statement ask indexes.
    ///
    /// # Errors
    /// Where what an index keeps does not mean anything any more.
    pub(super) fn look(&self, statement: &mut Statement) -> Result<()> {
        let has_some = |table: &Arc<Table>| {
            let mut columns = table.columns.iter();
            columns.any(|column| column.hidden.is_some())
        };
        if !self.tables.iter().any(has_some) {
            return Ok(());
        }
        let mut done = Ok(());
        let mut look = |query: &mut Query| {
            if done.is_ok() {
                done = self.query(query);
            }
        };
        match statement {
            Statement::Query(query) => look(query),
            Statement::Change(change) => {
                change.queries_mut(&mut look);
            }
        }
        done
    }

    fn query(&self, query: &mut Query) -> Result<()> {
        let mut done = Ok(());
        for common in &mut query.with {
            self.query(&mut common.query)?;
        }
        for relation in &mut query.relations {
            if let RelationKind::Subquery(inner, _) = &mut relation.kind {
                self.query(inner)?;
            }
        }
        query.exprs_mut(&mut |expr| {
            if done.is_ok() {
                done = self.within(expr);
            }
        });
        done?;
        let mut shapes = Vec::with_capacity(query.relations.len());
        for relation in 0..query.relations.len() {
            shapes.push(self.shapes(query, relation)?);
        }
        if shapes.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let mut whole = Vec::new();
        for from in &mut query.from {
            joins(from, &shapes);
            each_row(from, &mut whole);
        }
        if let Some(filter) = &mut query.filter {
            ask(filter, &whole, &shapes);
        }
        order(query, &whole, &shapes);
        Ok(())
    }

    /// The queries within an expression.
    fn within(&self, expr: &mut Expr) -> Result<()> {
        if let ExprKind::Subquery(subquery) = &mut expr.kind {
            self.query(&mut subquery.query)?;
        }
        let mut done = Ok(());
        expr.children_mut(&mut |child| {
            if done.is_ok() {
                done = self.within(child);
            }
        });
        done
    }

    /// What the indexes of a relation are made of beside plain columns.
    fn shapes(&self, query: &Query, relation: usize) -> Result<Vec<IndexShape>> {
        let mut shapes = Vec::new();
        let of = &query.relations[relation];
        let RelationKind::Table(oid) = of.kind else {
            return Ok(shapes);
        };
        let Some(table) = self.tables.iter().find(|table| table.oid == oid) else {
            return Ok(shapes);
        };
        let reader = of.reader.map(|role| Actor::numbered(role, self.catalog));
        let reader = reader.transpose()?;
        // Who may read some columns only has asked for just these.
        let reader = reader.as_ref().unwrap_or(self.actor);
        if !reader.hidden_columns(table).is_empty() {
            return Ok(shapes);
        }
        let context = BindContext::new(self.catalog, self.search_path);
        for index in &table.indexes {
            let mut columns = index.columns.iter();
            if columns.any(|column| !table.columns[*column].is_seen()) {
                let mut shape = context.index_shape(table, index)?;
                shape.stand_for(relation);
                shapes.push(shape);
            }
        }
        Ok(shapes)
    }
}

impl IndexShape {
    /// Has its expressions be over this relation of a query.
    pub(crate) fn stand_for(&mut self, relation: usize) {
        let exprs = self.expressions.iter_mut().chain(&mut self.predicate);
        exprs.for_each(|(_, expr)| stand_for(expr, relation));
    }
}

fn stand_for(expr: &mut Expr, of: usize) {
    if let ExprKind::Column { relation, .. } = &mut expr.kind {
        *relation = of;
    }
    expr.children_mut(&mut |child| stand_for(child, of));
}

/// The relations of which each row of a tree of joins has a row.
fn each_row(from: &From, found: &mut Vec<usize>) {
    match from {
        From::Relation(relation) => found.push(*relation),
        From::Join {
            kind, left, right, ..
        } => {
            if matches!(kind, JoinKind::Inner | JoinKind::Left) {
                each_row(left, found);
            }
            if matches!(kind, JoinKind::Inner | JoinKind::Right) {
                each_row(right, found);
            }
        }
    }
}

/// Has the conditions of joins ask the indexes of the relations below them.
fn joins(from: &mut From, shapes: &[Vec<IndexShape>]) {
    let From::Join {
        left,
        right,
        condition,
        ..
    } = from
    else {
        return;
    };
    joins(left, shapes);
    joins(right, shapes);
    if let Some(condition) = condition {
        let mut whole = Vec::new();
        each_row(left, &mut whole);
        each_row(right, &mut whole);
        ask(condition, &whole, shapes);
    }
}

/// Has a condition read the columns of these relations' indexes, where it may.
fn ask(condition: &mut Expr, relations: &[usize], shapes: &[Vec<IndexShape>]) {
    let (mut found, mut within): (Vec<(usize, &IndexShape)>, Vec<Expr>) = Default::default();
    {
        let mut given = Vec::new();
        conjuncts(condition, &mut given);
        for relation in relations {
            let usable = shapes[*relation].iter();
            let usable = usable.filter(|shape| is_usable(shape, &given));
            found.extend(usable.map(|shape| (*relation, shape)));
        }
    }
    for (relation, shape) in found {
        for (column, indexed) in &shape.expressions {
            replace(condition, indexed, relation, *column);
        }
        let predicate = shape.predicate.as_ref();
        let is_one = predicate.and_then(|(column, _)| is_one(relation, *column));
        within.extend(is_one.filter(|one| !within.iter().any(|known| known.same(one))));
    }
    if within.is_empty() {
        return;
    }
    let nothing = Expr::constant(Datum::Null, ids::BOOL);
    let before = std::mem::replace(condition, nothing);
    let mut parts = match before.kind {
        ExprKind::And(parts) => parts,
        _ => vec![before],
    };
    parts.append(&mut within);
    *condition = Expr::new(ExprKind::And(parts), ids::BOOL, -1);
}

/// Whether all rows that fulfil these conditions have entries in an index.
fn is_usable(shape: &IndexShape, given: &[&Expr]) -> bool {
    let predicate = shape.predicate.as_ref();
    predicate.is_none_or(|(_, predicate)| is_implied(predicate, given))
}

/// Has ORDER BY read the columns of indexes.
fn order(query: &mut Query, relations: &[usize], shapes: &[Vec<IndexShape>]) {
    let is_plain = query.group.is_none()
        && query.set_operation.is_none()
        && query.windows.is_empty()
        && query.distinct == Distinctness::All;
    if !is_plain {
        return;
    }
    let mut given = Vec::new();
    let filter = query.filter.iter();
    filter.for_each(|filter| conjuncts(filter, &mut given));
    for order in &query.order {
        let target = &mut query.targets[order.target].expr;
        for relation in relations {
            let usable = shapes[*relation].iter();
            for shape in usable.filter(|shape| is_usable(shape, &given)) {
                let mut expressions = shape.expressions.iter();
                let found = expressions.find(|(_, indexed)| target.same(indexed));
                if let Some((column, _)) = found {
                    target.kind = column_of(*relation, *column);
                }
            }
        }
    }
}

fn column_of(relation: usize, column: usize) -> ExprKind {
    ExprKind::Column {
        level: 0,
        relation,
        column,
    }
}

fn replace(expr: &mut Expr, indexed: &Expr, relation: usize, column: usize) {
    if expr.same(indexed) {
        expr.kind = column_of(relation, column);
        return;
    }
    expr.children_mut(&mut |child| replace(child, indexed, relation, column));
}

/// That a row is within a predicate.
fn is_one(relation: usize, column: usize) -> Option<Expr> {
    let function = functions::named("int2eq").first()?;
    let of = Expr::new(column_of(relation, column), ids::INT2, -1);
    let call = FunctionCall {
        function,
        operator: Some("="),
        arguments: vec![of, Expr::constant(Datum::Int2(1), ids::INT2)],
        types: Box::new([ids::INT2, ids::INT2]),
    };
    let kind = ExprKind::Call(Box::new(call));
    Some(Expr::new(kind, ids::BOOL, -1))
}
