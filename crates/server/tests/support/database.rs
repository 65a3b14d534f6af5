//! The database under the tests, and the statements that need one.

use std::sync::Arc;

use tempfile::TempDir;
use thermocline_device::{FileDevice, IoEngine};
use thermocline_engine::{Config, Database};
use thermocline_sql::Engine;

use super::Wire;

/// A fresh database in a directory of its own.
pub struct TestDatabase {
    engine: Arc<Engine>,
    database: Arc<Database>,
    _directory: TempDir,
}

impl TestDatabase {
    pub fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let device = FileDevice::open(directory.path(), IoEngine::Threads).unwrap();
        let config = Config::new(Arc::new(device))
            .memory_limit(1 << 30)
            .partitions(4);
        let database = Database::open(config).unwrap();
        Self {
            engine: Engine::new(Arc::clone(&database)).unwrap(),
            database,
            _directory: directory,
        }
    }

    pub fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        self.database.close().unwrap();
    }
}

/// Waits for the row that [`hold_a_row`] holds.
pub const WAITING: &str = "update held set v = v + 1 where id = 1";

/// Leaves a transaction open that has written a row.
pub async fn hold_a_row(wire: &mut Wire) {
    for sql in [
        "create table held (id int primary key, v int)",
        "insert into held values (1, 0)",
        "begin",
        WAITING,
    ] {
        let messages = wire.query(sql).await;
        assert!(
            messages.iter().all(|message| message.tag != b'E'),
            "{messages:?}"
        );
    }
}

/// A statement with this many rows.
pub fn rows(count: usize) -> String {
    format!("select * from generate_series(1, {count})")
}
