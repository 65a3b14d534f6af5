//! A row's life: the one file that changes a row's word in the directory and the counts of
//! a table's rows. So it does with its place in the policy's order and what is said of its
//! copy on a device.
//!
//! A row is *free* (its number is nobody's), *hot* (its tuple is in the heap), *cold* (it is on
//! a device only) or *dead* (deleted, its number still in use). Of a hot tuple's
//! copy the tuple's header tells: there is none (*dirty*), one is being made (*copying*), or
//! there is one (*clean*).
//!
//! | transition | before | after |
//! |---|---|---|
//! | [`insert`](TablePartition::insert) | free | dirty |
//! | [`undo_insert`](TablePartition::undo_insert) | hot | free |
//! | [`change`](TablePartition::change) | hot, cold | dirty |
//! | [`undo_change`](TablePartition::undo_change) | dirty | what it was |
//! | [`replay`](TablePartition::replay) | free, hot, cold | dirty |
//! | [`restore_dirty`](TablePartition::restore_dirty) | free | dirty |
//! | [`copy`](TablePartition::copy) | dirty | copying |
//! | [`not_copied`](TablePartition::not_copied) | copying | dirty |
//! | [`stay_clean`](TablePartition::stay_clean) | copying | clean |
//! | [`leave_copied`](TablePartition::leave_copied) | copying | cold |
//! | [`leave_clean`](TablePartition::leave_clean) | clean | cold |
//! | [`come_back`](TablePartition::come_back) | cold | clean |
//! | [`come_home`](TablePartition::come_home) | cold | dirty |
//! | [`move_copy`](TablePartition::move_copy) | clean, cold | the same, its copy elsewhere |
//! | [`die`](TablePartition::die) | hot, cold | dead |
//! | [`undo_die`](TablePartition::undo_die) | dead | what it was |
//! | [`bury`](TablePartition::bury) | dead | dead, without a tuple; or free |
//! | [`free_number`](TablePartition::free_number) | dead, without a tuple | free |
//! | [`forget`](TablePartition::forget) | hot, cold | free |
//!
//! Beside these a row that is there becomes warmer and cooler, is locked and free again, and is
//! committed, whatever else it is: [`used`](TablePartition::used), [`cool`](TablePartition::cool),
//! [`set_locked`](TablePartition::set_locked), [`commit_insert`](TablePartition::commit_insert).
//!
//! A change that moves a tuple leaves the old one where it is, *aside*, until the change is undone
//! or final ([`free_aside`](TablePartition::free_aside)): so no undoing needs memory.
//!
//! Guarantees: a transition changes all that belongs to it, or nothing; undoing one cannot fail. Assumes the partition's
//! lock, and that the caller says rightly what the row is: debug builds look. Indexes, blocks'
//! counts of what lives in them, the log and versions are the caller's.

mod books;
mod copy_word;
mod counts;
mod leaving;
mod left_page;
mod looks;
#[cfg(test)]
mod tests;

use std::ops::Range;

use thermocline_device::Mutation;
use thermocline_storage::arena::TuplePtr;
use thermocline_storage::changed_pages::ChangedPages;
use thermocline_storage::heap::{CommonPages, Heap};
use thermocline_storage::row_directory::{ColdAddress, ColdWord, HotWord, RowDirectory, Word};
use thermocline_storage::temperature;

use crate::ground::error::{Error, Result};
use crate::policy::Policy;
use crate::policy::identification::Order;
use crate::rows::index::IndexSlot;
pub(crate) use copy_word::{CopyWord, Copying};
pub use counts::PolicyCounts;
pub(crate) use left_page::LeftPage;

/// The word of a row that a transaction under way has deleted: nobody sees it,
/// and its number is not given out. The directory takes unknown tags for free
/// when it is restored.
pub(crate) const DEAD: Word = Word(3 << 62);

/// Who has the numbers that no row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// The directory, which gives them out again.
    Listed,
    /// Nobody yet: rows are being restored, and each brings its own.
    Restoring,
}

/// What a row was before a change, so that it can be again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Past {
    /// Its tuple was where the new one is, and this was said of its copy.
    InPlace(CopyWord),
    /// Its tuple is aside, as it was.
    Aside(TuplePtr),
    /// It was cold.
    Cold(ColdWord),
}

