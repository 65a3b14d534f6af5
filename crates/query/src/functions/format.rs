//! `format`, `quote_ident` and their like.

mod keywords;

use super::Function;
use super::text::{characters, is_variadic};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::{self, ids};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(1282, "quote_ident", &[ids::TEXT], ids::TEXT, quote_ident),
    Function::row(
        1283,
        "quote_literal",
        &[ids::TEXT],
        ids::TEXT,
        quote_literal,
    ),
    Function::row(
        1285,
        "quote_literal",
        &[ids::ANYELEMENT],
        ids::TEXT,
        quote_literal,
    )
    .stable(),
    Function::row(
        1289,
        "quote_nullable",
        &[ids::TEXT],
        ids::TEXT,
        quote_nullable,
    )
    .called_on_null(),
    Function::row(
        1290,
        "quote_nullable",
        &[ids::ANYELEMENT],
        ids::TEXT,
        quote_nullable,
    )
    .called_on_null()
    .stable(),
    Function::row(3540, "format", &[ids::TEXT], ids::TEXT, format)
        .called_on_null()
        .stable(),
    Function::row(3539, "format", &[ids::TEXT, ids::ANY], ids::TEXT, format)
        .called_on_null()
        .stable()
        .variadic(ids::ANY),
    Function::row(
        1268,
        "parse_ident",
        &[ids::TEXT, ids::BOOL],
        ids::TEXT_ARRAY,
        parse_ident,
    )
    .defaults(&[Some("true")])
    .named(&["str", "strict"]),
];

/// An identifier as SQL is to have it: in double quotes where it needs them.
#[must_use]
pub(crate) fn quoted_identifier(name: &str) -> std::borrow::Cow<'_, str> {
    let safe = name.bytes().enumerate().all(|(at, byte)| {
        byte.is_ascii_lowercase() || byte == b'_' || at > 0 && byte.is_ascii_digit()
    });
    if safe && !name.is_empty() && keywords::KEYWORDS.binary_search(&name).is_err() {
        return name.into();
    }
    let mut quoted = String::with_capacity(name.len() + 2);
    quoted.push('"');
    for c in name.chars() {
        if c == '"' {
            quoted.push('"');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted.into()
}

/// A text as a literal of SQL.
#[must_use]
pub fn quoted_literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 3);
    if text.contains('\\') {
        quoted.push('E');
    }
    quoted.push('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            quoted.push(c);
        }
        quoted.push(c);
    }
    quoted.push('\'');
    quoted
}

fn quote_ident(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let name = a[0].as_text();
    call.room(name.len().saturating_mul(2))?;
    Ok(Datum::text(&*quoted_identifier(name)))
}

/// An argument as a text, as a cast makes it.
fn as_text(call: &Call<'_>, value: &Datum) -> Result<String> {
    let oid = call.arguments.first().copied().unwrap_or(ids::TEXT);
    match value {
        Datum::Bool(value) => Ok(value.to_string()),
        Datum::Text(text) if oid == ids::BPCHAR => {
            Ok(types::text::without_padding(text).to_owned())
        }
        value => types::to_text(call, oid, value),
    }
}

fn quote_literal(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = as_text(call, &a[0])?;
    call.room(text.len().saturating_mul(2))?;
    Ok(Datum::text(quoted_literal(&text)))
}

fn quote_nullable(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::text("NULL"));
    }
    quote_literal(call, a)
}

/// A part of a format: `%`, then a position, flags, a width and a letter.
#[derive(Default)]
struct Specifier {
    /// The argument's number, from 1.
    position: Option<usize>,
    /// Blanks come after the text.
    left: bool,
    /// How wide it is to be.
    width: i32,
    /// The number of the argument that says how wide; 0 for the next one.
    width_position: Option<usize>,
}

#[cold]
fn unterminated() -> QueryError {
    QueryError::invalid_parameter("unterminated format() type specifier")
        .with_hint("For a single \"%\" use \"%%\".")
}

#[cold]
fn argument_zero() -> QueryError {
    QueryError::invalid_parameter("format specifies argument 0, but arguments are numbered from 1")
}

#[cold]
fn number_out_of_range() -> QueryError {
    QueryError::new("22003", "number is out of range")
}

