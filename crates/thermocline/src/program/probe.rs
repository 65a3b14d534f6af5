//! `thermocline probe`: measures the device under a directory and prints what
//! it is like, which sort of device it is, and which policy that gives.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use thermocline_device::{
    Access, Device, DeviceKind, EmulatedDevice, EmulatedProfile, FileDevice, IoEngine,
    MemoryDevice, Pattern, Probing, Report, Times,
};
use thermocline_engine::Policy;

use super::progress::Progress;
use super::{fail, refuse, say, size};

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A directory on the device; a file without a name is written there
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Measure as if the device were this one; nvram and dram lie in memory
    #[arg(long, value_name = "DEVICE", value_parser = ["hdd", "smr", "ssd", "xpoint", "nvram", "dram"])]
    emulate: Option<String>,
    /// How many times DRAM's time a cache line of an emulated nvram takes
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    nvram_times: u64,
    /// The size of the cache of an emulated smr
    #[arg(long, value_name = "SIZE", default_value = "32MB", value_parser = size::parse)]
    smr_cache: u64,
    /// Measure for about so many seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Write all figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let (device, emulated) = match open(options) {
        Ok(opened) => opened,
        Err(why) => return refuse(&why),
    };
    if let Some(file) = &options.json
        && let Err(error) = fs::write(file, "")
    {
        let file = file.display();
        return refuse(&format!("{file}: {error}; give a file that can be written"));
    }
    let mut progress = Progress::new("probe");
    let how = Probing::for_about(Duration::from_secs(options.seconds));
    let measured = thermocline_device::probe(&*device, &how, &mut |step, share| {
        progress.step(step, share);
    });
    drop(progress);
    let directory = options.directory.display();
    let report = match measured {
        Ok(report) => report,
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            return refuse(&format!("{directory}: {error}"));
        }
        Err(error) => return fail(&format!("{directory}: {error}")),
    };
    say(&report.text());
    let policy = Policy::for_device(&report.profile);
    say(&format!("policy           {policy}"));
    say(&format!("                 {}", why(&policy)));
    say(&format!(
        "the paper's      {} (DaMoN 2016, Table 1)",
        of_the_paper(report.class.kind)
    ));
    if let Some(emulated) = emulated {
        let profile = emulated.emulates();
        let reads = |depth| profile.per_second(Access::Read, 4096, depth);
        say(&format!(
            "the profile's    {:.1} us for a random read of 4 KB on average, {:.0} a second with 8 \
             under way, {:.0} with 32",
            profile.mean_ns(Access::Read, 4096, 1) / 1e3,
            reads(8),
            reads(32)
        ));
        let counts = emulated.counts();
        say(&format!(
            "emulation        {} operations, {} late by more than a tenth, {:.1} s spun",
            counts.operations,
            counts.late,
            counts.spun.as_secs_f64()
        ));
    }
    let written = options.json.as_ref().map_or(Ok(()), |file| {
        fs::write(file, format!("{:#}\n", as_json(&report, &policy)))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("the figures were not written: {error}")),
    }
}

type Opened = (Arc<dyn Device>, Option<Arc<EmulatedDevice>>);

/// The device to measure; or why it can't be, and what to do.
fn open(options: &Options) -> Result<Opened, String> {
    let directory = options.directory.as_path();
    let shown = directory.display();
    if !directory.exists() {
        return Err(format!(
            "{shown}: not there; make it, or give a directory on the device to measure"
        ));
    }
    if !directory.is_dir() {
        return Err(format!(
            "{shown}: not a directory; give one on the device to measure"
        ));
    }
    let kind = options.emulate.as_deref().and_then(DeviceKind::from_name);
    let below: Arc<dyn Device> = match kind {
        Some(DeviceKind::Nvram | DeviceKind::Dram) => Arc::new(MemoryDevice::new()),
        _ => Arc::new(
            FileDevice::open(directory, IoEngine::Auto).map_err(|error| {
                format!("{shown}: {error}; give a directory that you may write to")
            })?,
        ),
    };
    let profile = match kind {
        None => return Ok((below, None)),
        Some(DeviceKind::Nvram) => Some(EmulatedProfile::nvram(options.nvram_times)),
        Some(DeviceKind::Smr) => Some(EmulatedProfile::smr_with_cache(options.smr_cache)),
        Some(kind) => EmulatedProfile::of(kind),
    };
    let profile = profile.ok_or_else(|| "no such device can be emulated".to_owned())?;
    let device =
        EmulatedDevice::new(below, profile).map_err(|error| format!("{shown}: {error}"))?;
    let device = Arc::new(device);
    Ok((Arc::clone(&device) as Arc<dyn Device>, Some(device)))
}

