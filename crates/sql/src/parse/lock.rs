//! LOCK TABLE.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::LockStmt;
use thermocline_engine::LockMode;

use super::node;
use super::statement::{LockTables, Statement};

/// PostgreSQL's numbers of the modes, from 1.
const MODES: [LockMode; 8] = [
    LockMode::AccessShare,
    LockMode::RowShare,
    LockMode::RowExclusive,
    LockMode::ShareUpdateExclusive,
    LockMode::Share,
    LockMode::ShareRowExclusive,
    LockMode::Exclusive,
    LockMode::AccessExclusive,
];

pub(super) fn lock(statement: &LockStmt) -> Statement {
    let relations = statement.relations().iter();
    let tables = relations.filter_map(|relation| match relation {
        Node::RangeVar(relation) => Some(node::relation(Some(relation))),
        _ => None,
    });
    let mode = usize::try_from(statement.mode - 1);
    let mode = mode.ok().and_then(|at| MODES.get(at));
    Statement::Lock(LockTables {
        tables: tables.collect(),
        mode: mode.copied().unwrap_or(LockMode::AccessExclusive),
        nowait: statement.nowait,
    })
}
