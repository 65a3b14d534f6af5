//! Rows of a row group by their positions. Many are read of whole chunks. Of few, the large chunks are left
//! where they are: of each column the pages are read that these rows need (002 §2.1: warm columns lie in pages of 4 KB). A chunk that is in memory, or no larger than a few
//! pages, is taken whole.
//!
//! The rows are tried with the pages that are there. What they lack is noted, read at once, and they are
//! tried again: two or three times, since a value's number says which word of a dictionary it is. Each
//! page is checked by itself. Not here: what leaves memory again (`column_cache`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::HashMap;
use thermocline_storage::columns::{Absent, ColumnPlace, PAGE_BYTES, Pages};

use crate::ground::error::Result;
use crate::memory::fetched::Fetched;
use crate::rows::column_cache::{Leaves, Piece};
use crate::rows::planned_read::{PlannedRead, address_key};
use crate::rows::row_group::{
    DIRECTORY_READ_BYTES, Group, Home, Range, RowGroups, WHOLE_BYTES_MAX,
};

/// How few rows of a group are read.
enum Few {
    /// All chunks are there.
    Whole(Group),
    /// Some are not.
    Pages(GroupPages),
}

/// A group of which some columns are read by pages.
struct GroupPages {
    group: Group,
    home: Home,
    /// Of each column that is read by pages, where its parts lie.
    places: Vec<Option<Arc<ColumnPlace>>>,
    columns: Vec<usize>,
}

/// The pages of a block that are in memory; notes those that are not.
struct PagesHere<'g> {
    groups: &'g RowGroups,
    pages: &'g GroupPages,
    length: usize,
    /// Those that were asked for.
    here: HashMap<usize, Arc<[u8]>>,
    missing: BTreeSet<usize>,
}

impl Pages for PagesHere<'_> {
    fn copy(&mut self, at: usize, out: &mut [u8]) -> std::result::Result<(), Absent> {
        let end = at.checked_add(out.len()).filter(|end| *end <= self.length);
        let end = end.ok_or(Absent::Malformed)?;
        let mut is_missing = false;
        let mut from = at;
        while from < end {
            let number = from / PAGE_BYTES;
            let until = end.min((number + 1) * PAGE_BYTES);
            match self.page(number) {
                Some(page) => {
                    let within = from % PAGE_BYTES..from % PAGE_BYTES + (until - from);
                    let bytes = page.get(within).ok_or(Absent::Malformed)?;
                    out[from - at..until - at].copy_from_slice(bytes);
                }
                None => {
                    self.missing.insert(number);
                    is_missing = true;
                }
            }
            from = until;
        }
        match is_missing {
            true => Err(Absent::Page),
            false => Ok(()),
        }
    }
}

impl PagesHere<'_> {
    fn page(&mut self, number: usize) -> Option<&[u8]> {
        if !self.here.contains_key(&number) {
            let kept = self.groups.kept(self.pages.is_warm(number));
            let page = kept.get(self.pages.group.block, Piece::Page(number))?;
            self.here.insert(number, page);
        }
        self.here.get(&number).map(|page| &**page)
    }
}

impl GroupPages {
    /// The column that a page is of; of several, the last that begins on it or before.
    fn column_of_page(&self, number: usize) -> Option<usize> {
        let end = (number + 1) * PAGE_BYTES;
        let directory = &self.group.directory;
        let begins_before = |column: &&usize| {
            let chunk = directory.chunk(directory.chunk_of(**column));
            chunk.is_some_and(|chunk| (chunk.offset as usize) < end)
        };
        self.columns.iter().rev().find(begins_before).copied()
    }

    fn is_warm(&self, number: usize) -> bool {
        self.column_of_page(number)
            .is_some_and(|column| self.home.is_warm(column))
    }

    fn leaves(&self, number: usize) -> Leaves {
        self.home.leaves(self.column_of_page(number))
    }
}

impl RowGroups {
    /// Reads whole tuples of one block; how many bytes they have.
    pub async fn fetch(&self, reads: &[PlannedRead], fetched: &mut Fetched) -> Result<u64> {
        let mut bytes = 0;
        let mut group = None;
        self.each(reads, &mut group, &mut |read, tuple| {
            bytes += tuple.len() as u64;
            fetched.insert(address_key(read.address), tuple.into());
        })
        .await?;
        Ok(bytes)
    }

