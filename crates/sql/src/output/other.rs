//! Types that only catalog queries and system functions return: PostgreSQL's
//! `oid`, `name`, `regclass`, arrays and so on. No column has one; they arrive
//! as text, already formatted, and are re-encoded here when a client asked for
//! the binary format (asyncpg, pgx and tokio-postgres always do).

use thermocline_storage::types::DataType;
use thermocline_storage::{binary_format, text_format};

use crate::error::{Result, SqlError};

/// A type that a column cannot have but a result can.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OtherType {
    /// `oid`
    Oid,
    /// `name`
    Name,
    /// `"char"`, one byte
    InternalChar,
    /// `regclass`
    Regclass,
    /// `regtype`
    Regtype,
    /// `regproc`
    Regproc,
    /// `regnamespace`
    Regnamespace,
    /// `regrole`
    Regrole,
    /// `xid`
    Xid,
    /// `interval`
    Interval,
    /// `time without time zone`
    Time,
    /// `json`
    Json,
    /// `jsonb`
    Jsonb,
    /// `record`
    Record,
    /// `void`
    Void,
    /// `unknown`
    Unknown,
    /// `int2vector`
    Int2Vector,
    /// `oidvector`
    OidVector,
    /// `pg_node_tree`
    PgNodeTree,
    /// `aclitem`
    AclItem,
    /// An array of a type a column can have.
    ArrayOf(DataType),
    /// `oid[]`
    OidArray,
    /// `name[]`
    NameArray,
    /// `"char"[]`
    InternalCharArray,
    /// `regtype[]`
    RegtypeArray,
    /// `aclitem[]`
    AclItemArray,
    /// `anyarray`
    AnyArray,
    /// Any other, by its number: what `thermocline_query` computes.
    Typed(u32),
}

impl OtherType {
    /// The type's number in `pg_type`.
    #[must_use]
    pub const fn oid(self) -> u32 {
        match self {
            Self::Oid => 26,
            Self::Name => 19,
            Self::InternalChar => 18,
            Self::Regclass => 2205,
            Self::Regtype => 2206,
            Self::Regproc => 24,
            Self::Regnamespace => 4089,
            Self::Regrole => 4096,
            Self::Xid => 28,
            Self::Interval => 1186,
            Self::Time => 1083,
            Self::Json => 114,
            Self::Jsonb => 3802,
            Self::Record => 2249,
            Self::Void => 2278,
            Self::Unknown => 705,
            Self::Int2Vector => 22,
            Self::OidVector => 30,
            Self::PgNodeTree => 194,
            Self::AclItem => 1033,
            Self::ArrayOf(element) => array_oid(element),
            Self::OidArray => 1028,
            Self::NameArray => 1003,
            Self::InternalCharArray => 1002,
            Self::RegtypeArray => 2211,
            Self::AclItemArray => 1034,
            Self::AnyArray => 2277,
            Self::Typed(oid) => oid,
        }
    }

    /// PostgreSQL's length of the type in bytes; -1 when it varies.
    #[must_use]
    pub const fn typlen(self) -> i16 {
        match self {
            Self::InternalChar => 1,
            Self::Oid
            | Self::Regclass
            | Self::Regtype
            | Self::Regproc
            | Self::Regnamespace
            | Self::Regrole
            | Self::Xid
            | Self::Void => 4,
            Self::Time => 8,
            Self::Interval | Self::AclItem => 16,
            Self::Name => 64,
            Self::Unknown => -2,
            _ => -1,
        }
    }

