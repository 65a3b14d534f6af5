//! Parts of a statement that are kept as the client wrote them: the query within another command.
//! Its tree does not say where it begins and ends, its tokens do.

use std::borrow::Cow;

use super::scan::{Token, Tokens};

/// A token and where it begins.
#[derive(Clone, Copy)]
struct Placed<'a> {
    token: Token<'a>,
    from: usize,
    /// How many parentheses are open before it.
    depth: usize,
}

fn placed(text: &str) -> impl Iterator<Item = Placed<'_>> {
    let mut tokens = Tokens::new(text);
    let mut depth = 0usize;
    std::iter::from_fn(move || {
        let token = tokens.next()?;
        let from = tokens.at() - token.text().len();
        if matches!(token, Token::Symbol(")" | "]")) {
            depth = depth.saturating_sub(1);
        }
        let placed = Placed { token, from, depth };
        if matches!(token, Token::Symbol("(" | "[")) {
            depth += 1;
        }
        Some(placed)
    })
}

/// A statement with its options as PostgreSQL's grammar has them: `partition_key = (a, b)` is
/// `partition_key = 'a, b'`, which is as long, and `USING column`, a keyword, is `USING columns`.
pub(super) fn with_own_options(text: &str) -> Cow<'_, str> {
    let mut tokens = placed(text);
    let is_of_table = tokens.next().is_some_and(|first| {
        ["create", "alter"]
            .iter()
            .any(|word| first.token.is_word(word))
    });
    if !is_of_table {
        return Cow::Borrowed(text);
    }
    let mut owned = Cow::Borrowed(text);
    let mut column = None;
    let mut tokens = tokens.peekable();
    while let Some(option) = tokens.next() {
        if option.token.is_word("using")
            && let Some(method) = tokens.next_if(|next| next.token.is_word("column"))
        {
            column = Some(method.from + method.token.text().len());
            continue;
        }
        if !option.token.is_word("partition_key")
            || !tokens.next().is_some_and(|next| next.token.is_symbol("="))
        {
            continue;
        }
        let Some(open) = tokens.next().filter(|open| open.token.is_symbol("(")) else {
            continue;
        };
        let closes =
            |placed: &Placed<'_>| placed.depth == open.depth && placed.token.is_symbol(")");
        let Some(close) = tokens.find(closes) else {
            break;
        };
        let inner = &text[open.from + 1..close.from];
        if !inner.contains('\'') {
            let columns = format!("'{}'", folded(inner));
            owned
                .to_mut()
                .replace_range(open.from..=close.from, &columns);
        }
    }
    if let Some(end) = column {
        owned.to_mut().insert(end, 's');
    }
    owned
}

/// Names outside of quotes in lower case.
fn folded(names: &str) -> String {
    let mut quoted = false;
    let fold = |character: char| {
        quoted ^= character == '"';
        match quoted {
            true => character,
            false => character.to_ascii_lowercase(),
        }
    };
    names.chars().map(fold).collect()
}

/// The end of the last token of a text that is no semicolon.
fn end(text: &str) -> usize {
    let mut end = 0;
    for placed in placed(text) {
        if !placed.token.is_symbol(";") {
            end = placed.from + placed.token.text().len();
        }
    }
    end
}

/// What follows the first word like this that stands in no parentheses, and where it begins.
pub(super) fn behind<'a>(text: &'a str, word: &str) -> Option<(usize, &'a str)> {
    let mut tokens = placed(text);
    tokens.find(|placed| placed.depth == 0 && placed.token.is_word(word))?;
    let from = tokens.next()?.from;
    Some((from, text.get(from..end(text))?))
}

/// A text without these words at its end, if it ends with them.
pub(super) fn without_end<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let mut rest = text.trim_end();
    for word in words.iter().rev() {
        let at = rest.len().checked_sub(word.len())?;
        let (before, last) = (rest.get(..at)?, rest.get(at..)?);
        let blank = before.ends_with(|character: char| {
            character.is_ascii_whitespace() || matches!(character, ')' | '"' | '\'')
        });
        if !last.eq_ignore_ascii_case(word) || !blank {
            return None;
        }
        rest = before.trim_end();
    }
    Some(rest)
}

/// The INTO of a SELECT up to the end of the name of its table, which begins at this byte.
pub(super) fn into_clause(text: &str, name: usize) -> Option<(usize, usize)> {
    let before = placed(text).take_while(|placed| placed.from < name);
    let mut intos = before.filter(|placed| placed.token.is_word("into"));
    let into = intos.by_ref().last()?.from;
    let mut tokens = placed(text.get(name..)?).peekable();
    let mut last = tokens.next()?;
    while tokens
        .next_if(|placed| placed.token.is_symbol("."))
        .is_some()
    {
        last = tokens.next()?;
    }
    Some((into, name + last.from + last.token.text().len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_parentheses_are_a_string_as_long() {
        for (text, grammars) in [
            (
                "create table t (A int) with (partition_key = (B, \"C\"), evictable = off)",
                "create table t (A int) with (partition_key = 'b, \"C\"', evictable = off)",
            ),
            (
                "create table t (partition_key int)",
                "create table t (partition_key int)",
            ),
            (
                "create table t (a int) USING column with (partition_key = (A))",
                "create table t (a int) USING columns with (partition_key = 'a')",
            ),
            (
                "select 1 where partition_key = (1)",
                "select 1 where partition_key = (1)",
            ),
            (
                "create table t (a int) with (partition_key = (a",
                "create table t (a int) with (partition_key = (a",
            ),
        ] {
            assert_eq!(with_own_options(text), grammars);
        }
    }

    #[test]
    fn the_query_of_a_command_is_found() {
        for (text, query) in [
            ("create view \"as\" (a, b) as select 'as' ; ", "select 'as'"),
            (
                "create table t as (select 1) with no data",
                "(select 1) with no data",
            ),
        ] {
            assert_eq!(behind(text, "as").map(|(_, text)| text), Some(query));
        }
        let cut = |text, words: &[&str]| without_end(text, words).map(str::to_owned);
        assert_eq!(
            cut("(select 1) with no data", &["with", "no", "data"]).as_deref(),
            Some("(select 1)")
        );
        assert_eq!(
            cut("(select 1)WITH  DATA", &["with", "data"]).as_deref(),
            Some("(select 1)")
        );
        assert_eq!(cut("select no_data", &["with", "data"]), None);
        let text = "select 1 as a, (select 2) INTO unlogged s . \"t 1\" from b";
        let name = text.find("s .").unwrap();
        let (from, to) = into_clause(text, name).unwrap();
        assert_eq!(&text[from..to], "INTO unlogged s . \"t 1\"");
    }
}
