//! What a filter asks of a column table's columns, as the storage is asked it: ranges of the integers, the
//! keys or the bytes that a column's values are kept as. Only where their order is PostgreSQL's; of what is
//! not asked here nothing is left out, and the filter above the scan is asked in any case.

use std::fmt::Write;

use thermocline_analytical::pushed::{Asked, Comparison, Condition, conditions};
use thermocline_engine::catalog::TableDef;
use thermocline_query::datum::Datum;
use thermocline_storage::columns::{ByteRange, ColumnTest, Test, float_key};
use thermocline_values::types::DataType;

use datafusion::logical_expr::Expr;

const DAY_MICROSECONDS: i128 = 86_400_000_000;

/// A range of integers, ends included.
type Range = (i64, i64);

/// What the filters of a scan ask, and how EXPLAIN shows it.
#[derive(Default)]
pub(super) struct ScanFilter {
    pub tests: Vec<ColumnTest>,
    pub shown: String,
}

impl ScanFilter {
    /// What of these filters a scan of the table can be asked.
    pub fn of<'e>(table: &TableDef, filters: impl IntoIterator<Item = &'e Expr>) -> Self {
        let place = |name: &str| table.columns.iter().position(|column| column.name == name);
        let oid = |name: &str| Some(table.columns.get(place(name)?)?.data_type.oid());
        let mut filter = Self::default();
        for condition in filters.into_iter().flat_map(|f| conditions(f, &oid)) {
            let Some(column) = place(&condition.column) else {
                continue;
            };
            if let Some(test) = test_of(&table.columns[column].data_type, &condition.asked) {
                filter.show(&condition);
                filter.add(column, test);
            }
        }
        filter
    }

    fn show(&mut self, condition: &Condition) {
        if !self.shown.is_empty() {
            self.shown.push_str(" AND ");
        }
        let column = &condition.column;
        // Writing to a text does not fail.
        let _ = match &condition.asked {
            Asked::Null(true) => write!(self.shown, "{column} IS NULL"),
            Asked::Null(false) => write!(self.shown, "{column} IS NOT NULL"),
            Asked::Compare(comparison, _) => write!(self.shown, "{column} {}", comparison.sign()),
            Asked::In(values) => write!(self.shown, "{column} IN {}", values.len()),
        };
    }

    /// Two questions to one column are one, where both are ranges of integers.
    fn add(&mut self, column: usize, test: Test) {
        let mut of_column = self.tests.iter_mut().filter(|test| test.column == column);
        match (&test, of_column.next().map(|test| &mut test.test)) {
            (Test::Integers(new), Some(Test::Integers(ranges)))
            | (Test::Floats(new), Some(Test::Floats(ranges))) => *ranges = both(ranges, new),
            _ => self.tests.push(ColumnTest { column, test }),
        }
    }
}

/// What is in ranges of both.
fn both(a: &[Range], b: &[Range]) -> Vec<Range> {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    let common = pairs.map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
    common.filter(|(low, high)| low <= high).collect()
}

fn test_of(of: &DataType, asked: &Asked) -> Option<Test> {
    match asked {
        // Of a row PostgreSQL asks its columns.
        Asked::Null(_) if matches!(of, DataType::Other { .. }) => None,
        Asked::Null(wanted) => Some(Test::Null(*wanted)),
        Asked::Compare(comparison, value) => compared(of, *comparison, value),
        Asked::In(values) => {
            let tests = values.iter();
            let tests = tests.map(|value| compared(of, Comparison::Equal, value));
            let tests: Vec<Test> = tests.collect::<Option<_>>()?;
            any_of(of, tests)
        }
    }
}

/// What is true where one of these is: equalities with constants.
fn any_of(of: &DataType, tests: Vec<Test>) -> Option<Test> {
    let (mut integers, mut bytes) = (Vec::new(), Vec::new());
    for test in tests {
        match test {
            Test::Integers(ranges) | Test::Floats(ranges) => integers.extend(ranges),
            Test::Bytes(ranges) => bytes.extend(ranges),
            Test::Null(_) => return None,
        }
    }
    integers.sort_unstable();
    integers.dedup();
    bytes.sort_unstable();
    bytes.dedup();
    Some(match of {
        DataType::Real | DataType::Double => Test::Floats(integers),
        _ if is_bytes(of) => Test::Bytes(bytes),
        _ => Test::Integers(integers),
    })
}

