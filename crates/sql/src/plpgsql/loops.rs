//! Loops, EXIT and CONTINUE.

use std::sync::Arc;

use thermocline_query::types::ids;

use super::read::Reader;
use super::source::folded;
use super::tree::{Bounds, Declared, Into, Kind, Loop, Source as Rows, Target};
use crate::error::{Result, SqlError};

impl Reader<'_> {
    /// The statements of a loop, whose LOOP was read, and its end.
    pub(super) fn body_of_loop(&mut self, label: Option<Arc<str>>) -> Result<Loop> {
        self.labels.push((label.clone(), true));
        let body = self.statements(&["end"])?;
        self.labels.pop();
        self.source.need_word("end")?;
        self.source.need_word("loop")?;
        self.end_label(label.as_ref())?;
        Ok(Loop { label, body })
    }

    pub(super) fn for_loop(&mut self, label: Option<Arc<str>>) -> Result<Kind> {
        self.source.next();
        self.know(label.as_deref().unwrap_or(""), None);
        let mut names = vec![self.name_parts()?];
        while self.source.take_symbol(",") {
            names.push(self.name_parts()?);
        }
        self.source.need_word("in")?;
        if self.source.take_word("execute") {
            let into = self.row_targets(&names)?;
            let dynamic = self.dynamic(&["loop"])?;
            self.source.need_word("loop")?;
            let body = self.body_of_loop(label)?;
            return Ok(Kind::ForRows(into, Rows::Dynamic(dynamic), body));
        }
        let cursor = self.source.peek().and_then(|placed| folded(placed.token));
        let cursor = cursor.and_then(|name| self.variable(&[name]));
        if let Some((slot, _)) = cursor
            && self
                .source
                .ahead(1)
                .is_some_and(|token| token.is_word("loop"))
            && matches!(self.slots[slot].declared, Declared::Cursor(_))
        {
            return self.for_cursor(&names, slot, label);
        }
        let reverse = self.source.take_word("reverse");
        let line = self.source.line(self.source.place());
        let first = self
            .source
            .until(|token| token.is_symbol("..") || token.is_word("loop"))?;
        if !self.source.take_symbol("..") {
            if reverse {
                return Err(SqlError::syntax("cannot specify REVERSE in query FOR loop"));
            }
            let into = self.row_targets(&names)?;
            let query = self.expression("", first, line)?;
            self.source.need_word("loop")?;
            let body = self.body_of_loop(label)?;
            return Ok(Kind::ForRows(into, Rows::Query(query), body));
        }
        let from = self.expression("SELECT ", first, line)?;
        let to = self.value_until(&["by", "loop"])?;
        let by = match self.source.take_word("by") {
            true => Some(self.value_until(&["loop"])?),
            false => None,
        };
        self.source.need_word("loop")?;
        let [name] = names.as_slice() else {
            return Err(SqlError::syntax(
                "integer FOR loop must have only one target variable",
            ));
        };
        let [name] = name.as_slice() else {
            return Err(SqlError::syntax(
                "the variable of a FOR loop is a name of one part",
            ));
        };
        let integer = Declared::Known(ids::INT4);
        let slot = self.slot(name, integer)?;
        self.know(name, Some(slot));
        let body = self.body_of_loop(label)?;
        let bounds = Bounds {
            slot,
            reverse,
            from,
            to,
            by,
        };
        Ok(Kind::ForIntegers(bounds, body))
    }

    /// A loop over a cursor that is bound to a query. Its variable is its own.
    fn for_cursor(
        &mut self,
        names: &[Vec<String>],
        slot: usize,
        label: Option<Arc<str>>,
    ) -> Result<Kind> {
        let Declared::Cursor(Some(query)) = self.slots[slot].declared.clone() else {
            let message = "cursor FOR loop must use a bound cursor variable";
            return Err(SqlError::syntax(message));
        };
        self.source.next();
        self.source.need_word("loop")?;
        let [name] = names else {
            let message = "cursor FOR loop must have only one target variable";
            return Err(SqlError::syntax(message));
        };
        let row = self.slot(&name.join("."), Declared::Record)?;
        self.know(&name.join("."), Some(row));
        let target = Target {
            slot: row,
            field: None,
        };
        let into = Into {
            targets: vec![target],
            strict: false,
        };
        let body = self.body_of_loop(label)?;
        Ok(Kind::ForRows(into, Rows::Query(query), body))
    }

    /// Where the rows of a loop go.
    fn row_targets(&mut self, names: &[Vec<String>]) -> Result<Into> {
        let mut targets = Vec::new();
        for name in names {
            if self.variable(name).is_none() {
                return Err(SqlError::syntax(
                    "loop variable of loop over rows must be a record variable or list of scalar \
                     variables",
                ));
            }
            targets.push(self.target_of(name)?);
        }
        Ok(Into {
            targets,
            strict: false,
        })
    }

    pub(super) fn for_each(&mut self, label: Option<Arc<str>>) -> Result<Kind> {
        self.source.next();
        let target = self.target()?;
        if self.source.is_word("slice") || self.source.ahead(0).is_some_and(|t| t.is_symbol(",")) {
            return Err(SqlError::unsupported(
                "FOREACH with SLICE or several targets is not supported",
                "Go over the elements one by one.",
            ));
        }
        self.source.need_word("in")?;
        self.source.need_word("array")?;
        let array = self.value_until(&["loop"])?;
        self.source.need_word("loop")?;
        let body = self.body_of_loop(label)?;
        Ok(Kind::ForEach(target, array, body))
    }

    pub(super) fn leave(&mut self, exits: bool) -> Result<Kind> {
        let word = if exits { "EXIT" } else { "CONTINUE" };
        self.source.next();
        let is_plain = self.source.is_word("when")
            || self
                .source
                .ahead(0)
                .is_some_and(|token| token.is_symbol(";"));
        let label: Option<Arc<str>> = match is_plain {
            true => None,
            false => Some(Arc::from(self.source.name()?)),
        };
        let when = match self.source.take_word("when") {
            true => Some(self.value_until(&[";"])?),
            false => None,
        };
        self.source.need_symbol(";")?;
        let mut around = self.labels.iter().rev();
        match &label {
            None if !around.any(|(_, is_loop)| *is_loop) => {
                let shown = match exits {
                    true => "EXIT cannot be used outside a loop, unless it has a label",
                    false => "CONTINUE cannot be used outside a loop",
                };
                return Err(SqlError::syntax(shown));
            }
            None => {}
            Some(label) => match around.find(|(name, _)| name.as_ref() == Some(label)) {
                None => {
                    return Err(SqlError::syntax(format!(
                        "there is no label \"{label}\" attached to any block or loop enclosing this statement"
                    )));
                }
                Some((_, false)) if !exits => {
                    return Err(SqlError::syntax(format!(
                        "block label \"{label}\" cannot be used in {word}"
                    )));
                }
                Some(_) => {}
            },
        }
        Ok(Kind::Leave { exits, label, when })
    }
}
