//! Statements of SQL in a body, EXECUTE, PERFORM, cursors, and where rows go.

use super::read::Reader;
use super::source::folded;
use super::tree::{Declared, Into, Kind, Target};
use crate::error::{Result, SqlError};
use crate::parse::scan::Token;

impl Reader<'_> {
    /// What stands behind INTO.
    fn into(&mut self) -> Result<Into> {
        let strict = self.source.take_word("strict");
        let mut targets = Vec::new();
        loop {
            let parts = self.name_parts()?;
            if self
                .source
                .ahead(0)
                .is_some_and(|token| token.is_symbol("["))
            {
                return Err(SqlError::unsupported(
                    "an element of an array behind INTO is not supported",
                    "Read it into a variable, and assign that.",
                ));
            }
            targets.push(self.target_of(&parts)?);
            if !self.source.take_symbol(",") {
                return Ok(Into { targets, strict });
            }
        }
    }

    /// A statement of SQL: its text without INTO.
    pub(super) fn sql(&mut self) -> Result<Kind> {
        let from = self.source.place();
        let line = self.source.line(from);
        let mut into = None;
        let mut left_out = None;
        let mut before: Option<Token<'_>> = None;
        let end = loop {
            let Some(placed) = self.source.peek() else {
                return Err(self.source.unexpected());
            };
            if placed.token.is_symbol(";") {
                break placed.from;
            }
            let is_of_change =
                before.is_some_and(|before| before.is_word("insert") || before.is_word("merge"));
            if placed.token.is_word("into") && before.is_some() && !is_of_change {
                if into.is_some() {
                    return Err(SqlError::syntax("INTO specified more than once"));
                }
                self.source.next();
                into = Some(self.into()?);
                left_out = Some((placed.from, self.source.place()));
                before = None;
                continue;
            }
            before = Some(placed.token);
            self.source.next();
        };
        if end == from {
            return Err(self.source.unexpected());
        }
        let mut text = self.source.text[from..end].to_owned();
        if let Some((begin, end)) = left_out {
            // As long as it was, so that places stay.
            text.replace_range(begin - from..end - from, &" ".repeat(end - begin));
        }
        let statement = self.expression("", text.trim_end(), line)?;
        self.source.next();
        Ok(Kind::Sql(statement, into))
    }

    pub(super) fn perform(&mut self) -> Result<Kind> {
        self.source.next();
        let query = self.value_until(&[";"])?;
        self.source.next();
        Ok(Kind::Perform(query))
    }

    pub(super) fn execute(&mut self) -> Result<Kind> {
        self.source.next();
        let text = self.value_until(&[";", "into", "using"])?;
        let mut into = None;
        let mut using = Vec::new();
        loop {
            if self.source.take_word("into") {
                if into.is_some() {
                    return Err(self.source.unexpected());
                }
                into = Some(self.into()?);
            } else if self.source.is_word("using") && using.is_empty() {
                using = self.using(&[";"])?;
            } else {
                break;
            }
        }
        self.source.need_symbol(";")?;
        Ok(Kind::Execute(super::tree::Dynamic { text, using }, into))
    }

    /// The cursor that is named next.
    fn cursor(&mut self) -> Result<usize> {
        let name = self.source.peek().and_then(|placed| folded(placed.token));
        let slot = name
            .as_ref()
            .and_then(|name| self.variable(std::slice::from_ref(name)));
        match slot {
            Some((slot, _)) if matches!(self.slots[slot].declared, Declared::Cursor(_)) => {
                self.source.next();
                Ok(slot)
            }
            Some(_) => {
                let name = name.unwrap_or_default();
                let message = format!("variable \"{name}\" must be of type cursor or refcursor");
                Err(SqlError::new("42804", message))
            }
            None => Err(self.source.unexpected()),
        }
    }

    pub(super) fn open(&mut self) -> Result<Kind> {
        self.source.next();
        let slot = self.cursor()?;
        if let Declared::Cursor(Some(_)) = self.slots[slot].declared {
            self.source.need_symbol(";")?;
            return Ok(Kind::Open(slot, None));
        }
        if self.source.is_word("scroll") || self.source.is_word("no") {
            return Err(SqlError::unsupported(
                "OPEN with SCROLL is not supported",
                "Fetch forward, or read the rows in a FOR loop.",
            ));
        }
        self.source.need_word("for")?;
        Ok(Kind::Open(slot, Some(self.rows()?)))
    }

    /// FETCH or MOVE, of the next row.
    pub(super) fn fetch(&mut self, fetches: bool) -> Result<Kind> {
        self.source.next();
        let is_next = self.source.take_word("next");
        let in_from = self.source.take_word("from") || self.source.take_word("in");
        if is_next && !in_from {
            return Err(self.source.unexpected());
        }
        let named = self.source.peek().and_then(|placed| folded(placed.token));
        if named.is_none_or(|name| self.variable(&[name]).is_none()) {
            return Err(SqlError::unsupported(
                "FETCH and MOVE in PL/pgSQL go to the next row only",
                "Leave the direction out.",
            ));
        }
        let slot = self.cursor()?;
        let into = match fetches {
            true => {
                self.source.need_word("into")?;
                Some(self.into()?)
            }
            false => None,
        };
        self.source.need_symbol(";")?;
        Ok(Kind::Fetch(slot, into))
    }

    pub(super) fn close(&mut self) -> Result<Kind> {
        self.source.next();
        let slot = self.cursor()?;
        self.source.need_symbol(";")?;
        Ok(Kind::Close(slot))
    }

    /// A variable of one value, for GET DIAGNOSTICS.
    pub(super) fn scalar_target(&mut self) -> Result<Target> {
        self.target()
    }
}
