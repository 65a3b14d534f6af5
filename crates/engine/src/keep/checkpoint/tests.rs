//! Chains of images against the partitions they were made of, and against a
//! model after crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use thermocline_device::block_on;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_storage::arena::Arena;
use thermocline_storage::block_store::BlockInfo;
use thermocline_storage::row_directory::Word;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use crate::catalog::ddl::Change;
use crate::catalog::{ColumnDef, IndexDef, IndexKind, Table, TableDef};
use crate::cold::compaction::Compactor;
use crate::cold::evict::Evictor;
use crate::database::Database;
use crate::database::config::Config;
use crate::ground::scope::Scope;
use crate::keep::checkpoint::{Last, Pace, Purpose};
use crate::policy::{Identification, Merge, Policy};
use crate::restart::images::{Restored, restore_partition};
use crate::rows::index::Index;
use crate::rows::partition::PartitionState;
use crate::rows::row_state::{DEAD, TablePartition};
use crate::run::interactive::Transaction;
use crate::transaction::{Isolation, RunOptions};

const PARTITIONS: usize = 2;
const BLOCK_BYTES: u32 = 64 << 10;

#[derive(Clone, Debug)]
enum Step {
    /// Writes so many rows from an id on.
    Put {
        id: i64,
        rows: u16,
        bytes: u16,
    },
    Delete {
        id: i64,
        rows: u16,
    },
    /// Reads them, so that they become warm, and hot.
    Read {
        id: i64,
        rows: u16,
    },
    Evict,
    /// Evicts some, with a checkpoint between copying and writing.
    EvictAroundCheckpoint,
    Compact,
    /// A transaction inserts rows and stays open.
    Begin {
        id: i64,
    },
    Commit,
    Checkpoint,
    Close,
    Crash {
        seed: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0i64..3000;
    prop_oneof![
        6 => (id.clone(), 1u16..300, 0u16..300)
            .prop_map(|(id, rows, bytes)| Step::Put { id, rows, bytes }),
        2 => (id.clone(), 1u16..150).prop_map(|(id, rows)| Step::Delete { id, rows }),
        2 => (id.clone(), 1u16..150).prop_map(|(id, rows)| Step::Read { id, rows }),
        4 => Just(Step::Evict),
        1 => Just(Step::EvictAroundCheckpoint),
        2 => Just(Step::Compact),
        1 => (0i64..100).prop_map(|id| Step::Begin { id: 10_000 + id * 100 }),
        1 => Just(Step::Commit),
        3 => Just(Step::Checkpoint),
        1 => Just(Step::Close),
        2 => any::<u64>().prop_map(|seed| Step::Crash { seed }),
    ]
}

fn column(name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, data_type)
    }
}

fn index(db: &Database, name: &str, column: usize, kind: IndexKind) -> IndexDef {
    IndexDef {
        oid: db.allocate_oid(),
        name: name.into(),
        columns: vec![column],
        unique: column == 0,
        primary: column == 0,
        constraint: column == 0,
        kind,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    }
}

/// (id bigint primary key, few bigint, text), with an index on `few` whose
/// keys have many rows each.
fn make_table(db: &Arc<Database>, kinds: [IndexKind; 2]) {
    let def = TableDef {
        indexes: vec![
            index(db, "t_pkey", 0, kinds[0]),
            index(db, "t_few", 1, kinds[1]),
        ],
        partition_key: vec![0],
        ..TableDef::new(
            db.allocate_oid(),
            "t",
            vec![
                column("id", DataType::BigInt),
                column("few", DataType::BigInt),
                column("text", DataType::Text),
            ],
        )
    };
    let options = RunOptions::new();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    block_on(db.ddl(&mut txn, &options, Change::CreateTable(def))).expect("makes the table");
    block_on(db.commit(txn, &options)).expect("commits");
}

fn open(device: &SimulatedDevice) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device)
        .memory_limit(64 << 30)
        .partitions(PARTITIONS as u16);
    config.background = false;
    config.log_segment_bytes = 256 << 10;
    config.policy = Some(Policy {
        identification: Identification::Fifo,
        merge: Merge::Always,
        block_bytes: BLOCK_BYTES,
        ..Policy::default()
    });
    Database::open(config).expect("opens")
}

/// A row of the model: `few` and the text.
type Row = (i64, String);

struct Run {
    device: SimulatedDevice,
    db: Arc<Database>,
    model: BTreeMap<i64, Row>,
    open: Vec<(Transaction, Vec<(i64, Row)>)>,
    writes: i64,
}

