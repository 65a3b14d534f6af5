//! The hash index: from the 64-bit hash of a key to row ids, without the keys.
//!
//! Entries lie in cache lines of ten ([`line`]), lines in groups. The first
//! bits of a hash choose the group, eight others the home line in it. The bits
//! between are kept in part, to tell rows apart and to split groups later
//! without asking for keys: cold rows need not be fetched. The index answers
//! with *candidates*; whoever asks compares the keys, or knows from the hash's
//! bits that were compared that there is no other ([`Candidates::known_bits`]).
//!
//! It grows by a sweep: group by group, from the last to the first, a group's
//! lines move to where groups of two more lines (or twice as many groups) have
//! them. A step moves one group of at most 30 lines, and comes when the load
//! exceeds [`LOAD_PERCENT_MAX`], so the load is always near it: about 7.5 bytes an
//! entry. There is no directory; a look-up computes the line and reads it.
//!
//! Assumes the partition's lock, good hashes, and that a (hash, row) pair is
//! inserted once. Does not survive a crash: checkpoints save its lines as pages
//! ([`crate::changed_pages::Paged`]); damage in what is read back is an error. Rows of one
//! hash beyond [`SAME_HASH_LINES_MAX`], and the few entries for which there is no
//! room, go to the [`side`] tables. Memory is not given back when entries go.

mod line;
mod side;
mod snapshot;
mod sweep;
#[cfg(test)]
mod tests;

use crate::arena::prefetch_line;
use crate::changed_pages::ChangedPages;
use crate::chunk::Chunk;
use line::{LINE_BYTES, LINE_ENTRIES, Line, Window, filter_bit, probe_of};
use side::{Side, SideCandidates};
use snapshot::PAGE_LINES;
use sweep::Swept;

/// A step of growth comes when more than this share of the slots is taken.
pub const LOAD_PERCENT_MAX: u64 = 86;
/// How many rows of one hash may lie in lines.
pub const SAME_HASH_LINES_MAX: u32 = 8;
/// How many lines of its group an entry may try, and a look-up read at most.
const PROBE_LINES_MAX: u32 = 8;
/// Lines of a group after a split, and by how many groups grow up to twice that.
const GROUP_LINES: u32 = 16;
const GROUP_LINES_STEP: u32 = 2;
const LEVEL_MAX: u32 = 36;
/// Lines in a chunk: 32 KiB. Chunks make growth copy nothing.
const CHUNK_LINES: u64 = 512;

/// How hashes map to lines: `2^level` groups of `lines` each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Geometry {
    level: u32,
    lines: u32,
}

impl Geometry {
    const FIRST: Self = Self { level: 0, lines: 1 };

    fn next(self) -> Self {
        let Self { level, lines } = self;
        if lines < GROUP_LINES {
            // Only while there is one group.
            let lines = lines + 1;
            Self { level, lines }
        } else if lines + GROUP_LINES_STEP < 2 * GROUP_LINES {
            let lines = lines + GROUP_LINES_STEP;
            Self { level, lines }
        } else {
            Self {
                level: level + 1,
                lines: GROUP_LINES,
            }
        }
    }

    fn groups(self) -> u64 {
        1 << self.level
    }

    fn total_lines(self) -> u64 {
        self.groups() * u64::from(self.lines)
    }

    fn first_line(self, group: u64) -> u64 {
        group * u64::from(self.lines)
    }

    /// The home line, counted within the group.
    #[inline(always)]
    fn home(self, spread: u8) -> u32 {
        (u32::from(spread) * self.lines) >> 8
    }
}

/// The first `bits` of a hash as a number.
#[inline(always)]
fn top_bits(hash: u64, bits: u32) -> u64 {
    (hash >> 1) >> (63 - bits)
}

/// An index from hashes to row ids.
pub struct HashIndex {
    /// Chunks that the sweep has not reached are empty.
    chunks: Vec<Chunk<Line>>,
    /// Groups below `sweep` (in numbers of `old`) still lie by `old`, the others
    /// by `new`.
    old: Geometry,
    new: Geometry,
    sweep: u64,
    lines: u64,
    in_lines: u64,
    side: Option<Box<Side>>,
    changed: ChangedPages,
}

