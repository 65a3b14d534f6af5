//! Columns of a row group into Arrow, without tuples: integers as they are, strings from where they lie,
//! those of a dictionary once a batch and then by their numbers. A type whose bytes need more to be
//! understood is left to the tuples.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryViewArray, BinaryViewBuilder, BooleanArray, FixedSizeBinaryBuilder, Int64Array,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringViewBuilder, UInt32Array,
    new_null_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, SchemaRef,
};
use datafusion::error::Result;
use thermocline_analytical::errors::external;
use thermocline_analytical::form::{ColumnBuilder, Form};
use thermocline_analytical::numeric_view::short_numeric_view;
use thermocline_engine::GroupRows;
use thermocline_engine::catalog::TableDef;
use thermocline_query::datum::Datum;
use thermocline_query::serial;
use thermocline_query::types::ids;
use thermocline_storage::columns::{IntegerVector, StringVector, Vector};
use thermocline_values::types::DataType;

use super::asked::not_a_number;
use crate::typed::value;

/// A batch of these columns of a group's rows. `None`: some of them are to be had by tuples only.
pub(super) fn batch(
    table: &TableDef,
    columns: &[usize],
    schema: &SchemaRef,
    rows: &GroupRows<'_>,
) -> Result<Option<RecordBatch>> {
    if rows.reader.has_odd() {
        return Ok(None);
    }
    let mut arrays = Vec::with_capacity(columns.len());
    for (column, field) in columns.iter().zip(schema.fields()) {
        let array = match table.columns.get(*column) {
            None if *column > table.columns.len() => Some(partitions(table.oid, rows)?),
            None => Some(numbers(rows)),
            Some(def) => array(&def.data_type, *column, field.data_type(), rows)?,
        };
        match array {
            Some(array) => arrays.push(array),
            None => return Ok(None),
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.positions.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?;
    Ok(Some(batch))
}

/// The numbers of the rows.
fn numbers(rows: &GroupRows<'_>) -> ArrayRef {
    let positions = rows.positions.iter();
    let numbers = positions.map(|position| rows.row(*position).number().cast_signed());
    Arc::new(Int64Array::from_iter_values(numbers))
}

/// The number of the table, for each row.
fn partitions(oid: u32, rows: &GroupRows<'_>) -> Result<ArrayRef> {
    let mut oids = ColumnBuilder::new(Form::of(ids::OID), rows.positions.len());
    for _ in rows.positions {
        oids.push(&Datum::Oid(oid)).map_err(external)?;
    }
    Ok(oids.finish())
}

fn array(
    of: &DataType,
    column: usize,
    arrow: &ArrowType,
    rows: &GroupRows<'_>,
) -> Result<Option<ArrayRef>> {
    let positions = rows.positions;
    // What is younger than the group has a default.
    let Some(vector) = rows.reader.vector(column) else {
        return Ok(None);
    };
    let mut valid = Vec::new();
    let nulls = rows.reader.validity(column, positions, &mut valid);
    let nulls = nulls.then(|| NullBuffer::from(valid));
    let array = match (of, &vector) {
        (_, Vector::Nothing) => new_null_array(arrow, positions.len()),
        (DataType::Boolean, Vector::Integers(all)) => {
            let mut bits = Vec::with_capacity(positions.len());
            all.each(positions, |value| bits.push(value != 0));
            Arc::new(BooleanArray::new(BooleanBuffer::from(bits), nulls))
        }
        (DataType::SmallInt, Vector::Integers(all)) => {
            primitive::<Int16Type>(all, positions, nulls, |value| value as i16)
        }
        (DataType::Integer | DataType::Date, Vector::Integers(all)) => {
            primitive::<Int32Type>(all, positions, nulls, |value| value as i32)
        }
        (
            DataType::BigInt
            | DataType::Timestamp
            | DataType::TimestampTz
            | DataType::TimestampTo(_)
            | DataType::TimestampTzTo(_),
            Vector::Integers(all),
        ) => primitive::<Int64Type>(all, positions, nulls, |value| value),
        (DataType::Real, Vector::Integers(all)) => {
            primitive::<Float32Type>(all, positions, nulls, |bits| f32::from_bits(bits as u32))
        }
        (DataType::Double, Vector::Integers(all)) => {
            primitive::<Float64Type>(all, positions, nulls, |bits| {
                f64::from_bits(bits.cast_unsigned())
            })
        }
        (DataType::Numeric { .. }, Vector::Integers(all)) => {
            return numerics(of, all, positions, nulls);
        }
        (DataType::Text | DataType::Varchar(_), Vector::Strings(_) | Vector::Dictionary(..)) => {
            let collect = |strings: &mut dyn Iterator<Item = Option<&[u8]>>| {
                let mut builder = StringViewBuilder::new();
                for string in strings {
                    let text = string.and_then(|bytes| std::str::from_utf8(bytes).ok());
                    builder.append_value(text.ok_or_else(|| damaged(rows))?);
                }
                Ok(Arc::new(builder.finish()) as ArrayRef)
            };
            return strings(&vector, positions, nulls.as_ref(), &collect).map(Some);
        }
        (DataType::Char(length), Vector::Strings(_) | Vector::Dictionary(..)) => {
            let length = usize::try_from(*length).unwrap_or(0);
            let collect = |strings: &mut dyn Iterator<Item = Option<&[u8]>>| {
                let mut builder = BinaryViewBuilder::new();
                let mut buffer = Vec::new();
                for string in strings {
                    let text = string.and_then(|bytes| std::str::from_utf8(bytes).ok());
                    let text = text.ok_or_else(|| damaged(rows))?;
                    buffer.clear();
                    let padded = Datum::text(value::padded(text, length));
                    serial::write(&padded, &mut buffer).map_err(external)?;
                    builder.append_value(&buffer);
                }
                Ok(Arc::new(builder.finish()) as ArrayRef)
            };
            return strings(&vector, positions, nulls.as_ref(), &collect).map(Some);
        }
        (DataType::Bytea, Vector::Strings(_) | Vector::Dictionary(..)) => {
            let collect = |strings: &mut dyn Iterator<Item = Option<&[u8]>>| {
                let mut builder = BinaryViewBuilder::new();
                for string in strings {
                    builder.append_value(string.ok_or_else(|| damaged(rows))?);
                }
                Ok(Arc::new(builder.finish()) as ArrayRef)
            };
            return strings(&vector, positions, nulls.as_ref(), &collect).map(Some);
        }
        (DataType::Uuid, Vector::Strings(_) | Vector::Dictionary(..)) => {
            let collect = |strings: &mut dyn Iterator<Item = Option<&[u8]>>| {
                let mut builder = FixedSizeBinaryBuilder::new(16);
                for string in strings {
                    builder.append_value(string.ok_or_else(|| damaged(rows))?)?;
                }
                Ok(Arc::new(builder.finish()) as ArrayRef)
            };
            return strings(&vector, positions, nulls.as_ref(), &collect).map(Some);
        }
        _ => return Ok(None),
    };
    Ok(Some(array))
}

fn damaged(rows: &GroupRows<'_>) -> datafusion::error::DataFusionError {
    super::scan::external(rows.malformed())
}

fn primitive<T: ArrowPrimitiveType>(
    all: &IntegerVector<'_>,
    positions: &[u16],
    nulls: Option<NullBuffer>,
    value: impl Fn(i64) -> T::Native,
) -> ArrayRef {
    let mut values = Vec::with_capacity(positions.len());
    all.each(positions, |integer| values.push(value(integer)));
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
}

/// Numerics that are kept as integers; NaN is left to the tuples.
fn numerics(
    of: &DataType,
    all: &IntegerVector<'_>,
    positions: &[u16],
    nulls: Option<NullBuffer>,
) -> Result<Option<ArrayRef>> {
    let (Some(nan), Some(scale)) = (not_a_number(of), of.small_scale()) else {
        return Ok(None);
    };
    let mut views = Vec::with_capacity(positions.len());
    let mut has_nan = false;
    all.each(positions, |integer| {
        has_nan |= integer == nan;
        views.push(short_numeric_view(integer, u16::from(scale)));
    });
    if has_nan {
        return Ok(None);
    }
    let array = BinaryViewArray::try_new(ScalarBuffer::from(views), Vec::new(), nulls)?;
    Ok(Some(Arc::new(array)))
}

/// Makes an array of strings, all of them values.
type Collect<'c> = dyn Fn(&mut dyn Iterator<Item = Option<&[u8]>>) -> Result<ArrayRef> + 'c;

/// Strings at these positions. Where a row is NULL another row's value stands.
fn strings(
    vector: &Vector<'_>,
    positions: &[u16],
    nulls: Option<&NullBuffer>,
    collect: &Collect<'_>,
) -> Result<ArrayRef> {
    let (words, numbers) = match vector {
        Vector::Dictionary(words, numbers) => {
            let mut places = Vec::with_capacity(positions.len());
            numbers.each(positions, |number| places.push(number as u32));
            match words.len() <= positions.len() {
                true => (collect(&mut of_all(words))?, places),
                // A word for each of few rows.
                false => {
                    let mut each = places.iter().map(|place| words.get(*place as usize));
                    let places = (0..positions.len() as u32).collect();
                    (collect(&mut each)?, places)
                }
            }
        }
        Vector::Strings(all) => {
            let mut each = positions
                .iter()
                .map(|position| all.get(usize::from(*position)));
            let words = collect(&mut each)?;
            if nulls.is_none() {
                return Ok(words);
            }
            (words, (0..positions.len() as u32).collect())
        }
        _ => (collect(&mut std::iter::empty())?, Vec::new()),
    };
    let places = UInt32Array::new(ScalarBuffer::from(numbers), nulls.cloned());
    Ok(take(words.as_ref(), &places, None)?)
}

fn of_all<'a>(words: &'a StringVector<'a>) -> impl Iterator<Item = Option<&'a [u8]>> {
    (0..words.len()).map(|place| words.get(place))
}
