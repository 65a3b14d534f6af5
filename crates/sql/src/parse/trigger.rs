//! CREATE, DROP and ALTER TRIGGER. Conditions are kept as their texts.

use pg_raw_parse::nodes::{CreateTrigStmt, DropStmt, RenameStmt};
use thermocline_engine::TriggerEvent;
use thermocline_query::parse::written;

use super::node;
use super::statement::{Ddl, Statement};
use crate::error::{Result, SqlError};

/// A command about triggers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerCommand {
    /// CREATE TRIGGER
    Create(Box<CreateTrigger>),
    /// DROP TRIGGER
    Drop {
        /// Its table.
        table: Vec<String>,
        /// Its name.
        name: String,
        /// A missing one is left alone.
        if_exists: bool,
    },
    /// ALTER TRIGGER … RENAME TO
    Rename {
        /// Its table.
        table: Vec<String>,
        /// Its name.
        name: String,
        /// Its new name.
        to: String,
    },
}

impl TriggerCommand {
    /// The table that it is about.
    pub(crate) fn table(&self) -> &Vec<String> {
        match self {
            Self::Create(create) => &create.table,
            Self::Drop { table, .. } | Self::Rename { table, .. } => table,
        }
    }
}

/// CREATE TRIGGER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTrigger {
    /// OR REPLACE
    pub replace: bool,
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: Vec<String>,
    /// The function that it calls.
    pub function: Vec<String>,
    /// BEFORE, else AFTER.
    pub before: bool,
    /// FOR EACH ROW, else FOR EACH STATEMENT.
    pub row: bool,
    /// What it is for.
    pub events: Vec<TriggerEvent>,
    /// UPDATE OF
    pub columns: Vec<String>,
    /// WHEN, as its text.
    pub condition: Option<String>,
    /// What the function is told.
    pub arguments: Vec<String>,
}

/// Which triggers of a table are enabled or disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one of this name.
    Named(String),
    /// ALL, or USER.
    All,
}

/// PostgreSQL's bits of a trigger.
const BEFORE: i16 = 1 << 1;
const INSTEAD: i16 = 1 << 6;
const EVENTS: [(i16, TriggerEvent); 4] = [
    (1 << 2, TriggerEvent::Insert),
    (1 << 3, TriggerEvent::Delete),
    (1 << 4, TriggerEvent::Update),
    (1 << 5, TriggerEvent::Truncate),
];

pub(super) fn create(statement: &CreateTrigStmt) -> Result<Statement> {
    if statement.isconstraint {
        return Err(SqlError::unsupported(
            "constraint triggers are not supported",
            "Make an AFTER trigger, which is called when the statement ends.",
        ));
    }
    if statement.timing & INSTEAD != 0 {
        return Err(SqlError::unsupported(
            "INSTEAD OF triggers are not supported",
            "Make a trigger of the view's table.",
        ));
    }
    if !statement.transition_rels().is_empty() {
        return Err(SqlError::unsupported(
            "REFERENCING of a trigger is not supported",
            "Make a trigger for each row, which has the row as NEW and OLD.",
        ));
    }
    let condition = match statement.when_clause() {
        pg_raw_parse::Node::None => None,
        condition => Some(written::expression(condition)?),
    };
    let events = EVENTS
        .iter()
        .filter(|(bit, _)| statement.events & bit != 0)
        .map(|(_, event)| *event);
    let create = CreateTrigger {
        replace: statement.replace,
        name: statement.trigname().unwrap_or_default().to_owned(),
        table: node::relation(statement.relation()),
        function: node::strings(statement.funcname()),
        before: statement.timing & BEFORE != 0,
        row: statement.row,
        events: events.collect(),
        columns: node::strings(statement.columns()),
        condition,
        arguments: node::names(statement.args()),
    };
    Ok(trigger(TriggerCommand::Create(Box::new(create))))
}

fn trigger(command: TriggerCommand) -> Statement {
    Statement::Ddl(Ddl::Trigger(command))
}

/// DROP TRIGGER: the last part of the name is the trigger's.
pub(super) fn drop(statement: &DropStmt) -> Result<Statement> {
    let name = statement.objects().iter().next().map(node::name);
    let Some((name, table)) = name.as_ref().and_then(|parts| parts.split_last()) else {
        return Err(SqlError::internal("DROP TRIGGER of none"));
    };
    Ok(trigger(TriggerCommand::Drop {
        table: table.to_vec(),
        name: name.clone(),
        if_exists: statement.missing_ok,
    }))
}

pub(super) fn rename(statement: &RenameStmt) -> Statement {
    trigger(TriggerCommand::Rename {
        table: node::relation(statement.relation()),
        name: statement.subname().unwrap_or_default().to_owned(),
        to: statement.newname().unwrap_or_default().to_owned(),
    })
}
