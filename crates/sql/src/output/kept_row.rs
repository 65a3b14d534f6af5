//! Rows that are kept until a client asks for them, as bytes of our own: nobody else reads
//! them, and not after this process. The client may say in the meantime that it wants them in
//! another format, so values are kept, not messages.

use thermocline_values::numeric::Numeric;
use thermocline_values::value::ValueRef;

use super::{ColumnType, OutputColumn, RowWriter};
use crate::error::{Result, SqlError};
use crate::typed::held;

/// What a row begins with: one without columns is a row, too.
pub(super) const ROW: u8 = b'r';

/// Writes a value.
pub(super) fn write(value: ValueRef<'_>, out: &mut Vec<u8>) {
    fn fixed(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
        out.push(tag);
        out.extend_from_slice(bytes);
    }
    fn sized(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
        out.push(tag);
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    match value {
        ValueRef::Null => out.push(0),
        ValueRef::Boolean(value) => fixed(out, 1, &[u8::from(value)]),
        ValueRef::SmallInt(value) => fixed(out, 2, &value.to_le_bytes()),
        ValueRef::Integer(value) => fixed(out, 3, &value.to_le_bytes()),
        ValueRef::BigInt(value) => fixed(out, 4, &value.to_le_bytes()),
        ValueRef::Real(value) => fixed(out, 5, &value.to_le_bytes()),
        ValueRef::Double(value) => fixed(out, 6, &value.to_le_bytes()),
        ValueRef::Numeric(value) => {
            fixed(out, 7, &value.mantissa().to_le_bytes());
            out.push(value.scale());
        }
        ValueRef::Text(value) => sized(out, 8, value.as_bytes()),
        ValueRef::Bytea(value) => sized(out, 9, value),
        ValueRef::Date(value) => fixed(out, 10, &value.to_le_bytes()),
        ValueRef::Timestamp(value) => fixed(out, 11, &value.to_le_bytes()),
        ValueRef::TimestampTz(value) => fixed(out, 12, &value.to_le_bytes()),
        ValueRef::Uuid(value) => fixed(out, 13, &value),
        ValueRef::Other(oid, value) => {
            fixed(out, 14, &oid.to_le_bytes());
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value);
        }
    }
}

fn split<'a>(from: &mut &'a [u8], bytes: usize) -> Result<&'a [u8]> {
    let (value, rest) = from.split_at_checked(bytes).ok_or_else(damaged)?;
    *from = rest;
    Ok(value)
}

fn fixed<const N: usize>(from: &mut &[u8]) -> Result<[u8; N]> {
    split(from, N)?.try_into().map_err(|_| damaged())
}

fn sized<'a>(from: &mut &'a [u8]) -> Result<&'a [u8]> {
    let bytes = u32::from_le_bytes(fixed(from)?) as usize;
    split(from, bytes)
}

/// Reads the value at the front of `from`, which begins behind it then.
fn read<'a>(from: &mut &'a [u8]) -> Result<ValueRef<'a>> {
    let [tag] = fixed(from)?;
    Ok(match tag {
        0 => ValueRef::Null,
        1 => ValueRef::Boolean(fixed::<1>(from)? != [0]),
        2 => ValueRef::SmallInt(i16::from_le_bytes(fixed(from)?)),
        3 => ValueRef::Integer(i32::from_le_bytes(fixed(from)?)),
        4 => ValueRef::BigInt(i64::from_le_bytes(fixed(from)?)),
        5 => ValueRef::Real(f32::from_le_bytes(fixed(from)?)),
        6 => ValueRef::Double(f64::from_le_bytes(fixed(from)?)),
        7 => {
            let mantissa = i128::from_le_bytes(fixed(from)?);
            let [scale] = fixed(from)?;
            ValueRef::Numeric(Numeric::new(mantissa, scale)?)
        }
        8 => ValueRef::Text(std::str::from_utf8(sized(from)?).map_err(|_| damaged())?),
        9 => ValueRef::Bytea(sized(from)?),
        10 => ValueRef::Date(i32::from_le_bytes(fixed(from)?)),
        11 => ValueRef::Timestamp(i64::from_le_bytes(fixed(from)?)),
        12 => ValueRef::TimestampTz(i64::from_le_bytes(fixed(from)?)),
        13 => ValueRef::Uuid(fixed(from)?),
        14 => ValueRef::Other(u32::from_le_bytes(fixed(from)?), sized(from)?),
        _ => return Err(damaged()),
    })
}

