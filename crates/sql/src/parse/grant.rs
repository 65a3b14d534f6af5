//! GRANT and REVOKE of privileges, ALTER … OWNER TO, REASSIGN and DROP OWNED.

use pg_raw_parse::nodes::{
    AlterDefaultPrivilegesStmt, AlterOwnerStmt, AlterTableStmt, AlterTableType, DropOwnedStmt,
    GrantStmt, GrantTargetType, ObjectType, ReassignOwnedStmt, SelectStmt,
};
use pg_raw_parse::{Node, make};
use thermocline_engine::authority::DefaultsKind;

use super::comment::kind_of;
use super::statement::{Ddl, Statement};
use super::{node, view};
use crate::error::{Result, SqlError};

/// GRANT or REVOKE of privileges.
#[derive(Debug, Clone)]
pub struct GrantCommand {
    /// GRANT, not REVOKE.
    pub grant: bool,
    /// The privileges and the columns they are for; `None` for all.
    pub privileges: Option<Vec<(String, Vec<String>)>>,
    /// On what.
    pub targets: Targets,
    /// To whom; "public" is everybody.
    pub grantees: Vec<String>,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// REVOKE … CASCADE.
    pub cascade: bool,
}

/// What privileges are granted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// Tables, and sequences that are named as such.
    Tables(Vec<Vec<String>>),
    /// Sequences.
    Sequences(Vec<Vec<String>>),
    /// Schemas.
    Schemas(Vec<String>),
    /// Procedures.
    Procedures(Vec<FunctionNamed>),
    /// Functions: their names, and the texts of their arguments' types where they are written.
    Functions(Vec<(Vec<String>, Option<Vec<String>>)>),
    /// All functions in schemas.
    AllFunctions(Vec<String>, char),
    /// The database.
    Database(Vec<String>),
    /// All tables in schemas.
    AllTables(Vec<String>),
    /// All sequences in schemas.
    AllSequences(Vec<String>),
}

/// ALTER DEFAULT PRIVILEGES
#[derive(Debug, Clone)]
pub struct DefaultPrivileges {
    /// FOR ROLE: who makes the objects; empty: who says it.
    pub roles: Vec<String>,
    /// IN SCHEMA; empty: any.
    pub schemas: Vec<String>,
    /// The objects.
    pub kind: DefaultsKind,
    /// GRANT, not REVOKE.
    pub grant: bool,
    /// The privileges; `None` for all.
    pub privileges: Option<Vec<String>>,
    /// To whom; "public" is everybody.
    pub grantees: Vec<String>,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// REVOKE … CASCADE.
    pub cascade: bool,
}

/// What changes its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owned {
    /// A table.
    Table(Vec<String>),
    /// A view.
    View(Vec<String>),
    /// A sequence.
    Sequence(Vec<String>),
    /// A schema.
    Schema(String),
    /// A procedure.
    Procedure(Vec<String>, Option<Vec<String>>),
    /// A function: its name, and the texts of its arguments' types where they are written. A
    /// procedure has the name alone.
    Function(Vec<String>, Option<Vec<String>>),
    /// A type.
    Type(Vec<String>),
}

/// REASSIGN OWNED, or DROP OWNED where there is no new owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBy {
    /// Whose objects.
    pub roles: Vec<String>,
    /// TO
    pub new_owner: Option<String>,
    /// CASCADE
    pub cascade: bool,
}

pub(super) fn drop_owned(statement: &DropOwnedStmt) -> Statement {
    Statement::Ddl(Ddl::OwnedBy(OwnedBy {
        roles: node::roles(statement.roles()),
        new_owner: None,
        cascade: node::cascades(statement.behavior),
    }))
}

pub(super) fn reassign(statement: &ReassignOwnedStmt) -> Statement {
    Statement::Ddl(Ddl::OwnedBy(OwnedBy {
        roles: node::roles(statement.roles()),
        new_owner: statement.newrole().map(node::role),
        cascade: false,
    }))
}