impl Default for HashIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl HashIndex {
    /// An empty index.
    pub fn new() -> Self {
        let mut index = Self {
            chunks: Vec::new(),
            old: Geometry::FIRST,
            new: Geometry::FIRST.next(),
            sweep: 1,
            lines: 1,
            in_lines: 0,
            side: None,
            changed: ChangedPages::default(),
        };
        index.make_room();
        index.ensure_lines(0, 1);
        index
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.in_lines as usize + self.side.as_ref().map_or(0, |side| side.len())
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory taken.
    pub fn bytes(&self) -> usize {
        let lines: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        lines * LINE_BYTES
            + self.chunks.capacity() * size_of::<Chunk<Line>>()
            + self.side.as_ref().map_or(0, |side| side.bytes())
            + self.changed.bytes()
    }

    /// Adds an entry. Does a bounded piece of growth now and then.
    #[inline]
    pub fn insert(&mut self, hash: u64, row: u32) {
        if (self.in_lines + 1) * 100 > self.lines * LINE_ENTRIES as u64 * LOAD_PERCENT_MAX {
            self.step();
        }
        let (geometry, group) = self.locate(hash);
        if !self.put_whole(geometry, group, hash, row) {
            let home = geometry.first_line(group) + u64::from(geometry.home(hash as u8));
            self.line_mut(home).aside |= filter_bit(hash as u8);
            self.side.get_or_insert_default().add_duplicate(hash, row);
        }
    }

    /// Removes an entry; false if it is not there.
    pub fn remove(&mut self, hash: u64, row: u32) -> bool {
        let (geometry, group) = self.locate(hash);
        let probe = probe_of(hash, geometry.level);
        let first = geometry.first_line(group);
        let home = geometry.home(hash as u8);
        let bit = filter_bit(hash as u8);
        let aside = self.line(first + u64::from(home)).aside & bit != 0;
        // A row that is entered under two hashes may have two entries that match.
        // The one that knows most is the right one to go: what the other
        // knows is true of both.
        if aside
            && let Some(side) = &mut self.side
            && side.duplicates.remove(&hash.to_be_bytes(), row)
        {
            return true;
        }
        let mut best: Option<(u32, u64, usize)> = None;
        let mut at = home;
        for _ in 0..PROBE_LINES_MAX.min(geometry.lines) {
            let number = first + u64::from(at);
            let line = self.line(number);
            let mut found = line.matches(probe);
            while found != 0 {
                let index = found.trailing_zeros() as usize;
                found &= found - 1;
                let known = line.window(index).valid_bits();
                if line.row(index) == row && best.is_none_or(|best| best.0 < known) {
                    best = Some((known, number, index));
                }
            }
            if line.passed & bit == 0 {
                break;
            }
            at = if at + 1 == geometry.lines { 0 } else { at + 1 };
        }
        if aside
            && let Some(side) = &mut self.side
            && let Some(stray) = side.find_stray(hash, row)
            && best.is_none_or(|best| geometry.level + best.0 < u32::from(stray.known_bits))
        {
            return side.remove_stray(&stray);
        }
        let Some((_, number, index)) = best else {
            return false;
        };
        self.line_mut(number).remove(index);
        self.in_lines -= 1;
        true
    }

    /// The rows that may have the key of `hash`: all that have, and of others
    /// few. A row that is entered under two hashes may come twice.
    #[inline(always)]
    pub fn candidates(&self, hash: u64) -> Candidates<'_> {
        let (geometry, group) = self.locate(hash);
        let home = geometry.first_line(group) + u64::from(geometry.home(hash as u8));
        let line = self.line(home);
        Candidates {
            index: self,
            hash,
            line,
            found: line.matches(probe_of(hash, geometry.level)),
            taken: 0,
            lines_read: 1,
            more: (line.passed | line.aside) & filter_bit(hash as u8) != 0,
            side: None,
        }
    }

