//! Numbers of objects: `oid`, the `reg…` types, and vectors of numbers.
//!
//! `xid8` and `pg_lsn` are the bits of a [`Datum::Int8`], a `tid` is its block and its place in it
//! there, and an `aclitem` is a text.

mod names;
mod vector;

use super::integer::{exactly, out_of_range};
use super::numeric::is_space;
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// What C's `strtoul` reads: the number, which a minus turns around, and where it ends; `None` for
/// no digits. A number beyond 64 bits gives the greatest and a flag.
fn unsigned(text: &[u8], base: u32) -> Option<(u64, usize, bool)> {
    let next = |at: usize| text.get(at).copied().unwrap_or(0);
    let mut at = text.iter().take_while(|byte| is_space(**byte)).count();
    let negative = next(at) == b'-';
    at += usize::from(matches!(next(at), b'+' | b'-'));
    let digit = |at: usize, base: u32| char::from(next(at)).to_digit(base);
    let mut base = base;
    if base == 0 {
        base = match (next(at), next(at + 1)) {
            (b'0', b'x' | b'X') if digit(at + 2, 16).is_some() => {
                at += 2;
                16
            }
            (b'0', _) => 8,
            _ => 10,
        };
    }
    let start = at;
    let (mut n, mut overflow) = (0u64, false);
    while let Some(value) = digit(at, base) {
        match n
            .checked_mul(base.into())
            .and_then(|n| n.checked_add(value.into()))
        {
            Some(next) => n = next,
            None => overflow = true,
        }
        at += 1;
    }
    if at == start {
        return None;
    }
    if overflow {
        return Some((u64::MAX, at, true));
    }
    Some((if negative { n.wrapping_neg() } else { n }, at, false))
}

/// An `oid` at the beginning of a text, and where it ends.
fn parse_prefix(text: &str) -> Result<(u32, usize)> {
    let Some((n, end, overflow)) = unsigned(text.as_bytes(), 10) else {
        return Err(QueryError::invalid_text("oid", text));
    };
    let oid = n as u32;
    let signed = i64::from(oid.cast_signed()).cast_unsigned();
    if overflow || (n != u64::from(oid) && n != signed) {
        return Err(out_of_range(text, "oid"));
    }
    Ok((oid, end))
}

/// Reads an `oid`; numbers below zero stand for the greatest.
///
/// # Errors
/// 22P02, 22003.
pub fn parse(text: &str) -> Result<u32> {
    if text.is_empty() {
        return Err(QueryError::invalid_text("oid", text));
    }
    // A text of spaces alone is as invalid, but a number is looked for first.
    let (oid, end) = parse_prefix(text)?;
    if text.as_bytes()[end..].iter().all(|byte| is_space(*byte)) {
        Ok(oid)
    } else {
        Err(QueryError::invalid_text("oid", text))
    }
}

fn input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    parse(text).map(Datum::Oid)
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    super::integer::write(value.as_oid().into(), out);
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    Ok(Datum::Oid(u32::from_be_bytes(exactly(bytes)?)))
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_oid().to_be_bytes());
    Ok(())
}

/// `xid` and `cid` take any text, as PostgreSQL does.
fn input_any(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let n = unsigned(text.as_bytes(), 0).map_or(0, |(n, _, _)| n);
    Ok(Datum::Oid(n as u32))
}

fn input_xid8(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let n = unsigned(text.as_bytes(), 0).map_or(0, |(n, _, _)| n);
    Ok(Datum::Int8(n.cast_signed()))
}

fn output_xid8(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    out.push_str(&value.as_int8().cast_unsigned().to_string());
    Ok(())
}

fn receive_word(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    Ok(Datum::Int8(i64::from_be_bytes(exactly(bytes)?)))
}

fn send_word(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_int8().to_be_bytes());
    Ok(())
}

fn compare_word(a: &Datum, b: &Datum) -> std::cmp::Ordering {
    a.as_int8()
        .cast_unsigned()
        .cmp(&b.as_int8().cast_unsigned())
}