fn is_bytes(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Text
            | DataType::Varchar(_)
            | DataType::Char(_)
            | DataType::Bytea
            | DataType::Uuid
    )
}

fn compared(of: &DataType, comparison: Comparison, value: &Datum) -> Option<Test> {
    let integers = |number: i128, per: i128| {
        let ranges = ranges(comparison, number, per, None);
        Some(Test::Integers(ranges))
    };
    let bytes = |value: &[u8]| Some(Test::Bytes(byte_ranges(comparison, value)));
    match (of, value) {
        (DataType::Boolean, Datum::Bool(value)) => integers(i128::from(*value), 1),
        (DataType::SmallInt | DataType::Integer | DataType::BigInt, value) => {
            integers(whole_number(value)?, 1)
        }
        (DataType::Date, Datum::Date(days)) => integers(i128::from(*days), 1),
        // The infinities of a timestamp are no moment of a day.
        (DataType::Date, Datum::Timestamp(at)) if ![i64::MIN, i64::MAX].contains(at) => {
            integers(i128::from(*at), DAY_MICROSECONDS)
        }
        (DataType::Timestamp | DataType::TimestampTo(_), Datum::Timestamp(at))
        | (DataType::TimestampTz | DataType::TimestampTzTo(_), Datum::TimestampTz(at)) => {
            integers(i128::from(*at), 1)
        }
        (DataType::Timestamp | DataType::TimestampTo(_), Datum::Date(days))
            if ![i32::MIN, i32::MAX].contains(days) =>
        {
            integers(i128::from(*days) * DAY_MICROSECONDS, 1)
        }
        (DataType::Numeric { .. }, Datum::Numeric(value)) => {
            let nan = not_a_number(of)?;
            let (unscaled, scale) = value.to_parts()?;
            let more = 10i128.checked_pow(u32::from(of.small_scale()?))?;
            let per = 10i128.checked_pow(u32::from(scale))?;
            let ranges = ranges(comparison, unscaled.checked_mul(more)?, per, Some(nan));
            Some(Test::Integers(ranges))
        }
        (DataType::Real | DataType::Double, Datum::Float4(value)) => {
            Some(floats(comparison, f64::from(*value)))
        }
        (DataType::Real | DataType::Double, Datum::Float8(value)) => {
            Some(floats(comparison, *value))
        }
        (DataType::Text | DataType::Varchar(_), Datum::Text(text)) => bytes(text.as_bytes()),
        // Blanks at the end count for nothing, and are not kept.
        (DataType::Char(_), Datum::Text(text)) => bytes(text.trim_end_matches(' ').as_bytes()),
        (DataType::Bytea, Datum::Bytea(value)) => bytes(value),
        (DataType::Uuid, Datum::Uuid(value)) => bytes(value),
        _ => None,
    }
}

fn whole_number(value: &Datum) -> Option<i128> {
    Some(match value {
        Datum::Int2(value) => i128::from(*value),
        Datum::Int4(value) => i128::from(*value),
        Datum::Int8(value) => i128::from(*value),
        _ => return None,
    })
}

/// What NaN is kept as in a numeric column whose values are integers of up to eight bytes: the
/// greatest of them, as it is the greatest number.
pub(super) fn not_a_number(of: &DataType) -> Option<i64> {
    match (of.small_scale(), of.fixed_width()) {
        (Some(_), Some(4)) => Some(i64::from(i32::MAX)),
        (Some(_), Some(8)) => Some(i64::MAX),
        _ => None,
    }
}

fn floats(comparison: Comparison, value: f64) -> Test {
    // All have a key, NaN and the infinities too.
    let key = i128::from(float_key(value));
    Test::Floats(ranges(comparison, key, 1, None))
}

