//! What there is to say of each tablespace.

use hashbrown::HashMap;
use thermocline_device::DeviceKind;
use thermocline_storage::block_store::HOME;

use crate::catalog::tablespace::Measured;
use crate::database::Database;

/// A tablespace, for people. Sizes are in bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TablespaceReport {
    /// Object id; 0: the database's own directory.
    pub oid: u32,
    /// Name; empty for the database's own directory.
    pub name: String,
    /// Where it lies; empty: in the database's own directory.
    pub directory: String,
    /// What its device is taken for; None: for what the server's is.
    pub device: Option<DeviceKind>,
    /// What it was found to be like, where nothing said so.
    pub measured: Option<Measured>,
    /// The device is emulated.
    pub emulated: Option<DeviceKind>,
    /// Why it is not there.
    pub missing: Option<String>,
    /// It has refused a block in the last seconds.
    pub refuses: bool,
    /// What its blocks may take.
    pub capacity: Option<u64>,
    /// Tables whose evicted rows go there.
    pub tables: u64,
    /// Blocks there, and what they take.
    pub blocks: u64,
    /// See `blocks`.
    pub block_bytes: u64,
    /// Of these, blocks of tables that have another tablespace: they are moved, or will be.
    pub leaving_blocks: u64,
    /// Blocks of its tables that lie elsewhere.
    pub coming_blocks: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// Free in the file.
    pub free_bytes: u64,
}

impl Database {
    /// The tablespaces, the database's own directory first, in the order of their numbers.
    #[must_use]
    pub fn tablespace_reports(&self) -> Vec<TablespaceReport> {
        let catalog = self.catalog();
        let now = self.clock().now();
        let mut reports = vec![(HOME, TablespaceReport::default())];
        for def in catalog.tablespaces.values() {
            let options = self.tablespaces().options_of(def);
            let place = self.tablespaces().place(def.oid);
            let report = TablespaceReport {
                oid: def.oid,
                name: def.name.clone(),
                directory: place.map(|place| place.directory).unwrap_or_default(),
                device: options.kind(),
                measured: options.measured,
                emulated: options.emulate,
                capacity: options.capacity,
                refuses: self.tablespaces().refuses(def.number, now),
                ..TablespaceReport::default()
            };
            reports.push((def.number, report));
        }
        reports.sort_by_key(|(number, _)| *number);
        let places: HashMap<u16, usize> = (reports.iter().enumerate())
            .map(|(place, (number, _))| (*number, place))
            .collect();
        for (number, report) in &mut reports {
            let file = self.blocks().statistics_of(*number);
            report.missing = file.missing;
            report.file_bytes = file.file_bytes;
            report.free_bytes = file.free_bytes;
        }
        let mut belong = HashMap::new();
        for table in catalog.tables.values() {
            let number = self.tablespace_of(table);
            belong.insert(table.def.storage, number);
            if let Some(place) = places.get(&number) {
                reports[*place].1.tables += 1;
            }
        }
        self.blocks().each_block(|block| {
            if let Some(place) = places.get(&block.tablespace) {
                let report = &mut reports[*place].1;
                report.blocks += 1;
                report.block_bytes += block.device_bytes;
            }
            let belongs = belong.get(&block.table).copied();
            let Some(number) = belongs.filter(|number| *number != block.tablespace) else {
                return;
            };
            if let Some(place) = places.get(&block.tablespace) {
                reports[*place].1.leaving_blocks += 1;
            }
            if let Some(place) = places.get(&number) {
                reports[*place].1.coming_blocks += 1;
            }
        });
        reports.into_iter().map(|(_, report)| report).collect()
    }
}
