//! Carries out one run, in a process of its own: so its memory is its own, and whoever conducts
//! all runs can be killed and go on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use thermocline_device::{
    Device, EmulatedDevice, EmulatedProfile, FileDevice, IoEngine, MemoryDevice, OpenMode, Probing,
    probe_tuples,
};
use thermocline_engine::{Database, block_on};

use super::cold_device::{BLOCKS, ColdDevice};
use super::micro;
use super::outcome::{Moment, OPS, OPS_ERROR, Outcome};
use super::setting::{Choices, Medium, OnDatabase, Run, What, Work};
use crate::processors::Processors;
use crate::rss::{self, Sampler};
use crate::workload::rows::Source;
use crate::workload::{self, Limit, Settings, Since, Trial, Workload};
use crate::{Result, machine, tatp, tpcc, voter, ycsb_core};

/// `thermocline bench figure-run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The run, as JSON.
    #[arg(long)]
    pub run: String,
    /// Where data may be made.
    #[arg(long)]
    pub work: PathBuf,
    /// The file of the result.
    #[arg(long)]
    pub result: PathBuf,
    /// Only loads what it needs: the memory of a load is not to be that of a run.
    #[arg(long)]
    pub load: bool,
}

/// How long a run goes on at most when nobody waits for it any more.
const ORPHANED_MAX: Duration = Duration::from_millis(20);

/// Ends this process when its parent has: its result would come beside another's.
fn end_with_the_parent() {
    let parent = parent_id();
    thread::spawn(move || {
        while parent_id() == parent {
            thread::sleep(ORPHANED_MAX);
        }
        std::process::exit(1);
    });
}

/// Measures, and writes the result.
pub(super) fn run(options: &Options) -> Result<()> {
    end_with_the_parent();
    let run: Run = serde_json::from_str(&options.run)?;
    let mut outcome = Outcome {
        commit: machine::commit(),
        date: machine::date(),
        device: None,
        values: BTreeMap::new(),
        moments: Vec::new(),
        run,
    };
    let what = outcome.run.what.clone();
    match &what {
        What::Tuples {
            medium,
            smr_cache_bytes,
            milliseconds,
        } => tuples(
            &mut outcome,
            *medium,
            *smr_cache_bytes,
            *milliseconds,
            options,
        )?,
        What::Database(on) => match &on.work {
            Work::Ycsb {
                mix,
                rows,
                row_bytes,
                zipf,
            } => {
                let workload = ycsb_core::YcsbCore::new(&ycsb_core::Options {
                    mix: *mix,
                    settings: Settings::default(),
                    rows: *rows,
                    one_payload: true,
                    row_bytes: *row_bytes,
                    zipf: *zipf,
                })?;
                database(&workload, on, &mut outcome, options)?;
            }
            _ => database_of_others(on, &mut outcome, options)?,
        },
        What::Chain {
            links,
            rows,
            updates,
            zipf,
        } => {
            let seed = u64::from(outcome.run.trial);
            let values = micro::chain::measure(*links, (*rows, *updates), *zipf, seed)?;
            outcome.values.extend(values);
        }
        What::Phases {
            medium,
            merges,
            block_bytes,
            repetitions,
        } => {
            let device = emulated(medium.profile()?, &options.work)?.1;
            let values = micro::phases::measure(&*device, *merges, *block_bytes, *repetitions)?;
            outcome.device = Some(device.describe());
            outcome.values.extend(values);
        }
        What::Indexes {
            updates,
            indexes,
            tuples,
        } => {
            let values = micro::indexes::measure(*updates, *indexes, *tuples)?;
            outcome.values.extend(values);
        }
    }
    match options.load {
        true => Ok(()),
        false => outcome.write(&options.result),
    }
}

