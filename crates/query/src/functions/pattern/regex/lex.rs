//! The tokens of a pattern, in PostgreSQL's three kinds of syntax: basic,
//! extended and advanced regular expressions, and literal texts.

use super::set::{CHAR_MAX, Class};

/// What is wrong with a pattern, in PostgreSQL's words.
pub(super) type Fault = &'static str;

pub(super) const BAD_PATTERN: Fault = "invalid regexp (reg version 0.8)";
pub(super) const BAD_COLLATION: Fault = "invalid collating element";
pub(super) const BAD_CLASS: Fault = "invalid character class";
pub(super) const BAD_ESCAPE: Fault = "invalid escape \\ sequence";
pub(super) const BAD_REFERENCE: Fault = "invalid backreference number";
pub(super) const BAD_BRACKETS: Fault = "brackets [] not balanced";
pub(super) const BAD_PARENTHESES: Fault = "parentheses () not balanced";
pub(super) const BAD_BRACES: Fault = "braces {} not balanced";
pub(super) const BAD_COUNT: Fault = "invalid repetition count(s)";
pub(super) const BAD_RANGE: Fault = "invalid character range";
pub(super) const BAD_OPERAND: Fault = "quantifier operand invalid";
pub(super) const BAD_ARGUMENT: Fault = "invalid argument to regex function";
pub(super) const BAD_OPTION: Fault = "invalid embedded option";
pub(super) const TOO_BIG: Fault = "regular expression is too complex";

/// How a pattern is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::functions::pattern) struct Flags {
    /// Extended syntax, else basic.
    pub extended: bool,
    /// Advanced syntax, which is extended, too.
    pub advanced: bool,
    /// A literal text.
    pub quote: bool,
    /// Letters of either case are the same.
    pub any_case: bool,
    /// Blanks and comments are left out.
    pub expanded: bool,
    /// `.` and `[^` leave newlines out.
    pub newline_stops: bool,
    /// `^` and `$` match at lines' ends.
    pub newline_anchors: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            extended: true,
            advanced: true,
            quote: false,
            any_case: false,
            expanded: false,
            newline_stops: false,
            newline_anchors: false,
        }
    }
}

/// What looks around from a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LookKind {
    pub(super) ahead: bool,
    pub(super) negative: bool,
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// Before the first.
    Empty,
    /// After the last.
    End,
    Plain(u32),
    Digit(u32),
    Reference(u32),
    CollatingElement,
    EquivalenceClass,
    CharacterClass,
    /// The end of any of these three.
    ElementEnd,
    Class(Class),
    NotClass(Class),
    Range,
    Look(LookKind),
    WordBoundary,
    NoWordBoundary,
    TextStart,
    TextEnd,
    WordStart,
    WordEnd,
    LineStart,
    LineEnd,
    /// `(`, and whether it captures.
    Open(bool),
    Close,
    /// A quantifier, and whether it is greedy.
    Star(bool),
    Plus(bool),
    Question(bool),
    BraceOpen,
    BraceClose(bool),
    Comma,
    Alternative,
    Dot,
    /// `[`, or `[^` for false.
    BracketOpen(bool),
    BracketClose,
}

/// Within what a token is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Context {
    Extended,
    Basic,
    Quoted,
    ExtendedBound,
    BasicBound,
    Bracket,
    Element,
    Equivalence,
    Class,
}

/// A pattern that is being read.
pub(super) struct Lexer {
    text: Vec<char>,
    at: usize,
    pub(super) flags: Flags,
    context: Context,
    last: Token,
    /// The token that comes next.
    pub(super) next: Token,
    /// How many captures have begun.
    pub(super) captures: u32,
}

const fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

impl Lexer {
    pub(super) fn new(pattern: &str, flags: Flags) -> Result<Self, Fault> {
        let lines = flags.newline_stops || flags.newline_anchors;
        if flags.quote && (flags.extended || flags.advanced || flags.expanded || lines) {
            return Err(BAD_ARGUMENT);
        }
        let mut lexer = Self {
            text: pattern.chars().collect(),
            at: 0,
            flags,
            context: Context::Extended,
            last: Token::Empty,
            next: Token::Empty,
            captures: 0,
        };
        lexer.prefixes()?;
        lexer.context = if lexer.flags.quote {
            Context::Quoted
        } else if lexer.flags.extended {
            Context::Extended
        } else {
            Context::Basic
        };
        lexer.advance()?;
        Ok(lexer)
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn follows(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(at, c)| self.peek(at) == Some(c))
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek(0) == Some(c);
        if found {
            self.at += 1;
        }
        found
    }

