//! Functions and operators of network addresses: `inet` and `cidr`; those of
//! `macaddr` and `macaddr8` are in `network/mac.rs`.

mod abbrev;
mod mac;

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;
use crate::types::inet::{self, Inet};
use mac::{
    macaddr_and, macaddr_cmp, macaddr_eq, macaddr_ge, macaddr_gt, macaddr_le, macaddr_lt,
    macaddr_ne, macaddr_not, macaddr_or, macaddr_trunc, macaddr8_and, macaddr8_cmp, macaddr8_eq,
    macaddr8_ge, macaddr8_gt, macaddr8_le, macaddr8_lt, macaddr8_ne, macaddr8_not, macaddr8_or,
    macaddr8_set7bit, macaddr8_trunc, macaddr8tomacaddr, macaddrtomacaddr8,
};

/// The functions of this file.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(598, "abbrev", &[ids::INET], ids::TEXT, inet_abbrev),
    Function::row(599, "abbrev", &[ids::CIDR], ids::TEXT, cidr_abbrev),
    Function::row(698, "broadcast", &[ids::INET], ids::INET, network_broadcast),
    Function::row(1715, "cidr", &[ids::INET], ids::CIDR, inet_to_cidr),
    Function::row(711, "family", &[ids::INET], ids::INT4, network_family),
    Function::row(699, "host", &[ids::INET], ids::TEXT, network_host),
    Function::row(1362, "hostmask", &[ids::INET], ids::INET, network_hostmask),
    Function::row(4063, "inet_merge", &[ids::INET, ids::INET], ids::CIDR, inet_merge),
    Function::row(4071, "inet_same_family", &[ids::INET, ids::INET], ids::BOOL, inet_same_family),
    Function::row(2628, "inetand", &[ids::INET, ids::INET], ids::INET, inetand),
    Function::row(2633, "inetmi", &[ids::INET, ids::INET], ids::INT8, inetmi),
    Function::row(2632, "inetmi_int8", &[ids::INET, ids::INT8], ids::INET, inetmi_int8),
    Function::row(2627, "inetnot", &[ids::INET], ids::INET, inetnot),
    Function::row(2629, "inetor", &[ids::INET, ids::INET], ids::INET, inetor),
    Function::row(2630, "inetpl", &[ids::INET, ids::INT8], ids::INET, inetpl),
    Function::row(2631, "int8pl_inet", &[ids::INT8, ids::INET], ids::INET, int8pl_inet),
    Function::row(4124, "macaddr", &[ids::MACADDR8], ids::MACADDR, macaddr8tomacaddr),
    Function::row(4123, "macaddr8", &[ids::MACADDR], ids::MACADDR8, macaddrtomacaddr8),
    Function::row(4121, "macaddr8_and", &[ids::MACADDR8, ids::MACADDR8], ids::MACADDR8, macaddr8_and),
    Function::row(4119, "macaddr8_cmp", &[ids::MACADDR8, ids::MACADDR8], ids::INT4, macaddr8_cmp),
    Function::row(4113, "macaddr8_eq", &[ids::MACADDR8, ids::MACADDR8], ids::BOOL, macaddr8_eq),
    Function::row(4117, "macaddr8_ge", &[ids::MACADDR8, ids::MACADDR8], ids::BOOL, macaddr8_ge),
    Function::row(4116, "macaddr8_gt", &[ids::MACADDR8, ids::MACADDR8], ids::BOOL, macaddr8_gt),
    Function::row(4115, "macaddr8_le", &[ids::MACADDR8, ids::MACADDR8], ids::BOOL, macaddr8_le),
    Function::row(4114, "macaddr8_lt", &[ids::MACADDR8, ids::MACADDR8], ids::BOOL, macaddr8_lt),
    Function::row(4118, "macaddr8_ne", &[ids::MACADDR8, ids::MACADDR8], ids::BOOL, macaddr8_ne),
    Function::row(4120, "macaddr8_not", &[ids::MACADDR8], ids::MACADDR8, macaddr8_not),
    Function::row(4122, "macaddr8_or", &[ids::MACADDR8, ids::MACADDR8], ids::MACADDR8, macaddr8_or),
    Function::row(4125, "macaddr8_set7bit", &[ids::MACADDR8], ids::MACADDR8, macaddr8_set7bit),
    Function::row(3145, "macaddr_and", &[ids::MACADDR, ids::MACADDR], ids::MACADDR, macaddr_and),
    Function::row(836, "macaddr_cmp", &[ids::MACADDR, ids::MACADDR], ids::INT4, macaddr_cmp),
    Function::row(830, "macaddr_eq", &[ids::MACADDR, ids::MACADDR], ids::BOOL, macaddr_eq),
    Function::row(834, "macaddr_ge", &[ids::MACADDR, ids::MACADDR], ids::BOOL, macaddr_ge),
    Function::row(833, "macaddr_gt", &[ids::MACADDR, ids::MACADDR], ids::BOOL, macaddr_gt),
    Function::row(832, "macaddr_le", &[ids::MACADDR, ids::MACADDR], ids::BOOL, macaddr_le),
    Function::row(831, "macaddr_lt", &[ids::MACADDR, ids::MACADDR], ids::BOOL, macaddr_lt),
    Function::row(835, "macaddr_ne", &[ids::MACADDR, ids::MACADDR], ids::BOOL, macaddr_ne),
    Function::row(3144, "macaddr_not", &[ids::MACADDR], ids::MACADDR, macaddr_not),
    Function::row(3146, "macaddr_or", &[ids::MACADDR, ids::MACADDR], ids::MACADDR, macaddr_or),
    Function::row(697, "masklen", &[ids::INET], ids::INT4, network_masklen),
    Function::row(696, "netmask", &[ids::INET], ids::INET, network_netmask),
    Function::row(683, "network", &[ids::INET], ids::CIDR, network_network),
    Function::row(926, "network_cmp", &[ids::INET, ids::INET], ids::INT4, network_cmp),
    Function::row(920, "network_eq", &[ids::INET, ids::INET], ids::BOOL, network_eq),
    Function::row(924, "network_ge", &[ids::INET, ids::INET], ids::BOOL, network_ge),
    Function::row(923, "network_gt", &[ids::INET, ids::INET], ids::BOOL, network_gt),
    Function::row(3562, "network_larger", &[ids::INET, ids::INET], ids::INET, network_larger),
    Function::row(922, "network_le", &[ids::INET, ids::INET], ids::BOOL, network_le),
    Function::row(921, "network_lt", &[ids::INET, ids::INET], ids::BOOL, network_lt),
    Function::row(925, "network_ne", &[ids::INET, ids::INET], ids::BOOL, network_ne),
    Function::row(3551, "network_overlap", &[ids::INET, ids::INET], ids::BOOL, network_overlap),
    Function::row(3563, "network_smaller", &[ids::INET, ids::INET], ids::INET, network_smaller),
    Function::row(927, "network_sub", &[ids::INET, ids::INET], ids::BOOL, network_sub),
    Function::row(928, "network_subeq", &[ids::INET, ids::INET], ids::BOOL, network_subeq),
    Function::row(929, "network_sup", &[ids::INET, ids::INET], ids::BOOL, network_sup),
    Function::row(930, "network_supeq", &[ids::INET, ids::INET], ids::BOOL, network_supeq),
    Function::row(605, "set_masklen", &[ids::INET, ids::INT4], ids::INET, inet_set_masklen),
    Function::row(635, "set_masklen", &[ids::CIDR, ids::INT4], ids::CIDR, cidr_set_masklen),
    Function::row(730, "text", &[ids::INET], ids::TEXT, network_show),
    Function::row(753, "trunc", &[ids::MACADDR], ids::MACADDR, macaddr_trunc),
    Function::row(4112, "trunc", &[ids::MACADDR8], ids::MACADDR8, macaddr8_trunc),
];

