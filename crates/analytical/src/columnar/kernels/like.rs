//! LIKE and NOT LIKE with a pattern that is the same for all rows.

use datafusion::arrow::buffer::BooleanBuffer;
use memchr::memmem::Finder;
use thermocline_query::operators::Operator;
use thermocline_query::types::ids;

use super::{Arguments, Kernel};
use crate::columnar::vector::Data;

/// The kernel of the operator.
pub fn of(operator: &Operator) -> Option<Kernel> {
    if !matches!(operator.left, ids::TEXT | ids::NAME | ids::BPCHAR) {
        return None;
    }
    match operator.name {
        "~~" => Some(like::<true> as Kernel),
        "!~~" => Some(like::<false> as Kernel),
        _ => None,
    }
}

/// A part of a pattern: a byte, or any character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Byte(u8),
    Any,
}

/// The parts between `%`; `None` for a pattern that ends within an escape.
fn segments(pattern: &[u8]) -> Option<Vec<Vec<Place>>> {
    let mut segments = vec![Vec::new()];
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        let place = match byte {
            b'%' => {
                segments.push(Vec::new());
                continue;
            }
            b'_' => Place::Any,
            b'\\' => Place::Byte(*bytes.next()?),
            byte => Place::Byte(*byte),
        };
        segments.last_mut()?.push(place);
    }
    Some(segments)
}

fn literal(segment: &[Place]) -> Option<Vec<u8>> {
    let byte = |place: &Place| match place {
        Place::Byte(byte) => Some(*byte),
        Place::Any => None,
    };
    segment.iter().map(byte).collect()
}

/// What is left of a text after a part of a pattern.
fn after<'t>(mut text: &'t [u8], segment: &[Place]) -> Option<&'t [u8]> {
    for place in segment {
        text = match (place, text.split_first()?) {
            (Place::Any, (_, rest)) => {
                let inner = rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
                &rest[inner..]
            }
            (Place::Byte(wanted), (found, rest)) if wanted == found => rest,
            _ => return None,
        };
    }
    Some(text)
}

/// Whether a text matches: each part where it first can, the last one at the end.
fn matches(text: &[u8], first: &[Place], rest: &[Vec<Place>]) -> bool {
    let Some(mut text) = after(text, first) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return text.is_empty();
    };
    let starts = |byte: u8| byte & 0xc0 != 0x80;
    for segment in middle {
        let found = (0..=text.len())
            .filter(|at| text.get(*at).is_none_or(|byte| starts(*byte)))
            .find_map(|at| after(&text[at..], segment));
        match found {
            Some(left) => text = left,
            None => return false,
        }
    }
    (0..=text.len())
        .filter(|at| text.get(*at).is_none_or(|byte| starts(*byte)))
        .any(|at| after(&text[at..], last).is_some_and(<[u8]>::is_empty))
}

/// Whether literal parts stand one after the other, the last one at the end.
fn contains(text: &[u8], first: &[u8], middle: &[Finder<'_>], last: &[u8]) -> bool {
    let Some(text) = text.strip_prefix(first) else {
        return false;
    };
    let Some(mut text) = text.strip_suffix(last) else {
        return false;
    };
    for finder in middle {
        match finder.find(text) {
            Some(at) => text = &text[at + finder.needle().len()..],
            None => return false,
        }
    }
    true
}

fn like<'a, const WANTED: bool>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let segments = segments(arguments.one_text(1)?)?;
    let (first, rest) = segments.split_first()?;
    let literals: Option<Vec<Vec<u8>>> = segments.iter().map(|part| literal(part)).collect();
    let test = |f: &dyn Fn(&[u8]) -> bool| -> Option<BooleanBuffer> {
        arguments.test_texts(0, |text| f(text) == WANTED)
    };
    let truths = match literals.as_deref() {
        Some([all]) => arguments.test_texts(0, |text| (text == all) == WANTED)?,
        Some([start, end]) if start.is_empty() => {
            arguments.test_texts(0, |text| text.ends_with(end) == WANTED)?
        }
        Some([start, end]) if end.is_empty() => {
            arguments.test_texts(0, |text| text.starts_with(start) == WANTED)?
        }
        Some([start, middle @ .., end]) => {
            let finders: Vec<Finder<'_>> = middle
                .iter()
                .filter(|part| !part.is_empty())
                .map(|part| Finder::new(part.as_slice()))
                .collect();
            test(&|text| contains(text, start, &finders, end))?
        }
        _ => test(&|text| matches(text, first, rest))?,
    };
    Some(Data::Bool(truths))
}
