//! One run, in a process of its own: open, warm up, measure, close. The program
//! starts itself for it, so that no run sees the memory of another.
//!
//! It writes what it measured as one line of JSON. Warming up has many requests in
//! flight also where the cell has few, which would take minutes to fill a cache.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thermocline_bench::Result;
use thermocline_bench::processors::Processors;
use thermocline_bench::ycsb::client::{Client, Noise};
use thermocline_bench::ycsb::in_process::InProcess;
use thermocline_bench::ycsb::measure::{Measured, Phase, Tally, Warmup};
use thermocline_bench::ycsb::{KeyChooser, Options, drive};

use crate::cell::{Cell, Durability};
use crate::io_limit::Switch;
use crate::rivals::{Key, Rival, Setup, Waiting, hashmap};
use crate::system::System;

/// Rows and bytes of a loading transaction.
const LOAD_ROWS: u64 = 1000;
const LOAD_BYTES: u64 = 1 << 20;
/// Warming up until the rate is steady: over these windows, at most so long.
const STABLE_WINDOW: Duration = Duration::from_secs(5);
const STABLE_MAX: Duration = Duration::from_secs(60);
/// Requests in flight while caches are filled, where the cell has fewer, and how long
/// its own number goes on before it is measured.
const FILLING_IN_FLIGHT: usize = 64;
const SETTLING: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The system.
    pub system: System,
    /// Where its data are.
    pub directory: PathBuf,
    /// The workload.
    pub cell: Cell,
    /// Rows that are loaded.
    pub rows: u64,
    /// The memory limit in bytes.
    pub memory_limit: u64,
    /// See [`Setup::cache_scale`].
    pub cache_scale: f64,
    /// Loads and ends.
    pub load_only: bool,
    /// Rows that earlier runs inserted.
    pub inserted: u64,
    /// Chooses the keys: the same for all systems in a cell, and never again, since what
    /// an earlier run has left in a cache would be asked for once more. Below 2^62.
    pub seed: u64,
    /// Seconds of warming up; None: until the rate is steady.
    pub warmup_s: Option<u64>,
    /// Seconds of measuring.
    pub seconds: u64,
    /// What holds the device's reads back while it is measured.
    pub io_switch: Option<Switch>,
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Operations a second.
    pub ops_per_s: Option<f64>,
    /// 999 of 1000 operations took no longer.
    pub p999_us: Option<f64>,
    /// Accesses to tuples that were not in memory, where the system tells.
    pub miss_share: Option<f64>,
    /// What the host of a virtual machine took of its processors meanwhile, from 0 to 1.
    pub stolen_share: f64,
    /// Rows inserted so far.
    pub inserted: u64,
}

impl Job {
    /// Threads that use the system: a rival has as many as requests are in
    /// flight; ours has tasks, and the map nothing to wait for.
    pub fn threads(&self) -> usize {
        threads(self.system, self.cell.in_flight)
    }

    fn options(&self) -> Options {
        let together = self.system == System::ThermoclineGetMany;
        Options {
            data_dir: self.directory.clone(),
            rows: self.rows,
            row_bytes: self.cell.row_bytes,
            zipf: self.cell.zipf,
            reads: self.cell.reads,
            threads: self.threads(),
            in_flight: Some(match together {
                true => self.threads(),
                false => self.cell.in_flight.max(self.threads()),
            }),
            batch: match together {
                true => (self.cell.in_flight / self.threads()).max(1),
                false => 1,
            },
            seconds: self.seconds,
            seed: self.seed,
            memory_limit: self.memory_limit,
            ordered: self.system != System::ThermoclineHash,
            synchronous_commit: self.cell.durability == Durability::Synchronous,
            load_only: self.load_only,
            inserts_from: self.cell.inserts().then_some(self.inserted),
            ..Options::default()
        }
    }

