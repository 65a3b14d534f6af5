//! `pg_sleep` and its like: how long they wait, and what ends them.

use std::time::{Duration, Instant};

use crate::fixture::Server;

#[test]
fn a_statement_sleeps_as_long_as_it_is_told() {
    let server = Server::new();
    let mut client = server.connect();
    for (query, rows, least) in [
        ("select pg_sleep(0.05)", &[""][..], 50),
        ("select pg_sleep_for('30 milliseconds'), 7", &["|7"], 30),
        (
            "select pg_sleep_until(clock_timestamp() + '30 ms')",
            &[""],
            29,
        ),
        ("select pg_sleep(0.02), pg_sleep(0.03)", &["|"], 50),
        (
            "select x, pg_sleep(0.02) from unnest(array[1, 2, 3]) x",
            &["1|", "2|", "3|"],
            60,
        ),
        ("select pg_sleep(0)", &[""], 0),
        ("select pg_sleep(-3)", &[""], 0),
        ("select pg_sleep('nan')", &[""], 0),
        ("select pg_sleep_for('-1 day')", &[""], 0),
        ("select pg_sleep_until('-infinity')", &[""], 0),
        ("select pg_sleep(null)", &["NULL"], 0),
    ] {
        let start = Instant::now();
        assert_eq!(client.rows(query), rows, "{query}");
        let least = Duration::from_millis(least);
        assert!(start.elapsed() >= least, "{query}: {:?}", start.elapsed());
    }
}

#[test]
fn an_endless_sleep_ends_at_the_time_limit() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("set statement_timeout = '20ms'");
    for query in [
        "select pg_sleep(1000)",
        "select pg_sleep('inf')",
        "select pg_sleep_until('infinity')",
        "select pg_sleep(0.015), pg_sleep(0.015), pg_sleep(0.015)",
        "select pg_sleep_for('1000 years')",
    ] {
        assert!(client.error(query).starts_with("57014 "), "{query}");
    }
    client.tag("set statement_timeout = 0");
    // What was run before the sleep is run again after it: a clock would be wrong.
    let refused = client.error("select clock_timestamp(), pg_sleep(0.01), clock_timestamp()");
    assert!(refused.starts_with("0A000 "), "{refused}");
    assert_eq!(client.rows("select pg_sleep(0.01)"), [""]);
}
