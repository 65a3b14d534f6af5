//! The bank's books as they are in the database, and what is wrong with them.

use std::collections::HashMap;

use tokio_postgres::{Client, SimpleQueryMessage};

use super::FIRST_BALANCE;
use super::journal::Journal;
use crate::Result;

/// A transfer that is in the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub from: i64,
    pub to: i64,
    pub amount: i64,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub balances: HashMap<i64, i64>,
    pub transfers: HashMap<i64, Transfer>,
    /// Accounts or transfers that were found twice under one number.
    pub doubled: Vec<String>,
}

/// The tables, made once.
pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS bank_account (id bigint PRIMARY KEY, balance bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS bank_transfer
        (id bigint PRIMARY KEY, giver bigint NOT NULL, taker bigint NOT NULL, amount bigint NOT NULL)";

impl Books {
    /// Reads all accounts and transfers, at one snapshot.
    pub async fn read(client: &Client) -> Result<Self> {
        let mut books = Books::default();
        client
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .await?;
        for row in numbers(client, "SELECT id, balance FROM bank_account", 2).await? {
            if books.balances.insert(row[0], row[1]).is_some() {
                books
                    .doubled
                    .push(format!("account {} is there twice", row[0]));
            }
        }
        let sql = "SELECT id, giver, taker, amount FROM bank_transfer";
        for row in numbers(client, sql, 4).await? {
            let transfer = Transfer {
                from: row[1],
                to: row[2],
                amount: row[3],
            };
            if books.transfers.insert(row[0], transfer).is_some() {
                books
                    .doubled
                    .push(format!("transfer {} is there twice", row[0]));
            }
        }
        client.batch_execute("COMMIT").await?;
        Ok(books)
    }

    /// What contradicts the journal or itself.
    pub fn violations(&self, journal: &Journal) -> Vec<String> {
        let mut found = self.doubled.clone();
        for id in &journal.acknowledged {
            if !self.transfers.contains_key(id) {
                found.push(format!("transfer {id} was acknowledged and is lost"));
            }
        }
        for id in self.transfers.keys() {
            if journal.refused.contains(id) {
                found.push(format!("transfer {id} was refused and is there"));
            } else if !journal.acknowledged.contains(id) && !journal.unanswered.contains(id) {
                found.push(format!("transfer {id} is there and was never sent"));
            }
        }
        let mut due: HashMap<i64, i64> = self
            .balances
            .keys()
            .map(|id| (*id, FIRST_BALANCE))
            .collect();
        for (id, transfer) in &self.transfers {
            for (account, change) in [
                (transfer.from, -transfer.amount),
                (transfer.to, transfer.amount),
            ] {
                match due.get_mut(&account) {
                    Some(balance) => *balance += change,
                    None => found.push(format!("transfer {id}: account {account} is lost")),
                }
            }
        }
        for (account, balance) in &self.balances {
            let due = due.get(account).copied().unwrap_or(FIRST_BALANCE);
            if *balance != due {
                found.push(format!(
                    "account {account} has {balance}, its transfers make {due}"
                ));
            }
        }
        let sum: i64 = self.balances.values().sum();
        let first_sum = FIRST_BALANCE * self.balances.len() as i64;
        if sum != first_sum {
            found.push(format!("all accounts have {sum}, not {first_sum}"));
        }
        found
    }
}

async fn numbers(client: &Client, sql: &str, columns: usize) -> Result<Vec<Vec<i64>>> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await? {
        if let SimpleQueryMessage::Row(row) = message {
            let numbers: Option<Vec<i64>> = (0..columns)
                .map(|i| row.try_get(i).ok()??.parse().ok())
                .collect();
            rows.push(numbers.ok_or("a row of the bank's books is not of numbers")?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books() -> (Books, Journal) {
        let mut books = Books::default();
        let mut journal = Journal::default();
        for id in 0..4 {
            books.balances.insert(id, FIRST_BALANCE);
        }
        for (id, amount) in [(1, 10), (2, 20), (3, 30)] {
            let transfer = Transfer {
                from: 0,
                to: id,
                amount,
            };
            books.transfers.insert(id, transfer);
            *books.balances.get_mut(&0).expect("there") -= amount;
            *books.balances.get_mut(&id).expect("there") += amount;
        }
        journal.acknowledged.extend([1, 2]);
        journal.unanswered.extend([3, 4]);
        journal.refused.insert(5);
        (books, journal)
    }

    #[test]
    fn an_unanswered_transfer_may_be_there_or_not() {
        let (books, journal) = books();
        assert_eq!(books.violations(&journal), Vec::<String>::new());
    }

    #[test]
    fn a_lost_a_halved_and_an_undead_transfer_are_found() {
        let (mut lost, journal) = books();
        lost.transfers.remove(&1);
        lost.balances.insert(0, FIRST_BALANCE - 50);
        lost.balances.insert(1, FIRST_BALANCE);
        let found = lost.violations(&journal);
        assert_eq!(found, ["transfer 1 was acknowledged and is lost"]);

        let (mut halved, journal) = books();
        halved.balances.insert(2, FIRST_BALANCE);
        assert_eq!(
            halved.violations(&journal).len(),
            2,
            "the account and the sum"
        );

        let (mut undead, journal) = books();
        undead.transfers.insert(
            5,
            Transfer {
                from: 1,
                to: 1,
                amount: 1,
            },
        );
        assert_eq!(
            undead.violations(&journal),
            ["transfer 5 was refused and is there"]
        );

        let (mut stranger, journal) = books();
        stranger.transfers.insert(
            6,
            Transfer {
                from: 1,
                to: 1,
                amount: 1,
            },
        );
        assert_eq!(stranger.violations(&journal).len(), 1);
    }
}
