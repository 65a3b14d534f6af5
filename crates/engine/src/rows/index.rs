//! An index of a table in a partition: a hash index or a B+tree, and the object id by which the
//! catalog knows it.
//!
//! Here is what the two kinds have in common. Which rows an index leads to is its caller's: a row
//! is in each index of its table from its insertion to its death, whether it is hot or cold. But
//! it has no entry in a partial index while it is beyond the predicate ([`Table::has_entry`]).

use thermocline_storage::btree::BTree;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::key_hash::key_hash;

use crate::catalog::{IndexDef, IndexKind, Table};
use crate::ground::error::{Error, Result};

/// An index of a table in a partition.
pub(crate) enum Index {
    Hash(HashIndex),
    BTree(BTree),
}

/// An index and the object id it belongs to.
pub(crate) struct IndexSlot {
    pub oid: u32,
    pub index: Index,
}

impl Index {
    pub fn new(kind: IndexKind) -> Self {
        match kind {
            IndexKind::Hash => Index::Hash(HashIndex::new()),
            IndexKind::BTree => Index::BTree(BTree::new()),
        }
    }

    pub fn kind(&self) -> IndexKind {
        match self {
            Index::Hash(_) => IndexKind::Hash,
            Index::BTree(_) => IndexKind::BTree,
        }
    }

    pub fn insert(&mut self, key: &[u8], row: u32) -> Result<()> {
        match self {
            Index::Hash(index) => {
                index.insert(key_hash(key), row);
                Ok(())
            }
            Index::BTree(index) => index.insert(key, row).map(|_| ()).map_err(|_| {
                Error::TooLarge(format!(
                    "index row size {} exceeds the maximum of {} bytes",
                    key.len(),
                    thermocline_storage::btree::KEY_BYTES_MAX
                ))
            }),
        }
    }

    pub fn remove(&mut self, key: &[u8], row: u32) -> bool {
        match self {
            Index::Hash(index) => index.remove(key_hash(key), row),
            Index::BTree(index) => index.remove(key, row),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Index::Hash(index) => index.bytes(),
            Index::BTree(index) => index.bytes(),
        }
    }
}

impl IndexSlot {
    /// Empty indexes, as they are defined.
    pub fn of(defs: &[IndexDef]) -> Vec<Self> {
        let slots = defs.iter().map(|def| IndexSlot {
            oid: def.oid,
            index: Index::new(def.kind),
        });
        slots.collect()
    }

    /// Moves `row` if the images' keys differ here. Whether they did.
    pub fn reindex(
        &mut self,
        table: &Table,
        old: &[u8],
        new: &[u8],
        row: u32,
        keys: &mut (Vec<u8>, Vec<u8>),
    ) -> Result<bool> {
        let Some(position) = position_of(table, self.oid) else {
            return Ok(false);
        };
        keys.0.clear();
        keys.1.clear();
        table.index_key_of(position, old, &mut keys.0);
        table.index_key_of(position, new, &mut keys.1);
        if keys.0 == keys.1 {
            return Ok(false);
        }
        if table.has_entry(position, &keys.1) {
            self.index.insert(&keys.1, row)?;
        }
        self.index.remove(&keys.0, row);
        Ok(true)
    }
}

/// Where a table's definition has an index.
pub(crate) fn position_of(table: &Table, oid: u32) -> Option<usize> {
    table.def.indexes.iter().position(|def| def.oid == oid)
}
