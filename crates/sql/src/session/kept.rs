//! Rows that a portal keeps until its client asks for them: in memory while they are few, in
//! a temporary file beyond that, charged to the session.

use std::sync::Arc;

use thermocline_engine::Charge;
use thermocline_engine::spill::Spill;

use super::STREAM_BYTES;
use crate::error::Result;
use crate::output::{OutputColumn, Pieces, RowWriter, write_kept_row};

/// See the head of this file.
#[derive(Default)]
pub(super) struct KeptRows {
    pieces: Pieces,
    /// What comes behind the pieces.
    last: Vec<u8>,
    /// The piece that rows are taken from, and where the next one begins.
    open: Vec<u8>,
    at: usize,
}

impl KeptRows {
    /// None yet; those that come are charged to `charge`.
    pub(super) fn charged(charge: Charge) -> Self {
        Self {
            pieces: Pieces::charged(charge),
            ..Self::default()
        }
    }

    /// What was written to a [`RowWriter::kept`].
    pub(super) fn of(rows: RowWriter) -> Self {
        let (pieces, last) = rows.into_pieces();
        Self {
            pieces,
            last,
            ..Self::default()
        }
    }

    /// Adds what was written to a [`RowWriter::kept`] that charges nobody.
    ///
    /// # Errors
    /// As [`Pieces::spill`].
    pub(super) fn append(&mut self, rows: RowWriter, spill: &Arc<Spill>) -> Result<()> {
        let (mut more, last) = rows.into_pieces();
        while let Some(piece) = more.pop()? {
            self.push(piece, spill)?;
        }
        if last.is_empty() {
            return Ok(());
        }
        self.push(last, spill)
    }

    fn push(&mut self, piece: Vec<u8>, spill: &Arc<Spill>) -> Result<()> {
        // Without room in memory it goes to a file, which needs less.
        match self.pieces.push(piece) {
            Ok(()) => self.spill_if_large(spill),
            Err(_) => self.pieces.spill(spill),
        }
    }

    /// Moves rows into a file if they are more than a few.
    ///
    /// # Errors
    /// As [`Pieces::spill`].
    pub(super) fn spill_if_large(&mut self, spill: &Arc<Spill>) -> Result<()> {
        match self.pieces.is_large() {
            true => self.pieces.spill(spill),
            false => Ok(()),
        }
    }

    /// Says that no rows come any more.
    ///
    /// # Errors
    /// As [`Pieces::spill`].
    pub(super) fn seal(&mut self) -> Result<()> {
        self.pieces.seal()
    }

    /// The next piece of rows, of which none were taken yet; it is not here any more.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn pop(&mut self) -> Result<Option<Vec<u8>>> {
        match self.pieces.pop()? {
            Some(piece) => Ok(Some(piece)),
            None => Ok(Some(std::mem::take(&mut self.last)).filter(|last| !last.is_empty())),
        }
    }

    /// Whether all of them are in memory.
    pub(super) fn are_few(&self) -> bool {
        self.pieces.is_in_memory()
    }

    /// Writes up to `rows_max` rows, fewer where they are long; 0 when there are no more.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn take(
        &mut self,
        columns: &[OutputColumn],
        rows: &mut RowWriter,
        rows_max: usize,
    ) -> Result<usize> {
        let mut taken = 0;
        while taken < rows_max && rows.bytes_buffered() < STREAM_BYTES {
            if self.at == self.open.len() {
                self.at = 0;
                self.open = match self.pieces.pop()? {
                    Some(piece) => piece,
                    None => std::mem::take(&mut self.last),
                };
                if self.open.is_empty() {
                    break;
                }
            }
            let mut from = &self.open[self.at..];
            write_kept_row(&mut from, columns, rows)?;
            self.at = self.open.len() - from.len();
            taken += 1;
        }
        Ok(taken)
    }
}
