//! COPY is parsed here: its options come in PostgreSQL's present form, `WITH
//! (FORMAT csv, …)`, and in those of versions 7.3 and 9.0, which clients still
//! send (`COPY t TO STDOUT csv header`).

use super::own_grammar::{Read as Grammar, extent, query};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::parsed;
use super::statement::Query;
use super::tokens::Tokens;
use crate::copy::{ColumnChoice, CopyFormat, CopyOptions};
use crate::error::{Result, SqlError};

/// COPY.
#[derive(Debug, Clone)]
pub struct Copy {
    /// What is copied.
    pub source: CopySource,
    /// FROM STDIN; TO STDOUT otherwise.
    pub from: bool,
    /// The options; columns are not resolved yet.
    pub options: CopyOptions,
    /// The columns that FORCE_QUOTE, FORCE_NOT_NULL and FORCE_NULL name.
    pub forced: Forced,
    /// COPY … FROM … WHERE condition
    pub filter: Option<Box<ast::Expr>>,
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

/// Parses what follows the word COPY.
pub(crate) fn copy(tokens: &mut Tokens<'_>) -> Result<Copy> {
    let mut read = Read::default();
    let source = source(tokens, &mut read)?;
    let from = match tokens.one_of(&["from", "to"]) {
        Some(direction) => direction == "from",
        None => return Err(tokens.error()),
    };
    if from && matches!(source, CopySource::Query(_)) {
        return Err(tokens.error());
    }
    match tokens.one_of(&["stdin", "stdout"]) {
        Some(_) => {}
        None if tokens.is_keyword("program")
            || matches!(tokens.peek(), Some(Token::SingleQuotedString(_))) =>
        {
            return Err(SqlError::unsupported(
                "COPY with a file or a program of the server is not supported",
                "Use STDIN or STDOUT; psql's \\copy does this for a client's file.",
            ));
        }
        None => return Err(tokens.error()),
    }
    tokens
        .keyword("binary")
        .then(|| read.format = Some(CopyFormat::Binary));
    if tokens.keyword("using") {
        tokens.expect_keyword("delimiters")?;
        read.delimiter = Some(tokens.string()?);
    }
    tokens.keyword("with");
    if tokens.token(&Token::LParen) {
        loop {
            option(tokens, &mut read)?;
            if !tokens.token(&Token::Comma) {
                break;
            }
        }
        tokens.expect(&Token::RParen)?;
    } else {
        old_options(tokens, &mut read)?;
    }
    let filter = filter(tokens, from)?;
    tokens.end()?;
    let forced = std::mem::take(&mut read.forced);
    let options = check(read, &forced, from)?;
    Ok(Copy {
        source,
        from,
        options,
        forced,
        filter,
    })
}

fn source(tokens: &mut Tokens<'_>, read: &mut Read) -> Result<CopySource> {
    if tokens.token(&Token::LParen) {
        let inner = tokens.until_closing()?;
        return match query(tokens.sql(), extent(inner))? {
            Grammar::Query(query) => Ok(CopySource::Query(query)),
            Grammar::Into => Err(SqlError::unsupported(
                "COPY (SELECT INTO) is not supported",
                "Use COPY (SELECT ...) TO STDOUT.",
            )),
        };
    }
    if tokens.keyword("binary") {
        read.format = Some(CopyFormat::Binary);
    }
    let name = tokens.qualified_name()?;
    let columns = if tokens.peek() == Some(&Token::LParen) {
        tokens.identifier_list()?
    } else {
        Vec::new()
    };
    Ok(CopySource::Table { name, columns })
}

fn filter(tokens: &mut Tokens<'_>, from: bool) -> Result<Option<Box<ast::Expr>>> {
    if !tokens.is_keyword("where") {
        return Ok(None);
    }
    if !from {
        return Err(SqlError::syntax("WHERE clause not allowed with COPY TO")
            .with_position(tokens.position()));
    }
    tokens.advance();
    let rest = tokens.rest().to_vec();
    while !tokens.is_at_end() {
        tokens.advance();
    }
    let (expression, _) = parsed(tokens.sql(), rest, |parser| parser.parse_expr())?;
    Ok(Some(Box::new(expression)))
}

/// One option of the parenthesised form.
fn option(tokens: &mut Tokens<'_>, read: &mut Read) -> Result<()> {
    let position = tokens.position();
    let name = tokens.identifier()?;
    match name.as_str() {
        "format" => {
            let format = word_or_string(tokens)?;
            read.format = Some(match format.to_lowercase().as_str() {
                "text" => CopyFormat::Text,
                "csv" => CopyFormat::Csv,
                "binary" => CopyFormat::Binary,
                _ => {
                    return Err(SqlError::new(
                        "22023",
                        format!("COPY format \"{format}\" not recognized"),
                    )
                    .with_position(position));
                }
            });
        }
        "delimiter" => read.delimiter = Some(tokens.string()?),
        "null" => read.null = Some(tokens.string()?),
        "quote" => read.quote = Some(tokens.string()?),
        "escape" => read.escape = Some(tokens.string()?),
        "header" if tokens.keyword("match") => read.header = Some((true, true)),
        "header" => read.header = Some((boolean(tokens, "header")?, false)),
        // Every COPY here is one transaction; rows need no freezing.
        "freeze" => drop(boolean(tokens, "freeze")?),
        "encoding" => encoding(&tokens.string()?)?,
        "force_quote" => read.forced.quote = columns(tokens)?,
        "force_not_null" => read.forced.not_null = columns(tokens)?,
        "force_null" => read.forced.null = columns(tokens)?,
        _ => {
            return Err(
                SqlError::syntax(format!("option \"{name}\" not recognized"))
                    .with_position(position),
            );
        }
    }
    Ok(())
}

/// The options of the older forms.
fn old_options(tokens: &mut Tokens<'_>, read: &mut Read) -> Result<()> {
    while !tokens.is_at_end() && !tokens.is_keyword("where") {
        if tokens.keyword("binary") {
            read.format = Some(CopyFormat::Binary);
        } else if tokens.keyword("csv") {
            read.format = Some(CopyFormat::Csv);
        } else if tokens.keyword("header") {
            read.header = Some((true, false));
        } else if tokens.keyword("freeze") {
        } else if let Some(option) = tokens.one_of(&[
            "delimiter",
            "delimiters",
            "null",
            "quote",
            "escape",
            "encoding",
        ]) {
            tokens.keyword("as");
            let text = tokens.string()?;
            match option {
                "null" => read.null = Some(text),
                "quote" => read.quote = Some(text),
                "escape" => read.escape = Some(text),
                "encoding" => encoding(&text)?,
                _ => read.delimiter = Some(text),
            }
        } else if tokens.keywords(&["force", "quote"]) {
            read.forced.quote = bare_columns(tokens)?;
        } else if tokens.keywords(&["force", "not", "null"]) {
            read.forced.not_null = bare_columns(tokens)?;
        } else if tokens.keywords(&["force", "null"]) {
            read.forced.null = bare_columns(tokens)?;
        } else {
            return Err(tokens.error());
        }
    }
    Ok(())
}

fn word_or_string(tokens: &mut Tokens<'_>) -> Result<String> {
    match tokens.try_string() {
        Some(text) => Ok(text),
        None => tokens.identifier(),
    }
}

/// A boolean option: nothing means yes.
fn boolean(tokens: &mut Tokens<'_>, name: &str) -> Result<bool> {
    if matches!(tokens.peek(), None | Some(Token::Comma | Token::RParen)) {
        return Ok(true);
    }
    let text = match tokens.try_number() {
        Some(number) => number,
        None => word_or_string(tokens)?,
    };
    match text.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(SqlError::syntax(format!("{name} requires a Boolean value"))),
    }
}

