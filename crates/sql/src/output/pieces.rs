//! Rows that nobody has taken yet, as pieces of bytes, first in, first out. They are charged
//! to the account of whoever caused them while they are in memory, and can move into a
//! temporary file. Once some are there, the file has the older ones and memory the newer.

use std::collections::VecDeque;
use std::sync::Arc;

use thermocline_engine::Charge;
use thermocline_engine::spill::{SPILL_BUFFER_BYTES, Spill, SpillFile, SpillReader};

use crate::error::Result;

/// A piece is closed with the row that reaches this.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// How much of a file is read at a time.
const READ_BYTES: usize = 16 << 10;
/// What a file takes of memory, in bytes.
const FILE_BYTES: usize = SPILL_BUFFER_BYTES + READ_BYTES;
/// Pieces in memory beyond this are worth a file, in bytes.
const MEMORY_BYTES_MAX: usize = 4 * PIECE_BYTES;

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Pieces {
    memory: VecDeque<Vec<u8>>,
    memory_bytes: usize,
    /// Of the piece that was taken last, which its reader has.
    taken_bytes: usize,
    file: Option<Box<Spilled>>,
    charge: Option<Charge>,
}

struct Spilled {
    file: SpillFile,
    reader: SpillReader,
    /// What both take of memory.
    buffer_bytes: usize,
}

impl Pieces {
    /// None yet; what will be in memory is charged to `charge`, which may have room already.
    pub(crate) fn charged(charge: Charge) -> Self {
        Self {
            charge: Some(charge),
            ..Self::default()
        }
    }

    /// Whether what is in memory is charged to anybody.
    pub(crate) fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// The pieces in memory.
    pub(crate) fn count(&self) -> usize {
        self.memory.len()
    }

