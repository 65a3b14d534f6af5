use super::*;

fn styles(given: &[(&str, &str)]) -> Styles {
    Styles::of(|name| {
        let own = given.iter().find(|(setting, _)| *setting == name);
        own.map_or_else(|| default_of(name), |(_, value)| (*value).to_owned())
    })
}

fn shown(styles: &Styles, data_type: DataType, text: &str) -> String {
    let value = styles.read(&data_type, text, None).unwrap();
    let mut out = Vec::new();
    styles.write(value.as_ref(), &data_type, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_plain_ones_are_those_of_utc_and_iso() {
    assert!(Styles::plain().is_plain());
    assert!(styles(&[("timezone", "GMT")]).is_plain());
    for (name, value) in [
        ("timezone", "Europe/Berlin"),
        ("datestyle", "ISO, DMY"),
        ("intervalstyle", "iso_8601"),
        ("extra_float_digits", "0"),
        ("bytea_output", "escape"),
    ] {
        assert!(!styles(&[(name, value)]).is_plain(), "{name}");
    }
}

#[test]
fn a_moment_is_read_and_shown_by_the_zone_s_clocks() {
    let berlin = styles(&[("timezone", "Europe/Berlin")]);
    let zoned = DataType::TimestampTz;
    assert_eq!(
        shown(&berlin, zoned, "2024-07-01 12:00"),
        "2024-07-01 12:00:00+02"
    );
    assert_eq!(
        shown(&berlin, zoned, "2024-01-01 12:00Z"),
        "2024-01-01 13:00:00+01"
    );
    assert_eq!(
        shown(&berlin, DataType::Timestamp, "2024-07-01 12:00"),
        "2024-07-01 12:00:00"
    );
}

#[test]
fn an_order_of_dates_and_short_floats() {
    let own = styles(&[("datestyle", "SQL, DMY"), ("extra_float_digits", "0")]);
    assert_eq!(shown(&own, DataType::Date, "02/03/2024"), "02/03/2024");
    assert_eq!(shown(&own, DataType::Double, "0.1"), "0.1");
    assert_eq!(shown(&own, DataType::Real, "3.1415927"), "3.14159");
}
