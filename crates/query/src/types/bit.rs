//! `bit(n)` and `varbit(n)`: strings of bits.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// A string of bits, the first one the highest of the first byte.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BitString {
    /// How many bits.
    pub length: usize,
    /// The bits; those after the last are 0.
    pub bytes: Vec<u8>,
}

/// The longest bit string.
pub const BITS_MAX: usize = 2_147_483_640;
/// The longest `bit(n)` and `varbit(n)`.
const LENGTH_MAX: i32 = (10 << 20) * 8;

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        category: b'V',
        array: ids::BIT_ARRAY,
        input: bit_input,
        output,
        receive: bit_receive,
        send,
        compare: Some(compare),
        modifier_in: Some(bit_modifier_in),
        modifier_out: Some(modifier_out),
        fit: Some(bit_fit),
        ..Type::new(ids::BIT, "bit", "bit")
    },
    Type {
        category: b'V',
        preferred: true,
        array: ids::VARBIT_ARRAY,
        input: varbit_input,
        output,
        receive: varbit_receive,
        send,
        compare: Some(compare),
        modifier_in: Some(varbit_modifier_in),
        modifier_out: Some(modifier_out),
        fit: Some(varbit_fit),
        ..Type::new(ids::VARBIT, "varbit", "bit varying")
    },
];

impl BitString {
    /// So many bits that are 0.
    #[must_use]
    pub fn zeros(length: usize) -> Self {
        Self {
            length,
            bytes: vec![0; length.div_ceil(8)],
        }
    }

    /// So many bits of these bytes; bits that are not there are 0.
    #[must_use]
    pub fn of(length: usize, mut bytes: Vec<u8>) -> Self {
        bytes.resize(length.div_ceil(8), 0);
        let unused = bytes.len() * 8 - length;
        if let Some(last) = bytes.last_mut() {
            *last &= 0xff << unused;
        }
        Self { length, bytes }
    }

    /// The bit at this place; false beyond the last.
    #[must_use]
    pub fn get(&self, at: usize) -> bool {
        at < self.length
            && self
                .bytes
                .get(at / 8)
                .is_some_and(|byte| byte & 0x80 >> (at % 8) != 0)
    }

    /// The bits from one place until before another, both within the string.
    #[must_use]
    pub fn part(&self, from: usize, until: usize) -> Self {
        let until = until.min(self.length);
        if from >= until {
            return Self::default();
        }
        let (first, shift, length) = (from / 8, from % 8, until - from);
        let bytes = self.bytes.get(first..).unwrap_or_default();
        let count = length.div_ceil(8);
        let moved = if shift == 0 {
            bytes.iter().copied().take(count).collect()
        } else {
            let next = bytes.iter().skip(1).copied().chain([0]);
            bytes
                .iter()
                .zip(next)
                .take(count)
                .map(|(byte, next)| byte << shift | next >> (8 - shift))
                .collect()
        };
        Self::of(length, moved)
    }

    /// Appends bits.
    pub fn push(&mut self, other: &Self) {
        let shift = self.length % 8;
        self.length += other.length;
        if shift == 0 {
            self.bytes.extend_from_slice(&other.bytes);
        } else {
            for byte in &other.bytes {
                if let Some(last) = self.bytes.last_mut() {
                    *last |= byte >> shift;
                }
                self.bytes.push(byte << (8 - shift));
            }
        }
        self.bytes.truncate(self.length.div_ceil(8));
    }
}

impl Ord for BitString {
    /// By bits; where one is the other's beginning the shorter is less.
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes
            .cmp(&other.bytes)
            .then(self.length.cmp(&other.length))
    }
}

impl PartialOrd for BitString {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Datum {
    /// A bit string.
    #[must_use]
    pub fn bits(bits: BitString) -> Self {
        Self::Bit(Arc::new(bits))
    }
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    a.as_bit().cmp(b.as_bit())
}

/// How many bits a text stands for, and what reads them.
fn read(call: &Call<'_>, text: &str, check: impl Fn(usize) -> Result<()>) -> Result<BitString> {
    let (digits, bits_each) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (text.get(1..).unwrap_or_default(), 1),
        Some(b'x' | b'X') => (text.get(1..).unwrap_or_default(), 4),
        _ => (text, 1),
    };
    if digits.len() > BITS_MAX / bits_each {
        return Err(too_long());
    }
    let length = digits.len() * bits_each;
    check(length)?;
    call.room(length.div_ceil(8))?;
    let mut bits = BitString::zeros(length);
    let mut at = 0;
    for c in digits.chars() {
        let (value, kind) = if bits_each == 1 {
            (c.to_digit(2), "binary")
        } else {
            (c.to_digit(16), "hexadecimal")
        };
        let Some(value) = value.and_then(|value| u8::try_from(value).ok()) else {
            return Err(QueryError::new(
                "22P02",
                format!("\"{c}\" is not a valid {kind} digit"),
            ));
        };
        if let Some(byte) = bits.bytes.get_mut(at / 8) {
            *byte |= value << (8 - bits_each - at % 8);
        }
        at += bits_each;
    }
    Ok(bits)
}