/// The bytes of the kept row at the front of `from`, which begins behind it then.
pub(crate) fn kept_row<'a>(from: &mut &'a [u8], columns: usize) -> Result<&'a [u8]> {
    let start = *from;
    if fixed(from)? != [ROW] {
        return Err(damaged());
    }
    for _ in 0..columns {
        read(from)?;
    }
    Ok(&start[..start.len() - from.len()])
}

/// Writes the kept row at the front of `from`, which begins behind it then, to its receiver.
pub(crate) fn write_kept_row(
    from: &mut &[u8],
    columns: &[OutputColumn],
    rows: &mut RowWriter,
) -> Result<()> {
    if fixed(from)? != [ROW] {
        return Err(damaged());
    }
    rows.begin_row(columns.len());
    for column in columns {
        match (read(from)?, &column.data_type) {
            (ValueRef::Null, _) => rows.null(),
            (value, ColumnType::Scalar(data_type)) => rows.value(value, data_type),
            (ValueRef::Text(text), ColumnType::Other(other)) => rows.other(text, *other)?,
            // A number that needed no text.
            (value, ColumnType::Other(other)) => match held(other.oid(), column.type_modifier) {
                Some(data_type) => rows.value(value, &data_type),
                None => return Err(SqlError::internal("a kept value of no known type")),
            },
        }
    }
    rows.end_row();
    Ok(())
}

#[cold]
fn damaged() -> SqlError {
    SqlError::internal("a kept row is not as it was written")
}

#[cfg(test)]
mod tests {
    use thermocline_values::types::DataType;
    use thermocline_values::value::Value;

    use super::*;

    #[test]
    fn values_of_all_types_are_read_as_they_were_written() {
        let numeric = DataType::Numeric {
            precision: 0,
            scale: 0,
        };
        let row = [
            (Value::Null, DataType::Text),
            (Value::Boolean(true), DataType::Boolean),
            (Value::SmallInt(-2), DataType::SmallInt),
            (Value::Integer(i32::MIN), DataType::Integer),
            (Value::BigInt(i64::MAX), DataType::BigInt),
            (Value::Real(-0.0), DataType::Real),
            (Value::Double(f64::INFINITY), DataType::Double),
            (Value::Numeric(Numeric::parse("-12.3400").unwrap()), numeric),
            (Value::Text("schön".into()), DataType::Text),
            (Value::Bytea(vec![0, 255]), DataType::Bytea),
            (Value::Date(-1), DataType::Date),
            (Value::Timestamp(i64::MIN), DataType::Timestamp),
            (Value::TimestampTz(7), DataType::TimestampTz),
            (Value::Uuid([9; 16]), DataType::Uuid),
        ];
        let columns: Vec<OutputColumn> = row
            .iter()
            .map(|(_, data_type)| OutputColumn::scalar("c", *data_type))
            .collect();
        let mut one = vec![ROW];
        for (value, _) in &row {
            write(value.as_ref(), &mut one);
        }
        let bytes = one.repeat(2);
        let mut rows = RowWriter::values();
        let mut from = &bytes[..];
        write_kept_row(&mut from, &columns, &mut rows).unwrap();
        write_kept_row(&mut from, &columns, &mut rows).unwrap();
        assert!(from.is_empty());
        let values: Vec<Value> = row.into_iter().map(|(value, _)| value).collect();
        assert_eq!(rows.take_values(), [values.clone(), values]);
        let mut cut = &bytes[..bytes.len() / 4];
        assert!(write_kept_row(&mut cut, &columns, &mut RowWriter::values()).is_err());
    }
}
