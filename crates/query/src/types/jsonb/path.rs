//! Values at a path into a tree, read and changed: `#>`, `jsonb_set` and its
//! like, subscripts.

use std::sync::Arc;

use super::tree::{ELEMENTS_MAX, Jsonb};
use crate::call::Call;
use crate::error::{QueryError, Result};

/// What is done at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The value is taken away.
    Delete,
    /// The value is replaced, where there is one.
    Replace,
    /// The value is replaced, or made.
    Create,
    /// A value is put in before it.
    InsertBefore,
    /// A value is put in behind it.
    InsertAfter,
    /// As `Create`, with all containers on the way and all elements before it (subscripts).
    Fill,
}

impl Change {
    /// Whether a value is made where there is none.
    const fn makes(self) -> bool {
        !matches!(self, Self::Delete | Self::Replace)
    }

    const fn inserts(self) -> bool {
        matches!(self, Self::InsertBefore | Self::InsertAfter)
    }
}

/// The number that a step of a path is, if it is one, as C's `strtol` reads it.
#[must_use]
pub fn index_of(step: &str) -> Option<i32> {
    let step = step.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let digits = step.strip_prefix(['+', '-']).unwrap_or(step);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    step.parse().ok()
}

/// The place that a number means in an array of `length`, counted from the end if negative.
fn place(index: i32, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(place) => Some(place),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// The value at a path.
#[must_use]
pub fn element<S: AsRef<str>>(value: &Jsonb, path: impl IntoIterator<Item = S>) -> Option<&Jsonb> {
    let mut value = value;
    for step in path {
        value = match value {
            Jsonb::Object(pairs) => pairs.get(step.as_ref())?,
            Jsonb::Array(items) => items.get(place(index_of(step.as_ref())?, items.len())?)?,
            _ => return None,
        };
    }
    Some(value)
}

/// A tree with the value at a path changed; `new` is needed for all changes but `Delete`.
///
/// # Errors
/// 22004 for a path with a NULL, 22P02 for a place in an array that is no
/// number, 22023 where there is something already.
pub fn set_path(
    call: &Call<'_>,
    value: &Jsonb,
    path: &[Option<Arc<str>>],
    new: Option<&Jsonb>,
    change: Change,
) -> Result<Jsonb> {
    Setter {
        call,
        path,
        new,
        change,
    }
    .set(value, 0)
}

/// A tree with a value assigned at subscripts, of which there is at least
/// one. What is missing on the way is made. Where the tree itself is missing,
/// it is an array if `first_is_number`.
///
/// # Errors
/// As [`set_path`]; 22004 where a subscript is NULL.
pub fn assign(
    call: &Call<'_>,
    value: Option<&Jsonb>,
    first_is_number: bool,
    path: &[Option<Arc<str>>],
    new: Option<&Jsonb>,
) -> Result<Jsonb> {
    if path.iter().any(Option::is_none) {
        return Err(QueryError::new(
            "22004",
            "jsonb subscript in assignment must not be null",
        ));
    }
    let empty = if first_is_number {
        Jsonb::array(Vec::new())?
    } else {
        Jsonb::object(Vec::new())?
    };
    set_path(
        call,
        value.unwrap_or(&empty),
        path,
        Some(new.unwrap_or(&Jsonb::Null)),
        Change::Fill,
    )
}

struct Setter<'a> {
    call: &'a Call<'a>,
    path: &'a [Option<Arc<str>>],
    new: Option<&'a Jsonb>,
    change: Change,
}

