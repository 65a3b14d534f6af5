//! Copying a partition into an image file while statements go on: pre-copy, as a
//! virtual machine is moved alive.
//!
//! Pages that changed since the last checkpoint are copied in short turns under
//! the partition's lock. What changed meanwhile is copied again, in rounds that
//! get smaller. The last and smallest turn is the partition's cut. A page whose
//! changed tuples are not in a block yet waits for the next round. The tuples
//! that are still changing at the cut go into the image themselves, so that
//! nothing is written to a device under the lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thermocline_device::{StopPoint, stop_at};
use thermocline_storage::changed_pages::Paged;
use thermocline_storage::row_directory::{PAGE_WORDS, RowDirectory, Word};

use crate::catalog::{IndexKind, Table};
use crate::cold::evict::Evictor;
use crate::cold::pace::Pace;
use crate::format::image::{BUFFER_BYTES, Frame, ImageWriter, begin_frame, end_frame};
use crate::ground::error::Result;
use crate::ground::moment::Moment;
use crate::parts::Parts;
use crate::parts::reserve::SpaceUse;
use crate::rows::index::Index;
use crate::rows::partition::PartitionState;
use crate::rows::row_state::{DEAD, TablePartition};

/// Pages of a directory that one turn looks at; each asks for up to
/// [`PAGE_WORDS`] tuples' headers.
const TURN_WORD_PAGES: usize = 8;
/// Pages of an index that one turn copies.
const TURN_INDEX_PAGES: usize = 64;
/// The cut comes when no more pages than this are to be copied in it, ...
const CUT_PAGES: usize = 128;
/// ... or when rounds do not get smaller, though there were so many (the evictor
/// may have had tuples in hand), and at the latest after this many.
const ROUNDS_MIN: usize = 4;
const ROUNDS_MAX: usize = 12;
/// A section that the cut makes ends with the page or tuple that reaches this: there may be
/// any number of them, and a frame has a largest length.
const SECTION_BYTES: usize = 1 << 20;
/// What a page is taken for when it is decided whether a delta is worth it.
pub(crate) const PAGE_BYTES: u64 = 520;

/// The parts of an index that are saved page by page.
const PARTS: [Frame; 3] = [Frame::Lines, Frame::Nodes, Frame::Duplicates];

/// Copies one partition.
pub(crate) struct Capture<'a> {
    pub parts: &'a Parts,
    pub partition: usize,
    pub evictor: &'a mut Evictor,
    pub pace: &'a mut Pace,
    /// Holds what one turn copies.
    pub frames: &'a mut Vec<u8>,
    pub writer: ImageWriter<'a>,
}

/// What a capture ended with.
pub(crate) struct Captured<'a> {
    pub writer: ImageWriter<'a>,
    /// The log up to here is in the image.
    pub cut: u64,
    /// Checksum of the last frame alone: what tables there are.
    pub end: u32,
    /// Pages and tuples copied.
    pub copied: u64,
}

impl<'a> Capture<'a> {
    /// Pages that there are to copy.
    pub fn changed_pages(&self) -> usize {
        self.held(|state| {
            let mut changed = 0;
            for (_, rows) in state.tables.all_rows_mut() {
                changed += rows.changed().count();
                for slot in rows.indexes_mut() {
                    slot.index
                        .each_part(&mut |part| changed += part.changed().count());
                }
            }
            changed
        })
    }

    /// Wants all pages, for a base. It has temperatures, too, as they are now:
    /// for their own sake they are not written.
    pub fn want_all(&self) {
        self.held(|state| {
            for (_, rows) in state.tables.all_rows_mut() {
                let pages = rows.directory().pages();
                rows.changed().mark_all(pages);
                for slot in rows.indexes_mut() {
                    slot.index.each_part(&mut |part| {
                        let pages = part.pages();
                        part.changed().mark_all(pages);
                    });
                }
            }
        });
    }

