//! YCSB's core workloads A to F: reads, updates, inserts, short scans and read-modify-writes of
//! rows with ten fields of 100 bytes, or with one payload of as many.
//!
//! Rows are numbered; a row's key is its number scattered over 48 bits, so that neighbours by
//! key are strangers by number. Numbers are drawn exactly by Zipf's law with any exponent from 0
//! to 1.5; YCSB's own formula needs one below 1. For each insert a caller has numbers of its
//! own; *latest* is by age, the caller's own newest row first, then those that were loaded.
//!
//! | module | holds |
//! |---|---|
//! | `draw` | the mixes, keys and inputs |
//! | `procedures` | the operations in this process |

mod draw;
mod procedures;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use thermocline_engine::{Database, Procedure, RunOptions};
use thermocline_values::value::Value;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use crate::Result;
use crate::workload::cells::text_of;
use crate::workload::rows::Source;
use crate::workload::schema::TableSpec;
use crate::workload::{self, Ended, Kind, Settings, Since, Sink, Workload};

pub use draw::{Callers, Operation};

/// The table, and its columns with ten fields and with one.
const TABLE: &str = "usertable";
const TEN_FIELDS: &str = "ycsb_key bigint, field0 text, field1 text, field2 text, field3 text, \
                          field4 text, field5 text, field6 text, field7 text, field8 text, \
                          field9 text";
const ONE_FIELD: &str = "ycsb_key bigint, field0 text";
/// Bytes of a row's fields together: by the specification, the least and the most.
const ROW_BYTES: usize = 1000;
const ROW_BYTES_MIN: usize = 10;
const ROW_BYTES_MAX: usize = 10_000;
/// Rows of one part of a load.
const PIECE: u64 = 5000;
/// The largest exponent.
const ZIPF_MAX: f64 = 1.5;
/// What becomes of an insert whose row a former run with this seed has left.
const THERE_ALREADY: &str = "is there already";

/// A mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Half reads, half updates; the papers' write-heavy.
    A,
    /// 95 reads of 100, 5 updates.
    B,
    /// Reads; the papers' read-only.
    C,
    /// 95 reads of the latest rows of 100, 5 inserts.
    D,
    /// 95 short scans of 100, 5 inserts.
    E,
    /// Half reads, half read-modify-writes.
    F,
    /// 90 reads of 100, 10 updates, as in the papers.
    ReadHeavy,
}

/// `thermocline bench ycsb-core`.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
pub struct Options {
    /// The mix.
    #[arg(value_enum, ignore_case = true)]
    pub mix: Mix,
    /// What all workloads let one choose.
    #[command(flatten)]
    pub settings: Settings,
    /// Rows, of 1 KB each.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// One field of 1000 bytes in place of ten of 100.
    #[arg(long)]
    pub one_payload: bool,
    /// Bytes of a row's fields; anything but 1000 is no YCSB.
    #[arg(long, default_value_t = ROW_BYTES, hide = true)]
    pub row_bytes: usize,
    /// Zipf's exponent, from 0 (uniform) to 1.5.
    #[arg(long, default_value_t = 0.99)]
    pub zipf: f64,
}

/// Runs it. The exit code is not 0 when a row is lost or torn.
pub fn run(options: &Options) -> Result<ExitCode> {
    workload::run(&YcsbCore::new(options)?, &options.settings, options)
}

/// The workload.
#[derive(Debug, Clone)]
pub struct YcsbCore {
    mix: Mix,
    rows: u64,
    fields: usize,
    row_bytes: usize,
    zipf: f64,
}

/// What a connection has prepared.
pub struct Statements {
    read: Statement,
    updates: Vec<Statement>,
    insert: Statement,
    scan: Statement,
}

