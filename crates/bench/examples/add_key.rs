//! What it costs to give a table of many rows its primary key, with the engine alone.
//!
//! ```text
//! cargo run --release -p thermocline-bench --example add_key -- DIRECTORY [ROWS [LIMIT_MB [ROUNDS [ORDER]]]]
//! ```
//!
//! DIRECTORY must be empty or absent, or `memory` for a simulated device, which valgrind can follow.
//! Rows have about 100 bytes and come as COPY brings them: with
//! a number that ascends, or `random` ones. Each round makes a table without a key, fills it, adds
//! the key and drops the table. It prints the time that the key took, and the processor time of each
//! thread meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use thermocline_device::{Device, FileDevice, IoEngine, SimulatedDevice};
use thermocline_engine::{
    Change, ColumnDef, Config, Database, IndexDef, IndexKind, Isolation, RunOptions, Scope, Table,
    TableDef, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rows that one statement inserts, all into one partition, as COPY does.
const ROWS_AT_ONCE: u32 = 500;
const FILLER_BYTES: usize = 84;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u32| {
        let text = arguments.get(at);
        text.map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let directory = arguments.first().expect("a directory");
    let (rows, limit_mb, rounds) = (number(1, 1_000_000), number(2, 2048), number(3, 5));
    let is_random = arguments.get(4).is_some_and(|order| order == "random");
    let device: Arc<dyn Device> = match directory.as_str() {
        "memory" => Arc::new(SimulatedDevice::new()),
        directory => {
            std::fs::create_dir_all(directory).expect("the directory can be made");
            let device = FileDevice::open(Path::new(directory), IoEngine::Auto);
            Arc::new(device.expect("a device"))
        }
    };
    let config = Config::new(device).memory_limit(u64::from(limit_mb) << 20);
    let db = Database::open(config).expect("opens");
    for _ in 0..rounds {
        let table = create(&db);
        load(&db, &table, rows, is_random);
        let (begun, before) = (Instant::now(), processor_ms());
        add_key(&db, &table);
        let (took, used) = (begun.elapsed().as_millis(), since(&before));
        let all: u64 = used.iter().map(|(_, ms)| ms).sum();
        let each = used.iter().map(|(name, ms)| format!("{name} {ms}"));
        let each = each.collect::<Vec<_>>().join(", ");
        println!("{took} ms, processor {all} ms: {each}");
        check(&db, &table, (rows, is_random));
        define(&db, Change::DropTable(table.def.oid));
    }
    db.close().expect("closes");
}

/// What each thread has used of the processors, which the kernel counts in hundredths of a second.
/// Threads of one name count together.
fn processor_ms() -> BTreeMap<String, u64> {
    let mut used = BTreeMap::new();
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux tells");
    for thread in threads.flatten() {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let Some((name, numbers)) = stat.rsplit_once(')') else {
            continue;
        };
        let ticks = numbers.split_whitespace().skip(11).take(2);
        let ms = ticks.map(|tick| tick.parse::<u64>().expect("a number") * 10);
        let name = name.split_once('(').map_or(name, |(_, name)| name);
        *used.entry(name.to_owned()).or_default() += ms.sum::<u64>();
    }
    used
}

/// What was used since, of those that used anything.
fn since(before: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let used = processor_ms().into_iter().map(|(name, ms)| {
        let more = ms - before.get(&name).copied().unwrap_or(0).min(ms);
        (name, more)
    });
    used.filter(|(_, ms)| *ms > 0).collect()
}

fn define(db: &Arc<Database>, change: Change) {
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    block_on(db.ddl(&mut txn, &options, change)).expect("a definition");
    block_on(db.commit(txn, &options)).expect("commits");
}

fn create(db: &Arc<Database>) -> Arc<Table> {
    let column = |name: &str, data_type| ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, data_type)
    };
    let columns = vec![
        column("id", DataType::Integer),
        column("kind", DataType::Integer),
        column("price", DataType::Integer),
        column("filler", DataType::Text),
    ];
    define(
        db,
        Change::CreateTable(TableDef::new(db.allocate_oid(), "loaded", columns)),
    );
    let catalog = db.catalog();
    catalog
        .table_by_name("public", "loaded")
        .expect("it is there")
        .clone()
}

/// The id of a row. No two have the same: the multiplier is odd.
fn id_of(row: u32, is_random: bool) -> i32 {
    match is_random {
        true => row.wrapping_mul(0x9e37_79b1) as i32,
        false => row as i32,
    }
}

fn load(db: &Arc<Database>, table: &Table, rows: u32, is_random: bool) {
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    let filler = "x".repeat(FILLER_BYTES);
    let mut tuples: Vec<Vec<u8>> = Vec::new();
    for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        tuples.clear();
        for row in first..rows.min(first + ROWS_AT_ONCE) {
            let mut tuple = Vec::new();
            let numbers = [id_of(row, is_random), row as i32 % 20, row as i32 % 9973];
            let [id, kind, price] = numbers.map(ValueRef::Integer);
            table.encode_tuple(&[id, kind, price, ValueRef::Text(&filler)], &mut tuple);
            tuples.push(tuple);
        }
        let scope = Scope::One(db.spread());
        let inserted = db.in_transaction(&mut txn, &options, scope, |access| {
            for tuple in &tuples {
                access.insert(table, tuple)?;
            }
            Ok(())
        });
        block_on(inserted).expect("inserts");
    }
    block_on(db.commit(txn, &options)).expect("commits");
}

/// A function of its own, so that callgrind's `--toggle-collect='*::add_key*'` counts it.
#[inline(never)]
fn add_key(db: &Arc<Database>, table: &Table) {
    let index = IndexDef {
        oid: db.allocate_oid(),
        name: "loaded_pkey".into(),
        columns: vec![0],
        unique: true,
        primary: true,
        constraint: true,
        kind: IndexKind::BTree,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    let table = table.def.oid;
    define(db, Change::CreateIndex { table, index });
}

/// The table has all its rows, and its key finds one.
fn check(db: &Arc<Database>, table: &Table, (rows, is_random): (u32, bool)) {
    let catalog = db.catalog();
    let table = catalog.table(table.def.oid).expect("it is there");
    assert_eq!(db.row_estimate(table), u64::from(rows));
    let mut key = Vec::new();
    let values = [ValueRef::Integer(id_of(rows / 2, is_random))];
    table.encode_index_key(0, &values, &mut key);
    let partition = table.partition_of_values(&values).expect("it has a key");
    let options = RunOptions::default();
    let found = db.one_shot(&options, Scope::One(partition), |access| {
        Ok(access.get(table, 0, &key)?.is_some())
    });
    assert!(
        block_on(found).expect("reads"),
        "a row is not found by its key"
    );
}
