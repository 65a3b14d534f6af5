//! DECLARE sections, and the names that are known at a place of a body.

use std::sync::Arc;

use super::read::Reader;
use super::source::{check, folded};
use super::tree::{Declared, Expression, Name, Slot, Target};
use crate::error::{Result, SqlError};
use crate::parse::scan::Token;

/// How many variables a body may have.
const SLOTS_MAX: usize = 10_000;

impl Reader<'_> {
    /// Makes a variable that no name means yet.
    pub(super) fn slot(&mut self, name: &str, declared: Declared) -> Result<usize> {
        if self.slots.len() >= SLOTS_MAX {
            let message = format!("a body has more than {SLOTS_MAX} variables");
            return Err(SqlError::new("54000", message));
        }
        self.slots.push(Slot {
            name: Arc::from(name),
            declared,
            constant: false,
            not_null: false,
            default: None,
        });
        Ok(self.slots.len() - 1)
    }

    /// Lets a name mean a variable from now on; without one it is the label of a block.
    pub(super) fn know(&mut self, name: &str, slot: Option<usize>) {
        self.names.push(Name {
            name: Arc::from(name),
            slot,
            before: self.known,
        });
        self.known = Some(self.names.len() - 1);
    }

    /// The variable that a name of these parts means, and how many parts are its own.
    pub(super) fn variable(&self, parts: &[String]) -> Option<(usize, usize)> {
        lookup(&self.names, self.known, parts)
    }

    /// An expression of this text: `what` stands before it to make a statement of it.
    pub(super) fn expression(
        &mut self,
        what: &str,
        written: &str,
        line: u32,
    ) -> Result<Expression> {
        if written.trim().is_empty() {
            return Err(self.source.wrong("missing expression"));
        }
        let made = Expression {
            text: Arc::from(format!("{what}{written}")),
            written: Arc::from(written),
            names: self.known,
            site: self.sites,
        };
        self.sites += 1;
        check(&made, line)?;
        Ok(made)
    }

    /// The value of the next tokens up to one of these symbols or words, which is left.
    pub(super) fn value_until(&mut self, ends: &[&str]) -> Result<Expression> {
        let line = self.source.line(self.source.place());
        let is_end = |token: Token<'_>| {
            ends.iter()
                .any(|end| token.is_word(end) || token.is_symbol(end))
        };
        let text = self.source.until(is_end)?;
        self.expression("SELECT ", text, line)
    }

    /// The variables of a DECLARE section.
    pub(super) fn declarations(&mut self) -> Result<Vec<usize>> {
        let mut declares: Vec<usize> = Vec::new();
        while !self.source.is_word("begin") {
            if self.source.take_word("declare") {
                continue;
            }
            let name = self.source.name()?;
            let same = |slot: &usize| *self.slots[*slot].name == *name;
            if declares.iter().any(same) || self.declared_here.contains(&name) {
                let message = format!("duplicate declaration at or near \"{name}\"");
                return Err(SqlError::syntax(message));
            }
            if self.source.take_word("alias") {
                self.source.need_word("for")?;
                let of = self.name_parts()?;
                let Some((slot, _)) = self.variable(&of) else {
                    let message = format!("variable \"{}\" does not exist", of.join("."));
                    return Err(SqlError::new("42601", message));
                };
                self.know(&name, Some(slot));
                self.declared_here.push(name);
                self.source.need_symbol(";")?;
                continue;
            }
            let slot = self.declaration(&name)?;
            self.know(&name, Some(slot));
            declares.push(slot);
            self.source.need_symbol(";")?;
        }
        Ok(declares)
    }

    /// What follows a variable's name, up to the semicolon.
    fn declaration(&mut self, name: &str) -> Result<usize> {
        let scrolls = match () {
            () if self.source.take_word("no") => true,
            () => false,
        };
        if self.source.is_word("scroll") && !scrolls {
            return Err(SqlError::unsupported(
                "scrollable cursors of PL/pgSQL are not supported",
                "Fetch forward, or read the rows in a FOR loop.",
            ));
        }
        if scrolls {
            self.source.need_word("scroll")?;
        }
        if self.source.take_word("cursor") {
            return self.bound_cursor(name);
        }
        let constant = self.source.take_word("constant");
        let declared = self.type_name()?;
        if self.source.take_word("collate") {
            return Err(SqlError::unsupported(
                "COLLATE of a variable is not supported",
                "Leave the clause out.",
            ));
        }
        let not_null = self.source.take_word("not");
        if not_null {
            self.source.need_word("null")?;
        }
        let has_default = self.source.take_word("default")
            || self.source.take_symbol(":=")
            || self.source.take_symbol("=");
        let default = match has_default {
            true => Some(self.value_until(&[";"])?),
            false => None,
        };
        if not_null && default.is_none() {
            return Err(SqlError::new(
                "22004",
                format!(
                    "variable \"{name}\" must have a default value, since it's declared NOT NULL"
                ),
            ));
        }
        let slot = self.slot(name, declared)?;
        let made = &mut self.slots[slot];
        made.constant = constant;
        made.not_null = not_null;
        made.default = default;
        Ok(slot)
    }

    fn bound_cursor(&mut self, name: &str) -> Result<usize> {
        if self
            .source
            .ahead(0)
            .is_some_and(|token| token.is_symbol("("))
        {
            return Err(SqlError::unsupported(
                "arguments of a cursor are not supported",
                "Name the variables in the cursor's query, or OPEN it FOR the query.",
            ));
        }
        if !self.source.take_word("for") {
            self.source.need_word("is")?;
        }
        let line = self.source.line(self.source.place());
        let text = self.source.until(|token| token.is_symbol(";"))?;
        let query = self.expression("", text, line)?;
        self.slot(name, Declared::Cursor(Some(query)))
    }

    /// The type of a variable.
    fn type_name(&mut self) -> Result<Declared> {
        let ends = |token: Token<'_>| {
            [";", ":=", "="].iter().any(|end| token.is_symbol(end))
                || ["not", "default", "collate"]
                    .iter()
                    .any(|end| token.is_word(end))
        };
        let text = self.source.until(ends)?.trim().to_owned();
        if text.is_empty() {
            return Err(self.source.wrong("missing data type declaration"));
        }
        if text.eq_ignore_ascii_case("record") {
            return Ok(Declared::Record);
        }
        if text.eq_ignore_ascii_case("refcursor") {
            return Ok(Declared::Cursor(None));
        }
        let Some((of, kind)) = text.rsplit_once('%') else {
            return Ok(Declared::Type(text));
        };
        let parts = parts_of(of).ok_or_else(|| self.source.unexpected())?;
        if kind.trim().eq_ignore_ascii_case("rowtype") {
            return Ok(Declared::RowOf(of.trim().to_owned()));
        }
        if !kind.trim().eq_ignore_ascii_case("type") {
            return Err(self.source.unexpected());
        }
        match self.variable(&parts) {
            Some((slot, own)) if own == parts.len() => Ok(Declared::OfSlot(slot)),
            _ if parts.len() < 2 => Err(SqlError::new(
                "42601",
                format!(
                    "syntax error: variable \"{}\" does not exist",
                    parts.join(".")
                ),
            )),
            _ => Ok(Declared::OfColumn(parts)),
        }
    }

    /// A name and what follows it behind dots.
    pub(super) fn name_parts(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.source.name()?];
        while self.source.take_symbol(".") {
            parts.push(self.source.name()?);
        }
        Ok(parts)
    }

    /// The variable, or the column of a row, that is assigned.
    pub(super) fn target(&mut self) -> Result<Target> {
        let parts = self.name_parts()?;
        self.target_of(&parts)
    }

    pub(super) fn target_of(&mut self, parts: &[String]) -> Result<Target> {
        let Some((slot, own)) = self.variable(parts) else {
            let shown = parts.join(".");
            return Err(SqlError::new(
                "42601",
                format!("\"{shown}\" is not a known variable"),
            ));
        };
        let field = match parts.len() - own {
            0 => None,
            1 => parts.last().cloned(),
            _ => {
                return Err(SqlError::unsupported(
                    "the assignment of a part of a column of a row is not supported",
                    "Assign the whole column.",
                ));
            }
        };
        let declared = &self.slots[slot];
        if declared.constant {
            let message = format!("variable \"{}\" is declared CONSTANT", declared.name);
            return Err(SqlError::new("22005", message));
        }
        Ok(Target { slot, field })
    }
}

