//! fjall: one keyspace meant for point reads that find their key, no compression.
//!
//! A block cache of 45% of the limit and memtables of 1/32 of it; the rest is for
//! indexes, filters and the page cache, through which fjall reads. Relaxed: the
//! journal goes to the system each 10 ms, by a thread of ours. Synchronous: it is
//! synced with each commit.

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use thermocline_bench::Result;

use super::every::Every;
use super::{Key, LOG_INTERVAL, Rival, RivalClient, Setup};

/// fjall's own smallest allowance for journals, in bytes.
const JOURNALS_BYTES_MIN: u64 = 64 << 20;

/// fjall.
pub struct Fjall {
    db: Database,
    rows: Keyspace,
    synchronous: bool,
    _flusher: Option<Every>,
}

impl Rival for Fjall {
    type Client<'a> = &'a Fjall;

    fn open(setup: &Setup<'_>) -> Result<Self> {
        let memtable_bytes = setup.cache_bytes(1.0 / 32.0);
        let db = Database::builder(setup.directory.join("db"))
            .cache_size(setup.cache_bytes(0.45))
            .journal_compression(CompressionType::None)
            .max_journaling_size(setup.cache_bytes(0.5).max(JOURNALS_BYTES_MIN))
            .open()?;
        let rows = db.keyspace("usertable", || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(memtable_bytes)
                .expect_point_read_hits(true)
                .manual_journal_persist(true)
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
        })?;
        let flusher = (!setup.synchronous && setup.writes).then(|| {
            let db = db.clone();
            Every::new(LOG_INTERVAL, move || {
                // A journal that fails here fails the next commit, too.
                let _ = db.persist(PersistMode::Buffer);
            })
        });
        Ok(Fjall {
            db,
            rows,
            synchronous: setup.synchronous,
            _flusher: flusher,
        })
    }

    fn client(&self) -> Result<&Fjall> {
        Ok(self)
    }

    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()> {
        let mut batch = self.db.batch();
        for (key, value) in rows {
            batch.insert(&self.rows, &key[..], *value);
        }
        Ok(batch.commit()?)
    }

    fn finish_load(&self) -> Result<()> {
        self.rows.rotate_memtable_and_wait()?;
        // One sorted run: the best that reads can find.
        self.rows.major_compact()?;
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}

impl RivalClient for &Fjall {
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let found = self.rows.get(key)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.rows.insert(&key[..], value)?;
        if self.synchronous {
            self.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_kept() {
        super::super::check::keeps_rows::<super::Fjall>(true);
    }
}
