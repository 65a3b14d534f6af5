//! Pseudo-types, which have no values, and what a type without a text or a binary form answers.

use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

fn none(what: &str) -> QueryError {
    QueryError::unsupported(format!("the type has no {what}"))
}

pub(super) fn input(_: &Call<'_>, _: &str, _: i32) -> Result<Datum> {
    Err(none("text form"))
}

pub(super) fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    // A function of type void gives an empty text.
    if let Datum::Text(text) = value {
        out.push_str(text);
        return Ok(());
    }
    Err(none("text form"))
}

pub(super) fn receive(_: &Call<'_>, _: &[u8], _: i32) -> Result<Datum> {
    Err(none("binary form"))
}

pub(super) fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    if let Datum::Text(text) = value {
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    Err(none("binary form"))
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
