//! How the tuples of a row group come apart into columns, and together again, byte by byte. A
//! shape is of one layout; the group keeps it, so that no catalog is needed to read it.
//!
//! Where a column is NULL its bytes are zeros, or none: a tuple that differs from that, or is of
//! another layout, does not fit the shape, and its group keeps it whole.

use crate::tuple::{Layouts, Part, PartPlace, header};

/// The bytes of the version word.
const VERSION_BYTES: usize = 2;
/// Fixed-width columns up to this width are integers.
const INTEGER_BYTES: u8 = 8;

/// The shape of a row group's tuples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// What each tuple begins with: its layout, and whether its offsets are wide.
    pub word: u16,
    pub fixed_end: u32,
    pub parts: Vec<Part>,
    /// Bytes of an offset, and where the bytes of variable-width columns begin.
    offset_bytes: usize,
    data_start: usize,
}

/// What a column has of one tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Bytes(&'a [u8]),
}

impl Shape {
    pub fn new(word: u16, fixed_end: u32, parts: Vec<Part>) -> Self {
        let offset_bytes = header(&word.to_le_bytes()).map_or(2, |(_, width)| width);
        let is_variable = |part: &&Part| matches!(part.place, PartPlace::Variable { .. });
        let variables = parts.iter().filter(is_variable).count();
        Self {
            word,
            fixed_end,
            parts,
            offset_bytes,
            data_start: fixed_end as usize + variables * offset_bytes,
        }
    }

    /// The shape of tuples that begin with this word.
    pub fn of(word: u16, layouts: &Layouts) -> Option<Self> {
        let (version, _) = header(&word.to_le_bytes())?;
        let layout = layouts.version(version)?;
        let fixed_end = layout.fixed_end() as u32;
        Some(Self::new(word, fixed_end, layout.parts().collect()))
    }

    /// Whether each part lies where a tuple of this shape has room for it. What a device has may
    /// say anything: a tuple takes no more memory than its columns do.
    pub fn is_sound(&self) -> bool {
        let fixed_end = self.fixed_end as usize;
        if self.parts.is_empty() {
            // Of a group without rows.
            return fixed_end <= VERSION_BYTES;
        }
        let nulls = VERSION_BYTES..fixed_end;
        let is_variable = |part: &&Part| matches!(part.place, PartPlace::Variable { .. });
        let variables = self.parts.iter().filter(is_variable).count() as u32;
        let mut widths = 0;
        for part in &self.parts {
            let null_byte = part
                .null_bit
                .map(|bit| VERSION_BYTES + usize::from(bit) / 8);
            if null_byte.is_some_and(|byte| !nulls.contains(&byte)) {
                return false;
            }
            let has_room = match part.place {
                PartPlace::Fixed { offset, width } => {
                    widths += usize::from(width);
                    offset as usize + usize::from(width) <= fixed_end
                }
                PartPlace::Variable { number } => number < variables,
            };
            if !has_room {
                return false;
            }
        }
        let most = VERSION_BYTES + self.parts.len() + widths;
        (VERSION_BYTES..=most).contains(&fixed_end)
    }

    /// Whether a column's values are integers in the chunk.
    pub fn is_integer(part: &Part) -> bool {
        matches!(part.place, PartPlace::Fixed { width, .. } if width <= INTEGER_BYTES)
    }

    /// Whether a tuple comes apart so that it can be put together again.
    pub fn fits(&self, tuple: &[u8]) -> bool {
        if word_of(tuple) != Some(self.word) || tuple.len() < self.data_start {
            return false;
        }
        let mut nulls = 0;
        let mut end = 0;
        for part in &self.parts {
            let is_null = self.is_null(part, tuple);
            nulls += u32::from(is_null);
            let empty = match part.place {
                PartPlace::Fixed { offset, width } => {
                    let bytes = tuple.get(offset as usize..offset as usize + usize::from(width));
                    bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
                }
                PartPlace::Variable { number } => {
                    let begin = end;
                    end = self.end_of(tuple, number);
                    if end < begin {
                        return false;
                    }
                    begin == end
                }
            };
            if is_null && !empty {
                return false;
            }
        }
        let bits = self.null_bits(tuple);
        let set: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
        set == nulls && self.data_start + end == tuple.len()
    }

