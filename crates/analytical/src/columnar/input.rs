//! From Arrow columns, datums and constants to columns of an expression. `None` is given up:
//! a number that is long or none, a value of another form.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt32Type,
};
use thermocline_query::datum::Datum;

use super::vector::{Data, Decimals, Kind, MADE_BYTES_MAX, Made, Scales, Texts, Vector};
use crate::form::{ColumnReader, Form};
use crate::numeric_view::{common_scale, read_short_numeric_view, unscaled_of_view};
use thermocline_query::{serial, size};

/// The rows of a column, all of it or those at these places.
pub fn column<'a>(oid: u32, array: &'a ArrayRef, rows: Option<&[u32]>) -> Option<Vector<'a>> {
    let form = Form::of(oid);
    if *array.data_type() != form.arrow() {
        return None;
    }
    let data = match (Kind::of(oid), form) {
        (Kind::Bool, _) => {
            let values = array.as_boolean().values();
            Data::Bool(match rows {
                None => values.clone(),
                Some(rows) => {
                    BooleanBuffer::collect_bool(rows.len(), |at| values.value(rows[at] as usize))
                }
            })
        }
        (Kind::Int, Form::Char) => Data::Int(wide::<UInt8Type, i64>(array, rows).into()),
        (Kind::Int, Form::Int2) => Data::Int(wide::<Int16Type, i64>(array, rows).into()),
        (Kind::Int, Form::Int4 | Form::Date) => {
            Data::Int(wide::<Int32Type, i64>(array, rows).into())
        }
        (Kind::Int, Form::Oid) => Data::Int(wide::<UInt32Type, i64>(array, rows).into()),
        (Kind::Int, _) => match rows {
            None => Data::Int(array.as_primitive::<Int64Type>().values().clone()),
            Some(_) => Data::Int(wide::<Int64Type, i64>(array, rows).into()),
        },
        (Kind::Float, Form::Float4) => Data::Float(wide::<Float32Type, f64>(array, rows).into()),
        (Kind::Float, _) => match rows {
            None => Data::Float(array.as_primitive::<Float64Type>().values().clone()),
            Some(_) => Data::Float(wide::<Float64Type, f64>(array, rows).into()),
        },
        (Kind::Numeric, _) => numerics(array, rows)?,
        (Kind::Text, Form::Text) => {
            let texts = array.as_string_view();
            let texts = places(array, rows).map(|row| texts.value(row).as_bytes());
            Data::Text(Texts::Borrowed(Arc::new(texts.collect())))
        }
        (Kind::Text, _) => {
            let bytes = array.as_binary_view();
            let text = |row| match array.is_null(row) {
                true => Some(&[][..]),
                false => serial::read_text_bytes(bytes.value(row)),
            };
            let texts = places(array, rows).map(text).collect::<Option<_>>()?;
            Data::Text(Texts::Borrowed(Arc::new(texts)))
        }
        (Kind::Datum, _) => {
            let reader = ColumnReader::new(form, Arc::clone(array)).ok()?;
            let mut bytes = 0;
            let datums = places(array, rows).map(|row| {
                let value = reader.get(row).ok()?;
                bytes += size::beyond(&value);
                (bytes <= MADE_BYTES_MAX).then_some(value)
            });
            Data::Datum(Arc::new(datums.collect::<Option<_>>()?))
        }
    };
    Some(Vector::new(data, nulls(array, rows)))
}

/// Which rows of a column are there.
pub fn nulls(array: &ArrayRef, rows: Option<&[u32]>) -> Option<NullBuffer> {
    let nulls = array.nulls()?;
    Some(match rows {
        None => nulls.clone(),
        Some(rows) => NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |at| {
            nulls.is_valid(rows[at] as usize)
        })),
    })
}

fn places<'r>(array: &ArrayRef, rows: Option<&'r [u32]>) -> impl Iterator<Item = usize> + 'r {
    let count = rows.map_or(array.len(), <[u32]>::len);
    (0..count).map(move |at| match rows {
        None => at,
        Some(rows) => rows[at] as usize,
    })
}

fn wide<T: ArrowPrimitiveType, W: From<T::Native>>(
    array: &ArrayRef,
    rows: Option<&[u32]>,
) -> Vec<W> {
    let values: &[T::Native] = array.as_primitive::<T>().values();
    match rows {
        None => values.iter().map(|value| W::from(*value)).collect(),
        Some(rows) => rows
            .iter()
            .map(|row| W::from(values[*row as usize]))
            .collect(),
    }
}

