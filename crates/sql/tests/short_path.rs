//! The short path from SQL text to rows, over a database with four partitions.

#[path = "short_path/database.rs"]
mod database;
#[path = "short_path/overwrites.rs"]
mod overwrites;

use std::sync::atomic::Ordering;

use database::Fixture;
use thermocline_engine::{Identity, Isolation, block_on};
use thermocline_sql::plan::Plan;
use thermocline_sql::plan::Reason;
use thermocline_values::value::Value;

fn with_accounts() -> Fixture {
    let fixture = Fixture::new();
    fixture.accounts();
    let inserted = fixture.count(
        "INSERT INTO accounts (id, owner, balance, opened) VALUES
         (1, 'ann', 10.5, '2020-01-01'), (2, 'bob', 20, NULL), (3, 'ann', 30, '2021-05-06'),
         (4, NULL, 40.25, '2022-02-02'), (5, 'eve', DEFAULT, current_date)",
    );
    assert_eq!(inserted, 5);
    fixture
}

fn with_lines() -> Fixture {
    let fixture = Fixture::new();
    fixture.lines();
    for a in 1..=3 {
        for b in 1..=10 {
            fixture.count(&format!("INSERT INTO lines VALUES ({a}, {b}, 'l{a}-{b}')"));
        }
    }
    fixture
}

