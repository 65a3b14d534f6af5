//! What is promised about `memory_limit`, with the engine alone.
//!
//! `limits [inserts] [delete] [halve] [idle] -D DIRECTORY [--memory-limit 256MB] [--ratio 16]`
//!
//! | part | shows | promise | takes about |
//! |---|---|---|---|
//! | `inserts` | rows inserted at full speed by two threads until they are `--ratio` times the limit; as root in a memory cgroup (version 1) of the limit and a tenth | no sample of the resident size is above the limit | 1 minute |
//! | `delete` | nine rows of ten deleted, of data of half the limit and of four times the limit | after 10 s the process is within a tenth of the limit of where it stays | 2 minutes |
//! | `halve` | the limit halved while two threads read and update rows of twice the limit (Zipf 1.0) | after 10 s the process is below it, and stays there | 1 minute |
//! | `idle` | reads, and reads and updates by halves, of 100-byte rows that fill half the limit, beside an engine without an evictor | at most 2 % slower | 4 minutes |
//!
//! DIRECTORY should be on the disk that is meant. The resident size is sampled every 10 ms.
//! Each part has a process of its own, `idle` two for each pair. It exits with an error
//! when a promise does not hold.

mod follow;
mod idle;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, ValueEnum};
use rand::RngExt;
use tempfile::TempDir;
use thermocline_bench::watch::Count;
use thermocline_bench::ycsb::client::{Client, Noise};
use thermocline_bench::ycsb::in_process::InProcess;
use thermocline_bench::ycsb::{EngineClient, KeyChooser, Options};
use thermocline_bench::{Result, size};
use thermocline_engine::{MEMORY_LIMIT_MIN, block_on};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const THREADS: usize = 2;

#[derive(Clone, Parser)]
struct Line {
    /// These parts; otherwise all.
    parts: Vec<Part>,
    /// Each part has a directory in this one, and removes it.
    #[arg(short = 'D', long, default_value = "thermocline-limits")]
    data_dir: PathBuf,
    /// The memory limit.
    #[arg(long, default_value = "256MB", value_parser = size::parse)]
    memory_limit: u64,
    /// `inserts`: the data by the limit.
    #[arg(long, default_value_t = 16)]
    ratio: u64,
    /// Bytes of a row's payload; `idle` has 100.
    #[arg(long, default_value_t = 1000)]
    row_bytes: usize,
    /// `idle`: pairs of processes, with an evictor and without.
    #[arg(long, default_value_t = 7)]
    pairs: usize,
    /// `idle`: seconds that each of them runs.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// What this process is to do, for the one that started it.
    #[arg(long, hide = true, requires = "at")]
    inside: Option<Job>,
    /// … its directory, ...
    #[arg(long, hide = true)]
    at: Option<PathBuf>,
    /// … the share of reads, ...
    #[arg(long, hide = true, default_value_t = 0.5)]
    reads: f64,
    /// … and its cgroup.
    #[arg(long, hide = true)]
    cgroup: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Inserts,
    Delete,
    Halve,
    Idle,
}

/// A process's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Job {
    Inserts,
    DeleteHot,
    DeleteCold,
    Halve,
    WithEvictor,
    WithoutEvictor,
}

