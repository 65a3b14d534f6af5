//! PREPARE, EXECUTE and CALL.

use pg_raw_parse::nodes::{CallStmt, ExecuteStmt, PrepareStmt};
use pg_raw_parse::{ConstValue, Node};
use thermocline_query::parse::written;

use super::statement::{Argument, Call, Statement};
use super::{node, query};
use crate::error::{Result, SqlError};

pub(super) fn prepare(statement: &PrepareStmt) -> Result<Statement> {
    let types = statement.argtypes().iter();
    let types = types.map(|name| node::type_text(Some(name)));
    Ok(Statement::Prepare {
        name: statement.name().unwrap_or_default().to_owned(),
        types: types.collect::<Result<_>>()?,
        statement: Box::new(Statement::Query(query::within(
            statement.query(),
            "PREPARE",
        )?)),
    })
}

pub(super) fn execute(statement: &ExecuteStmt) -> Result<Statement> {
    let (name, arguments) = named(statement)?;
    Ok(Statement::Execute { name, arguments })
}

/// The prepared statement and its arguments.
pub(super) fn named(statement: &ExecuteStmt) -> Result<(String, Vec<Argument>)> {
    let arguments = statement.params().iter().map(argument);
    let name = statement.name().unwrap_or_default().to_owned();
    Ok((name, arguments.collect::<Result<_>>()?))
}

pub(super) fn call(statement: &CallStmt) -> Result<Statement> {
    let call = statement
        .funccall()
        .ok_or_else(|| SqlError::internal("CALL of nothing"))?;
    let arguments = call.args().iter().map(argument);
    Ok(Statement::Call(Call {
        name: node::strings(call.funcname()),
        arguments: arguments.collect::<Result<_>>()?,
    }))
}

fn argument(node: Node<'_>) -> Result<Argument> {
    Ok(match node {
        Node::ParamRef(parameter) => match usize::try_from(parameter.number) {
            Ok(number @ 1..=0xffff) => Argument::Parameter(number),
            _ => Argument::Expression(written::expression(node)?),
        },
        Node::A_Const(constant) => match constant.val() {
            Some(ConstValue::String(text)) if !constant.isnull => Argument::Text(text.to_owned()),
            _ => Argument::Expression(written::expression(node)?),
        },
        Node::NamedArgExpr(_) => {
            return Err(SqlError::unsupported(
                "arguments by name in CALL are not supported",
                "Give the arguments in their order.",
            ));
        }
        other => Argument::Expression(written::expression(other)?),
    })
}
