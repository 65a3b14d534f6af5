//! Which columns of a column table a query of the short path reads, as statistics count them.

use std::collections::BTreeSet;

use thermocline_engine::{Database, Table};
use thermocline_query::tree::{Expr, ExprKind, From, Query};

/// Columns by their places. Of tables of rows there are none.
#[derive(Clone, Debug, Default)]
pub struct ColumnsUsed {
    /// Those that the query reads and has no condition on.
    projected: Vec<usize>,
    /// Those that it has conditions on.
    conditions: Vec<usize>,
}

impl ColumnsUsed {
    /// Those of this table, which is this relation of a query.
    pub(crate) fn of(query: &Query, relation: usize, table: &Table) -> Self {
        if !table.is_columns() {
            return Self::default();
        }
        let (mut projected, mut conditions) = (BTreeSet::new(), BTreeSet::new());
        let of = (relation, table);
        query.own_exprs(&mut |expr| columns_in(expr, of, &mut projected));
        if let Some(filter) = &query.filter {
            columns_in(filter, of, &mut conditions);
        }
        for from in &query.from {
            joining_columns(from, of, &mut conditions);
        }
        Self {
            projected: projected.difference(&conditions).copied().collect(),
            conditions: conditions.into_iter().collect(),
        }
    }

    /// Counts a run of the query.
    pub(crate) fn count(&self, table: &Table, db: &Database) {
        if !self.projected.is_empty() || !self.conditions.is_empty() {
            db.count_column_use(table, &self.projected, &self.conditions);
        }
    }
}

fn joining_columns(from: &From, of: (usize, &Table), found: &mut BTreeSet<usize>) {
    if let From::Join {
        left,
        right,
        condition,
        ..
    } = from
    {
        joining_columns(left, of, found);
        joining_columns(right, of, found);
        if let Some(condition) = condition {
            columns_in(condition, of, found);
        }
    }
}

fn columns_in(expr: &Expr, (wanted, table): (usize, &Table), found: &mut BTreeSet<usize>) {
    expr.any(&mut |expr| {
        match expr.kind {
            ExprKind::Column {
                level: 0,
                relation,
                column,
            } if relation == wanted => found.extend([column]),
            ExprKind::WholeRow { level: 0, relation } if relation == wanted => {
                found.extend(0..table.columns.len());
            }
            _ => {}
        }
        false
    });
}
