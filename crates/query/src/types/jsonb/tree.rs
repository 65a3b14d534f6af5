//! Trees of JSON: how they are made, read, shown and ordered. Containers are
//! shared, and know how deep they are, so that no tree is deeper than a stack allows.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use super::super::json::{Event, Reader, quote};
use super::super::numeric::Numeric;
use crate::call::Call;
use crate::error::{QueryError, Result};

/// How deep a tree may be.
pub const DEPTH_MAX: usize = 2000;
/// PostgreSQL's greatest number of elements of an array or of fields of an object.
pub const ELEMENTS_MAX: usize = 0x3fff_ffff / 32;
/// PostgreSQL's longest string within a tree.
const STRING_BYTES_MAX: usize = 0x0fff_ffff;

/// A value of JSON.
#[derive(Clone, Debug)]
pub enum Jsonb {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number
    Number(Numeric),
    /// A string
    String(Arc<str>),
    /// An array
    Array(Arc<Items>),
    /// An object
    Object(Arc<Pairs>),
}

/// The elements of an array.
#[derive(Debug)]
pub struct Items {
    depth: usize,
    values: Vec<Jsonb>,
}

impl Deref for Items {
    type Target = [Jsonb];

    fn deref(&self) -> &[Jsonb] {
        &self.values
    }
}

/// The fields of an object: keys once each, by length, then by bytes.
#[derive(Debug)]
pub struct Pairs {
    depth: usize,
    values: Vec<(Arc<str>, Jsonb)>,
}

impl Deref for Pairs {
    type Target = [(Arc<str>, Jsonb)];

    fn deref(&self) -> &[(Arc<str>, Jsonb)] {
        &self.values
    }
}

impl Pairs {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Jsonb> {
        let place = self
            .values
            .binary_search_by(|(other, _)| key_order(other, key))
            .ok()?;
        self.values.get(place).map(|(_, value)| value)
    }
}

/// The order in which keys are kept.
fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// What is being read: containers that are not closed yet.
enum Open {
    Array(Vec<Jsonb>),
    Object(Vec<(Arc<str>, Jsonb)>, Option<Arc<str>>),
}

impl Jsonb {
    /// An array.
    ///
    /// # Errors
    /// 54001 where it is nested too deep, 54000 where it is too long.
    pub fn array(values: Vec<Self>) -> Result<Self> {
        if values.len() > ELEMENTS_MAX {
            return Err(too_many("array elements"));
        }
        let depth = depth_over(values.iter())?;
        Ok(Self::Array(Arc::new(Items { depth, values })))
    }