pub(super) fn grant(statement: &GrantStmt) -> Result<Statement> {
    let privileges = statement.privileges().iter().map(|privilege| {
        let name = privilege.priv_name().unwrap_or("all").to_owned();
        (name, node::names(privilege.cols()))
    });
    let privileges: Vec<_> = privileges.collect();
    let grantees = statement.grantees().iter().map(node::role);
    Ok(Statement::Ddl(Ddl::Grant(GrantCommand {
        grant: statement.is_grant,
        privileges: (!privileges.is_empty()).then_some(privileges),
        targets: targets(statement)?,
        grantees: grantees.collect(),
        option: statement.grant_option,
        cascade: node::cascades(statement.behavior),
    })))
}

/// ALTER DEFAULT PRIVILEGES
pub(super) fn defaults(statement: &AlterDefaultPrivilegesStmt) -> Result<Statement> {
    let (mut roles, mut schemas) = (Vec::new(), Vec::new());
    for option in statement.options().iter() {
        let Node::NodeList(list) = option.arg() else {
            continue;
        };
        match node::option_name(option) {
            "roles" => roles = node::roles(list),
            _ => {
                schemas = list
                    .iter()
                    .filter_map(Node::as_str)
                    .map(str::to_owned)
                    .collect()
            }
        }
    }
    let action = statement.action();
    let action = action.ok_or_else(|| SqlError::internal("defaults without privileges"))?;
    let privileges = action.privileges().iter();
    let privileges = privileges.map(|of| of.priv_name().unwrap_or("all").to_owned());
    let privileges: Vec<String> = privileges.collect();
    let kind = match action.objtype {
        ObjectType::OBJECT_TABLE => DefaultsKind::Table,
        ObjectType::OBJECT_SEQUENCE => DefaultsKind::Sequence,
        ObjectType::OBJECT_TYPE => DefaultsKind::Type,
        ObjectType::OBJECT_SCHEMA => DefaultsKind::Schema,
        _ => DefaultsKind::Function,
    };
    Ok(Statement::Ddl(Ddl::DefaultPrivileges(DefaultPrivileges {
        roles,
        schemas,
        kind,
        grant: action.is_grant,
        privileges: (!privileges.is_empty()).then_some(privileges),
        grantees: action.grantees().iter().map(node::role).collect(),
        option: action.grant_option,
        cascade: node::cascades(action.behavior),
    })))
}

fn targets(statement: &GrantStmt) -> Result<Targets> {
    let objects = objects(statement);
    let last = |objects: Vec<Vec<String>>| -> Vec<String> {
        objects
            .into_iter()
            .filter_map(|mut name| name.pop())
            .collect()
    };
    if statement.targtype == GrantTargetType::ACL_TARGET_ALL_IN_SCHEMA {
        return Ok(match statement.objtype {
            ObjectType::OBJECT_TABLE => Targets::AllTables(last(objects)),
            ObjectType::OBJECT_SEQUENCE => Targets::AllSequences(last(objects)),
            ObjectType::OBJECT_FUNCTION => Targets::AllFunctions(last(objects), 'f'),
            ObjectType::OBJECT_ROUTINE => Targets::AllFunctions(last(objects), 'r'),
            // Those of Rust lie in no schema.
            _ => Targets::AllFunctions(last(objects), 'p'),
        });
    }
    Ok(match statement.objtype {
        ObjectType::OBJECT_TABLE => Targets::Tables(objects),
        ObjectType::OBJECT_SEQUENCE => Targets::Sequences(objects),
        ObjectType::OBJECT_SCHEMA => Targets::Schemas(last(objects)),
        ObjectType::OBJECT_DATABASE => Targets::Database(last(objects)),
        ObjectType::OBJECT_PROCEDURE => Targets::Procedures(functions(statement)?),
        ObjectType::OBJECT_FUNCTION | ObjectType::OBJECT_ROUTINE => {
            Targets::Functions(functions(statement)?)
        }
        other => {
            let kind = kind_of(other).to_lowercase();
            let message = format!("privileges on a {kind} are not supported");
            return Err(SqlError::unsupported(
                message,
                "Privileges are for tables, views, sequences, schemas, functions and the database.",
            ));
        }
    })
}

/// The names of what privileges are for. The list is typed as one of tables, whatever is in it, so
/// a copy of it is looked at.
fn objects(statement: &GrantStmt) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    make::owned(|mem| {
        let copy = mem.make_unique(statement.objects()).uncast();
        if let Node::NodeList(list) = copy.as_ref() {
            found.extend(list.iter().map(node::name));
        }
        mem.make_node::<SelectStmt>()
    });
    found
}

