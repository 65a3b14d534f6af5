//! From columns of an expression to Arrow columns and keys. `None` is given up.

use std::sync::Arc;

use datafusion::arrow::array::builder::{BinaryViewBuilder, StringViewBuilder};
use datafusion::arrow::array::{
    ArrayRef, BinaryViewArray, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, UInt8Array, UInt32Array,
};
use thermocline_query::datum::Datum;
use thermocline_query::types::ids;

use super::vector::{Data, Decimals, Vector};
use crate::form::{ColumnBuilder, Form};
use crate::numeric_view::short_numeric_view;
use crate::sort_key::{self, Direction};
use thermocline_query::serial;

/// A column of a type.
pub fn array(oid: u32, vector: Vector<'_>, count: usize) -> Option<ArrayRef> {
    let Vector { data, nulls, .. } = vector.spread(count);
    let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    Some(match (data, Form::of(oid)) {
        (Data::Bool(values), Form::Bool) => Arc::new(BooleanArray::new(values, nulls)),
        (Data::Int(values), form) => {
            let values: &[i64] = match form {
                Form::Int8 | Form::Time | Form::Timestamp | Form::TimestampTz => {
                    return Some(Arc::new(Int64Array::new(values, nulls)));
                }
                _ => &values,
            };
            // Where a row is NULL, anything may stand.
            macro_rules! narrow {
                ($array:ident, $int:ty) => {{
                    let narrow: Vec<$int> = values.iter().map(|value| *value as $int).collect();
                    Arc::new($array::new(narrow.into(), nulls))
                }};
            }
            match form {
                Form::Char => narrow!(UInt8Array, u8),
                Form::Int2 => narrow!(Int16Array, i16),
                Form::Int4 | Form::Date => narrow!(Int32Array, i32),
                Form::Oid => narrow!(UInt32Array, u32),
                _ => return None,
            }
        }
        (Data::Float(values), Form::Float8) => Arc::new(Float64Array::new(values, nulls)),
        (Data::Float(values), Form::Float4) => {
            let narrow: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            Arc::new(Float32Array::new(narrow.into(), nulls))
        }
        (Data::Numeric(decimals), Form::Opaque) if oid == ids::NUMERIC => {
            return numerics(&decimals, count, valid, nulls.clone());
        }
        (Data::Text(texts), Form::Text) => {
            let mut builder = StringViewBuilder::with_capacity(count);
            for row in 0..count {
                match valid(row) {
                    true => builder.append_value(std::str::from_utf8(texts.get(row)).ok()?),
                    false => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        (Data::Text(texts), Form::Opaque) if oid == ids::BPCHAR => {
            let mut builder = BinaryViewBuilder::with_capacity(count);
            let mut bytes = Vec::new();
            for row in 0..count {
                if valid(row) {
                    bytes.clear();
                    serial::write_text_bytes(texts.get(row), &mut bytes);
                    builder.append_value(&bytes);
                } else {
                    builder.append_null();
                }
            }
            Arc::new(builder.finish())
        }
        (Data::Datum(values), form) => {
            let mut builder = ColumnBuilder::new(form, count);
            for (row, value) in values.iter().enumerate().take(count) {
                let value = if valid(row) { value } else { &Datum::Null };
                builder.push(value).ok()?;
            }
            builder.finish()
        }
        _ => return None,
    })
}

fn numerics(
    decimals: &Decimals,
    count: usize,
    valid: impl Fn(usize) -> bool,
    nulls: Option<datafusion::arrow::buffer::NullBuffer>,
) -> Option<ArrayRef> {
    let digits: &[i128] = &decimals.digits;
    let short = |(row, unscaled): (usize, &i128)| match i64::try_from(*unscaled) {
        Ok(unscaled) => Some(short_numeric_view(unscaled, decimals.scales.get(row))),
        Err(_) if !valid(row) => Some(0),
        Err(_) => None,
    };
    let views: Option<Vec<u128>> = digits.iter().enumerate().map(short).collect();
    if let Some(views) = views {
        let made = BinaryViewArray::try_new(views.into(), Vec::new(), nulls);
        return Some(Arc::new(made.ok()?));
    }
    let mut builder = BinaryViewBuilder::with_capacity(count);
    let mut bytes = Vec::new();
    for row in 0..count {
        if valid(row) {
            let (unscaled, scale) = decimals.get(row);
            bytes.clear();
            serial::write_numeric_parts(unscaled, scale, &mut bytes);
            builder.append_value(&bytes);
        } else {
            builder.append_null();
        }
    }
    Some(Arc::new(builder.finish()))
}

/// Appends the key of a value that is not NULL, as [`sort_key::key`] does.
fn key(oid: u32, vector: &Vector<'_>, row: usize, out: &mut Vec<u8>) -> Option<()> {
    let at = vector.place(row);
    match (&vector.data, Form::of(oid)) {
        (Data::Bool(values), _) => out.push(u8::from(values.value(at))),
        (Data::Int(values), form) => {
            let value = values[at];
            match form {
                Form::Char => out.push(value as u8),
                Form::Int2 => out.extend((value as i16 as u16 ^ 1 << 15).to_be_bytes()),
                Form::Int4 | Form::Date => sort_key::signed32(value as i32, out),
                Form::Oid => out.extend((value as u32).to_be_bytes()),
                Form::Int8 | Form::Time | Form::Timestamp | Form::TimestampTz => {
                    sort_key::signed64(value, out);
                }
                _ => return None,
            }
        }
        (Data::Float(values), _) => sort_key::float(values[at], out),
        (Data::Numeric(values), _) => {
            let (unscaled, scale) = values.get(at);
            sort_key::decimal(unscaled, scale, out);
        }
        (Data::Text(texts), _) => match oid {
            ids::JSON | ids::XML => return None,
            ids::BPCHAR => sort_key::escaped(without_padding(texts.get(at)), out),
            _ => sort_key::escaped(texts.get(at), out),
        },
        (Data::Datum(values), _) => sort_key::key(oid, &values[at], out).ok()?,
    }
    Some(())
}

/// A `bpchar` without its padding.
pub fn without_padding(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take_while(|byte| **byte == b' ').count();
    &text[..text.len() - blanks]
}

/// The keys of a column, NULL for NULL.
pub fn keys(oid: u32, vector: &Vector<'_>, count: usize) -> Option<ArrayRef> {
    let mut builder = BinaryViewBuilder::with_capacity(count);
    let mut bytes = Vec::new();
    for row in 0..count {
        if vector.is_valid(row) {
            bytes.clear();
            key(oid, vector, row, &mut bytes)?;
            builder.append_value(&bytes);
        } else {
            builder.append_null();
        }
    }
    Some(Arc::new(builder.finish()))
}

/// The keys of rows by all of these columns.
pub fn sort_keys(
    directions: &[(u32, Direction)],
    vectors: &[Vector<'_>],
    count: usize,
) -> Option<ArrayRef> {
    let mut builder = BinaryViewBuilder::with_capacity(count);
    let mut bytes = Vec::new();
    for row in 0..count {
        bytes.clear();
        for ((oid, direction), vector) in directions.iter().zip(vectors) {
            if !vector.is_valid(row) {
                bytes.push(if direction.nulls_first { 0 } else { 2 });
                continue;
            }
            bytes.push(1);
            let start = bytes.len();
            key(*oid, vector, row, &mut bytes)?;
            if direction.descending {
                bytes[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        builder.append_value(&bytes);
    }
    Some(Arc::new(builder.finish()))
}
