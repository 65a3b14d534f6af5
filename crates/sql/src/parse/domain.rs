//! CREATE, ALTER and DROP DOMAIN. Types and expressions are kept as their texts.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::depth;
use super::grant::Owned;
use super::own_grammar::{extent, slice};
use super::statement::{Ddl, Statement};
use super::tokens::Tokens;
use super::user_type::dropped_types;
use crate::error::{Result, SqlError};

/// A command about domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainCommand {
    /// CREATE DOMAIN
    Create(CreateDomain),
    /// ALTER DOMAIN
    Alter {
        /// Its name.
        name: Vec<String>,
        /// What is to change.
        change: AlterDomain,
    },
    /// DROP DOMAIN
    Drop {
        /// Their names.
        names: Vec<Vec<String>>,
        /// Missing ones are left alone.
        if_exists: bool,
        /// What is made of them goes, too.
        cascade: bool,
    },
}

/// CREATE DOMAIN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDomain {
    /// Its name.
    pub name: Vec<String>,
    /// The text of the type that it is made of.
    pub type_text: String,
    /// The text of its default.
    pub default: Option<String>,
    /// NOT NULL
    pub not_null: bool,
    /// Its conditions.
    pub checks: Vec<DomainCheck>,
}

/// A condition of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainCheck {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// The text of the condition.
    pub text: String,
    /// What is there is asked, too.
    pub valid: bool,
}

/// What ALTER DOMAIN changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterDomain {
    /// SET DEFAULT and DROP DEFAULT
    Default(Option<String>),
    /// SET NOT NULL and DROP NOT NULL
    NotNull(bool),
    /// ADD CONSTRAINT
    AddCheck(DomainCheck),
    /// DROP CONSTRAINT
    DropCheck {
        /// Its name.
        name: String,
        /// A missing one is left alone.
        if_exists: bool,
    },
    /// RENAME CONSTRAINT
    RenameCheck {
        /// The condition,
        from: String,
        /// and what it is called now.
        to: String,
    },
    /// VALIDATE CONSTRAINT
    Validate(String),
    /// RENAME TO
    Rename(String),
    /// SET SCHEMA
    Schema(String),
}

fn command(command: DomainCommand) -> Statement {
    Statement::Ddl(Ddl::Domain(command))
}

/// The words that end the type or the default of a domain.
const ENDS: [&str; 10] = [
    "constraint",
    "not",
    "null",
    "check",
    "default",
    "collate",
    "unique",
    "primary",
    "references",
    "exclude",
];

/// The text up to one of the words outside of parentheses; the first token is of it in any case.
fn text_until(tokens: &mut Tokens<'_>, ends: &[&str]) -> Result<String> {
    let all = tokens.rest();
    let (mut depth, mut count) = (0_usize, 0);
    while let Some(token) = tokens.peek() {
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ if depth == 0 && count > 0 && ends.iter().any(|end| tokens.is_keyword(end)) => break,
            _ => {}
        }
        tokens.advance();
        count += 1;
    }
    text_of(tokens, &all[..count])
}

fn text_of(tokens: &Tokens<'_>, part: &[TokenWithSpan]) -> Result<String> {
    let sql = tokens.sql();
    let (_, text) = slice(sql, extent(part)).ok_or_else(|| tokens.error())?;
    depth::shape(sql, part)?;
    Ok(text.to_owned())
}

/// The condition behind CHECK.
fn condition(tokens: &mut Tokens<'_>, name: Option<String>) -> Result<DomainCheck> {
    tokens.expect(&Token::LParen)?;
    let inner = tokens.until_closing()?;
    let text = text_of(tokens, inner)?;
    tokens.keywords(&["no", "inherit"]);
    Ok(DomainCheck {
        name,
        text,
        valid: true,
    })
}

fn collation(tokens: &mut Tokens<'_>) -> Result<()> {
    let collation = tokens.qualified_name()?;
    let last = collation.last().map_or("", String::as_str);
    match last {
        "C" | "POSIX" | "default" => Ok(()),
        _ => Err(SqlError::new(
            "42704",
            format!("collation \"{last}\" for encoding \"UTF8\" does not exist"),
        )),
    }
}

