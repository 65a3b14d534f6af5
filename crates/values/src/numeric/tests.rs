//! Expected texts are what PostgreSQL 15 prints.

use proptest::prelude::*;

use super::*;

fn n(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn shown(result: Result<Numeric, ValueError>) -> String {
    match result {
        Ok(number) => number.to_string(),
        Err(error) => error.sqlstate.to_string(),
    }
}

#[test]
fn literals_keep_their_scale() {
    for (text, printed) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("1.50", "1.50"),
        (" 007.10\n", "7.10"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+1e3", "1000"),
        ("1.50e1", "15.0"),
        ("1.5e-3", "0.0015"),
        ("1e-5", "0.00001"),
        ("0e5", "0"),
        ("0.00e-1", "0.000"),
        (
            "99999999999999999999999999999999999999",
            "99999999999999999999999999999999999999",
        ),
        (
            "-0.00000000000000000000000000000000000001",
            "-0.00000000000000000000000000000000000001",
        ),
    ] {
        assert_eq!(n(text).to_string(), printed, "{text}");
    }
}

#[test]
fn what_is_not_a_number_is_refused() {
    for text in [
        "", " ", "abc", "1.2.3", "1e", "1e+", "--1", "1 2", ".", "0x10",
    ] {
        assert_eq!(
            Numeric::parse(text).unwrap_err().sqlstate,
            "22P02",
            "{text}"
        );
    }
    for text in ["NaN", "infinity", "-Infinity", "inf"] {
        assert_eq!(
            Numeric::parse(text).unwrap_err().sqlstate,
            "22003",
            "{text}"
        );
    }
    for text in [
        "1e38",
        "1e999999999",
        "0.000000000000000000000000000000000000001",
    ] {
        assert_eq!(
            Numeric::parse(text).unwrap_err().sqlstate,
            "22003",
            "{text}"
        );
    }
    assert_eq!(
        Numeric::parse("abc").unwrap_err().message,
        "invalid input syntax for type numeric: \"abc\""
    );
}

#[test]
fn parsing_at_a_scale_rounds_however_many_digits_there_are() {
    let parse = |text| shown(Numeric::parse_scaled(text, Some(2)));
    assert_eq!(parse("1.005"), "1.01");
    assert_eq!(parse("-1.005"), "-1.01");
    assert_eq!(
        parse("1.0049999999999999999999999999999999999999999999"),
        "1.00"
    );
    assert_eq!(
        parse("0.99500000000000000000000000000000000000000000001"),
        "1.00"
    );
    assert_eq!(parse("7"), "7.00");
    assert_eq!(parse("1e-9"), "0.00");
    assert_eq!(parse("5e-3"), "0.01");
    assert_eq!(parse("1.5e1"), "15.00");
}

#[test]
fn sums_and_products_have_postgresqls_scale() {
    assert_eq!(shown(n("1.10").add(n("2.205"))), "3.305");
    assert_eq!(shown(n("1.1").sub(n("1.10"))), "0.00");
    assert_eq!(shown(n("1.10").mul(n("2.205"))), "2.42550");
    assert_eq!(shown(n("-3").mul(n("0.00"))), "0.00");
    assert_eq!(
        shown(n("1234567890123456789").mul(n("98765432109876543.21"))),
        "121932631137021795223746380111126352.69"
    );
}

#[test]
fn what_38_digits_do_not_hold_is_told() {
    let third = n("0.33333333333333333333333333333333333333");
    assert_eq!(shown(third.mul(third)), "22003");
    assert_eq!(shown(n("1e20").mul(n("1e20"))), "22003");
    assert_eq!(shown(n("9e37").add(n("9e37"))), "22003");
    assert_eq!(shown(n("1e37").add(n("0.55"))), "22003");
    assert_eq!(shown(n("1e37").sub(n("0.55"))), "22003");
    assert_eq!(shown(n("1e37").div(n("0.01"))), "22003");
    let most = n("99999999999999999999999999999999999999");
    assert_eq!(
        shown(most.div(n("3"))),
        "33333333333333333333333333333333333333"
    );
    assert_eq!(shown(most.div(n("3.00"))), "22003");
}

#[test]
fn quotients_have_postgresqls_scale() {
    for (a, b, quotient) in [
        ("1", "3", "0.33333333333333333333"),
        ("2", "3", "0.66666666666666666667"),
        ("10", "4", "2.5000000000000000"),
        ("1", "7", "0.14285714285714285714"),
        ("100", "3", "33.3333333333333333"),
        ("100000", "3", "33333.333333333333"),
        ("1.0", "3.000", "0.33333333333333333333"),
        ("-7", "2", "-3.5000000000000000"),
        ("0", "5", "0.00000000000000000000"),
        ("123456789.123", "0.001", "123456789123.00000000"),
        ("0.001", "12345", "0.000000081004455245038477"),
        ("1", "10000", "0.000100000000000000000000"),
        ("12345678901234567890", "7", "1763668414462081127"),
    ] {
        let result = shown(n(a).div(n(b)));
        assert_eq!(result, quotient, "{a} / {b}");
    }
    assert_eq!(shown(n("1").div(n("0.00"))), "22012");
}

#[test]
fn remainders_take_the_sign_of_the_dividend() {
    assert_eq!(shown(n("7.5").rem(n("2"))), "1.5");
    assert_eq!(shown(n("-7.5").rem(n("2.00"))), "-1.50");
    assert_eq!(shown(n("1").rem(n("0.3"))), "0.1");
    assert_eq!(shown(n("1e-38").rem(n("1e37"))), n("1e-38").to_string());
    assert_eq!(
        shown(n("1e37").rem(n("0.00000000000000000000000000000000000003"))),
        "0.00000000000000000000000000000000000001"
    );
    assert_eq!(shown(n("1").rem(n("0"))), "22012");
}

#[test]
fn rounding_is_half_away_from_zero() {
    assert_eq!(shown(n("2.5").round(0)), "3");
    assert_eq!(shown(n("-2.5").round(0)), "-3");
    assert_eq!(shown(n("2.449").round(1)), "2.4");
    assert_eq!(shown(n("1250").round(-2)), "1300");
    assert_eq!(shown(n("1249.99").round(-2)), "1200");
    assert_eq!(shown(n("1.5").round(4)), "1.5000");
    assert_eq!(shown(n("1.5").round(-50)), "0");
    assert_eq!(shown(n("-2.59").trunc(1)), "-2.5");
    assert_eq!(shown(n("1299").trunc(-2)), "1200");
    assert_eq!(shown(n("-2.01").floor()), "-3");
    assert_eq!(
        shown(n("99999999999999999999999999999999999999").round(-1)),
        "22003"
    );
}

#[test]
fn floats_become_numerics_by_their_significant_digits() {
    assert_eq!(shown(Numeric::from_f64(0.1)), "0.1");
    assert_eq!(shown(Numeric::from_f64(1.0 / 3.0)), "0.333333333333333");
    assert_eq!(shown(Numeric::from_f64(1e20)), "100000000000000000000");
    assert_eq!(shown(Numeric::from_f64(-1234.5)), "-1234.5");
    assert_eq!(shown(Numeric::from_f64(0.0)), "0");
    assert_eq!(shown(Numeric::from_f64(1e40)), "22003");
    assert_eq!(shown(Numeric::from_f64(f64::NAN)), "22003");
    assert_eq!(shown(Numeric::from_f32(0.1)), "0.1");
    assert_eq!(shown(Numeric::from_f32(1.0 / 3.0)), "0.333333");
    assert_eq!(shown(Numeric::from_f64(1e-300)), "22003");
    assert_eq!(n("0.1").to_f64(), 0.1);
    assert_eq!(
        n("12345678901234567890.5").to_f64(),
        12_345_678_901_234_567_890.5
    );
    assert_eq!(n("2.5").to_i64(), Some(3));
    assert_eq!(n("9223372036854775807.5").to_i64(), None);
}

#[test]
fn the_binary_format_is_postgresqls() {
    for (text, bytes) in [
        ("0", vec![0, 0, 0, 0, 0, 0, 0, 0]),
        ("0.00", vec![0, 0, 0, 0, 0, 0, 0, 2]),
        ("1", vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("-1.5", vec![0, 2, 0, 0, 0x40, 0, 0, 1, 0, 1, 0x13, 0x88]),
        ("10000", vec![0, 1, 0, 1, 0, 0, 0, 0, 0, 1]),
        ("0.0001", vec![0, 1, 0xff, 0xff, 0, 0, 0, 4, 0, 1]),
        (
            "12345.6789",
            vec![0, 3, 0, 1, 0, 0, 0, 4, 0, 1, 0x09, 0x29, 0x1a, 0x85],
        ),
    ] {
        let mut out = Vec::new();
        n(text).write_binary(&mut out);
        assert_eq!(out, bytes, "{text}");
        assert_eq!(Numeric::parse_binary(&bytes).unwrap().to_string(), text);
    }
    let nan = [0, 0, 0, 0, 0xc0, 0, 0, 0];
    assert_eq!(Numeric::parse_binary(&nan).unwrap_err().sqlstate, "22003");
    for malformed in [
        &[0, 1][..],
        &[0, 1, 0, 0, 0, 0, 0, 0],
        &[0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
    ] {
        assert_eq!(
            Numeric::parse_binary(malformed).unwrap_err().sqlstate,
            "22P03"
        );
    }
}

#[test]
fn keys_of_the_long_form_have_the_order_of_numbers() {
    let huge = format!("1{}", "0".repeat(200));
    let tiny = format!("0.{}1", "0".repeat(200));
    let longer = format!("1{}.5", "0".repeat(200));
    let turned = |text: &str| format!("-{text}");
    let ordered = [
        "-Infinity",
        &turned(&longer),
        &turned(&huge),
        "-99999999999999999999999999999999999999",
        "-1.5",
        "-0.001",
        &turned(&tiny),
        "0.000",
        &tiny,
        "0.001",
        "1.5",
        "99999999999999999999999999999999999999",
        &huge,
        &longer,
        "Infinity",
        "NaN",
    ];
    let mut last = Vec::new();
    for text in ordered {
        let bytes = long::from_text(text).unwrap();
        let mut shown = Vec::new();
        long::write_text(&bytes, &mut shown);
        assert_eq!(String::from_utf8(shown).unwrap(), text);
        assert!(long::key_of(&bytes) > &last[..], "{text}");
        assert_eq!(
            long::key_length(&bytes),
            Some(long::key_of(&bytes).len()),
            "{text}"
        );
        last = long::key_of(&bytes).to_vec();
    }
    assert_eq!(long::from_text("NaN").unwrap(), long::NAN_BYTES);
    assert_eq!(long::from_text("Infinity").unwrap(), long::INFINITY_BYTES);
    assert_eq!(
        long::from_text("-Infinity").unwrap(),
        long::NEGATIVE_INFINITY_BYTES
    );
    for text in ["", "-", "1e5", "nan", "1.2.3"] {
        assert!(
            long::from_text(text).is_none_or(|bytes| long::narrow(&bytes) == Some(Numeric::ZERO)),
            "{text}"
        );
    }
}

#[test]
fn equal_numbers_of_both_forms_hash_alike() {
    use std::hash::BuildHasher;

    use crate::value::Value;

    let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
    for text in ["0", "1.5", "-120", "0.001"] {
        let small = Value::Numeric(n(text));
        let scaled = match text.contains('.') {
            true => format!("{text}{}", "0".repeat(50)),
            false => format!("{text}.{}", "0".repeat(50)),
        };
        let long = Value::Other(long::LONG, long::from_text(&scaled).unwrap());
        assert_eq!(small, long);
        assert_eq!(hasher.hash_one(&small), hasher.hash_one(&long));
    }
}

fn any_numeric() -> impl Strategy<Value = Numeric> {
    (any::<i128>(), 0u8..38, 0u8..=38).prop_map(|(mantissa, shrink, scale)| {
        let mantissa = (mantissa % MANTISSA_LIMIT) / power_of_ten(shrink);
        Numeric::new(mantissa, scale).unwrap()
    })
}

proptest! {
    #[test]
    fn text_and_binary_lead_back(number in any_numeric()) {
        let text = number.to_string();
        let read = Numeric::parse(&text).unwrap();
        prop_assert_eq!((read.mantissa(), read.scale()), (number.mantissa(), number.scale()));
        let mut bytes = Vec::new();
        number.write_binary(&mut bytes);
        let read = Numeric::parse_binary(&bytes).unwrap();
        prop_assert_eq!((read.mantissa(), read.scale()), (number.mantissa(), number.scale()));
    }

    #[test]
    fn malformed_binary_never_panics(bytes: Vec<u8>) {
        let _ = Numeric::parse_binary(&bytes);
    }

    #[test]
    fn comparison_agrees_with_subtraction(a in any_numeric(), b in any_numeric()) {
        if let Ok(difference) = a.sub(b) {
            prop_assert_eq!(difference.mantissa().cmp(&0), a.cmp(&b));
        }
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        if a.abs() > b.abs() {
            prop_assert!(a.rem(b).is_err() || a.rem(b).unwrap().abs() < b.abs());
        }
    }

    #[test]
    fn a_quotient_times_its_divisor_is_near_the_dividend(a in any_numeric(), b in any_numeric()) {
        if let Ok(quotient) = a.div(b) {
            let (a, b, q) = (a.to_f64(), b.to_f64(), quotient.to_f64());
            let tolerance = a.abs() * 1e-12 + b.abs() * 10f64.powi(-i32::from(quotient.scale()));
            prop_assert!((q * b - a).abs() <= tolerance, "{} * {} != {}", q, b, a);
        }
    }

    #[test]
    fn the_long_form_is_the_same_number(a in any_numeric(), b in any_numeric()) {
        let of = |number: Numeric| long::from_text(&number.to_string()).unwrap();
        let (long_a, long_b) = (of(a), of(b));
        let mut text = Vec::new();
        long::write_text(&long_a, &mut text);
        prop_assert_eq!(String::from_utf8(text).unwrap(), a.to_string());
        prop_assert_eq!(long::narrow(&long_a), Some(a));
        prop_assert_eq!(long::to_f64(&long_a), a.to_f64());
        let mut small = Vec::new();
        long::push_small_key(a, &mut small);
        prop_assert_eq!(&small[..], long::key_of(&long_a));
        prop_assert_eq!(long::key_of(&long_a).cmp(long::key_of(&long_b)), a.cmp(&b));
    }

    #[test]
    fn no_bytes_of_the_long_form_panic(bytes: Vec<u8>) {
        let mut text = Vec::new();
        long::write_text(&bytes, &mut text);
        let _ = (long::narrow(&bytes), long::to_f64(&bytes), long::key_of(&bytes));
    }

    #[test]
    fn integer_arithmetic_is_exact(a: i64, b: i64) {
        let (x, y) = (Numeric::from(a), Numeric::from(b));
        prop_assert_eq!(x.mul(y).unwrap().mantissa(), i128::from(a) * i128::from(b));
        prop_assert_eq!(x.add(y).unwrap().mantissa(), i128::from(a) + i128::from(b));
        if b != 0 {
            prop_assert_eq!(x.rem(y).unwrap().mantissa(), i128::from(a) % i128::from(b));
        }
    }
}
