//! bf-tree: a circular buffer of about half the limit (its size must be a power of
//! two), leaf pages of 4 kB, its other settings as they are.
//!
//! It comes back from a snapshot only, which is made when the load ends. A run gets a
//! copy of it, made before the measurement: also one that only reads makes the file longer,
//! and a snapshot of another length is refused. It reads and writes through the page cache, because
//! snapshots are opened so. Relaxed: it has no log, and so promises less than the
//! others (a crash loses everything since the snapshot). Synchronous: its log, which
//! gathers commits for up to 1 ms.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, StorageBackend, WalConfig};
use thermocline_bench::Result;

use super::{Key, Rival, RivalClient, Setup};
use crate::page_cache;

const SNAPSHOT: &str = "snapshot.bftree";
/// Bytes of a record beside its value.
const KEY_BYTES: usize = size_of::<Key>();

/// bf-tree.
pub struct Tree {
    tree: BfTree,
    snapshot: PathBuf,
    row_bytes: usize,
}

/// The largest power of two that is not above `bytes`.
fn power_of_two(bytes: u64) -> usize {
    1 << bytes.max(1).ilog2()
}

impl Rival for Tree {
    type Client<'a> = TreeClient<'a>;

    fn open(setup: &Setup<'_>) -> Result<Self> {
        let snapshot = setup.directory.join(SNAPSHOT);
        let log = setup
            .synchronous
            .then(|| Arc::new(WalConfig::new(setup.directory.join("wal.log"))));
        let buffer_bytes = power_of_two(setup.cache_bytes(0.51));
        let tree = if snapshot.exists() {
            let pages = pages_to_use(setup.directory, &snapshot)?;
            BfTree::new_from_cpr_snapshot(pages, false, None, Some(buffer_bytes), log)
        } else {
            let mut config = Config::new(setup.directory.join("load.bftree"), buffer_bytes);
            config
                .storage_backend(StorageBackend::Std)
                .cb_min_record_size(KEY_BYTES + setup.row_bytes)
                .use_snapshot(true);
            BfTree::with_config(config, None)
        };
        Ok(Tree {
            tree: tree.map_err(|error| format!("bf-tree: {error:?}"))?,
            snapshot,
            row_bytes: setup.row_bytes,
        })
    }

    fn client(&self) -> Result<TreeClient<'_>> {
        Ok(TreeClient {
            tree: &self.tree,
            buffer: vec![0; self.row_bytes],
        })
    }

    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()> {
        rows.iter()
            .try_for_each(|(key, value)| put(&self.tree, key, value))
    }

    fn finish_load(&self) -> Result<()> {
        self.tree.cpr_snapshot(&self.snapshot);
        Ok(fs::remove_file(
            self.snapshot.with_file_name("load.bftree"),
        )?)
    }
}

/// A copy of the snapshot, for one run.
fn pages_to_use(directory: &Path, snapshot: &Path) -> Result<PathBuf> {
    let copy = directory.join("run.bftree");
    fs::copy(snapshot, &copy)?;
    page_cache::forget(directory)?;
    Ok(copy)
}

/// A thread's view of it.
pub struct TreeClient<'a> {
    tree: &'a BfTree,
    buffer: Vec<u8>,
}

impl RivalClient for TreeClient<'_> {
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        match self.tree.read(key, &mut self.buffer) {
            LeafReadResult::Found(length) => {
                value.extend_from_slice(&self.buffer[..length as usize]);
                Ok(true)
            }
            LeafReadResult::NotFound | LeafReadResult::Deleted => Ok(false),
            LeafReadResult::InvalidKey => Err("bf-tree refused a key".into()),
        }
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        put(self.tree, key, value)
    }
}

fn put(tree: &BfTree, key: &Key, value: &[u8]) -> Result<()> {
    match tree.insert(key, value) {
        LeafInsertResult::Success => Ok(()),
        LeafInsertResult::InvalidKV(why) => Err(format!("bf-tree: {why}").into()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_kept() {
        super::super::check::keeps_rows::<super::Tree>(true);
    }
}
