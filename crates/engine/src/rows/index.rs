//! An index of a table in a partition: a hash index or a B+tree, and the object id by which the
//! catalog knows it.
//!
//! Here is what the two kinds have in common. Which rows an index leads to is its caller's: a row
//! is in each index of its table from its insertion to its death, whether it is hot or cold. But
//! it has no entry in a partial index while it is beyond the predicate ([`Table::has_entry`]).

use thermocline_storage::btree::{BTree, KEY_BYTES_MAX, KeyTooLong};
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

/// Whether a key that was added is its row's alone.
pub(crate) enum Unique {
    Yes,
    /// Another row has it, and nothing was added.
    No,
    /// One of these rows may have it, of which only the hash is known.
    Perhaps(Vec<u32>),
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
            Index::BTree(index) => match index.insert(key, row) {
                Ok(_) => Ok(()),
                Err(refused) => Err(too_long(refused)),
            },
        }
    }

    /// Adds a row to a unique index.
    ///
    /// # Errors
    /// The key is too long.
    pub fn insert_unique(&mut self, key: &[u8], row: u32) -> Result<Unique> {
        match self {
            Index::Hash(index) => {
                let hash = key_hash(key);
                let others: Vec<u32> = index.candidates(hash).collect();
                index.insert(hash, row);
                match others.is_empty() {
                    true => Ok(Unique::Yes),
                    false => Ok(Unique::Perhaps(others)),
                }
            }
            Index::BTree(index) => match index.insert_unique(key, row) {
                Ok(true) => Ok(Unique::Yes),
                Ok(false) => Ok(Unique::No),
                Err(refused) => Err(too_long(refused)),
            },
        }
    }

    /// Whether it has an order, and all its keys are below this one.
    pub fn ends_before(&self, key: &[u8]) -> bool {
        match self {
            Index::Hash(_) => false,
            Index::BTree(index) => index.ends_before(key),
        }
    }

    /// Adds entries in order, all behind those that are there ([`BTree::append`]).
    ///
    /// # Errors
    /// A key is too long.
    pub fn append<'k>(&mut self, entries: impl Iterator<Item = (&'k [u8], u32)>) -> Result<()> {
        match self {
            Index::BTree(index) => index.append(entries).map_err(too_long),
            Index::Hash(index) => {
                for (key, row) in entries {
                    index.insert(key_hash(key), row);
                }
                Ok(())
            }
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

fn too_long(refused: KeyTooLong) -> Error {
    Error::TooLarge(format!(
        "index row size {} exceeds the maximum of {KEY_BYTES_MAX} bytes",
        refused.key_bytes
    ))
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