/// Why this policy, in a line.
fn why(policy: &Policy) -> String {
    let merge = match policy.merge {
        thermocline_engine::Merge::UpdateOnly => {
            "a cold row is read nearly as fast as a hot one, so only changes bring it back"
        }
        _ => "a row comes back when it is warm by its count",
    };
    format!("rows are read by their sectors, so large blocks cost reads nothing; {merge}")
}

/// What the paper found best for such a device (000, Table 1).
fn of_the_paper(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Hdd | DeviceKind::Smr => {
            "block 16 KB, synchronous retrieval, merge the top 5 %, access by block"
        }
        DeviceKind::Ssd | DeviceKind::Xpoint => {
            "block 4 KB, synchronous retrieval, merge the top 5 %, access by block"
        }
        DeviceKind::Nvram => "synchronous retrieval, merge the top 5 %, access by byte",
        DeviceKind::Dram | DeviceKind::Generic => {
            "block 1 MB, abort and restart, merge always, access by block: its default"
        }
    }
}

fn as_json(report: &Report, policy: &Policy) -> Value {
    let times = |times: &Times| {
        json!({
            "count": times.count, "mean_us": times.mean_us, "median_us": times.median_us,
            "p99_us": times.p99_us, "max_us": times.max_us, "deviation_us": times.deviation_us,
        })
    };
    let cells = report.cells.iter().map(|cell| {
        let operation = match cell.operation {
            Access::Read => "read",
            Access::Write => "write",
            Access::Sync => "write and sync",
        };
        let pattern = match cell.pattern {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
        };
        json!({
            "operation": operation, "pattern": pattern, "bytes": cell.bytes,
            "depth": cell.depth, "per_second": cell.per_second, "mb_s": cell.mb_s(),
            "times": times(&cell.times),
        })
    });
    let tuples = report.tuples.iter().map(
        |row| json!({ "tuples": row.tuples, "read": times(&row.read), "write": times(&row.write) }),
    );
    let profile = &report.profile;
    json!({
        "device": report.device,
        "emulated": profile.emulated,
        "class": report.class.name(),
        "kind": report.class.kind.name(),
        "why": report.class.why,
        "file_bytes": report.file_bytes,
        "read_latency_us": profile.read_latency_us,
        "read_iops": profile.read_iops,
        "sequential_write_mb_s": profile.sequential_write_mb_s,
        "sync_us": profile.sync_us,
        "policy": policy.to_string(),
        "cells": cells.collect::<Vec<_>>(),
        "tuples": tuples.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn options(directory: &Path, emulate: Option<&str>) -> Options {
        Options {
            directory: directory.to_owned(),
            emulate: emulate.map(str::to_owned),
            nvram_times: 4,
            smr_cache: 32 << 20,
            seconds: 1,
            json: None,
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |options: &Options| match open(options) {
            Ok(_) => panic!("it was opened"),
            Err(why) => why,
        };
        let absent = directory.path().join("absent");
        assert!(refused(&options(&absent, None)).contains("not there; make it"));
        assert!(!absent.exists());
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refused(&options(&file, None)).contains("not a directory; give one"));
        // A disk is faster than any other device here, so it can always be emulated.
        let (device, emulated) =
            open(&options(directory.path(), Some("hdd"))).unwrap_or_else(|why| panic!("{why}"));
        assert!(device.describe().starts_with("emulated hdd over "));
        assert!(emulated.is_some());
        let mut fastest = options(directory.path(), Some("nvram"));
        fastest.nvram_times = 64;
        let (device, _) = open(&fastest).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(
            device.describe(),
            "emulated nvram over memory of this process"
        );
    }
}
