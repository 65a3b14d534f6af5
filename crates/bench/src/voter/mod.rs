//! Voter: a talent show's viewers call to vote (H-Store's and VoltDB's workload). One
//! transaction: is there such a contestant, has the phone voted too often, from which state is
//! it, and the vote is entered.
//!
//! A vote is numbered within its phone: the limit is then a property of the rows, and is
//! checked after a run. The workload's leaderboard is not kept.

mod calls;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ops::Bound;
use std::process::ExitCode;
use std::sync::Arc;

use rand::rngs::StdRng;
use serde::Serialize;
use thermocline_engine::{Call, Database, Direction, Error, Procedure, Reach, RunOptions};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};
use tokio_postgres::{Client, Statement};

use crate::Result;
use crate::workload::cells::{int, int_of, text, text_of};
use crate::workload::rows::Source;
use crate::workload::schema::TableSpec;
use crate::workload::{self, Ended, Kind, Settings, Since, Sink, Workload, reads};

pub use calls::{Calls, Vote};

/// Names of contestants, as in the workload's first implementations.
const CONTESTANTS: [&str; 12] = [
    "Edwina Burnam",
    "Tabatha Gehling",
    "Kelly Clauss",
    "Jessie Alloway",
    "Alana Bregman",
    "Jessie Eichman",
    "Allie Rogalski",
    "Nita Coster",
    "Kurt Walser",
    "Ericka Dieter",
    "Loraine Nygren",
    "Tania Mattioli",
];
/// The failures that are expected.
const INVALID: &str = "no such contestant";
const TOO_MANY: &str = "too many votes of the phone";
/// The SQLSTATE with which one vote too many ends.
const LIMIT_REACHED: &str = "P0005";
/// Votes of one part of a load.
const PIECE: u64 = 20_000;
/// More sentences would not be read.
const VIOLATIONS_MAX: usize = 200;

const CONTESTANTS_TABLE: usize = 0;
const AREA_CODES: usize = 1;
const VOTES: usize = 2;

/// `thermocline bench voter`.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
pub struct Options {
    /// What all workloads let one choose.
    #[command(flatten)]
    pub settings: Settings,
    /// Contestants.
    #[arg(long, default_value_t = 6)]
    pub contestants: usize,
    /// Votes that a phone has.
    #[arg(long, default_value_t = 2)]
    pub votes_per_phone: i64,
    /// Only so many phones call; without it all that have an area code.
    #[arg(long)]
    pub phones: Option<u64>,
    /// Votes that are there at the beginning, of as many phones.
    #[arg(long, default_value_t = 0)]
    pub votes: u64,
}

/// Runs it. The exit code is not 0 when a condition does not hold.
pub fn run(options: &Options) -> Result<ExitCode> {
    workload::run(&Voter::new(options)?, &options.settings, options)
}

/// The workload.
#[derive(Debug, Clone)]
pub struct Voter {
    contestants: usize,
    votes_per_phone: i64,
    phones: u64,
    votes: u64,
}

/// What a connection has prepared.
pub struct Statements {
    contestant: Statement,
    count: Statement,
    state: Statement,
    insert: Statement,
}

impl Voter {
    /// The workload that was asked for, if it can be.
    pub fn new(options: &Options) -> Result<Self> {
        let phones = options.phones.unwrap_or(calls::PHONES);
        if !(1..=CONTESTANTS.len()).contains(&options.contestants) {
            return Err(format!("--contestants must be from 1 to {}", CONTESTANTS.len()).into());
        }
        if options.votes_per_phone < 1 {
            return Err("--votes-per-phone must be at least 1".into());
        }
        if phones == 0 || phones > calls::PHONES || options.votes > phones {
            return Err(format!(
                "--phones must be from 1 to {}, and --votes at most --phones",
                calls::PHONES
            )
            .into());
        }
        Ok(Voter {
            contestants: options.contestants,
            votes_per_phone: options.votes_per_phone,
            phones,
            votes: options.votes,
        })
    }
}

fn procedure() -> Procedure {
    Procedure::new("voter_vote", vote)
        .parameter("phone", DataType::BigInt)
        .parameter("contestant", DataType::Integer)
        .parameter("state", DataType::Text)
        .parameter("limit", DataType::BigInt)
        .reach(|arguments| Ok(Reach::row("votes", &arguments[..1])))
}

