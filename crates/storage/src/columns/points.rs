//! Single values of a group of which pages are there, not chunks: the way to a row of columns that are
//! warm (002 §2.1), or that nobody has read yet.
//!
//! Where a column's parts begin is found once ([`ColumnPlace`]), and kept. After that a value takes the
//! page of its number, the page of the dictionary's word, and where some values are NULL the page that
//! says so. A page that is not there is noted by whoever has the pages; he brings it, and asks again.
//! Not here: chunks that are there whole (`reader`), and what brings pages.

use std::sync::Arc;

use super::directory::{Directory, ROWS};
use super::integers::Integers;
use super::line::{HEADER_BYTES, Line};
use super::reader::GroupReader;
use super::shape::{Cell, Shape};

/// Why there is no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// A page is not there. It was noted.
    Page,
    /// What is there is not what was written.
    Malformed,
}

/// Pages of a block.
pub trait Pages {
    /// Copies bytes of the block, from `at` on.
    ///
    /// # Errors
    /// A page of them is not there, and was noted; or they lie beyond the block.
    fn copy(&mut self, at: usize, out: &mut [u8]) -> Result<(), Absent>;
}

type Found<T> = Result<T, Absent>;

/// Integers on a line, and where their differences lie in the block.
#[derive(Clone, Copy, Debug)]
struct LinePlace {
    line: Line<'static>,
    at: usize,
}

impl LinePlace {
    /// The line at `at`, which is moved behind it.
    fn read(pages: &mut impl Pages, at: &mut usize, count: usize) -> Found<Self> {
        let mut header = [0; HEADER_BYTES];
        pages.copy(*at, &mut header)?;
        let line = Line::headed(&header, count).ok_or(Absent::Malformed)?;
        let place = *at + HEADER_BYTES;
        *at += line.bytes();
        Ok(Self { line, at: place })
    }

    fn get(&self, place: usize, pages: &mut impl Pages) -> Found<i64> {
        if place >= self.line.len() {
            return Err(Absent::Malformed);
        }
        let bits = self.line.bits();
        if bits == 0 {
            return Ok(self.line.get(place));
        }
        let (at, shift) = self.line.locate(place);
        let mut bytes = [0; 9];
        // No more than the difference has: what is behind it may lie on the next page.
        let wanted = (shift + bits).div_ceil(u8::BITS) as usize;
        pages.copy(self.at + at, &mut bytes[..wanted])?;
        let [low @ .., last] = bytes;
        Ok(self.line.with(place, u64::from_le_bytes(low), last, shift))
    }

    fn first_above(&self, value: i64, pages: &mut impl Pages) -> Found<usize> {
        let (mut low, mut high) = (0, self.line.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle, pages)? > value {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Ok(low)
    }
}

#[derive(Clone, Copy, Debug)]
enum IntegersPlace {
    Line(LinePlace),
    Runs {
        ends: LinePlace,
        values: LinePlace,
    },
    Dictionary {
        values: LinePlace,
        numbers: LinePlace,
    },
}

impl IntegersPlace {
    fn read(pages: &mut impl Pages, at: &mut usize, count: usize) -> Found<Self> {
        let form = byte(pages, at)?;
        if form == Integers::LINE {
            return Ok(Self::Line(LinePlace::read(pages, at, count)?));
        }
        let few = number(pages, at)?;
        let first = LinePlace::read(pages, at, few)?;
        match form {
            Integers::RUNS => Ok(Self::Runs {
                ends: first,
                values: LinePlace::read(pages, at, few)?,
            }),
            Integers::DICTIONARY => Ok(Self::Dictionary {
                values: first,
                numbers: LinePlace::read(pages, at, count)?,
            }),
            _ => Err(Absent::Malformed),
        }
    }

    fn get(&self, place: usize, pages: &mut impl Pages) -> Found<i64> {
        match self {
            Self::Line(line) => line.get(place, pages),
            Self::Runs { ends, values } => {
                let run = ends.first_above(place as i64, pages)?;
                values.get(run, pages)
            }
            Self::Dictionary { values, numbers } => {
                let number = numbers.get(place, pages)?;
                values.get(
                    usize::try_from(number).map_err(|_| Absent::Malformed)?,
                    pages,
                )
            }
        }
    }
}

/// Strings one behind the other.
#[derive(Clone, Copy, Debug)]
struct PlainPlace {
    ends: IntegersPlace,
    /// Where the first byte lies.
    at: usize,
}

impl PlainPlace {
    fn read(pages: &mut impl Pages, at: &mut usize, count: usize) -> Found<Self> {
        let ends = IntegersPlace::read(pages, at, count)?;
        Ok(Self { ends, at: *at })
    }

    fn range(&self, place: usize, pages: &mut impl Pages) -> Found<std::ops::Range<usize>> {
        let begin = match place {
            0 => 0,
            _ => self.ends.get(place - 1, pages)?,
        };
        let end = self.ends.get(place, pages)?;
        let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
        let range = range.filter(|(begin, end)| begin <= end && *end <= LENGTH_MAX);
        let (begin, end) = range.ok_or(Absent::Malformed)?;
        Ok(self.at + begin..self.at + end)
    }

    fn get<'o>(
        &self,
        place: usize,
        pages: &mut impl Pages,
        out: &'o mut Vec<u8>,
    ) -> Found<&'o [u8]> {
        let range = self.range(place, pages)?;
        out.clear();
        out.resize(range.len(), 0);
        pages.copy(range.start, out)?;
        Ok(out)
    }
}