/// What a change has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct Changed {
    /// What it takes to undo it.
    pub past: Past,
    /// Where the copy lies that the old tuple had: a hole, if this is not undone.
    pub hole: Option<ColdAddress>,
}

/// The rows of one table in one partition.
pub(crate) struct TablePartition {
    heap: Heap,
    directory: RowDirectory,
    indexes: Vec<IndexSlot>,
    /// Rows that are there, hot or cold.
    live: u64,
    /// Of these, the cold ones.
    cold: u64,
    /// Which of the hot rows leaves next, and the policy that says so.
    order: Order,
    policy: Policy,
    /// Rows that were there before the order was, and that it is still to be told of.
    unknown: Range<u32>,
    /// What the policy has done.
    counts: PolicyCounts,
}

/// What became of a row that the log has a tuple for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replayed {
    /// It was not there.
    Inserted,
    /// It was there; the copy that its tuple had is a hole now.
    Changed(Option<ColdAddress>),
}

impl TablePartition {
    /// No rows yet. The first lie in `pages`. Which of them leave memory, and how, `policy` says.
    pub fn new(pages: &CommonPages, indexes: Vec<IndexSlot>, policy: Policy) -> Self {
        TablePartition {
            heap: Heap::sharing(pages),
            directory: RowDirectory::new(),
            indexes,
            live: 0,
            cold: 0,
            order: policy.order(),
            policy,
            unknown: 0..0,
            counts: PolicyCounts::default(),
        }
    }

    /// At a restart: has these words, of cold rows, of which there are so many, and counts of
    /// rows that are there those that follow one by one, too ([`Self::restore_dirty`]).
    pub fn restore(&mut self, directory: RowDirectory, cold: u64, live: u64) {
        debug_assert!(self.directory.is_empty() && self.heap.tuples() == 0);
        (self.directory, self.cold, self.live) = (directory, cold, live);
    }

    /// At a restart, when all rows are there: which numbers are free.
    pub fn list_free_numbers(&mut self) {
        self.directory.rebuild_free_list();
    }

    /// The indexes, for who changes what they lead to, or which there are.
    #[inline]
    pub fn indexes_mut(&mut self) -> &mut Vec<IndexSlot> {
        &mut self.indexes
    }

    /// What the policy has done, for who does more of it.
    pub fn count(&mut self) -> &mut PolicyCounts {
        &mut self.counts
    }

    /// The pages of the directory that changed in what a checkpoint says of them.
    pub fn changed(&mut self) -> &mut ChangedPages {
        self.directory.changed()
    }

    /// Packs the words around `row` in memory where that pays ([`RowDirectory::pack`]).
    pub fn pack(&mut self, row: u32) {
        self.directory.pack(row);
    }

    /// A number for a new row, which is free until [`Self::insert`].
    pub fn take_number(&mut self) -> Result<u32> {
        let number = self.directory.allocate();
        number.ok_or_else(|| Error::TooLarge("the partition has no row numbers left".into()))
    }

    /// Has this number for a new row, as it had it before; false if a row is there.
    pub fn take_number_again(&mut self, row: u32) -> bool {
        if is_there(self.directory.get(row)) {
            return false;
        }
        self.directory.restore(row, Word(0));
        true
    }

    /// Gives a number back that no row got.
    pub fn give_number(&mut self, row: u32, numbers: Numbers) {
        debug_assert!(self.directory.get(row).is_free(), "row {row} is not free");
        self.free(row, numbers);
    }

    /// A new row has its first tuple.
    ///
    /// # Errors
    /// The arena is exhausted; its number is still the caller's.
    #[inline]
    pub fn insert(&mut self, row: u32, tuple: &[u8], uncommitted: bool) -> Result<()> {
        debug_assert!(self.directory.get(row).is_free(), "row {row} is not free");
        let before = self.look(row);
        let word = self.store_new(row, tuple, uncommitted)?;
        self.directory.set(row, word);
        self.check(row, before);
        Ok(())
    }

    #[inline]
    fn store_new(&mut self, row: u32, tuple: &[u8], uncommitted: bool) -> Result<Word> {
        let pointer = self.heap.insert(row, 0, tuple).ok_or_else(exhausted)?;
        self.note_hot(row);
        self.note_more();
        Ok(Word::hot(pointer)
            .with_uncommitted(uncommitted)
            .with_temperature(self.order.warmth_of_new()))
    }