#[test]
fn a_row_is_found_by_its_key() {
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows("SELECT * FROM accounts WHERE id = 1"),
        ["1|ann|10.50|2020-01-01"]
    );
    assert_eq!(
        fixture.rows("SELECT owner FROM accounts WHERE id = 99"),
        [""; 0]
    );
    // Constants of other types use the index too.
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id = 2::bigint"),
        ["2"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id = 2.0"),
        ["2"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id = 2.5"),
        [""; 0]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id = '3'"),
        ["3"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id = 99999999999"),
        [""; 0]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id = NULL"),
        [""; 0]
    );
    assert_eq!(
        fixture.explain("SELECT id FROM accounts WHERE id = 2::bigint"),
        [
            "Index Scan using accounts_pkey on accounts",
            "  Index Cond: (id = '2')".replace('\'', "").as_str(),
            "Path: short (a unique key of accounts_pkey; one partition a key)"
        ]
    );
}

#[test]
fn a_parameter_is_coerced_once_and_looked_up() {
    let fixture = with_accounts();
    let sql = "SELECT owner FROM accounts WHERE id = $1";
    let (_, rows) = fixture
        .run_in(None, sql, &[Value::Integer(3)])
        .expect("runs");
    assert_eq!(rows, ["ann"]);
    let (_, rows) = fixture.run_in(None, sql, &[Value::Null]).expect("runs");
    assert_eq!(rows, [""; 0]);
}

#[test]
fn an_in_list_is_several_keys_and_each_row_comes_once() {
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id IN (3, 1, 3, 7, NULL) ORDER BY id"),
        ["1", "3"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE owner IN ('ann', 'eve') ORDER BY id DESC"),
        ["5", "3", "1"]
    );
    let lines = with_lines();
    assert_eq!(
        lines.rows("SELECT c FROM lines WHERE a IN (1, 3) AND b IN (2, 4) ORDER BY a, b DESC"),
        ["l1-4", "l1-2", "l3-4", "l3-2"]
    );
}

#[test]
fn ranges_prefixes_and_both_directions() {
    let lines = with_lines();
    assert_eq!(
        lines.rows("SELECT b FROM lines WHERE a = 2 AND b > 7 ORDER BY b"),
        ["8", "9", "10"]
    );
    assert_eq!(
        lines.rows("SELECT b FROM lines WHERE a = 2 AND b <= 3 ORDER BY b DESC"),
        ["3", "2", "1"]
    );
    assert_eq!(
        lines.rows("SELECT b FROM lines WHERE a = 2 AND b BETWEEN 4 AND 6"),
        ["4", "5", "6"]
    );
    assert_eq!(
        lines.rows("SELECT b FROM lines WHERE a = 2 ORDER BY b DESC LIMIT 2 OFFSET 1"),
        ["9", "8"]
    );
    assert_eq!(
        lines.rows("SELECT a, b FROM lines ORDER BY a, b LIMIT 3"),
        ["1|1", "1|2", "1|3"]
    );
    // Bounds that the column's type has not.
    assert_eq!(
        lines.count("SELECT b FROM lines WHERE a = 2 AND b < 99999999999"),
        10
    );
    assert_eq!(
        lines.count("SELECT b FROM lines WHERE a = 2 AND b > 99999999999"),
        0
    );
    assert_eq!(
        lines.rows("SELECT b FROM lines WHERE a = 2 AND b > 9.5"),
        ["10"]
    );
    assert_eq!(
        lines.rows("SELECT b FROM lines WHERE a = 2 AND b < 1.5"),
        ["1"]
    );
    let explained = lines.explain("SELECT b FROM lines WHERE a = 2 AND b > 7 ORDER BY b DESC");
    assert_eq!(
        explained[0],
        "Index Scan Backward using lines_pkey on lines"
    );
    assert_eq!(explained[1], "  Index Cond: (a = 2) AND (b > 7)");
}

#[test]
fn nulls_lie_in_no_range_and_sort_last() {
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE owner > 'a' ORDER BY owner, id"),
        ["1", "3", "2", "5"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts ORDER BY owner DESC, id"),
        ["4", "5", "2", "1", "3"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts ORDER BY owner NULLS FIRST, id DESC LIMIT 2"),
        ["4", "3"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE owner IS NULL"),
        ["4"]
    );
}

#[test]
fn residual_conditions_are_evaluated_a_row() {
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE owner = 'ann' AND balance > 20"),
        ["3"]
    );
    assert_eq!(
        fixture.rows("SELECT id FROM accounts WHERE id = 1 OR owner LIKE 'b%' ORDER BY 1"),
        ["1", "2"]
    );
    assert_eq!(
        fixture.rows(
            "SELECT a.id * 2 AS double FROM accounts AS a WHERE NOT (a.id < 4) ORDER BY double"
        ),
        ["8", "10"]
    );
}

#[test]
fn aggregates_have_postgresqls_types_and_scales() {
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows(
            "SELECT count(*), count(owner), sum(id), avg(id), min(owner), max(balance), sum(balance) FROM accounts"
        ),
        ["5|4|15|3.0000000000000000|ann|40.25|100.75"]
    );
    assert_eq!(
        fixture.rows("SELECT count(*), sum(id), min(id) FROM accounts WHERE id = 99"),
        ["0|NULL|NULL"]
    );
    assert_eq!(
        fixture.rows(
            "SELECT owner, count(*) n, sum(balance) FROM accounts GROUP BY owner HAVING count(*) >= 1 ORDER BY n DESC, owner"
        ),
        ["ann|2|40.50", "bob|1|20.00", "eve|1|0.00", "NULL|1|40.25"]
    );
    assert_eq!(
        fixture.rows("SELECT id % 2, count(*) FILTER (WHERE balance > 15) FROM accounts GROUP BY 1 ORDER BY 1"),
        ["0|2", "1|1"]
    );
    let error = fixture.error("SELECT owner, count(*) FROM accounts");
    assert_eq!(error.sqlstate, "42803");
    assert_eq!(
        error.message,
        "column \"accounts.owner\" must appear in the GROUP BY clause or be used in an aggregate function"
    );
}

#[test]
fn min_and_max_look_at_one_row_of_an_index() {
    let lines = with_lines();
    let sql = "SELECT max(b) FROM lines WHERE a = 2";
    assert_eq!(lines.rows(sql), ["10"]);
    assert!(
        lines
            .explain(sql)
            .join("\n")
            .contains("Backward using lines_pkey")
    );
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows("SELECT max(owner), 1 FROM accounts"),
        ["eve|1"]
    );
    assert_eq!(fixture.rows("SELECT min(owner) FROM accounts"), ["ann"]);
}