fn input_lsn(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let part = |text: &str| {
        let hexadecimal =
            (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        hexadecimal
            .then(|| u32::from_str_radix(text, 16).ok())
            .flatten()
    };
    let read = text
        .split_once('/')
        .and_then(|(high, low)| Some((part(high)?, part(low)?)));
    let Some((high, low)) = read else {
        return Err(QueryError::invalid_text("pg_lsn", text));
    };
    let place = u64::from(high) << 32 | u64::from(low);
    Ok(Datum::Int8(place.cast_signed()))
}

fn output_lsn(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let place = value.as_int8().cast_unsigned();
    out.push_str(&format!("{:X}/{:X}", place >> 32, place & 0xffff_ffff));
    Ok(())
}

fn input_tid(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let bytes = text.as_bytes();
    let invalid = || QueryError::invalid_text("tid", text);
    // As PostgreSQL looks for them: what follows the first bracket, and what follows a comma.
    let mut starts = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        if starts.len() == 2 || *byte == b')' {
            break;
        }
        if *byte == b',' || (*byte == b'(' && starts.is_empty()) {
            starts.push(at + 1);
        }
    }
    let [block, place] = starts[..] else {
        return Err(invalid());
    };
    let number = |start: usize, end: u8| {
        let (n, length, overflow) = unsigned(&bytes[start..], 10).unwrap_or((0, 0, false));
        (!overflow && bytes.get(start + length) == Some(&end)).then_some(n)
    };
    let block = number(block, b',').ok_or_else(invalid)?;
    let short = block as u32;
    let signed = i64::from(short.cast_signed()).cast_unsigned();
    if block != u64::from(short) && block != signed {
        return Err(invalid());
    }
    let place = number(place, b')')
        .and_then(|n| u16::try_from(n).ok())
        .ok_or_else(invalid)?;
    Ok(Datum::Int8(i64::from(short) << 16 | i64::from(place)))
}

fn output_tid(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let n = value.as_int8();
    out.push_str(&format!("({},{})", (n >> 16) & 0xffff_ffff, n & 0xffff));
    Ok(())
}

fn receive_tid(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    let bytes: [u8; 6] = exactly(bytes)?;
    let n = bytes.iter().fold(0, |n, byte| n << 8 | i64::from(*byte));
    Ok(Datum::Int8(n))
}

fn send_tid(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_int8().to_be_bytes()[2..]);
    Ok(())
}

const fn number(oid: u32, name: &'static str) -> Type {
    Type {
        length: 4,
        input,
        output,
        receive,
        send,
        compare: Some(|a, b| a.as_oid().cmp(&b.as_oid())),
        ..Type::new(oid, name, name)
    }
}

