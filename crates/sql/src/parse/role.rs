//! CREATE, ALTER and DROP of ROLE, USER and GROUP, and GRANT and REVOKE of roles. Passwords are
//! kept so that printing a statement does not show them.

use pg_raw_parse::Node;
use pg_raw_parse::list::CastNodeList;
use pg_raw_parse::nodes::{
    AlterDatabaseSetStmt, AlterRoleSetStmt, AlterRoleStmt, CreateRoleStmt, DefElem, DropRoleStmt,
    GrantRoleStmt, RoleStmtType, VariableSetStmt,
};

use super::statement::{Ddl, Set, Statement};
use super::{node, place, setting};
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
    /// ALTER ROLE … SET and RESET, ALTER DATABASE … SET and RESET.
    Settings {
        /// Whose sessions; none for all.
        role: Option<String>,
        /// In which database; none for any.
        database: Option<String>,
        /// What changes of what they begin with.
        change: SettingChange,
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

/// A change of what sessions begin with.
#[derive(Debug, Clone)]
pub enum SettingChange {
    /// SET name = values; no values: TO DEFAULT, or RESET.
    One(String, Option<Vec<String>>),
    /// RESET ALL
    All,
}

impl RoleCommand {
    /// The command tag.
    #[must_use]
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CREATE ROLE",
            Self::Settings {
                role: None,
                database: Some(_),
                ..
            } => "ALTER DATABASE",
            Self::Alter { .. } | Self::Rename { .. } | Self::Settings { .. } => "ALTER ROLE",
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

fn command(command: RoleCommand) -> Statement {
    Statement::Ddl(Ddl::Role(command))
}

pub(super) fn create(statement: &CreateRoleStmt, text: &str) -> Result<Statement> {
    let mut options = RoleOptions {
        login: (statement.stmt_type == RoleStmtType::ROLESTMT_USER).then_some(true),
        ..RoleOptions::default()
    };
    read_options(statement.options(), text, &mut options)?;
    Ok(command(RoleCommand::Create {
        name: statement.role().unwrap_or_default().to_owned(),
        options,
    }))
}

pub(super) fn alter(statement: &AlterRoleStmt, text: &str) -> Result<Statement> {
    let name = statement.role().map(node::role).unwrap_or_default();
    let mut options = RoleOptions::default();
    read_options(statement.options(), text, &mut options)?;
    let is_group = statement
        .options()
        .first()
        .is_some_and(|first| node::option_name(first) == "rolemembers");
    Ok(command(match is_group {
        // ALTER GROUP … ADD USER and DROP USER.
        true => RoleCommand::Members {
            roles: vec![name],
            members: options.members,
            grant: statement.action > 0,
            admin: false,
        },
        false => RoleCommand::Alter { name, options },
    }))
}

/// ALTER ROLE … SET; ALL is no role.
pub(super) fn set(statement: &AlterRoleSetStmt) -> Result<Statement> {
    Ok(command(RoleCommand::Settings {
        role: statement.role().map(node::role),
        database: statement.database().map(str::to_owned),
        change: change(statement.setstmt())?,
    }))
}

/// ALTER DATABASE … SET
pub(super) fn set_in_database(statement: &AlterDatabaseSetStmt) -> Result<Statement> {
    Ok(command(RoleCommand::Settings {
        role: None,
        database: statement.dbname().map(str::to_owned),
        change: change(statement.setstmt())?,
    }))
}

fn change(statement: Option<&VariableSetStmt>) -> Result<SettingChange> {
    let statement = statement.ok_or_else(|| SqlError::internal("a setting of nothing"))?;
    match setting::set(statement)? {
        Statement::Set(Set { name, value, .. }) => Ok(SettingChange::One(name, value)),
        Statement::Reset(name) => Ok(SettingChange::One(name, None)),
        Statement::ResetAll => Ok(SettingChange::All),
        _ => Err(SqlError::unsupported(
            "SET TRANSACTION of a role is not supported",
            "Set default_transaction_isolation, default_transaction_read_only or \
             default_transaction_deferrable.",
        )),
    }
}

pub(super) fn drop(statement: &DropRoleStmt) -> Statement {
    command(RoleCommand::Drop {
        names: node::roles(statement.roles()),
        if_exists: statement.missing_ok,
    })
}

/// GRANT and REVOKE of roles.
pub(super) fn members(statement: &GrantRoleStmt) -> Result<Statement> {
    let roles = statement.granted_roles().iter();
    let roles = roles.filter_map(|node| match node {
        Node::AccessPriv(role) => role.priv_name().map(str::to_owned),
        _ => None,
    });
    let mut admin = false;
    for option in statement.opt().iter() {
        let Node::DefElem(option) = option else {
            continue;
        };
        match node::option_name(option) {
            // REVOKE ADMIN OPTION FOR says that it is to be false.
            "admin" => admin = !statement.is_grant || node::boolean(option)?,
            other => {
                let word = other.to_uppercase();
                let message = format!("{word} OPTION of a membership is not supported");
                return Err(SqlError::unsupported(
                    message,
                    "Only WITH ADMIN OPTION can be granted.",
                ));
            }
        }
    }
    Ok(command(RoleCommand::Members {
        roles: roles.collect(),
        members: node::roles(statement.grantee_roles()),
        grant: statement.is_grant,
        admin,
    }))
}

fn read_options(
    given: &CastNodeList<DefElem>,
    text: &str,
    options: &mut RoleOptions,
) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    for option in given.iter() {
        let name = node::option_name(option);
        if seen.contains(&name) {
            return Err(SqlError::syntax("conflicting or redundant options")
                .with_position(place(text, option.location)));
        }
        seen.push(name);
        let roles = || match option.arg() {
            Node::NodeList(list) => node::roles(list),
            _ => Vec::new(),
        };
        let flag = match name {
            "superuser" => &mut options.superuser,
            "inherit" => &mut options.inherit,
            "createrole" => &mut options.create_role,
            "createdb" => &mut options.create_database,
            "canlogin" => &mut options.login,
            "isreplication" => &mut options.replication,
            "bypassrls" => &mut options.bypass_row_security,
            _ => {
                match name {
                    "password" => {
                        let password = node::option_text(option);
                        options.password = Some(password.map(Secret));
                    }
                    "connectionlimit" => {
                        let limit = node::integer(option)?;
                        let limit = i32::try_from(limit).ok().filter(|n| *n >= -1);
                        options.connection_limit =
                            Some(limit.ok_or_else(|| {
                                SqlError::new("22023", "invalid connection limit")
                            })?);
                    }
                    "validUntil" => options.valid_until = node::option_text(option),
                    "addroleto" => options.in_roles = roles(),
                    "rolemembers" => options.members = roles(),
                    "adminmembers" => options.admins = roles(),
                    _ => {}
                }
                continue;
            }
        };
        *flag = Some(node::boolean(option)?);
    }
    Ok(())
}
