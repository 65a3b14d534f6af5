//! SQL's EXECUTE: its arguments are expressions, computed once and converted
//! to the types of the prepared statement's parameters.

use sqlparser::ast;
use thermocline_storage::cast::{self, CastContext};
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::prepared::Planned;
use super::run::Run;
use super::{Client, Session};
use crate::bind::{self, BindContext};
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, NoRow};

impl Session {
    pub(super) async fn execute_prepared(
        &mut self,
        name: &str,
        arguments: &[ast::Expr],
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        let prepared = self.prepared(name).await?;
        let Some(query) = prepared.query() else {
            return Err(SqlError::unsupported(
                "EXECUTE of a command that is no query is not supported",
            ));
        };
        let planned = self.plan(&prepared, query).await?;
        let parameters = self.arguments(name, &planned, arguments)?;
        let inner = Run {
            prepared: &prepared,
            planned: Some(&planned),
            parameters: &parameters,
            formats: run.formats,
            describe: run.describe,
        };
        Box::pin(self.run(inner, client)).await
    }

    fn arguments(
        &self,
        name: &str,
        planned: &Planned,
        arguments: &[ast::Expr],
    ) -> Result<Vec<Value>> {
        if arguments.len() != planned.parameters.len() {
            return Err(SqlError::syntax(format!(
                "wrong number of parameters for prepared statement \"{name}\""
            ))
            .with_detail(format!(
                "Expected {} parameters but got {}.",
                planned.parameters.len(),
                arguments.len()
            )));
        }
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let context = BindContext::new(&catalog, &search_path);
        let evaluation = EvalContext {
            parameters: &[],
            now_us: self.context.transaction_us(),
            session: &*self.context,
        };
        arguments
            .iter()
            .zip(&planned.parameters)
            .map(|(argument, wanted)| {
                if let Some(text) = quoted(argument) {
                    return Ok(thermocline_storage::text_format::parse_text(wanted, text)?);
                }
                let (expression, data_type) = bind::bind_scalar(argument, None, &context)?;
                let value = expression.evaluate(&NoRow, &evaluation)?.into_value();
                converted(value, &data_type, wanted)
            })
            .collect()
    }
}

fn converted(value: Value, from: &DataType, to: &DataType) -> Result<Value> {
    if value == Value::Null || from == to {
        return Ok(value);
    }
    Ok(cast::coerce(value, from, to, CastContext::Assignment)?)
}

/// A string constant, which has no type of its own.
pub(super) fn quoted(argument: &ast::Expr) -> Option<&str> {
    match argument {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
