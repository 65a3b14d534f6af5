//! DROP of what is in a schema, and RENAME.

use pg_raw_parse::nodes::{DropStmt, ObjectType, RenameStmt};

use super::comment::kind_of;
use super::domain::{AlterDomain, DomainCommand};
use super::role::RoleCommand;
use super::statement::{AlterSequence, Ddl, Drop, Dropped, Missing, Statement};
use super::table::{AlterOperation, altered, materialized};
use super::user_type::{AlterType, TypeCommand};
use super::view::{AlterView, ViewCommand};
use super::{extension, function, node, trigger, user_type};
use crate::error::{Result, SqlError};

pub(super) fn drop(statement: &DropStmt, text: &str) -> Result<Statement> {
    let names: Vec<Vec<String>> = statement.objects().iter().map(node::name).collect();
    let if_exists = statement.missing_ok;
    let cascade = node::cascades(statement.behavior);
    let kind = match statement.remove_type {
        ObjectType::OBJECT_TABLE => Dropped::Table,
        ObjectType::OBJECT_VIEW => Dropped::View,
        ObjectType::OBJECT_MATVIEW => Dropped::Materialized,
        ObjectType::OBJECT_INDEX => Dropped::Index,
        ObjectType::OBJECT_SEQUENCE => Dropped::Sequence,
        ObjectType::OBJECT_SCHEMA => Dropped::Schema,
        ObjectType::OBJECT_FUNCTION | ObjectType::OBJECT_PROCEDURE | ObjectType::OBJECT_ROUTINE => {
            return Ok(function::drop(text));
        }
        ObjectType::OBJECT_TRIGGER => return trigger::drop(statement),
        ObjectType::OBJECT_TYPE => {
            return Ok(Statement::Ddl(Ddl::Type(TypeCommand::Drop {
                names,
                if_exists,
                cascade,
            })));
        }
        ObjectType::OBJECT_DOMAIN => {
            return Ok(Statement::Ddl(Ddl::Domain(DomainCommand::Drop {
                names,
                if_exists,
                cascade,
            })));
        }
        other => match missing(other) {
            Some(missing) if other == ObjectType::OBJECT_EXTENSION => {
                for name in names.iter().flatten() {
                    extension::may_be_dropped(name)?;
                }
                Dropped::None(missing)
            }
            Some(missing) => Dropped::None(missing),
            None => {
                let message = format!("DROP {} is not supported", kind_of(other));
                let hint = "What is built in stays, and others cannot be created.";
                return Err(SqlError::unsupported(message, hint));
            }
        },
    };
    Ok(Statement::Ddl(Ddl::Drop(Drop {
        kind,
        names,
        if_exists,
        cascade,
    })))
}

/// A kind of which there is none.
fn missing(kind: ObjectType::Type) -> Option<Missing> {
    use ObjectType as Type;
    let (tag, name) = match kind {
        Type::OBJECT_EVENT_TRIGGER => ("DROP EVENT TRIGGER", "event trigger"),
        Type::OBJECT_EXTENSION => ("DROP EXTENSION", "extension"),
        Type::OBJECT_FDW => ("DROP FOREIGN DATA WRAPPER", "foreign-data wrapper"),
        Type::OBJECT_FOREIGN_SERVER => ("DROP SERVER", "server"),
        Type::OBJECT_FOREIGN_TABLE => ("DROP FOREIGN TABLE", "foreign table"),
        Type::OBJECT_POLICY => ("DROP POLICY", "policy"),
        Type::OBJECT_PUBLICATION => ("DROP PUBLICATION", "publication"),
        Type::OBJECT_RULE => ("DROP RULE", "rule"),
        Type::OBJECT_STATISTIC_EXT => ("DROP STATISTICS", "statistics object"),
        _ => return None,
    };
    Some(Missing {
        tag,
        name,
        is_relation: kind == Type::OBJECT_FOREIGN_TABLE,
        of_table: matches!(kind, Type::OBJECT_POLICY | Type::OBJECT_RULE),
    })
}

pub(super) fn rename(statement: &RenameStmt) -> Result<Statement> {
    let to = statement.newname().unwrap_or_default().to_owned();
    let from = statement.subname().unwrap_or_default().to_owned();
    let relation = || node::relation(statement.relation());
    let object = || node::name(statement.object());
    let if_exists = statement.missing_ok;
    let table = |operation| altered(relation(), if_exists, vec![operation]);
    let materialized = |operation| materialized(table(operation));
    let view = |change| {
        Statement::Ddl(Ddl::View(ViewCommand::Alter {
            name: relation(),
            if_exists,
            change,
        }))
    };
    Ok(match statement.rename_type {
        ObjectType::OBJECT_TABLE => table(AlterOperation::Rename(to)),
        ObjectType::OBJECT_VIEW => view(AlterView::Rename(to)),
        ObjectType::OBJECT_MATVIEW => materialized(AlterOperation::Rename(to)),
        ObjectType::OBJECT_COLUMN => match statement.relation_type {
            ObjectType::OBJECT_TABLE => table(AlterOperation::RenameColumn { from, to }),
            ObjectType::OBJECT_VIEW => view(AlterView::RenameColumn(from, to)),
            ObjectType::OBJECT_MATVIEW => materialized(AlterOperation::RenameColumn { from, to }),
            other => return Err(refused(other)),
        },
        ObjectType::OBJECT_TABLESPACE => super::tablespace::rename(statement),
        ObjectType::OBJECT_TABCONSTRAINT => table(AlterOperation::RenameConstraint { from, to }),
        ObjectType::OBJECT_INDEX => Statement::Ddl(Ddl::RenameIndex {
            name: relation(),
            if_exists,
            to,
        }),
        ObjectType::OBJECT_SEQUENCE => Statement::Ddl(Ddl::AlterSequence {
            name: relation(),
            if_exists,
            change: AlterSequence::Rename(to),
        }),
        ObjectType::OBJECT_ATTRIBUTE => {
            user_type::altered(relation(), AlterType::RenameAttribute { from, to })
        }
        ObjectType::OBJECT_TYPE => user_type::altered(object(), AlterType::Rename(to)),
        ObjectType::OBJECT_DOMAIN => domain(object(), AlterDomain::Rename(to)),
        ObjectType::OBJECT_DOMCONSTRAINT => domain(object(), AlterDomain::RenameCheck { from, to }),
        ObjectType::OBJECT_TRIGGER => trigger::rename(statement),
        ObjectType::OBJECT_ROLE => {
            Statement::Ddl(Ddl::Role(RoleCommand::Rename { name: from, to }))
        }
        other => return Err(refused(other)),
    })
}

fn domain(name: Vec<String>, change: AlterDomain) -> Statement {
    Statement::Ddl(Ddl::Domain(DomainCommand::Alter { name, change }))
}

#[cold]
fn refused(kind: ObjectType::Type) -> SqlError {
    let message = format!("ALTER {} ... RENAME is not supported", kind_of(kind));
    SqlError::unsupported(message, "Create it again by the new name.")
}

/// DROP DATABASE: there is none to be dropped.
pub(super) fn drop_none(kind: Dropped, name: Option<&str>, if_exists: bool) -> Statement {
    Statement::Ddl(Ddl::Drop(Drop {
        kind,
        names: vec![vec![name.unwrap_or_default().to_owned()]],
        if_exists,
        cascade: false,
    }))
}