impl YcsbCore {
    /// The workload that was asked for, if it can be.
    pub fn new(options: &Options) -> Result<Self> {
        if options.rows == 0 || options.rows > draw::ROWS_MAX {
            return Err(format!("--rows must be from 1 to {}", draw::ROWS_MAX).into());
        }
        if !(0.0..=ZIPF_MAX).contains(&options.zipf) {
            return Err(format!("--zipf must be from 0 to {ZIPF_MAX}").into());
        }
        if !(ROW_BYTES_MIN..=ROW_BYTES_MAX).contains(&options.row_bytes) {
            let bounds = format!("{ROW_BYTES_MIN} to {ROW_BYTES_MAX}");
            return Err(format!("--row-bytes must be from {bounds}").into());
        }
        Ok(YcsbCore {
            row_bytes: options.row_bytes,
            mix: options.mix,
            rows: options.rows,
            fields: if options.one_payload { 1 } else { 10 },
            zipf: options.zipf,
        })
    }

    fn field_bytes(&self) -> usize {
        self.row_bytes / self.fields
    }

    /// The text that a field is given, by a number.
    fn text(&self, choice: u64) -> Value {
        Value::Text(draw::text(choice, self.field_bytes()).to_owned())
    }

    /// A whole row.
    fn row(&self, number: u64, choice: u64) -> Vec<Value> {
        let mut row = vec![Value::BigInt(draw::key(number))];
        row.extend((0..self.fields as u64).map(|field| self.text(choice.wrapping_add(field * 97))));
        row
    }
}

