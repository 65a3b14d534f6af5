//! The frame that all workloads share: what one is, how it is loaded, driven, measured,
//! reported and checked, in this process and over the wire.
//!
//! | module | holds |
//! |---|---|
//! | `settings` | what every workload lets one choose |
//! | [`schema`], [`cells`] | tables and values, once for the engine and for SQL |
//! | `load` | a load in parallel, used again when it is whole, refused when it is half |
//! | `caller` | one caller's operations, by the engine's procedures or by prepared statements |
//! | `drive`, `tally` | callers on threads, second by second; what is counted of them |
//! | [`rows`], [`reads`] | rows read back for checks; single rows that never change |
//! | `report` | the JSON file, and a table for a person |
//! | `run` | all of that in order |
//!
//! Operations are drawn by a generator with a seed of its own for each caller, and never
//! depend on what came of earlier ones: the same seed draws the same operations.

mod caller;
pub mod cells;
pub mod chance;
mod drive;
mod load;
pub mod reads;
mod report;
pub mod rows;
mod run;
pub mod schema;
mod settings;
mod tally;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use thermocline_engine::{Database, Procedure, RunOptions};
use thermocline_values::value::Value;
use tokio_postgres::Client;

use crate::Result;
use rows::Source;
use schema::TableSpec;

pub use load::{engine as load_into, wire as load_over};
pub use report::{Report, Second, Trial};
pub use run::{Opened, drive_trial, measure, open, open_on, run};
pub use settings::{Checks, Level, Limit, Settings};
pub use tally::Tally;

/// A kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kind {
    /// Its name in the report.
    pub name: &'static str,
    /// Its share of all, in percent, by the specification.
    pub percent: f64,
}

/// How an operation ended that did not fail with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Committed.
    Done,
    /// It failed in a way that the specification expects, by this name.
    Expected(&'static str),
}

/// What a run did.
#[derive(Debug, Clone)]
pub struct Since {
    /// [`Workload::baseline`] before it.
    pub baseline: i64,
    /// All that callers did since then.
    pub tally: Tally,
}

/// Whom rows of a load go to: the table's place among [`Workload::tables`], and the values.
pub type Sink<'a> = dyn FnMut(usize, &[Value]) -> Result<()> + 'a;

/// A workload.
// A caller stays on its thread: nobody needs its futures to be `Send`.
#[allow(async_fn_in_trait)]
pub trait Workload: Sync {
    /// What is drawn: a transaction and all its inputs.
    type Operation: Clone + Debug + PartialEq;
    /// Draws operations without end.
    type Drawer: Iterator<Item = Self::Operation>;
    /// Statements that a connection has prepared.
    type Statements;

    /// Its name.
    fn name(&self) -> &'static str;
    /// The table that says that a load was completed.
    fn load_table(&self) -> &'static str;
    /// The transactions.
    fn kinds(&self) -> Vec<Kind>;
    /// The place of an operation's transaction among them.
    fn kind_of(&self, operation: &Self::Operation) -> usize;
    /// The tables.
    fn tables(&self) -> Vec<TableSpec>;
    /// What a load must agree in to be used again.
    fn shape(&self) -> String;
    /// About how many bytes are loaded.
    fn data_bytes(&self) -> u64;

    /// Into how many parts a load falls; parts are loaded beside each other.
    fn parts(&self) -> u64;
    /// The rows of a part, always the same for the same `random`.
    fn part(&self, part: u64, random: &mut StdRng, sink: &mut Sink<'_>) -> Result<()>;

    /// The operations of one of so many callers.
    fn drawer(&self, caller: usize, callers: usize, seed: u64) -> Self::Drawer;
    /// How long a caller waits after an operation; only where think times are asked for.
    fn think(&self, _operation: &Self::Operation, _random: &mut StdRng) -> Duration {
        Duration::ZERO
    }

    /// The transactions, for the engine in this process.
    fn procedures(&self) -> Vec<Procedure>;
    /// Carries out an operation in this process.
    async fn call(
        &self,
        db: &Arc<Database>,
        options: &RunOptions,
        operation: &Self::Operation,
    ) -> Result<Ended>;

    /// Prepares the statements of a connection.
    async fn prepare(&self, connection: &Client) -> Result<Self::Statements>;
    /// Carries out an operation over the wire. After an error the caller rolls back.
    async fn execute(
        &self,
        connection: &Client,
        statements: &Self::Statements,
        operation: &Self::Operation,
    ) -> Result<Ended>;
    /// The failure that the specification expects where a transaction ends with this SQLSTATE.
    fn expected(&self, _operation: &Self::Operation, _sqlstate: &str) -> Option<&'static str> {
        None
    }

    /// Whether this SQLSTATE, too, says that another transaction stood in the way.
    fn is_conflict(&self, _sqlstate: &str) -> bool {
        false
    }

    /// A number that committed transactions change in a way that can be foretold, such as a
    /// sum of balances; read before a run.
    async fn baseline(&self, source: &Source<'_>) -> Result<i64>;
    /// What does not hold of the data, one sentence each. `all`: what takes long, too.
    /// `since` is what was run, unless nothing was.
    async fn check(
        &self,
        source: &Source<'_>,
        all: bool,
        since: Option<&Since>,
    ) -> Result<Vec<String>>;

    /// The figure that the specification asks for: its name, and its value.
    fn headline(&self, _tally: &Tally, _seconds: f64) -> Option<(&'static str, f64)> {
        None
    }
}

/// A place among shares, by a number from 0 to their sum.
pub fn place_by_share(kinds: &[Kind], mut number: f64) -> usize {
    for (place, kind) in kinds.iter().enumerate() {
        if number < kind.percent {
            return place;
        }
        number -= kind.percent;
    }
    kinds.len().saturating_sub(1)
}