fn numerics<'a>(array: &ArrayRef, rows: Option<&[u32]>) -> Option<Data<'a>> {
    let column = array.as_binary_view();
    let views: &[u128] = column.views();
    let count = rows.map_or(views.len(), <[u32]>::len);
    // What a table has: no NULL, one scale, few digits.
    if rows.is_none()
        && let Some(scale) = common_scale(views)
    {
        let digits = views.iter().map(|view| i128::from(unscaled_of_view(*view)));
        return Some(Data::Numeric(Decimals {
            digits: digits.collect(),
            scales: Scales::All(scale),
        }));
    }
    let mut digits = Vec::with_capacity(count);
    let mut scales: Vec<u16> = Vec::new();
    let mut common = None;
    for row in places(array, rows) {
        let (unscaled, scale) = match read_short_numeric_view(views[row]) {
            Some((unscaled, scale)) => (i128::from(unscaled), scale),
            None if column.is_null(row) => {
                digits.push(0);
                if !scales.is_empty() {
                    scales.push(0);
                }
                continue;
            }
            None => serial::read_numeric_parts(column.value(row))?,
        };
        // Most columns have one scale: only where two differ are they written down.
        let first = *common.get_or_insert(scale);
        if scales.is_empty() && scale != first {
            scales.resize(digits.len(), first);
            scales.reserve(count - digits.len());
        }
        if scale != first || !scales.is_empty() {
            scales.push(scale);
        }
        digits.push(unscaled);
    }
    let scales = match scales.is_empty() {
        true => Scales::All(common.unwrap_or_default()),
        false => Scales::Each(Arc::new(scales)),
    };
    Some(Data::Numeric(Decimals {
        digits: digits.into(),
        scales,
    }))
}

/// A column of datums of a type.
pub fn datums(oid: u32, values: Vec<Datum>) -> Option<Vector<'static>> {
    let form = Form::of(oid);
    let valid: Vec<bool> = values.iter().map(|value| !value.is_null()).collect();
    let int = |value: &Datum| {
        Some(match (form, value) {
            (_, Datum::Null) => 0,
            (Form::Char, Datum::Char(value)) => i64::from(*value),
            (Form::Int2, Datum::Int2(value)) => i64::from(*value),
            (Form::Int4, Datum::Int4(value)) | (Form::Date, Datum::Date(value)) => {
                i64::from(*value)
            }
            (Form::Oid, Datum::Oid(value)) => i64::from(*value),
            (Form::Int8, Datum::Int8(value))
            | (Form::Time, Datum::Time(value))
            | (Form::Timestamp, Datum::Timestamp(value))
            | (Form::TimestampTz, Datum::TimestampTz(value)) => *value,
            _ => return None,
        })
    };
    let float = |value: &Datum| {
        Some(match (form, value) {
            (_, Datum::Null) => 0.0,
            (Form::Float4, Datum::Float4(value)) => f64::from(*value),
            (Form::Float8, Datum::Float8(value)) => *value,
            _ => return None,
        })
    };
    let data = match Kind::of(oid) {
        Kind::Bool => {
            let truths = values.iter().map(|value| match value {
                Datum::Null => Some(false),
                Datum::Bool(value) => Some(*value),
                _ => None,
            });
            Data::Bool(BooleanBuffer::from(truths.collect::<Option<Vec<_>>>()?))
        }
        Kind::Int => Data::Int(values.iter().map(int).collect::<Option<Vec<_>>>()?.into()),
        Kind::Float => Data::Float(values.iter().map(float).collect::<Option<Vec<_>>>()?.into()),
        Kind::Numeric => {
            let parts = values.iter().map(|value| match value {
                Datum::Null => Some((0, 0)),
                Datum::Numeric(value) => value.to_parts(),
                _ => None,
            });
            let (digits, scales): (Vec<i128>, _) =
                parts.collect::<Option<Vec<_>>>()?.into_iter().unzip();
            Data::Numeric(Decimals {
                digits: digits.into(),
                scales: Scales::of(scales),
            })
        }
        Kind::Text => {
            let mut made = Made::with_capacity(values.len(), 0);
            for value in &values {
                match value {
                    Datum::Null => made.push(&[]),
                    Datum::Text(text) => made.push(&[text.as_bytes()]),
                    _ => return None,
                }
            }
            Data::Text(Texts::Made(Arc::new(made)))
        }
        Kind::Datum => Data::Datum(Arc::new(values)),
    };
    Some(Vector::new(data, Some(NullBuffer::from(valid))))
}

/// A value that stands for all rows.
pub fn constant(oid: u32, value: Datum) -> Option<Vector<'static>> {
    let mut vector = datums(oid, vec![value])?;
    vector.single = true;
    Some(vector)
}
