//! The rows of a cursor that goes back as well as forward: all of them, by number, in memory
//! while they are few and in a temporary file beyond that, charged to the session.

use std::sync::Arc;

use thermocline_engine::spill::{SPILL_BUFFER_BYTES, Spill, SpillFile, SpillReader};
use thermocline_engine::{Account, Charge, ChargeKind};

use super::kept::KeptRows;
use crate::error::{Result, SqlError};
use crate::output::{OutputColumn, RowWriter, kept_row, write_kept_row};
use crate::parse::statement::Direction;

/// Rows in memory beyond this are worth a file, in bytes.
const MEMORY_BYTES_MAX: usize = 256 << 10;
/// What a file takes of memory while it is read, in bytes: a window and a block.
const READ_BYTES: usize = 16 << 10;

/// See the head of this file.
pub(super) struct Scroll {
    columns: Arc<[OutputColumn]>,
    blocks: Vec<Block>,
    rows: usize,
    file: Option<(SpillFile, SpillReader)>,
    memory_bytes: usize,
    open: Open,
    /// The row that it stands on, from 1; 0 is before the first, one more than there are is
    /// behind the last.
    position: usize,
    /// Whether it was declared NO SCROLL.
    pub(super) forward_only: bool,
    charge: Charge,
}

/// Some rows, one after the other.
struct Block {
    /// Rows before it.
    before: usize,
    place: Place,
}

enum Place {
    Memory(Vec<u8>),
    /// Where its record begins.
    File(u64),
}

/// The block that rows are taken from.
#[derive(Default)]
struct Open {
    block: Option<usize>,
    /// Of a file's.
    bytes: Vec<u8>,
    /// Where its rows begin.
    starts: Vec<usize>,
}

/// Which rows a FETCH gives: `count` from row `first` on, or back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) backward: bool,
}

impl Scroll {
    /// A cursor before the first of these rows.
    ///
    /// # Errors
    /// 53200 without room; those of the file.
    pub(super) fn of(
        mut kept: KeptRows,
        columns: Arc<[OutputColumn]>,
        account: &Account,
        spill: &Arc<Spill>,
    ) -> Result<Self> {
        let mut scroll = Self {
            columns,
            blocks: Vec::new(),
            rows: 0,
            file: None,
            memory_bytes: 0,
            open: Open::default(),
            position: 0,
            forward_only: false,
            charge: account.nothing(ChargeKind::Portal),
        };
        while let Some(piece) = kept.pop()? {
            scroll.push(piece, spill)?;
        }
        if let Some((file, _)) = &mut scroll.file {
            file.seal()?;
        }
        scroll.settle()?;
        Ok(scroll)
    }

    fn push(&mut self, piece: Vec<u8>, spill: &Arc<Spill>) -> Result<()> {
        let before = self.rows;
        let mut from = &piece[..];
        while !from.is_empty() {
            kept_row(&mut from, self.columns.len())?;
            self.rows += 1;
        }
        self.memory_bytes += piece.capacity();
        self.blocks.push(Block {
            before,
            place: Place::Memory(piece),
        });
        if self.file.is_some() || self.memory_bytes > MEMORY_BYTES_MAX {
            self.spill(spill)?;
        }
        self.settle()
    }

    /// Moves what is in memory into the file.
    fn spill(&mut self, spill: &Arc<Spill>) -> Result<()> {
        if self.file.is_none() {
            self.file = Some((spill.create()?, SpillReader::new(READ_BYTES)));
        }
        let Some((file, _)) = &mut self.file else {
            return Ok(());
        };
        let in_memory = |block: &&mut Block| matches!(block.place, Place::Memory(_));
        for block in self.blocks.iter_mut().rev().take_while(in_memory) {
            if let Place::Memory(piece) = &block.place {
                block.place = Place::File(file.append(piece)?);
            }
        }
        self.memory_bytes = 0;
        Ok(())
    }

    /// Charges what is held.
    fn settle(&mut self) -> Result<()> {
        let file = self
            .file
            .as_ref()
            .map_or(0, |_| SPILL_BUFFER_BYTES + READ_BYTES);
        let index = self.blocks.capacity() * size_of::<Block>();
        let open =
            2 * self.open.bytes.capacity() + self.open.starts.capacity() * size_of::<usize>();
        let held = self.memory_bytes + file + index + open;
        Ok(self.charge.resize(held as u64)?)
    }

    /// How many rows there are.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// The number of the row that it stands on, from 1.
    pub(super) fn position(&self) -> Option<usize> {
        (1..=self.rows)
            .contains(&self.position)
            .then_some(self.position)
    }

    /// The rows that lie in a direction; the cursor stands where FETCH leaves it then.
    pub(super) fn pass(&mut self, direction: Direction) -> Span {
        let (span, position) = steps(direction, self.position, self.rows);
        self.position = position;
        span
    }

