//! The number of a table's row as a column of a query, behind the table's own.

use std::sync::Arc;

use thermocline_query::tree::{Column, ExprKind, From, JoinKind, Query, Relation};
use thermocline_values::types::DataType;

/// What the column is called; nobody sees it.
pub(crate) const ROW_NUMBER: &str = "row number";

/// Gives the table that is a relation of a query the numbers of its rows, as its last column.
pub(crate) fn numbered(table: &mut Relation) {
    table.columns.push(Column {
        name: Arc::from(ROW_NUMBER),
        oid: DataType::BigInt.oid(),
        modifier: -1,
        origin: None,
    });
}

/// Whether the query, or one within it, names a whole row of a query `level` or more queries
/// further out: where that is a numbered table's, it would have a column too many.
pub(crate) fn names_rows(query: &Query, level: usize) -> bool {
    let mut found = false;
    query.exprs(&mut |expr| {
        found = found
            || expr.any(&mut |expr| match &expr.kind {
                ExprKind::WholeRow { level: of, .. } => *of >= level,
                ExprKind::Subquery(subquery) => names_rows(&subquery.query, level),
                _ => false,
            });
    });
    found
}

/// Whether each row of the join has one of the relation's: no outer join has NULL for it.
pub(crate) fn gives_rows(from: &From, relation: usize) -> bool {
    match from {
        From::Relation(of) => *of == relation,
        From::Join {
            kind, left, right, ..
        } => {
            matches!(kind, JoinKind::Inner | JoinKind::Left) && gives_rows(left, relation)
                || matches!(kind, JoinKind::Inner | JoinKind::Right) && gives_rows(right, relation)
        }
    }
}
