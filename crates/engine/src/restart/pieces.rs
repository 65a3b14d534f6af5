//! What the log's tail says of one partition, on its way from whoever reads the log to whoever
//! applies it: pieces of records, in batches.

use crate::ground::txn_id::TxnId;

/// Bytes of a batch, unless a single piece has more.
const BATCH_BYTES: usize = 128 << 10;
/// Pieces of a batch.
const BATCH_PIECES: usize = 1024;

/// What is to be done of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Row changes, committed.
    Commit,
    /// Row changes of a transaction that has not committed yet.
    Provisional,
    /// A procedure is called again.
    Command,
}

/// The part of a record that is of one partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub action: Action,
    /// The record's end.
    pub lsn: u64,
    pub transaction: TxnId,
    pub body: &'a [u8],
}

/// Pieces of one partition, in the order of the log.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    pieces: Vec<Held>,
}

/// A piece whose body ends here in its batch, and begins where the last ended.
struct Held {
    action: Action,
    lsn: u64,
    transaction: TxnId,
    end: usize,
}

impl Batch {
    pub fn push(&mut self, piece: &Piece<'_>) {
        self.bytes.extend_from_slice(piece.body);
        self.pieces.push(Held {
            action: piece.action,
            lsn: piece.lsn,
            transaction: piece.transaction,
            end: self.bytes.len(),
        });
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.pieces.len() >= BATCH_PIECES
    }

    /// What it takes in memory, or nearly so.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + self.pieces.len() * size_of::<Held>()) as u64
    }

    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut begin = 0;
        self.pieces.iter().map(move |held| Piece {
            action: held.action,
            lsn: held.lsn,
            transaction: held.transaction,
            body: &self.bytes[std::mem::replace(&mut begin, held.end)..held.end],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let bodies: Vec<Vec<u8>> = (0..2000u32)
            .map(|n| vec![n as u8; n as usize % 7])
            .collect();
        let mut batch = Batch::default();
        let mut taken = 0;
        for (lsn, body) in (0..).zip(&bodies) {
            if batch.is_full() {
                break;
            }
            let piece = Piece {
                action: Action::Commit,
                lsn,
                transaction: TxnId(lsn * 2),
                body,
            };
            batch.push(&piece);
            taken += 1;
        }
        assert_eq!(taken, BATCH_PIECES, "full by its pieces");
        assert_eq!(batch.pieces().count(), taken);
        for (lsn, piece) in (0..).zip(batch.pieces()) {
            let wanted = (lsn, TxnId(lsn * 2), bodies[lsn as usize].as_slice());
            assert_eq!((piece.lsn, piece.transaction, piece.body), wanted);
        }
    }
}
