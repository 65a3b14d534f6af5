//! Pseudo-types, which have no values, and what a type without a text or a binary form answers.

use super::{Type, format_type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

#[cold]
fn none(call: &Call<'_>, what: &str) -> QueryError {
    let message = format!("{what} a value of type {}", format_type(call.result, -1));
    QueryError::unsupported(message, "Cast it to a type that has values.")
}

pub(super) fn input(call: &Call<'_>, _: &str, _: i32) -> Result<Datum> {
    Err(none(call, "cannot accept"))
}

pub(super) fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    // A function of type void gives an empty text.
    if let Datum::Text(text) = value {
        out.push_str(text);
        return Ok(());
    }
    Err(none(call, "cannot display"))
}

pub(super) fn receive(call: &Call<'_>, _: &[u8], _: i32) -> Result<Datum> {
    Err(none(call, "cannot accept the binary form of"))
}

pub(super) fn send(call: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    if let Datum::Text(text) = value {
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    Err(none(call, "cannot send the binary form of"))
}

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        length: 4,
        category: b'P',
        ..Type::new(ids::ANY, "any", "\"any\"")
    },
    Type {
        category: b'P',
        ..Type::new(ids::ANYARRAY, "anyarray", "anyarray")
    },
    Type {
        length: 4,
        category: b'P',
        ..Type::new(ids::ANYELEMENT, "anyelement", "anyelement")
    },
    Type {
        length: 4,
        category: b'P',
        ..Type::new(ids::ANYNONARRAY, "anynonarray", "anynonarray")
    },
    Type {
        length: 4,
        category: b'P',
        ..Type::new(ids::ANYENUM, "anyenum", "anyenum")
    },
    Type {
        category: b'P',
        ..Type::new(ids::ANYRANGE, "anyrange", "anyrange")
    },
    Type {
        category: b'P',
        ..Type::new(ids::ANYMULTIRANGE, "anymultirange", "anymultirange")
    },
    Type {
        length: 4,
        category: b'P',
        ..Type::new(ids::ANYCOMPATIBLE, "anycompatible", "anycompatible")
    },
    Type {
        category: b'P',
        ..Type::new(
            ids::ANYCOMPATIBLEARRAY,
            "anycompatiblearray",
            "anycompatiblearray",
        )
    },
    Type {
        length: 4,
        category: b'P',
        ..Type::new(
            ids::ANYCOMPATIBLENONARRAY,
            "anycompatiblenonarray",
            "anycompatiblenonarray",
        )
    },
    Type {
        length: 4,
        category: b'P',
        ..Type::new(ids::VOID, "void", "void")
    },
    Type {
        length: 4,
        category: b'P',
        ..Type::new(ids::TRIGGER, "trigger", "trigger")
    },
    Type {
        length: 8,
        category: b'P',
        ..Type::new(ids::INTERNAL, "internal", "internal")
    },
];
