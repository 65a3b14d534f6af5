//! How PostgreSQL's values stand in Arrow columns. A *native* form is an Arrow type whose values
//! are the datum's own words; all else is *opaque*: bytes of `serial`.

use std::sync::Arc;
use thermocline_query::types::domain::base;

use datafusion::arrow::array::builder::{
    BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringViewBuilder,
};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt32Type,
};
use datafusion::common::ScalarValue;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::types::ids;

use thermocline_query::serial;

/// The form of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// `bool`
    Bool,
    /// `"char"`
    Char,
    /// `int2`
    Int2,
    /// `int4`
    Int4,
    /// `int8`
    Int8,
    /// `oid`, the `reg…` types, `xid`, `cid`
    Oid,
    /// `float4`
    Float4,
    /// `float8`
    Float8,
    /// `text`, `varchar`, `name`, `json`, `unknown`
    Text,
    /// `bytea`
    Bytea,
    /// `date`: days since 2000
    Date,
    /// `time`: microseconds
    Time,
    /// `timestamp`: microseconds since 2000
    Timestamp,
    /// `timestamptz`: as `timestamp`
    TimestampTz,
    /// `uuid`
    Uuid,
    /// Anything, in bytes of `serial`
    Opaque,
}

impl Form {
    /// The form of a type's values.
    #[must_use]
    pub fn of(oid: u32) -> Self {
        match base(oid) {
            ids::BOOL => Self::Bool,
            ids::CHAR => Self::Char,
            ids::INT2 => Self::Int2,
            ids::INT4 => Self::Int4,
            ids::INT8 => Self::Int8,
            ids::OID
            | ids::REGPROC
            | ids::REGPROCEDURE
            | ids::REGOPER
            | ids::REGOPERATOR
            | ids::REGCLASS
            | ids::REGTYPE
            | ids::REGNAMESPACE
            | ids::REGROLE
            | ids::REGCOLLATION
            | ids::XID
            | ids::CID => Self::Oid,
            ids::FLOAT4 => Self::Float4,
            ids::FLOAT8 => Self::Float8,
            ids::TEXT | ids::VARCHAR | ids::NAME | ids::JSON | ids::UNKNOWN | ids::CSTRING => {
                Self::Text
            }
            ids::BYTEA => Self::Bytea,
            ids::DATE => Self::Date,
            ids::TIME => Self::Time,
            ids::TIMESTAMP => Self::Timestamp,
            ids::TIMESTAMPTZ => Self::TimestampTz,
            ids::UUID => Self::Uuid,
            _ => Self::Opaque,
        }
    }

    /// Its Arrow type.
    #[must_use]
    pub const fn arrow(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Char => DataType::UInt8,
            Self::Int2 => DataType::Int16,
            Self::Int4 | Self::Date => DataType::Int32,
            Self::Int8 | Self::Time | Self::Timestamp | Self::TimestampTz => DataType::Int64,
            Self::Oid => DataType::UInt32,
            Self::Float4 => DataType::Float32,
            Self::Float8 => DataType::Float64,
            Self::Text => DataType::Utf8View,
            Self::Bytea | Self::Opaque => DataType::BinaryView,
            Self::Uuid => DataType::FixedSizeBinary(16),
        }
    }

    /// Whether Arrow's equality and order of the form are PostgreSQL's of the type.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Float4 | Self::Float8 | Self::Opaque)
    }

    /// Whether it is a whole number of 16, 32 or 64 bits.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8)
    }

    /// A constant.
    ///
    /// # Errors
    /// XX000 for a value of another form.
    pub fn scalar(self, value: &Datum) -> Result<ScalarValue> {
        Ok(match (self, value) {
            (Self::Bool, Datum::Null) => ScalarValue::Boolean(None),
            (Self::Bool, Datum::Bool(value)) => ScalarValue::Boolean(Some(*value)),
            (Self::Int4, Datum::Int4(value)) => ScalarValue::Int32(Some(*value)),
            (Self::Text, Datum::Text(value)) => ScalarValue::Utf8View(Some(value.to_string())),
            _ => {
                let mut builder = ColumnBuilder::new(self, 1);
                builder.push(value)?;
                ScalarValue::try_from_array(&builder.finish(), 0)
                    .map_err(|error| QueryError::internal(error.to_string()))?
            }
        })
    }
}

/// What an opaque column and a `bytea` hold at most before a batch is cut.
pub const BATCH_BYTES_MAX: usize = 16 << 20;

