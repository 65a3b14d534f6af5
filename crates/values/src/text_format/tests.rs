//! Expected texts are what PostgreSQL 15 prints.

use proptest::prelude::*;

use super::*;

/// Reads a text and prints it again, or shows the error.
fn through(data_type: DataType, text: &str) -> String {
    match parse_text(&data_type, text) {
        Ok(value) => {
            let mut out = Vec::new();
            write_text(value.as_ref(), &data_type, &mut out);
            String::from_utf8(out).unwrap()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn booleans_have_many_names() {
    for text in ["t", "true", "TRUE", "tr", "y", "yes", "on", "1", " true "] {
        assert_eq!(through(DataType::Boolean, text), "t", "{text}");
    }
    for text in ["f", "false", "n", "no", "off", "of", "0"] {
        assert_eq!(through(DataType::Boolean, text), "f", "{text}");
    }
    for text in ["", "o", "2", "truex", "maybe"] {
        let expected = format!("invalid input syntax for type boolean: \"{text}\" (22P02)");
        assert_eq!(through(DataType::Boolean, text), expected);
    }
}

#[test]
fn integers_are_checked_against_their_range() {
    assert_eq!(through(DataType::Integer, " -42\n"), "-42");
    assert_eq!(through(DataType::Integer, "+7"), "7");
    assert_eq!(through(DataType::SmallInt, "-32768"), "-32768");
    assert_eq!(
        through(DataType::BigInt, "-9223372036854775808"),
        "-9223372036854775808"
    );
    assert_eq!(
        through(DataType::Integer, "abc"),
        "invalid input syntax for type integer: \"abc\" (22P02)"
    );
    assert_eq!(
        through(DataType::Integer, "1.5"),
        "invalid input syntax for type integer: \"1.5\" (22P02)"
    );
    assert_eq!(
        through(DataType::Integer, "2147483648"),
        "value \"2147483648\" is out of range for type integer (22003)"
    );
    assert_eq!(
        through(DataType::SmallInt, "99999999999999999999"),
        "value \"99999999999999999999\" is out of range for type smallint (22003)"
    );
    for text in ["", "-", "+-1", "1 2", "0x10"] {
        assert!(
            through(DataType::BigInt, text).ends_with("(22P02)"),
            "{text}"
        );
    }
}

#[test]
fn doubles_print_as_postgresqls_shortest() {
    for (text, printed) in [
        ("0", "0"),
        ("-0", "-0"),
        ("1", "1"),
        ("0.1", "0.1"),
        ("1e14", "100000000000000"),
        ("1e15", "1e+15"),
        ("123456789012345", "123456789012345"),
        ("1234567890123456", "1.234567890123456e+15"),
        ("1e20", "1e+20"),
        ("1.5e300", "1.5e+300"),
        ("0.0001", "0.0001"),
        ("0.00012345", "0.00012345"),
        ("0.00001", "1e-05"),
        ("1.25e-7", "1.25e-07"),
        ("-123.456", "-123.456"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        // Half way between two doubles, which PostgreSQL does not print.
        ("1e23", "9.999999999999999e+22"),
        ("5e22", "4.9999999999999996e+22"),
        ("9.5e22", "9.5e+22"),
        ("18014398509481984", "1.8014398509481984e+16"),
        ("nan", "NaN"),
        ("-inf", "-Infinity"),
        ("Infinity", "Infinity"),
    ] {
        assert_eq!(through(DataType::Double, text), printed, "{text}");
    }
    assert_eq!(
        through(DataType::Double, "1e400"),
        "\"1e400\" is out of range for type double precision (22003)"
    );
    assert_eq!(
        through(DataType::Double, "1e-400"),
        "\"1e-400\" is out of range for type double precision (22003)"
    );
    assert_eq!(
        through(DataType::Double, "1e"),
        "invalid input syntax for type double precision: \"1e\" (22P02)"
    );
}

#[test]
fn reals_print_as_postgresqls_shortest() {
    for (text, printed) in [
        ("0.1", "0.1"),
        ("123456", "123456"),
        ("1e6", "1e+06"),
        ("1234567", "1.234567e+06"),
        ("3.4028235e38", "3.4028235e+38"),
        // Equally near are ...02 and ...03.
        ("1758090.25", "1.7580902e+06"),
        ("2964.28125", "2964.2812"),
        // Half way between two reals.
        ("74908736", "7.4908736e+07"),
        ("-1.626161972124575e8", "-1.6261619e+08"),
        ("8589934592", "8.589935e+09"),
        ("1e-5", "1e-05"),
    ] {
        assert_eq!(through(DataType::Real, text), printed, "{text}");
    }
    assert_eq!(
        through(DataType::Real, "1e39"),
        "\"1e39\" is out of range for type real (22003)"
    );
}

#[test]
fn numerics_fit_their_column() {
    let column = DataType::numeric(5, 2).unwrap();
    assert_eq!(through(column, "1.005"), "1.01");
    assert_eq!(through(column, "-7"), "-7.00");
    assert_eq!(through(column, "999.994"), "999.99");
    for text in ["999.995", "1e10", "1e100"] {
        assert!(through(column, text).ends_with("(22003)"));
    }
    assert_eq!(through(DataType::NUMERIC, "1.500"), "1.500");
}

#[test]
fn texts_fit_their_column() {
    assert_eq!(through(DataType::Text, " a "), " a ");
    assert_eq!(through(DataType::Varchar(3), "abc"), "abc");
    assert_eq!(through(DataType::Varchar(3), "äöü"), "äöü");
    assert_eq!(through(DataType::Varchar(3), "ab     "), "ab ");
    assert_eq!(
        through(DataType::Varchar(3), "abcd"),
        "value too long for type character varying(3) (22001)"
    );
    assert_eq!(through(DataType::Char(5), "ab"), "ab   ");
    assert_eq!(through(DataType::Char(3), "ä"), "ä  ");
    assert_eq!(through(DataType::Char(2), "ab   "), "ab");
    assert_eq!(
        through(DataType::Char(2), "abc"),
        "value too long for type character(2) (22001)"
    );
    assert!(through(DataType::Text, "a\0b").ends_with("(22021)"));
    // Kept without its blanks, so that comparison ignores them.
    assert_eq!(
        parse_text(&DataType::Char(5), "ab  ").unwrap(),
        Value::Text("ab".into())
    );
}

#[test]
fn bytea_is_read_in_both_formats_and_printed_in_hex() {
    assert_eq!(through(DataType::Bytea, "\\xDEADbeef"), "\\xdeadbeef");
    assert_eq!(through(DataType::Bytea, "\\x de ad "), "\\xdead");
    assert_eq!(through(DataType::Bytea, "a\\\\b\\001"), "\\x615c6201");
    assert_eq!(through(DataType::Bytea, ""), "\\x");
    assert_eq!(
        through(DataType::Bytea, "\\xabc"),
        "invalid hexadecimal data: odd number of digits (22023)"
    );
    assert_eq!(
        through(DataType::Bytea, "\\xzz"),
        "invalid hexadecimal digit: \"z\" (22023)"
    );
    assert_eq!(
        through(DataType::Bytea, "\\9"),
        "invalid input syntax for type bytea (22P02)"
    );
}

#[test]
fn uuids_print_in_the_standard_form() {
    let printed = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    for text in [
        printed,
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
    ] {
        assert_eq!(through(DataType::Uuid, text), printed, "{text}");
    }
    for text in [
        "",
        "a0eebc99",
        "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "g0eebc999c0b4ef8bb6d6bb9bd380a11",
    ] {
        let expected = format!("invalid input syntax for type uuid: \"{text}\" (22P02)");
        assert_eq!(through(DataType::Uuid, text), expected);
    }
}

#[test]
fn null_has_no_text() {
    let mut out = Vec::new();
    write_text(ValueRef::Null, &DataType::Char(3), &mut out);
    assert!(out.is_empty());
}

proptest! {
    #[test]
    fn floats_read_back(double: f64, real: f32) {
        let mut out = Vec::new();
        write_text(ValueRef::Double(double), &DataType::Double, &mut out);
        let read = parse_text(&DataType::Double, std::str::from_utf8(&out).unwrap()).unwrap();
        prop_assert_eq!(read, Value::Double(double));
        out.clear();
        write_text(ValueRef::Real(real), &DataType::Real, &mut out);
        let read = parse_text(&DataType::Real, std::str::from_utf8(&out).unwrap()).unwrap();
        prop_assert_eq!(read, Value::Real(real));
    }

    #[test]
    fn bytes_and_integers_read_back(bytes: Vec<u8>, number: i64) {
        let mut out = Vec::new();
        write_text(ValueRef::Bytea(&bytes), &DataType::Bytea, &mut out);
        let read = parse_text(&DataType::Bytea, std::str::from_utf8(&out).unwrap()).unwrap();
        prop_assert_eq!(read, Value::Bytea(bytes));
        prop_assert_eq!(through(DataType::BigInt, &number.to_string()), number.to_string());
    }

    #[test]
    fn no_text_panics(text in "[-+0-9eE.\\\\xa-f{}]{0,40}|\\PC{0,20}") {
        for data_type in [
            DataType::Boolean, DataType::Integer, DataType::Double, DataType::Real,
            DataType::NUMERIC, DataType::Bytea, DataType::Uuid, DataType::Char(3),
        ] {
            let _ = parse_text(&data_type, &text);
        }
    }
}
