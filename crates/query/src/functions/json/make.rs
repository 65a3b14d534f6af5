//! Values of any type as `json`: `to_json`, `json_build_object` and their like.

use std::fmt::Write as _;
use std::sync::Arc;

use super::iso::{date_text, offset_at, timestamp_text, timestamptz_text};
use crate::call::{Call, SMALL_VALUE_BYTES};
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::domain::base;
use crate::types::json::{is_number, quote, too_deep};
use crate::types::user::Class;
use crate::types::{self, ids};

/// How deep arrays and rows may be within each other.
const DEPTH_MAX: usize = 500;

/// How values of a type become JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Kind {
    Bool,
    Number,
    Date,
    Timestamp,
    TimestampTz,
    Json,
    Jsonb,
    Array,
    Record,
    Other,
}

impl Kind {
    /// Whether a value may be the key of an object.
    pub(in super::super) const fn is_key(self) -> bool {
        !matches!(self, Self::Json | Self::Jsonb | Self::Array | Self::Record)
    }
}

/// How values of this type become JSON.
pub(in super::super) fn kind_of(oid: u32) -> Kind {
    match base(oid) {
        ids::BOOL => Kind::Bool,
        ids::INT2 | ids::INT4 | ids::INT8 | ids::FLOAT4 | ids::FLOAT8 | ids::NUMERIC => {
            Kind::Number
        }
        ids::DATE => Kind::Date,
        ids::TIMESTAMP => Kind::Timestamp,
        ids::TIMESTAMPTZ => Kind::TimestampTz,
        ids::JSON => Kind::Json,
        ids::JSONB => Kind::Jsonb,
        ids::RECORD => Kind::Record,
        ids::ANYARRAY | ids::ANYCOMPATIBLEARRAY => Kind::Array,
        oid if types::element_of(oid).is_some() => Kind::Array,
        oid if Class::of(oid) == Some(Class::Composite) => Kind::Record,
        _ => Kind::Other,
    }
}

/// The ISO text of a date or a timestamp.
pub(in super::super) fn moment_text(call: &Call<'_>, value: &Datum) -> Option<String> {
    match value {
        Datum::Date(days) => Some(date_text(*days)),
        Datum::Timestamp(micros) => Some(timestamp_text(*micros)),
        Datum::TimestampTz(micros) => {
            let offset = offset_at(&call.settings().time_zone, *micros);
            Some(timestamptz_text(*micros, offset))
        }
        _ => None,
    }
}

#[cold]
pub(in super::super) fn bad_key() -> QueryError {
    QueryError::invalid_parameter("key value must be scalar, not array, composite, or json")
}

/// The type of an argument, whatever it was resolved to.
pub(in super::super) fn argument_type(call: &Call<'_>, place: usize) -> Result<u32> {
    match call.arguments.get(place) {
        Some(oid) if *oid != 0 => Ok(*oid),
        _ => Err(QueryError::invalid_parameter(
            "could not determine input data type",
        )),
    }
}

/// Writes values as JSON, and asks for room as the text grows.
pub(in super::super) struct Writer<'a> {
    call: &'a Call<'a>,
    pub(in super::super) out: String,
    asked: usize,
}

impl<'a> Writer<'a> {
    pub(in super::super) const fn new(call: &'a Call<'a>) -> Self {
        Self {
            call,
            out: String::new(),
            asked: SMALL_VALUE_BYTES,
        }
    }

    fn grown(&mut self) -> Result<()> {
        if self.out.len() >= self.asked {
            self.asked = self.out.len().saturating_mul(2);
            self.call.room(self.out.len())?;
            self.call.environment.check_interrupted()?;
        }
        Ok(())
    }

    /// A value, NULL included.
    pub(in super::super) fn value(&mut self, oid: u32, value: &Datum) -> Result<()> {
        self.nested(kind_of(oid), oid, value, 0)
    }

    /// A value as a key, which is always in quotes.
    pub(in super::super) fn key(&mut self, oid: u32, value: &Datum) -> Result<()> {
        let text = key_text(self.call, oid, value)?;
        quote(&text, &mut self.out);
        self.grown()
    }

    fn nested(&mut self, kind: Kind, oid: u32, value: &Datum, depth: usize) -> Result<()> {
        if value.is_null() {
            self.out.push_str("null");
            return Ok(());
        }
        match kind {
            Kind::Bool => self
                .out
                .push_str(if value.as_bool() { "true" } else { "false" }),
            Kind::Number => self.number(oid, value)?,
            Kind::Date | Kind::Timestamp | Kind::TimestampTz => {
                let text = moment_text(self.call, value).unwrap_or_default();
                quote(&text, &mut self.out);
            }
            Kind::Json => self.out.push_str(value.as_text()),
            Kind::Jsonb => value.as_jsonb().write(&mut self.out),
            Kind::Array => self.array(value.as_array(), false, depth)?,
            Kind::Record => self.record(value.as_record(), false, depth)?,
            Kind::Other => match value {
                Datum::Text(text) if is_plain_text(oid) => quote(text, &mut self.out),
                value => {
                    let text = types::to_text(self.call, oid, value)?;
                    quote(&text, &mut self.out);
                }
            },
        }
        self.grown()
    }

