//! CREATE, ALTER and DROP TYPE.

use sqlparser::tokenizer::Token;

use super::grant::Owned;
use super::statement::{Ddl, Statement};
use super::tokens::Tokens;
use crate::error::{Result, SqlError};

/// A command about types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeCommand {
    /// CREATE TYPE … AS ENUM
    CreateEnum {
        /// Its name.
        name: Vec<String>,
        /// Its labels in their order.
        labels: Vec<String>,
    },
    /// CREATE TYPE … AS (…)
    CreateComposite {
        /// Its name.
        name: Vec<String>,
        /// Its columns.
        attributes: Vec<Attribute>,
    },
    /// ALTER TYPE
    Alter {
        /// Its name.
        name: Vec<String>,
        /// What is to change.
        change: AlterType,
    },
    /// DROP TYPE
    Drop {
        /// Their names.
        names: Vec<Vec<String>>,
        /// Missing ones are left alone.
        if_exists: bool,
        /// What is made of them goes, too.
        cascade: bool,
    },
}

/// What ALTER TYPE changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterType {
    /// ADD VALUE
    AddValue {
        /// The new label.
        label: String,
        /// One that is there is left alone.
        if_not_exists: bool,
        /// Where it goes; at the end if that is not said.
        place: Option<Neighbour>,
    },
    /// RENAME VALUE
    RenameValue {
        /// The label,
        from: String,
        /// and what it is called now.
        to: String,
    },
    /// ADD, DROP and ALTER ATTRIBUTE
    Attributes(Vec<AlterAttribute>),
    /// RENAME ATTRIBUTE
    RenameAttribute {
        /// The column,
        from: String,
        /// and what it is called now.
        to: String,
    },
    /// RENAME TO
    Rename(String),
    /// SET SCHEMA
    Schema(String),
}

/// A column of a composite type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// The text of its type.
    pub type_text: String,
}

/// A change of a column of a composite type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterAttribute {
    /// ADD ATTRIBUTE
    Add(Attribute),
    /// ALTER ATTRIBUTE … TYPE
    Type(Attribute),
    /// DROP ATTRIBUTE
    Drop {
        /// Its name.
        name: String,
        /// A missing one is left alone.
        if_exists: bool,
    },
}

/// The label beside which a new one goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// BEFORE, not AFTER.
    pub before: bool,
    /// The label.
    pub label: String,
}

fn command(command: TypeCommand) -> Statement {
    Statement::Ddl(Ddl::Type(command))
}

/// What follows CREATE TYPE.
pub(super) fn create(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.qualified_name()?;
    if !tokens.keyword("as") {
        return Err(SqlError::unsupported(
            "base types and shell types are not supported",
            "Make an enum, a composite type or a domain.",
        ));
    }
    if tokens.token(&Token::LParen) {
        let mut attributes = Vec::new();
        if !tokens.token(&Token::RParen) {
            loop {
                attributes.push(attribute(tokens)?);
                if !tokens.token(&Token::Comma) {
                    break;
                }
            }
            tokens.expect(&Token::RParen)?;
        }
        tokens.end()?;
        return Ok(command(TypeCommand::CreateComposite { name, attributes }));
    }
    if tokens.is_keyword("range") {
        return Err(SqlError::unsupported(
            "range types are not supported yet",
            "Use two columns, one for each bound.",
        ));
    }
    tokens.expect_keyword("enum")?;
    tokens.expect(&Token::LParen)?;
    let mut labels = Vec::new();
    if !tokens.token(&Token::RParen) {
        loop {
            labels.push(tokens.string()?);
            if !tokens.token(&Token::Comma) {
                break;
            }
        }
        tokens.expect(&Token::RParen)?;
    }
    tokens.end()?;
    Ok(command(TypeCommand::CreateEnum { name, labels }))
}

/// A column's name and its type, up to a comma or a parenthesis that closes.
fn attribute(tokens: &mut Tokens<'_>) -> Result<Attribute> {
    let name = tokens.identifier()?;
    let type_text = type_text(tokens)?;
    Ok(Attribute { name, type_text })
}

