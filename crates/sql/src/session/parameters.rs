//! Parameter values of a Bind message, in text or binary, converted to the
//! types that the statement gave its parameters. A client may declare a type
//! that no column has (`name`, `oid`, arrays): its values become texts.

use crate::typed::held;
use thermocline_values::binary_format;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use crate::error::{Result, SqlError};
use crate::styles::Styles;

/// How texts are read: the session's styles, at its transaction's time.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    pub(super) styles: &'a Styles,
    pub(super) now_us: i64,
}

impl Texts<'_> {
    fn read(self, data_type: &DataType, text: &str) -> Result<Value> {
        self.styles.read(data_type, text, Some(self.now_us))
    }
}

/// The values of all parameters.
///
/// # Errors
/// 08P01 when the message does not fit the statement, 22P02, 22P03 and others
/// for single values.
pub(super) fn decode(
    oids: &[u32],
    types: &[DataType],
    statement: &str,
    (formats, values): (&[i16], &[Option<&[u8]>]),
    texts: Texts<'_>,
) -> Result<Vec<Value>> {
    let expected = oids.len();
    if values.len() != expected {
        return Err(SqlError::protocol(format!(
            "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {expected}",
            values.len(),
        )));
    }
    if formats.len() > 1 && formats.len() != values.len() {
        return Err(SqlError::protocol(format!(
            "bind message has {} parameter formats but {} parameters",
            formats.len(),
            values.len()
        )));
    }
    values
        .iter()
        .enumerate()
        .map(|(at, value)| {
            let Some(bytes) = value else {
                return Ok(Value::Null);
            };
            let format = match formats {
                [] => 0,
                [one] => *one,
                each => each[at],
            };
            let data_type = types.get(at).unwrap_or(&DataType::Text);
            let oid = oids[at];
            decode_one(oid, data_type, format, bytes, texts)
        })
        .collect()
}

fn decode_one(
    oid: u32,
    data_type: &DataType,
    format: i16,
    bytes: &[u8],
    texts: Texts<'_>,
) -> Result<Value> {
    match format {
        0 => texts.read(data_type, utf8(bytes)?),
        1 if oid == data_type.oid() => Ok(binary_format::parse_binary(data_type, bytes)?),
        1 => {
            let text = other_text(oid, bytes, texts.styles)?;
            texts.read(data_type, &text)
        }
        _ => Err(SqlError::new(
            "22023",
            format!("unsupported format code: {format}"),
        )),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        SqlError::new(
            "22021",
            format!(
                "invalid byte sequence for encoding \"UTF8\": 0x{:02x}",
                bytes.get(at).copied().unwrap_or(0)
            ),
        )
    })?;
    if text.contains('\0') {
        return Err(SqlError::new(
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(text)
}

/// The text of a binary value whose type is declared otherwise than inferred.
fn other_text(oid: u32, bytes: &[u8], styles: &Styles) -> Result<String> {
    let malformed = || {
        SqlError::new(
            "22P03",
            format!("incorrect binary data format for a value of type {oid}"),
        )
    };
    if let Some(data_type) = held(oid, -1) {
        let value = binary_format::parse_binary(&data_type, bytes)?;
        let mut text = Vec::new();
        styles.write(value.as_ref(), &data_type, &mut text)?;
        return String::from_utf8(text).map_err(|_| malformed());
    }
    match oid {
        24 | 28 | 2205 | 2206 | 4089 | 4096 if bytes.len() == 4 => Ok(be_u32(bytes).to_string()),
        _ => utf8(bytes).map(str::to_owned),
    }
}

fn be_u32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(oid: u32, data_type: &DataType, format: i16, bytes: &[u8]) -> Result<Value> {
        let texts = Texts {
            styles: Styles::plain(),
            now_us: 0,
        };
        decode_one(oid, data_type, format, bytes, texts)
    }

    #[test]
    fn values_in_both_formats() {
        let integer = DataType::Integer;
        assert_eq!(decoded(23, &integer, 0, b"-5").unwrap(), Value::Integer(-5));
        assert_eq!(
            decoded(23, &integer, 1, &[0, 0, 1, 0]).unwrap(),
            Value::Integer(256)
        );
        assert_eq!(
            decoded(23, &integer, 0, b"x").unwrap_err().sqlstate,
            "22P02"
        );
        assert_eq!(
            decoded(23, &integer, 1, b"x").unwrap_err().sqlstate,
            "22P03"
        );
        assert_eq!(
            decoded(25, &DataType::Text, 0, b"\xff")
                .unwrap_err()
                .sqlstate,
            "22021"
        );
    }

    #[test]
    fn a_declared_type_that_differs_is_converted() {
        crate::one_row::prepare();
        // An int8 for what the statement takes as text.
        assert_eq!(
            decoded(20, &DataType::Text, 1, &7i64.to_be_bytes()).unwrap(),
            Value::Text("7".into())
        );
        assert_eq!(
            decoded(26, &DataType::Text, 1, &16384u32.to_be_bytes()).unwrap(),
            Value::Text("16384".into())
        );
    }

    #[test]
    fn binary_arrays_become_literals() {
        crate::one_row::prepare();
        let mut bytes = Vec::new();
        for word in [1i32, 1, 26, 2, 1, 4, 16384, -1] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        assert_eq!(
            decoded(1028, &DataType::Text, 1, &bytes).unwrap(),
            Value::Text("{16384,NULL}".into())
        );
        bytes.truncate(22);
        assert_eq!(
            decoded(1028, &DataType::Text, 1, &bytes)
                .unwrap_err()
                .sqlstate,
            "08P01"
        );
    }
}