impl Setter<'_> {
    fn is_last(&self, level: usize) -> bool {
        level + 1 == self.path.len()
    }

    fn new_value(&self) -> Jsonb {
        self.new.cloned().unwrap_or(Jsonb::Null)
    }

    fn set(&self, value: &Jsonb, level: usize) -> Result<Jsonb> {
        let Some(step) = self.path.get(level).and_then(Option::as_ref) else {
            return Err(QueryError::new(
                "22004",
                format!("path element at position {} is null", level + 1),
            ));
        };
        match value {
            Jsonb::Array(items) => Jsonb::array(self.in_array(items, step, level)?),
            Jsonb::Object(pairs) => Jsonb::object(self.in_object(pairs, step, level)?),
            _ if self.change == Change::Fill => Err(QueryError::invalid_parameter(
                "cannot replace existing key",
            )
            .with_detail("The path assumes key is a composite object, but it is a scalar value.")),
            scalar => Ok(scalar.clone()),
        }
    }

    fn in_object(
        &self,
        pairs: &[(Arc<str>, Jsonb)],
        step: &Arc<str>,
        level: usize,
    ) -> Result<Vec<(Arc<str>, Jsonb)>> {
        let mut done = false;
        let mut changed = Vec::with_capacity(pairs.len() + 1);
        for (key, value) in pairs {
            if done || key != step {
                changed.push((Arc::clone(key), value.clone()));
                continue;
            }
            done = true;
            if !self.is_last(level) {
                changed.push((Arc::clone(key), self.set(value, level + 1)?));
            } else if self.change.inserts() {
                return Err(QueryError::invalid_parameter("cannot replace existing key")
                    .with_hint("Try using the function jsonb_set to replace key value."));
            } else if self.change != Change::Delete {
                changed.push((Arc::clone(key), self.new_value()));
            }
        }
        if !done {
            if self.is_last(level) {
                if self.change.makes() {
                    changed.push((Arc::clone(step), self.new_value()));
                }
            } else if self.change == Change::Fill {
                changed.push((Arc::clone(step), self.chain(level + 1)?));
            }
        }
        Ok(changed)
    }

    fn in_array(&self, items: &[Jsonb], step: &str, level: usize) -> Result<Vec<Jsonb>> {
        let Some(index) = index_of(step) else {
            return Err(QueryError::new(
                "22P02",
                format!(
                    "path element at position {} is not an integer: \"{step}\"",
                    level + 1
                ),
            ));
        };
        let fills = self.change == Change::Fill;
        let length = items.len();
        let mut changed = Vec::with_capacity(length + 1);
        let place = match place(index, length) {
            Some(place) if fills => Some(place),
            Some(place) => Some(place.min(length)),
            None if fills => {
                return Err(QueryError::invalid_parameter(format!(
                    "path element at position {} is out of range: {index}",
                    level + 1
                )));
            }
            None => None,
        };
        let mut done = false;
        if place.is_none() && length > 0 && self.is_last(level) && self.change.makes() {
            // Before the first.
            changed.push(self.new_value());
            done = true;
        }
        for (at, item) in items.iter().enumerate() {
            if place != Some(at) {
                changed.push(item.clone());
                continue;
            }
            done = true;
            if !self.is_last(level) {
                changed.push(self.set(item, level + 1)?);
                continue;
            }
            match self.change {
                Change::Delete => {}
                Change::Replace | Change::Create | Change::Fill => changed.push(self.new_value()),
                Change::InsertBefore => changed.extend([self.new_value(), item.clone()]),
                Change::InsertAfter => changed.extend([item.clone(), self.new_value()]),
            }
        }
        let makes = if self.is_last(level) {
            self.change.makes()
        } else {
            fills
        };
        if !done && makes {
            if fills {
                self.nulls(&mut changed, place.unwrap_or(0).saturating_sub(length))?;
            }
            changed.push(if self.is_last(level) {
                self.new_value()
            } else {
                self.chain(level + 1)?
            });
        }
        Ok(changed)
    }

    fn nulls(&self, items: &mut Vec<Jsonb>, count: usize) -> Result<()> {
        let length = items.len().saturating_add(count);
        if length >= ELEMENTS_MAX {
            return Err(QueryError::new(
                "54000",
                format!(
                    "number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})"
                ),
            ));
        }
        self.call
            .room(count.saturating_mul(std::mem::size_of::<Jsonb>()))?;
        items.resize(length, Jsonb::Null);
        Ok(())
    }

    /// The new value within the containers that the path from `level` on asks for.
    fn chain(&self, level: usize) -> Result<Jsonb> {
        let mut value = self.new_value();
        for step in self.path.iter().skip(level).rev().flatten() {
            value = match index_of(step) {
                Some(index) => {
                    let mut items = Vec::new();
                    self.nulls(&mut items, usize::try_from(index).unwrap_or(0))?;
                    items.push(value);
                    Jsonb::array(items)?
                }
                None => Jsonb::object(vec![(Arc::clone(step), value)])?,
            };
        }
        Ok(value)
    }
}