    fn setup(&self) -> Setup<'_> {
        Setup {
            directory: &self.directory,
            memory_limit: self.memory_limit,
            cache_scale: self.cache_scale,
            row_bytes: self.cell.row_bytes,
            synchronous: self.cell.durability == Durability::Synchronous && !self.load_only,
            threads: self.filling().as_ref().unwrap_or(self).threads(),
            writes: self.cell.reads < 1.0 || self.load_only,
        }
    }

    /// Called when measuring begins (and when it ends, where it changes nothing).
    fn hold_reads(&self) -> io::Result<()> {
        self.io_switch.as_ref().map_or(Ok(()), Switch::set)
    }

    /// The same with more requests in flight, to fill caches. Not where rows do, nor in
    /// SQLite, where each thread has a cache of its own.
    fn filling(&self) -> Option<Job> {
        let few = self.cell.in_flight < FILLING_IN_FLIGHT;
        let fills = self.cell.is_larger_than_memory() && !self.cell.inserts();
        (few && fills && self.system != System::Sqlite).then(|| Job {
            cell: Cell {
                in_flight: FILLING_IN_FLIGHT,
                ..self.cell
            },
            seconds: 0,
            seed: self.seed | 1 << 62,
            ..self.clone()
        })
    }

    fn warmup(&self) -> Warmup {
        match self.warmup_s {
            _ if self.filling().is_some() => Warmup::For(SETTLING),
            Some(seconds) => Warmup::For(Duration::from_secs(seconds)),
            None => Warmup::UntilStable {
                window: STABLE_WINDOW,
                max: STABLE_MAX,
            },
        }
    }
}

/// Threads that a system is driven with.
pub fn threads(system: System, in_flight: usize) -> usize {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    match system {
        System::Hashmap => in_flight.min(cores),
        ours if ours.is_ours() => in_flight.min(cores),
        _ => in_flight,
    }
}

/// Runs the job that a line of JSON describes; the outcome as another.
pub fn run(job: &str) -> Result<String> {
    let job: Job = serde_json::from_str(job)?;
    Ok(serde_json::to_string(&execute(&job)?)?)
}

fn execute(job: &Job) -> Result<Outcome> {
    match job.system {
        system if system.is_ours() => ours(job),
        System::Hashmap => rival::<hashmap::Map>(job),
        #[cfg(feature = "rocksdb")]
        System::Rocksdb => rival::<crate::rivals::rocksdb::Rocks<false, true>>(job),
        #[cfg(feature = "rocksdb")]
        System::RocksdbRowCache => rival::<crate::rivals::rocksdb::Rocks<true, true>>(job),
        #[cfg(feature = "rocksdb")]
        System::RocksdbBuffered => rival::<crate::rivals::rocksdb::Rocks<false, false>>(job),
        #[cfg(feature = "rocksdb")]
        System::RocksdbRowCacheBuffered => rival::<crate::rivals::rocksdb::Rocks<true, false>>(job),
        #[cfg(feature = "lmdb")]
        System::Lmdb => rival::<crate::rivals::lmdb::Lmdb>(job),
        #[cfg(feature = "sqlite")]
        System::Sqlite => rival::<crate::rivals::sqlite::Sqlite>(job),
        #[cfg(feature = "redb")]
        System::Redb => rival::<crate::rivals::redb::Redb>(job),
        #[cfg(feature = "fjall")]
        System::Fjall => rival::<crate::rivals::fjall::Fjall>(job),
        #[cfg(feature = "bf-tree")]
        System::BfTree => rival::<crate::rivals::bf_tree::Tree>(job),
        #[allow(unreachable_patterns)]
        other => Err(format!("this program was built without {}", other.name()).into()),
    }
}

fn ours(job: &Job) -> Result<Outcome> {
    let options = job.options();
    let engine = InProcess::open(&options)?;
    if job.load_only {
        engine.close()?;
        return Ok(Outcome::default());
    }
    let clients = async |options: &Options, number| {
        let client = |_| engine.client(options.synchronous_commit);
        Ok((0..options.tasks_of(number)).map(client).collect())
    };
    let outcome = measure(job, clients)?;
    engine.close()?;
    Ok(outcome)
}

