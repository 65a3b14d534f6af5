//! Fills a block with a row group. Tuples are collected as they are, so that whoever holds a
//! partition's lock copies bytes and does nothing else; they are taken apart when it is sealed.

use std::collections::HashMap;

use thermocline_device::{AlignedBuffer, SECTOR_BYTES};

use super::directory::{Chunk, ColumnZone, Directory, FIRST_COLUMN};
use super::integers::{Encoding, Integers};
use super::shape::{Cell, Shape, word_of};
use super::strings::Strings;
use super::{COLUMNS_EXTENT, GROUP_ROWS_MAX, integers, strings};
use crate::block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, COLUMNS_BYTES_MAX};
use crate::tuple::{Layouts, Part};

/// See the module's head.
pub struct ColumnBuilder {
    /// Tuples of a group are not to be more than this, unless it is of one.
    tuple_bytes_max: usize,
    rows: Vec<i64>,
    tuples: Vec<u8>,
    ends: Vec<usize>,
    buffer: AlignedBuffer,
    sealed: Option<Directory>,
    used: usize,
}

impl ColumnBuilder {
    /// A builder for groups whose tuples have so many bytes at most. It takes their memory with
    /// the first group, and keeps it.
    #[must_use]
    pub fn new(tuple_bytes_max: usize) -> Self {
        Self {
            tuple_bytes_max: tuple_bytes_max.min(COLUMNS_BYTES_MAX / 8),
            rows: Vec::new(),
            tuples: Vec::new(),
            ends: Vec::new(),
            buffer: AlignedBuffer::new_zeroed(0),
            sealed: None,
            used: 0,
        }
    }

    /// Adds a tuple; its slot and extent, or `None` when the group is full.
    pub fn try_push(&mut self, row: u32, tuple: &[u8]) -> Option<(u16, u8)> {
        let is_full = self.tuples.len() + tuple.len() > self.tuple_bytes_max;
        if self.rows.len() >= GROUP_ROWS_MAX || (is_full && !self.rows.is_empty()) {
            return None;
        }
        assert!(self.sealed.is_none(), "nothing is added to a sealed group");
        let slot = self.rows.len() as u16;
        self.rows.push(i64::from(row));
        self.tuples.extend_from_slice(tuple);
        self.ends.push(self.tuples.len());
        Some((slot, COLUMNS_EXTENT))
    }

