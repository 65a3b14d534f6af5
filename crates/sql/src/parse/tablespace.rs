//! CREATE, ALTER and DROP TABLESPACE.

use pg_raw_parse::nodes::{
    AlterTableSpaceOptionsStmt, CreateTableSpaceStmt, DropTableSpaceStmt, RenameStmt,
};

use super::statement::Statement;
use super::table::options;

/// A command about tablespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TablespaceCommand {
    /// CREATE TABLESPACE
    Create {
        /// Its name.
        name: String,
        /// OWNER
        owner: Option<String>,
        /// LOCATION
        location: String,
        /// WITH
        options: Vec<(String, String)>,
    },
    /// DROP TABLESPACE
    Drop {
        /// Its name.
        name: String,
        /// A missing one is no error.
        if_exists: bool,
    },
    /// ALTER TABLESPACE … RENAME TO
    Rename {
        /// Its name.
        name: String,
        /// The new one.
        to: String,
    },
    /// ALTER TABLESPACE … SET
    Set {
        /// Its name.
        name: String,
        /// Options and what they get.
        options: Vec<(String, String)>,
    },
    /// ALTER TABLESPACE … RESET
    Reset {
        /// Its name.
        name: String,
        /// Options.
        options: Vec<String>,
    },
}

impl TablespaceCommand {
    /// Its command tag.
    #[must_use]
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CREATE TABLESPACE",
            Self::Drop { .. } => "DROP TABLESPACE",
            Self::Rename { .. } | Self::Set { .. } | Self::Reset { .. } => "ALTER TABLESPACE",
        }
    }
}

pub(super) fn create(statement: &CreateTableSpaceStmt) -> Statement {
    Statement::Tablespace(TablespaceCommand::Create {
        name: statement.tablespacename().unwrap_or_default().to_owned(),
        owner: statement.owner().map(super::node::role),
        location: statement.location().unwrap_or_default().to_owned(),
        options: options(statement.options()),
    })
}

pub(super) fn drop(statement: &DropTableSpaceStmt) -> Statement {
    Statement::Tablespace(TablespaceCommand::Drop {
        name: statement.tablespacename().unwrap_or_default().to_owned(),
        if_exists: statement.missing_ok,
    })
}

pub(super) fn rename(statement: &RenameStmt) -> Statement {
    Statement::Tablespace(TablespaceCommand::Rename {
        name: statement.subname().unwrap_or_default().to_owned(),
        to: statement.newname().unwrap_or_default().to_owned(),
    })
}

pub(super) fn alter(statement: &AlterTableSpaceOptionsStmt) -> Statement {
    let name = statement.tablespacename().unwrap_or_default().to_owned();
    let options = options(statement.options());
    Statement::Tablespace(match statement.is_reset {
        true => TablespaceCommand::Reset {
            name,
            options: options.into_iter().map(|(name, _)| name).collect(),
        },
        false => TablespaceCommand::Set { name, options },
    })
}
