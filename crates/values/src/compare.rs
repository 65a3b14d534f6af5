//! Comparison of values of different types, with PostgreSQL's promotion:
//! integers with numerics as numerics, anything with a float as doubles, dates
//! with timestamps as timestamps (in UTC). Allocates nothing.

use std::cmp::Ordering;

use crate::datetime::DAY_US;
use crate::numeric::Numeric;
use crate::numeric::long::{self, LONG};
use crate::types::DataType;
use crate::value::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY,
    ValueRef, compare_doubles,
};

/// How two values compare; `None` when one is NULL or they are not comparable.
#[must_use]
#[inline]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    if a.is_null() || b.is_null() {
        return None;
    }
    if std::mem::discriminant(&a) == std::mem::discriminant(&b) {
        return Some(a.cmp(&b));
    }
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        return Some(a.cmp(&b));
    }
    if let (Some(a), Some(b)) = (exact(a), exact(b)) {
        return Some(a.cmp(&b));
    }
    if let (Some(a), Some(b)) = (double(a), double(b)) {
        return Some(compare_doubles(a, b));
    }
    Some(moment(a)?.cmp(&moment(b)?))
}

/// Whether values of the two types can be compared at all.
#[must_use]
pub fn is_comparable(a: &DataType, b: &DataType) -> bool {
    let is_moment = |data_type: &DataType| *data_type == DataType::Date || data_type.is_timestamp();
    (a.is_number() && b.is_number())
        || (a.is_text() && b.is_text())
        || (is_moment(a) && is_moment(b))
        || a.oid() == b.oid()
}

/// The type that values of both types convert to without being asked, as the
/// branches of `CASE`, `COALESCE` and `GREATEST` need it.
#[must_use]
pub fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b {
        return Some(*a);
    }
    let rank = |data_type: &DataType| match data_type {
        DataType::SmallInt => Some((0, 0)),
        DataType::Integer => Some((0, 1)),
        DataType::BigInt => Some((0, 2)),
        DataType::Numeric { .. } => Some((0, 3)),
        DataType::Real => Some((0, 4)),
        DataType::Double => Some((0, 5)),
        DataType::Char(_) => Some((1, 0)),
        DataType::Varchar(_) => Some((1, 1)),
        DataType::Text => Some((1, 2)),
        DataType::Date => Some((2, 0)),
        DataType::Timestamp | DataType::TimestampTo(_) => Some((2, 1)),
        DataType::TimestampTz | DataType::TimestampTzTo(_) => Some((2, 2)),
        DataType::Boolean | DataType::Bytea | DataType::Uuid | DataType::Other { .. } => None,
    };
    let ((a_kind, a_rank), (b_kind, b_rank)) = (rank(a)?, rank(b)?);
    let wider = if a_rank > b_rank { a } else { b };
    // Modifiers that differ are dropped.
    (a_kind == b_kind).then_some(match wider {
        DataType::Numeric { .. } => DataType::NUMERIC,
        DataType::Varchar(_) => DataType::Varchar(0),
        DataType::Char(_) => DataType::Char(0),
        DataType::TimestampTo(_) => DataType::Timestamp,
        DataType::TimestampTzTo(_) => DataType::TimestampTz,
        other => *other,
    })
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::SmallInt(value) => Some(value.into()),
        ValueRef::Integer(value) => Some(value.into()),
        ValueRef::BigInt(value) => Some(value),
        _ => None,
    }
}

/// An integer or a numeric, as a numeric.
fn exact(value: ValueRef<'_>) -> Option<ValueRef<'_>> {
    match value {
        ValueRef::Numeric(_) | ValueRef::Other(LONG, _) => Some(value),
        other => integer(other).map(|number| ValueRef::Numeric(Numeric::from(number))),
    }
}

fn double(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Real(value) => Some(value.into()),
        ValueRef::Double(value) => Some(value),
        other => match exact(other)? {
            ValueRef::Numeric(number) => Some(number.to_f64()),
            ValueRef::Other(_, bytes) => Some(long::to_f64(bytes)),
            _ => None,
        },
    }
}

