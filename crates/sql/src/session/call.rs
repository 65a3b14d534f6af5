//! CALL of a procedure that the program registered: a transaction of its own,
//! its results as one row.

use std::sync::Arc;

use thermocline_engine::Procedure;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::evict::{EVICT_PARAMETERS, evicted_columns, is_eviction};
use super::prepared::Prepared;
use super::procedure::columns_of;
use super::run::Run;
use super::transaction::Block;
use super::{Client, Session};
use crate::bind::{self, BindContext, Clause};
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, NoRow};
use crate::messages;
use crate::output::{OutputColumn, RowWriter};
use crate::parse::Statement;
use crate::parse::statement::{Argument, Call};

impl Session {
    pub(super) async fn call(
        &mut self,
        call: &Call,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        if is_eviction(call) {
            return self.evict(call, run, client).await;
        }
        if self.calls_body(call) {
            return Box::pin(self.call_body(call, run, client)).await;
        }
        if self.transaction.block() != Block::None {
            return Err(SqlError::unsupported(
                "CALL cannot run inside a transaction block: a procedure is a transaction of its own",
                "COMMIT or ROLLBACK first, then CALL.",
            ));
        }
        self.check_writable("CALL")?;
        let procedure = self.procedure(call)?;
        self.context.actor()?.need_procedure(procedure.name())?;
        let wanted = parameter_types(&procedure);
        let arguments = self.call_arguments(&wanted, call, run.parameters)?;
        let options = self.options();
        let results = self
            .engine
            .db
            .call(&options, procedure.name(), &arguments)
            .await?;
        if !results.is_empty() {
            if run.describe {
                let columns = result_columns(&procedure);
                messages::row_description(&mut client.out, &columns, run.formats);
            }
            let rows = RowWriter::wire(Vec::new(), run.formats.clone());
            let mut rows = rows.styled(self.context.styles());
            rows.begin_row(results.len());
            for (value, (_, data_type)) in results.iter().zip(procedure.results()) {
                rows.value(value.as_ref(), data_type);
            }
            rows.end_row();
            client.out.extend_from_slice(rows.bytes());
        }
        messages::command_complete(&mut client.out, "CALL");
        Ok(())
    }

    /// The columns of a CALL's row; `None` if it returns none.
    pub(super) fn call_columns(
        &self,
        call: &Call,
        declared: &[u32],
    ) -> Result<Option<Arc<[OutputColumn]>>> {
        if is_eviction(call) {
            return Ok(Some(evicted_columns().into()));
        }
        if self.calls_body(call) {
            return Ok(columns_of(&*self.planned_call(call, declared)?));
        }
        let columns = result_columns(&*self.procedure(call)?);
        Ok((!columns.is_empty()).then(|| columns.into()))
    }

    /// The types of a command's parameters `$1`, `$2` …: those of the procedure
    /// of a CALL; other commands have none.
    pub(super) fn utility_parameters(&self, prepared: &Prepared) -> Result<Vec<DataType>> {
        let Some(Statement::Call(call)) = &prepared.statement else {
            return Ok(Vec::new());
        };
        if !is_eviction(call) && self.calls_body(call) {
            return Ok(self
                .planned_call(call, &prepared.declared)?
                .parameters
                .clone());
        }
        let wanted: Vec<DataType> = match is_eviction(call) {
            true => EVICT_PARAMETERS.to_vec(),
            false => parameter_types(&*self.procedure(call)?),
        };
        let mut types = Vec::new();
        for (argument, wanted) in call.arguments.iter().zip(&wanted) {
            let Argument::Parameter(number) = *argument else {
                continue;
            };
            if types.len() < number {
                types.resize(number, DataType::Text);
            }
            types[number - 1] = *wanted;
        }
        Ok(types)
    }

    /// The procedure that is named, if it takes as many arguments.
    fn procedure(&self, call: &Call) -> Result<Arc<Procedure>> {
        let name = match call.name.as_slice() {
            [name] => Some(name),
            [schema, name] if schema == "public" => Some(name),
            _ => None,
        };
        name.and_then(|name| self.engine.db.procedures().get(name))
            .filter(|procedure| procedure.parameters().len() == call.arguments.len())
            .ok_or_else(|| {
                let types = vec!["unknown"; call.arguments.len()].join(", ");
                if !self.functions_named(call).is_empty() {
                    let message = format!("{}({types}) is not a procedure", call.name.join("."));
                    let hint = "To call a function, use SELECT.";
                    return SqlError::new("42809", message).with_hint(hint);
                }
                SqlError::new(
                    "42883",
                    format!("procedure {}({types}) does not exist", call.name.join(".")),
                )
                .with_hint(
                    "No procedure of this name with as many parameters is registered with the \
                     database.",
                )
            })
    }

    /// The arguments of a CALL, as values of the types that are wanted.
    pub(super) fn call_arguments(
        &self,
        wanted: &[DataType],
        call: &Call,
        parameters: &[Value],
    ) -> Result<Vec<Value>> {
        if !call.names.is_empty() {
            return Err(SqlError::unsupported(
                "names of arguments of a procedure in Rust are not supported",
                "Give the arguments in their order.",
            ));
        }
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let styles = self.context.styles();
        let context = BindContext::new(&catalog, &search_path).styled(&styles);
        let evaluation =
            EvalContext::without_parameters(self.context.transaction_us(), &*self.context, &styles);
        let evaluate = |argument: &Argument, wanted: &DataType| match argument {
            Argument::Parameter(number) => {
                let missing = || SqlError::new("42P02", format!("there is no parameter ${number}"));
                parameters.get(number - 1).cloned().ok_or_else(missing)
            }
            Argument::Text(text) => styles.read(wanted, text, Some(evaluation.now_us)),
            Argument::Expression(text) => {
                let (expression, from) = bind::bind_argument(text, Clause::Call, &context)?;
                let value = expression.evaluate(&NoRow, &evaluation)?.into_value();
                // A procedure casts its arguments itself; a smaller number is a larger one.
                match (from.is_integer() && *wanted == DataType::BigInt, value) {
                    (true, Value::SmallInt(number)) => Ok(Value::BigInt(number.into())),
                    (true, Value::Integer(number)) => Ok(Value::BigInt(number.into())),
                    (_, value) => Ok(value),
                }
            }
        };
        call.arguments
            .iter()
            .zip(wanted)
            .map(|(argument, wanted)| evaluate(argument, wanted))
            .collect()
    }
}

fn parameter_types(procedure: &Procedure) -> Vec<DataType> {
    let parameters = procedure.parameters().iter();
    parameters.map(|(_, data_type)| *data_type).collect()
}

fn result_columns(procedure: &Procedure) -> Vec<OutputColumn> {
    procedure
        .results()
        .iter()
        .map(|(name, data_type)| OutputColumn::scalar(name, *data_type))
        .collect()
}