    /// The text from a place to here.
    pub(super) fn since(&self, start: usize, end: usize) -> String {
        let text = self.text.get(start..end).unwrap_or_default();
        text.iter().collect()
    }

    /// Where the next token ends.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Takes `***` and options in parentheses at the beginning.
    fn prefixes(&mut self) -> Result<(), Fault> {
        if self.flags.quote {
            return Ok(());
        }
        if self.follows("***") && self.peek(3).is_some() {
            match self.peek(3) {
                Some('?') => return Err(BAD_PATTERN),
                Some('=') => {
                    self.at += 4;
                    self.flags = Flags {
                        extended: false,
                        advanced: false,
                        quote: true,
                        any_case: self.flags.any_case,
                        expanded: false,
                        newline_stops: false,
                        newline_anchors: false,
                    };
                    return Ok(());
                }
                Some(':') => {
                    self.at += 4;
                    self.flags.extended = true;
                    self.flags.advanced = true;
                }
                _ => return Err(BAD_OPERAND),
            }
        }
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
        if !self.flags.advanced || !self.follows("(?") || !letter(self.peek(2)) {
            return Ok(());
        }
        self.at += 2;
        while letter(self.peek(0)) {
            let option = self.peek(0).unwrap_or_default();
            self.at += 1;
            match option {
                'b' => {
                    self.flags.extended = false;
                    self.flags.advanced = false;
                    self.flags.quote = false;
                }
                'e' => {
                    self.flags.extended = true;
                    self.flags.advanced = false;
                    self.flags.quote = false;
                }
                'q' => {
                    self.flags.quote = true;
                    self.flags.extended = false;
                    self.flags.advanced = false;
                }
                option => self.flags.set(option).ok_or(BAD_OPTION)?,
            }
        }
        if !self.eat(')') {
            return Err(BAD_OPTION);
        }
        if self.flags.quote {
            self.flags.expanded = false;
            self.flags.newline_stops = false;
            self.flags.newline_anchors = false;
        }
        Ok(())
    }

    /// Leaves blanks and comments out, in expanded syntax.
    fn skip(&mut self) {
        loop {
            while self.peek(0).is_some_and(is_space) {
                self.at += 1;
            }
            if self.peek(0) != Some('#') {
                return;
            }
            while self.peek(0).is_some_and(|c| c != '\n') {
                self.at += 1;
            }
        }
    }