    /// Writes `text` in the binary format of the type.
    ///
    /// # Errors
    /// 42883 for a type without a binary form here, 22P02 for text that is
    /// not of the type.
    pub fn write_binary(self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Oid | Self::Xid => {
                let number: u32 = text.trim().parse().map_err(|_| bad("oid", text))?;
                out.extend_from_slice(&number.to_be_bytes());
            }
            // By number when the text is one; a name has no number here.
            Self::Regclass | Self::Regtype | Self::Regproc | Self::Regnamespace | Self::Regrole => {
                let number: u32 = match text.trim() {
                    "-" => 0,
                    number => number.parse().map_err(|_| {
                        SqlError::new("42883", "no binary output function available for this type")
                            .with_hint("Cast it to text.")
                    })?,
                };
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Jsonb => {
                out.push(1);
                out.extend_from_slice(text.as_bytes());
            }
            Self::Void => {}
            Self::Typed(oid) => crate::typed::write_binary(oid, text, out)?,
            Self::Name | Self::InternalChar | Self::Json | Self::Unknown | Self::PgNodeTree => {
                out.extend_from_slice(text.as_bytes())
            }
            Self::Time => out.extend_from_slice(&time_of_day_us(text)?.to_be_bytes()),
            Self::Int2Vector => write_array(
                &vector_elements(text),
                ElementType::Scalar(DataType::SmallInt),
                0,
                out,
            )?,
            Self::OidVector => write_array(&vector_elements(text), ElementType::Oid, 0, out)?,
            Self::ArrayOf(element) => {
                write_array(&array_elements(text)?, ElementType::Scalar(element), 1, out)?
            }
            Self::OidArray | Self::RegtypeArray => {
                write_array(&array_elements(text)?, ElementType::Oid, 1, out)?;
            }
            Self::NameArray => write_array(&array_elements(text)?, ElementType::Text(19), 1, out)?,
            Self::InternalCharArray => {
                write_array(&array_elements(text)?, ElementType::Text(18), 1, out)?;
            }
            Self::Interval | Self::Record | Self::AclItem | Self::AclItemArray | Self::AnyArray => {
                return Err(SqlError::new(
                    "42883",
                    "no binary output function available for this type",
                )
                .with_hint("Cast it to text, or ask for the text format."));
            }
        }
        Ok(())
    }
}

const fn array_oid(element: DataType) -> u32 {
    match element {
        DataType::Boolean => 1000,
        DataType::Bytea => 1001,
        DataType::SmallInt => 1005,
        DataType::Integer => 1007,
        DataType::Text => 1009,
        DataType::Char(_) => 1014,
        DataType::Varchar(_) => 1015,
        DataType::BigInt => 1016,
        DataType::Real => 1021,
        DataType::Double => 1022,
        DataType::Timestamp => 1115,
        DataType::Date => 1182,
        DataType::TimestampTz => 1185,
        DataType::Numeric { .. } => 1231,
        DataType::Uuid => 2951,
    }
}

