//! Fitting a value into a key. An index over `integer` also serves a
//! `bigint` or `numeric` parameter: the value is brought to the column's type,
//! and when the type has no such value, it lies below all, above all, or
//! between two that it has. Comparing with that is exact, so no residual
//! condition is needed.

use std::cmp::Ordering;

use thermocline_values::numeric::Numeric;
use thermocline_values::numeric::long::{self, LONG};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use crate::expr::base_type;

/// Where a value lies among the values of a column's type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fit<'a> {
    /// It is this value.
    Exact(ValueRef<'a>),
    /// It lies between this value and the next.
    After(Value),
    /// Below all.
    Below,
    /// Above all.
    Above,
    /// NULL: equal to nothing.
    Null,
}

/// Whether values of type `value` can be looked up in an index whose column is
/// of type `column`, by [`fit`].
pub(crate) fn fits(value: DataType, column: DataType) -> bool {
    if base_type(value) == base_type(column) {
        return true;
    }
    match column {
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            value.is_integer() || matches!(value, DataType::Numeric { .. })
        }
        DataType::Numeric { .. } => value.is_integer(),
        DataType::Text | DataType::Varchar(_) => value.is_text(),
        _ => false,
    }
}

/// Fits `value` into the type of `column`; the two types passed [`fits`].
pub(crate) fn fit(value: ValueRef<'_>, column: DataType) -> Fit<'_> {
    match (value, column) {
        (ValueRef::Null, _) => Fit::Null,
        (ValueRef::SmallInt(number), _) if column.is_integer() => integer(number.into(), column),
        (ValueRef::Integer(number), _) if column.is_integer() => integer(number.into(), column),
        (ValueRef::BigInt(number), _) if column.is_integer() => integer(number, column),
        (ValueRef::Numeric(number), _) if column.is_integer() => numeric_to_integer(number, column),
        (ValueRef::SmallInt(number), DataType::Numeric { .. }) => {
            numeric(Numeric::from(i64::from(number)), column)
        }
        (ValueRef::Integer(number), DataType::Numeric { .. }) => {
            numeric(Numeric::from(i64::from(number)), column)
        }
        (ValueRef::BigInt(number), DataType::Numeric { .. }) => {
            numeric(Numeric::from(number), column)
        }
        (ValueRef::Numeric(number), DataType::Numeric { .. }) => numeric(number, column),
        (ValueRef::Other(LONG, bytes), _) => long_numeric(value, bytes, column),
        (ValueRef::Text(text), DataType::Char(_)) => {
            Fit::Exact(ValueRef::Text(text.trim_end_matches(' ')))
        }
        _ => Fit::Exact(value),
    }
}

fn integer(number: i64, column: DataType) -> Fit<'static> {
    let narrowed = match column {
        DataType::SmallInt => i16::try_from(number).ok().map(ValueRef::SmallInt),
        DataType::Integer => i32::try_from(number).ok().map(ValueRef::Integer),
        _ => Some(ValueRef::BigInt(number)),
    };
    match narrowed {
        Some(value) => Fit::Exact(value),
        None if number < 0 => Fit::Below,
        None => Fit::Above,
    }
}

fn numeric_to_integer(number: Numeric, column: DataType) -> Fit<'static> {
    let whole = number
        .floor()
        .ok()
        .and_then(|floor| Some((floor, floor.to_i64()?)));
    let Some((floor, whole)) = whole else {
        return outside(number.mantissa() < 0, column);
    };
    match integer(whole, column) {
        Fit::Exact(value) if floor.cmp(&number) != Ordering::Equal => Fit::After(value.to_owned()),
        fitted => fitted,
    }
}

/// A numeric column of a fixed width has keys of its scale only, and NaN above them.
fn numeric(number: Numeric, column: DataType) -> Fit<'static> {
    let (DataType::Numeric { precision, .. }, Some(scale)) = (column, column.small_scale()) else {
        return Fit::Exact(ValueRef::Numeric(number));
    };
    let negative = number.mantissa() < 0;
    let Ok(rounded) = number.trunc(i32::from(scale)) else {
        return outside(negative, column);
    };
    let between = rounded.cmp(&number) != Ordering::Equal;
    let Some(mut mantissa) = rounded.rescale(scale).map(Numeric::mantissa) else {
        return outside(negative, column);
    };
    if between && negative {
        mantissa -= 1;
    }
    let limit = 10i128.pow(u32::from(precision));
    if mantissa <= -limit || mantissa >= limit {
        return outside(negative, column);
    }
    match Numeric::new(mantissa, scale) {
        Ok(fitted) if between => Fit::After(Value::Numeric(fitted)),
        Ok(fitted) => Fit::Exact(ValueRef::Numeric(fitted)),
        Err(_) => outside(negative, column),
    }
}

/// A finite number that a column has not, nor any that is further from zero.
fn outside(negative: bool, column: DataType) -> Fit<'static> {
    match (negative, column, column.small_scale()) {
        (true, ..) => Fit::Below,
        (false, DataType::Numeric { precision, .. }, Some(scale)) => {
            match Numeric::new(10i128.pow(u32::from(precision)) - 1, scale) {
                Ok(greatest) => Fit::After(Value::Numeric(greatest)),
                Err(_) => Fit::Above,
            }
        }
        _ => Fit::Above,
    }
}

