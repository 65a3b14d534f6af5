//! What keeping a database in order costs, with the engine alone.
//!
//! ```text
//! cargo run --release -p thermocline-bench --example upkeep -- MODE DIRECTORY [DATA_MB [LIMIT_MB [SECONDS [ZIPF]]]]
//! ```
//!
//! | mode | prints |
//! |---|---|
//! | `space` | half reads, half updates of random rows over more data than memory: bytes of live rows, bytes the files take, and what was written for what |
//! | `checkpoint` | the same in memory: throughput and latencies without checkpoints, with background ones, with one after the other at full speed |
//! | `restart` | how long opening takes after a process that was killed while it updated |
//!
//! DIRECTORY must be empty or absent. Rows have 1000 bytes; keys are uniform, in `space`
//! also by Zipf's law, hot ones scattered.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use thermocline_bench::ycsb::KeyChooser;
use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::{
    Change, ColumnDef, Config, CountersReading, Database, IndexDef, IndexKind, Isolation,
    RunOptions, Scope, Table, TableDef, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

const ROW_BYTES: usize = 1000;
const THREADS: u64 = 2;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| {
        arguments
            .get(at)
            .map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (Some(mode), Some(directory)) = (arguments.first(), arguments.get(1)) else {
        panic!("space, checkpoint or restart, and a directory");
    };
    let directory = Path::new(directory);
    std::fs::create_dir_all(directory).expect("the directory can be made");
    match mode.as_str() {
        "space" => {
            let zipf = arguments
                .get(5)
                .map_or(0.0, |text| text.parse().expect("an exponent"));
            let seconds = number(4, 1800);
            space(directory, number(2, 2048), number(3, 256), seconds, zipf);
        }
        "checkpoint" => {
            let data = number(2, 512);
            checkpoint(directory, data, number(3, data * 3), number(4, 20));
        }
        "restart" => restart(directory, number(2, 1024), number(3, 256), number(4, 5)),
        // The part of `restart` that is killed.
        "update" => update(directory, number(2, 1024), number(3, 256), number(4, 5)),
        other => panic!("no mode {other}"),
    }
}

fn open(directory: &Path, limit_mb: u64, set: impl FnOnce(&mut Config)) -> Arc<Database> {
    let device = FileDevice::open(directory, IoEngine::Auto).expect("a device");
    let device: Arc<dyn Device> = Arc::new(device);
    let mut config = Config::new(device).memory_limit(limit_mb << 20);
    set(&mut config);
    Database::open(config).expect("opens")
}

fn column(name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, data_type)
    }
}

fn table(db: &Database) -> Arc<Table> {
    let catalog = db.catalog();
    let table = catalog.table_by_name("public", "t");
    table.expect("the table is there").clone()
}

/// Makes a table and fills it. The number of rows.
fn load(db: &Arc<Database>, data_mb: u64) -> i64 {
    let def = TableDef {
        indexes: vec![IndexDef {
            oid: db.allocate_oid(),
            name: "t_pkey".into(),
            columns: vec![0],
            unique: true,
            primary: true,
            constraint: true,
            kind: IndexKind::Hash,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }],
        partition_key: vec![0],
        ..TableDef::new(
            db.allocate_oid(),
            "t",
            vec![
                column("id", DataType::BigInt),
                column("payload", DataType::Text),
            ],
        )
    };
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    block_on(db.ddl(&mut txn, &options, Change::CreateTable(def))).expect("makes the table");
    block_on(db.commit(txn, &options)).expect("commits");
    let table = table(db);
    let rows = (data_mb << 20) as i64 / ROW_BYTES as i64;
    let mut tuple = Vec::new();
    for id in 0..rows {
        encode(&table, id, 0, &mut tuple);
        let inserted = db.one_shot(&options, scope(&table, id), |access| {
            access.insert(&table, &tuple).map(|_| ())
        });
        block_on(inserted).expect("inserts");
    }
    rows
}

fn scope(table: &Table, id: i64) -> Scope {
    let partition = table.partition_of_values(&[ValueRef::BigInt(id)]);
    partition.map_or(Scope::All, Scope::One)
}

fn encode(table: &Table, id: i64, version: u64, tuple: &mut Vec<u8>) {
    let mut text = format!("{id}:{version}:");
    while text.len() < ROW_BYTES {
        text.push((b'a' + (id as usize + text.len()) as u8 % 26) as char);
    }
    tuple.clear();
    table.encode_tuple(&[ValueRef::BigInt(id), ValueRef::Text(&text)], tuple);
}

/// Counts latencies in buckets of a sixteenth of a power of two, in nanoseconds.
struct Latencies(Vec<u64>);

impl Latencies {
    fn new() -> Self {
        Latencies(vec![0; 64 * 16])
    }

    fn add(&mut self, nanoseconds: u64) {
        let power = nanoseconds.max(16).ilog2();
        let part = (nanoseconds.max(16) >> (power - 4)) & 15;
        self.0[(power * 16) as usize + part as usize] += 1;
    }

    fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Microseconds that this share of the statements did not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let wanted = (self.total() as f64 * share) as u64;
        let mut passed = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            passed += count;
            if passed > wanted {
                let (power, part) = (bucket / 16, bucket % 16);
                return (16 + part + 1) as f64 * f64::powi(2.0, power as i32 - 4) / 1e3;
            }
        }
        0.0
    }
}

/// A statement in two reads a row by its key, the other updates it.
fn work(
    db: &Database,
    (rows, zipf): (i64, f64),
    seed: u64,
    stop: &AtomicBool,
    updates: &AtomicU64,
) -> Latencies {
    let table = table(db);
    let options = RunOptions::default();
    let mut latencies = Latencies::new();
    let mut chooser = KeyChooser::new(rows as u64, zipf, seed).expect("an exponent from 0 up");
    let (mut tuple, mut key) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let id = chooser.key() as i64;
        let random: u64 = chooser.random().random();
        let writes = random & 1 == 0;
        key.clear();
        table.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
        if writes {
            encode(&table, id, random, &mut tuple);
        }
        let begun = Instant::now();
        let found = block_on(db.one_shot(&options, scope(&table, id), |access| {
            if !writes {
                let got = access.get(&table, 0, &key)?;
                return Ok(got.is_some());
            }
            let mut found = Vec::new();
            access.find(&table, 0, &key, &mut found)?;
            for row in &found {
                access.update(&table, *row, &tuple)?;
            }
            Ok(!found.is_empty())
        }));
        assert!(found.expect("runs"), "row {id} is there");
        latencies.add(begun.elapsed().as_nanos() as u64);
        if writes {
            updates.fetch_add(1, Ordering::Relaxed);
        }
    }
    latencies
}

/// Runs the statements on threads while `meanwhile` goes on.
fn under_load(
    db: &Database,
    keys: (i64, f64),
    updates: &AtomicU64,
    meanwhile: impl FnOnce(),
) -> Latencies {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=THREADS)
            .map(|seed| {
                let stop = &stop;
                scope.spawn(move || work(db, keys, seed, stop, updates))
            })
            .collect();
        meanwhile();
        stop.store(true, Ordering::Relaxed);
        let mut sum = Latencies::new();
        for worker in workers {
            let latencies = worker.join().expect("a worker ends");
            for (all, one) in sum.0.iter_mut().zip(latencies.0) {
                *all += one;
            }
        }
        sum
    })
}

/// Bytes that the files of a kind take on the device.
fn allocated(directory: &Path, kind: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = std::fs::read_dir(directory).expect("the directory can be listed");
    let sizes = files.flatten().filter_map(|file| {
        let of_kind = file.file_name().to_string_lossy().starts_with(kind);
        // A file may go while it is looked at.
        file.metadata().ok().filter(|_| of_kind)
    });
    sizes.map(|metadata| metadata.blocks() * 512).sum()
}

