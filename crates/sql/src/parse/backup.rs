//! BACKUP TO, the command that PostgreSQL has not.

use super::place_of;
use super::scan::{Token, Tokens};
use super::statement::Statement;
use crate::error::{Result, SqlError};

/// `BACKUP TO 'directory' [WITH (max_rate = n)]`; n is kilobytes a second, as
/// in PostgreSQL's BASE_BACKUP.
pub(super) fn backup(text: &str) -> Result<Statement> {
    let mut reader = Reader {
        text,
        tokens: Tokens::new(text),
        next: None,
    };
    reader.advance();
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
    while reader.next.is_some_and(|next| next.is_symbol(";")) {
        reader.advance();
    }
    match reader.next {
        None => Ok(Statement::Backup {
            directory,
            max_rate,
        }),
        Some(_) => Err(reader.error()),
    }
}

/// The text of a plain string constant.
fn literal(constant: &str) -> Option<String> {
    let inner = constant.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}

struct Reader<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
    next: Option<Token<'a>>,
}

impl Reader<'_> {
    fn advance(&mut self) {
        self.next = self.tokens.next();
    }

    fn word(&mut self, word: &str) -> Result<()> {
        match self.next {
            Some(next) if next.is_word(word) => self.advance(),
            _ => return Err(self.error()),
        }
        Ok(())
    }

    fn symbol(&mut self, symbol: &str) -> Result<()> {
        match self.next {
            Some(next) if next.is_symbol(symbol) => self.advance(),
            _ => return Err(self.error()),
        }
        Ok(())
    }

    #[cold]
    fn error(&self) -> SqlError {
        let (message, at) = match self.next {
            Some(next) => (
                format!("syntax error at or near \"{}\"", next.text()),
                self.tokens.at() - next.text().len(),
            ),
            None => ("syntax error at end of input".to_owned(), self.text.len()),
        };
        SqlError::syntax(message).with_position(Some(place_of(self.text, at)))
    }
}
