//! Tuples into Arrow: each projected column of a tuple goes straight from its
//! bytes into an Arrow builder, no row is materialised. A batch is closed at
//! [`BATCH_ROWS`] rows or at [`batch_bytes`], whichever comes first, so that
//! wide rows do not make batches that the memory limit cannot hold.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, RecordBatch, RecordBatchOptions, StringViewBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use thermocline_engine::catalog::Table;
use thermocline_storage::types::DataType;
use thermocline_storage::value::{Value, ValueRef};

use super::types::{EPOCH_DAYS, EPOCH_US, UNCONSTRAINED_SCALE, UTC, arrow_type};
use crate::error::SqlError;

/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;
/// What a value takes in a batch, text and bytea apart: 16 bytes at most.
const VALUE_BYTES: usize = 16;

/// Bytes after which a batch is closed early: a statement has several under way, and
/// cursors that nobody reads keep theirs.
pub(crate) fn batch_bytes(memory_limit: u64) -> usize {
    (memory_limit / 512).clamp(64 << 10, 4 << 20) as usize
}

/// The smallest block that texts are collected in, in bytes.
const TEXT_BLOCK_MIN: u32 = 8 << 10;

/// Bytes of a block of texts, of which one is not full in each column of a batch.
fn text_block(batch_bytes: usize, columns: usize) -> u32 {
    let block = batch_bytes / 4 / columns.max(1);
    u32::try_from(block)
        .unwrap_or(u32::MAX)
        .clamp(TEXT_BLOCK_MIN, 1 << 20)
}

/// Rows of what operators hand on: of wide rows, a merge holds some such batches.
pub(crate) fn batch_rows(memory_limit: u64) -> usize {
    ((memory_limit >> 16) as usize).clamp(1024, BATCH_ROWS)
}

enum Builder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Numeric(Decimal128Builder, u8),
    Text(StringViewBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Uuid(FixedSizeBinaryBuilder),
}

impl Builder {
    /// For so many rows; texts are collected in blocks of `text_block` bytes. (Left to itself
    /// the builder takes two megabytes at a time, however little a batch is.)
    fn new(data_type: &DataType, rows: usize, text_block: u32) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::SmallInt => Self::SmallInt(Int16Builder::with_capacity(rows)),
            DataType::Integer => Self::Integer(Int32Builder::with_capacity(rows)),
            DataType::BigInt => Self::BigInt(Int64Builder::with_capacity(rows)),
            DataType::Real => Self::Real(Float32Builder::with_capacity(rows)),
            DataType::Double => Self::Double(Float64Builder::with_capacity(rows)),
            DataType::Numeric { precision, scale } => {
                let builder =
                    Decimal128Builder::with_capacity(rows).with_data_type(arrow_type(data_type));
                let scale = if *precision == 0 {
                    UNCONSTRAINED_SCALE as u8
                } else {
                    *scale
                };
                Self::Numeric(builder, scale)
            }
            DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
                let builder = StringViewBuilder::with_capacity(rows);
                Self::Text(builder.with_fixed_block_size(text_block))
            }
            DataType::Bytea => Self::Bytea(BinaryBuilder::with_capacity(rows, 0)),
            DataType::Date => Self::Date(Date32Builder::with_capacity(rows)),
            DataType::Timestamp => {
                Self::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows))
            }
            DataType::TimestampTz => {
                Self::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows).with_timezone(UTC))
            }
            DataType::Uuid => Self::Uuid(FixedSizeBinaryBuilder::with_capacity(rows, 16)),
        }
    }

    /// Appends a value of the builder's type; the bytes it added off the
    /// fixed part.
    #[inline]
    fn append(&mut self, value: ValueRef<'_>) -> Result<usize> {
        match (self, value) {
            (Self::Boolean(builder), ValueRef::Boolean(value)) => builder.append_value(value),
            (Self::SmallInt(builder), ValueRef::SmallInt(value)) => builder.append_value(value),
            (Self::Integer(builder), ValueRef::Integer(value)) => builder.append_value(value),
            (Self::BigInt(builder), ValueRef::BigInt(value)) => builder.append_value(value),
            (Self::Real(builder), ValueRef::Real(value)) => builder.append_value(value),
            (Self::Double(builder), ValueRef::Double(value)) => builder.append_value(value),
            (Self::Numeric(builder, scale), ValueRef::Numeric(value)) => {
                let value = if value.scale() == *scale {
                    value.mantissa()
                } else {
                    value
                        .round(i32::from(*scale))
                        .ok()
                        .and_then(|value| value.rescale(*scale))
                        .ok_or_else(too_large)?
                        .mantissa()
                };
                builder.append_value(value);
            }
            (Self::Text(builder), ValueRef::Text(value)) => {
                builder.append_value(value);
                return Ok(value.len());
            }
            (Self::Bytea(builder), ValueRef::Bytea(value)) => {
                builder.append_value(value);
                return Ok(value.len());
            }
            (Self::Date(builder), ValueRef::Date(value)) => {
                builder.append_value(date_to_arrow(value));
            }
            (
                Self::Timestamp(builder),
                ValueRef::Timestamp(value) | ValueRef::TimestampTz(value),
            ) => builder.append_value(timestamp_to_arrow(value)),
            (Self::Uuid(builder), ValueRef::Uuid(value)) => builder.append_value(value)?,
            (builder, ValueRef::Null) => builder.append_null(),
            (_, value) => {
                return Err(DataFusionError::Internal(format!(
                    "a tuple holds {value:?} where its column has another type"
                )));
            }
        }
        Ok(0)
    }

    fn append_null(&mut self) {
        match self {
            Self::Boolean(builder) => builder.append_null(),
            Self::SmallInt(builder) => builder.append_null(),
            Self::Integer(builder) => builder.append_null(),
            Self::BigInt(builder) => builder.append_null(),
            Self::Real(builder) => builder.append_null(),
            Self::Double(builder) => builder.append_null(),
            Self::Numeric(builder, _) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Bytea(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
            Self::Uuid(builder) => builder.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Boolean(builder) => Arc::new(builder.finish()),
            Self::SmallInt(builder) => Arc::new(builder.finish()),
            Self::Integer(builder) => Arc::new(builder.finish()),
            Self::BigInt(builder) => Arc::new(builder.finish()),
            Self::Real(builder) => Arc::new(builder.finish()),
            Self::Double(builder) => Arc::new(builder.finish()),
            Self::Numeric(builder, _) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Bytea(builder) => Arc::new(builder.finish()),
            Self::Date(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) => Arc::new(builder.finish()),
            Self::Uuid(builder) => Arc::new(builder.finish()),
        }
    }
}

