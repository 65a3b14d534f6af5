//! COMMENT ON.

use super::statement::{Comment, CommentObject, Ddl, Statement};
use super::tokens::Tokens;
use crate::error::{Result, SqlError};

pub(super) fn comment(tokens: &mut Tokens<'_>) -> Result<Statement> {
    tokens.expect_keyword("on")?;
    let object = if let Some(kind) = tokens.one_of(&["table", "view", "index", "sequence"]) {
        let name = tokens.qualified_name()?;
        CommentObject::Relation { kind, name }
    } else if tokens.keyword("column") {
        let mut relation = tokens.qualified_name()?;
        match relation.pop() {
            Some(column) if !relation.is_empty() => CommentObject::Column { relation, column },
            _ => return Err(SqlError::syntax("column name must be qualified")),
        }
    } else if tokens.keyword("constraint") {
        let name = tokens.identifier()?;
        tokens.expect_keyword("on")?;
        if tokens.keyword("domain") {
            return Err(SqlError::unsupported(
                "COMMENT ON CONSTRAINT of a domain is not supported",
                "Comment on the domain itself.",
            ));
        }
        let table = tokens.qualified_name()?;
        CommentObject::Constraint { name, table }
    } else if tokens.keyword("schema") {
        CommentObject::Schema(tokens.identifier()?)
    } else if tokens.one_of(&["type", "domain"]).is_some() {
        CommentObject::Type(tokens.qualified_name()?)
    } else if tokens.keyword("role") {
        CommentObject::Role(tokens.identifier()?)
    } else if tokens.keyword("database") {
        CommentObject::Database(tokens.identifier()?)
    } else {
        let kind = tokens.rest().first().map(|token| token.token.to_string());
        let kind = kind.unwrap_or_default().to_uppercase();
        return Err(SqlError::unsupported(
            format!("COMMENT ON {kind} is not supported"),
            "Comment on a table, column, view, index, sequence, constraint, schema, type, role or the database.",
        ));
    };
    tokens.expect_keyword("is")?;
    let text = match tokens.keyword("null") {
        true => None,
        false => Some(tokens.string()?),
    };
    tokens.end()?;
    Ok(Statement::Ddl(Ddl::Comment(Comment { object, text })))
}