fn encoding(name: &str) -> Result<()> {
    match name.to_lowercase().replace(['-', '_'], "").as_str() {
        "utf8" | "unicode" | "sqlascii" => Ok(()),
        _ => Err(SqlError::unsupported(
            format!("encoding \"{name}\" is not supported"),
            "Convert the file to UTF8, for example with iconv.",
        )),
    }
}

fn columns(tokens: &mut Tokens<'_>) -> Result<NamedColumns> {
    if tokens.token(&Token::Mul) {
        Ok(NamedColumns::All)
    } else {
        tokens.identifier_list().map(NamedColumns::Some)
    }
}

fn bare_columns(tokens: &mut Tokens<'_>) -> Result<NamedColumns> {
    if tokens.token(&Token::Mul) {
        return Ok(NamedColumns::All);
    }
    let mut names = vec![tokens.identifier()?];
    while tokens.token(&Token::Comma) {
        names.push(tokens.identifier()?);
    }
    Ok(NamedColumns::Some(names))
}

/// The options with their defaults, checked as PostgreSQL checks them.
fn check(read: Read, forced: &Forced, from: bool) -> Result<CopyOptions> {
    let format = read.format.unwrap_or_default();
    let mut options = CopyOptions::of_format(format);
    let binary = format == CopyFormat::Binary;
    let only_csv = |what: &str| {
        Err(SqlError::unsupported(
            format!("COPY {what} available only in CSV mode"),
            "Add FORMAT csv, or leave the option out.",
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
                "Leave HEADER out, or use FORMAT csv.",
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
