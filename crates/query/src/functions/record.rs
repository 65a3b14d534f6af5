//! Functions and operators of rows, and what asks about a value of any type.

mod size;

use std::cmp::Ordering;

use super::Function;
use super::text::is_variadic;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::{self, ids, record};
pub(super) use size::stored_size;

/// The functions of this file.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(2987, "btrecordcmp", &[ids::RECORD, ids::RECORD], ids::INT4, btrecordcmp),
    Function::row(1081, "format_type", &[ids::OID, ids::INT4], ids::TEXT, format_type).called_on_null().stable(),
    Function::row(440, "num_nonnulls", &[ids::ANY], ids::INT4, pg_num_nonnulls).called_on_null().variadic(ids::ANY),
    Function::row(438, "num_nulls", &[ids::ANY], ids::INT4, pg_num_nulls).called_on_null().variadic(ids::ANY),
    Function::row(1269, "pg_column_size", &[ids::ANY], ids::INT4, pg_column_size).stable(),
    Function::row(1619, "pg_typeof", &[ids::ANY], ids::REGTYPE, pg_typeof).called_on_null().stable(),
    Function::row(3187, "btrecordimagecmp", &[ids::RECORD, ids::RECORD], ids::INT4, btrecordimagecmp),
    Function::row(2981, "record_eq", &[ids::RECORD, ids::RECORD], ids::BOOL, record_eq),
    Function::row(2986, "record_ge", &[ids::RECORD, ids::RECORD], ids::BOOL, record_ge),
    Function::row(2984, "record_gt", &[ids::RECORD, ids::RECORD], ids::BOOL, record_gt),
    Function::row(3181, "record_image_eq", &[ids::RECORD, ids::RECORD], ids::BOOL, record_image_eq),
    Function::row(3186, "record_image_ge", &[ids::RECORD, ids::RECORD], ids::BOOL, record_image_ge),
    Function::row(3184, "record_image_gt", &[ids::RECORD, ids::RECORD], ids::BOOL, record_image_gt),
    Function::row(3185, "record_image_le", &[ids::RECORD, ids::RECORD], ids::BOOL, record_image_le),
    Function::row(3183, "record_image_lt", &[ids::RECORD, ids::RECORD], ids::BOOL, record_image_lt),
    Function::row(3182, "record_image_ne", &[ids::RECORD, ids::RECORD], ids::BOOL, record_image_ne),
    Function::row(2985, "record_le", &[ids::RECORD, ids::RECORD], ids::BOOL, record_le),
    Function::row(2983, "record_lt", &[ids::RECORD, ids::RECORD], ids::BOOL, record_lt),
    Function::row(2982, "record_ne", &[ids::RECORD, ids::RECORD], ids::BOOL, record_ne),
];

fn record_eq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::equal(&arguments[0], &arguments[1]).map(Datum::Bool)
}

fn record_ne(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::equal(&arguments[0], &arguments[1]).map(|equal| Datum::Bool(!equal))
}

fn record_lt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::compare(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_lt()))
}

fn record_le(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::compare(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_le()))
}

fn record_gt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::compare(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_gt()))
}

fn record_ge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::compare(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_ge()))
}

fn btrecordcmp(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::compare(&arguments[0], &arguments[1]).map(|order| Datum::Int4(order as i32))
}

/// Whether the order of two rows by their columns' bytes is such.
fn by_images(call: &Call<'_>, rows: &[Datum], is: fn(Ordering) -> bool) -> Result<Datum> {
    record::compare_images(call, &rows[0], &rows[1]).map(|order| Datum::Bool(is(order)))
}

fn record_image_eq(call: &Call<'_>, rows: &[Datum]) -> Result<Datum> {
    by_images(call, rows, Ordering::is_eq)
}

fn record_image_ne(call: &Call<'_>, rows: &[Datum]) -> Result<Datum> {
    by_images(call, rows, Ordering::is_ne)
}

fn record_image_lt(call: &Call<'_>, rows: &[Datum]) -> Result<Datum> {
    by_images(call, rows, Ordering::is_lt)
}

fn record_image_le(call: &Call<'_>, rows: &[Datum]) -> Result<Datum> {
    by_images(call, rows, Ordering::is_le)
}

fn record_image_gt(call: &Call<'_>, rows: &[Datum]) -> Result<Datum> {
    by_images(call, rows, Ordering::is_gt)
}

fn record_image_ge(call: &Call<'_>, rows: &[Datum]) -> Result<Datum> {
    by_images(call, rows, Ordering::is_ge)
}

fn btrecordimagecmp(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    record::compare_images(call, &arguments[0], &arguments[1])
        .map(|order| Datum::Int4(order as i32))
}

fn pg_typeof(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    call.arguments
        .first()
        .map(|oid| Datum::Oid(*oid))
        .ok_or_else(|| QueryError::internal("pg_typeof without an argument"))
}

/// How many arguments are NULL, or are not. An array marked VARIADIC stands for its elements, and
/// of such a NULL nothing is known.
fn count(call: &Call<'_>, arguments: &[Datum], nulls: bool) -> Datum {
    let values = match arguments {
        [Datum::Array(array)] if is_variadic(call) => &array.elements,
        [Datum::Null] if is_variadic(call) => return Datum::Null,
        values => values,
    };
    let counted = values.iter().filter(|value| value.is_null() == nulls);
    Datum::Int4(i32::try_from(counted.count()).unwrap_or(i32::MAX))
}

fn pg_num_nulls(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(count(call, arguments, true))
}

fn pg_num_nonnulls(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(count(call, arguments, false))
}

fn pg_column_size(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let oid = call.arguments.first().copied().unwrap_or(ids::UNKNOWN);
    let size = stored_size(call, oid, &arguments[0])?;
    Ok(Datum::Int4(i32::try_from(size).unwrap_or(i32::MAX)))
}

/// The name of a type, whose modifier is given: there `bit` and `bpchar` are
/// other types than `bit(1)` and `character(1)`.
fn name_of_type(oid: u32, modifier: i32) -> Option<String> {
    if !types::is_built_in(oid) {
        return None;
    }
    let (row, brackets) = match types::by_oid(oid) {
        Some(row) => (row, ""),
        None => (types::by_oid(types::element_of(oid)?)?, "[]"),
    };
    let without_modifier = matches!(
        row.oid,
        ids::BOOL | ids::FLOAT4 | ids::FLOAT8 | ids::INT2 | ids::INT4 | ids::INT8
    );
    Some(if modifier < 0 {
        let name = match row.oid {
            ids::BIT => "\"bit\"",
            ids::BPCHAR => "bpchar",
            _ => row.full_name,
        };
        format!("{name}{brackets}")
    } else if row.modifier_out.is_none() && !without_modifier {
        format!("{}({modifier}){brackets}", row.full_name)
    } else {
        types::format_type(oid, modifier)
    })
}

fn format_type(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let Datum::Oid(oid) = arguments[0] else {
        return Ok(Datum::Null);
    };
    let name = match arguments[1] {
        _ if oid == 0 => Some("-".to_owned()),
        Datum::Int4(modifier) => name_of_type(oid, modifier),
        _ if types::is_built_in(oid) => Some(types::format_type(oid, -1)),
        _ => None,
    };
    if let Some(name) = name {
        return Ok(Datum::text(name));
    }
    // Others are the catalog's: rows of tables, and what users made.
    match call.environment.call("format_type", arguments) {
        Err(error) if error.sqlstate == "0A000" => Ok(Datum::text("???")),
        result => result,
    }
}