    fn null_bits<'a>(&self, tuple: &'a [u8]) -> &'a [u8] {
        let fixed = self.parts.iter().filter_map(|part| match part.place {
            PartPlace::Fixed { offset, .. } => Some(offset),
            PartPlace::Variable { .. } => None,
        });
        let first = fixed.min().unwrap_or(self.fixed_end) as usize;
        tuple.get(VERSION_BYTES..first).unwrap_or(&[])
    }

    fn is_null(&self, part: &Part, tuple: &[u8]) -> bool {
        part.null_bit.is_some_and(|bit| {
            let byte = tuple.get(VERSION_BYTES + usize::from(bit) / 8);
            byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        })
    }

    /// Where a variable-width column ends, within the bytes of all of them.
    fn end_of(&self, tuple: &[u8], number: u32) -> usize {
        let width = self.offset_bytes;
        let at = self.fixed_end as usize + number as usize * width;
        let mut end = [0; 4];
        if let Some(bytes) = tuple.get(at..at + width) {
            end[..width].copy_from_slice(bytes);
        }
        u32::from_le_bytes(end) as usize
    }

    /// What a column has of a tuple that fits.
    pub fn cell<'a>(&self, part: &Part, tuple: &'a [u8]) -> Cell<'a> {
        if self.is_null(part, tuple) {
            return Cell::Null;
        }
        match part.place {
            PartPlace::Fixed { offset, width } => {
                let bytes = &tuple[offset as usize..offset as usize + usize::from(width)];
                match Self::is_integer(part) {
                    true => Cell::Integer(integer_of(bytes)),
                    false => Cell::Bytes(bytes),
                }
            }
            PartPlace::Variable { number } => {
                let begin = match number {
                    0 => 0,
                    _ => self.end_of(tuple, number - 1),
                };
                let data = &tuple[self.data_start..];
                Cell::Bytes(&data[begin..self.end_of(tuple, number)])
            }
        }
    }

    /// Writes the beginning of a tuple without columns into `out`, which it empties: columns follow
    /// in order ([`Self::put`]).
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.data_start, 0);
        out[..VERSION_BYTES].copy_from_slice(&self.word.to_le_bytes());
    }

    /// Puts the next column into a tuple that was begun. `None`: the bytes are not of its width.
    #[inline]
    pub fn put(&self, part: &Part, cell: Cell<'_>, out: &mut Vec<u8>) -> Option<()> {
        if cell == Cell::Null
            && let Some(bit) = part.null_bit
        {
            *out.get_mut(VERSION_BYTES + usize::from(bit) / 8)? |= 1 << (bit % 8);
        }
        match (part.place, cell) {
            (PartPlace::Fixed { .. }, Cell::Null) => {}
            (PartPlace::Fixed { offset, width }, Cell::Integer(value)) => {
                let place = out.get_mut(offset as usize..offset as usize + usize::from(width))?;
                place.copy_from_slice(value.to_le_bytes().get(..usize::from(width))?);
            }
            (PartPlace::Fixed { offset, width }, Cell::Bytes(bytes)) => {
                let place = out.get_mut(offset as usize..offset as usize + usize::from(width))?;
                if place.len() != bytes.len() {
                    return None;
                }
                place.copy_from_slice(bytes);
            }
            (PartPlace::Variable { number }, cell) => {
                if let Cell::Bytes(bytes) = cell {
                    out.extend_from_slice(bytes);
                }
                let width = self.offset_bytes;
                let end = out.len() - self.data_start;
                let at = self.fixed_end as usize + number as usize * width;
                let place = out.get_mut(at..at + width)?;
                place.copy_from_slice(&(end as u32).to_le_bytes()[..width]);
            }
        }
        Some(())
    }
}

/// What a tuple begins with.
pub(super) fn word_of(tuple: &[u8]) -> Option<u16> {
    tuple.first_chunk().map(|word| u16::from_le_bytes(*word))
}

/// Up to eight bytes as an integer with a sign.
fn integer_of(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    i64::from_le_bytes(wide).checked_shl(unused).unwrap_or(0) >> unused.min(63)
}
