//! Statements whose expressions take long for each row: they end when they are to, and what they
//! give and change is the same wherever they go on.

use super::fixture::{Connection, Server};

const ROWS: usize = 1000;

/// Takes a millisecond or so for each row, and is 32.
const SLOW: &str = "length(md5(repeat(b, 200000)))";

fn server() -> (Server, Connection) {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b text, c int)");
    client.tag("create table no_key (b text, c int)");
    let rows = format!("generate_series(1, {ROWS}) g");
    client.tag(&format!("insert into t select g, 'bb', 0 from {rows}"));
    client.tag(&format!("insert into no_key select 'bb', 0 from {rows}"));
    (server, client)
}

#[test]
fn a_time_limit_ends_them() {
    let (_server, mut client) = server();
    client.tag("set statement_timeout = '200ms'");
    for statement in [
        format!("select max({SLOW}) from t"),
        format!("select a from t where {SLOW} < 5"),
        format!("select a from t where {SLOW} < 5 for update"),
        format!("select a from t where a > 0 and {SLOW} < 5 order by a"),
        format!("update t set c = {SLOW}"),
        format!("update t set c = 1 where {SLOW} < 5"),
        format!("delete from t where {SLOW} < 5"),
        format!("update no_key set c = {SLOW}"),
        format!("delete from no_key where {SLOW} < 5"),
    ] {
        let error = client.error(&statement);
        assert!(error.starts_with("57014 "), "{statement}: {error}");
    }
    client.tag("set statement_timeout = 0");
    assert_eq!(client.rows("select sum(c) from t"), ["0"]);
}

/// None of them holds what others need for as long as it runs.
#[test]
fn others_are_served_meanwhile() {
    let (server, mut client) = server();
    client.tag("create table copied (a int, c int, b text)");
    for statement in [
        format!("select max({SLOW}) from t"),
        format!("select a from t where {SLOW} = 32 order by c limit 5 for update"),
        format!("update t set c = {SLOW}"),
        format!("delete from t where {SLOW} < 5"),
        format!("insert into copied select a, {SLOW}, b from t"),
        format!("insert into copied select max(a), sum({SLOW}) from t"),
    ] {
        let over = std::sync::atomic::AtomicBool::new(false);
        let mut other = server.connect();
        let served = std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let mut served = 0;
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(other.rows("select b from t where a = 7"), ["bb"]);
                    served += 1;
                }
                served
            });
            client.tag("set statement_timeout = '400ms'");
            let error = client.error(&statement);
            assert!(error.starts_with("57014 "), "{statement}: {error}");
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            others.join().unwrap()
        });
        assert!(served > 5, "{statement}: {served} reads beside it");
    }
}

#[test]
fn what_goes_on_elsewhere_gives_and_changes_the_same() {
    let (_server, mut client) = server();
    let some = "a % 10 = 0";
    let tenth = (ROWS / 10).to_string();
    assert_eq!(
        client.rows(&format!(
            "select count(*) from t where {some} and {SLOW} = 32"
        )),
        [tenth.as_str()]
    );
    assert_eq!(
        client.rows(&format!(
            "select a, {SLOW} from t where {some} order by a limit 2"
        )),
        ["10|32", "20|32"]
    );
    let updated = format!("UPDATE {tenth}");
    for table in ["t", "no_key"] {
        let some = match table {
            "t" => some.to_owned(),
            _ => "c >= 0".to_owned(),
        };
        let all = match table {
            "t" => updated.clone(),
            _ => format!("UPDATE {ROWS}"),
        };
        let cost = match table {
            "t" => SLOW.to_owned(),
            _ => "length(md5(repeat(b, 20000)))".to_owned(),
        };
        // In a transaction that takes it back, and by itself.
        client.tag("begin");
        let change = format!("update {table} set c = c + {cost} where {some}");
        assert_eq!(client.tag(&change), all);
        client.tag("rollback");
        assert_eq!(client.rows(&format!("select sum(c) from {table}")), ["0"]);
        assert_eq!(client.tag(&change), all);
        assert_eq!(
            client.rows(&format!("select distinct c from {table} where c > 0")),
            ["32"]
        );
    }
    let removed = client.rows(&format!(
        "delete from t where {some} and {SLOW} = 32 returning a / 10"
    ));
    assert_eq!(removed.len().to_string(), tenth);
    assert_eq!(
        client.rows("select count(*) from t"),
        [(ROWS - ROWS / 10).to_string()]
    );
}

#[test]
fn rows_are_locked_in_parts() {
    let (server, mut client) = server();
    let mut other = server.connect();
    let locked = |how: &str| format!("select a from t where {SLOW} = 32 and a % 10 = 0 {how}");
    let tenth = ROWS / 10;
    client.tag("begin");
    assert_eq!(client.rows(&locked("for update")).len(), tenth);
    assert_eq!(client.rows(&locked("limit 3 for update")).len(), 3);
    assert_eq!(other.rows(&locked("for update skip locked")).len(), 0);
    assert!(
        other
            .error(&locked("for update nowait"))
            .starts_with("55P03 ")
    );
    other.tag("set lock_timeout = '50ms'");
    assert!(
        other
            .error("update t set c = 1 where a = 20")
            .starts_with("55P03 ")
    );
    assert_eq!(other.tag("update t set c = 1 where a = 21"), "UPDATE 1");
    client.tag("commit");
    let by_size = "order by c desc, a desc limit 2 for update";
    assert_eq!(other.rows(&locked(by_size)), ["1000", "990"]);
}

#[test]
fn a_volatile_function_is_called_once_for_each_row() {
    let (_server, mut client) = server();
    client.tag("create sequence s");
    let counted = format!("select nextval('s'), {SLOW} from t where a <= 100");
    assert_eq!(client.rows(&counted).len(), 100);
    assert_eq!(client.rows("select nextval('s')"), ["101"]);
    client.tag("update t set c = nextval('s') where a <= 100");
    assert_eq!(
        client.rows("select nextval('s'), min(c), max(c) from t where c > 0"),
        ["202|102|201"]
    );
}

#[test]
fn a_unique_violation_in_the_middle_changes_nothing() {
    let (_server, mut client) = server();
    let moved = format!("update t set a = 7, c = {SLOW} where a % 10 = 0");
    assert!(client.error(&moved).starts_with("23505 "));
    assert_eq!(
        client.rows("select sum(c), count(*) from t"),
        [format!("0|{ROWS}")]
    );
}