/// What is left of a format, of which a character is known to be there.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn first(&self) -> Option<char> {
        self.0.chars().next()
    }

    /// Goes on by a character; there must be another.
    fn advance(&mut self) -> Result<()> {
        let mut characters = self.0.chars();
        characters.next();
        self.0 = characters.as_str();
        if self.0.is_empty() {
            return Err(unterminated());
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Option<i32>> {
        let mut number = None;
        while let Some(digit) = self.first().and_then(|c| c.to_digit(10)) {
            let longer = number
                .unwrap_or(0_i32)
                .checked_mul(10)
                .and_then(|number| number.checked_add_unsigned(digit));
            number = Some(longer.ok_or_else(number_out_of_range)?);
            self.advance()?;
        }
        Ok(number)
    }

    fn specifier(&mut self) -> Result<Specifier> {
        let mut found = Specifier::default();
        if let Some(number) = self.number()? {
            if self.first() != Some('$') {
                found.width = number;
                return Ok(found);
            }
            if number == 0 {
                return Err(argument_zero());
            }
            found.position = usize::try_from(number).ok();
            self.advance()?;
        }
        while self.first() == Some('-') {
            found.left = true;
            self.advance()?;
        }
        if self.first() != Some('*') {
            found.width = self.number()?.unwrap_or(0);
            return Ok(found);
        }
        self.advance()?;
        found.width_position = Some(0);
        if let Some(number) = self.number()? {
            if self.first() != Some('$') {
                return Err(QueryError::invalid_parameter(
                    "width argument position must be ended by \"$\"",
                ));
            }
            if number == 0 {
                return Err(argument_zero());
            }
            found.width_position = usize::try_from(number).ok();
            self.advance()?;
        }
        Ok(found)
    }
}

/// The arguments after the format, and their types.
struct Arguments<'a> {
    values: &'a [Datum],
    types: &'a [u32],
    /// All are of the type of an array's elements.
    element: Option<u32>,
}

impl<'a> Arguments<'a> {
    fn get(&self, position: usize) -> Result<(&'a Datum, u32)> {
        let at = position.checked_sub(1).ok_or_else(argument_zero)?;
        let Some(value) = self.values.get(at) else {
            return Err(QueryError::invalid_parameter(
                "too few arguments for format()",
            ));
        };
        let oid = self.element.or_else(|| self.types.get(at).copied());
        Ok((value, oid.unwrap_or(ids::TEXT)))
    }
}

fn append(call: &Call<'_>, out: &mut String, text: &str, left: bool, width: i32) -> Result<()> {
    if width == 0 {
        out.push_str(text);
        return call.room(out.len());
    }
    let left = left || width < 0;
    let width = width.checked_abs().ok_or_else(number_out_of_range)?;
    let missing = usize::try_from(width)
        .unwrap_or(0)
        .saturating_sub(characters(text));
    call.room(out.len().saturating_add(text.len()).saturating_add(missing))?;
    if left {
        out.push_str(text);
    }
    out.extend(std::iter::repeat_n(' ', missing));
    if !left {
        out.push_str(text);
    }
    Ok(())
}

fn width_of(call: &Call<'_>, value: &Datum, oid: u32) -> Result<i32> {
    match value {
        Datum::Null => Ok(0),
        Datum::Int4(width) => Ok(*width),
        Datum::Int2(width) => Ok(i32::from(*width)),
        value => {
            let text = types::to_text(call, oid, value)?;
            match types::input(call, ids::INT4, &text, -1)? {
                Datum::Int4(width) => Ok(width),
                _ => Err(QueryError::invalid_text("integer", &text)),
            }
        }
    }
}

fn format(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let Datum::Text(format) = &a[0] else {
        return Ok(Datum::Null);
    };
    let none = Array::default();
    let rest = a.get(1..).unwrap_or_default();
    let arguments = if !rest.is_empty() && is_variadic(call) {
        let array = match rest {
            [Datum::Array(array)] => array,
            _ => &none,
        };
        Arguments {
            values: &array.elements,
            types: &[],
            element: Some(array.element),
        }
    } else {
        Arguments {
            values: rest,
            types: call.arguments.get(1..).unwrap_or_default(),
            element: None,
        }
    };
    let mut made = String::with_capacity(format.len());
    let mut rest = Rest(format);
    let mut next = 1;
    while let Some(at) = rest.0.find('%') {
        made.push_str(rest.0.get(..at).unwrap_or_default());
        rest.0 = rest.0.get(at..).unwrap_or_default();
        rest.advance()?;
        if rest.first() != Some('%') {
            convert(call, &arguments, &mut rest, &mut next, &mut made)?;
        } else {
            made.push('%');
        }
        let mut characters = rest.0.chars();
        characters.next();
        rest.0 = characters.as_str();
    }
    made.push_str(rest.0);
    call.room(made.len())?;
    Ok(Datum::text(made))
}

