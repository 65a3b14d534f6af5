//! A table of rows beside a column table, with the engine alone: bytes on the device, scans of few
//! and of all columns, single rows.
//!
//! ```text
//! cargo run --release -p thermocline-bench --example columns -- DIRECTORY [ROWS [LIMIT_MB [READS]]]
//! ```
//!
//! DIRECTORY must be empty or absent. The table is like TPC-H's lineitem: sixteen columns, filled by a
//! rule of this program. All rows leave memory before anything is read, and the database is opened anew:
//! *first* is read from the device, *again* right after it. A scan adds up what it sees. Queries with
//! conditions have two threads, and print the least of five times.

mod scans;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::catalog::{AccessMethod, Residence};
use thermocline_engine::{
    Change, ColumnDef, Config, Database, IndexDef, IndexKind, Isolation, RunOptions, Scope, Table,
    TableDef, block_on,
};
use thermocline_values::numeric::Numeric;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

/// Rows that one statement inserts.
const INSERTED_AT_ONCE: i64 = 500;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| {
        arguments
            .get(at)
            .map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let directory = arguments.first().expect("a directory");
    let (rows, limit_mb) = (number(1, 600_000) as i64, number(2, 256));
    let reads = number(3, 2000);
    for method in [AccessMethod::Memory, AccessMethod::Columns] {
        let directory = Path::new(directory).join(method.name());
        std::fs::create_dir_all(&directory).expect("the directory can be made");
        measure(&directory, method, rows, limit_mb, reads);
    }
}

fn measure(directory: &Path, method: AccessMethod, rows: i64, limit_mb: u64, reads: u64) {
    println!("USING {}: {rows} rows, limit {limit_mb} MB", method.name());
    let db = open(directory, limit_mb);
    let begun = Instant::now();
    let bytes = load(&db, method, rows);
    println!(
        "  loaded                {:9.2} s",
        begun.elapsed().as_secs_f64()
    );
    let begun = Instant::now();
    let merged = block_on(db.merge_delta(&RunOptions::new(), &table(&db)));
    println!(
        "  the rest left memory  {:9.2} s   {} rows",
        begun.elapsed().as_secs_f64(),
        merged.expect("merges")
    );
    let report = db.table_reports();
    let report = report.first().expect("a table");
    let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("  tuples                {:9.1} MB", mb(bytes));
    println!(
        "  on the device         {:9.1} MB in {} blocks",
        mb(report.block_bytes),
        report.blocks
    );
    println!(
        "  directory and indexes {:9.1} MB",
        mb(report.metadata_bytes)
    );
    block_on(db.checkpoint()).expect("checkpoints");
    db.close().expect("stops");
    drop(db);
    let db = open(directory, limit_mb);
    db.wait_for_partitions().expect("they come");
    for when in ["first", "again"] {
        single_rows(&db, rows, reads, &format!("before scans, {when}"));
    }
    for (what, columns) in [
        ("2 columns", &[4, 10][..]),
        ("16 columns", &(0..16).collect::<Vec<_>>()),
    ] {
        for when in ["first", "again"] {
            let begun = Instant::now();
            let (count, sum) = scan(&db, columns);
            assert_eq!(count, rows as u64);
            let took = begun.elapsed().as_secs_f64() * 1e3;
            println!("  {what:<10} {when:<10} {took:9.1} ms   sum {sum}");
        }
    }
    scans::measure(&db, &table(&db));
    for when in ["first", "again"] {
        single_rows(&db, rows, reads, &format!("after scans, {when}"));
    }
    if method == AccessMethod::Columns {
        all_warm(&db);
        for when in ["first", "again"] {
            single_rows(&db, rows, reads, &format!("warm, {when}"));
        }
    }
    db.close().expect("stops");
}

