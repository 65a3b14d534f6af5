//! How the process follows its limit: `inserts`, `delete`, `halve`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thermocline_bench::watch::{Count, Sample, on_threads, watch, windows};
use thermocline_bench::ycsb::KeyChooser;
use thermocline_bench::ycsb::client::Client;
use thermocline_bench::ycsb::in_process::InProcess;
use thermocline_bench::{Result, rss};
use thermocline_engine::block_on;

use crate::{Line, THREADS, median, megabytes, no_problems, promise};

/// What waits for the device at a time while rows are deleted, a thread.
const IN_FLIGHT: usize = 16;
/// The time in which the process follows.
const FOLLOWS: Duration = Duration::from_secs(10);
/// How long it is watched when it should have settled.
const SETTLES: Duration = Duration::from_secs(30);

impl Line {
    pub fn inserts(&self, directory: &Path) -> Result<bool> {
        let rows = self.rows_of(self.ratio * self.memory_limit);
        // A load of one row makes the table.
        let engine = InProcess::open(&self.options(directory, 1))?;
        let noise = self.noise()?;
        let next = AtomicU64::new(1);
        let begun = Instant::now();
        let counts: [Count; THREADS] = Default::default();
        let samples = watch(&counts, || {
            on_threads(&counts, |_, count| {
                let mut client = engine.client(false);
                block_on(async {
                    loop {
                        let key = next.fetch_add(1, Ordering::Relaxed);
                        if key >= rows {
                            return Ok(());
                        }
                        let payload = noise.payload(key.wrapping_mul(7919), self.row_bytes);
                        client.insert(key, payload).await?;
                        count.add();
                    }
                })
            })?;
            let took = begun.elapsed().as_secs_f64();
            println!(
                "rows                  {rows} in {took:.1} s, {:.0} rows/s",
                rows as f64 / took
            );
            let mut client = engine.client(false);
            for key in (0..rows).step_by((rows / 1000).max(1) as usize) {
                block_on(client.read(key))?;
            }
            let counters = engine.counters();
            println!("evictions             {}", counters.evictions);
            println!("waits for memory      {}", counters.memory_waits);
            no_problems(&engine)?;
            // The last checkpoint is watched, too.
            engine.close()
        })?;
        let rate = |from: u64, to: u64| {
            let at = |count| samples.iter().find(|sample| sample.operations >= count);
            let (first, last) = (at(from.max(1))?, at(to)?);
            let seconds = last.at.saturating_duration_since(first.at).as_secs_f64();
            (seconds > 0.0).then(|| (last.operations - first.operations) as f64 / seconds)
        };
        let inserted = rows - 1;
        for (name, from, to) in [
            ("first tenth", 0, inserted / 10),
            ("last tenth", inserted - inserted / 10, inserted),
        ] {
            match rate(from, to) {
                Some(rate) => println!("{name:<22}{rate:.0} rows/s"),
                None => println!("{name:<22}too short to tell"),
            }
        }
        Ok(stays_below(&samples, self.memory_limit, "the limit")
            & promise(
                rss::resident_bytes_peak(std::process::id())
                    .is_some_and(|p| p <= self.memory_limit),
                "the kernel's own peak is below the limit",
            ))
    }

    pub fn delete(&self, directory: &Path, bytes: u64) -> Result<bool> {
        let rows = self.rows_of(bytes);
        println!(
            "{rows} rows, {:.1} MB",
            megabytes(rows * self.row_bytes as u64)
        );
        let engine = InProcess::open(&self.options(directory, rows))?;
        println!(
            "| | resident MB | tuples in memory MB | their pages MB | directories and indexes MB | live MB | blocks MB | block file MB |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|---:|");
        self.print_sizes("loaded", &engine, directory, rows)?;
        let next = AtomicU64::new(0);
        let begun = Instant::now();
        let mut ended = begun;
        let counts: [Count; THREADS] = Default::default();
        let samples = watch(&counts, || {
            on_threads(&counts, |_, count| {
                let tasks = (0..IN_FLIGHT).map(|_| async {
                    let mut client = engine.client(false);
                    loop {
                        let key = next.fetch_add(1, Ordering::Relaxed);
                        if key >= rows {
                            return Result::Ok(());
                        }
                        if !key.is_multiple_of(10) {
                            client.delete(key).await?;
                            count.add();
                        }
                    }
                });
                block_on(futures::future::try_join_all(tasks)).map(|_| ())
            })?;
            ended = Instant::now();
            self.print_sizes("deleted", &engine, directory, rows.div_ceil(10))?;
            thread::sleep(SETTLES);
            // Space is given up by the checkpoint that no longer names it.
            self.print_sizes("30 s later", &engine, directory, rows.div_ceil(10))?;
            block_on(engine.database().checkpoint())?;
            self.print_sizes("after a checkpoint", &engine, directory, rows.div_ceil(10))
        })?;
        let reports = engine.database().table_reports();
        let left: u64 = reports.iter().map(|table| table.hot + table.cold).sum();
        no_problems(&engine)?;
        engine.close()?;
        let last = samples.iter().filter(|s| s.at > ended + SETTLES * 4 / 5);
        let stays = median(last.map(|sample| sample.resident as f64).collect());
        let near = stays as u64 + self.memory_limit / 10;
        let mut far = samples
            .iter()
            .rev()
            .filter(|s| s.at > ended && s.resident > near);
        let fell = far
            .next()
            .map_or(Duration::ZERO, |sample| sample.at - ended);
        println!(
            "deleting took         {:.1} s",
            (ended - begun).as_secs_f64()
        );
        println!("stays at              {:.1} MB", megabytes(stays as u64));
        println!("near that after       {:.2} s", fell.as_secs_f64());
        // The table of loads has a row, too.
        Ok(promise(fell <= FOLLOWS, "near where it stays within 10 s")
            & promise(left == rows.div_ceil(10) + 1, "a tenth of the rows is left"))
    }

