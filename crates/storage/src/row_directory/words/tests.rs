use super::*;
use crate::arena::TuplePtr;
use crate::block::{BLOCK_HEADER_BYTES, SLOT_BYTES, record_bytes};
use crate::columns::COLUMNS_EXTENT;
use crate::row_directory::word::ColdAddress;
use proptest::prelude::*;

fn word() -> impl Strategy<Value = Word> {
    let cold = |blocks: std::ops::Range<u32>| {
        (blocks, any::<u16>(), 0u8..16, 0u8..32).prop_map(|(block, slot, extent, fingerprint)| {
            Word::cold(
                ColdAddress {
                    block,
                    slot,
                    extent,
                },
                fingerprint,
            )
        })
    };
    let words = prop_oneof![
        4 => cold(1..20),
        2 => cold(1..u32::MAX),
        4 => (0u64..1 << 40).prop_map(|pointer| Word::hot(TuplePtr(pointer))),
        1 => Just(Word::free(Some(u32::MAX - 1))),
        1 => Just(Word(3 << 62)),
    ];
    (words, any::<bool>(), any::<bool>(), 0u8..8).prop_map(|(word, aside, own, warmth)| {
        word.with_aside(aside)
            .with_uncommitted(own)
            .with_temperature(warmth)
    })
}

fn is_wide(chunk: &Form) -> bool {
    matches!(chunk, Form::Wide(_))
}

/// Rows of `bytes` that lie one behind the other in blocks of a MiB.
fn in_order(rows: u32, bytes: impl Fn(u32) -> usize) -> Vec<Word> {
    let (mut block, mut offset) = (1, BLOCK_HEADER_BYTES);
    let word = |row| {
        let record = record_bytes(bytes(row));
        if offset + record > 1 << 20 {
            (block, offset) = (block + 1, BLOCK_HEADER_BYTES);
        }
        let sectors = (offset + record).div_ceil(4096) - offset / 4096;
        let address = ColdAddress {
            block,
            slot: (offset / SLOT_BYTES) as u16,
            extent: sectors.min(15) as u8,
        };
        offset += record;
        Word::cold(address, row.wrapping_mul(0x9E37_79B9) as u8)
    };
    (0..rows).map(word).collect()
}

/// Rows one behind the other in blocks of columns, of which some are elsewhere.
fn in_columns(rows: u32, in_a_block: u32) -> Vec<Word> {
    let word = |row: u32| {
        let address = ColdAddress {
            block: 1 + row / in_a_block,
            slot: (row % in_a_block) as u16,
            extent: COLUMNS_EXTENT,
        };
        let elsewhere = ColdAddress {
            block: 90,
            slot: row as u16,
            extent: 1,
        };
        let address = if row % 97 == 5 { elsewhere } else { address };
        Word::cold(address, row.wrapping_mul(0x9E37_79B9) as u8)
    };
    (0..rows).map(word).collect()
}

#[test]
fn rows_in_columns_take_a_byte_each() {
    let model = in_columns(100_000, 1 << 16);
    let words = filled(&model);
    check(&words, &model);
    assert!(words.bytes() < 2 * model.len(), "{}", words.bytes());
    // But for those elsewhere, all of them are known to be in runs.
    let in_runs = (0..model.len() as u32).filter(|row| words.columns_from(*row) > 0);
    assert!(in_runs.count() > model.len() * 9 / 10);
}

fn filled(model: &[Word]) -> Words {
    let mut words = Words::default();
    for (row, word) in (0..).zip(model) {
        if row as usize == words.capacity() {
            words.grow();
        }
        words.put(row, *word);
        words.pack(row);
    }
    words
}

fn check(words: &Words, model: &[Word]) {
    for (row, word) in (0..).zip(model) {
        assert_eq!(words.get(row), *word, "row {row}");
        for settled in row..row + words.settled_from(row) {
            let word = model[settled as usize];
            assert!(word.is_cold() && !word.is_aside() && !word.is_uncommitted());
        }
        let run = words.columns_from(row);
        assert!(run <= words.settled_from(row));
        let first = word.as_cold().map(|cold| cold.address());
        for (number, word) in (0..run).zip(&model[row as usize..]) {
            let address = word.as_cold().map(|cold| cold.address());
            let expected = first.map(|first| ColdAddress {
                slot: first.slot + number as u16,
                ..first
            });
            assert!(address == expected && expected.is_some_and(|a| a.is_in_columns()));
        }
    }
    words.blocks.check(model);
    let pieces: usize = (words.chunks.iter())
        .map(|chunk| match chunk {
            Form::Grouped(chunk) => {
                let plain = chunk.groups.iter().filter(|group| group.is_plain());
                assert_eq!(chunk.plain, plain.count());
                chunk.pieces()
            }
            Form::Narrow(chunk) => {
                let all = || (0..CHUNK_WORDS).map(|place| narrow_at(&chunk.words, place));
                let counts = (
                    all().filter(|word| is_cold(*word)).count(),
                    all().filter(|word| *word != 0).count(),
                );
                assert_eq!((usize::from(chunk.cold), usize::from(chunk.used)), counts);
                0
            }
            Form::Wide(_) => 0,
        })
        .sum();
    assert_eq!(words.grouped_pieces, pieces);
}

