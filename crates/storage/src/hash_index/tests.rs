use super::*;
use crate::changed_pages::Paged;
use crate::changed_pages::testing::{end_pages, read_pages, save_changed};
use crate::index_snapshot::{Corrupt, Reader};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hint::black_box;

/// A hash of test keys: a bijection, so that distinct keys have distinct hashes.
fn hash_of(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn rows(index: &HashIndex, hash: u64) -> BTreeSet<u32> {
    index.candidates(hash).collect()
}

/// The saved pages of lines and of duplicates.
#[derive(Default)]
struct Chain {
    lines: Vec<u8>,
    duplicates: Vec<u8>,
}

/// The saved pages with what changed since, and the head.
fn saved(index: &mut HashIndex, chain: &mut Chain) -> Vec<u8> {
    save_changed(index, &mut chain.lines);
    if let Some(duplicates) = index.duplicates_mut() {
        save_changed(duplicates, &mut chain.duplicates);
    }
    let mut bytes = chain.lines.clone();
    end_pages(&mut bytes);
    bytes.extend_from_slice(&chain.duplicates);
    end_pages(&mut bytes);
    index.write_head(&mut bytes);
    bytes
}

fn restored(bytes: &[u8]) -> Result<HashIndex, Corrupt> {
    let mut reader = Reader::new(bytes);
    let mut index = HashIndex::new();
    read_pages(&mut reader, |page, from| index.read_page(page, from))?;
    read_pages(&mut reader, |page, from| {
        index.read_duplicates_page(page, from)
    })?;
    index.read_head(&mut reader)?;
    reader.end()?;
    Ok(index)
}

#[derive(Clone, Debug)]
enum Step {
    /// So many entries of a key family, from a row on.
    Insert {
        key: u64,
        rows: u32,
        count: u16,
    },
    Remove {
        which: usize,
        count: u16,
    },
    RemoveAbsent {
        key: u64,
        row: u32,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = prop_oneof![0u64..20, 0u64..100_000];
    let first_row = prop_oneof![0u32..1000, any::<u32>()];
    let step = prop_oneof![
        4 => (key.clone(), first_row.clone(), 1u16..400)
            .prop_map(|(key, rows, count)| Step::Insert { key, rows, count }),
        2 => (any::<usize>(), 1u16..400).prop_map(|(which, count)| Step::Remove { which, count }),
        1 => (key, first_row).prop_map(|(key, row)| Step::RemoveAbsent { key, row }),
    ];
    prop::collection::vec(step, 1..40)
}

type Model = HashMap<u64, BTreeSet<u32>>;

fn apply(index: &mut HashIndex, model: &mut Model, step: Step) {
    match step {
        Step::Insert { key, rows, count } => {
            for i in 0..u32::from(count) {
                // Small keys get many rows each, large ones are mostly unique.
                let key = if key < 20 { key } else { key + u64::from(i) };
                let (hash, row) = (hash_of(key), rows.wrapping_add(i));
                if model.entry(hash).or_default().insert(row) {
                    index.insert(hash, row);
                }
            }
        }
        Step::Remove { which, count } => {
            let mut entries: Vec<(u64, u32)> = model
                .iter()
                .flat_map(|(hash, rows)| rows.iter().map(|row| (*hash, *row)))
                .collect();
            entries.sort_unstable();
            for _ in 0..usize::from(count).min(entries.len()) {
                let (hash, row) = entries.swap_remove(which % entries.len());
                assert!(index.remove(hash, row), "an entry was not found");
                model.get_mut(&hash).unwrap().remove(&row);
            }
        }
        Step::RemoveAbsent { key, row } => {
            let hash = hash_of(key);
            if model.get(&hash).is_none_or(|rows| !rows.contains(&row)) {
                let before = index.len();
                // A tag may agree with another key's only if the row does too.
                let other = model.values().any(|rows| rows.contains(&row));
                assert!(other || !index.remove(hash, row));
                assert!(other || index.len() == before);
            }
        }
    }
}

fn check(index: &HashIndex, model: &Model) {
    let entries: usize = model.values().map(BTreeSet::len).sum();
    assert_eq!(index.len(), entries);
    for (hash, expected) in model {
        assert!(rows(index, *hash).is_superset(expected));
        // What a candidate is said to share with the hash, it shares.
        let mut candidates = index.candidates(*hash);
        while let Some(row) = candidates.next() {
            let bits = candidates.known_bits();
            let shared = |other: &u64| {
                (hash ^ other).leading_zeros() >= bits && (bits == 0 || *hash as u8 == *other as u8)
            };
            let with_row = model.iter().filter(|(_, rows)| rows.contains(&row));
            assert!(with_row.map(|(other, _)| other).any(shared), "{bits} bits");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_entry_is_a_candidate(steps in steps()) {
        let mut index = HashIndex::new();
        let mut model = Model::new();
        for step in steps {
            apply(&mut index, &mut model, step);
        }
        check(&index, &model);
        let mut left = index.len();
        for (hash, rows) in &model {
            for row in rows {
                prop_assert!(index.remove(*hash, *row));
                left -= 1;
                prop_assert_eq!(index.len(), left);
            }
        }
        for hash in model.keys() {
            prop_assert_eq!(index.candidates(*hash).count(), 0);
        }
    }

    #[test]
    fn saved_pages_come_back_and_can_be_changed(parts in prop::collection::vec(steps(), 1..5)) {
        let mut index = HashIndex::new();
        let mut model = Model::new();
        let mut chain = Chain::default();
        for steps in parts {
            for step in steps {
                apply(&mut index, &mut model, step);
            }
            // The index goes on as the one that a restart has.
            let saved = saved(&mut index, &mut chain);
            index = restored(&saved).unwrap();
            check(&index, &model);
            prop_assert_eq!(index.changed().count(), 0);
        }
    }

    #[test]
    fn damaged_pages_never_panic(
        entries in 0u64..5000,
        flips in prop::collection::vec((any::<usize>(), 1u8..), 1..6),
        cut in any::<usize>(),
        header in any::<bool>(),
    ) {
        let mut index = HashIndex::new();
        for key in 0..entries {
            index.insert(hash_of(key / 3 * (key % 2)), key as u32);
        }
        let whole = saved(&mut index, &mut Chain::default());
        prop_assert!(restored(&whole[..cut % whole.len()]).is_err());
        let mut damaged = whole.clone();
        for (at, bits) in flips {
            let last = damaged.len() - 1;
            let at = if header { last - at % 90.min(last) } else { at % damaged.len() };
            damaged[at] ^= bits;
        }
        // What a sound index answers is lost with the damage (blocks have checksums against
        // that): a tree of duplicates out of order need not find what was just added.
        if let Ok(mut index) = restored(&damaged) {
            for key in 0..500 {
                index.candidates(hash_of(key)).for_each(drop);
                index.insert(hash_of(key), 7);
                black_box(index.remove(hash_of(key), 7));
            }
        }
    }
}

#[test]
fn the_head_of_something_else_is_refused() {
    let mut other = Reader::new(b"TCb2----------------");
    let error = HashIndex::new().read_head(&mut other).err();
    assert_eq!(error, Some(Corrupt("not a hash index")));
}

/// Rows of 28 bits leave windows of 11, so that the first entries run out of
/// hash bits within a test's time.
#[test]
fn entries_that_outlive_their_hash_bits_stay_reachable() {
    let mut index = HashIndex::new();
    let row_of = |key: u64| (1 << 27) + key as u32;
    let entries = 700_000;
    for key in 0..entries {
        index.insert(hash_of(key), row_of(key));
    }
    let side = index.side.as_ref().unwrap();
    let exhausted = side
        .strays
        .iter()
        .filter(|s| u32::from(s.known_bits) < index.old.level);
    assert!(exhausted.count() > 20);
    let index = restored(&saved(&mut index, &mut Chain::default())).unwrap();
    for key in 0..entries {
        assert!(index.candidates(hash_of(key)).any(|row| row == row_of(key)));
    }
    let mut index = index;
    for key in 0..entries {
        assert!(index.remove(hash_of(key), row_of(key)));
    }
    assert!(index.is_empty());
}

#[test]
fn a_row_entered_under_two_hashes_keeps_the_one_that_stays() {
    // The hashes differ behind the bits that a long-lived entry remembers.
    let mut index = HashIndex::new();
    let old_key = hash_of(1) & !0xFF;
    index.insert(old_key, 9);
    for key in 0..60_000 {
        index.insert(hash_of(1000 + key), 1000 + key as u32);
    }
    for bit in 8..50 {
        let new_key = old_key ^ 1 << bit;
        index.insert(new_key, 9);
        assert!(index.remove(old_key, 9));
        for key in 0..400 {
            index.insert(hash_of((bit << 32) + key), 100_000 + key as u32);
        }
        assert!(rows(&index, new_key).contains(&9), "lost with bit {bit}");
        index.insert(old_key, 9);
        assert!(index.remove(new_key, 9));
        assert!(rows(&index, old_key).contains(&9), "lost with bit {bit}");
    }
}

#[test]
fn many_rows_of_one_hash_neither_slow_nor_bloat_it() {
    let mut index = HashIndex::new();
    for row in 0..100_000 {
        index.insert(hash_of(5), row);
    }
    for key in 100..20_000 {
        index.insert(hash_of(key), 200_000 + key as u32);
    }
    assert_eq!(rows(&index, hash_of(5)).len(), 100_000);
    let per_entry = index.bytes() as f64 / index.len() as f64;
    assert!(per_entry < 8.0, "{per_entry} bytes");
    for row in 0..100_000 {
        assert!(index.remove(hash_of(5), row));
    }
    assert_eq!(rows(&index, hash_of(5)).len(), 0);
    assert_eq!(index.len(), 19_900);
    let aside = index.side.as_ref().map_or(0, |side| side.len());
    assert!(aside < 200, "{aside} entries aside");
}

#[test]
fn an_entry_takes_less_than_eight_bytes_while_the_index_grows() {
    let mut index = HashIndex::new();
    let (mut sum, mut samples, mut most) = (0.0, 0, 0f64);
    let (mut million_sum, mut million_samples) = (0.0, 0);
    let mut false_candidates = 0;
    let (mut lines_read, mut lines_missed) = (0, 0);
    for key in 0..2_000_000u64 {
        index.insert(hash_of(key), key as u32);
        if key < 100_000 || key % 997 != 0 {
            continue;
        }
        let per_entry = index.bytes() as f64 / index.len() as f64;
        (sum, samples, most) = (sum + per_entry, samples + 1, most.max(per_entry));
        if key >= 1_000_000 {
            (million_sum, million_samples) = (million_sum + per_entry, million_samples + 1);
            let absent = hash_of(u64::MAX - key);
            for i in 0..100 {
                let mut candidates = index.candidates(absent ^ i << 8 ^ i << 40 ^ i);
                false_candidates += candidates.by_ref().count();
                lines_missed += candidates.lines_read;
            }
        }
        let mut candidates = index.candidates(hash_of(key / 2));
        assert!(candidates.any(|row| row == (key / 2) as u32));
        lines_read += candidates.lines_read;
    }
    let (mean, million) = (
        sum / f64::from(samples),
        million_sum / f64::from(million_samples),
    );
    let false_share = false_candidates as f64 / f64::from(million_samples * 100);
    let lines = f64::from(lines_read) / f64::from(samples);
    let aside = index.side.as_ref().map_or(0, |side| side.len());
    println!("bytes/entry: mean {mean:.2}, 1-2 M {million:.2}, most {most:.2}");
    let missed = f64::from(lines_missed) / f64::from(million_samples * 100);
    println!("lines/hit {lines:.3}, lines/miss {missed:.3}");
    println!("false/miss {false_share:.6}, aside {aside}");
    assert!(million <= 8.0 && mean <= 8.1);
    assert!(false_share <= 0.001);
    assert!(lines < 1.25);
    assert!(missed < 1.5);
    assert!(aside < 10_000);
}

/// Growth comes in small steps: no single insert moves more than one group.
#[test]
fn a_step_of_growth_is_bounded() {
    let mut index = HashIndex::new();
    let mut lines = index.lines;
    for key in 0..300_000u64 {
        index.insert(hash_of(key), key as u32);
        let grown = index.lines - lines;
        assert!(
            grown <= u64::from(GROUP_LINES_STEP),
            "{grown} lines at once"
        );
        lines = index.lines;
    }
    let seen: HashSet<u32> = (0..300_000u64)
        .flat_map(|key| index.candidates(hash_of(key)))
        .collect();
    assert_eq!(seen.len(), 300_000);
}
