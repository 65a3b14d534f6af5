//! Values in PostgreSQL's binary format, big-endian, for parameters, results
//! and binary COPY. Bytes of the wrong length are 22P03, never a panic.

use crate::datetime::{
    date_from_days, is_infinite_date, is_infinite_timestamp, rounded, timestamp_from_microseconds,
};
use crate::numeric::Numeric;
use crate::other_type;
use crate::text_format::{checked_text, fit_numeric, fit_text, pad_blanks, trim_blanks};
use crate::types::DataType;
use crate::value::{Value, ValueRef};
use crate::value_error::{NUMERIC_OVERFLOW, ValueError};

/// Exactly `N` bytes.
fn array<const N: usize>(data_type: &DataType, bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes
        .try_into()
        .map_err(|_| ValueError::binary(data_type.base_name()))
}

fn text(bytes: &[u8]) -> Result<&str, ValueError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let wrong = bytes.get(error.valid_up_to()).copied().unwrap_or(0);
        ValueError::new(
            "22021",
            format!("invalid byte sequence for encoding \"UTF8\": 0x{wrong:02x}"),
        )
    })?;
    checked_text(text)
}

/// Reads a value from its binary form.
///
/// # Errors
/// 22P03 for bytes of the wrong form; what `parse_text` gives for values that
/// do not fit their type.
pub fn parse_binary(data_type: &DataType, bytes: &[u8]) -> Result<Value, ValueError> {
    Ok(match *data_type {
        DataType::Boolean => {
            let [byte] = array(data_type, bytes)?;
            Value::Boolean(byte != 0)
        }
        DataType::SmallInt => Value::SmallInt(i16::from_be_bytes(array(data_type, bytes)?)),
        DataType::Integer => Value::Integer(i32::from_be_bytes(array(data_type, bytes)?)),
        DataType::BigInt => Value::BigInt(i64::from_be_bytes(array(data_type, bytes)?)),
        DataType::Real => Value::Real(f32::from_be_bytes(array(data_type, bytes)?)),
        DataType::Double => Value::Double(f64::from_be_bytes(array(data_type, bytes)?)),
        DataType::Numeric { precision, .. } => {
            let small = Numeric::parse_binary(bytes).and_then(|number| {
                match (precision, data_type.small_scale()) {
                    (0, _) => Ok(number),
                    (_, Some(scale)) => fit_numeric(number, precision, scale),
                    (_, None) => Err(ValueError::numeric_overflow()),
                }
            });
            match small {
                Err(error) if error.sqlstate == NUMERIC_OVERFLOW => {
                    other_type::forms().numeric_of_binary(data_type.typmod(), bytes)?
                }
                small => Value::Numeric(small?),
            }
        }
        DataType::Text | DataType::Varchar(0) => Value::Text(text(bytes)?.to_string()),
        DataType::Varchar(limit) => {
            Value::Text(fit_text(text(bytes)?, limit, data_type)?.to_string())
        }
        DataType::Char(0) => Value::Text(trim_blanks(text(bytes)?).to_string()),
        DataType::Char(limit) => {
            Value::Text(trim_blanks(fit_text(text(bytes)?, limit, data_type)?).to_string())
        }
        DataType::Bytea => Value::Bytea(bytes.to_vec()),
        DataType::Date => {
            let days = i32::from_be_bytes(array(data_type, bytes)?);
            if !is_infinite_date(days) {
                date_from_days(days.into())?;
            }
            Value::Date(days)
        }
        DataType::Timestamp => Value::Timestamp(timestamp(data_type, bytes)?),
        DataType::TimestampTz => Value::TimestampTz(timestamp(data_type, bytes)?),
        DataType::TimestampTo(digits) => {
            Value::Timestamp(rounded(timestamp(data_type, bytes)?, digits))
        }
        DataType::TimestampTzTo(digits) => {
            Value::TimestampTz(rounded(timestamp(data_type, bytes)?, digits))
        }
        DataType::Uuid => Value::Uuid(array(data_type, bytes)?),
        DataType::Other { oid, modifier } => {
            Value::Other(oid, other_type::forms().parse_binary(oid, modifier, bytes)?)
        }
    })
}

