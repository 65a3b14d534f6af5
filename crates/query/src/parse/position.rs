//! Where a statement's syntax error is. The parser's safe face does not tell, its C
//! interface does: the one place of this crate that calls it. The call
//! reads a text that ends in NUL and owns what it gives back until it is freed.

#![allow(unsafe_code)]

use std::ffi::CString;

use pg_raw_parse::raw;

/// The place of the syntax error of `text`, in bytes from 0.
pub(super) fn of_error(text: &str) -> Option<u32> {
    let input = CString::new(text).ok()?;
    // SAFETY: the input ends in NUL and lives until the call is over. The result is
    // freed once, by the function that the library has for it, and not used after.
    let cursor = unsafe {
        let result = raw::pg_query_normalize(input.as_ptr());
        let cursor = result.error.as_ref().map_or(0, |error| error.cursorpos);
        raw::pg_query_free_normalize_result(result);
        cursor
    };
    let character = usize::try_from(cursor).ok()?.checked_sub(1)?;
    let byte = text
        .char_indices()
        .nth(character)
        .map_or(text.len(), |(at, _)| at);
    u32::try_from(byte).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_error_is_told_in_bytes() {
        assert_eq!(of_error("select 1 frm t x"), Some(13));
        assert_eq!(of_error("select 'é' frm t x"), Some(16));
        assert_eq!(of_error("select 1 +"), Some(10));
        assert_eq!(of_error("select 1"), None);
        for _ in 0..1000 {
            assert_eq!(of_error(")"), Some(0));
        }
    }
}
