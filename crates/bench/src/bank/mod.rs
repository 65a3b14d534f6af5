//! A bank whose books show what a crash did.
//!
//! Each transfer takes an amount from one account, gives it to another and enters
//! itself under a number of its own, in one transaction. The client journals the
//! numbers: `+` when the commit was acknowledged, `-` when the transaction was
//! refused or rolled back, `?` when the connection broke before the answer.
//!
//! After any number of crashes: each `+` is in the books, no `-` is, and
//! whatever is in the books was sent. Each balance is the first one plus and
//! minus the transfers that are there. A commit that is lost, doubled or halved
//! breaks one of these.

mod books;
mod journal;
mod transfers;

use std::path::PathBuf;

pub use transfers::run;

use crate::{Result, connect, runtime};
use books::Books;
use journal::Journal;

/// What each account begins with.
const FIRST_BALANCE: i64 = 1_000_000;

/// `thermocline bench bank`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Where the server is.
    #[arg(long, default_value = "postgres://postgres@127.0.0.1:5433/postgres")]
    pub url: String,
    /// What was acknowledged; lines are added to it.
    #[arg(long)]
    pub journal: PathBuf,
    /// Accounts; made when they are not there.
    #[arg(long, default_value_t = 10_000)]
    pub accounts: i64,
    /// Connections.
    #[arg(long, default_value_t = 8)]
    pub clients: usize,
    /// How long to run; a server that goes away ends it earlier.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `thermocline bench bank-check`.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckOptions {
    /// Where the server is.
    #[arg(long, default_value = "postgres://postgres@127.0.0.1:5433/postgres")]
    pub url: String,
    /// What was acknowledged.
    #[arg(long)]
    pub journal: PathBuf,
}

/// Checks the books against the journal; whether all holds. Prints what does not.
pub fn check(options: &CheckOptions) -> Result<bool> {
    let journal = Journal::read(&options.journal)?;
    let books = runtime()?.block_on(async {
        let client = connect(&options.url).await?;
        Books::read(&client).await
    })?;
    let violations = books.violations(&journal);
    println!(
        "bank: {} accounts, {} transfers in the books; journal: {} acknowledged, {} refused, \
         {} unanswered; {} violations",
        books.balances.len(),
        books.transfers.len(),
        journal.acknowledged.len(),
        journal.refused.len(),
        journal.unanswered.len(),
        violations.len(),
    );
    for violation in violations.iter().take(20) {
        println!("VIOLATION: {violation}");
    }
    Ok(violations.is_empty())
}
