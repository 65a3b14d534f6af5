//! Columns that come into memory and leave it by command (002 §2.1): `LOAD` and `UNLOAD`, and after a
//! start what was loaded before it. Where a column is kept is of its table's definition; here is what is
//! done about it, group by group.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thermocline_storage::block_store::BlockInfo;

use crate::catalog::{Residence, Table};
use crate::database::Database;
use crate::database::column_report::directory_read;
use crate::ground::error::{Error, Result};
use crate::memory::{WARM_BUFFER_MIN, columns_most, warm_buffer_most, warm_room};
use crate::transaction::RunOptions;
use thermocline_device::block_on;

impl Database {
    /// Whether the chunks of these columns have room in memory.
    ///
    /// # Errors
    /// 53200 if they have not; XX001 where the directory of a group is damaged; 57014 on cancel.
    pub async fn check_columns_fit(
        &self,
        options: &RunOptions,
        table: &Table,
        columns: &[usize],
    ) -> Result<()> {
        let _pin = self.blocks().pin();
        let groups = &self.fetcher().groups;
        let mut bytes = 0;
        for info in self.groups_of(table) {
            options.cancel.check()?;
            let group = groups.opened(&directory_read(&info)).await?;
            let chunk = |column: &usize| group.directory.chunk(group.directory.chunk_of(*column));
            let chunks = columns.iter().filter_map(chunk);
            bytes += chunks.map(|chunk| u64::from(chunk.bytes)).sum::<u64>();
        }
        let room = columns_most(self.memory().limit());
        if bytes <= room {
            return Ok(());
        }
        let mb = |bytes: u64| bytes.div_ceil(1 << 20);
        Err(Error::OutOfMemory(format!(
            "the columns of \"{}\" take {} MB, and columns may have {} MB, a quarter of memory_limit: load fewer of them, \
             have some WARM, or raise memory_limit",
            table.def.name,
            mb(bytes),
            mb(room)
        )))
    }

    /// Reads all chunks of these columns into memory, as long as they have room there.
    ///
    /// # Errors
    /// The device's; XX001 where a chunk is damaged; 57014 on cancel: what was read stays.
    pub async fn load_columns(
        &self,
        options: &RunOptions,
        table: &Table,
        columns: &[usize],
    ) -> Result<()> {
        let _pin = self.blocks().pin();
        let groups = &self.fetcher().groups;
        if self.memory().has_room() {
            groups.cache.set_room(columns_most(self.memory().limit()));
        }
        for info in self.groups_of(table) {
            self.check_open()?;
            options.cancel.check()?;
            let read = directory_read(&info);
            let mut group = groups.opened(&read).await?;
            groups.load(&read, &mut group, Some(columns)).await?;
        }
        Ok(())
    }

    /// Lets these columns leave memory; how many bytes of them were there.
    ///
    /// # Errors
    /// The device's; XX001 where the directory of a group is damaged; 57014 on cancel.
    pub async fn unload_columns(
        &self,
        options: &RunOptions,
        table: &Table,
        columns: &[usize],
    ) -> Result<u64> {
        let _pin = self.blocks().pin();
        let groups = &self.fetcher().groups;
        let mut bytes = 0;
        for info in self.groups_of(table) {
            options.cancel.check()?;
            let group = groups.opened(&directory_read(&info)).await?;
            for column in columns {
                bytes += groups.bytes_in_memory(&group, *column);
                groups.let_go(&group, *column);
            }
        }
        Ok(bytes)
    }

    /// Pages of row groups that were read for single rows since the database was opened.
    pub fn column_pages_read(&self) -> u64 {
        self.fetcher().groups.pages_read.load(Ordering::Relaxed)
    }

    /// Bytes that pages of warm columns may take.
    pub fn warm_buffer(&self) -> u64 {
        self.fetcher().groups.warm.room()
    }

    /// Whether pages of warm columns may be given so many bytes.
    ///
    /// # Errors
    /// 22023 below a megabyte, or above a quarter of the limit.
    pub fn check_warm_buffer(&self, bytes: u64) -> Result<()> {
        let most = warm_buffer_most(self.memory().limit());
        match (WARM_BUFFER_MIN..=most).contains(&bytes) {
            true => Ok(()),
            false => Err(Error::catalog(
                "22023",
                format!(
                    "warm_buffer may be from {} MB to {} MB, a quarter of memory_limit",
                    WARM_BUFFER_MIN >> 20,
                    most >> 20
                ),
            )),
        }
    }

    /// Gives pages of warm columns so many bytes; None: a thirty-second of the limit. It is kept
    /// within what [`Database::check_warm_buffer`] allows.
    pub fn set_warm_buffer(&self, bytes: Option<u64>) {
        let room = warm_room(self.memory().limit(), bytes);
        self.fetcher().groups.warm.set_room(room);
    }

    /// After a start, brings in the columns that were loaded by command, as long as nobody else wants the
    /// room.
    pub(crate) fn bring_back_loaded(&self) -> Result<()> {
        let catalog = self.catalog();
        let mut tables: Vec<&Arc<Table>> = catalog.tables.values().collect();
        tables.retain(|table| table.is_columns());
        tables.sort_by_key(|table| table.def.unload_priority());
        let groups = &self.fetcher().groups;
        for table in tables {
            let is_hot = |column: &usize| table.def.columns[*column].residence == Residence::Hot;
            let hot: Vec<usize> = (0..table.def.columns.len()).filter(is_hot).collect();
            if hot.is_empty() {
                continue;
            }
            let _pin = self.blocks().pin();
            for info in self.groups_of(table) {
                if self.is_stopping() || !self.memory().has_room() {
                    return Ok(());
                }
                groups.cache.set_room(columns_most(self.memory().limit()));
                let read = directory_read(&info);
                let loaded = block_on(async {
                    let mut group = groups.opened(&read).await?;
                    groups.load(&read, &mut group, Some(&hot)).await
                });
                match loaded {
                    // The rest can be loaded; who needs the damaged chunk is told so.
                    Err(error @ Error::Corrupt(_)) => {
                        self.report(&format!("loading columns again: {error}"));
                    }
                    other => other?,
                }
            }
        }
        Ok(())
    }

    /// The groups of a table.
    fn groups_of(&self, table: &Table) -> Vec<BlockInfo> {
        let mut blocks = Vec::new();
        self.blocks().each_block(|info| {
            if info.table == table.def.storage {
                blocks.push(info);
            }
        });
        blocks
    }
}
