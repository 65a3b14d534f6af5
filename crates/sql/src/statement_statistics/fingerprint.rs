//! What makes two statements the same: their tokens, whatever their constants, blanks, comments
//! and the case of their words. A number of these tokens is the `queryid`; the text with `$n` for
//! its constants is what is shown, bounded.
//!
//! One pass over the text, without allocation for the number. It knows PostgreSQL's tokens and
//! no grammar: constants in type modifiers (`varchar(10)`) are constants here, TRUE, FALSE and
//! NULL are words.

use std::hash::Hasher;

use xxhash_rust::xxh3::Xxh3Default;

use crate::parse::scan::{Token, Tokens};

/// The most of a text that is kept, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 2 << 10;

/// Words after which a minus is a constant's sign.
const BEFORE_SIGNS: [&str; 20] = [
    "select",
    "where",
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "then",
    "else",
    "when",
    "case",
    "values",
    "returning",
    "limit",
    "offset",
    "by",
    "on",
    "having",
    "set",
];

/// Whether a minus after `before` is a sign.
fn signs(before: Option<Token<'_>>) -> bool {
    match before {
        None => true,
        Some(Token::Symbol(symbol)) => !matches!(symbol, ")" | "]"),
        Some(Token::Word(word)) => BEFORE_SIGNS
            .iter()
            .any(|keyword| keyword.eq_ignore_ascii_case(word)),
        Some(_) => false,
    }
}

/// The number of a statement: never 0.
pub(super) fn query_id(statement: &str) -> i64 {
    let mut hash = Xxh3Default::new();
    let mut before = None;
    let mut sign = false;
    for token in Tokens::new(statement) {
        if token == Token::Symbol(";") {
            continue;
        }
        if sign && !matches!(token, Token::Constant(_)) {
            hash.write(b"\x03-");
        }
        sign = token == Token::Symbol("-") && signs(before);
        if !sign {
            add(&mut hash, token);
        }
        before = Some(token);
    }
    match hash.digest() as i64 {
        0 => 1,
        id => id,
    }
}

fn add(hash: &mut Xxh3Default, token: Token<'_>) {
    let (kind, text) = match token {
        Token::Word(text) => (1, text),
        // As the word in lower case that it is the same as.
        Token::Quoted(text) => (1, text.trim_matches('"')),
        Token::Constant(_) => (2, ""),
        Token::Symbol(text) => (3, text),
        Token::Parameter(text) => (4, text),
    };
    hash.write(&[kind]);
    if !matches!(token, Token::Word(_)) {
        hash.write(text.as_bytes());
        return;
    }
    let mut folded = [0; 64];
    for part in text.as_bytes().chunks(folded.len()) {
        let folded = &mut folded[..part.len()];
        folded.copy_from_slice(part);
        folded.make_ascii_lowercase();
        hash.write(folded);
    }
}

/// The text of a statement with `$n` for its constants, behind the parameters that it has;
/// blanks and comments are one blank.
pub(super) fn normalised(statement: &str) -> String {
    let parameters = Tokens::new(statement).filter_map(|token| match token {
        Token::Parameter(text) => text[1..].parse::<u32>().ok(),
        _ => None,
    });
    let mut last = parameters.max().unwrap_or(0);
    let mut text = String::with_capacity(statement.len().min(TEXT_BYTES_MAX) + 8);
    let mut tokens = Tokens::new(statement);
    let (mut before, mut end) = (None, 0);
    let mut sign_at = None;
    while let Some(token) = tokens.next() {
        let shown = token.text();
        let begin = tokens.at() - shown.len();
        if begin > end && !text.is_empty() {
            text.push(' ');
        }
        if let Token::Constant(_) = token {
            if let Some(at) = sign_at {
                text.truncate(at);
            }
            last = last.saturating_add(1);
            text.push('$');
            text.push_str(&last.to_string());
        }
        sign_at = (token == Token::Symbol("-") && signs(before)).then_some(text.len());
        if !matches!(token, Token::Constant(_)) {
            text.push_str(shown);
        }
        if text.len() > TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - 3));
            text.push_str("...");
            break;
        }
        before = Some(token);
        end = tokens.at();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_parameters() {
        for (statement, expected) in [
            ("select 1", "select $1"),
            (
                "select  a, 'x''y'  from t\nwhere b = 1.5e-3 -- c\n",
                "select a, $1 from t where b = $2",
            ),
            ("select $2, 7, $1", "select $2, $3, $1"),
            (
                "select -1, a - 1, (-1), a -1, - a",
                "select $1, a - $2, ($3), a -$4, - a",
            ),
            (
                "select E'a\\'b', U&'d', $$e$$, $q$ $$ $q$, x'1f', n'n'",
                "select $1, $2, $3, $4, $5, $6",
            ),
            (
                "select \"A 1\", a1, a$1, 0x1f, .5, 5. from \"t'\"",
                "select \"A 1\", a1, a$1, $1, $2, $3 from \"t'\"",
            ),
            ("select /* /* 1 */ 'x' */ 2", "select $1"),
            (
                "select a[1:2] from t where b->>'k' = any('{1,2}')",
                "select a[$1:$2] from t where b->>$3 = any($4)",
            ),
            ("select 'never ends", "select $1"),
            ("select $q$never ends", "select $1"),
            ("select /* never ends", "select"),
            ("alter role a password 'secret'", "alter role a password $1"),
            ("select 'ä', ü", "select $1, ü"),
            ("", ""),
        ] {
            assert_eq!(normalised(statement), expected, "{statement}");
        }
    }

    #[test]
    fn the_number_is_that_of_the_shape() {
        let same = [
            "select a, 1 from t where b = 'x'",
            "SELECT  A,2 FROM \"t\"\nwhere b='y''z' -- comment",
            "select a, -7 from t /* b */ where b = $$x$$",
        ];
        let id = query_id(same[0]);
        assert_ne!(id, 0);
        for statement in same {
            assert_eq!(query_id(statement), id, "{statement}");
        }
        for other in [
            "select a, 1 from t where b = $1",
            "select a, 1 from u where b = 'x'",
            "select a, 1 from \"T\" where b = 'x'",
            "select a from t where b = 'x'",
            "select a, 1 from t where b <> 'x'",
            "select a, 1, 1 from t where b = 'x'",
        ] {
            assert_ne!(query_id(other), id, "{other}");
        }
        // Words do not run into each other.
        assert_ne!(query_id("select ab c"), query_id("select a bc"));
        assert_ne!(query_id("select a - b"), query_id("select a b"));
    }

    #[test]
    fn an_end_is_no_part_of_a_statement() {
        assert_eq!(query_id("select ';' ;"), query_id("select 'x'"));
    }

    #[test]
    fn texts_are_bounded_and_no_text_is_too_odd() {
        let long = format!("select {} from ä{}", "a, ".repeat(10_000), "ü".repeat(5000));
        let shown = normalised(&long);
        assert!(shown.len() <= TEXT_BYTES_MAX && shown.ends_with("..."));
        let odd = [
            "$",
            "$$",
            "$a",
            "'",
            "E'\\",
            "\"",
            ".",
            "1e",
            "1e+",
            "/*",
            "--",
            "u&",
            "é$é$",
            "$é$x$é$",
            "\u{0}",
        ];
        for first in odd {
            for second in odd {
                let text = format!("{first}{second}");
                let _ = (query_id(&text), normalised(&text));
            }
        }
    }
}
