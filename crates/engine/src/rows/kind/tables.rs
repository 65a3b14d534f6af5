//! The tables of a partition by their storage, whatever kind each is of.

use std::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;

use super::Kind;
use crate::rows::row_state::TablePartition;

/// See the module's head.
#[derive(Default)]
pub(crate) struct Tables(HashMap<u32, Box<Kind>, BuildHasherDefault<StorageHasher>>);

/// Storages are numbered one by one; every statement looks one up.
#[derive(Default)]
struct StorageHasher(u64);

impl Hasher for StorageHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The map takes the low bits for the place and the highest for the tag.
        self.0 ^ self.0 >> 32
    }
}

impl Tables {
    /// The rows of a storage that are in place.
    #[inline]
    pub fn rows(&self, storage: u32) -> Option<&TablePartition> {
        self.0.get(&storage)?.rows()
    }

    /// As [`Self::rows`], to change them.
    #[inline]
    pub fn rows_mut(&mut self, storage: u32) -> Option<&mut TablePartition> {
        self.0.get_mut(&storage)?.rows_mut()
    }

    /// The rows of a storage, in place, made if it is not here.
    #[inline]
    pub fn rows_or_make(
        &mut self,
        storage: u32,
        make: impl FnOnce() -> TablePartition,
    ) -> &mut TablePartition {
        let made = || Box::new(Kind::InPlace(make()));
        let kind = self.0.entry(storage).or_insert_with(made);
        match &mut **kind {
            Kind::InPlace(rows) => rows,
            #[cfg(test)]
            _ => panic!("storage {storage} has no rows in place"),
        }
    }

    /// All rows that are in place, each with its storage.
    pub fn all_rows(&self) -> impl Iterator<Item = (u32, &TablePartition)> {
        let all = self.0.iter();
        all.filter_map(|(storage, kind)| Some((*storage, kind.rows()?)))
    }

    /// As [`Self::all_rows`], to change them.
    pub fn all_rows_mut(&mut self) -> impl Iterator<Item = (u32, &mut TablePartition)> {
        let all = self.0.iter_mut();
        all.filter_map(|(storage, kind)| Some((*storage, kind.rows_mut()?)))
    }

    /// The storages that are here, of any kind.
    pub fn storages(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    /// Whether a storage is here.
    pub fn has(&self, storage: u32) -> bool {
        self.0.contains_key(&storage)
    }

    /// A storage of any kind.
    pub fn kind_mut(&mut self, storage: u32) -> Option<&mut Kind> {
        self.0.get_mut(&storage).map(|kind| &mut **kind)
    }

    /// All that are here, of any kind.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.0.values().map(|kind| &**kind)
    }

    /// As [`Self::kinds`], to change them.
    pub fn kinds_mut(&mut self) -> impl Iterator<Item = &mut Kind> {
        self.0.values_mut().map(|kind| &mut **kind)
    }

    /// Has a storage from now on, of this kind.
    pub fn put(&mut self, storage: u32, kind: Kind) {
        self.0.insert(storage, Box::new(kind));
    }

    /// Gives a storage up. Whether it was here.
    pub fn remove(&mut self, storage: u32) -> bool {
        self.0.remove(&storage).is_some()
    }
}
