//! YCSB against the engine itself, in this process: no SQL, no wire.
//!
//! A read finds its row by the primary key's index and copies the payload,
//! as a caller would; an update writes a whole new tuple. The first run of a
//! statement tells whether its tuple was in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use thermocline_device::{Device, DirectoryLock, FileDevice, IoEngine, lock_directory};
use thermocline_engine::catalog::{ColumnDef, IndexDef, IndexKind, Table, TableDef};
use thermocline_engine::ddl::Change;
use thermocline_engine::{
    Config, CountersReading, Database, Isolation, MemoryReport, RunOptions, Scope,
};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::Options;
use super::client::Noise;
use super::drive::drive;
use super::engine_client::{EngineClient, PRIMARY};
use super::keys::KeyChooser;
use super::load::{LOAD_TABLE, Loaded, TABLE, print_loaded, progress_bar};
use super::measure::{Phase, Warmup};
use super::report::{Report, Usage};
use crate::rss::{self, Sampler};
use crate::{Result, runtime};

/// Rows that a loading thread sorts by partition at a time.
const LOAD_CHUNK_ROWS: u64 = 16_384;
/// Bounds of one loading transaction.
const LOAD_TRANSACTION_ROWS: usize = 1000;
const LOAD_TRANSACTION_BYTES: usize = 256 << 10;

/// The engine on a directory, with the table loaded.
pub struct InProcess {
    db: Arc<Database>,
    table: Arc<Table>,
    device: Arc<dyn Device>,
    load_s: Option<f64>,
    _lock: Option<DirectoryLock>,
}

impl InProcess {
    /// Opens the directory, and loads it if need be.
    pub fn open(options: &Options) -> Result<Self> {
        let lock = lock_directory(&options.data_dir)
            .map_err(|error| format!("{}: {error}", options.data_dir.display()))?;
        let device = Arc::new(
            FileDevice::open(&options.data_dir, IoEngine::Auto)
                .map_err(|error| format!("{}: {error}", options.data_dir.display()))?,
        );
        Self::on(device, Some(lock), options)
    }

    /// The same on another device than the directory's.
    pub fn on_device(device: Arc<dyn Device>, options: &Options) -> Result<Self> {
        Self::on(device, None, options)
    }

    fn on(device: Arc<dyn Device>, lock: Option<DirectoryLock>, options: &Options) -> Result<Self> {
        let config = Config::new(device)
            .memory_limit(options.memory_limit)
            .partitions(options.partitions);
        let subject = Self::on_database(Database::open(config)?, options)?;
        Ok(InProcess {
            _lock: lock,
            ..subject
        })
    }

    /// The same in a database that is open, with settings that no option has.
    pub fn on_database(db: Arc<Database>, options: &Options) -> Result<Self> {
        let load_s = prepare(&db, options)?;
        Ok(InProcess {
            table: table(&db, TABLE)?,
            device: db.device().clone(),
            db,
            load_s,
            _lock: None,
        })
    }

    /// The database itself.
    pub fn database(&self) -> &Arc<Database> {
        &self.db
    }

    /// A client of it.
    pub fn client(&self, synchronous_commit: bool) -> EngineClient<'_> {
        EngineClient::new(&self.db, &self.table, synchronous_commit)
    }

    /// The device, and how it is used.
    pub fn describe(&self) -> String {
        self.device.describe()
    }

    /// The engine's counters.
    pub fn counters(&self) -> CountersReading {
        self.db.counters()
    }

    /// Its memory, by use.
    pub fn memory(&self) -> MemoryReport {
        self.db.memory_report()
    }

    /// Changes its limit, in bytes.
    pub fn set_memory_limit(&self, bytes: u64) {
        self.db.set_memory_limit(bytes);
    }

    /// Stops it cleanly, with a last checkpoint.
    pub fn close(&self) -> Result<()> {
        Ok(self.db.close()?)
    }

    fn usage(&self) -> Option<Usage> {
        let counters = self.device.counters().snapshot();
        Some(Usage {
            read_bytes: counters.read_bytes,
            written_bytes: counters.written_bytes,
            cpu_us: rss::cpu_us(std::process::id())?,
        })
    }
}

