//! SQLite: a table with an integer key, which is its B-tree's own, and a blob.
//!
//! Write-ahead log; relaxed is `synchronous = NORMAL` (the log is synced when it
//! is checkpointed), synchronous `FULL`. A connection a thread, with private
//! caches that are 60% of the limit together; no memory map. A writer that meets
//! another waits for it.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection, OpenFlags, params};
use thermocline_bench::Result;

use super::{Key, Rival, RivalClient, Setup};

const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// SQLite.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    cache_kb: u64,
    synchronous: bool,
}

impl Sqlite {
    fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let mode = if self.synchronous { "FULL" } else { "NORMAL" };
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {mode}; \
             PRAGMA cache_size = -{}; PRAGMA mmap_size = 0;",
            self.cache_kb
        ))?;
        Ok(connection)
    }
}

impl Rival for Sqlite {
    type Client<'a> = SqliteClient;

    fn open(setup: &Setup<'_>) -> Result<Self> {
        let sqlite = Sqlite {
            path: setup.directory.join("rows.sqlite"),
            cache_kb: (setup.cache_bytes(0.6) >> 10) / setup.threads.max(1) as u64,
            synchronous: setup.synchronous,
        };
        sqlite.connect()?.execute_batch(
            "CREATE TABLE IF NOT EXISTS usertable (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)",
        )?;
        Ok(sqlite)
    }

    fn client(&self) -> Result<SqliteClient> {
        Ok(SqliteClient {
            connection: self.connect()?,
        })
    }

    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()> {
        let mut connection = self.connect()?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO usertable VALUES (?1, ?2)")?;
            for (key, value) in rows {
                insert.execute(params![number(key), value])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn finish_load(&self) -> Result<()> {
        Ok(self
            .connect()?
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?)
    }
}

/// A connection.
#[derive(Debug)]
pub struct SqliteClient {
    connection: Connection,
}

impl SqliteClient {
    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>> {
        Ok(self.connection.prepare_cached(sql)?)
    }
}

fn number(key: &Key) -> i64 {
    u64::from_be_bytes(*key) as i64
}

impl RivalClient for SqliteClient {
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let mut select = self.statement("SELECT payload FROM usertable WHERE id = ?1")?;
        let mut rows = select.query(params![number(key)])?;
        let Some(row) = rows.next()? else {
            return Ok(false);
        };
        value.extend_from_slice(row.get_ref(0)?.as_blob()?);
        Ok(true)
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.statement("UPDATE usertable SET payload = ?2 WHERE id = ?1")?
            .execute(params![number(key), value])?;
        Ok(())
    }

    fn insert(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.statement("INSERT INTO usertable VALUES (?1, ?2)")?
            .execute(params![number(key), value])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_kept() {
        super::super::check::keeps_rows::<super::Sqlite>(true);
    }
}
