//! Whether trees contain trees, and keys: `@>`, `?`.

use std::sync::Arc;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::jsonb::Jsonb;

/// Containers compared with each other until the statement is asked whether it goes on.
const STEPS: u32 = 4096;

struct Search<'a> {
    call: &'a Call<'a>,
    steps: u32,
}

impl Search<'_> {
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps >= STEPS {
            self.steps = 0;
            self.call.environment.check_interrupted()?;
        }
        Ok(())
    }

    /// Whether a container contains another.
    fn contains(&mut self, value: &Jsonb, wanted: &Jsonb) -> Result<bool> {
        self.step()?;
        match (value, wanted) {
            (Jsonb::Object(value), Jsonb::Object(wanted)) => {
                if value.len() < wanted.len() {
                    return Ok(false);
                }
                for (key, wanted) in wanted.iter() {
                    let Some(found) = value.get(key) else {
                        return Ok(false);
                    };
                    let same = if wanted.is_scalar() {
                        found.same_scalar(wanted)
                    } else {
                        self.contains(found, wanted)?
                    };
                    if !same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Jsonb::Array(items), Jsonb::Array(wanted)) => {
                for wanted in wanted.iter() {
                    if !self.has(items, wanted)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether an element of an array is, or contains, what is wanted.
    fn has(&mut self, items: &[Jsonb], wanted: &Jsonb) -> Result<bool> {
        if wanted.is_scalar() {
            for item in items {
                self.step()?;
                if item.same_scalar(wanted) {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        for item in items {
            if !item.is_scalar() && self.contains(item, wanted)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn contains(call: &Call<'_>, value: &Jsonb, wanted: &Jsonb) -> Result<Datum> {
    let mut search = Search { call, steps: 0 };
    Ok(Datum::Bool(match (value, wanted) {
        // A scalar that stands alone is like the only element of an array.
        (value, wanted) if value.is_scalar() && wanted.is_scalar() => value.same_scalar(wanted),
        (Jsonb::Array(items), wanted) if wanted.is_scalar() => search.has(items, wanted)?,
        (value, wanted) => search.contains(value, wanted)?,
    }))
}

pub(super) fn jsonb_contains(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    contains(call, arguments[0].as_jsonb(), arguments[1].as_jsonb())
}

pub(super) fn jsonb_contained(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    contains(call, arguments[1].as_jsonb(), arguments[0].as_jsonb())
}

/// Whether a text is a key, an element, or the value itself.
fn exists(value: &Jsonb, key: &str) -> bool {
    let is_key = |value: &Jsonb| matches!(value, Jsonb::String(text) if **text == *key);
    match value {
        Jsonb::Object(pairs) => pairs.get(key).is_some(),
        Jsonb::Array(items) => items.iter().any(is_key),
        scalar => is_key(scalar),
    }
}

/// The texts of an array that are not NULL.
pub(super) fn keys(array: &Datum) -> impl Iterator<Item = &Arc<str>> {
    array
        .as_array()
        .elements
        .iter()
        .filter_map(|key| match key {
            Datum::Text(key) => Some(key),
            _ => None,
        })
}

pub(super) fn jsonb_exists(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(exists(
        arguments[0].as_jsonb(),
        arguments[1].as_text(),
    )))
}

pub(super) fn jsonb_exists_any(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_jsonb();
    Ok(Datum::Bool(
        keys(&arguments[1]).any(|key| exists(value, key)),
    ))
}

pub(super) fn jsonb_exists_all(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_jsonb();
    Ok(Datum::Bool(
        keys(&arguments[1]).all(|key| exists(value, key)),
    ))
}