/// Loads if need be, and measures.
pub(super) fn run(options: &Options) -> Result<Option<Report>> {
    let sampler = Sampler::start(std::process::id());
    let subject = InProcess::open(options)?;
    if options.load_only {
        subject.close()?;
        return Ok(None);
    }
    let phase = Phase::default();
    let clients = async |number| {
        let client = |_| subject.client(options.synchronous_commit);
        Ok((0..options.tasks_of(number)).map(client).collect())
    };
    let warmup = Warmup::For(Duration::from_secs(options.warmup));
    let (measured, tally) = drive(options, &phase, warmup, clients, || subject.usage())?;
    // The sampler watches the clean stop, too: its checkpoint is not exempt.
    subject.close()?;
    let rss_max_bytes = sampler.stop();
    let target = format!("in process, {}", subject.describe());
    Ok(Some(Report::new(
        options,
        &tally,
        &measured,
        target,
        rss_max_bytes,
        subject.load_s,
    )))
}

fn table(db: &Database, name: &str) -> Result<Arc<Table>> {
    let catalog = db.catalog();
    let table = catalog.table_by_name("public", name);
    Ok(table
        .ok_or_else(|| format!("table {name} is not there"))?
        .clone())
}

/// Loads if need be; the seconds it took.
fn prepare(db: &Arc<Database>, options: &Options) -> Result<Option<f64>> {
    let there = db.catalog().table_by_name("public", TABLE).is_some();
    if Loaded::check(found(db)?, there, options)? {
        return Ok(None);
    }
    let begin = Instant::now();
    let kind = match options.ordered {
        true => IndexKind::BTree,
        false => IndexKind::Hash,
    };
    create(db, TABLE, kind, &["payload"], DataType::Bytea)?;
    let counts = &["row_count", "row_bytes"];
    create(db, LOAD_TABLE, IndexKind::Hash, counts, DataType::BigInt)?;
    load(db, options)?;
    note_loaded(db, options)?;
    let seconds = begin.elapsed().as_secs_f64();
    print_loaded(options, seconds);
    Ok(Some(seconds))
}

fn found(db: &Arc<Database>) -> Result<Option<Loaded>> {
    let Ok(table) = table(db, LOAD_TABLE) else {
        return Ok(None);
    };
    let mut key = Vec::new();
    table.encode_index_key(PRIMARY, &[ValueRef::BigInt(1)], &mut key);
    let options = RunOptions::default();
    let read = db.one_shot(&options, Scope::All, |access| {
        let Some((_, tuple)) = access.get(&table, PRIMARY, &key)? else {
            return Ok(None);
        };
        let number = |column| match table.value(tuple, column) {
            ValueRef::BigInt(number) => number,
            _ => 0,
        };
        Ok(Some(Loaded {
            rows: number(1),
            row_bytes: number(2),
        }))
    });
    Ok(runtime()?.block_on(read)?)
}

fn create(
    db: &Arc<Database>,
    name: &str,
    kind: IndexKind,
    others: &[&str],
    data_type: DataType,
) -> Result<()> {
    let column = |name: &str, data_type| ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, data_type)
    };
    let mut columns = vec![column("id", DataType::BigInt)];
    columns.extend(others.iter().map(|name| column(name, data_type)));
    let def = TableDef {
        indexes: vec![IndexDef {
            oid: db.allocate_oid(),
            name: format!("{name}_pkey"),
            columns: vec![0],
            unique: true,
            primary: true,
            constraint: true,
            kind,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }],
        partition_key: vec![0],
        ..TableDef::new(db.allocate_oid(), name, columns)
    };
    let options = RunOptions::new();
    runtime()?.block_on(async {
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        db.ddl(&mut txn, &options, Change::CreateTable(def)).await?;
        db.commit(txn, &options).await
    })?;
    Ok(())
}

/// Loads with all threads. Each takes a chunk of keys, sorts it by partition, and
/// inserts partition by partition, so that no two wait for each other for long.
fn load(db: &Arc<Database>, options: &Options) -> Result<()> {
    let table = table(db, TABLE)?;
    let next = AtomicU64::new(0);
    let bar = progress_bar(options.rows);
    let ended: Vec<Result<()>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads)
            .map(|number| {
                let (table, next, bar) = (&table, &next, &bar);
                scope.spawn(move || load_thread(db, table, options, number, next, bar))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a loader panicked".into()))
            })
            .collect()
    });
    bar.finish_and_clear();
    ended.into_iter().collect()
}