fn main() -> Result<ExitCode> {
    let _ = thermocline_device::huge_pages_only_when_asked();
    let line = Line::parse();
    let held = match (line.inside, &line.at) {
        (Some(job), Some(directory)) => line.run(job, directory)?,
        _ => {
            // Half of it must be a limit, too.
            if line.memory_limit < 2 * MEMORY_LIMIT_MIN {
                let least = size::display(2 * MEMORY_LIMIT_MIN);
                return Err(format!("--memory-limit must be at least {least}").into());
            }
            fs::create_dir_all(&line.data_dir)?;
            let parts = match line.parts.is_empty() {
                true => Part::value_variants(),
                false => &line.parts,
            };
            let mut held = true;
            for part in parts {
                held &= line.conduct(*part)?;
            }
            // Where other things are, it stays.
            let _ = fs::remove_dir(&line.data_dir);
            held
        }
    };
    Ok(match held {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Says whether a promise holds.
fn promise(holds: bool, what: &str) -> bool {
    let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
    println!("{verdict:<22}{what}");
    holds
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Line {
    /// Runs the processes of a part. Whether what it promises holds.
    fn conduct(&self, part: Part) -> Result<bool> {
        let limit = size::display(self.memory_limit);
        let bytes = self.row_bytes;
        match part {
            Part::Inserts => {
                let ratio = self.ratio;
                println!("\n## inserts: {ratio} times {limit} in rows of {bytes} bytes\n");
                let group = Cgroup::new(self.memory_limit + self.memory_limit / 10);
                let group = group.inspect_err(|error| println!("no memory cgroup: {error}"));
                let group = group.ok();
                let held = self.child(Job::Inserts, group.as_ref())?;
                if let Some(group) = group {
                    println!(
                        "cgroup, highest use   {:.1} MB",
                        megabytes(group.highest()?)
                    );
                }
                Ok(held)
            }
            Part::Delete => {
                println!("\n## delete: nine rows of ten, limit {limit}, rows of {bytes} bytes\n");
                let hot = self.child(Job::DeleteHot, None)?;
                println!();
                Ok(self.child(Job::DeleteCold, None)? && hot)
            }
            Part::Halve => {
                println!("\n## halve: from {limit}, rows of {bytes} bytes\n");
                self.child(Job::Halve, None)
            }
            Part::Idle => {
                println!("\n## idle: half of {limit}, in short rows\n");
                let mut held = true;
                for reads in [1.0, 0.5] {
                    held &= self.idle(reads)?;
                }
                Ok(held)
            }
        }
    }

    fn directory(&self) -> Result<TempDir> {
        Ok(tempfile::tempdir_in(&self.data_dir)?)
    }

    /// A process for a task.
    fn command(&self, job: Job, directory: &Path, reads: f64) -> Result<Command> {
        let name = job.to_possible_value().ok_or("a task without a name")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1));
        command.args(["--inside", name.get_name(), "--reads", &reads.to_string()]);
        command.arg("--at").arg(directory);
        Ok(command)
    }

    /// Runs a task in a process of its own. Whether what it promises holds.
    fn child(&self, job: Job, group: Option<&Cgroup>) -> Result<bool> {
        let directory = self.directory()?;
        let mut command = self.command(job, directory.path(), 0.5)?;
        if let Some(group) = group {
            command.arg("--cgroup").arg(&group.0);
        }
        let status = command.status()?;
        // It says itself what does not hold.
        if status.code().is_none() {
            println!("DOES NOT HOLD         the process was killed: {status}");
        }
        Ok(status.success())
    }

    /// What a process does. Whether what it shows holds.
    fn run(&self, job: Job, directory: &Path) -> Result<bool> {
        if let Some(group) = &self.cgroup {
            fs::write(group.join("cgroup.procs"), std::process::id().to_string())?;
        }
        match job {
            Job::Inserts => self.inserts(directory),
            Job::DeleteHot => self.delete(directory, self.memory_limit / 2),
            Job::DeleteCold => self.delete(directory, self.memory_limit * 4),
            Job::Halve => self.halve(directory),
            Job::WithEvictor => self.turns(directory, true),
            Job::WithoutEvictor => self.turns(directory, false),
        }
    }

    fn rows_of(&self, bytes: u64) -> u64 {
        (bytes / self.row_bytes as u64).max(10)
    }

    fn options(&self, directory: &Path, rows: u64) -> Options {
        Options {
            data_dir: directory.into(),
            rows,
            row_bytes: self.row_bytes,
            threads: THREADS,
            memory_limit: self.memory_limit,
            ..Options::default()
        }
    }

    fn noise(&self) -> Result<Noise> {
        Ok(Noise::new(&mut KeyChooser::new(1, 0.0, 1)?, self.row_bytes))
    }

    /// Reads rows, and updates the others, until it is told to stop.
    fn work(
        &self,
        mut client: EngineClient<'_>,
        mut keys: impl FnMut() -> u64,
        reads: f64,
        noise: &Noise,
        (count, stop): (&Count, &AtomicBool),
    ) -> Result<()> {
        let mut chooser = KeyChooser::new(1, 0.0, 1)?;
        block_on(async {
            while !stop.load(Ordering::Relaxed) {
                let key = keys();
                if chooser.random().random_bool(reads) {
                    client.read(key).await?;
                } else {
                    let choice = chooser.random().random();
                    let payload = noise.payload(choice, self.row_bytes);
                    client.update(key, payload).await?;
                }
                count.add();
            }
            Ok(())
        })
    }
}

fn no_problems(engine: &InProcess) -> Result<()> {
    match engine.database().take_problems().first() {
        Some(problem) => Err(problem.clone().into()),
        None => Ok(()),
    }
}

/// A memory cgroup (version 1) for a process. Dropping it removes it.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(limit: u64) -> io::Result<Self> {
        let name = format!("thermocline-limits-{}", std::process::id());
        let group = Cgroup(Path::new("/sys/fs/cgroup/memory").join(name));
        fs::create_dir(&group.0)?;
        fs::write(group.0.join("memory.limit_in_bytes"), limit.to_string())?;
        Ok(group)
    }

    /// The most that was in it, the page cache included, in bytes.
    fn highest(&self) -> Result<u64> {
        let text = fs::read_to_string(self.0.join("memory.max_usage_in_bytes"))?;
        Ok(text.trim().parse()?)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its page cache would pass to the parent. One that can't be removed is
        // empty, and there is nobody to tell.
        let _ = fs::write(self.0.join("memory.force_empty"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}