    /// A row is as if it had never been inserted.
    pub fn undo_insert(&mut self, row: u32, word: Word, numbers: Numbers) {
        debug_assert!(self.is_now(row, word) && word.is_hot());
        let before = self.look(row);
        if let Some(hot) = word.as_hot() {
            self.heap.free(hot.pointer());
            self.note_fewer();
            self.free(row, numbers);
        }
        self.check(row, before);
    }

    /// A row's tuple becomes another, which no block has. `warmer`: so many uses of the row
    /// were not counted before.
    ///
    /// # Errors
    /// The arena is exhausted; the row is as it was.
    #[inline]
    pub fn change(&mut self, row: u32, word: Word, tuple: &[u8], warmer: u8) -> Result<Changed> {
        debug_assert!(self.is_now(row, word) && is_there(word));
        let before = self.look(row);
        if let Some(hot) = word.as_hot() {
            let copy = self.copy_word(hot);
            if self.heap.overwrite(hot.pointer(), tuple) {
                let (past, hole) = (Past::InPlace(copy), copy.address());
                let warmth = temperature::of_changed(word.temperature(), false) + warmer;
                let now = word.with_temperature(warmth.min(temperature::MAX));
                self.directory.set(row, now);
                self.check(row, before);
                self.check_copy(row, None);
                return Ok(Changed { past, hole });
            }
        }
        self.change_elsewhere(row, word, tuple, warmer)
    }

    /// As [`Self::change`], of a tuple that is not in memory, or has no room for the new one.
    fn change_elsewhere(
        &mut self,
        row: u32,
        word: Word,
        tuple: &[u8],
        warmer: u8,
    ) -> Result<Changed> {
        let before = self.look(row);
        let hole = self.copy_of_row(word);
        let pointer = self.heap.insert(row, 0, tuple).ok_or_else(exhausted)?;
        let warmth = temperature::of_changed(word.temperature(), word.is_cold()) + warmer;
        let now = hot_word(pointer, word).with_temperature(warmth.min(temperature::MAX));
        self.directory.set(row, now);
        let past = match (word.as_hot(), word.as_cold()) {
            (Some(hot), _) => {
                if Mutation::OldTupleFreedEarly.is_made() {
                    self.heap.free(hot.pointer());
                }
                Past::Aside(hot.pointer())
            }
            (_, Some(cold)) => {
                self.note_warmer();
                self.note_hot(row);
                Past::Cold(cold)
            }
            (None, None) => unreachable!("row {row} is changed, and is not there"),
        };
        self.check(row, before);
        self.check_copy(row, None);
        Ok(Changed { past, hole })
    }

    /// A row that was changed is what it was. `old`: its tuple, if that was overwritten.
    pub fn undo_change(&mut self, row: u32, hot: HotWord, past: Past, old: &[u8]) {
        debug_assert!(self.is_now(row, hot.word()) && self.is_dirty(hot));
        let before = self.look(row);
        match past {
            Past::InPlace(copy) => {
                let is_back = self.heap.overwrite(hot.pointer(), old);
                assert!(is_back, "row {row} has no room for what it was");
                if !Mutation::CopyNotTakenBack.is_made() {
                    self.heap.set_cold(hot.pointer(), copy.0);
                }
                debug_assert!(self.copy_word(hot) == copy, "row {row} forgot its copy");
                self.directory.set(row, hot.word());
            }
            Past::Aside(pointer) => {
                debug_assert!(self.heap.row(pointer) == row && self.heap.payload(pointer) == old);
                self.heap.free(hot.pointer());
                self.directory.set(row, hot.with_pointer(pointer));
            }
            Past::Cold(cold) => {
                self.heap.free(hot.pointer());
                self.directory.set(row, cold.word());
                self.note_colder();
            }
        }
        self.check(row, before);
    }

    /// A change is final: the tuple goes that it left aside, if it did.
    #[inline]
    pub fn free_aside(&mut self, past: Past) {
        if let Past::Aside(pointer) = past {
            self.heap.free(pointer);
        }
    }

    /// A row that is there is used: it is a degree warmer, and if it is hot the policy learns of
    /// it. `by`: the number of the transaction, which no two have that follow each other. Returns
    /// its word.
    #[inline]
    pub fn used(&mut self, row: u32, word: Word, by: u64) -> Word {
        debug_assert!(self.is_now(row, word) && is_there(word));
        let warmth = word.temperature();
        let warmer = match warmth < temperature::MAX {
            true => word.with_temperature(warmth + 1),
            false => word,
        };
        if warmer != word {
            self.directory.set_unsaved(row, warmer);
        }
        if word.is_hot() {
            self.order.used(row, by);
        }
        warmer
    }

