//! Tuples into Arrow: each projected column of a tuple goes straight from its
//! bytes into an Arrow builder, no row is materialised. A batch is closed at
//! [`BATCH_ROWS`] rows or at [`batch_bytes`], whichever comes first, so that
//! wide rows do not make batches that the memory limit cannot hold.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, RecordBatch, RecordBatchOptions,
    StringViewBuilder,
};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use thermocline_analytical::errors::external;
use thermocline_analytical::form::{ColumnBuilder, Form};
use thermocline_engine::RowId;
use thermocline_engine::catalog::{Table, TableDef};
use thermocline_query::datum::Datum;
use thermocline_query::serial;
use thermocline_query::types::ids;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use crate::typed::{stored, value};

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

/// The name of the column behind all others, which has the rows' numbers ([`RowId`]). No column
/// is called so: names have no NUL.
const ROW_NUMBER: &str = "row\0";
/// ... and that which has the table's number: of a partitioned table that of the row's partition.
const PARTITION_OID: &str = "partition\0";

/// The Arrow schema of a table, in the forms of `thermocline_analytical`; the rows' numbers are
/// behind the columns.
pub(super) fn table_schema(table: &TableDef) -> SchemaRef {
    let columns = table.columns.iter().map(|column| {
        let form = Form::of(column.data_type.oid());
        Field::new(&column.name, form.arrow(), true)
    });
    let number = Field::new(ROW_NUMBER, Form::of(DataType::BigInt.oid()).arrow(), true);
    let partition = Field::new(PARTITION_OID, Form::of(ids::OID).arrow(), true);
    let fields: Vec<Field> = columns.chain([number, partition]).collect();
    Schema::new(fields).into()
}

enum Builder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Numeric(BinaryViewBuilder, Vec<u8>),
    Text(StringViewBuilder),
    /// `char(n)`, as long as it is.
    Padded(BinaryViewBuilder, Vec<u8>, usize),
    Bytea(BinaryViewBuilder),
    Uuid(FixedSizeBinaryBuilder),
    /// What the storage knows as bytes; the flag says that they stand so in the column, too.
    Other(bool, ColumnBuilder),
    /// The number of a row's partition.
    Partition(ColumnBuilder),
}