fn inet_abbrev(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut out = String::new();
    arguments[0].as_inet().write(&mut out);
    Ok(Datum::text(out))
}

fn cidr_abbrev(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(abbrev::network(&arguments[0].as_inet())))
}

fn network_host(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut out = String::new();
    arguments[0].as_inet().write_host(&mut out);
    Ok(Datum::text(out))
}

fn network_show(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    let mut out = String::new();
    value.write_host(&mut out);
    out.push('/');
    out.push_str(&value.prefix.to_string());
    Ok(Datum::text(out))
}

fn network_masklen(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(arguments[0].as_inet().prefix.into()))
}

fn network_family(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(match arguments[0].as_inet().bits() {
        32 => 4,
        _ => 6,
    }))
}

fn network_broadcast(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    let number = value.number() | !value.mask(value.prefix);
    Ok(Datum::Inet(value.with(number, value.prefix)))
}

fn network_network(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    Ok(Datum::Inet(value.network(value.prefix)))
}

fn inet_to_cidr(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    network_network(call, arguments)
}

fn network_netmask(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    Ok(Datum::Inet(
        value.with(value.mask(value.prefix), value.bits()),
    ))
}

fn network_hostmask(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    Ok(Datum::Inet(
        value.with(!value.mask(value.prefix), value.bits()),
    ))
}

