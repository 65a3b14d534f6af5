//! Workloads, and what they measure.
//!
//! | module | holds |
//! |---|---|
//! | [`workload`] | the frame of the standard workloads: load, drive, measure, check, report; in process and over the wire |
//! | [`tpcc`] | TPC-C and its conditions of consistency |
//! | [`tatp`], [`smallbank`], [`voter`] | TATP, SmallBank and Voter |
//! | [`ycsb_core`] | YCSB's core workloads A to F |
//! | [`ycsb`] | reads and updates of one row by key, with a Zipf-distributed choice of rows |
//! | [`identification`] | policies of what stays in memory, compared on traces by their misses |
//! | [`figures`] | the figures of two papers, drawn from our own runs |
//! | [`bank`] | transfers whose traces show any lost, doubled or halved commit after a crash |
//! | [`copy`], [`query`], [`rss`] | what the trial scripts need besides: a COPY to interrupt, a query with a stopwatch, a process's resident memory |
//! | [`measure`] | when operations count, and what is counted of them |
//! | [`watch`] | this process's resident memory and operations, moment by moment |
//! | [`machine`], [`processors`], [`size`] | what a result was measured on; what its host took of it; byte sizes as text |
//!
//! A figure that a run can't measure is absent (`null`), never 0.

pub mod bank;
pub mod copy;
pub mod figures;
pub mod identification;
pub mod machine;
pub mod measure;
pub mod processors;
pub mod query;
pub mod rss;
pub mod size;
pub mod smallbank;
pub mod tatp;
pub mod tpcc;
pub mod voter;
pub mod watch;
pub mod workload;
pub mod ycsb;
pub mod ycsb_core;

use std::pin::{Pin, pin};
use std::process::ExitCode;

/// What went wrong, for a person to read.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result with an error for a person to read.
pub type Result<T> = std::result::Result<T, Error>;

/// `thermocline bench …`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Read and update rows by key, Zipf-distributed, in this process or over the wire
    Ycsb(ycsb::Options),
    /// Run TPC-C: five transactions over nine tables, and its conditions of consistency
    Tpcc(tpcc::Options),
    /// Run YCSB's core workloads A to F: fields, inserts, scans, read-modify-writes, latest rows
    YcsbCore(ycsb_core::Options),
    /// Run TATP: a telephone network's register, seven short transactions
    Tatp(tatp::Options),
    /// Run SmallBank: six transactions over accounts, and check the sum of balances
    Smallbank(smallbank::Options),
    /// Run Voter: calls that vote, so many for each phone
    Voter(voter::Options),
    /// Compare policies of what stays in memory on traces, by how many accesses miss
    Identification(identification::Options),
    /// Draw the figures of papers 000 and 004 from our own runs, and check what the papers found
    Figures(figures::Options),
    /// One run of a figure.
    #[command(hide = true)]
    FigureRun(figures::RunOptions),
    /// Transfers between accounts, with a journal of what was acknowledged.
    #[command(hide = true)]
    Bank(bank::Options),
    /// Checks accounts and transfers against the journal.
    #[command(hide = true)]
    BankCheck(bank::CheckOptions),
    /// One COPY of many rows, to be interrupted.
    #[command(hide = true)]
    Copy(copy::Options),
    /// Runs a query as soon as the server answers, and prints the result.
    #[command(hide = true)]
    Query(query::Options),
    /// Watches a process's resident memory.
    #[command(hide = true)]
    Rss(rss::Options),
}

/// Runs a workload. The exit code is not 0 when what it checks does not hold.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Ycsb(options) => ycsb::run(options).map(|()| ExitCode::SUCCESS),
        Command::Tpcc(options) => tpcc::run(&options),
        Command::YcsbCore(options) => ycsb_core::run(&options),
        Command::Tatp(options) => tatp::run(&options),
        Command::Smallbank(options) => smallbank::run(&options),
        Command::Voter(options) => voter::run(&options),
        Command::Identification(options) => {
            identification::run(&options).map(|()| ExitCode::SUCCESS)
        }
        Command::Figures(options) => figures::run(&options),
        Command::FigureRun(options) => figures::run_one(&options),
        Command::Bank(options) => bank::run(&options).map(|()| ExitCode::SUCCESS),
        Command::BankCheck(options) => Ok(exit_code(bank::check(&options)?)),
        Command::Copy(options) => copy::run(&options).map(|()| ExitCode::SUCCESS),
        Command::Query(options) => query::run(&options).map(|()| ExitCode::SUCCESS),
        Command::Rss(options) => Ok(exit_code(rss::run(&options)?)),
    }
}

fn exit_code(holds: bool) -> ExitCode {
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A runtime for one thread, for workloads that speak the wire protocol.
struct OneThread(tokio::runtime::Runtime);

impl OneThread {
    /// Runs a future to its end. Tokio sees one type of future, whatever runs: it would be
    /// compiled again for each.
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut output = None;
        {
            let run = pin!(async { output = Some(future.await) });
            let run: Pin<&mut dyn Future<Output = ()>> = run;
            self.0.block_on(run);
        }
        output.expect("it ran to its end")
    }
}

fn runtime() -> Result<OneThread> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(OneThread(runtime))
}

/// Connects, and leaves the connection's own work to the runtime.
async fn connect(url: &str) -> Result<tokio_postgres::Client> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    // A connection that ends is an error of each request that follows.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}
