//! CREATE VIEW, whose query is kept as its text, and ALTER VIEW.

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{AlterTableStmt, AlterTableType, ViewCheckOption, ViewStmt};
use thermocline_engine::{CHECK_OPTION, SECURITY_INVOKER, is_yes};

use super::depth::depth_of;
use super::scan::Tokens;
use super::statement::{Ddl, Statement};
use super::{characters, node, part, table};
use crate::error::{Result, SqlError};

/// The option that would keep a query's conditions from rows that the view does not show.
const SECURITY_BARRIER: &str = "security_barrier";

/// CREATE VIEW and ALTER VIEW.
#[derive(Debug, Clone)]
pub enum ViewCommand {
    /// CREATE VIEW
    Create(CreateView),
    /// ALTER VIEW
    Alter {
        /// Its name.
        name: Vec<String>,
        /// A missing one is left alone.
        if_exists: bool,
        /// What is to change.
        change: AlterView,
    },
}

/// CREATE VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    /// OR REPLACE
    pub replace: bool,
    /// TEMPORARY
    pub temporary: bool,
    /// Its name.
    pub name: Vec<String>,
    /// The names of its first columns.
    pub columns: Vec<String>,
    /// The text of its query.
    pub query: Box<str>,
    /// Where the query begins, in characters before it.
    pub before: u32,
    /// How deep its tree is.
    pub depth: u32,
    /// WITH: names and values.
    pub options: Vec<(String, String)>,
}

/// What ALTER VIEW changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterView {
    /// Its name.
    Rename(String),
    /// A column's name.
    RenameColumn(String, String),
    /// Options.
    SetOptions(Vec<(String, String)>),
    /// Options that it has no more.
    ResetOptions(Vec<String>),
}

pub(super) fn create(statement: &ViewStmt, text: &str) -> Result<Statement> {
    let mut options = view_options(statement.options())?;
    let check_option = match statement.with_check_option {
        ViewCheckOption::LOCAL_CHECK_OPTION => Some("local"),
        ViewCheckOption::CASCADED_CHECK_OPTION => Some("cascaded"),
        _ => None,
    };
    if let Some(check) = check_option {
        options.push((CHECK_OPTION.to_owned(), check.to_owned()));
    }
    said_once(&options)?;
    let missing = || SqlError::internal("a view without its query");
    let (start, query) = part::behind(text, "as").ok_or_else(missing)?;
    let query = match check_option {
        Some(_) => without_check_option(query),
        None => query,
    };
    let before = characters(&text[..start]);
    let name = node::relation(statement.view());
    let columns = node::strings(statement.aliases());
    let begin = Tokens::new(text).take_while(|token| !token.is_word("view"));
    let recursive = begin.into_iter().any(|token| token.is_word("recursive"));
    if recursive && check_option.is_some() {
        return Err(SqlError::unsupported(
            "WITH CHECK OPTION not supported on recursive views",
            "Leave it out: such a view takes no changes.",
        ));
    }
    let (query_text, before) = match recursive {
        true => of_recursive(&name, &columns, query, before),
        false => (query.to_owned(), before),
    };
    Ok(Statement::Ddl(Ddl::View(ViewCommand::Create(CreateView {
        replace: statement.replace,
        temporary: node::is_temporary(statement.view()),
        name,
        columns,
        depth: depth_of(&query_text)?,
        query: query_text.into(),
        before,
        options,
    }))))
}

/// ALTER VIEW … SET or RESET (…), if it is one.
pub(super) fn altered(statement: &AlterTableStmt) -> Result<Option<Statement>> {
    let mut changes = statement.cmds().iter().filter_map(|change| match change {
        Node::AlterTableCmd(change) => Some(change),
        _ => None,
    });
    let (Some(change), None) = (changes.next(), changes.next()) else {
        return Ok(None);
    };
    let change = match (change.subtype, change.def()) {
        (AlterTableType::AT_SetRelOptions, Node::NodeList(list)) => {
            AlterView::SetOptions(view_options(list)?)
        }
        (AlterTableType::AT_ResetRelOptions, Node::NodeList(list)) => {
            let names = table::options(list).into_iter().map(|(name, _)| name);
            AlterView::ResetOptions(names.collect())
        }
        _ => return Ok(None),
    };
    Ok(Some(Statement::Ddl(Ddl::View(ViewCommand::Alter {
        name: node::relation(statement.relation()),
        if_exists: statement.missing_ok,
        change,
    }))))
}

/// A query without the WITH [LOCAL | CASCADED] CHECK OPTION behind it.
fn without_check_option(query: &str) -> &str {
    let mut with = None;
    let mut tokens = Tokens::new(query);
    while let Some(token) = tokens.next() {
        if token.is_word("with") {
            with = Some(tokens.at() - token.text().len());
        }
    }
    query[..with.unwrap_or(query.len())].trim_end()
}

/// The options of a view, by their names and values.
///
/// # Errors
/// 22023 for what no view has, and 0A000 for a barrier, which there is none of.
pub(super) fn view_options(list: &NodeList) -> Result<Vec<(String, String)>> {
    let options = table::options(list);
    are_views(&options)?;
    Ok(options)
}

/// As [`view_options`].
pub(crate) fn are_views(options: &[(String, String)]) -> Result<()> {
    for (name, value) in options {
        match name.as_str() {
            CHECK_OPTION => {
                let known = ["local", "cascaded"];
                if !known.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                    let message = format!("invalid value for enum option \"{name}\": {value}");
                    return Err(SqlError::new("22023", message)
                        .with_detail("Valid values are \"local\" and \"cascaded\"."));
                }
            }
            SECURITY_BARRIER | SECURITY_INVOKER => match (is_yes(value), name.as_str()) {
                (None, _) => {
                    let message = format!("invalid value for boolean option \"{name}\": {value}");
                    return Err(SqlError::new("22023", message));
                }
                (Some(true), SECURITY_BARRIER) => {
                    return Err(SqlError::unsupported(
                        "security_barrier of a view is not supported",
                        "A query's conditions may see rows that the view does not show: keep those in another table.",
                    ));
                }
                _ => {}
            },
            _ => {
                let message = format!("unrecognized parameter \"{name}\"");
                return Err(SqlError::new("22023", message)
                    .with_hint("Views have check_option and security_invoker."));
            }
        }
    }
    said_once(options)
}

/// 22023 for an option that is said twice.
fn said_once(options: &[(String, String)]) -> Result<()> {
    for (at, (name, _)) in options.iter().enumerate() {
        if options[..at].iter().any(|(before, _)| before == name) {
            let message = format!("parameter \"{name}\" specified more than once");
            return Err(SqlError::new("22023", message));
        }
    }
    Ok(())
}

/// The query of a recursive view, and what stands before it as far as places in the text tell.
fn of_recursive(name: &[String], columns: &[String], text: &str, before: u32) -> (String, u32) {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let name = name.last().map(quoted).unwrap_or_default();
    let columns: Vec<String> = columns.iter().map(quoted).collect();
    let columns = columns.join(", ");
    let head = format!("WITH RECURSIVE {name} ({columns}) AS (");
    let before = before.saturating_sub(characters(&head));
    (
        format!("{head}{text}) SELECT {columns} FROM {name}"),
        before,
    )
}
