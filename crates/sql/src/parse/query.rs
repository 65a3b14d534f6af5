//! Queries and changes of rows: they are kept as their texts and trees, for the analysis.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::SelectStmt;
use thermocline_query::parse::written;

use super::statement::Query;
use crate::error::{Result, SqlError};

/// Whether a statement changes rows; 0A000 for what is no query here.
pub(super) fn changes(node: Node<'_>) -> Result<bool> {
    match node {
        Node::InsertStmt(_) | Node::UpdateStmt(_) | Node::DeleteStmt(_) | Node::MergeStmt(_) => {
            Ok(true)
        }
        Node::SelectStmt(select) => Ok(select.with_clause().is_some_and(|with| {
            let mut list = with.ctes().iter();
            list.any(|common| !matches!(common.ctequery(), Node::SelectStmt(_)))
        })),
        _ => Err(SqlError::internal("a query that is none")),
    }
}

/// The whole statement of a text.
pub(super) fn alone(node: Node<'_>, text: &str) -> Result<Query> {
    let changes = changes(node)?;
    let is_end = |character: char| character == ';' || character.is_ascii_whitespace();
    let own = text.trim_start().trim_end_matches(is_end);
    Ok(Query::new(own, changes))
}

/// A query within another command, which is called this.
///
/// # Errors
/// 0A000 for SELECT INTO.
pub(super) fn within(node: Node<'_>, command: &str) -> Result<Query> {
    if let Node::SelectStmt(select) = node
        && leftmost(select).into_clause().is_some()
    {
        return Err(SqlError::unsupported(
            format!("SELECT INTO within {command} is not supported"),
            "Use SELECT INTO, or CREATE TABLE AS, as a statement of its own.",
        ));
    }
    let changes = changes(node)?;
    Ok(Query::new(&written::statement(node)?, changes))
}

/// The first SELECT of a set operation, which has its INTO.
pub(super) fn leftmost(mut select: &SelectStmt) -> &SelectStmt {
    while let Some(left) = select.larg() {
        select = left;
    }
    select
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
