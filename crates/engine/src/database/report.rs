//! What the system views show: memory by use, tables, the device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use thermocline_device::{CountersSnapshot, DeviceProfile};

use crate::catalog::Table;
use crate::memory::account::ClientPoolReport;
use crate::memory::floor::floor_bytes;
use crate::parts::Parts;
use crate::policy::Policy;
use crate::policy::table_policy::TablePolicy;
use crate::rows::partition::Partition;
use crate::rows::row_state::{PolicyCounts, TablePartition};

/// Memory by use, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// `memory_limit`.
    pub limit: u64,
    /// Resident memory at the last reading (a few milliseconds ago).
    pub resident: u64,
    /// The highest reading.
    pub resident_max: u64,
    /// Arenas: tuples and their free slots.
    pub arena: u64,
    /// Of that, in huge pages.
    pub huge_pages: u64,
    /// Of the arenas, tuples.
    pub tuples: u64,
    /// Row directories.
    pub directories: u64,
    /// Indexes.
    pub indexes: u64,
    /// What a cold tuple keeps in memory: its share of directories and indexes;
    /// 0 if none is cold.
    pub per_cold_tuple: u64,
    /// Cold tuples.
    pub cold_tuples: u64,
    /// Of the limit, what directories, indexes and catalog may not take: it is kept for
    /// hot rows.
    pub floor: u64,
    /// Directories, indexes and catalog, as counted a moment ago.
    pub metadata: u64,
    /// What these may take; rows and indexes beyond it are refused.
    pub metadata_max: u64,
    /// Before-images for open snapshots.
    pub versions: u64,
    /// What these may take; beyond it the oldest snapshot ends.
    pub versions_max: u64,
    /// The log's buffers.
    pub log_buffers: u64,
    /// Buffers of device reads under way.
    pub read_buffers: u64,
    /// Evicted tuples that statements have fetched.
    pub fetched: u64,
    /// Memory that stands for devices, beside `resident` and the limit.
    pub devices: u64,
    /// Chunks of columns that were read and stay.
    pub column_chunks: u64,
    /// Pages of warm columns, and the most that these may take.
    pub warm_buffer: u64,
    /// See `warm_buffer`.
    pub warm_buffer_max: u64,
    /// Reserved by analytical statements.
    pub analytical: u64,
    /// Open snapshots.
    pub snapshots: u64,
    /// What clients cause.
    pub clients: ClientPoolReport,
}

/// A table's tuples and bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableReport {
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Object id.
    pub oid: u32,
    /// Tuples in memory.
    pub hot: u64,
    /// Tuples that are only on the device.
    pub cold: u64,
    /// Bytes of hot tuples.
    pub hot_bytes: u64,
    /// Bytes of directory and indexes.
    pub metadata_bytes: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of blocks on the device.
    pub block_bytes: u64,
    /// Records in blocks that are no tuple's any more.
    pub holes: u64,
}

/// A table's policy, and what it has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyReport {
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Object id.
    pub oid: u32,
    /// What the table says, and so where each choice comes from.
    pub says: TablePolicy,
    /// What is in force.
    pub policy: Policy,
    /// What was done since the start, or since the table was last emptied.
    pub counts: PolicyCounts,
}

/// A device and what was done with it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceReport {
    /// Path, file system, how it is accessed.
    pub description: String,
    /// What it is like.
    pub profile: DeviceProfile,
    /// Counters and latencies.
    pub counters: CountersSnapshot,
    /// Free bytes.
    pub free_bytes: u64,
    /// Bytes of the block file that blocks take.
    pub block_bytes: u64,
    /// The end of the log.
    pub log_end: u64,
    /// The log is durable up to here.
    pub log_durable: u64,
}

/// What checkpoints did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// The number of the last one.
    pub number: u64,
    /// How long it took, in milliseconds.
    pub last_milliseconds: u64,
    /// Bytes of images that it wrote; blocks are counted apart.
    pub last_image_bytes: u64,
    /// The longest time since the start that any held a partition, in
    /// microseconds.
    pub longest_hold_us: u64,
}

/// What blocks hold of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableBlocks {
    /// Blocks.
    pub blocks: u64,
    /// Their bytes on the device.
    pub bytes: u64,
    /// Records in them.
    pub records: u64,
    /// Records that are nobody's any more.
    pub holes: u64,
}

/// The rows that are in memory, and their bytes.
fn hot_rows(rows: &TablePartition) -> (u64, u64) {
    let hot = rows.live().saturating_sub(rows.cold());
    (hot, rows.heap().live_bytes() as u64)
}

impl Parts {
    /// Bytes of the catalog and of all directories and indexes.
    pub(crate) fn metadata_bytes(&self) -> u64 {
        let catalog = self.catalog().memory_bytes();
        let partitions = self.all_partitions().iter().map(|partition| {
            let state = partition.lock_any();
            let kinds = state.tables.kinds();
            kinds.map(|kind| kind.metadata_bytes() as u64).sum::<u64>()
        });
        catalog + partitions.sum::<u64>()
    }

    /// Memory by use, as far as no partition need be asked, which may be busy: without the parts
    /// of the arena, directories, indexes and versions.
    pub fn memory_gauges(&self) -> MemoryReport {
        MemoryReport {
            limit: self.memory().limit(),
            resident: self.memory().read_resident(),
            resident_max: self.memory().resident_max(),
            arena: self.arena().used_bytes() as u64,
            huge_pages: self.arena().huge_bytes() as u64,
            floor: floor_bytes(self.memory().limit()),
            metadata: self.memory().floor.metadata(),
            metadata_max: self.memory().metadata_max(),
            versions_max: self.versions_limit(),
            log_buffers: self.log().memory_bytes() as u64,
            read_buffers: self.fetcher().in_flight_bytes() as u64,
            fetched: self.memory().fetched.held(),
            devices: thermocline_device::device_bytes(),
            column_chunks: self.fetcher().groups.cache.bytes(),
            warm_buffer: self.fetcher().groups.warm.bytes(),
            warm_buffer_max: self.fetcher().groups.warm.room(),
            analytical: self.memory().reserved(),
            snapshots: self.transactions().open_snapshots() as u64,
            clients: self.clients().report(),
            ..MemoryReport::default()
        }
    }