    /// Reads the next token.
    pub(super) fn advance(&mut self) -> Result<(), Fault> {
        self.last = self.next;
        loop {
            self.next = self.token()?;
            // A comment is no token.
            if self.next != Token::Empty {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, Fault> {
        let outside = matches!(
            self.context,
            Context::Extended | Context::Basic | Context::ExtendedBound | Context::BasicBound
        );
        if self.flags.expanded && outside {
            self.skip();
        }
        let Some(c) = self.peek(0) else {
            return match self.context {
                Context::Extended | Context::Basic | Context::Quoted => Ok(Token::End),
                Context::ExtendedBound | Context::BasicBound => Err(BAD_BRACES),
                _ => Err(BAD_BRACKETS),
            };
        };
        self.at += 1;
        let plain = Token::Plain(u32::from(c));
        match self.context {
            Context::Basic => self.basic(c),
            Context::Extended => self.extended(c),
            Context::Quoted => Ok(plain),
            Context::ExtendedBound | Context::BasicBound => self.bound(c),
            Context::Bracket => self.bracket(c),
            Context::Element => Ok(self.element_end(c, '.').unwrap_or(plain)),
            Context::Equivalence => Ok(self.element_end(c, '=').unwrap_or(plain)),
            Context::Class => Ok(self.element_end(c, ':').unwrap_or(plain)),
        }
    }

    fn element_end(&mut self, c: char, end: char) -> Option<Token> {
        if c != end || !self.eat(']') {
            return None;
        }
        self.context = Context::Bracket;
        Some(Token::ElementEnd)
    }

    fn bound(&mut self, c: char) -> Result<Token, Fault> {
        let extended = self.context == Context::ExtendedBound;
        match c {
            '0'..='9' => Ok(Token::Digit(u32::from(c) - u32::from('0'))),
            ',' => Ok(Token::Comma),
            '}' if extended => {
                self.context = Context::Extended;
                Ok(Token::BraceClose(!(self.flags.advanced && self.eat('?'))))
            }
            '\\' if !extended && self.eat('}') => {
                self.context = Context::Basic;
                Ok(Token::BraceClose(true))
            }
            _ => Err(BAD_COUNT),
        }
    }

    fn bracket(&mut self, c: char) -> Result<Token, Fault> {
        let first = matches!(self.last_read(), Token::BracketOpen(_));
        let plain = Token::Plain(u32::from(c));
        match c {
            ']' if first => Ok(plain),
            ']' => {
                self.context = if self.flags.extended {
                    Context::Extended
                } else {
                    Context::Basic
                };
                Ok(Token::BracketClose)
            }
            '\\' if self.flags.advanced => match self.escape()? {
                token @ (Token::Plain(_) | Token::Class(_) | Token::NotClass(_)) => Ok(token),
                _ => Err(BAD_ESCAPE),
            },
            '-' if first || self.peek(0) == Some(']') => Ok(plain),
            '-' => Ok(Token::Range),
            '[' => {
                let (context, token) = match self.peek(0) {
                    None => return Err(BAD_BRACKETS),
                    Some('.') => (Context::Element, Token::CollatingElement),
                    Some('=') => (Context::Equivalence, Token::EquivalenceClass),
                    Some(':') => (Context::Class, Token::CharacterClass),
                    Some(_) => return Ok(plain),
                };
                self.at += 1;
                self.context = context;
                Ok(token)
            }
            _ => Ok(plain),
        }
    }

    /// The token before the one that is being read.
    const fn last_read(&self) -> Token {
        self.last
    }

    /// Whether a quantifier is greedy: unless `?` follows it.
    fn greedy(&mut self) -> bool {
        !(self.flags.advanced && self.eat('?'))
    }

    /// `[[:<:]]` and `[[:>:]]`, or the beginning of a bracket expression.
    fn bracket_open(&mut self) -> Token {
        for (text, token) in [("[:<:]]", Token::WordStart), ("[:>:]]", Token::WordEnd)] {
            if self.follows(text) {
                self.at += text.len();
                return token;
            }
        }
        self.context = Context::Bracket;
        Token::BracketOpen(!self.eat('^'))
    }

    fn extended(&mut self, c: char) -> Result<Token, Fault> {
        Ok(match c {
            '|' => Token::Alternative,
            '*' => Token::Star(self.greedy()),
            '+' => Token::Plus(self.greedy()),
            '?' => Token::Question(self.greedy()),
            '{' => {
                if self.flags.expanded {
                    self.skip();
                }
                if self.peek(0).is_some_and(|c| c.is_ascii_digit()) {
                    self.context = Context::ExtendedBound;
                    Token::BraceOpen
                } else {
                    Token::Plain(u32::from(c))
                }
            }
            '(' if self.flags.advanced && self.eat('?') => return self.special(),
            '(' => Token::Open(true),
            ')' => Token::Close,
            '[' => self.bracket_open(),
            '.' => Token::Dot,
            '^' => Token::LineStart,
            '$' => Token::LineEnd,
            '\\' if self.peek(0).is_none() => return Err(BAD_ESCAPE),
            '\\' if self.flags.advanced => return self.escape(),
            '\\' => {
                let escaped = self.peek(0).unwrap_or_default();
                self.at += 1;
                Token::Plain(u32::from(escaped))
            }
            _ => Token::Plain(u32::from(c)),
        })
    }

    /// What `(?` begins.
    fn special(&mut self) -> Result<Token, Fault> {
        let look = |ahead, negative| Ok(Token::Look(LookKind { ahead, negative }));
        let c = self.peek(0).ok_or(BAD_OPERAND)?;
        self.at += 1;
        match c {
            ':' => Ok(Token::Open(false)),
            '#' => {
                while self.peek(0).is_some_and(|c| c != ')') {
                    self.at += 1;
                }
                self.eat(')');
                Ok(Token::Empty)
            }
            '=' => look(true, false),
            '!' => look(true, true),
            '<' => {
                let c = self.peek(0).ok_or(BAD_OPERAND)?;
                self.at += 1;
                match c {
                    '=' => look(false, false),
                    '!' => look(false, true),
                    _ => Err(BAD_OPERAND),
                }
            }
            _ => Err(BAD_OPERAND),
        }
    }

    /// What a backslash begins, in advanced syntax.
    fn escape(&mut self) -> Result<Token, Fault> {
        let c = self.peek(0).ok_or(BAD_ESCAPE)?;
        self.at += 1;
        let plain = |c: u32| Ok(Token::Plain(c));
        match c {
            'a' => plain(7),
            'b' => plain(8),
            'B' => plain(u32::from('\\')),
            'c' => {
                let c = self.peek(0).ok_or(BAD_ESCAPE)?;
                self.at += 1;
                plain(u32::from(c) & 0o37)
            }
            'e' => plain(0o33),
            'f' => plain(0xc),
            'n' => plain(0xa),
            'r' => plain(0xd),
            't' => plain(9),
            'v' => plain(0xb),
            'A' => Ok(Token::TextStart),
            'Z' => Ok(Token::TextEnd),
            'm' => Ok(Token::WordStart),
            'M' => Ok(Token::WordEnd),
            'y' => Ok(Token::WordBoundary),
            'Y' => Ok(Token::NoWordBoundary),
            'd' => Ok(Token::Class(Class::Digit)),
            'D' => Ok(Token::NotClass(Class::Digit)),
            's' => Ok(Token::Class(Class::Space)),
            'S' => Ok(Token::NotClass(Class::Space)),
            'w' => Ok(Token::Class(Class::Word)),
            'W' => Ok(Token::NotClass(Class::Word)),
            'u' => self.digits(16, 4, 4).and_then(within).map(Token::Plain),
            'U' => self.digits(16, 8, 8).and_then(within).map(Token::Plain),
            'x' => self.digits(16, 1, 255).and_then(within).map(Token::Plain),
            '1'..='9' => {
                let after = self.at;
                self.at -= 1;
                let number = self.digits(10, 1, 255)?;
                let exists = number > 0 && number <= self.captures && number < 1 << 31;
                if self.at == after || exists {
                    return Ok(Token::Reference(number));
                }
                self.at = after;
                self.octal().map(Token::Plain)
            }
            '0' => self.octal().map(Token::Plain),
            c if c.is_ascii_alphabetic() => Err(BAD_ESCAPE),
            c => plain(u32::from(c)),
        }
    }

    /// Up to three octal digits, of which the first has been read; at most a byte.
    fn octal(&mut self) -> Result<u32, Fault> {
        self.at -= 1;
        let number = self.digits(8, 1, 3)?;
        if number > 0xff {
            self.at -= 1;
            return Ok(number >> 3);
        }
        Ok(number)
    }

    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32, Fault> {
        let (mut number, mut count) = (0_u32, 0);
        while count < most
            && let Some(digit) = self.peek(0).and_then(|c| c.to_digit(base))
        {
            number = number.wrapping_mul(base).wrapping_add(digit);
            count += 1;
            self.at += 1;
        }
        if count < least {
            return Err(BAD_ESCAPE);
        }
        Ok(number)
    }

    fn basic(&mut self, c: char) -> Result<Token, Fault> {
        let first = matches!(self.last_read(), Token::Empty | Token::Open(_));
        let plain = Token::Plain(u32::from(c));
        Ok(match c {
            '*' if first || self.last_read() == Token::LineStart => plain,
            '*' => Token::Star(true),
            '[' => self.bracket_open(),
            '.' => Token::Dot,
            '^' if first => Token::LineStart,
            '$' => {
                if self.flags.expanded {
                    self.skip();
                }
                if self.peek(0).is_none() || self.follows("\\)") {
                    Token::LineEnd
                } else {
                    plain
                }
            }
            '\\' => {
                let c = self.peek(0).ok_or(BAD_ESCAPE)?;
                self.at += 1;
                match c {
                    '{' => {
                        self.context = Context::BasicBound;
                        Token::BraceOpen
                    }
                    '(' => Token::Open(true),
                    ')' => Token::Close,
                    '<' => Token::WordStart,
                    '>' => Token::WordEnd,
                    '1'..='9' => Token::Reference(u32::from(c) - u32::from('0')),
                    c => Token::Plain(u32::from(c)),
                }
            }
            _ => plain,
        })
    }
}

fn within(number: u32) -> Result<u32, Fault> {
    if number > CHAR_MAX {
        return Err(BAD_ESCAPE);
    }
    Ok(number)
}

impl Flags {
    /// Sets an option by its letter; `b`, `e` and `q` are the caller's.
    pub(in crate::functions::pattern) fn set(&mut self, option: char) -> Option<()> {
        match option {
            'c' => self.any_case = false,
            'i' => self.any_case = true,
            'm' | 'n' => {
                self.newline_stops = true;
                self.newline_anchors = true;
            }
            'p' => {
                self.newline_stops = true;
                self.newline_anchors = false;
            }
            's' => {
                self.newline_stops = false;
                self.newline_anchors = false;
            }
            't' => self.expanded = false,
            'w' => {
                self.newline_stops = false;
                self.newline_anchors = true;
            }
            'x' => self.expanded = true,
            _ => return None,
        }
        Some(())
    }
}
