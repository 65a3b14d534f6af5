//! Changes of rows, and queries that sqlparser does not take: PostgreSQL's own grammar reads them.
//! They are kept as their texts, for the analysis.

use pg_raw_parse::Node;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use thermocline_query::parse::{Parsed, parse};

use super::depth;
use super::statement::{ChangeText, Query};
use super::tokens::tokenize;
use crate::error::{Result, SqlError};
use crate::typed::positioned;

/// Whether a statement begins as a query does.
pub(super) fn is_query(tokens: &[TokenWithSpan]) -> bool {
    let mut tokens = tokens.iter().map(|token| &token.token);
    match tokens.find(|token| **token != Token::LParen) {
        Some(Token::Word(word)) if word.quote_style.is_none() => ["select", "with", "values"]
            .iter()
            .any(|begin| word.value.eq_ignore_ascii_case(begin)),
        _ => false,
    }
}

/// Where a statement begins and ends in its text.
pub(super) fn extent(tokens: &[TokenWithSpan]) -> Option<(Location, Location)> {
    Some((tokens.first()?.span.start, tokens.last()?.span.end))
}

/// Whether a statement changes rows, or may do so in its WITH.
pub(super) fn may_change(tokens: &[TokenWithSpan]) -> bool {
    const CHANGES: [&str; 3] = ["insert", "update", "delete"];
    let is = |token: &TokenWithSpan, words: &[&str]| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => words
            .iter()
            .any(|begin| word.value.eq_ignore_ascii_case(begin)),
        _ => false,
    };
    let mut open = tokens.iter();
    match open.find(|token| token.token != Token::LParen) {
        Some(first) if is(first, &["with"]) => tokens.iter().any(|token| is(token, &CHANGES)),
        Some(first) => is(first, &CHANGES),
        None => false,
    }
}

/// A change of rows between these places of a text; `None` for a query that only reads.
///
/// # Errors
/// 42601 and 54001 of PostgreSQL's grammar.
pub(super) fn change(sql: &str, extent: Option<(Location, Location)>) -> Result<Option<Query>> {
    let (start, text, parsed) = parsed(sql, extent)?;
    if !is_change(&parsed) {
        return Ok(None);
    }
    // Places in it are those of the whole text.
    let tree = (start == 0).then_some(parsed);
    Ok(Some(Query::Change(ChangeText::new(text, tree))))
}

fn is_change(parsed: &Parsed) -> bool {
    let mut statements = parsed.statements().stmts();
    match statements.next() {
        Some(Node::InsertStmt(_) | Node::UpdateStmt(_) | Node::DeleteStmt(_)) => true,
        Some(Node::SelectStmt(select)) => select.with_clause().is_some_and(|with| {
            let mut list = with.ctes().iter();
            list.any(|common| !matches!(common.ctequery(), Node::SelectStmt(_)))
        }),
        _ => false,
    }
}

/// A query between these places of a text, and how deep it is.
///
/// # Errors
/// 42601 and 54001 of PostgreSQL's grammar.
pub(super) fn query(sql: &str, extent: Option<(Location, Location)>) -> Result<(Query, u32)> {
    let (_, text, parsed) = parsed(sql, extent)?;
    let mut statements = parsed.statements().stmts();
    match (statements.next(), statements.next()) {
        (Some(Node::SelectStmt(_)), None) => {
            let depth = depth::shape(text, &tokenize(text)?)?.depth;
            Ok((Query::Text(text.into()), depth))
        }
        _ => Err(SqlError::unsupported("this statement is not supported")),
    }
}

/// The tree of the text between two places, with where that begins.
fn parsed(sql: &str, extent: Option<(Location, Location)>) -> Result<(usize, &str, Parsed)> {
    let (start, text) =
        slice(sql, extent).ok_or_else(|| SqlError::syntax("a statement without its text"))?;
    let parsed = parse(text).map_err(|error| {
        let before = u32::try_from(sql[..start].chars().count()).unwrap_or(0);
        let mut error = positioned(error, text);
        error.position = error.position.map(|position| position + before);
        error
    })?;
    Ok((start, text, parsed))
}

/// The text between two places, and the byte at which it begins.
pub(super) fn slice(sql: &str, extent: Option<(Location, Location)>) -> Option<(usize, &str)> {
    let (start, end) = extent?;
    let (start, end) = (offset(sql, start)?, offset(sql, end)?);
    Some((start, sql.get(start..end)?))
}

/// The byte of a place, whose line and column (in characters) count from 1.
fn offset(sql: &str, place: Location) -> Option<usize> {
    let mut start = 0;
    for _ in 1..place.line {
        start += sql[start..].find('\n')? + 1;
    }
    let column = usize::try_from(place.column).ok()?.checked_sub(1)?;
    let line = &sql[start..];
    match line.char_indices().nth(column) {
        Some((at, _)) => Some(start + at),
        None => Some(sql.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Statement, parse};

    fn text_of(sql: &str, number: usize) -> String {
        let statements = parse(sql).unwrap();
        let Statement::Query(query) = &statements[number] else {
            panic!("{sql} is no query");
        };
        query.to_string()
    }

    #[test]
    fn what_only_postgresql_reads_is_kept_as_its_text() {
        let frame = "select sum(a) over (order by a groups between 1 preceding and current row \
                     exclude ties) from t";
        assert_eq!(text_of(frame, 0), frame);
        let several = format!("select 'é';\n select 1 ; {frame}  ;select 2");
        assert_eq!(text_of(&several, 2), frame);
    }

    #[test]
    fn errors_are_placed_in_the_whole_text() {
        let error = parse("select 1; select 'é' frm t x").unwrap_err();
        assert_eq!((error.sqlstate, error.position), ("42601", Some(26)));
        assert_eq!(error.message, "syntax error at or near \"t\"");
    }
}
