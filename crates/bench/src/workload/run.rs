//! A run from its beginning to its end: what cannot be run is refused, the data is loaded or
//! used again, trials are driven, the data is checked, the report is written.

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use thermocline_device::{Device, DirectoryLock, FileDevice, IoEngine, lock_directory};
use thermocline_engine::{Config, Database, Policy, RunOptions, block_on};

use super::caller::{EngineCaller, WireCaller};
use super::drive::{Driven, drive};
use super::load::{self, print_loaded};
use super::report::{Report, Sample, Trial};
use super::rows::Source;
use super::tally::Tally;
use super::{Checks, Settings, Since, Workload};
use crate::rss::{self, Sampler};
use crate::{Result, connect, runtime};

/// The engine on a directory, with a workload's data and procedures.
pub struct Opened {
    /// The database.
    pub db: Arc<Database>,
    /// Seconds that loading took; None: the rows were there.
    pub load_s: Option<f64>,
    device: Arc<dyn Device>,
    _lock: DirectoryLock,
}

/// Opens the directory, and loads it if need be.
pub fn open<W: Workload>(workload: &W, settings: &Settings) -> Result<Opened> {
    let directory = settings.data_dir.display();
    if settings.check_only && !settings.data_dir.exists() {
        return Err(format!("{directory} is not there").into());
    }
    let lock =
        lock_directory(&settings.data_dir).map_err(|error| format!("{directory}: {error}"))?;
    let device: Arc<dyn Device> = Arc::new(
        FileDevice::open(&settings.data_dir, IoEngine::Auto)
            .map_err(|error| format!("{directory}: {error}"))?,
    );
    let (db, load_s) = open_on(workload, settings, &device, settings.policy()?)?;
    Ok(Opened {
        db,
        load_s,
        device,
        _lock: lock,
    })
}

/// Opens the engine on a device, and loads it if need be; the seconds that took.
pub fn open_on<W: Workload>(
    workload: &W,
    settings: &Settings,
    device: &Arc<dyn Device>,
    policy: Option<Policy>,
) -> Result<(Arc<Database>, Option<f64>)> {
    let mut config = Config::new(device.clone())
        .memory_limit(settings.limit_bytes(workload.data_bytes()))
        .partitions(settings.partitions);
    config.policy = policy;
    for procedure in workload.procedures() {
        config.procedures.register(procedure)?;
    }
    let db = Database::open(config)?;
    let load_s = load::engine(workload, settings, &db)?;
    Ok((db, load_s))
}

/// Drives a trial of a database that is open: what it measured, and all that callers did.
pub fn drive_trial<W: Workload>(
    workload: &W,
    settings: &Settings,
    (db, device): (&Arc<Database>, &dyn Device),
    trial: u32,
    sampler: Sampler,
) -> Result<(Trial, Tally)> {
    let counters = || {
        let (engine, device) = (db.counters(), device.counters().snapshot());
        Sample {
            read_bytes: Some(device.read_bytes),
            written_bytes: Some(device.written_bytes),
            evictions: Some(engine.evictions),
            blocks_evicted: Some(engine.blocks_evicted),
            misses: Some(engine.misses),
            rss_bytes: rss::resident_bytes(std::process::id()),
            cpu_us: rss::cpu_us(std::process::id()),
        }
    };
    let callers = async |number: usize| {
        let one = |_| EngineCaller {
            workload,
            db,
            options: RunOptions {
                synchronous_commit: !settings.asynchronous_commit,
                ..RunOptions::default()
            },
        };
        Ok(settings.callers_of(number).map(one).collect())
    };
    let driven = drive(workload, settings, trial, callers, counters)?;
    let trial = trial_of(workload, &driven, sampler.stop())?;
    Ok((trial, driven.all))
}

/// Loads if need be, drives the trials and checks the data.
pub fn measure<W: Workload>(workload: &W, settings: &Settings) -> Result<Report> {
    settings.check_for(workload.data_bytes())?;
    match &settings.url {
        Some(url) => over_the_wire(workload, settings, url),
        None => in_process(workload, settings),
    }
}

