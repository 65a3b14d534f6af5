//! The one program. `thermocline` alone serves; everything else is a
//! subcommand. Exit codes: 0 done, 1 failed while running, 2 not started
//! because something that was asked for cannot be.

mod program;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use program::{advise, backup, certificate, check, flags::Flags, help, probe, restore, serve};

// Rows live in the engine's arenas; this is for everything else, whose threads
// come and go with connections and analytical statements.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Serve PostgreSQL clients, or run a command
///
/// Thermocline is a PostgreSQL-compatible SQL database that keeps hot rows in memory and cold rows
/// on disk, within one memory limit.
#[derive(Parser)]
#[command(name = "thermocline", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Serve PostgreSQL clients, as without a command
    Serve(Box<Flags>),
    /// Run a workload, and measure it
    #[command(subcommand)]
    Bench(thermocline_bench::Command),
    /// Measure a device, and print its profile and policy
    Probe(probe::Options),
    /// Check a data directory that no server has open
    Check(check::Options),
    /// Make a backup, or add to one
    Backup(backup::Options),
    /// Restore a backup into a new data directory
    Restore(restore::Options),
    /// Look at how a server is used, and advise
    #[command(subcommand)]
    Advise(advise::Command),
    /// Make a self-signed certificate for TLS
    Certificate(certificate::Options),
    /// Print the version
    Version,
}

/// The command line with all that its help says.
fn arguments() -> clap::Command {
    help::completed(Arguments::command())
}

fn main() -> ExitCode {
    // The memory limit is for rows, not for the rests of an allocator's huge
    // pages.
    let _ = thermocline_device::huge_pages_only_when_asked();
    let given = Arguments::from_arg_matches(&arguments().get_matches());
    let arguments = given.unwrap_or_else(|error| error.exit());
    match arguments.command {
        None => serve::serve(&arguments.flags),
        Some(Command::Serve(flags)) => serve::serve(&flags),
        Some(Command::Bench(command)) => {
            thermocline_bench::run(command).unwrap_or_else(|error| program::fail(&error))
        }
        Some(Command::Probe(options)) => probe::run(&options),
        Some(Command::Check(options)) => check::run(&options),
        Some(Command::Backup(options)) => backup::run(&options),
        Some(Command::Restore(options)) => restore::run(&options),
        Some(Command::Advise(command)) => advise::run(&command),
        Some(Command::Certificate(options)) => certificate::run(&options),
        Some(Command::Version) => {
            program::say(&format!("thermocline {}", env!("CARGO_PKG_VERSION")));
            ExitCode::SUCCESS
        }
    }
}
