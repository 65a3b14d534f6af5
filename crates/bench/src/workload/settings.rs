//! What every workload lets one choose.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use serde::Serialize;
use thermocline_engine::{Identification, MEMORY_LIMIT_MIN, Merge, Policy};

use crate::{Result, size};

/// The most callers: each is a task in process, a connection over the wire.
const CALLERS_MAX: usize = 10_000;

/// A memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So many bytes.
    Bytes(u64),
    /// This share of the data, from 0 up; 0.25 is a limit of a fourth of the data.
    Share(f64),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let Some(percent) = text.trim().strip_suffix('%') else {
            return size::parse(text).map(Limit::Bytes);
        };
        match percent.trim().parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent.is_finite() => {
                Ok(Limit::Share(percent / 100.0))
            }
            _ => Err(format!("\"{text}\" is no share of the data, as 25% is")),
        }
    }
}

/// How much of the data is checked after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Checks {
    /// Nothing.
    None,
    /// What the specification asks for after each run.
    Standard,
    /// All that can be checked.
    All,
}

/// How transactions over the wire are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// SERIALIZABLE
    Serializable,
    /// REPEATABLE READ
    RepeatableRead,
    /// READ COMMITTED
    ReadCommitted,
}

impl Level {
    /// As SQL calls it.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Level::Serializable => "SERIALIZABLE",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::ReadCommitted => "READ COMMITTED",
        }
    }
}

/// What every workload lets one choose.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
pub struct Settings {
    /// The database's directory; loaded when it is empty, used again otherwise.
    #[arg(short = 'D', long, default_value = "thermocline-bench")]
    pub data_dir: PathBuf,
    /// Measures a server over the wire instead, e.g. postgres://postgres@127.0.0.1:5433/postgres.
    #[arg(long)]
    pub url: Option<String>,
    /// With --url: the server's process, to sample its memory and its device traffic.
    #[arg(long, requires = "url")]
    pub server_pid: Option<u32>,
    /// The database's memory limit (in process): bytes, or a share of the data such as 25%.
    #[arg(long, default_value = "512MB")]
    pub memory_limit: Limit,
    /// Partitions of a new directory (in process); 0 lets the engine choose.
    #[arg(long, default_value_t = 0)]
    pub partitions: u16,
    /// How cold rows are found (in process): temperature, clock, fifo, lru, alru, s3fifo,
    /// offline or off.
    #[arg(long)]
    pub identification: Option<String>,
    /// What becomes of rows that were fetched (in process): warm, always, update_only.
    #[arg(long)]
    pub merge: Option<String>,
    /// The unit of writing (in process), from 4kB to 1MB.
    #[arg(long, value_parser = size::parse)]
    pub block_size: Option<u64>,
    /// Commits do not wait until they are on the device.
    #[arg(long)]
    pub asynchronous_commit: bool,
    /// How transactions over the wire are kept apart; in process they are serializable.
    #[arg(long, value_enum, default_value_t = Level::Serializable)]
    pub isolation: Level,
    /// Callers: each carries out one operation at a time.
    #[arg(long, default_value_t = 8)]
    pub callers: usize,
    /// Threads that the callers share.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Operations a second over all callers, begun at fixed times whether or not earlier ones
    /// are over (an open loop). Without it each caller begins the next when one has ended.
    #[arg(long)]
    pub rate: Option<f64>,
    /// Callers wait after each operation as the specification says.
    #[arg(long)]
    pub think: bool,
    /// Seconds before measuring begins.
    #[arg(long, default_value_t = 10)]
    pub warmup: u64,
    /// Seconds to measure.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// How often that is done.
    #[arg(long, default_value_t = 1)]
    pub trials: u32,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Loads and ends.
    #[arg(long)]
    pub load_only: bool,
    /// What is checked after the last trial.
    #[arg(long, value_enum, default_value_t = Checks::Standard)]
    pub check: Checks,
    /// Checks what is there, and runs nothing.
    #[arg(long)]
    pub check_only: bool,
    /// Writes the report to this file, too.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            data_dir: "thermocline-bench".into(),
            url: None,
            server_pid: None,
            memory_limit: Limit::Bytes(512 << 20),
            partitions: 0,
            identification: None,
            merge: None,
            block_size: None,
            asynchronous_commit: false,
            isolation: Level::Serializable,
            callers: 8,
            threads: 2,
            rate: None,
            think: false,
            warmup: 10,
            seconds: 30,
            trials: 1,
            seed: 1,
            load_only: false,
            check: Checks::Standard,
            check_only: false,
            json: None,
        }
    }
}