/// The prefix that an argument asks for; -1 is all of the address.
fn prefix_of(value: &Inet, length: i32) -> Result<u8> {
    match u8::try_from(length) {
        _ if length == -1 => Ok(value.bits()),
        Ok(prefix) if prefix <= value.bits() => Ok(prefix),
        _ => Err(QueryError::invalid_parameter(format!(
            "invalid mask length: {length}"
        ))),
    }
}

fn inet_set_masklen(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    let prefix = prefix_of(&value, arguments[1].as_int4())?;
    Ok(Datum::Inet(Inet { prefix, ..value }))
}

fn cidr_set_masklen(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    let prefix = prefix_of(&value, arguments[1].as_int4())?;
    Ok(Datum::Inet(value.network(prefix)))
}

fn inet_same_family(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_inet(), arguments[1].as_inet());
    Ok(Datum::Bool(a.same_family(&b)))
}

fn inet_merge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_inet(), arguments[1].as_inet());
    if !a.same_family(&b) {
        return Err(QueryError::invalid_parameter(
            "cannot merge addresses from different families",
        ));
    }
    let unused = 128 - u32::from(a.bits());
    let common = (a.number() ^ b.number()).leading_zeros() - unused;
    let prefix = u8::try_from(common)
        .unwrap_or(u8::MAX)
        .min(a.prefix)
        .min(b.prefix);
    Ok(Datum::Inet(a.network(prefix)))
}

/// Whether `a` lies within the network `b` by a prefix that `longer` allows.
fn within(arguments: &[Datum], a: usize, b: usize, longer: fn(&u8, &u8) -> bool) -> Result<Datum> {
    let (a, b) = (arguments[a].as_inet(), arguments[b].as_inet());
    Ok(Datum::Bool(
        a.same_family(&b) && longer(&a.prefix, &b.prefix) && a.agrees(&b, b.prefix),
    ))
}

fn network_sub(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    within(arguments, 0, 1, u8::gt)
}

fn network_subeq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    within(arguments, 0, 1, u8::ge)
}

fn network_sup(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    within(arguments, 1, 0, u8::gt)
}

fn network_supeq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    within(arguments, 1, 0, u8::ge)
}

fn network_overlap(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_inet(), arguments[1].as_inet());
    Ok(Datum::Bool(
        a.same_family(&b) && a.agrees(&b, a.prefix.min(b.prefix)),
    ))
}

fn network_eq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(
        inet::compare(&arguments[0], &arguments[1]).is_eq(),
    ))
}

fn network_ne(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(
        inet::compare(&arguments[0], &arguments[1]).is_ne(),
    ))
}

fn network_lt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(
        inet::compare(&arguments[0], &arguments[1]).is_lt(),
    ))
}

fn network_le(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(
        inet::compare(&arguments[0], &arguments[1]).is_le(),
    ))
}

