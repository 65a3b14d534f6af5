//! Expected results are PostgreSQL 15's.

use proptest::prelude::*;

use super::*;
use crate::text_format::{parse_text, write_text};

const TEXT: DataType = DataType::Text;
const INTEGER: DataType = DataType::Integer;
const NUMERIC: DataType = DataType::NUMERIC;

/// Looks a function up, calls it and prints its result or its error.
fn call(name: &str, arguments: &[(&str, DataType)]) -> String {
    let types: Vec<DataType> = arguments.iter().map(|(_, data_type)| *data_type).collect();
    let values = arguments
        .iter()
        .map(|(text, data_type)| parse_text(data_type, text).unwrap())
        .collect();
    let Some(function) = lookup(name, &types) else {
        return "no function".to_string();
    };
    match function.invoke(values, &types) {
        Ok(Value::Null) => "NULL".to_string(),
        Ok(value) => {
            let promised = function.result.base_name();
            assert_eq!(crate::arithmetic::type_name(&value), promised, "{name}");
            let mut out = Vec::new();
            write_text(value.as_ref(), &function.result, &mut out);
            String::from_utf8(out).unwrap()
        }
        Err(error) => error.to_string(),
    }
}

fn on_texts(name: &str, texts: &[&str]) -> String {
    let arguments: Vec<_> = texts.iter().map(|text| (*text, TEXT)).collect();
    call(name, &arguments)
}

fn result_of(name: &str, types: &[DataType]) -> Option<DataType> {
    lookup(name, types).map(|function| function.result)
}

#[test]
fn results_have_postgresqls_types() {
    assert_eq!(result_of("greatest", &[INTEGER, NUMERIC]), Some(NUMERIC));
    assert_eq!(
        result_of("date_trunc", &[TEXT, DataType::Date]),
        Some(DataType::TimestampTz)
    );
    assert_eq!(result_of("abs", &[INTEGER]), None);
    assert_eq!(result_of("lower", &[INTEGER]), None);
    assert_eq!(result_of("no_such", &[]), None);
}

#[test]
fn parts_of_texts_are_counted_in_characters() {
    let substr = |begin, count| {
        call(
            "substr",
            &[("hello", TEXT), (begin, INTEGER), (count, INTEGER)],
        )
    };
    assert_eq!(substr("0", "3"), "he");
    assert_eq!(substr("2", "100"), "ello");
    assert_eq!(substr("2147483647", "2147483647"), "");
    assert_eq!(substr("-2147483648", "2147483647"), "");
    assert_eq!(
        substr("1", "-1"),
        "negative substring length not allowed (22011)"
    );
    let with_count = |name, text, count| call(name, &[(text, TEXT), (count, INTEGER)]);
    assert_eq!(with_count("substring", "hello", "-2"), "hello");
    assert_eq!(with_count("substring", "äöü", "2"), "öü");
    assert_eq!(with_count("left", "hello", "-2"), "hel");
    assert_eq!(with_count("right", "hello", "-2"), "llo");
    assert_eq!(with_count("left", "äöü", "2"), "äö");
    assert_eq!(with_count("right", "hello", "9"), "hello");
    assert_eq!(with_count("repeat", "ab", "-1"), "");
    assert_eq!(with_count("repeat", "ab", "2"), "abab");
    assert_eq!(
        with_count("repeat", "ab", "2000000000"),
        "requested length too large (54000)"
    );
    assert_eq!(on_texts("length", &["äöü"]), "3");
    assert_eq!(on_texts("octet_length", &["äöü"]), "6");
    assert_eq!(call("length", &[("ab  ", DataType::Char(4))]), "2");
    assert_eq!(on_texts("strpos", &["hello", "lo"]), "4");
    assert_eq!(on_texts("strpos", &["äb", "b"]), "2");
    assert_eq!(on_texts("strpos", &["abc", ""]), "1");
    assert_eq!(on_texts("position", &["abc", "x"]), "0");
}

