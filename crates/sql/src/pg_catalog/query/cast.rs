//! Casts between the types of catalog queries.

use thermocline_storage::cast::{CastContext, coerce};
use thermocline_storage::text_format;
use thermocline_storage::types::DataType;

use super::text::{Names, datum_text, scalar_value};
use crate::error::{Result, SqlError};
use crate::output::array_elements;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;

/// `value` of type `from` as type `to`.
pub(crate) fn cast(value: Datum, from: PgType, to: PgType, names: &dyn Names) -> Result<Datum> {
    if value.is_null() || (from.oid == to.oid && to.typmod == -1) {
        return Ok(value);
    }
    match &value {
        Datum::Text(text) => from_text(text, from, to, names),
        _ if to.is_text() => {
            let text = match &value {
                Datum::Bool(value) => value.to_string(),
                other => datum_text(other, from, names),
            };
            from_text(&text, PgType::TEXT, to, names)
        }
        Datum::Array(elements) => match (from.element(), to.element()) {
            (Some(from), Some(to)) => Ok(Datum::Array(
                elements
                    .iter()
                    .map(|element| cast(element.clone(), from, to, names))
                    .collect::<Result<_>>()?,
            )),
            _ => Err(no_cast(from, to)),
        },
        Datum::Bool(flag) if to.is_integer() => Ok(Datum::Int(i64::from(*flag))),
        Datum::Int(number) if to.oid == 16 => Ok(Datum::Bool(*number != 0)),
        _ if to.is_oid() => match value.as_int() {
            Some(number) => Ok(Datum::Int(number)),
            None => Err(no_cast(from, to)),
        },
        _ => {
            let source = scalar_source(from, &value);
            let target = DataType::from_oid(to.oid, to.typmod).ok_or_else(|| no_cast(from, to))?;
            let scalar = scalar_value(&value, &source).ok_or_else(|| no_cast(from, to))?;
            Ok(coerce(scalar, &source, &target, CastContext::Explicit)?.into())
        }
    }
}

fn scalar_source(from: PgType, value: &Datum) -> DataType {
    match (DataType::from_oid(from.oid, from.typmod), value) {
        (Some(data_type), _) => data_type,
        (None, Datum::Float(_)) => DataType::Double,
        (None, Datum::Numeric(_)) => DataType::NUMERIC,
        (None, _) => DataType::BigInt,
    }
}

fn no_cast(from: PgType, to: PgType) -> SqlError {
    let name = |data_type: PgType| crate::pg_catalog::pg_type::format_type(data_type.oid, None);
    SqlError::new(
        "42846",
        format!("cannot cast type {} to {}", name(from), name(to)),
    )
}

fn undefined(kind: &str, name: &str, sqlstate: &'static str) -> SqlError {
    SqlError::new(sqlstate, format!("{kind} \"{name}\" does not exist"))
}

fn from_text(text: &str, from: PgType, to: PgType, names: &dyn Names) -> Result<Datum> {
    let number = || text.trim().parse::<u32>().ok().map(Datum::oid);
    let reg = |found: Option<u32>, kind: &str, sqlstate: &'static str| match found {
        Some(oid) => Ok(Datum::oid(oid)),
        None => Err(undefined(kind, text, sqlstate)),
    };
    match to.oid {
        25 | 705 | 114 | 194 | 3802 | 1186 | 1083 | 1033 | 3361 | 3402 => Ok(Datum::text(text)),
        19 => Ok(Datum::text(clip(text, 63))),
        18 => Ok(Datum::text(text.chars().take(1).collect::<String>())),
        1043 | 1042 if to.typmod == -1 => Ok(Datum::text(match to.oid {
            1042 => text.trim_end_matches(' '),
            _ => text,
        })),
        26 | 28 => number().ok_or_else(|| {
            SqlError::new(
                "22P02",
                format!("invalid input syntax for type oid: \"{text}\""),
            )
        }),
        2205 => match number() {
            Some(oid) => Ok(oid),
            None if text == "-" => Ok(Datum::Int(0)),
            None => reg(names.relation_by_name(text), "relation", "42P01"),
        },
        2206 => match number() {
            Some(oid) => Ok(oid),
            None => reg(names.type_by_name(text), "type", "42704"),
        },
        4089 => match number() {
            Some(oid) => Ok(oid),
            None => reg(names.schema_by_name(text), "schema", "3F000"),
        },
        4096 => match number() {
            Some(oid) => Ok(oid),
            None => reg(names.role_by_name(text), "role", "42704"),
        },
        24 | 2202 => match number() {
            Some(oid) => Ok(oid),
            None => reg(names.function_by_name(text), "function", "42883"),
        },
        22 | 30 => {
            let element = to.element().unwrap_or(PgType::INT4);
            let elements = text
                .split_ascii_whitespace()
                .map(|word| from_text(word, PgType::TEXT, element, names))
                .collect::<Result<_>>()?;
            Ok(Datum::Array(elements))
        }
        _ => {
            if let Some(element) = to.element() {
                let elements = array_elements(text)?
                    .into_iter()
                    .map(|word| match word {
                        None => Ok(Datum::Null),
                        Some(word) => from_text(&word, PgType::TEXT, element, names),
                    })
                    .collect::<Result<_>>()?;
                return Ok(Datum::Array(elements));
            }
            let data_type =
                DataType::from_oid(to.oid, to.typmod).ok_or_else(|| no_cast(from, to))?;
            // A length cuts in a cast; in a text it would be an error.
            if data_type.is_text() {
                let value = thermocline_storage::value::Value::Text(text.to_owned());
                return Ok(
                    coerce(value, &DataType::Text, &data_type, CastContext::Explicit)?.into(),
                );
            }
            Ok(text_format::parse_text(&data_type, text)?.into())
        }
    }
}

fn clip(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
