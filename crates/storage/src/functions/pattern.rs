//! `LIKE` and `ILIKE`. Time is at most the product of the lengths, whatever
//! the pattern; no allocation but for `ILIKE`.

use crate::value_error::ValueError;

/// Whether a text matches a pattern of `%`, `_` and characters that stand for
/// themselves, as every character does after the escape.
///
/// # Errors
/// 22025 when the pattern ends with the escape character.
pub fn like_match(
    pattern: &str,
    text: &str,
    escape: Option<char>,
    case_insensitive: bool,
) -> Result<bool, ValueError> {
    if case_insensitive {
        let escape = escape.map(|escape| escape.to_lowercase().next().unwrap_or(escape));
        matches(&pattern.to_lowercase(), &text.to_lowercase(), escape)
    } else {
        matches(pattern, text, escape)
    }
}

fn matches(mut pattern: &str, mut text: &str, escape: Option<char>) -> Result<bool, ValueError> {
    // What to try next if the match fails: after the last `%`, one character on.
    let mut retry: Option<(&str, &str)> = None;
    loop {
        let mut rest = pattern.chars();
        let advanced = match rest.next() {
            None if text.is_empty() => return Ok(true),
            None => None,
            Some(first) if Some(first) == escape => {
                let literal = rest.next().ok_or_else(|| {
                    ValueError::new("22025", "LIKE pattern must not end with escape character")
                })?;
                text.strip_prefix(literal)
            }
            Some('%') => {
                pattern = rest.as_str();
                if pattern.is_empty() {
                    return Ok(true);
                }
                retry = Some((pattern, text));
                continue;
            }
            Some('_') => without_first(text),
            Some(literal) => text.strip_prefix(literal),
        };
        if let Some(advanced) = advanced {
            (pattern, text) = (rest.as_str(), advanced);
            continue;
        }
        match retry.and_then(|(pattern, text)| Some((pattern, without_first(text)?))) {
            Some(next) => {
                retry = Some(next);
                (pattern, text) = next;
            }
            None => return Ok(false),
        }
    }
}

/// The text after its first character, if it has one.
fn without_first(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    characters.next()?;
    Some(characters.as_str())
}
