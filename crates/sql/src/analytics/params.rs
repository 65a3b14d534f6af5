//! Parameters: values of ours as DataFusion's literals, and the types that a
//! statement's `$n` have. A type comes from the client, else from the operand
//! the parameter meets, else it is `text`, as in PostgreSQL.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::ScalarValue;
use thermocline_storage::cast::{CastContext, coerce};
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::batch::{date_to_arrow, timestamp_to_arrow};
use super::types::{UNCONSTRAINED_SCALE, UTC, arrow_type, scalar_type};
use crate::error::{Result, SqlError};

/// The literal of a value. NULL takes the Arrow type of `data_type`, a numeric
/// keeps its own scale unless `data_type` gives another.
pub(crate) fn scalar_of(value: &Value, data_type: Option<&DataType>) -> ScalarValue {
    match value {
        Value::Null => data_type
            .and_then(|data_type| ScalarValue::try_new_null(&arrow_type(data_type)).ok())
            .unwrap_or(ScalarValue::Null),
        Value::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Value::SmallInt(value) => ScalarValue::Int16(Some(*value)),
        Value::Integer(value) => ScalarValue::Int32(Some(*value)),
        Value::BigInt(value) => ScalarValue::Int64(Some(*value)),
        Value::Real(value) => ScalarValue::Float32(Some(*value)),
        Value::Double(value) => ScalarValue::Float64(Some(*value)),
        Value::Numeric(value) => {
            let (precision, scale) = match data_type {
                Some(DataType::Numeric { precision: 0, .. }) => (38, UNCONSTRAINED_SCALE as u8),
                Some(DataType::Numeric { precision, scale }) => (*precision, *scale),
                _ => {
                    let digits = value
                        .mantissa()
                        .unsigned_abs()
                        .checked_ilog10()
                        .unwrap_or(0)
                        + 1;
                    ((digits as u8).max(value.scale()).max(1), value.scale())
                }
            };
            match value
                .round(i32::from(scale))
                .ok()
                .and_then(|value| value.rescale(scale))
            {
                Some(value) => {
                    ScalarValue::Decimal128(Some(value.mantissa()), precision, scale as i8)
                }
                None => ScalarValue::Decimal128(Some(value.mantissa()), 38, value.scale() as i8),
            }
        }
        Value::Text(value) => ScalarValue::Utf8View(Some(value.clone())),
        Value::Bytea(value) => ScalarValue::Binary(Some(value.clone())),
        Value::Date(value) => ScalarValue::Date32(Some(date_to_arrow(*value))),
        Value::Timestamp(value) => {
            ScalarValue::TimestampMicrosecond(Some(timestamp_to_arrow(*value)), None)
        }
        Value::TimestampTz(value) => {
            ScalarValue::TimestampMicrosecond(Some(timestamp_to_arrow(*value)), Some(UTC.into()))
        }
        Value::Uuid(value) => ScalarValue::FixedSizeBinary(16, Some(value.to_vec())),
    }
}

/// The types of `$1`, `$2`, … from those that the client declared and those
/// that planning found.
pub(crate) fn parameter_types(
    declared: &[Option<DataType>],
    found: &HashMap<String, Option<FieldRef>>,
) -> Result<Vec<DataType>> {
    let mut count = declared.len();
    for name in found.keys() {
        let number: usize = name
            .strip_prefix('$')
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| SqlError::new("42P02", format!("there is no parameter {name}")))?;
        count = count.max(number);
    }
    if count > usize::from(u16::MAX) {
        return Err(SqlError::new("54000", "too many parameters"));
    }
    Ok((0..count)
        .map(|index| {
            if let Some(Some(data_type)) = declared.get(index) {
                return *data_type;
            }
            let field = found
                .get(&format!("${}", index + 1))
                .and_then(Option::as_ref);
            match field {
                Some(field) if *field.data_type() != ArrowType::Null => {
                    scalar_type(field).unwrap_or(DataType::Text)
                }
                _ => DataType::Text,
            }
        })
        .collect())
}

/// The literals to put in the place of `$1`, `$2`, …
pub(crate) fn parameter_values(types: &[DataType], values: &[Value]) -> Result<Vec<ScalarValue>> {
    if values.len() < types.len() {
        return Err(SqlError::new(
            "42P02",
            format!("there is no parameter ${}", values.len() + 1),
        ));
    }
    types
        .iter()
        .zip(values)
        .map(|(data_type, value)| {
            let value = coerce(
                value.clone(),
                &type_of(value).unwrap_or(*data_type),
                data_type,
                CastContext::Explicit,
            )?;
            let text = match (&value, data_type) {
                (Value::Text(text), DataType::Char(_)) => {
                    return Ok(ScalarValue::Utf8View(Some(
                        text.trim_end_matches(' ').to_owned(),
                    )));
                }
                _ => value,
            };
            Ok(scalar_of(&text, Some(data_type)))
        })
        .collect()
}

fn type_of(value: &Value) -> Option<DataType> {
    Some(match value {
        Value::Null => return None,
        Value::Boolean(_) => DataType::Boolean,
        Value::SmallInt(_) => DataType::SmallInt,
        Value::Integer(_) => DataType::Integer,
        Value::BigInt(_) => DataType::BigInt,
        Value::Real(_) => DataType::Real,
        Value::Double(_) => DataType::Double,
        Value::Numeric(_) => DataType::NUMERIC,
        Value::Text(_) => DataType::Text,
        Value::Bytea(_) => DataType::Bytea,
        Value::Date(_) => DataType::Date,
        Value::Timestamp(_) => DataType::Timestamp,
        Value::TimestampTz(_) => DataType::TimestampTz,
        Value::Uuid(_) => DataType::Uuid,
    })
}
