//! What an evictor costs that has nothing to do: `idle`.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thermocline_bench::Result;
use thermocline_bench::watch::{Count, on_threads};
use thermocline_bench::ycsb::KeyChooser;
use thermocline_bench::ycsb::client::Client;
use thermocline_bench::ycsb::in_process::InProcess;
use thermocline_device::{FileDevice, IoEngine};
use thermocline_engine::steps::{Moment, Simulator, Steps};
use thermocline_engine::{Config, Database, block_on};
use thermocline_storage::temperature;

use crate::{Job, Line, THREADS, median, promise};

/// Rows are short: with long ones the log is what limits updates.
const ROW_BYTES: usize = 100;
/// What one takes in memory, with its header, its word in the directory and its entry
/// in the index.
const ROW_TAKES: u64 = 150;
/// What an idle evictor may cost.
const IDLE_SHARE_MIN: f64 = 0.98;
/// So long one process runs before it is the other's turn.
const TURN: Duration = Duration::from_millis(200);
/// How long records gather in the log, as in [`thermocline_storage::log::LogOptions`].
const GATHERS: Duration = Duration::from_millis(10);
/// So long it works before its first.
const WARMS_UP: Duration = Duration::from_secs(1);

impl Line {
    /// Pairs of processes, with an evictor and without. One of them runs and the other is
    /// stopped, in quick turns: what else the machine does meets both.
    pub fn idle(&self, reads: f64) -> Result<bool> {
        let (mut with, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..self.pairs {
            let mut pair_of = [
                Turns::begin(self, Job::WithEvictor, reads)?,
                Turns::begin(self, Job::WithoutEvictor, reads)?,
            ];
            let turns = self.seconds * 1000 / TURN.as_millis() as u64;
            for _ in 0..turns {
                // Each goes first in half of the pairs.
                for place in 0..2 {
                    pair_of[(place + pair) % 2].run(TURN)?;
                }
            }
            let [one, other] = pair_of.map(Turns::end);
            let rates = [one?, other?];
            with.push(rates[0]);
            without.push(rates[1]);
            ratios.push(rates[0] / rates[1]);
        }
        let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ratios.iter().copied().fold(0.0, f64::max);
        let ratio = median(ratios);
        println!(
            "{:.0} % reads, medians of {} pairs",
            reads * 100.0,
            self.pairs
        );
        println!("with an evictor       {:.0} operations/s", median(with));
        println!("without               {:.0} operations/s", median(without));
        println!("ratio of a pair       {ratio:.3}, from {lowest:.3} to {highest:.3}");
        Ok(promise(ratio >= IDLE_SHARE_MIN, "at most 2 % slower"))
    }

    /// What a process of `idle` does.
    ///
    /// Without an evictor there are no background threads but a writer of the log,
    /// which is all that statements need, and each tuple is as warm as it gets. What
    /// can't be left out is a comparison and a count in each use.
    pub fn turns(&self, directory: &Path, with_evictor: bool) -> Result<bool> {
        let device = Arc::new(FileDevice::open(directory, IoEngine::Auto)?);
        let mut config = Config::new(device).memory_limit(self.memory_limit);
        // Both are measured without checkpoints.
        config.checkpoint_log_bytes = 1 << 50;
        config.checkpoint_interval = Duration::from_secs(1 << 30);
        config.background = with_evictor;
        // Who waits for room in the log waits for its writer, as with threads.
        config.simulator = (!with_evictor).then(|| Arc::new(Nothing) as Arc<dyn Simulator>);
        let db = Database::open(config)?;
        let (over, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            if !with_evictor {
                scope.spawn(|| write_log(&db, &over));
            }
            let short = Line {
                row_bytes: ROW_BYTES,
                ..self.clone()
            };
            let answered = short.answer(&db, directory, with_evictor, &stop);
            over.store(true, Ordering::Relaxed);
            answered
        })?;
        // Nobody opens it again: it needs no last checkpoint.
        Ok(true)
    }

