//! Expected results are PostgreSQL 15's.

use proptest::prelude::*;

use super::Operator::{Add, Divide, Multiply, Remainder, Subtract};
use super::*;
use crate::text_format::{parse_text, write_text};

const OPERATORS: [Operator; 5] = [Add, Subtract, Multiply, Divide, Remainder];

fn value(text: &str, data_type: DataType) -> Value {
    parse_text(&data_type, text).unwrap()
}

fn shown(result: Result<Value, ValueError>) -> String {
    match result {
        Ok(value) => {
            let mut out = Vec::new();
            write_text(value.as_ref(), &DataType::Text, &mut out);
            format!("{} {}", String::from_utf8(out).unwrap(), type_name(&value))
        }
        Err(error) => error.to_string(),
    }
}

fn calculated(
    operator: Operator,
    (a, a_type): (&str, DataType),
    (b, b_type): (&str, DataType),
) -> String {
    shown(calculate(operator, &value(a, a_type), &value(b, b_type)))
}

#[test]
fn integers_stay_in_the_wider_type() {
    use DataType::{BigInt, Integer, SmallInt};
    assert_eq!(
        calculated(Add, ("2", SmallInt), ("3", SmallInt)),
        "5 smallint"
    );
    assert_eq!(
        calculated(Add, ("2", SmallInt), ("3", Integer)),
        "5 integer"
    );
    assert_eq!(
        calculated(Multiply, ("2", BigInt), ("3", SmallInt)),
        "6 bigint"
    );
    assert_eq!(
        calculated(Divide, ("7", Integer), ("2", Integer)),
        "3 integer"
    );
    assert_eq!(
        calculated(Divide, ("-7", Integer), ("2", Integer)),
        "-3 integer"
    );
    assert_eq!(
        calculated(Remainder, ("-7", Integer), ("2", Integer)),
        "-1 integer"
    );
}

#[test]
fn integers_overflow_by_their_type() {
    use DataType::{BigInt, Integer, SmallInt};
    assert_eq!(
        calculated(Add, ("32767", SmallInt), ("1", SmallInt)),
        "smallint out of range (22003)"
    );
    assert_eq!(
        calculated(Multiply, ("2147483647", Integer), ("2", Integer)),
        "integer out of range (22003)"
    );
    assert_eq!(
        calculated(Divide, ("-2147483648", Integer), ("-1", Integer)),
        "integer out of range (22003)"
    );
    assert_eq!(
        calculated(Subtract, ("-9223372036854775808", BigInt), ("1", Integer)),
        "bigint out of range (22003)"
    );
    assert_eq!(
        calculated(Divide, ("-9223372036854775808", BigInt), ("-1", BigInt)),
        "bigint out of range (22003)"
    );
    assert_eq!(
        calculated(Remainder, ("-9223372036854775808", BigInt), ("-1", BigInt)),
        "0 bigint"
    );
    for operator in [Divide, Remainder] {
        assert_eq!(
            calculated(operator, ("1", Integer), ("0", Integer)),
            "division by zero (22012)"
        );
    }
    assert_eq!(
        shown(negate(&Value::Integer(i32::MIN))),
        "integer out of range (22003)"
    );
    assert_eq!(shown(negate(&Value::SmallInt(5))), "-5 smallint");
}

#[test]
fn a_numeric_makes_numerics_and_a_float_makes_doubles() {
    use DataType::{Double, Integer, Real};
    const NUMERIC: DataType = DataType::NUMERIC;
    assert_eq!(
        calculated(Add, ("1", Integer), ("2.50", NUMERIC)),
        "3.50 numeric"
    );
    assert_eq!(
        calculated(Divide, ("1", Integer), ("3", NUMERIC)),
        "0.33333333333333333333 numeric"
    );
    assert_eq!(
        calculated(Remainder, ("5.5", NUMERIC), ("2", Integer)),
        "1.5 numeric"
    );
    assert_eq!(
        calculated(Add, ("0.5", NUMERIC), ("0.25", Double)),
        "0.75 double precision"
    );
    assert_eq!(
        calculated(Add, ("1", Integer), ("0.5", Real)),
        "1.5 double precision"
    );
    assert_eq!(calculated(Multiply, ("0.1", Real), ("3", Real)), "0.3 real");
    assert_eq!(
        calculated(Multiply, ("0.1", Double), ("3", Double)),
        "0.30000000000000004 double precision"
    );
    assert_eq!(
        calculated(Divide, ("1.5", NUMERIC), ("0", Integer)),
        "division by zero (22012)"
    );
}