#[test]
fn inserted_rows_are_returned_and_defaults_filled_in() {
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows(
            "INSERT INTO accounts (owner, id) VALUES ('zoe', 9) RETURNING id, balance, owner || '!' AS cry"
        ),
        ["9|0.00|zoe!"]
    );
    assert_eq!(
        fixture.rows("SELECT opened FROM accounts WHERE id = 5"),
        ["2026-01-01"]
    );
    let columns = fixture
        .bind("INSERT INTO accounts (id) VALUES (10) RETURNING *")
        .expect("binds")
        .columns
        .expect("returns rows");
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "owner", "balance", "opened"]);
    assert_eq!(columns[2].type_modifier, 786_438);
    assert_eq!(columns[3].column_number, 4);
}

#[test]
fn constraints_speak_postgresqls_words() {
    let fixture = with_accounts();
    let error = fixture.error("INSERT INTO accounts VALUES (NULL, 'x', 1, NULL)");
    assert_eq!(error.sqlstate, "23502");
    assert_eq!(
        error.message,
        "null value in column \"id\" of relation \"accounts\" violates not-null constraint"
    );
    assert_eq!(
        error.detail.as_deref(),
        Some("Failing row contains (null, x, 1.00, null).")
    );
    assert_eq!(error.column.as_deref(), Some("id"));
    let error = fixture.error("INSERT INTO accounts VALUES (6, 'x', -1)");
    assert_eq!(error.sqlstate, "23514");
    assert_eq!(
        error.message,
        "new row for relation \"accounts\" violates check constraint \"accounts_balance_check\""
    );
    let error = fixture.error("INSERT INTO accounts VALUES (1, 'x', 1)");
    assert_eq!(error.sqlstate, "23505");
    assert_eq!(
        error.message,
        "duplicate key value violates unique constraint \"accounts_pkey\""
    );
    assert_eq!(
        error.detail.as_deref(),
        Some("Key (id)=(1) already exists.")
    );
    // An UPDATE is checked alike, and a failed statement leaves nothing.
    let error = fixture.error("UPDATE accounts SET balance = balance - 15 WHERE owner = 'ann'");
    assert_eq!(error.sqlstate, "23514");
    assert_eq!(
        fixture.rows("SELECT balance FROM accounts WHERE id = 3"),
        ["30.00"]
    );
    let error = fixture.error("UPDATE accounts SET balance = NULL WHERE id = 1");
    assert_eq!(error.sqlstate, "23502");
    let error = fixture.error("INSERT INTO accounts VALUES (8, 'x', 1), (8, 'y', 2)");
    assert_eq!(error.sqlstate, "23505");
    assert_eq!(fixture.count("SELECT * FROM accounts WHERE id = 8"), 0);
}

#[test]
fn statements_that_do_not_fit_the_table_are_refused() {
    let fixture = with_accounts();
    for (sql, sqlstate, message) in [
        (
            "INSERT INTO accounts VALUES (1, 'a', 2, NULL, 5)",
            "42601",
            "INSERT has more expressions than target columns",
        ),
        (
            "INSERT INTO accounts (id, owner) VALUES (1)",
            "42601",
            "INSERT has more target columns than expressions",
        ),
        (
            "INSERT INTO accounts (nope) VALUES (1)",
            "42703",
            "column \"nope\" of relation \"accounts\" does not exist",
        ),
        (
            "INSERT INTO accounts (id, id) VALUES (1, 2)",
            "42701",
            "column \"id\" specified more than once",
        ),
        (
            "INSERT INTO accounts (id) VALUES ('x')",
            "22P02",
            "invalid input syntax for type integer: \"x\"",
        ),
        (
            "INSERT INTO accounts (id) VALUES ('5'::text)",
            "42804",
            "column \"id\" is of type integer but expression is of type text",
        ),
        (
            "INSERT INTO accounts (id, balance) VALUES (7, 99999999999)",
            "22003",
            "numeric field overflow",
        ),
        (
            "UPDATE accounts SET nope = 1",
            "42703",
            "column \"nope\" of relation \"accounts\" does not exist",
        ),
        (
            "UPDATE accounts SET id = 1, id = 2",
            "42601",
            "multiple assignments to same column \"id\"",
        ),
        (
            "UPDATE accounts SET id = 1 FROM lines RETURNING *",
            "42P01",
            "relation \"lines\" does not exist",
        ),
        (
            "DELETE FROM accounts WHERE nope = 1",
            "42703",
            "column \"nope\" does not exist",
        ),
        (
            "DELETE FROM accounts WHERE id",
            "42804",
            "argument of WHERE must be type boolean, not type integer",
        ),
        (
            "DELETE FROM nope",
            "42P01",
            "relation \"nope\" does not exist",
        ),
        (
            "SELECT b.id FROM accounts a",
            "42P01",
            "missing FROM-clause entry for table \"b\"",
        ),
        (
            "SELECT id FROM accounts WHERE owner = 5",
            "42883",
            "operator does not exist: text = integer",
        ),
        ("SELECT 1 / 0", "22012", "division by zero"),
        (
            "SELECT id FROM accounts LIMIT -1",
            "2201W",
            "LIMIT must not be negative",
        ),
    ] {
        let error = fixture.error(sql);
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            (sqlstate, message),
            "{sql}"
        );
    }
}

