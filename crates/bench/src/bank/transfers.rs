//! Making transfers until the time is over or the server is gone.
//!
//! A transfer that meets another (40001, 40P01) is noted as refused and tried again
//! under a new number, so that the journal has one outcome a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_postgres::{Client, Error, Statement};

use super::books::TABLES;
use super::journal::{JournalWriter, Outcome};
use super::{FIRST_BALANCE, Options};
use crate::{Result, connect, runtime};

/// Accounts made by one transaction.
const ACCOUNT_BATCH: i64 = 500;

/// What all clients share.
struct Bank {
    options: Options,
    journal: JournalWriter,
    next_transfer: AtomicI64,
    acknowledged: AtomicU64,
    refused: AtomicU64,
    end: Instant,
}

/// Opens the bank if need be, and runs. A server that goes away is no error:
/// that is what this is for.
pub fn run(options: &Options) -> Result<()> {
    if options.accounts < 2 || options.clients == 0 {
        return Err("a bank needs two accounts and a client".into());
    }
    open(options)?;
    // Numbers of later runs are above those of earlier ones: the clock's.
    let first = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as i64;
    let bank = Arc::new(Bank {
        journal: JournalWriter::open(&options.journal)?,
        next_transfer: AtomicI64::new(first),
        acknowledged: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        end: Instant::now() + Duration::from_secs(options.seconds),
        options: options.clone(),
    });
    let begin = Instant::now();
    let ended: Vec<Result<()>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..options.clients)
            .map(|number| {
                let bank = &bank;
                scope.spawn(move || bank.client(number))
            })
            .collect();
        clients
            .into_iter()
            .map(|client| {
                client
                    .join()
                    .unwrap_or_else(|_| Err("a client panicked".into()))
            })
            .collect()
    });
    let acknowledged = bank.acknowledged.load(Ordering::Relaxed);
    println!(
        "bank: {acknowledged} transfers acknowledged, {} refused, in {:.1} s",
        bank.refused.load(Ordering::Relaxed),
        begin.elapsed().as_secs_f64(),
    );
    ended.into_iter().collect()
}

fn open(options: &Options) -> Result<()> {
    runtime()?.block_on(async {
        let client = connect(&options.url).await?;
        client.batch_execute(TABLES).await?;
        let first = client
            .query_opt("SELECT balance FROM bank_account WHERE id = 0", &[])
            .await?;
        if first.is_some() {
            return Ok(());
        }
        // All in one transaction: there is no half bank to be found later.
        client.batch_execute("BEGIN").await?;
        let mut id = 0;
        while id < options.accounts {
            let end = (id + ACCOUNT_BATCH).min(options.accounts);
            let rows: Vec<String> = (id..end)
                .map(|id| format!("({id}, {FIRST_BALANCE})"))
                .collect();
            let sql = format!("INSERT INTO bank_account VALUES {}", rows.join(", "));
            client.batch_execute(&sql).await?;
            id = end;
        }
        client.batch_execute("COMMIT").await?;
        Ok(())
    })
}

/// The statements of a transfer.
struct Statements {
    take: Statement,
    give: Statement,
    enter: Statement,
}

impl Bank {
    fn client(&self, number: usize) -> Result<()> {
        runtime()?.block_on(async {
            let mut random = StdRng::seed_from_u64(self.options.seed ^ ((number as u64) << 32));
            let client = connect(&self.options.url).await?;
            let sql = "UPDATE bank_account SET balance = balance - $1 WHERE id = $2";
            let statements = Statements {
                take: client.prepare(sql).await?,
                give: client.prepare(&sql.replace('-', "+")).await?,
                enter: client
                    .prepare("INSERT INTO bank_transfer VALUES ($1, $2, $3, $4)")
                    .await?,
            };
            while Instant::now() < self.end {
                let giver = random.random_range(0..self.options.accounts);
                let step = random.random_range(1..self.options.accounts);
                let taker = (giver + step) % self.options.accounts;
                let amount = random.random_range(1..100i64);
                let id = self.next_transfer.fetch_add(1, Ordering::Relaxed);
                match transfer(&client, &statements, id, giver, taker, amount).await {
                    Ok(()) => {
                        self.acknowledged.fetch_add(1, Ordering::Relaxed);
                        self.journal.note(Outcome::Acknowledged, id)?;
                    }
                    Err(error) if may_be_tried_again(&error) => {
                        self.refused.fetch_add(1, Ordering::Relaxed);
                        self.journal.note(Outcome::Refused, id)?;
                        client.batch_execute("ROLLBACK").await?;
                    }
                    Err(error) => {
                        // What became of it is not known, unless it was told.
                        self.journal.note(Outcome::Unanswered, id)?;
                        return match error.as_db_error() {
                            Some(db) if !db.code().code().starts_with("57P") => {
                                Err(format!("transfer {id}: {db}").into())
                            }
                            _ => Ok(()),
                        };
                    }
                }
            }
            Ok(())
        })
    }
}

async fn transfer(
    client: &Client,
    statements: &Statements,
    id: i64,
    giver: i64,
    taker: i64,
    amount: i64,
) -> std::result::Result<(), Error> {
    client.batch_execute("BEGIN").await?;
    client.execute(&statements.take, &[&amount, &giver]).await?;
    client.execute(&statements.give, &[&amount, &taker]).await?;
    client
        .execute(&statements.enter, &[&id, &giver, &taker, &amount])
        .await?;
    client.batch_execute("COMMIT").await
}

fn may_be_tried_again(error: &Error) -> bool {
    let code = error.as_db_error().map(|db| db.code().code().to_owned());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}