/// The texts of the types that are written behind a function's name.
fn argument_types(object: Node<'_>) -> Result<Option<Vec<String>>> {
    let Node::ObjectWithArgs(object) = object else {
        return Ok(None);
    };
    if object.args_unspecified {
        return Ok(None);
    }
    let types = object
        .objargs()
        .iter()
        .filter_map(|argument| match argument {
            Node::TypeName(name) => Some(node::type_text(Some(name))),
            _ => None,
        });
    types.collect::<Result<_>>().map(Some)
}

/// A function's name, and its arguments' types where they are said.
pub type FunctionNamed = (Vec<String>, Option<Vec<String>>);

/// A function as a statement names it.
pub(super) fn function_named(object: Node<'_>) -> Result<FunctionNamed> {
    Ok((node::name(object), argument_types(object)?))
}

/// The functions that privileges are for; as [`objects`].
fn functions(statement: &GrantStmt) -> Result<Vec<FunctionNamed>> {
    let mut found = Ok(Vec::new());
    make::owned(|mem| {
        let copy = mem.make_unique(statement.objects()).uncast();
        if let Node::NodeList(list) = copy.as_ref() {
            let named = list.iter().map(function_named);
            found = named.collect();
        }
        mem.make_node::<SelectStmt>()
    });
    found
}

/// `ALTER SCHEMA s OWNER TO role` and the like.
pub(super) fn owner(statement: &AlterOwnerStmt) -> Result<Statement> {
    let mut name = node::name(statement.object());
    let owned = match statement.object_type {
        ObjectType::OBJECT_SCHEMA => Owned::Schema(name.pop().unwrap_or_default()),
        ObjectType::OBJECT_PROCEDURE => Owned::Procedure(name, argument_types(statement.object())?),
        ObjectType::OBJECT_FUNCTION | ObjectType::OBJECT_ROUTINE => {
            Owned::Function(name, argument_types(statement.object())?)
        }
        ObjectType::OBJECT_TYPE | ObjectType::OBJECT_DOMAIN => Owned::Type(name),
        other => {
            let kind = kind_of(other);
            let message = format!("ALTER {kind} ... OWNER TO is not supported");
            return Err(SqlError::unsupported(
                message,
                "It belongs to the superuser.",
            ));
        }
    };
    let role = statement.newowner().map(node::role).unwrap_or_default();
    Ok(Statement::Ddl(Ddl::Owner { owned, role }))
}

/// ALTER VIEW, SEQUENCE and INDEX of what tables have, too: the owner is theirs.
pub(super) fn alter_other(statement: &AlterTableStmt) -> Result<Statement> {
    let name = node::relation(statement.relation());
    let mut changes = statement.cmds().iter().filter_map(|change| match change {
        Node::AlterTableCmd(change) => Some(change),
        _ => None,
    });
    if let (ObjectType::OBJECT_INDEX, Some(Node::AlterTableCmd(change))) =
        (statement.objtype, statement.cmds().iter().next())
        && let (AlterTableType::AT_AttachPartition, Node::PartitionCmd(command)) =
            (change.subtype, change.def())
    {
        let partition = node::relation(command.name());
        return Ok(Statement::Ddl(Ddl::AttachIndex { name, partition }));
    }
    let owned = match statement.objtype {
        ObjectType::OBJECT_VIEW => Some(Owned::View(name)),
        ObjectType::OBJECT_SEQUENCE => Some(Owned::Sequence(name)),
        _ => None,
    };
    if let (Some(owned), Some(change), None) = (owned, changes.next(), changes.next())
        && change.subtype == AlterTableType::AT_ChangeOwner
    {
        let role = change.newowner().map(node::role).unwrap_or_default();
        return Ok(Statement::Ddl(Ddl::Owner { owned, role }));
    }
    if statement.objtype == ObjectType::OBJECT_VIEW
        && let Some(altered) = view::altered(statement)?
    {
        return Ok(altered);
    }
    let kind = kind_of(statement.objtype);
    let message = match statement.objtype {
        ObjectType::OBJECT_VIEW => "defaults of views are not supported".to_owned(),
        _ => format!("ALTER {kind} of anything but its name and owner is not supported"),
    };
    Err(SqlError::unsupported(
        message,
        format!("Create the {} anew.", kind.to_lowercase()),
    ))
}
