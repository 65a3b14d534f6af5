//! Values between a workload, the engine and the wire: one form for all three.
//!
//! Money is counted in hundredths, so that sums are exact.

use std::error::Error as StdError;

use bytes::BytesMut;
use thermocline_values::binary_format::{parse_binary, write_binary};
use thermocline_values::numeric::Numeric;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// An `integer`.
pub fn int(value: i64) -> Value {
    i32::try_from(value).map_or(Value::BigInt(value), Value::Integer)
}

/// A text.
pub fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

/// A `numeric` with so many digits behind the point, from its smallest unit.
pub fn decimal(units: i64, scale: u8) -> Value {
    Numeric::new(units.into(), scale).map_or(Value::Null, Value::Numeric)
}

/// Money, from hundredths.
pub fn money(hundredths: i64) -> Value {
    decimal(hundredths, 2)
}

/// The number in an integer's value; 0 for anything else.
pub fn int_of(value: &Value) -> i64 {
    match value {
        Value::SmallInt(number) => (*number).into(),
        Value::Integer(number) => (*number).into(),
        Value::BigInt(number) | Value::Timestamp(number) => *number,
        _ => 0,
    }
}

/// A `numeric` in units of so many digits behind the point; 0 for anything else.
pub fn units_of(value: &Value, scale: u8) -> i64 {
    match value {
        Value::Numeric(number) => (number.rescale(scale))
            .and_then(|number| i64::try_from(number.mantissa()).ok())
            .unwrap_or(0),
        other => int_of(other) * 10i64.pow(scale.into()),
    }
}

/// Money in hundredths; 0 for anything else.
pub fn money_of(value: &Value) -> i64 {
    units_of(value, 2)
}

/// The text in a value; nothing for anything else.
pub fn text_of(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        _ => "",
    }
}

/// A value on the wire, in its binary form.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell(pub Value);

/// The type that the wire calls so.
fn data_type_of(wire: &Type) -> Option<DataType> {
    Some(match *wire {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::SmallInt,
        Type::INT4 => DataType::Integer,
        Type::INT8 => DataType::BigInt,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR => DataType::Text,
        Type::BYTEA => DataType::Bytea,
        Type::NUMERIC => DataType::NUMERIC,
        Type::TIMESTAMP => DataType::Timestamp,
        _ => return None,
    })
}

/// What the wire calls a column's type.
pub fn wire_type(data_type: &DataType) -> Option<Type> {
    Some(match data_type {
        DataType::Boolean => Type::BOOL,
        DataType::SmallInt => Type::INT2,
        DataType::Integer => Type::INT4,
        DataType::BigInt => Type::INT8,
        DataType::Text => Type::TEXT,
        DataType::Varchar(_) => Type::VARCHAR,
        DataType::Char(_) => Type::BPCHAR,
        DataType::Bytea => Type::BYTEA,
        DataType::Numeric { .. } => Type::NUMERIC,
        DataType::Timestamp => Type::TIMESTAMP,
        _ => return None,
    })
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        wire: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let data_type = data_type_of(wire).ok_or_else(|| format!("{wire} is not a cell's"))?;
        let value = match (&data_type, &self.0) {
            (_, Value::Null) => return Ok(IsNull::Yes),
            (DataType::SmallInt, value) => Value::SmallInt(int_of(value).try_into()?),
            (DataType::Integer, value) => Value::Integer(int_of(value).try_into()?),
            (DataType::BigInt, value) => Value::BigInt(int_of(value)),
            (_, value) => value.clone(),
        };
        let mut bytes = Vec::with_capacity(16);
        write_binary(value.as_ref(), &data_type, &mut bytes);
        out.extend_from_slice(&bytes);
        Ok(IsNull::No)
    }

    fn accepts(wire: &Type) -> bool {
        data_type_of(wire).is_some()
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(wire: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        let data_type = data_type_of(wire).ok_or_else(|| format!("{wire} is not a cell's"))?;
        let value = parse_binary(&data_type, bytes).map_err(|error| error.to_string())?;
        Ok(Cell(match (&value, wire) {
            // As the engine keeps it.
            (Value::Text(text), &Type::BPCHAR) => Value::Text(text.trim_end().to_owned()),
            _ => value,
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Cell(Value::Null))
    }

    fn accepts(wire: &Type) -> bool {
        data_type_of(wire).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_comes_back_from_the_wire_as_it_went() {
        for (wire, value) in [
            (Type::INT4, int(-7)),
            (Type::INT8, Value::BigInt(1 << 40)),
            (Type::VARCHAR, text("BAROUGHTABLE")),
            (Type::NUMERIC, money(-123_456)),
            (Type::NUMERIC, decimal(5, 4)),
            (Type::TIMESTAMP, Value::Timestamp(86_400_000_000)),
        ] {
            let mut bytes = BytesMut::new();
            Cell(value.clone()).to_sql(&wire, &mut bytes).expect("sent");
            let Cell(back) = Cell::from_sql(&wire, &bytes).expect("read");
            assert_eq!(back, value, "{wire}");
        }
    }

    #[test]
    fn money_is_exact() {
        assert_eq!(money_of(&money(-1)), -1);
        assert_eq!(units_of(&decimal(1999, 4), 4), 1999);
        assert_eq!(money_of(&int(3)), 300);
    }
}