fn network_gt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(
        inet::compare(&arguments[0], &arguments[1]).is_gt(),
    ))
}

fn network_ge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(
        inet::compare(&arguments[0], &arguments[1]).is_ge(),
    ))
}

/// The difference of the first bytes that differ, as the C library's `memcmp` gives it.
fn byte_difference(a: u128, b: u128) -> i32 {
    let differing = a.to_be_bytes().into_iter().zip(b.to_be_bytes());
    differing
        .map(|(a, b)| i32::from(a) - i32::from(b))
        .find(|difference| *difference != 0)
        .unwrap_or(0)
}

fn network_cmp(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_inet(), arguments[1].as_inet());
    let order = inet::compare(&arguments[0], &arguments[1]) as i32;
    if !a.same_family(&b) {
        return Ok(Datum::Int4(order));
    }
    // Not only the sign is PostgreSQL's: whole bytes of the common prefix,
    // then its last bits, the prefixes' lengths, all bytes.
    let common = a.prefix.min(b.prefix);
    let whole = a.mask(common - common % 8);
    let difference = byte_difference(a.number() & whole, b.number() & whole);
    Ok(Datum::Int4(if difference != 0 {
        difference
    } else if !a.agrees(&b, common) {
        order
    } else if a.prefix != b.prefix {
        i32::from(a.prefix) - i32::from(b.prefix)
    } else {
        byte_difference(a.number(), b.number())
    }))
}

fn network_larger(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let larger = inet::compare(&arguments[0], &arguments[1]).is_gt();
    Ok(arguments[usize::from(!larger)].clone())
}

fn network_smaller(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let smaller = inet::compare(&arguments[0], &arguments[1]).is_lt();
    Ok(arguments[usize::from(!smaller)].clone())
}

fn inetnot(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_inet();
    Ok(Datum::Inet(value.with(!value.number(), value.prefix)))
}

/// A value of both addresses' bits; the longer prefix is its prefix.
fn bits(arguments: &[Datum], name: &str, combine: fn(u128, u128) -> u128) -> Result<Datum> {
    let (a, b) = (arguments[0].as_inet(), arguments[1].as_inet());
    if !a.same_family(&b) {
        return Err(different_sizes(name));
    }
    Ok(Datum::Inet(a.with(
        combine(a.number(), b.number()),
        a.prefix.max(b.prefix),
    )))
}

#[cold]
fn different_sizes(name: &str) -> QueryError {
    QueryError::invalid_parameter(format!("cannot {name} inet values of different sizes"))
}

fn inetand(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    bits(arguments, "AND", |a, b| a & b)
}

fn inetor(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    bits(arguments, "OR", |a, b| a | b)
}

#[cold]
fn out_of_range() -> QueryError {
    QueryError::new("22003", "result is out of range")
}

fn plus(value: &Inet, addend: i64) -> Result<Datum> {
    let distance = u128::from(addend.unsigned_abs());
    let number = if addend < 0 {
        value.number().checked_sub(distance)
    } else {
        value.number().checked_add(distance)
    };
    let most = value.mask(value.bits());
    match number {
        Some(number) if number <= most => Ok(Datum::Inet(value.with(number, value.prefix))),
        _ => Err(out_of_range()),
    }
}

fn inetpl(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    plus(&arguments[0].as_inet(), arguments[1].as_int8())
}

fn int8pl_inet(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    plus(&arguments[1].as_inet(), arguments[0].as_int8())
}

fn inetmi_int8(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    // The least number has no negative, and PostgreSQL lets it be.
    plus(
        &arguments[0].as_inet(),
        arguments[1].as_int8().wrapping_neg(),
    )
}

#[allow(
    clippy::cast_possible_wrap,
    reason = "the difference of two numbers of all bits"
)]
fn inetmi(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_inet(), arguments[1].as_inet());
    if !a.same_family(&b) {
        return Err(different_sizes("subtract"));
    }
    let difference = a.number().wrapping_sub(b.number()) as i128;
    i64::try_from(difference)
        .map(Datum::Int8)
        .map_err(|_| out_of_range())
}