impl Run {
    /// An empty table with indexes of these kinds.
    fn new(kinds: [IndexKind; 2]) -> Self {
        let device = SimulatedDevice::new();
        let db = open(&device);
        make_table(&db, kinds);
        Run {
            device,
            db,
            model: BTreeMap::new(),
            open: Vec::new(),
            writes: 0,
        }
    }

    fn table(&self) -> Arc<Table> {
        let table = self.db.catalog().table_by_name("public", "t").cloned();
        table.expect("the table is there")
    }

    fn row(&mut self, id: i64, bytes: usize) -> Row {
        self.writes += 1;
        let text = format!("{}:{}", self.writes, "x".repeat(bytes));
        (id * 7 % 5, text)
    }

    fn scope(table: &Table, id: i64) -> Scope {
        match table.partition_of_values(&[ValueRef::BigInt(id)]) {
            Some(partition) => Scope::One(partition),
            None => Scope::All,
        }
    }

    fn tuple(table: &Table, id: i64, (few, text): &Row) -> Vec<u8> {
        let mut tuple = Vec::new();
        let values = [
            ValueRef::BigInt(id),
            ValueRef::BigInt(*few),
            ValueRef::Text(text),
        ];
        table.encode_tuple(&values, &mut tuple);
        tuple
    }

    fn key(table: &Table, index: usize, value: i64) -> Vec<u8> {
        let mut key = Vec::new();
        table.encode_index_key(index, &[ValueRef::BigInt(value)], &mut key);
        key
    }

    fn put(&mut self, table: &Table, id: i64, bytes: usize) {
        let row = self.row(id, bytes);
        let tuple = Self::tuple(table, id, &row);
        let key = Self::key(table, 0, id);
        block_on(
            self.db
                .one_shot(&RunOptions::new(), Self::scope(table, id), |access| {
                    let mut rows = Vec::new();
                    access.find(table, 0, &key, &mut rows)?;
                    match rows.first() {
                        Some(row) => access.update(table, *row, &tuple),
                        None => access.insert(table, &tuple),
                    }
                }),
        )
        .expect("writes");
        self.model.insert(id, row);
    }

    fn delete(&mut self, table: &Table, id: i64) {
        let key = Self::key(table, 0, id);
        block_on(
            self.db
                .one_shot(&RunOptions::new(), Self::scope(table, id), |access| {
                    let mut rows = Vec::new();
                    access.find(table, 0, &key, &mut rows)?;
                    rows.iter().try_for_each(|row| access.delete(table, *row))
                }),
        )
        .expect("deletes");
        self.model.remove(&id);
    }

    fn read(&self, table: &Table, id: i64) -> Option<Row> {
        let key = Self::key(table, 0, id);
        block_on(
            self.db
                .one_shot(&RunOptions::new(), Self::scope(table, id), |access| {
                    let found = access.get(table, 0, &key)?;
                    Ok(found.map(|(_, tuple)| {
                        let (ValueRef::BigInt(few), ValueRef::Text(text)) =
                            (table.value(tuple, 1), table.value(tuple, 2))
                        else {
                            panic!("values of other types");
                        };
                        (few, text.to_owned())
                    }))
                }),
        )
        .expect("reads")
    }

    fn begin(&mut self, table: &Table, first: i64) {
        let mut txn = self.db.begin(Isolation::ReadCommitted, false);
        let taken = |run: &Run, id| {
            run.model.contains_key(&id) || run.open.iter().flat_map(|o| &o.1).any(|r| r.0 == id)
        };
        let ids: Vec<i64> = (first..first + 50).filter(|id| !taken(self, *id)).collect();
        let rows: Vec<(i64, Row)> = ids.iter().map(|id| (*id, self.row(*id, 20))).collect();
        let tuples: Vec<_> = rows
            .iter()
            .map(|(id, r)| Self::tuple(table, *id, r))
            .collect();
        let options = RunOptions::new();
        block_on(
            self.db
                .in_transaction(&mut txn, &options, Scope::All, |access| {
                    tuples
                        .iter()
                        .try_for_each(|tuple| access.insert(table, tuple).map(|_| ()))
                }),
        )
        .expect("inserts");
        self.open.push((txn, rows));
    }

