//! Value logging against command logging: one procedure like TPC-C's new order
//! (a district, four stocks updated; an order, four lines inserted; rows of 100
//! to 1,000 bytes), declared deterministic and not. Prints bytes of log a
//! transaction, transactions a second, and how fast the log is replayed.
//!
//! `cargo run --release -p thermocline-bench --example command_log -- DIRECTORY [SECONDS]`

use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::catalog::{ColumnDef, IndexDef, IndexKind, TableDef};
use thermocline_engine::{
    Call, Change, Config, Database, Error, Isolation, Procedure, Procedures, Reach, Result,
    RunOptions, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

const WAREHOUSES: i64 = 64;
const ITEMS: i64 = 500;
const LINES: i64 = 4;

/// A table in the partition of its first column: `keys` bigints, then a number
/// and a text.
fn make_table(db: &Arc<Database>, name: &str, keys: usize) -> Result<()> {
    let column = |name: String, data_type| ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, data_type)
    };
    let mut columns: Vec<ColumnDef> = (0..keys)
        .map(|key| column(format!("key_{key}"), DataType::BigInt))
        .collect();
    columns.push(column("number".into(), DataType::BigInt));
    columns.push(column("info".into(), DataType::Text));
    let def = TableDef {
        indexes: vec![IndexDef {
            oid: db.allocate_oid(),
            name: format!("{name}_pkey"),
            columns: (0..keys).collect(),
            unique: true,
            primary: true,
            constraint: true,
            kind: IndexKind::Hash,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }],
        partition_key: vec![0],
        ..TableDef::new(db.allocate_oid(), name, columns)
    };
    let mut txn = db.begin(Isolation::Serializable, false);
    block_on(db.ddl(&mut txn, &RunOptions::new(), Change::CreateTable(def)))?;
    block_on(db.commit(txn, &RunOptions::new()))
}

fn number(value: &Value) -> i64 {
    match value {
        Value::BigInt(number) => *number,
        _ => 0,
    }
}

fn info(seed: i64) -> Value {
    Value::Text("i".repeat(100 + (seed * 7919 % 800) as usize))
}

fn new_order(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let (warehouse, seed) = (&arguments[0], number(&arguments[1]));
    let absent = || Error::raised("P0002", "not loaded");
    let districts = call.table("district")?;
    let stocks = call.table("stock")?;
    let orders = call.table("orders")?;
    let lines = call.table("order_line")?;
    let district_key = [warehouse.clone(), Value::BigInt(seed % 10)];
    let mut district = call.get(&districts, &district_key)?.ok_or_else(absent)?;
    let order = number(&district.values[2]);
    district.values[2] = Value::BigInt(order + 1);
    call.update(&districts, &district)?;
    let mut order_key = district_key.to_vec();
    order_key.push(Value::BigInt(order));
    let with = |key: &[Value], rest: [Value; 2]| [key, &rest[..]].concat();
    call.insert(
        &orders,
        &with(&order_key, [Value::BigInt(call.now()), info(seed)]),
    )?;
    for line in 0..LINES {
        let item = Value::BigInt((seed + line * 131) % ITEMS);
        let stock_key = [warehouse.clone(), item.clone()];
        let mut stock = call.get(&stocks, &stock_key)?.ok_or_else(absent)?;
        let quantity = number(&stock.values[2]);
        stock.values[2] = Value::BigInt(if quantity > 10 { quantity - 5 } else { 91 });
        call.update(&stocks, &stock)?;
        order_key.push(Value::BigInt(line));
        call.insert(&lines, &with(&order_key, [item, info(seed + line)]))?;
        order_key.pop();
    }
    Ok(vec![Value::BigInt(order)])
}

fn load(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let warehouse = &arguments[0];
    let districts = call.table("district")?;
    let stocks = call.table("stock")?;
    for district in 0..10 {
        let key = Value::BigInt(district);
        call.insert(
            &districts,
            &[warehouse.clone(), key, Value::BigInt(0), info(district)],
        )?;
    }
    for item in 0..ITEMS {
        let key = Value::BigInt(item);
        call.insert(
            &stocks,
            &[warehouse.clone(), key, Value::BigInt(50), info(item)],
        )?;
    }
    Ok(Vec::new())
}

fn procedures(deterministic: bool) -> Result<Procedures> {
    let of_warehouse = |procedure: Procedure| {
        procedure
            .parameter("warehouse", DataType::BigInt)
            .reach(|arguments| Ok(Reach::row("district", &arguments[..1])))
    };
    let mut order = of_warehouse(Procedure::new("new_order", new_order))
        .parameter("seed", DataType::BigInt)
        .result("order", DataType::BigInt);
    if deterministic {
        order = order.deterministic();
    }
    let all = Procedures::new();
    all.register(order)?;
    all.register(of_warehouse(Procedure::new("load", load)))?;
    Ok(all)
}

