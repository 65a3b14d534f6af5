//! Expected results are PostgreSQL 15's.

use super::*;

/// Reads a text as `from`, casts it to `to` and prints that.
fn cast(text: &str, from: DataType, to: DataType, context: CastContext) -> String {
    let value = parse_text(&from, text).unwrap();
    match coerce(value, &from, &to, context) {
        Ok(value) => {
            let mut out = Vec::new();
            write_text(value.as_ref(), &to, &mut out);
            String::from_utf8(out).unwrap()
        }
        Err(error) => error.to_string(),
    }
}

fn explicit(text: &str, from: DataType, to: DataType) -> String {
    cast(text, from, to, CastContext::Explicit)
}

fn assigned(text: &str, from: DataType, to: DataType) -> String {
    cast(text, from, to, CastContext::Assignment)
}

#[test]
fn floats_round_halves_to_even_and_numerics_away_from_zero() {
    for (text, float, numeric) in [
        ("0.5", "0", "1"),
        ("1.5", "2", "2"),
        ("2.5", "2", "3"),
        ("-2.5", "-2", "-3"),
        ("2.4", "2", "2"),
    ] {
        assert_eq!(explicit(text, DataType::Double, DataType::Integer), float);
        assert_eq!(explicit(text, DataType::Real, DataType::SmallInt), float);
        assert_eq!(explicit(text, DataType::NUMERIC, DataType::BigInt), numeric);
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    assert_eq!(
        assigned("40000", DataType::Integer, DataType::SmallInt),
        "smallint out of range (22003)"
    );
    assert_eq!(
        assigned("2147483647.5", DataType::NUMERIC, DataType::Integer),
        "integer out of range (22003)"
    );
    assert_eq!(
        explicit("NaN", DataType::Double, DataType::Integer),
        "integer out of range (22003)"
    );
    assert_eq!(
        explicit("9223372036854775808", DataType::Double, DataType::BigInt),
        "bigint out of range (22003)"
    );
    assert_eq!(
        explicit("1e300", DataType::Double, DataType::Real),
        "value out of range: overflow (22003)"
    );
    assert_eq!(
        explicit("1e-300", DataType::Double, DataType::Real),
        "value out of range: underflow (22003)"
    );
    let column = DataType::numeric(4, 1).unwrap();
    assert_eq!(assigned("999.94", DataType::NUMERIC, column), "999.9");
    assert!(assigned("999.95", DataType::NUMERIC, column).ends_with("(22003)"));
    assert_eq!(assigned("7", DataType::Integer, column), "7.0");
    assert_eq!(assigned("0.25", DataType::Double, column), "0.3");
}

#[test]
fn texts_are_cut_by_a_cast_and_refused_by_an_assignment() {
    let (text, short, fixed) = (DataType::Text, DataType::Varchar(3), DataType::Char(3));
    assert_eq!(explicit("abcdef", text, short), "abc");
    assert_eq!(
        assigned("abcdef", text, short),
        "value too long for type character varying(3) (22001)"
    );
    assert_eq!(assigned("abc   ", text, short), "abc");
    assert_eq!(explicit("abcdef", text, fixed), "abc");
    assert_eq!(assigned("a", text, fixed), "a  ");
    assert_eq!(explicit("a", fixed, text), "a");
    assert_eq!(explicit("12345", DataType::Integer, short), "123");
    assert_eq!(
        assigned("12345", DataType::Integer, short),
        "value too long for type character varying(3) (22001)"
    );
    assert_eq!(assigned("t", DataType::Boolean, text), "true");
}

#[test]
fn texts_become_other_types_only_when_asked_to() {
    let text = DataType::Text;
    assert_eq!(explicit(" 42 ", text, DataType::Integer), "42");
    assert_eq!(
        explicit("x", text, DataType::Integer),
        "invalid input syntax for type integer: \"x\" (22P02)"
    );
    assert_eq!(
        assigned("42", text, DataType::Integer),
        "cannot cast type text to integer (42846)"
    );
    assert_eq!(explicit("2024-01-02", text, DataType::Date), "2024-01-02");
}

#[test]
fn booleans_and_integers_convert_explicitly() {
    let (boolean, integer) = (DataType::Boolean, DataType::Integer);
    assert_eq!(explicit("t", boolean, integer), "1");
    assert_eq!(explicit("7", integer, boolean), "t");
    assert_eq!(
        assigned("7", integer, boolean),
        "cannot cast type integer to boolean (42846)"
    );
    assert_eq!(
        explicit("7", DataType::BigInt, boolean),
        "cannot cast type bigint to boolean (42846)"
    );
    assert_eq!(
        explicit("2024-01-02", DataType::Date, integer),
        "cannot cast type date to integer (42846)"
    );
}

#[test]
fn dates_and_timestamps_convert_in_utc() {
    let (date, timestamp, timestamptz) =
        (DataType::Date, DataType::Timestamp, DataType::TimestampTz);
    assert_eq!(
        assigned("2024-01-02", date, timestamp),
        "2024-01-02 00:00:00"
    );
    assert_eq!(
        assigned("2024-01-02", date, timestamptz),
        "2024-01-02 00:00:00+00"
    );
    assert_eq!(assigned("1999-12-31 23:00", timestamp, date), "1999-12-31");
    assert_eq!(
        assigned("2024-01-02 03:04:05+01", timestamptz, timestamp),
        "2024-01-02 02:04:05"
    );
    assert_eq!(assigned("-infinity", timestamp, date), "-infinity");
    assert_eq!(assigned("infinity", date, timestamp), "infinity");
    assert_eq!(
        assigned("5874897-12-31", date, timestamp),
        "date out of range for timestamp (22008)"
    );
}

#[test]
fn null_converts_to_anything() {
    let null = coerce(
        Value::Null,
        &DataType::Date,
        &DataType::Integer,
        CastContext::Assignment,
    );
    assert_eq!(null.unwrap(), Value::Null);
}

#[test]
fn an_exact_conversion_keeps_the_value_or_says_none() {
    let exact = |text: &str, from: DataType, to: DataType| {
        let value = parse_text(&from, text).unwrap();
        coerce_exact(&value, &from, &to).unwrap().is_some()
    };
    let price = DataType::numeric(12, 2).unwrap();
    assert!(exact("5", DataType::BigInt, DataType::Integer));
    assert!(!exact("5000000000", DataType::BigInt, DataType::Integer));
    assert!(exact("1.500", DataType::NUMERIC, price));
    assert!(!exact("1.505", DataType::NUMERIC, price));
    assert!(!exact("1.5", DataType::NUMERIC, DataType::Integer));
    assert!(exact("2.0", DataType::Double, DataType::Integer));
    assert!(exact("ab  ", DataType::Text, DataType::Char(2)));
    assert!(!exact("abc", DataType::Text, DataType::Varchar(2)));
    assert!(exact("2024-01-02", DataType::Timestamp, DataType::Date));
    assert!(!exact(
        "2024-01-02 03:04",
        DataType::Timestamp,
        DataType::Date
    ));
}
