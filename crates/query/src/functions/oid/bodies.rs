//! The bodies: order, casts, and arithmetic of `pg_lsn`.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::numeric::Numeric;
use crate::types::oid::compare_vectors;
use crate::types::{format_type, is_built_in};

/// Comparisons by a key.
macro_rules! comparisons {
    ($key:expr => $($name:ident $sign:tt)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                let key = $key;
                Ok(Datum::Bool(key(&a[0]) $sign key(&a[1])))
            }
        )*
    };
}

fn word(value: &Datum) -> u64 {
    value.as_int8().cast_unsigned()
}

comparisons!(Datum::as_oid => oideq == oidne != oidlt < oidle <= oidgt > oidge >= cideq ==);
comparisons!(word => xid8eq == xid8ne != xid8lt < xid8le <= xid8gt > xid8ge >=
    pg_lsn_eq == pg_lsn_ne != pg_lsn_lt < pg_lsn_le <= pg_lsn_gt > pg_lsn_ge >=);
comparisons!(Datum::as_int8 => tideq == tidne != tidlt < tidle <= tidgt > tidge >=);

macro_rules! vectors {
    ($($name:ident $test:ident)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                Ok(Datum::Bool(compare_vectors(a[0].as_array(), a[1].as_array()).$test()))
            }
        )*
    };
}

vectors!(oidvectoreq is_eq oidvectorne is_ne oidvectorlt is_lt oidvectorle is_le oidvectorgt is_gt oidvectorge is_ge);

pub(super) fn btoidvectorcmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    // PostgreSQL gives the difference of the lengths.
    let (a, b) = (a[0].as_array(), a[1].as_array());
    if a.elements.len() != b.elements.len() {
        let length = |elements: &[Datum]| i32::try_from(elements.len()).unwrap_or(i32::MAX);
        return Ok(Datum::Int4(length(&a.elements) - length(&b.elements)));
    }
    Ok(Datum::Int4(compare_vectors(a, b) as i32))
}

pub(super) fn btoidcmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(a[0].as_oid().cmp(&a[1].as_oid()) as i32))
}

pub(super) fn xid8cmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(word(&a[0]).cmp(&word(&a[1])) as i32))
}

pub(super) fn pg_lsn_cmp(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    xid8cmp(call, a)
}

pub(super) fn bttidcmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(a[0].as_int8().cmp(&a[1].as_int8()) as i32))
}

pub(super) fn oidlarger(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Oid(a[0].as_oid().max(a[1].as_oid())))
}

pub(super) fn oidsmaller(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Oid(a[0].as_oid().min(a[1].as_oid())))
}

fn larger(a: &[Datum]) -> Result<Datum> {
    Ok(a[usize::from(word(&a[0]) <= word(&a[1]))].clone())
}

fn smaller(a: &[Datum]) -> Result<Datum> {
    Ok(a[usize::from(word(&a[0]) >= word(&a[1]))].clone())
}

pub(super) fn xid8_larger(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    larger(a)
}

pub(super) fn xid8_smaller(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    smaller(a)
}

pub(super) fn pg_lsn_larger(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    larger(a)
}

pub(super) fn pg_lsn_smaller(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    smaller(a)
}

pub(super) fn tidlarger(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    larger(a)
}

pub(super) fn tidsmaller(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    smaller(a)
}

/// The bits of an `xid`, or of the `integer` that it is compared with.
fn bits(value: &Datum) -> u32 {
    match value {
        Datum::Int4(n) => n.cast_unsigned(),
        value => value.as_oid(),
    }
}

pub(super) fn xideq(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(bits(&a[0]) == bits(&a[1])))
}

pub(super) fn xidneq(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(bits(&a[0]) != bits(&a[1])))
}

pub(super) fn xid8toxid(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Oid(a[0].as_int8() as u32))
}

pub(super) fn i8tooid(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match u32::try_from(a[0].as_int8()) {
        Ok(oid) => Ok(Datum::Oid(oid)),
        Err(_) => Err(QueryError::out_of_range("OID")),
    }
}

pub(super) fn oidtoi8(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int8(a[0].as_oid().into()))
}

pub(super) fn text_regclass(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    call.environment.call("regclassin", &a[..1])
}

pub(super) fn oidvectortypes(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut names = String::new();
    for (at, element) in a[0].as_array().elements.iter().enumerate() {
        if at > 0 {
            names.push_str(", ");
        }
        let oid = element.as_oid();
        if oid == 0 {
            names.push('-');
        } else if is_built_in(oid) {
            names.push_str(&format_type(oid, -1));
        } else {
            match call
                .environment
                .call("format_type", &[Datum::Oid(oid), Datum::Int4(-1)])
            {
                Ok(Datum::Text(name)) => names.push_str(&name),
                _ => names.push_str("???"),
            }
        }
    }
    Ok(Datum::text(names))
}

fn of_word(value: &Datum) -> Numeric {
    Numeric::from_i128(word(value).into())
}

fn to_lsn(number: &Numeric) -> Result<Datum> {
    if !number.is_finite() {
        let what = if number.is_nan() { "NaN" } else { "infinity" };
        return Err(QueryError::unsupported(
            format!("cannot convert {what} to pg_lsn"),
            "Leave such values out, for example with nullif.",
        ));
    }
    match number.to_i128().and_then(|n| u64::try_from(n).ok()) {
        Some(place) => Ok(Datum::Int8(place.cast_signed())),
        None => Err(QueryError::invalid_parameter("pg_lsn out of range")),
    }
}

pub(super) fn numeric_pg_lsn(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    to_lsn(a[0].as_numeric())
}

pub(super) fn pg_lsn_mi(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_word(&a[0]).sub(&of_word(&a[1])).map(Datum::Numeric)
}

pub(super) fn pg_lsn_pli(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bytes = a[1].as_numeric();
    if bytes.is_nan() {
        return Err(QueryError::unsupported(
            "cannot add NaN to pg_lsn",
            "Leave such values out, for example with nullif.",
        ));
    }
    to_lsn(&of_word(&a[0]).add(bytes)?)
}

pub(super) fn numeric_pl_pg_lsn(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    pg_lsn_pli(call, &[a[1].clone(), a[0].clone()])
}

pub(super) fn pg_lsn_mii(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bytes = a[1].as_numeric();
    if bytes.is_nan() {
        return Err(QueryError::unsupported(
            "cannot subtract NaN from pg_lsn",
            "Leave such values out, for example with nullif.",
        ));
    }
    to_lsn(&of_word(&a[0]).sub(bytes)?)
}