    /// Works, and answers each line of the input with the operations so far.
    fn answer(
        &self,
        db: &Arc<Database>,
        directory: &Path,
        with_evictor: bool,
        stop: &AtomicBool,
    ) -> Result<()> {
        let rows = self.memory_limit / 2 / ROW_TAKES;
        let engine = InProcess::on_database(db.clone(), &self.options(directory, rows))?;
        let rounds = if with_evictor { 1 } else { temperature::MAX };
        let mut client = engine.client(false);
        for _ in 0..rounds {
            for key in 0..rows {
                block_on(client.read(key))?;
            }
        }
        let noise = self.noise()?;
        let counts: [Count; THREADS] = Default::default();
        let workers = |number: usize, count: &Count| {
            let mut chooser = KeyChooser::new(rows, 1.0, number as u64 + 1)?;
            // Drawn before: choosing a key costs half as much as reading a row.
            let drawn: Vec<u32> = (0..1 << 20).map(|_| chooser.key() as u32).collect();
            let mut keys = drawn.iter().cycle();
            let keys = || keys.next().map_or(0, |key| u64::from(*key));
            let client = engine.client(false);
            self.work(client, keys, self.reads, &noise, (count, stop))
        };
        thread::scope(|scope| {
            let working = scope.spawn(|| on_threads(&counts, workers));
            thread::sleep(WARMS_UP);
            let answered = answer_all(&counts);
            stop.store(true, Ordering::Relaxed);
            working.join().map_err(|_| "a worker panicked")??;
            answered
        })?;
        match engine.counters().evictions {
            0 => Ok(()),
            evictions => Err(format!("the data do not fit: {evictions} evictions").into()),
        }
    }
}

/// Answers until the input ends.
fn answer_all(counts: &[Count]) -> Result<()> {
    for line in io::stdin().lines() {
        line?;
        println!("{}", counts.iter().map(Count::get).sum::<u64>());
    }
    Ok(())
}

/// A process that works in turns, and what it did in them.
struct Turns {
    // Held for its end: the process goes first.
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    operations: u64,
    time: Duration,
    _directory: TempDir,
}

impl Turns {
    /// Starts it; when it has warmed up it is stopped.
    fn begin(line: &Line, job: Job, reads: f64) -> Result<Self> {
        let directory = line.directory()?;
        let mut command = line.command(job, directory.path(), reads)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("a process without output")?;
        let mut turns = Turns {
            input: child.stdin.take(),
            output: BufReader::new(output),
            child,
            operations: 0,
            time: Duration::ZERO,
            _directory: directory,
        };
        turns.ask()?;
        turns.signal("-STOP")?;
        Ok(turns)
    }

    /// Lets it run for so long.
    fn run(&mut self, time: Duration) -> Result<()> {
        self.signal("-CONT")?;
        let (begun, before) = (Instant::now(), self.ask()?);
        thread::sleep(time);
        self.operations += self.ask()? - before;
        self.time += begun.elapsed();
        self.signal("-STOP")
    }

    /// Ends it; the operations a second of its turns.
    fn end(mut self) -> Result<f64> {
        self.signal("-CONT")?;
        self.input = None;
        if !self.child.wait()?.success() {
            return Err("a process failed".into());
        }
        Ok(self.operations as f64 / self.time.as_secs_f64())
    }

    /// Its operations so far.
    fn ask(&mut self) -> Result<u64> {
        let input = self.input.as_mut().ok_or("the process has ended")?;
        input.write_all(b"\n")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer.trim().parse()?)
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let id = self.child.id().to_string();
        match Command::new("kill").args([signal, &id]).status()?.success() {
            true => Ok(()),
            false => Err(format!("kill {signal} {id} failed").into()),
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // Also one that is stopped. One that has ended already needs nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What runs between the steps of background tasks where there are none.
struct Nothing;

impl Simulator for Nothing {
    fn pause(&self, _: Moment) {}
}

/// Writes the log as its own thread does where nobody waits for it: what has gathered
/// in the usual time.
fn write_log(db: &Arc<Database>, over: &AtomicBool) {
    let steps = Steps::new(db);
    while !over.load(Ordering::Relaxed) {
        thread::sleep(GATHERS);
        steps.flush_log();
    }
}
