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

/// Texts, of each type some; the test below changes them.
const READ: [(DataType, &[&str]); 11] = [
    (DataType::Boolean, &["true", "f", "yes", "off", "1", " on "]),
    (DataType::SmallInt, &["5", "-32768", "+7", " 12 ", "007"]),
    (DataType::Integer, &["5", "-2147483648", "0x1f", "1_000"]),
    (DataType::BigInt, &["9223372036854775807", "-5", "0b11"]),
    (DataType::Real, &["1.5", "1e10", "-infinity", "NaN", ".5"]),
    (DataType::Double, &["1.5", "1e-10", "inf", "nan", "5."]),
    (DataType::Text, &["abc", " a ", ""]),
    (
        DataType::Date,
        &[
            "2024-02-29",
            "Feb 29 2024",
            "2/29/2024",
            "20240229",
            "2024-060",
            "2024-02-29 24:00",
            "2024-02-29T12:30",
            "44-03-15 BC",
            "infinity",
        ],
    ),
    (
        DataType::Timestamp,
        &[
            "2024-02-29 12:30:59.999999",
            "2024-02-29T12",
            "294276-12-31 23:59",
        ],
    ),
    (
        DataType::TimestampTz,
        &[
            "2024-02-29 12:30+02",
            "2024-02-29T12:30Z",
            "Feb 29 12:30 2024 UTC",
        ],
    ),
    (
        DataType::Uuid,
        &[
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
        ],
    ),
];
const CHANGES: usize = 4000;

/// The storage reads some values of parameters and of COPY by itself where styles are plain. What
/// is taken there, a literal of the same text is, too.
#[test]
fn what_is_read_as_a_value_is_what_a_literal_says() {
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    crate::one_row::prepare();
    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let (styles, some) = (Styles::plain(), b"0123456789 -+:./,eTZpmBC");
    let mut taken = 0;
    for (data_type, texts) in READ {
        for _ in 0..CHANGES {
            let mut text = texts.choose(&mut random).unwrap().as_bytes().to_vec();
            for _ in 0..random.random_range(0..4) {
                let at = random.random_range(0..=text.len());
                let byte = *some.choose(&mut random).unwrap();
                match random.random_range(0..3) {
                    0 if at < text.len() => text[at] = byte,
                    1 if at < text.len() => drop(text.remove(at)),
                    _ => text.insert(at, byte),
                }
            }
            let text = String::from_utf8(text).unwrap();
            let Ok(read) = styles.read(&data_type, &text, Some(0)) else {
                continue;
            };
            let literal = styles.datum(data_type.oid(), &text, 0);
            let literal = literal.and_then(|literal| value::to_stored(&literal, &data_type));
            assert_eq!(
                format!("{:?}", literal.ok()),
                format!("{:?}", Some(read)),
                "seed {seed}, {data_type:?}: {text:?}"
            );
            taken += 1;
        }
    }
    assert!(taken > CHANGES, "{taken}");
}