    /// Reads rows of one block, whole, and gives each to `each`.
    pub async fn each(
        &self,
        reads: &[PlannedRead],
        held: &mut Option<Group>,
        each: &mut impl FnMut(&PlannedRead, &[u8]),
    ) -> Result<()> {
        let Some(first) = reads.first() else {
            return Ok(());
        };
        let group = match held.take() {
            Some(group) if group.block == first.address.block => group,
            _ => match self.few(first, reads.len()).await? {
                Few::Whole(group) => group,
                Few::Pages(pages) => return self.each_by_pages(reads, pages, each).await,
            },
        };
        let group = held.insert(group);
        self.uses(first.storage)
            .count_single(&group.directory, reads.len());
        let reader = group.reader().ok_or_else(|| self.malformed(first))?;
        let mut tuple = Vec::new();
        for read in reads {
            let position = read.address.slot;
            let row = read.row.row();
            let found = reader.row(usize::from(position));
            if found != Some(row) {
                return Err(self.other_row(read, position, found.unwrap_or_default(), row));
            }
            let put = reader.tuple(usize::from(position), &mut tuple);
            put.ok_or_else(|| self.malformed(read))?;
            each(read, &tuple);
        }
        Ok(())
    }

    /// How so many rows of a group are read: the chunks that are in memory and the small ones are there
    /// then.
    async fn few(&self, read: &PlannedRead, rows: usize) -> Result<Few> {
        let worth = rows.saturating_mul(WHOLE_BYTES_MAX);
        if worth as u64 >= read.block_bytes {
            let (mut group, there) = self.directory_of(read, read.block_bytes).await?;
            let all = group.directory.wanted(None);
            self.load_chunks(read, &mut group, &all, there, true)
                .await?;
            return Ok(Few::Whole(group));
        }
        let first = DIRECTORY_READ_BYTES.min(read.block_bytes);
        let (mut group, there) = self.directory_of(read, first).await?;
        let home = self.home(read.storage);
        let directory = group.directory.clone();
        let mut whole: Vec<usize> = directory.shared_chunks().into();
        let mut columns = Vec::new();
        for column in 0..directory.columns() {
            let number = directory.chunk_of(column);
            let bytes = directory.chunk(number).unwrap_or_default().bytes as usize;
            group.chunks[number] = self.kept_chunk(&home, &group, number);
            if bytes <= worth || directory.sums().is_none() {
                whole.push(number);
            } else if group.chunks[number].is_none() {
                columns.push(column);
            }
        }
        self.load_chunks(read, &mut group, &whole, there, true)
            .await?;
        if columns.is_empty() {
            return Ok(Few::Whole(group));
        }
        let places = columns.iter().map(|column| {
            let kept = self.kept(home.is_warm(*column));
            (*column, kept.place(group.block, *column))
        });
        let mut of_columns = vec![None; directory.columns()];
        for (column, place) in places {
            of_columns[column] = place;
        }
        Ok(Few::Pages(GroupPages {
            group,
            home,
            places: of_columns,
            columns,
        }))
    }

    /// Reads rows of one block, and gives each to `each`.
    async fn each_by_pages(
        &self,
        reads: &[PlannedRead],
        mut pages: GroupPages,
        each: &mut impl FnMut(&PlannedRead, &[u8]),
    ) -> Result<()> {
        let Some(first) = reads.first() else {
            return Ok(());
        };
        self.find_places(first, &mut pages).await?;
        self.uses(first.storage)
            .count_single(&pages.group.directory, reads.len());
        let mut here = self.pages_here(first, &pages);
        let mut rest = reads;
        let mut tuple = Vec::new();
        while !rest.is_empty() {
            {
                let reader = pages.group.reader().ok_or_else(|| self.malformed(first))?;
                let mut is_complete = true;
                let mut given = 0;
                for read in rest {
                    let position = usize::from(read.address.slot);
                    let (found, row) = (reader.row(position), read.row.row());
                    if found != Some(row) {
                        let found = found.unwrap_or_default();
                        return Err(self.other_row(read, read.address.slot, found, row));
                    }
                    match reader.tuple_by_pages(position, &pages.places, &mut here, &mut tuple) {
                        // They are given out in their order.
                        Ok(()) if is_complete => {
                            each(read, &tuple);
                            given += 1;
                        }
                        Ok(()) => {}
                        Err(Absent::Page) => is_complete = false,
                        Err(Absent::Malformed) => return Err(self.malformed(read)),
                    }
                }
                rest = &rest[given..];
            }
            if !rest.is_empty() {
                self.bring(first, &mut here).await?;
            }
        }
        Ok(())
    }

