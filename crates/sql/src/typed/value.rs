//! Values of tables as data of any type, and back.

use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::error::QueryError;
use thermocline_query::types::numeric::Numeric;
use thermocline_query::types::{self};
use thermocline_values::cast::CastContext;
use thermocline_values::numeric::Numeric as StoredNumeric;
use thermocline_values::numeric::long::{self, LONG};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::stored;
use crate::error::SqlError;

/// A table's value as a datum of the same type; NULL for bytes that are no value.
pub(crate) fn to_datum(value: &Value) -> Datum {
    let data_type = value.data_type().unwrap_or(DataType::Text);
    to_query(value.as_ref(), &data_type).unwrap_or_default()
}

/// A value of a column of this type as a datum.
///
/// # Errors
/// XX000 for bytes that are no value.
pub(crate) fn to_query(value: ValueRef<'_>, data_type: &DataType) -> Result<Datum, QueryError> {
    Ok(match value {
        ValueRef::Null => Datum::Null,
        ValueRef::Boolean(value) => Datum::Bool(value),
        ValueRef::SmallInt(value) => Datum::Int2(value),
        ValueRef::Integer(value) => Datum::Int4(value),
        ValueRef::BigInt(value) => Datum::Int8(value),
        ValueRef::Real(value) => Datum::Float4(value),
        ValueRef::Double(value) => Datum::Float8(value),
        ValueRef::Numeric(value) => {
            Datum::Numeric(Numeric::from_parts(value.mantissa(), value.scale().into()))
        }
        ValueRef::Text(value) => match data_type {
            DataType::Char(length) => Datum::text(padded(value, *length as usize)),
            _ => Datum::text(value),
        },
        ValueRef::Bytea(value) => Datum::bytes(value),
        ValueRef::Date(value) => Datum::Date(value),
        ValueRef::Timestamp(value) => Datum::Timestamp(value),
        ValueRef::TimestampTz(value) => Datum::TimestampTz(value),
        ValueRef::Uuid(value) => Datum::Uuid(value),
        ValueRef::Other(oid, bytes) => stored::decode(oid, bytes)?,
    })
}

/// A datum as a value of a column of this type, which it is of.
///
/// # Errors
/// XX000 for a value of another type.
pub(crate) fn to_stored(value: &Datum, data_type: &DataType) -> Result<Value, SqlError> {
    Ok(match (value, data_type) {
        (Datum::Null, _) => Value::Null,
        (value, DataType::Other { oid, .. }) => {
            let mut bytes = Vec::new();
            stored::encode(*oid, value, &mut bytes)?;
            Value::Other(*oid, bytes)
        }
        (Datum::Numeric(value), _) => of_numeric(value)?,
        (Datum::Text(text), DataType::Char(_)) => {
            Value::Text(text.trim_end_matches(' ').to_owned())
        }
        (value, _) => match borrowed(value) {
            Some(value) => value.to_owned(),
            None => {
                return Err(SqlError::internal(
                    "a value of another type than its column's",
                ));
            }
        },
    })
}

/// A number as tables have it: in the small form if that holds it.
///
/// # Errors
/// XX000 for what is no number.
pub(crate) fn of_numeric(number: &Numeric) -> Result<Value, QueryError> {
    let small = number.to_parts().and_then(|(unscaled, scale)| {
        let scale = u8::try_from(scale).ok()?;
        StoredNumeric::new(unscaled, scale).ok()
    });
    match small {
        Some(small) => Ok(Value::Numeric(small)),
        None => match long::from_text(&number.to_string()) {
            Some(bytes) => Ok(Value::Other(LONG, bytes)),
            None => Err(QueryError::internal("a numeric without a form")),
        },
    }
}

/// A stored value of a type that is the storage's bytes, fitted to a modifier.
///
/// # Errors
/// As PostgreSQL's casts to the type with the modifier.
pub(crate) fn fitted(
    value: ValueRef<'_>,
    oid: u32,
    modifier: i32,
    context: CastContext,
) -> Result<Value, SqlError> {
    let ValueRef::Other(_, bytes) = value else {
        return Ok(value.to_owned());
    };
    if modifier < 0 {
        return Ok(value.to_owned());
    }
    let plain = Plain::default();
    let call = Call::new(&plain, &[], oid);
    let explicit = context == CastContext::Explicit;
    let fitted = types::fit(&call, oid, &stored::decode(oid, bytes)?, modifier, explicit)?;
    to_stored(&fitted, &DataType::Other { oid, modifier })
}

/// A value of `char(n)` with its blanks: tables keep it without.
pub(crate) fn padded(text: &str, length: usize) -> String {
    format!("{text:<length$}")
}

/// A datum as a table's value, borrowed; `None` where tables have no such type.
pub(crate) fn borrowed(value: &Datum) -> Option<ValueRef<'_>> {
    Some(match value {
        Datum::Null => ValueRef::Null,
        Datum::Bool(value) => ValueRef::Boolean(*value),
        Datum::Int2(value) => ValueRef::SmallInt(*value),
        Datum::Int4(value) => ValueRef::Integer(*value),
        Datum::Int8(value) => ValueRef::BigInt(*value),
        Datum::Float4(value) => ValueRef::Real(*value),
        Datum::Float8(value) => ValueRef::Double(*value),
        Datum::Text(value) => ValueRef::Text(value),
        Datum::Bytea(value) => ValueRef::Bytea(value),
        Datum::Date(value) => ValueRef::Date(*value),
        Datum::Timestamp(value) => ValueRef::Timestamp(*value),
        Datum::TimestampTz(value) => ValueRef::TimestampTz(*value),
        Datum::Uuid(value) => ValueRef::Uuid(*value),
        _ => return None,
    })
}

/// A datum as an argument of a function that the session answers.
pub(crate) fn of_datum(value: &Datum) -> Value {
    borrowed(value).map_or(Value::Null, |value| value.to_owned())
}