    /// A row that is there cools to this temperature.
    #[inline]
    pub fn cool(&mut self, row: u32, word: Word, to: u8) {
        debug_assert!(self.is_now(row, word) && is_there(word) && to <= word.temperature());
        self.directory.set_unsaved(row, word.with_temperature(to));
    }

    /// Notes that somebody has locked a row, or nobody any more: who it is, the partition's
    /// locks say. A row that is dead or free takes no note.
    pub fn set_locked(&mut self, row: u32, locked: bool) {
        let word = self.directory.get(row);
        if is_there(word) {
            self.directory.set_unsaved(row, word.with_aside(locked));
        }
    }

    /// The transaction that inserted a row has committed.
    #[inline]
    pub fn commit_insert(&mut self, row: u32) {
        let word = self.directory.get(row);
        if word.is_uncommitted() {
            debug_assert!(is_there(word), "row {row} died uncommitted");
            let committed = word.with_uncommitted(Mutation::MarkKeptAtCommit.is_made());
            self.directory.set(row, committed);
        }
        debug_assert!(
            !self.directory.get(row).is_uncommitted(),
            "row {row} stays uncommitted"
        );
    }

    /// Moves tuples out of sparse pages, about `bytes_max` of them, when a
    /// share of the heap larger than this is free slots. Bytes of pages that
    /// became empty.
    pub fn compact_heap(&mut self, bytes_max: usize, free_share: f64) -> usize {
        if self.heap.fragmentation() < free_share {
            return 0;
        }
        let directory = &mut self.directory;
        let moved = self.heap.evacuate(bytes_max, &mut |row, old, new| {
            if let Some(hot) = directory.get(row).as_hot() {
                debug_assert!(hot.pointer() == old, "row {row} has two tuples");
                directory.set_unsaved(row, hot.with_pointer(new));
            }
        });
        moved.released_bytes
    }

    /// At a restart: an image has a row's tuple, which was in no block. Rows are counted already.
    ///
    /// # Errors
    /// The arena is exhausted.
    pub fn restore_dirty(
        &mut self,
        row: u32,
        tuple: &[u8],
        warmth: u8,
        marked: bool,
    ) -> Result<()> {
        debug_assert!(self.directory.get(row).is_free(), "row {row} is not free");
        let pointer = self.heap.insert(row, 0, tuple).ok_or_else(exhausted)?;
        let word = Word::hot(pointer)
            .with_temperature(warmth)
            .with_uncommitted(marked);
        self.directory.restore(row, word);
        self.note_hot(row);
        self.check_tuple(row);
        Ok(())
    }

    /// At a restart: the log has this tuple for a row, whether it was there or not.
    ///
    /// # Errors
    /// The arena is exhausted; the row is as it was.
    pub fn replay(&mut self, row: u32, tuple: &[u8], provisional: bool) -> Result<Replayed> {
        let word = self.directory.get(row);
        if !is_there(word) {
            let before = self.look(row);
            let word = self.store_new(row, tuple, provisional)?;
            self.directory.restore(row, word);
            self.check(row, before);
            return Ok(Replayed::Inserted);
        }
        let changed = self.change(row, word, tuple, 0)?;
        self.free_aside(changed.past);
        if word.is_hot() {
            // Nothing else counts as its use.
            self.order.used(row, u64::MAX);
        }
        Ok(Replayed::Changed(changed.hole))
    }

    /// A tuple is being copied into a block, as the record in this slot.
    #[inline]
    pub fn copy(&mut self, row: u32, hot: HotWord, copying: Copying, slot: u16) {
        debug_assert!(self.is_now(row, hot.word()) && self.is_dirty(hot));
        self.heap.set_cold(hot.pointer(), copying.mark(slot).0);
        debug_assert!(self.is_as_copied(hot, copying, slot));
    }

    /// The block that a tuple was copied into could not be written.
    pub fn not_copied(&mut self, row: u32, hot: HotWord) {
        debug_assert!(self.is_now(row, hot.word()) && self.may_take_copy(hot));
        self.heap.set_cold(hot.pointer(), CopyWord::NONE.0);
        debug_assert!(self.is_dirty(hot));
    }

