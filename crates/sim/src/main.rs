//! `thermocline-sim`: the whole database in one thread from one seed, on a device that
//! crashes and lies, compared with a model.
//!
//! | file | holds |
//! |---|---|
//! | `round.rs` | a round: lives and crashes, and what may be found after each |
//! | `world.rs` | a life: who goes on next |
//! | `session.rs`, `statement.rs` | what clients do, compared with the model as they do it |
//! | `definition.rs`, `columns.rs` | what they make of the tables, and have in memory of columns |
//! | `numbers.rs` | sequences |
//! | `backup.rs` | backups into good and wrong places, and what comes of them |
//! | `origin.rs` | rounds that begin where numbers and files are large, or grow |
//! | `procedure.rs` | procedures, which are run again from the log |
//! | `faults.rs`, `damage.rs` | what the device does beside crashing; what can't be survived |
//! | `model.rs`, `schema.rs` | what the database ought to hold |
//! | `mutations.rs` | mistakes made on purpose, to see that they are found |
//! | `chance.rs` | all that is random, from the seed |

mod backup;
mod chance;
mod columns;
mod damage;
mod definition;
mod faults;
mod model;
#[cfg(feature = "mutations")]
mod mutations;
mod numbers;
mod origin;
mod policy;
mod procedure;
mod references;
mod round;
mod schema;
mod session;
mod statement;
mod tablespace;
mod world;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use thermocline_device::FaultCounts;

use round::Tally;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Failures after which it is enough.
const FAILURES_MAX: usize = 5;

/// Runs rounds of the simulator; each is repeated exactly by its seed.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The first round's seed; the next round has the next number (default: the time).
    #[arg(long)]
    seed: Option<u64>,
    /// Ends after so many rounds.
    #[arg(long)]
    rounds: Option<u64>,
    /// Ends after so many minutes.
    #[arg(long)]
    minutes: Option<f64>,
    /// Threads, each with rounds of its own.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Makes mistakes on purpose, one at a time, instead, and tells in which round each was
    /// found; `--rounds` limits the rounds for each (a build with the feature `mutations`).
    #[cfg(feature = "mutations")]
    #[arg(long)]
    mutations: bool,
    /// Makes only those whose names have this in them.
    #[cfg(feature = "mutations")]
    #[arg(long, default_value = "")]
    mistake: String,
    /// Only rounds in which the device crashes, tears and loses, but neither fails nor lies
    /// while it runs.
    #[arg(long)]
    crashes_only: bool,
    /// Goes on after failures.
    #[arg(long)]
    keep_going: bool,
    /// Prints everything that is done.
    #[arg(long)]
    trace: bool,
    /// Writes the figures to this file.
    #[arg(long)]
    json: Option<std::path::PathBuf>,
}

/// What all rounds came to.
#[derive(Default)]
struct Sum {
    rounds: u64,
    /// What a repetition has to be given besides the seed.
    options: &'static str,
    failures: Vec<(u64, String)>,
    faults: Vec<(&'static str, u64)>,
    tally: Tally,
    simulated: Duration,
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: round::Outcome) {
        self.rounds += 1;
        let faults = FaultCounts::by_kind(&outcome.faults);
        if self.faults.is_empty() {
            self.faults = faults.to_vec();
        } else {
            for (sum, (_, count)) in self.faults.iter_mut().zip(faults) {
                sum.1 += count;
            }
        }
        self.tally.add(&outcome.tally);
        self.simulated += outcome.simulated;
        if let Some(failure) = outcome.failure {
            println!(
                "FAILED: {failure}\n  repeat: thermocline-sim --seed {seed} --rounds 1{}",
                self.options
            );
            self.failures.push((seed, failure));
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    round::keep_panics();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = arguments
        .seed
        .unwrap_or_else(|| now.map_or(0, |now| now.as_micros() as u64));
    println!("seed {first}");
    #[cfg(feature = "mutations")]
    if arguments.mutations {
        let rounds = arguments.rounds.unwrap_or(2000);
        return match mutations::check(first, rounds, &arguments.mistake) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
    }
    let scope_of_rounds = round::Scope {
        trace: arguments.trace,
        crashes_only: arguments.crashes_only,
    };
    let begun = Instant::now();
    let until = arguments.minutes.map(|m| Duration::from_secs_f64(m * 60.0));
    let rounds = match (arguments.rounds, until) {
        (None, None) => 1000,
        (rounds, _) => rounds.unwrap_or(u64::MAX),
    };
    let sum = Mutex::new(Sum {
        options: if arguments.crashes_only {
            " --crashes-only"
        } else {
            ""
        },
        ..Sum::default()
    });
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed)
                    && until.is_none_or(|until| begun.elapsed() < until)
                {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= rounds {
                        break;
                    }
                    let seed = first.wrapping_add(number);
                    let outcome = round::run(seed, scope_of_rounds);
                    let Ok(mut sum) = sum.lock() else { break };
                    sum.add(seed, outcome);
                    if sum.failures.len() >= FAILURES_MAX && !arguments.keep_going {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let Ok(sum) = sum.into_inner() else {
        return ExitCode::FAILURE;
    };
    let wall = begun.elapsed();
    println!(
        "{} rounds, {} failures, {:.1} simulated hours in {:.1} s",
        sum.rounds,
        sum.failures.len(),
        sum.simulated.as_secs_f64() / 3600.0,
        wall.as_secs_f64()
    );
    for (name, count) in sum.faults.iter().chain(&sum.tally.by_kind()) {
        println!("  {name:20} {count}");
    }
    if let Some(path) = arguments.json {
        let object = |pairs: &[(&'static str, u64)]| {
            let pairs = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).into()));
            serde_json::Value::Object(pairs.collect())
        };
        let failures: Vec<_> = sum
            .failures
            .iter()
            .map(|(seed, what)| serde_json::json!({ "seed": seed, "what": what }))
            .collect();
        let json = serde_json::json!({
            "seed": first,
            "rounds": sum.rounds,
            "failures": failures,
            "faults_injected": object(&sum.faults),
            "done": object(&sum.tally.by_kind()),
            "simulated_hours": sum.simulated.as_secs_f64() / 3600.0,
            "wall_seconds": wall.as_secs_f64(),
        });
        if let Err(error) = std::fs::write(&path, format!("{json:#}\n")) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    match sum.failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
