//! COMMENT ON.

use pg_raw_parse::nodes::{CommentStmt, ObjectType};

use super::grant::function_named;
use super::node;
use super::statement::{Comment, CommentObject, Ddl, Statement};
use crate::error::{Result, SqlError};

pub(super) fn comment(statement: &CommentStmt) -> Result<Statement> {
    let mut name = node::name(statement.object());
    let relation = |kind, name| CommentObject::Relation { kind, name };
    let last = |name: &mut Vec<String>| name.pop().unwrap_or_default();
    let routine = |kind| {
        let named = function_named(statement.object())?;
        Ok::<_, SqlError>(CommentObject::Routine(kind, named))
    };
    let object = match statement.objtype {
        ObjectType::OBJECT_TABLE => relation("table", name),
        ObjectType::OBJECT_VIEW => relation("view", name),
        ObjectType::OBJECT_MATVIEW => relation("materialized view", name),
        ObjectType::OBJECT_INDEX => relation("index", name),
        ObjectType::OBJECT_SEQUENCE => relation("sequence", name),
        ObjectType::OBJECT_COLUMN => {
            let column = last(&mut name);
            if name.is_empty() {
                return Err(SqlError::syntax("column name must be qualified"));
            }
            CommentObject::Column {
                relation: name,
                column,
            }
        }
        ObjectType::OBJECT_TABCONSTRAINT => CommentObject::Constraint {
            name: last(&mut name),
            table: name,
        },
        ObjectType::OBJECT_TRIGGER => CommentObject::Trigger {
            name: last(&mut name),
            table: name,
        },
        ObjectType::OBJECT_FUNCTION => routine('f')?,
        ObjectType::OBJECT_PROCEDURE => routine('p')?,
        ObjectType::OBJECT_ROUTINE => routine('r')?,
        ObjectType::OBJECT_SCHEMA => CommentObject::Schema(last(&mut name)),
        ObjectType::OBJECT_TYPE | ObjectType::OBJECT_DOMAIN => CommentObject::Type(name),
        // What a dump says of an extension is known.
        ObjectType::OBJECT_EXTENSION => {
            return super::extension::unchanged("COMMENT", &last(&mut name));
        }
        ObjectType::OBJECT_ROLE => CommentObject::Role(last(&mut name)),
        ObjectType::OBJECT_DATABASE => CommentObject::Database(last(&mut name)),
        other => {
            let kind = kind_of(other);
            let message = format!("COMMENT ON {kind} is not supported");
            return Err(SqlError::unsupported(message, "Leave the comment out."));
        }
    };
    let text = statement.comment().map(str::to_owned);
    Ok(Statement::Ddl(Ddl::Comment(Comment { object, text })))
}

/// What a kind of object is called in commands.
pub(super) const fn kind_of(kind: ObjectType::Type) -> &'static str {
    match kind {
        ObjectType::OBJECT_ACCESS_METHOD => "ACCESS METHOD",
        ObjectType::OBJECT_AGGREGATE => "AGGREGATE",
        ObjectType::OBJECT_CAST => "CAST",
        ObjectType::OBJECT_COLLATION => "COLLATION",
        ObjectType::OBJECT_CONVERSION => "CONVERSION",
        ObjectType::OBJECT_DATABASE => "DATABASE",
        ObjectType::OBJECT_DOMAIN => "DOMAIN",
        ObjectType::OBJECT_DOMCONSTRAINT => "CONSTRAINT OF A DOMAIN",
        ObjectType::OBJECT_EVENT_TRIGGER => "EVENT TRIGGER",
        ObjectType::OBJECT_EXTENSION => "EXTENSION",
        ObjectType::OBJECT_FDW => "FOREIGN DATA WRAPPER",
        ObjectType::OBJECT_FOREIGN_SERVER => "SERVER",
        ObjectType::OBJECT_FOREIGN_TABLE => "FOREIGN TABLE",
        ObjectType::OBJECT_FUNCTION => "FUNCTION",
        ObjectType::OBJECT_INDEX => "INDEX",
        ObjectType::OBJECT_LANGUAGE => "LANGUAGE",
        ObjectType::OBJECT_LARGEOBJECT => "LARGE OBJECT",
        ObjectType::OBJECT_MATVIEW => "MATERIALIZED VIEW",
        ObjectType::OBJECT_OPCLASS => "OPERATOR CLASS",
        ObjectType::OBJECT_OPERATOR => "OPERATOR",
        ObjectType::OBJECT_OPFAMILY => "OPERATOR FAMILY",
        ObjectType::OBJECT_POLICY => "POLICY",
        ObjectType::OBJECT_PROCEDURE => "PROCEDURE",
        ObjectType::OBJECT_PUBLICATION => "PUBLICATION",
        ObjectType::OBJECT_ROLE => "ROLE",
        ObjectType::OBJECT_ROUTINE => "ROUTINE",
        ObjectType::OBJECT_RULE => "RULE",
        ObjectType::OBJECT_SCHEMA => "SCHEMA",
        ObjectType::OBJECT_SEQUENCE => "SEQUENCE",
        ObjectType::OBJECT_STATISTIC_EXT => "STATISTICS",
        ObjectType::OBJECT_SUBSCRIPTION => "SUBSCRIPTION",
        ObjectType::OBJECT_TABLE => "TABLE",
        ObjectType::OBJECT_TABLESPACE => "TABLESPACE",
        ObjectType::OBJECT_TRANSFORM => "TRANSFORM",
        ObjectType::OBJECT_TRIGGER => "TRIGGER",
        ObjectType::OBJECT_TSCONFIGURATION => "TEXT SEARCH CONFIGURATION",
        ObjectType::OBJECT_TSDICTIONARY => "TEXT SEARCH DICTIONARY",
        ObjectType::OBJECT_TSPARSER => "TEXT SEARCH PARSER",
        ObjectType::OBJECT_TSTEMPLATE => "TEXT SEARCH TEMPLATE",
        ObjectType::OBJECT_TYPE => "TYPE",
        ObjectType::OBJECT_VIEW => "VIEW",
        _ => "OBJECT",
    }
}