#[cold]
fn too_large() -> DataFusionError {
    let error = SqlError::new("22003", "numeric field overflow").with_detail(format!(
        "In analytical statements a numeric without precision has {UNCONSTRAINED_SCALE} decimal \
         places and 22 before the point."
    ));
    DataFusionError::External(Box::new(error))
}

/// Days since 2000 to days since 1970; the infinities stay.
pub(crate) fn date_to_arrow(days: i32) -> i32 {
    match days {
        i32::MIN | i32::MAX => days,
        _ => days.saturating_add(EPOCH_DAYS),
    }
}

/// Microseconds since 2000 to microseconds since 1970; the infinities stay.
pub(crate) fn timestamp_to_arrow(us: i64) -> i64 {
    match us {
        i64::MIN | i64::MAX => us,
        _ => us.saturating_add(EPOCH_US),
    }
}

/// Collects tuples of one table into batches of the projected columns.
pub(crate) struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<(usize, Builder)>,
    rows: usize,
    bytes: usize,
    /// See [`batch_bytes`].
    bytes_max: usize,
    error: Option<DataFusionError>,
}

impl BatchBuilder {
    /// For these columns of `table`, in batches of about `bytes_max`; `schema` is
    /// that of the projection.
    pub(crate) fn new(
        table: &Table,
        columns: &[usize],
        schema: SchemaRef,
        bytes_max: usize,
    ) -> Self {
        let row_bytes = VALUE_BYTES * columns.len().max(1);
        let capacity = (bytes_max / row_bytes).clamp(1, BATCH_ROWS);
        let text_block = text_block(bytes_max, columns.len());
        let columns = columns
            .iter()
            .map(|&column| {
                let data_type = &table.columns[column].data_type;
                (column, Builder::new(data_type, capacity, text_block))
            })
            .collect();
        Self {
            schema,
            columns,
            rows: 0,
            bytes: 0,
            bytes_max,
            error: None,
        }
    }

    /// Adds a tuple. The first error is kept and reported by [`Self::finish`].
    #[inline]
    pub(crate) fn push(&mut self, table: &Table, tuple: &[u8]) {
        if self.error.is_some() {
            return;
        }
        for (column, builder) in &mut self.columns {
            match builder.append(table.value(tuple, *column)) {
                Ok(bytes) => self.bytes += bytes,
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
        self.bytes += VALUE_BYTES * self.columns.len();
        self.rows += 1;
    }

    /// Adds a row of values, in the order of the projected columns.
    fn push_values<'a>(&mut self, values: impl Iterator<Item = ValueRef<'a>>) {
        for ((_, builder), value) in self.columns.iter_mut().zip(values) {
            if let Err(error) = builder.append(value) {
                self.error.get_or_insert(error);
                return;
            }
        }
        self.rows += 1;
    }

    /// Whether the batch is large enough to be handed on.
    pub(crate) fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= self.bytes_max || self.error.is_some()
    }

    /// Whether there is nothing to hand on.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0 && self.error.is_none()
    }

    /// The batch collected so far; the builder begins the next.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let arrays = self
            .columns
            .iter_mut()
            .map(|(_, builder)| builder.finish())
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        self.bytes = 0;
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            arrays,
            &options,
        )?)
    }
}

/// A batch of rows of values that are not in a table.
pub(crate) fn catalog_batch(
    types: &[DataType],
    schema: SchemaRef,
    rows: &[Vec<Value>],
) -> Result<RecordBatch> {
    let mut batch = BatchBuilder {
        schema,
        columns: types
            .iter()
            .enumerate()
            .map(|(index, data_type)| {
                let builder = Builder::new(data_type, rows.len(), TEXT_BLOCK_MIN);
                (index, builder)
            })
            .collect(),
        rows: 0,
        bytes: 0,
        bytes_max: usize::MAX,
        error: None,
    };
    for row in rows {
        batch.push_values(row.iter().map(Value::as_ref));
    }
    batch.finish()
}