    /// Copies the partition. The frames before the cut are written by then.
    pub fn run(mut self, number: u64, is_base: bool) -> Result<Captured<'a>> {
        let at = begin_frame(self.frames, Frame::Head);
        self.frames
            .extend_from_slice(crate::format::image::IMAGE_MAGIC);
        self.frames
            .extend_from_slice(&(self.partition as u16).to_le_bytes());
        self.frames.push(u8::from(is_base));
        self.frames.extend_from_slice(&number.to_le_bytes());
        end_frame(self.frames, at);
        self.write()?;
        let mut copied = 0;
        let mut before = usize::MAX;
        for round in 0..ROUNDS_MAX {
            let left = self.changed_pages();
            let few = self.parts.at_a_time(CUT_PAGES);
            if left <= few || round >= ROUNDS_MIN && left > before / 4 * 3 {
                break;
            }
            before = left;
            for table in self.tables() {
                self.evictor.clean(
                    self.parts,
                    self.partition,
                    &table,
                    (round == 0).then_some(&mut *self.pace),
                )?;
                copied += self.copy_words(&table, round == 0)?;
                copied += self.copy_indexes(&table, round == 0)?;
            }
        }
        // A small partition comes here at once: its tuples belong in blocks too.
        for table in self.tables() {
            self.evictor
                .clean(self.parts, self.partition, &table, None)?;
        }
        self.cut(copied)
    }

    fn held<R>(&self, turn: impl FnOnce(&mut PartitionState) -> R) -> R {
        self.parts.held(self.partition, turn)
    }

    fn tables(&self) -> Vec<Arc<Table>> {
        let storages = self.parts.tables_by_storage();
        self.held(|state| {
            let present = state.tables.all_rows();
            present
                .filter_map(|(storage, _)| storages.get(&storage).cloned())
                .collect()
        })
    }

    fn write(&mut self) -> Result<()> {
        // Without it the file system says what is missing. The last bytes are written when it ends.
        let bytes = self.frames.len() + 2 * BUFFER_BYTES;
        let reserve = self.parts.reserve();
        reserve.allows(SpaceUse::MakingRoom, bytes as u64);
        self.writer.write(self.frames)?;
        self.frames.clear();
        self.parts.pause(Moment::PagesCopied);
        Ok(())
    }

    /// Writes what a turn copied, and in the first round keeps to the pace.
    /// Later rounds hurry: what they lose the cut would have to make up.
    fn write_paced(&mut self, paced: bool) -> Result<()> {
        let bytes = self.frames.len() as u64;
        self.write()?;
        if paced {
            self.pace.spend(self.parts, bytes);
        }
        Ok(())
    }

    /// Copies the changed pages of a directory. Pages copied.
    fn copy_words(&mut self, table: &Table, paced: bool) -> Result<u64> {
        let (mut from, mut copied, mut more) = (0, 0, true);
        let mut words = Words::default();
        while more {
            let frames = &mut *self.frames;
            let storage = table.def.storage;
            let parts = self.parts;
            let turn = parts.held(self.partition, |state| {
                let Some(rows) = state.tables.rows_mut(storage) else {
                    return (0, false);
                };
                // As it is now: the table may have been widened since the last turn.
                let reader = parts.storages().read().get(&storage).cloned();
                let table = reader.as_deref().unwrap_or(table);
                let section = begin_section(frames, Frame::Words, storage, 0);
                let mut count = 0;
                for _ in 0..parts.at_a_time(TURN_WORD_PAGES) {
                    let Some(page) = rows.changed().next(from) else {
                        end_section(frames, section, count);
                        return (count, false);
                    };
                    from = page + 1;
                    if words.copy(table, rows, page, frames, None) {
                        rows.changed().clear(page);
                        count += 1;
                    }
                }
                end_section(frames, section, count);
                (count, true)
            });
            copied += u64::from(turn.0);
            more = turn.1;
            self.write_paced(paced)?;
        }
        Ok(copied)
    }

    /// Copies the changed pages of a table's indexes. Pages copied.
    fn copy_indexes(&mut self, table: &Table, paced: bool) -> Result<u64> {
        let storage = table.def.storage;
        let oids: Vec<u32> = self.held(|state| {
            let rows = state.tables.rows(storage);
            rows.map_or(Vec::new(), |rows| {
                rows.indexes().iter().map(|slot| slot.oid).collect()
            })
        });
        let mut copied = 0;
        for oid in oids {
            for kind in PARTS {
                let (mut from, mut more) = (0, true);
                while more {
                    let frames = &mut *self.frames;
                    let turn = self.parts.held(self.partition, |state| {
                        let index = state.tables.rows_mut(storage).and_then(|rows| {
                            rows.indexes_mut().iter_mut().find(|slot| slot.oid == oid)
                        });
                        index.map_or((0, false), |slot| {
                            let at = (storage, slot.oid);
                            copy_part(&mut slot.index, kind, at, &mut from, frames)
                        })
                    });
                    copied += u64::from(turn.0);
                    more = turn.1;
                    self.write_paced(paced)?;
                }
            }
        }
        Ok(copied)
    }

    /// The last turn: what is left, and what tables there are.
    fn cut(mut self, mut copied: u64) -> Result<Captured<'a>> {
        let frames = &mut *self.frames;
        let parts = self.parts;
        let mut words = Words::default();
        let (cut, end_at) = parts.held(self.partition, |state| {
            // After the lock: a table made meanwhile must not be left out.
            let storages = parts.tables_by_storage();
            for (storage, rows) in state.tables.all_rows_mut() {
                if let Some(table) = storages.get(&storage) {
                    copied += cut_table(table, rows, &mut words, frames);
                }
            }
            let end_at = begin_frame(frames, Frame::End);
            write_end(state, |storage| storages.contains_key(&storage), frames);
            end_frame(frames, end_at);
            (parts.log().appended_lsn(), end_at)
        });
        stop_at(StopPoint::CheckpointCut);
        let end = crc32c::crc32c(&self.frames[end_at + crate::format::image::FRAME_HEAD..]);
        self.write()?;
        Ok(Captured {
            writer: self.writer,
            cut,
            end,
            copied,
        })
    }
}