/// Microseconds since 2000-01-01, wide enough for every date.
fn moment(value: ValueRef<'_>) -> Option<i128> {
    match value {
        ValueRef::Date(DATE_INFINITY) => Some(i128::MAX),
        ValueRef::Date(DATE_NEGATIVE_INFINITY) => Some(i128::MIN),
        ValueRef::Date(days) => Some(i128::from(days) * i128::from(DAY_US)),
        ValueRef::Timestamp(at) | ValueRef::TimestampTz(at) => Some(match at {
            // Some dates lie beyond 64 bits of microseconds.
            TIMESTAMP_INFINITY => i128::MAX,
            TIMESTAMP_NEGATIVE_INFINITY => i128::MIN,
            _ => at.into(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_format::parse_text;
    use crate::value::Value;

    fn compared(a: &str, a_type: DataType, b: &str, b_type: DataType) -> Option<Ordering> {
        let (a, b): (Value, Value) = (
            parse_text(&a_type, a).unwrap(),
            parse_text(&b_type, b).unwrap(),
        );
        compare(a.as_ref(), b.as_ref())
    }

    #[test]
    fn numbers_compare_by_value_across_types() {
        use DataType as T;
        let equal = Some(Ordering::Equal);
        assert_eq!(compared("5", T::SmallInt, "5", T::BigInt), equal);
        assert_eq!(compared("5", T::Integer, "5.00", T::NUMERIC), equal);
        assert_eq!(compared("0.5", T::NUMERIC, "0.5", T::Double), equal);
        // 0.1 as a real is not 0.1 as a double, in PostgreSQL as here.
        assert_eq!(
            compared("0.1", T::Real, "0.1", T::Double),
            Some(Ordering::Greater)
        );
        assert_eq!(
            compared("9223372036854775807", T::BigInt, "NaN", T::Double),
            Some(Ordering::Less)
        );
        // Exact where doubles would be equal.
        assert_eq!(
            compared(
                "9007199254740993",
                T::BigInt,
                "9007199254740992",
                T::NUMERIC
            ),
            Some(Ordering::Greater)
        );
    }

    #[test]
    fn dates_compare_with_timestamps() {
        use DataType as T;
        assert_eq!(
            compared("2024-01-01", T::Date, "2024-01-01", T::Timestamp),
            Some(Ordering::Equal)
        );
        assert_eq!(
            compared("5874897-01-01", T::Date, "infinity", T::Timestamp),
            Some(Ordering::Less)
        );
        assert_eq!(
            compared("infinity", T::Date, "infinity", T::TimestampTz),
            Some(Ordering::Equal)
        );
    }

    #[test]
    fn the_common_type_is_the_wider_without_its_modifier() {
        use DataType as T;
        let price = T::numeric(12, 2).unwrap();
        assert_eq!(common_type(&price, &price), Some(price));
        assert_eq!(common_type(&price, &T::Integer), Some(T::NUMERIC));
        assert_eq!(common_type(&T::Real, &price), Some(T::Real));
        assert_eq!(
            common_type(&T::Varchar(3), &T::Varchar(4)),
            Some(T::Varchar(0))
        );
        assert_eq!(common_type(&T::Char(3), &T::Text), Some(T::Text));
        assert_eq!(common_type(&T::Date, &T::TimestampTz), Some(T::TimestampTz));
        assert_eq!(common_type(&T::Date, &T::Integer), None);
        assert_eq!(common_type(&T::Boolean, &T::Integer), None);
    }

    #[test]
    fn null_and_strangers_do_not_compare() {
        assert_eq!(compare(ValueRef::Null, ValueRef::Null), None);
        assert_eq!(compare(ValueRef::Integer(1), ValueRef::Text("1")), None);
        assert!(!is_comparable(&DataType::Integer, &DataType::Text));
        assert!(is_comparable(&DataType::Char(3), &DataType::Text));
        assert!(is_comparable(&DataType::Date, &DataType::TimestampTz));
    }
}
