//! PostgreSQL's text of catalog values. Types shown by name (`regclass` and
//! its kin) ask [`Names`].

use thermocline_storage::text_format;
use thermocline_storage::types::DataType;
use thermocline_storage::value::{Value, ValueRef};

use crate::analytics::push_array_element;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::{PgType, format_type};

/// Knows the names behind numbers, and the numbers behind names.
pub(crate) trait Names {
    /// The relation's name, qualified unless it is visible.
    fn relation_name(&self, oid: u32) -> Option<String>;
    /// The relation that a text names.
    fn relation_by_name(&self, text: &str) -> Option<u32>;
    fn schema_name(&self, oid: u32) -> Option<String>;
    fn schema_by_name(&self, name: &str) -> Option<u32>;
    fn role_name(&self, oid: u32) -> Option<String>;
    fn role_by_name(&self, name: &str) -> Option<u32>;
    /// The type's name, for types that are not built in.
    fn type_name(&self, oid: u32) -> Option<String>;
    /// The type that a text names.
    fn type_by_name(&self, text: &str) -> Option<u32>;
    fn function_name(&self, oid: u32) -> Option<String>;
    fn function_by_name(&self, text: &str) -> Option<u32>;
}

/// A value of ours as the storage floor writes it.
pub(crate) fn scalar_value(datum: &Datum, data_type: &DataType) -> Option<Value> {
    Some(match (datum, data_type) {
        (Datum::Null, _) => Value::Null,
        (Datum::Bool(value), DataType::Boolean) => Value::Boolean(*value),
        (Datum::Int(value), DataType::SmallInt) => Value::SmallInt(i16::try_from(*value).ok()?),
        (Datum::Int(value), DataType::Integer) => Value::Integer(i32::try_from(*value).ok()?),
        (Datum::Int(value), DataType::BigInt) => Value::BigInt(*value),
        (Datum::Int(value), DataType::Numeric { .. }) => Value::Numeric((*value).into()),
        (Datum::Int(value), DataType::Real) => Value::Real(*value as f32),
        (Datum::Int(value), DataType::Double) => Value::Double(*value as f64),
        (Datum::Float(value), DataType::Real) => Value::Real(*value as f32),
        (Datum::Float(value), DataType::Double) => Value::Double(*value),
        (Datum::Numeric(value), DataType::Numeric { .. }) => Value::Numeric(*value),
        (Datum::Numeric(value), DataType::Double) => Value::Double(value.to_f64()),
        (Datum::Text(text), data_type) if data_type.is_text() => Value::Text(text.to_string()),
        (Datum::Scalar(value), _) => value.clone(),
        _ => return None,
    })
}

/// The text of a value that is not NULL; the empty text for NULL.
pub(crate) fn datum_text(datum: &Datum, data_type: PgType, names: &dyn Names) -> String {
    if datum.is_null() {
        return String::new();
    }
    if data_type.is_reg() {
        return reg_text(datum, data_type, names);
    }
    if let Some(element) = data_type.element()
        && let Some(elements) = datum.as_array()
    {
        return array_text(elements, element, matches!(data_type.oid, 22 | 30), names);
    }
    if let Some(scalar) = DataType::from_oid(data_type.oid, data_type.typmod)
        && let Some(value) = scalar_value(datum, &scalar)
    {
        return value_text(value.as_ref(), &scalar);
    }
    match datum {
        Datum::Null => String::new(),
        Datum::Bool(value) => (if *value { "t" } else { "f" }).to_owned(),
        Datum::Int(value) => value.to_string(),
        Datum::Float(value) => value_text(ValueRef::Double(*value), &DataType::Double),
        Datum::Numeric(value) => value_text(ValueRef::Numeric(*value), &DataType::NUMERIC),
        Datum::Text(text) => text.to_string(),
        Datum::Array(elements) => array_text(elements, PgType::TEXT, false, names),
        Datum::Record(fields) => record_text(fields, names),
        Datum::Scalar(value) => value_text(value.as_ref(), &type_of(value)),
    }
}

fn type_of(value: &Value) -> DataType {
    match value {
        Value::Date(_) => DataType::Date,
        Value::Timestamp(_) => DataType::Timestamp,
        Value::TimestampTz(_) => DataType::TimestampTz,
        Value::Uuid(_) => DataType::Uuid,
        Value::Bytea(_) => DataType::Bytea,
        _ => DataType::Text,
    }
}

fn value_text(value: ValueRef<'_>, data_type: &DataType) -> String {
    let mut bytes = Vec::new();
    text_format::write_text(value, data_type, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn reg_text(datum: &Datum, data_type: PgType, names: &dyn Names) -> String {
    let Some(oid) = datum.as_oid() else {
        return String::new();
    };
    if oid == 0 {
        return "-".to_owned();
    }
    let name = match data_type.oid {
        2205 => names.relation_name(oid),
        2206 => names
            .type_name(oid)
            .or_else(|| Some(format_type(oid, None))),
        4089 => names.schema_name(oid),
        4096 => names.role_name(oid),
        24 | 2202 => names.function_name(oid),
        _ => None,
    };
    name.unwrap_or_else(|| oid.to_string())
}

fn array_text(elements: &[Datum], element: PgType, vector: bool, names: &dyn Names) -> String {
    if vector {
        let texts: Vec<String> = elements
            .iter()
            .map(|datum| datum_text(datum, element, names))
            .collect();
        return texts.join(" ");
    }
    let mut out = String::from("{");
    for (at, datum) in elements.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        if datum.is_null() {
            out.push_str("NULL");
        } else if let Datum::Array(inner) = datum {
            // A further dimension.
            out.push_str(&array_text(
                inner,
                element.element().unwrap_or(element),
                false,
                names,
            ));
        } else {
            push_array_element(&mut out, &datum_text(datum, element, names));
        }
    }
    out.push('}');
    out
}

fn record_text(fields: &[Datum], names: &dyn Names) -> String {
    let mut out = String::from("(");
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let text = datum_text(field, PgType::TEXT, names);
        let quote = !field.is_null()
            && (text.is_empty()
                || text
                    .chars()
                    .any(|c| matches!(c, '(' | ')' | ',' | '"' | '\\') || c.is_whitespace()));
        if quote {
            out.push('"');
            out.push_str(&text.replace('\\', "\\\\").replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&text);
        }
    }
    out.push(')');
    out
}

/// A value in JSON.
pub(crate) fn json_text(datum: &Datum, data_type: PgType, names: &dyn Names) -> String {
    match datum {
        Datum::Null => "null".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int(_) | Datum::Float(_) | Datum::Numeric(_) if !data_type.is_reg() => {
            datum_text(datum, data_type, names)
        }
        Datum::Text(text) if matches!(data_type.oid, 114 | 3802) => text.to_string(),
        Datum::Array(elements) => {
            let element = data_type.element().unwrap_or(PgType::TEXT);
            let texts: Vec<String> = elements
                .iter()
                .map(|datum| json_text(datum, element, names))
                .collect();
            format!("[{}]", texts.join(","))
        }
        _ => json_string(&datum_text(datum, data_type, names)),
    }
}

/// A JSON string.
pub(crate) fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            character if (character as u32) < 0x20 => {
                out.push_str(&format!("\\u{:04x}", character as u32));
            }
            character => out.push(character),
        }
    }
    out.push('"');
    out
}
