//! The order of trees.

use std::cmp::Ordering;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;

fn order(arguments: &[Datum]) -> Ordering {
    arguments[0].as_jsonb().compare(arguments[1].as_jsonb())
}

pub(super) fn jsonb_cmp(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(order(arguments) as i32))
}

pub(super) fn jsonb_eq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(order(arguments).is_eq()))
}

pub(super) fn jsonb_ne(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(order(arguments).is_ne()))
}

pub(super) fn jsonb_lt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(order(arguments).is_lt()))
}

pub(super) fn jsonb_le(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(order(arguments).is_le()))
}

pub(super) fn jsonb_gt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(order(arguments).is_gt()))
}

pub(super) fn jsonb_ge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(order(arguments).is_ge()))
}
