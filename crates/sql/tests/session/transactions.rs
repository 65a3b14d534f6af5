//! Transactions as a client sees them: tags, statuses, failed blocks, savepoints.

use thermocline_engine::block_on;

use crate::fixture::{Connection, Server};

fn server() -> Server {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int)");
    client.tag("insert into t values (1, 10), (2, 20)");
    server
}

#[test]
fn tags_and_statuses_of_a_transaction() {
    let server = server();
    let mut client = server.connect();
    assert_eq!(client.tag("BEGIN"), "BEGIN");
    assert_eq!(client.status(), 'T');
    assert_eq!(client.tag("update t set b = b + 1 where a = 1"), "UPDATE 1");
    assert_eq!(client.tag("END"), "COMMIT");
    assert_eq!(client.status(), 'I');
    assert_eq!(client.tag("start transaction"), "START TRANSACTION");
    assert_eq!(client.tag("delete from t where a = 1"), "DELETE 1");
    assert_eq!(client.tag("abort"), "ROLLBACK");
    assert_eq!(client.rows("select b from t where a = 1"), ["11"]);
}

#[test]
fn a_failed_transaction_takes_nothing_but_its_end() {
    let server = server();
    let mut client = server.connect();
    client.tag("begin");
    client.tag("update t set b = 0 where a = 1");
    client.error("select * from nothing");
    assert_eq!(client.status(), 'E');
    assert_eq!(
        client.error("select 1"),
        "25P02 current transaction is aborted, commands ignored until end of transaction block"
    );
    assert_eq!(client.error("begin"), client.error("savepoint x"));
    assert_eq!(client.tag("commit"), "ROLLBACK");
    assert_eq!(client.status(), 'I');
    assert_eq!(client.rows("select b from t where a = 1"), ["10"]);
}

#[test]
fn a_syntax_error_fails_the_transaction_too() {
    let server = server();
    let mut client = server.connect();
    client.tag("begin");
    client.error("selec");
    assert_eq!(client.status(), 'E');
    assert_eq!(client.tag("rollback"), "ROLLBACK");
}

#[test]
fn locks_of_a_failed_transaction_are_gone_before_its_rollback() {
    let server = server();
    let mut first = server.connect();
    let mut second = server.connect();
    first.tag("begin");
    first.tag("update t set b = 0 where a = 1");
    first.error("select 1 / 0");
    assert_eq!(first.status(), 'E');
    second.tag("set lock_timeout = '2s'");
    assert_eq!(second.tag("update t set b = 5 where a = 1"), "UPDATE 1");
    first.tag("rollback");
}

#[test]
fn warnings_for_what_is_out_of_place() {
    let server = server();
    let mut client = server.connect();
    assert_eq!(
        client.query("commit"),
        ["N 25P01 there is no transaction in progress", "C COMMIT"]
    );
    assert_eq!(
        client.query("rollback"),
        ["N 25P01 there is no transaction in progress", "C ROLLBACK"]
    );
    client.tag("begin");
    assert_eq!(
        client.query("begin"),
        [
            "N 25001 there is already a transaction in progress",
            "C BEGIN"
        ]
    );
    client.tag("set client_min_messages = error");
    assert_eq!(client.query("begin"), ["C BEGIN"]);
    client.tag("commit");
    assert!(client.error("savepoint s").starts_with("25P01 "));
}

#[test]
fn savepoints() {
    let server = server();
    let mut client = server.connect();
    client.tag("begin");
    client.tag("update t set b = 11 where a = 1");
    assert_eq!(client.tag("savepoint one"), "SAVEPOINT");
    client.tag("update t set b = 12 where a = 1");
    client.tag("insert into t values (3, 30)");
    client.tag("savepoint two");
    client.error("select 1 / 0");
    assert_eq!(client.status(), 'E');
    assert_eq!(client.tag("rollback to savepoint one"), "ROLLBACK");
    assert_eq!(client.status(), 'T');
    assert_eq!(
        client.rows("select a, b from t order by a"),
        ["1|11", "2|20"]
    );
    let error = client.error("rollback to two");
    assert!(error.starts_with("3B001 savepoint \"two\""), "{error}");
    assert_eq!(client.tag("rollback to one"), "ROLLBACK");
    assert_eq!(client.tag("release one"), "RELEASE");
    client.tag("commit");
    assert_eq!(
        client.rows("select a, b from t order by a"),
        ["1|11", "2|20"]
    );
}