    /// Asks for the cache line that a look-up of `hash` reads.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch_line(self.line(self.home_of(hash)));
    }

    #[inline(always)]
    fn home_of(&self, hash: u64) -> u64 {
        let (geometry, group) = self.locate(hash);
        geometry.first_line(group) + u64::from(geometry.home(hash as u8))
    }

    /// The geometry and group that `hash` lies by at present.
    #[inline(always)]
    fn locate(&self, hash: u64) -> (Geometry, u64) {
        let swept = top_bits(hash, self.old.level) >= self.sweep;
        let geometry = if swept { self.new } else { self.old };
        (geometry, top_bits(hash, geometry.level))
    }

    #[inline(always)]
    fn line(&self, number: u64) -> &Line {
        &self.chunks[(number / CHUNK_LINES) as usize][(number % CHUNK_LINES) as usize]
    }

    #[inline(always)]
    fn line_mut(&mut self, number: u64) -> &mut Line {
        self.changed.mark((number / PAGE_LINES) as usize);
        &mut self.chunks[(number / CHUNK_LINES) as usize][(number % CHUNK_LINES) as usize]
    }

    /// Puts an entry of which the whole hash is known into a line, unless its
    /// hash has as many there as it may, or there is no room.
    #[inline]
    fn put_whole(&mut self, geometry: Geometry, group: u64, hash: u64, row: u32) -> bool {
        let window = Window::new(hash, geometry.level);
        let probe = probe_of(hash, geometry.level);
        self.put(geometry, group, window, row, Some(probe))
    }

    /// Puts an entry into the first line with room from its home on.
    #[inline]
    fn put(
        &mut self,
        geometry: Geometry,
        group: u64,
        window: Window,
        row: u32,
        probe: Option<u32>,
    ) -> bool {
        let first = geometry.first_line(group);
        let mut at = geometry.home(window.spread);
        let mut same_hash = 0;
        for _ in 0..PROBE_LINES_MAX.min(geometry.lines) {
            let line = self.line_mut(first + u64::from(at));
            if let Some(probe) = probe {
                same_hash += line.matches(probe).count_ones();
                if same_hash >= SAME_HASH_LINES_MAX {
                    return false;
                }
            }
            if line.push(window, row) {
                self.in_lines += 1;
                return true;
            }
            line.passed |= filter_bit(window.spread);
            at = if at + 1 == geometry.lines { 0 } else { at + 1 };
        }
        false
    }

    // Growth.

    /// Sweeps one group from the old geometry to the new.
    fn step(&mut self) {
        if self.sweep == 0 {
            if self.new.level >= LEVEL_MAX {
                return;
            }
            self.old = self.new;
            self.new = self.old.next();
            self.sweep = self.old.groups();
            self.make_room();
        }
        self.sweep -= 1;
        let group = self.sweep;
        let (old, new) = (self.old, self.new);
        let splits = new.level - old.level;
        let mut swept = Swept::new(group, old, new);
        let old_first = old.first_line(group);
        let mut aside = 0;
        for number in old_first..old_first + u64::from(old.lines) {
            let line = std::mem::replace(self.line_mut(number), Line::EMPTY);
            aside |= line.aside;
            self.in_lines -= line.len() as u64;
            swept.take(&line);
        }
        let first = new.first_line(group << splits);
        let lines = u64::from(new.lines) << splits;
        self.ensure_lines(first, first + lines);
        self.release_between(old_first, first);
        for (number, line) in (first..first + lines).zip(&swept.lines) {
            self.in_lines += line.len() as u64;
            *self.line_mut(number) = *line;
        }
        self.lines += lines - u64::from(old.lines);
        if aside != 0 || !swept.strays.is_empty() {
            let side = self.side.get_or_insert_default();
            swept.strays.into_iter().for_each(|s| side.add_stray(s));
            for part in 0..1 << splits {
                self.recall_side(group << splits | part);
            }
        }
    }

    /// Brings back from the side tables what has room in a group of the new
    /// geometry now, and marks the homes of the rest.
    fn recall_side(&mut self, group: u64) {
        let new = self.new;
        let Some(mut side) = self.side.take() else {
            return;
        };
        for hash in side.duplicate_hashes(group, new.level) {
            let key = hash.to_be_bytes();
            while let Some(row) = side.duplicates.get_first(&key) {
                if !self.put_whole(new, group, hash, row) {
                    self.mark_aside(group, hash as u8);
                    break;
                }
                side.duplicates.remove(&key, row);
            }
        }
        for stray in side.strays_around(group, new.level) {
            let known_bits = u32::from(stray.known_bits);
            let back = known_bits >= new.level && {
                let window = Window::of_known(stray.prefix, known_bits, stray.spread, new.level);
                self.put(new, group, window, stray.row, None)
            };
            if back {
                side.remove_stray(&stray);
            } else {
                self.mark_aside(group, stray.spread);
            }
        }
        if side.len() > 0 {
            self.side = Some(side);
        }
    }

    fn mark_aside(&mut self, group: u64, spread: u8) {
        let home = self.new.first_line(group) + u64::from(self.new.home(spread));
        self.line_mut(home).aside |= filter_bit(spread);
    }

    /// Makes the table of chunks long enough for the new geometry. An index
    /// smaller than a chunk has one chunk, of as many lines as it needs.
    fn make_room(&mut self) {
        let lines = self.new.total_lines();
        let chunks = lines.div_ceil(CHUNK_LINES) as usize;
        if chunks > self.chunks.len() {
            self.chunks.resize_with(chunks, Chunk::default);
        }
        let first_lines = lines.min(CHUNK_LINES) as usize;
        if let Some(first) = self.chunks.first_mut()
            && first.len() < first_lines
        {
            *first = Chunk::resized(first, first_lines);
        }
    }

    /// Frees the chunk that the sweep has just left, if all of it lies between
    /// the unswept groups' end and the swept groups' first line.
    fn release_between(&mut self, unswept_end: u64, swept_first: u64) {
        let chunk = unswept_end.div_ceil(CHUNK_LINES);
        if chunk > 0 && (chunk + 1) * CHUNK_LINES <= swept_first {
            self.chunks[chunk as usize] = Chunk::default();
        }
    }

    fn ensure_lines(&mut self, first: u64, end: u64) {
        for chunk in first / CHUNK_LINES..=(end - 1) / CHUNK_LINES {
            let chunk = &mut self.chunks[chunk as usize];
            if chunk.is_empty() {
                *chunk = Chunk::zeroed(CHUNK_LINES as usize);
            }
        }
    }
}

