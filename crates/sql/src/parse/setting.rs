//! SET, RESET, SHOW, DISCARD and ALTER SYSTEM.

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{DiscardMode, TypeCast, VariableSetKind, VariableSetStmt};

use super::node;
use super::statement::{AlterSystem, Set, Statement};
use super::transaction::modes;
use crate::error::{Result, SqlError};

pub(super) fn set(statement: &VariableSetStmt) -> Result<Statement> {
    let name = statement.name().unwrap_or_default().to_lowercase();
    let local = statement.is_local;
    let value = match statement.kind {
        VariableSetKind::VAR_RESET_ALL => return Ok(Statement::ResetAll),
        VariableSetKind::VAR_RESET => return Ok(Statement::Reset(name)),
        VariableSetKind::VAR_SET_MULTI => return several(&name, statement.args()),
        VariableSetKind::VAR_SET_CURRENT => {
            return Err(SqlError::unsupported(
                format!("SET {name} FROM CURRENT is not supported"),
                format!("Write the value of SHOW {name}."),
            ));
        }
        VariableSetKind::VAR_SET_VALUE => Some(values(statement.args())),
        _ => None,
    };
    Ok(Statement::Set(Set { name, value, local }))
}

/// What the grammar makes of several settings at once.
fn several(name: &str, args: &NodeList) -> Result<Statement> {
    match name {
        "transaction" => modes(args).map(Statement::SetTransaction),
        "session characteristics" => modes(args).map(Statement::SetSessionCharacteristics),
        _ => Err(SqlError::unsupported(
            "SET TRANSACTION SNAPSHOT is not supported",
            "Read what belongs together in one transaction.",
        )),
    }
}

fn values(args: &NodeList) -> Vec<String> {
    let text = |arg: Node<'_>| match arg {
        Node::TypeCast(cast) => zone(cast),
        other => node::value_text(other).unwrap_or_default(),
    };
    args.iter().map(text).collect()
}

/// A time zone as a span of hours and minutes: `INTERVAL '+02:00' HOUR TO MINUTE`. A bare number is
/// of the last unit.
fn zone(cast: &TypeCast) -> String {
    /// The bit of MINUTE in the first modifier of an interval.
    const MINUTE: i64 = 1 << 11;
    /// The bit of HOUR.
    const HOUR: i64 = 1 << 10;
    let text = node::value_text(cast.arg()).unwrap_or_default();
    let typmods = cast.type_name().and_then(|name| name.typmods().first());
    let mask = typmods
        .and_then(node::value_text)
        .and_then(|text| text.parse::<i64>().ok())
        .filter(|mask| *mask < 0x7fff);
    let unit = match mask {
        Some(mask) if mask & MINUTE != 0 => "minute",
        Some(mask) if mask & HOUR != 0 => "hour",
        _ => "second",
    };
    match text.trim().parse::<f64>() {
        Ok(number) => format!("INTERVAL '{number} {unit}'"),
        Err(_) => format!("INTERVAL '{text}'"),
    }
}

pub(super) fn show(name: &str) -> Statement {
    match name {
        "all" => Statement::ShowAll,
        _ => Statement::Show(name.to_lowercase()),
    }
}

pub(super) const fn discard(target: DiscardMode::Type) -> Statement {
    Statement::Discard(match target {
        DiscardMode::DISCARD_ALL => "all",
        DiscardMode::DISCARD_PLANS => "plans",
        DiscardMode::DISCARD_SEQUENCES => "sequences",
        _ => "temp",
    })
}

pub(super) fn alter_system(statement: Option<&VariableSetStmt>) -> Result<Statement> {
    let statement = statement.ok_or_else(|| SqlError::internal("ALTER SYSTEM of nothing"))?;
    let name = match statement.kind {
        VariableSetKind::VAR_RESET_ALL => None,
        _ => statement.name().map(str::to_lowercase),
    };
    let value = match statement.kind {
        VariableSetKind::VAR_SET_VALUE => Some(values(statement.args()).join(", ")),
        _ => None,
    };
    Ok(Statement::AlterSystem(AlterSystem { name, value }))
}
