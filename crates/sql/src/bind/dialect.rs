//! Clauses of PostgreSQL that the parser does not know, told to it in words
//! that it does. Works on the tokens of one statement, without blanks, before
//! they are parsed; the tokens keep their places, so errors point where the
//! client wrote.

use sqlparser::tokenizer::{Token, TokenWithSpan};

fn is_word(token: Option<&TokenWithSpan>, wanted: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn are_words(tokens: &[TokenWithSpan], wanted: &[&str]) -> bool {
    wanted
        .iter()
        .enumerate()
        .all(|(at, word)| is_word(tokens.get(at), word))
}

/// Rewrites
/// - `FOR NO KEY UPDATE` to `FOR UPDATE` and `FOR KEY SHARE` to `FOR SHARE`,
///   which lock at least as much,
/// - `FOR UPDATE … LIMIT 1` to `LIMIT 1 FOR UPDATE …`,
/// - `trim(BOTH FROM x)` to `trim(BOTH ' ' FROM x)`.
pub fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if are_words(&tokens[at..], &["for", "no", "key", "update"]) {
            tokens.drain(at + 1..at + 3);
        } else if are_words(&tokens[at..], &["for", "key", "share"]) {
            tokens.remove(at + 1);
        }
        let rest = &tokens[at..];
        if let Some((locks, limits)) = limits_behind_locks(rest) {
            tokens[at..at + locks + limits].rotate_left(locks);
        } else if is_word(rest.first(), "trim")
            && matches!(rest.get(1), Some(next) if next.token == Token::LParen)
            && ["both", "leading", "trailing"]
                .iter()
                .any(|side| are_words(&rest[2..], &[side, "from"]))
        {
            let span = rest[3].span;
            let blank = Token::SingleQuotedString(" ".to_owned());
            tokens.insert(at + 3, TokenWithSpan::new(blank, span));
        }
        at += 1;
    }
}

/// A row lock with limits behind it: how many tokens each of the two has.
fn limits_behind_locks(tokens: &[TokenWithSpan]) -> Option<(usize, usize)> {
    if !are_words(tokens, &["for", "update"]) && !are_words(tokens, &["for", "share"]) {
        return None;
    }
    let is_limit = |token: Option<&TokenWithSpan>| {
        let words = ["limit", "offset", "fetch"];
        words.iter().any(|word| is_word(token, word))
    };
    let ends = |token: &TokenWithSpan| match token.token {
        Token::RParen => Some(true),
        Token::SemiColon | Token::EOF => Some(false),
        _ => None,
    };
    let mut depth = 0_usize;
    let mut locks = None;
    for (at, token) in tokens.iter().enumerate() {
        match (ends(token), depth) {
            (Some(false), _) | (Some(true), 0) => return locks.map(|locks| (locks, at - locks)),
            (Some(true), _) => depth -= 1,
            (None, _) if token.token == Token::LParen => depth += 1,
            (None, 0) if locks.is_none() && is_limit(Some(token)) => locks = Some(at),
            (None, 0) if locks.is_some() => {
                let others = ["for", "returning", "on", "union", "intersect", "except"];
                if others.iter().any(|word| is_word(Some(token), word)) {
                    return locks.map(|locks| (locks, at - locks));
                }
            }
            (None, _) => {}
        }
    }
    locks.map(|locks| (locks, tokens.len() - locks))
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn rewritten(sql: &str) -> String {
        let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
            .tokenize_with_location()
            .expect("tokens");
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
        rewrite(&mut tokens);
        let words: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
        words.join(" ")
    }

    #[test]
    fn clauses_become_ones_the_parser_knows() {
        assert_eq!(
            rewritten("select 1 from t for no key update"),
            "select 1 from t for update"
        );
        assert_eq!(
            rewritten(
                "select (select a from t for no key update skip locked limit (1) offset 2) b"
            ),
            "select ( select a from t limit ( 1 ) offset 2 for update skip locked ) b"
        );
        assert_eq!(
            rewritten("select a from t for share of t offset 1; select 1 limit 1"),
            "select a from t offset 1 for share of t ; select 1 limit 1"
        );
        assert_eq!(
            rewritten("select 1 from t for key share"),
            "select 1 from t for share"
        );
        assert_eq!(
            rewritten("select trim(both from x), trim(leading 'a' from x)"),
            "select trim ( both ' ' from x ) , trim ( leading 'a' from x )"
        );
    }

    #[test]
    fn names_and_texts_stay() {
        for sql in [
            "select both , no from trim",
            "select 'for no key update' , \"trim\"",
        ] {
            assert_eq!(rewritten(sql), sql);
        }
    }
}
