//! TATP (version 1.0): a telephone network's register of subscribers. Seven short transactions,
//! four of which are expected to fail at times, over four tables.
//!
//! | module | holds |
//! |---|---|
//! | `draw` | the mix and its inputs |
//! | `load` | the tables and their rows |
//! | `procedures` | the transactions in this process |
//! | `statements` | the transactions over the wire |

mod draw;
mod load;
mod procedures;
mod statements;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::Arc;

use rand::rngs::StdRng;
use serde::Serialize;
use thermocline_engine::{Database, Procedure, RunOptions};
use tokio_postgres::Client;

use crate::Result;
use crate::workload::cells::{int_of, text_of};
use crate::workload::rows::Source;
use crate::workload::schema::TableSpec;
use crate::workload::{self, Ended, Kind, Settings, Since, Sink, Workload};

pub use draw::{Callers, Operation};

/// The place of inserts of call forwardings among the transactions, and of deletes.
const INSERT: usize = 5;
const DELETE: usize = 6;
/// More sentences would not be read.
const VIOLATIONS_MAX: usize = 200;

/// `thermocline bench tatp`.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
pub struct Options {
    /// What all workloads let one choose.
    #[command(flatten)]
    pub settings: Settings,
    /// Subscribers, of about 900 bytes each.
    #[arg(long, default_value_t = 100_000)]
    pub subscribers: i64,
    /// Some subscribers are chosen more often, by the specification's own law.
    #[arg(long)]
    pub non_uniform: bool,
}

/// Runs it. The exit code is not 0 when a condition does not hold.
pub fn run(options: &Options) -> Result<ExitCode> {
    workload::run(&Tatp::new(options)?, &options.settings, options)
}

/// The workload.
#[derive(Debug, Clone)]
pub struct Tatp {
    subscribers: i64,
    non_uniform: bool,
}

impl Tatp {
    /// The workload that was asked for, if it can be.
    pub fn new(options: &Options) -> Result<Self> {
        if !(1..=i64::from(i32::MAX)).contains(&options.subscribers) {
            return Err("--subscribers must be at least 1 and fit an integer".into());
        }
        Ok(Tatp {
            subscribers: options.subscribers,
            non_uniform: options.non_uniform,
        })
    }
}

impl Workload for Tatp {
    type Operation = Operation;
    type Drawer = Callers;
    type Statements = statements::Statements;

    fn name(&self) -> &'static str {
        "tatp"
    }

    fn load_table(&self) -> &'static str {
        "tatp_load"
    }

    fn kinds(&self) -> Vec<Kind> {
        draw::KINDS.to_vec()
    }

    fn kind_of(&self, operation: &Operation) -> usize {
        operation.kind()
    }

    fn tables(&self) -> Vec<TableSpec> {
        load::tables()
    }

    fn shape(&self) -> String {
        format!("{} subscribers", self.subscribers)
    }

    fn data_bytes(&self) -> u64 {
        // A subscriber of 220 bytes; 2.5 accesses of 60, 2.5 facilities of 60 with 1.5
        // forwardings of 60 each.
        self.subscribers as u64 * 745
    }

    fn parts(&self) -> u64 {
        load::parts(self.subscribers)
    }

    fn part(&self, part: u64, random: &mut StdRng, sink: &mut Sink<'_>) -> Result<()> {
        load::part(self.subscribers, part, random, sink)
    }

    fn drawer(&self, caller: usize, _callers: usize, seed: u64) -> Callers {
        Callers::new(self.subscribers, self.non_uniform, caller, seed)
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
        match (operation, sqlstate) {
            (Operation::InsertCallForwarding { .. }, "23505") => Some("is there already"),
            (Operation::InsertCallForwarding { .. }, procedures::NO_FACILITY) => {
                Some(draw::NO_FACILITY)
            }
            (Operation::UpdateSubscriberData { .. }, procedures::NO_FACILITY) => {
                Some(draw::NO_FACILITY)
            }
            _ => None,
        }
    }

    /// How many call forwardings there are.
    async fn baseline(&self, source: &Source<'_>) -> Result<i64> {
        Ok(source.count("call_forwarding", "s_id").await? as i64)
    }

    async fn check(
        &self,
        source: &Source<'_>,
        _all: bool,
        since: Option<&Since>,
    ) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut subscribers = HashSet::new();
        source
            .each("subscriber", &["s_id", "sub_nbr"], |row| {
                let id = int_of(&row[0]);
                if text_of(&row[1]) != draw::number_of(id) {
                    found.push(format!("subscriber {id} has the number of another"));
                }
                if !(1..=self.subscribers).contains(&id) || !subscribers.insert(id) {
                    found.push(format!("subscriber {id} is none, or there twice"));
                }
            })
            .await?;
        if subscribers.len() as i64 != self.subscribers {
            found.push(format!(
                "there are {} subscribers, not {}",
                subscribers.len(),
                self.subscribers
            ));
        }
        let mut facilities = HashSet::new();
        source
            .each("special_facility", &["s_id", "sf_type"], |row| {
                let key = (int_of(&row[0]), int_of(&row[1]));
                if !subscribers.contains(&key.0) {
                    found.push(format!("special facility {key:?} is of no subscriber"));
                }
                facilities.insert(key);
            })
            .await?;
        source
            .each("access_info", &["s_id", "ai_type"], |row| {
                if !subscribers.contains(&int_of(&row[0])) {
                    found.push(format!("access {row:?} is of no subscriber"));
                }
            })
            .await?;
        let mut forwardings = 0;
        let columns = ["s_id", "sf_type", "start_time", "end_time"];
        source
            .each("call_forwarding", &columns, |row| {
                forwardings += 1;
                let [subscriber, facility, start, end] = [0, 1, 2, 3].map(|c| int_of(&row[c]));
                let name = format!("call forwarding {subscriber}.{facility} from {start}");
                if !facilities.contains(&(subscriber, facility)) {
                    found.push(format!("{name} is of no special facility"));
                }
                if !matches!(start, 0 | 8 | 16) || !(start + 1..=start + 8).contains(&end) {
                    found.push(format!("{name} ends at {end}"));
                }
            })
            .await?;
        if let Some(since) = since {
            let done = |kind: usize| since.tally.kinds[kind].done as i64;
            let expected = since.baseline + done(INSERT) - done(DELETE);
            if forwardings != expected {
                found.push(format!(
                    "by what was committed there are {expected} call forwardings, and there are \
                     {forwardings}"
                ));
            }
        }
        found.truncate(VIOLATIONS_MAX);
        Ok(found)
    }
}
