//! `macaddr` and `macaddr8`.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::array::Message;
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        length: 6,
        array: ids::MACADDR_ARRAY,
        input,
        output,
        receive,
        send,
        compare: Some(compare),
        ..Type::new(ids::MACADDR, "macaddr", "macaddr")
    },
    Type {
        length: 8,
        array: ids::MACADDR8_ARRAY,
        input: input_8,
        output: output_8,
        receive: receive_8,
        send: send_8,
        compare: Some(compare),
        ..Type::new(ids::MACADDR8, "macaddr8", "macaddr8")
    },
];

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The ways to write a `macaddr`: the most digits of a number, and what
/// stands between the numbers (zero for nothing).
const FORMS: [(usize, [u8; 5]); 7] = [
    (usize::MAX, [b':'; 5]),
    (usize::MAX, [b'-'; 5]),
    (2, [0, 0, b':', 0, 0]),
    (2, [0, 0, b'-', 0, 0]),
    (2, [0, b'.', 0, b'.', 0]),
    (2, [0, b'-', 0, b'-', 0]),
    (2, [0; 5]),
];

/// A hexadecimal number as C's `scanf` reads it: with spaces and a sign
/// before it, and `0x`; what is too large is cut.
#[allow(clippy::cast_possible_truncation, reason = "as C does")]
fn hexadecimal(text: &mut &[u8], width: usize) -> Option<i32> {
    while let [byte, rest @ ..] = *text
        && is_space(*byte)
    {
        *text = rest;
    }
    let mut width = width;
    let (mut negative, mut digits) = (false, 0_usize);
    let (mut value, mut beyond) = (0_u64, false);
    if let [sign @ (b'-' | b'+'), rest @ ..] = *text {
        negative = *sign == b'-';
        *text = rest;
        width -= 1;
    }
    if width > 0
        && let [b'0', rest @ ..] = *text
    {
        *text = rest;
        width -= 1;
        digits += 1;
        if width > 0
            && let [b'x' | b'X', rest @ ..] = *text
        {
            *text = rest;
            width -= 1;
        }
    }
    while width > 0
        && let [byte, rest @ ..] = *text
        && let Some(digit) = char::from(*byte).to_digit(16)
    {
        beyond |= value >> 60 != 0;
        value = (value << 4) | u64::from(digit);
        *text = rest;
        width -= 1;
        digits += 1;
    }
    if digits == 0 {
        return None;
    }
    Some(if beyond {
        -1
    } else if negative {
        value.wrapping_neg() as i32
    } else {
        value as i32
    })
}

/// Six numbers written in one way, with nothing but spaces behind them.
fn scan(mut text: &[u8], width: usize, separators: [u8; 5]) -> Option<[i32; 6]> {
    let mut numbers = [0; 6];
    for (place, number) in numbers.iter_mut().enumerate() {
        *number = hexadecimal(&mut text, width)?;
        match separators.get(place) {
            None | Some(0) => {}
            Some(separator) => text = text.strip_prefix(&[*separator])?,
        }
    }
    text.iter().all(|byte| is_space(*byte)).then_some(numbers)
}

fn input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let numbers = FORMS
        .iter()
        .find_map(|(width, separators)| scan(text.as_bytes(), *width, *separators))
        .ok_or_else(|| QueryError::invalid_text("macaddr", text))?;
    let mut address = [0; 8];
    for (byte, number) in address.iter_mut().zip(numbers) {
        *byte = u8::try_from(number).map_err(|_| {
            QueryError::new(
                "22003",
                format!("invalid octet value in \"macaddr\" value: \"{text}\""),
            )
        })?;
    }
    Ok(Datum::MacAddr(address))
}

/// The bytes of a `macaddr8`'s text form: pairs of digits, with one kind of
/// separator between them or none; six bytes or eight.
fn parse_8(text: &[u8]) -> Option<[u8; 8]> {
    let at = |place: usize| text.get(place).copied().unwrap_or(0);
    let digit = |place: usize| {
        let digit = char::from(at(place)).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    let (mut place, mut count, mut separator) = (0, 0, 0);
    let mut found = [0; 8];
    while is_space(at(place)) {
        place += 1;
    }
    while at(place) != 0 && at(place + 1) != 0 {
        *found.get_mut(count)? = (digit(place)? << 4) | digit(place + 1)?;
        count += 1;
        place += 2;
        if matches!(at(place), b':' | b'-' | b'.') {
            if separator != 0 && separator != at(place) {
                return None;
            }
            separator = at(place);
            place += 1;
        }
        if matches!(count, 6 | 8) && is_space(at(place)) {
            while is_space(at(place)) {
                place += 1;
            }
            if at(place) != 0 {
                return None;
            }
        }
    }
    match count {
        8 => Some(found),
        6 => Some(widened(found)),
        _ => None,
    }
}

/// The `macaddr8` of a `macaddr`.
pub(crate) const fn widened([a, b, c, d, e, f, ..]: [u8; 8]) -> [u8; 8] {
    [a, b, c, 0xff, 0xfe, d, e, f]
}

fn input_8(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    match parse_8(text.as_bytes()) {
        Some(address) => Ok(Datum::MacAddr(address)),
        None => Err(QueryError::invalid_text("macaddr8", text)),
    }
}

fn write(bytes: &[u8], out: &mut String) {
    for (place, byte) in bytes.iter().enumerate() {
        if place > 0 {
            out.push(':');
        }
        // Writing to a string can't fail.
        let _ = write!(out, "{byte:02x}");
    }
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    write(&value.as_macaddr()[..6], out);
    Ok(())
}

fn output_8(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    write(&value.as_macaddr(), out);
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    let mut message = Message::new(bytes);
    let mut address = [0; 8];
    for byte in &mut address[..6] {
        *byte = message.byte()?;
    }
    message.end()?;
    Ok(Datum::MacAddr(address))
}

fn receive_8(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    let mut message = Message::new(bytes);
    let mut address = [0; 8];
    for (place, byte) in address.iter_mut().enumerate() {
        *byte = match place {
            3 if bytes.len() == 6 => 0xff,
            4 if bytes.len() == 6 => 0xfe,
            _ => message.byte()?,
        };
    }
    message.end()?;
    Ok(Datum::MacAddr(address))
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_macaddr()[..6]);
    Ok(())
}

fn send_8(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_macaddr());
    Ok(())
}

/// The order of addresses, byte by byte.
pub(crate) fn compare(a: &Datum, b: &Datum) -> Ordering {
    a.as_macaddr().cmp(&b.as_macaddr())
}
