//! VACUUM, ANALYZE, REINDEX and CLUSTER, which change nothing here, and LISTEN and NOTIFY.

use pg_raw_parse::nodes::{NotifyStmt, UnlistenStmt, VacuumStmt};

use super::node;
use super::statement::{Accepted, Statement};

pub(super) fn vacuum(statement: &VacuumStmt) -> Statement {
    let relations = statement.rels().iter();
    let names = relations.map(|vacuumed| node::relation(vacuumed.relation()));
    Statement::Accepted(Accepted {
        tables: names.filter(|name| !name.is_empty()).collect(),
        outside_transaction: statement.is_vacuumcmd,
        ..accepted(match statement.is_vacuumcmd {
            true => "VACUUM",
            false => "ANALYZE",
        })
    })
}

pub(super) const fn accepted(tag: &'static str) -> Accepted {
    Accepted {
        tag,
        notice: None,
        tables: Vec::new(),
        outside_transaction: false,
    }
}

pub(super) fn notify(statement: &NotifyStmt) -> Statement {
    Statement::Notify {
        channel: statement.conditionname().unwrap_or_default().to_owned(),
        payload: statement.payload().unwrap_or_default().to_owned(),
    }
}

pub(super) fn unlisten(statement: &UnlistenStmt) -> Statement {
    Statement::Unlisten(statement.conditionname().map(str::to_owned))
}
