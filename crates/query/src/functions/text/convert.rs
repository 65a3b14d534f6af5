//! Casts between the types of texts, and `"char"` and numbers.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::text::{
    NAME_BYTES, bpchar_fit, char_of, first_bytes, show_char, to_name, varchar_fit, without_padding,
};

pub(super) fn same(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(a[0].clone())
}

pub(super) fn bpchar(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    bpchar_fit(call, &a[0], a[1].as_int4(), a[2].as_bool())
}

pub(super) fn varchar(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    varchar_fit(call, &a[0], a[1].as_int4(), a[2].as_bool())
}

pub(super) fn text_name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    super::part::same_or(&a[0], to_name(a[0].as_text()))
}

pub(super) fn bpchar_name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    super::part::same_or(&a[0], without_padding(to_name(a[0].as_text())))
}

pub(super) fn bpchar_text(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    super::part::same_or(&a[0], without_padding(a[0].as_text()))
}

pub(super) fn char_text(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut text = String::new();
    show_char(a[0].as_char(), &mut text);
    Ok(Datum::text(text))
}

/// A `"char"` of more than seven bits is no text in UTF-8.
pub(super) fn char_bpchar(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let value = a[0].as_char();
    let mut text = String::new();
    show_char(value, &mut text);
    Ok(Datum::text(text))
}

pub(super) fn text_char(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Char(char_of(a[0].as_text())))
}

pub(super) fn char_int4(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(i32::from(a[0].as_char().cast_signed())))
}

pub(super) fn int4_char(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match i8::try_from(a[0].as_int4()) {
        Ok(value) => Ok(Datum::Char(value.cast_unsigned())),
        Err(_) => Err(QueryError::out_of_range("\"char\"")),
    }
}

pub(super) fn name_and_oid(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let number = format!("_{}", a[1].as_oid());
    let kept = first_bytes(a[0].as_text(), NAME_BYTES - 1 - number.len());
    Ok(Datum::text([kept, &number].concat()))
}

pub(super) fn to_hex(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(match &a[0] {
        Datum::Int8(value) => format!("{value:x}"),
        value => format!("{:x}", value.as_int4()),
    }))
}
