//! Space that is kept for making room: on a full device rows can be deleted and tables dropped,
//! and the checkpoint that gives their space back has room for its own files.
//!
//! The last part of the log's segment is kept for records that make room (`Log::append_reserved`),
//! and the device has a file, `reserve`, whose space is given back when a checkpoint begins on a
//! device that is short, or a start finds no room for a segment of the log. It is taken again when
//! there is plenty. Nothing depends on the file: it has no contents, and may be missing.

use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_device::{Device, OpenMode};
use thermocline_storage::log::{LogFailed, Lsn};

use crate::byte_parts::ByteParts;
use crate::draft::Draft;
use crate::error::{Result, log_failed};
use crate::manifest::RESERVE;
use crate::parts::Parts;
use crate::record::pieces;

/// It is taken where at least so many times its size is free.
const FREE_TIMES: u64 = 4;

/// The space that is kept.
pub(crate) struct Reserve {
    device: Arc<dyn Device>,
    /// Bytes to keep; 0: none.
    wanted: u64,
    /// Bytes of the file.
    held: Mutex<u64>,
}

impl Reserve {
    /// Finds what a former process has kept.
    pub fn open(device: Arc<dyn Device>, wanted: u64) -> Self {
        let found = device
            .open(RESERVE, OpenMode::Existing)
            .and_then(|file| file.len());
        Reserve {
            held: Mutex::new(found.unwrap_or(0)),
            device,
            wanted,
        }
    }

    /// Takes what is wanted, if the device has plenty. One that has not, or fails, is no error
    /// here: who needs its space next will hear.
    pub fn take(&self) {
        let mut held = self.held.lock();
        let plenty = (self.wanted - self.wanted.min(*held)).saturating_mul(FREE_TIMES);
        if *held >= self.wanted || !self.device.free_bytes().is_ok_and(|free| free >= plenty) {
            return;
        }
        let file = self.device.open(RESERVE, OpenMode::Create);
        if file.and_then(|file| file.set_len(self.wanted)).is_ok() {
            *held = self.wanted;
        }
    }

    /// Gives back all but `kept` bytes.
    pub fn give(&self, kept: u64) {
        let mut held = self.held.lock();
        if *held <= kept {
            return;
        }
        let file = self.device.open(RESERVE, OpenMode::Existing);
        if file.and_then(|file| file.set_len(kept)).is_ok() {
            *held = kept;
        }
    }

    /// Before the log is opened: lets it have a segment, if the device has no room for one.
    pub fn let_log_have(&self, segment_bytes: u64) {
        if self
            .device
            .free_bytes()
            .is_ok_and(|free| free < segment_bytes)
        {
            let held = *self.held.lock();
            self.give(held.saturating_sub(segment_bytes + segment_bytes / 8));
        }
    }
}

impl Parts {
    /// Appends a record of a commit or a rollback. One that only takes away may use the log's
    /// reserve, which `takes_away` is asked about on a full device; a checkpoint comes soon then.
    pub(crate) fn append_commit(
        &self,
        pieces: &[&[u8]],
        takes_away: impl FnOnce() -> bool,
    ) -> Result<Lsn> {
        match self.log.append(pieces) {
            Err(LogFailed::StorageFull) if takes_away() => {
                let lsn = self.log.append_reserved(pieces).map_err(log_failed)?;
                self.counters.logged(lsn);
                self.checkpoint.poke();
                Ok(lsn)
            }
            Err(error) => Err(log_failed(error)),
            Ok(lsn) => {
                self.counters.logged(lsn);
                Ok(lsn)
            }
        }
    }

    /// As [`Parts::append_commit`], of a record of changes.
    pub(crate) fn append_changes(
        &self,
        head: &[u8],
        changes: &ByteParts,
        catalog: &[u8],
        takes_away: impl FnOnce() -> bool,
    ) -> Result<Lsn> {
        match changes.whole() {
            Some(changes) => self.append_commit(&[head, changes, catalog], takes_away),
            None => self.append_commit(&pieces(head, changes, catalog), takes_away),
        }
    }

    /// Whether a changed catalog leaves rows or an index behind.
    pub(crate) fn takes_away(draft: &Draft) -> bool {
        !draft.dropped.is_empty() || !draft.dropped_indexes.is_empty()
    }

    /// Whether the device has no room for the log to go on for long.
    fn device_is_short(&self) -> bool {
        self.log.is_short()
            || self
                .device
                .free_bytes()
                .is_ok_and(|free| free < self.reserve.wanted)
    }

    /// What a checkpoint needs for its files on a device that is full.
    pub(crate) fn make_room_for_checkpoint(&self) {
        if self.device_is_short() {
            self.reserve.give(0);
        }
    }
}
