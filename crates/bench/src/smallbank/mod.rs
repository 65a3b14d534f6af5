//! SmallBank (Alomari, Cahill, Fekete and Röhm, ICDE 2008): accounts with savings and checking,
//! six transactions, most of them on a few hot customers.
//!
//! The amounts are constants, as in the workload's usual implementations, so that the sum of
//! all balances after a run follows from what was committed. It is checked to the hundredth.
//!
//! | module | holds |
//! |---|---|
//! | `draw` | the mix and its inputs |
//! | `procedures` | the tables' rows changed in this process |
//! | `statements` | the same over the wire |

mod draw;
mod procedures;
mod statements;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;
use serde::Serialize;
use thermocline_engine::{Database, Procedure, RunOptions};
use thermocline_values::value::Value;
use tokio_postgres::Client;

use crate::Result;
use crate::workload::cells::{int_of, text};
use crate::workload::rows::Source;
use crate::workload::schema::TableSpec;
use crate::workload::{self, Ended, Kind, Settings, Since, Sink, Workload};

pub use draw::{Callers, Operation};

/// What is deposited, in hundredths; ...
const DEPOSIT: i64 = 130;
/// ... taken from the savings, ...
const WITHDRAWAL: i64 = 2020;
/// ... written on a check, ...
const CHECK: i64 = 500;
/// ... taken besides, where that overdraws the account, ...
const PENALTY: i64 = 100;
/// ... and sent to another customer.
const SENT: i64 = 500;

/// A check that overdrew the account; it is paid, with the penalty.
const OVERDRAWN: &str = "overdrawn, penalty paid";
/// Not enough to be taken or sent.
const TOO_LITTLE: &str = "too little money";

/// Customers of one part of a load.
const PIECE: i64 = 20_000;

const ACCOUNTS: usize = 0;
const SAVINGS: usize = 1;
const CHECKING: usize = 2;

/// `thermocline bench smallbank`.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
pub struct Options {
    /// What all workloads let one choose.
    #[command(flatten)]
    pub settings: Settings,
    /// Customers, of about 150 bytes each.
    #[arg(long, default_value_t = 1_000_000)]
    pub customers: i64,
    /// The first so many customers are hot.
    #[arg(long, default_value_t = 100)]
    pub hot: i64,
    /// So many of a hundred transactions are about hot customers.
    #[arg(long, default_value_t = 90)]
    pub hot_percent: u8,
}

/// Runs it. The exit code is not 0 when the sum of balances is wrong.
pub fn run(options: &Options) -> Result<ExitCode> {
    workload::run(&SmallBank::new(options)?, &options.settings, options)
}

/// The workload.
#[derive(Debug, Clone)]
pub struct SmallBank {
    customers: i64,
    hot: i64,
    hot_percent: u8,
}

impl SmallBank {
    /// The workload that was asked for, if it can be.
    pub fn new(options: &Options) -> Result<Self> {
        if options.customers < 2 {
            return Err("--customers must be at least 2: one sends to another".into());
        }
        if !(2..=options.customers).contains(&options.hot) {
            return Err("--hot must be at least 2, and at most --customers".into());
        }
        if options.hot_percent > 100 {
            return Err("--hot-percent must be from 0 to 100".into());
        }
        Ok(SmallBank {
            customers: options.customers,
            hot: options.hot,
            hot_percent: options.hot_percent,
        })
    }
}

impl Workload for SmallBank {
    type Operation = Operation;
    type Drawer = Callers;
    type Statements = statements::Statements;

