//! The resident memory of a process, sampled every 10 ms, and the highest value
//! that the kernel itself has seen (`VmHWM`), which no sampling can miss.
//!
//! Assumes Linux's `/proc`. A process that has ended ends the sampling; one that
//! could never be read has no figure.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Result, size};

/// Time between two samples.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// `thermocline bench rss`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The process.
    #[arg(long)]
    pub pid: u32,
    /// What it must stay below.
    #[arg(long, value_parser = size::parse)]
    pub limit: u64,
    /// How long to watch; without it, until the process ends.
    #[arg(long)]
    pub seconds: Option<u64>,
}

/// A field of `/proc/PID/status` that is given in kB, in bytes.
fn status_field(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line
        .trim_start_matches(':')
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(kilobytes << 10)
}

/// The resident bytes of a process now.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    status_field(pid, "VmRSS")
}

/// The highest resident bytes of a process since it began.
pub fn resident_bytes_peak(pid: u32) -> Option<u64> {
    status_field(pid, "VmHWM")
}

/// The processor time that a process has used, in microseconds; it is counted in
/// hundredths of a second.
pub fn cpu_us(pid: u32) -> Option<u64> {
    const TICK_US: u64 = 10_000;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let mut next = || times.next()?.parse::<u64>().ok();
    Some((next()? + next()?) * TICK_US)
}

/// Whether the process has no children. Of a server with a process a connection
/// neither memory nor device traffic can be told from one process.
pub fn is_alone(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .is_ok_and(|children| children.trim().is_empty())
}

/// Bytes that a process has had read from and written to devices.
pub fn device_bytes(pid: u32) -> Option<(u64, u64)> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let field = |name: &str| -> Option<u64> {
        io.lines()
            .find_map(|line| line.strip_prefix(name))?
            .trim()
            .parse()
            .ok()
    };
    Some((field("read_bytes:")?, field("write_bytes:")?))
}

/// Watches a process from a thread of its own.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    max_bytes: AtomicU64,
}

impl Sampler {
    /// Begins to watch.
    pub fn start(pid: u32) -> Self {
        let shared = Arc::new(Shared::default());
        let sampled = shared.clone();
        let thread = thread::spawn(move || {
            while !sampled.stop.load(Ordering::Relaxed) {
                let Some(bytes) = resident_bytes(pid) else {
                    break;
                };
                sampled.max_bytes.fetch_max(bytes, Ordering::Relaxed);
                thread::sleep(SAMPLE_INTERVAL);
            }
        });
        Sampler {
            shared,
            thread: Some(thread),
        }
    }

    /// Stops watching; the largest sample, if there was one.
    pub fn stop(mut self) -> Option<u64> {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A sampler that died has no figure to give.
            thread.join().ok()?;
        }
        let max = self.shared.max_bytes.load(Ordering::Relaxed);
        (max > 0).then_some(max)
    }
}

/// Watches until the time is over or the process ends; whether it stayed below the limit.
pub fn run(options: &Options) -> Result<bool> {
    let end = options
        .seconds
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut samples = 0u64;
    let mut above = 0u64;
    let mut max = 0;
    let mut peak = None;
    while end.is_none_or(|end| Instant::now() < end) {
        let Some(bytes) = resident_bytes(options.pid) else {
            break;
        };
        samples += 1;
        above += u64::from(bytes > options.limit);
        max = max.max(bytes);
        if samples % 16 == 1 {
            peak = resident_bytes_peak(options.pid).or(peak);
        }
        thread::sleep(SAMPLE_INTERVAL);
    }
    peak = resident_bytes_peak(options.pid).or(peak);
    if samples == 0 {
        return Err(format!("process {} can't be read", options.pid).into());
    }
    let peak = peak.unwrap_or(max).max(max);
    println!(
        "rss: max {max} bytes ({}), kernel's peak {peak} bytes ({}), limit {} bytes ({}), \
         {samples} samples, {above} above the limit",
        size::display(max),
        size::display(peak),
        options.limit,
        size::display(options.limit),
    );
    Ok(peak <= options.limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_a_peak() {
        let now = resident_bytes(std::process::id()).expect("own status is readable");
        let peak = resident_bytes_peak(std::process::id()).expect("own status is readable");
        assert!(now > 1 << 20, "{now}");
        assert!(peak >= now / 2, "{peak} against {now}");
    }

    #[test]
    fn processor_time_grows_with_work() {
        let used = || cpu_us(std::process::id()).expect("own stat is readable");
        let (before, begin) = (used(), Instant::now());
        while begin.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        assert!(used() > before);
    }

    #[test]
    fn a_process_that_is_not_there_has_no_figure() {
        assert_eq!(resident_bytes(u32::MAX), None);
        assert_eq!(cpu_us(u32::MAX), None);
        assert_eq!(Sampler::start(u32::MAX).stop(), None);
    }

    #[test]
    fn a_sampler_sees_memory_being_taken() {
        let sampler = Sampler::start(std::process::id());
        let before = resident_bytes(std::process::id()).expect("own status is readable");
        let block = vec![1u8; 64 << 20];
        thread::sleep(3 * SAMPLE_INTERVAL);
        let max = sampler.stop().expect("samples were taken");
        assert!(block.iter().all(|byte| *byte == 1));
        assert!(max >= before + (48 << 20), "{max} against {before}");
    }
}
