//! `json_strip_nulls`.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::json::{DEPTH_MAX, Event, Reader, quote};

pub(super) fn json_strip_nulls(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let text = arguments[0].as_text();
    call.room(text.len())?;
    let mut out = String::with_capacity(text.len());
    let mut reader = Reader::new(text, true, DEPTH_MAX);
    // The key whose value comes, written only when that is known not to be null.
    let mut key = None;
    while let Some(token) = reader.next()? {
        if let Event::Key(found) = token.event {
            key = Some(found);
            continue;
        }
        if token.event.begins_value() {
            if let Some(key) = key.take() {
                if token.event == Event::Null {
                    continue;
                }
                comma(&mut out);
                quote(&key, &mut out);
                out.push(':');
            } else {
                comma(&mut out);
            }
        }
        match token.event {
            Event::ObjectStart => out.push('{'),
            Event::ObjectEnd => out.push('}'),
            Event::ArrayStart => out.push('['),
            Event::ArrayEnd => out.push(']'),
            Event::String(text) => quote(&text, &mut out),
            _ => out.push_str(&text[token.start..token.end]),
        }
    }
    Ok(Datum::text(out))
}

/// A comma, where something stands before.
fn comma(out: &mut String) {
    if !matches!(out.as_bytes().last(), None | Some(b'{' | b'[')) {
        out.push(',');
    }
}