#[test]
fn updates_patch_or_rewrite_and_return_the_new_row() {
    let fixture = with_accounts();
    assert_eq!(
        fixture
            .rows("UPDATE accounts SET balance = balance + 1 WHERE id = 1 RETURNING id, balance"),
        ["1|11.50"]
    );
    assert_eq!(
        fixture.rows("UPDATE accounts SET owner = owner || ' the longer', balance = 1, opened = NULL WHERE id = 2 RETURNING *"),
        ["2|bob the longer|1.00|NULL"]
    );
    assert_eq!(
        fixture.rows("UPDATE accounts SET (owner, balance) = ('x', DEFAULT) WHERE id = 2 RETURNING owner, balance"),
        ["x|0.00"]
    );
    assert_eq!(
        fixture.rows("SELECT owner FROM accounts WHERE owner = 'x'"),
        ["x"]
    );
    assert_eq!(
        fixture.rows("SELECT owner FROM accounts WHERE owner = 'bob'"),
        [""; 0]
    );
    // All rows, through a changed key: none comes twice, none is lost.
    assert_eq!(fixture.count("UPDATE accounts SET id = id + 100"), 5);
    assert_eq!(
        fixture.rows("SELECT id FROM accounts ORDER BY id"),
        ["101", "102", "103", "104", "105"]
    );
    assert_eq!(
        fixture.count("UPDATE accounts SET balance = 5 WHERE id = 1"),
        0
    );
}

#[test]
fn deletes_return_what_was_there() {
    let fixture = with_accounts();
    let mut deleted = fixture.rows("DELETE FROM accounts WHERE owner = 'ann' RETURNING id");
    deleted.sort();
    assert_eq!(deleted, ["1", "3"]);
    assert_eq!(fixture.count("DELETE FROM accounts WHERE id = 1"), 0);
    assert_eq!(fixture.count("DELETE FROM accounts"), 3);
    assert_eq!(fixture.rows("SELECT count(*) FROM accounts"), ["0"]);
}

#[test]
fn conflicts_are_skipped_or_updated() {
    let fixture = with_accounts();
    assert_eq!(
        fixture
            .count("INSERT INTO accounts VALUES (1, 'x', 1), (6, 'y', 1) ON CONFLICT DO NOTHING"),
        1
    );
    assert_eq!(
        fixture.rows(
            "INSERT INTO accounts AS a VALUES (1, 'x', 5), (7, 'z', 6) ON CONFLICT (id)
             DO UPDATE SET balance = a.balance + excluded.balance, owner = excluded.owner
             RETURNING id, owner, balance"
        ),
        ["1|x|15.50", "7|z|6.00"]
    );
    assert_eq!(
        fixture.rows(
            "INSERT INTO accounts VALUES (1, 'no', 5) ON CONFLICT ON CONSTRAINT accounts_pkey
             DO UPDATE SET owner = 'no' WHERE accounts.balance > 100 RETURNING id"
        ),
        [""; 0]
    );
    let error = fixture.error(
        "INSERT INTO accounts VALUES (20, 'a', 1), (20, 'b', 1) ON CONFLICT (id) DO UPDATE SET owner = 'c'",
    );
    assert_eq!(error.sqlstate, "21000");
    let error =
        fixture.error("INSERT INTO accounts VALUES (1, 'a', 1) ON CONFLICT (owner) DO NOTHING");
    assert_eq!(error.sqlstate, "42P10");
    let error = fixture.error(
        "INSERT INTO accounts VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET balance = balance + 1",
    );
    assert_eq!(error.sqlstate, "42702");
}

