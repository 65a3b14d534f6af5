use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::points::{Absent, ColumnPlace, Pages};
use super::tests::{ID, built, encoded, orders, shape};
use super::{Directory, GroupReader, PAGE_BYTES};
use crate::tuple::{ColumnShape, Layouts};
use thermocline_values::sample_values::{any_type, nullable_value_of};

/// A block of which only some pages are there.
struct Few<'a> {
    block: &'a [u8],
    there: BTreeSet<usize>,
    missing: BTreeSet<usize>,
}

impl Pages for Few<'_> {
    fn copy(&mut self, at: usize, out: &mut [u8]) -> Result<(), Absent> {
        let bytes = self.block.get(at..at + out.len());
        let bytes = bytes.ok_or(Absent::Malformed)?;
        let last = (at + out.len()).saturating_sub(1).max(at);
        let pages = at / PAGE_BYTES..=last / PAGE_BYTES;
        let lacking: Vec<usize> = pages.filter(|page| !self.there.contains(page)).collect();
        if !lacking.is_empty() {
            self.missing.extend(lacking);
            return Err(Absent::Page);
        }
        out.copy_from_slice(bytes);
        Ok(())
    }
}

impl<'a> Few<'a> {
    fn none_of(block: &'a [u8]) -> Self {
        Self {
            block,
            there: BTreeSet::new(),
            missing: BTreeSet::new(),
        }
    }

    /// Asks again until all pages that are needed are there; how many were brought.
    fn until<T>(&mut self, mut ask: impl FnMut(&mut Self) -> Result<T, Absent>) -> (T, usize) {
        let mut brought = 0;
        loop {
            match ask(self) {
                Ok(found) => return (found, brought),
                Err(Absent::Malformed) => panic!("it is as it was written"),
                Err(Absent::Page) => {
                    assert!(!self.missing.is_empty(), "it says what it lacks");
                    brought += self.missing.len();
                    self.there.append(&mut self.missing);
                }
            }
        }
    }
}

/// Where all columns of a group lie that have bytes.
fn places(directory: &Directory, pages: &mut Few<'_>) -> Vec<Option<Arc<ColumnPlace>>> {
    let has_bytes = |column: usize| {
        let chunk = directory.chunk(directory.chunk_of(column));
        chunk.is_some_and(|chunk| chunk.bytes > 0)
    };
    let place = |column: usize| {
        let found = has_bytes(column)
            .then(|| pages.until(|pages| ColumnPlace::find(directory, column, pages)));
        found.map(|(place, _)| Arc::new(place))
    };
    (0..directory.columns()).map(place).collect()
}

/// Reads all tuples by pages. The most pages that one took once the places were known.
fn by_pages(block: &[u8], tuples: &[Vec<u8>]) -> usize {
    let (_, directory) = Directory::decode(block, ID).expect("is sound");
    let mut pages = Few::none_of(block);
    let places = places(&directory, &mut pages);
    let shared = directory.shared_chunks();
    let chunk = |number: usize| {
        let place = directory.chunk(number).filter(|_| shared.contains(&number));
        Some(&block[place?.range()])
    };
    let reader = GroupReader::new(&directory, chunk).expect("is sound");
    let mut most = 0;
    let mut tuple = Vec::new();
    for (position, written) in tuples.iter().enumerate() {
        pages.there.clear();
        let (_, brought) =
            pages.until(|pages| reader.tuple_by_pages(position, &places, pages, &mut tuple));
        assert_eq!(&tuple, written, "at {position}");
        most = most.max(brought);
    }
    let past = reader.tuple_by_pages(tuples.len(), &places, &mut pages, &mut tuple);
    assert_eq!(past, Err(Absent::Malformed));
    most
}

#[test]
fn a_row_takes_few_pages_of_a_large_group() {
    let (layouts, tuples) = orders(15_000);
    let block = built(&layouts, &tuples);
    let pages = block.len().div_ceil(PAGE_BYTES);
    let most = by_pages(&block, &tuples);
    // Six columns; a note may lie on two pages, and its end on one.
    assert!(pages > 40 && most <= 14, "{most} of {pages}");
}

#[test]
fn a_page_is_checked_by_itself() {
    let (layouts, tuples) = orders(3000);
    let block = built(&layouts, &tuples);
    let (_, directory) = Directory::decode(&block, ID).expect("is sound");
    let chunk = directory.sums().expect("are there");
    let sums = &block[chunk.range()];
    directory.check_sums(sums, ID).expect("are right");
    assert!(
        directory.check_sums(sums, ID + 1).is_err(),
        "another block's"
    );
    let pages: Vec<&[u8]> = block.chunks(PAGE_BYTES).collect();
    let summed = sums.len() / 4;
    assert!(summed >= pages.len() - 1 && summed > 4);
    for (number, page) in pages.iter().enumerate().take(summed) {
        directory
            .check_page(sums, number, page, ID)
            .expect("is right");
        assert!(directory.check_page(sums, number + 1, page, ID).is_err());
        let mut damaged = page.to_vec();
        damaged[PAGE_BYTES / 2] ^= 4;
        let behind = number * PAGE_BYTES + PAGE_BYTES / 2 >= chunk.offset as usize;
        let checked = directory.check_page(sums, number, &damaged, ID);
        assert_eq!(checked.is_ok(), behind, "page {number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn any_tuples_come_back_by_pages(
        (types, rows) in prop::collection::vec(any_type(), 1..8).prop_flat_map(|types| {
            let row: Vec<_> = types.iter().map(|of| nullable_value_of(*of, true)).collect();
            (Just(types), prop::collection::vec(row, 1..60))
        }),
    ) {
        let shapes: Vec<ColumnShape> = types.iter().map(|of| shape(*of)).collect();
        let layouts = Layouts::new(&shapes);
        let tuples: Vec<Vec<u8>> = rows.iter().map(|row| encoded(&layouts, row)).collect();
        by_pages(&built(&layouts, &tuples), &tuples);
    }

    #[test]
    fn damage_is_no_panic(at in 0usize..20_000, byte in any::<u8>(), position in 0usize..600) {
        let (layouts, tuples) = orders(600);
        let mut block = built(&layouts, &tuples);
        let (_, directory) = Directory::decode(&block, ID).expect("is sound");
        let first = directory.chunk(0).unwrap_or_default().offset as usize;
        let length = block.len();
        let at = first + at % (length - first);
        block[at] = byte;
        let mut pages = Few::none_of(&block);
        pages.there = (0..length.div_ceil(PAGE_BYTES)).collect();
        for column in 0..directory.columns() {
            let found = ColumnPlace::find(&directory, column, &mut pages);
            let Ok(place) = found else { continue };
            let mut places = vec![None; directory.columns()];
            places[column] = Some(Arc::new(place));
            let shared = directory.shared_chunks();
            let chunk = |number: usize| {
                let place = directory.chunk(number).filter(|_| shared.contains(&number));
                Some(&block[place?.range()])
            };
            if let Some(reader) = GroupReader::new(&directory, chunk) {
                let mut tuple = Vec::new();
                let _ = reader.tuple_by_pages(position, &places, &mut pages, &mut tuple);
            }
        }
    }
}
