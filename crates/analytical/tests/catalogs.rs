//! Queries of catalogs, as psql and drivers send them, over a PostgreSQL's system relations read
//! into memory: columns, rows and order are PostgreSQL's.
//!
//! `ORACLE=host:port` names a PostgreSQL 15; without it the test says that it skips. The
//! statements are in `catalogs/`: `schema.sql` is what the catalogs tell of.

#[allow(dead_code, reason = "each test uses a part")]
mod support;

use std::time::Duration;

use support::compare::compare;
use support::oracle::connect_to_copy;
use support::statements::split;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn catalog_queries_give_what_postgresql_gives() {
    let Ok(place) = std::env::var("ORACLE") else {
        eprintln!("skipped: ORACLE=host:port names no PostgreSQL");
        return;
    };
    let oracle = connect_to_copy(&place, "lower_catalogs", "template0").await;
    for (sql, _) in split(include_str!("catalogs/schema.sql")) {
        oracle.ask(&sql).await.expect("a schema");
    }
    let mut different = Vec::new();
    let mut slowest = (Duration::ZERO, String::new());
    let mut count = 0;
    for (sql, _) in split(include_str!("catalogs/queries.sql")) {
        count += 1;
        let mut theirs = oracle.ask(&sql).await;
        if let Ok(table) = &mut theirs {
            table.columns = oracle.describe(&sql).await.unwrap_or_default();
        }
        // Once more, so that the relations are read already.
        drop(oracle.ours(&sql).await);
        let ours = oracle.ours(&sql).await;
        if let Ok(table) = &ours
            && table.planned > slowest.0
        {
            slowest = (table.planned, sql.clone());
        }
        if let Err(why) = compare(&theirs, &ours) {
            eprintln!("{why}\n{sql}\n");
            different.push(sql);
        }
    }
    eprintln!(
        "{count} queries; the slowest to plan, {:?}:\n{}",
        slowest.0, slowest.1
    );
    assert!(
        count > 0 && different.is_empty(),
        "{} differ",
        different.len()
    );
}
