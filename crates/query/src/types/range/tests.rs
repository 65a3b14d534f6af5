use std::cmp::Ordering;

use super::*;
use crate::call::{Call, Plain};
use crate::serial;
use crate::types;

fn read(oid: u32, text: &str) -> Result<Datum> {
    let plain = Plain::default();
    types::input(&Call::new(&plain, &[], oid), oid, text, -1)
}

fn shown(oid: u32, value: &Datum) -> String {
    let plain = Plain::default();
    types::to_text(&Call::new(&plain, &[], oid), oid, value).unwrap()
}

/// What PostgreSQL shows of these texts.
const SHOWN: &[(u32, &str, &str)] = &[
    (ids::INT4RANGE, "[1,5]", "[1,6)"),
    (ids::INT4RANGE, "(1,5)", "[2,5)"),
    (ids::INT4RANGE, "(1,5]", "[2,6)"),
    (ids::INT4RANGE, "(1,2)", "empty"),
    (ids::INT4RANGE, "[5,5)", "empty"),
    (ids::INT4RANGE, "[5,5]", "[5,6)"),
    (ids::INT4RANGE, " [ 1 , 5 ] ", "[1,6)"),
    (ids::INT4RANGE, "[\"1\",\"\\5\"]", "[1,6)"),
    (ids::INT4RANGE, "[,]", "(,)"),
    (ids::INT4RANGE, "[,5]", "(,6)"),
    (ids::INT4RANGE, "(5,]", "[6,)"),
    (ids::INT4RANGE, "  EmPty  ", "empty"),
    (
        ids::INT8RANGE,
        "(-9223372036854775808,0]",
        "[-9223372036854775807,1)",
    ),
    (ids::NUMRANGE, "[1.10,2.20]", "[1.10,2.20]"),
    (ids::NUMRANGE, "(1.0,1.00]", "empty"),
    (ids::NUMRANGE, "[1.0,1.00]", "[1.0,1.00]"),
    (ids::NUMRANGE, "[-Infinity,NaN]", "[-Infinity,NaN]"),
    (
        ids::DATERANGE,
        "[2000-01-10,2000-01-20]",
        "[2000-01-10,2000-01-21)",
    ),
    (
        ids::DATERANGE,
        "(-infinity,infinity]",
        "(-infinity,infinity]",
    ),
    (
        ids::TSRANGE,
        "[2000-01-01 10:00,\"2000-01-02\")",
        "[\"2000-01-01 10:00:00\",\"2000-01-02 00:00:00\")",
    ),
    (
        ids::TSTZRANGE,
        "(2000-01-01 10:00+02,)",
        "(\"2000-01-01 08:00:00+00\",)",
    ),
    (ids::TSRANGE, "[-infinity,infinity)", "[-infinity,infinity)"),
    (
        ids::INT4RANGE_ARRAY,
        "{\"[1,2]\",empty,NULL}",
        "{\"[1,3)\",empty,NULL}",
    ),
];

#[test]
fn ranges_are_shown_in_their_one_form() {
    for (oid, text, expected) in SHOWN {
        let value = read(*oid, text).unwrap();
        assert_eq!(shown(*oid, &value), *expected, "{text}");
    }
}

#[test]
fn malformed_texts_are_refused_in_postgresql_s_words() {
    for (text, detail) in [
        ("", "Missing left parenthesis or bracket."),
        ("-[1,2)", "Missing left parenthesis or bracket."),
        ("[1,2) - ", "Junk after right parenthesis or bracket."),
        ("empty x", "Junk after \"empty\" key word."),
        ("(\",a)", "Unexpected end of input."),
        ("(1,2\\", "Unexpected end of input."),
        ("(1,2", "Unexpected end of input."),
        ("(,,1)", "Too many commas."),
        ("(),1)", "Missing comma after lower bound."),
        ("(1,))", "Junk after right parenthesis or bracket."),
    ] {
        let error = read(ids::INT4RANGE, text).unwrap_err();
        assert_eq!(error.sqlstate, "22P02", "{text}");
        assert_eq!(
            error.message,
            format!("malformed range literal: \"{text}\"")
        );
        assert_eq!(error.detail.as_deref(), Some(detail), "{text}");
    }
    for (oid, text, code, message) in [
        (
            ids::INT4RANGE,
            "[2,1]",
            "22000",
            "range lower bound must be less than or equal to range upper bound",
        ),
        (
            ids::INT4RANGE,
            "[1,2147483647]",
            "22003",
            "integer out of range",
        ),
        (
            ids::INT8RANGE,
            "(9223372036854775807,)",
            "22003",
            "bigint out of range",
        ),
        (
            ids::DATERANGE,
            "[2000-01-01,5874897-12-31]",
            "22008",
            "date out of range",
        ),
        (
            ids::INT4RANGE,
            "[1,x)",
            "22P02",
            "invalid input syntax for type integer: \"x\"",
        ),
        (
            ids::INT4RANGE,
            "[1, )",
            "22P02",
            "invalid input syntax for type integer: \" \"",
        ),
    ] {
        let error = read(oid, text).unwrap_err();
        assert_eq!((error.sqlstate, error.message.as_str()), (code, message));
    }
}

