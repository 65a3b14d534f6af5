//! The log's tail, read in order: what it says of rows is handed to the
//! replayers of their partitions, what it defines is done here.
//!
//! Each record reaches a partition in the log's order, and partitions know
//! nothing of each other; so the result does not depend on how many threads there
//! are. Definitions, and the indexes that a command needs, concern all partitions:
//! before them all that was handed out is applied.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thermocline_device::{StopPoint, stop_at};
use thermocline_storage::log::LogTail;

use super::apply::{Action, Piece, Replayer, Shared};
use super::log_broken;
use super::progress::{Progress, RecoveryPart};
use super::replayers::{Replayers, replay_in_threads};
use crate::catalog::{CatalogImage, TableDef};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::record::{Reader, RecordKind, encoded_changes, parse_commit_body, parse_record};
use crate::transaction::TxnId;

/// Who applies the pieces.
pub(super) enum Hands<'a> {
    /// This thread.
    Own(Replayer<'a>),
    /// Others.
    Others(Replayers),
}

impl Hands<'_> {
    /// Has a piece applied that is of one partition.
    fn give(&mut self, partition: u16, piece: &Piece<'_>) -> Result<()> {
        match self {
            Hands::Own(replayer) => replayer.apply(piece),
            Hands::Others(replayers) => replayers.give(partition, piece),
        }
    }

    /// Has a piece applied in all partitions.
    fn give_all(&mut self, piece: &Piece<'_>) -> Result<()> {
        match self {
            Hands::Own(replayer) => replayer.apply(piece),
            Hands::Others(replayers) => replayers.give_all(piece),
        }
    }

    /// Waits until all that was given is applied.
    pub fn wait(&mut self) -> Result<()> {
        match self {
            Hands::Own(_) => Ok(()),
            Hands::Others(replayers) => replayers.wait(),
        }
    }
}

impl Database {
    /// Applies the log's tail, alone or with threads that do so while this one
    /// reads. Records applied, and bytes of them.
    pub(super) fn replay(
        self: &Arc<Self>,
        tail: LogTail,
        cuts: &[u64],
        catalog_lsn: u64,
    ) -> Result<(u64, u64)> {
        let progress = Progress::new(&self.config, RecoveryPart::Log);
        let shared = Shared::new(self, cuts, catalog_lsn);
        let dispatch = |hands: &mut Hands<'_>| {
            let mut reading = Reading {
                shared: &shared,
                hands,
                indexes_complete: false,
                last_transaction: 0,
            };
            let read = reading.read(tail, &progress)?;
            self.transactions.start_after(reading.last_transaction);
            Ok(read)
        };
        match self.recovery_threads() {
            0 | 1 => dispatch(&mut Hands::Own(Replayer::new(&shared, 0, 1))),
            threads => replay_in_threads(&shared, threads, dispatch),
        }
    }
}

/// The log being read.
struct Reading<'a, 'h> {
    shared: &'a Shared<'a>,
    hands: &'a mut Hands<'h>,
    indexes_complete: bool,
    last_transaction: u64,
}

impl Reading<'_, '_> {
    /// Records read, and bytes of them.
    fn read(&mut self, mut tail: LogTail, progress: &Progress<'_>) -> Result<(u64, u64)> {
        let end = tail.end();
        let (mut records, mut bytes) = (0, 0);
        while let Some(record) = tail.next().map_err(log_broken)? {
            let (start, lsn) = (record.start, record.end);
            self.hand_out(lsn, record.payload)?;
            records += 1;
            bytes += lsn - start;
            // Between two segments of the log LSNs are left out.
            progress.tell(bytes, bytes + end.saturating_sub(lsn));
            stop_at(StopPoint::RecoveryReplay);
        }
        self.hands.wait()?;
        Ok((records, bytes))
    }

    fn hand_out(&mut self, lsn: u64, payload: &[u8]) -> Result<()> {
        let (kind, number, body) = parse_record(payload)?;
        self.last_transaction = self.last_transaction.max(number);
        let piece = |action, body| Piece {
            action,
            lsn,
            transaction: TxnId(number),
            body,
        };
        let is_new = lsn > self.shared.catalog_lsn;
        match kind {
            RecordKind::Commit => {
                let (changes, catalog) = parse_commit_body(body)?;
                self.hand_out_changes(&piece(Action::Commit, changes))?;
                if number != 0 {
                    self.hands.give_all(&piece(Action::Visible, &[]))?;
                }
                if !catalog.is_empty() && is_new {
                    let image: CatalogImage = serde_json::from_slice(catalog)
                        .map_err(|e| Error::Corrupt(format!("catalog in the log: {e}")))?;
                    self.define(|db| {
                        db.adopt_catalog(&image);
                        db.restart_sequences(&image.restarted);
                    })?;
                }
                Ok(())
            }
            RecordKind::Provisional => self.hand_out_changes(&piece(Action::Provisional, body)),
            RecordKind::Abort => self.hands.give_all(&piece(Action::Abort, &[])),
            RecordKind::Draft => {
                let def: TableDef = serde_json::from_slice(body)
                    .map_err(|e| Error::Corrupt(format!("table in the log: {e}")))?;
                if !is_new {
                    return Ok(());
                }
                self.define(|db| db.adopt_draft(def))
            }
            // The checkpoint has them as of its catalog.
            RecordKind::Sequence if !is_new => Ok(()),
            RecordKind::Sequence => self.shared.db.replay_sequence(body),
            RecordKind::Command => {
                let partition = Reader(body).u16()?;
                if self.has(partition, lsn)? {
                    return Ok(());
                }
                if !self.indexes_complete {
                    self.hands.wait()?;
                    self.shared.db.complete_indexes()?;
                    self.indexes_complete = true;
                }
                self.hands.give(partition, &piece(Action::Command, body))
            }
        }
    }

    fn hand_out_changes(&mut self, piece: &Piece<'_>) -> Result<()> {
        for change in encoded_changes(piece.body) {
            let (partition, body) = change?;
            if !self.has(partition, piece.lsn)? {
                self.hands.give(partition, &Piece { body, ..*piece })?;
            }
        }
        Ok(())
    }

    /// Whether the partition's image has the record that ends at `lsn`.
    fn has(&self, partition: u16, lsn: u64) -> Result<bool> {
        let cut = self.shared.cuts.get(usize::from(partition));
        let cut =
            cut.ok_or_else(|| Error::Corrupt(format!("the log names partition {partition}")))?;
        Ok(lsn <= *cut)
    }

    /// Changes definitions, while nobody goes by them.
    fn define(&mut self, change: impl FnOnce(&Database)) -> Result<()> {
        self.hands.wait()?;
        change(self.shared.db);
        self.shared.definitions.fetch_add(1, Ordering::Release);
        self.indexes_complete = false;
        Ok(())
    }
}