fn load_thread(
    db: &Arc<Database>,
    table: &Table,
    options: &Options,
    number: usize,
    next: &AtomicU64,
    bar: &ProgressBar,
) -> Result<()> {
    let mut chooser = KeyChooser::new(options.rows, 0.0, options.seed + number as u64)?;
    let noise = Noise::new(&mut chooser, options.row_bytes);
    let run_options = RunOptions::default();
    let batch_rows = (LOAD_TRANSACTION_BYTES / options.row_bytes).clamp(1, LOAD_TRANSACTION_ROWS);
    let mut key_bytes = Vec::new();
    let mut tuples = Tuples::default();
    let runtime = runtime()?;
    loop {
        let first = next.fetch_add(LOAD_CHUNK_ROWS, Ordering::Relaxed);
        if first >= options.rows {
            return Ok(());
        }
        let end = (first + LOAD_CHUNK_ROWS).min(options.rows);
        let mut keys: Vec<(u16, u64)> = (first..end)
            .map(|key| {
                key_bytes.clear();
                let value = ValueRef::BigInt(key as i64);
                table.encode_index_key(PRIMARY, &[value], &mut key_bytes);
                let partition = table.partition_of_index_key(PRIMARY, &key_bytes);
                (partition.unwrap_or_default(), key)
            })
            .collect();
        keys.sort_unstable();
        for partition in keys.chunk_by(|a, b| a.0 == b.0) {
            for batch in partition.chunks(batch_rows) {
                tuples.clear();
                for (_, key) in batch {
                    let payload = noise.payload(chooser.key(), options.row_bytes);
                    let values = [ValueRef::BigInt(*key as i64), ValueRef::Bytea(payload)];
                    tuples.push(table, &values);
                }
                let scope = Scope::One(batch[0].0);
                runtime.block_on(db.one_shot(&run_options, scope, |access| {
                    for tuple in tuples.iter() {
                        access.insert(table, tuple)?;
                    }
                    Ok(())
                }))?;
                bar.inc(batch.len() as u64);
            }
        }
    }
}

/// Tuples back to back.
#[derive(Default)]
struct Tuples {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Tuples {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, table: &Table, values: &[ValueRef<'_>]) {
        table.encode_tuple(values, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let tuple = &self.bytes[start..end];
            start = end;
            tuple
        })
    }
}

/// Notes the load as completed; durable together with all before it.
fn note_loaded(db: &Arc<Database>, options: &Options) -> Result<()> {
    let table = table(db, LOAD_TABLE)?;
    let loaded = Loaded::of(options);
    let mut tuple = Vec::new();
    let values = [1, loaded.rows, loaded.row_bytes].map(ValueRef::BigInt);
    table.encode_tuple(&values, &mut tuple);
    let run_options = RunOptions::new();
    let insert = db.one_shot(&run_options, Scope::All, |access| {
        access.insert(&table, &tuple).map(|_| ())
    });
    Ok(runtime()?.block_on(insert)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(directory: &std::path::Path) -> Options {
        Options {
            data_dir: directory.join("data"),
            rows: 5000,
            row_bytes: 200,
            warmup: 0,
            seconds: 1,
            memory_limit: 256 << 20,
            partitions: 4,
            ..Options::default()
        }
    }

    #[test]
    fn a_run_loads_measures_and_uses_the_rows_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = options(directory.path());
        let first = run(&options).expect("it runs").expect("it reports");
        assert!(first.load_s.is_some());
        assert!(first.ops_per_s.is_some_and(|rate| rate > 0.0));
        assert!(first.p50_us <= first.p99_us && first.p99_us <= first.p999_us);
        assert!(first.miss_share.is_some() && first.rss_max_bytes.is_some());
        let second = run(&options).expect("it runs again").expect("it reports");
        assert_eq!(second.load_s, None, "the rows were there");
        let other = Options {
            rows: 6000,
            ..options
        };
        assert!(run(&other).is_err(), "another shape is refused");
    }

    #[test]
    fn a_row_that_was_deleted_is_gone_and_the_others_are_not() {
        use crate::ycsb::client::Client;
        use thermocline_engine::block_on;

        let directory = tempfile::tempdir().expect("a directory");
        let subject = InProcess::open(&Options {
            rows: 100,
            ..options(directory.path())
        });
        let subject = subject.expect("it loads");
        let mut client = subject.client(false);
        block_on(client.delete(5)).expect("it is there");
        assert!(block_on(client.read(5)).is_err());
        assert!(block_on(client.delete(5)).is_err());
        assert_eq!(block_on(client.read(6)).expect("it is there"), Some(false));
        subject.close().expect("it closes");
    }
}
