//! Keys order and equal as the types do, and what is written is read again.

#[allow(dead_code, reason = "samples of another crate's tests")]
#[path = "../../query/tests/samples/mod.rs"]
mod samples;

use proptest::prelude::*;
use thermocline_analytical::{numeric_view, sort_key};
use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::serial;
use thermocline_query::types::numeric::Numeric;
use thermocline_query::types::{self, ids};

fn key(oid: u32, value: &Datum) -> Vec<u8> {
    let mut key = Vec::new();
    sort_key::key(oid, value, &mut key).expect("a key");
    key
}

fn check(oid: u32, texts: &[String]) {
    let plain = Plain::default();
    let call = Call::new(&plain, &[], oid);
    let read = |text: &String| types::input(&call, oid, text, -1).ok();
    let values: Vec<Datum> = texts.iter().filter_map(read).collect();
    for value in &values {
        let mut bytes = Vec::new();
        serial::write(value, &mut bytes).expect("bytes");
        let again = serial::read(&bytes).expect("a value");
        let text = |value: &Datum| types::to_text(&call, oid, value).expect("a text");
        assert_eq!(text(value), text(&again), "{oid}");
    }
    for a in &values {
        for b in &values {
            let Ok(expected) = types::compare(oid, a, b) else {
                return;
            };
            assert_eq!(
                key(oid, a).cmp(&key(oid, b)),
                expected,
                "{oid}: {a:?} {b:?}"
            );
        }
    }
}

#[test]
fn samples_of_all_types_have_keys_in_their_order() {
    for row in types::all() {
        let texts: Vec<String> = samples::of(row.oid)
            .iter()
            .flatten()
            .map(|text| (*text).to_owned())
            .collect();
        check(row.oid, &texts);
        let arrays: Vec<String> = texts
            .iter()
            .flat_map(|text| {
                let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
                [
                    format!("{{\"{quoted}\"}}"),
                    format!("{{\"{quoted}\",NULL}}"),
                    format!("{{NULL,\"{quoted}\"}}"),
                    format!("{{\"{quoted}\",\"{quoted}\"}}"),
                    format!("{{{{\"{quoted}\"}}}}"),
                    format!("[2:2]={{\"{quoted}\"}}"),
                ]
            })
            .chain(["{}".to_owned()])
            .take(60)
            .collect();
        if row.array != 0 {
            check(row.array, &arrays);
        }
    }
}

proptest! {
    #[test]
    fn numerics_have_keys_in_their_order(
        texts in prop::collection::vec("-?[0-9]{0,40}0{0,30}(\\.0{0,20}[0-9]{0,30})?|NaN|-?Infinity", 2..12)
    ) {
        check(ids::NUMERIC, &texts);
    }

    #[test]
    fn floats_have_keys_in_their_order(numbers in prop::collection::vec(any::<f64>(), 2..12)) {
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        check(ids::FLOAT8, &texts);
    }

    #[test]
    fn json_has_keys_in_its_order(
        texts in prop::collection::vec(
            "(-?[0-9]{1,3}|\"[ab]{0,2}\"|null|true|false|\\[\\]|\\{\\}|\\[([0-3]|null|\\[1\\]|\"a\")(,[0-3]){0,2}\\]|\\{\"[ab]{1,2}\":([0-3]|\\[\\])(,\"c\":1)?\\})",
            2..12
        )
    ) {
        check(ids::JSONB, &texts);
    }

    #[test]
    fn texts_and_bits_have_keys_in_their_order(
        texts in prop::collection::vec("[a ]{0,4}", 2..8),
        bits in prop::collection::vec("[01]{0,20}", 2..8)
    ) {
        check(ids::BPCHAR, &texts);
        check(ids::VARBIT, &bits);
    }
}

#[test]
fn short_numerics_are_the_same_in_all_their_forms() {
    let unscaled = [0, 1, -1, 1234, i64::MAX, i64::MIN];
    for (unscaled, scale) in unscaled
        .into_iter()
        .flat_map(|n| [(n, 0), (n, 2), (n, 16_383)])
    {
        let value = Datum::Numeric(Numeric::from_parts(unscaled.into(), scale));
        let mut bytes = Vec::new();
        serial::write(&value, &mut bytes).expect("bytes");
        assert_eq!(bytes, serial::short_numeric(unscaled, scale));
        assert_eq!(
            serial::read_numeric_parts(&bytes),
            Some((unscaled.into(), scale))
        );
        let mut view = [0; 16];
        view[0] = 12;
        view[4..].copy_from_slice(&bytes);
        let view = u128::from_le_bytes(view);
        assert_eq!(view, numeric_view::short_numeric_view(unscaled, scale));
        assert_eq!(
            numeric_view::read_short_numeric_view(view),
            Some((unscaled, scale))
        );
    }
    for text in ["99999999999999999999.5", "1e40", "NaN", "Infinity"] {
        let value = Numeric::parse(text).expect("a number");
        let mut bytes = Vec::new();
        serial::write(&Datum::Numeric(value.clone()), &mut bytes).expect("bytes");
        assert_eq!(serial::read_numeric_parts(&bytes), value.to_parts());
    }
}