/// No string of a group is longer.
const LENGTH_MAX: usize = crate::block::COLUMNS_BYTES_MAX;

#[derive(Clone, Copy, Debug)]
enum ValuesPlace {
    Integers(IntegersPlace),
    Plain(PlainPlace),
    Dictionary {
        distinct: PlainPlace,
        numbers: IntegersPlace,
    },
}

/// Where a column's parts lie in its block.
#[derive(Clone, Copy, Debug)]
pub struct ColumnPlace {
    nulls: Option<IntegersPlace>,
    values: ValuesPlace,
}

impl ColumnPlace {
    /// Looks for the parts of a column whose chunk is not empty.
    ///
    /// # Errors
    /// A page is not there; what is there is not what was written.
    pub fn find(directory: &Directory, column: usize, pages: &mut impl Pages) -> Found<Self> {
        let count = directory.rows();
        let chunk = directory.chunk(directory.chunk_of(column));
        let part = directory.shape.parts.get(column);
        let (chunk, part) = chunk.zip(part).ok_or(Absent::Malformed)?;
        let zone = directory.zone(column).unwrap_or_default();
        let mut at = chunk.offset as usize;
        let nulls = match zone.nulls {
            0 => None,
            _ => Some(IntegersPlace::read(pages, &mut at, count)?),
        };
        let values = match Shape::is_integer(part) {
            true => ValuesPlace::Integers(IntegersPlace::read(pages, &mut at, count)?),
            false => match byte(pages, &mut at)? {
                super::strings::PLAIN => {
                    ValuesPlace::Plain(PlainPlace::read(pages, &mut at, count)?)
                }
                super::strings::DICTIONARY => {
                    let few = number(pages, &mut at)?;
                    let distinct = PlainPlace::read(pages, &mut at, few)?;
                    let last = few.checked_sub(1).ok_or(Absent::Malformed)?;
                    let mut at = distinct.range(last, pages)?.end;
                    let numbers = IntegersPlace::read(pages, &mut at, count)?;
                    ValuesPlace::Dictionary { distinct, numbers }
                }
                _ => return Err(Absent::Malformed),
            },
        };
        Ok(Self { nulls, values })
    }

    /// The value at a position; the bytes of a string go to `out`.
    fn cell<'o>(
        &self,
        position: usize,
        pages: &mut impl Pages,
        out: &'o mut Vec<u8>,
    ) -> Found<Cell<'o>> {
        if let Some(nulls) = &self.nulls
            && nulls.get(position, pages)? != 0
        {
            return Ok(Cell::Null);
        }
        Ok(match &self.values {
            ValuesPlace::Integers(integers) => Cell::Integer(integers.get(position, pages)?),
            ValuesPlace::Plain(plain) => Cell::Bytes(plain.get(position, pages, out)?),
            ValuesPlace::Dictionary { distinct, numbers } => {
                let number = numbers.get(position, pages)?;
                let number = usize::try_from(number).map_err(|_| Absent::Malformed)?;
                Cell::Bytes(distinct.get(number, pages, out)?)
            }
        })
    }
}

fn byte(pages: &mut impl Pages, at: &mut usize) -> Found<u8> {
    let mut byte = [0];
    pages.copy(*at, &mut byte)?;
    *at += 1;
    Ok(byte[0])
}

fn number(pages: &mut impl Pages, at: &mut usize) -> Found<usize> {
    let mut bytes = [0; 4];
    pages.copy(*at, &mut bytes)?;
    *at += bytes.len();
    Ok(u32::from_le_bytes(bytes) as usize)
}

impl GroupReader<'_> {
    /// Writes the tuple at a position over `out`. Of the columns that `places` has the values come from
    /// pages. All of them are asked for before a page is said not to be there.
    ///
    /// # Errors
    /// A page is not there; what is there is not what was written.
    pub fn tuple_by_pages(
        &self,
        position: usize,
        places: &[Option<Arc<ColumnPlace>>],
        pages: &mut impl Pages,
        out: &mut Vec<u8>,
    ) -> Result<(), Absent> {
        if position >= self.directory.rows() {
            return Err(Absent::Malformed);
        }
        if let Some(whole) = self.odd_at(position) {
            out.clear();
            out.extend_from_slice(whole.ok_or(Absent::Malformed)?);
            return Ok(());
        }
        let shape = &self.directory.shape;
        shape.begin(out);
        let mut string = Vec::new();
        let mut is_complete = true;
        for (number, (part, column)) in shape.parts.iter().zip(&self.columns).enumerate() {
            let cell = match places.get(number).and_then(Option::as_ref) {
                None => column.cell(position).ok_or(Absent::Malformed)?,
                Some(place) => match place.cell(position, pages, &mut string) {
                    Ok(cell) => cell,
                    Err(Absent::Malformed) => return Err(Absent::Malformed),
                    Err(Absent::Page) => {
                        is_complete = false;
                        continue;
                    }
                },
            };
            shape.put(part, cell, out).ok_or(Absent::Malformed)?;
        }
        match is_complete {
            true => Ok(()),
            false => Err(Absent::Page),
        }
    }
}

impl Directory {
    /// The chunks that all rows need, whatever columns are asked for.
    #[must_use]
    pub fn shared_chunks(&self) -> [usize; 2] {
        [ROWS, super::directory::ODD]
    }
}