fn open(
    directory: &Path,
    deterministic: bool,
    recovery_threads: usize,
) -> std::result::Result<Arc<Database>, Box<dyn StdError>> {
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(directory, IoEngine::Auto)?);
    let mut config = Config::new(device).memory_limit(8 << 30).partitions(16);
    // The whole run is replayed.
    config.checkpoint_log_bytes = u64::MAX;
    config.checkpoint_interval = Duration::from_secs(86_400);
    config.recovery_threads = recovery_threads;
    config.procedures = procedures(deterministic)?;
    Ok(Database::open(config)?)
}

/// Calls `new_order` from `threads` threads. Calls and the time they took.
fn run(db: &Database, threads: i64, synchronous: bool, time: Duration) -> (u64, Duration) {
    let options = RunOptions {
        synchronous_commit: synchronous,
        ..RunOptions::default()
    };
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (options, stop, calls) = (&options, &stop, &calls);
            scope.spawn(move || {
                let mut seed = thread * 1_000_003;
                while !stop.load(Ordering::Relaxed) {
                    seed += 1;
                    let arguments = [Value::BigInt(seed * 31 % WAREHOUSES), Value::BigInt(seed)];
                    match block_on(db.call(options, "new_order", &arguments)) {
                        Ok(_) => calls.fetch_add(1, Ordering::Relaxed),
                        Err(error) => panic!("new_order: {error}"),
                    };
                }
            });
        }
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
    (calls.into_inner(), begun.elapsed())
}

fn main() -> std::result::Result<(), Box<dyn StdError>> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().ok_or("which directory?")?;
    let seconds: u64 = arguments.next().unwrap_or("5".into()).parse()?;
    println!(
        "| log | commit | bytes a transaction | transactions/s | replay: threads | records/s | transactions' changes, MB/s | log, MB/s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    // What a transaction changes, in bytes: what value logging writes of it.
    let mut value_bytes = 0.0;
    for (deterministic, synchronous) in [(false, false), (true, false), (false, true), (true, true)]
    {
        let directory = Path::new(&parent).join(format!("{deterministic}-{synchronous}"));
        std::fs::create_dir_all(&directory)?;
        let db = open(&directory, deterministic, 0)?;
        for (table, keys) in [
            ("district", 2),
            ("stock", 2),
            ("orders", 3),
            ("order_line", 4),
        ] {
            make_table(&db, table, keys)?;
        }
        for warehouse in 0..WAREHOUSES {
            block_on(db.call(&RunOptions::default(), "load", &[Value::BigInt(warehouse)]))?;
        }
        block_on(db.checkpoint())?;
        let before = db.counters().log_bytes;
        let threads = if synchronous { 32 } else { 2 };
        let (calls, took) = run(&db, threads, synchronous, Duration::from_secs(seconds));
        let logged = db.counters().log_bytes - before;
        // One that waits for the device makes all before it durable: what is
        // there now is what a crash would leave.
        let last = [Value::BigInt(0), Value::BigInt(0)];
        block_on(db.call(&RunOptions::new(), "new_order", &last))?;
        let cores = std::thread::available_parallelism()?.get();
        let crashed = |threads| directory.with_extension(format!("{threads}-threads"));
        for threads in 1..=cores {
            std::fs::create_dir_all(crashed(threads))?;
            for file in std::fs::read_dir(&directory)? {
                let file = file?;
                std::fs::copy(file.path(), crashed(threads).join(file.file_name()))?;
            }
        }
        db.close()?;
        drop(db);
        std::fs::remove_dir_all(&directory)?;
        let bytes = logged as f64 / calls as f64;
        if !deterministic {
            value_bytes = bytes;
        }
        for threads in 1..=cores {
            let recovered = open(&crashed(threads), deterministic, threads)?;
            recovered.wait_for_partitions()?;
            let report = recovered.recovery_report();
            let replay = report.log_milliseconds.max(1) as f64 / 1e3;
            println!(
                "| {} | {} | {bytes:.0} | {:.0} | {threads} | {:.0} | {:.0} | {:.0} |",
                if deterministic { "commands" } else { "values" },
                if synchronous {
                    "synchronous, 32 threads"
                } else {
                    "relaxed, 2 threads"
                },
                calls as f64 / took.as_secs_f64(),
                report.records as f64 / replay,
                report.records as f64 * value_bytes / replay / 1e6,
                report.log_bytes as f64 / replay / 1e6,
            );
            recovered.close()?;
            drop(recovered);
            std::fs::remove_dir_all(crashed(threads))?;
        }
    }
    Ok(())
}