fn database_of_others(on: &OnDatabase, outcome: &mut Outcome, options: &Options) -> Result<()> {
    let settings = Settings::default();
    match &on.work {
        Work::Ycsb { .. } => Err("it is carried out by its own".into()),
        Work::Tpcc {
            warehouses,
            customers,
            items,
        } => {
            let workload = tpcc::Tpcc::new(&tpcc::Options {
                settings,
                warehouses: *warehouses,
                single_warehouse: true,
                papers_tables: true,
                items: *items,
                customers: *customers,
            })?;
            database(&workload, on, outcome, options)
        }
        Work::Tatp { subscribers } => {
            let workload = tatp::Tatp::new(&tatp::Options {
                settings,
                subscribers: *subscribers,
                non_uniform: false,
            })?;
            database(&workload, on, outcome, options)
        }
        Work::Voter { votes } => {
            let workload = voter::Voter::new(&voter::Options {
                settings,
                contestants: 6,
                votes_per_phone: 10,
                phones: None,
                votes: *votes,
            })?;
            database(&workload, on, outcome, options)
        }
    }
}

fn made(path: &Path, made: std::io::Result<()>) -> Result<()> {
    made.map_err(|error| format!("{}: {error}", path.display()).into())
}

/// A device of a directory, and one that is emulated over it.
fn emulated(
    profile: EmulatedProfile,
    directory: &Path,
) -> Result<(Arc<dyn Device>, Arc<EmulatedDevice>)> {
    let below: Arc<dyn Device> = Arc::new(
        FileDevice::open(directory, IoEngine::Auto)
            .map_err(|error| format!("{}: {error}", directory.display()))?,
    );
    let cold = EmulatedDevice::new(below.clone(), profile)?;
    Ok((below, Arc::new(cold)))
}

/// As [`emulated`], over a copy of the blocks in memory: calls of a file system take longer than
/// what is emulated.
fn over_memory(
    profile: EmulatedProfile,
    directory: &Path,
) -> Result<(Arc<dyn Device>, Arc<EmulatedDevice>)> {
    let below: Arc<dyn Device> = Arc::new(FileDevice::open(directory, IoEngine::Auto)?);
    let memory = MemoryDevice::new();
    if let Ok(from) = below.open(BLOCKS, OpenMode::Existing) {
        let (to, len) = (memory.open(BLOCKS, OpenMode::CreateNew)?, from.len()?);
        to.set_len(len)?;
        let mut piece = vec![0; 1 << 20];
        for at in (0..len).step_by(piece.len()) {
            let bytes = (len - at).min(piece.len() as u64) as usize;
            from.read_at(&mut piece[..bytes], at)?;
            to.write_at(&piece[..bytes], at)?;
        }
    }
    let cold = EmulatedDevice::new(Arc::new(memory), profile)?;
    Ok((below, Arc::new(cold)))
}

/// Says at once what this machine cannot emulate over the directory.
pub(super) fn can_emulate(medium: Medium, directory: &Path) -> Result<()> {
    if medium == Medium::Dram {
        return Ok(());
    }
    emulated(medium.profile()?, directory).map(|_| ())
}

fn tuples(
    outcome: &mut Outcome,
    medium: Medium,
    smr_cache_bytes: u64,
    milliseconds: u64,
    options: &Options,
) -> Result<()> {
    let profile = match medium {
        Medium::Smr => EmulatedProfile::smr_with_cache(smr_cache_bytes),
        _ => medium.profile()?,
    };
    let device = match medium {
        // As fast as memory is none of this machine's disks.
        Medium::Nvram | Medium::Dram => {
            Arc::new(EmulatedDevice::new(Arc::new(MemoryDevice::new()), profile)?)
        }
        _ => emulated(profile, &options.work)?.1,
    };
    let how = Probing {
        file_bytes_max: 64 << 20,
        ..Probing::for_about(Duration::from_millis(milliseconds))
    };
    for measured in probe_tuples(&*device, &how)? {
        for (name, times) in [("read", &measured.read), ("write", &measured.write)] {
            let kb = measured.tuples;
            let mut put = |of: &str, value| {
                let _ = outcome.values.insert(format!("{name}_{kb}kb_{of}"), value);
            };
            put("us", times.mean_us);
            put("deviation_us", times.deviation_us);
            put("count", times.count as f64);
        }
    }
    note_emulation(outcome, &device, None);
    outcome.device = Some(device.describe());
    Ok(())
}