impl Parts {
    /// A turn under a partition's lock, as short as the caller makes it.
    pub(crate) fn held<R>(
        &self,
        partition: usize,
        turn: impl FnOnce(&mut PartitionState) -> R,
    ) -> R {
        let mut state = self.all_partitions()[partition].lock();
        let since = self.clock().now();
        let result = turn(&mut state);
        drop(state);
        let held: Duration = self.clock().now().saturating_sub(since);
        self.checkpoint_state()
            .longest_hold_us
            .fetch_max(held.as_micros() as u64, Ordering::Relaxed);
        result
    }
}

impl Index {
    /// Hands out each part that is saved page by page.
    fn each_part(&mut self, each: &mut dyn FnMut(&mut dyn Paged)) {
        match self {
            Index::Hash(index) => {
                each(index);
                if let Some(duplicates) = index.duplicates_mut() {
                    each(duplicates);
                }
            }
            Index::BTree(tree) => each(tree),
        }
    }

    fn part(&mut self, kind: Frame) -> Option<&mut dyn Paged> {
        match (self, kind) {
            (Index::Hash(index), Frame::Lines) => Some(index),
            (Index::Hash(index), Frame::Duplicates) => {
                index.duplicates_mut().map(|tree| tree as &mut dyn Paged)
            }
            (Index::BTree(tree), Frame::Nodes) => Some(tree),
            _ => None,
        }
    }
}

/// Where a section began: its frame, and its count.
struct Section(usize, usize);

fn begin_section(out: &mut Vec<u8>, kind: Frame, storage: u32, oid: u32) -> Section {
    let frame = begin_frame(out, kind);
    out.extend_from_slice(&storage.to_le_bytes());
    out.extend_from_slice(&oid.to_le_bytes());
    let count = out.len();
    out.extend_from_slice(&[0; 4]);
    Section(frame, count)
}

/// Whether a section is to be ended, and another one begun.
fn is_full(section: &Section, out: &[u8]) -> bool {
    out.len() - section.0 >= SECTION_BYTES
}