fn timestamp(data_type: &DataType, bytes: &[u8]) -> Result<i64, ValueError> {
    let microseconds = i64::from_be_bytes(array(data_type, bytes)?);
    if is_infinite_timestamp(microseconds) {
        return Ok(microseconds);
    }
    timestamp_from_microseconds(microseconds.into())
}

/// Appends the binary form of a value; nothing for NULL, which has none.
pub fn write_binary(value: ValueRef<'_>, data_type: &DataType, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => {}
        ValueRef::Boolean(value) => out.push(value.into()),
        ValueRef::SmallInt(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Integer(value) | ValueRef::Date(value) => {
            out.extend_from_slice(&value.to_be_bytes());
        }
        ValueRef::BigInt(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value) => {
            out.extend_from_slice(&value.to_be_bytes());
        }
        ValueRef::Real(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Double(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Numeric(value) => value.write_binary(out),
        ValueRef::Text(value) => {
            out.extend_from_slice(value.as_bytes());
            if let DataType::Char(limit) = data_type {
                pad_blanks(value, *limit, out);
            }
        }
        ValueRef::Bytea(value) => out.extend_from_slice(value),
        ValueRef::Other(oid, bytes) => other_type::forms().write_binary(oid, bytes, out),
        ValueRef::Uuid(value) => out.extend_from_slice(&value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_format::parse_text;

    fn binary(data_type: DataType, text: &str) -> Vec<u8> {
        let value = parse_text(&data_type, text).unwrap();
        let mut out = Vec::new();
        write_binary(value.as_ref(), &data_type, &mut out);
        assert_eq!(parse_binary(&data_type, &out).unwrap(), value, "{text}");
        out
    }

    #[test]
    fn forms_are_those_of_postgresqls_send_functions() {
        assert_eq!(binary(DataType::Boolean, "t"), [1]);
        assert_eq!(binary(DataType::SmallInt, "-2"), [0xff, 0xfe]);
        assert_eq!(binary(DataType::Integer, "258"), [0, 0, 1, 2]);
        assert_eq!(binary(DataType::BigInt, "1"), [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(binary(DataType::Real, "1.5"), [0x3f, 0xc0, 0, 0]);
        assert_eq!(
            binary(DataType::Double, "1.5"),
            [0x3f, 0xf8, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(binary(DataType::Text, "é"), [0xc3, 0xa9]);
        assert_eq!(binary(DataType::Char(4), "ab"), *b"ab  ");
        assert_eq!(binary(DataType::Bytea, "\\x00ff"), [0, 0xff]);
        assert_eq!(binary(DataType::Date, "2000-01-02"), [0, 0, 0, 1]);
        assert_eq!(binary(DataType::Date, "infinity"), [0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(
            binary(DataType::Timestamp, "2000-01-01 00:00:00.000001"),
            [0, 0, 0, 0, 0, 0, 0, 1]
        );
        assert_eq!(
            binary(DataType::Timestamp, "-infinity"),
            [0x80, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            binary(DataType::Uuid, "00112233-4455-6677-8899-aabbccddeeff")[..3],
            [0, 0x11, 0x22]
        );
        assert_eq!(
            binary(DataType::numeric(12, 2).unwrap(), "1.5"),
            [0, 2, 0, 0, 0, 0, 0, 2, 0, 1, 0x13, 0x88]
        );
    }

    #[test]
    fn malformed_bytes_are_refused() {
        for data_type in [
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Integer,
            DataType::BigInt,
            DataType::Real,
            DataType::Double,
            DataType::NUMERIC,
            DataType::Date,
            DataType::Timestamp,
            DataType::Uuid,
        ] {
            let error = parse_binary(&data_type, &[1, 2, 3]).unwrap_err();
            assert_eq!(error.sqlstate, "22P03", "{data_type}");
        }
        let invalid = parse_binary(&DataType::Text, &[b'a', 0xff]).unwrap_err();
        assert_eq!(
            invalid.message,
            "invalid byte sequence for encoding \"UTF8\": 0xff"
        );
        let error = parse_binary(&DataType::Varchar(1), b"ab").unwrap_err();
        assert_eq!(error.sqlstate, "22001");
        let error = parse_binary(&DataType::Date, &i32::to_be_bytes(i32::MAX - 1)).unwrap_err();
        assert_eq!(error.sqlstate, "22008");
    }
}