#[test]
fn texts_are_padded_trimmed_and_replaced() {
    let pad = |name, text, count, fill| call(name, &[(text, TEXT), (count, INTEGER), (fill, TEXT)]);
    assert_eq!(pad("lpad", "abc", "5", "xy"), "xyabc");
    assert_eq!(pad("rpad", "abc", "6", "xy"), "abcxyx");
    assert_eq!(pad("lpad", "abc", "5", ""), "abc");
    assert_eq!(pad("lpad", "abc", "-1", "x"), "");
    assert_eq!(call("lpad", &[("abc", TEXT), ("2", INTEGER)]), "ab");
    assert_eq!(on_texts("btrim", &["xxhixx", "x"]), "hi");
    assert_eq!(on_texts("trim", &["  hi "]), "hi");
    assert_eq!(on_texts("ltrim", &["xyxhi", "xy"]), "hi");
    assert_eq!(on_texts("rtrim", &["hi  "]), "hi");
    assert_eq!(on_texts("replace", &["aaa", "a", "bb"]), "bbbbbb");
    assert_eq!(on_texts("replace", &["aaa", "", "x"]), "aaa");
    assert_eq!(on_texts("lower", &["AbÄ"]), "abä");
    assert_eq!(on_texts("upper", &["abä"]), "ABÄ");
    assert_eq!(on_texts("reverse", &["abä"]), "äba");
    let part = |field| {
        call(
            "split_part",
            &[("a,b,c", TEXT), (",", TEXT), (field, INTEGER)],
        )
    };
    assert_eq!(part("2"), "b");
    assert_eq!(part("-1"), "c");
    assert_eq!(part("9"), "");
    assert_eq!(part("0"), "field position must not be zero (22023)");
}

#[test]
fn joining_is_strict_and_concat_is_not() {
    assert_eq!(call("||", &[("1", INTEGER), ("a", TEXT)]), "1a");
    assert_eq!(
        call("||", &[("t", DataType::Boolean), ("a", TEXT)]),
        "truea"
    );
    assert_eq!(
        call(
            "||",
            &[("\\x01", DataType::Bytea), ("\\x02", DataType::Bytea)]
        ),
        "\\x0102"
    );
    assert_eq!(call("||", &[("1", INTEGER), ("2", INTEGER)]), "no function");
    let types = [TEXT, TEXT, INTEGER, DataType::Boolean];
    let values = vec![
        Value::Text("a".into()),
        Value::Null,
        Value::Integer(1),
        Value::Boolean(true),
    ];
    let concat = lookup("concat", &types).unwrap();
    assert_eq!(
        concat.invoke(values, &types).unwrap(),
        Value::Text("a1t".into())
    );
    let join = lookup("||", &types[..2]).unwrap();
    let values = vec![Value::Text("a".into()), Value::Null];
    assert_eq!(join.invoke(values, &types[..2]).unwrap(), Value::Null);
}

#[test]
fn the_greatest_and_the_least_ignore_nulls() {
    assert_eq!(call("greatest", &[("3", INTEGER), ("2.50", NUMERIC)]), "3");
    assert_eq!(call("least", &[("3", INTEGER), ("2.50", NUMERIC)]), "2.50");
    assert_eq!(on_texts("greatest", &["a", "b", "ab"]), "b");
    let types = [INTEGER, INTEGER];
    let least = lookup("least", &types).unwrap();
    let some = least.invoke(vec![Value::Null, Value::Integer(5)], &types);
    assert_eq!(some.unwrap(), Value::Integer(5));
    let none = least.invoke(vec![Value::Null, Value::Null], &types);
    assert_eq!(none.unwrap(), Value::Null);
    assert!(lookup("greatest", &[INTEGER, TEXT]).is_none());
    assert!(lookup("greatest", &[]).is_none());
}

