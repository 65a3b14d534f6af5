//! Functions and operators of truth values.

use std::cmp::Ordering;

use super::Function;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        2515,
        "booland_statefunc",
        &[ids::BOOL, ids::BOOL],
        ids::BOOL,
        |_, a| truth(a.iter().all(|value| matches!(value, Datum::Bool(true)))),
    ),
    Function::row(
        2516,
        "boolor_statefunc",
        &[ids::BOOL, ids::BOOL],
        ids::BOOL,
        |_, a| truth(a.iter().any(|value| matches!(value, Datum::Bool(true)))),
    ),
    Function::row(60, "booleq", &[ids::BOOL, ids::BOOL], ids::BOOL, |_, a| {
        truth(order(a).is_eq())
    }),
    Function::row(84, "boolne", &[ids::BOOL, ids::BOOL], ids::BOOL, |_, a| {
        truth(order(a).is_ne())
    }),
    Function::row(56, "boollt", &[ids::BOOL, ids::BOOL], ids::BOOL, |_, a| {
        truth(order(a).is_lt())
    }),
    Function::row(
        1691,
        "boolle",
        &[ids::BOOL, ids::BOOL],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(57, "boolgt", &[ids::BOOL, ids::BOOL], ids::BOOL, |_, a| {
        truth(order(a).is_gt())
    }),
    Function::row(
        1692,
        "boolge",
        &[ids::BOOL, ids::BOOL],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(
        1693,
        "btboolcmp",
        &[ids::BOOL, ids::BOOL],
        ids::INT4,
        |_, a| {
            Ok(Datum::Int4(
                i32::from(a[0].as_bool()) - i32::from(a[1].as_bool()),
            ))
        },
    ),
    Function::row(2557, "bool", &[ids::INT4], ids::BOOL, |_, a| {
        truth(a[0].as_int4() != 0)
    }),
    Function::row(2558, "int4", &[ids::BOOL], ids::INT4, |_, a| {
        Ok(Datum::Int4(i32::from(a[0].as_bool())))
    }),
    Function::row(2971, "text", &[ids::BOOL], ids::TEXT, |_, a| {
        Ok(Datum::text(if a[0].as_bool() { "true" } else { "false" }))
    }),
];

fn truth(value: bool) -> Result<Datum> {
    Ok(Datum::Bool(value))
}

fn order(a: &[Datum]) -> Ordering {
    a[0].as_bool().cmp(&a[1].as_bool())
}