    /// A tuple that was copied has its copy, and stays in memory.
    pub fn stay_clean(&mut self, row: u32, hot: HotWord, address: ColdAddress) {
        debug_assert!(self.is_now(row, hot.word()) && self.may_take_copy(hot));
        let copy = match Mutation::CopyNotNoted.is_made() {
            true => CopyWord::NONE.0,
            false => address.to_word(),
        };
        self.heap.set_cold(hot.pointer(), copy);
        self.directory.mark_changed(row);
        self.check_copy(row, Some(address));
    }

    /// A tuple that was copied leaves memory for its copy.
    pub fn leave_copied(&mut self, row: u32, hot: HotWord, address: ColdAddress, fingerprint: u8) {
        debug_assert!(self.is_now(row, hot.word()) && self.may_take_copy(hot));
        let before = self.look(row);
        self.directory
            .set(row, cold_word(address, fingerprint, hot));
        self.heap.free(hot.pointer());
        self.note_colder();
        self.counts.evicted += 1;
        self.note_left(row);
        self.check(row, before);
        self.check_copy(row, Some(address));
    }

    /// A tuple leaves memory for the copy that it has, without a write: that is where the last
    /// checkpoint knows it.
    pub fn leave_clean(&mut self, row: u32, hot: HotWord, address: ColdAddress, fingerprint: u8) {
        debug_assert!(self.is_now(row, hot.word()) && self.copy_of(hot) == Some(address));
        let before = self.look(row);
        let cold = cold_word(address, fingerprint, hot);
        self.directory.set_unsaved(row, cold);
        self.heap.free(hot.pointer());
        self.note_colder();
        self.counts.evicted += 1;
        self.counts.evicted_clean += 1;
        self.note_left(row);
        self.check(row, before);
        self.check_copy(row, Some(address));
    }

    /// A cold tuple was read, and is in memory again. It keeps its copy, so that to leave again
    /// costs no write. None: the arena is exhausted, and it stays where it was.
    pub fn come_back(&mut self, row: u32, cold: ColdWord, tuple: &[u8]) -> Option<TuplePtr> {
        debug_assert!(self.is_now(row, cold.word()));
        let before = self.look(row);
        let copy = match Mutation::CopyForgotten.is_made() {
            true => CopyWord::NONE.0,
            false => cold.address().to_word(),
        };
        let pointer = self.heap.insert(row, copy, tuple)?;
        // The last checkpoint has nothing new to learn.
        let word = hot_word(pointer, cold.word());
        self.directory.set_unsaved(row, word);
        self.note_hot(row);
        self.note_warmer();
        self.check(row, before);
        self.check_copy(row, Some(cold.address()));
        Some(pointer)
    }

    /// A cold tuple was read with its block, which is to be given up, and is in memory again,
    /// without a copy: what lies at its address is a hole from now on. `along`: nobody asked for it.
    /// None: the arena is exhausted, and it stays where it was.
    pub fn come_home(
        &mut self,
        row: u32,
        cold: ColdWord,
        tuple: &[u8],
        along: bool,
    ) -> Option<TuplePtr> {
        debug_assert!(self.is_now(row, cold.word()));
        let before = self.look(row);
        let pointer = self.heap.insert(row, 0, tuple)?;
        self.directory.set(row, hot_word(pointer, cold.word()));
        match along {
            true => self.order.came_along(row),
            false => self.note_hot(row),
        }
        self.note_warmer();
        self.check(row, before);
        self.check_copy(row, None);
        Some(pointer)
    }

    /// A row's copy was copied to another block.
    pub fn move_copy(&mut self, row: u32, word: Word, to: ColdAddress) {
        debug_assert!(self.is_now(row, word) && self.copy_of_row(word).is_some());
        let before = self.look(row);
        if Mutation::MoveNotNoted.is_made() {
            return self.check_copy(row, Some(to));
        }
        if let Some(cold) = word.as_cold() {
            self.directory.set(row, cold.with_address(to));
        } else if let Some(hot) = word.as_hot() {
            self.heap.set_cold(hot.pointer(), to.to_word());
            self.directory.mark_changed(row);
        }
        self.check(row, before);
        self.check_copy(row, Some(to));
    }