impl Builder {
    /// For so many rows; texts are collected in blocks of `text_block` bytes. (Left to itself
    /// the builder takes two megabytes at a time, however little a batch is.)
    fn new(data_type: &DataType, rows: usize, text_block: u32) -> Self {
        let bytes = || BinaryViewBuilder::with_capacity(rows).with_fixed_block_size(text_block);
        match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::SmallInt => Self::SmallInt(Int16Builder::with_capacity(rows)),
            DataType::Integer | DataType::Date => Self::Integer(Int32Builder::with_capacity(rows)),
            DataType::BigInt
            | DataType::Timestamp
            | DataType::TimestampTz
            | DataType::TimestampTo(_)
            | DataType::TimestampTzTo(_) => Self::BigInt(Int64Builder::with_capacity(rows)),
            DataType::Real => Self::Real(Float32Builder::with_capacity(rows)),
            DataType::Double => Self::Double(Float64Builder::with_capacity(rows)),
            DataType::Numeric { .. } => Self::Numeric(bytes(), Vec::new()),
            DataType::Text | DataType::Varchar(_) => {
                let builder = StringViewBuilder::with_capacity(rows);
                Self::Text(builder.with_fixed_block_size(text_block))
            }
            DataType::Char(length) => {
                let length = usize::try_from(*length).unwrap_or(0);
                Self::Padded(bytes(), Vec::new(), length)
            }
            DataType::Bytea => Self::Bytea(bytes()),
            DataType::Uuid => Self::Uuid(FixedSizeBinaryBuilder::with_capacity(rows, 16)),
            DataType::Other { oid, .. } => {
                let form = Form::of(*oid);
                let same = form == Form::Opaque && stored::is_serial(*oid);
                Self::Other(same, ColumnBuilder::new(form, rows))
            }
        }
    }

    /// Appends a value of the builder's type; the bytes it added off the
    /// fixed part.
    #[inline]
    fn append(&mut self, value: ValueRef<'_>) -> Result<usize> {
        match (self, value) {
            (Self::Boolean(builder), ValueRef::Boolean(value)) => builder.append_value(value),
            (Self::SmallInt(builder), ValueRef::SmallInt(value)) => builder.append_value(value),
            (Self::Integer(builder), ValueRef::Integer(value) | ValueRef::Date(value)) => {
                builder.append_value(value);
            }
            (
                Self::BigInt(builder),
                ValueRef::BigInt(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value),
            ) => builder.append_value(value),
            (Self::Real(builder), ValueRef::Real(value)) => builder.append_value(value),
            (Self::Double(builder), ValueRef::Double(value)) => builder.append_value(value),
            (Self::Numeric(builder, buffer), ValueRef::Numeric(value)) => {
                let (unscaled, scale) = (value.mantissa(), u16::from(value.scale()));
                buffer.clear();
                match i64::try_from(unscaled) {
                    Ok(short) => builder.append_value(serial::short_numeric(short, scale)),
                    Err(_) => {
                        serial::write_numeric_parts(unscaled, scale, buffer);
                        builder.append_value(buffer.as_slice());
                    }
                }
                return Ok(buffer.len());
            }
            (Self::Numeric(builder, buffer), ValueRef::Other(_, bytes)) => {
                let number = stored::long_numeric(bytes).map_err(external)?;
                return append_datum(builder, buffer, &Datum::Numeric(number));
            }
            (Self::Text(builder), ValueRef::Text(value)) => {
                builder.append_value(value);
                return Ok(value.len());
            }
            (Self::Padded(builder, buffer, length), ValueRef::Text(value)) => {
                let padded = value::padded(value, *length);
                return append_datum(builder, buffer, &Datum::text(padded));
            }
            (Self::Bytea(builder), ValueRef::Bytea(value)) => {
                builder.append_value(value);
                return Ok(value.len());
            }
            (Self::Uuid(builder), ValueRef::Uuid(value)) => builder.append_value(value)?,
            (Self::Other(true, ColumnBuilder::Opaque(builder, _)), ValueRef::Other(_, bytes)) => {
                builder.append_value(bytes);
                return Ok(bytes.len());
            }
            (Self::Other(_, builder), ValueRef::Other(oid, bytes)) => {
                let value = stored::decode(oid, bytes).map_err(external)?;
                return builder.push(&value).map_err(external);
            }
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
            Self::Text(builder) => builder.append_null(),
            Self::Numeric(builder, _) | Self::Padded(builder, ..) | Self::Bytea(builder) => {
                builder.append_null();
            }
            Self::Uuid(builder) => builder.append_null(),
            // NULL is of every form.
            Self::Other(_, builder) | Self::Partition(builder) => {
                let _ = builder.push(&Datum::Null);
            }
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
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Numeric(builder, _) | Self::Padded(builder, ..) | Self::Bytea(builder) => {
                Arc::new(builder.finish())
            }
            Self::Uuid(builder) => Arc::new(builder.finish()),
            Self::Other(_, builder) | Self::Partition(builder) => builder.finish(),
        }
    }
}

fn append_datum(
    builder: &mut BinaryViewBuilder,
    buffer: &mut Vec<u8>,
    value: &Datum,
) -> Result<usize> {
    buffer.clear();
    serial::write(value, buffer).map_err(external)?;
    builder.append_value(buffer.as_slice());
    Ok(buffer.len())
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
                if column == table.columns.len() + 1 {
                    let oids = ColumnBuilder::new(Form::of(ids::OID), capacity);
                    return (column, Builder::Partition(oids));
                }
                let def = table.columns.get(column);
                let data_type = def.map_or(DataType::BigInt, |def| def.data_type);
                (column, Builder::new(&data_type, capacity, text_block))
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
    pub(crate) fn push(&mut self, table: &Table, row: RowId, tuple: &[u8]) {
        if self.error.is_some() {
            return;
        }
        for (column, builder) in &mut self.columns {
            let value = match *column >= table.columns.len() {
                true => ValueRef::BigInt(row.number().cast_signed()),
                false => table.value(tuple, *column),
            };
            let appended = match builder {
                Builder::Partition(oids) => oids.push(&Datum::Oid(table.oid)).map_err(external),
                builder => builder.append(value),
            };
            match appended {
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