    /// Writes a row, by its number from 1.
    ///
    /// # Errors
    /// Those of the file, 53200 for a large block without room.
    pub(super) fn write(&mut self, number: usize, rows: &mut RowWriter) -> Result<()> {
        let row = number.checked_sub(1).ok_or_else(lost)?;
        let found = self.blocks.partition_point(|block| block.before <= row);
        let at = found.checked_sub(1).ok_or_else(lost)?;
        if self.open.block != Some(at) {
            self.open_block(at)?;
        }
        let block = self.blocks.get(at).ok_or_else(lost)?;
        let bytes = match &block.place {
            Place::Memory(piece) => piece,
            Place::File(_) => &self.open.bytes,
        };
        let start = self.open.starts.get(row - block.before);
        let start = *start.ok_or_else(lost)?;
        write_kept_row(&mut &bytes[start..], &self.columns, rows)
    }

    fn open_block(&mut self, at: usize) -> Result<()> {
        self.open = Open::default();
        let mut open = Open::default();
        let block = self.blocks.get(at).ok_or_else(lost)?;
        let bytes = match (&block.place, &mut self.file) {
            (Place::Memory(piece), _) => piece,
            (Place::File(position), Some((file, reader))) => {
                let record = reader.at(*position).next(file)?;
                open.bytes.extend_from_slice(record.ok_or_else(lost)?);
                &open.bytes
            }
            (Place::File(_), None) => return Err(lost()),
        };
        let mut from = &bytes[..];
        while !from.is_empty() {
            open.starts.push(bytes.len() - from.len());
            kept_row(&mut from, self.columns.len())?;
        }
        open.block = Some(at);
        self.open = open;
        self.settle()
    }
}

/// Which of `rows` rows FETCH gives from a position on, and where the cursor stands then.
fn steps(direction: Direction, position: usize, rows: usize) -> (Span, usize) {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let span = |first, count, backward| Span {
        first,
        count,
        backward,
    };
    let nothing = || span(position, 0, false);
    let behind = rows + 1;
    // One row, if it is there: otherwise the cursor stands before or behind all.
    let one = |target: i128| match usize::try_from(target) {
        Ok(target @ 1..) if target <= rows => (span(target, 1, false), target),
        Ok(1..) => (nothing(), behind),
        _ => (nothing(), 0),
    };
    match direction {
        // The row that it stands on.
        Direction::Forward(Some(0)) | Direction::Backward(Some(0)) | Direction::Relative(0) => {
            match (1..=rows).contains(&position) {
                true => (span(position, 1, false), position),
                false => (nothing(), position),
            }
        }
        Direction::Forward(count) => {
            let wanted = count.map_or(usize::MAX, number);
            let got = wanted.min(rows.saturating_sub(position));
            let after = if got < wanted { behind } else { position + got };
            (span(position + 1, got, false), after)
        }
        Direction::Backward(count) => {
            let wanted = count.map_or(usize::MAX, number);
            let got = wanted.min(position.saturating_sub(1));
            let after = if got < wanted { 0 } else { position - got };
            (span(position.saturating_sub(1), got, true), after)
        }
        Direction::Absolute(at @ 0..) => one(at.into()),
        Direction::Absolute(at) => one(behind as i128 + i128::from(at)),
        Direction::Relative(by) => one(position as i128 + i128::from(by)),
    }
}

#[cold]
fn lost() -> SqlError {
    SqlError::internal("a row of a cursor is not where it was put")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By PostgreSQL 15: `DECLARE c SCROLL CURSOR FOR SELECT generate_series(1, 3)`.
    #[test]
    fn a_cursor_stands_where_postgresqls_does() {
        use Direction::{Absolute, Backward, Forward, Relative};
        let mut position = 0;
        for (direction, expected, after) in [
            (Backward(Some(1)), (0, 0), 0),
            (Forward(Some(2)), (1, 2), 2),
            (Forward(Some(0)), (2, 1), 2),
            (Forward(Some(1)), (3, 1), 3),
            (Forward(Some(1)), (4, 0), 4),
            (Backward(Some(1)), (3, 1), 3),
            (Backward(Some(2)), (2, 2), 1),
            (Backward(None), (0, 0), 0),
            (Forward(None), (1, 3), 4),
            (Backward(None), (3, 3), 0),
            (Absolute(2), (2, 1), 2),
            (Relative(1), (3, 1), 3),
            (Relative(-2), (1, 1), 1),
            (Relative(-1), (1, 0), 0),
            (Absolute(-1), (3, 1), 3),
            (Absolute(-4), (3, 0), 0),
            (Absolute(4), (0, 0), 4),
            (Relative(0), (4, 0), 4),
            (Absolute(0), (4, 0), 0),
            (Relative(i64::MIN), (0, 0), 0),
            (Absolute(i64::MAX), (0, 0), 4),
        ] {
            let (span, now) = steps(direction, position, 3);
            assert_eq!((span.first, span.count), expected, "{direction:?}");
            assert_eq!(now, after, "{direction:?}");
            position = now;
        }
    }
}