/// 54000: more bits than a bit string has.
#[cold]
#[must_use]
pub fn too_long() -> QueryError {
    QueryError::new(
        "54000",
        format!("bit string length exceeds the maximum allowed ({BITS_MAX})"),
    )
}

fn check_bit(length: usize, modifier: i32) -> Result<()> {
    match usize::try_from(modifier) {
        Ok(wanted) if wanted > 0 && wanted != length => Err(QueryError::new(
            "22026",
            format!("bit string length {length} does not match type bit({wanted})"),
        )),
        _ => Ok(()),
    }
}

fn check_varbit(length: usize, modifier: i32) -> Result<()> {
    match usize::try_from(modifier) {
        Ok(most) if most > 0 && length > most => Err(QueryError::new(
            "22001",
            format!("bit string too long for type bit varying({most})"),
        )),
        _ => Ok(()),
    }
}

fn bit_input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    read(call, text, |length| check_bit(length, modifier)).map(Datum::bits)
}

fn varbit_input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    read(call, text, |length| check_varbit(length, modifier)).map(Datum::bits)
}

fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let bits = value.as_bit();
    call.room(bits.length)?;
    out.reserve(bits.length);
    for at in 0..bits.length {
        out.push(if bits.get(at) { '1' } else { '0' });
    }
    Ok(())
}

fn receive(bytes: &[u8], check: impl Fn(usize) -> Result<()>) -> Result<Datum> {
    let Some((length, bytes)) = bytes.split_first_chunk() else {
        return Err(insufficient());
    };
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if length > BITS_MAX {
        return Err(QueryError::new(
            "22P03",
            "invalid length in external bit string",
        ));
    }
    check(length)?;
    match bytes.get(..length.div_ceil(8)) {
        Some(bytes) => Ok(Datum::bits(BitString::of(length, bytes.to_vec()))),
        None => Err(insufficient()),
    }
}

#[cold]
fn insufficient() -> QueryError {
    QueryError::new("08P01", "insufficient data left in message")
}

fn bit_receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    receive(bytes, |length| check_bit(length, modifier))
}

fn varbit_receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    receive(bytes, |length| check_varbit(length, modifier))
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let bits = value.as_bit();
    let length = i32::try_from(bits.length).unwrap_or(i32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&bits.bytes);
    Ok(())
}

fn modifier_in(type_name: &str, modifiers: &[i32]) -> Result<i32> {
    let [length] = modifiers else {
        return Err(QueryError::invalid_parameter("invalid type modifier"));
    };
    if *length < 1 {
        return Err(QueryError::invalid_parameter(format!(
            "length for type {type_name} must be at least 1"
        )));
    }
    if *length > LENGTH_MAX {
        return Err(QueryError::invalid_parameter(format!(
            "length for type {type_name} cannot exceed {LENGTH_MAX}"
        )));
    }
    Ok(*length)
}

fn bit_modifier_in(modifiers: &[i32]) -> Result<i32> {
    modifier_in("bit", modifiers)
}

fn varbit_modifier_in(modifiers: &[i32]) -> Result<i32> {
    modifier_in("varbit", modifiers)
}

fn modifier_out(modifier: i32) -> String {
    if modifier >= 0 {
        format!("({modifier})")
    } else {
        String::new()
    }
}

/// A `bit` of its length: an explicit cast cuts it or fills it with 0.
///
/// # Errors
/// 22026 where it has another length.
pub fn bit_fit(call: &Call<'_>, value: &Datum, modifier: i32, explicit: bool) -> Result<Datum> {
    let bits = value.as_bit();
    let length = match usize::try_from(modifier) {
        Ok(length) if length > 0 && length <= BITS_MAX && length != bits.length => length,
        _ => return Ok(value.clone()),
    };
    if !explicit {
        check_bit(bits.length, modifier)?;
    }
    let count = length.div_ceil(8);
    call.room(count)?;
    let mut bytes = Vec::with_capacity(count);
    bytes.extend(bits.bytes.iter().take(count));
    Ok(Datum::bits(BitString::of(length, bytes)))
}

/// A `varbit` within its length: an explicit cast cuts it.
///
/// # Errors
/// 22001 where it is longer.
pub fn varbit_fit(_: &Call<'_>, value: &Datum, modifier: i32, explicit: bool) -> Result<Datum> {
    let bits = value.as_bit();
    match usize::try_from(modifier) {
        Ok(most) if most > 0 && bits.length > most => {
            if !explicit {
                check_varbit(bits.length, modifier)?;
            }
            Ok(Datum::bits(bits.part(0, most)))
        }
        _ => Ok(value.clone()),
    }
}
