use super::*;
use crate::changed_pages::Paged;
use crate::changed_pages::testing::{end_pages, read_pages, save_changed};
use crate::index_snapshot::{Corrupt, Reader};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

type Model = BTreeSet<(Vec<u8>, u32)>;

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, u32),
    Remove(usize),
    RemoveAbsent(Vec<u8>, u32),
}

/// Keys of the kinds that meet: integers, short strings that are prefixes of
/// one another, strings with long common beginnings, and few distinct ones.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<u32>().prop_map(|k| k.to_be_bytes().to_vec()),
        (0u32..5000).prop_map(|k| k.to_be_bytes().to_vec()),
        prop::collection::vec(0u8..3, 0..6),
        (0usize..4, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(family, mut tail)| {
            let mut key = vec![b'a' + family as u8; 40 * family];
            key.append(&mut tail);
            key
        }),
        (0usize..KEY_BYTES_MAX, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        Just(b"same".to_vec()),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (key(), 0u32..2000).prop_map(|(k, r)| Step::Insert(k, r)),
        3 => any::<usize>().prop_map(Step::Remove),
        1 => (key(), 0u32..2000).prop_map(|(k, r)| Step::RemoveAbsent(k, r)),
    ];
    prop::collection::vec(step, 1..1500)
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

fn within(key: &[u8], lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    let above = match lower {
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
        Bound::Unbounded => true,
    };
    let below = match upper {
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
        Bound::Unbounded => true,
    };
    above && below
}

fn apply(tree: &mut BTree, model: &mut Model, step: Step) {
    match step {
        Step::Insert(key, row) => {
            let inserted = tree.insert(&key, row).unwrap();
            assert_eq!(inserted, model.insert((key, row)));
        }
        Step::Remove(index) if !model.is_empty() => {
            let (key, row) = model.iter().nth(index % model.len()).unwrap().clone();
            assert!(tree.remove(&key, row));
            model.remove(&(key, row));
        }
        Step::Remove(_) => {}
        Step::RemoveAbsent(key, row) => {
            assert_eq!(tree.remove(&key, row), model.remove(&(key, row)));
        }
    }
    assert_eq!(tree.len(), model.len());
}

fn collect(
    tree: &BTree,
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
    ascending: bool,
) -> Vec<(Vec<u8>, u32)> {
    let mut found = Vec::new();
    let end = tree.scan(lower, upper, ascending, |key, row| {
        found.push((key.to_vec(), row));
        ControlFlow::Continue(())
    });
    assert!(end.is_continue());
    found
}

fn check_whole(tree: &BTree, model: &Model) {
    let up = collect(tree, Bound::Unbounded, Bound::Unbounded, true);
    assert!(up.iter().eq(model.iter()));
    let down = collect(tree, Bound::Unbounded, Bound::Unbounded, false);
    assert!(down.iter().eq(model.iter().rev()));
    let data_bytes: usize = tree.nodes.iter().flatten().map(|n| n.data.len()).sum();
    assert_eq!(tree.data_bytes, data_bytes);
}

/// The saved pages with what changed since, and the head.
fn saved(tree: &mut BTree, chain: &mut Vec<u8>) -> Vec<u8> {
    save_changed(tree, chain);
    let mut bytes = chain.clone();
    end_pages(&mut bytes);
    tree.write_head(&mut bytes);
    bytes
}

