//! BEGIN, COMMIT, ROLLBACK and their like, and the modes of transactions.

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{DefElem, TransactionStmt, TransactionStmtKind};

use super::node;
use super::statement::{IsolationLevel, Modes, Statement};
use crate::error::{Result, SqlError};

pub(super) fn transaction(statement: &TransactionStmt) -> Result<Statement> {
    use TransactionStmtKind as Kind;
    let savepoint = || statement.savepoint_name().unwrap_or_default().to_owned();
    let chain = statement.chain;
    Ok(match statement.kind {
        Kind::TRANS_STMT_BEGIN | Kind::TRANS_STMT_START => Statement::Begin {
            modes: modes(statement.options())?,
            start: statement.kind == Kind::TRANS_STMT_START,
        },
        Kind::TRANS_STMT_COMMIT => Statement::Commit { chain },
        Kind::TRANS_STMT_ROLLBACK => Statement::Rollback { chain },
        Kind::TRANS_STMT_SAVEPOINT => Statement::Savepoint(savepoint()),
        Kind::TRANS_STMT_RELEASE => Statement::Release(savepoint()),
        Kind::TRANS_STMT_ROLLBACK_TO => Statement::RollbackTo(savepoint()),
        _ => {
            return Err(SqlError::unsupported(
                "prepared transactions are not supported",
                "Use COMMIT.",
            ));
        }
    })
}

/// The modes of a list of options; the last one of a kind counts.
pub(super) fn modes(options: &NodeList) -> Result<Modes> {
    let mut modes = Modes::default();
    for option in options.iter() {
        let Node::DefElem(option) = option else {
            continue;
        };
        match node::option_name(option) {
            "transaction_isolation" => modes.isolation = Some(isolation(option)?),
            "transaction_read_only" => modes.read_only = Some(truth(option)),
            "transaction_deferrable" => modes.deferrable = Some(truth(option)),
            _ => {}
        }
    }
    Ok(modes)
}

fn isolation(option: &DefElem) -> Result<IsolationLevel> {
    let text = node::option_text(option).unwrap_or_default();
    IsolationLevel::from_name(&text).ok_or_else(|| {
        SqlError::new(
            "22023",
            format!("invalid value for parameter \"transaction_isolation\": \"{text}\""),
        )
    })
}

/// Whether a mode that is true or false is true: the grammar writes 1 and 0.
fn truth(option: &DefElem) -> bool {
    node::option_text(option).is_some_and(|text| matches!(text.as_str(), "1" | "true"))
}
