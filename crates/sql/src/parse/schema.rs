//! CREATE SCHEMA and ALTER … SET SCHEMA.

use pg_raw_parse::nodes::{AlterObjectSchemaStmt, CreateSchemaStmt, ObjectType};

use super::comment::kind_of;
use super::domain::{AlterDomain, DomainCommand};
use super::grant::{FunctionNamed, function_named};
use super::scan::{Token, Tokens};
use super::statement::{Ddl, Statement};
use super::trigger::TriggerCommand;
use super::user_type::{self, AlterType};
use super::view::ViewCommand;
use super::{characters, node, parse};
use crate::error::{Result, SqlError};

/// CREATE SCHEMA.
#[derive(Debug, Clone)]
pub struct CreateSchema {
    /// Its name.
    pub name: String,
    /// An existing one is left alone.
    pub if_not_exists: bool,
    /// AUTHORIZATION
    pub owner: Option<String>,
    /// What is made in it, in this order.
    pub elements: Vec<Ddl>,
}

/// ALTER … SET SCHEMA, of what is no type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSchema {
    /// What moves.
    pub moved: Moved,
    /// A missing one is left alone.
    pub if_exists: bool,
    /// Where to.
    pub schema: String,
}

/// What moves to another schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// A relation: how the statement calls it, and its name.
    Relation(MovedRelation, Vec<String>),
    /// A function, a procedure or either, by its letter: `f`, `p`, `r`.
    Routine(char, FunctionNamed),
}

/// What a statement calls the relation that it moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedRelation {
    /// A table, or whatever PostgreSQL calls one here: a view and a sequence, too.
    Table,
    /// A view.
    View,
    /// A materialized view.
    Materialized,
    /// A sequence.
    Sequence,
}

pub(super) fn set_schema(statement: &AlterObjectSchemaStmt) -> Result<Statement> {
    let schema = statement.newschema().unwrap_or_default().to_owned();
    let object = || node::name(statement.object());
    let relation = |kind| Moved::Relation(kind, node::relation(statement.relation()));
    let routine =
        |kind| Ok::<_, SqlError>(Moved::Routine(kind, function_named(statement.object())?));
    let moved = match statement.object_type {
        ObjectType::OBJECT_TABLE => relation(MovedRelation::Table),
        ObjectType::OBJECT_VIEW => relation(MovedRelation::View),
        ObjectType::OBJECT_MATVIEW => relation(MovedRelation::Materialized),
        ObjectType::OBJECT_SEQUENCE => relation(MovedRelation::Sequence),
        ObjectType::OBJECT_FUNCTION => routine('f')?,
        ObjectType::OBJECT_PROCEDURE => routine('p')?,
        ObjectType::OBJECT_ROUTINE => routine('r')?,
        ObjectType::OBJECT_TYPE => {
            return Ok(user_type::altered(object(), AlterType::Schema(schema)));
        }
        ObjectType::OBJECT_DOMAIN => {
            return Ok(Statement::Ddl(Ddl::Domain(DomainCommand::Alter {
                name: object(),
                change: AlterDomain::Schema(schema),
            })));
        }
        other => {
            let message = format!("ALTER {} ... SET SCHEMA is not supported", kind_of(other));
            return Err(SqlError::unsupported(
                message,
                "Tables, views, sequences, functions, procedures, types and domains can be moved.",
            ));
        }
    };
    Ok(Statement::Ddl(Ddl::SetSchema(SetSchema {
        moved,
        if_exists: statement.missing_ok,
        schema,
    })))
}

pub(super) fn create_schema(statement: &CreateSchemaStmt, text: &str) -> Result<Statement> {
    let count = statement.schema_elts().iter().count();
    if count > 0 && statement.if_not_exists {
        return Err(SqlError::unsupported(
            "CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
            "Write the definitions as statements of their own.",
        ));
    }
    let owner = statement.authrole().map(node::role);
    let named = statement.schemaname().map(str::to_owned);
    let name = named.or_else(|| owner.clone()).unwrap_or_default();
    Ok(Statement::Ddl(Ddl::CreateSchema(CreateSchema {
        elements: elements(text, count, &name)?,
        name,
        if_not_exists: statement.if_not_exists,
        owner,
    })))
}

