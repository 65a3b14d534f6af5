//! The seam between what is measured and how: what each rival does, one file each.
//!
//! Keys are 8 bytes, big endian, so that their order is that of the numbers.
//! What a rival can choose is chosen once, in its own file, and said at its head.

#[cfg(feature = "bf-tree")]
pub mod bf_tree;
#[cfg(any(feature = "fjall", feature = "lmdb", feature = "rocksdb"))]
mod every;
#[cfg(feature = "fjall")]
pub mod fjall;
pub mod hashmap;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "lmdb")]
mod lmdb_open;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::path::Path;
use std::time::Duration;

use thermocline_bench::Result;
use thermocline_bench::ycsb::client::Client;

/// With relaxed commits a log that is gathered in the process goes to the system so often,
/// which is how long ours gathers.
#[allow(dead_code)]
pub const LOG_INTERVAL: Duration = Duration::from_millis(10);

/// A key as rivals see it.
pub type Key = [u8; 8];

/// What a rival is opened with.
// Which of it is used depends on the rivals that are built.
#[allow(dead_code)]
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Its directory; it exists.
    pub directory: &'a Path,
    /// The memory that it may use in all, in bytes.
    pub memory_limit: u64,
    /// Caches are this share of their usual size: 1, or less after it was killed.
    pub cache_scale: f64,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Whether a commit waits for the device.
    pub synchronous: bool,
    /// Threads that will use it.
    pub threads: usize,
    /// Whether rows will be written.
    pub writes: bool,
}

#[allow(dead_code)]
impl Setup<'_> {
    /// A share of the memory limit, scaled.
    pub fn cache_bytes(&self, share: f64) -> u64 {
        (self.memory_limit as f64 * share * self.cache_scale) as u64
    }
}

/// A system beside ours.
pub trait Rival: Sync + Sized {
    /// What one thread uses.
    type Client<'a>: RivalClient
    where
        Self: 'a;

    /// Opens it, empty or as it was closed.
    fn open(setup: &Setup<'_>) -> Result<Self>;
    /// A client for the calling thread.
    fn client(&self) -> Result<Self::Client<'_>>;
    /// Loads rows whose keys ascend, in one transaction where there are some.
    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()>;
    /// Everything that was loaded is on the device, and as well kept as the
    /// system can.
    fn finish_load(&self) -> Result<()>;
}

/// What a thread does with a rival. Each call is a transaction of its own.
pub trait RivalClient {
    /// Copies the row's value into the empty `value`; whether it is there.
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool>;
    /// Replaces the value of a row.
    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()>;
    /// Adds a row that is not there.
    fn insert(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.update(key, value)
    }
}

/// A rival's client as the workload's: it never waits for another task.
#[derive(Debug)]
pub struct Waiting<C> {
    client: C,
    value: Vec<u8>,
    row_bytes: usize,
}

impl<C> Waiting<C> {
    /// Around a client, for rows of this size.
    pub fn new(client: C, row_bytes: usize) -> Self {
        Waiting {
            client,
            value: Vec::with_capacity(row_bytes),
            row_bytes,
        }
    }
}

impl<C: RivalClient> Client for Waiting<C> {
    async fn read(&mut self, key: u64) -> Result<Option<bool>> {
        self.value.clear();
        if !self.client.read(&key.to_be_bytes(), &mut self.value)? {
            return Err(format!("row {key} is not there").into());
        }
        if self.value.len() != self.row_bytes {
            return Err(format!("row {key} has {} bytes", self.value.len()).into());
        }
        Ok(None)
    }

    async fn update(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>> {
        self.client.update(&key.to_be_bytes(), payload)?;
        Ok(None)
    }

    async fn insert(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>> {
        self.client.insert(&key.to_be_bytes(), payload)?;
        Ok(None)
    }
}

/// What every rival must do; each file's test calls it.
#[cfg(test)]
pub mod check {
    use super::*;

    /// Loads, reads, changes, adds, and opens again.
    pub fn keeps_rows<R: Rival>(persistent: bool) {
        let directory = tempfile::tempdir().expect("a directory");
        for synchronous in [false, true] {
            let place = directory.path().join(synchronous.to_string());
            std::fs::create_dir(&place).expect("a directory");
            let setup = Setup {
                directory: &place,
                memory_limit: 64 << 20,
                cache_scale: 1.0,
                row_bytes: 100,
                synchronous,
                threads: 2,
                writes: true,
            };
            let rival = R::open(&setup).expect("it opens");
            let payload = [1; 100];
            let rows: Vec<_> = (0..3000u64)
                .map(|n| (n.to_be_bytes(), &payload[..]))
                .collect();
            for batch in rows.chunks(1000) {
                rival.load(batch).expect("loaded");
            }
            rival.finish_load().expect("finished");
            drop(rival);
            let rival = if persistent {
                R::open(&setup).expect("it opens again")
            } else {
                let rival = R::open(&setup).expect("it opens");
                rival.load(&rows).expect("loaded");
                rival
            };
            let mut client = rival.client().expect("a client");
            let mut value = Vec::new();
            client
                .update(&5u64.to_be_bytes(), &[2; 100])
                .expect("updated");
            client
                .insert(&9_000u64.to_be_bytes(), &[3; 100])
                .expect("inserted");
            for (key, wanted) in [(4u64, 1), (5, 2), (2999, 1), (9000, 3)] {
                value.clear();
                assert!(client.read(&key.to_be_bytes(), &mut value).expect("read"));
                assert_eq!(value, [wanted; 100], "row {key}");
            }
            value.clear();
            assert!(
                !client
                    .read(&3000u64.to_be_bytes(), &mut value)
                    .expect("read")
            );
        }
    }
}
