//! The tokens of a body, with their places, as its reader takes them one after the other.

use super::tree::Expression;
use crate::error::{Result, SqlError};
use crate::parse::scan::{Token, Tokens};

/// The longest body, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 1 << 20;

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) token: Token<'a>,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The tokens that are left.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Placed<'a>>,
    at: usize,
}

impl<'a> Source<'a> {
    /// All tokens of a body. `..` is one of its own, between numbers, too.
    pub(super) fn new(text: &'a str) -> Result<Self> {
        if text.len() > BODY_BYTES_MAX {
            let message = format!("the body of a function exceeds {BODY_BYTES_MAX} bytes");
            return Err(SqlError::new("54000", message));
        }
        let mut tokens: Vec<Placed<'a>> = Vec::new();
        let mut scanned = Tokens::new(text);
        while let Some(token) = scanned.next() {
            let to = scanned.at();
            let from = to - token.text().len();
            let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            match token {
                Token::Constant(number) if is_number(number) && number.contains("..") => {
                    let at = from + number.find("..").unwrap_or(0);
                    for (from, to) in [(from, at), (at, at + 2), (at + 2, to)] {
                        let part = &text[from..to];
                        let token = match part {
                            ".." => Token::Symbol(part),
                            _ => Token::Constant(part),
                        };
                        if !part.is_empty() {
                            tokens.push(Placed { token, from, to });
                        }
                    }
                }
                Token::Symbol(".") | Token::Constant(_)
                    if text[from..to].starts_with('.')
                        && tokens
                            .last()
                            .is_some_and(|last| last.token.is_symbol(".") && last.to == from) =>
                {
                    if let Some(last) = tokens.last_mut() {
                        last.to = from + 1;
                        last.token = Token::Symbol(&text[last.from..last.to]);
                    }
                    if to > from + 1 {
                        let token = Token::Constant(&text[from + 1..to]);
                        let from = from + 1;
                        tokens.push(Placed { token, from, to });
                    }
                }
                token => tokens.push(Placed { token, from, to }),
            }
        }
        Ok(Self {
            text,
            tokens,
            at: 0,
        })
    }

    pub(super) fn peek(&self) -> Option<Placed<'a>> {
        self.tokens.get(self.at).copied()
    }

    /// The token so many behind the next one.
    pub(super) fn ahead(&self, by: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + by).map(|placed| placed.token)
    }

    pub(super) fn next(&mut self) -> Option<Placed<'a>> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.ahead(0).is_some_and(|token| token.is_word(word))
    }

    /// Takes the next token, if it is this word.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is_it = self.is_word(word);
        self.at += usize::from(is_it);
        is_it
    }

    /// Takes the next token, if it is this symbol.
    pub(super) fn take_symbol(&mut self, symbol: &str) -> bool {
        let is_it = self.ahead(0).is_some_and(|token| token.is_symbol(symbol));
        self.at += usize::from(is_it);
        is_it
    }

    pub(super) fn need_word(&mut self, word: &str) -> Result<()> {
        match self.take_word(word) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    pub(super) fn need_symbol(&mut self, symbol: &str) -> Result<()> {
        match self.take_symbol(symbol) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    /// A name, folded as PostgreSQL folds it.
    pub(super) fn name(&mut self) -> Result<String> {
        let name = self.peek().and_then(|placed| folded(placed.token));
        match name {
            Some(name) => {
                self.at += 1;
                Ok(name)
            }
            None => Err(self.unexpected()),
        }
    }

    /// 42601 at the next token.
    #[cold]
    pub(super) fn unexpected(&self) -> SqlError {
        self.wrong("syntax error")
    }

    /// 42601 with these words, at the next token.
    #[cold]
    pub(super) fn wrong(&self, what: &str) -> SqlError {
        let place = match self.peek() {
            Some(placed) => format!("at or near \"{}\"", placed.token.text()),
            None => "at end of input".to_owned(),
        };
        let mut error = SqlError::syntax(format!("{what} {place}"));
        let line = self.line(self.peek().map_or(self.text.len(), |placed| placed.from));
        error.context = Some(format!("line {line} of the body"));
        error
    }

    /// The line of a byte, from 1.
    pub(super) fn line(&self, byte: usize) -> u32 {
        let before = self.text.get(..byte).unwrap_or_default();
        u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
    }

    /// Where the next token begins.
    pub(super) fn place(&self) -> usize {
        self.peek().map_or(self.text.len(), |placed| placed.from)
    }

    /// Takes tokens up to one for which this holds in no parentheses; their text. That one is
    /// left.
    pub(super) fn until(&mut self, ends: impl Fn(Token<'a>) -> bool) -> Result<&'a str> {
        let (from, mut to) = (self.place(), self.place());
        let mut depth = 0_usize;
        while let Some(placed) = self.peek() {
            if depth == 0 && ends(placed.token) {
                return Ok(&self.text[from..to]);
            }
            match placed.token {
                Token::Symbol("(" | "[") => depth += 1,
                Token::Symbol(")" | "]") if depth == 0 => {
                    return Err(self.wrong("mismatched parentheses"));
                }
                Token::Symbol(")" | "]") => depth -= 1,
                Token::Symbol(";") => return Err(self.unexpected()),
                _ => {}
            }
            to = placed.to;
            self.at += 1;
        }
        Err(self.unexpected())
    }
}

/// A name as it is known.
pub(super) fn folded(token: Token<'_>) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.to_lowercase()),
        Token::Quoted(quoted) if quoted.len() > 2 && quoted.ends_with('"') => {
            Some(quoted[1..quoted.len() - 1].replace("\"\"", "\""))
        }
        Token::Parameter(parameter) => Some(parameter.to_owned()),
        _ => None,
    }
}

/// The value of a string constant.
///
/// # Errors
/// 42601 for what is none.
pub(super) fn string_value(token: Token<'_>) -> Option<String> {
    use pg_raw_parse::{ConstValue, Node};
    let Token::Constant(text) = token else {
        return None;
    };
    let parsed = thermocline_query::parse::parse(&format!("SELECT {text}")).ok()?;
    let Some(Node::SelectStmt(select)) = parsed.statements().stmts().next() else {
        return None;
    };
    let target = select.target_list().iter().next()?;
    match target.val() {
        Node::A_Const(constant) => match constant.val() {
            Some(ConstValue::String(text)) => Some(text.to_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// 42601 unless the statement of an expression is one that PostgreSQL's grammar reads.
pub(super) fn check(expression: &Expression, line: u32) -> Result<()> {
    let told = |error: SqlError| {
        error.with_context(format!(
            "line {line} of the body: \"{}\"",
            expression.written
        ))
    };
    let depth = crate::parse::depth_of(&expression.text).map_err(told)?;
    let parsed = crate::stack::with_room(depth, || {
        let parsed = thermocline_query::parse::parse(&expression.text)?;
        Ok::<_, thermocline_query::error::QueryError>(parsed.statements().stmts().count())
    });
    match parsed {
        Ok(1) => Ok(()),
        Ok(_) => Err(told(SqlError::syntax("a statement is missing"))),
        Err(mut error) => {
            // Its place is in another text.
            error.location = None;
            Err(told(error.into()))
        }
    }
}
