//! Appending to the log what a commit or a rollback says, also where the device is full: what only
//! takes away may use the space that is kept for making room ([`crate::parts::reserve`]).

use thermocline_storage::log::{LogFailed, Lsn};

use crate::catalog::draft::Draft;
use crate::catalog::logged_change::CatalogChange;
use crate::format::record::pieces;
use crate::ground::byte_parts::ByteParts;
use crate::ground::error::{Error, Result, log_failed};
use crate::parts::Parts;
use crate::parts::reserve::SpaceUse;

impl Parts {
    /// Appends a record of a commit or a rollback. One that only takes away may use the log's
    /// reserve, which `takes_away` is asked about on a full device; a checkpoint comes soon then.
    pub(crate) fn append_commit(
        &self,
        pieces: &[&[u8]],
        takes_away: impl FnOnce() -> bool,
    ) -> Result<Lsn> {
        match self.append_growing(pieces) {
            Err(LogFailed::StorageFull) if takes_away() => {
                self.checkpoint.poke();
                let lsn = self.append_reserved(pieces).map_err(log_failed)?;
                self.counters.logged(lsn);
                Ok(lsn)
            }
            Err(error) => Err(log_failed(error)),
            Ok(lsn) => {
                self.counters.logged(lsn);
                Ok(lsn)
            }
        }
    }

    /// Appends a record, if it leaves the space that is kept.
    pub(crate) fn append_growing(&self, pieces: &[&[u8]]) -> std::result::Result<Lsn, LogFailed> {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        match self.reserve.kept().leaves(bytes) {
            true => self.log.append(pieces),
            false => Err(LogFailed::StorageFull),
        }
    }

    /// Appends a record that makes room: also where that takes another segment out of the space
    /// that is kept.
    fn append_reserved(&self, pieces: &[&[u8]]) -> std::result::Result<Lsn, LogFailed> {
        match self.log.append_reserved(pieces) {
            Err(LogFailed::StorageFull) => {
                let segment = self.settings.segment_bytes();
                let record: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
                // One that is too large for a usual segment gets one of its own, too. Accepted and
                // without room it would keep all others out.
                let own = if record > segment / 2 {
                    record + record / 8
                } else {
                    0
                };
                if !self.reserve.allows(SpaceUse::MakingRoom, segment + own) {
                    return Err(LogFailed::StorageFull);
                }
                self.log.prepare_now();
                self.log.append_reserved(pieces)
            }
            appended => appended,
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

    /// What a transaction has changed in the catalog, as it is logged. All partitions are held,
    /// so that nobody else changes the catalog before this is in force.
    pub(crate) fn encode_catalog(&self, draft: &Draft) -> Result<Vec<u8>> {
        let before = self.catalog();
        let mut change = CatalogChange::between(&before, &draft.catalog(&before));
        (change.next_oid, change.next_storage) = self.next_numbers();
        change.restarted = self.begun_again(&draft.restarted);
        serde_json::to_vec(&change)
            .map_err(|error| Error::Internal(format!("encoding the catalog: {error}")))
    }

    /// Whether a changed catalog leaves rows or an index behind.
    pub(crate) fn takes_away(draft: &Draft) -> bool {
        !draft.dropped.is_empty() || !draft.dropped_indexes.is_empty()
    }

    /// Before a checkpoint: whether the device has little room.
    pub(crate) fn see_how_much_is_free(&self) {
        let has_little = |free| free < self.reserve.wanted();
        let is_short = self.log.is_short() || self.device.free_bytes().is_ok_and(has_little);
        self.log.be_frugal(is_short);
    }
}