    fn print_sizes(&self, when: &str, engine: &InProcess, at: &Path, live: u64) -> Result<()> {
        let memory = engine.memory();
        let devices = engine.database().device_reports();
        let blocks = devices.iter().map(|device| device.block_bytes).sum();
        println!(
            "| {when} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            megabytes(rss::resident_bytes(std::process::id()).unwrap_or(0)),
            megabytes(memory.tuples),
            megabytes(memory.arena),
            megabytes(memory.directories + memory.indexes),
            megabytes(live * self.row_bytes as u64),
            megabytes(blocks),
            megabytes(allocated(at)?),
        );
        Ok(())
    }

    pub fn halve(&self, directory: &Path) -> Result<bool> {
        let rows = self.rows_of(2 * self.memory_limit);
        let engine = InProcess::open(&self.options(directory, rows))?;
        let (noise, stop) = (self.noise()?, AtomicBool::new(false));
        let new = self.memory_limit / 2;
        let (mut halved, mut below) = (Instant::now(), None);
        let counts: [Count; THREADS] = Default::default();
        let samples = watch(&counts, || {
            let workers = |number: usize, count: &Count| {
                let mut chooser = KeyChooser::new(rows, 1.0, number as u64 + 1)?;
                let keys = || chooser.key();
                let client = engine.client(false);
                self.work(client, keys, 0.5, &noise, (count, &stop))
            };
            thread::scope(|scope| {
                let working = scope.spawn(|| on_threads(&counts, workers));
                thread::sleep(Duration::from_secs(10));
                halved = Instant::now();
                engine.set_memory_limit(new);
                while below.is_none() && halved.elapsed() < FOLLOWS {
                    let resident = rss::resident_bytes(std::process::id());
                    below = resident
                        .is_some_and(|bytes| bytes <= new)
                        .then(Instant::now);
                    thread::sleep(Duration::from_millis(1));
                }
                thread::sleep(FOLLOWS);
                stop.store(true, Ordering::Relaxed);
                working.join().map_err(|_| "a worker panicked")?
            })
        })?;
        no_problems(&engine)?;
        engine.close()?;
        // Warming up is left out.
        let before = windows(&samples, halved - Duration::from_secs(5), halved);
        println!("before                {:.0} operations/s", median(before));
        let Some(below) = below else {
            return Ok(promise(false, "below the new limit within 10 s"));
        };
        // Lowest where the fall ends as soon as it begins, too.
        let meanwhile = windows(&samples, halved, below.max(halved + Duration::from_secs(1)));
        let lowest = meanwhile.into_iter().fold(f64::INFINITY, f64::min);
        println!("lowest 100 ms         {lowest:.0} operations/s meanwhile");
        let longest = standstill(&samples, halved, below + FOLLOWS);
        println!("longest standstill    {:.3} s", longest.as_secs_f64());
        let after = windows(&samples, below + FOLLOWS / 2, below + FOLLOWS);
        println!("after                 {:.0} operations/s", median(after));
        println!(
            "below after           {:.3} s",
            (below - halved).as_secs_f64()
        );
        let mut later = samples;
        later.retain(|sample| sample.at > below && sample.at < below + FOLLOWS);
        Ok(promise(true, "below the new limit within 10 s")
            & stays_below(&later, new, "the new limit for 10 s"))
    }
}

/// Bytes that the block files take on the device.
fn allocated(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for file in fs::read_dir(directory)? {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with("blocks") {
            bytes += file.metadata()?.blocks() * 512;
        }
    }
    Ok(bytes)
}

/// The longest time between two moments in which no operation ended.
fn standstill(samples: &[Sample], from: Instant, to: Instant) -> Duration {
    let between: Vec<&Sample> = samples
        .iter()
        .filter(|s| s.at > from && s.at < to)
        .collect();
    let standing = between.chunk_by(|one, next| one.operations == next.operations);
    let times = standing.filter_map(|samples| Some(samples.last()?.at - samples.first()?.at));
    times.max().unwrap_or_default()
}

/// Prints what was sampled. Whether none is above the limit.
fn stays_below(samples: &[Sample], limit: u64, what: &str) -> bool {
    let highest = samples.iter().map(|sample| sample.resident).max();
    let above = samples.iter().filter(|sample| sample.resident > limit);
    let above = above.count();
    println!(
        "resident, highest     {:.1} MB of {:.1} in {} samples, {above} above",
        megabytes(highest.unwrap_or(0)),
        megabytes(limit),
        samples.len()
    );
    promise(!samples.is_empty() && above == 0, &format!("below {what}"))
}
