//! Functions: those with a syntax of their own (COALESCE, CURRENT_DATE), those
//! that the session answers, those of the storage floor, aggregates.

use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};
use sqlparser::tokenizer::Span;
use thermocline_engine::authority::Privileges;
use thermocline_storage::cast::CastContext;
use thermocline_storage::functions;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::aggregate::{aggregate_function, function_name, no_function};
use super::typed::{Binder, Type, Typed, convert};
use super::{Bindable, Refusal};
use crate::error::SqlError;
use crate::expr::{Comparison, Expr, FunctionCall, TransactionTime, base_type};
use crate::output::{ColumnType, OtherType};
use crate::styles;
use crate::temporary;

/// The functions that the session answers ([`crate::expr::SessionInfo::call`]):
/// name, types of the arguments, how many of them may be left out, result.
const SESSION_FUNCTIONS: &[(&str, &[DataType], usize, ColumnType)] = {
    use ColumnType::{Other, Scalar};
    use DataType::{BigInt, Boolean, Integer, Text, TimestampTz};
    &[
        ("version", &[], 0, Scalar(Text)),
        ("current_schema", &[], 0, Other(OtherType::NAME)),
        ("current_database", &[], 0, Other(OtherType::NAME)),
        ("current_catalog", &[], 0, Other(OtherType::NAME)),
        ("current_user", &[], 0, Other(OtherType::NAME)),
        ("current_role", &[], 0, Other(OtherType::NAME)),
        ("session_user", &[], 0, Other(OtherType::NAME)),
        ("user", &[], 0, Other(OtherType::NAME)),
        ("pg_backend_pid", &[], 0, Scalar(Integer)),
        ("pg_is_in_recovery", &[], 0, Scalar(Boolean)),
        ("pg_advisory_unlock_all", &[], 0, Other(OtherType::VOID)),
        ("pg_reload_conf", &[], 0, Scalar(Boolean)),
        (
            "pg_stat_statements_reset",
            &[BigInt, BigInt, BigInt],
            3,
            Other(OtherType::VOID),
        ),
        ("pg_notify", &[Text, Text], 0, Other(OtherType::VOID)),
        ("pg_cancel_backend", &[Integer], 0, Scalar(Boolean)),
        (
            "pg_terminate_backend",
            &[Integer, BigInt],
            1,
            Scalar(Boolean),
        ),
        ("current_setting", &[Text, Boolean], 1, Scalar(Text)),
        ("set_config", &[Text, Text, Boolean], 0, Scalar(Text)),
        ("nextval", &[Text], 0, Scalar(BigInt)),
        ("currval", &[Text], 0, Scalar(BigInt)),
        ("lastval", &[], 0, Scalar(BigInt)),
        ("setval", &[Text, BigInt, Boolean], 1, Scalar(BigInt)),
        ("clock_timestamp", &[], 0, Scalar(TimestampTz)),
        ("statement_timestamp", &[], 0, Scalar(TimestampTz)),
    ]
};

/// The type of the session function `name`, if it is one.
#[must_use]
pub fn session_function(name: &str) -> Option<ColumnType> {
    SESSION_FUNCTIONS
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|(.., result)| *result)
}

/// The names of the functions that a session answers.
pub fn session_function_names() -> impl Iterator<Item = &'static str> {
    SESSION_FUNCTIONS.iter().map(|(name, ..)| *name)
}

