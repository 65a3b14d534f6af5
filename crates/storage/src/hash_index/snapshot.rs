//! A hash index as pages: eight of its lines each, as they are.
//!
//! Pages may hold lines that the sweep has left or not reached; the head says
//! which count. The head (little-endian): magic, level and lines of the old
//! geometry, sweep, number of entries in lines, number of strays, the strays,
//! and whether there are duplicates: they are a B+tree with pages and a head of
//! its own ([`HashIndex::duplicates`]). Strays are few, so they go whole.

use super::line::Line;
use super::side::{Side, Stray};
use super::{CHUNK_LINES, GROUP_LINES, GROUP_LINES_STEP, Geometry, HashIndex, LEVEL_MAX};
use crate::btree::BTree;
use crate::changed_pages::{ChangedPages, Paged};
use crate::chunk::Chunk;
use crate::index_snapshot::{Corrupt, Reader};

const MAGIC: u32 = u32::from_le_bytes(*b"TCh2");
/// Lines in a page: 512 bytes.
pub(super) const PAGE_LINES: u64 = 8;
/// More lines than 2^32 rows can fill.
const PAGES_MAX: usize = 1 << 27;

impl Paged for HashIndex {
    fn changed(&mut self) -> &mut ChangedPages {
        &mut self.changed
    }

    fn pages(&self) -> usize {
        self.chunks.len() * (CHUNK_LINES / PAGE_LINES) as usize
    }

    fn write_page(&self, page: usize, out: &mut Vec<u8>) -> bool {
        let first = page as u64 * PAGE_LINES;
        let chunk = self.chunks.get((first / CHUNK_LINES) as usize);
        let Some(lines) = chunk.and_then(|chunk| chunk.get((first % CHUNK_LINES) as usize..))
        else {
            return false;
        };
        if lines.is_empty() {
            return false;
        }
        for index in 0..PAGE_LINES as usize {
            let line = lines.get(index).unwrap_or(&Line::EMPTY);
            out.extend_from_slice(&line.to_bytes());
        }
        true
    }

    fn read_page(&mut self, page: usize, from: &mut Reader<'_>) -> Result<(), Corrupt> {
        if page >= PAGES_MAX {
            return Err(Corrupt("a line's number is out of range"));
        }
        let first = page as u64 * PAGE_LINES;
        let chunk = (first / CHUNK_LINES) as usize;
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, Chunk::default);
        }
        let chunk = &mut self.chunks[chunk];
        if chunk.len() < CHUNK_LINES as usize {
            // Nothing is kept of the lines that a new index begins with.
            *chunk = Chunk::zeroed(CHUNK_LINES as usize);
        }
        let places = chunk[(first % CHUNK_LINES) as usize..].iter_mut();
        for place in places.take(PAGE_LINES as usize) {
            let line = Line::from_bytes(&from.array()?);
            *place = line.ok_or(Corrupt("a line's numbers are out of range"))?;
        }
        Ok(())
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&self.old.level.to_le_bytes());
        out.extend_from_slice(&self.old.lines.to_le_bytes());
        out.extend_from_slice(&self.sweep.to_le_bytes());
        out.extend_from_slice(&self.in_lines.to_le_bytes());
        let strays = self.side.as_ref().map(|side| &side.strays);
        let number = strays.map_or(0, |strays| strays.len() as u64);
        out.extend_from_slice(&number.to_le_bytes());
        for stray in strays.into_iter().flatten() {
            out.extend_from_slice(&stray.prefix.to_le_bytes());
            out.extend_from_slice(&[stray.known_bits, stray.spread]);
            out.extend_from_slice(&stray.row.to_le_bytes());
        }
        match self.duplicates() {
            Some(duplicates) => {
                out.push(1);
                duplicates.write_head(out);
            }
            None => out.push(0),
        }
    }

    fn read_head(&mut self, from: &mut Reader<'_>) -> Result<(), Corrupt> {
        if from.u32()? != MAGIC {
            return Err(Corrupt("not a hash index"));
        }
        let old = read_geometry(from)?;
        let sweep = from.u64()?;
        if sweep > old.groups() {
            return Err(Corrupt("the sweep is beyond the groups"));
        }
        let in_lines = from.u64()?;
        (self.old, self.new, self.sweep) = (old, old.next(), sweep);
        if self.new.total_lines() > PAGES_MAX as u64 * PAGE_LINES {
            return Err(Corrupt("more lines than rows can fill"));
        }
        self.keep_lines_of_geometry();
        if self.in_lines != in_lines {
            return Err(Corrupt("entry count differs"));
        }
        let mut side = self.side.take().unwrap_or_default();
        side.strays.clear();
        side.lengths = 0;
        for _ in 0..from.u64()? {
            let prefix = from.u64()?;
            let [known_bits, spread] = from.array()?;
            let row = from.u32()?;
            if u32::from(known_bits) >= u64::BITS {
                return Err(Corrupt("a stray knows too many bits"));
            }
            side.add_stray(Stray {
                prefix,
                known_bits,
                spread,
                row,
            });
        }
        match from.u8()? {
            0 => side.duplicates = BTree::new(),
            1 => side.duplicates.read_head(from)?,
            _ => return Err(Corrupt("are there duplicates or not")),
        }
        side.duplicates.changed().clear_all();
        self.side = (side.len() > 0).then_some(side);
        self.changed.clear_all();
        Ok(())
    }
}