#[test]
fn identities_and_sequences() {
    let fixture = Fixture::new();
    fixture.events(Identity::Always);
    assert_eq!(
        fixture.rows("INSERT INTO events (note) VALUES ('a'), ('b') RETURNING id"),
        ["1", "2"]
    );
    assert_eq!(
        fixture.rows("INSERT INTO events DEFAULT VALUES RETURNING *"),
        ["3|NULL"]
    );
    let error = fixture.error("INSERT INTO events VALUES (9, 'x')");
    assert_eq!(error.sqlstate, "428C9");
    assert_eq!(
        error.message,
        "cannot insert a non-DEFAULT value into column \"id\""
    );
    assert_eq!(
        fixture.rows("INSERT INTO events VALUES (DEFAULT, 'd') RETURNING id"),
        ["4"]
    );
    assert_eq!(
        fixture.rows("SELECT nextval('events_id_seq'), currval('events_id_seq')"),
        ["5|5"]
    );
    assert_eq!(
        fixture.rows("INSERT INTO events OVERRIDING SYSTEM VALUE VALUES (90, 'o') RETURNING id"),
        ["90"]
    );
    let error = fixture.error("UPDATE events SET id = 5 WHERE id = 1");
    assert_eq!(
        error.message,
        "column \"id\" can only be updated to DEFAULT"
    );
    assert_eq!(
        fixture.rows("SELECT id FROM events WHERE id = 90 FOR NO KEY UPDATE"),
        ["90"]
    );
    let error = fixture.error("INSERT INTO events (note) VALUES ('too long')");
    assert_eq!(
        (error.sqlstate, error.message.as_str()),
        ("22001", "value too long for type character varying(5)")
    );
    let error = fixture.error("INSERT INTO events (note) VALUES ('a')");
    assert_eq!(error.constraint.as_deref(), Some("events_note_key"));
    assert_eq!(
        fixture.rows("SELECT id FROM events WHERE note = 'b'"),
        ["2"]
    );
}

#[test]
fn rows_of_a_query_are_inserted() {
    let fixture = with_accounts();
    assert_eq!(
        fixture.rows(
            "INSERT INTO accounts (id, owner, balance) SELECT id + 10, upper(owner), id FROM accounts WHERE owner = 'ann' ORDER BY id RETURNING id, owner, balance"
        ),
        ["11|ANN|1.00", "13|ANN|3.00"]
    );
    let bound = fixture
        .bind("INSERT INTO accounts (id) SELECT DISTINCT id + 50 FROM accounts")
        .expect("binds");
    let Plan::Short(plan) = &bound.plan else {
        panic!("an INSERT is always ours");
    };
    let (target, query) = plan.analytical_source().expect("runs elsewhere");
    assert_eq!(target.columns, [0]);
    assert_eq!(query.reason, Reason::FindsRows);
}

#[test]
fn without_from() {
    let fixture = Fixture::new();
    assert_eq!(fixture.rows("SELECT 1, 'a' WHERE 1 = 1"), ["1|a"]);
    assert_eq!(fixture.rows("SELECT 1 WHERE false"), [""; 0]);
    assert_eq!(fixture.rows("SELECT now()"), ["2026-01-01 00:00:00+00"]);
    assert_eq!(fixture.rows("SELECT current_schema()"), ["public"]);
}