impl Settings {
    /// What can't be run, and why; said before anything is loaded.
    pub(super) fn check_for(&self, data_bytes: u64) -> Result<()> {
        let wrong = |what: &str| Err(what.into());
        if self.trials == 0 {
            return wrong("--trials must be at least 1");
        }
        if self.seconds == 0 {
            return wrong("--seconds must be at least 1");
        }
        if self.threads == 0 || !(self.threads..=CALLERS_MAX).contains(&self.callers) {
            return wrong("--threads must be at least 1, and --callers from --threads up to 10000");
        }
        if self
            .rate
            .is_some_and(|rate| !rate.is_finite() || rate <= 0.0)
        {
            return wrong("--rate must be more than 0");
        }
        if self.check_only && (self.load_only || self.check == Checks::None) {
            return wrong("--check-only goes neither with --load-only nor with --check none");
        }
        if self.url.is_none() {
            let limit = self.limit_bytes(data_bytes);
            if limit < MEMORY_LIMIT_MIN {
                return Err(format!(
                    "the memory limit would be {}, and the least is {}; the data has about {}",
                    size::display(limit),
                    size::display(MEMORY_LIMIT_MIN),
                    size::display(data_bytes),
                )
                .into());
            }
        } else if self.identification.is_some() || self.merge.is_some() || self.block_size.is_some()
        {
            return wrong("policies are the server's own: set them there, not beside --url");
        }
        self.policy()?;
        Ok(())
    }

    /// The limit in bytes, for so much data.
    pub(super) fn limit_bytes(&self, data_bytes: u64) -> u64 {
        match self.memory_limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Share(share) => (data_bytes as f64 * share) as u64,
        }
    }

    /// The policy, if any of it was chosen.
    pub(super) fn policy(&self) -> Result<Option<Policy>> {
        if self.identification.is_none() && self.merge.is_none() && self.block_size.is_none() {
            return Ok(None);
        }
        let mut policy = Policy::default();
        if let Some(name) = &self.identification {
            policy.identification = named(&Identification::NAMES, name)?;
        }
        if let Some(name) = &self.merge {
            let wrong = || format!("there is no policy of merging {name}");
            policy.merge = Merge::named(name).ok_or_else(wrong)?;
        }
        if let Some(bytes) = self.block_size {
            if !(4 << 10..=1 << 20).contains(&bytes) || !bytes.is_power_of_two() {
                return Err("--block-size must be a power of two from 4kB to 1MB".into());
            }
            policy.block_bytes = bytes as u32;
        }
        Ok(Some(policy))
    }

    /// Callers of the thread with this number.
    pub(super) fn callers_of(&self, thread: usize) -> std::ops::Range<usize> {
        let first = |thread: usize| thread * self.callers / self.threads;
        first(thread)..first(thread + 1)
    }
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Result<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    let known = || names.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let known = known().join(", ");
        format!("there is no \"{name}\"; choose one of {known}").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn the_command_lines_defaults_are_the_structs() {
        let line = Line::try_parse_from(["bench"]).expect("no argument is needed");
        assert_eq!(line.settings, Settings::default());
    }

    #[test]
    fn a_limit_is_bytes_or_a_share() {
        assert_eq!("64MB".parse(), Ok(Limit::Bytes(64 << 20)));
        assert_eq!("12.5%".parse(), Ok(Limit::Share(0.125)));
        for wrong in ["%", "-5%", "0%", "NaN%", "much"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
        let share = Settings {
            memory_limit: Limit::Share(0.25),
            ..Settings::default()
        };
        assert_eq!(share.limit_bytes(1 << 30), 1 << 28);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let with = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check_for(1 << 30)
        };
        assert!(with(|_| ()).is_ok());
        let wrong: [fn(&mut Settings); 10] = [
            |s| s.trials = 0,
            |s| s.seconds = 0,
            |s| s.threads = 0,
            |s| s.callers = 1,
            |s| s.rate = Some(0.0),
            |s| s.memory_limit = Limit::Bytes(1 << 20),
            |s| s.memory_limit = Limit::Share(0.01),
            |s| s.identification = Some("best".into()),
            |s| s.block_size = Some(5000),
            |s| {
                s.url = Some("postgres://".into());
                s.merge = Some("warm".into());
            },
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            assert!(with(change).is_err(), "{number}");
        }
    }

    #[test]
    fn each_caller_has_one_thread() {
        let settings = Settings {
            callers: 7,
            threads: 3,
            ..Settings::default()
        };
        let all: Vec<usize> = (0..3).flat_map(|t| settings.callers_of(t)).collect();
        assert_eq!(all, (0..7).collect::<Vec<_>>());
    }
}
