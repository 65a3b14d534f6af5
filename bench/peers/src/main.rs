//! Thermocline and other embedded engines, side by side.
//!
//! | module | holds |
//! |---|---|
//! | `system`, `cell`, `matrix` | what is compared, and on which workloads |
//! | `rivals` | the seam, and a file for each rival |
//! | `one`, `child`, `cgroup` | one run in a process and a cgroup of its own |
//! | `data`, `page_cache` | data that are loaded once and found cold by each run |
//! | `io_limit` | a device held to so many reads a second |
//! | `bound` | what the device and the best choice of tuples allow |
//! | `run`, `results` | the turns, the JSON file |
//! | `markdown`, `chart` | tables and charts of results |

mod bound;
mod cell;
mod cgroup;
mod chart;
mod child;
mod data;
mod io_limit;
mod markdown;
mod matrix;
mod one;
mod page_cache;
mod results;
mod rivals;
mod run;
mod system;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

// As the program has it; also for rivals that are written in Rust.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Thermocline and other embedded engines, side by side.
#[derive(Parser)]
#[command(name = "thermocline-peers", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure
    Run(run::Options),
    /// Draw charts of results
    Chart(chart::Options),
    /// Print results as a table in Markdown
    Table(markdown::Options),
    /// One run, for `run` to start
    #[command(hide = true)]
    One {
        /// What to run, as JSON.
        job: String,
    },
}

fn main() -> ExitCode {
    // Huge pages that nobody asked for count against a memory limit without being used.
    let _ = thermocline_device::huge_pages_only_when_asked();
    let done = match Arguments::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Chart(options) => chart::run(&options),
        Command::Table(options) => markdown::run(&options),
        Command::One { job } => one::run(&job).map(|outcome| println!("{outcome}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("thermocline-peers: {error}");
            ExitCode::FAILURE
        }
    }
}
