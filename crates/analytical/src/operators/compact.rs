//! Batches that hold no more than their own values. A batch may be a few rows in buffers for many,
//! or of texts that point into the buffers of whole other batches: kept, each would keep all of
//! them, and be charged for them.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, MutableArrayData, RecordBatch, make_array,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};

/// Texts of up to so many bytes stand in their views.
const INLINE_BYTES: u32 = 12;
/// What a column may hold beyond twice its values before it is written anew, in bytes.
const WASTE_BYTES: usize = 4 << 10;

fn long_bytes(views: &[u128]) -> usize {
    let length = |view: &u128| match *view as u32 {
        length if length > INLINE_BYTES => length as usize,
        _ => 0,
    };
    views.iter().map(length).sum()
}

/// What a column's values take, in bytes, whatever its buffers hold beside them.
fn value_bytes(array: &ArrayRef) -> usize {
    let views = match array.data_type() {
        DataType::Utf8View => array.as_string_view().views(),
        DataType::BinaryView => array.as_binary_view().views(),
        _ => return array.to_data().get_slice_memory_size().unwrap_or_default(),
    };
    size_of_val::<[u128]>(views) + long_bytes(views)
}

/// What a batch's values take, in bytes.
pub fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(value_bytes).sum()
}

/// The same values in buffers that are as long as they are: a join makes room for a whole batch, and
/// has a few rows.
fn fitted(array: &ArrayRef) -> Result<ArrayRef> {
    let data = array.to_data();
    let mut copied = MutableArrayData::new(vec![&data], false, array.len());
    copied.try_extend(0, 0, array.len())?;
    Ok(make_array(copied.freeze()))
}

/// The same rows, in buffers that hold little else.
pub fn compacted(batch: &RecordBatch) -> Result<RecordBatch> {
    let compact = |array: &ArrayRef| -> Result<ArrayRef> {
        if array.get_buffer_memory_size() <= 2 * value_bytes(array) + WASTE_BYTES {
            return Ok(Arc::clone(array));
        }
        Ok(match array.data_type() {
            DataType::Utf8View => Arc::new(array.as_string_view().gc()),
            DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
            _ => fitted(array)?,
        })
    };
    let columns = batch.columns().iter().map(compact);
    let columns = columns.collect::<Result<_>>()?;
    let options =
        datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
        .map_err(DataFusionError::from)
}

/// One batch of several, compacted.
pub fn joined(batches: &[RecordBatch]) -> Result<Option<RecordBatch>> {
    Ok(match batches {
        [] => None,
        [one] => Some(one.clone()),
        [first, ..] => Some(compacted(&concat_batches(&first.schema(), batches)?)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{BooleanBuilder, Int64Builder, StringViewBuilder};

    #[test]
    fn a_few_rows_take_little_whatever_there_was_room_for() {
        const ROOM: usize = 1 << 16;
        let mut numbers = Int64Builder::with_capacity(ROOM);
        let mut truths = BooleanBuilder::with_capacity(ROOM);
        let mut texts = StringViewBuilder::with_capacity(ROOM);
        for row in 0..20 {
            numbers.append_option((row % 3 > 0).then_some(row));
            truths.append_option((row % 4 > 0).then_some(row > 7));
            texts.append_value(format!(
                "a text that is longer than {INLINE_BYTES} bytes: {row}"
            ));
        }
        let columns: [(&str, ArrayRef); 3] = [
            ("n", Arc::new(numbers.finish())),
            ("b", Arc::new(truths.finish())),
            ("t", Arc::new(texts.finish())),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        assert!(batch.get_array_memory_size() > ROOM * size_of::<i64>());
        let some = batch.slice(5, 10);
        let small = compacted(&some).expect("a batch");
        assert_eq!(small, some);
        assert!(
            small.get_array_memory_size() < 8 << 10,
            "{} bytes",
            small.get_array_memory_size()
        );
    }
}
