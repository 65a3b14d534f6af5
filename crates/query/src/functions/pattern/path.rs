//! The patterns of `like_regex` in paths, which have flags of their own.

use super::regex::Flags;
use super::regexp::with_regex;
use crate::call::Call;
use crate::error::Result;

/// The flags of a pattern in a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are letters in the text of a path"
)]
pub(crate) struct PathFlags {
    /// `i`
    pub any_case: bool,
    /// `s`
    pub dot_all: bool,
    /// `m`
    pub multi_line: bool,
    /// `q`
    pub quote: bool,
}

impl PathFlags {
    const fn flags(self) -> Flags {
        Flags {
            extended: !self.quote,
            advanced: !self.quote,
            quote: self.quote,
            any_case: self.any_case,
            expanded: false,
            newline_stops: !self.dot_all && !self.quote,
            newline_anchors: self.multi_line && !self.quote,
        }
    }
}

/// Reads a pattern, to see whether it is one.
///
/// # Errors
/// 2201B where it is none.
pub(crate) fn check_path_pattern(pattern: &str, flags: PathFlags) -> Result<()> {
    with_regex(pattern, flags.flags(), |_| Ok(()))
}

/// Whether a text has a match.
///
/// # Errors
/// As those of regular expressions.
pub(crate) fn matches_path_pattern(
    call: &Call<'_>,
    pattern: &str,
    flags: PathFlags,
    text: &str,
) -> Result<bool> {
    with_regex(pattern, flags.flags(), |regex| regex.is_match(call, text))
}
