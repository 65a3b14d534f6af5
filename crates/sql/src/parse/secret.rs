//! Whether a text may be shown: in logs, in views. Passwords stand in CREATE and ALTER ROLE as
//! string literals after the word PASSWORD. The text alone is looked at, so that one which
//! does not parse, or stops in the middle, gives nothing away either.

/// What is shown in place of a text with a password in it.
pub(crate) const HIDDEN_TEXT: &str = "<a command with a password>";

const WORD: &[u8] = b"password";

/// Whether a literal follows the word PASSWORD, or may: a comment or a prefix of a literal
/// between them counts. `was_parsed` says that the text is SQL; one that is not is not shown
/// with that word and a command about roles in it.
pub(crate) fn has_password(text: &str, was_parsed: bool) -> bool {
    let bytes = text.as_bytes();
    let mut places = places(bytes, WORD).peekable();
    if places.peek().is_none() {
        return false;
    }
    let about_roles = || {
        let is_there = |word: &[u8]| self::places(bytes, word).next().is_some();
        is_there(b"role") || is_there(b"user") || is_there(b"group")
    };
    if !was_parsed && about_roles() {
        return true;
    }
    places.any(|at| literal_follows(&bytes[at + WORD.len()..]))
}

fn literal_follows(rest: &[u8]) -> bool {
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    match &rest[blanks.count()..] {
        [b'\'' | b'$' | b'-' | b'/', ..] => true,
        // Characters that are blanks to nobody but a parser of Unicode.
        [first, ..] if !first.is_ascii() => true,
        [
            b'e' | b'E' | b'n' | b'N' | b'b' | b'B' | b'x' | b'X',
            b'\'',
            ..,
        ] => true,
        [b'u' | b'U', b'&', ..] => true,
        _ => false,
    }
}

/// Where `word`, in lower case, stands in `text` in any case; also inside longer words.
fn places<'a>(text: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    text.windows(word.len())
        .enumerate()
        .filter(move |(_, there)| there.eq_ignore_ascii_case(word))
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    #[test]
    fn passwords_are_seen_however_they_are_written() {
        for text in [
            "create role a password 'x'",
            "CREATE USER a LOGIN ENCRYPTED PASSWORD 'x' VALID UNTIL 'infinity'",
            "alter role a password'x'",
            "alter role a password\n\t E'x'",
            "alter role a password U&'x'",
            "alter role a with password $$x$$",
            "alter role a password $q$x$q$",
            "alter role a password /* here */ 'x'",
            "alter role a password -- here\n 'x'",
            "select 1; alter user a paSSwoRd 'x'; select 2",
            // Not whole, or no SQL.
            "alter role a password 'x",
        ] {
            assert!(has_password(text, true), "{text}");
            assert!(has_password(text, false), "{text}");
        }
        for text in [
            "alter role a password secret",
            "alter role a pasword 'x' password",
            "create user a password \"x\"",
        ] {
            assert!(has_password(text, false), "{text}");
        }
        for text in [
            "select password from people where password = 'x'",
            "insert into people (name, password) values ('a', 'b')",
            "alter role a login",
            "select 'the password is'",
            "",
        ] {
            assert!(!has_password(text, true), "{text}");
        }
        // The quote may be the end of a literal as well: what is in doubt is not shown.
        assert!(has_password("select 'the password'", true));
    }

    /// What the parser takes for a secret is one here.
    #[test]
    fn no_text_is_shown_that_the_parser_calls_secret() {
        let blanks = [
            " ",
            "\t",
            "\n",
            " /* a */ ",
            "--a\n",
            "/**/",
            "\u{a0}",
            "\u{c}",
        ];
        let literals = [
            "'x'", "E'x'", "U&'x'", "$$x$$", "$a$x$a$", "N'x'", "e'\\x41'",
        ];
        let mut secrets = 0;
        for blank in blanks {
            for literal in literals {
                for head in [
                    "create role a",
                    "alter user a with encrypted",
                    "create group a",
                ] {
                    let text = format!("{head} password{blank}{literal}");
                    let secret = parse(&text)
                        .is_ok_and(|statements| statements.iter().any(Statement::is_secret));
                    secrets += u32::from(secret);
                    assert!(!secret || has_password(&text, true), "{text}");
                }
            }
        }
        assert!(secrets > 50, "{secrets}");
    }
}
