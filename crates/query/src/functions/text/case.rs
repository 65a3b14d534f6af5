//! Upper and lower case.

use super::ctype;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;

pub(super) fn lower(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    if text.is_ascii() {
        if !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Ok(a[0].clone());
        }
        call.room(text.len())?;
        return Ok(Datum::text(text.to_ascii_lowercase()));
    }
    call.room(text.len())?;
    Ok(Datum::text(lowered(text)))
}

/// A text in lower case.
pub(in crate::functions) fn lowered(text: &str) -> String {
    text.chars().map(ctype::lower).collect()
}

pub(super) fn upper(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    call.room(text.len())?;
    if text.is_ascii() {
        if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return Ok(a[0].clone());
        }
        return Ok(Datum::text(text.to_ascii_uppercase()));
    }
    Ok(Datum::text(
        text.chars().map(ctype::upper).collect::<String>(),
    ))
}

pub(super) fn initcap(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    call.room(text.len())?;
    let mut within = false;
    let cased = text.chars().map(|c| {
        let cased = if within {
            ctype::lower(c)
        } else {
            ctype::upper(c)
        };
        within = ctype::is_alnum(cased);
        cased
    });
    Ok(Datum::text(cased.collect::<String>()))
}