    fn number(&mut self, oid: u32, value: &Datum) -> Result<()> {
        // Writing to a string cannot fail.
        match value {
            Datum::Int2(n) => write!(self.out, "{n}").unwrap_or_default(),
            Datum::Int4(n) => write!(self.out, "{n}").unwrap_or_default(),
            Datum::Int8(n) => write!(self.out, "{n}").unwrap_or_default(),
            value => {
                let text = types::to_text(self.call, oid, value)?;
                if is_number(&text) {
                    self.out.push_str(&text);
                } else {
                    quote(&text, &mut self.out);
                }
            }
        }
        Ok(())
    }

    pub(super) fn array(&mut self, array: &Array, pretty: bool, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        if array.elements.is_empty() {
            self.out.push_str("[]");
            return Ok(());
        }
        let mut elements = array.elements.iter();
        self.dimension(array, &array.dimensions, &mut elements, pretty, depth)
    }

    fn dimension(
        &mut self,
        array: &Array,
        dimensions: &[(i32, i32)],
        elements: &mut std::slice::Iter<'_, Datum>,
        pretty: bool,
        depth: usize,
    ) -> Result<()> {
        let Some((&(length, _), inner)) = dimensions.split_first() else {
            return Ok(());
        };
        let kind = kind_of(array.element);
        self.out.push('[');
        for place in 0..length {
            if place > 0 {
                self.out.push_str(if pretty { ",\n " } else { "," });
            }
            if !inner.is_empty() {
                self.dimension(array, inner, elements, false, depth)?;
            } else if let Some(element) = elements.next() {
                self.nested(kind, array.element, element, depth + 1)?;
            }
        }
        self.out.push(']');
        Ok(())
    }

