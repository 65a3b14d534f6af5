//! `uuid`.

use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    length: 16,
    array: ids::UUID_ARRAY,
    input,
    output,
    receive,
    send,
    compare: Some(|a, b| a.as_uuid().cmp(&b.as_uuid())),
    ..Type::new(ids::UUID, "uuid", "uuid")
}];

/// The bytes of a text of 32 hexadecimal digits, with a dash allowed after
/// each four of them and braces around all.
fn read(text: &str) -> Option<[u8; 16]> {
    let mut rest = text.as_bytes();
    if let [b'{', inner @ .., b'}'] = rest {
        rest = inner;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut uuid = [0; 16];
    for (at, byte) in uuid.iter_mut().enumerate() {
        let [high, low, after @ ..] = rest else {
            return None;
        };
        *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
        rest = match after {
            [b'-', after @ ..] if at % 2 == 1 && at < 15 => after,
            _ => after,
        };
    }
    rest.is_empty().then_some(uuid)
}

fn input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    match read(text) {
        Some(uuid) => Ok(Datum::Uuid(uuid)),
        None => Err(QueryError::invalid_text("uuid", text)),
    }
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    for (at, byte) in value.as_uuid().into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(super::bytea::hex_digit(byte >> 4));
        out.push(super::bytea::hex_digit(byte));
    }
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    match bytes.first_chunk() {
        Some(uuid) => Ok(Datum::Uuid(*uuid)),
        None => Err(QueryError::new(
            "08P01",
            "insufficient data left in message",
        )),
    }
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_uuid());
    Ok(())
}
