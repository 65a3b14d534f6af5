//! Equal values have equal hashes, over the samples of all types.

#[allow(dead_code, reason = "of the samples not all are taken")]
mod samples;

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;

use thermocline_query::call::{Call, Environment, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::types::{self, ids};

/// Pairs that are equal in more than one form.
const EQUAL: &[(u32, &[&str])] = &[
    (ids::NUMERIC, &["1", "1.0", "1.000", "1e0"]),
    (ids::NUMERIC, &["0", "-0", "0.000"]),
    (ids::FLOAT8, &["0", "-0"]),
    (ids::FLOAT8, &["NaN", "nan"]),
    (ids::BPCHAR, &["a", "a  "]),
    (ids::INTERVAL, &["1 mon", "30 days", "720:00:00"]),
    (ids::INTERVAL, &["1 day", "24:00:00"]),
    (
        ids::JSONB,
        &["{\"a\": 1, \"b\": 2.0}", "{\"b\": 2, \"a\": 1.00}"],
    ),
    (ids::NUMERIC_ARRAY, &["{1.0,NULL}", "{1,NULL}"]),
    (ids::NUMRANGE, &["[1,2.50)", "[1.0,2.5)"]),
    (ids::INT4RANGE, &["[1,2]", "(0,3)", "[1,3)"]),
    (ids::NUMRANGE, &["empty", "(1,1]"]),
    (ids::TIMETZ, &["10:00:00+00", "10:00:00+00:00"]),
    (ids::INET, &["10.0.0.1", "10.0.0.1/32"]),
    (
        ids::TIMESTAMPTZ,
        &["2000-01-01 00:00:00+00", "2000-01-01 02:00:00+02"],
    ),
];

fn hash(oid: u32, value: &Datum) -> u64 {
    let mut state = DefaultHasher::new();
    types::hash(oid, value, &mut state);
    state.finish()
}

#[test]
fn equal_values_hash_alike() {
    let environment: &dyn Environment = &Plain::default();
    let call = Call::new(environment, &[], ids::TEXT);
    let read = |oid: u32, texts: &[&str]| -> Vec<Datum> {
        texts
            .iter()
            .filter_map(|text| types::input(&call, oid, text, -1).ok())
            .collect()
    };
    let mut equal = 0;
    let mut check = |oid: u32, values: &[Datum]| {
        for a in values {
            for b in values {
                if matches!(types::compare(oid, a, b), Ok(Ordering::Equal)) {
                    equal += 1;
                    assert_eq!(hash(oid, a), hash(oid, b), "{oid}: {a:?}, {b:?}");
                }
            }
        }
    };
    let all = types::all().flat_map(|row| [row.oid, row.array]);
    for oid in all.filter(|oid| *oid != 0) {
        let texts: Vec<&str> = samples::of(oid).into_iter().flatten().collect();
        check(oid, &read(oid, &texts));
    }
    for (oid, texts) in EQUAL {
        let values = read(*oid, texts);
        for value in &values {
            let same = types::compare(*oid, value, &values[0]).expect("an order");
            assert_eq!(same, Ordering::Equal, "{oid}: {texts:?}");
        }
        check(*oid, &values);
    }
    assert!(equal > 0);
}
