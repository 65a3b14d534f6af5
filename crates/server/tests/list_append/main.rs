//! Serializable transactions over lists, through the wire, while another client changes and
//! truncates their table: what they read and what they left must fit a serial order.
//!
//! At length: THERMOCLINE_LIST_APPEND=1000000 cargo test --release -p thermocline-server --test
//! list_append -- --nocapture. THERMOCLINE_SERVER=<address:port> asks a server that runs already.

mod history;
#[path = "../support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use history::{History, Transaction};
use support::{Message, Wire, rows_as_text, server_under_test};

/// Transactions that commit, unless the environment says how many.
const TRANSACTIONS: usize = 3_000;
/// A table has 1600 columns in its life, those that were dropped too.
const TRANSACTIONS_OF_A_TABLE: usize = 100_000;
const SESSIONS: usize = 6;
const KEYS: usize = 8;
/// The marker of the first lists.
const FIRST_MARKER: i64 = -1;
/// What others may do to a transaction, or to a definition.
const REFUSALS: [&str; 3] = ["40001", "40P01", "55P03"];
/// What is done to the table beside its transactions. Each may find that it is done, or undone.
const DEFINITIONS: [&str; 6] = [
    "alter table lists add column note text default 'none'",
    "alter table lists drop column if exists note",
    "create index if not exists lists_backwards on lists (k desc)",
    "drop index if exists lists_backwards",
    "alter table lists alter column v set default '{}'",
    "vacuum lists",
];
const ALREADY: &str = "42701";

/// Numbers by xorshift, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// What all sessions share.
struct Run {
    address: SocketAddr,
    values: AtomicI64,
    committed: AtomicUsize,
    wanted: usize,
    over: AtomicBool,
}

impl Run {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.committed.load(Ordering::Relaxed) >= self.wanted
    }
}

/// The answer, or the SQLSTATE of a refusal.
async fn ask(wire: &mut Wire, sql: &str) -> Result<Vec<Message>, String> {
    let messages = wire.query(sql).await;
    match messages.iter().find(|message| message.tag == b'E') {
        None => Ok(messages),
        Some(error) => Err(error.sqlstate()),
    }
}

/// Keys and their lists.
fn lists(messages: &[Message]) -> Vec<(usize, Vec<i64>)> {
    let rows = rows_as_text(messages).into_iter().map(|row| {
        let [Some(key), Some(list)] = &row[..] else {
            panic!("{row:?}")
        };
        let values = list.trim_matches(['{', '}']).split(',');
        let values = values.map(|value| value.parse().unwrap());
        (key.parse().unwrap(), values.collect())
    });
    rows.collect()
}

/// Reads without the transaction's own appends, which must be at the end of what it reads.
fn own_left_out(read: Vec<(usize, Vec<i64>)>, own: &[(usize, i64)]) -> Vec<(usize, Vec<i64>)> {
    let without = read.into_iter().map(|(key, mut list)| {
        let mine: Vec<i64> = own
            .iter()
            .filter(|(at, _)| *at == key)
            .map(|(_, value)| *value)
            .collect();
        assert!(list.ends_with(&mine), "key {key}: {list:?}, own {mine:?}");
        list.truncate(list.len() - mine.len());
        (key, list)
    });
    without.collect()
}

/// Reads and appends in one transaction; an error is a refusal.
async fn reads_and_appends(
    wire: &mut Wire,
    run: &Run,
    random: &mut Random,
    transaction: &mut Transaction,
) -> Result<(), String> {
    ask(wire, "begin isolation level serializable").await?;
    for _ in 0..=random.below(3) {
        let key = random.below(KEYS);
        match random.below(8) {
            0 => {
                let all = lists(&ask(wire, "select k, v from lists").await?);
                if all.len() != KEYS {
                    transaction.reads.push((0, Vec::new()));
                    continue;
                }
                let read = own_left_out(all, &transaction.appends);
                transaction.reads.extend(read);
            }
            1..4 => {
                let one = format!("select k, v from lists where k = {key}");
                let mut read = lists(&ask(wire, &one).await?);
                if read.is_empty() {
                    read.push((key, Vec::new()));
                    transaction.reads.extend(read);
                    continue;
                }
                let read = own_left_out(read, &transaction.appends);
                transaction.reads.extend(read);
            }
            _ => {
                let value = run.values.fetch_add(1, Ordering::Relaxed);
                // Noted first: what is refused must not be seen.
                transaction.appends.push((key, value));
                let one = format!("update lists set v = v || {value} where k = {key}");
                ask(wire, &one).await?;
            }
        }
    }
    ask(wire, "commit").await?;
    Ok(())
}

/// Reads all lists, and begins them anew. Where it does not lock first, it only commits if nobody
/// changes what it has read.
async fn reset(
    wire: &mut Wire,
    marker: i64,
    locks_first: bool,
    transaction: &mut Transaction,
) -> Result<(), String> {
    ask(wire, "begin isolation level serializable").await?;
    if locks_first {
        ask(wire, "lock table lists").await?;
    }
    transaction.reads = lists(&ask(wire, "select k, v from lists").await?);
    ask(wire, "truncate lists").await?;
    let rows = (0..KEYS).map(|key| format!("({key}, '{{{marker}}}')"));
    let rows = rows.collect::<Vec<_>>().join(", ");
    ask(wire, &format!("insert into lists (k, v) values {rows}")).await?;
    ask(wire, "commit").await?;
    Ok(())
}