/// Ends a section; an empty one goes.
fn end_section(out: &mut Vec<u8>, Section(frame, at): Section, count: u32) {
    if count == 0 {
        out.truncate(frame);
        return;
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
    end_frame(out, frame);
}

/// Copies up to a turn's worth of a part's changed pages. How many, and whether
/// there are more.
fn copy_part(
    index: &mut Index,
    kind: Frame,
    (storage, oid): (u32, u32),
    from: &mut usize,
    frames: &mut Vec<u8>,
) -> (u32, bool) {
    let Some(part) = index.part(kind) else {
        return (0, false);
    };
    let section = begin_section(frames, kind, storage, oid);
    let mut count = 0;
    let mut more = true;
    while count < TURN_INDEX_PAGES as u32 {
        let Some(page) = part.changed().next(*from) else {
            more = false;
            break;
        };
        *from = page + 1;
        let at = frames.len();
        frames.extend_from_slice(&(page as u32).to_le_bytes());
        if part.write_page(page, frames) {
            count += 1;
        } else {
            frames.truncate(at);
        }
        part.changed().clear(page);
    }
    end_section(frames, section, count);
    (count, more)
}

/// What is left of a table at the cut. Pages and tuples copied.
fn cut_table(
    table: &Table,
    rows: &mut TablePartition,
    words: &mut Words,
    frames: &mut Vec<u8>,
) -> u64 {
    let storage = table.def.storage;
    let mut late = Vec::new();
    let pages = cut_words(table, rows, words, &mut late, frames);
    let mut copied = pages + late.len() as u64;
    write_late(rows, storage, &late, frames);
    for slot in rows.indexes_mut() {
        for kind in PARTS {
            let (mut from, mut more) = (0, true);
            while more {
                let at = (storage, slot.oid);
                let turn = copy_part(&mut slot.index, kind, at, &mut from, frames);
                copied += u64::from(turn.0);
                more = turn.1;
            }
        }
    }
    copied
}

/// The pages of a directory that are left at the cut, and in `late` the rows that no block
/// has. Pages copied.
fn cut_words(
    table: &Table,
    rows: &mut TablePartition,
    words: &mut Words,
    late: &mut Vec<u32>,
    frames: &mut Vec<u8>,
) -> u64 {
    let (mut from, mut copied, mut more) = (0, 0, true);
    while more {
        let section = begin_section(frames, Frame::Words, table.def.storage, 0);
        let mut count = 0;
        while more && !is_full(&section, frames) {
            let Some(page) = rows.changed().next(from) else {
                more = false;
                break;
            };
            from = page + 1;
            let tuples = late.len();
            count += u32::from(words.copy(table, rows, page, frames, Some(&mut *late)));
            if late.len() == tuples {
                rows.changed().clear(page);
            }
        }
        end_section(frames, section, count);
        copied += u64::from(count);
    }
    copied
}

/// Tuples as they are in memory, for rows that no block has.
fn write_late(rows: &TablePartition, storage: u32, late: &[u32], frames: &mut Vec<u8>) {
    let mut late = late.iter().peekable();
    while late.peek().is_some() {
        let section = begin_section(frames, Frame::Tuples, storage, 0);
        let mut count = 0;
        while !is_full(&section, frames) {
            let Some(row) = late.next() else {
                break;
            };
            let word = rows.directory().get(*row);
            let Some(hot) = word.as_hot() else {
                continue;
            };
            let tuple = rows.heap().payload(hot.pointer());
            frames.extend_from_slice(&row.to_le_bytes());
            frames.push(word.temperature() | u8::from(word.is_uncommitted()) << 3);
            frames.extend_from_slice(&(tuple.len() as u32).to_le_bytes());
            frames.extend_from_slice(tuple);
            count += 1;
        }
        end_section(frames, section, count);
    }
}

/// The tables that are there, the heads of their indexes, and the rows of
/// transactions that are open.
fn write_end(state: &PartitionState, is_known: impl Fn(u32) -> bool, out: &mut Vec<u8>) {
    let tables = || state.tables.all_rows().filter(|table| is_known(table.0));
    out.extend_from_slice(&(tables().count() as u32).to_le_bytes());
    let mut head = Vec::new();
    for (storage, rows) in tables() {
        out.extend_from_slice(&storage.to_le_bytes());
        out.extend_from_slice(&rows.live().to_le_bytes());
        out.extend_from_slice(&rows.directory().appended().to_le_bytes());
        out.extend_from_slice(&(rows.indexes().len() as u32).to_le_bytes());
        for slot in rows.indexes() {
            head.clear();
            match &slot.index {
                Index::Hash(index) => index.write_head(&mut head),
                Index::BTree(index) => index.write_head(&mut head),
            }
            out.extend_from_slice(&slot.oid.to_le_bytes());
            out.push(match slot.index.kind() {
                IndexKind::Hash => 1,
                IndexKind::BTree => 2,
            });
            out.extend_from_slice(&(head.len() as u32).to_le_bytes());
            out.extend_from_slice(&head);
        }
    }
    out.extend_from_slice(&(state.uncommitted.len() as u32).to_le_bytes());
    for ((storage, first), range) in &state.uncommitted {
        out.extend_from_slice(&storage.to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&range.last.to_le_bytes());
        out.extend_from_slice(&range.owner.0.to_le_bytes());
    }
}

/// Copies directory pages as a restart wants them: everything cold.
#[derive(Default)]
struct Words {
    key: Vec<u8>,
}

impl Words {
    /// Appends a page's number and words. A tuple that is in no block goes to
    /// `late`; without that the page is left for later. Whether it was copied.
    fn copy(
        &mut self,
        table: &Table,
        rows: &TablePartition,
        page: usize,
        out: &mut Vec<u8>,
        mut late: Option<&mut Vec<u32>>,
    ) -> bool {
        let Some(words) = rows.directory().page(page) else {
            return false;
        };
        for word in words.clone() {
            if let Some(hot) = word.as_hot() {
                rows.heap().prefetch(hot.pointer());
            }
        }
        let start = out.len();
        out.extend_from_slice(&(page as u32).to_le_bytes());
        out.reserve(PAGE_WORDS * 8);
        for (row, word) in (RowDirectory::first_row(page)..).zip(words) {
            let saved = match word.as_hot() {
                Some(hot) => match rows.copy_of(hot) {
                    Some(address) => {
                        let tuple = rows.heap().payload(hot.pointer());
                        Word::cold(address, table.fingerprint(tuple, &mut self.key))
                            .with_uncommitted(word.is_uncommitted())
                            .with_temperature(word.temperature())
                    }
                    None => match &mut late {
                        Some(late) => {
                            late.push(row);
                            Word(0)
                        }
                        None => {
                            out.truncate(start);
                            return false;
                        }
                    },
                },
                None if word.is_free() || word == DEAD => Word(0),
                None => word.with_aside(false),
            };
            out.extend_from_slice(&saved.0.to_le_bytes());
        }
        true
    }
}
