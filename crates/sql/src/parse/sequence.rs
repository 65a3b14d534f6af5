//! The options of a sequence, in any order as PostgreSQL takes them: of CREATE
//! and ALTER SEQUENCE and of identity columns.

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{AlterSeqStmt, CreateSeqStmt};

use super::statement::{AlterSequence, CreateSequence, Ddl, Statement};
use super::{node, place};
use crate::error::{Result, SqlError};

/// What was said of a sequence; what was not said is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SequenceOptions {
    /// AS type, as written.
    pub data_type: Option<String>,
    /// START WITH
    pub start: Option<i64>,
    /// RESTART [WITH]; the inner `None` means at its start.
    pub restart: Option<Option<i64>>,
    /// INCREMENT BY
    pub increment: Option<i64>,
    /// MINVALUE; the inner `None` is NO MINVALUE.
    pub min: Option<Option<i64>>,
    /// MAXVALUE; the inner `None` is NO MAXVALUE.
    pub max: Option<Option<i64>>,
    /// CACHE
    pub cache: Option<i64>,
    /// CYCLE or NO CYCLE
    pub cycle: Option<bool>,
    /// OWNED BY table.column; the inner `None` is OWNED BY NONE.
    pub owned_by: Option<Option<Vec<String>>>,
    /// SEQUENCE NAME, as `pg_dump` writes it of an identity column.
    pub name: Option<Vec<String>>,
    /// GENERATED ALWAYS or BY DEFAULT, where an identity column is altered.
    pub always: Option<bool>,
}

pub(super) fn create(statement: &CreateSeqStmt, text: &str) -> Result<Statement> {
    Ok(Statement::Ddl(Ddl::CreateSequence(CreateSequence {
        temporary: node::is_temporary(statement.sequence()),
        name: node::relation(statement.sequence()),
        if_not_exists: statement.if_not_exists,
        options: unnamed(statement.options(), text)?,
    })))
}

pub(super) fn alter(statement: &AlterSeqStmt, text: &str) -> Result<Statement> {
    Ok(Statement::Ddl(Ddl::AlterSequence {
        name: node::relation(statement.sequence()),
        if_exists: statement.missing_ok,
        change: AlterSequence::Options(unnamed(statement.options(), text)?),
    }))
}

/// Options of a sequence that has its name by itself.
fn unnamed(given: &NodeList, text: &str) -> Result<SequenceOptions> {
    let options = options(given, text)?;
    match options.name {
        None => Ok(options),
        Some(_) => Err(SqlError::syntax(
            "SEQUENCE NAME is an option of an identity column only",
        )),
    }
}

/// Reads options, of a sequence or an identity column.
pub(super) fn options(given: &NodeList, text: &str) -> Result<SequenceOptions> {
    let mut options = SequenceOptions::default();
    for option in given.iter() {
        let Node::DefElem(option) = option else {
            continue;
        };
        let has_value = !matches!(option.arg(), Node::None);
        let number = || node::integer(option);
        let bound = || has_value.then(number).transpose();
        let fresh = match node::option_name(option) {
            "as" => {
                let Node::TypeName(name) = option.arg() else {
                    continue;
                };
                replace(&mut options.data_type, node::type_text(Some(name))?)
            }
            "start" => replace(&mut options.start, number()?),
            "restart" => replace(&mut options.restart, bound()?),
            "increment" => replace(&mut options.increment, number()?),
            "minvalue" => replace(&mut options.min, bound()?),
            "maxvalue" => replace(&mut options.max, bound()?),
            "cache" => replace(&mut options.cache, number()?),
            "cycle" => replace(&mut options.cycle, node::boolean(option)?),
            "owned_by" => {
                let owner = node::name(option.arg());
                let none = owner.len() == 1 && owner[0] == "none";
                replace(&mut options.owned_by, (!none).then_some(owner))
            }
            "generated" => replace(&mut options.always, number()? == i64::from(b'a')),
            "sequence_name" => replace(&mut options.name, node::name(option.arg())),
            other => {
                let word = other.to_uppercase().replace('_', " ");
                let message = format!("{word} of a sequence is not supported");
                return Err(SqlError::unsupported(message, "Leave it out.")
                    .with_position(place(text, option.location)));
            }
        };
        if !fresh {
            return Err(SqlError::syntax("conflicting or redundant options")
                .with_position(place(text, option.location)));
        }
    }
    Ok(options)
}

fn replace<T>(option: &mut Option<T>, value: T) -> bool {
    option.replace(value).is_none()
}