/// The parts of a name that stands alone in a text.
fn parts_of(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut tokens = crate::parse::scan::Tokens::new(text);
    loop {
        parts.push(folded(tokens.next()?)?);
        match tokens.next() {
            None => return Some(parts),
            Some(token) if token.is_symbol(".") => {}
            Some(_) => return None,
        }
    }
}

/// The variable that a name of these parts means among those that are known, and how many of
/// the parts are its own: one, or two with the label of its block.
pub(crate) fn lookup(
    names: &[Name],
    known: Option<usize>,
    parts: &[impl AsRef<str>],
) -> Option<(usize, usize)> {
    let first = parts.first()?.as_ref();
    let second = parts.get(1).map(AsRef::as_ref);
    // The one that the second part means in the block at hand.
    let mut in_block = None;
    let mut at = known;
    while let Some(entry) = at.and_then(|at| names.get(at)) {
        match entry.slot {
            Some(slot) if *entry.name == *first => return Some((slot, 1)),
            Some(slot) if in_block.is_none() && second == Some(&*entry.name) => {
                in_block = Some(slot);
            }
            Some(_) => {}
            None => {
                if let (true, Some(slot)) = (*entry.name == *first, in_block) {
                    return Some((slot, 2));
                }
                in_block = None;
            }
        }
        at = entry.before;
    }
    None
}
