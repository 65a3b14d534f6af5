//! The variables of a body, as the analysis of a statement in it asks for them. Each one that is
//! asked for becomes a parameter of the statement.

use std::cell::RefCell;
use std::sync::Arc;

use thermocline_query::analyze::{Columns, Conflict, Variable, Variables};
use thermocline_query::error::{QueryError, Result};

use super::frame::Held;
use crate::plpgsql::lookup;
use crate::plpgsql::tree::{Body, Name};

/// A parameter of a statement: a variable, or a column of one that is a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::session) struct Asked {
    /// How the statement names it.
    parts: Vec<String>,
    pub(super) slot: usize,
    pub(super) column: Option<usize>,
    pub(super) oid: u32,
    pub(super) modifier: i32,
    /// What is meant where a column has the name, too.
    conflict: Conflict,
}

impl Asked {
    /// Whether its own name, without what stands before, is this.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.parts.last().is_some_and(|last| last == name)
    }
}

enum Known<'a> {
    /// Those that are known at a place of a body, and what they hold.
    Names(&'a [Name], Option<usize>, &'a [Held]),
    /// Those that the same statement has asked for before.
    Before(&'a [Asked]),
}

/// See the head of this file.
pub(in crate::session) struct Scope<'a> {
    known: Known<'a>,
    conflict: Conflict,
    asked: RefCell<Vec<Asked>>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(body: &'a Body, last: Option<usize>, held: &'a [Held]) -> Self {
        Self {
            known: Known::Names(&body.names, last, held),
            conflict: body.conflict,
            asked: RefCell::default(),
        }
    }

    /// Of a statement that is analysed again: its parameters are what they were.
    pub(in crate::session) fn of_asked(asked: &'a [Asked]) -> Self {
        Self {
            known: Known::Before(asked),
            conflict: asked.first().map_or(Conflict::Error, |one| one.conflict),
            asked: RefCell::default(),
        }
    }

    /// What the last analysis has asked for, parameter by parameter.
    pub(in crate::session) fn asked(&self) -> Arc<[Asked]> {
        self.asked.borrow().as_slice().into()
    }

    fn parameter(&self, asked: Asked) -> Variable {
        let mut all = self.asked.borrow_mut();
        let same = |other: &Asked| other.slot == asked.slot && other.column == asked.column;
        let (oid, modifier) = (asked.oid, asked.modifier);
        let parameter = all.iter().position(same).unwrap_or_else(|| {
            all.push(asked);
            all.len() - 1
        });
        Variable {
            parameter,
            oid,
            modifier,
        }
    }
}

impl Variables for Scope<'_> {
    fn conflict(&self) -> Conflict {
        self.conflict
    }

    fn begin(&self) {
        self.asked.borrow_mut().clear();
    }

    fn named(&self, parts: &[&str]) -> Result<Option<Variable>> {
        let (names, last, held) = match self.known {
            Known::Names(names, last, held) => (names, last, held),
            Known::Before(asked) => {
                let mut all = asked.iter().enumerate();
                let found = all.find(|(_, one)| one.parts == parts);
                return Ok(found.map(|(parameter, one)| Variable {
                    parameter,
                    oid: one.oid,
                    modifier: one.modifier,
                }));
            }
        };
        let Some((slot, own)) = lookup(names, last, parts) else {
            return Ok(None);
        };
        let (column, (oid, modifier)) = match (&held[slot], &parts[own..]) {
            (held, []) => (None, held.type_of()),
            (Held::Row(row), [field]) => {
                let Some((at, column)) = row.column(field) else {
                    let name = parts[..own].join(".");
                    return Err(row.without(&name, field));
                };
                (Some(at), (column.oid, column.modifier))
            }
            _ => return Ok(None),
        };
        if oid == 0 {
            let name = parts.join(".");
            return Err(QueryError::internal(format!("variable {name} has no type")));
        }
        Ok(Some(self.parameter(Asked {
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            slot,
            column,
            oid,
            modifier,
            conflict: self.conflict,
        })))
    }

    fn row(&self, parts: &[&str]) -> Result<Option<Columns<Variable>>> {
        let named: Vec<Arc<str>> = match self.known {
            Known::Names(names, last, held) => {
                let Some((slot, own)) = lookup(names, last, parts) else {
                    return Ok(None);
                };
                let (Held::Row(row), true) = (&held[slot], own == parts.len()) else {
                    return Ok(None);
                };
                let Some(columns) = &row.columns else {
                    return Err(row.without(&parts.join("."), ""));
                };
                columns.iter().map(|of| Arc::clone(&of.name)).collect()
            }
            Known::Before(asked) => {
                let is_of = |one: &&Asked| {
                    one.column.is_some()
                        && one.parts.split_last().is_some_and(|(_, of)| of == parts)
                };
                let all: Vec<&Asked> = asked.iter().filter(is_of).collect();
                if all.is_empty() {
                    return Ok(None);
                }
                // Who asks again asks for the same, in the order of the row.
                let mut all: Vec<(usize, &str)> = all
                    .into_iter()
                    .filter_map(|one| Some((one.column?, one.parts.last()?.as_str())))
                    .collect();
                all.sort_unstable();
                all.dedup();
                all.into_iter().map(|(_, name)| Arc::from(name)).collect()
            }
        };
        let mut columns = Vec::with_capacity(named.len());
        for name in named {
            let whole: Vec<&str> = parts.iter().copied().chain([&*name]).collect();
            columns.extend(self.named(&whole)?.map(|found| (name, found)));
        }
        Ok(Some(columns))
    }
}
