//! The columns of a row, as far as they are known: PostgreSQL follows a `record` to where it was
//! made, and so does this.

use std::sync::Arc;

use super::Analyzer;
use super::resolve::generic_types;
use crate::tree::{Column, Expr, ExprKind, FunctionCall, Query, Relation, RelationKind};
use crate::types::domain::base;
use crate::types::ids;

impl Analyzer<'_> {
    /// The columns of a row, if they are known.
    pub(super) fn row_columns(&self, expr: &Expr) -> Option<Vec<Column>> {
        let of = |level: usize, relation: usize| -> Option<&Relation> {
            let at = self.levels.len().checked_sub(1 + level)?;
            self.levels[at].relations.get(relation)
        };
        match &expr.kind {
            ExprKind::WholeRow { level, relation } => Some(live(of(*level, *relation)?)),
            ExprKind::Column {
                level,
                relation,
                column,
            } if expr.oid == ids::RECORD => match &of(*level, *relation)?.kind {
                RelationKind::Subquery(query, _) => self.columns_within(query, *column),
                RelationKind::Common { level: up, place } => {
                    let at = self.levels.len().checked_sub(1 + level + up)?;
                    let common = self.levels[at].with.get(*place)?;
                    self.columns_within(&common.query, *column)
                }
                _ => None,
            },
            _ => self.columns_made(expr),
        }
    }

    /// The columns of a row that a query gives as one of its own.
    fn columns_within(&self, query: &Query, column: usize) -> Option<Vec<Column>> {
        let mut shown = query.targets.iter().filter(|target| !target.hidden);
        let expr = &shown.nth(column)?.expr;
        match &expr.kind {
            ExprKind::WholeRow { level: 0, relation } => {
                Some(live(query.relations.get(*relation)?))
            }
            ExprKind::Column {
                level: 0,
                relation,
                column,
            } if expr.oid == ids::RECORD => match &query.relations.get(*relation)?.kind {
                RelationKind::Subquery(query, _) => self.columns_within(query, *column),
                _ => None,
            },
            _ => self.columns_made(expr),
        }
    }

    /// The columns of a row that an expression makes.
    fn columns_made(&self, expr: &Expr) -> Option<Vec<Column>> {
        match &expr.kind {
            ExprKind::Row(parts) if expr.oid == ids::RECORD => {
                let parts = parts.iter().enumerate();
                let part = |(at, part): (usize, &Expr)| Column {
                    name: Arc::from(format!("f{}", at + 1)),
                    oid: part.oid,
                    modifier: part.modifier,
                    origin: None,
                };
                Some(parts.map(part).collect())
            }
            ExprKind::Call(call) if !call.function.columns.is_empty() => Some(columns_given(call)),
            _ if expr.oid == ids::RECORD => None,
            _ => self.catalog.composite(base(expr.oid)),
        }
    }
}

fn live(relation: &Relation) -> Vec<Column> {
    let live = relation
        .columns
        .iter()
        .filter(|column| !column.is_dropped());
    live.cloned().collect()
}

/// The columns that a call gives; polymorphic ones are what its arguments say.
pub(super) fn columns_given(call: &FunctionCall) -> Vec<Column> {
    let generic = generic_types(call.function.arguments, &call.types);
    let column = |(name, oid): &(&'static str, u32)| Column {
        name: Arc::from(*name),
        oid: generic
            .and_then(|generic| generic.result(*oid).ok())
            .unwrap_or(*oid),
        modifier: -1,
        origin: None,
    };
    call.function.columns.iter().map(column).collect()
}
