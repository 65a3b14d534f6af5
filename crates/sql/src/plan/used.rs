//! Which columns of a column table a query of the short path reads, as statistics count them.

use std::collections::BTreeSet;

use thermocline_engine::{Database, Table};
use thermocline_query::tree::{Expr, ExprKind, Query};

/// Columns by their places. Of tables of rows there are none.
#[derive(Clone, Debug, Default)]
pub struct ColumnsUsed {
    /// Those that the query reads and has no condition on.
    projected: Vec<usize>,
    /// Those that it has conditions on.
    conditions: Vec<usize>,
}

impl ColumnsUsed {
    /// Those of a query whose only relation is this table.
    pub(crate) fn of(query: &Query, table: &Table) -> Self {
        if !table.is_columns() {
            return Self::default();
        }
        let (mut projected, mut conditions) = (BTreeSet::new(), BTreeSet::new());
        query.own_exprs(&mut |expr| columns_in(expr, table, &mut projected));
        if let Some(filter) = &query.filter {
            columns_in(filter, table, &mut conditions);
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

fn columns_in(expr: &Expr, table: &Table, found: &mut BTreeSet<usize>) {
    expr.any(&mut |expr| {
        match expr.kind {
            ExprKind::Column {
                level: 0, column, ..
            } => found.extend([column]),
            ExprKind::WholeRow { level: 0, .. } => found.extend(0..table.columns.len()),
            _ => {}
        }
        false
    });
}
