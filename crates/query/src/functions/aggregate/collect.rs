//! `array_agg` and `string_agg`.

use std::sync::Arc;

use super::super::{Aggregate, AggregateState};
use crate::call::{Call, VALUE_BYTES_MAX};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::size;
use crate::types::array::Array;

/// An array has no more dimensions.
const DIMENSIONS_MAX: usize = 6;
/// An array has no more elements: as many words as fit into the longest value.
const ELEMENTS_MAX: usize = VALUE_BYTES_MAX / 8;

/// The values that came, NULLs among them.
#[derive(Default)]
struct Elements {
    values: Vec<Datum>,
    held: usize,
}

fn too_many() -> QueryError {
    QueryError::new(
        "54000",
        format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
    )
}

fn room_for(call: &Call<'_>, elements: usize) -> Result<()> {
    call.room(
        elements
            .saturating_mul(size_of::<Datum>())
            .min(VALUE_BYTES_MAX),
    )
}

impl AggregateState for Elements {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        if self.values.len() >= ELEMENTS_MAX {
            return Err(too_many());
        }
        self.held += size::beyond(&arguments[0]);
        self.values.push(arguments[0].clone());
        Ok(())
    }

    fn value(&self, call: &Call<'_>) -> Result<Datum> {
        if self.values.is_empty() {
            return Ok(Datum::Null);
        }
        room_for(call, self.values.len())?;
        let element = call.arguments.first().copied().unwrap_or(0);
        Ok(Datum::Array(Arc::new(Array::of(
            element,
            self.values.clone(),
        ))))
    }

    fn bytes(&self) -> usize {
        self.held + self.values.capacity() * size_of::<Datum>()
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(self.values.clone())
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        self.held += saved.iter().map(size::beyond).sum::<usize>();
        self.values.extend_from_slice(saved);
        Ok(())
    }
}

/// Arrays of the same shape, which become one of a dimension more.
#[derive(Default)]
struct Arrays {
    /// The element type and the shape of the first one.
    first: Option<(u32, Vec<(i32, i32)>)>,
    count: i32,
    values: Vec<Datum>,
    held: usize,
}

fn other_shape(what: &str) -> QueryError {
    QueryError::new("2202E", format!("cannot accumulate {what}"))
}

impl AggregateState for Arrays {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        if arguments[0].is_null() {
            return Err(QueryError::new("22004", "cannot accumulate null arrays"));
        }
        let array = arguments[0].as_array();
        if self.values.len() + array.elements.len() > ELEMENTS_MAX {
            return Err(too_many());
        }
        match &self.first {
            None if array.dimensions.is_empty() => return Err(other_shape("empty arrays")),
            None if array.dimensions.len() >= DIMENSIONS_MAX => {
                return Err(QueryError::new(
                    "54000",
                    format!(
                        "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                        array.dimensions.len() + 1
                    ),
                ));
            }
            None => self.first = Some((array.element, array.dimensions.clone())),
            Some((_, dimensions)) if *dimensions != array.dimensions => {
                return Err(other_shape("arrays of different dimensionality"));
            }
            Some(_) => {}
        }
        self.held += array.elements.iter().map(size::beyond).sum::<usize>();
        self.values.extend_from_slice(&array.elements);
        self.count += 1;
        Ok(())
    }

    fn value(&self, call: &Call<'_>) -> Result<Datum> {
        let Some((element, dimensions)) = &self.first else {
            return Ok(Datum::Null);
        };
        room_for(call, self.values.len())?;
        let outer = std::iter::once((self.count, 1));
        Ok(Datum::Array(Arc::new(Array {
            element: *element,
            dimensions: outer.chain(dimensions.iter().copied()).collect(),
            elements: self.values.clone(),
        })))
    }

    fn bytes(&self) -> usize {
        self.held + self.values.capacity() * size_of::<Datum>()
    }

    fn save(&self) -> Option<Vec<Datum>> {
        let Some((element, dimensions)) = &self.first else {
            return Some(Vec::new());
        };
        let all = Datum::Array(Arc::new(Array {
            element: *element,
            dimensions: dimensions.clone(),
            elements: self.values.clone(),
        }));
        Some(vec![Datum::Int4(self.count), all])
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        if let [count, Datum::Array(all)] = saved {
            self.first = Some((all.element, all.dimensions.clone()));
            self.count = count.as_int4();
            self.held = all.elements.iter().map(size::beyond).sum();
            self.values.clone_from(&all.elements);
        }
        Ok(())
    }
}

