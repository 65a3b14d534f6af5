//! Constraints of columns and tables, and SET CONSTRAINTS.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{ConstrType, Constraint, ConstraintsSetStmt};
use thermocline_engine::ReferenceAction;
use thermocline_query::parse::written;

use super::node;
use super::sequence::{self, SequenceOptions};
use super::statement::Statement;
use crate::error::{Result, SqlError};

/// What is said of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnConstraint {
    /// NULL
    Null,
    /// NOT NULL
    NotNull,
    /// DEFAULT, and its text.
    Default(String),
    /// GENERATED ALWAYS AS (…) STORED, and its text.
    Generated(String),
    /// GENERATED … AS IDENTITY
    Identity {
        /// ALWAYS, not BY DEFAULT.
        always: bool,
        /// The options of its sequence.
        options: SequenceOptions,
    },
    /// PRIMARY KEY, UNIQUE and CHECK.
    Of(TableConstraint),
}

/// A constraint of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableConstraint {
    /// PRIMARY KEY and UNIQUE
    Key {
        /// Its name.
        name: Option<String>,
        /// Its columns; none for the one that it stands at.
        columns: Vec<String>,
        /// INCLUDE
        include: Vec<String>,
        /// PRIMARY KEY
        primary: bool,
        /// NULLS NOT DISTINCT
        nulls_equal: bool,
    },
    /// CHECK
    Check {
        /// Its name.
        name: Option<String>,
        /// The text of the condition.
        expression: String,
        /// Not NOT VALID.
        validated: bool,
    },
    /// FOREIGN KEY and REFERENCES
    ForeignKey(Box<ForeignKey>),
}

/// PRIMARY KEY or UNIQUE … USING INDEX
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsingIndex {
    /// The constraint's name; None: the index's.
    pub name: Option<String>,
    /// The index, in the schema of its table.
    pub index: String,
    /// PRIMARY KEY
    pub primary: bool,
}

/// A FOREIGN KEY constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name.
    pub name: Option<String>,
    /// Its columns; none for the one that it stands at.
    pub columns: Vec<String>,
    /// The table referred to.
    pub table: Vec<String>,
    /// Its columns; none for those of its primary key.
    pub referenced: Vec<String>,
    /// MATCH FULL
    pub match_full: bool,
    /// ON UPDATE
    pub on_update: ReferenceAction,
    /// ON DELETE
    pub on_delete: ReferenceAction,
    /// The columns of ON DELETE SET NULL and SET DEFAULT.
    pub set_columns: Vec<String>,
    /// DEFERRABLE
    pub deferrable: bool,
    /// INITIALLY DEFERRED
    pub deferred: bool,
    /// Not NOT VALID.
    pub validated: bool,
}

#[cold]
fn refused(message: &str, hint: &'static str) -> SqlError {
    SqlError::unsupported(message.to_owned(), hint)
}

/// Takes what says when a foreign key is looked at, which stands behind it.
pub(super) fn defers(constraint: &Constraint, before: Option<&mut ColumnConstraint>) -> bool {
    let Some(ColumnConstraint::Of(TableConstraint::ForeignKey(key))) = before else {
        return false;
    };
    match constraint.contype {
        ConstrType::CONSTR_ATTR_DEFERRABLE => key.deferrable = true,
        ConstrType::CONSTR_ATTR_DEFERRED => (key.deferrable, key.deferred) = (true, true),
        _ => return false,
    }
    true
}

fn foreign_key(constraint: &Constraint) -> ForeignKey {
    ForeignKey {
        name: constraint.conname().map(str::to_owned),
        columns: node::strings(constraint.fk_attrs()),
        table: node::relation(constraint.pktable()),
        referenced: node::strings(constraint.pk_attrs()),
        match_full: constraint.fk_matchtype as u8 == b'f',
        on_update: action(constraint.fk_upd_action as u8),
        on_delete: action(constraint.fk_del_action as u8),
        set_columns: node::strings(constraint.fk_del_set_cols()),
        deferrable: constraint.deferrable,
        deferred: constraint.initdeferred,
        validated: !constraint.skip_validation,
    }
}

/// PostgreSQL's letters for actions.
const fn action(letter: u8) -> ReferenceAction {
    match letter {
        b'r' => ReferenceAction::Restrict,
        b'c' => ReferenceAction::Cascade,
        b'n' => ReferenceAction::SetNull,
        b'd' => ReferenceAction::SetDefault,
        _ => ReferenceAction::NoAction,
    }
}

