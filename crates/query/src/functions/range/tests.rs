use super::*;
use crate::call::Plain;
use crate::functions::{self, Body};
use crate::operators;
use crate::types;

/// A value of a type, and its text.
type Value = (u32, Option<&'static str>);

fn read(call: &Call<'_>, (oid, text): Value) -> Datum {
    text.map_or(Datum::Null, |text| {
        types::input(call, oid, text, -1).unwrap()
    })
}

/// What a function gives, as a text; an error's code and message.
fn answer(function: u32, arguments: &[Value], result: u32) -> String {
    let plain = Plain::default();
    let types: Vec<u32> = arguments.iter().map(|(oid, _)| *oid).collect();
    let call = Call::new(&plain, &types, result);
    let values: Vec<Datum> = arguments.iter().map(|value| read(&call, *value)).collect();
    let Some(Body::Row(body)) = functions::by_oid(function).map(|function| function.body) else {
        panic!("no function {function}");
    };
    match body(&call, &values) {
        Ok(Datum::Null) => "NULL".to_owned(),
        Ok(value) => types::to_text(&call, result, &value).unwrap(),
        Err(error) => format!("{} {}", error.sqlstate, error.message),
    }
}

fn int4(text: &'static str) -> Value {
    (ids::INT4, Some(text))
}

fn numbers(text: &'static str) -> Value {
    (ids::NUMRANGE, Some(text))
}

#[test]
fn ranges_are_made_of_ends_and_flags() {
    let flagged = |flags| [int4("1"), int4("5"), (ids::TEXT, flags)];
    for (flags, expected) in [
        (Some("[]"), "[1,6)"),
        (Some("[)"), "[1,5)"),
        (Some("(]"), "[2,6)"),
        (Some("()"), "[2,5)"),
        (Some("[["), "42601 invalid range bound flags"),
        (Some("[)x"), "42601 invalid range bound flags"),
        (
            None,
            "22000 range constructor flags argument must not be null",
        ),
    ] {
        assert_eq!(answer(3841, &flagged(flags), ids::INT4RANGE), expected);
    }
    let missing = (ids::INT4, None);
    for (arguments, expected) in [
        ([int4("1"), int4("5")], "[1,5)"),
        ([int4("1"), missing], "[1,)"),
        ([missing, int4("1")], "(,1)"),
        ([missing, missing], "(,)"),
        (
            [int4("2"), int4("1")],
            "22000 range lower bound must be less than or equal to range upper bound",
        ),
    ] {
        assert_eq!(answer(3840, &arguments, ids::INT4RANGE), expected);
    }
}

#[test]
fn ends_are_told() {
    for (range, expected) in [
        ("empty", ["NULL", "NULL", "t", "f", "f", "f", "f"]),
        ("[1,2)", ["1", "2", "f", "t", "f", "f", "f"]),
        ("(1.50,2]", ["1.50", "2", "f", "f", "t", "f", "f"]),
        ("(,2)", ["NULL", "2", "f", "f", "f", "t", "f"]),
        ("(,)", ["NULL", "NULL", "f", "f", "f", "t", "t"]),
    ] {
        for (function, expected) in (3848..).zip(expected) {
            let result = if function < 3850 {
                ids::NUMERIC
            } else {
                ids::BOOL
            };
            assert_eq!(
                answer(function, &[numbers(range)], result),
                expected,
                "{function} {range}"
            );
        }
    }
}

/// What PostgreSQL answers to an operator between two ranges of numbers.
const OPERATORS: &[(&str, &str, &str, &str)] = &[
    ("[1,2)", "=", "[1.0,2.00)", "t"),
    ("[1,2)", "<>", "[1,2]", "t"),
    ("empty", "<", "(,1)", "t"),
    ("empty", "=", "empty", "t"),
    ("[1,2)", "<", "[1,2]", "t"),
    ("[1,2)", "<", "(1,2)", "t"),
    ("[1,)", ">=", "[1,5]", "t"),
    ("[1,2)", "@>", "empty", "t"),
    ("empty", "@>", "empty", "t"),
    ("empty", "@>", "[1,2)", "f"),
    ("[1,5]", "@>", "(1,5)", "t"),
    ("(1,5)", "@>", "[1,5]", "f"),
    ("(,)", "@>", "[1,)", "t"),
    ("(1,2)", "<@", "[1,2)", "t"),
    ("[1,2)", "&&", "[2,3)", "f"),
    ("[1,2]", "&&", "[2,3)", "t"),
    ("[1,2]", "&&", "empty", "f"),
    ("[1,2)", "<<", "[2,3)", "t"),
    ("[1,2]", "<<", "[2,3)", "f"),
    ("(3,4)", ">>", "[2,3]", "t"),
    ("[1,2)", "&<", "[0,2]", "t"),
    ("[1,3)", "&<", "[0,2]", "f"),
    ("(1,2)", "&>", "[1,2]", "t"),
    ("[1,2)", "&>", "(1,2)", "f"),
    ("[1,2)", "-|-", "[2,3)", "t"),
    ("[1,2]", "-|-", "[2,3)", "f"),
    ("[1,2)", "-|-", "(2,3)", "f"),
    ("[2,3)", "-|-", "[1,2)", "t"),
    ("(,2)", "-|-", "[2,)", "t"),
    ("[1,2)", "-|-", "empty", "f"),
    ("[1,2)", "+", "[2,3)", "[1,3)"),
    ("[1,2)", "+", "empty", "[1,2)"),
    (
        "[1,2)",
        "+",
        "[3,4)",
        "22000 result of range union would not be contiguous",
    ),
    ("[1,3)", "*", "(2,4)", "(2,3)"),
    ("[1,2)", "*", "[2,3)", "empty"),
    ("[1,5]", "-", "[3,9)", "[1,3)"),
    ("[1,5]", "-", "(0,3)", "[3,5]"),
    ("[1,5]", "-", "(0,3]", "(3,5]"),
    ("[1,5]", "-", "[1,5]", "empty"),
    ("[1,5]", "-", "[7,8]", "[1,5]"),
    ("[1,5]", "-", "empty", "[1,5]"),
    (
        "[1,5]",
        "-",
        "[2,3)",
        "22000 result of range difference would not be contiguous",
    ),
    ("[1,5]", "-", "[1,5)", "[5,5]"),
];

#[test]
fn operators_answer_as_postgresql_s() {
    for (left, sign, right, expected) in OPERATORS {
        let row = operators::named(sign)
            .iter()
            .find(|row| (row.left, row.right) == (ids::ANYRANGE, ids::ANYRANGE))
            .unwrap();
        let result = match row.result {
            ids::ANYRANGE => ids::NUMRANGE,
            other => other,
        };
        let arguments = [numbers(left), numbers(right)];
        assert_eq!(
            answer(row.function, &arguments, result),
            *expected,
            "{left} {sign} {right}"
        );
    }
}

#[test]
fn ranges_of_whole_things_touch_as_such() {
    let range = |text| (ids::INT4RANGE, Some(text));
    let merged = |a, b| answer(4057, &[range(a), range(b)], ids::INT4RANGE);
    assert_eq!(merged("[1,2]", "[9,9]"), "[1,10)");
    let adjacent = |a, b| answer(3862, &[range(a), range(b)], ids::BOOL);
    assert_eq!(adjacent("[1,2]", "[3,4]"), "t");
    assert_eq!(adjacent("[1,2]", "(3,4]"), "f");
    assert_eq!(adjacent("[1,2]", "(2,4]"), "t");
}

#[test]
fn values_are_in_ranges() {
    for (range, value, expected) in [
        ("[1,2)", "1", "t"),
        ("[1,2)", "2", "f"),
        ("(1,2]", "1.0", "f"),
        ("(1,2]", "2.00", "t"),
        ("(,2]", "-Infinity", "t"),
        ("empty", "1", "f"),
    ] {
        let value = (ids::NUMERIC, Some(value));
        assert_eq!(answer(3858, &[numbers(range), value], ids::BOOL), expected);
        assert_eq!(answer(3860, &[value, numbers(range)], ids::BOOL), expected);
    }
}

#[test]
fn an_aggregate_keeps_what_is_common() {
    let plain = Plain::default();
    let types = [ids::NUMRANGE];
    let call = Call::new(&plain, &types, ids::NUMRANGE);
    let range = |text| read(&call, numbers(text));
    let shown = |value: &Datum| types::to_text(&call, ids::NUMRANGE, value).unwrap();
    let mut one = (INTERSECT_AGGREGATE.new)(&call);
    assert!(one.value(&call).unwrap().is_null());
    for text in ["(,)", "[1,9]", "(2,10)"] {
        one.update(&call, &[range(text)]).unwrap();
    }
    assert_eq!(shown(&one.value(&call).unwrap()), "(2,9]");
    let mut other = (INTERSECT_AGGREGATE.new)(&call);
    other.merge(&call, &one.save().unwrap()).unwrap();
    other.update(&call, &[range("[3,4)")]).unwrap();
    assert_eq!(shown(&other.value(&call).unwrap()), "[3,4)");
}
