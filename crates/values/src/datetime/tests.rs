//! Expected texts are what PostgreSQL 15 prints with TimeZone UTC.

use proptest::prelude::*;

use super::*;
use crate::text_format::write_text;
use crate::types::DataType;
use crate::value::TIMESTAMP_NEGATIVE_INFINITY;

fn date(text: &str) -> String {
    match parse_date(text) {
        Ok(days) => {
            let mut out = Vec::new();
            write_date(days, &mut out);
            String::from_utf8(out).unwrap()
        }
        Err(error) => error.to_string(),
    }
}

fn timestamp(text: &str) -> String {
    match parse_timestamp(text) {
        Ok(microseconds) => {
            let mut out = Vec::new();
            write_timestamp(microseconds, &mut out);
            String::from_utf8(out).unwrap()
        }
        Err(error) => error.to_string(),
    }
}

fn timestamptz(text: &str) -> String {
    match parse_timestamptz(text) {
        Ok(microseconds) => {
            let mut out = Vec::new();
            write_timestamptz(microseconds, &mut out);
            String::from_utf8(out).unwrap()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_epoch_is_the_first_of_january_2000() {
    assert_eq!(parse_date("2000-01-01").unwrap(), 0);
    assert_eq!(parse_date("1999-12-31").unwrap(), -1);
    assert_eq!(parse_date("1970-01-01").unwrap(), -10_957);
    assert_eq!(parse_timestamp("2000-01-01 00:00:01").unwrap(), SECOND_US);
}

#[test]
fn dates_are_read_in_postgresqls_forms() {
    for (text, printed) in [
        ("2024-02-29", "2024-02-29"),
        (" 20240229 ", "2024-02-29"),
        ("1999/1/8", "1999-01-08"),
        ("1/8/1999", "1999-01-08"),
        ("01/02/03", "2003-01-02"),
        ("1/1/70", "1970-01-01"),
        ("990108", "1999-01-08"),
        ("January 8, 1999", "1999-01-08"),
        ("8-Jan-1999", "1999-01-08"),
        ("Jan-08-1999", "1999-01-08"),
        ("1999-Jan-08", "1999-01-08"),
        ("8 Jan 1999", "1999-01-08"),
        ("Fri Jan 8 1999", "1999-01-08"),
        ("0044-03-15 BC", "0044-03-15 BC"),
        ("0001-01-01", "0001-01-01"),
        ("5874897-12-31", "5874897-12-31"),
        ("4714-11-24 BC", "4714-11-24 BC"),
        ("2024-01-01 12:34:56", "2024-01-01"),
        ("2024-01-01 24:00", "2024-01-01"),
        ("infinity", "infinity"),
        ("-Infinity", "-infinity"),
        ("epoch", "1970-01-01"),
    ] {
        assert_eq!(date(text), printed, "{text}");
    }
}

#[test]
fn what_is_no_date_is_refused_in_postgresqls_words() {
    for text in [
        "abc",
        "",
        "2024",
        "2024-01",
        "12:00",
        "2024-01-01x",
        "2024-01-01T",
        "2024-01-01T,12",
        "2024-002-29",
    ] {
        let expected = format!("invalid input syntax for type date: \"{text}\" (22007)");
        assert_eq!(date(text), expected, "{text}");
    }
    for text in [
        "2023-02-29",
        "2023-13-01",
        "2023-00-10",
        "0000-01-01",
        "13/13/2000",
    ] {
        let expected = format!("date/time field value out of range: \"{text}\" (22008)");
        assert_eq!(date(text), expected, "{text}");
    }
    assert_eq!(
        date("5874898-06-04"),
        "date out of range: \"5874898-06-04\" (22008)"
    );
    assert_eq!(
        date("4714-11-23 BC"),
        "date out of range: \"4714-11-23 BC\" (22008)"
    );
}

#[test]
fn timestamps_are_read_and_printed_as_postgresql_does() {
    for (text, printed) in [
        ("2024-01-02 03:04:05", "2024-01-02 03:04:05"),
        ("2024-01-02T03:04:05Z", "2024-01-02 03:04:05"),
        ("2024-01-02 03:04:05.120000", "2024-01-02 03:04:05.12"),
        ("2024-01-02 03:04:05.0000005", "2024-01-02 03:04:05.000001"),
        ("2024-01-02 23:59:59.9999999", "2024-01-03 00:00:00"),
        ("2024-01-02 24:00:00", "2024-01-03 00:00:00"),
        ("2024-01-02 23:59:60", "2024-01-03 00:00:00"),
        ("2024-01-02 03:04", "2024-01-02 03:04:00"),
        ("20240102T030405", "2024-01-02 03:04:05"),
        ("2024-01-02 03:04:05+05:30", "2024-01-02 03:04:05"),
        ("2024-01-02 3:04 PM", "2024-01-02 15:04:00"),
        ("2024-01-02 12:04 AM", "2024-01-02 00:04:00"),
        ("2024-01-02", "2024-01-02 00:00:00"),
        ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC"),
        ("1999-12-31 23:59:59.999999", "1999-12-31 23:59:59.999999"),
        ("infinity", "infinity"),
        (
            "294276-12-31 23:59:59.999999",
            "294276-12-31 23:59:59.999999",
        ),
    ] {
        assert_eq!(timestamp(text), printed, "{text}");
    }
    for text in [
        "2024-01-02 25:00:00",
        "2024-01-02 12:60:00",
        "2024-01-02 13:00 PM",
    ] {
        let expected = format!("date/time field value out of range: \"{text}\" (22008)");
        assert_eq!(timestamp(text), expected, "{text}");
    }
    assert_eq!(
        timestamp("294277-01-01"),
        "timestamp out of range: \"294277-01-01\" (22008)"
    );
    assert_eq!(
        timestamp("yesterdayish"),
        "invalid input syntax for type timestamp: \"yesterdayish\" (22007)"
    );
}

#[test]
fn zones_shift_a_timestamptz() {
    for (text, printed) in [
        ("2024-01-02 03:04:05", "2024-01-02 03:04:05+00"),
        ("2024-01-02 03:04:05+05:30", "2024-01-01 21:34:05+00"),
        ("2024-01-02 03:04:05-08", "2024-01-02 11:04:05+00"),
        ("2024-01-02T03:04:05.5-0800", "2024-01-02 11:04:05.5+00"),
        ("2024-01-02 03:04:05 UTC", "2024-01-02 03:04:05+00"),
        ("2024-01-02 03:04:05Z", "2024-01-02 03:04:05+00"),
        ("0044-03-15 12:00:00+00 BC", "0044-03-15 12:00:00+00 BC"),
    ] {
        assert_eq!(timestamptz(text), printed, "{text}");
    }
    assert_eq!(
        timestamptz("2024-01-02 03:04:05+16"),
        "time zone displacement out of range: \"2024-01-02 03:04:05+16\" (22009)"
    );
}

/// A field as it is shown.
fn shown(field: Field, at: i64) -> String {
    let mut text = Vec::new();
    write_text(
        extract(field, at).unwrap().as_ref(),
        &DataType::NUMERIC,
        &mut text,
    );
    String::from_utf8(text).unwrap()
}

#[test]
fn fields_are_postgresqls() {
    let at = parse_timestamp("2024-02-29 13:45:06.789").unwrap();
    for (field, value) in [
        ("century", "21"),
        ("day", "29"),
        ("decade", "202"),
        ("dow", "4"),
        ("doy", "60"),
        ("epoch", "1709214306.789000"),
        ("hour", "13"),
        ("isodow", "4"),
        ("isoyear", "2024"),
        ("microseconds", "6789000"),
        ("millennium", "3"),
        ("milliseconds", "6789.000"),
        ("minute", "45"),
        ("month", "2"),
        ("quarter", "1"),
        ("second", "6.789000"),
        ("week", "9"),
        ("YEAR", "2024"),
    ] {
        let name = Field::from_name(field).unwrap();
        assert_eq!(shown(name, at), value, "{field}");
    }
    let at = parse_timestamp("0001-01-01 BC").unwrap();
    for (field, value) in [
        (Field::Year, "-1"),
        (Field::Century, "-1"),
        (Field::Decade, "0"),
        (Field::Millennium, "-1"),
    ] {
        assert_eq!(shown(field, at), value);
    }
    let at = parse_timestamp("2021-01-03").unwrap();
    assert_eq!(shown(Field::Week, at), "53");
    assert_eq!(shown(Field::IsoYear, at), "2020");
    let hour = extract(Field::Hour, TIMESTAMP_INFINITY).unwrap();
    assert!(hour.is_null());
    for (at, infinity) in [
        (TIMESTAMP_INFINITY, "Infinity"),
        (TIMESTAMP_NEGATIVE_INFINITY, "-Infinity"),
    ] {
        assert_eq!(shown(Field::Epoch, at), infinity);
    }
    assert_eq!(Field::from_name("fortnight"), None);
}

#[test]
fn truncation_goes_to_the_start_of_the_unit() {
    let at = parse_timestamp("2024-08-15 13:45:06.789123").unwrap();
    for (unit, start) in [
        ("milliseconds", "2024-08-15 13:45:06.789"),
        ("second", "2024-08-15 13:45:06"),
        ("minute", "2024-08-15 13:45:00"),
        ("hour", "2024-08-15 13:00:00"),
        ("day", "2024-08-15 00:00:00"),
        ("week", "2024-08-12 00:00:00"),
        ("month", "2024-08-01 00:00:00"),
        ("quarter", "2024-07-01 00:00:00"),
        ("year", "2024-01-01 00:00:00"),
        ("decade", "2020-01-01 00:00:00"),
        ("century", "2001-01-01 00:00:00"),
        ("millennium", "2001-01-01 00:00:00"),
    ] {
        let truncated = date_trunc(Field::from_name(unit).unwrap(), at)
            .unwrap()
            .unwrap();
        assert_eq!(truncated, parse_timestamp(start).unwrap(), "{unit}");
    }
    assert_eq!(date_trunc(Field::Dow, at).unwrap(), None);
}

#[test]
fn months_end_where_they_end() {
    let at = parse_timestamp("2024-01-31 10:00").unwrap();
    let later = |months| {
        let mut out = Vec::new();
        write_timestamp(add_months(at, months).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(later(1), "2024-02-29 10:00:00");
    assert_eq!(later(13), "2025-02-28 10:00:00");
    assert_eq!(later(-2), "2023-11-30 10:00:00");
    assert!(add_months(at, i32::MAX).is_err());
    assert!(add_days(parse_date("5874897-12-31").unwrap(), i32::MAX).is_err());
    assert_eq!(add_days(0, 31).unwrap(), parse_date("2000-02-01").unwrap());
}

proptest! {
    #[test]
    fn civil_days_are_a_bijection(days in -3_000_000i64..1_000_000_000) {
        let civil = civil_from_days(days);
        prop_assert_eq!(days_from_civil(civil), days);
        prop_assert!(civil.day >= 1 && civil.day <= days_in_month(civil.year, civil.month));
    }

    #[test]
    fn printed_timestamps_read_back(microseconds in TIMESTAMP_MIN..TIMESTAMP_END) {
        let mut out = Vec::new();
        write_timestamptz(microseconds, &mut out);
        let text = String::from_utf8(out).unwrap();
        prop_assert_eq!(parse_timestamptz(&text).unwrap(), microseconds);
    }

    #[test]
    fn no_text_panics(text in "[0-9TtZ:/+. -]{0,30}|\\PC{0,20}") {
        let _ = parse_timestamptz(&text);
        let _ = parse_date(&text);
    }
}
