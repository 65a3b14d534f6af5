//! The data that runs begin with: loaded once for each system, row size and number
//! of rows, and kept for the cells that follow.
//!
//! A mark beside the data says that they are whole. It is taken away while a run
//! may write and put back when that run ended well, so that what a killed run left
//! is loaded anew. Data that inserts have made a tenth larger are, too.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thermocline_bench::Result;

use crate::cell::Cell;
use crate::one::fresh_directory;
use crate::page_cache;
use crate::system::System;

const MARK: &str = "loaded.json";
/// Room that loading needs, by the bytes of the rows: copies while a
/// compaction runs, and growth by updates.
const ROOM_FACTOR: u64 = 3;

/// The data of one system.
#[derive(Debug, Clone)]
pub struct Data {
    home: PathBuf,
    rows: u64,
    row_bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    inserted: u64,
}

/// The directory of all data of one size.
pub fn group(root: &Path, cell: &Cell, memory_limit: u64) -> PathBuf {
    let rows = cell.rows(memory_limit);
    root.join(format!("{rows}-rows-of-{}", cell.row_bytes))
}

impl Data {
    /// A system's data for a cell, there or not.
    pub fn new(root: &Path, cell: &Cell, memory_limit: u64, system: System) -> Self {
        Data {
            home: group(root, cell, memory_limit).join(system.data_name()),
            rows: cell.rows(memory_limit),
            row_bytes: cell.row_bytes,
        }
    }

    /// The system's own directory.
    pub fn directory(&self) -> PathBuf {
        self.home.join("data")
    }

    /// A file beside it, for what a run prints.
    pub fn log(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Rows that were inserted after the load; None: not loaded.
    pub fn inserted(&self) -> Option<u64> {
        let text = fs::read(self.home.join(MARK)).ok()?;
        let mark: Mark = serde_json::from_slice(&text).ok()?;
        Some(mark.inserted)
    }

    /// An empty directory to load into.
    ///
    /// # Errors
    /// There is no room for the rows.
    pub fn begin_load(&self) -> Result<()> {
        fresh_directory(&self.home)?;
        fs::create_dir(self.directory())?;
        let wanted = ROOM_FACTOR * self.rows * self.row_bytes as u64;
        let free = page_cache::free_bytes(&self.home)?;
        if free < wanted {
            return Err(format!(
                "{} has {} MB free, and {} MB may be needed",
                self.home.display(),
                free >> 20,
                wanted >> 20
            )
            .into());
        }
        Ok(())
    }

    /// The data are whole.
    pub fn mark(&self, inserted: u64) -> Result<()> {
        if inserted > self.rows / 10 {
            return self.unmark();
        }
        let text = serde_json::to_string(&Mark { inserted })?;
        Ok(fs::write(self.home.join(MARK), text)?)
    }

    /// The data may not be whole.
    pub fn unmark(&self) -> Result<()> {
        match fs::remove_file(self.home.join(MARK)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn data_are_used_again_until_they_grew_or_may_be_damaged() {
        let root = tempfile::tempdir().expect("a directory");
        let cell = Matrix::Quick.cells()[0];
        let data = Data::new(root.path(), &cell, 64 << 20, System::Lmdb);
        assert_eq!(data.inserted(), None);
        data.begin_load().expect("there is room");
        assert_eq!(data.inserted(), None);
        data.mark(0).expect("marked");
        assert_eq!(data.inserted(), Some(0));
        data.mark(17).expect("marked");
        assert_eq!(data.inserted(), Some(17));
        data.unmark().expect("unmarked");
        data.unmark().expect("twice does no harm");
        assert_eq!(data.inserted(), None);
        data.mark(cell.rows(64 << 20)).expect("marked");
        assert_eq!(data.inserted(), None, "it grew too much");
        let buffered = Data::new(root.path(), &cell, 64 << 20, System::RocksdbBuffered);
        let direct = Data::new(root.path(), &cell, 64 << 20, System::Rocksdb);
        assert_eq!(buffered.directory(), direct.directory());
    }

    #[test]
    fn rows_without_room_are_refused() {
        let root = tempfile::tempdir().expect("a directory");
        let cell = Matrix::Quick.cells()[0];
        let data = Data::new(root.path(), &cell, 1 << 60, System::Lmdb);
        assert!(data.begin_load().is_err());
    }
}