/// The integers that compare so with `number` / `per`. `nan` is above all numbers, where there is one.
fn ranges(comparison: Comparison, number: i128, per: i128, nan: Option<i64>) -> Vec<Range> {
    let floor = number.div_euclid(per);
    let is_whole = number.rem_euclid(per) == 0;
    let (below, above) = (floor.saturating_sub(1), floor.saturating_add(1));
    let least = i128::from(i64::MIN);
    let top = i128::from(nan.unwrap_or(i64::MAX));
    // The greatest number.
    let greatest = top - i128::from(nan.is_some());
    let up_to = |high: i128| (least, high.min(greatest));
    let from = |low: i128| match nan {
        // It is above numbers that have no room here.
        Some(_) => (low.clamp(least, top), top),
        None => (low.max(least), top),
    };
    let bounds: &[(i128, i128)] = match (comparison, is_whole) {
        (Comparison::Equal, true) => &[(floor.max(least), floor.min(greatest))],
        (Comparison::Equal, false) => &[],
        (Comparison::Other, true) => &[up_to(below), from(above)],
        (Comparison::Other, false) => &[(least, top)],
        (Comparison::Less, true) => &[up_to(below)],
        (Comparison::Less | Comparison::AtMost, _) => &[up_to(floor)],
        (Comparison::AtLeast, true) => &[from(floor)],
        (Comparison::AtLeast | Comparison::Greater, _) => &[from(above)],
    };
    let bounds = bounds.iter().filter(|(low, high)| low <= high);
    let range =
        |(low, high): &(i128, i128)| Some(((*low).try_into().ok()?, (*high).try_into().ok()?));
    bounds.filter_map(range).collect()
}

/// The strings that compare so with `value`, byte by byte.
fn byte_ranges(comparison: Comparison, value: &[u8]) -> Vec<ByteRange> {
    // The next string there is.
    let after = [value, b"\0"].concat();
    let value = value.to_vec();
    match comparison {
        Comparison::Equal => vec![(value, Some(after))],
        Comparison::Other => vec![(Vec::new(), Some(value)), (after, None)],
        Comparison::Less => vec![(Vec::new(), Some(value))],
        Comparison::AtMost => vec![(Vec::new(), Some(after))],
        Comparison::Greater => vec![(after, None)],
        Comparison::AtLeast => vec![(value, None)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARISONS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::Other,
        Comparison::Less,
        Comparison::AtMost,
        Comparison::Greater,
        Comparison::AtLeast,
    ];

    fn holds<T: PartialOrd>(comparison: Comparison, a: &T, b: &T) -> bool {
        match comparison {
            Comparison::Equal => a == b,
            Comparison::Other => a != b,
            Comparison::Less => a < b,
            Comparison::AtMost => a <= b,
            Comparison::Greater => a > b,
            Comparison::AtLeast => a >= b,
        }
    }

    fn is_in(ranges: &[Range], value: i64) -> bool {
        ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&value))
    }

    #[test]
    fn ranges_are_what_compares_so() {
        for comparison in COMPARISONS {
            for number in -25..25 {
                for per in [1, 4, 10] {
                    let ranges = ranges(comparison, number, per, None);
                    for value in -30..30 {
                        let wanted = holds(comparison, &(i128::from(value) * per), &number);
                        assert_eq!(
                            is_in(&ranges, value),
                            wanted,
                            "{value} {comparison:?} {number}/{per}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn not_a_number_is_above_all_numbers() {
        let nan = i64::from(i32::MAX);
        for comparison in COMPARISONS {
            let wanted = !matches!(
                comparison,
                Comparison::Equal | Comparison::Less | Comparison::AtMost
            );
            for number in [0, i128::from(nan) - 1, 1 << 100, -(1 << 100)] {
                let ranges = ranges(comparison, number, 1, Some(nan));
                assert_eq!(is_in(&ranges, nan), wanted, "NaN {comparison:?} {number}");
            }
        }
    }

    #[test]
    fn strings_compare_byte_by_byte() {
        let values: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"ab", b"b", b"\xff\xff"];
        for comparison in COMPARISONS {
            for bound in values {
                let ranges = byte_ranges(comparison, bound);
                for value in values {
                    let is_in = ranges.iter().any(|(low, high)| {
                        value >= &low[..] && high.as_ref().is_none_or(|high| value < &high[..])
                    });
                    assert_eq!(
                        is_in,
                        holds(comparison, &value, &bound),
                        "{value:?} {comparison:?} {bound:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn two_questions_to_a_column_are_one() {
        assert_eq!(both(&[(0, 10), (20, 30)], &[(5, 25)]), [(5, 10), (20, 25)]);
        assert_eq!(both(&[(0, 10)], &[(11, 12)]), []);
    }
}