/// How much was late, and the share of one core that was spun away meanwhile.
fn note_emulation(outcome: &mut Outcome, device: &EmulatedDevice, since: Option<(u64, u64, f64)>) {
    let counts = device.counts();
    let (operations, late, spun_s) = since.unwrap_or_default();
    let spun = counts.spun.as_secs_f64() - spun_s;
    let values = [
        (
            "emulated_operations",
            (counts.operations - operations) as f64,
        ),
        ("emulated_late", (counts.late - late) as f64),
        ("emulated_spun_s", spun),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value));
    outcome.values.extend(values);
}

fn settings_of(on: &OnDatabase, trial: u32) -> Settings {
    Settings {
        memory_limit: Limit::Bytes(on.memory_bytes),
        asynchronous_commit: true,
        callers: on.callers,
        threads: 2,
        warmup: on.warmup_s,
        seconds: on.seconds,
        seed: 1 + u64::from(trial),
        ..Settings::default()
    }
}

/// Where what runs with these settings share is loaded.
pub(super) fn load_of(what: &What, work: &Path) -> Option<PathBuf> {
    let load = what.load();
    (!load.is_empty()).then(|| work.join(format!("load-{load}")))
}

/// Loads for these settings, so that no run need do so.
fn load<W: Workload>(workload: &W, on: &OnDatabase, work: &Path, place: &Path) -> Result<()> {
    let half = work.join("load-half");
    remove(&half)?;
    made(&half, fs::create_dir_all(&half))?;
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(&half, IoEngine::Auto)?);
    let policy = Choices::generic()
        .block_bytes(on.choices.block_bytes)
        .policy()?;
    // The seed of the load is no trial's.
    let settings = settings_of(on, 0);
    let (db, _) = workload::open_on(workload, &settings, &device, Some(policy))?;
    db.close()?;
    drop(db);
    made(place, fs::rename(&half, place))
}

/// Removes a directory that may not be there.
pub(super) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", directory.display()).into())
        }
        _ => Ok(()),
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    made(to, fs::create_dir_all(to))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let path = to.join(entry.file_name());
            made(&path, fs::copy(entry.path(), &path).map(|_| ()))?;
        }
    }
    Ok(())
}

fn database<W: Workload>(
    workload: &W,
    on: &OnDatabase,
    outcome: &mut Outcome,
    options: &Options,
) -> Result<()> {
    let place = load_of(&outcome.run.what, &options.work);
    if options.load {
        return match place {
            Some(place) => load(workload, on, &options.work, &place),
            None => Ok(()),
        };
    }
    let directory = options.work.join("run");
    remove(&directory)?;
    match place {
        Some(place) => copy(&place, &directory)?,
        None => made(&directory, fs::create_dir_all(&directory))?,
    }
    let measured = in_directory(workload, on, outcome, &directory);
    remove(&directory)?;
    measured
}

fn in_directory<W: Workload>(
    workload: &W,
    on: &OnDatabase,
    outcome: &mut Outcome,
    directory: &Path,
) -> Result<()> {
    // What never leaves memory needs no device.
    let medium = if on.fits { Medium::Hdd } else { on.medium };
    let (below, cold) = match medium {
        Medium::Dram => over_memory(medium.profile()?, directory)?,
        _ => emulated(medium.profile()?, directory)?,
    };
    cold.set_paced(false);
    let device: Arc<dyn Device> = Arc::new(ColdDevice::new(below, cold.clone()));
    let settings = settings_of(on, outcome.run.trial);
    let policy = Some(on.choices.policy()?);
    let (db, _) = workload::open_on(workload, &settings, &device, policy)?;
    let baseline = match on.check {
        true => block_on(workload.baseline(&Source::Engine(&db)))?,
        false => 0,
    };
    let emulation = cold.counts();
    let sampler = Sampler::start(std::process::id());
    let used = Used::read();
    let (trial, tally) = thread::scope(|scope| {
        if !on.fits {
            scope.spawn(|| {
                thread::sleep(Duration::from_secs(on.unpaced_s));
                cold.set_paced(true);
            });
        }
        workload::drive_trial(
            workload,
            &settings,
            (&db, &*device),
            outcome.run.trial,
            sampler,
        )
    })?;
    cold.set_paced(false);
    if let Some(cores) = used.by_others_since() {
        let _ = outcome.values.insert("others_cores".into(), cores);
    }
    note_trial(outcome, &trial);
    note_database(outcome, &db);
    let since = (
        emulation.operations,
        emulation.late,
        emulation.spun.as_secs_f64(),
    );
    note_emulation(outcome, &cold, Some(since));
    outcome.device = Some(match on.fits {
        true => "none: all in memory".to_owned(),
        false => device.describe(),
    });
    if on.check {
        let since = Since { baseline, tally };
        let found = block_on(workload.check(&Source::Engine(&db), false, Some(&since)))?;
        if let Some(first) = found.first() {
            return Err(format!("the data does not hold: {first}").into());
        }
    }
    db.close()?;
    Ok(())
}