    fn compact(&self, table: &Table) {
        let mut blocks: Vec<BlockInfo> = self.db.blocks().blocks();
        blocks.retain(|block| block.table == table.def.storage && block.live_records > 0);
        blocks.sort_by(|a, b| a.live_share().total_cmp(&b.live_share()));
        if let Some(first) = blocks.first() {
            let group: Vec<BlockInfo> = blocks
                .iter()
                .filter(|block| block.partition == first.partition)
                .copied()
                .collect();
            let mut compactor = Compactor::new(BLOCK_BYTES);
            compactor.compact(&self.db, &group).expect("compacts");
        }
        for block in self.db.blocks().blocks() {
            if block.live_records == 0 {
                self.db.give_up_block(block.id);
            }
        }
    }

    fn step(&mut self, step: Step) {
        let table = self.table();
        match step {
            Step::Put { id, rows, bytes } => {
                (id..id + i64::from(rows)).for_each(|id| self.put(&table, id, bytes.into()));
            }
            Step::Delete { id, rows } => {
                (id..id + i64::from(rows)).for_each(|id| self.delete(&table, id));
            }
            Step::Read { id, rows } => (id..id + i64::from(rows)).for_each(|id| {
                assert_eq!(self.read(&table, id).as_ref(), self.model.get(&id));
            }),
            Step::Evict => {
                for partition in 0..PARTITIONS {
                    let mut evictor = Evictor::new(BLOCK_BYTES);
                    evictor.evict(&self.db, partition, &table).expect("evicts");
                }
            }
            Step::EvictAroundCheckpoint => {
                let mut evictor = Evictor::new(BLOCK_BYTES);
                evictor.begin(&self.db, 0, &table);
                self.db.run_checkpoint(Purpose::Asked).expect("checkpoints");
                self.check_images(&table, false);
                evictor.end(&self.db, 0, &table).expect("evicts");
            }
            Step::Compact => self.compact(&table),
            Step::Begin { id } => self.begin(&table, id),
            Step::Commit => {
                if let Some((txn, rows)) = self.open.pop() {
                    block_on(self.db.commit(txn, &RunOptions::new())).expect("commits");
                    self.model.extend(rows);
                }
            }
            Step::Checkpoint => {
                self.db.run_checkpoint(Purpose::Asked).expect("checkpoints");
                self.check_images(&table, true);
            }
            Step::Close => {
                self.forget_open();
                self.db.close().expect("closes");
                self.reopen();
                assert_eq!(self.db.recovery_report().records, 0);
            }
            Step::Crash { seed } => {
                self.forget_open();
                self.device.crash(seed);
                self.reopen();
            }
        }
    }

    fn forget_open(&mut self) {
        for (txn, _) in self.open.drain(..) {
            std::mem::forget(txn);
        }
    }

    fn reopen(&mut self) {
        self.db = open(&self.device);
        let table = self.table();
        for id in (0..3500).chain(10_000..20_000) {
            if id % 17 == 0 || self.model.contains_key(&id) {
                assert_eq!(
                    self.read(&table, id).as_ref(),
                    self.model.get(&id),
                    "row {id}"
                );
            }
        }
        assert_eq!(self.db.row_estimate(&table), self.model.len() as u64);
        for few in 0..5 {
            let key = Self::key(&table, 1, few);
            let found = block_on(self.db.one_shot(&RunOptions::new(), Scope::All, |access| {
                let mut rows = Vec::new();
                access.find(&table, 1, &key, &mut rows)?;
                Ok(rows.len())
            }));
            let expected = self.model.values().filter(|row| row.0 == few).count();
            assert_eq!(found.expect("finds"), expected, "rows with few = {few}");
        }
    }

    /// Reads the images back and compares them with the partitions, which have
    /// not changed since.
    fn check_images(&self, table: &Table, counts_blocks: bool) {
        let last = self.db.checkpoint_state().running.lock();
        let mut restored = Restored::default();
        for (partition, chain) in last.chains.iter().enumerate() {
            let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
            let mut copy = PartitionState::new(partition as u16, arena, Arc::default());
            restore_partition(&**self.db.device(), &mut copy, &chain.image, &mut restored)
                .expect("restores");
            let mut state = self.db.all_partitions()[partition].lock();
            assert_eq!(copy.uncommitted.len(), state.uncommitted.len());
            assert_eq!(
                copy.tables.storages().count(),
                state.tables.storages().count()
            );
            compare(state.table_mut(table), copy.table_mut(table));
        }
        if counts_blocks {
            for block in self.db.blocks().blocks() {
                let lives = restored.lives.get(&block.id).copied().unwrap_or(0);
                assert_eq!(lives, block.live_records, "tuples in block {}", block.id);
            }
        }
    }
}

