//! COPY. The grammar makes the options of the older forms (`COPY t TO STDOUT csv header`) those of
//! the present one, `WITH (FORMAT csv, …)`.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{CopyStmt, DefElem};
use thermocline_query::parse::written;

use super::statement::Query;
use super::{node, place, query};
use crate::copy::{ColumnChoice, CopyFormat, CopyOptions};
use crate::error::{Result, SqlError};

/// COPY.
#[derive(Debug, Clone)]
pub struct Copy {
    /// What is copied.
    pub source: CopySource,
    /// FROM STDIN or a file; TO STDOUT otherwise.
    pub from: bool,
    /// The server's file that the rows come from.
    pub file: Option<String>,
    /// The options; columns are not resolved yet.
    pub options: CopyOptions,
    /// The columns that FORCE_QUOTE, FORCE_NOT_NULL and FORCE_NULL name.
    pub forced: Forced,
    /// COPY … FROM … WHERE condition
    pub filter: Option<String>,
}

/// What is copied.
#[derive(Debug, Clone)]
pub enum CopySource {
    /// A table, with the columns named.
    Table {
        /// Its name.
        name: Vec<String>,
        /// The columns; empty for all.
        columns: Vec<String>,
    },
    /// The rows of a query.
    Query(Query),
}

/// Columns named by options.
#[derive(Debug, Clone, Default)]
pub struct Forced {
    /// FORCE_QUOTE
    pub quote: NamedColumns,
    /// FORCE_NOT_NULL
    pub not_null: NamedColumns,
    /// FORCE_NULL
    pub null: NamedColumns,
}

/// A column list or `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NamedColumns {
    /// None of them.
    #[default]
    None,
    /// `*`
    All,
    /// These.
    Some(Vec<String>),
}

impl NamedColumns {
    /// The places of the named columns among `columns`.
    ///
    /// # Errors
    /// 42703 for a name that is not among them.
    pub fn resolve(&self, columns: &[String]) -> Result<ColumnChoice> {
        match self {
            Self::None => Ok(ColumnChoice::None),
            Self::All => Ok(ColumnChoice::All),
            Self::Some(names) => names
                .iter()
                .map(|name| {
                    columns
                        .iter()
                        .position(|column| column == name)
                        .ok_or_else(|| SqlError::undefined_column(name))
                })
                .collect::<Result<Vec<usize>>>()
                .map(ColumnChoice::Some),
        }
    }
}

/// The options as they are read, before the format's defaults are known.
#[derive(Default)]
struct Read {
    format: Option<CopyFormat>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<(bool, bool)>,
    quote: Option<String>,
    escape: Option<String>,
    forced: Forced,
}

pub(super) fn copy(statement: &CopyStmt, text: &str) -> Result<Copy> {
    let file = statement.filename();
    if statement.is_program || (file.is_some() && !statement.is_from) {
        return Err(SqlError::unsupported(
            "COPY to a file or with a program of the server is not supported",
            "Use STDIN or STDOUT; psql's \\copy does this for a client's file.",
        ));
    }
    let mut read = Read::default();
    for given in statement.options().iter() {
        option(given, text, &mut read)?;
    }
    let source = match statement.relation() {
        Some(relation) => CopySource::Table {
            name: node::relation(Some(relation)),
            columns: node::strings(statement.attlist()),
        },
        None => {
            check_returning(statement.query())?;
            CopySource::Query(query::within(statement.query(), "COPY")?)
        }
    };
    let filter = match statement.where_clause() {
        Node::None => None,
        condition => Some(written::expression(condition)?),
    };
    let from = statement.is_from;
    let forced = std::mem::take(&mut read.forced);
    let options = check(read, &forced, from)?;
    Ok(Copy {
        source,
        from,
        file: file.map(Into::into),
        options,
        forced,
        filter,
    })
}

/// 0A000 for a change whose rows nobody asks for.
fn check_returning(query: Node<'_>) -> Result<()> {
    let returns = match query {
        Node::InsertStmt(insert) => insert.returning_clause().is_some(),
        Node::UpdateStmt(update) => update.returning_clause().is_some(),
        Node::MergeStmt(_) => {
            return Err(SqlError::unsupported(
                "MERGE not supported in COPY",
                "Send the MERGE by itself.",
            ));
        }
        Node::DeleteStmt(delete) => delete.returning_clause().is_some(),
        _ => true,
    };
    if returns {
        return Ok(());
    }
    Err(SqlError::unsupported(
        "COPY query must have a RETURNING clause",
        "Add RETURNING, or send the change by itself.",
    ))
}