/// As PostgreSQL sorts them.
const ORDERED: &[(u32, &[&str])] = &[
    (
        ids::NUMRANGE,
        &[
            "empty",
            "(,1)",
            "(,1]",
            "(,)",
            "[1,1]",
            "[1,2)",
            "[1,2]",
            "[1,)",
            "(1,2)",
            "(1,)",
            "[1.5,1.6)",
            "[NaN,)",
        ],
    ),
    (
        ids::INT4RANGE,
        &["empty", "(,-1)", "(,)", "[-5,1)", "[1,2)", "[1,)", "[2,3)"],
    ),
    (
        ids::DATERANGE,
        &[
            "empty",
            "[-infinity,infinity)",
            "[-infinity,infinity]",
            "(-infinity,)",
            "[2000-01-01,)",
        ],
    ),
];

#[test]
fn ranges_are_ordered_by_where_they_begin() {
    for (oid, texts) in ORDERED {
        let values: Vec<Datum> = texts.iter().map(|text| read(*oid, text).unwrap()).collect();
        for (at, a) in values.iter().enumerate() {
            for (other, b) in values.iter().enumerate() {
                let order = types::compare(*oid, a, b).unwrap();
                assert_eq!(order, at.cmp(&other), "{} {}", texts[at], texts[other]);
            }
        }
    }
    let (a, b) = ("[1.0,2.00)", "[1,2)");
    let order = types::compare(
        ids::NUMRANGE,
        &read(ids::NUMRANGE, a).unwrap(),
        &read(ids::NUMRANGE, b).unwrap(),
    );
    assert_eq!(order, Ok(Ordering::Equal));
}

#[test]
fn the_binary_form_is_postgresql_s() {
    let plain = Plain::default();
    for (oid, text, form) in [
        (ids::INT4RANGE, "empty", &[1][..]),
        (ids::INT4RANGE, "(,)", &[0x18]),
        (
            ids::INT4RANGE,
            "[1,3)",
            &[2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 3],
        ),
        (
            ids::DATERANGE,
            "[2000-01-02,)",
            &[0x12, 0, 0, 0, 4, 0, 0, 0, 1],
        ),
        (
            ids::NUMRANGE,
            "(,1]",
            &[0x0c, 0, 0, 0, 10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
        ),
    ] {
        let call = Call::new(&plain, &[], oid);
        let mut sent = Vec::new();
        types::send(&call, oid, &read(oid, text).unwrap(), &mut sent).unwrap();
        assert_eq!(sent, form, "{text}");
        let received = types::receive(&call, oid, form, -1).unwrap();
        assert_eq!(shown(oid, &received), text);
        // Not a byte may be missing, and none be too many.
        for length in 0..form.len() {
            assert!(types::receive(&call, oid, &form[..length], -1).is_err());
        }
        let more: Vec<u8> = form.iter().copied().chain([0]).collect();
        let error = types::receive(&call, oid, &more, -1).unwrap_err();
        assert_eq!(error.sqlstate, "08P01");
    }
    // A form that is not the one of the value, and ends that are not in their order.
    let call = Call::new(&plain, &[], ids::INT4RANGE);
    let mut form = vec![4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 3];
    let value = types::receive(&call, ids::INT4RANGE, &form, -1).unwrap();
    assert_eq!(shown(ids::INT4RANGE, &value), "[2,4)");
    form[8] = 9;
    let error = types::receive(&call, ids::INT4RANGE, &form, -1).unwrap_err();
    assert_eq!(error.sqlstate, "22000");
}

#[test]
fn bytes_of_our_own_are_read_as_they_were_written_and_nothing_else_is() {
    for (oid, text, _) in SHOWN {
        let value = read(*oid, text).unwrap();
        let mut bytes = Vec::new();
        serial::write(&value, &mut bytes).unwrap();
        let again = serial::read(&bytes).unwrap();
        assert_eq!(shown(*oid, &again), shown(*oid, &value));
        for length in 0..bytes.len() {
            assert!(serial::read(&bytes[..length]).is_err(), "{text}");
        }
    }
    let mut bytes = Vec::new();
    serial::write(&read(ids::INT4RANGE, "[1,2)").unwrap(), &mut bytes).unwrap();
    // The ends of another type.
    bytes[1] = 20;
    assert!(serial::read(&bytes).is_err());
}
