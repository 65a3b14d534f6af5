//! How long a start takes to answer after the worst of kills, with the engine alone: many rows
//! with four indexes, and the process killed when its log is longest, just before a checkpoint
//! takes force.
//!
//! ```text
//! cargo run --release -p thermocline-bench --example restart -- DIRECTORY [ROWS [PAYLOAD_BYTES [LIMIT_MB [STARTS]]]]
//! ```
//!
//! The table has a bigint key and another number with hash indexes, a number and a text with
//! B+trees. Two threads update: mostly the payload, of one row in ten all that is indexed.
//! Now and then a transaction over several rows, a number of a sequence, a table that is made
//! and dropped. Each start is a process of its own that reads a row by its key, then others,
//! and ends itself when all partitions are there. So the next start has the same to do. An
//! empty or absent DIRECTORY is filled first.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::{
    Change, ColumnDef, Config, Database, IndexDef, IndexKind, Isolation, RunOptions, Scope,
    SequenceDef, Table, TableDef, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

const THREADS: i64 = 2;
/// Rows read after the first one.
const READS: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (part, arguments) = match arguments.first().map(String::as_str) {
        Some(part @ ("fill" | "start")) => (part, &arguments[1..]),
        _ => ("all", &arguments[..]),
    };
    let directory = arguments.first().expect("a directory");
    let number = |at: usize, otherwise: u64| {
        let text = arguments.get(at);
        text.map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let numbers = [number(1, 1_000_000), number(2, 100), number(3, 2048)];
    let directory = Path::new(directory);
    std::fs::create_dir_all(directory).expect("the directory can be made");
    match part {
        "fill" => fill(
            directory,
            numbers[0] as i64,
            numbers[1] as usize,
            numbers[2],
        ),
        "start" => start(directory, numbers[0] as i64, numbers[2]),
        _ => {
            let again = |part: &str| {
                let program = std::env::current_exe().expect("this program");
                let mut child = Command::new(program);
                child.arg(part).arg(directory);
                child.args(numbers.map(|number| number.to_string()));
                child.status().expect("the other process runs");
            };
            if !directory.join("manifest").exists() {
                again("fill");
            }
            println!(
                "| open ms | first row ms | slowest of {READS} rows ms | all there ms | peak MB | images MB | images ms | log MB | records | log ms |\n\
                 |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
            );
            for _ in 0..number(4, 3) {
                again("start");
            }
        }
    }
}

fn open(directory: &Path, limit_mb: u64) -> Arc<Database> {
    let device = FileDevice::open(directory, IoEngine::Auto).expect("a device");
    let device: Arc<dyn Device> = Arc::new(device);
    let mut config = Config::new(device).memory_limit(limit_mb << 20);
    config.checkpoint_interval = Duration::from_secs(3600);
    Database::open(config).expect("opens")
}

fn table(db: &Database) -> Arc<Table> {
    let catalog = db.catalog();
    let table = catalog.table_by_name("public", "t");
    table.expect("the table is there").clone()
}

fn column(name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, data_type)
    }
}

fn define(db: &Arc<Database>, name: &str) {
    let index = |number: usize, kind| IndexDef {
        oid: db.allocate_oid(),
        name: format!("{name}_{number}"),
        columns: vec![number],
        unique: number == 0,
        primary: number == 0,
        constraint: number == 0,
        kind,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    let def = TableDef {
        indexes: vec![
            index(0, IndexKind::Hash),
            index(1, IndexKind::BTree),
            index(2, IndexKind::Hash),
            index(3, IndexKind::BTree),
        ],
        partition_key: vec![0],
        ..TableDef::new(
            db.allocate_oid(),
            name,
            vec![
                column("id", DataType::BigInt),
                column("number", DataType::BigInt),
                column("other", DataType::BigInt),
                column("name", DataType::Text),
                column("payload", DataType::Text),
            ],
        )
    };
    change(db, Change::CreateTable(def));
}

fn change(db: &Arc<Database>, change: Change) {
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    block_on(db.ddl(&mut txn, &options, change)).expect("defines");
    block_on(db.commit(txn, &options)).expect("commits");
}

fn scope(table: &Table, id: i64) -> Scope {
    let partition = table.partition_of_values(&[ValueRef::BigInt(id)]);
    partition.map_or(Scope::All, Scope::One)
}

/// A row; `version` decides what is indexed, `payload` the rest.
fn encode(table: &Table, (id, version): (i64, u64), payload: &str, tuple: &mut Vec<u8>) {
    let mixed = (id as u64 ^ version).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let name = format!("{:016x} of row {id}", mixed);
    tuple.clear();
    let values = [
        ValueRef::BigInt(id),
        ValueRef::BigInt((mixed >> 20) as i64),
        ValueRef::BigInt((mixed >> 40) as i64),
        ValueRef::Text(&name),
        ValueRef::Text(payload),
    ];
    table.encode_tuple(&values, tuple);
}

fn fill(directory: &Path, rows: i64, payload_bytes: usize, limit_mb: u64) {
    let begun = Instant::now();
    let db = open(directory, limit_mb);
    define(&db, "t");
    let sequence = SequenceDef {
        oid: db.allocate_oid(),
        schema: "public".into(),
        name: "numbers".into(),
        data_type: DataType::BigInt,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cache: 1,
        cycle: false,
        owned_by: None,
        restarted_by: 0,
    };
    change(&db, Change::CreateSequence(sequence));
    let t = table(&db);
    let payload = "p".repeat(payload_bytes);
    std::thread::scope(|scope_of_threads| {
        for thread in 0..THREADS {
            let (db, t, payload) = (&db, &t, &payload);
            scope_of_threads.spawn(move || {
                let options = RunOptions::default();
                let mut tuple = Vec::new();
                for id in (thread..rows).step_by(THREADS as usize) {
                    encode(t, (id, 0), payload, &mut tuple);
                    let inserted = db.one_shot(&options, scope(t, id), |access| {
                        access.insert(t, &tuple).map(|_| ())
                    });
                    block_on(inserted).expect("inserts");
                }
            });
        }
    });
    block_on(db.checkpoint()).expect("checkpoints");
    let loaded = begun.elapsed();
    let updates = AtomicU64::new(0);
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            let (db, updates) = (&db, &updates);
            threads.spawn(move || update(db, rows, payload_bytes, updates));
        }
        // The second checkpoint from here: the first one's log is short.
        let number = db.checkpoint_report().number + 2;
        let last = db.partitions() - 1;
        let name = format!("checkpoint-{number:08}-{last:04}");
        while !directory.join(&name).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        eprintln!(
            "{rows} rows in {} s, {} updates in {} s; the log ends at {} MB",
            loaded.as_secs(),
            updates.load(Ordering::Relaxed),
            (begun.elapsed() - loaded).as_secs(),
            db.device_reports()[0].log_end >> 20
        );
        std::process::abort();
    });
}

