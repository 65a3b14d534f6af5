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

/// Rewrites `trim(BOTH FROM x)` to `trim(BOTH ' ' FROM x)`.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if is_word(rest.first(), "trim")
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
            rewritten("select trim(both from x), trim(leading 'a' from x)"),
            "select trim ( both ' ' from x ) , trim ( leading 'a' from x )"
        );
    }

    #[test]
    fn names_and_texts_stay() {
        for sql in [
            "select both , no from trim",
            "select 'both from' , \"trim\"",
        ] {
            assert_eq!(rewritten(sql), sql);
        }
    }
}
