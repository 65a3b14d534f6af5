//! `json_agg` and `json_object_agg`.

use super::make::{Kind, Writer, argument_type, kind_of};
use crate::call::{Call, SMALL_VALUE_BYTES};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::{Aggregate, AggregateState};

/// `json_agg`
pub(super) static JSON_AGG: Aggregate = Aggregate::normal(|_| Box::new(Array::default()));

/// `json_object_agg`
pub(super) static JSON_OBJECT_AGG: Aggregate = Aggregate::normal(|_| Box::new(Object::default()));

/// A text that grows, and how much room was asked for.
#[derive(Default)]
struct Text {
    out: String,
    asked: usize,
}

impl Text {
    /// Lets `write` append to the text.
    fn append(
        &mut self,
        call: &Call<'_>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut writer = Writer::new(call);
        write(&mut writer)?;
        let length = self.out.len() + writer.out.len();
        if length > self.asked.max(SMALL_VALUE_BYTES) {
            call.room(length)?;
            self.asked = length.saturating_mul(2);
        }
        self.out.push_str(&writer.out);
        Ok(())
    }

    /// The text and its end; NULL where there was no row.
    fn value(&self, call: &Call<'_>, end: &str) -> Result<Datum> {
        if self.out.is_empty() {
            return Ok(Datum::Null);
        }
        call.room(self.out.len() + end.len())?;
        Ok(Datum::text(format!("{}{end}", self.out)))
    }
}

#[derive(Default)]
struct Array(Text);

impl AggregateState for Array {
    fn update(&mut self, call: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let oid = argument_type(call, 0)?;
        let value = &arguments[0];
        if self.0.out.is_empty() {
            self.0.out.push('[');
        } else {
            self.0.out.push_str(", ");
            if !value.is_null() && matches!(kind_of(oid), Kind::Array | Kind::Record) {
                self.0.out.push_str("\n ");
            }
        }
        self.0.append(call, |writer| writer.value(oid, value))
    }

    fn value(&self, call: &Call<'_>) -> Result<Datum> {
        self.0.value(call, "]")
    }

    fn bytes(&self) -> usize {
        self.0.out.capacity()
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![Datum::text(self.0.out.as_str())])
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        self.0.out.push_str(saved[0].as_text());
        Ok(())
    }
}

#[derive(Default)]
struct Object(Text);

impl AggregateState for Object {
    fn update(&mut self, call: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let (key, value) = (argument_type(call, 0)?, argument_type(call, 1)?);
        if arguments[0].is_null() {
            return Err(no_key());
        }
        self.0
            .out
            .push_str(if self.0.out.is_empty() { "{ " } else { ", " });
        self.0.append(call, |writer| {
            writer.key(key, &arguments[0])?;
            writer.out.push_str(" : ");
            writer.value(value, &arguments[1])
        })
    }

    fn value(&self, call: &Call<'_>) -> Result<Datum> {
        self.0.value(call, " }")
    }

    fn bytes(&self) -> usize {
        self.0.out.capacity()
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![Datum::text(self.0.out.as_str())])
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        self.0.out.push_str(saved[0].as_text());
        Ok(())
    }
}

/// 22023 of a key that is NULL.
#[cold]
pub(in super::super) fn no_key() -> QueryError {
    QueryError::invalid_parameter("field name must not be null")
}
