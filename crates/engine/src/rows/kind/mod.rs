//! The seam for kinds of tables: what a partition needs of a table's rows, whatever they are
//! kept in. The first kind is rows in place ([`TablePartition`]): a heap, a directory, indexes.
//!
//! A kind is a variant of [`Kind`]; what is asked of all kinds is a method of it, a `match` and no
//! dynamic dispatch. Transactions, isolation, the log and the order of commits are above, and the
//! same for all. What is only done to rows in place (they leave memory, they are copied by
//! checkpoints, their words are replayed) goes through [`Tables::rows`] and meets no other kind.
//!
//! **How a commit becomes durable.** The log is the arbiter: what a commit changed is there when
//! its record is durable, and not before. A kind says how its part gets there ([`Durability`]):
//!
//! | | before the record | in the record | at a restart |
//! |---|---|---|---|
//! | logged | nothing | the rows' values | they are applied |
//! | rooted | pages and a root, in new places, are on the device | the root's number | the last root that the log names holds; nothing is applied |
//! | persistent | undo entries, then the rows in place, are on the device | the number of the entries | what no record names is undone; nothing is applied |
//!
//! The last two are one rule for the log: a number that a record *names* ([`Kind::prepare`]) holds.
//! Before the log loses its beginning, a checkpoint tells the kind how much of it is durable
//! ([`Kind::log_is_durable`]). The kind then keeps for itself which of its numbers holds, and may
//! give up what the ones before it had.

#[cfg(test)]
mod persistent_map;
#[cfg(test)]
mod rooted_map;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use thermocline_device::Device;
use thermocline_storage::log::Lsn;

use crate::catalog::Table;
use crate::ground::error::{Error, Result};
use crate::rows::row_state::TablePartition;
#[cfg(test)]
pub(crate) use persistent_map::PersistentMap;
#[cfg(test)]
pub(crate) use rooted_map::RootedMap;
pub(crate) use tables::Tables;

/// How a kind's part of a commit becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "only kinds of tests are named"))]
pub(crate) enum Durability {
    /// The commit's record has the rows' values.
    Logged,
    /// Pages and a root are on the device first, then the commit's record names the root.
    Rooted,
    /// It is on the device in place first, and what undoes it before that; the commit's record
    /// names what need not be undone.
    Persistent,
}

/// A table's rows in a partition. See the module's head.
#[cfg_attr(
    test,
    expect(clippy::large_enum_variant, reason = "each is in a box of its own")
)]
pub(crate) enum Kind {
    /// Rows in place: a heap, a directory, indexes.
    InPlace(TablePartition),
    /// For tests: a map that is rooted.
    #[cfg(test)]
    Rooted(RootedMap),
    /// For tests: a map that is persistent.
    #[cfg(test)]
    Persistent(PersistentMap),
}

impl Kind {
    /// What a table has in a partition, if it is of a kind that keeps something of its own on the
    /// device. None: its rows are in place, and made by who has what they need.
    ///
    /// # Errors
    /// The device's; what is there is damaged.
    pub fn open(table: &Table, partition: u16, device: &Arc<dyn Device>) -> Result<Option<Kind>> {
        let _nothing_there_yet = (table, partition, device);
        #[cfg(test)]
        if let Some(kind) = table.def.options.get("kind") {
            let name = format!("{kind}-{}-{partition}", table.def.storage);
            return Ok(match kind.as_str() {
                "rooted" => Some(Kind::Rooted(RootedMap::open(device, name)?)),
                _ => Some(Kind::Persistent(PersistentMap::open(device, name)?)),
            });
        }
        Ok(None)
    }

    /// How its part of a commit becomes durable.
    pub fn durability(&self) -> Durability {
        match self {
            Kind::InPlace(_) => Durability::Logged,
            #[cfg(test)]
            Kind::Rooted(_) => Durability::Rooted,
            #[cfg(test)]
            Kind::Persistent(_) => Durability::Persistent,
        }
    }