    /// How many rows were added.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Bytes of the tuples so far.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.tuples.len()
    }

    fn tuple(&self, place: usize) -> &[u8] {
        let begin = match place {
            0 => 0,
            _ => self.ends[place - 1],
        };
        &self.tuples[begin..self.ends[place]]
    }

    /// Takes the tuples apart and encodes their columns: no more are added.
    pub fn seal(&mut self, layouts: &Layouts) {
        let mut block = Vec::with_capacity(self.tuples.len() / 2);
        let directory = self.encode(layouts, &mut block);
        assert!(block.len() <= COLUMNS_BYTES_MAX, "a group has a bound");
        self.used = block.len();
        let device_bytes = self.used.next_multiple_of(SECTOR_BYTES);
        if self.buffer.len() < device_bytes {
            self.buffer = AlignedBuffer::new_zeroed(device_bytes);
        }
        self.buffer[..self.used].copy_from_slice(&block);
        self.buffer[self.used..device_bytes].fill(0);
        self.sealed = Some(directory);
    }

    /// Writes the chunks behind room for header and directory.
    fn encode(&self, layouts: &Layouts, block: &mut Vec<u8>) -> Directory {
        let count = self.rows.len();
        let words = (0..count).filter_map(|place| word_of(self.tuple(place)));
        let mut counts: HashMap<u16, usize> = HashMap::new();
        words.for_each(|word| *counts.entry(word).or_default() += 1);
        let most = (counts.into_iter()).max_by_key(|(word, count)| (*count, *word));
        let shape = most.and_then(|(word, _)| Shape::of(word, layouts));
        let shape = shape.unwrap_or_else(|| Shape::new(0, 0, Vec::new()));
        // Without columns nothing says what a tuple is.
        let is_odd = |place: &usize| shape.parts.is_empty() || !shape.fits(self.tuple(*place));
        let odd: Vec<usize> = (0..count).filter(is_odd).collect();

        block.resize(
            BLOCK_HEADER_BYTES + Directory::bytes_of(shape.parts.len()),
            0,
        );
        let mut chunks = Vec::with_capacity(FIRST_COLUMN + shape.parts.len());
        let mut close = |block: &Vec<u8>, begin: usize| {
            chunks.push(Chunk {
                offset: begin as u32,
                bytes: (block.len() - begin) as u32,
                crc: 0,
            });
        };
        let begin = block.len();
        integers::write(&self.rows, block);
        close(block, begin);
        let begin = block.len();
        if !odd.is_empty() {
            let places: Vec<i64> = odd.iter().map(|place| *place as i64).collect();
            integers::write(&places, block);
            let tuples: Vec<&[u8]> = odd.iter().map(|place| self.tuple(*place)).collect();
            strings::write(&tuples, block);
        }
        close(block, begin);
        let mut zones = Vec::with_capacity(shape.parts.len());
        for part in &shape.parts {
            let begin = block.len();
            zones.push(self.write_column(&shape, part, &odd, block));
            close(block, begin);
        }
        let offset = block.len();
        block.resize(offset + Directory::sum_bytes(offset), 0);
        Directory {
            rows: count as u32,
            odd: odd.len() as u32,
            shape,
            chunks,
            zones,
            sums: Some(Chunk {
                offset: offset as u32,
                bytes: (block.len() - offset) as u32,
                crc: 0,
            }),
        }
    }

    /// Appends a column's chunk. Where it is NULL, or the tuple is odd, it is given the value
    /// before, which is what costs least.
    fn write_column(
        &self,
        shape: &Shape,
        part: &Part,
        odd: &[usize],
        block: &mut Vec<u8>,
    ) -> ColumnZone {
        let count = self.rows.len();
        let mut odd = odd.iter().copied().peekable();
        let (mut integers, mut strings) = (Vec::new(), Vec::new());
        let mut nulls = vec![0; count];
        // Of places before the first value.
        let mut waiting = 0;
        let mut has_value = false;
        for (place, null) in nulls.iter_mut().enumerate() {
            let cell = match odd.next_if_eq(&place) {
                Some(_) => Cell::Null,
                None => {
                    let cell = shape.cell(part, self.tuple(place));
                    *null = i64::from(cell == Cell::Null);
                    cell
                }
            };
            match cell {
                Cell::Null if has_value => {
                    integers.extend(integers.last().copied());
                    strings.extend(strings.last().copied());
                }
                Cell::Null => waiting += 1,
                Cell::Integer(value) => {
                    integers.extend(std::iter::repeat_n(value, waiting + 1));
                    (waiting, has_value) = (0, true);
                }
                Cell::Bytes(value) => {
                    strings.extend(std::iter::repeat_n(value, waiting + 1));
                    (waiting, has_value) = (0, true);
                }
            }
        }
        let null_count = nulls.iter().sum::<i64>() as u32;
        if !has_value {
            return ColumnZone {
                nulls: null_count,
                range: None,
                encoding: Some(Encoding::Constant),
            };
        }
        if null_count > 0 {
            integers::write(&nulls, block);
        }
        let begin = block.len();
        let encoding = match Shape::is_integer(part) {
            true => {
                integers::write(&integers, block);
                Integers::read(&block[begin..], count).map(|(read, _)| read.encoding())
            }
            false => {
                strings::write(&strings, block);
                Strings::read(&block[begin..], count).map(|(read, _)| read.encoding())
            }
        };
        // What fills the places of NULLs is a value of another place.
        let least = integers.iter().min().copied();
        let range = least.zip(integers.iter().max().copied());
        ColumnZone {
            nulls: null_count,
            range: range.filter(|_| part.is_ordered),
            encoding,
        }
    }

    fn directory(&self) -> &Directory {
        let Some(directory) = &self.sealed else {
            panic!("a group is sealed before it is measured and written");
        };
        directory
    }

    /// Bytes of the sealed block, whole sectors: what `finish` will return.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        self.directory();
        self.used.next_multiple_of(SECTOR_BYTES)
    }

    /// Checksums all, and gives the sealed block as it is to be written.
    pub fn finish(&mut self, id: u32, table: u32, partition: u16, created_lsn: u64) -> &[u8] {
        assert!(id != 0, "block ids begin at 1");
        let device_bytes = self.device_bytes();
        let mut directory = self.directory().clone();
        directory.sum_pages(&mut self.buffer[..self.used], id);
        directory.checksum(&self.buffer[..self.used], id);
        let bytes = Directory::bytes_of(directory.columns());
        let (header, rest) = self.buffer.split_at_mut(BLOCK_HEADER_BYTES);
        directory.encode(&mut rest[..bytes]);
        BlockHeader {
            kind: BlockKind::Columns,
            id,
            table,
            partition,
            records: directory.rows,
            length_bytes: self.used as u32,
            created_lsn,
            payload_crc: crc32c::crc32c(&rest[..bytes]),
        }
        .encode(header);
        &self.buffer[..device_bytes]
    }

    /// Forgets the rows, so that the next group can be built.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.tuples.clear();
        self.ends.clear();
        self.sealed = None;
        self.used = 0;
    }
}
