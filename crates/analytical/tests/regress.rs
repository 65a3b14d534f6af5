//! Statements of PostgreSQL's regression files, on a running PostgreSQL and on ours over the
//! same tables: rows and errors are the same.
//!
//! `ORACLE=host:port` names a PostgreSQL 15 with a database `lower_regress` that the regression
//! tests' set-up (`test_setup.sql`, `create_index.sql`) was run in; each file runs in a copy of
//! it. `FILES=a.sql,b.sql` names files with statements. Without them the test says that it
//! skips. `PLANS=1` shows plans; `SEED` names another database to copy, `RUN` the copy.

#[allow(dead_code, reason = "each test uses a part")]
mod support;

use support::compare::compare;
use support::oracle::{Oracle, connect_to_copy};
use support::statements::split;

fn is_query(sql: &str) -> bool {
    let sql = sql.trim_start_matches('(').trim_start().to_lowercase();
    let begins = ["select", "with", "values", "table"]
        .iter()
        .any(|word| sql.starts_with(word));
    let writes = [
        "insert into",
        "delete from",
        "update ",
        " into temp",
        " into table",
        "for update",
        "for share",
        "for no key",
    ];
    begins && !writes.iter().any(|word| sql.contains(word))
}

/// What leaves the tables as they are.
fn changes_nothing(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    let begins = [
        "set ", "reset ", "show ", "explain", "analyze", "vacuum", "begin", "comment", "prepare",
    ];
    begins.iter().any(|word| sql.starts_with(word))
}

#[derive(Default)]
struct Count {
    same: usize,
    refused: usize,
    different: usize,
}

async fn one(oracle: &Oracle, sql: &str, count: &mut Count) {
    let mut theirs = oracle.ask(sql).await;
    if !is_query(sql) {
        if !changes_nothing(sql) {
            oracle.forget();
        }
        return;
    }
    if let Ok(table) = &mut theirs {
        table.columns = oracle.describe(sql).await.unwrap_or_default();
    }
    let ours = tokio::time::timeout(std::time::Duration::from_secs(20), oracle.ours(sql)).await;
    let ours = ours.unwrap_or_else(|_| Err(("57014".to_owned(), "too long".to_owned())));
    match compare(&theirs, &ours) {
        Ok(()) => count.same += 1,
        Err(why) => {
            let refused = matches!(&ours, Err((code, _)) if matches!(code.as_str(), "0A000" | "42883" | "42704"));
            let word = if refused { "REFUSED" } else { "DIFFERENT" };
            if refused {
                count.refused += 1;
            } else {
                count.different += 1;
            }
            eprintln!("{word}: {why}\n{sql}\n");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_give_what_postgresql_gives() {
    let (Ok(place), Ok(files)) = (std::env::var("ORACLE"), std::env::var("FILES")) else {
        eprintln!("skipped: ORACLE=host:port and FILES=a.sql name no PostgreSQL and no statements");
        return;
    };
    for file in files.split(',') {
        let text = std::fs::read_to_string(file).expect("a file of statements");
        let seed = std::env::var("SEED").unwrap_or_else(|_| "lower_regress".to_owned());
        let run = std::env::var("RUN").unwrap_or_else(|_| "lower_run".to_owned());
        let oracle = connect_to_copy(&place, &run, &seed).await;
        let mut count = Count::default();
        for (sql, rows) in split(&text) {
            match rows {
                Some(rows) => {
                    oracle.copy(&sql, &rows).await;
                    oracle.forget();
                }
                None => one(&oracle, &sql, &mut count).await,
            }
        }
        eprintln!(
            "{file}: {} the same, {} refused, {} different",
            count.same, count.refused, count.different
        );
    }
}