proptest! {
    #[test]
    fn words_are_what_was_put(
        steps in prop::collection::vec((0usize..60, word()), 1..300),
        foreign in prop::option::of((0usize..300, any::<u64>())),
    ) {
        let mut words = Words::default();
        words.grow();
        let mut model = vec![Word(0); 60];
        for (number, (row, word)) in steps.into_iter().enumerate() {
            let word = match foreign {
                Some((at, foreign)) if at == number => Word(foreign),
                _ => word,
            };
            words.put(row as u32, word);
            model[row] = word;
        }
        for (row, word) in model.iter().enumerate() {
            prop_assert_eq!(words.get(row as u32), *word);
        }
        prop_assert_eq!(words.get(CHUNK_WORDS as u32), Word(0));
        words.blocks.check(if is_wide(&words.chunks[0]) { &[] } else { &model });
        words.truncate(0);
        words.blocks.check(&[]);
        prop_assert_eq!(words.capacity(), 0);
    }
}

#[test]
fn more_blocks_than_numbers_widen_the_chunk_that_needs_it() {
    let mut words = Words::default();
    let word = |row: u32| {
        let address = ColdAddress {
            block: row + 1,
            slot: 7,
            extent: 1,
        };
        Word::cold(address, row as u8 & 31)
    };
    let rows = (1 << u16::BITS) + 2 * CHUNK_WORDS as u32;
    for row in 0..rows {
        if row as usize == words.capacity() {
            words.grow();
        }
        words.put(row, word(row));
    }
    assert!((0..rows).all(|row| words.get(row) == word(row)));
    assert_eq!(words.chunks.iter().filter(|c| is_wide(c)).count(), 2);
    // Numbers that are free again are given out again.
    (0..CHUNK_WORDS as u32).for_each(|row| words.put(row, Word(0)));
    words.grow();
    let first = rows + CHUNK_WORDS as u32;
    words.put(rows, word(first));
    assert_eq!(words.get(rows), word(first));
    assert!(words.chunks.last().is_some_and(|c| !is_wide(c)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn packed_words_are_what_was_put(
        bytes in prop_oneof![60usize..140, 900usize..1100, 9_000usize..12_000],
        spread in prop_oneof![Just(1usize), Just(40)],
        steps in prop::collection::vec((0u32..CHUNK_WORDS as u32, 0u8..10, word(), 0u8..8), 1..900),
        near in any::<bool>(),
        columns in prop_oneof![Just(None), (200u32..9000).prop_map(Some)],
    ) {
        let mut model = match columns {
            Some(in_a_block) => in_columns(CHUNK_WORDS as u32, in_a_block),
            None => in_order(CHUNK_WORDS as u32, |row| bytes + row as usize * 7919 % spread),
        };
        let ordered = model.clone();
        let mut words = filled(&model);
        check(&words, &model);
        for (row, kind, other, warmth) in steps {
            // In a few pages, so that they are packed, plain and packed again.
            let row = if near { row % 200 } else { row };
            let place = row as usize;
            let word = match kind {
                0..3 => model[place].with_temperature(warmth),
                3..6 => other,
                6..8 => ordered[place],
                8 => Word::hot(TuplePtr(u64::from(row) + 1)).with_temperature(warmth),
                _ => {
                    words.pack(row);
                    continue;
                }
            };
            words.put(row, word);
            model[place] = word;
        }
        check(&words, &model);
        for row in 0..CHUNK_WORDS as u32 {
            words.pack(row);
        }
        check(&words, &model);
        words.truncate(0);
        words.blocks.check(&[]);
        prop_assert_eq!(words.grouped_pieces, 0);
    }
}

/// Bytes a word, of so many rows.
fn bytes_a_word(model: &[Word]) -> f64 {
    let mut words = filled(model);
    (0..model.len()).for_each(|row| words.pack(row as u32));
    check(&words, model);
    words.bytes() as f64 / model.len() as f64
}

#[test]
fn rows_that_left_in_order_take_a_byte_or_two() {
    let rows = 4 * CHUNK_WORDS as u32;
    let same = bytes_a_word(&in_order(rows, |_| 100));
    assert!(same < 1.8, "{same}");
    let without_fingerprints: Vec<Word> = (in_order(rows, |_| 100).into_iter())
        .filter_map(|word| Some(Word::cold(word.as_cold()?.address(), 0)))
        .collect();
    let same = bytes_a_word(&without_fingerprints);
    assert!(same < 1.2, "{same}");
    let differing = bytes_a_word(&in_order(rows, |row| 60 + row as usize * 7919 % 80));
    assert!(differing < 3.0, "{differing}");
    // A twentieth in memory.
    let mut some_hot = in_order(rows, |_| 100);
    for row in (0..rows).filter(|row| row.wrapping_mul(0x9E37_79B9) < u32::MAX / 20) {
        some_hot[row as usize] = Word::hot(TuplePtr(u64::from(row) + 1));
    }
    let hot = bytes_a_word(&some_hot);
    assert!(hot < 2.3, "{hot}");
    // In no order at all: as without packing.
    let mut shuffled = in_order(rows, |_| 100);
    for row in 0..rows as usize {
        shuffled.swap(row, (row * 40_503 + 7) % rows as usize);
    }
    let shuffled = bytes_a_word(&shuffled);
    assert!(shuffled < 6.1, "{shuffled}");
}

#[test]
fn a_chunk_whose_rows_come_back_is_narrow_again() {
    let mut model = in_order(CHUNK_WORDS as u32, |_| 100);
    let mut words = filled(&model);
    assert!(matches!(words.chunks[0], Form::Grouped(_)));
    for row in 0..CHUNK_WORDS as u32 {
        model[row as usize] = Word::hot(TuplePtr(u64::from(row) + 1));
        words.put(row, model[row as usize]);
    }
    assert!(matches!(words.chunks[0], Form::Narrow(_)));
    check(&words, &model);
}
