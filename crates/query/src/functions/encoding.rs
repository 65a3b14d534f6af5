//! Digests, and bytes as texts: `md5`, `sha256`, `encode`, `convert_to`.

mod charset;
mod tables;

use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::bytea::{from_escapes, from_hex, hex_into, octal_into};
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(2311, "md5", &[ids::TEXT], ids::TEXT, md5),
    Function::row(2321, "md5", &[ids::BYTEA], ids::TEXT, md5),
    Function::row(3419, "sha224", &[ids::BYTEA], ids::BYTEA, digest::<Sha224>),
    Function::row(3420, "sha256", &[ids::BYTEA], ids::BYTEA, digest::<Sha256>),
    Function::row(3421, "sha384", &[ids::BYTEA], ids::BYTEA, digest::<Sha384>),
    Function::row(3422, "sha512", &[ids::BYTEA], ids::BYTEA, digest::<Sha512>),
    Function::row(1946, "encode", &[ids::BYTEA, ids::TEXT], ids::TEXT, encode),
    Function::row(1947, "decode", &[ids::TEXT, ids::TEXT], ids::BYTEA, decode),
    Function::row(
        1813,
        "convert",
        &[ids::BYTEA, ids::NAME, ids::NAME],
        ids::BYTEA,
        charset::convert,
    )
    .stable(),
    Function::row(
        1714,
        "convert_from",
        &[ids::BYTEA, ids::NAME],
        ids::TEXT,
        charset::convert_from,
    )
    .stable(),
    Function::row(
        1717,
        "convert_to",
        &[ids::TEXT, ids::NAME],
        ids::BYTEA,
        charset::convert_to,
    )
    .stable(),
    Function::row(
        1713,
        "length",
        &[ids::BYTEA, ids::NAME],
        ids::INT4,
        charset::length_in,
    )
    .stable(),
    Function::row(
        1039,
        "getdatabaseencoding",
        &[],
        ids::NAME,
        charset::database_encoding,
    )
    .stable(),
    Function::server(810, "pg_client_encoding", &[], ids::NAME),
    Function::row(
        1264,
        "pg_char_to_encoding",
        &[ids::NAME],
        ids::INT4,
        charset::number_of,
    )
    .stable(),
    Function::row(
        1597,
        "pg_encoding_to_char",
        &[ids::INT4],
        ids::NAME,
        charset::name_of,
    )
    .stable(),
    Function::row(
        2319,
        "pg_encoding_max_length",
        &[ids::INT4],
        ids::INT4,
        charset::widest,
    ),
    Function::row(1845, "to_ascii", &[ids::TEXT], ids::TEXT, charset::to_ascii),
    Function::row(
        1846,
        "to_ascii",
        &[ids::TEXT, ids::INT4],
        ids::TEXT,
        charset::to_ascii,
    ),
    Function::row(
        1847,
        "to_ascii",
        &[ids::TEXT, ids::NAME],
        ids::TEXT,
        charset::to_ascii,
    ),
];

fn md5(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bytes = match &a[0] {
        Datum::Text(text) => text.as_bytes(),
        value => value.as_bytes(),
    };
    let mut text = String::with_capacity(32);
    hex_into(&Md5::digest(bytes), &mut text);
    Ok(Datum::text(text))
}

fn digest<D: Digest>(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::bytes(D::digest(a[0].as_bytes()).as_slice()))
}

/// The letters of base64.
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// After so many of them the line ends.
const BASE64_LINE: usize = 76;

fn to_base64(bytes: &[u8], out: &mut String) {
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or(0);
            out.push(if place <= chunk.len() {
                char::from(BASE64[letter])
            } else {
                '='
            });
        }
        column += 4;
        if column >= BASE64_LINE && chunk.len() == 3 {
            out.push('\n');
            column = 0;
        }
    }
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let invalid = |message: String| Err(QueryError::invalid_parameter(message));
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut end) = (0_u32, 0, 0);
    for c in text.chars() {
        let value = match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' => {
                if end == 0 {
                    end = match count {
                        2 => 1,
                        3 => 2,
                        _ => {
                            return invalid(
                                "unexpected \"=\" while decoding base64 sequence".to_owned(),
                            );
                        }
                    };
                }
                0
            }
            'A'..='Z' => u32::from(c) - u32::from('A'),
            'a'..='z' => u32::from(c) - u32::from('a') + 26,
            '0'..='9' => u32::from(c) - u32::from('0') + 52,
            '+' => 62,
            '/' => 63,
            _ => {
                return invalid(format!(
                    "invalid symbol \"{c}\" found while decoding base64 sequence"
                ));
            }
        };
        bits = bits << 6 | value;
        count += 1;
        if count == 4 {
            let [_, first, second, third] = bits.to_be_bytes();
            bytes.push(first);
            if end != 1 {
                bytes.push(second);
            }
            if end == 0 {
                bytes.push(third);
            }
            (bits, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(QueryError::invalid_parameter("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(bytes)
}

#[cold]
fn unrecognized(name: &str) -> QueryError {
    QueryError::invalid_parameter(format!("unrecognized encoding: \"{name}\""))
}

fn encode(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (bytes, name) = (a[0].as_bytes(), a[1].as_text());
    let mut text = String::new();
    if name.eq_ignore_ascii_case("hex") {
        call.room(bytes.len() * 2)?;
        hex_into(bytes, &mut text);
    } else if name.eq_ignore_ascii_case("base64") {
        call.room(bytes.len() / 3 * 4 + bytes.len() / 57 + 4)?;
        to_base64(bytes, &mut text);
    } else if name.eq_ignore_ascii_case("escape") {
        let length = bytes.iter().map(|byte| match byte {
            0 | 0x80.. => 4,
            b'\\' => 2,
            _ => 1,
        });
        call.room(length.sum())?;
        for byte in bytes {
            match byte {
                0 | 0x80.. => octal_into(*byte, &mut text),
                b'\\' => text.push_str("\\\\"),
                _ => text.push(char::from(*byte)),
            }
        }
    } else {
        return Err(unrecognized(name));
    }
    Ok(Datum::text(text))
}

fn decode(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, name) = (a[0].as_text(), a[1].as_text());
    call.room(text.len())?;
    let bytes = if name.eq_ignore_ascii_case("hex") {
        from_hex(text)?
    } else if name.eq_ignore_ascii_case("base64") {
        from_base64(text)?
    } else if name.eq_ignore_ascii_case("escape") {
        from_escapes(text)
            .ok_or_else(|| QueryError::new("22P02", "invalid input syntax for type bytea"))?
    } else {
        return Err(unrecognized(name));
    };
    Ok(Datum::bytes(bytes))
}
