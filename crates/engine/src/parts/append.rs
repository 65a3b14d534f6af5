//! Appending to the log what a commit or a rollback says, also where the device is full: what only
//! takes away may use the space that is kept for making room ([`crate::parts::reserve`]).

use thermocline_storage::log::{LogFailed, Lsn};

use crate::catalog::CatalogImage;
use crate::catalog::draft::Draft;
use crate::format::record::pieces;
use crate::ground::byte_parts::ByteParts;
use crate::ground::error::{Error, Result, log_failed};
use crate::parts::Parts;

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

    /// A changed catalog, as it is logged.
    pub(crate) fn encode_catalog(&self, draft: &Draft) -> Result<Vec<u8>> {
        let catalog = draft.catalog(&self.catalog());
        let (next_oid, next_storage) = self.next_numbers();
        let mut image: CatalogImage = catalog.image(next_oid, next_storage);
        image.restarted = self.begun_again(&draft.restarted);
        serde_json::to_vec(&image)
            .map_err(|error| Error::Internal(format!("encoding the catalog: {error}")))
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
                .is_ok_and(|free| free < self.reserve.wanted())
    }

    /// What a checkpoint needs for its files on a device that is full.
    pub(crate) fn make_room_for_checkpoint(&self) {
        if self.device_is_short() {
            self.reserve.give(0);
        }
    }
}
