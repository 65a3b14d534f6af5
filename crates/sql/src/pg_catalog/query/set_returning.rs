//! Functions that return rows.

use super::eval::{Frame, evaluate};
use super::expr::SetCall;
use super::run::Run;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;

/// Set-returning functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetFunction {
    Unnest,
    GenerateSeries,
    GenerateSubscripts,
    /// `information_schema._pg_expandarray`: elements with their numbers.
    ExpandArray,
    PartitionAncestors,
    OptionsToTable,
    /// A function that returns one value, in FROM.
    Value(super::functions::Function),
}

impl SetFunction {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "unnest" => Self::Unnest,
            "generate_series" => Self::GenerateSeries,
            "generate_subscripts" => Self::GenerateSubscripts,
            "_pg_expandarray" => Self::ExpandArray,
            "pg_partition_ancestors" => Self::PartitionAncestors,
            "pg_options_to_table" => Self::OptionsToTable,
            _ => return None,
        })
    }

    /// The names and types of the columns, given those of the arguments.
    pub(crate) fn columns(self, name: &str, arguments: &[PgType]) -> Vec<(String, PgType)> {
        let first = arguments.first().copied().unwrap_or(PgType::TEXT);
        let element = first.element().unwrap_or(PgType::TEXT);
        let column = |name: &str, data_type| (name.to_owned(), data_type);
        match self {
            Self::Unnest => vec![column(name, element)],
            Self::GenerateSeries => vec![column(name, first)],
            Self::GenerateSubscripts => vec![column(name, PgType::INT4)],
            Self::ExpandArray => vec![column("x", element), column("n", PgType::INT4)],
            Self::PartitionAncestors => vec![column("relid", PgType::REGCLASS)],
            Self::OptionsToTable => vec![
                column("option_name", PgType::TEXT),
                column("option_value", PgType::TEXT),
            ],
            Self::Value(function) => vec![column(name, function.result(arguments))],
        }
    }
}

/// What a row of one value takes, in bytes.
const ROW_BYTES: u64 = 128;

/// The rows that a call returns; each has the columns of the function.
pub(crate) fn rows(call: &SetCall, frame: &Frame<'_>, run: &Run<'_>) -> Result<Vec<Vec<Datum>>> {
    let values = call
        .arguments
        .iter()
        .map(|(argument, _)| evaluate(argument, frame, run))
        .collect::<Result<Vec<_>>>()?;
    if let SetFunction::Value(function) = call.function {
        let types: Vec<PgType> = call
            .arguments
            .iter()
            .map(|(_, data_type)| *data_type)
            .collect();
        return Ok(vec![vec![super::functions::call(
            function, &values, &types, run,
        )?]]);
    }
    if values.iter().any(Datum::is_null) {
        return Ok(Vec::new());
    }
    let vector = call
        .arguments
        .first()
        .is_some_and(|(_, data_type)| matches!(data_type.oid, 22 | 30));
    let array = || values.first().and_then(Datum::as_array).unwrap_or_default();
    let integer = |at: usize| values.get(at).and_then(Datum::as_int);
    let result = match call.function {
        SetFunction::Unnest => array()
            .iter()
            .map(|element| vec![element.clone()])
            .collect(),
        SetFunction::ExpandArray => (1..)
            .zip(array())
            .map(|(number, element)| vec![element.clone(), Datum::Int(number)])
            .collect(),
        SetFunction::GenerateSubscripts => {
            let first = i64::from(!vector);
            match integer(1) {
                Some(1) => (0..array().len() as i64)
                    .map(|at| vec![Datum::Int(at + first)])
                    .collect(),
                _ => Vec::new(),
            }
        }
        SetFunction::GenerateSeries => {
            let (Some(start), Some(stop)) = (integer(0), integer(1)) else {
                return Err(SqlError::unsupported("generate_series over these types"));
            };
            let step = integer(2).unwrap_or(1);
            if step == 0 {
                return Err(SqlError::new("22023", "step size cannot equal zero"));
            }
            let mut series = Vec::new();
            let mut value = start;
            while if step > 0 {
                value <= stop
            } else {
                value >= stop
            } {
                run.work(1)?;
                series.push(vec![Datum::Int(value)]);
                if series.len().is_multiple_of(1024) {
                    run.room(series.len() as u64 * ROW_BYTES)?;
                }
                match value.checked_add(step) {
                    Some(next) => value = next,
                    None => break,
                }
            }
            series
        }
        // Only partitions of a partitioned table have ancestors.
        SetFunction::PartitionAncestors => Vec::new(),
        SetFunction::OptionsToTable => array()
            .iter()
            .filter_map(Datum::as_text)
            .map(|option| match option.split_once('=') {
                Some((name, value)) => vec![Datum::text(name), Datum::text(value)],
                None => vec![Datum::text(option), Datum::Null],
            })
            .collect(),
        SetFunction::Value(_) => Vec::new(),
    };
    run.work(result.len() as u64)?;
    Ok(result)
}