/// What follows CREATE DOMAIN.
pub(super) fn create(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.qualified_name()?;
    tokens.keyword("as");
    let type_text = text_until(tokens, &ENDS)?;
    let mut domain = CreateDomain {
        name,
        type_text,
        default: None,
        not_null: false,
        checks: Vec::new(),
    };
    let mut nullable = false;
    while !tokens.is_at_end() {
        let name = match tokens.keyword("constraint") {
            true => Some(tokens.identifier()?),
            false => None,
        };
        if tokens.keywords(&["not", "null"]) {
            domain.not_null = true;
        } else if tokens.keyword("null") {
            nullable = true;
        } else if tokens.keyword("check") {
            domain.checks.push(condition(tokens, name)?);
        } else if tokens.keyword("default") && name.is_none() {
            if domain.default.is_some() {
                return Err(SqlError::syntax("multiple default expressions"));
            }
            domain.default = Some(text_until(tokens, &ENDS)?);
        } else if tokens.keyword("collate") && name.is_none() {
            collation(tokens)?;
        } else {
            let refused = [
                ("unique", "unique constraints not possible for domains"),
                (
                    "primary",
                    "primary key constraints not possible for domains",
                ),
                (
                    "references",
                    "foreign key constraints not possible for domains",
                ),
                ("exclude", "exclusion constraints not possible for domains"),
            ];
            let found = refused.iter().find(|(word, _)| tokens.is_keyword(word));
            return Err(
                found.map_or_else(|| tokens.error(), |(_, message)| SqlError::syntax(*message))
            );
        }
    }
    if nullable && domain.not_null {
        return Err(SqlError::syntax("conflicting NULL/NOT NULL constraints"));
    }
    Ok(command(DomainCommand::Create(domain)))
}

/// What follows ALTER DOMAIN.
pub(super) fn alter(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.qualified_name()?;
    let change = if tokens.keywords(&["set", "default"]) {
        AlterDomain::Default(Some(text_until(tokens, &[])?))
    } else if tokens.keywords(&["drop", "default"]) {
        AlterDomain::Default(None)
    } else if tokens.keywords(&["set", "not", "null"]) {
        AlterDomain::NotNull(true)
    } else if tokens.keywords(&["drop", "not", "null"]) {
        AlterDomain::NotNull(false)
    } else if tokens.keyword("add") {
        let name = match tokens.keyword("constraint") {
            true => Some(tokens.identifier()?),
            false => None,
        };
        tokens.expect_keyword("check")?;
        let mut check = condition(tokens, name)?;
        check.valid = !tokens.keywords(&["not", "valid"]);
        AlterDomain::AddCheck(check)
    } else if tokens.keywords(&["drop", "constraint"]) {
        let if_exists = tokens.keywords(&["if", "exists"]);
        let name = tokens.identifier()?;
        tokens.one_of(&["cascade", "restrict"]);
        AlterDomain::DropCheck { name, if_exists }
    } else if tokens.keywords(&["rename", "constraint"]) {
        let from = tokens.identifier()?;
        tokens.expect_keyword("to")?;
        AlterDomain::RenameCheck {
            from,
            to: tokens.identifier()?,
        }
    } else if tokens.keywords(&["validate", "constraint"]) {
        AlterDomain::Validate(tokens.identifier()?)
    } else if tokens.keywords(&["rename", "to"]) {
        AlterDomain::Rename(tokens.identifier()?)
    } else if tokens.keywords(&["set", "schema"]) {
        AlterDomain::Schema(tokens.identifier()?)
    } else if tokens.keywords(&["owner", "to"]) {
        let role = tokens.identifier()?;
        tokens.end()?;
        let owned = Owned::Type(name);
        return Ok(Statement::Ddl(Ddl::Owner { owned, role }));
    } else {
        return Err(tokens.error());
    };
    tokens.end()?;
    Ok(command(DomainCommand::Alter { name, change }))
}

/// What follows DROP DOMAIN.
pub(super) fn dropped(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let (names, if_exists, cascade) = dropped_types(tokens)?;
    Ok(command(DomainCommand::Drop {
        names,
        if_exists,
        cascade,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn domain(sql: &str) -> DomainCommand {
        match parse(sql).unwrap().swap_remove(0) {
            Statement::Ddl(Ddl::Domain(command)) => command,
            other => panic!("{sql} is {other:?}"),
        }
    }

    #[test]
    fn a_domain_is_read_part_by_part() {
        let sql = "create domain S.d as varchar(5)[] collate \"C\" default array['x, y'] not null \
                   constraint c check (value <> '{}' and (value[1] ~ 'a')) check(true)";
        let DomainCommand::Create(created) = domain(sql) else {
            panic!("no CREATE DOMAIN");
        };
        assert_eq!(created.name, ["s", "d"]);
        assert_eq!(created.type_text, "varchar(5)[]");
        assert_eq!(created.default.as_deref(), Some("array['x, y']"));
        assert!(created.not_null);
        let checks = created.checks.iter();
        let checks: Vec<_> = checks
            .map(|check| (check.name.as_deref(), check.text.as_str()))
            .collect();
        let wanted = "value <> '{}' and (value[1] ~ 'a')";
        assert_eq!(checks, [(Some("c"), wanted), (None, "true")]);
    }

    #[test]
    fn what_no_domain_has_is_an_error() {
        for (sql, message) in [
            (
                "create domain d int null not null",
                "conflicting NULL/NOT NULL constraints",
            ),
            (
                "create domain d int primary key",
                "primary key constraints not possible for domains",
            ),
            (
                "create domain d int default 1 default 2",
                "multiple default expressions",
            ),
            ("create domain d", "syntax error at end of input"),
            (
                "alter domain d add not null",
                "\"not null\" in ALTER DOMAIN is not supported",
            ),
        ] {
            assert_eq!(parse(sql).unwrap_err().message, message, "{sql}");
        }
    }
}
