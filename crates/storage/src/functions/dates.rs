//! Functions of dates and timestamps: `date_trunc`, `extract`, `date_part`,
//! with the field as a text. All in UTC.

use super::{Function, strict, wrong_arguments};
use crate::arithmetic::type_name;
use crate::datetime::{Field, date_trunc, extract, timestamp_from_date};
use crate::numeric::long::{self, LONG};
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::ValueError;

pub(super) fn lookup(name: &str, types: &[DataType]) -> Option<Function> {
    use DataType::{Date, Double, Text, Timestamp, TimestampTz};
    let [field, moment @ (Date | Timestamp | TimestampTz)] = types else {
        return None;
    };
    if !field.is_text() {
        return None;
    }
    Some(match (name, moment) {
        // PostgreSQL prefers timestamptz for a date.
        ("date_trunc", Timestamp) => strict(&[Text, Timestamp], Timestamp, truncate),
        ("date_trunc", _) => strict(&[Text, TimestampTz], TimestampTz, truncate),
        ("date_part", Date) => strict(&[Text, Timestamp], Double, date_part),
        ("date_part", _) => strict(&[Text, *moment], Double, date_part),
        ("extract", _) => strict(&[Text, *moment], DataType::NUMERIC, extract_field),
        _ => return None,
    })
}

#[cold]
fn unrecognized(unit: &str, of: &Value) -> ValueError {
    ValueError::new(
        "22023",
        format!(
            "unit \"{}\" not recognized for type {}",
            unit.to_lowercase(),
            type_name(of)
        ),
    )
}

#[cold]
fn unsupported(unit: &str, of: &Value) -> ValueError {
    ValueError::new(
        "0A000",
        format!(
            "unit \"{}\" not supported for type {}",
            unit.to_lowercase(),
            type_name(of)
        ),
    )
}

fn is_zone(field: Field) -> bool {
    matches!(
        field,
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute
    )
}

fn truncate(arguments: &[Value]) -> Result<Value, ValueError> {
    let [
        Value::Text(unit),
        moment @ (Value::Timestamp(at) | Value::TimestampTz(at)),
    ] = arguments
    else {
        return Err(wrong_arguments("date_trunc"));
    };
    let field = Field::from_name(unit).ok_or_else(|| unrecognized(unit, moment))?;
    let start = date_trunc(field, *at)?.ok_or_else(|| match is_zone(field) {
        true => unsupported(unit, moment),
        false => unrecognized(unit, moment),
    })?;
    Ok(match moment {
        Value::Timestamp(_) => Value::Timestamp(start),
        _ => Value::TimestampTz(start),
    })
}

fn extract_field(arguments: &[Value]) -> Result<Value, ValueError> {
    let [Value::Text(unit), moment] = arguments else {
        return Err(wrong_arguments("extract"));
    };
    let field = Field::from_name(unit).ok_or_else(|| unrecognized(unit, moment))?;
    let is_time = matches!(
        field,
        Field::Microseconds | Field::Milliseconds | Field::Second | Field::Minute | Field::Hour
    );
    Ok(match moment {
        Value::Date(_) if is_zone(field) || is_time => return Err(unsupported(unit, moment)),
        // What a date counts, it counts in whole numbers.
        Value::Date(days) => match extract(field, timestamp_from_date(*days)?)? {
            Value::Numeric(number) => Value::Numeric(number.round(0)?),
            other => other,
        },
        Value::Timestamp(_) if is_zone(field) => return Err(unsupported(unit, moment)),
        Value::Timestamp(at) | Value::TimestampTz(at) => extract(field, *at)?,
        _ => return Err(wrong_arguments("extract")),
    })
}

fn date_part(arguments: &[Value]) -> Result<Value, ValueError> {
    Ok(match extract_field(arguments)? {
        Value::Numeric(number) => Value::Double(number.to_f64()),
        Value::Other(LONG, bytes) => Value::Double(long::to_f64(&bytes)),
        other => other,
    })
}
