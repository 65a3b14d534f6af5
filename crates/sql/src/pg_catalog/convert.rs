//! The values of catalog rows as data of `thermocline_query`, by their columns' types, and back
//! for functions that are answered here.

use std::sync::Arc;

use thermocline_query::call::{Call, Environment};
use thermocline_query::datum::Datum as Typed;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::types::array::Array;
use thermocline_query::types::numeric::Numeric;
use thermocline_query::types::{self, ids};

use super::datum::Datum;
use crate::typed::value;

/// A value as one of this type.
pub(super) fn typed(value: &Datum, oid: u32, environment: &dyn Environment) -> Result<Typed> {
    let wrong = || QueryError::internal(format!("a catalog value that is none of type {oid}"));
    Ok(match (value, oid) {
        (Datum::Null, _) => Typed::Null,
        (Datum::Bool(value), ids::BOOL) => Typed::Bool(*value),
        (Datum::Int(value), ids::INT2) => Typed::Int2(i16::try_from(*value).map_err(|_| wrong())?),
        (Datum::Int(value), ids::INT4) => Typed::Int4(i32::try_from(*value).map_err(|_| wrong())?),
        (Datum::Int(value), ids::INT8 | ids::XID8 | ids::PG_LSN) => Typed::Int8(*value),
        (Datum::Int(value), ids::FLOAT4) => Typed::Float4(*value as f32),
        (Datum::Int(value), ids::FLOAT8) => Typed::Float8(*value as f64),
        (Datum::Int(value), ids::NUMERIC) => Typed::Numeric(Numeric::from_i64(*value)),
        (Datum::Int(value), _) => Typed::Oid(u32::try_from(*value).map_err(|_| wrong())?),
        (Datum::Float(value), ids::FLOAT4) => Typed::Float4(*value as f32),
        (Datum::Float(value), _) => Typed::Float8(*value),
        (Datum::Text(text), ids::CHAR) => Typed::Char(text.bytes().next().unwrap_or(0)),
        (
            Datum::Text(text),
            ids::TEXT
            | ids::VARCHAR
            | ids::NAME
            | ids::JSON
            | ids::BPCHAR
            | ids::ACLITEM
            | ids::PG_NODE_TREE
            | ids::VOID,
        ) => Typed::Text(Arc::clone(text)),
        (Datum::Array(elements), ids::INT2VECTOR) => vector(elements, ids::INT2, environment)?,
        (Datum::Array(elements), ids::OIDVECTOR) => vector(elements, ids::OID, environment)?,
        (Datum::Array(elements), _) => {
            let element = types::element_of(oid).ok_or_else(wrong)?;
            let elements = elements.iter();
            let elements = elements.map(|value| typed(value, element, environment));
            Typed::Array(Arc::new(Array::of(
                element,
                elements.collect::<Result<_>>()?,
            )))
        }
        (Datum::Scalar(value), _) => value::to_datum(value),
        (Datum::Text(text), _) => {
            let call = Call::new(environment, &[], oid);
            types::input(&call, oid, text, -1)?
        }
        _ => return Err(wrong()),
    })
}

/// A vector of numbers, whose subscripts begin at 0.
fn vector(elements: &[Datum], element: u32, environment: &dyn Environment) -> Result<Typed> {
    let elements = elements.iter();
    let elements = elements.map(|value| typed(value, element, environment));
    let elements = elements.collect::<Result<Vec<_>>>()?;
    let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    Ok(Typed::Array(Arc::new(Array {
        element,
        dimensions: vec![(length, 0)],
        elements,
    })))
}

/// An argument of a function; NULL for what none of them looks at.
pub(super) fn plain(value: &Typed) -> Datum {
    match value {
        Typed::Bool(value) => Datum::Bool(*value),
        Typed::Int2(value) => Datum::Int(i64::from(*value)),
        Typed::Int4(value) => Datum::Int(i64::from(*value)),
        Typed::Int8(value) => Datum::Int(*value),
        Typed::Oid(value) => Datum::oid(*value),
        Typed::Char(value) => Datum::text(char::from(*value).to_string()),
        Typed::Text(text) => Datum::Text(Arc::clone(text)),
        Typed::Array(array) => Datum::array(array.elements.iter().map(plain)),
        _ => Datum::Null,
    }
}
