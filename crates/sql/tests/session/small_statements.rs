//! Analytical statements that look small run on threads that give way to nobody. What turns out
//! to be large begins anew, and nobody sees two answers.

use crate::fixture::{Connection, Server};

fn server() -> (Server, Connection) {
    let server = Server::new();
    let mut client = server.connect();
    for statement in [
        "CREATE TABLE big (id int PRIMARY KEY, small int, pad text)",
        "INSERT INTO big SELECT i, i % 50, repeat('x', 100) FROM generate_series(1, 12000) i",
        "CREATE INDEX ON big (small)",
        "CREATE TABLE small (id int PRIMARY KEY, name text, wide text)",
        "INSERT INTO small SELECT i, 'n' || i, repeat('y', 2000) FROM generate_series(0, 49) i",
    ] {
        let answer = client.query(statement);
        assert!(
            !answer.iter().any(|line| line.starts_with('E')),
            "{answer:?}"
        );
    }
    (server, client)
}

/// How many statements more were taken for small, and of these how many were too large.
fn taken(server: &Server, run: impl FnOnce()) -> (u64, u64) {
    let (finished, large) = server.engine.small_statements().counts();
    run();
    let (now_finished, now_large) = server.engine.small_statements().counts();
    let too_large = now_large - large;
    (now_finished - finished + too_large, too_large)
}

#[test]
fn what_indexes_bound_and_what_reads_few_rows_is_small() {
    let (server, mut client) = server();
    let mut asked = |query: &str, answer: &[&str]| {
        let (taken, _) = taken(&server, || {
            let got = client.query(query);
            assert_eq!(got[1..got.len() - 1], *answer, "{query}");
        });
        assert_eq!(taken, 1, "{query}");
    };
    asked(
        "SELECT DISTINCT ON (b.id) b.id, s.name FROM big b JOIN small s ON s.id = b.small WHERE b.id = 77",
        &["D 77|n27"],
    );
    asked(
        "SELECT s.name, count(DISTINCT b.id) FROM small s JOIN big b ON b.small = s.id WHERE s.id = 3 GROUP BY 1",
        &["D n3|240"],
    );
    asked(
        "SELECT count(*), sum(length(wide)) FROM small s, LATERAL (SELECT s.id) x",
        &["D 50|100000"],
    );
    // Twice the same: nothing of the first run is left.
    asked(
        "SELECT DISTINCT ON (b.id) b.id, s.name FROM big b JOIN small s ON s.id = b.small WHERE b.id = 78",
        &["D 78|n28"],
    );
}

#[test]
fn what_reads_much_or_does_something_is_not_taken_for_small() {
    let (server, mut client) = server();
    for query in [
        "SELECT small, count(*) FROM big GROUP BY 1",
        "SELECT count(*) FROM big a JOIN big b USING (id)",
        "SELECT s.name, random() < 2 FROM small s JOIN small t USING (id)",
        "SELECT set_config('application_name', s.name, false) FROM small s JOIN small t USING (id)",
    ] {
        let (taken, _) = taken(&server, || {
            let got = client.query(query);
            assert!(got.last().unwrap().starts_with("C SELECT"), "{got:?}");
        });
        assert_eq!(taken, 0, "{query}");
    }
}

#[test]
fn a_large_result_of_few_rows_begins_anew_and_is_whole() {
    let (server, mut client) = server();
    // 2500 rows of 4 kB.
    let query = "SELECT a.id, b.id, a.wide || b.wide FROM small a, small b ORDER BY 1, 2";
    let outcome = taken(&server, || {
        let got = client.query(query);
        assert_eq!(got.last().unwrap(), "C SELECT 2500");
        assert_eq!(got.len(), 2502);
        let number = |line: &String, at| {
            line[2..]
                .split('|')
                .nth(at)
                .unwrap()
                .parse::<usize>()
                .unwrap()
        };
        for (place, line) in got[1..=2500].iter().enumerate() {
            assert_eq!((number(line, 0), number(line, 1)), (place / 50, place % 50));
        }
    });
    assert_eq!(outcome, (1, 1));
}

