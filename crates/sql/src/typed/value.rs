//! Values of tables as data of any type, and back.

use thermocline_query::datum::Datum;
use thermocline_query::types::numeric::Numeric;
use thermocline_storage::value::{Value, ValueRef};

/// A table's value as a datum of the same type.
pub(crate) fn to_datum(value: &Value) -> Datum {
    match value {
        Value::Null => Datum::Null,
        Value::Boolean(value) => Datum::Bool(*value),
        Value::SmallInt(value) => Datum::Int2(*value),
        Value::Integer(value) => Datum::Int4(*value),
        Value::BigInt(value) => Datum::Int8(*value),
        Value::Real(value) => Datum::Float4(*value),
        Value::Double(value) => Datum::Float8(*value),
        Value::Numeric(value) => {
            Numeric::parse(&value.to_string()).map_or(Datum::Null, Datum::Numeric)
        }
        Value::Text(value) => Datum::text(value.as_str()),
        Value::Bytea(value) => Datum::bytes(value.as_slice()),
        Value::Date(value) => Datum::Date(*value),
        Value::Timestamp(value) => Datum::Timestamp(*value),
        Value::TimestampTz(value) => Datum::TimestampTz(*value),
        Value::Uuid(value) => Datum::Uuid(*value),
    }
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