impl Workload for YcsbCore {
    type Operation = Operation;
    type Drawer = Callers;
    type Statements = Statements;

    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn load_table(&self) -> &'static str {
        "ycsb_core_load"
    }

    fn kinds(&self) -> Vec<Kind> {
        draw::kinds(self.mix).to_vec()
    }

    fn kind_of(&self, operation: &Operation) -> usize {
        operation.kind()
    }

    fn tables(&self) -> Vec<TableSpec> {
        let columns = if self.fields == 1 {
            ONE_FIELD
        } else {
            TEN_FIELDS
        };
        vec![TableSpec {
            ordered: true,
            ..TableSpec::new(TABLE, columns, &["ycsb_key"], &["ycsb_key"])
        }]
    }

    fn shape(&self) -> String {
        let bytes = self.field_bytes();
        format!(
            "{} rows, {} fields of {bytes} bytes",
            self.rows, self.fields
        )
    }

    fn data_bytes(&self) -> u64 {
        self.rows * (self.row_bytes as u64 + 8)
    }

    fn parts(&self) -> u64 {
        self.rows.div_ceil(PIECE)
    }

    fn part(&self, part: u64, random: &mut StdRng, sink: &mut Sink<'_>) -> Result<()> {
        let first = part * PIECE;
        (first..(first + PIECE).min(self.rows))
            .try_for_each(|number| sink(0, &self.row(number, random.random())))
    }

    fn drawer(&self, caller: usize, callers: usize, seed: u64) -> Callers {
        Callers::new(self.mix, self.rows, self.zipf, (caller, callers), seed)
    }

    fn procedures(&self) -> Vec<Procedure> {
        procedures::all(self.fields)
    }

    async fn call(
        &self,
        db: &Arc<Database>,
        options: &RunOptions,
        operation: &Operation,
    ) -> Result<Ended> {
        let key = |number: u64| Value::BigInt(draw::key(number));
        let (name, arguments) = match *operation {
            Operation::Read { number } => ("ycsb_read", vec![key(number)]),
            Operation::Update { number, choice }
            | Operation::ReadModifyWrite { number, choice } => {
                let name = match operation {
                    Operation::Update { .. } => "ycsb_update",
                    _ => "ycsb_read_modify_write",
                };
                let field = Value::Integer(self.field_of(choice) as i32);
                (name, vec![key(number), field, self.text(choice)])
            }
            Operation::Insert { number, choice } => ("ycsb_insert", self.row(number, choice)),
            Operation::Scan { number, length } => {
                ("ycsb_scan", vec![key(number), Value::Integer(length)])
            }
        };
        db.call(options, name, &arguments).await?;
        Ok(Ended::Done)
    }

    async fn prepare(&self, connection: &Client) -> Result<Statements> {
        let prepare = async |sql: String| connection.prepare(&sql).await;
        let mut updates = Vec::new();
        for field in 0..self.fields {
            let sql = format!("UPDATE {TABLE} SET field{field} = $2 WHERE ycsb_key = $1");
            updates.push(prepare(sql).await?);
        }
        let values: Vec<String> = (1..=self.fields + 1).map(|n| format!("${n}")).collect();
        Ok(Statements {
            read: prepare(format!("SELECT * FROM {TABLE} WHERE ycsb_key = $1")).await?,
            updates,
            insert: prepare(format!(
                "INSERT INTO {TABLE} VALUES ({})",
                values.join(", ")
            ))
            .await?,
            scan: prepare(format!(
                "SELECT * FROM {TABLE} WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2"
            ))
            .await?,
        })
    }

    async fn execute(
        &self,
        connection: &Client,
        statements: &Statements,
        operation: &Operation,
    ) -> Result<Ended> {
        let update = async |number: u64, choice: u64| -> Result<()> {
            let statement = &statements.updates[self.field_of(choice)];
            let text = draw::text(choice, self.field_bytes());
            match connection
                .execute(statement, &[&draw::key(number), &text])
                .await?
            {
                1 => Ok(()),
                rows => Err(format!("an update of row {number} changed {rows} rows").into()),
            }
        };
        match *operation {
            Operation::Read { number } => {
                let key = draw::key(number);
                connection.query_one(&statements.read, &[&key]).await?;
            }
            Operation::Update { number, choice } => update(number, choice).await?,
            Operation::ReadModifyWrite { number, choice } => {
                connection.batch_execute("BEGIN").await?;
                let key = draw::key(number);
                connection.query_one(&statements.read, &[&key]).await?;
                update(number, choice).await?;
                connection.batch_execute("COMMIT").await?;
            }
            Operation::Insert { number, choice } => {
                let key = draw::key(number);
                let row = self.row(number, choice);
                let texts: Vec<&str> = row.iter().skip(1).map(text_of).collect();
                let mut values: Vec<&(dyn ToSql + Sync)> = vec![&key];
                values.extend(texts.iter().map(|text| text as &(dyn ToSql + Sync)));
                connection.execute(&statements.insert, &values).await?;
            }
            Operation::Scan { number, length } => {
                let (key, length) = (draw::key(number), i64::from(length));
                let rows = connection.query(&statements.scan, &[&key, &length]).await?;
                if rows.is_empty() {
                    return Err(format!("a scan from row {number} found none").into());
                }
            }
        }
        Ok(Ended::Done)
    }

    fn expected(&self, operation: &Operation, sqlstate: &str) -> Option<&'static str> {
        let inserts = matches!(operation, Operation::Insert { .. });
        (inserts && sqlstate == "23505").then_some(THERE_ALREADY)
    }

    /// How many rows there are.
    async fn baseline(&self, source: &Source<'_>) -> Result<i64> {
        Ok(source.count(TABLE, "ycsb_key").await? as i64)
    }

    async fn check(
        &self,
        source: &Source<'_>,
        all: bool,
        since: Option<&Since>,
    ) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let names: Vec<String> = (0..self.fields).map(|n| format!("field{n}")).collect();
        let mut columns = vec!["ycsb_key"];
        if all {
            columns.extend(names.iter().map(String::as_str));
        }
        let (mut rows, mut torn) = (0, 0);
        source
            .each(TABLE, &columns, |row| {
                rows += 1;
                let whole = |value: &Value| text_of(value).len() == self.field_bytes();
                torn += i64::from(!row[1..].iter().all(whole));
            })
            .await?;
        if torn > 0 {
            found.push(format!("{torn} rows have fields of another length"));
        }
        if rows < self.rows as i64 {
            found.push(format!(
                "{} rows were loaded, and {rows} are there",
                self.rows
            ));
        }
        if let Some(since) = since {
            let expected = since.baseline + since.tally.kinds[draw::INSERT].done as i64;
            if rows != expected {
                found.push(format!(
                    "by what was committed there are {expected} rows, and there are {rows}"
                ));
            }
        }
        Ok(found)
    }
}

impl YcsbCore {
    /// The field that an update writes.
    fn field_of(&self, choice: u64) -> usize {
        (choice >> 48) as usize % self.fields
    }
}
