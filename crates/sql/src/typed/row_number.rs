//! Which relations of a query have the numbers of a table's rows.

use thermocline_query::tree::{From, JoinKind};

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