#[test]
fn floats_do_not_overflow_silently() {
    use DataType::{Double, Real};
    assert_eq!(
        calculated(Multiply, ("1e308", Double), ("10", Double)),
        "value out of range: overflow (22003)"
    );
    assert_eq!(
        calculated(Multiply, ("1e-308", Double), ("1e-308", Double)),
        "value out of range: underflow (22003)"
    );
    assert_eq!(
        calculated(Multiply, ("1e38", Real), ("10", Real)),
        "value out of range: overflow (22003)"
    );
    assert_eq!(
        calculated(Divide, ("1", Double), ("0", Double)),
        "division by zero (22012)"
    );
    assert_eq!(
        calculated(Divide, ("NaN", Double), ("0", Double)),
        "NaN double precision"
    );
    assert_eq!(
        calculated(Add, ("inf", Double), ("1", Double)),
        "Infinity double precision"
    );
    assert_eq!(
        calculated(Remainder, ("1", Double), ("1", Double)),
        "operator does not exist: double precision % double precision (42883)"
    );
}

#[test]
fn dates_move_by_days() {
    use DataType::{Date, Integer, Timestamp};
    let day = ("2024-02-28", Date);
    assert_eq!(calculated(Add, day, ("2", Integer)), "2024-03-01 date");
    assert_eq!(calculated(Add, ("2", Integer), day), "2024-03-01 date");
    assert_eq!(
        calculated(Subtract, day, ("59", Integer)),
        "2023-12-31 date"
    );
    assert_eq!(calculated(Subtract, ("2024-03-01", Date), day), "2 integer");
    assert_eq!(
        calculated(Add, ("infinity", Date), ("1", Integer)),
        "infinity date"
    );
    assert_eq!(
        calculated(Subtract, ("infinity", Date), day),
        "cannot subtract infinite dates (22008)"
    );
    assert_eq!(
        calculated(Add, ("5874897-12-31", Date), ("1", Integer)),
        "date out of range (22008)"
    );
    assert_eq!(
        calculated(Multiply, day, ("2", Integer)),
        "operator does not exist: date * integer (42883)"
    );
    assert_eq!(result_type(Subtract, &Timestamp, &Timestamp), None);
    assert_eq!(result_type(Add, &Date, &Date), None);
}

#[test]
fn null_makes_null() {
    let null = calculate(Add, &Value::Null, &Value::Integer(1));
    assert_eq!(null.unwrap(), Value::Null);
    assert_eq!(negate(&Value::Null).unwrap(), Value::Null);
}

#[test]
fn results_have_the_type_that_was_promised() {
    let samples = [
        (DataType::Boolean, "t"),
        (DataType::SmallInt, "3"),
        (DataType::Integer, "3"),
        (DataType::BigInt, "3"),
        (DataType::Real, "3"),
        (DataType::Double, "3"),
        (DataType::NUMERIC, "3"),
        (DataType::Text, "3"),
        (DataType::Date, "2024-01-01"),
        (DataType::Timestamp, "2024-01-01"),
    ];
    for operator in OPERATORS {
        for (left, a) in samples {
            for (right, b) in samples {
                let result = calculate(operator, &value(a, left), &value(b, right));
                let promised = result_type(operator, &left, &right);
                let context = format!("{left} {} {right}", operator.symbol());
                match (promised, result) {
                    (Some(promised), Ok(result)) => {
                        assert_eq!(type_name(&result), promised.base_name(), "{context}");
                    }
                    (None, Err(error)) => assert_eq!(error.sqlstate, "42883", "{context}"),
                    other => panic!("{context}: {other:?}"),
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn integers_agree_with_wider_arithmetic(a: i32, b: i32) {
        for operator in OPERATORS {
            let (wide_a, wide_b) = (i128::from(a), i128::from(b));
            let expected = match operator {
                Add => Some(wide_a + wide_b),
                Subtract => Some(wide_a - wide_b),
                Multiply => Some(wide_a * wide_b),
                Divide => wide_a.checked_div(wide_b),
                Remainder => wide_a.checked_rem(wide_b),
            };
            let result = calculate(operator, &Value::Integer(a), &Value::Integer(b));
            match expected.map(i32::try_from) {
                Some(Ok(expected)) => prop_assert_eq!(result.unwrap(), Value::Integer(expected)),
                Some(Err(_)) => prop_assert_eq!(result.unwrap_err().sqlstate, "22003"),
                None => prop_assert_eq!(result.unwrap_err().sqlstate, "22012"),
            }
        }
    }
}
