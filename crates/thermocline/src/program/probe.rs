//! `thermocline probe`: measures the device under a directory and prints what
//! it is like and which policy that gives.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::Policy;

use super::{fail, refuse, say};

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A directory on the device; a temporary file is written to it
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// How long to measure at most, in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let directory = options.directory.display();
    if !options.directory.is_dir() {
        return refuse(&format!("{directory}: not a directory"));
    }
    let device = match FileDevice::open(&options.directory, IoEngine::Auto) {
        Ok(device) => device,
        Err(error) => return refuse(&format!("{directory}: {error}")),
    };
    let budget = Duration::from_secs(options.seconds);
    let profile = match thermocline_device::probe(&device, budget) {
        Ok(profile) => profile,
        Err(error) => return fail(&format!("{directory}: {error}")),
    };
    let kind = format!("{:?}", profile.kind).to_lowercase();
    say(&format!("device           {}", device.describe()));
    say(&format!("kind             {kind}"));
    say(&format!(
        "read latency     {:.1} us",
        profile.read_latency_us
    ));
    say(&format!(
        "random reads     {:.0} a second",
        profile.read_iops
    ));
    let write = profile.sequential_write_mb_s;
    say(&format!("sequential write {write:.0} MB a second"));
    say(&format!("small sync       {:.0} us", profile.sync_us));
    say(&format!(
        "policy           {}",
        Policy::for_device(&profile)
    ));
    ExitCode::SUCCESS
}