pub(super) fn column_constraint(
    constraint: &Constraint,
    text: &str,
) -> Result<Option<ColumnConstraint>> {
    Ok(Some(match constraint.contype {
        ConstrType::CONSTR_NULL => ColumnConstraint::Null,
        ConstrType::CONSTR_NOTNULL => ColumnConstraint::NotNull,
        ConstrType::CONSTR_DEFAULT => {
            ColumnConstraint::Default(written::expression(constraint.raw_expr())?)
        }
        ConstrType::CONSTR_IDENTITY => ColumnConstraint::Identity {
            always: constraint.generated_when as u8 == b'a',
            options: sequence::options(constraint.options(), text)?,
        },
        ConstrType::CONSTR_GENERATED if constraint.generated_kind as u8 != b's' => {
            return Err(refused(
                "virtual generated columns are not supported",
                "Write STORED behind the expression.",
            ));
        }
        ConstrType::CONSTR_GENERATED => {
            ColumnConstraint::Generated(written::expression(constraint.raw_expr())?)
        }
        ConstrType::CONSTR_ATTR_NOT_DEFERRABLE | ConstrType::CONSTR_ATTR_IMMEDIATE => {
            return Ok(None);
        }
        _ => ColumnConstraint::Of(table_constraint(constraint)?),
    }))
}

/// What ALTER TABLE adds USING INDEX, if it does.
pub(super) fn using_index(constraint: &Constraint) -> Result<Option<UsingIndex>> {
    let Some(index) = constraint.indexname() else {
        return Ok(None);
    };
    is_not_deferrable(constraint)?;
    Ok(Some(UsingIndex {
        name: constraint.conname().map(str::to_owned),
        index: index.to_owned(),
        primary: constraint.contype == ConstrType::CONSTR_PRIMARY,
    }))
}

/// 0A000 for a constraint that is to be checked later and is no foreign key.
fn is_not_deferrable(constraint: &Constraint) -> Result<()> {
    let said = matches!(
        constraint.contype,
        ConstrType::CONSTR_ATTR_DEFERRABLE | ConstrType::CONSTR_ATTR_DEFERRED
    );
    match constraint.deferrable || said {
        false => Ok(()),
        true => Err(refused(
            "deferrable constraints other than foreign keys are not supported",
            "Leave DEFERRABLE out: only foreign keys can be deferred.",
        )),
    }
}

/// A constraint that keys and checks are.
pub(super) fn table_constraint(constraint: &Constraint) -> Result<TableConstraint> {
    let name = constraint.conname().map(str::to_owned);
    if constraint.contype == ConstrType::CONSTR_FOREIGN {
        if constraint.fk_matchtype as u8 == b'p' {
            return Err(refused(
                "MATCH PARTIAL is not yet implemented",
                "Use MATCH FULL, or leave the clause out.",
            ));
        }
        return Ok(TableConstraint::ForeignKey(Box::new(foreign_key(
            constraint,
        ))));
    }
    is_not_deferrable(constraint)?;
    match constraint.contype {
        ConstrType::CONSTR_PRIMARY | ConstrType::CONSTR_UNIQUE => {
            if constraint.indexname().is_some() {
                return Err(refused(
                    "cannot use an existing index in CREATE TABLE",
                    "Name its columns: the constraint makes an index of its own.",
                ));
            }
            Ok(TableConstraint::Key {
                name,
                columns: node::strings(constraint.keys()),
                include: node::strings(constraint.including()),
                primary: constraint.contype == ConstrType::CONSTR_PRIMARY,
                nulls_equal: constraint.nulls_not_distinct,
            })
        }
        ConstrType::CONSTR_CHECK => Ok(TableConstraint::Check {
            name,
            expression: written::expression(constraint.raw_expr())?,
            validated: !constraint.skip_validation,
        }),
        ConstrType::CONSTR_EXCLUSION => Err(refused(
            "exclusion constraints are not supported",
            "Use UNIQUE where the operator is =.",
        )),
        _ => Err(refused(
            "a constraint of this kind is not supported",
            "Leave it out.",
        )),
    }
}

pub(super) fn set_constraints(statement: &ConstraintsSetStmt) -> Statement {
    let names = statement
        .constraints()
        .iter()
        .filter_map(|name| match name {
            Node::RangeVar(name) => Some(node::relation(Some(name))),
            _ => None,
        });
    let names: Vec<Vec<String>> = names.collect();
    Statement::SetConstraints {
        names: (!names.is_empty()).then_some(names),
        deferred: statement.deferred,
    }
}
