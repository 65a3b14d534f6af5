//! The tokens of a text, by PostgreSQL's rules and without its grammar: one pass over the bytes, no
//! allocation. It cuts a text at its semicolons, finds the parts of a statement that are kept as
//! texts, and says how deep a statement can get. What is not whole, such as a quote that is not
//! closed, goes on to the end of the text: the grammar refuses it.

/// A token of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A word that is not quoted, keyword or name.
    Word(&'a str),
    /// A name in double quotes.
    Quoted(&'a str),
    /// A number or a string, with its prefix.
    Constant(&'a str),
    /// `$1`
    Parameter(&'a str),
    /// An operator, a cast, a parenthesis and so on.
    Symbol(&'a str),
}

impl<'a> Token<'a> {
    /// Its text.
    pub(crate) const fn text(self) -> &'a str {
        match self {
            Self::Word(text)
            | Self::Quoted(text)
            | Self::Constant(text)
            | Self::Parameter(text)
            | Self::Symbol(text) => text,
        }
    }

    /// Whether it is this word, without quotes.
    pub(crate) fn is_word(self, word: &str) -> bool {
        matches!(self, Self::Word(text) if text.eq_ignore_ascii_case(word))
    }

    /// Whether it is this symbol.
    pub(crate) fn is_symbol(self, symbol: &str) -> bool {
        matches!(self, Self::Symbol(text) if text == symbol)
    }
}

/// The tokens of a text; blanks and comments are left out.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where the next token is looked for: the end of the last one, in bytes.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let from = self.at;
        self.at = (from + bytes).min(self.text.len());
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    /// Passes over blanks and comments.
    fn skip(&mut self) {
        loop {
            match self.rest() {
                [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => self.at += 1,
                [b'-', b'-', rest @ ..] => {
                    let line = rest.iter().take_while(|byte| **byte != b'\n');
                    self.at += 2 + line.count();
                }
                [b'/', b'*', ..] => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.rest() {
                [b'/', b'*', ..] => {
                    depth += 1;
                    self.at += 2;
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                [_, ..] => self.at += 1,
                [] => return,
            }
        }
    }

    /// The length of a quoted text from its quote on: up to the closing one, or to the end.
    fn quoted(rest: &[u8], escapes: bool) -> usize {
        let quote = rest[0];
        let mut at = 1;
        while at < rest.len() {
            match rest[at] {
                b'\\' if escapes => at += 2,
                byte if byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
                byte if byte == quote => return at + 1,
                _ => at += 1,
            }
        }
        rest.len()
    }

    /// The length of `$tag$…$tag$`, if that is what begins here.
    fn dollar_quoted(rest: &[u8]) -> Option<usize> {
        let name = rest[1..].iter().take_while(|byte| is_word_byte(**byte));
        let name = name.count();
        let digit = rest.get(1).is_some_and(u8::is_ascii_digit);
        if digit || rest.get(1 + name) != Some(&b'$') {
            return None;
        }
        let tag = &rest[..name + 2];
        let body = &rest[tag.len()..];
        let end = body.windows(tag.len()).position(|there| there == tag);
        Some(end.map_or(rest.len(), |end| tag.len() + end + tag.len()))
    }

    /// The length of the operator that begins here. Comments end it; so does a sign behind one
    /// that has none of the characters with which operators may end in a sign.
    fn operator(rest: &[u8]) -> usize {
        let all = rest.iter().take_while(|byte| is_operator_byte(**byte));
        let mut length = all.count();
        let comment = rest[..length]
            .windows(2)
            .position(|two| matches!(two, b"--" | b"/*"));
        length = comment.unwrap_or(length).max(1);
        let may_end_in_sign = |operator: &[u8]| operator.iter().any(|b| b"~!@#%^&|`?".contains(b));
        while length > 1
            && matches!(rest[length - 1], b'+' | b'-')
            && !may_end_in_sign(&rest[..length])
        {
            length -= 1;
        }
        length
    }

    fn number(rest: &[u8]) -> usize {
        let mut at = 0;
        while let Some(byte) = rest.get(at) {
            let exponent = matches!(byte, b'+' | b'-') && matches!(rest[at - 1], b'e' | b'E');
            let is_part = byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'.';
            // `1..2` is two numbers to nobody here; `0x1e-1` is a subtraction.
            if !(is_part || exponent && !rest.starts_with(b"0x")) {
                break;
            }
            at += 1;
        }
        at
    }
}

const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// For each byte whether it may stand in a word behind its first one.
const IN_WORDS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_word_byte(byte as u8) || byte as u8 == b'$';
        byte += 1;
    }
    table
};

/// The length of the word that begins here.
fn word(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && IN_WORDS[usize::from(rest[at])] {
        at += 1;
    }
    at
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let mut rest = self.rest();
        if let [b' ', next, ..] = *rest
            && next > b'/'
        {
            self.at += 1;
            rest = &rest[1..];
        } else if !matches!(*rest, [byte, ..] if byte > b'/') {
            self.skip();
            rest = self.rest();
        }
        Some(match *rest {
            [] => return None,
            // Most tokens are words that no quote follows.
            [byte, next, ..]
                if is_word_byte(byte)
                    && !byte.is_ascii_digit()
                    && !matches!(next, b'\'' | b'&') =>
            {
                Token::Word(self.take(word(rest)))
            }
            [b'\'', ..] => Token::Constant(self.take(Self::quoted(rest, false))),
            [b'e' | b'E', b'\'', ..] => {
                Token::Constant(self.take(1 + Self::quoted(&rest[1..], true)))
            }
            [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => {
                Token::Constant(self.take(1 + Self::quoted(&rest[1..], false)))
            }
            [b'u' | b'U', b'&', b'\'', ..] => {
                Token::Constant(self.take(2 + Self::quoted(&rest[2..], false)))
            }
            [b'"', ..] => Token::Quoted(self.take(Self::quoted(rest, false))),
            [b'$', byte, ..] if byte.is_ascii_digit() => {
                let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit());
                Token::Parameter(self.take(1 + digits.count()))
            }
            [b'$', ..] => match Self::dollar_quoted(rest) {
                Some(length) => Token::Constant(self.take(length)),
                None => Token::Symbol(self.take(1)),
            },
            [byte, ..] if byte.is_ascii_digit() => Token::Constant(self.take(Self::number(rest))),
            [b'.', byte, ..] if byte.is_ascii_digit() => {
                Token::Constant(self.take(Self::number(rest)))
            }
            [byte, ..] if is_word_byte(byte) => Token::Word(self.take(word(rest))),
            [b':', b':' | b'=', ..] => Token::Symbol(self.take(2)),
            [byte, ..] if is_operator_byte(byte) => Token::Symbol(self.take(Self::operator(rest))),
            _ => Token::Symbol(self.take(1)),
        })
    }
}

const fn is_operator_byte(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-'
            | b'*'
            | b'/'
            | b'<'
            | b'>'
            | b'='
            | b'~'
            | b'!'
            | b'@'
            | b'#'
            | b'%'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_end_as_postgresql_ends_them() {
        let shown = |text| -> Vec<String> {
            Tokens::new(text)
                .map(|token| token.text().to_owned())
                .collect()
        };
        for (text, tokens) in [
            ("a<=-1", "a <= - 1"),
            ("a@-b", "a @- b"),
            ("a->>'b'", "a ->> 'b'"),
            ("a<--b", "a <"),
            ("a+/* b */c", "a + c"),
            ("-- a\n-1", "- 1"),
            ("a::int[1]", "a :: int [ 1 ]"),
            ("f(a := 1, b => 2);", "f ( a := 1 , b => 2 ) ;"),
            ("a.b.*", "a . b . *"),
            ("1.5e-3-.5", "1.5e-3 - .5"),
            ("$1||$$ a $$", "$1 || $$ a $$"),
        ] {
            let found: Vec<String> = shown(text);
            assert_eq!(found.join(" "), tokens, "{text}");
        }
    }

    #[test]
    fn any_bytes_come_to_an_end() {
        for text in [
            "'", "\"", "$a$", "/*/*", "é'", "E'\\", "u&'", "-", "/", "$", "ß$1",
        ] {
            let total: usize = Tokens::new(text).map(|token| token.text().len()).sum();
            assert!(total <= text.len());
        }
    }
}
