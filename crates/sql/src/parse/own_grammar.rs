//! Queries and changes that sqlparser does not take: PostgreSQL's own grammar has the last word on them.
//! What only that takes is kept as its text, for the analysis.

use pg_raw_parse::Node;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use thermocline_query::parse::parse;

use super::depth;
use super::statement::Query;
use super::tokens::tokenize;
use crate::error::{Result, SqlError};
use crate::typed::positioned;

/// Whether a statement begins as a query or a change of rows does.
pub(super) fn is_query(tokens: &[TokenWithSpan]) -> bool {
    let mut tokens = tokens.iter().map(|token| &token.token);
    match tokens.find(|token| **token != Token::LParen) {
        Some(Token::Word(word)) if word.quote_style.is_none() => {
            ["select", "with", "values", "insert", "update", "delete"]
                .iter()
                .any(|begin| word.value.eq_ignore_ascii_case(begin))
        }
        _ => false,
    }
}

/// Where a statement begins and ends in its text.
pub(super) fn extent(tokens: &[TokenWithSpan]) -> Option<(Location, Location)> {
    Some((tokens.first()?.span.start, tokens.last()?.span.end))
}

/// The query between these places of a text, and how deep it is.
///
/// # Errors
/// 42601 and 54001 of PostgreSQL's grammar.
pub(super) fn query(sql: &str, extent: Option<(Location, Location)>) -> Result<(Query, u32)> {
    let (start, text) =
        slice(sql, extent).ok_or_else(|| SqlError::syntax("a statement without its text"))?;
    let depth = depth::shape(text, &tokenize(text)?)?.depth;
    let parsed = parse(text).map_err(|error| {
        let before = u32::try_from(sql[..start].chars().count()).unwrap_or(0);
        let mut error = positioned(error, text);
        error.position = error.position.map(|position| position + before);
        error
    })?;
    let mut statements = parsed.statements().stmts();
    match (statements.next(), statements.next()) {
        (Some(Node::SelectStmt(_)), None) => Ok((Query::Text(text.into()), depth)),
        (Some(Node::InsertStmt(_) | Node::UpdateStmt(_) | Node::DeleteStmt(_)), None) => {
            Ok((Query::Change(text.into()), depth))
        }
        _ => Err(SqlError::unsupported("this statement is not supported")),
    }
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