impl HashIndex {
    /// The entries in the side table by their whole hash, if there are any.
    pub fn duplicates(&self) -> Option<&BTree> {
        self.side.as_ref().map(|side| &side.duplicates)
    }

    /// As [`HashIndex::duplicates`], to clear the marks of what was saved.
    pub fn duplicates_mut(&mut self) -> Option<&mut BTree> {
        self.side.as_mut().map(|side| &mut side.duplicates)
    }

    /// Fills a page of the duplicates' B+tree.
    ///
    /// # Errors
    /// [`Paged::read_page`]'s.
    pub fn read_duplicates_page(
        &mut self,
        page: usize,
        from: &mut Reader<'_>,
    ) -> Result<(), Corrupt> {
        let side = self.side.get_or_insert_with(|| Box::new(Side::default()));
        side.duplicates.read_page(page, from)
    }

    /// Keeps those of the lines read that the geometry has, and counts them.
    fn keep_lines_of_geometry(&mut self) {
        let ranges = [self.unswept_lines(), self.swept_lines()];
        self.lines = ranges.iter().map(|r| r.end - r.start).sum();
        self.in_lines = 0;
        let chunks = self.new.total_lines().div_ceil(CHUNK_LINES) as usize;
        self.chunks.truncate(chunks);
        self.make_room();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            self.ensure_lines(range.start, range.end);
        }
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            let first = number as u64 * CHUNK_LINES;
            let mut kept = false;
            for (number, line) in (first..).zip(chunk.iter_mut()) {
                if ranges.iter().any(|range| range.contains(&number)) {
                    self.in_lines += line.len() as u64;
                    kept = true;
                } else {
                    *line = Line::EMPTY;
                }
            }
            if !kept {
                *chunk = Chunk::default();
            }
        }
        let first_lines = self.new.total_lines().min(CHUNK_LINES) as usize;
        if let Some(first) = self.chunks.first_mut()
            && first.len() > first_lines
        {
            *first = Chunk::resized(first, first_lines);
        }
    }

    fn unswept_lines(&self) -> std::ops::Range<u64> {
        0..self.old.first_line(self.sweep)
    }

    fn swept_lines(&self) -> std::ops::Range<u64> {
        let splits = self.new.level - self.old.level;
        self.new.first_line(self.sweep << splits)..self.new.total_lines()
    }
}

fn read_geometry(reader: &mut Reader<'_>) -> Result<Geometry, Corrupt> {
    let (level, lines) = (reader.u32()?, reader.u32()?);
    let small = level == 0 && (1..GROUP_LINES).contains(&lines);
    let full = level < LEVEL_MAX
        && (GROUP_LINES..2 * GROUP_LINES).contains(&lines)
        && lines % GROUP_LINES_STEP == 0;
    if small || full {
        Ok(Geometry { level, lines })
    } else {
        Err(Corrupt("no such geometry"))
    }
}
