//! Runs a job in a process of its own, within a memory cgroup where that is
//! possible, and watches its memory.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use thermocline_bench::Result;
use thermocline_bench::rss::Sampler;

use crate::cgroup::Cgroup;
use crate::one::{Job, Outcome};
use crate::page_cache;

/// How long a run may take beyond what it measures.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long loading may take.
const LOAD_PATIENCE: Duration = Duration::from_secs(3600);
/// Arenas of the C library's allocator: by default it holds memory for each
/// thread, which small cgroups don't have.
const ARENAS: &str = "2";
/// Enters the cgroup before the program is there, so that its pages count, too.
const ENTER: &str = r#"[ -z "$0" ] || echo $$ > "$0/cgroup.procs"; exec "$@""#;

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// Well, with the largest resident memory.
    Measured(Outcome, Option<u64>),
    /// The kernel killed it, because it passed its cgroup's limit.
    Killed,
    /// Otherwise.
    Failed(String),
}

/// A copy of this program for the runs: pages of a file are charged to whoever reads
/// them first, and those of the original are this process's.
pub fn copy_program(to: &Path) -> Result<()> {
    // An older one may be running still.
    let _ = fs::remove_file(to);
    fs::copy(std::env::current_exe()?, to)?;
    Ok(())
}

/// Runs a job with a [`copy_program`]; what it prints goes to `log`. Without `limited` it
/// has no cgroup. The note says why a cgroup that was wanted is not there.
pub fn run(
    program: &Path,
    job: &Job,
    log: &Path,
    limited: bool,
) -> Result<(Ended, Option<String>)> {
    let limit = (job.memory_limit as f64 * job.system.cgroup_share()) as u64;
    let (cgroup, note) = match limited.then(|| Cgroup::new(limit)) {
        None => (None, None),
        Some(Ok(cgroup)) => (Some(cgroup), None),
        Some(Err(error)) => (None, Some(format!("no memory cgroup ({error})"))),
    };
    let kills_before = cgroup.as_ref().map_or(0, Cgroup::kills);
    page_cache::forget_file(program)?;
    let output = log.with_extension("out");
    let mut child = Command::new("sh")
        .args(["-c", ENTER])
        .arg(cgroup.as_ref().map_or(Path::new(""), Cgroup::path))
        .arg(program)
        .arg("one")
        .arg(serde_json::to_string(job)?)
        .env("MALLOC_ARENA_MAX", ARENAS)
        .stdin(std::process::Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(log)?)
        .spawn()?;
    let sampler = Sampler::start(child.id());
    let patience = if job.load_only {
        LOAD_PATIENCE
    } else {
        PATIENCE + Duration::from_secs(job.warmup_s.unwrap_or(60) + job.seconds)
    };
    let status = wait(&mut child, patience)?;
    let rss_max_bytes = sampler.stop();
    let killed = cgroup.as_ref().map_or(0, Cgroup::kills) > kills_before;
    let ended = match status {
        Some(status) if status.success() => {
            let outcome = serde_json::from_str(&fs::read_to_string(&output)?)?;
            Ended::Measured(outcome, rss_max_bytes)
        }
        _ if killed => Ended::Killed,
        status => Ended::Failed(reason(status, log)),
    };
    Ok((ended, note))
}

/// Waits for a process; one that takes too long is ended, and has no status.
fn wait(child: &mut Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn reason(status: Option<ExitStatus>, log: &Path) -> String {
    let Some(status) = status else {
        return "it took too long".into();
    };
    let text = fs::read_to_string(log).unwrap_or_default();
    let said = text.lines().rfind(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("note:")
    });
    format!("{status}: {}", said.unwrap_or("it said nothing").trim())
}