/// What a session has done: what has committed, what was rolled back, and refusals by SQLSTATE.
#[derive(Default)]
struct Done {
    committed: Vec<Transaction>,
    undone: Vec<i64>,
    refused: HashMap<String, usize>,
}

impl Done {
    fn note(&mut self, transaction: Transaction, ended: Result<(), String>) -> bool {
        match ended {
            Ok(()) => self.committed.push(transaction),
            Err(state) => {
                let values = transaction.appends.iter().map(|(_, value)| *value);
                self.undone.extend(values);
                *self.refused.entry(state).or_default() += 1;
                return false;
            }
        }
        true
    }
}

async fn session(run: Arc<Run>, number: usize) -> Done {
    let mut wire = Wire::session(run.address).await;
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ (number as u64 + 1) << 17);
    let mut done = Done::default();
    while !run.is_over() {
        let mut transaction = Transaction {
            session: number,
            ..Transaction::default()
        };
        let ended = reads_and_appends(&mut wire, &run, &mut random, &mut transaction).await;
        if ended.is_err() {
            wire.query("rollback").await;
        }
        if done.note(transaction, ended) {
            run.committed.fetch_add(1, Ordering::Relaxed);
        }
    }
    done
}

/// Definitions and resets, a few for each hundred transactions.
async fn definitions(run: Arc<Run>) -> Done {
    let mut wire = Wire::session(run.address).await;
    ask(&mut wire, "set lock_timeout = '200ms'").await.unwrap();
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    let mut done = Done::default();
    let mut marker = FIRST_MARKER;
    while !run.is_over() {
        let until = run.committed.load(Ordering::Relaxed) + 10 + random.below(40);
        while run.committed.load(Ordering::Relaxed) < until && !run.is_over() {
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
        if random.below(3) > 0 {
            let sql = DEFINITIONS[random.below(DEFINITIONS.len())];
            if let Err(state) = ask(&mut wire, sql).await
                && state != ALREADY
            {
                *done.refused.entry(state).or_default() += 1;
            }
            continue;
        }
        let mut transaction = Transaction {
            session: SESSIONS,
            reset: Some(marker - 1),
            ..Transaction::default()
        };
        let locks_first = random.below(3) > 0;
        let ended = reset(&mut wire, marker - 1, locks_first, &mut transaction).await;
        if ended.is_err() {
            wire.query("rollback").await;
        }
        marker -= 1;
        done.note(transaction, ended);
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_beside_definitions_have_a_serial_order() {
    let wanted = std::env::var("THERMOCLINE_LIST_APPEND");
    let mut left = wanted.map_or(TRANSACTIONS, |text| text.parse().unwrap());
    let (address, server) = server_under_test().await;
    while left > 0 {
        let wanted = left.min(TRANSACTIONS_OF_A_TABLE);
        over_one_table(address, wanted).await;
        left -= wanted;
    }
    drop(server);
}

async fn over_one_table(address: SocketAddr, wanted: usize) {
    let mut wire = Wire::session(address).await;
    ask(&mut wire, "drop table if exists lists").await.unwrap();
    let made = "create table lists (k int primary key, v bigint[] not null)";
    ask(&mut wire, made).await.unwrap();
    let mut first = Transaction::default();
    let begun = reset(&mut wire, FIRST_MARKER, true, &mut first).await;
    begun.unwrap();
    let run = Arc::new(Run {
        address,
        values: AtomicI64::new(1),
        committed: AtomicUsize::new(0),
        wanted,
        over: AtomicBool::new(false),
    });
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|number| tokio::spawn(session(Arc::clone(&run), number)))
        .collect();
    let defining = tokio::spawn(definitions(Arc::clone(&run)));
    let mut all = Vec::new();
    for task in sessions {
        all.push(task.await.unwrap());
    }
    run.over.store(true, Ordering::Relaxed);
    let defined = defining.await.unwrap();
    let resets = defined.committed.len();
    all.push(defined);

    let mut history = History {
        keys: KEYS,
        ..History::default()
    };
    let mut refused: HashMap<String, usize> = HashMap::new();
    for done in all {
        history.committed.extend(done.committed);
        history.undone.extend(done.undone);
        for (state, times) in done.refused {
            *refused.entry(state).or_default() += times;
        }
    }
    let last = ask(&mut wire, "select k, v from lists").await.unwrap();
    history.committed.push(Transaction {
        session: SESSIONS + 1,
        reads: lists(&last),
        ..Transaction::default()
    });
    let count = history.committed.len();
    println!("{count} transactions, {resets} resets, refused: {refused:?}");
    let unexpected = refused.keys().find(|state| !REFUSALS.contains(&&***state));
    assert_eq!(unexpected, None);
    assert!(resets > 0, "the table was never truncated");
    let found = history.anomalies();
    assert!(
        found.is_empty(),
        "{} anomalies: {:#?}",
        found.len(),
        &found[..found.len().min(5)]
    );
}