    /// A row is deleted. Its tuple, if it is hot, stays until it is buried. Returns where the
    /// tuple's copy lies: a hole, if this is not undone.
    #[inline]
    pub fn die(&mut self, row: u32, word: Word) -> Option<ColdAddress> {
        debug_assert!(self.is_now(row, word) && is_there(word));
        let before = self.look(row);
        self.directory.set(row, DEAD);
        self.note_fewer();
        if word.is_cold() {
            self.note_warmer();
        }
        self.check(row, before);
        self.copy_of_row(word)
    }

    /// A dead row is what it was.
    pub fn undo_die(&mut self, row: u32, word: Word) {
        debug_assert!(self.is_now(row, DEAD) && is_there(word));
        debug_assert!(self.has_tuple_of(row, word), "row {row} died for good");
        let before = self.look(row);
        self.directory.set(row, word);
        self.note_more();
        if word.is_cold() {
            self.note_colder();
        }
        self.check(row, before);
    }

    /// A row that had this word when it died is dead for good: its tuple goes. So does its
    /// number, unless it is `kept`, for snapshots to which the row is still there.
    pub fn bury(&mut self, row: u32, word: Word, kept: bool, numbers: Numbers) {
        debug_assert!(self.is_now(row, DEAD) && is_there(word));
        debug_assert!(self.has_tuple_of(row, word), "row {row} was buried before");
        if let Some(hot) = word.as_hot() {
            self.heap.free(hot.pointer());
        }
        if !kept {
            self.free(row, numbers);
        }
    }

    /// No snapshot sees a dead row any more: its number may be another's.
    pub fn free_number(&mut self, row: u32) {
        debug_assert!(self.is_now(row, DEAD), "row {row} is not dead");
        self.free(row, Numbers::Listed);
    }

    /// At a restart: a row goes, whatever it was, with its tuple and its number. Returns where
    /// the tuple's copy lies: a hole from now on.
    pub fn forget(&mut self, row: u32) -> Option<ColdAddress> {
        let word = self.directory.get(row);
        let hole = self.copy_of_row(word);
        if let Some(hot) = word.as_hot() {
            self.heap.free(hot.pointer());
        }
        self.cold -= u64::from(word.is_cold());
        // An image may have been wrong about how many there are.
        self.live = self.live.saturating_sub(u64::from(is_there(word)));
        self.free(row, Numbers::Restoring);
        hole
    }

    /// The word of a row that is no more.
    fn free(&mut self, row: u32, numbers: Numbers) {
        match numbers {
            Numbers::Listed => self.directory.release(row),
            Numbers::Restoring => self.directory.restore(row, Word(0)),
        }
    }

    /// Whether a copy that was made may be the tuple's.
    fn may_take_copy(&self, hot: HotWord) -> bool {
        self.copy_word(hot).is_under_way() || Mutation::EvictedThoughChanged.is_made()
    }

    /// Whether the caller knows the row as it is.
    fn is_now(&self, row: u32, word: Word) -> bool {
        self.directory.get(row) == word
    }
}

/// The word of a row whose tuple is in the heap now, and was not, or elsewhere.
#[inline]
fn hot_word(pointer: TuplePtr, before: Word) -> Word {
    Word::hot(pointer)
        .with_aside(before.is_aside())
        .with_uncommitted(before.is_uncommitted() && !Mutation::MarkLostComing.is_made())
        .with_temperature(before.temperature())
}

/// The word of a row whose tuple leaves memory.
#[inline]
fn cold_word(address: ColdAddress, fingerprint: u8, before: HotWord) -> Word {
    let before = before.word();
    Word::cold(address, fingerprint)
        .with_aside(before.is_aside())
        .with_uncommitted(before.is_uncommitted() && !Mutation::MarkLostLeaving.is_made())
        .with_temperature(before.temperature())
}

/// Whether the word is of a row that is there, hot or cold.
#[inline]
fn is_there(word: Word) -> bool {
    word.is_hot() || word.is_cold()
}

fn exhausted() -> Error {
    Error::OutOfMemory("no room for one more row in memory".into())
}

#[cfg(test)]
impl TablePartition {
    /// For tests of what looks for damage: a word that no transition would have written.
    pub fn spoil_word(&mut self, row: u32, word: Word) {
        self.directory.set(row, word);
    }

    /// As [`Self::spoil_word`]: a row too many is counted.
    pub fn spoil_count(&mut self) {
        self.live += 1;
    }
}
