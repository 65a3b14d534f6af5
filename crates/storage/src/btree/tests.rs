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
    InsertUnique(Vec<u8>, u32),
    /// What of these is behind all that is there.
    Append(Vec<(Vec<u8>, u32)>),
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
        3 => (key(), 0u32..2000).prop_map(|(k, r)| Step::InsertUnique(k, r)),
        1 => prop::collection::vec((key(), 0u32..2000), 0..300).prop_map(Step::Append),
        3 => any::<usize>().prop_map(Step::Remove),
        1 => (key(), 0u32..2000).prop_map(|(k, r)| Step::RemoveAbsent(k, r)),
    ];
    prop::collection::vec(step, 1..1500)
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Ascending,
    Descending,
    Random,
}

impl Order {
    /// The entry's number among `0..count` that comes at `index`.
    fn at(self, index: u32, count: u32) -> u32 {
        match self {
            Self::Ascending => index,
            Self::Descending => count - 1 - index,
            Self::Random => scattered(index) % (4 * count),
        }
    }
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Ascending),
        Just(Order::Descending),
        Just(Order::Random),
    ]
}

/// Numbers in an order, so far apart, from a first one on.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    order: Order,
    first: u32,
    step: u32,
}

impl Numbers {
    fn at(self, index: u32, count: u32) -> u32 {
        let above = self.order.at(index, count).wrapping_mul(self.step);
        self.first.wrapping_add(above)
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let first = prop_oneof![Just(0), 0u32..3000, any::<u32>(), Just(u32::MAX - 1000)];
    let step = prop_oneof![4 => 1u32..4, 2 => 4u32..300, 1 => any::<u32>()];
    (order(), first, step).prop_map(|(order, first, step)| Numbers { order, first, step })
}

/// A load: entries that come in, or a share of all that goes.
#[derive(Clone, Debug)]
enum Load {
    Insert {
        keys: Numbers,
        rows: Numbers,
        count: u32,
        key_bytes: usize,
    },
    Remove {
        order: Order,
        keep_each: usize,
    },
}

fn load() -> impl Strategy<Value = Load> {
    let key_bytes = prop_oneof![3 => Just(9usize), 3 => Just(5), 1 => Just(4), 1 => Just(20)];
    prop_oneof![
        3 => (numbers(), numbers(), 1u32..1500, key_bytes).prop_map(
            |(keys, rows, count, key_bytes)| Load::Insert { keys, rows, count, key_bytes }
        ),
        1 => (order(), 1usize..200)
            .prop_map(|(order, keep_each)| Load::Remove { order, keep_each }),
    ]
}

/// An integer as a key of so many bytes.
fn integer_key(number: u32, key_bytes: usize) -> Vec<u8> {
    let mut key = vec![0; key_bytes];
    key[0] = 1;
    if key_bytes > 5 {
        key[1] = 0x80;
    }
    key[key_bytes - 4..].copy_from_slice(&number.to_be_bytes());
    key
}

fn apply_load(tree: &mut BTree, model: &mut Model, load: &Load) {
    match *load {
        Load::Insert {
            keys,
            rows,
            count,
            key_bytes,
        } => {
            for index in 0..count {
                let key = integer_key(keys.at(index, count), key_bytes);
                let row = rows.at(index, count);
                assert_eq!(tree.insert(&key, row), Ok(model.insert((key.clone(), row))));
                assert!(tree.rows_equal(&key).any(|found| found == row));
            }
        }
        Load::Remove { order, keep_each } => {
            let entries: Vec<_> = model.iter().cloned().collect();
            let count = entries.len() as u32;
            for index in 0..count {
                let at = order.at(index, count) as usize % entries.len();
                let (key, row) = &entries[at];
                if !at.is_multiple_of(keep_each) {
                    assert_eq!(tree.remove(key, *row), model.remove(&entries[at]));
                }
            }
        }
    }
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
        Step::InsertUnique(key, row) => {
            let inserted = tree.insert_unique(&key, row).unwrap();
            let is_new = !model.iter().any(|(other, _)| *other == key);
            assert_eq!(inserted, is_new);
            if is_new {
                model.insert((key, row));
            }
        }
        Step::Append(entries) => {
            let last = model.last().map(|(key, _)| key.clone());
            let behind = |(key, _): &(Vec<u8>, u32)| last.as_ref().is_none_or(|last| last < key);
            let entries: Model = entries.into_iter().filter(behind).collect();
            assert!(last.is_none_or(|last| !tree.ends_before(&last)));
            let first = entries.first().map(|(key, _)| key);
            // An empty leaf at the end has another beginning.
            let has_empty_end = tree.node(tree.last_leaf()).len() == 0 && !model.is_empty();
            if first.is_some_and(|key| tree.ends_before(key)) {
                let appended = entries.iter().map(|(key, row)| (&key[..], *row));
                tree.append(appended).unwrap();
                model.extend(entries);
            } else {
                assert!(first.is_none() || has_empty_end);
            }
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
    fn loads_of_any_order_agree_with_a_set(loads in prop::collection::vec(load(), 1..8)) {
        let mut tree = BTree::new();
        let mut model = Model::new();
        let mut chain = Vec::new();
        for load in &loads {
            apply_load(&mut tree, &mut model, load);
            check_whole(&tree, &model);
            let restored = restored(&saved(&mut tree, &mut chain)).unwrap();
            check_whole(&restored, &model);
            if tree.len().is_multiple_of(2) {
                tree = restored;
            }
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
    assert_eq!(tree.insert_unique(&key, 1), Err(refused));
    assert_eq!(tree.append([(&[0][..], 0), (&key, 1)]), Err(refused));
    assert_eq!(tree.get_first(&[0]), Some(0));
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

/// Bytes an entry of a tree of integer keys of nine bytes and of five.
fn bytes_of_integers(entry: impl Fn(u32) -> (u32, u32)) -> [f64; 2] {
    [9, 5].map(|key_bytes| {
        let mut tree = BTree::new();
        for index in 0..200_000 {
            let (number, row) = entry(index);
            tree.insert(&integer_key(number, key_bytes), row).unwrap();
        }
        let copy = restored(&saved(&mut tree, &mut Vec::new())).unwrap();
        assert!(copy.bytes() <= tree.bytes(), "a restart takes more");
        bytes_per_entry(&tree)
    })
}

#[test]
fn integer_keys_take_few_bytes() {
    type Pattern<'a> = (&'a str, f64, &'a dyn Fn(u32) -> (u32, u32));
    // Clients that take turns, each with a thousand ascending keys at a time.
    let clients = |clients: u32, i: u32| {
        let (client, own) = (i % clients, i / clients);
        (own / 1000 * clients + client) * 1000 + own % 1000
    };
    let patterns: [Pattern<'_>; 11] = [
        ("each key", 2.5, &|i| (i, i)),
        ("every 2nd", 2.6, &|i| (i * 2, i)),
        ("a random half", 2.7, &|i| (i * 2 + scattered(i) % 2, i)),
        ("every 3rd", 3.2, &|i| (i * 3, i)),
        ("every 16th", 3.5, &|i| (i * 16, i)),
        ("two clients", 3.0, &|i| (clients(2, i), i)),
        ("six clients", 3.1, &|i| (clients(6, i), i)),
        ("every 2nd, descending", 2.6, &|i| (!(i * 2), i)),
        ("every 2nd, rows descending", 2.6, &|i| (i * 2, !i)),
        ("keys and rows random", 6.5, &|i| {
            (scattered(i), scattered(!i))
        }),
        ("keys random", 6.5, &|i| (scattered(i), i)),
    ];
    for (name, most, entry) in patterns {
        let found = bytes_of_integers(entry);
        let within = found.iter().all(|bytes| *bytes <= most);
        assert!(within, "{name}: {found:?} bytes an entry");
    }
}

#[test]
fn few_rows_that_stay_take_few_bytes() {
    for ascending in [true, false] {
        let mut tree = BTree::new();
        for row in 0..100_000u32 {
            tree.insert(&integer_key(row * 2, 9), row).unwrap();
        }
        for index in 0..100_000u32 {
            let row = if ascending { index } else { 99_999 - index };
            if row % 100 != 0 {
                assert!(tree.remove(&integer_key(row * 2, 9), row));
            }
        }
        let bytes = tree.data_bytes as f64 / tree.len() as f64;
        assert!(bytes < 40.0, "{bytes} bytes an entry");
    }
}

#[test]
fn a_page_has_whole_rows_and_more_room_is_read() {
    let mut tree = BTree::new();
    for row in [700u32, 701, 900] {
        tree.insert(&integer_key(row * 2, 5), row).unwrap();
    }
    let mut page = Vec::new();
    assert!(tree.write_page(0, &mut page));
    let mut expected = vec![0];
    for short in [3u16, 3, 2, 6] {
        expected.extend_from_slice(&short.to_le_bytes());
    }
    expected.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 32, 0, 0, 0]);
    expected.extend_from_slice(&[1, 0, 0, 5, 120, 5, 122, 7, 8]);
    for row in [900u32, 701, 700] {
        expected.extend_from_slice(&row.to_le_bytes());
    }
    assert_eq!(page, expected);

    // As a node was written that had 1024 bytes of data.
    page[13..17].copy_from_slice(&1024u32.to_le_bytes());
    let mut copy = BTree::new();
    copy.read_page(0, &mut Reader::new(&page)).unwrap();
    assert_eq!(copy.data_bytes, tree.data_bytes);
    assert_eq!(copy.get_first(&integer_key(1402, 5)), Some(701));
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

proptest! {
    /// Whatever the lengths of a node's keys and of the key that is looked for.
    #[test]
    fn a_rank_is_how_many_entries_are_below(
        (length, begin) in (1usize..=12, prop::collection::vec(0u8..2, 0..3)),
        ends in prop::collection::btree_set(
            (prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 12), 0u32..4),
            1..40,
        ),
        wanted in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..16),
        row in prop_oneof![Just(0u64), Just(1), 2u64..5, Just(node::ROW_AFTER_ALL)],
    ) {
        let whole = ends.iter().map(|(end, row)| ([&begin[..], &end[..length]].concat(), *row));
        let whole: Model = whole.collect();
        let mut entries = layout::Entries::default();
        for (index, (key, row)) in whole.iter().enumerate() {
            entries.insert(index, key, *row, node::NO_NODE);
        }
        let mut node = node::Node::empty(0);
        node.lay_out(&entries, 0..whole.len(), u32::MAX, false);
        for wanted in [wanted.clone(), [&begin[..], &wanted[..]].concat()] {
            let is_below = |(key, own): &&(Vec<u8>, u32)| {
                (key.as_slice(), u64::from(*own)) < (wanted.as_slice(), row)
            };
            let below = whole.iter().filter(is_below).count();
            prop_assert_eq!(node.rank(&wanted, row), below, "{:?} {}", wanted, row);
        }
    }
}
