//! EXPLAIN.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::ExplainStmt;

use super::statement::{Explain, Statement};
use super::{execute, node, place, query};
use crate::error::{Result, SqlError};

pub(super) fn explain(statement: &ExplainStmt, text: &str) -> Result<Statement> {
    let (mut analyze, mut json) = (false, false);
    for option in statement.options().iter() {
        let name = node::option_name(option);
        let value = node::option_text(option).unwrap_or_else(|| "on".to_owned());
        let on = !matches!(value.to_lowercase().as_str(), "off" | "false" | "0");
        match name {
            "analyze" | "analyse" => analyze = on,
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary"
            | "generic_plan" | "memory" => {}
            "format" => {
                json = match value.to_lowercase().as_str() {
                    "text" => false,
                    "json" => true,
                    "xml" | "yaml" => {
                        let message =
                            format!("EXPLAIN FORMAT {} is not supported", value.to_uppercase());
                        return Err(SqlError::unsupported(
                            message,
                            "Use FORMAT JSON or FORMAT TEXT.",
                        ));
                    }
                    _ => {
                        let message = format!(
                            "unrecognized value for EXPLAIN option \"format\": \"{value}\""
                        );
                        let error = SqlError::new("22023", message);
                        return Err(error.with_position(place(text, option.location)));
                    }
                }
            }
            _ => {
                let message = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(SqlError::syntax(message).with_position(place(text, option.location)));
            }
        }
    }
    let command = match statement.query() {
        Node::ExecuteStmt(of) => {
            return Ok(Statement::Explain(Explain {
                analyze,
                json,
                statement: Box::new(execute::execute(of)?),
            }));
        }
        Node::DeclareCursorStmt(_) => "DECLARE CURSOR",
        Node::CreateTableAsStmt(_) => "CREATE TABLE AS",
        Node::RefreshMatViewStmt(_) => "REFRESH MATERIALIZED VIEW",
        query => {
            let query = query::within(query, "EXPLAIN")?;
            return Ok(Statement::Explain(Explain {
                analyze,
                json,
                statement: Box::new(Statement::Query(query)),
            }));
        }
    };
    let message = format!("EXPLAIN of {command} is not supported");
    Err(SqlError::unsupported(message, "Explain the query in it."))
}