/// The definitions within CREATE SCHEMA, of that schema, in the order in which they are made.
fn elements(text: &str, count: usize, schema: &str) -> Result<Vec<Ddl>> {
    let texts = element_texts(text);
    if texts.len() != count {
        return Err(SqlError::unsupported(
            "CREATE SCHEMA with these definitions is not supported",
            "Write the definitions as statements of their own.",
        ));
    }
    let mut made = Vec::with_capacity(count);
    for (before, text) in texts {
        let parsed = parse(text).map_err(|error| error.moved(before))?;
        for statement in parsed {
            let Statement::Ddl(mut element) = statement else {
                return Err(SqlError::internal(
                    "a schema's element that defines nothing",
                ));
            };
            let rank = element_rank(&mut element, schema, before)?;
            made.push((rank, element));
        }
    }
    // As PostgreSQL: so a view may stand before its tables.
    made.sort_by_key(|(rank, _)| *rank);
    Ok(made.into_iter().map(|(_, element)| element).collect())
}

/// Puts a definition into the schema, and says when it is made beside the others.
///
/// # Errors
/// 42P15 where it says that it is of another schema.
fn element_rank(element: &mut Ddl, schema: &str, before: u32) -> Result<u8> {
    Ok(match element {
        Ddl::CreateSequence(create) => {
            put_into(&mut create.name, schema)?;
            0
        }
        Ddl::CreateTable(create) => {
            put_into(&mut create.name, schema)?;
            1
        }
        Ddl::View(ViewCommand::Create(create)) => {
            put_into(&mut create.name, schema)?;
            create.before += before;
            2
        }
        Ddl::CreateIndex(create) => {
            if create.concurrently {
                let message = "CREATE INDEX CONCURRENTLY cannot run inside a transaction block";
                return Err(SqlError::new("25001", message));
            }
            put_into(&mut create.table, schema)?;
            3
        }
        Ddl::Trigger(TriggerCommand::Create(create)) => {
            put_into(&mut create.table, schema)?;
            4
        }
        Ddl::Grant(_) => 5,
        _ => return Err(SqlError::internal("a schema's element of another kind")),
    })
}

fn put_into(name: &mut Vec<String>, schema: &str) -> Result<()> {
    match name.as_slice() {
        [relation] => *name = vec![schema.to_owned(), relation.clone()],
        [.., other, _] if other != schema => {
            return Err(SqlError::new(
                "42P15",
                format!(
                    "CREATE specifies a schema ({other}) different from the one being created ({schema})"
                ),
            ));
        }
        _ => {}
    }
    Ok(())
}

/// The texts of the definitions, and how many characters stand before each. Both words that begin
/// one are reserved: elsewhere they stand behind a word that tells.
fn element_texts(text: &str) -> Vec<(u32, &str)> {
    let mut begins = Vec::new();
    let mut tokens = Tokens::new(text);
    let (mut open, mut last) = (0, None::<Token<'_>>);
    while let Some(token) = tokens.next() {
        if token.is_symbol("(") {
            open += 1;
        } else if token.is_symbol(")") {
            open -= 1;
        }
        let tells = last.is_some_and(|last| {
            let words = ["as", "with", "grant"].iter();
            let symbols = [".", ","].iter();
            words.clone().any(|word| last.is_word(word))
                || symbols.clone().any(|symbol| last.is_symbol(symbol))
        });
        let is_word = token.is_word("create") || token.is_word("grant");
        if open == 0 && is_word && !tells {
            begins.push(tokens.at() - token.text().len());
        }
        last = Some(token);
    }
    // The first is the schema's own.
    let ends = begins.iter().skip(2).copied().chain([text.len()]);
    let begins = begins.iter().skip(1).copied();
    begins
        .zip(ends)
        .map(|(from, to)| (characters(&text[..from]), &text[from..to]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schemas_definitions_are_told_by_their_words() {
        let text = "create schema s create table t (a text default 'create') \
                    create view v as select a as create, (select 1 as grant) from t \
                    grant create, select on v to r with grant option";
        let texts: Vec<&str> = element_texts(text)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(
            texts,
            [
                "create table t (a text default 'create') ",
                "create view v as select a as create, (select 1 as grant) from t ",
                "grant create, select on v to r with grant option"
            ]
        );
        assert!(element_texts("create schema s").is_empty());
    }
}
