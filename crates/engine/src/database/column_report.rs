//! What the view of columns shows: of each column of a column table, what its chunks take on the device and in
//! memory, and how they are encoded. The directories of all groups are looked at; those that are not in
//! memory are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use thermocline_device::block_on;
use thermocline_storage::block_store::BlockInfo;
use thermocline_storage::columns::{COLUMNS_EXTENT, Encoding};
use thermocline_storage::row_directory::ColdAddress;

use crate::catalog::{ColumnDef, Residence, Table};
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::parts::Parts;
use crate::rows::planned_read::PlannedRead;
use crate::rows::row_group::GroupCounts;

/// A column of a column table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnReport {
    /// The table's schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Its object id.
    pub oid: u32,
    /// The column's name.
    pub column: String,
    /// Rows of the table in the main, and in the delta.
    pub main_rows: u64,
    /// See `main_rows`.
    pub delta_rows: u64,
    /// Row groups that have the column: it may be younger than others.
    pub groups: u64,
    /// How many NULLs are in them.
    pub nulls: u64,
    /// Bytes of its chunks on the device.
    pub device_bytes: u64,
    /// Bytes of those chunks that are in memory, whole or by pages.
    pub memory_bytes: u64,
    /// Groups whose chunk of the column is in memory whole.
    pub groups_in_memory: u64,
    /// Where the column is kept.
    pub residence: Residence,
    /// When the table's columns leave memory: from 0, the last, to 9.
    pub unload_priority: u8,
    /// Groups by how the column is encoded there.
    pub encodings: BTreeMap<&'static str, u64>,
    /// Groups of the table that scans came to since the start, and those in which no row was meant.
    pub scanned: GroupCounts,
}

impl ColumnReport {
    /// What a column is: `warm`; or `hot`, `partly loaded`, `cold`, by what of it is in memory.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.residence {
            Residence::Warm => "warm",
            _ if self.groups_in_memory == self.groups => "hot",
            _ if self.memory_bytes > 0 => "partly loaded",
            _ => "cold",
        }
    }
}

impl Parts {
    /// The columns of all column tables, in order of schema, table and place.
    ///
    /// # Errors
    /// The device's; XX001 where a group's directory is damaged.
    pub fn column_reports(&self) -> Result<Vec<ColumnReport>> {
        let catalog = self.catalog();
        let mut tables: Vec<&Arc<Table>> = catalog.tables.values().collect();
        tables.retain(|table| table.is_columns());
        tables.sort_by(|a, b| (&a.def.schema, &a.def.name).cmp(&(&b.def.schema, &b.def.name)));
        let _pin = self.blocks().pin();
        let mut blocks: BTreeMap<u32, Vec<BlockInfo>> = BTreeMap::new();
        self.blocks()
            .each_block(|info| blocks.entry(info.table).or_default().push(info));
        let mut reports = Vec::new();
        for table in tables {
            let of_table = blocks.get(&table.def.storage);
            self.columns_of(table, of_table.map_or(&[], Vec::as_slice), &mut reports)?;
        }
        Ok(reports)
    }

    fn columns_of(
        &self,
        table: &Table,
        blocks: &[BlockInfo],
        reports: &mut Vec<ColumnReport>,
    ) -> Result<()> {
        let storage = table.def.storage;
        let groups = &self.fetcher().groups;
        let (mut main_rows, mut delta_rows) = (0, 0);
        for partition in self.all_partitions() {
            let state = partition.lock_any();
            if let Some(rows) = state.tables.rows(storage) {
                main_rows += rows.cold();
                delta_rows += rows.live().saturating_sub(rows.cold());
            }
        }
        let report = |column: &ColumnDef| ColumnReport {
            schema: table.def.schema.clone(),
            table: table.def.name.clone(),
            oid: table.def.oid,
            column: column.name.clone(),
            residence: column.residence,
            unload_priority: table.def.unload_priority(),
            main_rows,
            delta_rows,
            scanned: groups.counts(storage),
            ..ColumnReport::default()
        };
        let columns = &table.def.columns;
        let mut of_columns: Vec<ColumnReport> = columns.iter().map(report).collect();
        for info in blocks {
            let group = block_on(groups.opened(&directory_read(info)))?;
            let directory = &group.directory;
            for (column, report) in of_columns.iter_mut().enumerate() {
                let number = directory.chunk_of(column);
                let (Some(zone), Some(chunk)) = (directory.zone(column), directory.chunk(number))
                else {
                    continue;
                };
                report.groups += 1;
                report.nulls += u64::from(zone.nulls);
                report.device_bytes += u64::from(chunk.bytes);
                report.memory_bytes += groups.bytes_in_memory(&group, column);
                report.groups_in_memory += u64::from(groups.is_in_memory(&group, column));
                let encoding = zone.encoding.map_or("unknown", Encoding::name);
                *report.encodings.entry(encoding).or_default() += 1;
            }
        }
        let shown = of_columns.into_iter().zip(columns);
        reports.extend(
            shown
                .filter(|(_, column)| column.is_seen())
                .map(|(report, _)| report),
        );
        Ok(())
    }
}

/// Whoever wants nothing but the directory of a group reads for its first position.
pub(crate) fn directory_read(info: &BlockInfo) -> PlannedRead {
    PlannedRead {
        row: RowId::new(info.partition, 0),
        address: ColdAddress {
            block: info.id,
            slot: 0,
            extent: COLUMNS_EXTENT,
        },
        storage: info.table,
        tablespace: info.tablespace,
        block_offset: info.offset,
        block_bytes: info.device_bytes,
        compressed: false,
        whole: false,
    }
}
