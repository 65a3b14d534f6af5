//! MERGE, beside others and by its tag. What it does is in the script that PostgreSQL has run, too.

use std::thread;
use std::time::Duration;

use crate::fixture::Server;

const MERGE: &str = "merge into t using s on t.id = s.id when matched and s.v < 0 then delete \
    when matched then update set v = t.v + s.v when not matched and s.v is null then do nothing \
    when not matched then insert values (s.id, s.v)";

#[test]
fn its_tag_counts_rows_that_were_changed() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v int); create table s (id int, v int)");
    client.tag("insert into t values (1, 1), (2, 2), (3, 3)");
    assert_eq!(client.tag(MERGE), "MERGE 0");
    client.tag("insert into s values (1, 10), (2, -1), (4, 40), (5, null)");
    assert_eq!(client.tag(MERGE), "MERGE 3");
    let all = "select * from t order by id";
    assert_eq!(client.rows(all), ["1|11", "3|3", "4|40"]);
    // What fails leaves nothing.
    client.tag("insert into s values (6, 6), (4, 1)");
    assert!(client.error(MERGE).starts_with("21000"));
    assert_eq!(client.rows(all), ["1|11", "3|3", "4|40"]);
    client.tag("begin");
    client.tag("delete from s where id = 4; savepoint s");
    assert_eq!(client.tag(MERGE), "MERGE 3");
    client.tag("rollback to s; commit");
    assert_eq!(client.rows(all), ["1|11", "3|3", "4|40"]);
}

#[test]
fn a_row_that_somebody_changes_meanwhile_is_seen_as_it_is_then() {
    let server = Server::new();
    let (mut one, mut other) = (server.connect(), server.connect());
    one.tag("create table t (id int primary key, v int); create table s (id int, v int)");
    one.tag("insert into t values (1, 1); insert into s values (1, 10)");
    for (level, outcome) in [
        ("read committed", Ok("1|111")),
        ("repeatable read", Err("40001")),
    ] {
        one.tag("update t set v = 1");
        other.tag("begin");
        other.tag("update t set v = v + 100");
        one.tag(&format!("begin isolation level {level}"));
        one.rows("select * from t");
        let waiting = thread::spawn(move || {
            let merged = match outcome {
                Ok(_) => one.tag(MERGE),
                Err(_) => one.error(MERGE),
            };
            one.tag(if outcome.is_ok() {
                "commit"
            } else {
                "rollback"
            });
            (one, merged)
        });
        thread::sleep(Duration::from_millis(100));
        other.tag("commit");
        let (back, merged) = waiting.join().unwrap();
        one = back;
        match outcome {
            Ok(rows) => {
                assert_eq!(merged, "MERGE 1");
                assert_eq!(one.rows("select * from t"), [rows]);
            }
            Err(sqlstate) => assert!(merged.starts_with(sqlstate), "{merged}"),
        }
    }
}
