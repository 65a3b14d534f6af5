//! LMDB by heed: one map of 256 GB of addresses, never grown,
//! without read-ahead, because the reads are random and larger than memory.
//!
//! It has no cache of its own: the page cache is one, within the run's cgroup.
//! Relaxed: commits are not synced, a thread syncs each second. Synchronous: LMDB
//! syncs each commit. There is one writer at a time; that is LMDB's design.

use std::time::Duration;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, WithTls};
use thermocline_bench::Result;

use super::every::Every;
use super::lmdb_open::open;
use super::{Key, Rival, RivalClient, Setup};

const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// LMDB.
#[derive(Debug)]
pub struct Lmdb {
    env: Env<WithTls>,
    rows: Database<'static, Bytes, Bytes>,
    _syncer: Option<Every>,
}

impl Rival for Lmdb {
    type Client<'a> = &'a Lmdb;

    fn open(setup: &Setup<'_>) -> Result<Self> {
        let env = open(setup.directory, setup.threads, setup.synchronous)?;
        let rows = env
            .create_databases_and_commit(env.write_txn()?, |opener, transaction| {
                let rows = opener.create_database(transaction, None)?;
                Result::Ok(CommitOrAbort::<_, ()>::Commit(rows))
            })?
            .commit()
            .ok_or("the table was not made")?;
        let syncer = (!setup.synchronous && setup.writes).then(|| {
            let env = env.clone();
            Every::new(SYNC_INTERVAL, move || {
                // A device that fails here fails the readers, too.
                let _ = env.force_sync();
            })
        });
        Ok(Lmdb {
            env,
            rows,
            _syncer: syncer,
        })
    }

    fn client(&self) -> Result<&Lmdb> {
        Ok(self)
    }

    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in rows {
            let flags = heed::PutFlags::APPEND;
            self.rows
                .put_with_flags(&mut transaction, flags, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn finish_load(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }
}

impl RivalClient for &Lmdb {
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let transaction = self.env.read_txn()?;
        let found = self.rows.get(&transaction, key)?;
        if let Some(found) = found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        self.rows.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_kept() {
        super::super::check::keeps_rows::<super::Lmdb>(true);
    }
}
