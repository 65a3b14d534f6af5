//! The patterns of `like_regex`.

use std::sync::Arc;

use crate::call::Call;
use crate::error::{QueryError, Result};
use crate::functions::{PathFlags, check_path_pattern, matches_path_pattern};

/// The letters of the flags, in the order in which they are shown.
const LETTERS: &str = "ismxq";

/// A pattern and its flags.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Arc<str>,
    letters: String,
    flags: PathFlags,
}

impl Pattern {
    /// A pattern.
    ///
    /// # Errors
    /// 42601 for an unknown flag, 0A000 for `x`, 2201B for what is no regular expression.
    pub fn new(text: Arc<str>, letters: &str) -> Result<Self> {
        if let Some(unknown) = letters.chars().find(|flag| !LETTERS.contains(*flag)) {
            return Err(
                QueryError::new("42601", "invalid input syntax for type jsonpath").with_detail(
                    format!("Unrecognized flag character \"{unknown}\" in LIKE_REGEX predicate."),
                ),
            );
        }
        let has = |flag| letters.contains(flag);
        if has('x') && !has('q') {
            return Err(QueryError::unsupported(
                "XQuery \"x\" flag (expanded regular expressions) is not implemented",
                "Leave the flag out.",
            ));
        }
        let flags = PathFlags {
            any_case: has('i'),
            dot_all: has('s'),
            multi_line: has('m'),
            quote: has('q'),
        };
        check_path_pattern(&text, flags)?;
        Ok(Self {
            text,
            letters: LETTERS.chars().filter(|flag| has(*flag)).collect(),
            flags,
        })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The flags, each once.
    #[must_use]
    pub fn flags(&self) -> &str {
        &self.letters
    }

    /// Whether a text has a match.
    ///
    /// # Errors
    /// As those of regular expressions.
    pub fn matches(&self, call: &Call<'_>, text: &str) -> Result<bool> {
        matches_path_pattern(call, &self.text, self.flags, text)
    }
}