#[test]
fn a_transaction_sees_its_own_changes_and_others_do_not() {
    let fixture = with_accounts();
    let mut txn = fixture.db.begin(Isolation::Serializable, false);
    let sql = "UPDATE accounts SET balance = 77 WHERE id = 1";
    fixture.run_in(Some(&mut txn), sql, &[]).expect("updates");
    let sql = "INSERT INTO accounts VALUES (50, 'in', 5)";
    fixture.run_in(Some(&mut txn), sql, &[]).expect("inserts");
    let sql = "SELECT id, balance FROM accounts WHERE id IN (1, 50) ORDER BY id FOR UPDATE";
    let (_, rows) = fixture.run_in(Some(&mut txn), sql, &[]).expect("locks");
    assert_eq!(rows, ["1|77.00", "50|5.00"]);
    assert_eq!(
        fixture.rows("SELECT id, balance FROM accounts WHERE id IN (1, 50)"),
        ["1|10.50"]
    );
    block_on(fixture.db.rollback(txn));
    assert_eq!(fixture.count("SELECT * FROM accounts"), 5);
}

#[test]
fn large_tables_are_changed_in_parts_and_never_scanned_by_select() {
    let mut fixture = with_lines();
    let values: Vec<String> = (0..12_000)
        .map(|n| format!("({}, {n}, 'x')", 10 + n % 50))
        .collect();
    let sql = format!("INSERT INTO lines VALUES {}", values.join(","));
    assert_eq!(fixture.count(&sql), 12_000);
    assert_eq!(
        fixture.count("UPDATE lines SET c = 'y' WHERE b % 3 = 0 AND a >= 10"),
        4_000
    );
    assert_eq!(
        fixture.rows("SELECT count(*) FROM lines WHERE c = 'y'"),
        ["4000"]
    );
    assert_eq!(
        fixture
            .rows("DELETE FROM lines WHERE c = 'y' AND b < 9 RETURNING b")
            .len(),
        3
    );
    assert_eq!(
        fixture.rows("SELECT count(*), max(b) FROM lines"),
        ["12027|11999"]
    );

    fixture.rows_estimated = 12_027;
    let is_short = |sql: &str| fixture.bind(sql).is_ok();
    assert!(!is_short("SELECT count(*) FROM lines"));
    assert!(!is_short("SELECT * FROM lines WHERE c = 'x'"));
    assert!(!is_short("SELECT * FROM lines WHERE a > 5"));
    assert!(is_short("SELECT * FROM lines WHERE a = 5"));
    assert!(is_short("SELECT * FROM lines WHERE a > 5 AND a < 7"));
    assert!(is_short("SELECT * FROM lines LIMIT 10"));
    assert!(is_short("SELECT * FROM lines ORDER BY a LIMIT 10"));
    assert!(is_short("SELECT min(a) FROM lines"));
    assert!(!is_short("SELECT * FROM lines ORDER BY c LIMIT 10"));
}

#[test]
fn a_plan_that_an_index_bounds_does_not_depend_on_the_size_of_the_table() {
    let mut fixture = Fixture::new();
    fixture.lines();
    let asks = |fixture: &Fixture, sql: &str| {
        fixture.sizes_asked.store(0, Ordering::Relaxed);
        let _ = fixture.bind(sql);
        fixture.sizes_asked.load(Ordering::Relaxed)
    };
    for rows in [0, 1_000_000] {
        fixture.rows_estimated = rows;
        for sql in [
            "SELECT * FROM lines WHERE a = 5",
            "SELECT * FROM lines WHERE a IN (5, 6) ORDER BY c",
            "SELECT * FROM lines WHERE a = 5 AND b > 3 ORDER BY b",
            "SELECT * FROM lines WHERE a > 5 AND a < 7 FOR UPDATE",
            "SELECT * FROM lines ORDER BY a LIMIT 10",
            "SELECT min(a) FROM lines",
        ] {
            assert_eq!(asks(&fixture, sql), 0, "{sql}");
        }
        // What is bounded by nothing is planned by it.
        assert!(asks(&fixture, "SELECT * FROM lines ORDER BY a") > 0);
        assert!(asks(&fixture, "SELECT * FROM lines WHERE a > 5") > 0);
    }
}