#[test]
fn read_only_transactions_do_not_write() {
    let server = server();
    let mut client = server.connect();
    client.tag("begin read only");
    assert_eq!(client.rows("select b from t where a = 2"), ["20"]);
    assert_eq!(
        client.error("update t set b = 0 where a = 2"),
        "25006 cannot execute UPDATE in a read-only transaction"
    );
    client.tag("rollback");
    client.tag("set default_transaction_read_only = on");
    assert!(
        client
            .error("insert into t values (9, 9)")
            .starts_with("25006 ")
    );
    assert!(client.error("create table u (a int)").starts_with("25006 "));
    client.tag("begin read write");
    assert_eq!(client.tag("insert into t values (9, 9)"), "INSERT 0 1");
    client.tag("rollback");
}

#[test]
fn isolation_levels_are_chosen_before_the_first_query() {
    let server = server();
    let mut client = server.connect();
    let level = "show transaction isolation level";
    assert_eq!(client.rows(level), ["serializable"]);
    client.tag("begin isolation level read committed");
    assert_eq!(
        client.rows("show transaction_isolation"),
        ["read committed"]
    );
    client.tag("set transaction isolation level repeatable read, read only");
    assert_eq!(client.rows(level), ["repeatable read"]);
    client.rows("select * from t where a = 1");
    assert_eq!(
        client.error("set transaction isolation level serializable"),
        "25001 SET TRANSACTION ISOLATION LEVEL must be called before any query"
    );
    client.tag("rollback");
    client.tag("set session characteristics as transaction isolation level read committed");
    assert_eq!(
        client.rows("show default_transaction_isolation"),
        ["read committed"]
    );
    assert_eq!(
        client.rows("show transaction_isolation"),
        ["read committed"]
    );
}

#[test]
fn a_chained_transaction_has_the_same_modes() {
    let server = server();
    let mut client = server.connect();
    client.tag("begin isolation level read committed");
    client.tag("update t set b = 1 where a = 1");
    assert_eq!(client.tag("commit and chain"), "COMMIT");
    assert_eq!(client.status(), 'T');
    assert_eq!(
        client.rows("show transaction_isolation"),
        ["read committed"]
    );
    client.tag("rollback");
    assert_eq!(client.rows("select b from t where a = 1"), ["1"]);
    assert!(client.error("commit and chain").starts_with("25P01 "));
}

#[test]
fn a_conflict_is_40001() {
    let server = server();
    let mut first = server.connect();
    let mut second = server.connect();
    first.tag("begin isolation level serializable");
    second.tag("begin isolation level serializable");
    // Write skew: each reads what the other one writes.
    assert_eq!(first.rows("select b from t where a = 1"), ["10"]);
    assert_eq!(second.rows("select b from t where a = 2"), ["20"]);
    first.tag("update t set b = 0 where a = 2");
    second.tag("update t set b = 0 where a = 1");
    assert_eq!(first.tag("commit"), "COMMIT");
    let answers = second.query("commit");
    assert!(answers[0].starts_with("E 40001 "), "{answers:?}");
    assert_eq!(second.status(), 'I');
    assert_eq!(
        second.rows("select a, b from t order by a"),
        ["1|10", "2|0"]
    );
}

#[test]
fn an_interrupted_client_leaves_nothing_behind() {
    let server = server();
    let mut client = server.connect();
    client.tag("begin");
    client.tag("delete from t where a = 1");
    block_on(client.session.terminate());
    drop(client);
    let mut other = server.connect();
    assert_eq!(other.rows("select count(*) from t"), ["2"]);
    assert_eq!(server.engine.session_count(), 1);
}

#[test]
fn transactions_are_counted() {
    let server = server();
    let mut client = server.connect();
    let (committed, rolled_back) = server.engine.transactions();
    client.tag("insert into t values (3, 3)");
    client.tag("begin");
    client.tag("insert into t values (4, 4)");
    client.tag("commit");
    client.error("insert into t values (4, 4)");
    client.tag("begin");
    client.tag("rollback");
    assert_eq!(
        server.engine.transactions(),
        (committed + 2, rolled_back + 2)
    );
}

#[test]
fn vacuum_is_outside_of_transactions() {
    let server = server();
    let mut client = server.connect();
    assert_eq!(client.tag("vacuum analyze t"), "VACUUM");
    assert_eq!(client.tag("analyze"), "ANALYZE");
    assert_eq!(client.tag("checkpoint"), "CHECKPOINT");
    assert!(client.error("vacuum nothing").starts_with("42P01 "));
    client.tag("begin");
    assert_eq!(
        client.error("vacuum t"),
        "25001 VACUUM cannot run inside a transaction block"
    );
    client.tag("rollback");
}