    /// Memory by use.
    pub fn memory_report(&self) -> MemoryReport {
        let mut report = self.memory_gauges();
        let (mut cold, mut of_cold) = (0, 0.0);
        for partition in self.all_partitions() {
            let state = partition.lock_any();
            report.versions += state.versions.bytes() as u64;
            for (_, rows) in state.tables.all_rows() {
                report.tuples += rows.heap().live_bytes() as u64;
                report.directories += rows.directory().bytes() as u64;
                let indexes: usize = rows.indexes().iter().map(|i| i.index.bytes()).sum();
                report.indexes += indexes as u64;
                cold += rows.cold();
                let share = rows.cold() as f64 / rows.live().max(1) as f64;
                of_cold += rows.metadata_bytes() as f64 * share;
            }
        }
        report.cold_tuples = cold;
        report.per_cold_tuple = (of_cold / cold.max(1) as f64).ceil() as u64;
        report
    }

    /// The tables, in order of schema and name.
    pub fn table_reports(&self) -> Vec<TableReport> {
        let catalog = self.catalog();
        let blocks = self.table_blocks();
        let mut reports: Vec<TableReport> = catalog
            .tables
            .values()
            .map(|table| {
                let mut report = TableReport {
                    schema: table.def.schema.clone(),
                    name: table.def.name.clone(),
                    oid: table.def.oid,
                    ..TableReport::default()
                };
                for partition in self.all_partitions() {
                    let state = partition.lock_any();
                    if let Some(rows) = state.tables.rows(table.def.storage) {
                        let (hot, hot_bytes) = hot_rows(rows);
                        report.cold += rows.cold();
                        report.hot += hot;
                        report.hot_bytes += hot_bytes;
                        report.metadata_bytes += rows.metadata_bytes() as u64;
                    }
                }
                if let Some(of) = blocks.get(&table.def.storage) {
                    report.blocks = of.blocks;
                    report.block_bytes = of.bytes;
                    report.holes = of.holes;
                }
                report
            })
            .collect();
        reports.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        reports
    }

    /// The policies of all tables, in order of schema and name.
    pub fn policy_reports(&self) -> Vec<PolicyReport> {
        let catalog = self.catalog();
        let report = |table: &Arc<Table>| {
            let mut counts = PolicyCounts::default();
            for partition in self.all_partitions() {
                let state = partition.lock_any();
                if let Some(rows) = state.tables.rows(table.def.storage) {
                    counts.add(rows.counts());
                }
            }
            PolicyReport {
                schema: table.def.schema.clone(),
                name: table.def.name.clone(),
                oid: table.def.oid,
                says: table.policy,
                policy: self.policy_of(table),
                counts,
            }
        };
        let mut reports: Vec<_> = catalog.tables.values().map(report).collect();
        reports.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        reports
    }

    /// The rows of a table that are in memory, and their bytes; of partitions that are there.
    pub fn hot_rows(&self, table: &Table) -> (u64, u64) {
        let there = self
            .all_partitions()
            .iter()
            .filter_map(Partition::lock_if_there);
        let of_partitions = there.filter_map(|state| {
            let rows = state.tables.rows(table.def.storage);
            rows.map(hot_rows)
        });
        of_partitions.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    /// What lies in blocks, by the tables' storage numbers. It looks at all blocks.
    pub fn table_blocks(&self) -> BTreeMap<u32, TableBlocks> {
        let mut blocks: BTreeMap<u32, TableBlocks> = BTreeMap::new();
        self.blocks().each_block(|block| {
            let of = blocks.entry(block.table).or_default();
            of.blocks += 1;
            of.bytes += block.device_bytes;
            of.records += u64::from(block.records);
            of.holes += u64::from(block.records - block.live_records);
        });
        blocks
    }

    /// The devices.
    pub fn device_reports(&self) -> Vec<DeviceReport> {
        let statistics = self.blocks().statistics();
        let mut reports = vec![DeviceReport {
            description: self.device().describe(),
            profile: self.device().profile(),
            counters: self.device().counters().snapshot(),
            free_bytes: self.device().free_bytes().unwrap_or(0),
            block_bytes: statistics.device_bytes,
            log_end: self.log().appended_lsn(),
            log_durable: self.log().durable_lsn(),
        }];
        for (device, number) in self.tablespaces().devices() {
            let file = self.blocks().statistics_of(number);
            reports.push(DeviceReport {
                description: device.describe(),
                profile: device.profile(),
                counters: device.counters().snapshot(),
                free_bytes: device.free_bytes().unwrap_or(0),
                block_bytes: file.file_bytes - file.free_bytes,
                log_end: 0,
                log_durable: 0,
            });
        }
        reports
    }

    /// Checkpoints.
    pub fn checkpoint_report(&self) -> CheckpointReport {
        let state = self.checkpoint_state();
        CheckpointReport {
            number: state.number.load(Ordering::Relaxed),
            last_milliseconds: state.last_duration_ms.load(Ordering::Relaxed),
            last_image_bytes: state.last_image_bytes.load(Ordering::Relaxed),
            longest_hold_us: state.longest_hold_us.load(Ordering::Relaxed),
        }
    }
}