#[test]
fn fields_and_truncation_depend_on_the_type() {
    use DataType::{Date, Timestamp, TimestampTz};
    let with_field = |name, field, text, data_type| call(name, &[(field, TEXT), (text, data_type)]);
    let at = "2024-01-03 04:05:06.5";
    assert_eq!(with_field("extract", "second", at, Timestamp), "6.500000");
    assert_eq!(with_field("date_part", "second", at, Timestamp), "6.5");
    assert_eq!(with_field("extract", "epoch", at, Date), "1704240000");
    assert_eq!(
        with_field("date_part", "epoch", "2024-01-03", Date),
        "1704240000"
    );
    assert_eq!(
        with_field("date_trunc", "month", "2024-01-03", Date),
        "2024-01-01 00:00:00+00"
    );
    assert_eq!(
        with_field("date_trunc", "HOUR", at, Timestamp),
        "2024-01-03 04:00:00"
    );
    assert_eq!(
        with_field("date_trunc", "dow", at, Timestamp),
        "unit \"dow\" not recognized for type timestamp without time zone (22023)"
    );
    assert_eq!(with_field("extract", "timezone", at, TimestampTz), "0");
    assert_eq!(with_field("extract", "dow", "infinity", Date), "NULL");
    assert_eq!(
        with_field("extract", "hour", at, Date),
        "unit \"hour\" not supported for type date (0A000)"
    );
    assert_eq!(
        with_field("extract", "timezone", at, Timestamp),
        "unit \"timezone\" not supported for type timestamp without time zone (0A000)"
    );
    assert_eq!(
        with_field("extract", "foo", at, Timestamp),
        "unit \"foo\" not recognized for type timestamp without time zone (22023)"
    );
    assert_eq!(
        with_field("date_part", "foo", at, Date),
        "unit \"foo\" not recognized for type timestamp without time zone (22023)"
    );
}

#[test]
fn like_knows_its_wildcards_and_its_escape() {
    let like = |text, pattern| like_match(pattern, text, Some('\\'), false).unwrap();
    for (text, pattern) in [
        ("", ""),
        ("", "%"),
        ("abc", "abc"),
        ("abc", "a%"),
        ("abc", "%c"),
        ("abc", "a_c"),
        ("äöü", "_ö_"),
        ("abcabc", "%b%bc"),
        ("a%c", "a\\%c"),
        ("a_c", "a\\_c"),
        ("abc", "%%%"),
        ("mississippi", "m%iss%ip%i"),
    ] {
        assert!(like(text, pattern), "{text} like {pattern}");
    }
    for (text, pattern) in [
        ("abc", ""),
        ("", "_"),
        ("abc", "ab"),
        ("abc", "abcd"),
        ("abc", "a\\%c"),
        ("ABC", "abc"),
        ("abc", "_bc_"),
        ("mississippi", "m%iss%ipx%i"),
    ] {
        assert!(!like(text, pattern), "{text} not like {pattern}");
    }
    assert!(like_match("aB%", "AbÄ", None, true).unwrap());
    assert!(like_match("a\\", "a\\", None, false).unwrap());
    assert!(like_match("10!%", "10%", Some('!'), false).unwrap());
    let error = like_match("ab\\", "abc", Some('\\'), false).unwrap_err();
    assert_eq!(error.sqlstate, "22025");
}

/// The definition of LIKE, without regard to time.
fn like_by_definition(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|skip| like_by_definition(rest, &text[skip..])),
        Some(('_', rest)) => !text.is_empty() && like_by_definition(rest, &text[1..]),
        Some((first, rest)) => text.first() == Some(first) && like_by_definition(rest, &text[1..]),
    }
}

/// Counts whose results are short, or longer than a value may be.
fn counts() -> impl Strategy<Value = i32> {
    prop_oneof![
        -1000..1000i32,
        i32::MIN..i32::MIN + 9,
        i32::MAX - 9..i32::MAX
    ]
}

proptest! {
    #[test]
    fn like_agrees_with_its_definition(pattern in "[aé%_]{0,8}", text in "[aéb]{0,10}") {
        let patterns: Vec<char> = pattern.chars().collect();
        let texts: Vec<char> = text.chars().collect();
        prop_assert_eq!(
            like_match(&pattern, &text, None, false).unwrap(),
            like_by_definition(&patterns, &texts)
        );
    }

    #[test]
    fn no_count_panics(text in "\\PC{0,8}", begin: i32, count in counts()) {
        let types = [TEXT, INTEGER, INTEGER];
        let values = vec![Value::Text(text.clone()), Value::Integer(begin), Value::Integer(count)];
        let _ = lookup("substr", &types).unwrap().invoke(values, &types);
        for name in ["left", "right", "lpad", "repeat", "substr"] {
            let values = vec![Value::Text(text.clone()), Value::Integer(count)];
            let _ = lookup(name, &types[..2]).unwrap().invoke(values, &types[..2]);
        }
    }
}
