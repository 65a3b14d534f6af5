//! SQL's EXECUTE: its arguments are expressions, computed once and converted
//! to the types of the prepared statement's parameters.

use std::sync::Arc;

use thermocline_values::cast::CastContext;
use thermocline_values::value::Value;

use super::prepared::{Planned, Prepared};
use super::run::Run;
use super::{Client, Session};
use crate::bind::{self, BindContext, Clause};
use crate::error::{Result, SqlError};
use crate::expr::{CastPath, Datum, EvalContext, NoRow};
use crate::parse::statement::Argument;
use crate::styles::Styles;

impl Session {
    pub(super) async fn execute_prepared(
        &mut self,
        name: &str,
        arguments: &[Argument],
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        let (prepared, planned, parameters) = self.given_arguments(name, arguments).await?;
        let inner = Run {
            prepared: &prepared,
            planned: Some(&planned),
            is_fresh: false,
            parameters: &parameters,
            formats: run.formats,
            describe: run.describe,
        };
        Box::pin(self.run(inner, client)).await
    }

    /// A prepared statement of this name, its plan, and the values of its parameters.
    pub(super) async fn given_arguments(
        &mut self,
        name: &str,
        arguments: &[Argument],
    ) -> Result<(Arc<Prepared>, Arc<Planned>, Vec<Value>)> {
        let prepared = self.prepared(name).await?;
        let Some(query) = prepared.query() else {
            return Err(SqlError::unsupported(
                "EXECUTE of a command that is no query is not supported",
                "Send the command itself.",
            ));
        };
        let planned = self.plan(&prepared, query).await?;
        let parameters = self.arguments(name, &planned, arguments)?;
        Ok((prepared, planned, parameters))
    }

    fn arguments(
        &self,
        name: &str,
        planned: &Planned,
        arguments: &[Argument],
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
        let styles = self.context.styles();
        let context = BindContext::new(&catalog, &search_path).styled(&styles);
        let evaluation =
            EvalContext::without_parameters(self.context.transaction_us(), &*self.context, &styles);
        arguments
            .iter()
            .zip(&planned.parameters)
            .map(|(argument, wanted)| {
                let text = match argument {
                    Argument::Text(text) => {
                        return styles.read(wanted, text, Some(evaluation.now_us));
                    }
                    Argument::Parameter(number) => {
                        let message = format!("there is no parameter ${number}");
                        return Err(SqlError::new("42P02", message));
                    }
                    Argument::Expression(text) => text,
                };
                let (expression, data_type) = bind::bind_argument(text, Clause::Execute, &context)?;
                let value = expression.evaluate(&NoRow, &evaluation)?.into_value();
                let path = CastPath {
                    from: data_type,
                    to: *wanted,
                    context: CastContext::Assignment,
                };
                converted(value, &path, &styles)
            })
            .collect()
    }
}

fn converted(value: Value, path: &CastPath, styles: &Styles) -> Result<Value> {
    if value == Value::Null || path.from == path.to {
        return Ok(value);
    }
    Ok(path.apply(Datum::Owned(value), styles)?.into_value())
}