fn option(option: &DefElem, text: &str, read: &mut Read) -> Result<()> {
    let position = place(text, option.location);
    let value = || node::option_text(option).unwrap_or_default();
    match node::option_name(option) {
        "format" => {
            let format = value();
            read.format = Some(match format.to_lowercase().as_str() {
                "text" => CopyFormat::Text,
                "csv" => CopyFormat::Csv,
                "binary" => CopyFormat::Binary,
                _ => {
                    let message = format!("COPY format \"{format}\" not recognized");
                    return Err(SqlError::new("22023", message).with_position(position));
                }
            });
        }
        "delimiter" => read.delimiter = Some(value()),
        "null" => read.null = Some(value()),
        "quote" => read.quote = Some(value()),
        "escape" => read.escape = Some(value()),
        "header" if value().eq_ignore_ascii_case("match") => read.header = Some((true, true)),
        "header" => read.header = Some((node::boolean(option)?, false)),
        // Every COPY here is one transaction; rows need no freezing.
        "freeze" => drop(node::boolean(option)?),
        "encoding" => encoding(&value())?,
        "force_quote" => read.forced.quote = columns(option),
        "force_not_null" => read.forced.not_null = columns(option),
        "force_null" => read.forced.null = columns(option),
        name => {
            let message = format!("option \"{name}\" not recognized");
            return Err(SqlError::syntax(message).with_position(position));
        }
    }
    Ok(())
}

fn encoding(name: &str) -> Result<()> {
    match name.to_lowercase().replace(['-', '_'], "").as_str() {
        "utf8" | "unicode" | "sqlascii" => Ok(()),
        _ => Err(SqlError::unsupported(
            format!("encoding \"{name}\" is not supported"),
            "Use UTF8.",
        )),
    }
}

fn columns(option: &DefElem) -> NamedColumns {
    match option.arg() {
        Node::A_Star(_) => NamedColumns::All,
        names => NamedColumns::Some(node::name(names)),
    }
}

/// The options with their defaults, checked as PostgreSQL checks them.
fn check(read: Read, forced: &Forced, from: bool) -> Result<CopyOptions> {
    let format = read.format.unwrap_or_default();
    let mut options = CopyOptions::of_format(format);
    let binary = format == CopyFormat::Binary;
    let only_csv = |what: &str| {
        Err(SqlError::unsupported(
            format!("COPY {what} available only in CSV mode"),
            "Add FORMAT csv.",
        ))
    };
    if binary && read.delimiter.is_some() {
        return Err(SqlError::syntax("cannot specify DELIMITER in BINARY mode"));
    }
    if binary && read.null.is_some() {
        return Err(SqlError::syntax("cannot specify NULL in BINARY mode"));
    }
    if let Some((header, matching)) = read.header {
        if binary && header {
            return Err(SqlError::unsupported(
                "cannot specify HEADER in BINARY mode",
                "Leave HEADER out.",
            ));
        }
        if matching && !from {
            return Err(SqlError::unsupported(
                "cannot use \"match\" with HEADER in COPY TO",
                "Write HEADER.",
            ));
        }
        options.header = header;
        options.header_match = matching;
    }
    if let Some(delimiter) = &read.delimiter {
        options.delimiter = one_byte("delimiter", delimiter)?;
    }
    if let Some(null) = read.null {
        options.null = null;
    }
    if let Some(quote) = &read.quote {
        if format != CopyFormat::Csv {
            return only_csv("quote");
        }
        options.quote = one_byte("quote", quote)?;
        options.escape = options.quote;
    }
    if let Some(escape) = &read.escape {
        if format != CopyFormat::Csv {
            return only_csv("escape");
        }
        options.escape = one_byte("escape", escape)?;
    }
    for (named, word, needs_from) in [
        (&forced.quote, "force quote", false),
        (&forced.not_null, "force not null", true),
        (&forced.null, "force null", true),
    ] {
        if *named == NamedColumns::None {
            continue;
        }
        if format != CopyFormat::Csv {
            return only_csv(word);
        }
        if from != needs_from {
            let direction = if needs_from { "COPY FROM" } else { "COPY TO" };
            return Err(SqlError::unsupported(
                format!("COPY {word} only available using {direction}"),
                "Leave the option out.",
            ));
        }
    }
    options.check()?;
    Ok(options)
}

fn one_byte(what: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(SqlError::unsupported(
            format!("COPY {what} must be a single one-byte character"),
            "Use one character of ASCII.",
        )),
    }
}
