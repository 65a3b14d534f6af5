//! `jsonb_agg` and `jsonb_object_agg`.

use std::sync::Arc;

use super::super::json::{argument_type, key_text, no_key};
use super::make::to_tree;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::functions::{Aggregate, AggregateState};
use crate::types::jsonb::Jsonb;

/// `jsonb_agg`
pub(super) static JSONB_AGG: Aggregate = Aggregate::normal(|_| Box::new(Array::default()));

/// `jsonb_object_agg`
pub(super) static JSONB_OBJECT_AGG: Aggregate = Aggregate::normal(|_| Box::new(Object::default()));

/// Asks for room before a list grows.
fn room<T>(call: &Call<'_>, list: &[T], capacity: usize) -> Result<()> {
    if list.len() == capacity {
        call.room(
            capacity
                .saturating_mul(2)
                .saturating_mul(std::mem::size_of::<T>()),
        )?;
    }
    Ok(())
}

#[derive(Default)]
struct Array {
    items: Vec<Jsonb>,
    bytes: usize,
}

impl AggregateState for Array {
    fn update(&mut self, call: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let item = to_tree(call, argument_type(call, 0)?, &arguments[0])?;
        room(call, &self.items, self.items.capacity())?;
        self.bytes = self.bytes.saturating_add(item.bytes());
        self.items.push(item);
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        if self.items.is_empty() {
            return Ok(Datum::Null);
        }
        Ok(Jsonb::array(self.items.clone())?.into())
    }

    fn bytes(&self) -> usize {
        self.bytes + self.items.capacity() * std::mem::size_of::<Jsonb>()
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(self.items.iter().cloned().map(Datum::from).collect())
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        for item in saved.iter().map(Datum::as_jsonb) {
            self.bytes = self.bytes.saturating_add(item.bytes());
            self.items.push(item.clone());
        }
        Ok(())
    }
}

#[derive(Default)]
struct Object {
    pairs: Vec<(Arc<str>, Jsonb)>,
    bytes: usize,
}

impl AggregateState for Object {
    fn update(&mut self, call: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let oid = argument_type(call, 0)?;
        if arguments[0].is_null() {
            return Err(no_key());
        }
        let key = key_text(call, oid, &arguments[0])?;
        let value = to_tree(call, argument_type(call, 1)?, &arguments[1])?;
        room(call, &self.pairs, self.pairs.capacity())?;
        self.bytes = self.bytes.saturating_add(key.len() + value.bytes());
        self.pairs.push((key, value));
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        if self.pairs.is_empty() {
            return Ok(Datum::Null);
        }
        Ok(Jsonb::object(self.pairs.clone())?.into())
    }

    fn bytes(&self) -> usize {
        self.bytes + self.pairs.capacity() * std::mem::size_of::<(Arc<str>, Jsonb)>()
    }

    fn save(&self) -> Option<Vec<Datum>> {
        let pairs = self.pairs.iter();
        let pairs =
            pairs.flat_map(|(key, value)| [Datum::text(key.as_ref()), Datum::from(value.clone())]);
        Some(pairs.collect())
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        for pair in saved.chunks_exact(2) {
            let (key, value) = (pair[0].as_text(), pair[1].as_jsonb());
            self.bytes = self.bytes.saturating_add(key.len() + value.bytes());
            self.pairs.push((key.into(), value.clone()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::by_oid;
    use crate::call::{Call, Plain};
    use crate::datum::Datum;
    use crate::functions::Body;
    use crate::types::{ids, to_text};

    fn aggregated(function: u32, types: &[u32], rows: &[&[Datum]]) -> Option<String> {
        let function = by_oid(function).unwrap();
        let environment = Plain::default();
        let call = Call::new(&environment, types, function.result);
        let Body::Aggregate(aggregate) = function.body else {
            panic!("{} is no aggregate", function.name)
        };
        let mut state = (aggregate.new)(&call);
        for row in rows {
            state.update(&call, row).unwrap();
        }
        match state.value(&call).unwrap() {
            Datum::Null => None,
            value => Some(to_text(&call, function.result, &value).unwrap()),
        }
    }

    #[test]
    fn rows_become_arrays_and_objects() {
        let numbers: &[&[Datum]] = &[&[Datum::Int4(2)], &[Datum::Null], &[Datum::Int4(1)]];
        assert_eq!(
            aggregated(3175, &[ids::INT4], numbers).as_deref(),
            Some("[2, null, 1]")
        );
        assert_eq!(
            aggregated(3267, &[ids::INT4], numbers).as_deref(),
            Some("[2, null, 1]")
        );
        assert_eq!(aggregated(3267, &[ids::INT4], &[]), None);
        let pairs: &[&[Datum]] = &[
            &[Datum::text("b"), Datum::Int4(1)],
            &[Datum::text("a"), Datum::Null],
            &[Datum::text("b"), Datum::Int4(3)],
        ];
        let types = [ids::TEXT, ids::INT4];
        assert_eq!(
            aggregated(3197, &types, pairs).as_deref(),
            Some("{ \"b\" : 1, \"a\" : null, \"b\" : 3 }")
        );
        assert_eq!(
            aggregated(3270, &types, pairs).as_deref(),
            Some("{\"a\": null, \"b\": 3}")
        );
    }
}
