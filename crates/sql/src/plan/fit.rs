//! Fitting a value into a key. An index over `integer` also serves a
//! `bigint` or `numeric` parameter: the value is brought to the column's type,
//! and when the type has no such value, it lies below all, above all, or
//! between two that it has. Comparing with that is exact, so no residual
//! condition is needed.

use std::cmp::Ordering;

use thermocline_storage::numeric::Numeric;
use thermocline_storage::types::DataType;
use thermocline_storage::value::{Value, ValueRef};

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
    let outside = if number.mantissa() < 0 {
        Fit::Below
    } else {
        Fit::Above
    };
    let Ok(floor) = number.floor() else {
        return outside;
    };
    let Some(whole) = floor.to_i64() else {
        return outside;
    };
    match integer(whole, column) {
        Fit::Exact(value) if floor.cmp(&number) != Ordering::Equal => Fit::After(value.to_owned()),
        fitted => fitted,
    }
}

/// A numeric column with a precision has keys of its scale only.
fn numeric(number: Numeric, column: DataType) -> Fit<'static> {
    let DataType::Numeric { precision, scale } = column else {
        return Fit::Exact(ValueRef::Numeric(number));
    };
    if precision == 0 {
        return Fit::Exact(ValueRef::Numeric(number));
    }
    let negative = number.mantissa() < 0;
    let outside = if negative { Fit::Below } else { Fit::Above };
    let Ok(mut rounded) = number.trunc(i32::from(scale)) else {
        return outside;
    };
    let between = rounded.cmp(&number) != Ordering::Equal;
    let Some(mut mantissa) = rounded.rescale(scale).map(Numeric::mantissa) else {
        return outside;
    };
    if between && negative {
        mantissa -= 1;
    }
    let limit = 10i128.pow(u32::from(precision));
    if mantissa <= -limit || mantissa >= limit {
        return outside;
    }
    let Ok(fitted) = Numeric::new(mantissa, scale) else {
        return outside;
    };
    rounded = fitted;
    if between {
        Fit::After(Value::Numeric(rounded))
    } else {
        Fit::Exact(ValueRef::Numeric(rounded))
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
        assert_eq!(fit(ValueRef::Integer(100), column), Fit::Above);
        assert_eq!(fit(decimal("-100"), column), Fit::Below);
    }
}