fn space(directory: &Path, data_mb: u64, limit_mb: u64, seconds: u64, zipf: f64) {
    let db = open(directory, limit_mb, |_| {});
    let rows = load(&db, data_mb);
    println!("{rows} rows of {ROW_BYTES} bytes in {limit_mb} MB of memory, Zipf {zipf}");
    println!(
        "| s | updates | live MB | blocks MB | blocks / live | log MB | images MB | \
         written to blocks / (evicted + updated) | written / updated | rate |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let updates = AtomicU64::new(0);
    let before = db.counters();
    let row = ROW_BYTES as f64;
    let live = rows as f64 * row;
    let mut highest: f64 = 0.0;
    under_load(&db, (rows, zipf), &updates, || {
        let begun = Instant::now();
        let step = Duration::from_secs((seconds / 20).max(1));
        let mut last = 0;
        while begun.elapsed().as_secs() < seconds {
            std::thread::sleep(step);
            let now: CountersReading = db.counters();
            let updated = updates.load(Ordering::Relaxed);
            let evicted =
                (now.evictions - now.clean_evictions) - (before.evictions - before.clean_evictions);
            let written = (now.block_bytes_written - before.block_bytes_written) as f64;
            let blocks = allocated(directory, "blocks") as f64;
            highest = highest.max(blocks / live);
            println!(
                "| {} | {updated} | {:.0} | {:.0} | {:.2} | {} | {} | {:.2} | {:.2} | {:.0}/s |",
                begun.elapsed().as_secs(),
                live / 1e6,
                blocks / 1e6,
                blocks / live,
                allocated(directory, "log-") / 1_000_000,
                allocated(directory, "checkpoint-") / 1_000_000,
                written / ((evicted + updated) as f64 * row),
                written / (updated as f64 * row),
                (updated - last) as f64 / step.as_secs_f64(),
            );
            last = updated;
        }
    });
    let (now, report) = (db.counters(), db.checkpoint_report());
    println!(
        "at most {highest:.2} × live; {} checkpoints, {} MB of images, longest hold {} µs; {} \
         tuples compacted",
        now.checkpoints - before.checkpoints,
        (now.image_bytes_written - before.image_bytes_written) / 1_000_000,
        report.longest_hold_us,
        now.tuples_compacted - before.tuples_compacted,
    );
    for problem in db.take_problems() {
        println!("problem: {problem}");
    }
    db.close().expect("closes");
}

fn checkpoint(directory: &Path, data_mb: u64, limit_mb: u64, seconds: u64) {
    let interval = |seconds| {
        move |config: &mut Config| {
            config.checkpoint_interval = Duration::from_secs(seconds);
            config.checkpoint_log_bytes = 1 << 40;
        }
    };
    let never = 1 << 30;
    let db = open(directory, limit_mb, interval(never));
    let rows = load(&db, data_mb);
    block_on(db.checkpoint()).expect("checkpoints");
    db.close().expect("closes");
    drop(db);
    println!("{rows} rows of {ROW_BYTES} bytes in {limit_mb} MB of memory");
    println!(
        "| checkpoints | statements/s | p50 | p99 | p99.9 | p99.99 | made | images MB | longest hold |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, seconds_between) in [
        ("none", never),
        ("in the background, one after the other", 0),
        ("at full speed, one after the other", never),
    ] {
        let db = open(directory, limit_mb, interval(seconds_between));
        // All in memory first.
        let updates = AtomicU64::new(0);
        under_load(&db, (rows, 0.0), &updates, || {
            std::thread::sleep(Duration::from_secs(seconds / 4 + 2));
        });
        let before = db.counters();
        let asks = name.starts_with("at full speed");
        let latencies = under_load(&db, (rows, 0.0), &updates, || {
            let begun = Instant::now();
            while begun.elapsed().as_secs() < seconds {
                match asks {
                    true => block_on(db.checkpoint()).expect("checkpoints"),
                    false => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        });
        let now = db.counters();
        println!(
            "| {name} | {:.0} | {:.1} µs | {:.1} µs | {:.0} µs | {:.0} µs | {} | {:.1} | {} µs |",
            latencies.total() as f64 / seconds as f64,
            latencies.quantile(0.5),
            latencies.quantile(0.99),
            latencies.quantile(0.999),
            latencies.quantile(0.9999),
            now.checkpoints - before.checkpoints,
            (now.image_bytes_written - before.image_bytes_written) as f64 / 1e6,
            db.checkpoint_report().longest_hold_us,
        );
        db.close().expect("closes");
    }
}

/// Loads if there is nothing yet, updates, and ends as if it were killed.
fn update(directory: &Path, data_mb: u64, limit_mb: u64, seconds: u64) {
    let db = open(directory, limit_mb, |_| {});
    let rows = load(&db, data_mb);
    let updates = AtomicU64::new(0);
    under_load(&db, (rows, 0.0), &updates, || {
        std::thread::sleep(Duration::from_secs(seconds));
    });
    println!(
        "{rows} rows, {} updates, {} checkpoints, {} MB of images",
        updates.load(Ordering::Relaxed),
        db.counters().checkpoints,
        allocated(directory, "checkpoint-") / 1_000_000
    );
    std::process::abort();
}

fn restart(directory: &Path, data_mb: u64, limit_mb: u64, seconds: u64) {
    let program = std::env::current_exe().expect("this program");
    let arguments = [data_mb, limit_mb, seconds].map(|number| number.to_string());
    let mut child = std::process::Command::new(program);
    child.arg("update").arg(directory).args(arguments);
    let status = child.status().expect("the other process runs");
    assert!(!status.success(), "it was killed");
    for stop in ["was killed", "stopped cleanly"] {
        let begun = Instant::now();
        let db = open(directory, limit_mb, |_| {});
        let opened = begun.elapsed();
        let table = table(&db);
        let mut key = Vec::new();
        table.encode_index_key(0, &[ValueRef::BigInt(12_345)], &mut key);
        let options = RunOptions::default();
        let found = block_on(db.one_shot(&options, scope(&table, 12_345), |access| {
            Ok(access.get(&table, 0, &key)?.is_some())
        }));
        assert!(found.expect("reads"), "row 12345 is there");
        let first = begun.elapsed();
        db.wait_for_partitions().expect("all come");
        let report = db.recovery_report();
        println!(
            "{data_mb} MB, {limit_mb} MB of memory, after it {stop}: open {} ms (images {} ms: {} rows, \
             {} MB; log {} ms: {} records, {} MB; settling {} ms), first row {} ms, all partitions {} ms",
            opened.as_millis(),
            report.image_milliseconds,
            report.rows,
            report.image_bytes / 1_000_000,
            report.log_milliseconds,
            report.records,
            report.log_bytes / 1_000_000,
            report.settling_milliseconds,
            first.as_millis(),
            report.whole_milliseconds
        );
        db.close().expect("closes");
    }
}