    pub(super) fn record(&mut self, record: &Record, pretty: bool, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        self.out.push('{');
        for (place, (oid, value)) in record.types.iter().zip(&record.values).enumerate() {
            if place > 0 {
                self.out.push_str(if pretty { ",\n " } else { "," });
            }
            quote(&field_name(record, place), &mut self.out);
            self.out.push(':');
            self.nested(kind_of(*oid), *oid, value, depth + 1)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn finish(self) -> Datum {
        Datum::text(self.out)
    }
}

/// Whether values of the type are shown as they are.
pub(in super::super) const fn is_plain_text(oid: u32) -> bool {
    matches!(
        oid,
        ids::TEXT | ids::VARCHAR | ids::BPCHAR | ids::NAME | ids::UNKNOWN
    )
}

/// The name of a row's column.
pub(in super::super) fn field_name(record: &Record, place: usize) -> Arc<str> {
    match record.names.as_ref().and_then(|names| names.get(place)) {
        Some(name) => Arc::clone(name),
        None => format!("f{}", place + 1).into(),
    }
}

/// A value that is not NULL as the key of an object.
pub(in super::super) fn key_text(call: &Call<'_>, oid: u32, value: &Datum) -> Result<Arc<str>> {
    let kind = kind_of(oid);
    if !kind.is_key() {
        return Err(bad_key());
    }
    Ok(match (kind, value) {
        (Kind::Bool, Datum::Bool(true)) => "true".into(),
        (Kind::Bool, Datum::Bool(false)) => "false".into(),
        (Kind::Date | Kind::Timestamp | Kind::TimestampTz, value) => {
            moment_text(call, value).unwrap_or_default().into()
        }
        (_, Datum::Text(text)) if is_plain_text(oid) => Arc::clone(text),
        (_, value) => types::to_text(call, oid, value)?.into(),
    })
}

/// Whether the text of a number is one in JSON: neither NaN nor an infinity.
pub(in super::super) fn number_kept(text: &str) -> bool {
    !text.contains(['N', 'n'])
}

pub(super) fn to_json(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let oid = argument_type(call, 0)?;
    let mut writer = Writer::new(call);
    writer.value(oid, &arguments[0])?;
    Ok(writer.finish())
}

/// Whether the second argument asks for line feeds.
fn wants_lines(arguments: &[Datum]) -> bool {
    matches!(arguments.get(1), Some(Datum::Bool(true)))
}

pub(super) fn array_to_json(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut writer = Writer::new(call);
    writer.array(arguments[0].as_array(), wants_lines(arguments), 0)?;
    Ok(writer.finish())
}

pub(super) fn row_to_json(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut writer = Writer::new(call);
    writer.record(arguments[0].as_record(), wants_lines(arguments), 0)?;
    Ok(writer.finish())
}

/// The arguments and their types, where the last is no array marked VARIADIC.
/// Such an array, whose type is given as `anyarray`, stands for its elements;
/// `None` where it is NULL.
pub(in super::super) fn spread<T>(
    call: &Call<'_>,
    arguments: &[Datum],
    with: impl FnOnce(&Call<'_>, &[Datum]) -> Result<T>,
) -> Result<Option<T>> {
    match (call.arguments, arguments) {
        ([ids::ANYARRAY], [Datum::Array(array)]) => {
            let types = vec![array.element; array.elements.len()];
            let inner = Call::new(call.environment, &types, call.result);
            with(&inner, &array.elements).map(Some)
        }
        ([ids::ANYARRAY], [Datum::Null]) => Ok(None),
        _ => with(call, arguments).map(Some),
    }
}

pub(super) fn json_build_array(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(spread(call, arguments, array_of)?.unwrap_or_default())
}

fn array_of(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut writer = Writer::new(call);
    writer.out.push('[');
    for (place, value) in arguments.iter().enumerate() {
        if place > 0 {
            writer.out.push_str(", ");
        }
        writer.value(argument_type(call, place)?, value)?;
    }
    writer.out.push(']');
    Ok(writer.finish())
}

pub(super) fn json_build_object(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(spread(call, arguments, object_of)?.unwrap_or_default())
}

fn object_of(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    check_pairs("json_build_object", arguments)?;
    let mut writer = Writer::new(call);
    writer.out.push('{');
    for (place, pair) in arguments.chunks_exact(2).enumerate() {
        if place > 0 {
            writer.out.push_str(", ");
        }
        if pair[0].is_null() {
            return Err(QueryError::invalid_parameter(format!(
                "argument {} cannot be null",
                2 * place + 1
            ))
            .with_hint("Object keys should be text."));
        }
        writer.key(argument_type(call, 2 * place)?, &pair[0])?;
        writer.out.push_str(" : ");
        writer.value(argument_type(call, 2 * place + 1)?, &pair[1])?;
    }
    writer.out.push('}');
    Ok(writer.finish())
}

/// Checks that keys and values alternate.
pub(in super::super) fn check_pairs(name: &str, arguments: &[Datum]) -> Result<()> {
    if arguments.len().is_multiple_of(2) {
        return Ok(());
    }
    Err(
        QueryError::invalid_parameter("argument list must have even number of elements").with_hint(
            format!("The arguments of {name}() must consist of alternating keys and values."),
        ),
    )
}

/// The key and the value of a field, both texts; the value may be NULL.
type Entry = (Arc<str>, Option<Arc<str>>);

/// Keys and values in the arrays of texts that `json_object` takes: one of
/// pairs, or one of each. A value may be NULL.
pub(in super::super) fn object_entries(arguments: &[Datum]) -> Result<Vec<Entry>> {
    let wrong = |message: &str| QueryError::new("2202E", message);
    let text = |value: &Datum| match value {
        Datum::Text(text) => Some(Arc::clone(text)),
        _ => None,
    };
    let first = arguments[0].as_array();
    let pairs: Vec<(&Datum, &Datum)> = if let Some(second) = arguments.get(1) {
        let second = second.as_array();
        if first.dimensions.len() > 1 || first.dimensions.len() != second.dimensions.len() {
            return Err(wrong("wrong number of array subscripts"));
        }
        if first.elements.len() != second.elements.len() {
            return Err(wrong("mismatched array dimensions"));
        }
        first.elements.iter().zip(&second.elements).collect()
    } else {
        match first.dimensions.as_slice() {
            [] => {}
            [(length, _)] if length % 2 != 0 => {
                return Err(wrong("array must have even number of elements"));
            }
            [_] | [_, (2, _)] => {}
            [_, _] => return Err(wrong("array must have two columns")),
            _ => return Err(wrong("wrong number of array subscripts")),
        }
        first
            .elements
            .chunks_exact(2)
            .map(|pair| (&pair[0], &pair[1]))
            .collect()
    };
    pairs
        .into_iter()
        .map(|(key, value)| match text(key) {
            Some(key) => Ok((key, text(value))),
            None => Err(QueryError::new(
                "22004",
                "null value not allowed for object key",
            )),
        })
        .collect()
}

pub(super) fn json_object(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut writer = Writer::new(call);
    writer.out.push('{');
    for (place, (key, value)) in object_entries(arguments)?.into_iter().enumerate() {
        if place > 0 {
            writer.out.push_str(", ");
        }
        quote(&key, &mut writer.out);
        writer.out.push_str(" : ");
        match value {
            Some(value) => quote(&value, &mut writer.out),
            None => writer.out.push_str("null"),
        }
        writer.grown()?;
    }
    writer.out.push('}');
    Ok(writer.finish())
}
