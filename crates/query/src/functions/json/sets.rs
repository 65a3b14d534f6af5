//! The elements and the fields of a text of `json` as rows.

use std::borrow::Cow;
use std::sync::Arc;

use crate::call::Call;
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};
use crate::types::ids;
use crate::types::json::{DEPTH_MAX, Event, Reader};

/// The values of the outermost container, and their keys where it is an
/// object: as they are written, or as texts.
fn values<'a>(
    call: &Call<'_>,
    text: &'a str,
    unescape: bool,
    as_text: bool,
    mut take: impl FnMut(Option<Cow<'a, str>>, Datum),
) -> Result<()> {
    let mut reader = Reader::new(text, unescape, DEPTH_MAX);
    reader.next()?;
    let mut key = None;
    let mut start = 0;
    let mut events = 0_u32;
    while let Some(token) = reader.next()? {
        events = events.wrapping_add(1);
        if events.is_multiple_of(0x1000) {
            call.environment.check_interrupted()?;
        }
        let event = match token.event {
            Event::Key(found) => {
                if reader.level() == 1 {
                    key = Some(found);
                }
                continue;
            }
            event => event,
        };
        let level = reader.level();
        if event.begins_value() && level == 1 + usize::from(!event.ends_value()) {
            start = token.start;
        }
        if event.ends_value() && level == 1 {
            let value = match event {
                Event::String(text) if as_text => Datum::text(text),
                Event::Null if as_text => Datum::Null,
                _ => Datum::text(&text[start..token.end]),
            };
            take(key.take(), value);
        }
    }
    Ok(())
}

/// The first token of a text.
fn first(text: &str, unescape: bool) -> Result<Option<Event<'_>>> {
    Ok(Reader::new(text, unescape, DEPTH_MAX)
        .next()?
        .map(|token| token.event))
}

fn elements(call: &Call<'_>, name: &str, arguments: &[Datum], as_text: bool) -> Result<Vec<Datum>> {
    let text = arguments[0].as_text();
    let found = match first(text, as_text)? {
        Some(Event::ArrayStart) => None,
        Some(Event::ObjectStart) => Some("non-array"),
        _ => Some("scalar"),
    };
    if let Some(found) = found {
        return Err(QueryError::invalid_parameter(format!(
            "cannot call {name} on a {found}"
        )));
    }
    let mut rows = Vec::new();
    values(call, text, as_text, as_text, |_, value| rows.push(value))?;
    Ok(rows)
}

pub(super) fn json_array_elements(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    elements(call, "json_array_elements", arguments, false)
}

pub(super) fn json_array_elements_text(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    elements(call, "json_array_elements_text", arguments, true)
}

/// A row of a key and a value.
pub(in super::super) fn pair_maker(value: u32) -> impl Fn(Arc<str>, Datum) -> Datum {
    let types: Arc<[u32]> = [ids::TEXT, value].into();
    let names: Arc<[Arc<str>]> = ["key".into(), "value".into()].into();
    move |key, value| {
        Datum::Record(Arc::new(Record {
            modifiers: None,
            types: Arc::clone(&types),
            names: Some(Arc::clone(&names)),
            values: vec![Datum::Text(key), value],
        }))
    }
}

fn fields(call: &Call<'_>, arguments: &[Datum], as_text: bool) -> Result<Vec<Datum>> {
    let text = arguments[0].as_text();
    match first(text, true)? {
        Some(Event::ObjectStart) => {}
        Some(Event::ArrayStart) => {
            return Err(QueryError::invalid_parameter(
                "cannot deconstruct an array as an object",
            ));
        }
        _ => return Err(QueryError::invalid_parameter("cannot deconstruct a scalar")),
    }
    let pair = pair_maker(if as_text { ids::TEXT } else { ids::JSON });
    let mut rows = Vec::new();
    values(call, text, true, as_text, |key, value| {
        rows.push(pair(key.unwrap_or_default().into(), value));
    })?;
    Ok(rows)
}

pub(super) fn json_each(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    fields(call, arguments, false)
}

pub(super) fn json_each_text(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    fields(call, arguments, true)
}

pub(super) fn json_object_keys(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let text = arguments[0].as_text();
    let found = match first(text, true)? {
        Some(Event::ObjectStart) => None,
        Some(Event::ArrayStart) => Some("an array"),
        _ => Some("a scalar"),
    };
    if let Some(found) = found {
        return Err(QueryError::invalid_parameter(format!(
            "cannot call json_object_keys on {found}"
        )));
    }
    let mut rows = Vec::new();
    values(call, text, true, true, |key, _| {
        rows.push(Datum::text(key.unwrap_or_default()));
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;

    #[test]
    fn fields_are_rows() {
        let environment = Plain::default();
        let call = Call::new(&environment, &[ids::JSON], ids::RECORD);
        let text = Datum::text(" {\"a\" : [1, {\"b\":2}] , \"c\\n\":null,\"d\":\"x\\t\", \"a\":1}");
        let shown = |rows: Vec<Datum>| -> Vec<String> {
            rows.iter()
                .map(|row| {
                    row.as_record()
                        .values
                        .iter()
                        .map(|value| match value {
                            Datum::Text(text) => text.to_string(),
                            _ => "NULL".to_owned(),
                        })
                        .collect::<Vec<_>>()
                        .join("=")
                })
                .collect()
        };
        assert_eq!(
            shown(json_each(&call, std::slice::from_ref(&text)).unwrap()),
            ["a=[1, {\"b\":2}]", "c\n=null", "d=\"x\\t\"", "a=1"]
        );
        assert_eq!(
            shown(json_each_text(&call, std::slice::from_ref(&text)).unwrap()),
            ["a=[1, {\"b\":2}]", "c\n=NULL", "d=x\t", "a=1"]
        );
        let array = Datum::text("[1]");
        let error = json_each(&call, &[array]).unwrap_err();
        assert_eq!(error.message, "cannot deconstruct an array as an object");
    }
}