    /// An object; the last value of a key is the one that stays.
    ///
    /// # Errors
    /// 54001 where it is nested too deep, 54000 where it is too large.
    pub fn object(mut values: Vec<(Arc<str>, Self)>) -> Result<Self> {
        if values.len() > ELEMENTS_MAX {
            return Err(too_many("object pairs"));
        }
        let sorted = values
            .windows(2)
            .all(|pair| key_order(&pair[0].0, &pair[1].0) == Ordering::Less);
        if !sorted {
            values.sort_by(|a, b| key_order(&a.0, &b.0));
            values.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(&mut later.1, &mut earlier.1);
                }
                same
            });
        }
        let depth = depth_over(values.iter().map(|(_, value)| value))?;
        Ok(Self::Object(Arc::new(Pairs { depth, values })))
    }

    /// A string.
    ///
    /// # Errors
    /// 54000 where it is too long.
    pub fn string(text: impl Into<Arc<str>> + Borrow<str>) -> Result<Self> {
        Ok(Self::String(string(text)?))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// 22P02 and others, where it is no JSON.
    pub fn parse(call: &Call<'_>, text: &str) -> Result<Self> {
        let mut reader = Reader::new(text, true, DEPTH_MAX);
        let mut open: Vec<Open> = Vec::new();
        let mut events = 0_u32;
        let mut whole = Self::Null;
        while let Some(token) = reader.next()? {
            events = events.wrapping_add(1);
            if events.is_multiple_of(0x1000) {
                call.environment.check_interrupted()?;
            }
            let value = match token.event {
                Event::ObjectStart => {
                    open.push(Open::Object(Vec::new(), None));
                    continue;
                }
                Event::ArrayStart => {
                    open.push(Open::Array(Vec::new()));
                    continue;
                }
                Event::Key(key) => {
                    if let Some(Open::Object(_, waiting)) = open.last_mut() {
                        *waiting = Some(string(key)?);
                    }
                    continue;
                }
                Event::ObjectEnd | Event::ArrayEnd => match open.pop() {
                    Some(Open::Array(values)) => Self::array(values)?,
                    Some(Open::Object(pairs, _)) => Self::object(pairs)?,
                    None => Self::Null,
                },
                Event::Null => Self::Null,
                Event::Bool(value) => Self::Bool(value),
                Event::Number(digits) => Self::Number(Numeric::parse(digits)?),
                Event::String(text) => Self::String(string(text)?),
            };
            match open.last_mut() {
                None => whole = value,
                Some(Open::Array(values)) => values.push(value),
                Some(Open::Object(pairs, waiting)) => {
                    if let Some(key) = waiting.take() {
                        pairs.push((key, value));
                    }
                }
            }
        }
        Ok(whole)
    }

    /// How many containers are within each other here.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(items) => items.depth,
            Self::Object(pairs) => pairs.depth,
            _ => 0,
        }
    }

    /// How many bytes the tree takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let own = std::mem::size_of::<Self>();
        match self {
            Self::String(text) => own + text.len(),
            Self::Number(number) => own + number.held_bytes(),
            Self::Array(items) => items.iter().fold(own, |sum, item| sum + item.bytes()),
            Self::Object(pairs) => pairs
                .iter()
                .fold(own, |sum, (key, value)| sum + key.len() + value.bytes()),
            _ => own,
        }
    }

    /// Whether this is neither an array nor an object.
    #[must_use]
    pub const fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// The name of the kind of value, as `jsonb_typeof` gives it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The value of a key of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(pairs) => pairs.get(key),
            _ => None,
        }
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Array(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(pairs) => {
                out.push('{');
                for (place, (key, value)) in pairs.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    quote(key, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
            scalar => scalar.write_scalar(out),
        }
    }

    fn write_scalar(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            // Writing to a string cannot fail.
            Self::Number(value) => write!(out, "{value}").unwrap_or_default(),
            Self::String(text) => quote(text, out),
            Self::Array(_) | Self::Object(_) => {}
        }
    }

    /// Appends the text form with a line for each value, `level` steps to the right.
    pub fn write_pretty(&self, level: usize, out: &mut String) {
        let line = |out: &mut String, level: usize| {
            out.push('\n');
            for _ in 0..level {
                out.push_str("    ");
            }
        };
        match self {
            Self::Array(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    line(out, level + 1);
                    item.write_pretty(level + 1, out);
                }
                line(out, level);
                out.push(']');
            }
            Self::Object(pairs) => {
                out.push('{');
                for (place, (key, value)) in pairs.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    line(out, level + 1);
                    quote(key, out);
                    out.push_str(": ");
                    value.write_pretty(level + 1, out);
                }
                line(out, level);
                out.push('}');
            }
            scalar => scalar.write_scalar(out),
        }
    }

    /// The text that `->>` gives: a string's own characters, otherwise the
    /// text form; `None` for `null`.
    #[must_use]
    pub fn as_plain_text(&self) -> Option<Arc<str>> {
        match self {
            Self::Null => None,
            Self::String(text) => Some(Arc::clone(text)),
            other => {
                let mut out = String::new();
                other.write(&mut out);
                Some(out.into())
            }
        }
    }

    /// The order of two values. A scalar that stands alone is compared as the
    /// only element of a special array.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Array(items), b) if b.is_scalar() => {
                if items.is_empty() {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (a, Self::Array(_)) if a.is_scalar() => other.compare(self).reverse(),
            (a, b) => a.compare_nested(b),
        }
    }

    fn compare_nested(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::Array(a), Self::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
                a.iter()
                    .zip(b.iter())
                    .map(|(a, b)| a.compare_nested(b))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            (Self::Object(a), Self::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                a.iter()
                    .zip(b.iter())
                    .map(|((key, a), (other, b))| key.cmp(other).then_with(|| a.compare_nested(b)))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::String(_) => 1,
            Self::Number(_) => 2,
            Self::Bool(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }

    /// Whether two scalars are the same.
    #[must_use]
    pub fn same_scalar(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            _ => false,
        }
    }
}

fn string(text: impl Into<Arc<str>> + Borrow<str>) -> Result<Arc<str>> {
    let bytes: &str = text.borrow();
    if bytes.len() > STRING_BYTES_MAX {
        return Err(QueryError::new(
            "54000",
            "string too long to represent as jsonb string",
        )
        .with_detail(format!(
            "Due to an implementation restriction, jsonb strings cannot exceed {STRING_BYTES_MAX} bytes."
        )));
    }
    Ok(text.into())
}

fn depth_over<'a>(values: impl Iterator<Item = &'a Jsonb>) -> Result<usize> {
    let depth = values.map(Jsonb::depth).max().unwrap_or(0) + 1;
    if depth > DEPTH_MAX {
        return Err(super::super::json::too_deep());
    }
    Ok(depth)
}

#[cold]
fn too_many(what: &str) -> QueryError {
    QueryError::new(
        "54000",
        format!("number of jsonb {what} exceeds the maximum allowed ({ELEMENTS_MAX})"),
    )
}