/// `array_agg` of values.
pub(super) static ARRAY: Aggregate = Aggregate::normal(|_| Box::<Elements>::default());
/// `array_agg` of arrays.
pub(super) static ARRAYS: Aggregate = Aggregate::normal(|_| Box::<Arrays>::default());

fn too_long(held: usize, more: usize) -> QueryError {
    QueryError::new("54000", "out of memory").with_detail(format!(
        "Cannot enlarge string buffer containing {held} bytes by {more} more bytes."
    ))
}

fn check_length(held: usize, more: usize) -> Result<()> {
    if held.saturating_add(more) >= VALUE_BYTES_MAX {
        return Err(too_long(held, more));
    }
    Ok(())
}

/// Texts with delimiters between them: that of the first one is left out.
#[derive(Default)]
struct Texts(Option<String>);

impl AggregateState for Texts {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let Datum::Text(value) = &arguments[0] else {
            return Ok(());
        };
        let text = match &mut self.0 {
            None => self.0.insert(String::new()),
            Some(text) => {
                if let Datum::Text(delimiter) = &arguments[1] {
                    check_length(text.len(), delimiter.len())?;
                    text.push_str(delimiter);
                }
                text
            }
        };
        check_length(text.len(), value.len())?;
        text.push_str(value);
        Ok(())
    }

    fn value(&self, call: &Call<'_>) -> Result<Datum> {
        let Some(text) = &self.0 else {
            return Ok(Datum::Null);
        };
        call.room(text.len())?;
        Ok(Datum::text(text.as_str()))
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, String::capacity)
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(
            self.0
                .iter()
                .map(|text| Datum::text(text.as_str()))
                .collect(),
        )
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        if let [Datum::Text(text)] = saved {
            self.0 = Some(text.as_ref().to_owned());
        }
        Ok(())
    }
}

/// As [`Texts`], of bytes.
#[derive(Default)]
struct Bytes(Option<Vec<u8>>);

impl AggregateState for Bytes {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let Datum::Bytea(value) = &arguments[0] else {
            return Ok(());
        };
        let bytes = match &mut self.0 {
            None => self.0.insert(Vec::new()),
            Some(bytes) => {
                if let Datum::Bytea(delimiter) = &arguments[1] {
                    check_length(bytes.len(), delimiter.len())?;
                    bytes.extend_from_slice(delimiter);
                }
                bytes
            }
        };
        check_length(bytes.len(), value.len())?;
        bytes.extend_from_slice(value);
        Ok(())
    }

    fn value(&self, call: &Call<'_>) -> Result<Datum> {
        let Some(bytes) = &self.0 else {
            return Ok(Datum::Null);
        };
        call.room(bytes.len())?;
        Ok(Datum::bytes(bytes.as_slice()))
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::capacity)
    }

    fn save(&self) -> Option<Vec<Datum>> {
        let bytes = self.0.iter();
        Some(bytes.map(|bytes| Datum::bytes(bytes.as_slice())).collect())
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        if let [Datum::Bytea(bytes)] = saved {
            self.0 = Some(bytes.to_vec());
        }
        Ok(())
    }
}

/// `string_agg` of texts.
pub(super) static STRINGS: Aggregate = Aggregate::normal(|_| Box::<Texts>::default());
/// `string_agg` of bytes.
pub(super) static BYTES: Aggregate = Aggregate::normal(|_| Box::<Bytes>::default());
