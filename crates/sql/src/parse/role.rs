//! CREATE, ALTER and DROP of ROLE, USER and GROUP, and GRANT and REVOKE of roles. Passwords are
//! kept so that printing a statement does not show them.

use sqlparser::tokenizer::Token;

use super::statement::{Ddl, Statement};
use super::tokens::Tokens;
use crate::error::{Result, SqlError};
use crate::password::Secret;

/// A command about roles.
#[derive(Debug, Clone)]
pub enum RoleCommand {
    /// CREATE ROLE, USER or GROUP
    Create {
        /// Its name.
        name: String,
        /// What was said of it; CREATE USER says LOGIN.
        options: RoleOptions,
    },
    /// ALTER ROLE with options.
    Alter {
        /// Whose.
        name: String,
        /// What is to change.
        options: RoleOptions,
    },
    /// ALTER ROLE … RENAME TO
    Rename {
        /// Whose.
        name: String,
        /// The new name.
        to: String,
    },
    /// DROP ROLE
    Drop {
        /// Which.
        names: Vec<String>,
        /// A missing one is passed over.
        if_exists: bool,
    },
    /// GRANT and REVOKE of roles.
    Members {
        /// The groups.
        roles: Vec<String>,
        /// Who comes in or goes.
        members: Vec<String>,
        /// GRANT.
        grant: bool,
        /// WITH ADMIN OPTION, or ADMIN OPTION FOR.
        admin: bool,
    },
}

impl RoleCommand {
    /// The command tag.
    #[must_use]
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CREATE ROLE",
            Self::Alter { .. } | Self::Rename { .. } => "ALTER ROLE",
            Self::Drop { .. } => "DROP ROLE",
            Self::Members { grant: true, .. } => "GRANT ROLE",
            Self::Members { grant: false, .. } => "REVOKE ROLE",
        }
    }

    /// Whether its text must not be shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        match self {
            Self::Create { options, .. } | Self::Alter { options, .. } => {
                options.password.is_some()
            }
            _ => false,
        }
    }
}

/// What is said of a role; what is not said is `None`.
#[derive(Debug, Clone, Default)]
pub struct RoleOptions {
    /// SUPERUSER
    pub superuser: Option<bool>,
    /// INHERIT
    pub inherit: Option<bool>,
    /// CREATEROLE
    pub create_role: Option<bool>,
    /// CREATEDB
    pub create_database: Option<bool>,
    /// LOGIN
    pub login: Option<bool>,
    /// REPLICATION
    pub replication: Option<bool>,
    /// BYPASSRLS
    pub bypass_row_security: Option<bool>,
    /// CONNECTION LIMIT
    pub connection_limit: Option<i32>,
    /// VALID UNTIL, as written.
    pub valid_until: Option<String>,
    /// PASSWORD; the inner `None` is PASSWORD NULL.
    pub password: Option<Option<Secret>>,
    /// IN ROLE: what it becomes a member of.
    pub in_roles: Vec<String>,
    /// ROLE: who becomes its members.
    pub members: Vec<String>,
    /// ADMIN: members that may grant the membership.
    pub admins: Vec<String>,
}

/// What roles are called in commands.
const KINDS: [&str; 3] = ["role", "user", "group"];

fn whole(tokens: &Tokens<'_>, command: RoleCommand) -> Result<Option<Statement>> {
    tokens.end()?;
    Ok(Some(Statement::Ddl(Ddl::Role(command))))
}

/// Parses what follows CREATE, if it is a role.
pub(super) fn created(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    let Some(kind) = tokens.one_of(&KINDS) else {
        return Ok(None);
    };
    let command = create(tokens, kind == "user")?;
    whole(tokens, command)
}

/// Parses what follows ALTER, if it is a role.
pub(super) fn altered(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    if tokens.one_of(&KINDS).is_none() {
        return Ok(None);
    }
    let command = alter(tokens)?;
    whole(tokens, command)
}

/// Parses DROP of a role; what else is dropped is another's.
pub(super) fn dropped(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    if !KINDS
        .iter()
        .any(|kind| tokens.are_keywords(&["drop", kind]))
    {
        return Ok(None);
    }
    tokens.advance();
    tokens.advance();
    let command = drop(tokens)?;
    whole(tokens, command)
}