    /// Its rows, if they are in place.
    #[inline]
    pub fn rows(&self) -> Option<&TablePartition> {
        match self {
            Kind::InPlace(rows) => Some(rows),
            #[cfg(test)]
            _ => None,
        }
    }

    /// As [`Self::rows`], to change them.
    #[inline]
    pub fn rows_mut(&mut self) -> Option<&mut TablePartition> {
        match self {
            Kind::InPlace(rows) => Some(rows),
            #[cfg(test)]
            _ => None,
        }
    }

    /// A commit asks, before its record: what a run has changed is on the device, beside what
    /// holds. The number that the record has to name; None where the record has the values.
    ///
    /// # Errors
    /// The device's: the commit fails, and the run is undone.
    pub fn prepare(&mut self) -> Result<Option<u64>> {
        match self {
            Kind::InPlace(_) => Ok(None),
            #[cfg(test)]
            Kind::Rooted(map) => map.prepare().map(Some),
            #[cfg(test)]
            Kind::Persistent(map) => map.prepare().map(Some),
        }
    }

    /// The commit is made: the log names the number that was prepared, up to here. This cannot fail.
    pub fn committed(&mut self, lsn: Lsn) {
        let _ends_at = lsn;
        match self {
            Kind::InPlace(_) => {}
            #[cfg(test)]
            Kind::Rooted(map) => map.committed(lsn),
            #[cfg(test)]
            Kind::Persistent(map) => map.committed(lsn),
        }
    }

    /// Takes back what a run has changed since the last commit, prepared or not. Rows in place
    /// have the run's own list for that.
    pub fn undo(&mut self) {
        match self {
            Kind::InPlace(_) => {}
            #[cfg(test)]
            Kind::Rooted(map) => map.undo(),
            #[cfg(test)]
            Kind::Persistent(map) => map.undo(),
        }
    }

    /// At a restart, in the log's order: a record names this number.
    ///
    /// # Errors
    /// What it means is not on the device, or the kind has no such numbers.
    pub fn named(&mut self, number: u64) -> Result<()> {
        match self {
            Kind::InPlace(_) => {
                let wrong = format!("the log names {number} of a table whose rows it has");
                Err(Error::Corrupt(wrong))
            }
            #[cfg(test)]
            Kind::Rooted(map) => map.named(number),
            #[cfg(test)]
            Kind::Persistent(map) => map.named(number),
        }
    }

    /// At a restart, when all of the log is applied. What no record named is gone. Rows in place
    /// know again which numbers are free.
    ///
    /// # Errors
    /// The device's.
    pub fn log_is_applied(&mut self) -> Result<()> {
        match self {
            Kind::InPlace(rows) => rows.list_free_numbers(),
            #[cfg(test)]
            Kind::Rooted(map) => map.log_is_applied()?,
            #[cfg(test)]
            Kind::Persistent(map) => map.log_is_applied()?,
        }
        Ok(())
    }

    /// A checkpoint, before its manifest: the log is durable up to here, and may lose what is
    /// before. Rows in place have been copied by then.
    ///
    /// # Errors
    /// The device's: the checkpoint fails.
    pub fn log_is_durable(&mut self, lsn: Lsn) -> Result<()> {
        let _up_to = lsn;
        match self {
            Kind::InPlace(_) => {}
            #[cfg(test)]
            Kind::Rooted(map) => map.log_is_durable(lsn)?,
            #[cfg(test)]
            Kind::Persistent(map) => map.log_is_durable(lsn)?,
        }
        Ok(())
    }

    /// Bytes of memory that it takes and that cannot leave.
    pub fn metadata_bytes(&self) -> usize {
        match self {
            Kind::InPlace(rows) => rows.metadata_bytes(),
            #[cfg(test)]
            Kind::Rooted(map) => map.bytes(),
            #[cfg(test)]
            Kind::Persistent(map) => map.bytes(),
        }
    }
}
