//! Texts: their length, parts of them, and what is made of them.

use std::sync::Arc;

use thermocline_query::call::{Call, Plain, SMALL_VALUE_BYTES};
use thermocline_query::datum::Datum;
use thermocline_query::functions::{self, Body, Function};
use thermocline_query::operators::Operator;
use thermocline_query::types::ids;

use super::{Arguments, Kernel, Side};
use crate::columnar::output::without_padding;
use crate::columnar::vector::{Data, Made, Texts};

/// The numbers of `lower` and `upper`.
const LOWER: u32 = 870;
const UPPER: u32 = 871;

/// The kernel of an operator of texts.
pub fn of(operator: &Operator) -> Option<Kernel> {
    let (left, right) = (operator.left, operator.right);
    (operator.name == "||" && (left, right) == (ids::TEXT, ids::TEXT)).then_some(joined as Kernel)
}

/// The kernel of a function of texts.
pub fn of_function(function: &Function) -> Option<Kernel> {
    Some(match (function.name, function.arguments) {
        ("length" | "char_length" | "character_length", [ids::TEXT]) => length,
        ("length" | "char_length" | "character_length", [ids::BPCHAR]) => length_of_padded,
        ("octet_length", [ids::TEXT | ids::BPCHAR]) => bytes,
        ("substring" | "substr", [ids::TEXT, ids::INT4] | [ids::TEXT, ids::INT4, ids::INT4]) => {
            part
        }
        ("btrim", [ids::TEXT]) => trimmed::<true, true>,
        ("ltrim", [ids::TEXT]) => trimmed::<true, false>,
        ("rtrim", [ids::TEXT]) => trimmed::<false, true>,
        ("lower", [ids::TEXT]) => cased::<LOWER>,
        ("upper", [ids::TEXT]) => cased::<UPPER>,
        _ => return None,
    })
}

/// Whether a byte begins a character.
const fn begins(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| begins(**byte)).count()
}

/// A number of each text.
fn counted<'a>(arguments: &Arguments<'_, 'a>, count: impl Fn(&[u8]) -> usize) -> Option<Data<'a>> {
    let (texts, single) = arguments.texts(0)?;
    let number = |row| i64::try_from(count(texts.get(if single { 0 } else { row })));
    let numbers: Vec<i64> = (0..arguments.count)
        .map(number)
        .collect::<Result<_, _>>()
        .ok()?;
    Some(Data::Int(numbers.into()))
}

fn length<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    counted(arguments, characters)
}

fn length_of_padded<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    counted(arguments, |text| characters(without_padding(text)))
}

fn bytes<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    counted(arguments, <[u8]>::len)
}

/// Where the character of this number is, counted from 0, or the text's end.
fn offset(text: &[u8], characters: usize) -> usize {
    if characters >= text.len() {
        return text.len();
    }
    if text.is_ascii() {
        return characters;
    }
    let mut starts = text.iter().enumerate().filter(|(_, byte)| begins(**byte));
    starts.nth(characters).map_or(text.len(), |(at, _)| at)
}

/// The numbers are the same for all rows, as they nearly always are.
fn part<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (texts, single) = arguments.texts(0)?;
    if single && arguments.count > 1 {
        return None;
    }
    let Side::One(start) = arguments.ints(1)? else {
        return None;
    };
    let end = match arguments.vectors.len() {
        2 => i64::MAX,
        _ => match arguments.ints(2)? {
            Side::One(length) if length >= 0 => start + length,
            _ => return None,
        },
    };
    let first = start.max(1);
    let before = usize::try_from(first - 1).ok()?;
    let count = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
    let parts = texts.parts(arguments.count, |_, text| {
        let from = offset(text, before);
        (from, from + offset(&text[from..], count))
    });
    Some(Data::Text(parts))
}

fn trimmed<'a, const LEFT: bool, const RIGHT: bool>(
    arguments: &Arguments<'_, 'a>,
) -> Option<Data<'a>> {
    let (texts, _) = arguments.texts(0)?;
    let kept = texts.parts(arguments.count, |_, text| {
        let end = match RIGHT {
            true => without_padding(text).len(),
            false => text.len(),
        };
        let blanks = text[..end].iter().take_while(|byte| **byte == b' ').count();
        (if LEFT { blanks } else { 0 }, end)
    });
    Some(Data::Text(kept))
}

fn joined<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let ((left, one), (right, other)) = (arguments.texts(0)?, arguments.texts(1)?);
    let mut made = Made::with_capacity(arguments.count, 0);
    for row in 0..arguments.count {
        let a = left.get(if one { 0 } else { row });
        let b = right.get(if other { 0 } else { row });
        // For what is large the evaluator asks for room.
        if a.len() + b.len() > SMALL_VALUE_BYTES || !made.is_moderate() {
            return None;
        }
        made.push(&[a, b]);
    }
    Some(Data::Text(Texts::Made(Arc::new(made))))
}

/// Texts in lower or upper case: other letters than ASCII's by the function itself.
fn cased<'a, const FUNCTION: u32>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (texts, single) = arguments.texts(0)?;
    let Body::Row(body) = functions::by_oid(FUNCTION)?.body else {
        return None;
    };
    let mut plain = None;
    let mut made = Made::with_capacity(arguments.count, 0);
    let mut buffer = Vec::new();
    for row in 0..arguments.count {
        let text = texts.get(if single { 0 } else { row });
        if text.len() > SMALL_VALUE_BYTES || !made.is_moderate() {
            return None;
        }
        if text.is_ascii() {
            buffer.clear();
            buffer.extend_from_slice(text);
            match FUNCTION {
                LOWER => buffer.make_ascii_lowercase(),
                _ => buffer.make_ascii_uppercase(),
            }
            made.push(&[&buffer]);
            continue;
        }
        let text = Datum::text(std::str::from_utf8(text).ok()?);
        let call = Call::new(plain.get_or_insert_with(Plain::default), &[], ids::TEXT);
        match body(&call, &[text]).ok()? {
            Datum::Text(text) => made.push(&[text.as_bytes()]),
            _ => return None,
        }
    }
    Some(Data::Text(Texts::Made(Arc::new(made))))
}
