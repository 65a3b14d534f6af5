//! How PostgreSQL's types travel through Arrow and come back.
//!
//! Each field of a table carries its PostgreSQL type and origin in its
//! metadata, so that a column that is only passed on keeps `varchar(10)` and
//! its place in the table. The metadata is believed only while it agrees with
//! the Arrow type: casts and aggregates change the type and drop the claim.
//!
//! `numeric` without a precision is `Decimal128(38, 16)` and printed without
//! trailing zeros; a quotient or an average is `Decimal128(38, 20)` and printed
//! with as many digits as PostgreSQL's division gives. Both are recognised by
//! their Arrow type, which survives every operator. `char(n)` is kept without
//! its trailing blanks, as in tuples, and padded when it leaves.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Field, IntervalUnit, Schema, SchemaRef,
    TimeUnit,
};
use thermocline_engine::catalog::TableDef;
use thermocline_storage::types::DataType;

use crate::output::{ColumnType, OtherType, OutputColumn};

/// The metadata key that holds `oid:typmod:table:column`.
const METADATA_KEY: &str = "thermocline.type";
/// The time zone of `timestamptz` in Arrow.
pub(crate) const UTC: &str = "UTC";
/// Decimal places of a `numeric` without a precision.
pub(crate) const UNCONSTRAINED_SCALE: i8 = 16;
/// Decimal places kept of a quotient.
pub(crate) const QUOTIENT_SCALE: i8 = 20;
/// Days from 1970-01-01, Arrow's epoch, to 2000-01-01, PostgreSQL's.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(crate) const EPOCH_US: i64 = EPOCH_DAYS as i64 * 86_400_000_000;
/// What separates a column's name from the mark that makes it unique.
pub(crate) const UNIQUE_MARK: char = '\u{1}';

/// The Arrow type that holds values of a PostgreSQL type.
pub(crate) fn arrow_type(data_type: &DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Integer => ArrowType::Int32,
        DataType::BigInt => ArrowType::Int64,
        DataType::Real => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Numeric { precision: 0, .. } => {
            ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, UNCONSTRAINED_SCALE)
        }
        DataType::Numeric { precision, scale } => ArrowType::Decimal128(*precision, *scale as i8),
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => ArrowType::Utf8View,
        DataType::Bytea => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Uuid => ArrowType::FixedSizeBinary(16),
    }
}

/// A nullable field of a PostgreSQL type.
pub(crate) fn field_of(name: &str, data_type: &DataType) -> Field {
    described(
        Field::new(name, arrow_type(data_type), true),
        data_type,
        0,
        0,
    )
}

fn described(field: Field, data_type: &DataType, table: u32, column: usize) -> Field {
    let value = format!(
        "{}:{}:{table}:{column}",
        data_type.oid(),
        data_type.typmod()
    );
    field.with_metadata(HashMap::from([(METADATA_KEY.to_owned(), value)]))
}

/// The Arrow schema of a table.
pub(crate) fn table_schema(table: &TableDef) -> SchemaRef {
    let fields: Vec<Field> = table
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let arrow = arrow_type(&column.data_type);
            let field = Field::new(&column.name, arrow, !column.not_null);
            described(field, &column.data_type, table.oid, index + 1)
        })
        .collect();
    Schema::new(fields).into()
}

/// A field's PostgreSQL type and origin, if it still carries a true one.
fn claimed(field: &Field) -> Option<(DataType, u32, usize)> {
    let mut parts = field.metadata().get(METADATA_KEY)?.split(':');
    let oid = parts.next()?.parse().ok()?;
    let typmod = parts.next()?.parse().ok()?;
    let table = parts.next()?.parse().ok()?;
    let column = parts.next()?.parse().ok()?;
    let data_type = DataType::from_oid(oid, typmod)?;
    let holds = match (arrow_type(&data_type), field.data_type()) {
        (ArrowType::Utf8View, actual) => is_text(actual),
        (expected, actual) => expected == *actual,
    };
    holds.then_some((data_type, table, column))
}

/// Whether values of the Arrow type are texts.
pub(crate) fn is_text(arrow: &ArrowType) -> bool {
    matches!(
        arrow,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View
    )
}

