//! Functions and operators of `uuid`.

use std::cmp::Ordering;

use super::Function;
use super::text::bytes_difference;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        2956,
        "uuid_eq",
        &[ids::UUID, ids::UUID],
        ids::BOOL,
        |_, a| truth(order(a).is_eq()),
    ),
    Function::row(
        2959,
        "uuid_ne",
        &[ids::UUID, ids::UUID],
        ids::BOOL,
        |_, a| truth(order(a).is_ne()),
    ),
    Function::row(
        2954,
        "uuid_lt",
        &[ids::UUID, ids::UUID],
        ids::BOOL,
        |_, a| truth(order(a).is_lt()),
    ),
    Function::row(
        2955,
        "uuid_le",
        &[ids::UUID, ids::UUID],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(
        2958,
        "uuid_gt",
        &[ids::UUID, ids::UUID],
        ids::BOOL,
        |_, a| truth(order(a).is_gt()),
    ),
    Function::row(
        2957,
        "uuid_ge",
        &[ids::UUID, ids::UUID],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(
        2960,
        "uuid_cmp",
        &[ids::UUID, ids::UUID],
        ids::INT4,
        |_, a| {
            Ok(Datum::Int4(bytes_difference(
                &a[0].as_uuid(),
                &a[1].as_uuid(),
            )))
        },
    ),
    Function::row(3432, "gen_random_uuid", &[], ids::UUID, |_, _| {
        Ok(Datum::Uuid(uuid::Uuid::new_v4().into_bytes()))
    })
    .volatile(),
];

fn truth(value: bool) -> Result<Datum> {
    Ok(Datum::Bool(value))
}

fn order(a: &[Datum]) -> Ordering {
    a[0].as_uuid().cmp(&a[1].as_uuid())
}