fn rival<R: Rival>(job: &Job) -> Result<Outcome> {
    let rival = R::open(&job.setup())?;
    // The map keeps nothing between runs.
    if job.load_only || job.system == System::Hashmap {
        load(&rival, job)?;
    }
    if job.load_only {
        return Ok(Outcome::default());
    }
    let row_bytes = job.cell.row_bytes;
    measure(job, async |_, _| {
        Ok(vec![Waiting::new(rival.client()?, row_bytes)])
    })
}

/// Fills caches, settles, and measures.
fn measure<C: Client>(
    job: &Job,
    clients: impl AsyncFn(&Options, usize) -> Result<Vec<C>> + Sync,
) -> Result<Outcome> {
    if let Some(filling) = job.filling() {
        let (options, warmup) = (filling.options(), filling.warmup());
        let clients = async |number| clients(&options, number).await;
        drive(&options, &Phase::default(), warmup, clients, || ())?;
    }
    let (options, phase) = (job.options(), Phase::default());
    let clients = async |number| clients(&options, number).await;
    let held = || (job.hold_reads(), Processors::read());
    let (measured, tally) = drive(&options, &phase, job.warmup(), clients, held)?;
    outcome(job, &phase, measured, &tally)
}

fn outcome(
    job: &Job,
    phase: &Phase,
    measured: Measured<(io::Result<()>, Processors)>,
    tally: &Tally,
) -> Result<Outcome> {
    let (held, before) = measured.before;
    held?;
    let operations = tally.operations();
    Ok(Outcome {
        ops_per_s: (operations > 0).then(|| operations as f64 / measured.elapsed.as_secs_f64()),
        p999_us: tally.latency_us(0.999),
        miss_share: tally.miss_share(),
        stolen_share: measured.after.1.stolen_since(&before),
        inserted: job.inserted + phase.inserts(),
    })
}

fn load<R: Rival>(rival: &R, job: &Job) -> Result<()> {
    let row_bytes = job.cell.row_bytes;
    let mut chooser = KeyChooser::new(job.rows, 0.0, 1)?;
    let noise = Noise::new(&mut chooser, row_bytes);
    let batch = (LOAD_BYTES / row_bytes as u64).clamp(1, LOAD_ROWS);
    let mut first = 0;
    while first < job.rows {
        let end = (first + batch).min(job.rows);
        let rows: Vec<(Key, &[u8])> = (first..end)
            .map(|key| (key.to_be_bytes(), noise.payload(chooser.key(), row_bytes)))
            .collect();
        rival.load(&rows)?;
        first = end;
    }
    rival.finish_load()
}

/// A directory for a system's files, empty at first.
pub fn fresh_directory(path: &Path) -> Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path)?;
    }
    Ok(std::fs::create_dir_all(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(system: System, directory: &Path, cell: Cell) -> Job {
        Job {
            system,
            directory: directory.to_owned(),
            cell,
            rows: 5000,
            memory_limit: 128 << 20,
            cache_scale: 1.0,
            load_only: false,
            inserted: 0,
            seed: 1,
            warmup_s: Some(0),
            seconds: 1,
            io_switch: None,
        }
    }

    #[test]
    fn reads_updates_and_inserts_of_the_map_are_measured() {
        let directory = tempfile::tempdir().expect("a directory");
        for reads in [1.0, 0.5, 0.0] {
            let cell = Cell {
                size_ratio: 0.5,
                zipf: 1.0,
                reads,
                row_bytes: 100,
                in_flight: 16,
                durability: Durability::Relaxed,
            };
            let job = job(System::Hashmap, directory.path(), cell);
            let text = serde_json::to_string(&job).expect("it can be written");
            let outcome: Outcome =
                serde_json::from_str(&run(&text).expect("it runs")).expect("JSON");
            assert!(outcome.ops_per_s.is_some_and(|rate| rate > 1000.0));
            assert!(outcome.p999_us.is_some());
            assert_eq!(outcome.inserted > 0, cell.inserts());
        }
    }

    #[test]
    fn a_system_that_is_not_there_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let cell = crate::matrix::Matrix::Quick.cells()[0];
        for system in System::ALL.into_iter().filter(|system| !system.is_built()) {
            let error = execute(&job(system, directory.path(), cell)).expect_err("not built");
            assert!(error.to_string().contains(system.name()));
        }
    }
}
