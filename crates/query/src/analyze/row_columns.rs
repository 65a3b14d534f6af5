//! The columns of a row, as far as they are known: PostgreSQL follows a `record` to where it was
//! made, and so does this.

use std::sync::Arc;

use super::Analyzer;
use super::resolve::generic_types;
use crate::tree::{Column, Expr, ExprKind, FunctionCall, Query, Relation, RelationKind};
use crate::types::domain::base;
use crate::types::ids;

/// How many queries a row is followed through.
const STEPS_MAX: usize = 100;

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
            } if expr.oid == ids::RECORD => {
                let around = Around {
                    levels: self.levels.len().checked_sub(*level)?,
                    queries: Vec::new(),
                    steps_left: STEPS_MAX,
                };
                self.columns_of(of(*level, *relation)?, *column, around)
            }
            _ => self.columns_made(expr),
        }
    }

    /// The columns of a row that is a column of a relation.
    fn columns_of<'q>(
        &'q self,
        relation: &'q Relation,
        column: usize,
        mut around: Around<'q>,
    ) -> Option<Vec<Column>> {
        around.steps_left = around.steps_left.checked_sub(1)?;
        let query: &Query = match &relation.kind {
            RelationKind::Subquery(query, _) => query,
            RelationKind::Common { level, place } => {
                for _ in 0..*level {
                    around.leave()?;
                }
                let with = match around.queries.last() {
                    Some(query) => &query.with,
                    None => &self.levels.get(around.levels.checked_sub(1)?)?.with,
                };
                &with.get(*place)?.query
            }
            _ => return None,
        };
        around.queries.push(query);
        let mut shown = query.targets.iter().filter(|target| !target.hidden);
        let expr = &shown.nth(column)?.expr;
        match &expr.kind {
            ExprKind::WholeRow { level: 0, relation } => {
                Some(live(query.relations.get(*relation)?))
            }
            ExprKind::Column {
                level,
                relation,
                column,
            } if expr.oid == ids::RECORD => {
                for _ in 0..*level {
                    around.leave()?;
                }
                let relations = match around.queries.last() {
                    Some(query) => &query.relations,
                    None => &self.levels.get(around.levels.checked_sub(1)?)?.relations,
                };
                self.columns_of(relations.get(*relation)?, *column, around)
            }
            _ => self.columns_made(expr),
        }
    }

    /// The columns of a row that an expression makes.
    fn columns_made(&self, expr: &Expr) -> Option<Vec<Column>> {
        let mut given = self.rows_given.iter();
        if expr.oid == ids::RECORD
            && let Some((_, columns)) = given.find(|(at, _)| *at == expr.location)
        {
            return Some(columns.clone());
        }
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

/// Where a name is looked up: within these queries, the innermost last, and so many levels of the
/// analysis around them.
struct Around<'q> {
    levels: usize,
    queries: Vec<&'q Query>,
    /// A query that only gives what it reads of itself would be followed without end.
    steps_left: usize,
}

impl Around<'_> {
    /// One level further out.
    fn leave(&mut self) -> Option<()> {
        if self.queries.pop().is_none() {
            self.levels = self.levels.checked_sub(1)?;
        }
        Some(())
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