    /// The bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.file.is_none()
    }

    /// Whether none are in a file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Whether so much is in memory that a file is better.
    pub(crate) fn is_large(&self) -> bool {
        self.memory_bytes > MEMORY_BYTES_MAX || (self.file.is_some() && self.memory_bytes > 0)
    }

    /// Charges `bytes` beside the pieces.
    ///
    /// # Errors
    /// 53200 where there is no room.
    pub(crate) fn charge_beside(&mut self, bytes: usize) -> Result<()> {
        let held = self.held();
        match &mut self.charge {
            Some(charge) => Ok(charge.resize((held + bytes) as u64)?),
            None => Ok(()),
        }
    }

    /// Adds a piece behind all others.
    ///
    /// # Errors
    /// 53200 where memory has no room for it; it is there nevertheless.
    pub(crate) fn push(&mut self, piece: Vec<u8>) -> Result<()> {
        self.memory_bytes += piece.capacity();
        self.memory.push_back(piece);
        let held = self.held() as u64;
        match &mut self.charge {
            Some(charge) if charge.bytes() < held => Ok(charge.resize(held)?),
            _ => Ok(()),
        }
    }

    /// The first piece, which is not here any more.
    ///
    /// # Errors
    /// The device fails, or gives back what was not written.
    pub(crate) fn pop(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(spilled) = &mut self.file {
            let piece = spilled.reader.next(&spilled.file)?.map(<[u8]>::to_vec);
            if let Some(piece) = piece {
                spilled.file.forget_before(spilled.reader.position())?;
                self.taken_bytes = piece.capacity();
                self.settle();
                return Ok(Some(piece));
            }
            self.file = None;
        }
        let piece = self.memory.pop_front();
        self.taken_bytes = piece.as_ref().map_or(0, Vec::capacity);
        self.memory_bytes -= self.taken_bytes;
        self.settle();
        Ok(piece)
    }

    /// Takes pieces in memory away until `count` are left. The one after them, if there was one.
    pub(crate) fn truncate(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut last = None;
        while self.memory.len() > count {
            last = self.memory.pop_back();
            self.memory_bytes -= last.as_ref().map_or(0, Vec::capacity);
        }
        self.settle();
        last
    }

    /// Moves what is in memory into a file.
    ///
    /// # Errors
    /// 53400, 53100, the device's, and 53200 without memory for a file's buffers; what was not
    /// moved is still in memory.
    pub(crate) fn spill(&mut self, spill: &Arc<Spill>) -> Result<()> {
        if self.file.is_none() {
            // All the memory that is given up for it was charged; a little more is needed at most.
            if self.memory_bytes < FILE_BYTES {
                self.charge_beside(FILE_BYTES)?;
            }
            self.file = Some(Box::new(Spilled {
                file: spill.create()?,
                reader: SpillReader::new(READ_BYTES),
                buffer_bytes: FILE_BYTES,
            }));
        }
        while let (Some(spilled), Some(piece)) = (&mut self.file, self.memory.front()) {
            spilled.file.append(piece)?;
            self.memory_bytes -= piece.capacity();
            self.memory.pop_front();
        }
        self.settle();
        Ok(())
    }

    /// Says that nothing comes any more.
    ///
    /// # Errors
    /// As [`Self::spill`].
    pub(crate) fn seal(&mut self) -> Result<()> {
        match &mut self.file {
            Some(spilled) if self.memory.is_empty() => {
                spilled.file.seal()?;
                spilled.buffer_bytes = READ_BYTES;
                self.settle();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn held(&self) -> usize {
        let file = self.file.as_ref();
        self.memory_bytes + self.taken_bytes + file.map_or(0, |spilled| spilled.buffer_bytes)
    }

    /// Gives back what is charged and not held. A piece that came back from a file may be more
    /// than was charged: the file it leaves was.
    fn settle(&mut self) {
        let held = self.held() as u64;
        if let Some(charge) = &mut self.charge {
            // Where there is no room for one piece more, it is not counted.
            let _ = charge.resize(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use thermocline_device::SimulatedDevice;
    use thermocline_engine::{ChargeKind, Config, Database};

    use super::*;

    fn piece(number: u8) -> Vec<u8> {
        vec![number; PIECE_BYTES]
    }

    #[test]
    fn pieces_come_back_in_order_from_memory_and_file_and_are_charged_while_they_are_there() {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
        let db = Database::open(config).unwrap();
        let account = db.clients().open();
        let mut pieces = Pieces::charged(account.nothing(ChargeKind::Portal));
        for number in 0..10 {
            pieces.push(piece(number)).unwrap();
        }
        assert!(account.total() >= 10 * PIECE_BYTES as u64);
        assert!(pieces.is_large());
        assert_eq!(pieces.pop().unwrap(), Some(piece(0)));
        pieces.spill(db.spill()).unwrap();
        assert_eq!(account.total(), (FILE_BYTES + PIECE_BYTES) as u64);
        assert_eq!(db.spill().report().files, 1);
        for number in 10..12 {
            pieces.push(piece(number)).unwrap();
        }
        for number in 1..4 {
            assert_eq!(pieces.pop().unwrap(), Some(piece(number)));
            assert!(account.total() >= (FILE_BYTES + PIECE_BYTES) as u64);
        }
        pieces.spill(db.spill()).unwrap();
        pieces.seal().unwrap();
        for number in 4..12 {
            assert_eq!(pieces.pop().unwrap(), Some(piece(number)));
        }
        assert_eq!(pieces.pop().unwrap(), None);
        assert!(pieces.is_empty());
        assert_eq!((account.total(), db.spill().report().files), (0, 0));
        drop(pieces);
        db.close().unwrap();
    }

    #[test]
    fn what_has_no_room_in_memory_is_refused_and_counted() {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
        let db = Database::open(config).unwrap();
        let account = db.clients().open();
        let most = db.clients().account_max();
        let rest = account.charge(ChargeKind::Message, most - 1000).unwrap();
        let mut pieces = Pieces::charged(account.nothing(ChargeKind::Result));
        assert_eq!(pieces.push(piece(1)).unwrap_err().sqlstate, "53200");
        drop(rest);
        pieces.push(piece(2)).unwrap();
        assert_eq!(account.total(), 2 * PIECE_BYTES as u64);
        assert_eq!(pieces.truncate(1), Some(piece(2)));
        assert_eq!(account.total(), PIECE_BYTES as u64);
        drop(pieces);
        db.close().unwrap();
    }
}
