//! TPC-C (revision 5.11): the nine tables, the five transactions, their mix and inputs, and the
//! twelve conditions of consistency. Response times, terminals' screens and the price are left
//! out; keying and think times come on request.
//!
//! | module | holds |
//! |---|---|
//! | `tables`, `load` | clause 1.3, and the rows of clause 4.3 |
//! | `draw` | the mix and the inputs of clauses 2.4 to 2.8 |
//! | `procedures` | the transactions in this process |
//! | `statements` | the transactions over the wire |
//! | `consistency` | the conditions of clause 3.3.2 |

mod consistency;
mod draw;
mod load;
mod procedures;
mod statements;
mod tables;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use serde::Serialize;
use thermocline_engine::{Database, Procedure, RunOptions};
use tokio_postgres::Client;

use crate::Result;
use crate::workload::cells::int_of;
use crate::workload::rows::Source;
use crate::workload::schema::TableSpec;
use crate::workload::{self, Ended, Kind, Settings, Since, Sink, Tally, Workload};

pub use draw::{Customer, Line, Operation, Terminal};

/// Districts of a warehouse.
const DISTRICTS: i32 = 10;
/// The most warehouses: what a load takes is counted in 32 bits here and there.
const WAREHOUSES_MAX: i32 = 10_000;

/// How large the tables are (1.2.1, 4.3.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: i32,
    /// Items, and stocks of each warehouse; 100 000 by the specification.
    pub items: i32,
    /// Customers, and orders at the beginning, of each district; 3000 by the specification.
    pub customers: i32,
}

impl Default for Scale {
    fn default() -> Self {
        Scale {
            warehouses: 1,
            items: 100_000,
            customers: 3000,
        }
    }
}

impl Scale {
    /// Last names that customers have.
    fn last_names(&self) -> i32 {
        self.customers.min(1000)
    }

    /// Orders of a district that are delivered when it is loaded.
    fn delivered(&self) -> i64 {
        i64::from(self.customers) * 7 / 10
    }
}

/// `thermocline bench tpcc`.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
pub struct Options {
    /// What all workloads let one choose.
    #[command(flatten)]
    pub settings: Settings,
    /// Warehouses, of about 75 MB each.
    #[arg(long, default_value_t = 1)]
    pub warehouses: i32,
    /// No order and no payment reaches another warehouse than its own.
    #[arg(long)]
    pub single_warehouse: bool,
    /// Only history, orders and order lines may leave memory, as in the papers.
    #[arg(long)]
    pub papers_tables: bool,
    /// Items; anything but 100000 is no TPC-C.
    #[arg(long, default_value_t = 100_000, hide = true)]
    pub items: i32,
    /// Customers of a district; anything but 3000 is no TPC-C.
    #[arg(long, default_value_t = 3000, hide = true)]
    pub customers: i32,
}

/// Runs it. The exit code is not 0 when a condition does not hold.
pub fn run(options: &Options) -> Result<ExitCode> {
    workload::run(&Tpcc::new(options)?, &options.settings, options)
}

/// The workload.
#[derive(Debug, Clone)]
pub struct Tpcc {
    scale: Scale,
    single_warehouse: bool,
    papers_tables: bool,
}

impl Tpcc {
    /// The workload that was asked for, if it can be.
    pub fn new(options: &Options) -> Result<Self> {
        if !(1..=WAREHOUSES_MAX).contains(&options.warehouses) {
            return Err(format!("--warehouses must be from 1 to {WAREHOUSES_MAX}").into());
        }
        if options.items < 100 || options.items > 100_000 {
            return Err("--items must be from 100 to 100000".into());
        }
        if options.customers < 10 || options.customers > 3000 {
            return Err("--customers must be from 10 to 3000".into());
        }
        Ok(Tpcc {
            scale: Scale {
                warehouses: options.warehouses,
                items: options.items,
                customers: options.customers,
            },
            single_warehouse: options.single_warehouse,
            papers_tables: options.papers_tables,
        })
    }
}

impl Workload for Tpcc {
    type Operation = Operation;
    type Drawer = Terminal;
    type Statements = statements::Statements;

    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn load_table(&self) -> &'static str {
        "tpcc_load"
    }

    fn kinds(&self) -> Vec<Kind> {
        draw::KINDS.to_vec()
    }

    fn kind_of(&self, operation: &Operation) -> usize {
        operation.kind()
    }

    fn tables(&self) -> Vec<TableSpec> {
        tables::tables(self.papers_tables)
    }

    fn shape(&self) -> String {
        let Scale {
            warehouses,
            items,
            customers,
        } = self.scale;
        let evicted = match self.papers_tables {
            true => ", the papers' tables evictable",
            false => "",
        };
        format!("{warehouses} warehouses, {items} items, {customers} customers a district{evicted}")
    }

    fn data_bytes(&self) -> u64 {
        // Mean bytes of rows: customers 620, with a history of 75, an order of 50 and ten lines
        // of 75; stocks 320; items 80.
        let of = |number: i32| number as u64;
        let customers = of(DISTRICTS) * of(self.scale.customers);
        let warehouse = customers * (620 + 75 + 50 + 10 * 75) + of(self.scale.items) * 320;
        of(self.scale.warehouses) * warehouse + of(self.scale.items) * 80
    }

    fn parts(&self) -> u64 {
        load::parts(&self.scale)
    }

    fn part(&self, part: u64, random: &mut StdRng, sink: &mut Sink<'_>) -> Result<()> {
        load::part(&self.scale, part, random, sink)
    }

    fn drawer(&self, caller: usize, callers: usize, seed: u64) -> Terminal {
        Terminal::new(self.scale, self.single_warehouse, (caller, callers), seed)
    }

    /// Keying and think times (5.2.5.7).
    fn think(&self, operation: &Operation, random: &mut StdRng) -> Duration {
        let (keying_s, mean_s) = [
            (18.0, 12.0),
            (3.0, 12.0),
            (2.0, 10.0),
            (2.0, 5.0),
            (2.0, 5.0),
        ][operation.kind()];
        let think_s = -f64::ln(1.0 - random.random_range(0.0..1.0)) * mean_s;
        Duration::from_secs_f64(keying_s + think_s.min(10.0 * mean_s))
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
        let Operation::NewOrder { lines, .. } = operation else {
            return None;
        };
        let unused = lines.iter().any(|line| line.item > self.scale.items);
        (unused && sqlstate == procedures::UNUSED_ITEM).then_some(draw::ROLLED_BACK)
    }

    /// The sum of all districts' next order numbers.
    async fn baseline(&self, source: &Source<'_>) -> Result<i64> {
        let mut sum = 0;
        source
            .each("district", &["d_next_o_id"], |row| sum += int_of(&row[0]))
            .await?;
        Ok(sum)
    }

    async fn check(
        &self,
        source: &Source<'_>,
        all: bool,
        since: Option<&Since>,
    ) -> Result<Vec<String>> {
        let expected = since.map(|since| since.baseline + since.tally.kinds[0].done as i64);
        consistency::check(&self.scale, source, all, expected).await
    }

    fn headline(&self, tally: &Tally, seconds: f64) -> Option<(&'static str, f64)> {
        let new_orders = tally.kinds[0].done as f64;
        (seconds > 0.0).then_some(("new orders/min", new_orders * 60.0 / seconds))
    }
}