/// What an image says of a row, its temperature aside.
fn saved(rows: &TablePartition, row: u32) -> (Word, Option<Vec<u8>>) {
    let word = rows.directory().get(row);
    let flags = |cold: Word| cold.with_uncommitted(word.is_uncommitted());
    match (word.as_hot(), word.as_cold()) {
        (Some(hot), _) => match rows.copy_of(hot) {
            Some(address) => (flags(Word::cold(address, 0)), None),
            None => {
                let tuple = rows.heap().payload(hot.pointer()).to_vec();
                (flags(Word(1)), Some(tuple))
            }
        },
        (_, Some(cold)) => (flags(Word::cold(cold.address(), 0)), None),
        _ => {
            assert!(word.is_free() || word == DEAD);
            (Word(0), None)
        }
    }
}

fn compare(rows: &TablePartition, copy: &TablePartition) {
    assert_eq!(rows.live(), copy.live());
    assert_eq!(rows.directory().appended(), copy.directory().appended());
    for row in 0..rows.directory().appended() {
        assert_eq!(saved(rows, row), saved(copy, row), "row {row}");
    }
    assert_eq!(rows.indexes().len(), copy.indexes().len());
    for (slot, copied) in rows.indexes().iter().zip(copy.indexes()) {
        assert_eq!(slot.oid, copied.oid);
        match (&slot.index, &copied.index) {
            (Index::BTree(tree), Index::BTree(copied)) => {
                let entries = |tree: &thermocline_storage::btree::BTree| {
                    let mut entries = BTreeSet::new();
                    let _ = tree.scan(Bound::Unbounded, Bound::Unbounded, true, |key, row| {
                        entries.insert((key.to_vec(), row));
                        ControlFlow::<()>::Continue(())
                    });
                    entries
                };
                assert_eq!(entries(tree), entries(copied));
            }
            (Index::Hash(index), Index::Hash(copied)) => {
                assert_eq!(index.len(), copied.len());
                for hash in (0..3000i64).map(|id| {
                    let mut key = Vec::new();
                    key.extend_from_slice(&((id as u64) ^ 1 << 63).to_be_bytes());
                    thermocline_storage::key_hash::key_hash(&key)
                }) {
                    let rows: BTreeSet<u32> = index.candidates(hash).collect();
                    let copies: BTreeSet<u32> = copied.candidates(hash).collect();
                    assert_eq!(rows, copies);
                }
            }
            _ => panic!("an index of another kind"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn base_and_deltas_are_the_partition_and_survive_crashes(
        steps in prop::collection::vec(step(), 1..40),
        hash in any::<bool>(),
    ) {
        let mut run = Run::new(match hash {
            true => [IndexKind::Hash, IndexKind::Hash],
            false => [IndexKind::BTree, IndexKind::BTree],
        });
        for step in steps {
            run.step(step);
        }
        run.forget_open();
        run.device.crash(1);
        run.reopen();
    }
}

/// How many bytes of images a checkpoint writes.
fn image_bytes(db: &Database) -> u64 {
    db.run_checkpoint(Purpose::Asked).expect("checkpoints");
    db.checkpoint_report().last_image_bytes
}

#[test]
fn a_checkpoint_writes_what_changed_and_folds_its_deltas() {
    let mut run = Run::new([IndexKind::Hash, IndexKind::BTree]);
    let table = run.table();
    (0..60_000).for_each(|id| run.put(&table, id, 0));
    let whole = image_bytes(&run.db);
    assert!(whole > 60_000 * 16, "{whole} bytes for all");
    assert_eq!(image_bytes(&run.db), 0, "nothing changed");
    // Uses change temperatures, and nothing that is saved.
    (0..5000).for_each(|id| drop(run.read(&table, id)));
    assert_eq!(image_bytes(&run.db), 0, "nothing but temperatures changed");
    (0..100).for_each(|id| run.put(&table, id, 0));
    let some = image_bytes(&run.db);
    assert!((1..whole / 20).contains(&some), "{some} bytes of {whole}");
    let files = |run: &Run| {
        let last = run.db.checkpoint_state().running.lock();
        last.chains
            .iter()
            .map(|c| c.image.files.len())
            .max()
            .unwrap_or(0)
    };
    assert_eq!(files(&run), 2);
    let mut longest = 0;
    for round in 0..40 {
        (0..1990).for_each(|id| run.put(&table, id * 30 + round, 0));
        image_bytes(&run.db);
        longest = longest.max(files(&run));
    }
    assert!(
        (2..=super::DELTAS_MAX + 1).contains(&longest),
        "{longest} files"
    );
    assert!(files(&run) < longest, "deltas are folded into a base");
    run.device.crash(3);
    run.db = open(&run.device);
    assert_eq!(run.db.row_estimate(&run.table()), 60_000);
}

#[test]
fn a_checkpoint_that_fails_is_made_up_for() {
    let mut run = Run::new([IndexKind::Hash, IndexKind::Hash]);
    let table = run.table();
    for operation in 0..30 {
        (0..200).for_each(|id| run.put(&table, id * 3 + operation, 10));
        let device = run.device.clone();
        // The operation-th sync or write of the checkpoint fails.
        device.fail_next(
            match operation % 2 {
                0 => thermocline_device::Operation::Write,
                _ => thermocline_device::Operation::Rename,
            },
            std::io::ErrorKind::StorageFull,
        );
        assert!(run.db.run_checkpoint(Purpose::Asked).is_err());
        run.put(&table, operation, 10);
        run.db.run_checkpoint(Purpose::Asked).expect("checkpoints");
        run.check_images(&table, true);
    }
    run.device.crash(5);
    run.reopen();
}

/// All late tuples that a frame's count allowed went into one frame, which no start could
/// read when they were large.
#[test]
fn many_large_tuples_that_are_in_no_block_come_back() {
    let mut run = Run::new([IndexKind::Hash, IndexKind::Hash]);
    let table = run.table();
    (0..50).for_each(|id| run.put(&table, id, 1_000_000));
    // Tuples that are being evicted are not written a second time.
    let evictors = (0..60).map(|turn| {
        let mut evictor = Evictor::new(2 << 20);
        evictor.begin(&run.db, turn % PARTITIONS, &table);
        evictor
    });
    let evictors: Vec<Evictor> = evictors.collect();
    run.db.run_checkpoint(Purpose::Asked).expect("checkpoints");
    run.check_images(&table, false);
    drop(evictors);
    run.device.crash(13);
    run.reopen();
}

#[test]
fn holes_are_kept_to_the_share_that_the_policy_says() {
    let mut run = Run::new([IndexKind::Hash, IndexKind::Hash]);
    let table = run.table();
    (0..6000).for_each(|id| run.put(&table, id, 250));
    let mut compactor = Compactor::new(BLOCK_BYTES);
    let share = |run: &Run| {
        let blocks = run.db.blocks().blocks();
        let all: f64 = blocks.iter().map(|b| b.device_bytes as f64).sum();
        let live = |b: &BlockInfo| b.live_share() * b.device_bytes as f64;
        100.0 * blocks.iter().map(live).sum::<f64>() / all
    };
    let wanted = f64::from(run.db.policy().compaction_percent);
    let mut was_below = false;
    for round in 0..12 {
        // Scattered, so that no block empties alone.
        (0..1500).for_each(|id| run.put(&table, (id * 7 + round * 11) % 6000, 250));
        run.db.run_checkpoint(Purpose::Asked).expect("checkpoints");
        was_below |= share(&run) < wanted;
        while compactor.step(&run.db).expect("compacts") {}
        assert!(
            share(&run) >= wanted,
            "{}% of round {round} lives",
            share(&run)
        );
    }
    assert!(was_below, "there was something to do");
    // What it wrote is little beside what the updates did.
    let counters = run.db.counters();
    assert!(counters.tuples_compacted > 0);
    let updated = 6000 + 12 * 1500;
    assert!(counters.tuples_compacted < 2 * updated, "{counters:?}");
    // The space goes with the next checkpoints.
    run.db.run_checkpoint(Purpose::Asked).expect("checkpoints");
    run.check_images(&table, true);
    assert_eq!(run.db.blocks().pending_bytes(), 0);
    run.device.crash(11);
    run.db = open(&run.device);
    let expected = std::mem::take(&mut run.model);
    for (id, row) in expected {
        assert_eq!(run.read(&run.table(), id), Some(row));
    }
}

#[test]
fn a_checkpoint_takes_half_the_time_that_the_last_one_left() {
    let last = Last {
        chains: Vec::new(),
        began: Some(Duration::from_secs(10)),
        bytes: 1000,
    };
    let rate = |last: &Last, now| Pace::spread(1600, last, Duration::from_secs(now)).bytes_a_second;
    assert_eq!(rate(&last, 20), Some(200));
    // Never faster than the most, never very slow; the first one can't know.
    assert_eq!(rate(&last, 10), Some(1600));
    assert_eq!(rate(&last, 1000), Some(100));
    assert_eq!(rate(&Last::default(), 20), Some(1600));
}
