//! Reads the tokens of commands that PostgreSQL does not have. Each such command has a file of its own.

use super::place_of;
use super::scan::{Token, Tokens};
use crate::error::{Result, SqlError};

/// Reads the tokens of a statement one after the other.
pub(super) struct Reader<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
    /// The token that it stands at; None at the end.
    pub(super) next: Option<Token<'a>>,
}

impl<'a> Reader<'a> {
    /// Stands at the first token.
    pub(super) fn new(text: &'a str) -> Self {
        let mut tokens = Tokens::new(text);
        let next = tokens.next();
        Self { text, tokens, next }
    }

    pub(super) fn advance(&mut self) {
        self.next = self.tokens.next();
    }

    /// Goes past this word.
    pub(super) fn word(&mut self, word: &str) -> Result<()> {
        match self.next {
            Some(next) if next.is_word(word) => self.advance(),
            _ => return Err(self.error()),
        }
        Ok(())
    }

    /// Goes past this symbol.
    pub(super) fn symbol(&mut self, symbol: &str) -> Result<()> {
        match self.next {
            Some(next) if next.is_symbol(symbol) => self.advance(),
            _ => return Err(self.error()),
        }
        Ok(())
    }

    /// Whether it stands at this word.
    pub(super) fn is_at_word(&self, word: &str) -> bool {
        self.next.is_some_and(|next| next.is_word(word))
    }

    /// Whether it stands at this symbol.
    pub(super) fn is_at(&self, symbol: &str) -> bool {
        self.next.is_some_and(|next| next.is_symbol(symbol))
    }

    /// A name, folded unless it is quoted; goes past it.
    pub(super) fn name(&mut self) -> Result<String> {
        let name = match self.next {
            Some(Token::Word(word)) => word.to_lowercase(),
            Some(Token::Quoted(quoted)) if quoted.len() > 2 && quoted.ends_with('"') => {
                quoted[1..quoted.len() - 1].replace("\"\"", "\"")
            }
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(name)
    }

    /// A name, perhaps with a schema's before it; goes past it.
    pub(super) fn qualified(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.name()?];
        while self.is_at(".") {
            self.advance();
            parts.push(self.name()?);
        }
        Ok(parts)
    }

    /// Nothing follows but semicolons.
    pub(super) fn end(&mut self) -> Result<()> {
        while self.is_at(";") {
            self.advance();
        }
        match self.next {
            None => Ok(()),
            Some(_) => Err(self.error()),
        }
    }

    #[cold]
    pub(super) fn error(&self) -> SqlError {
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