/// A type whose text form is a name.
const fn named(
    oid: u32,
    name: &'static str,
    input: fn(&Call<'_>, &str, i32) -> Result<Datum>,
    output: fn(&Call<'_>, &Datum, &mut String) -> Result<()>,
) -> Type {
    Type {
        category: b'N',
        input,
        output,
        ..number(oid, name)
    }
}

/// A type of eight bytes.
const fn word(oid: u32, name: &'static str) -> Type {
    Type {
        length: 8,
        receive: receive_word,
        send: send_word,
        compare: Some(compare_word),
        ..Type::new(oid, name, name)
    }
}

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        category: b'N',
        preferred: true,
        array: ids::OID_ARRAY,
        ..number(ids::OID, "oid")
    },
    Type {
        array: ids::REGPROC_ARRAY,
        ..named(
            ids::REGPROC,
            "regproc",
            |call, text, _| names::read(call, "regprocin", text),
            |call, value, out| names::write(call, "regprocout", value, out),
        )
    },
    Type {
        array: ids::REGPROCEDURE_ARRAY,
        ..named(
            ids::REGPROCEDURE,
            "regprocedure",
            |call, text, _| names::read(call, "regprocedurein", text),
            |call, value, out| names::write(call, "regprocedureout", value, out),
        )
    },
    Type {
        array: ids::REGOPER_ARRAY,
        ..named(
            ids::REGOPER,
            "regoper",
            |call, text, _| names::read(call, "regoperin", text),
            |call, value, out| names::write(call, "regoperout", value, out),
        )
    },
    Type {
        array: ids::REGOPERATOR_ARRAY,
        ..named(
            ids::REGOPERATOR,
            "regoperator",
            |call, text, _| names::read(call, "regoperatorin", text),
            |call, value, out| names::write(call, "regoperatorout", value, out),
        )
    },
    Type {
        array: ids::REGCLASS_ARRAY,
        ..named(
            ids::REGCLASS,
            "regclass",
            |call, text, _| names::read(call, "regclassin", text),
            |call, value, out| names::write(call, "regclassout", value, out),
        )
    },
    Type {
        array: ids::REGTYPE_ARRAY,
        ..named(
            ids::REGTYPE,
            "regtype",
            |call, text, _| names::read_type(call, text),
            names::write_type,
        )
    },
    Type {
        array: ids::REGNAMESPACE_ARRAY,
        ..named(
            ids::REGNAMESPACE,
            "regnamespace",
            |call, text, _| names::read(call, "regnamespacein", text),
            |call, value, out| names::write(call, "regnamespaceout", value, out),
        )
    },
    Type {
        array: ids::REGROLE_ARRAY,
        ..named(
            ids::REGROLE,
            "regrole",
            |call, text, _| names::read(call, "regrolein", text),
            |call, value, out| names::write(call, "regroleout", value, out),
        )
    },
    Type {
        array: ids::REGCOLLATION_ARRAY,
        ..named(
            ids::REGCOLLATION,
            "regcollation",
            |call, text, _| names::read(call, "regcollationin", text),
            |call, value, out| names::write(call, "regcollationout", value, out),
        )
    },
    Type {
        array: ids::XID_ARRAY,
        input: input_any,
        compare: None,
        ..number(ids::XID, "xid")
    },
    Type {
        array: ids::CID_ARRAY,
        input: input_any,
        compare: None,
        ..number(ids::CID, "cid")
    },
    Type {
        array: ids::XID8_ARRAY,
        input: input_xid8,
        output: output_xid8,
        ..word(ids::XID8, "xid8")
    },
    Type {
        length: 6,
        array: ids::TID_ARRAY,
        input: input_tid,
        output: output_tid,
        receive: receive_tid,
        send: send_tid,
        ..word(ids::TID, "tid")
    },
    Type {
        category: b'A',
        array: ids::INT2VECTOR_ARRAY,
        element: ids::INT2,
        input: vector::input_int2,
        output: vector::output,
        receive: |_, bytes, _| vector::receive(bytes, ids::INT2),
        send: vector::send,
        compare: Some(|a, b| vector::compare_elements(a.as_array(), b.as_array())),
        ..Type::new(ids::INT2VECTOR, "int2vector", "int2vector")
    },
    Type {
        category: b'A',
        array: ids::OIDVECTOR_ARRAY,
        element: ids::OID,
        input: vector::input_oid,
        output: vector::output,
        receive: |_, bytes, _| vector::receive(bytes, ids::OID),
        send: vector::send,
        compare: Some(|a, b| vector::compare(a.as_array(), b.as_array())),
        ..Type::new(ids::OIDVECTOR, "oidvector", "oidvector")
    },
    Type {
        array: ids::PG_LSN_ARRAY,
        input: input_lsn,
        output: output_lsn,
        ..word(ids::PG_LSN, "pg_lsn")
    },
    Type {
        length: 12,
        array: ids::ACLITEM_ARRAY,
        input: |call, text, _| call.environment.call("aclitemin", &[Datum::text(text)]),
        output: |_, value, out| {
            out.push_str(value.as_text());
            Ok(())
        },
        ..Type::new(ids::ACLITEM, "aclitem", "aclitem")
    },
];

pub use self::vector::compare as compare_vectors;
