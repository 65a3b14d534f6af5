//! A cursor over the tokens of one statement, for the commands that are parsed
//! here by hand. Tokens are sqlparser's, without blanks and comments, so that
//! quotes, dollar quotes and nested comments mean the same on both ways.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::dialect::PgDialect;
use crate::error::{Result, SqlError, position_of};

/// The dialect of all parsing.
pub(crate) static DIALECT: PgDialect = PgDialect::unlimited();

/// The tokens of `sql` without blanks and comments.
///
/// # Errors
/// 42601 for an unterminated quote or comment.
pub(crate) fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let mut tokens = Tokenizer::new(&DIALECT, sql)
        .tokenize_with_location()
        .map_err(|error| {
            let position = position_of(sql, error.location.line, error.location.column);
            SqlError::syntax(error.message).with_position(position)
        })?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    Ok(tokens)
}

/// An identifier as PostgreSQL sees it: folded to lower case unless quoted.
#[must_use]
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The parts of a qualified name, folded.
#[must_use]
pub(crate) fn fold_parts(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .filter_map(ObjectNamePart::as_ident)
        .map(fold)
        .collect()
}

/// A cursor over tokens.
pub(crate) struct Tokens<'a> {
    sql: &'a str,
    tokens: &'a [TokenWithSpan],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(sql: &'a str, tokens: &'a [TokenWithSpan]) -> Self {
        Self { sql, tokens, at: 0 }
    }

    /// The text the tokens are of.
    pub(crate) fn sql(&self) -> &'a str {
        self.sql
    }

    pub(crate) fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at).map(|token| &token.token)
    }

    fn peek_word(&self) -> Option<&'a Word> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    /// The tokens not yet read.
    pub(crate) fn rest(&self) -> &'a [TokenWithSpan] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Whether the next token is this word, unquoted.
    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.peek_word().is_some_and(|word| {
            word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword)
        })
    }

    /// Whether the tokens from here are these words.
    pub(crate) fn are_keywords(&self, keywords: &[&str]) -> bool {
        keywords.iter().enumerate().all(|(ahead, keyword)| {
            matches!(
                self.tokens.get(self.at + ahead).map(|token| &token.token),
                Some(Token::Word(word))
                    if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword)
            )
        })
    }

    /// Reads the word if it is next.
    pub(crate) fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        self.at += usize::from(found);
        found
    }

    /// Reads these words if they are next, all of them or none.
    pub(crate) fn keywords(&mut self, keywords: &[&str]) -> bool {
        let found = self.are_keywords(keywords);
        if found {
            self.at += keywords.len();
        }
        found
    }

    /// Reads whichever of the words is next.
    pub(crate) fn one_of(&mut self, keywords: &[&'static str]) -> Option<&'static str> {
        keywords
            .iter()
            .copied()
            .find(|keyword| self.keyword(keyword))
    }

    pub(crate) fn expect_keyword(&mut self, keyword: &str) -> Result<()> {
        if self.keyword(keyword) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    /// Reads the token if it is next.
    pub(crate) fn token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, token: &Token) -> Result<()> {
        if self.token(token) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<()> {
        if self.is_at_end() {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    /// An identifier, folded.
    pub(crate) fn identifier(&mut self) -> Result<String> {
        let word = self.peek_word().ok_or_else(|| self.error())?;
        self.advance();
        Ok(match word.quote_style {
            Some(_) => word.value.clone(),
            None => word.value.to_lowercase(),
        })
    }

    /// A name with its schema: `a` or `a.b`, parts folded.
    pub(crate) fn qualified_name(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.identifier()?];
        while self.token(&Token::Period) {
            parts.push(self.identifier()?);
        }
        Ok(parts)
    }

    /// Identifiers in parentheses.
    pub(crate) fn identifier_list(&mut self) -> Result<Vec<String>> {
        self.expect(&Token::LParen)?;
        let mut names = vec![self.identifier()?];
        while self.token(&Token::Comma) {
            names.push(self.identifier()?);
        }
        self.expect(&Token::RParen)?;
        Ok(names)
    }

    /// A string constant of any quoting.
    pub(crate) fn string(&mut self) -> Result<String> {
        let text = self.try_string().ok_or_else(|| self.error())?;
        Ok(text)
    }

    pub(crate) fn try_string(&mut self) -> Option<String> {
        let text = match self.peek()? {
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text)
            | Token::NationalStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(quoted) => quoted.value.clone(),
            _ => return None,
        };
        self.advance();
        Some(text)
    }

    /// A number as it is written, with its sign.
    pub(crate) fn try_number(&mut self) -> Option<String> {
        let signed = match self.peek()? {
            Token::Minus => "-",
            Token::Plus => "+",
            _ => "",
        };
        let ahead = usize::from(!signed.is_empty());
        match &self.tokens.get(self.at + ahead)?.token {
            Token::Number(digits, _) => {
                self.at += ahead + 1;
                let sign = if signed == "-" { "-" } else { "" };
                Some(format!("{sign}{digits}"))
            }
            _ => None,
        }
    }

    /// An integer with an optional sign.
    pub(crate) fn integer(&mut self) -> Result<i64> {
        let error = self.error();
        let digits = self.try_number().ok_or(error)?;
        digits.parse().map_err(|_| {
            SqlError::new(
                "22003",
                format!("value \"{digits}\" is out of range for type bigint"),
            )
        })
    }

    /// The syntax error that the next token is.
    #[cold]
    pub(crate) fn error(&self) -> SqlError {
        match self.tokens.get(self.at) {
            Some(token) => {
                let start = token.span.start;
                SqlError::syntax(format!("syntax error at or near \"{}\"", token.token))
                    .with_position(position_of(self.sql, start.line, start.column))
            }
            None => SqlError::syntax("syntax error at end of input")
                .with_position(u32::try_from(self.sql.chars().count() + 1).ok()),
        }
    }

    /// The position of the next token in the statement's text.
    pub(crate) fn position(&self) -> Option<u32> {
        let start = self.tokens.get(self.at)?.span.start;
        position_of(self.sql, start.line, start.column)
    }

    /// Reads up to the parenthesis that closes the open one, and that too.
    pub(crate) fn until_closing(&mut self) -> Result<&'a [TokenWithSpan]> {
        let from = self.at;
        let mut depth = 0usize;
        while let Some(token) = self.peek() {
            match token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => {
                    let inner = &self.tokens[from..self.at];
                    self.advance();
                    return Ok(inner);
                }
                Token::RParen => depth -= 1,
                _ => {}
            }
            self.advance();
        }
        Err(self.error())
    }
}
