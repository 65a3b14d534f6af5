use proptest::prelude::*;
use thermocline_values::types::DataType;

use super::*;
use crate::catalog::partitioning::PartitionDef;
use crate::catalog::{ColumnDef, Table};

fn table(strategy: PartitionStrategy, columns: usize, bounds: Vec<PartitionBound>) -> Table {
    let of = |number: usize| ColumnDef::new(format!("c{number}"), DataType::Integer);
    let mut def = TableDef::new(20_000, "t", (0..columns).map(of).collect());
    let partitions = bounds.into_iter().zip(20_001..);
    let partitions = partitions.map(|(bound, table)| PartitionDef {
        table,
        bound,
        indexes: Vec::new(),
    });
    def.partitioned = Some(PartitionedBy {
        strategy,
        columns: (0..columns).collect(),
        partitions: partitions.collect(),
    });
    Table::new(def, 4)
}

fn map(table: &Table) -> &PartitionMap {
    &table.partition_map.as_ref().expect("it is partitioned").0
}

/// An end as values: MINVALUE is below all of them.
fn end(values: &[i32]) -> Vec<RangeEnd> {
    let of = |value: &i32| match *value {
        i32::MIN => RangeEnd::Least,
        i32::MAX => RangeEnd::Greatest,
        value => RangeEnd::Value(Value::Integer(value)),
    };
    values.iter().map(of).collect()
}

fn key(values: &[i32]) -> Vec<ValueRef<'static>> {
    values
        .iter()
        .map(|value| ValueRef::Integer(*value))
        .collect()
}

/// Two columns behind each other as PostgreSQL compares them with an end.
fn is_below(key: (i32, i32), end: (i32, i32)) -> bool {
    match end.0 {
        i32::MIN => false,
        i32::MAX => true,
        first if key.0 != first => key.0 < first,
        _ => match end.1 {
            i32::MIN => false,
            i32::MAX => true,
            second => key.1 < second,
        },
    }
}

fn low(range: (i32, i32)) -> i32 {
    range.0.min(range.1)
}

fn high(range: (i32, i32)) -> i32 {
    range.0.max(range.1)
}

fn value() -> impl Strategy<Value = i32> {
    prop_oneof![8 => -4..5i32, 1 => Just(i32::MIN), 1 => Just(i32::MAX)]
}

proptest! {
    #[test]
    fn a_key_is_found_where_comparing_says(
        ends in proptest::collection::vec((value(), value()), 2..8),
        keys in proptest::collection::vec((-5..6i32, -5..6i32), 1..40),
        range in (-5..6i32, -5..6i32),
        with_default in any::<bool>(),
    ) {
        let mut kept: Vec<((i32, i32), (i32, i32))> = Vec::new();
        let mut bounds: Vec<PartitionBound> = Vec::new();
        for pair in ends.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let bound = PartitionBound::Range {
                from: end(&[from.0, from.1]),
                to: end(&[to.0, to.1]),
            };
            let so_far = table(PartitionStrategy::Range, 2, bounds.clone());
            let by = so_far.partitioned.clone().expect("it is partitioned");
            // What two bounds share some small key of must be refused.
            let conflict = map(&so_far).conflict(&by, &bound);
            let all = (-5..6).flat_map(|one| (-5..6).map(move |two| (one, two)));
            let has = |(from, to): &((i32, i32), (i32, i32)), key| !is_below(key, *from) && is_below(key, *to);
            let shared = all.clone().any(|key| has(&(from, to), key) && kept.iter().any(|other| has(other, key)));
            prop_assert!(!shared || conflict.is_some());
            if conflict.is_none() {
                bounds.push(bound);
                kept.push((from, to));
            }
        }
        if with_default {
            bounds.push(PartitionBound::Default);
        }
        let table = table(PartitionStrategy::Range, 2, bounds);
        let default = with_default.then_some(kept.len());
        let is_covered = (low(range)..=high(range)).all(|one| {
            (i32::MIN + 1..i32::MIN + 3).chain(-6..7).chain(i32::MAX - 2..i32::MAX).all(|two| {
                kept.iter().any(|(from, to)| !is_below((one, two), *from) && is_below((one, two), *to))
            })
        });
        let (low, high) = (low(range), high(range));
        let mut between = Vec::new();
        let mut bytes = [Vec::new(), Vec::new()];
        for (bytes, value) in bytes.iter_mut().zip([low, high]) {
            map(&table).shape.encode(&key(&[value]), bytes);
        }
        let [lower, mut upper] = bytes;
        prop_assert!(prefix_successor(&mut upper));
        map(&table).between(&Bound::Included(lower), &Bound::Excluded(upper), &mut between);
        if is_covered && let Some(default) = default {
            prop_assert!(!between.contains(&default), "the default of {}..={}", low, high);
        }
        for (one, two) in keys {
            let wanted = kept.iter().position(|(from, to)| {
                !is_below((one, two), *from) && is_below((one, two), *to)
            });
            let found = map(&table).find(&key(&[one, two]));
            prop_assert_eq!(found, wanted.or(default));
            if let Some(found) = found && (low..=high).contains(&one) {
                prop_assert!(between.contains(&found), "{} is not in {:?}", found, between);
            }
        }
        prop_assert_eq!(map(&table).find(&[ValueRef::Null, ValueRef::Integer(1)]), default);
    }
}

#[test]
fn lists_have_their_values_and_may_have_null() {
    let list = |values: &[Option<i32>]| {
        let value = |value: &Option<i32>| value.map_or(Value::Null, Value::Integer);
        PartitionBound::List(values.iter().map(value).collect())
    };
    let bounds = vec![list(&[Some(1), Some(2)]), list(&[None, Some(3)])];
    let table = table(PartitionStrategy::List, 1, bounds);
    let by = table.partitioned.clone().expect("it is partitioned");
    assert_eq!(map(&table).find(&key(&[2])), Some(0));
    assert_eq!(map(&table).find(&[ValueRef::Null]), Some(1));
    assert_eq!(map(&table).find(&key(&[4])), None);
    let conflict = |bound| map(&table).conflict(&by, &bound);
    assert_eq!(conflict(list(&[Some(4)])), None);
    assert_eq!(
        conflict(list(&[Some(4), Some(3)])),
        Some(BoundConflict::Overlaps(1))
    );
    assert_eq!(conflict(PartitionBound::Default), None);
}

#[test]
fn hashes_are_dealt_to_all_and_moduli_divide_each_other() {
    let of = |modulus, remainder| PartitionBound::Hash { modulus, remainder };
    let table = table(
        PartitionStrategy::Hash,
        1,
        vec![of(2, 0), of(4, 1), of(4, 3)],
    );
    let by = table.partitioned.clone().expect("it is partitioned");
    let mut counts = [0; 3];
    for value in 0..1000 {
        counts[map(&table)
            .find(&key(&[value]))
            .expect("all remainders are there")] += 1;
    }
    assert!(
        counts[0] > 400 && counts[1] > 180 && counts[2] > 180,
        "{counts:?}"
    );
    let conflict = |bound| map(&table).conflict(&by, &bound);
    assert_eq!(conflict(of(8, 5)), Some(BoundConflict::Overlaps(1)));
    assert_eq!(conflict(of(6, 1)), Some(BoundConflict::Modulus(4, 1)));
}