impl Binder<'_> {
    pub(super) fn function(&mut self, call: &ast::Function) -> Bindable<Typed> {
        let Some(name) = function_name(call) else {
            return Err(Refusal::declined_with(
                "a function of a schema",
                no_function(&call.name.to_string(), ""),
            ));
        };
        if call.over.is_some() {
            return Err(Refusal::declined("a window function"));
        }
        if let Some(aggregate) = aggregate_function(&name) {
            return self.aggregate(aggregate, call);
        }
        if call.filter.is_some() || !call.within_group.is_empty() {
            return Err(Refusal::declined("an aggregate of its own"));
        }
        let span = match call.name.0.first() {
            Some(ast::ObjectNamePart::Identifier(ident)) => ident.span,
            _ => Span::empty(),
        };
        let mut arguments = Vec::new();
        match &call.args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) => return Err(Refusal::declined("a subquery")),
            FunctionArguments::List(list) => {
                if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                    return Err(Refusal::declined(format!("this form of {name}")));
                }
                for argument in &list.args {
                    let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument else {
                        return Err(Refusal::declined(format!("this form of {name}")));
                    };
                    arguments.push(self.expression(argument)?);
                }
            }
        }
        // Which function is meant is not told by these rules.
        let any = matches!(&*name, "coalesce" | "greatest" | "least" | "nullif");
        if !any && arguments.iter().any(Typed::is_other) {
            return Err(Refusal::declined(format!("the function {name}")));
        }
        if let Some(typed) = self.special(&name, &mut arguments)? {
            return Ok(typed);
        }
        if let Some(typed) = self.of_session(&name, &mut arguments)? {
            return Ok(typed);
        }
        self.builtin(&name, arguments, span)
    }

    /// Functions whose arguments are not simply evaluated, or that have none.
    fn special(&mut self, name: &str, arguments: &mut Vec<Typed>) -> Bindable<Option<Typed>> {
        let taken = std::mem::take;
        Ok(Some(match (name, arguments.len()) {
            ("coalesce", 1..) => {
                let (operands, common) = self.common(taken(arguments), "COALESCE")?;
                Typed::known(Expr::Coalesce(operands), common)
            }
            ("greatest" | "least", 1..) => {
                let construct = if name == "greatest" {
                    "GREATEST"
                } else {
                    "LEAST"
                };
                let (operands, common) = self.common(taken(arguments), construct)?;
                super::with_order(common)?;
                let extreme = Expr::Extreme {
                    operands,
                    greatest: name == "greatest",
                };
                Typed::known(extreme, common)
            }
            ("nullif", 2) => {
                let mut both = taken(arguments).into_iter();
                let (Some(left), Some(right)) = (both.next(), both.next()) else {
                    return Ok(None);
                };
                let kept =
                    self.settle(left.clone(), right.data_type().unwrap_or(DataType::Text))?;
                let (kept, result) = self.settled(kept)?;
                let equal = self.compare(Comparison::Equal, left, right)?;
                let case = Expr::Case {
                    arms: vec![(equal.expr, Expr::Constant(Value::Null))],
                    otherwise: Box::new(kept),
                };
                // Its type is the comparison's, which knows no varchar.
                let result = match result {
                    DataType::Varchar(_) => DataType::Text,
                    other => other,
                };
                Typed::known(case, result)
            }
            ("now" | "transaction_timestamp" | "current_timestamp", 0) => Typed::known(
                Expr::Now(TransactionTime::TimestampTz),
                DataType::TimestampTz,
            ),
            ("localtimestamp", 0) => {
                Typed::known(Expr::Now(TransactionTime::Timestamp), DataType::Timestamp)
            }
            ("current_date", 0) => Typed::known(Expr::Now(TransactionTime::Date), DataType::Date),
            ("gen_random_uuid", 0) => Typed::known(Expr::RandomUuid, DataType::Uuid),
            ("nextval", 1) => {
                let Expr::Constant(Value::Text(text)) = &arguments[0].expr else {
                    return Ok(None);
                };
                Typed::known(Expr::NextValue(self.sequence(text)?), DataType::BigInt)
            }
            _ => return Ok(None),
        }))
    }

    /// The object id of the sequence that a literal names as regclass would.
    fn sequence(&self, text: &str) -> Bindable<u32> {
        let parts = regclass_parts(text);
        let catalog = self.context.catalog;
        let path = self.context.search_path;
        let found = match parts.as_slice() {
            [name] => path
                .iter()
                .find_map(|schema| catalog.sequence_by_name(schema, name)),
            [schema, name] => catalog.sequence_by_name(temporary::meant(schema, path), name),
            _ => None,
        };
        match found {
            Some(sequence) => {
                temporary::not_others(&sequence.schema, path)?;
                if let Some(actor) = self.context.actor {
                    actor.need_sequence(
                        catalog,
                        sequence,
                        Privileges::USAGE | Privileges::UPDATE,
                    )?;
                }
                Ok(sequence.oid)
            }
            None => Err(SqlError::undefined_table(&parts.join(".")).into()),
        }
    }

    fn of_session(&mut self, name: &str, arguments: &mut Vec<Typed>) -> Bindable<Option<Typed>> {
        let Some((name, types, optional, result)) =
            SESSION_FUNCTIONS.iter().find(|(known, ..)| *known == name)
        else {
            return Ok(None);
        };
        if arguments.len() > types.len() || arguments.len() + optional < types.len() {
            let given = type_list(arguments);
            return Err(no_function(name, &given).into());
        }
        let given = type_list(arguments);
        let mut bound = Vec::with_capacity(arguments.len());
        for (argument, target) in std::mem::take(arguments).into_iter().zip(*types) {
            match self.implicit(argument, *target)? {
                Some(expr) => bound.push(expr),
                None => return Err(no_function(name, &given).into()),
            }
        }
        let expr = Expr::Session(name, bound);
        Ok(Some(match result {
            ColumnType::Scalar(data_type) => Typed::known(expr, *data_type),
            ColumnType::Other(other) => {
                let mut typed = Typed::known(expr, DataType::Text);
                typed.other = Some(*other);
                typed
            }
        }))
    }

    /// A function of the storage floor, which says what types it wants its
    /// arguments in. Unknown arguments are tried as text, then as numbers.
    pub(super) fn builtin(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        span: Span,
    ) -> Bindable<Typed> {
        let given = type_list(&arguments);
        if arguments
            .iter()
            .any(|argument| matches!(argument.ty, Type::Interval(_)))
        {
            return Err(Refusal::declined("an interval as an argument"));
        }
        let has_unknown = arguments
            .iter()
            .any(|argument| argument.ty == Type::Unknown);
        let candidates: &[DataType] = if has_unknown {
            &[
                DataType::Text,
                DataType::Double,
                DataType::Integer,
                DataType::TimestampTz,
            ]
        } else {
            &[DataType::Text]
        };
        for unknown in candidates {
            let types: Vec<DataType> = arguments
                .iter()
                .map(|argument| base_type(argument.data_type().unwrap_or(*unknown)))
                .collect();
            let Some(function) = functions::lookup(name, &types) else {
                continue;
            };
            self.without_styles(name, &types, &function)?;
            let mut bound = Vec::with_capacity(arguments.len());
            for (number, argument) in arguments.into_iter().enumerate() {
                let argument = self.settle(argument, types[number])?;
                let from = argument.data_type().unwrap_or(types[number]);
                let to = function.arguments.get(number).copied().unwrap_or(from);
                bound.push(convert(argument.expr, from, to, CastContext::Explicit)?);
            }
            let result = function.result;
            let mut typed = Typed::known(
                Expr::Function(Box::new(FunctionCall {
                    name: name.to_owned(),
                    function,
                    arguments: bound,
                })),
                result,
            );
            typed.span = span;
            return Ok(typed);
        }
        let error = no_function(name, &given);
        Err(Refusal::declined_with(format!("function {name}"), error).at(self.context.sql, span))
    }
}

impl Binder<'_> {
    /// Declines a function whose result may depend on the session's styles: the storage knows
    /// the plain ones.
    pub(super) fn without_styles(
        &self,
        name: &str,
        types: &[DataType],
        function: &functions::Function,
    ) -> Bindable<()> {
        if self.context.styles.is_plain() {
            return Ok(());
        }
        let mut of = types.iter().chain(&function.arguments);
        let moments = styles::reads(function.result) || of.clone().any(|of| styles::reads(*of));
        if moments || function.result.is_text() && of.any(|of| styles::shows(*of)) {
            let reason = format!("the function {name} under these settings");
            return Err(Refusal::declined(reason));
        }
        Ok(())
    }
}

/// The parts of a regclass text: folded unless quoted.
fn regclass_parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            _ => {
                if let Some(part) = parts.last_mut() {
                    if quoted {
                        part.push(character);
                    } else {
                        part.extend(character.to_lowercase());
                    }
                }
            }
        }
    }
    parts
}

fn type_list(arguments: &[Typed]) -> String {
    let names: Vec<&str> = arguments.iter().map(Typed::type_name).collect();
    names.join(", ")
}