/// Appends what one specifier stands for. Its letter stays.
fn convert(
    call: &Call<'_>,
    arguments: &Arguments<'_>,
    rest: &mut Rest<'_>,
    next: &mut usize,
    made: &mut String,
) -> Result<()> {
    let specifier = rest.specifier()?;
    let letter = match rest.first() {
        Some(letter @ ('s' | 'I' | 'L')) => letter,
        other => {
            return Err(QueryError::invalid_parameter(format!(
                "unrecognized format() type specifier \"{}\"",
                other.unwrap_or_default()
            ))
            .with_hint("For a single \"%\" use \"%%\"."));
        }
    };
    let mut width = specifier.width;
    if let Some(position) = specifier.width_position {
        if position > 0 {
            *next = position;
        }
        let (value, oid) = arguments.get(*next)?;
        *next += 1;
        width = width_of(call, value, oid)?;
    }
    if let Some(position) = specifier.position {
        *next = position;
    }
    let (value, oid) = arguments.get(*next)?;
    *next += 1;
    let text = match (value, letter) {
        (Datum::Null, 's') => String::new(),
        (Datum::Null, 'L') => "NULL".to_owned(),
        (Datum::Null, _) => {
            return Err(QueryError::new(
                "22004",
                "null values cannot be formatted as an SQL identifier",
            ));
        }
        (value, letter) => {
            let text = types::to_text(call, oid, value)?;
            match letter {
                'I' => quoted_identifier(&text).into_owned(),
                'L' => quoted_literal(&text),
                _ => text,
            }
        }
    };
    append(call, made, &text, specifier.left, width)
}

/// A blank between the tokens of SQL.
const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

#[cold]
fn no_identifier(text: &str, detail: &str) -> QueryError {
    let error =
        QueryError::invalid_parameter(format!("string is not a valid identifier: \"{text}\""));
    if detail.is_empty() {
        return error;
    }
    error.with_detail(detail)
}

/// Takes an identifier in double quotes, of which the first is gone: it and what follows.
fn quoted(rest: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = rest.chars();
    while let Some(c) = characters.next() {
        if c == '"' {
            match characters.as_str().strip_prefix('"') {
                Some(rest) => characters = rest.chars(),
                None => return Some((name, characters.as_str())),
            }
        }
        name.push(c);
    }
    None
}

fn parse_ident(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, strict) = (a[0].as_text(), a[1].as_bool());
    let mut names = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    let mut after_dot = false;
    loop {
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        if let Some(inner) = rest.strip_prefix('"') {
            let Some((name, after)) = quoted(inner) else {
                return Err(no_identifier(text, "String has unclosed double quotes."));
            };
            if name.is_empty() {
                return Err(no_identifier(text, "Quoted identifier must not be empty."));
            }
            names.push(Datum::text(name));
            rest = after;
        } else if rest.starts_with(begins) {
            let within = |c: char| begins(c) || c.is_ascii_digit() || c == '$';
            let end = rest.find(|c| !within(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            names.push(Datum::text(name.to_ascii_lowercase()));
            rest = after;
        } else if rest.starts_with('.') {
            return Err(no_identifier(text, "No valid identifier before \".\"."));
        } else if after_dot {
            return Err(no_identifier(text, "No valid identifier after \".\"."));
        } else {
            return Err(no_identifier(text, ""));
        }
        rest = rest.trim_start_matches(is_blank);
        if let Some(after) = rest.strip_prefix('.') {
            after_dot = true;
            rest = after.trim_start_matches(is_blank);
        } else if rest.is_empty() || !strict {
            break;
        } else {
            return Err(no_identifier(text, ""));
        }
    }
    Ok(Datum::Array(Array::of(ids::TEXT, names).into()))
}
