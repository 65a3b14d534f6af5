//! Trees that are scalars as values of other types.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::{Body, by_oid};
use crate::types::ids;
use crate::types::jsonb::Jsonb;
use crate::types::numeric::Numeric;

#[cold]
fn cannot_cast(value: &Jsonb, to: &str) -> QueryError {
    let kind = match value {
        Jsonb::Number(_) => "numeric",
        other => other.kind(),
    };
    QueryError::invalid_parameter(format!("cannot cast jsonb {kind} to type {to}"))
}

fn number<'a>(value: &'a Datum, to: &str) -> Result<&'a Numeric> {
    match value.as_jsonb() {
        Jsonb::Number(number) => Ok(number),
        other => Err(cannot_cast(other, to)),
    }
}

/// A number through one of the functions that cast `numeric`.
fn through(function: u32, call: &Call<'_>, arguments: &[Datum], to: &str) -> Result<Datum> {
    let number = Datum::Numeric(number(&arguments[0], to)?.clone());
    let inner = Call::new(call.environment, &[ids::NUMERIC], call.result);
    match by_oid(function).map(|function| function.body) {
        Some(Body::Row(body)) => body(&inner, &[number]),
        _ => Err(QueryError::internal("there is no cast of numeric")),
    }
}

pub(super) fn to_bool(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    match arguments[0].as_jsonb() {
        Jsonb::Bool(value) => Ok(Datum::Bool(*value)),
        other => Err(cannot_cast(other, "boolean")),
    }
}

pub(super) fn to_numeric(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(number(&arguments[0], "numeric")?.clone()))
}

pub(super) fn to_int2(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    through(1783, call, arguments, "smallint")
}

pub(super) fn to_int4(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    through(1744, call, arguments, "integer")
}

pub(super) fn to_int8(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    through(1779, call, arguments, "bigint")
}

pub(super) fn to_float4(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    through(1745, call, arguments, "real")
}

pub(super) fn to_float8(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    through(1746, call, arguments, "double precision")
}
