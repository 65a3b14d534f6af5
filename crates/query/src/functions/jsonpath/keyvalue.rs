//! `.keyvalue()`, and the numbers it gives to objects: where an object lies in
//! PostgreSQL's binary form of the tree that it is in.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::execute::{Execution, Found, Status, Value, ends};
use crate::error::{QueryError, Result};
use crate::types::jsonb::{Jsonb, Pairs};
use crate::types::jsonpath::Item;
use crate::types::numeric::Numeric;

/// Numbers of the objects of one tree are below this.
const BASE_FACTOR: i64 = 10_000_000_000;

/// The tree in which objects have their numbers.
#[derive(Clone, Default)]
pub(super) struct Base {
    tree: Option<Jsonb>,
    number: i64,
    /// Where each object lies, once this was asked.
    places: Option<Rc<HashMap<*const Pairs, i64>>>,
}

impl Base {
    pub(super) fn of(value: &Value, number: i64) -> Self {
        Self {
            tree: match value {
                Value::Json(tree) if !tree.is_scalar() => Some(tree.clone()),
                _ => None,
            },
            number,
            places: None,
        }
    }

    /// The number of an object.
    fn id_of(&mut self, object: &Arc<Pairs>) -> i64 {
        let tree = &self.tree;
        let places = self.places.get_or_insert_with(|| {
            let mut places = HashMap::new();
            if let Some(tree) = tree {
                lay_out(tree, 0, &mut places);
            }
            Rc::new(places)
        });
        let place = places.get(&Arc::as_ptr(object)).copied().unwrap_or(0);
        self.number
            .saturating_mul(BASE_FACTOR)
            .saturating_add(place)
    }
}

/// Lays a container out from `start` on; gives the place behind it.
fn lay_out(value: &Jsonb, start: i64, places: &mut HashMap<*const Pairs, i64>) -> i64 {
    let aligned = |at: i64| (at + 3) & !3;
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(0);
    let count = |n: usize| i64::try_from(n).unwrap_or(0);
    match value {
        Jsonb::Null | Jsonb::Bool(_) => start,
        Jsonb::String(text) => start + length(text),
        Jsonb::Number(number) => aligned(start) + number_length(number),
        Jsonb::Array(items) => {
            let mut at = aligned(start) + 4 + 4 * count(items.len());
            for item in items.iter() {
                at = lay_out(item, at, places);
            }
            at
        }
        Jsonb::Object(pairs) => {
            let own = aligned(start);
            places.entry(Arc::as_ptr(pairs)).or_insert(own);
            let mut at = own + 4 + 8 * count(pairs.len());
            for (key, _) in pairs.iter() {
                at += length(key);
            }
            for (_, value) in pairs.iter() {
                at = lay_out(value, at, places);
            }
            at
        }
    }
}

/// How many bytes PostgreSQL stores a number in: a head, and two for each
/// four digits from the first to the last that are not zero.
fn number_length(number: &Numeric) -> i64 {
    let text = number.to_string();
    let text = text.trim_start_matches('-');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = fraction.len();
    let lead = (4 - whole.len() % 4) % 4;
    let tail = (4 - scale % 4) % 4;
    let digits: Vec<u8> = std::iter::repeat_n(b'0', lead)
        .chain(whole.bytes())
        .chain(fraction.bytes())
        .chain(std::iter::repeat_n(b'0', tail))
        .collect();
    let is_zero = |group: &[u8]| group.iter().all(|digit| *digit == b'0');
    let groups: Vec<bool> = digits.chunks(4).map(is_zero).collect();
    let before_point = (whole.len() + lead) / 4;
    let first = groups.iter().position(|zero| !zero);
    let last = groups.iter().rposition(|zero| !zero);
    let (count, weight) = match (first, last) {
        (Some(first), Some(last)) => (
            last + 1 - first,
            i64::try_from(before_point).unwrap_or(0) - 1 - i64::try_from(first).unwrap_or(0),
        ),
        _ => (0, 0),
    };
    let head = if scale <= 63 && (-64..=63).contains(&weight) {
        6
    } else {
        8
    };
    head + 2 * i64::try_from(count).unwrap_or(0)
}

impl Execution<'_> {
    pub(super) fn key_values(
        &mut self,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        let Value::Json(Jsonb::Object(pairs)) = value else {
            return self.fail(|| {
                QueryError::new(
                    "2203C",
                    "jsonpath item method .keyvalue() can only be applied to an object",
                )
            });
        };
        if pairs.is_empty() {
            return Ok(Status::Nothing);
        }
        if rest.is_empty() && found.is_none() {
            return Ok(Status::Found);
        }
        let id = Jsonb::Number(Numeric::from_i64(self.base.id_of(pairs)));
        let mut status = Status::Nothing;
        for (key, value) in pairs.iter() {
            let object: Value = Jsonb::object(vec![
                ("key".into(), Jsonb::String(Arc::clone(key))),
                ("value".into(), value.clone()),
                ("id".into(), id.clone()),
            ])?
            .into();
            let outer = std::mem::replace(&mut self.base, Base::of(&object, self.next_base));
            self.next_base += 1;
            let next = self.next(rest, &object, found);
            self.base = outer;
            status = next?;
            if ends(status, found) {
                break;
            }
        }
        Ok(status)
    }
}
