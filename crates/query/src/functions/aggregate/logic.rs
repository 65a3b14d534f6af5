//! `bool_and`, `bool_or`, `bit_and`, `bit_or`, `bit_xor`.

use std::sync::Arc;

use super::super::{Aggregate, AggregateState};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::bit::BitString;

/// How two values become one.
#[derive(Clone, Copy)]
enum Operation {
    And,
    Or,
    Xor,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
            Self::Xor => "XOR",
        }
    }

    fn words<T>(self, a: T, b: T) -> T
    where
        T: std::ops::BitAnd<Output = T>
            + std::ops::BitOr<Output = T>
            + std::ops::BitXor<Output = T>,
    {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }

    fn bits(self, a: &mut BitString, b: &BitString) -> Result<()> {
        if a.length != b.length {
            return Err(QueryError::new(
                "22026",
                format!("cannot {} bit strings of different sizes", self.name()),
            ));
        }
        for (a, b) in a.bytes.iter_mut().zip(&b.bytes) {
            *a = self.words(*a, *b);
        }
        Ok(())
    }
}

/// The value so far.
struct Bits {
    value: Datum,
    operation: Operation,
}

impl AggregateState for Bits {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let operation = self.operation;
        match (&mut self.value, &arguments[0]) {
            (value @ Datum::Null, new) => *value = new.clone(),
            (Datum::Bool(value), new) => *value = operation.words(*value, new.as_bool()),
            (Datum::Int2(value), new) => *value = operation.words(*value, new.as_int2()),
            (Datum::Int4(value), new) => *value = operation.words(*value, new.as_int4()),
            (Datum::Int8(value), new) => *value = operation.words(*value, new.as_int8()),
            (Datum::Bit(value), new) => operation.bits(Arc::make_mut(value), new.as_bit())?,
            _ => return Err(QueryError::internal("bits of another type")),
        }
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        Ok(self.value.clone())
    }

    fn bytes(&self) -> usize {
        crate::size::beyond(&self.value)
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![self.value.clone()])
    }

    fn merge(&mut self, call: &Call<'_>, saved: &[Datum]) -> Result<()> {
        if saved[0].is_null() {
            return Ok(());
        }
        self.update(call, saved)
    }
}

fn state(operation: Operation) -> Box<dyn AggregateState> {
    Box::new(Bits {
        value: Datum::Null,
        operation,
    })
}

/// `bool_and`, `every`, `bit_and`
pub(super) static AND: Aggregate = Aggregate::normal(|_| state(Operation::And));
/// `bool_or`, `bit_or`
pub(super) static OR: Aggregate = Aggregate::normal(|_| state(Operation::Or));
/// `bit_xor`
pub(super) static XOR: Aggregate = Aggregate::normal(|_| state(Operation::Xor));