/// The processors' time at a moment, and this process's.
struct Used {
    at: Instant,
    all: Processors,
    own_us: Option<u64>,
}

impl Used {
    fn read() -> Self {
        Used {
            at: Instant::now(),
            all: Processors::read(),
            own_us: rss::cpu_us(std::process::id()),
        }
    }

    /// How many cores others have used since, the host included.
    fn by_others_since(&self) -> Option<f64> {
        let now = Used::read();
        let cores = machine::machine().cores? as f64;
        let seconds = (now.at - self.at).as_secs_f64().max(1e-9);
        let own = now.own_us?.checked_sub(self.own_us?)? as f64 / 1e6 / seconds;
        Some((now.all.used_since(&self.all) * cores - own).max(0.0))
    }
}

fn note_trial(outcome: &mut Outcome, trial: &Trial) {
    let seconds = trial.measured_s.max(1e-9);
    let operations = (trial.operations as f64).max(1.0);
    let rates: Vec<f64> = trial
        .seconds
        .iter()
        .map(|second| second.ops_per_s)
        .collect();
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let mut sorted = rates.clone();
    sorted.sort_by(f64::total_cmp);
    let blocks: u64 = trial
        .seconds
        .iter()
        .filter_map(|one| one.blocks_evicted)
        .sum();
    let mut put = |name: &str, value: f64| {
        let _ = outcome.values.insert(name.to_owned(), value);
    };
    put(OPS, trial.ops_per_s);
    put(OPS_ERROR, error);
    put(
        "lowest_second",
        if lowest.is_finite() { lowest } else { 0.0 },
    );
    put(
        "median_second",
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0),
    );
    put(
        "deviation_by_mean",
        (squares / count).sqrt() / mean.max(1e-9),
    );
    put("blocks_per_s", blocks as f64 / seconds);
    // Where nothing was evicted the time between two evictions is not less than all of it.
    if let Some(evictions) = trial.evictions {
        let thousands = evictions as f64 / 1000.0;
        put("eviction_interval_s", seconds / thousands.max(1.0));
    }
    let counted = [
        ("misses_per_op", trial.misses),
        ("evictions_per_op", trial.evictions),
        ("read_bytes_per_op", trial.read_bytes),
        ("written_bytes_per_op", trial.written_bytes),
    ];
    for (name, value) in counted {
        if let Some(value) = value {
            put(name, value as f64 / operations);
        }
    }
    let others = [
        ("p50_us", trial.p50_us),
        ("p99_us", trial.p99_us),
        ("cpu_us_per_op", trial.cpu_us_per_op),
        (
            "rss_max_bytes",
            trial.rss_max_bytes.map(|bytes| bytes as f64),
        ),
    ];
    for (name, value) in others {
        if let Some(value) = value {
            put(name, value);
        }
    }
    outcome.moments = trial
        .seconds
        .iter()
        .map(|second| Moment {
            end_s: second.end_s,
            ops_per_s: second.ops_per_s,
            blocks: second.blocks_evicted.unwrap_or(0),
        })
        .collect();
}

fn note_database(outcome: &mut Outcome, db: &Database) {
    let memory = db.memory_report();
    let values = [
        ("hot_bytes", memory.tuples),
        ("metadata_bytes", memory.metadata),
    ];
    let values = values.map(|(name, bytes)| (name.to_owned(), bytes as f64));
    outcome.values.extend(values);
}
