//! What a log record says (docs/internals/format.md, "Log records").
//!
//! A record is one transaction's changes, or one step of a transaction that is
//! not committed yet (a provisional record, which counts only once the
//! transaction's commit record is there). Changes are physical: they name the
//! storage, the partition and the row, so that replaying one needs no read.

use crate::ground::byte_parts::ByteParts;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// Changes of a committed transaction; if it had provisional records they
    /// count from here on.
    Commit = 1,
    /// Changes of a transaction that is still open.
    Provisional = 2,
    /// An open transaction was rolled back.
    Abort = 3,
    /// The definition of a table that an open transaction made.
    Draft = 4,
    /// A sequence has handed out values up to here.
    Sequence = 5,
    /// A deterministic procedure's call, committed (see `procedure::command`).
    Command = 6,
}

/// A change of one row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RowChange<'a> {
    /// The row holds `tuple` now. `removed` are the index keys that it had
    /// before and has no longer: (index object id, key).
    Put {
        storage: u32,
        row: RowId,
        tuple: &'a [u8],
        removed: Removed<'a>,
    },
    /// The row is gone.
    Delete {
        storage: u32,
        row: RowId,
        removed: Removed<'a>,
    },
    /// What a table has on the device under this number holds ([`crate::rows::kind`]).
    Named {
        storage: u32,
        partition: u16,
        number: u64,
    },
}

impl RowChange<'_> {
    /// Where something changes.
    pub fn partition(&self) -> u16 {
        match self {
            RowChange::Put { row, .. } | RowChange::Delete { row, .. } => row.partition(),
            RowChange::Named { partition, .. } => *partition,
        }
    }

    /// Whose row it is.
    pub fn storage(&self) -> u32 {
        match self {
            RowChange::Put { storage, .. }
            | RowChange::Delete { storage, .. }
            | RowChange::Named { storage, .. } => *storage,
        }
    }
}

/// Index keys that a row leaves, still encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removed<'a>(&'a [u8]);

impl<'a> Removed<'a> {
    pub fn iter(self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let mut reader = Reader(self.0);
        std::iter::from_fn(move || {
            if reader.0.is_empty() {
                return None;
            }
            Some((reader.u32().ok()?, reader.bytes().ok()?))
        })
    }
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const NAMED: u8 = 3;

/// Builds the changes of a record; reused from statement to statement.
#[derive(Debug, Default)]
pub(crate) struct ChangeWriter {
    /// A change lies in one part.
    pub parts: ByteParts,
}

/// Bytes of a change beside tuple and keys, at most.
pub(crate) const CHANGE_HEAD_BYTES: usize = 1 + 4 + 2 + 4 + 4 + 4;

/// Bytes of a number that is named.
const NAMED_BYTES: usize = 1 + 4 + 2 + 8;

impl ChangeWriter {
    pub fn put(&mut self, storage: u32, row: RowId, tuple: &[u8], removed: &[u8]) {
        let bytes = CHANGE_HEAD_BYTES + tuple.len() + removed.len();
        let out = self.parts.room_for(bytes);
        put_head(out, PUT, storage, row);
        put_bytes(out, tuple);
        put_bytes(out, removed);
    }

    pub fn delete(&mut self, storage: u32, row: RowId, removed: &[u8]) {
        let out = self.parts.room_for(CHANGE_HEAD_BYTES + removed.len());
        put_head(out, DELETE, storage, row);
        put_bytes(out, removed);
    }