    /// Finds where the parts of those columns lie that are read by pages.
    async fn find_places(&self, read: &PlannedRead, pages: &mut GroupPages) -> Result<()> {
        let mut found = pages.places.clone();
        let directory = pages.group.directory.clone();
        {
            let mut here = self.pages_here(read, pages);
            loop {
                for column in pages.columns.iter().copied() {
                    if found[column].is_some() {
                        continue;
                    }
                    match ColumnPlace::find(&directory, column, &mut here) {
                        Ok(place) => {
                            let place = Arc::new(place);
                            let leaves = pages.home.leaves(Some(column));
                            let kept = self.kept(pages.home.is_warm(column));
                            kept.put_place(pages.group.block, column, &place, leaves);
                            found[column] = Some(place);
                        }
                        Err(Absent::Page) => {}
                        Err(Absent::Malformed) => return Err(self.malformed(read)),
                    }
                }
                if here.missing.is_empty() {
                    break;
                }
                self.bring(read, &mut here).await?;
            }
        }
        pages.places = found;
        Ok(())
    }

    fn pages_here<'g>(&'g self, read: &PlannedRead, pages: &'g GroupPages) -> PagesHere<'g> {
        PagesHere {
            groups: self,
            pages,
            length: usize::try_from(read.block_bytes).unwrap_or(usize::MAX),
            here: HashMap::new(),
            missing: BTreeSet::new(),
        }
    }

    /// Reads the pages that were missing, neighbours together, and keeps them.
    async fn bring(&self, read: &PlannedRead, here: &mut PagesHere<'_>) -> Result<()> {
        let pages = here.pages;
        let (block, directory) = (pages.group.block, &pages.group.directory);
        let sums = self.sums(read, &pages.group).await?;
        let uses = self.uses(read.storage);
        let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
        for number in std::mem::take(&mut here.missing) {
            let begin = (number * PAGE_BYTES) as u64;
            let end = begin + PAGE_BYTES as u64;
            match ranges.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ => ranges.push(begin..end),
            }
        }
        for (range, bytes) in self.read(read, ranges).await? {
            let first = range.start as usize / PAGE_BYTES;
            for (number, bytes) in (first..).zip(bytes.chunks(PAGE_BYTES)) {
                let checked = directory.check_page(&sums, number, bytes, block);
                checked.map_err(|error| self.damaged(read, &error))?;
                let bytes: Arc<[u8]> = bytes.into();
                let kept = self.kept(pages.is_warm(number));
                kept.put(block, Piece::Page(number), &bytes, pages.leaves(number));
                here.here.insert(number, bytes);
                uses.count_device(pages.column_of_page(number), PAGE_BYTES);
                self.pages_read.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The checksums of a group's pages.
    async fn sums(&self, read: &PlannedRead, group: &Group) -> Result<Arc<[u8]>> {
        if let Some(sums) = self.cache.get(group.block, Piece::Sums) {
            return Ok(sums);
        }
        let place = group.directory.sums().unwrap_or_default().range();
        let begin = place.start - place.start % PAGE_BYTES;
        let range = begin as u64..place.end.next_multiple_of(PAGE_BYTES) as u64;
        let there: Vec<Range> = self.read(read, vec![range]).await?;
        let bytes = there.first().map_or(&[][..], |(_, bytes)| bytes);
        let bytes = bytes.get(place.start - begin..place.end - begin);
        let bytes = bytes.unwrap_or(&[]);
        let checked = group.directory.check_sums(bytes, group.block);
        checked.map_err(|error| self.damaged(read, &error))?;
        let bytes: Arc<[u8]> = bytes.into();
        let leaves = self.home(read.storage).leaves(None);
        self.cache.put(group.block, Piece::Sums, &bytes, leaves);
        Ok(bytes)
    }
}
