//! redb: one table of integers and bytes, a cache of 55% of the limit.
//!
//! Relaxed: a commit is not durable by itself (`Durability::None`), each second
//! one is, as redb's documentation has it. Synchronous: each is. There is one
//! writer at a time; that is redb's design.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redb::{Builder, Database, Durability, ReadableDatabase, TableDefinition};
use thermocline_bench::Result;

use super::{Key, Rival, RivalClient, Setup};

const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("usertable");
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// redb.
pub struct Redb {
    db: Database,
    synchronous: bool,
    synced: Mutex<Instant>,
}

impl Redb {
    fn write(&self, rows: &[(Key, &[u8])], durable: bool) -> Result<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(if durable {
            Durability::Immediate
        } else {
            Durability::None
        })?;
        {
            let mut table = transaction.open_table(ROWS)?;
            for (key, value) in rows {
                table.insert(u64::from_be_bytes(*key), *value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Whether it is time for a durable commit; the caller makes it.
    fn is_due(&self) -> bool {
        let mut synced = self.synced.lock();
        let due = synced.elapsed() >= SYNC_INTERVAL;
        if due {
            *synced = Instant::now();
        }
        due
    }
}

impl Rival for Redb {
    type Client<'a> = &'a Redb;

    fn open(setup: &Setup<'_>) -> Result<Self> {
        let mut builder = Builder::new();
        builder.set_cache_size(setup.cache_bytes(0.55) as usize);
        let redb = Redb {
            db: builder.create(setup.directory.join("rows.redb"))?,
            synchronous: setup.synchronous,
            synced: Mutex::new(Instant::now()),
        };
        // The table must be there for the readers.
        redb.write(&[], true)?;
        Ok(redb)
    }

    fn client(&self) -> Result<&Redb> {
        Ok(self)
    }

    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()> {
        self.write(rows, self.is_due())
    }

    fn finish_load(&self) -> Result<()> {
        self.write(&[], true)
    }
}

impl Drop for Redb {
    fn drop(&mut self) {
        // What fails here, the next opening repairs or reports.
        let _ = self.write(&[], true);
    }
}

impl RivalClient for &Redb {
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let table = self.db.begin_read()?.open_table(ROWS)?;
        let found = redb::ReadableTable::get(&table, u64::from_be_bytes(*key))?;
        if let Some(found) = &found {
            value.extend_from_slice(found.value());
        }
        Ok(found.is_some())
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let durable = self.synchronous || self.is_due();
        self.write(&[(*key, value)], durable)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_kept() {
        super::super::check::keeps_rows::<super::Redb>(true);
    }
}