fn vote(call: &mut Call<'_, '_>, arguments: &[Value]) -> thermocline_engine::Result<Vec<Value>> {
    let (phone, limit) = (&arguments[..1], int_of(&arguments[3]));
    let votes = call.table("votes")?;
    let cast = call.range(
        &votes,
        "votes_pkey",
        phone,
        (Bound::Unbounded, Bound::Unbounded),
        Direction::Ascending,
        usize::MAX,
    )?;
    if call.evicted() {
        return Ok(Vec::new());
    }
    let count = cast.len() as i64;
    if count >= limit {
        return Err(Error::raised(
            LIMIT_REACHED,
            "the phone has voted too often",
        ));
    }
    let rest = [
        int(count + 1),
        arguments[1].clone(),
        arguments[2].clone(),
        Value::Timestamp(call.now()),
    ];
    call.insert(&votes, &[phone, &rest].concat())?;
    Ok(Vec::new())
}

impl Workload for Voter {
    type Operation = Vote;
    type Drawer = Calls;
    type Statements = Statements;

    fn name(&self) -> &'static str {
        "voter"
    }

    fn load_table(&self) -> &'static str {
        "voter_load"
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind {
            name: "vote",
            percent: 100.0,
        }]
    }

    fn kind_of(&self, _operation: &Vote) -> usize {
        0
    }

    fn tables(&self) -> Vec<TableSpec> {
        vec![
            TableSpec::new(
                "contestants",
                "contestant_number integer, contestant_name varchar(50)",
                &["contestant_number"],
                &["contestant_number"],
            ),
            TableSpec::new(
                "area_code_state",
                "area_code smallint, state varchar(2)",
                &["area_code"],
                &["area_code"],
            ),
            TableSpec {
                ordered: true,
                ..TableSpec::new(
                    "votes",
                    "phone_number bigint, vote_number integer, contestant_number integer, \
                     state varchar(2), created timestamp",
                    &["phone_number", "vote_number"],
                    &["phone_number"],
                )
            },
        ]
    }

    fn shape(&self) -> String {
        format!(
            "{} contestants, {} votes a phone, {} votes at the beginning",
            self.contestants, self.votes_per_phone, self.votes
        )
    }

    fn data_bytes(&self) -> u64 {
        50_000 + self.votes * 60
    }

    fn parts(&self) -> u64 {
        1 + self.votes.div_ceil(PIECE)
    }

    fn part(&self, part: u64, random: &mut StdRng, sink: &mut Sink<'_>) -> Result<()> {
        let Some(piece) = part.checked_sub(1) else {
            for (number, name) in (1..).zip(&CONTESTANTS[..self.contestants]) {
                sink(CONTESTANTS_TABLE, &[int(number), text(*name)])?;
            }
            for area_code in calls::area_codes() {
                let row = [Value::SmallInt(area_code), text(calls::state_of(area_code))];
                sink(AREA_CODES, &row)?;
            }
            return Ok(());
        };
        let first = piece * PIECE;
        for number in first..(first + PIECE).min(self.votes) {
            let phone = calls::phone(number, self.phones);
            let row = [
                Value::BigInt(phone),
                int(1),
                int(calls::contestant(self.contestants, random).into()),
                text(calls::state_of(calls::area_code_of(phone))),
                Value::Timestamp(0),
            ];
            sink(VOTES, &row)?;
        }
        Ok(())
    }

    fn drawer(&self, caller: usize, _callers: usize, seed: u64) -> Calls {
        Calls::new(self.contestants, self.phones, caller, seed)
    }

    fn procedures(&self) -> Vec<Procedure> {
        vec![procedure()]
    }

    async fn call(&self, db: &Arc<Database>, options: &RunOptions, vote: &Vote) -> Result<Ended> {
        let key = [ValueRef::Integer(vote.contestant)];
        if reads::row(db, options, "contestants", &key)
            .await?
            .is_none()
        {
            return Ok(Ended::Expected(INVALID));
        }
        let key = [ValueRef::SmallInt(calls::area_code_of(vote.phone))];
        let area = reads::row(db, options, "area_code_state", &key).await?;
        let state = match &area {
            Some(row) => text_of(&row[1]),
            None => "XX",
        };
        let arguments = [
            Value::BigInt(vote.phone),
            Value::Integer(vote.contestant),
            text(state),
            Value::BigInt(self.votes_per_phone),
        ];
        db.call(options, "voter_vote", &arguments).await?;
        Ok(Ended::Done)
    }

    async fn prepare(&self, connection: &Client) -> Result<Statements> {
        let prepare = async |sql: &str| connection.prepare(sql).await;
        Ok(Statements {
            contestant: prepare(
                "SELECT contestant_number FROM contestants WHERE contestant_number = $1",
            )
            .await?,
            count: prepare("SELECT count(*) FROM votes WHERE phone_number = $1").await?,
            state: prepare("SELECT state FROM area_code_state WHERE area_code = $1").await?,
            insert: prepare("INSERT INTO votes VALUES ($1, $2, $3, $4, now()::timestamp)").await?,
        })
    }

    async fn execute(
        &self,
        connection: &Client,
        statements: &Statements,
        vote: &Vote,
    ) -> Result<Ended> {
        connection.batch_execute("BEGIN").await?;
        let contestant = connection
            .query_opt(&statements.contestant, &[&vote.contestant])
            .await?;
        if contestant.is_none() {
            connection.batch_execute("ROLLBACK").await?;
            return Ok(Ended::Expected(INVALID));
        }
        let row = connection
            .query_one(&statements.count, &[&vote.phone])
            .await?;
        let count: i64 = row.try_get(0)?;
        if count >= self.votes_per_phone {
            connection.batch_execute("ROLLBACK").await?;
            return Ok(Ended::Expected(TOO_MANY));
        }
        let area_code = calls::area_code_of(vote.phone);
        let area = connection
            .query_opt(&statements.state, &[&area_code])
            .await?;
        let state: &str = match &area {
            Some(row) => row.try_get(0)?,
            None => "XX",
        };
        let number = i32::try_from(count + 1)?;
        connection
            .execute(
                &statements.insert,
                &[&vote.phone, &number, &vote.contestant, &state],
            )
            .await?;
        connection.batch_execute("COMMIT").await?;
        Ok(Ended::Done)
    }

    fn expected(&self, _vote: &Vote, sqlstate: &str) -> Option<&'static str> {
        (sqlstate == LIMIT_REACHED).then_some(TOO_MANY)
    }

    /// Below SERIALIZABLE two votes of one phone may come to the same number.
    fn is_conflict(&self, sqlstate: &str) -> bool {
        sqlstate == "23505"
    }

    /// How many votes there are.
    async fn baseline(&self, source: &Source<'_>) -> Result<i64> {
        Ok(source.count("votes", "vote_number").await? as i64)
    }

    async fn check(
        &self,
        source: &Source<'_>,
        _all: bool,
        since: Option<&Since>,
    ) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut contestants = HashSet::new();
        source
            .each("contestants", &["contestant_number"], |row| {
                contestants.insert(int_of(&row[0]));
            })
            .await?;
        if contestants.len() != self.contestants {
            found.push(format!("there are {} contestants", contestants.len()));
        }
        // Of each phone: how many votes it has, and the sum of their numbers.
        let mut phones: HashMap<i64, (i64, i64)> = HashMap::new();
        let columns = ["phone_number", "vote_number", "contestant_number", "state"];
        source
            .each("votes", &columns, |row| {
                let phone = int_of(&row[0]);
                let (votes, numbers) = phones.entry(phone).or_default();
                *votes += 1;
                *numbers += int_of(&row[1]);
                if !contestants.contains(&int_of(&row[2])) {
                    found.push(format!("phone {phone} voted for nobody"));
                }
                if text_of(&row[3]) != calls::state_of(calls::area_code_of(phone)) {
                    found.push(format!("phone {phone} voted from another state"));
                }
            })
            .await?;
        let mut all = 0;
        for (phone, (votes, numbers)) in phones {
            all += votes;
            if votes > self.votes_per_phone || numbers != votes * (votes + 1) / 2 {
                found.push(format!("phone {phone} has {votes} votes"));
            }
        }
        if let Some(since) = since {
            let expected = since.baseline + since.tally.kinds[0].done as i64;
            if all != expected {
                found.push(format!(
                    "by what was committed there are {expected} votes, and there are {all}"
                ));
            }
        }
        found.truncate(VIOLATIONS_MAX);
        Ok(found)
    }
}
