//! Queries and changes of rows: PostgreSQL's own grammar reads them. They are kept as their texts
//! and trees, for the analysis.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::SelectStmt;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use thermocline_query::parse::{Parsed, parse};

use super::statement::Query;
use crate::error::{Result, SqlError};
use crate::typed::positioned;

/// Whether a statement begins as a query or a change of rows does.
pub(super) fn is_query(tokens: &[TokenWithSpan]) -> bool {
    const FIRST: [&str; 7] = [
        "select", "with", "values", "insert", "update", "delete", "merge",
    ];
    let mut tokens = tokens.iter().map(|token| &token.token);
    match tokens.find(|token| **token != Token::LParen) {
        Some(Token::Word(word)) if word.quote_style.is_none() => FIRST
            .iter()
            .any(|begin| word.value.eq_ignore_ascii_case(begin)),
        _ => false,
    }
}

/// Where a statement begins and ends in its text.
pub(super) fn extent(tokens: &[TokenWithSpan]) -> Option<(Location, Location)> {
    Some((tokens.first()?.span.start, tokens.last()?.span.end))
}

/// What a query's text is.
pub(super) enum Read {
    /// A query or a change of rows.
    Query(Query),
    /// SELECT INTO.
    Into,
}

/// The query or change of rows between these places of a text.
///
/// # Errors
/// 42601 and 54001 of PostgreSQL's grammar.
pub(super) fn query(sql: &str, extent: Option<(Location, Location)>) -> Result<Read> {
    let (start, text, parsed) = parsed(sql, extent)?;
    let unsupported = || {
        let first = text.split_whitespace().next().unwrap_or_default();
        Err(SqlError::unsupported(
            format!("{} is not supported as a query", first.to_uppercase()),
            "Use SELECT, VALUES, INSERT, UPDATE or DELETE.",
        ))
    };
    let mut statements = parsed.statements().stmts();
    let changes = match (statements.next(), statements.next()) {
        (Some(Node::InsertStmt(_) | Node::UpdateStmt(_) | Node::DeleteStmt(_)), None) => true,
        (Some(Node::SelectStmt(select)), None) => {
            if leftmost(select).into_clause().is_some() {
                return Ok(Read::Into);
            }
            select.with_clause().is_some_and(|with| {
                let mut list = with.ctes().iter();
                list.any(|common| !matches!(common.ctequery(), Node::SelectStmt(_)))
            })
        }
        (Some(Node::MergeStmt(_)), _) => {
            return Err(SqlError::unsupported(
                "MERGE is not supported",
                "Use INSERT ... ON CONFLICT, UPDATE ... FROM or DELETE ... USING.",
            ));
        }
        _ => return unsupported(),
    };
    drop(statements);
    // Places in it are those of the whole text.
    let tree = (start == 0).then_some(parsed);
    Ok(Read::Query(Query::new(text, tree, changes)))
}

/// The first SELECT of a set operation, which has its INTO.
fn leftmost(mut select: &SelectStmt) -> &SelectStmt {
    while let Some(left) = select.larg() {
        select = left;
    }
    select
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
    fn a_query_is_kept_as_its_text() {
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