/// Parses what follows CREATE ROLE, USER or GROUP.
fn create(tokens: &mut Tokens<'_>, login: bool) -> Result<RoleCommand> {
    let name = tokens.identifier()?;
    tokens.keyword("with");
    let mut options = RoleOptions {
        login: login.then_some(true),
        ..RoleOptions::default()
    };
    read_options(tokens, &mut options)?;
    Ok(RoleCommand::Create { name, options })
}

/// Parses what follows ALTER ROLE, USER or GROUP.
fn alter(tokens: &mut Tokens<'_>) -> Result<RoleCommand> {
    let name = tokens.identifier()?;
    if tokens.keywords(&["rename", "to"]) {
        let to = tokens.identifier()?;
        return Ok(RoleCommand::Rename { name, to });
    }
    if let Some(word) = tokens.one_of(&["add", "drop"]) {
        tokens.expect_keyword("user")?;
        return Ok(RoleCommand::Members {
            roles: vec![name],
            members: names(tokens)?,
            grant: word == "add",
            admin: false,
        });
    }
    if ["set", "reset", "in"].iter().any(|w| tokens.is_keyword(w)) {
        return Err(SqlError::unsupported(
            "settings of a role are not supported yet",
            "Give the setting when you connect, as in options='-c name=value'.",
        ));
    }
    tokens.keyword("with");
    let mut options = RoleOptions::default();
    read_options(tokens, &mut options)?;
    Ok(RoleCommand::Alter { name, options })
}

/// Parses what follows DROP ROLE, USER or GROUP.
fn drop(tokens: &mut Tokens<'_>) -> Result<RoleCommand> {
    let if_exists = tokens.keywords(&["if", "exists"]);
    Ok(RoleCommand::Drop {
        names: names(tokens)?,
        if_exists,
    })
}

/// Names with commas between them.
pub(super) fn names(tokens: &mut Tokens<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    loop {
        tokens.keyword("group");
        names.push(tokens.identifier()?);
        if !tokens.token(&Token::Comma) {
            return Ok(names);
        }
    }
}

fn read_options(tokens: &mut Tokens<'_>, options: &mut RoleOptions) -> Result<()> {
    while !tokens.is_at_end() {
        if tokens.keyword("password") {
            options.password = Some(match tokens.keyword("null") {
                true => None,
                false => Some(Secret(tokens.string()?)),
            });
            continue;
        }
        if tokens.keywords(&["encrypted", "password"]) {
            options.password = Some(Some(Secret(tokens.string()?)));
            continue;
        }
        if tokens.keywords(&["connection", "limit"]) {
            let limit = i32::try_from(tokens.integer()?).ok().filter(|n| *n >= -1);
            options.connection_limit =
                Some(limit.ok_or_else(|| SqlError::new("22023", "invalid connection limit"))?);
            continue;
        }
        if tokens.keywords(&["valid", "until"]) {
            options.valid_until = Some(tokens.string()?);
            continue;
        }
        if tokens.keywords(&["in", "role"]) || tokens.keywords(&["in", "group"]) {
            options.in_roles.extend(names(tokens)?);
            continue;
        }
        if tokens.keyword("role") || tokens.keyword("user") {
            options.members.extend(names(tokens)?);
            continue;
        }
        if tokens.keyword("admin") {
            options.admins.extend(names(tokens)?);
            continue;
        }
        if tokens.keyword("sysid") {
            tokens.integer()?;
            continue;
        }
        let error = tokens.error();
        let word = tokens.identifier()?;
        let (name, on) = match word.strip_prefix("no") {
            Some(name) => (name, false),
            None => (word.as_str(), true),
        };
        let slot = match name {
            "superuser" => &mut options.superuser,
            "inherit" => &mut options.inherit,
            "createrole" => &mut options.create_role,
            "createdb" => &mut options.create_database,
            "login" => &mut options.login,
            "replication" => &mut options.replication,
            "bypassrls" => &mut options.bypass_row_security,
            _ => return Err(error),
        };
        *slot = Some(on);
    }
    Ok(())
}
