//! `thermocline bench …` without the server: builds in a fraction of the time.
//!
//! `cargo run --release -p thermocline-bench --example bench -- tpcc -D DIRECTORY`

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: thermocline_bench::Command,
}

fn main() -> ExitCode {
    thermocline_bench::run(Line::parse().command).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}