/// The same, printed and written to the JSON file. The exit code is not 0 when the data does
/// not hold.
pub fn run<W: Workload>(
    workload: &W,
    settings: &Settings,
    options: &impl Serialize,
) -> Result<ExitCode> {
    let report = measure(workload, settings)?;
    let report = report.with_options(serde_json::to_value(options)?);
    print!("{report}");
    if let Some(path) = &settings.json {
        let mut text = serde_json::to_string_pretty(&report)?;
        text.push('\n');
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(match report.holds() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// How many trials are driven: none where only loading or checking is asked for.
fn trials(settings: &Settings) -> u32 {
    match settings.load_only || settings.check_only {
        true => 0,
        false => settings.trials,
    }
}

/// Whether checks are made, and whether all of them.
fn checks(settings: &Settings) -> Option<bool> {
    match settings.check {
        Checks::None => None,
        _ if settings.load_only => None,
        Checks::Standard => Some(false),
        Checks::All => Some(true),
    }
}

fn in_process<W: Workload>(workload: &W, settings: &Settings) -> Result<Report> {
    let limit = settings.limit_bytes(workload.data_bytes());
    let mut sampler = Sampler::start(std::process::id());
    let opened = open(workload, settings)?;
    let db = &opened.db;
    if let Some(seconds) = opened.load_s {
        print_loaded(workload, seconds);
    }
    let target = format!("in process, {}", opened.device.describe());
    let mut report = Report::new(workload, target, opened.load_s, Some(limit));
    report.policy = Some(db.policy().to_string());
    let source = Source::Engine(db);
    let mut since = Since {
        baseline: block_on(workload.baseline(&source))?,
        tally: Tally::new(workload.kinds().len())?,
    };
    for trial in 0..trials(settings) {
        let of_trial = std::mem::replace(&mut sampler, Sampler::start(std::process::id()));
        let place = (db, &*opened.device);
        let (trial, tally) = drive_trial(workload, settings, place, trial, of_trial)?;
        since.tally.add(&tally)?;
        report.trials.push(trial);
    }
    if let Some(all) = checks(settings) {
        let since = (!report.trials.is_empty()).then_some(&since);
        report.note_violations(block_on(workload.check(&source, all, since))?);
    }
    // The sampler watches the clean stop, too: its checkpoint is not exempt.
    db.close()?;
    report.rss_max_bytes = sampler.stop();
    Ok(report)
}

fn over_the_wire<W: Workload>(workload: &W, settings: &Settings, url: &str) -> Result<Report> {
    let server = settings.server_pid.filter(|pid| rss::is_alone(*pid));
    let load_s = load::wire(workload, settings, url)?;
    if let Some(seconds) = load_s {
        print_loaded(workload, seconds);
    }
    let version: String = runtime()?.block_on(async {
        let connection = connect(url).await?;
        let row = connection.query_one("SELECT version()", &[]).await?;
        let version: String = row.try_get(0)?;
        crate::Result::Ok(match load::is_ours(&connection).await {
            true => format!("Thermocline over the wire, which calls itself {version}"),
            false => version,
        })
    })?;
    let mut report = Report::new(workload, version, load_s, None);
    let counters = || {
        let device = server.and_then(rss::device_bytes);
        Sample {
            read_bytes: device.map(|bytes| bytes.0),
            written_bytes: device.map(|bytes| bytes.1),
            rss_bytes: server.and_then(rss::resident_bytes),
            cpu_us: server.and_then(rss::cpu_us),
            ..Sample::default()
        }
    };
    let mut since = Since {
        baseline: runtime()?.block_on(async {
            let connection = connect(url).await?;
            workload.baseline(&Source::Wire(&connection)).await
        })?,
        tally: Tally::new(workload.kinds().len())?,
    };
    for trial in 0..trials(settings) {
        let sampler = server.map(Sampler::start);
        let callers = async |number: usize| {
            let mut callers = Vec::new();
            for number in settings.callers_of(number) {
                callers.push(WireCaller::connect(workload, settings, url, number).await?);
            }
            Ok(callers)
        };
        let driven = drive(workload, settings, trial, callers, counters)?;
        since.tally.add(&driven.all)?;
        let max = sampler.and_then(Sampler::stop);
        report.trials.push(trial_of(workload, &driven, max)?);
    }
    if let Some(all) = checks(settings) {
        let since = (!report.trials.is_empty()).then_some(&since);
        let violations = runtime()?.block_on(async {
            let connection = connect(url).await?;
            workload.check(&Source::Wire(&connection), all, since).await
        })?;
        report.note_violations(violations);
    }
    Ok(report)
}

fn trial_of<W: Workload>(
    workload: &W,
    driven: &Driven<Sample>,
    rss_max_bytes: Option<u64>,
) -> Result<Trial> {
    let seconds = driven.elapsed.as_secs_f64();
    let mut trial = Trial::new(&workload.kinds(), driven, rss_max_bytes)?;
    if let Some((name, value)) = workload.headline(&driven.measured, seconds) {
        trial.headline = Some((name.to_owned(), value));
    }
    Ok(trial)
}
