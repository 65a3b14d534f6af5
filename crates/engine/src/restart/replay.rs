//! The log's tail, read in order: what it says of rows waits for their partitions, what it
//! says of all becomes an event, what it defines is done here.
//!
//! Each record reaches a partition in the log's order, and partitions know
//! nothing of each other; so the result does not depend on who applies it, and when.

use thermocline_storage::log::LogTail;

use super::events::{Definitions, Event};
use super::loading::Loading;
use super::pieces::{Action, Batch, Piece};
use super::progress::Progress;
use crate::format::definitions::{LoggedCatalog, decode_catalog, decode_table};
use crate::format::record::{Reader, RecordKind, encoded_changes, parse_commit_body, parse_record};
use crate::ground::error::{Result, log_broken};
use crate::ground::listener::RecoveryPart;
use crate::ground::txn_id::TxnId;
use crate::parts::Parts;

impl Parts {
    /// Reads the log's tail to its end. Records, and bytes of them.
    pub(super) fn read_tail(&self, tail: LogTail, loading: &Loading) -> Result<(u64, u64)> {
        let mut reading = Reading {
            db: self,
            loading,
            filling: (0..loading.partitions())
                .map(|_| Batch::default())
                .collect(),
            last_transaction: 0,
        };
        let read = reading.read(tail)?;
        self.transactions().start_after(reading.last_transaction);
        Ok(read)
    }
}

/// The log being read.
struct Reading<'a> {
    db: &'a Parts,
    loading: &'a Loading,
    /// Pieces of each partition that do not wait in its queue yet.
    filling: Vec<Batch>,
    last_transaction: u64,
}

impl Reading<'_> {
    /// Records read, and bytes of them.
    fn read(&mut self, mut tail: LogTail) -> Result<(u64, u64)> {
        let progress = Progress::new(self.db.settings(), RecoveryPart::Log);
        let end = tail.end();
        let (mut records, mut bytes) = (0, 0);
        while let Some(record) = tail.next().map_err(log_broken)? {
            let (start, lsn) = (record.start, record.end);
            self.hand_out(lsn, record.payload)?;
            records += 1;
            bytes += lsn - start;
            // Between two segments of the log LSNs are left out.
            progress.tell(bytes, bytes + end.saturating_sub(lsn));
        }
        self.queue_all();
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
        let is_new = lsn > self.loading.tail.catalog_lsn;
        match kind {
            RecordKind::Commit => {
                let (changes, catalog) = parse_commit_body(body)?;
                self.hand_out_changes(&piece(Action::Commit, changes))?;
                if number != 0 {
                    self.loading
                        .tail
                        .events
                        .push(lsn, Event::Visible(TxnId(number)));
                }
                if !catalog.is_empty() && is_new {
                    self.define_logged(decode_catalog(catalog)?)?;
                    self.define(lsn);
                }
                Ok(())
            }
            RecordKind::Provisional => self.hand_out_changes(&piece(Action::Provisional, body)),
            RecordKind::Abort => {
                self.loading
                    .tail
                    .events
                    .push(lsn, Event::Abort(TxnId(number)));
                Ok(())
            }
            RecordKind::Draft => {
                let def = decode_table(body)?;
                if is_new {
                    self.db.adopt_draft(def);
                    self.define(lsn);
                }
                Ok(())
            }
            // The checkpoint has them as of its catalog.
            RecordKind::Sequence if !is_new => Ok(()),
            RecordKind::Sequence => self.db.replay_sequence(body),
            RecordKind::Command => {
                let partition = Reader(body).u16()?;
                if self.loading.has(partition, lsn)? {
                    return Ok(());
                }
                // Found out before anybody is served.
                self.loading.tail.check_command(body)?;
                self.give(partition, &piece(Action::Command, body))
            }
        }
    }

    fn define_logged(&self, logged: LoggedCatalog) -> Result<()> {
        let restarted = match logged {
            LoggedCatalog::Whole(mut image) => {
                self.db.adopt_catalog(&image);
                std::mem::take(&mut image.restarted)
            }
            LoggedCatalog::Change(mut change) => {
                let restarted = std::mem::take(&mut change.restarted);
                self.db.adopt_change(change)?;
                restarted
            }
        };
        self.db.begin_sequences_again(&restarted);
        Ok(())
    }

    fn hand_out_changes(&mut self, piece: &Piece<'_>) -> Result<()> {
        for change in encoded_changes(piece.body) {
            let (partition, body) = change?;
            if !self.loading.has(partition, piece.lsn)? {
                self.give(partition, &Piece { body, ..*piece })?;
            }
        }
        Ok(())
    }

    fn give(&mut self, partition: u16, piece: &Piece<'_>) -> Result<()> {
        let batch = &mut self.filling[usize::from(partition)];
        let before = batch.memory_bytes();
        batch.push(piece);
        let many = self.loading.count_queued(batch.memory_bytes() - before);
        if batch.is_full() {
            self.loading.queue(partition, std::mem::take(batch));
        }
        if many {
            self.queue_all();
            self.loading.relieve(self.db)?;
        }
        Ok(())
    }

    fn queue_all(&mut self) {
        for (partition, batch) in (0..).zip(&mut self.filling) {
            if !batch.is_empty() {
                self.loading.queue(partition, std::mem::take(batch));
            }
        }
    }

    /// Definitions have changed: so they are for each partition when it comes to here.
    fn define(&self, lsn: u64) {
        let definitions = Definitions::of_now(self.db);
        self.loading
            .tail
            .events
            .push(lsn, Event::Define(definitions));
    }
}
