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
    let (mut arguments, mut names) = (Vec::new(), Vec::new());
    for node in call.args().iter() {
        let given = match node {
            Node::NamedArgExpr(named) => {
                let name = named.name().unwrap_or_default().to_owned();
                if names.contains(&name) {
                    let message = format!("argument name \"{name}\" used more than once");
                    return Err(SqlError::new("42601", message));
                }
                names.push(name);
                named.arg()
            }
            _ if names.is_empty() => node,
            _ => {
                let message = "positional argument cannot follow named argument";
                return Err(SqlError::new("42601", message));
            }
        };
        arguments.push(argument(given)?);
    }
    Ok(Statement::Call(Call {
        name: node::strings(call.funcname()),
        arguments,
        names,
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
        other => Argument::Expression(written::expression(other)?),
    })
}