/// A numeric beyond the small form.
fn long_numeric<'a>(value: ValueRef<'a>, bytes: &[u8], column: DataType) -> Fit<'a> {
    let scale = match column {
        DataType::Numeric { .. } => match column.small_scale() {
            Some(scale) => scale,
            // Keys of all numbers have the one order.
            None => return Fit::Exact(value),
        },
        _ => 0,
    };
    match bytes {
        // Numerics have it, and integers nothing above them.
        long::NAN_BYTES if !column.is_integer() => return Fit::Exact(value),
        long::NAN_BYTES | long::INFINITY_BYTES => return outside(false, column),
        long::NEGATIVE_INFINITY_BYTES => return outside(true, column),
        _ => {}
    }
    if let Some(number) = long::narrow(bytes) {
        return match column {
            DataType::Numeric { .. } => numeric(number, column),
            _ => numeric_to_integer(number, column),
        };
    }
    // It has more digits than the column: as its whole units, and something behind them.
    let mut text = Vec::new();
    long::write_text(bytes, &mut text);
    let negative = text.first() == Some(&b'-');
    if let Some(point) = text.iter().position(|byte| *byte == b'.') {
        text.truncate(point + 1 + usize::from(scale));
    }
    let text = String::from_utf8(text).unwrap_or_default();
    let Ok(below) = Numeric::parse(text.trim_end_matches('.')) else {
        return outside(negative, column);
    };
    let whole = match negative {
        true => Numeric::new(-1, scale).and_then(|unit| below.add(unit)),
        false => Ok(below),
    };
    let fitted = match (whole, column) {
        (Ok(whole), DataType::Numeric { .. }) => numeric(whole, column),
        (Ok(whole), _) => numeric_to_integer(whole, column),
        (Err(_), _) => return outside(negative, column),
    };
    match fitted {
        Fit::Exact(whole) => Fit::After(whole.to_owned()),
        outside => outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> ValueRef<'static> {
        ValueRef::Numeric(Numeric::parse(text).unwrap())
    }

    #[test]
    fn integers_narrow_or_fall_outside() {
        assert_eq!(
            fit(ValueRef::BigInt(7), DataType::Integer),
            Fit::Exact(ValueRef::Integer(7))
        );
        assert_eq!(
            fit(ValueRef::BigInt(1 << 40), DataType::Integer),
            Fit::Above
        );
        assert_eq!(
            fit(ValueRef::BigInt(-(1 << 40)), DataType::Integer),
            Fit::Below
        );
        assert_eq!(fit(ValueRef::Null, DataType::Integer), Fit::Null);
    }

    #[test]
    fn a_fraction_lies_between_two_integers() {
        assert_eq!(
            fit(decimal("2.5"), DataType::Integer),
            Fit::After(Value::Integer(2))
        );
        assert_eq!(
            fit(decimal("-2.5"), DataType::Integer),
            Fit::After(Value::Integer(-3))
        );
        assert_eq!(
            fit(decimal("2.00"), DataType::Integer),
            Fit::Exact(ValueRef::Integer(2))
        );
    }

    #[test]
    fn a_numeric_lies_between_two_of_the_columns_scale() {
        let column = DataType::Numeric {
            precision: 4,
            scale: 2,
        };
        assert_eq!(fit(decimal("1.5"), column), Fit::Exact(decimal("1.50")));
        assert_eq!(
            fit(decimal("1.505"), column),
            Fit::After(decimal("1.50").to_owned())
        );
        assert_eq!(
            fit(decimal("-1.505"), column),
            Fit::After(decimal("-1.51").to_owned())
        );
        // NaN is above all numbers.
        assert_eq!(
            fit(ValueRef::Integer(100), column),
            Fit::After(decimal("99.99").to_owned())
        );
        assert_eq!(fit(decimal("-100"), column), Fit::Below);
    }

    #[test]
    fn a_long_numeric_lies_between_two_or_outside() {
        let column = DataType::Numeric {
            precision: 4,
            scale: 2,
        };
        let greatest = || Fit::After(decimal("99.99").to_owned());
        let nines = "9".repeat(40);
        let long = |text: &str| Value::Other(LONG, long::from_text(text).unwrap());
        let fraction = |whole: &str| long(&format!("{whole}.00{nines}"));
        for (value, in_numeric, in_integer) in [
            (
                long("NaN"),
                Fit::Exact(ValueRef::Other(LONG, long::NAN_BYTES)),
                Fit::Above,
            ),
            (long("Infinity"), greatest(), Fit::Above),
            (long("-Infinity"), Fit::Below, Fit::Below),
            (long(&nines), greatest(), Fit::Above),
            (long(&format!("-{nines}")), Fit::Below, Fit::Below),
            (
                fraction("7"),
                Fit::After(decimal("7.00").to_owned()),
                Fit::After(Value::Integer(7)),
            ),
            (
                fraction("-7"),
                Fit::After(decimal("-7.01").to_owned()),
                Fit::After(Value::Integer(-8)),
            ),
            (
                fraction("-0"),
                Fit::After(decimal("-0.01").to_owned()),
                Fit::After(Value::Integer(-1)),
            ),
            (fraction("100"), greatest(), Fit::After(Value::Integer(100))),
            // Its zeros alone make it long.
            (
                long(&format!("7.{}", "0".repeat(50))),
                Fit::Exact(decimal("7.00")),
                Fit::Exact(ValueRef::Integer(7)),
            ),
        ] {
            assert_eq!(fit(value.as_ref(), column), in_numeric, "{value:?}");
            assert_eq!(
                fit(value.as_ref(), DataType::Integer),
                in_integer,
                "{value:?}"
            );
            assert_eq!(
                fit(value.as_ref(), DataType::NUMERIC),
                Fit::Exact(value.as_ref())
            );
        }
    }
}