/// Reads rows by their keys, spread over the table.
fn single_rows(db: &Arc<Database>, rows: i64, reads: u64, when: &str) {
    let t = table(db);
    let pages = db.column_pages_read();
    let begun = Instant::now();
    let mut key = Vec::new();
    for read in 0..reads {
        let id = (read.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as i64 % rows;
        key.clear();
        t.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
        let options = RunOptions::default();
        let found = db.one_shot(&options, scope(&t, id), |access| {
            Ok(access.get(&t, 0, &key)?.map(|(_, tuple)| tuple.len()))
        });
        assert!(block_on(found).expect("reads").is_some(), "row {id}");
    }
    let each = begun.elapsed().as_secs_f64() * 1e6 / reads as f64;
    let memory = db.memory_report();
    println!(
        "  single rows {when:<20} {each:9.1} µs and {:.1} pages each; columns in memory {:.1} MB, warm pages {:.1} MB",
        (db.column_pages_read() - pages) as f64 / reads as f64,
        memory.column_chunks as f64 / f64::from(1 << 20),
        memory.warm_buffer as f64 / f64::from(1 << 20),
    );
}

/// Has all columns stay on the device, behind their buffer.
fn all_warm(db: &Arc<Database>) {
    let mut def = table(db).def.clone();
    for column in &mut def.columns {
        column.residence = Residence::Warm;
    }
    let columns: Vec<usize> = (0..def.columns.len()).collect();
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    block_on(db.ddl(&mut txn, &options, Change::AlterTable(def))).expect("alters");
    block_on(db.commit(txn, &options)).expect("commits");
    block_on(db.unload_columns(&options, &table(db), &columns)).expect("leaves");
}

fn open(directory: &Path, limit_mb: u64) -> Arc<Database> {
    let device = FileDevice::open(directory, IoEngine::Auto).expect("a device");
    let device: Arc<dyn Device> = Arc::new(device);
    let config = Config::new(device).memory_limit(limit_mb << 20);
    Database::open(config).expect("opens")
}

fn table(db: &Database) -> Arc<Table> {
    let catalog = db.catalog();
    let table = catalog.table_by_name("public", "lines");
    table.expect("the table is there").clone()
}

fn scope(table: &Table, id: i64) -> Scope {
    let partition = table.partition_of_values(&[ValueRef::BigInt(id)]);
    partition.map_or(Scope::All, Scope::One)
}

/// Makes the table and fills it; the bytes of its tuples.
fn load(db: &Arc<Database>, method: AccessMethod, rows: i64) -> u64 {
    let money = DataType::numeric(15, 2).expect("a type");
    let columns = [
        ("id", DataType::BigInt),
        ("order", DataType::BigInt),
        ("part", DataType::Integer),
        ("supplier", DataType::Integer),
        ("quantity", DataType::Integer),
        ("price", money),
        ("discount", money),
        ("tax", money),
        ("returned", DataType::Char(1)),
        ("status", DataType::Char(1)),
        ("shipped", DataType::Date),
        ("promised", DataType::Date),
        ("received", DataType::Date),
        ("instruction", DataType::Char(25)),
        ("mode", DataType::Char(10)),
        ("comment", DataType::Varchar(44)),
    ];
    let def = TableDef {
        indexes: vec![IndexDef {
            oid: db.allocate_oid(),
            name: "lines_pkey".into(),
            columns: vec![0],
            unique: true,
            primary: true,
            constraint: true,
            kind: IndexKind::BTree,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }],
        partition_key: vec![0],
        access_method: method,
        ..TableDef::new(
            db.allocate_oid(),
            "lines",
            columns.map(|(name, of)| ColumnDef::new(name, of)).into(),
        )
    };
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    block_on(db.ddl(&mut txn, &options, Change::CreateTable(def))).expect("makes the table");
    block_on(db.commit(txn, &options)).expect("commits");
    let table = table(db);
    let mut bytes = 0;
    for first in (0..rows).step_by(INSERTED_AT_ONCE as usize) {
        let inserted = db.one_shot(&options, Scope::All, |access| {
            let mut tuple = Vec::new();
            let mut inserted = 0;
            for id in first..rows.min(first + INSERTED_AT_ONCE) {
                tuple.clear();
                encode(&table, id, &mut tuple);
                inserted += tuple.len() as u64;
                access.insert(&table, &tuple)?;
            }
            Ok(inserted)
        });
        bytes += block_on(inserted).expect("inserts");
    }
    bytes
}

fn encode(table: &Table, id: i64, tuple: &mut Vec<u8>) {
    const INSTRUCTIONS: [&str; 4] = [
        "DELIVER IN PERSON",
        "COLLECT COD",
        "NONE",
        "TAKE BACK RETURN",
    ];
    const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
    const WORDS: [&str; 8] = [
        "carefully",
        "quickly",
        "furiously",
        "deposits",
        "requests",
        "accounts",
        "packages",
        "ideas",
    ];
    let chance = |salt: u64| {
        let mixed = (id as u64 ^ salt << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
    };
    let below = |salt: u64, end: u64| chance(salt) % end;
    let cents = |number: u64| {
        let number = Numeric::new(i128::from(number), 2);
        ValueRef::Numeric(number.expect("a number"))
    };
    let quantity = 1 + below(1, 50);
    let shipped = 8000 + (below(2, 2500)) as i32;
    let words: Vec<&str> = (3..6).map(|salt| WORDS[below(salt, 8) as usize]).collect();
    let comment = format!("{} {}", words.join(" "), below(6, 100));
    let values = [
        ValueRef::BigInt(id),
        ValueRef::BigInt(id / 4),
        ValueRef::Integer(below(7, 200_000) as i32),
        ValueRef::Integer(below(8, 10_000) as i32),
        ValueRef::Integer(quantity as i32),
        cents(quantity * (90_000 + below(9, 100_000))),
        cents(below(10, 11)),
        cents(below(11, 9)),
        ValueRef::Text(["A", "N", "R"][below(12, 3) as usize]),
        ValueRef::Text(["F", "O"][usize::from(shipped > 9300)]),
        ValueRef::Date(shipped),
        ValueRef::Date(shipped + below(13, 60) as i32),
        ValueRef::Date(shipped + 1 + below(14, 30) as i32),
        ValueRef::Text(INSTRUCTIONS[below(15, 4) as usize]),
        ValueRef::Text(MODES[below(16, 7) as usize]),
        ValueRef::Text(&comment),
    ];
    table.encode_tuple(&values, tuple);
}

/// Reads these columns of all rows; how many, and a sum over what they hold.
fn scan(db: &Arc<Database>, columns: &[usize]) -> (u64, i64) {
    let table = table(db);
    let snapshot = db.snapshot();
    let (mut rows, mut sum) = (0, 0i64);
    for partition in 0..db.partitions() {
        let mut scan = snapshot.scan_columns(&table, partition, columns, &Arc::default());
        let each = &mut |_, tuple: &[u8]| {
            rows += 1;
            for column in columns {
                sum = sum.wrapping_add(match table.value(tuple, *column) {
                    ValueRef::BigInt(value) => value,
                    ValueRef::Integer(value) | ValueRef::Date(value) => i64::from(value),
                    ValueRef::Numeric(value) => value.mantissa() as i64,
                    ValueRef::Text(text) => text.len() as i64,
                    other => panic!("{other:?} is in column {column}"),
                });
            }
        };
        while block_on(scan.next_chunk(&mut *each)).expect("scans") {}
    }
    (rows, sum)
}