/// The PostgreSQL type of a field, when it is one that tables hold.
pub(crate) fn scalar_type(field: &Field) -> Option<DataType> {
    if let Some((data_type, ..)) = claimed(field) {
        return Some(data_type);
    }
    Some(match field.data_type() {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => DataType::SmallInt,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Integer,
        // DataFusion numbers and ranks rows with unsigned integers.
        ArrowType::Int64 | ArrowType::UInt32 | ArrowType::UInt64 => DataType::BigInt,
        ArrowType::Float16 | ArrowType::Float32 => DataType::Real,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal128(..) => DataType::NUMERIC,
        ArrowType::Null | ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => {
            DataType::Text
        }
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView => DataType::Bytea,
        ArrowType::FixedSizeBinary(16) => DataType::Uuid,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        _ => return None,
    })
}

/// The PostgreSQL type of a field.
pub(crate) fn column_type(field: &Field) -> ColumnType {
    if let Some(data_type) = scalar_type(field) {
        return ColumnType::Scalar(data_type);
    }
    ColumnType::Other(match field.data_type() {
        ArrowType::Interval(IntervalUnit::MonthDayNano | IntervalUnit::DayTime)
        | ArrowType::Interval(IntervalUnit::YearMonth)
        | ArrowType::Duration(_) => OtherType::Interval,
        ArrowType::Time32(_) | ArrowType::Time64(_) => OtherType::Time,
        ArrowType::List(element) | ArrowType::LargeList(element) => match scalar_type(element) {
            Some(data_type) => OtherType::ArrayOf(data_type),
            None => OtherType::AnyArray,
        },
        ArrowType::Struct(_) => OtherType::Record,
        _ => OtherType::Unknown,
    })
}

/// The column of a result that a field becomes.
pub(crate) fn output_column(field: &Field) -> OutputColumn {
    let name = match field.name().split_once(UNIQUE_MARK) {
        Some((name, _)) => name,
        None => field.name(),
    };
    let column = OutputColumn::new(name, column_type(field));
    match claimed(field) {
        Some((_, table, number)) if table != 0 => column.from_table(table, number),
        _ => column,
    }
}

/// Whether the field holds `char(n)` values, which compare without their
/// trailing blanks.
pub(crate) fn is_blank_padded(field: &Field) -> bool {
    matches!(claimed(field), Some((DataType::Char(_), ..)))
}

/// The name PostgreSQL's messages give to the type of a field.
pub(crate) fn type_name(field: &Field) -> String {
    match column_type(field) {
        ColumnType::Scalar(data_type) => data_type.base_name().to_owned(),
        ColumnType::Other(OtherType::Interval) => "interval".to_owned(),
        ColumnType::Other(OtherType::Time) => "time without time zone".to_owned(),
        ColumnType::Other(_) => field.data_type().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_keeps_its_postgresql_type_and_origin() {
        let field = described(
            Field::new("c", ArrowType::Utf8View, true),
            &DataType::Varchar(10),
            16385,
            3,
        );
        let column = output_column(&field);
        assert_eq!(column.data_type, ColumnType::Scalar(DataType::Varchar(10)));
        assert_eq!((column.table_oid, column.column_number), (16385, 3));
        assert_eq!(column.type_modifier, 14);
    }

    #[test]
    fn a_claim_that_the_arrow_type_contradicts_is_dropped() {
        let field = field_of(
            "n",
            &DataType::Numeric {
                precision: 12,
                scale: 2,
            },
        )
        .with_data_type(ArrowType::Decimal128(22, 2));
        assert_eq!(scalar_type(&field), Some(DataType::NUMERIC));
        let field = field_of("n", &DataType::Varchar(3)).with_data_type(ArrowType::Int32);
        assert_eq!(scalar_type(&field), Some(DataType::Integer));
    }

    #[test]
    fn the_mark_of_uniqueness_is_not_shown() {
        let field = Field::new(format!("?column?{UNIQUE_MARK}2"), ArrowType::Int32, true);
        assert_eq!(output_column(&field).name, "?column?");
    }

    #[test]
    fn every_type_leads_back_to_itself() {
        for data_type in [
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Integer,
            DataType::BigInt,
            DataType::Real,
            DataType::Double,
            DataType::NUMERIC,
            DataType::Numeric {
                precision: 38,
                scale: 20,
            },
            DataType::Text,
            DataType::Char(7),
            DataType::Bytea,
            DataType::Date,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Uuid,
        ] {
            assert_eq!(scalar_type(&field_of("x", &data_type)), Some(data_type));
        }
    }
}
