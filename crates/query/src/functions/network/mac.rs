//! Functions and operators of `macaddr` and `macaddr8`.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::macaddr::{compare, widened};

pub(super) fn macaddr_eq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_eq()))
}

pub(super) fn macaddr_ne(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_ne()))
}

pub(super) fn macaddr_lt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_lt()))
}

pub(super) fn macaddr_le(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_le()))
}

pub(super) fn macaddr_gt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_gt()))
}

pub(super) fn macaddr_ge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_ge()))
}

pub(super) fn macaddr_cmp(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(compare(&arguments[0], &arguments[1]) as i32))
}

pub(super) fn macaddr_and(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(bits(arguments, |a, b| a & b))
}

pub(super) fn macaddr_or(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(bits(arguments, |a, b| a | b))
}

pub(super) fn macaddr_trunc(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let [a, b, c, ..] = arguments[0].as_macaddr();
    Ok(Datum::MacAddr([a, b, c, 0, 0, 0, 0, 0]))
}

pub(super) fn macaddr8_eq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_eq()))
}

pub(super) fn macaddr8_ne(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_ne()))
}

pub(super) fn macaddr8_lt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_lt()))
}

pub(super) fn macaddr8_le(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_le()))
}

pub(super) fn macaddr8_gt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_gt()))
}

pub(super) fn macaddr8_ge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(compare(&arguments[0], &arguments[1]).is_ge()))
}

pub(super) fn macaddr8_cmp(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(compare(&arguments[0], &arguments[1]) as i32))
}

pub(super) fn macaddr8_and(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(bits(arguments, |a, b| a & b))
}

pub(super) fn macaddr8_or(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(bits(arguments, |a, b| a | b))
}

pub(super) fn macaddr8_trunc(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let [a, b, c, ..] = arguments[0].as_macaddr();
    Ok(Datum::MacAddr([a, b, c, 0, 0, 0, 0, 0]))
}

/// A value of both addresses' bytes.
fn bits(arguments: &[Datum], combine: fn(u8, u8) -> u8) -> Datum {
    let (mut address, other) = (arguments[0].as_macaddr(), arguments[1].as_macaddr());
    for (byte, other) in address.iter_mut().zip(other) {
        *byte = combine(*byte, other);
    }
    Datum::MacAddr(address)
}

pub(super) fn macaddr_not(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let [a, b, c, d, e, f, ..] = arguments[0].as_macaddr();
    Ok(Datum::MacAddr([!a, !b, !c, !d, !e, !f, 0, 0]))
}

pub(super) fn macaddr8_not(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::MacAddr(arguments[0].as_macaddr().map(|byte| !byte)))
}

pub(super) fn macaddr8_set7bit(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut address = arguments[0].as_macaddr();
    address[0] |= 0x02;
    Ok(Datum::MacAddr(address))
}

pub(super) fn macaddrtomacaddr8(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::MacAddr(widened(arguments[0].as_macaddr())))
}

pub(super) fn macaddr8tomacaddr(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    match arguments[0].as_macaddr() {
        [a, b, c, 0xff, 0xfe, d, e, f] => Ok(Datum::MacAddr([a, b, c, d, e, f, 0, 0])),
        _ => Err(QueryError::new(
            "22003",
            "macaddr8 data out of range to convert to macaddr",
        )
        .with_hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        )),
    }
}
