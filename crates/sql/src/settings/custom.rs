//! Settings that are none of the server's: those of extensions and of applications.

use super::unrecognized;
use crate::error::SqlError;

/// A setting of an extension's: simple names with points between them.
pub(super) fn is_custom(name: &str) -> bool {
    let is_simple = |part: &str| {
        let mut letters = part.chars();
        let may_begin = |c: char| c.is_alphabetic() || c == '_' || !c.is_ascii();
        letters.next().is_some_and(may_begin)
            && letters.all(|c| may_begin(c) || c.is_ascii_digit() || c == '$')
    };
    name.contains('.') && name.split('.').all(is_simple)
}

/// What of a name that is none of a setting's can be said.
#[cold]
pub(super) fn unknown(name: &str) -> SqlError {
    match name.contains('.') {
        true => SqlError::new(
            "42602",
            format!("invalid configuration parameter name \"{name}\""),
        )
        .with_detail(
            "Custom parameter names must be two or more simple identifiers separated by dots.",
        ),
        false => unrecognized(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_names_are_simple_names_with_points() {
        for name in ["app.user_id", "a.b.c", "_x.y1$", "ä.ö"] {
            assert!(is_custom(name), "{name}");
        }
        for name in ["app", "app.bad-name", "a.", ".b", "a.1b", "a. b", "a..b"] {
            assert!(!is_custom(name), "{name}");
        }
        assert_eq!(unknown("app.bad-name").sqlstate, "42602");
        assert_eq!(unknown("nothing").sqlstate, "42704");
    }
}
