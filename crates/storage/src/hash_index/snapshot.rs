//! A hash index as bytes: its lines as they are, and its side tables.
//!
//! Layout (little-endian): magic, level and lines of the old geometry, sweep;
//! the lines of the unswept groups, then of the swept ones; the duplicates'
//! B+tree with its length before it; the strays' number and the strays.

use std::io::{self, Write};

use super::line::{LINE_BYTES, Line};
use super::side::{Side, Stray};
use super::{GROUP_LINES, GROUP_LINES_STEP, Geometry, HashIndex, LEVEL_MAX};
use crate::btree::BTree;
use crate::index_snapshot::{Corrupt, Reader};

const MAGIC: u32 = u32::from_le_bytes(*b"TCh1");
const STRAY_BYTES: usize = 14;

impl HashIndex {
    /// Writes the index's snapshot.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&MAGIC.to_le_bytes())?;
        out.write_all(&self.old.level.to_le_bytes())?;
        out.write_all(&self.old.lines.to_le_bytes())?;
        out.write_all(&self.sweep.to_le_bytes())?;
        let mut batch = Vec::with_capacity(LINE_BYTES * 256);
        for number in self.unswept_lines().chain(self.swept_lines()) {
            batch.extend_from_slice(&self.line(number).to_bytes());
            if batch.len() == batch.capacity() {
                out.write_all(&batch)?;
                batch.clear();
            }
        }
        out.write_all(&batch)?;
        let mut duplicates = Vec::new();
        let mut strays = Vec::new();
        if let Some(side) = &self.side {
            side.duplicates.write_to(&mut duplicates)?;
            for stray in &side.strays {
                strays.extend_from_slice(&stray.prefix.to_le_bytes());
                strays.extend_from_slice(&[stray.known_bits, stray.spread]);
                strays.extend_from_slice(&stray.row.to_le_bytes());
            }
        }
        out.write_all(&(duplicates.len() as u64).to_le_bytes())?;
        out.write_all(&duplicates)?;
        out.write_all(&(strays.len() as u64).to_le_bytes())?;
        out.write_all(&strays)
    }

    /// The index that [`HashIndex::write_to`] wrote.
    ///
    /// # Errors
    /// [`Corrupt`] where numbers are out of range or bytes are missing.
    pub fn read_from(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != MAGIC {
            return Err(Corrupt("not a hash index"));
        }
        let old = read_geometry(&mut reader)?;
        let sweep = reader.u64()?;
        if sweep > old.groups() {
            return Err(Corrupt("the sweep is beyond the groups"));
        }
        let mut index = Self::new();
        (index.old, index.new, index.sweep) = (old, old.next(), sweep);
        let (unswept, swept) = (index.unswept_lines(), index.swept_lines());
        index.lines = (unswept.end - unswept.start) + (swept.end - swept.start);
        if index.lines > (reader.remaining() / LINE_BYTES) as u64 {
            return Err(Corrupt("cut short"));
        }
        index.make_room();
        for lines in [unswept, swept] {
            if !lines.is_empty() {
                index.ensure_lines(lines.start, lines.end);
            }
            for number in lines {
                let line = Line::from_bytes(&reader.array()?);
                let line = line.ok_or(Corrupt("a line's numbers are out of range"))?;
                index.in_lines += line.len() as u64;
                *index.line_mut(number) = line;
            }
        }
        let mut side = Side::default();
        let duplicates_bytes = reader.u64()? as usize;
        if duplicates_bytes > 0 {
            side.duplicates = BTree::read_from(reader.bytes(duplicates_bytes)?)?;
        }
        let strays_bytes = reader.u64()? as usize;
        let mut strays = Reader::new(reader.bytes(strays_bytes)?);
        while strays.remaining() >= STRAY_BYTES {
            let prefix = strays.u64()?;
            let [known_bits, spread] = strays.array()?;
            let row = strays.u32()?;
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
        strays.end()?;
        reader.end()?;
        if side.len() > 0 {
            index.side = Some(Box::new(side));
        }
        Ok(index)
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
