//! Reads rows of a group, whole or only some columns of them.

use super::directory::{Directory, FIRST_COLUMN, ODD, ROWS};
use super::integers::{Encoding, Integers};
use super::shape::{Cell, Shape};
use super::strings::Strings;

/// A group of which some chunks are there. A column whose chunk is not there reads as NULL.
pub struct GroupReader<'a> {
    pub(super) directory: &'a Directory,
    rows: Integers<'a>,
    pub(super) odd: Option<(Integers<'a>, Strings<'a>)>,
    pub(super) columns: Vec<Column<'a>>,
}

pub(super) enum Values<'a> {
    /// NULL throughout, or not there.
    Nothing,
    Integers(Integers<'a>),
    Strings(Strings<'a>),
}

pub(super) struct Column<'a> {
    pub nulls: Option<Integers<'a>>,
    pub values: Values<'a>,
}

impl<'a> GroupReader<'a> {
    /// With the chunks that `chunk` has, which were checked. `None`: they are not what the
    /// directory says, or those are missing that all rows need.
    pub fn new(
        directory: &'a Directory,
        chunk: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Option<Self> {
        let count = directory.rows();
        let (rows, _) = Integers::read(chunk(ROWS)?, count)?;
        let odd = match directory.odd as usize {
            0 => None,
            odd => {
                let (places, rest) = Integers::read(chunk(ODD)?, odd)?;
                Some((places, Strings::read(rest, odd)?.0))
            }
        };
        let mut columns = Vec::with_capacity(directory.columns());
        let parts = directory.shape.parts.iter().zip(&directory.zones);
        for (number, (part, zone)) in (FIRST_COLUMN..).zip(parts) {
            let Some(mut bytes) = chunk(number).filter(|bytes| !bytes.is_empty()) else {
                columns.push(Column {
                    nulls: None,
                    values: Values::Nothing,
                });
                continue;
            };
            let mut nulls = None;
            if zone.nulls > 0 {
                let (read, rest) = Integers::read(bytes, count)?;
                (nulls, bytes) = (Some(read), rest);
            }
            let values = match Shape::is_integer(part) {
                true => Values::Integers(Integers::read(bytes, count)?.0),
                false => Values::Strings(Strings::read(bytes, count)?.0),
            };
            columns.push(Column { nulls, values });
        }
        Some(Self {
            directory,
            rows,
            odd,
            columns,
        })
    }

    /// The number of the row at a position.
    #[must_use]
    #[inline]
    pub fn row(&self, position: usize) -> Option<u32> {
        u32::try_from(self.rows.get(position)).ok()
    }

    /// Writes the tuple at a position over `out`. `None`: the chunks are not what was written.
    #[inline]
    pub fn tuple(&self, position: usize, out: &mut Vec<u8>) -> Option<()> {
        if position >= self.directory.rows() {
            return None;
        }
        if let Some(whole) = self.odd_at(position) {
            out.clear();
            out.extend_from_slice(whole?);
            return Some(());
        }
        let shape = &self.directory.shape;
        shape.begin(out);
        for (part, column) in shape.parts.iter().zip(&self.columns) {
            shape.put(part, column.cell(position)?, out)?;
        }
        Some(())
    }

    /// The positions of odd tuples.
    pub(super) fn odd_positions(&self) -> Vec<u16> {
        let places = self.odd.iter().flat_map(|(places, _)| {
            let count = self.directory.odd as usize;
            (0..count).map(|number| places.get(number) as u16)
        });
        places.collect()
    }

    /// The whole tuple at a position, if it is an odd one; within, `None` where it is damaged.
    pub(super) fn odd_at(&self, position: usize) -> Option<Option<&'a [u8]>> {
        let (places, tuples) = self.odd.as_ref()?;
        let (mut low, mut high) = (0, self.directory.odd as usize);
        while low < high {
            let middle = low.midpoint(high);
            match places.get(middle) < position as i64 {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let is_odd = low < self.directory.odd as usize && places.get(low) == position as i64;
        is_odd.then(|| tuples.get(low))
    }

    /// Whether what the directory says of the columns' values holds at a position.
    pub(super) fn is_in_zones(&self, position: usize) -> bool {
        if self.odd_at(position).is_some() {
            return true;
        }
        let zones = self.directory.zones.iter().zip(&self.columns);
        zones
            .into_iter()
            .all(|(zone, column)| match (zone.range, column.cell(position)) {
                (Some((least, greatest)), Some(Cell::Integer(value))) => {
                    (least..=greatest).contains(&value)
                }
                _ => true,
            })
    }

    /// How a column is encoded.
    #[must_use]
    pub fn encoding(&self, column: usize) -> Option<Encoding> {
        Some(match self.columns.get(column)?.values {
            Values::Nothing => Encoding::Constant,
            Values::Integers(integers) => integers.encoding(),
            Values::Strings(strings) => strings.encoding(),
        })
    }
}

impl<'a> Column<'a> {
    #[inline]
    pub(super) fn cell(&self, position: usize) -> Option<Cell<'a>> {
        if self.nulls.is_some_and(|nulls| nulls.get(position) != 0) {
            return Some(Cell::Null);
        }
        Some(match &self.values {
            Values::Nothing => Cell::Null,
            Values::Integers(integers) => Cell::Integer(integers.get(position)),
            Values::Strings(strings) => Cell::Bytes(strings.get(position)?),
        })
    }
}