#[test]
fn errors_limits_and_cursors_are_those_of_large_statements() {
    let (_server, mut client) = server();
    let got = client.query("SELECT 1 / (a.id - b.id) FROM small a JOIN small b USING (id)");
    assert!(got.last().unwrap().starts_with("E 22012"), "{got:?}");
    // All pairs of four: it ends when its time is over, wherever it runs.
    client.query("SET statement_timeout = 300");
    let got =
        client.query("SELECT count(*) FROM small a, small b, small c, small d, small e, small f");
    assert!(got.last().unwrap().starts_with("E 57014"), "{got:?}");
    client.query("SET statement_timeout = 0");
    client.query("BEGIN");
    client
        .query("DECLARE c CURSOR FOR SELECT a.id FROM small a JOIN small b USING (id) ORDER BY 1");
    assert_eq!(
        client.query("FETCH 2 FROM c")[1..],
        ["D 0", "D 1", "C FETCH 2"]
    );
    assert_eq!(client.query("FETCH 1 FROM c")[1..], ["D 2", "C FETCH 1"]);
    client.query("ROLLBACK");
}

/// Two tables that others change, read by a join of a serializable transaction that then writes.
fn joined(other: &str) -> Vec<String> {
    let (server, mut client) = server();
    for statement in [
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, note text)",
        "INSERT INTO orders SELECT i, i % 3000, 'o' FROM generate_series(1, 9000) i",
        "CREATE INDEX ON orders (customer)",
        "CREATE TABLE customers (id int, name text)",
        "CREATE INDEX ON customers USING hash (id)",
        "INSERT INTO customers SELECT i, 'c' || i FROM generate_series(0, 3000) i",
    ] {
        client.tag(statement);
    }
    let mut writer = server.connect();
    client.tag("BEGIN ISOLATION LEVEL SERIALIZABLE");
    let read = "SELECT DISTINCT ON (o.id) o.id, c.name FROM customers c JOIN orders o ON o.customer = c.id \
                WHERE c.id IN (7, 9) ORDER BY 1";
    assert_eq!(client.rows(read).len(), 6);
    writer.tag(other);
    client.tag("INSERT INTO small VALUES (1000, 'new', '')");
    client.query("COMMIT")
}

#[test]
fn a_serializable_join_by_keys_meets_only_changes_of_what_it_read() {
    for other in [
        "UPDATE orders SET note = 'p' WHERE id = 4",
        "UPDATE customers SET name = 'd' WHERE id = 8",
        "INSERT INTO orders VALUES (10000, 8, 'q')",
        "DELETE FROM orders WHERE customer = 10",
        "INSERT INTO customers VALUES (5000, 'e')",
    ] {
        assert_eq!(joined(other), ["C COMMIT"], "{other}");
    }
    for other in [
        "UPDATE orders SET note = 'p' WHERE customer = 7",
        "UPDATE customers SET name = 'd' WHERE id = 9",
        "INSERT INTO orders VALUES (10000, 7, 'q')",
        "UPDATE orders SET customer = 9 WHERE id = 8",
        "UPDATE orders SET customer = 8 WHERE id = 3009",
        "DELETE FROM customers WHERE id = 7",
    ] {
        let ended = joined(other);
        assert!(ended[0].starts_with("E 40001"), "{other}: {ended:?}");
    }
}

#[test]
fn a_serializable_statement_that_is_large_meets_each_change_of_its_tables() {
    let (server, mut client) = server();
    let mut writer = server.connect();
    client.tag("BEGIN ISOLATION LEVEL SERIALIZABLE");
    client.rows("SELECT small, count(*) FROM big GROUP BY 1");
    writer.tag("UPDATE big SET pad = '' WHERE id = 5");
    client.tag("INSERT INTO small VALUES (1000, 'new', '')");
    assert!(client.error("COMMIT").starts_with("40001"));
    // A cursor, whose rows are read as they are fetched.
    client.tag("BEGIN ISOLATION LEVEL SERIALIZABLE");
    client.tag("DECLARE c CURSOR FOR SELECT b.id FROM big b JOIN big d USING (id)");
    client.rows("FETCH 1 FROM c");
    writer.tag("UPDATE big SET pad = '' WHERE id = 11999");
    client.tag("INSERT INTO small VALUES (1001, 'new', '')");
    assert!(client.error("COMMIT").starts_with("40001"));
}