/// Makes a column of datums.
pub enum ColumnBuilder {
    /// `bool`
    Bool(BooleanBuilder),
    /// One byte
    UInt8(PrimitiveBuilder<UInt8Type>),
    /// 16 bits
    Int16(PrimitiveBuilder<Int16Type>),
    /// 32 bits
    Int32(PrimitiveBuilder<Int32Type>),
    /// 64 bits
    Int64(PrimitiveBuilder<Int64Type>),
    /// A number of an object
    UInt32(PrimitiveBuilder<UInt32Type>),
    /// `float4`
    Float32(PrimitiveBuilder<Float32Type>),
    /// `float8`
    Float64(PrimitiveBuilder<Float64Type>),
    /// Texts
    Text(StringViewBuilder),
    /// `bytea`
    Bytea(BinaryViewBuilder),
    /// `uuid`
    Uuid(FixedSizeBinaryBuilder),
    /// All else; the buffer is used again and again.
    Opaque(BinaryViewBuilder, Vec<u8>),
}

impl ColumnBuilder {
    /// For so many rows.
    #[must_use]
    pub fn new(form: Form, rows: usize) -> Self {
        match form {
            Form::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            Form::Char => Self::UInt8(PrimitiveBuilder::with_capacity(rows)),
            Form::Int2 => Self::Int16(PrimitiveBuilder::with_capacity(rows)),
            Form::Int4 | Form::Date => Self::Int32(PrimitiveBuilder::with_capacity(rows)),
            Form::Int8 | Form::Time | Form::Timestamp | Form::TimestampTz => {
                Self::Int64(PrimitiveBuilder::with_capacity(rows))
            }
            Form::Oid => Self::UInt32(PrimitiveBuilder::with_capacity(rows)),
            Form::Float4 => Self::Float32(PrimitiveBuilder::with_capacity(rows)),
            Form::Float8 => Self::Float64(PrimitiveBuilder::with_capacity(rows)),
            Form::Text => Self::Text(StringViewBuilder::with_capacity(rows)),
            Form::Bytea => Self::Bytea(BinaryViewBuilder::with_capacity(rows)),
            Form::Uuid => Self::Uuid(FixedSizeBinaryBuilder::with_capacity(rows, 16)),
            Form::Opaque => Self::Opaque(BinaryViewBuilder::with_capacity(rows), Vec::new()),
        }
    }

    /// Appends a value. The answer is how many bytes it takes beyond its word.
    ///
    /// # Errors
    /// XX000 for a value of another form.
    pub fn push(&mut self, value: &Datum) -> Result<usize> {
        match (self, value) {
            (Self::Bool(column), Datum::Bool(value)) => column.append_value(*value),
            (Self::Bool(column), Datum::Null) => column.append_null(),
            (Self::UInt8(column), Datum::Char(value)) => column.append_value(*value),
            (Self::UInt8(column), Datum::Null) => column.append_null(),
            (Self::Int16(column), Datum::Int2(value)) => column.append_value(*value),
            (Self::Int16(column), Datum::Null) => column.append_null(),
            (Self::Int32(column), Datum::Int4(value) | Datum::Date(value)) => {
                column.append_value(*value);
            }
            (Self::Int32(column), Datum::Null) => column.append_null(),
            (
                Self::Int64(column),
                Datum::Int8(value)
                | Datum::Time(value)
                | Datum::Timestamp(value)
                | Datum::TimestampTz(value),
            ) => column.append_value(*value),
            (Self::Int64(column), Datum::Null) => column.append_null(),
            (Self::UInt32(column), Datum::Oid(value)) => column.append_value(*value),
            (Self::UInt32(column), Datum::Null) => column.append_null(),
            (Self::Float32(column), Datum::Float4(value)) => column.append_value(*value),
            (Self::Float32(column), Datum::Null) => column.append_null(),
            (Self::Float64(column), Datum::Float8(value)) => column.append_value(*value),
            (Self::Float64(column), Datum::Null) => column.append_null(),
            (Self::Text(column), Datum::Text(value)) => {
                column.append_value(value);
                return Ok(value.len());
            }
            (Self::Text(column), Datum::Null) => column.append_null(),
            (Self::Bytea(column), Datum::Bytea(value)) => {
                column.append_value(value);
                return Ok(value.len());
            }
            (Self::Bytea(column), Datum::Null) => column.append_null(),
            (Self::Uuid(column), Datum::Uuid(value)) => {
                column
                    .append_value(value)
                    .map_err(|error| QueryError::internal(error.to_string()))?;
            }
            (Self::Uuid(column), Datum::Null) => column.append_null(),
            (Self::Opaque(column, _), Datum::Null) => column.append_null(),
            (Self::Opaque(column, buffer), value) => {
                buffer.clear();
                serial::write(value, buffer)?;
                column.append_value(buffer.as_slice());
                return Ok(buffer.len());
            }
            (_, value) => {
                return Err(QueryError::internal(format!(
                    "a value of another type than its column's: {value:?}"
                )));
            }
        }
        Ok(0)
    }