#[test]
fn a_snapshot_sees_nothing_of_a_table_made_after_it() {
    let server = server();
    let (mut reader, mut client) = (server.connect(), server.connect());
    reader.tag("begin isolation level repeatable read");
    reader.rows("select a from t");
    client.tag("begin");
    client.tag("create table made (a int primary key, b int)");
    client.tag("insert into made select g, g from generate_series(1, 40) g");
    client.tag("delete from made where a % 4 = 0");
    // Rows from here on are of the savepoint, in numbers of the deleted ones; what was
    // there before is changed beside its table until the commit.
    client.tag("savepoint s");
    client.tag("insert into made select g, g from generate_series(41, 45) g");
    client.tag("update made set b = -1");
    client.tag("commit");
    assert_eq!(reader.rows("select count(*) from made"), ["0"]);
    assert!(reader.rows("select b from made where a = 3").is_empty());
    reader.tag("commit");
    assert_eq!(reader.rows("select count(*), min(b) from made"), ["35|-1"]);
}

/// A count of all rows goes over none: it must be what a scan would find, for each of those who look.
#[test]
fn a_count_of_all_rows_is_what_the_transaction_sees() {
    let server = Server::new();
    let [mut one, mut other] = [server.connect(), server.connect()];
    one.tag("create table t (id int primary key, v text)");
    one.tag("insert into t select n, 'first' from generate_series(1, 1000) n");
    for client in [&mut one, &mut other] {
        client.tag("set thermocline.path = analytical");
    }
    let count = "select count(*), count(v), sum(1) from t";
    let alone = "select count(*) from t";
    let seen = |client: &mut Connection, expected: i64| {
        assert_eq!(client.rows(alone), [expected.to_string()]);
        let all = format!("{expected}|{expected}|{expected}");
        assert_eq!(client.rows(count), [all]);
        assert_eq!(client.rows("select from t limit 3").len(), 3);
        let joined = "select count(*) from t a, (select 1 from t limit 2) b";
        assert_eq!(client.rows(joined), [(2 * expected).to_string()]);
    };
    one.tag("begin isolation level repeatable read");
    seen(&mut one, 1000);
    one.tag("insert into t select n, 'second' from generate_series(1001, 1100) n");
    one.tag("delete from t where id <= 10");
    seen(&mut one, 1090);
    seen(&mut other, 1000);
    one.tag("savepoint s");
    one.tag("delete from t where id > 500");
    seen(&mut one, 490);
    one.tag("rollback to s");
    seen(&mut one, 1090);
    other.tag("delete from t where id between 101 and 300");
    other.tag("update t set v = 'changed' where id between 301 and 400");
    other.tag("insert into t select n, 'other' from generate_series(2001, 2050) n");
    seen(&mut other, 850);
    seen(&mut one, 1090);
    one.tag("rollback");
    seen(&mut one, 850);
    one.tag("truncate t");
    assert_eq!(one.rows(alone), ["0"]);
}

/// As PostgreSQL: what to do about a row that is not seen cannot be said. Whoever runs the
/// transaction again finds it.
#[test]
fn a_key_that_was_taken_unseen_is_no_violation_on_conflict() {
    let server = server();
    let (mut one, mut other) = (server.connect(), server.connect());
    one.tag(
        "create table plain (k int primary key, v text);
         create table fires (k int primary key, v text);
         create function same() returns trigger language plpgsql as 'begin return new; end';
         create trigger f before insert on fires for each row execute function same()",
    );
    let mut key = 0;
    for table in ["plain", "fires"] {
        for level in ["repeatable read", "serializable"] {
            for action in ["do nothing", "(k) do update set v = excluded.v"] {
                key += 1;
                let insert = format!("insert into {table} values ({key}, 'x')");
                one.tag(&format!(
                    "begin isolation level {level}; select count(*) from {table}"
                ));
                other.tag(&insert);
                let error = one.error(&format!("{insert} on conflict {action}"));
                assert_eq!(
                    error, "40001 could not serialize access due to concurrent update",
                    "{table}, {level}, {action}"
                );
                one.tag("rollback");
                let again = one.tag(&format!("{insert} on conflict {action}"));
                assert!(again.starts_with("INSERT 0 "), "{again}");
            }
            // A plain one says what stands in its way.
            key += 1;
            let insert = format!("insert into {table} values ({key}, 'x')");
            one.tag("begin isolation level repeatable read; select count(*) from plain");
            other.tag(&insert);
            assert!(one.error(&insert).starts_with("23505"));
            one.tag("rollback");
        }
    }
}