/// Rows that may have a hash, from [`HashIndex::candidates`].
pub struct Candidates<'a> {
    index: &'a HashIndex,
    hash: u64,
    line: &'a Line,
    found: u32,
    /// The entry of the line that came last.
    taken: usize,
    lines_read: u32,
    /// Whether there is anything to look at behind what `found` says.
    more: bool,
    side: Option<SideCandidates<'a>>,
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.found == 0 {
            return if self.more { self.next_further() } else { None };
        }
        Some(self.take_found())
    }
}

impl Candidates<'_> {
    #[inline(always)]
    fn take_found(&mut self) -> u32 {
        let index = self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        self.taken = index;
        self.line.row(index)
    }

    /// How many of the hash's first bits agree for certain with the row's that came
    /// last; its low 8 bits do, too. None are promised of a row from the side tables.
    pub fn known_bits(&self) -> u32 {
        if self.side.is_some() {
            return 0;
        }
        let (geometry, _) = self.index.locate(self.hash);
        geometry.level + self.line.window(self.taken).valid_bits()
    }

    /// What the home line does not have: later lines, then the side tables.
    #[cold]
    fn next_further(&mut self) -> Option<u32> {
        if self.advance() {
            return Some(self.take_found());
        }
        if self.side.is_none() {
            let home = self.index.line(self.index.home_of(self.hash));
            self.more = home.aside & filter_bit(self.hash as u8) != 0;
            let side = self.index.side.as_ref().filter(|_| self.more)?;
            self.side = Some(side.candidates(self.hash));
        }
        self.side.as_mut()?.next()
    }

    /// Goes on to the next line with an entry that may have the hash.
    fn advance(&mut self) -> bool {
        let (geometry, group) = self.index.locate(self.hash);
        let spread = self.hash as u8;
        let probe = probe_of(self.hash, geometry.level);
        let lines_max = PROBE_LINES_MAX.min(geometry.lines);
        while self.lines_read < lines_max && self.line.passed & filter_bit(spread) != 0 {
            let at = (geometry.home(spread) + self.lines_read) % geometry.lines;
            self.lines_read += 1;
            self.line = self.index.line(geometry.first_line(group) + u64::from(at));
            self.found = self.line.matches(probe);
            if self.found != 0 {
                return true;
            }
        }
        false
    }
}
