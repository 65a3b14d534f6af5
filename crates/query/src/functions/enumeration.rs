//! Functions and operators of enums.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::user::labels_of;
use crate::types::{format_type, ids};

const TWO: &[u32] = &[ids::ANYENUM, ids::ANYENUM];

/// The functions of this file.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(3508, "enum_eq", TWO, ids::BOOL, |_, a| truth(a[0].as_enum() == a[1].as_enum())),
    Function::row(3509, "enum_ne", TWO, ids::BOOL, |_, a| truth(a[0].as_enum() != a[1].as_enum())),
    Function::row(3510, "enum_lt", TWO, ids::BOOL, |_, a| truth(a[0].as_enum() < a[1].as_enum())),
    Function::row(3511, "enum_gt", TWO, ids::BOOL, |_, a| truth(a[0].as_enum() > a[1].as_enum())),
    Function::row(3512, "enum_le", TWO, ids::BOOL, |_, a| truth(a[0].as_enum() <= a[1].as_enum())),
    Function::row(3513, "enum_ge", TWO, ids::BOOL, |_, a| truth(a[0].as_enum() >= a[1].as_enum())),
    Function::row(3514, "enum_cmp", TWO, ids::INT4, |_, a| Ok(Datum::Int4(a[0].as_enum().cmp(&a[1].as_enum()) as i32))),
    Function::row(3524, "enum_smaller", TWO, ids::ANYENUM, |_, a| Ok(Datum::Enum(a[0].as_enum().min(a[1].as_enum())))),
    Function::row(3525, "enum_larger", TWO, ids::ANYENUM, |_, a| Ok(Datum::Enum(a[0].as_enum().max(a[1].as_enum())))),
    Function::row(3528, "enum_first", &[ids::ANYENUM], ids::ANYENUM, |call, _| end(call, |places| places.next())).stable().called_on_null(),
    Function::row(3529, "enum_last", &[ids::ANYENUM], ids::ANYENUM, |call, _| end(call, |places| places.next_back())).stable().called_on_null(),
    Function::row(3530, "enum_range", TWO, ids::ANYARRAY, |call, a| range(call, &a[0], &a[1])).stable().called_on_null(),
    Function::row(3531, "enum_range", &[ids::ANYENUM], ids::ANYARRAY, |call, _| range(call, &Datum::Null, &Datum::Null)).stable().called_on_null(),
];

fn truth(value: bool) -> Result<Datum> {
    Ok(Datum::Bool(value))
}

/// The number of the enum that a call is about.
fn asked(call: &Call<'_>) -> u32 {
    call.arguments.first().copied().unwrap_or(0)
}

/// The first or the last of the values.
fn end(
    call: &Call<'_>,
    pick: impl Fn(&mut dyn DoubleEndedIterator<Item = u64>) -> Option<u64>,
) -> Result<Datum> {
    let oid = asked(call);
    let found = labels_of(oid, |labels| {
        pick(&mut labels.iter().map(|(place, _)| *place))
    })?;
    match found {
        Some(place) => Ok(Datum::Enum(place)),
        None => {
            let name = format_type(oid, -1);
            let message = format!("enum {name} contains no values");
            Err(QueryError::new("55000", message))
        }
    }
}

/// The values from one to another; NULL for the first or the last.
fn range(call: &Call<'_>, from: &Datum, to: &Datum) -> Result<Datum> {
    let oid = asked(call);
    let bound = |value: &Datum, open| match value {
        Datum::Enum(place) => *place,
        _ => open,
    };
    let (from, to) = (bound(from, 0), bound(to, u64::MAX));
    let elements = labels_of(oid, |labels| {
        let places = labels.iter().map(|(place, _)| *place);
        let within = places.filter(|place| (from..=to).contains(place));
        within.map(Datum::Enum).collect()
    })?;
    Ok(Datum::Array(Array::of(oid, elements).into()))
}
