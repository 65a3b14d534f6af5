//! The lists of `IN` and `NOT IN`.

use std::cmp::Ordering;

use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use thermocline_query::datum::Datum;
use thermocline_query::functions::Function;
use thermocline_query::types::array::Array;
use thermocline_query::types::ids;

use super::output::without_padding;
use super::vector::{Data, Vector};

/// The values of a list, in their order.
enum Values {
    Ints(Vec<i64>),
    Texts(Vec<Box<[u8]>>),
    /// Without their padding
    Padded(Vec<Box<[u8]>>),
    /// Decimal numbers without zeros at the end
    Numerics(Vec<(i128, u16)>),
}

/// A list.
pub struct Set {
    values: Values,
    /// Whether NULL is in it, too.
    has_null: bool,
    negated: bool,
}

/// A number without zeros at the end of what stands after the point.
fn trimmed((mut digits, mut scale): (i128, u16)) -> (i128, u16) {
    if digits == 0 {
        return (0, 0);
    }
    while scale > 0 && digits % 10 == 0 {
        digits /= 10;
        scale -= 1;
    }
    (digits, scale)
}

/// A short list is looked through from its start.
const SHORT: usize = 8;

fn has<T>(values: &[T], is: impl Fn(&T) -> Ordering) -> bool {
    if values.len() <= SHORT {
        return values.iter().any(|value| is(value).is_eq());
    }
    values.binary_search_by(is).is_ok()
}

impl Set {
    /// The list of an array, by the function of an equality or its opposite.
    pub fn new(function: &Function, array: &Array, negated: bool) -> Option<Self> {
        // An empty list has no NULL, whatever is looked for.
        if array.elements.is_empty() {
            return None;
        }
        let integer = |oid| matches!(oid, ids::INT2 | ids::INT4 | ids::INT8);
        let elements = || array.elements.iter().filter(|element| !element.is_null());
        let text = |element: &Datum| match element {
            Datum::Text(text) => Some(text.as_bytes().into()),
            _ => None,
        };
        let mut values = match function.arguments {
            [a, b]
                if (integer(*a) && integer(*b))
                    || (a == b && matches!(*a, ids::DATE | ids::TIMESTAMP | ids::TIMESTAMPTZ)) =>
            {
                let int = |element: &Datum| match element {
                    Datum::Int2(value) => Some(i64::from(*value)),
                    Datum::Int4(value) | Datum::Date(value) => Some(i64::from(*value)),
                    Datum::Int8(value) | Datum::Timestamp(value) | Datum::TimestampTz(value) => {
                        Some(*value)
                    }
                    _ => None,
                };
                Values::Ints(elements().map(int).collect::<Option<_>>()?)
            }
            [ids::TEXT | ids::NAME, ids::TEXT | ids::NAME] => {
                Values::Texts(elements().map(text).collect::<Option<_>>()?)
            }
            [ids::BPCHAR, ids::BPCHAR] => {
                let padded = |element| {
                    let text: Box<[u8]> = text(element)?;
                    Some(without_padding(&text).into())
                };
                Values::Padded(elements().map(padded).collect::<Option<_>>()?)
            }
            [ids::NUMERIC, ids::NUMERIC] => {
                let parts = |element: &Datum| match element {
                    Datum::Numeric(value) => value.to_parts().map(trimmed),
                    _ => None,
                };
                Values::Numerics(elements().map(parts).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        match &mut values {
            Values::Ints(values) => values.sort_unstable(),
            Values::Texts(values) | Values::Padded(values) => values.sort_unstable(),
            Values::Numerics(values) => values.sort_unstable(),
        }
        Some(Self {
            values,
            has_null: array.elements.iter().any(Datum::is_null),
            negated,
        })
    }

    /// Whether each value is in the list, or is not.
    pub fn holds<'a>(&self, vector: &Vector<'_>, count: usize) -> Option<Vector<'a>> {
        let found = match (&self.values, &vector.data) {
            (Values::Ints(values), Data::Int(sought)) => {
                let sought: &[i64] = sought;
                BooleanBuffer::collect_bool(count, |row| {
                    has(values, |value| value.cmp(&sought[row]))
                })
            }
            (Values::Texts(values), Data::Text(texts)) => {
                BooleanBuffer::collect_bool(count, |row| {
                    let sought = texts.get(row);
                    has(values, |value| (**value).cmp(sought))
                })
            }
            (Values::Padded(values), Data::Text(texts)) => {
                BooleanBuffer::collect_bool(count, |row| {
                    let sought = without_padding(texts.get(row));
                    has(values, |value| (**value).cmp(sought))
                })
            }
            (Values::Numerics(values), Data::Numeric(numbers)) => {
                BooleanBuffer::collect_bool(count, |row| {
                    let sought = trimmed(numbers.get(row));
                    has(values, |value| value.cmp(&sought))
                })
            }
            _ => return None,
        };
        let nulls = match self.has_null {
            // Where it was not found, it may be the unknown one.
            true => NullBuffer::union(vector.nulls.as_ref(), Some(&NullBuffer::new(found.clone()))),
            false => vector.nulls.clone(),
        };
        let truths = if self.negated { !&found } else { found };
        let mut held = Vector::new(Data::Bool(truths), nulls);
        held.single = vector.single;
        Some(held)
    }
}