    pub fn name(&mut self, storage: u32, partition: u16, number: u64) {
        let out = self.parts.room_for(NAMED_BYTES);
        out.push(NAMED);
        out.extend_from_slice(&storage.to_le_bytes());
        out.extend_from_slice(&partition.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn put_head(out: &mut Vec<u8>, operation: u8, storage: u32, row: RowId) {
    out.push(operation);
    out.extend_from_slice(&storage.to_le_bytes());
    out.extend_from_slice(&row.partition().to_le_bytes());
    out.extend_from_slice(&row.row().to_le_bytes());
}

/// Appends an index key that a row leaves, for `put` and `delete`.
pub(crate) fn push_removed(out: &mut Vec<u8>, index_oid: u32, key: &[u8]) {
    out.extend_from_slice(&index_oid.to_le_bytes());
    put_bytes(out, key);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The head of a record: its kind and its transaction (0: none).
pub(crate) fn record_head(kind: RecordKind, txn: u64) -> [u8; 9] {
    let mut head = [0; 9];
    head[0] = kind as u8;
    head[1..].copy_from_slice(&txn.to_le_bytes());
    head
}

/// Splits a record into kind, transaction and body.
pub(crate) fn parse_record(payload: &[u8]) -> Result<(RecordKind, u64, &[u8])> {
    let mut reader = Reader(payload);
    let kind = match reader.u8()? {
        1 => RecordKind::Commit,
        2 => RecordKind::Provisional,
        3 => RecordKind::Abort,
        4 => RecordKind::Draft,
        5 => RecordKind::Sequence,
        6 => RecordKind::Command,
        other => {
            return Err(Error::Corrupt(format!(
                "log record of unknown kind {other}"
            )));
        }
    };
    Ok((kind, reader.u64()?, reader.0))
}

/// The head of a commit record, in one piece with that of its body: changes follow, then
/// perhaps a new catalog.
pub(crate) fn commit_head(txn: u64, changes: &ByteParts) -> [u8; 13] {
    let mut head = [0; 13];
    head[..9].copy_from_slice(&record_head(RecordKind::Commit, txn));
    head[9..].copy_from_slice(&(changes.len() as u32).to_le_bytes());
    head
}

/// Splits a commit's body into its changes and its catalog image (empty: the
/// catalog did not change).
pub(crate) fn parse_commit_body(body: &[u8]) -> Result<(&[u8], &[u8])> {
    let mut reader = Reader(body);
    let changes = reader.bytes()?;
    Ok((changes, reader.0))
}

/// Iterates over the changes of a record.
pub(crate) fn changes(body: &[u8]) -> impl Iterator<Item = Result<RowChange<'_>>> {
    let mut reader = Reader(body);
    std::iter::from_fn(move || {
        if reader.0.is_empty() {
            return None;
        }
        let change = reader.change();
        if change.is_err() {
            reader.0 = &[];
        }
        Some(change)
    })
}

/// Whether changes only take rows away.
pub(crate) fn only_deletes(body: &ByteParts) -> bool {
    let mut all = body.iter().flat_map(changes);
    all.all(|change| matches!(change, Ok(RowChange::Delete { .. })))
}

/// The pieces of a record of many changes.
pub(crate) fn pieces<'a>(head: &'a [u8], changes: &'a ByteParts, tail: &'a [u8]) -> Vec<&'a [u8]> {
    let head = std::iter::once(head);
    head.chain(changes.iter()).chain([tail]).collect()
}

/// The changes of a record one by one, still encoded, each with its partition.
pub(crate) fn encoded_changes(body: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8])>> {
    let mut reader = Reader(body);
    std::iter::from_fn(move || {
        let encoded = reader.0;
        if encoded.is_empty() {
            return None;
        }
        let change = reader.change();
        let bytes = encoded.len() - reader.0.len();
        if change.is_err() {
            reader.0 = &[];
        }
        Some(change.map(|change| (change.partition(), &encoded[..bytes])))
    })
}

/// Reads little-endian fields; an end too early is corruption.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (head, rest) = self
            .0
            .split_at_checked(bytes)
            .ok_or_else(|| Error::Corrupt("a record ends too early".into()))?;
        self.0 = rest;
        Ok(head)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub fn u32(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub fn u64(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    fn change(&mut self) -> Result<RowChange<'a>> {
        let operation = self.u8()?;
        let storage = self.u32()?;
        let partition = self.u16()?;
        if operation == NAMED {
            return Ok(RowChange::Named {
                storage,
                partition,
                number: self.u64()?,
            });
        }
        let row = RowId::new(partition, self.u32()?);
        match operation {
            PUT => Ok(RowChange::Put {
                storage,
                row,
                tuple: self.bytes()?,
                removed: Removed(self.bytes()?),
            }),
            DELETE => Ok(RowChange::Delete {
                storage,
                row,
                removed: Removed(self.bytes()?),
            }),
            other => Err(Error::Corrupt(format!("unknown row change {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_as_they_were_written() {
        let mut writer = ChangeWriter::default();
        let mut removed = Vec::new();
        push_removed(&mut removed, 99, b"old key");
        writer.put(3, RowId::new(2, 77), b"tuple", &removed);
        writer.delete(4, RowId::new(1, 5), &[]);
        let read: Vec<_> = changes(writer.parts.whole().expect("few"))
            .collect::<Result<_>>()
            .expect("valid");
        assert_eq!(read.len(), 2);
        match &read[0] {
            RowChange::Put {
                storage,
                row,
                tuple,
                removed,
            } => {
                assert_eq!(
                    (*storage, *row, *tuple),
                    (3, RowId::new(2, 77), &b"tuple"[..])
                );
                assert_eq!(removed.iter().collect::<Vec<_>>(), [(99, &b"old key"[..])]);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(read[1], RowChange::Delete { storage: 4, .. }));
        let written = writer.parts.whole().expect("few");
        let encoded: Vec<_> = encoded_changes(writer.parts.whole().expect("few"))
            .collect::<Result<_>>()
            .expect("valid");
        assert_eq!(encoded.iter().map(|e| e.0).collect::<Vec<_>>(), [2, 1]);
        assert_eq!([encoded[0].1, encoded[1].1].concat(), written);
    }

    #[test]
    fn a_cut_record_is_corruption_not_a_panic() {
        let mut writer = ChangeWriter::default();
        writer.put(3, RowId::new(2, 77), b"tuple", &[]);
        let written = writer.parts.whole().expect("few");
        for length in 1..written.len() {
            assert!(changes(&written[..length]).any(|c| c.is_err()));
            assert!(encoded_changes(&written[..length]).any(|c| c.is_err()));
        }
    }
}