/// The text of a type, up to a comma or a parenthesis that closes.
fn type_text(tokens: &mut Tokens<'_>) -> Result<String> {
    let mut type_text = String::new();
    let mut depth = 0;
    loop {
        match tokens.peek() {
            None => break,
            Some(Token::Comma) if depth == 0 => break,
            Some(Token::RParen) if depth == 0 => break,
            Some(Token::Word(word))
                if depth == 0
                    && word.quote_style.is_none()
                    && ["collate", "cascade", "restrict", "using"]
                        .iter()
                        .any(|end| word.value.eq_ignore_ascii_case(end)) =>
            {
                break;
            }
            Some(token) => {
                match token {
                    Token::LParen => depth += 1,
                    Token::RParen => depth -= 1,
                    _ => {}
                }
                if !type_text.is_empty()
                    && matches!(token, Token::Word(_))
                    && !type_text.ends_with('.')
                {
                    type_text.push(' ');
                }
                type_text.push_str(&token.to_string());
                tokens.advance();
            }
        }
    }
    if type_text.is_empty() {
        return Err(tokens.error());
    }
    if tokens.keyword("collate") {
        let collation = tokens.qualified_name()?;
        let last = collation.last().map_or("", String::as_str);
        if !matches!(last, "C" | "POSIX" | "default") {
            return Err(SqlError::new(
                "42704",
                format!("collation \"{last}\" for encoding \"UTF8\" does not exist"),
            ));
        }
    }
    Ok(type_text)
}

/// Changes of columns, one after the other.
fn attributes(tokens: &mut Tokens<'_>) -> Result<AlterType> {
    let mut changes = Vec::new();
    loop {
        let action = tokens.one_of(&["add", "drop", "alter"]);
        let action = action.ok_or_else(|| tokens.error())?;
        tokens.expect_keyword("attribute")?;
        changes.push(match action {
            "add" => AlterAttribute::Add(attribute(tokens)?),
            "drop" => AlterAttribute::Drop {
                if_exists: tokens.keywords(&["if", "exists"]),
                name: tokens.identifier()?,
            },
            _ => {
                let name = tokens.identifier()?;
                tokens.keywords(&["set", "data"]);
                tokens.expect_keyword("type")?;
                let type_text = type_text(tokens)?;
                AlterAttribute::Type(Attribute { name, type_text })
            }
        });
        tokens.one_of(&["cascade", "restrict"]);
        if !tokens.token(&Token::Comma) {
            return Ok(AlterType::Attributes(changes));
        }
    }
}

/// What follows ALTER TYPE.
pub(super) fn alter(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.qualified_name()?;
    let change = if ["add", "drop", "alter"]
        .iter()
        .any(|action| tokens.are_keywords(&[action, "attribute"]))
    {
        attributes(tokens)?
    } else if tokens.keywords(&["rename", "attribute"]) {
        let from = tokens.identifier()?;
        tokens.expect_keyword("to")?;
        let to = tokens.identifier()?;
        tokens.one_of(&["cascade", "restrict"]);
        AlterType::RenameAttribute { from, to }
    } else if tokens.keywords(&["add", "value"]) {
        let if_not_exists = tokens.keywords(&["if", "not", "exists"]);
        let label = tokens.string()?;
        let place = match tokens.one_of(&["before", "after"]) {
            Some(side) => Some(Neighbour {
                before: side == "before",
                label: tokens.string()?,
            }),
            None => None,
        };
        AlterType::AddValue {
            label,
            if_not_exists,
            place,
        }
    } else if tokens.keywords(&["rename", "value"]) {
        let from = tokens.string()?;
        tokens.expect_keyword("to")?;
        AlterType::RenameValue {
            from,
            to: tokens.string()?,
        }
    } else if tokens.keywords(&["rename", "to"]) {
        AlterType::Rename(tokens.identifier()?)
    } else if tokens.keywords(&["set", "schema"]) {
        AlterType::Schema(tokens.identifier()?)
    } else if tokens.keywords(&["owner", "to"]) {
        let role = tokens.identifier()?;
        tokens.end()?;
        let owned = Owned::Type(name);
        return Ok(Statement::Ddl(Ddl::Owner { owned, role }));
    } else {
        return Err(tokens.error());
    };
    tokens.end()?;
    Ok(command(TypeCommand::Alter { name, change }))
}

/// What follows DROP TYPE.
pub(super) fn dropped(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let (names, if_exists, cascade) = dropped_types(tokens)?;
    Ok(command(TypeCommand::Drop {
        names,
        if_exists,
        cascade,
    }))
}

/// The names of types that are to go, whether they may be missing, and CASCADE.
pub(super) fn dropped_types(tokens: &mut Tokens<'_>) -> Result<(Vec<Vec<String>>, bool, bool)> {
    let if_exists = tokens.keywords(&["if", "exists"]);
    let mut names = vec![tokens.qualified_name()?];
    while tokens.token(&Token::Comma) {
        names.push(tokens.qualified_name()?);
    }
    let cascade = tokens.one_of(&["cascade", "restrict"]) == Some("cascade");
    tokens.end()?;
    Ok((names, if_exists, cascade))
}