    /// Appends a key or other bytes to a column of `bytea` form.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if let Self::Bytea(column) = self {
            column.append_value(bytes);
        }
    }

    /// The column.
    #[must_use]
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(column) => Arc::new(column.finish()),
            Self::UInt8(column) => Arc::new(column.finish()),
            Self::Int16(column) => Arc::new(column.finish()),
            Self::Int32(column) => Arc::new(column.finish()),
            Self::Int64(column) => Arc::new(column.finish()),
            Self::UInt32(column) => Arc::new(column.finish()),
            Self::Float32(column) => Arc::new(column.finish()),
            Self::Float64(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::Bytea(column) | Self::Opaque(column, _) => Arc::new(column.finish()),
            Self::Uuid(column) => Arc::new(column.finish()),
        }
    }
}

/// Reads a column's datums.
#[derive(Clone, Debug)]
pub struct ColumnReader {
    form: Form,
    array: ArrayRef,
}

impl ColumnReader {
    /// Of a column of this form.
    ///
    /// # Errors
    /// XX000 if it is of another.
    pub fn new(form: Form, array: ArrayRef) -> Result<Self> {
        if *array.data_type() != form.arrow() {
            return Err(QueryError::internal(format!(
                "a column of {form:?} is {}",
                array.data_type()
            )));
        }
        Ok(Self { form, array })
    }

    /// The value of a row.
    ///
    /// # Errors
    /// XX000 for bytes that are no value.
    pub fn get(&self, row: usize) -> Result<Datum> {
        let array = self.array.as_ref();
        if array.is_null(row) {
            return Ok(Datum::Null);
        }
        let int32 = || array.as_primitive::<Int32Type>().value(row);
        let int64 = || array.as_primitive::<Int64Type>().value(row);
        Ok(match self.form {
            Form::Bool => Datum::Bool(array.as_boolean().value(row)),
            Form::Char => Datum::Char(array.as_primitive::<UInt8Type>().value(row)),
            Form::Int2 => Datum::Int2(array.as_primitive::<Int16Type>().value(row)),
            Form::Int4 => Datum::Int4(int32()),
            Form::Date => Datum::Date(int32()),
            Form::Int8 => Datum::Int8(int64()),
            Form::Time => Datum::Time(int64()),
            Form::Timestamp => Datum::Timestamp(int64()),
            Form::TimestampTz => Datum::TimestampTz(int64()),
            Form::Oid => Datum::Oid(array.as_primitive::<UInt32Type>().value(row)),
            Form::Float4 => Datum::Float4(array.as_primitive::<Float32Type>().value(row)),
            Form::Float8 => Datum::Float8(array.as_primitive::<Float64Type>().value(row)),
            Form::Text => Datum::text(array.as_string_view().value(row)),
            Form::Bytea => Datum::bytes(array.as_binary_view().value(row)),
            Form::Uuid => {
                let bytes = array.as_fixed_size_binary().value(row);
                Datum::Uuid(
                    bytes
                        .try_into()
                        .map_err(|_| QueryError::internal("a uuid of another length"))?,
                )
            }
            Form::Opaque => serial::read(array.as_binary_view().value(row))?,
        })
    }

    /// The text of a row, where it lies; `None` for NULL and in columns of other forms.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<&str> {
        match self.form {
            Form::Text if !self.array.is_null(row) => Some(self.array.as_string_view().value(row)),
            _ => None,
        }
    }

    /// The bytes of `serial` of a row, where they lie; `None` for NULL and in columns of other
    /// forms.
    #[must_use]
    pub fn opaque(&self, row: usize) -> Option<&[u8]> {
        match self.form {
            Form::Opaque if !self.array.is_null(row) => {
                Some(self.array.as_binary_view().value(row))
            }
            _ => None,
        }
    }

    /// Whether a row's value is NULL.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }
}
