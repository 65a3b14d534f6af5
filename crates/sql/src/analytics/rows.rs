//! Arrow batches back into rows. A column is looked at once a batch; its
//! values then go to the row writer without a copy. Types that tables do not
//! hold (intervals, times, arrays) leave as PostgreSQL's text.

use std::fmt::Write;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, BooleanArray, Date32Array,
    Decimal128Array, Decimal256Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StringViewArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use datafusion::error::{DataFusionError, Result};
use thermocline_storage::numeric::Numeric;
use thermocline_storage::text_format;
use thermocline_storage::types::DataType;
use thermocline_storage::value::ValueRef;

use super::types::{EPOCH_DAYS, EPOCH_US, QUOTIENT_SCALE, UNCONSTRAINED_SCALE};
use crate::error::SqlError;
use crate::output::{ColumnType, OtherType, OutputColumn, PIECE_BYTES, RowWriter};

/// How a decimal column shows its digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    /// All of its scale.
    All,
    /// Without trailing zeros: a numeric without precision.
    Trimmed,
    /// As many as PostgreSQL's division gives.
    Quotient,
}

enum Column<'a> {
    Boolean(&'a BooleanArray),
    Int8(&'a Int8Array),
    UInt8(&'a UInt8Array),
    Int16(&'a Int16Array),
    UInt16(&'a UInt16Array),
    Int32(&'a Int32Array),
    UInt32(&'a UInt32Array),
    Int64(&'a Int64Array),
    UInt64(&'a UInt64Array),
    Float32(&'a Float32Array),
    Float64(&'a Float64Array),
    Decimal(&'a Decimal128Array, u8, Digits),
    WideDecimal(&'a Decimal256Array, u8),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Binary(&'a BinaryArray),
    BinaryView(&'a BinaryViewArray),
    Date(&'a Date32Array),
    Timestamp(&'a ArrayRef, bool),
    Uuid(&'a FixedSizeBinaryArray),
    Other,
}

/// Reads the values of one column of a batch.
pub(crate) struct ColumnReader<'a> {
    column: Column<'a>,
    array: &'a ArrayRef,
}

impl<'a> ColumnReader<'a> {
    /// For `array`; `declared` is the type the result announced, if it did.
    pub(crate) fn new(array: &'a ArrayRef, declared: Option<&DataType>) -> Self {
        let column = match array.data_type() {
            ArrowType::Boolean => Column::Boolean(array.as_boolean()),
            ArrowType::Int8 => Column::Int8(array.as_primitive()),
            ArrowType::UInt8 => Column::UInt8(array.as_primitive()),
            ArrowType::Int16 => Column::Int16(array.as_primitive()),
            ArrowType::UInt16 => Column::UInt16(array.as_primitive()),
            ArrowType::Int32 => Column::Int32(array.as_primitive()),
            ArrowType::UInt32 => Column::UInt32(array.as_primitive()),
            ArrowType::Int64 => Column::Int64(array.as_primitive()),
            ArrowType::UInt64 => Column::UInt64(array.as_primitive()),
            ArrowType::Float32 => Column::Float32(array.as_primitive()),
            ArrowType::Float64 => Column::Float64(array.as_primitive()),
            ArrowType::Decimal128(precision, scale) if *scale >= 0 => {
                let constrained =
                    matches!(declared, Some(DataType::Numeric { precision, .. }) if *precision > 0);
                let digits = match (*precision, *scale) {
                    (38, QUOTIENT_SCALE) if !constrained => Digits::Quotient,
                    (38, UNCONSTRAINED_SCALE) if !constrained => Digits::Trimmed,
                    _ => Digits::All,
                };
                Column::Decimal(array.as_primitive(), *scale as u8, digits)
            }
            ArrowType::Decimal256(_, scale) if *scale >= 0 => {
                Column::WideDecimal(array.as_primitive(), *scale as u8)
            }
            ArrowType::Utf8 => Column::Text(array.as_string()),
            ArrowType::LargeUtf8 => Column::LargeText(array.as_string()),
            ArrowType::Utf8View => Column::TextView(array.as_string_view()),
            ArrowType::Binary => Column::Binary(array.as_binary()),
            ArrowType::BinaryView => Column::BinaryView(array.as_binary_view()),
            ArrowType::Date32 => Column::Date(array.as_primitive()),
            ArrowType::Timestamp(_, zone) => Column::Timestamp(array, zone.is_some()),
            ArrowType::FixedSizeBinary(16) => Column::Uuid(array.as_fixed_size_binary()),
            _ => Column::Other,
        };
        Self { column, array }
    }

    /// The value at `row` (not NULL) and its type; `None` for a type that
    /// tables do not hold.
    #[inline]
    pub(crate) fn scalar(&self, row: usize) -> Option<(ValueRef<'a>, DataType)> {
        let smallint = |value| (ValueRef::SmallInt(value), DataType::SmallInt);
        let integer = |value| (ValueRef::Integer(value), DataType::Integer);
        let bigint = |value| (ValueRef::BigInt(value), DataType::BigInt);
        let text = |value| (ValueRef::Text(value), DataType::Text);
        Some(match &self.column {
            Column::Boolean(array) => (ValueRef::Boolean(array.value(row)), DataType::Boolean),
            Column::Int8(array) => smallint(i16::from(array.value(row))),
            Column::UInt8(array) => smallint(i16::from(array.value(row))),
            Column::Int16(array) => smallint(array.value(row)),
            Column::UInt16(array) => integer(i32::from(array.value(row))),
            Column::Int32(array) => integer(array.value(row)),
            Column::UInt32(array) => bigint(i64::from(array.value(row))),
            Column::Int64(array) => bigint(array.value(row)),
            Column::UInt64(array) => bigint(i64::try_from(array.value(row)).ok()?),
            Column::Float32(array) => (ValueRef::Real(array.value(row)), DataType::Real),
            Column::Float64(array) => (ValueRef::Double(array.value(row)), DataType::Double),
            Column::Decimal(array, scale, digits) => decimal(array.value(row), *scale, *digits)?,
            Column::WideDecimal(array, scale) => numeric(array.value(row).to_i128()?, *scale)?,
            Column::Text(array) => text(array.value(row)),
            Column::LargeText(array) => text(array.value(row)),
            Column::TextView(array) => text(array.value(row)),
            Column::Binary(array) => (ValueRef::Bytea(array.value(row)), DataType::Bytea),
            Column::BinaryView(array) => (ValueRef::Bytea(array.value(row)), DataType::Bytea),
            Column::Date(array) => (ValueRef::Date(date(array.value(row))), DataType::Date),
            Column::Timestamp(array, zoned) => {
                let us = timestamp_us(array, row);
                if *zoned {
                    (ValueRef::TimestampTz(us), DataType::TimestampTz)
                } else {
                    (ValueRef::Timestamp(us), DataType::Timestamp)
                }
            }
            Column::Uuid(array) => {
                let bytes = array.value(row).try_into().ok()?;
                (ValueRef::Uuid(bytes), DataType::Uuid)
            }
            Column::Other => return None,
        })
    }

    /// The text of a value (not NULL) of a type that tables do not hold.
    pub(crate) fn other_text(&self, row: usize) -> Result<String> {
        text_of(self.array, row)
    }

    fn write(&self, row: usize, column: &OutputColumn, rows: &mut RowWriter) -> Result<()> {
        if self.array.is_null(row) || *self.array.data_type() == ArrowType::Null {
            rows.null();
            return Ok(());
        }
        match (self.scalar(row), &column.data_type) {
            (Some((value, actual)), ColumnType::Scalar(declared)) => {
                if same_kind(&actual, declared) {
                    rows.value(value, declared);
                } else {
                    let value = thermocline_storage::cast::coerce(
                        value.to_owned(),
                        &actual,
                        declared,
                        thermocline_storage::cast::CastContext::Explicit,
                    )
                    .map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?;
                    rows.value(value.as_ref(), declared);
                }
            }
            (_, ColumnType::Other(other)) => {
                if !rows.has_room(text_bytes(self.array, row)) {
                    // The row is refused.
                    rows.null();
                    return Ok(());
                }
                let text = self.other_text(row)?;
                match other {
                    OtherType::Unknown => rows.text(&text),
                    other => rows
                        .other(&text, *other)
                        .map_err(|error| DataFusionError::External(Box::new(error)))?,
                }
            }
            (None, ColumnType::Scalar(declared)) => {
                return Err(DataFusionError::Internal(format!(
                    "{} announced as {declared}",
                    self.array.data_type()
                )));
            }
        }
        Ok(())
    }
}

/// About how many bytes the text of a list has; that of anything else is short, or a text.
fn text_bytes(array: &ArrayRef, row: usize) -> usize {
    match array.data_type() {
        ArrowType::List(_) => {
            let elements = array.as_list::<i32>().value(row);
            (0..elements.len())
                .map(|element| 3 + text_bytes(&elements, element))
                .sum()
        }
        ArrowType::Utf8 if array.is_valid(row) => array.as_string::<i32>().value(row).len(),
        ArrowType::Utf8View if array.is_valid(row) => array.as_string_view().value(row).len(),
        _ => 8,
    }
}

fn same_kind(actual: &DataType, declared: &DataType) -> bool {
    actual == declared
        || (actual.is_text() && declared.is_text())
        || matches!(
            (actual, declared),
            (DataType::Numeric { .. }, DataType::Numeric { .. })
        )
}

fn numeric<'a>(mantissa: i128, scale: u8) -> Option<(ValueRef<'a>, DataType)> {
    let value = Numeric::new(mantissa, scale).ok()?;
    Some((ValueRef::Numeric(value), DataType::NUMERIC))
}

fn decimal<'a>(
    mut mantissa: i128,
    mut scale: u8,
    digits: Digits,
) -> Option<(ValueRef<'a>, DataType)> {
    match digits {
        Digits::All => {}
        Digits::Trimmed => {
            while scale > 0 && mantissa % 10 == 0 {
                mantissa /= 10;
                scale -= 1;
            }
        }
        Digits::Quotient => {
            let value = Numeric::new(mantissa, scale).ok()?;
            let value = value
                .round(i32::from(quotient_scale(mantissa, scale)))
                .ok()?;
            return Some((ValueRef::Numeric(value), DataType::NUMERIC));
        }
    }
    numeric(mantissa, scale)
}

/// The decimal places PostgreSQL gives a quotient: 16 significant digits,
/// counted in groups of four. It looks at the operands' first groups, of which
/// only the quotient is left here; 1/1 differs (16 places here, 20 there).
fn quotient_scale(mantissa: i128, scale: u8) -> u8 {
    let digits = i32::from(
        mantissa
            .unsigned_abs()
            .checked_ilog10()
            .map_or(0, |log| log as u8 + 1),
    );
    let before_point = digits - i32::from(scale);
    let weight = (before_point - 1).div_euclid(4);
    let places = if mantissa == 0 { 20 } else { 16 - 4 * weight };
    places.clamp(0, i32::from(scale)) as u8
}

fn date(days: i32) -> i32 {
    match days {
        i32::MIN | i32::MAX => days,
        _ => days.saturating_sub(EPOCH_DAYS),
    }
}

fn timestamp_us(array: &ArrayRef, row: usize) -> i64 {
    let us = match array.data_type() {
        ArrowType::Timestamp(TimeUnit::Second, _) => array
            .as_primitive::<TimestampSecondType>()
            .value(row)
            .saturating_mul(1_000_000),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => array
            .as_primitive::<TimestampMillisecondType>()
            .value(row)
            .saturating_mul(1000),
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => array
            .as_primitive::<TimestampNanosecondType>()
            .value(row)
            .div_euclid(1000),
        _ => array.as_primitive::<TimestampMicrosecondType>().value(row),
    };
    match us {
        i64::MIN | i64::MAX => us,
        _ => us.saturating_sub(EPOCH_US),
    }
}

fn text_of(array: &ArrayRef, row: usize) -> Result<String> {
    Ok(match array.data_type() {
        ArrowType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            interval_text(value.months, value.days, value.nanoseconds / 1000)
        }
        ArrowType::Interval(IntervalUnit::DayTime) => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            interval_text(0, value.days, i64::from(value.milliseconds) * 1000)
        }
        ArrowType::Interval(IntervalUnit::YearMonth) => interval_text(
            array.as_primitive::<IntervalYearMonthType>().value(row),
            0,
            0,
        ),
        ArrowType::Duration(unit) => {
            let us = match unit {
                TimeUnit::Second => array
                    .as_primitive::<DurationSecondType>()
                    .value(row)
                    .saturating_mul(1_000_000),
                TimeUnit::Millisecond => array
                    .as_primitive::<DurationMillisecondType>()
                    .value(row)
                    .saturating_mul(1000),
                TimeUnit::Microsecond => array.as_primitive::<DurationMicrosecondType>().value(row),
                TimeUnit::Nanosecond => {
                    array.as_primitive::<DurationNanosecondType>().value(row) / 1000
                }
            };
            // The difference of two timestamps is in days and the rest.
            let days = us / 86_400_000_000;
            interval_text(0, days as i32, us % 86_400_000_000)
        }
        ArrowType::List(_) => list_text(&array.as_list::<i32>().value(row))?,
        ArrowType::LargeList(_) => list_text(&array.as_list::<i64>().value(row))?,
        _ => {
            let texts = cast(&array.slice(row, 1), &ArrowType::Utf8)?;
            texts.as_string::<i32>().value(0).to_owned()
        }
    })
}

fn list_text(elements: &ArrayRef) -> Result<String> {
    let reader = ColumnReader::new(elements, None);
    let mut out = String::from("{");
    let mut bytes = Vec::new();
    for row in 0..elements.len() {
        if row > 0 {
            out.push(',');
        }
        if elements.is_null(row) {
            out.push_str("NULL");
            continue;
        }
        bytes.clear();
        match reader.scalar(row) {
            Some((value, data_type)) => text_format::write_text(value, &data_type, &mut bytes),
            None => bytes.extend_from_slice(text_of(elements, row)?.as_bytes()),
        }
        push_array_element(&mut out, &String::from_utf8_lossy(&bytes));
    }
    out.push('}');
    Ok(out)
}

/// Appends an element of an array's text, quoted where it must be.
pub(crate) fn push_array_element(out: &mut String, element: &str) {
    let plain = !element.is_empty()
        && !element.eq_ignore_ascii_case("null")
        && !element
            .chars()
            .any(|c| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_whitespace());
    if plain {
        out.push_str(element);
        return;
    }
    out.push('"');
    for character in element.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// PostgreSQL's text of an interval (IntervalStyle postgres).
pub(crate) fn interval_text(months: i32, days: i32, us: i64) -> String {
    let mut out = String::new();
    let mut negative_before = false;
    let mut unit = |out: &mut String, count: i32, name: &str| {
        if count == 0 {
            return;
        }
        let space = if out.is_empty() { "" } else { " " };
        let plus = if negative_before && count > 0 {
            "+"
        } else {
            ""
        };
        let plural = if count == 1 { "" } else { "s" };
        let _ = write!(out, "{space}{plus}{count} {name}{plural}");
        negative_before = count < 0;
    };
    unit(&mut out, months / 12, "year");
    unit(&mut out, months % 12, "mon");
    unit(&mut out, days, "day");
    if us != 0 || out.is_empty() {
        let space = if out.is_empty() { "" } else { " " };
        let sign = match (us < 0, negative_before) {
            (true, _) => "-",
            (false, true) => "+",
            _ => "",
        };
        let magnitude = us.unsigned_abs();
        let seconds = magnitude / 1_000_000;
        let fraction = magnitude % 1_000_000;
        let _ = write!(
            out,
            "{space}{sign}{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
    }
    out
}

/// Writes rows `from..to` of a batch.
pub(crate) fn write_rows(
    batch: &RecordBatch,
    columns: &[OutputColumn],
    from: usize,
    to: usize,
    rows: &mut RowWriter,
) -> Result<usize> {
    let readers: Vec<ColumnReader<'_>> = batch
        .columns()
        .iter()
        .zip(columns)
        .map(|(array, column)| match &column.data_type {
            ColumnType::Scalar(declared) => ColumnReader::new(array, Some(declared)),
            ColumnType::Other(_) => ColumnReader::new(array, None),
        })
        .collect();
    for row in from..to {
        rows.begin_row(columns.len());
        for (reader, column) in readers.iter().zip(columns) {
            reader.write(row, column, rows)?;
        }
        rows.end_row();
        // A batch may be much more as text than it is in memory.
        if rows.bytes_buffered() >= PIECE_BYTES {
            return Ok(row + 1 - from);
        }
    }
    Ok(to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_have_postgresqls_decimal_places() {
        let scale = |text: &str| {
            let value = Numeric::parse(text).unwrap().rescale(20).unwrap();
            quotient_scale(value.mantissa(), 20)
        };
        assert_eq!(scale("1.5"), 16);
        assert_eq!(scale("9999.5"), 16);
        assert_eq!(scale("10000"), 12);
        assert_eq!(scale("0.33333"), 20);
        assert_eq!(scale("0"), 20);
    }

    #[test]
    fn intervals_print_as_in_postgresql() {
        assert_eq!(interval_text(0, 0, 0), "00:00:00");
        assert_eq!(
            interval_text(14, 3, 3_723_500_000),
            "1 year 2 mons 3 days 01:02:03.5"
        );
        assert_eq!(interval_text(0, 1, -1_000_000), "1 day -00:00:01");
        assert_eq!(interval_text(-1, 2, 0), "-1 mons +2 days");
    }

    #[test]
    fn array_elements_are_quoted_where_they_must_be() {
        let mut out = String::new();
        for element in ["a", "a b", "", "NULL", "q\"\\"] {
            push_array_element(&mut out, element);
            out.push(';');
        }
        assert_eq!(out, "a;\"a b\";\"\";\"NULL\";\"q\\\"\\\\\";");
    }
}