    fn name(&self) -> &'static str {
        "smallbank"
    }

    fn load_table(&self) -> &'static str {
        "smallbank_load"
    }

    fn kinds(&self) -> Vec<Kind> {
        draw::KINDS.to_vec()
    }

    fn kind_of(&self, operation: &Operation) -> usize {
        operation.kind()
    }

    fn tables(&self) -> Vec<TableSpec> {
        let balances = |name| {
            let columns = "custid bigint, bal bigint";
            TableSpec::new(name, columns, &["custid"], &["custid"])
        };
        vec![
            TableSpec::new(
                "accounts",
                "custid bigint, name varchar(64)",
                &["custid"],
                &["custid"],
            ),
            balances("savings"),
            balances("checking"),
        ]
    }

    fn shape(&self) -> String {
        format!("{} customers", self.customers)
    }

    fn data_bytes(&self) -> u64 {
        self.customers as u64 * 150
    }

    fn parts(&self) -> u64 {
        (self.customers as u64).div_ceil(PIECE as u64)
    }

    /// Balances from 10 000 to 50 000, in hundredths as all money here.
    fn part(&self, part: u64, random: &mut StdRng, sink: &mut Sink<'_>) -> Result<()> {
        let first = part as i64 * PIECE;
        for customer in first..(first + PIECE).min(self.customers) {
            let id = Value::BigInt(customer);
            sink(ACCOUNTS, &[id.clone(), text(format!("{customer:064}"))])?;
            for table in [SAVINGS, CHECKING] {
                let balance = random.random_range(1_000_000..=5_000_000);
                sink(table, &[id.clone(), Value::BigInt(balance)])?;
            }
        }
        Ok(())
    }

    fn drawer(&self, caller: usize, _callers: usize, seed: u64) -> Callers {
        Callers::new(self.customers, self.hot, self.hot_percent, caller, seed)
    }

    fn procedures(&self) -> Vec<Procedure> {
        procedures::all()
    }

    async fn call(
        &self,
        db: &Arc<Database>,
        options: &RunOptions,
        operation: &Operation,
    ) -> Result<Ended> {
        procedures::call(db, options, operation).await
    }

    async fn prepare(&self, connection: &Client) -> Result<Self::Statements> {
        statements::Statements::prepare(connection).await
    }

    async fn execute(
        &self,
        connection: &Client,
        statements: &Self::Statements,
        operation: &Operation,
    ) -> Result<Ended> {
        statements.execute(connection, operation).await
    }

    fn expected(&self, operation: &Operation, sqlstate: &str) -> Option<&'static str> {
        let may = matches!(
            operation,
            Operation::TransactSavings { .. } | Operation::SendPayment { .. }
        );
        (may && sqlstate == procedures::TOO_LITTLE).then_some(TOO_LITTLE)
    }

    /// The sum of all balances.
    async fn baseline(&self, source: &Source<'_>) -> Result<i64> {
        let mut sum = 0;
        for table in ["savings", "checking"] {
            source
                .each(table, &["bal"], |row| sum += int_of(&row[0]))
                .await?;
        }
        Ok(sum)
    }

    async fn check(
        &self,
        source: &Source<'_>,
        _all: bool,
        since: Option<&Since>,
    ) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for table in ["accounts", "savings", "checking"] {
            let count = source.count(table, "custid").await?;
            if count != self.customers as u64 {
                found.push(format!("{table} has {count} rows, not {}", self.customers));
            }
        }
        if let Some(since) = since {
            let kinds = &since.tally.kinds;
            let done = |kind: usize| kinds[kind].done as i64;
            let checks = &kinds[draw::WRITE_CHECK];
            let overdrawn = checks.expected.get(OVERDRAWN).copied().unwrap_or(0) as i64;
            let expected = since.baseline + DEPOSIT * done(draw::DEPOSIT_CHECKING)
                - WITHDRAWAL * done(draw::TRANSACT_SAVINGS)
                - CHECK * (checks.done as i64 + overdrawn)
                - PENALTY * overdrawn;
            let sum = self.baseline(source).await?;
            if sum != expected {
                found.push(format!(
                    "by what was committed all balances sum to {expected} hundredths, and they \
                     sum to {sum}"
                ));
            }
        }
        Ok(found)
    }
}