fn restored(bytes: &[u8]) -> Result<BTree, Corrupt> {
    let mut reader = Reader::new(bytes);
    let mut tree = BTree::new();
    read_pages(&mut reader, |page, from| tree.read_page(page, from))?;
    tree.read_head(&mut reader)?;
    reader.end()?;
    Ok(tree)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn behaves_as_an_ordered_set(
        steps in steps(),
        ranges in prop::collection::vec((bounds(), bounds()), 8),
        probes in prop::collection::vec((key(), 0u32..2000), 8),
        stop in 1usize..20,
    ) {
        let mut tree = BTree::new();
        let mut model = Model::new();
        for step in steps {
            apply(&mut tree, &mut model, step);
        }
        check_whole(&tree, &model);
        for (lower, upper) in &ranges {
            let (lower, upper) = (as_slice(lower), as_slice(upper));
            let expected: Vec<_> = model
                .iter()
                .filter(|(key, _)| within(key, lower, upper))
                .cloned()
                .collect();
            prop_assert_eq!(&collect(&tree, lower, upper, true), &expected);
            let mut down = collect(&tree, lower, upper, false);
            down.reverse();
            prop_assert_eq!(&down, &expected);
            // In batches, each behind the last entry of the one before.
            for ascending in [true, false] {
                let mut found: Vec<(Vec<u8>, u32)> = Vec::new();
                loop {
                    let before = found.len();
                    let resume = found.last().cloned();
                    let resume = resume.as_ref().map(|(key, row)| (key.as_slice(), *row));
                    let mut take = |key: &[u8], row: u32| {
                        found.push((key.to_vec(), row));
                        if found.len() == before + stop {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    };
                    if tree.scan_from(lower, upper, ascending, resume, &mut take).is_continue() {
                        break;
                    }
                }
                if !ascending {
                    found.reverse();
                }
                prop_assert_eq!(&found, &expected);
            }
        }
        let present = model.iter().take(50).cloned();
        for (key, row) in probes.into_iter().chain(present) {
            let rows: Vec<u32> = model.iter().filter(|e| e.0 == key).map(|e| e.1).collect();
            prop_assert_eq!(tree.get_first(&key), rows.first().copied());
            prop_assert_eq!(tree.rows_equal(&key).collect::<Vec<_>>(), rows);
            let mut found = Vec::new();
            let after = tree.seek_beyond(&key, row, true).map(|at| {
                let row = tree.entry(at, &mut found);
                (found.clone(), row)
            });
            let expected = model.range((Bound::Excluded((key.clone(), row)), Bound::Unbounded));
            prop_assert_eq!(after, expected.into_iter().next().cloned());
            let before = tree.seek_beyond(&key, row, false).map(|at| {
                let row = tree.entry(at, &mut found);
                (found.clone(), row)
            });
            let expected = model.range(..(key.clone(), row)).next_back().cloned();
            prop_assert_eq!(before, expected);
        }
    }

    #[test]
    fn saved_pages_come_back_and_can_be_changed(parts in prop::collection::vec(steps(), 1..4)) {
        let mut tree = BTree::new();
        let mut model = Model::new();
        let mut chain = Vec::new();
        for steps in parts {
            for step in steps {
                apply(&mut tree, &mut model, step);
            }
            // The tree goes on as the one that a restart has.
            let saved = saved(&mut tree, &mut chain);
            tree = restored(&saved).unwrap();
            check_whole(&tree, &model);
            prop_assert_eq!(tree.changed().count(), 0);
        }
    }

    #[test]
    fn damaged_pages_never_panic(
        steps in steps(),
        flips in prop::collection::vec((any::<usize>(), 1u8..), 1..4),
        cut in any::<usize>(),
        probe in key(),
    ) {
        let mut tree = BTree::new();
        let mut model = Model::new();
        for step in steps.into_iter().take(600) {
            apply(&mut tree, &mut model, step);
        }
        let whole = saved(&mut tree, &mut Vec::new());
        prop_assert!(restored(&whole[..cut % whole.len()]).is_err());
        let mut damaged = whole.clone();
        for (at, bits) in flips {
            let at = at % damaged.len();
            damaged[at] ^= bits;
        }
        if let Ok(tree) = restored(&damaged) {
            let _ = tree.get_first(&probe);
            let _ = collect(&tree, Bound::Unbounded, Bound::Unbounded, true);
            let _ = collect(&tree, Bound::Unbounded, Bound::Unbounded, false);
        }
    }
}

#[test]
fn positions_step_through_the_tree_both_ways() {
    let mut tree = BTree::new();
    for row in 0..3000u32 {
        tree.insert(&(row * 2).to_be_bytes(), row).unwrap();
    }
    let mut key = Vec::new();
    let low = 1001u32.to_be_bytes();
    let mut at = tree.seek(Bound::Included(&low), true);
    let mut expected = 501;
    while let Some(position) = at {
        assert_eq!(tree.entry(position, &mut key), expected);
        assert_eq!(key, (expected * 2).to_be_bytes());
        expected += 1;
        at = tree.advance(position, true);
    }
    assert_eq!(expected, 3000);
    let high = 1002u32.to_be_bytes();
    let mut at = tree.seek(Bound::Excluded(&high), false);
    let mut rows = Vec::new();
    while let Some(position) = at {
        rows.push(tree.entry(position, &mut key));
        at = tree.advance(position, false);
    }
    assert!(rows.into_iter().eq((0..=500).rev()));
}

#[test]
fn keys_beyond_the_limit_are_refused() {
    let mut tree = BTree::new();
    let key = vec![1; KEY_BYTES_MAX + 1];
    let refused = KeyTooLong {
        key_bytes: KEY_BYTES_MAX + 1,
    };
    assert_eq!(tree.insert(&key, 1), Err(refused));
    assert_eq!(tree.insert(&key[1..], 1), Ok(true));
    assert_eq!(tree.get_first(&key[1..]), Some(1));
    assert_eq!(tree.get_first(&key), None);
    assert!(!tree.remove(&key, 1));
}

#[test]
fn the_head_of_something_else_is_refused() {
    let mut other = Reader::new(b"TCb1------------------");
    let error = BTree::new().read_head(&mut other).err();
    assert_eq!(error, Some(Corrupt("not a B+tree")));
}

/// A permutation of 0..2^20: odd multiples are one, and scatter.
fn scattered(index: u32) -> u32 {
    (index.wrapping_mul(0x9E37_79B1) >> 7 ^ index.wrapping_mul(0x85EB_CA6B)) & 0xF_FFFF
}

fn bytes_per_entry(tree: &BTree) -> f64 {
    tree.bytes() as f64 / tree.len() as f64
}

#[test]
fn integer_keys_take_few_bytes() {
    let mut ascending = BTree::new();
    let mut random = BTree::new();
    for row in 0..200_000u32 {
        ascending.insert(&row.to_be_bytes(), row).unwrap();
        random.insert(&scattered(row).to_be_bytes(), row).unwrap();
    }
    let (a, r) = (bytes_per_entry(&ascending), bytes_per_entry(&random));
    println!("bytes per entry: ascending {a:.2}, random {r:.2}");
    assert!(a <= 9.0, "ascending {a}");
    assert!(r <= 11.0, "random {r}");
}

#[test]
fn memory_returns_after_deletes_and_duplicates_stay_fast() {
    let mut tree = BTree::new();
    for row in 0..100_000u32 {
        tree.insert(b"one key", row).unwrap();
    }
    assert_eq!(tree.rows_equal(b"one key").count(), 100_000);
    assert!(bytes_per_entry(&tree) < 6.0);
    for row in (0..100_000u32).rev() {
        assert!(tree.remove(b"one key", row));
    }
    assert!(tree.is_empty());
    assert_eq!(tree.get_first(b"one key"), None);
    assert!(tree.bytes() < 60_000, "{} bytes stay", tree.bytes());
}
