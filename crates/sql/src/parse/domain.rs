//! CREATE, ALTER and DROP DOMAIN. Types and expressions are kept as their texts.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{AlterDomainStmt, ConstrType, Constraint, CreateDomainStmt};
use thermocline_query::parse::written;

use super::node;
use super::statement::{Ddl, Statement};
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

pub(super) fn create(statement: &CreateDomainStmt) -> Result<Statement> {
    node::collation(statement.coll_clause())?;
    let mut domain = CreateDomain {
        name: node::names(statement.domainname()),
        type_text: node::type_text(statement.type_name())?,
        default: None,
        not_null: false,
        checks: Vec::new(),
    };
    let mut nullable = false;
    for constraint in statement.constraints().iter() {
        match constraint.contype {
            ConstrType::CONSTR_NOTNULL => domain.not_null = true,
            ConstrType::CONSTR_NULL => nullable = true,
            ConstrType::CONSTR_CHECK => domain.checks.push(check(constraint)?),
            ConstrType::CONSTR_DEFAULT => {
                if domain.default.is_some() {
                    return Err(SqlError::syntax("multiple default expressions"));
                }
                domain.default = Some(written::expression(constraint.raw_expr())?);
            }
            other => return Err(refused(other)),
        }
    }
    if nullable && domain.not_null {
        return Err(SqlError::syntax("conflicting NULL/NOT NULL constraints"));
    }
    Ok(command(DomainCommand::Create(domain)))
}

fn check(constraint: &Constraint) -> Result<DomainCheck> {
    Ok(DomainCheck {
        name: constraint.conname().map(str::to_owned),
        text: written::expression(constraint.raw_expr())?,
        valid: !constraint.skip_validation,
    })
}

/// The error of a constraint that no domain has.
#[cold]
fn refused(kind: ConstrType::Type) -> SqlError {
    SqlError::syntax(match kind {
        ConstrType::CONSTR_UNIQUE => "unique constraints not possible for domains",
        ConstrType::CONSTR_PRIMARY => "primary key constraints not possible for domains",
        ConstrType::CONSTR_EXCLUSION => "exclusion constraints not possible for domains",
        ConstrType::CONSTR_FOREIGN => "foreign key constraints not possible for domains",
        ConstrType::CONSTR_GENERATED => "specifying GENERATED not supported for domains",
        _ => {
            return SqlError::unsupported(
                "specifying constraint deferrability not supported for domains",
                "Leave it out: conditions are checked with each value.",
            );
        }
    })
}

pub(super) fn alter(statement: &AlterDomainStmt) -> Result<Statement> {
    let named = || statement.name().unwrap_or_default().to_owned();
    let change = match statement.subtype as u8 {
        b'T' => AlterDomain::Default(match statement.def() {
            Node::None => None,
            default => Some(written::expression(default)?),
        }),
        b'O' => AlterDomain::NotNull(true),
        b'N' => AlterDomain::NotNull(false),
        b'C' => match statement.def() {
            Node::Constraint(constraint) if constraint.contype == ConstrType::CONSTR_CHECK => {
                AlterDomain::AddCheck(check(constraint)?)
            }
            Node::Constraint(constraint) if constraint.contype == ConstrType::CONSTR_NOTNULL => {
                return Err(SqlError::unsupported(
                    "\"not null\" in ALTER DOMAIN is not supported",
                    "Use ALTER DOMAIN ... SET NOT NULL.",
                ));
            }
            Node::Constraint(constraint) => return Err(refused(constraint.contype)),
            _ => {
                return Err(SqlError::internal(
                    "a constraint of a domain without itself",
                ));
            }
        },
        b'X' => AlterDomain::DropCheck {
            name: named(),
            if_exists: statement.missing_ok,
        },
        _ => AlterDomain::Validate(named()),
    };
    let name = node::strings(statement.type_name());
    Ok(command(DomainCommand::Alter { name, change }))
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
        assert_eq!(created.default.as_deref(), Some("ARRAY['x, y']"));
        assert!(created.not_null);
        let checks = created.checks.iter();
        let checks: Vec<_> = checks
            .map(|check| (check.name.as_deref(), check.text.as_str()))
            .collect();
        let wanted = "value <> '{}' AND value[1] ~ 'a'";
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