#[cold]
fn bad(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        "22P02",
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

fn time_of_day_us(text: &str) -> Result<i64> {
    let parse = || -> Option<i64> {
        let mut parts = text.split(':');
        let hours: i64 = parts.next()?.parse().ok()?;
        let minutes: i64 = parts.next()?.parse().ok()?;
        let (seconds, fraction) = match parts.next().unwrap_or("0").split_once('.') {
            Some((seconds, fraction)) => (seconds.parse::<i64>().ok()?, fraction),
            None => return Some((hours * 60 + minutes) * 60_000_000),
        };
        let mut micros: i64 = 0;
        for digit in fraction.bytes().chain(std::iter::repeat(b'0')).take(6) {
            micros = micros * 10 + i64::from(digit.checked_sub(b'0')?);
        }
        Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
    };
    parse().ok_or_else(|| bad("time", text))
}

enum ElementType {
    Scalar(DataType),
    Oid,
    Text(u32),
}

/// The elements of `1 2 3`, as int2vector and oidvector are written.
fn vector_elements(text: &str) -> Vec<Option<String>> {
    text.split_ascii_whitespace()
        .map(|element| Some(element.to_owned()))
        .collect()
}

/// The elements of a one-dimensional array literal, `{1,NULL,"a b"}`.
///
/// # Errors
/// 22P02 when the text is not such a literal.
pub fn array_elements(text: &str) -> Result<Vec<Option<String>>> {
    let malformed = || SqlError::new("22P02", format!("malformed array literal: \"{text}\""));
    let inner = text
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(malformed)?;
    let mut elements = Vec::new();
    if inner.trim().is_empty() {
        return Ok(elements);
    }
    let mut element = String::new();
    let mut quoted = false;
    let mut was_quoted = false;
    let mut characters = inner.chars();
    loop {
        let character = characters.next();
        match character {
            Some('\\') => element.push(characters.next().ok_or_else(malformed)?),
            Some('"') => {
                quoted = !quoted;
                was_quoted = true;
            }
            Some(',') | None if !quoted => {
                let value = if was_quoted {
                    std::mem::take(&mut element)
                } else {
                    std::mem::take(&mut element).trim().to_owned()
                };
                let null = !was_quoted && value.eq_ignore_ascii_case("null");
                elements.push((!null).then_some(value));
                was_quoted = false;
            }
            Some('{' | '}') if !quoted => return Err(malformed()),
            Some(character) => element.push(character),
            None => return Err(malformed()),
        }
        if character.is_none() {
            return Ok(elements);
        }
    }
}

fn write_array(
    elements: &[Option<String>],
    element_type: ElementType,
    lower_bound: i32,
    out: &mut Vec<u8>,
) -> Result<()> {
    let element_oid = match &element_type {
        ElementType::Scalar(data_type) => data_type.oid(),
        ElementType::Oid => 26,
        ElementType::Text(oid) => *oid,
    };
    let dimensions = u32::from(!elements.is_empty());
    let has_nulls = u32::from(elements.iter().any(Option::is_none));
    out.extend_from_slice(&dimensions.to_be_bytes());
    out.extend_from_slice(&has_nulls.to_be_bytes());
    out.extend_from_slice(&element_oid.to_be_bytes());
    if elements.is_empty() {
        return Ok(());
    }
    let count = i32::try_from(elements.len())
        .map_err(|_| SqlError::new("54000", "array has too many elements"))?;
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&lower_bound.to_be_bytes());
    for element in elements {
        let Some(text) = element else {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        };
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match &element_type {
            ElementType::Scalar(data_type) => {
                let value = text_format::parse_text(data_type, text)?;
                binary_format::write_binary(value.as_ref(), data_type, out);
            }
            ElementType::Oid => {
                let number: u32 = text.parse().map_err(|_| bad("oid", text))?;
                out.extend_from_slice(&number.to_be_bytes());
            }
            ElementType::Text(_) => out.extend_from_slice(text.as_bytes()),
        }
        let length = (out.len() - start - 4) as i32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_literals_are_taken_apart() {
        assert_eq!(array_elements("{}").unwrap(), Vec::new());
        assert_eq!(
            array_elements(r#"{1,NULL,"a, \"b\"", c }"#).unwrap(),
            [
                Some("1".to_owned()),
                None,
                Some("a, \"b\"".to_owned()),
                Some("c".to_owned())
            ]
        );
        assert_eq!(array_elements("1,2").unwrap_err().sqlstate, "22P02");
        assert_eq!(array_elements("{\"a}").unwrap_err().sqlstate, "22P02");
    }

    #[test]
    fn an_array_of_integers_in_binary() {
        let mut out = Vec::new();
        OtherType::ArrayOf(DataType::Integer)
            .write_binary("{7,NULL}", &mut out)
            .unwrap();
        let expected: Vec<u8> = [1i32, 1, 23, 2, 1, 4, 7, -1]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        assert_eq!(out, expected);
    }

    #[test]
    fn a_time_of_day_in_binary() {
        let mut out = Vec::new();
        OtherType::Time
            .write_binary("01:00:00.5", &mut out)
            .unwrap();
        assert_eq!(out, 3_600_500_000i64.to_be_bytes());
    }
}
