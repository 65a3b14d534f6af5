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

/// Rewrites `ALTER TABLE t RESET (a, b)` to `ALTER TABLE t SET (a = NULL, b = NULL)`.
fn reset_options(tokens: &mut Vec<TokenWithSpan>) {
    if !are_words(tokens, &["alter", "table"]) {
        return;
    }
    let mut at = 2;
    while at + 1 < tokens.len() {
        if !is_word(tokens.get(at), "reset") || tokens[at + 1].token != Token::LParen {
            at += 1;
            continue;
        }
        tokens[at].token = Token::make_keyword("SET");
        at += 2;
        while let Some(token) = tokens.get(at) {
            let is_end = token.token == Token::RParen;
            if is_end || token.token == Token::Comma {
                let span = token.span;
                let none = [Token::Eq, Token::make_keyword("NULL")];
                let none = none.map(|token| TokenWithSpan::new(token, span));
                tokens.splice(at..at, none);
                at += 2;
            }
            at += 1;
            if is_end {
                break;
            }
        }
    }
}

/// Rewrites `trim(BOTH FROM x)` to `trim(BOTH ' ' FROM x)`, and RESET of a table's options.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    reset_options(tokens);
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
        assert_eq!(
            rewritten("alter table only t reset (a, b), reset (c)"),
            "alter table only t SET ( a = NULL , b = NULL ) , SET ( c = NULL )"
        );
    }

    #[test]
    fn names_and_texts_stay() {
        for sql in [
            "select both , no from trim",
            "select 'both from' , \"trim\"",
            "alter role a reset ( b )",
            "alter table reset rename reset to b",
        ] {
            assert_eq!(rewritten(sql), sql);
        }
    }
}
