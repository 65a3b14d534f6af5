//! CREATE, ALTER and DROP TYPE.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{
    AlterEnumStmt, AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef, CompositeTypeStmt,
    CreateEnumStmt,
};

use super::node;
use super::statement::{Ddl, Statement};
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

pub(super) fn create_enum(statement: &CreateEnumStmt) -> Statement {
    command(TypeCommand::CreateEnum {
        name: node::names(statement.type_name()),
        labels: node::names(statement.vals()),
    })
}

pub(super) fn create_composite(statement: &CompositeTypeStmt) -> Result<Statement> {
    let attributes = statement.coldeflist().iter().map(attribute);
    Ok(command(TypeCommand::CreateComposite {
        name: node::relation(statement.typevar()),
        attributes: attributes.collect::<Result<_>>()?,
    }))
}

fn attribute(column: &ColumnDef) -> Result<Attribute> {
    node::collation(column.coll_clause())?;
    Ok(Attribute {
        name: column.colname().unwrap_or_default().to_owned(),
        type_text: node::type_text(column.type_name())?,
    })
}

/// ALTER TYPE of an enum's values.
pub(super) fn alter_enum(statement: &AlterEnumStmt) -> Statement {
    let label = statement.new_val().unwrap_or_default().to_owned();
    let change = match statement.old_val() {
        Some(from) => AlterType::RenameValue {
            from: from.to_owned(),
            to: label,
        },
        None => AlterType::AddValue {
            label,
            if_not_exists: statement.skip_if_new_val_exists,
            place: statement.new_val_neighbor().map(|neighbour| Neighbour {
                before: !statement.new_val_is_after,
                label: neighbour.to_owned(),
            }),
        },
    };
    altered(node::names(statement.type_name()), change)
}

/// A change of a type of this name.
pub(super) fn altered(name: Vec<String>, change: AlterType) -> Statement {
    command(TypeCommand::Alter { name, change })
}

/// ALTER TYPE of a composite type's columns.
pub(super) fn alter_composite(statement: &AlterTableStmt) -> Result<Statement> {
    let changes = statement.cmds().iter().filter_map(|change| match change {
        Node::AlterTableCmd(change) => Some(alter_attribute(change)),
        _ => None,
    });
    let change = AlterType::Attributes(changes.collect::<Result<_>>()?);
    Ok(altered(node::relation(statement.relation()), change))
}

fn alter_attribute(change: &AlterTableCmd) -> Result<AlterAttribute> {
    let name = || change.name().unwrap_or_default().to_owned();
    Ok(match (change.subtype, change.def()) {
        (AlterTableType::AT_AddColumn, Node::ColumnDef(column)) => {
            AlterAttribute::Add(attribute(column)?)
        }
        (AlterTableType::AT_AlterColumnType, Node::ColumnDef(column)) => {
            AlterAttribute::Type(Attribute {
                name: name(),
                ..attribute(column)?
            })
        }
        (AlterTableType::AT_DropColumn, _) => AlterAttribute::Drop {
            name: name(),
            if_exists: change.missing_ok,
        },
        _ => {
            return Err(SqlError::unsupported(
                "ALTER TYPE takes ADD, DROP and ALTER ATTRIBUTE only",
                "Create another type, and change the columns to it.",
            ));
        }
    })
}