fn update(db: &Arc<Database>, rows: i64, payload_bytes: usize, updates: &AtomicU64) {
    let t = table(db);
    let options = RunOptions::default();
    let (mut tuple, mut key) = (Vec::new(), Vec::new());
    let mut random = rand::rng();
    let other = "q".repeat(payload_bytes);
    loop {
        let id = random.random_range(0..rows);
        let number = updates.fetch_add(1, Ordering::Relaxed);
        let version = if number.is_multiple_of(10) { number } else { 0 };
        key.clear();
        t.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
        encode(&t, (id, version), &other, &mut tuple);
        let mut put = |access: &mut thermocline_engine::Access<'_>| {
            let mut found = Vec::new();
            access.find(&t, 0, &key, &mut found)?;
            for row in &found {
                access.update(&t, *row, &tuple)?;
            }
            Ok(())
        };
        if !number.is_multiple_of(50) {
            block_on(db.one_shot(&options, scope(&t, id), put)).expect("updates");
            continue;
        }
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        let done = block_on(db.in_transaction(&mut txn, &options, scope(&t, id), &mut put));
        // Another may have the row.
        match done {
            Ok(()) => drop(block_on(db.commit(txn, &options))),
            Err(_) => block_on(db.rollback(txn)),
        }
        let catalog = db.catalog();
        let numbers = catalog.sequence_by_name("public", "numbers");
        let _ = db.next_value(numbers.expect("is there")).expect("a number");
        if number.is_multiple_of(20_000) {
            let name = format!("made_{number}");
            define(db, &name);
            let made = db.catalog().table_by_name("public", &name).cloned();
            change(db, Change::DropTable(made.expect("is there").def.oid));
        }
    }
}

fn start(directory: &Path, rows: i64, limit_mb: u64) {
    let begun = Instant::now();
    let db = open(directory, limit_mb);
    let opened = begun.elapsed();
    let t = table(&db);
    let mut random = rand::rng();
    let mut key = Vec::new();
    let mut read = || {
        let id = random.random_range(0..rows);
        key.clear();
        t.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
        let options = RunOptions::default();
        let found = db.one_shot(&options, scope(&t, id), |access| {
            Ok(access.get(&t, 0, &key)?.is_some())
        });
        assert!(block_on(found).expect("reads"), "row {id} is there");
    };
    read();
    let first = begun.elapsed();
    let mut slowest = Duration::ZERO;
    for _ in 0..READS {
        let begun = Instant::now();
        read();
        slowest = slowest.max(begun.elapsed());
    }
    db.wait_for_partitions().expect("all come");
    let whole = begun.elapsed();
    let report = db.recovery_report();
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel says");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.map_or(0, |text| {
        let kb = text.trim().trim_end_matches(" kB");
        kb.parse::<u64>().unwrap_or(0) / 1024
    });
    println!(
        "| {} | {} | {} | {} | {peak} | {} | {} | {} | {} | {} |",
        opened.as_millis(),
        first.as_millis(),
        slowest.as_millis(),
        whole.as_millis(),
        report.image_bytes / 1_000_000,
        report.image_milliseconds,
        report.log_bytes / 1_000_000,
        report.records,
        report.log_milliseconds,
    );
    std::process::abort();
}
