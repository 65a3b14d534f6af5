//! Functions and operators of bit strings.

use std::cmp::Ordering;

use super::Function;
use super::text::{bytes_difference, end_of_part, negative_length};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::bit::{BITS_MAX, BitString, bit_fit, too_long, varbit_fit};
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(1581, "biteq", &[ids::BIT, ids::BIT], ids::BOOL, |_, a| {
        truth(order(a).is_eq())
    }),
    Function::row(1582, "bitne", &[ids::BIT, ids::BIT], ids::BOOL, |_, a| {
        truth(order(a).is_ne())
    }),
    Function::row(1595, "bitlt", &[ids::BIT, ids::BIT], ids::BOOL, |_, a| {
        truth(order(a).is_lt())
    }),
    Function::row(1594, "bitle", &[ids::BIT, ids::BIT], ids::BOOL, |_, a| {
        truth(order(a).is_le())
    }),
    Function::row(1593, "bitgt", &[ids::BIT, ids::BIT], ids::BOOL, |_, a| {
        truth(order(a).is_gt())
    }),
    Function::row(1592, "bitge", &[ids::BIT, ids::BIT], ids::BOOL, |_, a| {
        truth(order(a).is_ge())
    }),
    Function::row(
        1666,
        "varbiteq",
        &[ids::VARBIT, ids::VARBIT],
        ids::BOOL,
        |_, a| truth(order(a).is_eq()),
    ),
    Function::row(
        1667,
        "varbitne",
        &[ids::VARBIT, ids::VARBIT],
        ids::BOOL,
        |_, a| truth(order(a).is_ne()),
    ),
    Function::row(
        1671,
        "varbitlt",
        &[ids::VARBIT, ids::VARBIT],
        ids::BOOL,
        |_, a| truth(order(a).is_lt()),
    ),
    Function::row(
        1670,
        "varbitle",
        &[ids::VARBIT, ids::VARBIT],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(
        1669,
        "varbitgt",
        &[ids::VARBIT, ids::VARBIT],
        ids::BOOL,
        |_, a| truth(order(a).is_gt()),
    ),
    Function::row(
        1668,
        "varbitge",
        &[ids::VARBIT, ids::VARBIT],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(1596, "bitcmp", &[ids::BIT, ids::BIT], ids::INT4, |_, a| {
        Ok(Datum::Int4(difference(a)))
    }),
    Function::row(
        1672,
        "varbitcmp",
        &[ids::VARBIT, ids::VARBIT],
        ids::INT4,
        |_, a| Ok(Datum::Int4(difference(a))),
    ),
    Function::row(1673, "bitand", &[ids::BIT, ids::BIT], ids::BIT, |_, a| {
        combine(a, "AND", |x, y| x & y)
    }),
    Function::row(1674, "bitor", &[ids::BIT, ids::BIT], ids::BIT, |_, a| {
        combine(a, "OR", |x, y| x | y)
    }),
    Function::row(1675, "bitxor", &[ids::BIT, ids::BIT], ids::BIT, |_, a| {
        combine(a, "XOR", |x, y| x ^ y)
    }),
    Function::row(1676, "bitnot", &[ids::BIT], ids::BIT, bitnot),
    Function::row(
        1679,
        "bitcat",
        &[ids::VARBIT, ids::VARBIT],
        ids::VARBIT,
        bitcat,
    ),
    Function::row(
        1677,
        "bitshiftleft",
        &[ids::BIT, ids::INT4],
        ids::BIT,
        bitshiftleft,
    ),
    Function::row(
        1678,
        "bitshiftright",
        &[ids::BIT, ids::INT4],
        ids::BIT,
        bitshiftright,
    ),
    Function::row(
        1699,
        "substring",
        &[ids::BIT, ids::INT4],
        ids::BIT,
        substring,
    ),
    Function::row(
        1680,
        "substring",
        &[ids::BIT, ids::INT4, ids::INT4],
        ids::BIT,
        substring,
    ),
    Function::row(
        3031,
        "overlay",
        &[ids::BIT, ids::BIT, ids::INT4],
        ids::BIT,
        overlay,
    ),
    Function::row(
        3030,
        "overlay",
        &[ids::BIT, ids::BIT, ids::INT4, ids::INT4],
        ids::BIT,
        overlay,
    ),
    Function::row(6162, "bit_count", &[ids::BIT], ids::INT8, bit_count),
    Function::row(1812, "bit_length", &[ids::BIT], ids::INT4, |_, a| {
        number(a[0].as_bit().length)
    }),
    Function::row(1681, "length", &[ids::BIT], ids::INT4, |_, a| {
        number(a[0].as_bit().length)
    }),
    Function::row(1682, "octet_length", &[ids::BIT], ids::INT4, |_, a| {
        number(a[0].as_bit().bytes.len())
    }),
    Function::row(1683, "bit", &[ids::INT4, ids::INT4], ids::BIT, bitfromint4),
    Function::row(2075, "bit", &[ids::INT8, ids::INT4], ids::BIT, bitfromint8),
    Function::row(1684, "int4", &[ids::BIT], ids::INT4, bittoint4),
    Function::row(2076, "int8", &[ids::BIT], ids::INT8, bittoint8),
    Function::row(
        1685,
        "bit",
        &[ids::BIT, ids::INT4, ids::BOOL],
        ids::BIT,
        |call, a| bit_fit(call, &a[0], a[1].as_int4(), a[2].as_bool()),
    ),
    Function::row(
        1687,
        "varbit",
        &[ids::VARBIT, ids::INT4, ids::BOOL],
        ids::VARBIT,
        |call, a| varbit_fit(call, &a[0], a[1].as_int4(), a[2].as_bool()),
    ),
    Function::row(1698, "position", &[ids::BIT, ids::BIT], ids::INT4, position),
    Function::row(3032, "get_bit", &[ids::BIT, ids::INT4], ids::INT4, get_bit),
    Function::row(
        3033,
        "set_bit",
        &[ids::BIT, ids::INT4, ids::INT4],
        ids::BIT,
        set_bit,
    ),
];

fn truth(value: bool) -> Result<Datum> {
    Ok(Datum::Bool(value))
}

fn order(a: &[Datum]) -> Ordering {
    a[0].as_bit().cmp(a[1].as_bit())
}

fn difference(a: &[Datum]) -> i32 {
    let (x, y) = (a[0].as_bit(), a[1].as_bit());
    let shared = x.bytes.len().min(y.bytes.len());
    match bytes_difference(&x.bytes[..shared], &y.bytes[..shared]) {
        0 => x.length.cmp(&y.length) as i32,
        difference => difference,
    }
}

fn number(value: usize) -> Result<Datum> {
    Ok(Datum::Int4(i32::try_from(value).unwrap_or(i32::MAX)))
}

fn combine(a: &[Datum], verb: &str, combine: fn(u8, u8) -> u8) -> Result<Datum> {
    let (x, y) = (a[0].as_bit(), a[1].as_bit());
    if x.length != y.length {
        return Err(QueryError::new(
            "22026",
            format!("cannot {verb} bit strings of different sizes"),
        ));
    }
    let bytes = x.bytes.iter().zip(&y.bytes);
    let bytes = bytes.map(|(x, y)| combine(*x, *y)).collect();
    Ok(Datum::bits(BitString::of(x.length, bytes)))
}

fn bitnot(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bits = a[0].as_bit();
    let bytes = bits.bytes.iter().map(|byte| !byte).collect();
    Ok(Datum::bits(BitString::of(bits.length, bytes)))
}

fn join(call: &Call<'_>, parts: &[&BitString]) -> Result<Datum> {
    let length: usize = parts.iter().map(|part| part.length).sum();
    if length > BITS_MAX {
        return Err(too_long());
    }
    call.room(length / 8 + 1)?;
    let mut joined = BitString::default();
    joined.bytes.reserve(length / 8 + 2);
    for part in parts {
        joined.push(part);
    }
    Ok(Datum::bits(joined))
}

fn bitcat(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    join(call, &[a[0].as_bit(), a[1].as_bit()])
}

/// The part from `start`, counted from 1, over `length` bits or all.
fn part(bits: &BitString, start: i32, length: Option<i32>) -> Result<BitString> {
    let end = end_of_part(start, length)?;
    let first = usize::try_from(start.max(1) - 1).unwrap_or(0);
    let end = end.map_or(bits.length, |end| {
        usize::try_from(end.saturating_sub(1)).unwrap_or(0)
    });
    Ok(bits.part(first, end))
}

fn substring(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let length = a.get(2).map(Datum::as_int4);
    part(a[0].as_bit(), a[1].as_int4(), length).map(Datum::bits)
}

fn overlay(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (whole, new, start) = (a[0].as_bit(), a[1].as_bit(), a[2].as_int4());
    let length = match a.get(3) {
        Some(length) => length.as_int4(),
        None => i32::try_from(new.length).unwrap_or(i32::MAX),
    };
    if start <= 0 {
        return Err(negative_length());
    }
    let after = start
        .checked_add(length)
        .ok_or_else(|| QueryError::out_of_range("integer"))?;
    let (before, after) = (part(whole, 1, Some(start - 1))?, part(whole, after, None)?);
    join(call, &[&before, new, &after])
}

fn bit_count(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bytes = a[0].as_bit().bytes.iter();
    let count: u64 = bytes.map(|byte| u64::from(byte.count_ones())).sum();
    Ok(Datum::Int8(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// The bits moved towards the beginning; those that come in are 0. Negative:
/// towards the end.
fn shift(bits: &BitString, by: i64) -> BitString {
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    if distance >= bits.length {
        return BitString::zeros(bits.length);
    }
    if by >= 0 {
        let rest = bits.part(distance, bits.length);
        return BitString::of(bits.length, rest.bytes);
    }
    let mut moved = BitString::zeros(distance);
    moved.push(&bits.part(0, bits.length - distance));
    moved
}

fn bitshiftleft(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::bits(shift(a[0].as_bit(), i64::from(a[1].as_int4()))))
}

fn bitshiftright(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::bits(shift(
        a[0].as_bit(),
        -i64::from(a[1].as_int4()),
    )))
}

/// So many of a number's last bits; its sign fills those before them.
fn from_integer(call: &Call<'_>, value: i64, length: i32) -> Result<Datum> {
    let length = match usize::try_from(length) {
        Ok(length) if length > 0 && length <= BITS_MAX => length,
        _ => 1,
    };
    call.room(length.div_ceil(8))?;
    let mut bits = if value < 0 {
        BitString::of(length, vec![0xff; length.div_ceil(8)])
    } else {
        BitString::zeros(length)
    };
    for place in 0..length.min(64) {
        let at = length - 1 - place;
        let mask = 0x80 >> (at % 8);
        if let Some(byte) = bits.bytes.get_mut(at / 8) {
            if value >> place & 1 == 1 {
                *byte |= mask;
            } else {
                *byte &= !mask;
            }
        }
    }
    Ok(Datum::bits(bits))
}

fn bitfromint4(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    from_integer(call, i64::from(a[0].as_int4()), a[1].as_int4())
}

fn bitfromint8(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    from_integer(call, a[0].as_int8(), a[1].as_int4())
}

/// The number that at most 64 bits are.
fn to_number(bits: &BitString) -> u64 {
    let number = bits
        .bytes
        .iter()
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    number >> (bits.bytes.len() * 8 - bits.length)
}

fn bittoint4(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bits = a[0].as_bit();
    match u32::try_from(to_number(bits)) {
        Ok(number) if bits.length <= 32 => Ok(Datum::Int4(number.cast_signed())),
        _ => Err(QueryError::out_of_range("integer")),
    }
}

fn bittoint8(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bits = a[0].as_bit();
    if bits.length > 64 {
        return Err(QueryError::out_of_range("bigint"));
    }
    Ok(Datum::Int8(to_number(bits).cast_signed()))
}

fn position(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (whole, sought) = (a[0].as_bit(), a[1].as_bit());
    if whole.length == 0 || sought.length > whole.length {
        return Ok(Datum::Int4(0));
    }
    for at in 0..=whole.length - sought.length {
        if at % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
        if (0..sought.length).all(|bit| whole.get(at + bit) == sought.get(bit)) {
            return number(at + 1);
        }
    }
    Ok(Datum::Int4(0))
}

fn bit_index(bits: &BitString, at: i32) -> Result<usize> {
    match usize::try_from(at) {
        Ok(at) if at < bits.length => Ok(at),
        _ => {
            let last = i64::try_from(bits.length).unwrap_or(i64::MAX) - 1;
            Err(QueryError::new(
                "2202E",
                format!("bit index {at} out of valid range (0..{last})"),
            ))
        }
    }
}

fn get_bit(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bits = a[0].as_bit();
    let at = bit_index(bits, a[1].as_int4())?;
    Ok(Datum::Int4(i32::from(bits.get(at))))
}

fn set_bit(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut bits = a[0].as_bit().clone();
    let at = bit_index(&bits, a[1].as_int4())?;
    let mask = 0x80 >> (at % 8);
    match a[2].as_int4() {
        0 => bits.bytes[at / 8] &= !mask,
        1 => bits.bytes[at / 8] |= mask,
        _ => return Err(QueryError::invalid_parameter("new bit must be 0 or 1")),
    }
    Ok(Datum::bits(bits))
}
