//! VACUUM, ANALYZE, REINDEX and CLUSTER, which change nothing here, and LISTEN and NOTIFY.

use pg_raw_parse::nodes::{NotifyStmt, ReindexStmt, UnlistenStmt, VacuumStmt};
use pg_raw_parse::raw::ReindexObjectType;

use super::node;
use super::statement::{Accepted, Named, Statement};

pub(super) fn vacuum(statement: &VacuumStmt) -> Statement {
    let relations = statement.rels().iter();
    let named = relations.map(|vacuumed| Named {
        relation: node::relation(vacuumed.relation()),
        columns: node::strings(vacuumed.va_cols()),
    });
    Statement::Accepted(Accepted {
        named: named.filter(|one| !one.relation.is_empty()).collect(),
        outside_transaction: statement.is_vacuumcmd,
        ..accepted(match statement.is_vacuumcmd {
            true => "VACUUM",
            false => "ANALYZE",
        })
    })
}

pub(super) fn reindex(statement: &ReindexStmt) -> Statement {
    let concurrently = statement
        .params()
        .iter()
        .any(|option| node::option_name(option) == "concurrently");
    let relation = node::relation(statement.relation());
    let named = Named {
        relation,
        columns: Vec::new(),
    };
    let of_one = matches!(
        statement.kind,
        ReindexObjectType::REINDEX_OBJECT_TABLE | ReindexObjectType::REINDEX_OBJECT_INDEX
    );
    Statement::Accepted(Accepted {
        named: [named]
            .into_iter()
            .filter(|one| !one.relation.is_empty())
            .collect(),
        outside_transaction: concurrently || !of_one,
        ..accepted("REINDEX")
    })
}

pub(super) const fn accepted(tag: &'static str) -> Accepted {
    Accepted {
        tag,
        notice: None,
        named: Vec::new(),
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
