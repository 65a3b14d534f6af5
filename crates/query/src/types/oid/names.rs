//! Text forms of the types whose values are numbers of objects with names. Names are the server's
//! to know, but for the names of types.

use super::super::{by_oid, element_of, format_type, ids, integer, is_built_in, oid_named, user};
use super::parse;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// A number that stands for itself.
fn direct(text: &str) -> Option<Result<Datum>> {
    if text == "-" {
        return Some(Ok(Datum::Oid(0)));
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(parse(text).map(Datum::Oid));
    }
    None
}

pub(super) fn read(call: &Call<'_>, function: &str, text: &str) -> Result<Datum> {
    match direct(text) {
        Some(value) => value,
        None => call.environment.call(function, &[Datum::text(text)]),
    }
}

pub(super) fn write(
    call: &Call<'_>,
    function: &str,
    value: &Datum,
    out: &mut String,
) -> Result<()> {
    let oid = value.as_oid();
    if oid == 0 {
        out.push('-');
        return Ok(());
    }
    match call.environment.call(function, &[Datum::Oid(oid)]) {
        Ok(Datum::Text(name)) => out.push_str(&name),
        Ok(_) => integer::write(oid.into(), out),
        Err(error) if error.sqlstate == "0A000" => integer::write(oid.into(), out),
        Err(error) => return Err(error),
    }
    Ok(())
}

pub(super) fn write_type(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let oid = value.as_oid();
    if oid == 0 {
        out.push('-');
        return Ok(());
    }
    if is_built_in(oid) {
        out.push_str(&format_type(oid, -1));
        return Ok(());
    }
    match call.environment.call("regtypeout", &[Datum::Oid(oid)]) {
        Ok(Datum::Text(name)) => out.push_str(&name),
        // Where no catalog is at hand, without its schema.
        _ if user::Class::of(element_of(oid).unwrap_or(oid)).is_some() => {
            out.push_str(&format_type(oid, -1));
        }
        Ok(_) => integer::write(oid.into(), out),
        Err(error) if error.sqlstate == "0A000" => integer::write(oid.into(), out),
        Err(error) => return Err(error),
    }
    Ok(())
}

pub(super) fn read_type(call: &Call<'_>, text: &str) -> Result<Datum> {
    if let Some(value) = direct(text) {
        return value;
    }
    if let Some(oid) = known(text) {
        return Ok(Datum::Oid(oid));
    }
    match call.environment.call("regtypein", &[Datum::text(text)]) {
        Err(error) if error.sqlstate == "0A000" => Err(no_type(text)),
        answer => answer,
    }
}

/// What is wrong with a text that names no type.
fn no_type(text: &str) -> QueryError {
    let name = text.trim();
    let bytes = name.as_bytes();
    let Some(first) = name.chars().next() else {
        return QueryError::new("42601", format!("invalid type name \"{text}\""));
    };
    if first.is_alphabetic() || matches!(first, '_' | '"') {
        return QueryError::new("42704", format!("type \"{name}\" does not exist"));
    }
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let word: usize = name[digits..]
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .map(char::len_utf8)
        .sum();
    let near = match (digits, word) {
        (0, _) => &name[..first.len_utf8()],
        (_, 0) => &name[..digits],
        _ => {
            return QueryError::new(
                "42601",
                format!(
                    "trailing junk after numeric literal at or near \"{}\"",
                    &name[..digits + word]
                ),
            );
        }
    };
    QueryError::new("42601", format!("syntax error at or near \"{near}\""))
}

/// The type of this name, where it is one of this crate's.
fn known(text: &str) -> Option<u32> {
    let mut name = text.trim();
    let mut array = false;
    while let Some(rest) = name.strip_suffix(']') {
        let (element, length) = rest.rsplit_once('[')?;
        if !length.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        array = true;
        name = element.trim_end();
    }
    let name = plain(name)?;
    let oid = aliased(&name).or_else(|| oid_named(&name))?;
    if !array {
        return Some(oid);
    }
    by_oid(oid).map(|row| row.array).filter(|oid| *oid != 0)
}

/// A name without its schema, modifier, quotes and needless spaces, in small letters unless it was quoted.
fn plain(name: &str) -> Option<String> {
    let name = name
        .strip_prefix("pg_catalog.")
        .or_else(|| name.strip_prefix("PG_CATALOG."))
        .unwrap_or(name);
    if let Some(quoted) = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        // Quoted names are those of the catalog, not the words of SQL.
        return (oid_named(quoted).is_some() && !quoted.contains('"'))
            .then(|| format!("\"{quoted}"));
    }
    let mut words = String::new();
    let (head, tail) = match name.split_once('(') {
        Some((head, rest)) => (head, rest.split_once(')')?.1),
        None => (name, ""),
    };
    for word in head.split_whitespace().chain(tail.split_whitespace()) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&word.to_ascii_lowercase());
    }
    Some(words)
}

/// The words that SQL has for types.
fn aliased(name: &str) -> Option<u32> {
    if let Some(quoted) = name.strip_prefix('"') {
        return oid_named(quoted);
    }
    Some(match name {
        "int" | "integer" => ids::INT4,
        "smallint" => ids::INT2,
        "bigint" => ids::INT8,
        "real" => ids::FLOAT4,
        "float" | "double precision" => ids::FLOAT8,
        "decimal" | "dec" => ids::NUMERIC,
        "boolean" => ids::BOOL,
        "char" | "character" | "nchar" | "national character" | "national char" => ids::BPCHAR,
        "character varying" | "char varying" | "national character varying" => ids::VARCHAR,
        "bit varying" => ids::VARBIT,
        "timestamp without time zone" => ids::TIMESTAMP,
        "timestamp with time zone" => ids::TIMESTAMPTZ,
        "time without time zone" => ids::TIME,
        "time with time zone" => ids::TIMETZ,
        _ => return None,
    })
}
