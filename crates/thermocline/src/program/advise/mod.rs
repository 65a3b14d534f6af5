//! `thermocline advise columns`: asks a running server how its columns are used, and says which of them
//! to have in memory under a limit. It changes nothing.

mod choice;
mod gather;
mod knapsack;
mod shown;

use std::process::ExitCode;

use super::{fail, refuse, say, size};
use gather::Failed;

/// What advice is about.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Choose which columns of column tables are hot, warm and cold
    Columns(Options),
}

/// Which server, and how much memory.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What the columns may take in memory, e.g. 2GB [default: a quarter of the server's memory_limit]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// The server to ask
    #[arg(
        long,
        value_name = "URL",
        default_value = "postgres://postgres@127.0.0.1:5433/postgres"
    )]
    url: String,
}

pub(crate) fn run(command: &Command) -> ExitCode {
    let Command::Columns(options) = command;
    let memory = match options.memory.as_deref().map(size::parse).transpose() {
        Ok(memory) => memory,
        Err(why) => return refuse(&format!("--memory: {why}")),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("could not start a thread: {error}")),
    };
    match runtime.block_on(gather::ask(&options.url)) {
        Ok(facts) => {
            for line in shown::advice(&facts, memory) {
                say(&line);
            }
            ExitCode::SUCCESS
        }
        Err(Failed::ToConnect(error)) => refuse(&format!("--url: {error}")),
        Err(Failed::ToAsk(why)) => fail(&why),
    }
}
