//! Aggregates of catalog queries.

use std::collections::HashSet;

use thermocline_storage::numeric::Numeric;

use super::eval::{Frame, evaluate};
use super::expr::{Expr, Order};
use super::run::{Run, order_key};
use super::text::datum_text;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;

/// Aggregate functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateFunction {
    CountRows,
    Count,
    Sum,
    Average,
    Min,
    Max,
    ArrayAgg,
    StringAgg,
    BoolAnd,
    BoolOr,
    JsonAgg,
}

/// A call of one.
#[derive(Debug)]
pub(crate) struct AggregateCall {
    pub function: AggregateFunction,
    pub arguments: Vec<(Expr, PgType)>,
    pub distinct: bool,
    pub order: Vec<Order>,
    pub filter: Option<Expr>,
}

impl AggregateFunction {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "avg" => Self::Average,
            "min" => Self::Min,
            "max" => Self::Max,
            "array_agg" => Self::ArrayAgg,
            "string_agg" => Self::StringAgg,
            "bool_and" | "every" => Self::BoolAnd,
            "bool_or" => Self::BoolOr,
            "json_agg" | "jsonb_agg" => Self::JsonAgg,
            _ => return None,
        })
    }

    pub(crate) fn result(self, argument: Option<PgType>) -> PgType {
        match self {
            Self::CountRows | Self::Count => PgType::INT8,
            Self::Sum => match argument.map_or(25, |argument| argument.oid) {
                21 | 23 => PgType::INT8,
                20 | 1700 => PgType::NUMERIC,
                oid => PgType::of(oid),
            },
            Self::Average => match argument.map_or(25, |argument| argument.oid) {
                700 | 701 => PgType::FLOAT8,
                _ => PgType::NUMERIC,
            },
            Self::Min | Self::Max => match argument.map_or(25, |argument| argument.oid) {
                19 | 18 | 1043 | 705 => PgType::TEXT,
                oid => PgType::of(oid),
            },
            Self::ArrayAgg => match argument {
                Some(argument) if argument != PgType::UNKNOWN => argument.array(),
                _ => PgType::TEXT_ARRAY,
            },
            Self::StringAgg => PgType::TEXT,
            Self::BoolAnd | Self::BoolOr => PgType::BOOL,
            Self::JsonAgg => PgType::JSON,
        }
    }
}

/// The aggregate over rows, each of which is a frame.
pub(crate) fn aggregate(
    call: &AggregateCall,
    frames: &[Frame<'_>],
    run: &Run<'_>,
) -> Result<Datum> {
    let mut inputs: Vec<(Vec<Datum>, Vec<Datum>)> = Vec::with_capacity(frames.len());
    for frame in frames {
        if let Some(filter) = &call.filter
            && !evaluate(filter, frame, run)?.is_true()
        {
            continue;
        }
        if call.function == AggregateFunction::CountRows {
            inputs.push((Vec::new(), Vec::new()));
            continue;
        }
        let values = call
            .arguments
            .iter()
            .map(|(argument, _)| evaluate(argument, frame, run))
            .collect::<Result<Vec<_>>>()?;
        let keys = call
            .order
            .iter()
            .map(|order| evaluate(&order.expr, frame, run))
            .collect::<Result<Vec<_>>>()?;
        inputs.push((values, keys));
    }
    if call.distinct {
        let mut seen = HashSet::new();
        inputs.retain(|(values, _)| seen.insert(values.clone()));
        if call.order.is_empty() {
            inputs.sort_by(|a, b| a.0.cmp(&b.0));
        }
    }
    if !call.order.is_empty() {
        inputs.sort_by(|a, b| order_key(&call.order, &a.1, &b.1));
    }
    let firsts = || {
        inputs
            .iter()
            .filter_map(|(values, _)| values.first())
            .filter(|value| !value.is_null())
    };
    Ok(match call.function {
        AggregateFunction::CountRows => Datum::Int(inputs.len() as i64),
        AggregateFunction::Count => Datum::Int(firsts().count() as i64),
        AggregateFunction::Min => firsts().min().cloned().unwrap_or_default(),
        AggregateFunction::Max => firsts().max().cloned().unwrap_or_default(),
        AggregateFunction::Sum => sum(firsts())?,
        AggregateFunction::Average => {
            let count = firsts().count();
            match sum(firsts())? {
                Datum::Null => Datum::Null,
                Datum::Float(sum) => Datum::Float(sum / count as f64),
                Datum::Int(sum) => divide(Numeric::from(sum), count)?,
                Datum::Numeric(sum) => divide(sum, count)?,
                _ => return Err(SqlError::internal("a sum that is no number")),
            }
        }
        AggregateFunction::ArrayAgg if inputs.is_empty() => Datum::Null,
        AggregateFunction::ArrayAgg => Datum::array(
            inputs
                .iter()
                .map(|(values, _)| values.first().cloned().unwrap_or_default()),
        ),
        AggregateFunction::StringAgg => {
            let mut out: Option<String> = None;
            for (values, _) in &inputs {
                let (Some(value), separator) = (values.first(), values.get(1)) else {
                    continue;
                };
                if value.is_null() {
                    continue;
                }
                let data_type = call.arguments.first().map_or(PgType::TEXT, |(_, t)| *t);
                let text = datum_text(value, data_type, run.names());
                match &mut out {
                    None => out = Some(text),
                    Some(out) => {
                        out.push_str(separator.and_then(Datum::as_text).unwrap_or_default());
                        out.push_str(&text);
                        run.room(out.len() as u64)?;
                    }
                }
            }
            out.map_or(Datum::Null, Datum::text)
        }
        AggregateFunction::BoolAnd => firsts().map(Datum::is_true).reduce(|a, b| a && b).into(),
        AggregateFunction::BoolOr => firsts().map(Datum::is_true).reduce(|a, b| a || b).into(),
        AggregateFunction::JsonAgg if inputs.is_empty() => Datum::Null,
        AggregateFunction::JsonAgg => {
            let data_type = call.arguments.first().map_or(PgType::TEXT, |(_, t)| *t);
            let elements: Vec<String> = inputs
                .iter()
                .filter_map(|(values, _)| values.first())
                .map(|value| super::text::json_text(value, data_type, run.names()))
                .collect();
            Datum::text(format!("[{}]", elements.join(", ")))
        }
    })
}

fn divide(sum: Numeric, count: usize) -> Result<Datum> {
    Ok(Datum::Numeric(sum.div(Numeric::from(count as i64))?))
}

fn sum<'a>(values: impl Iterator<Item = &'a Datum>) -> Result<Datum> {
    let mut total = Datum::Null;
    for value in values {
        total = match (total, value) {
            (Datum::Null, Datum::Int(_) | Datum::Float(_) | Datum::Numeric(_)) => value.clone(),
            (Datum::Int(a), Datum::Int(b)) => match a.checked_add(*b) {
                Some(sum) => Datum::Int(sum),
                None => Datum::Numeric(Numeric::from(a).add(Numeric::from(*b))?),
            },
            (Datum::Float(a), Datum::Float(b)) => Datum::Float(a + b),
            (Datum::Numeric(a), Datum::Numeric(b)) => Datum::Numeric(a.add(*b)?),
            (Datum::Numeric(a), Datum::Int(b)) => Datum::Numeric(a.add(Numeric::from(*b))?),
            _ => {
                return Err(SqlError::new(
                    "42883",
                    "function sum does not exist for this type",
                ));
            }
        };
    }
    Ok(total)
}
