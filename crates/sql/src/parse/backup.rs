//! BACKUP TO, a command that PostgreSQL has not.

use super::own::Reader;
use super::scan::Token;
use super::statement::Statement;
use crate::error::{Result, SqlError};

/// `BACKUP TO 'directory' [WITH (max_rate = n)]`; n is kilobytes a second, as
/// in PostgreSQL's BASE_BACKUP.
pub(super) fn backup(text: &str) -> Result<Statement> {
    let mut reader = Reader::new(text);
    reader.word("backup")?;
    reader.word("to")?;
    let directory = match reader.next {
        Some(Token::Constant(constant)) => literal(constant),
        _ => None,
    };
    let directory = directory.ok_or_else(|| reader.error())?;
    reader.advance();
    let mut max_rate = None;
    if reader.next.is_some_and(|next| next.is_word("with")) {
        reader.advance();
        reader.symbol("(")?;
        reader.word("max_rate")?;
        if reader.next.is_some_and(|next| next.is_symbol("=")) {
            reader.advance();
        }
        let Some(Token::Constant(number)) = reader.next else {
            return Err(reader.error());
        };
        let kilobytes = number.parse::<u64>().ok().filter(|n| *n > 0);
        max_rate = Some(kilobytes.ok_or_else(|| {
            SqlError::new(
                "22023",
                format!("max_rate must be a number of kilobytes a second, not {number}"),
            )
        })?);
        reader.advance();
        reader.symbol(")")?;
    }
    reader.end()?;
    Ok(Statement::Backup {
        directory,
        max_rate,
    })
}

/// The text of a plain string constant.
fn literal(constant: &str) -> Option<String> {
    let inner = constant.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}
