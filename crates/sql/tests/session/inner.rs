//! Statements within statements: row locks in subqueries and joins, as job queues have them, and
//! changes in a WITH list.

use std::thread;
use std::time::Duration;

use crate::fixture::{Connection, Server};

fn prepared(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag(
        "create table jobs (id int primary key, state text, args jsonb, tags text[], at date);
         insert into jobs select i, 'new', jsonb_build_object('n', i), array['a', 'b' || i],
             date '2024-01-01' + i from generate_series(1, 10) i;
         create table queues (name text primary key, state text);
         insert into queues values ('main', 'new'), ('other', 'done');
         create table archive (id int primary key, args jsonb, tags text[], at date)",
    );
    client
}

/// The forms in which job queues take their next work.
const TAKES: [&str; 5] = [
    "update jobs set state = 'run' where id = (select id from jobs where state = 'new' \
     order by id limit 1 for update skip locked) returning id",
    "update jobs set state = 'run' where id in (select id from jobs where state = 'new' \
     order by id for no key update skip locked limit 1) returning jobs.id",
    "with next as (select * from jobs where state = 'new' order by id limit 1 \
     for update skip locked) \
     update jobs set state = 'run' from next where jobs.id = next.id returning jobs.id",
    "with next as materialized (select id from jobs where state = 'new' order by id limit 1 \
     for update skip locked), taken as (update jobs set state = 'run' from next \
     where jobs.id = next.id returning jobs.*) select id from taken",
    "delete from jobs where id = any(array(select id from jobs where state = 'new' \
     order by id limit 1 for update skip locked)) returning id",
];

#[test]
fn each_takes_another_job() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        for take in TAKES {
            let server = Server::new();
            let mut clients = [prepared(&server), server.connect(), server.connect()];
            for (at, client) in clients.iter_mut().enumerate() {
                client.tag(&format!("begin isolation level {isolation}"));
                let expected = (at + 1).to_string();
                assert_eq!(client.rows(take), [expected], "{isolation}: {take}");
            }
            let [first, second, third] = &mut clients;
            if isolation == "serializable" {
                // Each has read what the others change: all but one may be refused.
                continue;
            }
            first.tag("commit");
            second.tag("rollback");
            third.tag("commit");
            let state = "select count(*) from jobs where state = 'new'";
            assert_eq!(first.rows(state), ["8"], "{isolation}: {take}");
            // Alone, too, and what was given back.
            assert_eq!(first.rows(take), ["2"], "{isolation}: {take}");
            assert_eq!(first.rows(take), ["4"], "{isolation}: {take}");
            assert_eq!(second.rows(state), ["6"], "{isolation}: {take}");
        }
    }
}

#[test]
fn parameters_are_known_to_describe() {
    let server = Server::new();
    let mut client = prepared(&server);
    let take = "with next as (select id, at from jobs where at > $1 order by id limit $2 \
                for update skip locked), taken as (update jobs set state = $3, \
                args = args || $4 from next where jobs.id = next.id \
                returning jobs.id, jobs.args, next.at is null as x) \
                select id, args, $5 || 'x' from taken where id <> $6 order by id";
    client.parse("t", take, &[]).unwrap();
    let told = client.describe("t").unwrap();
    assert_eq!(told[0], "t 1082 20 25 3802 25 23");
    for _ in 0..2 {
        let values = ["2024-01-03", "2", "run", "{\"m\": 1}", "y", "99"];
        client.bind("", "t", &values.map(Some)).unwrap();
        let rows = client.execute("", 0).unwrap();
        assert_eq!(rows.len(), 3, "{rows:?}");
        assert!(rows[0].contains("\"m\": 1"), "{rows:?}");
        client.sync().unwrap();
    }
}

#[test]
fn a_list_changes_rows() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (statement, rows) in [
        (
            "with gone as (delete from jobs where id < 3 returning *) \
             insert into archive select id, args, tags, at from gone returning id, tags, at",
            vec!["1|{a,b1}|2024-01-02", "2|{a,b2}|2024-01-03"],
        ),
        (
            "with one as (insert into queues values ('x', 'y') returning name), \
             two as (update jobs set state = 'run' where id = 3 returning id, args) \
             select name, id, args from one, two",
            vec!["x|3|{\"n\": 3}"],
        ),
        (
            "with none as (delete from queues where name = 'x') select count(*) from archive",
            vec!["2"],
        ),
        (
            "with gone as (delete from archive returning id) select g.id, j.state from gone g \
             left join jobs j on j.id = g.id + 2 order by 1",
            vec!["1|run", "2|new"],
        ),
        (
            "with none as (delete from archive returning *) select * from none",
            vec![],
        ),
        (
            "with gone as (delete from queues where name = 'other') \
             update jobs set state = 'last' where id = 10 returning id",
            vec!["10"],
        ),
        ("select count(*) from queues", vec!["1"]),
    ] {
        assert_eq!(client.rows(statement), rows, "{statement}");
    }
    // What the statement itself reads is as it was before, in PostgreSQL.
    for statement in [
        "with gone as (delete from jobs returning id) select count(*) from jobs",
        "with a as (update jobs set state = 'x' returning id) \
         update jobs set state = 'y' from a where a.id = jobs.id",
        "with a as (delete from jobs returning id), b as (select * from jobs) \
         select * from a, b",
        "with a as (insert into queues values ('z', 'z') returning name) \
         insert into archive (id) select count(*) from queues",
    ] {
        let error = client.error(statement);
        assert!(error.starts_with("0A000"), "{statement}: {error}");
    }
    assert_eq!(
        client.error("with a as (delete from jobs) select * from a"),
        "0A000 WITH query \"a\" does not have a RETURNING clause [position 44]"
    );
    assert_eq!(client.rows("select count(*) from jobs"), ["8"]);
    // One transaction: what fails later takes back what was before.
    let error =
        client.error("with gone as (delete from jobs returning id) select 1 / (id - id) from gone");
    assert!(error.starts_with("22012"), "{error}");
    assert_eq!(client.rows("select count(*) from jobs"), ["8"]);
    client.tag("begin read only");
    let error = client.error("with gone as (delete from jobs returning id) select * from gone");
    assert!(error.starts_with("25006"), "{error}");
    client.tag("rollback");
}

#[test]
fn rows_of_joins_are_locked() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        let server = Server::new();
        let (mut client, mut other) = (prepared(&server), server.connect());
        client.tag(&format!("begin isolation level {isolation}"));
        assert_eq!(
            client.rows(
                "select jobs.id, q.name from jobs join queues q on q.state = jobs.state \
                 where jobs.id < 3 order by 1 for update of jobs"
            ),
            ["1|main", "2|main"],
            "{isolation}"
        );
        other.tag(&format!("begin isolation level {isolation}"));
        let locked = "select id from jobs where id in (1, 2, 3) and id in (select id from jobs) \
                      order by id for update ";
        other.tag("savepoint s");
        assert_eq!(
            other.error(&format!("{locked} nowait")),
            "55P03 could not obtain lock on row in relation \"jobs\"",
            "{isolation}"
        );
        other.tag("rollback to s");
        assert_eq!(
            other.rows(&format!("{locked} skip locked")),
            ["3"],
            "{isolation}"
        );
        // Not of the other table.
        assert_eq!(
            other.rows("select name from queues for update nowait"),
            ["main", "other"],
            "{isolation}"
        );
        other.tag("rollback");
        client.tag("rollback");
    }
}

/// Of rows in an order that no index has, only those are locked that are shown, and those that OFFSET
/// passes over. Of many rows they are locked in parts.
#[test]
fn the_first_of_an_order_are_locked_and_no_others() {
    for (rows, isolation) in [
        (6, "read committed"),
        (6, "repeatable read"),
        (30_000, "read committed"),
    ] {
        let server = Server::new();
        let mut clients = [server.connect(), server.connect(), server.connect()];
        clients[0].tag("create table work (id int primary key, prio int, state text)");
        clients[0].tag(&format!(
            "insert into work select g, g * 7919 % 30011, 'new' from generate_series(1, {rows}) g"
        ));
        let in_order = clients[0].rows("select id from work order by prio desc, id limit 3");
        let [best, second, third] = <[String; 3]>::try_from(in_order).unwrap();
        let take = "select id from work where state = 'new' order by prio desc, id limit 1";
        let [first, other, looks] = &mut clients;
        for client in [&mut *first, &mut *other] {
            client.tag(&format!("begin isolation level {isolation}"));
        }
        let case = format!("{rows} rows, {isolation}");
        assert_eq!(
            first.rows(&format!("{take} for update")),
            [best.as_str()],
            "{case}"
        );
        assert_eq!(
            other.rows(&format!("{take} offset 1 for update skip locked")),
            [third.as_str()],
            "{case}"
        );
        let free = "select id from work for update skip locked";
        let free: std::collections::BTreeSet<String> = looks.rows(free).into_iter().collect();
        assert_eq!(free.len(), rows - 3, "{case}");
        for taken in [&best, &second, &third] {
            assert!(!free.contains(taken), "{case}: {taken}");
        }
        // Who waits takes the first that qualifies still.
        other.tag("rollback");
        first.tag(&format!("update work set state = 'run' where id = {best}"));
        first.tag("commit");
        assert_eq!(
            other.rows(&format!("{take} for update")),
            [second],
            "{case}"
        );
        // In any order, no more than are wanted.
        other.tag("begin");
        assert_eq!(other.rows("select 1 from work limit 2 for update").len(), 2);
        let free = looks.rows("select id from work for update skip locked");
        assert_eq!(free.len(), rows - 2, "{case}");
        other.tag("rollback");
    }
}

/// The locks of rows that were taken since a savepoint go with it, and who waits for one goes on.
#[test]
fn row_locks_go_with_a_savepoint() {
    let server = Server::new();
    let (mut client, mut other) = (server.connect(), server.connect());
    client.tag("create table t (id int primary key, v int); insert into t select g, 0 from generate_series(1, 4) g");
    for isolation in ["read committed", "repeatable read"] {
        client.tag(&format!("begin isolation level {isolation}"));
        client.tag("update t set v = v + 1 where id = 1");
        client.tag("savepoint s");
        client.tag("update t set v = 9 where id <= 2");
        client.rows("select id from t where id = 3 for update");
        let free = |other: &mut Connection| {
            other.rows("select id from t order by id for update skip locked")
        };
        assert_eq!(free(&mut other), ["4"], "{isolation}");
        client.tag("rollback to s");
        assert_eq!(free(&mut other), ["2", "3", "4"], "{isolation}");
        client.tag("update t set v = 9 where id = 2");
        let waiting = thread::spawn(move || {
            other.tag("set lock_timeout = '20s'");
            other.tag("update t set v = v + 10 where id = 2");
            other
        });
        thread::sleep(Duration::from_millis(100));
        client.tag("rollback to s");
        other = waiting.join().unwrap();
        client.tag("commit");
    }
    assert_eq!(
        client.rows("select v from t order by id"),
        ["2", "20", "0", "0"]
    );
}

/// A query that reads no table begins what REPEATABLE READ sees, as any other does.
#[test]
fn the_first_query_settles_what_is_seen() {
    let server = Server::new();
    let (mut client, mut other) = (server.connect(), server.connect());
    client.tag("create table t (id int primary key); insert into t values (1), (2), (3)");
    for first in [
        "select now()",
        "select 1",
        "values (1)",
        "select count(*) from pg_class",
    ] {
        client.tag("begin isolation level repeatable read");
        client.rows(first);
        other.tag("delete from t where id = 2");
        assert_eq!(client.rows("select count(*) from t"), ["3"], "{first}");
        client.tag("commit");
        other.tag("insert into t values (2)");
    }
    client.tag("begin isolation level repeatable read");
    client.rows("show work_mem");
    other.tag("delete from t where id = 2");
    assert_eq!(client.rows("select count(*) from t"), ["2"]);
    client.tag("commit");
}

#[test]
fn a_join_waits_for_what_others_change() {
    let server = Server::new();
    let (mut client, mut other) = (prepared(&server), server.connect());
    other.tag("begin isolation level read committed; update jobs set state = 'gone' where id = 1");
    let waiting = thread::spawn(move || {
        client.tag("begin isolation level read committed");
        let rows = client.rows(
            "select j.id, q.name from jobs j, queues q where q.state = j.state and j.id < 3 \
             order by 1 for update",
        );
        client.tag("commit");
        rows
    });
    thread::sleep(Duration::from_millis(200));
    assert!(!waiting.is_finished());
    other.tag("commit");
    assert_eq!(waiting.join().unwrap(), ["2|main"]);
}

#[test]
fn what_has_no_rows_to_lock_is_refused() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (statement, message) in [
        (
            "select distinct state from jobs for update",
            "0A000 FOR UPDATE is not allowed with DISTINCT clause",
        ),
        (
            "select count(*) from jobs, queues for update",
            "0A000 FOR UPDATE is not allowed with aggregate functions",
        ),
        (
            "select jobs.state from jobs, queues group by 1 for update",
            "0A000 FOR UPDATE is not allowed with GROUP BY clause",
        ),
        (
            "select id from jobs union select 1 for update",
            "0A000 FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT",
        ),
        (
            "select 1 from jobs for update of queues",
            "42P01 relation \"queues\" in FOR UPDATE clause not found in FROM clause",
        ),
        (
            "select 1 from jobs j, queues for update of jobs",
            "42P01 relation \"jobs\" in FOR UPDATE clause not found in FROM clause",
        ),
        (
            "select 1 from jobs left join queues on true for update",
            "0A000 FOR UPDATE cannot be applied to the nullable side of an outer join",
        ),
    ] {
        assert_eq!(client.error(statement), message, "{statement}");
    }
    assert_eq!(
        client.rows(
            "select id, name from jobs left join queues on name = 'none' where id = 1 \
             for update of jobs"
        ),
        ["1|NULL"]
    );
}

/// A queue that has outgrown the short path: no index bounds what is asked for.
#[test]
fn a_large_queue_gives_work_too() {
    let server = Server::new();
    let (mut client, mut other) = (server.connect(), server.connect());
    client.tag(
        "create table jobs (id int primary key, state text, rank numeric(4, 1), args jsonb);
         insert into jobs select i, case when i < 11000 then 'done' else 'new' end,
             i % 3 + 0.5, jsonb_build_object('n', i) from generate_series(1, 12000) i",
    );
    let next = "select id, rank, args from jobs where state = 'new' order by rank, id";
    for isolation in ["read committed", "repeatable read"] {
        client.tag(&format!("begin isolation level {isolation}"));
        other.tag(&format!("begin isolation level {isolation}"));
        assert_eq!(
            client.rows(&format!("{next} limit 2 for update skip locked")),
            ["11001|0.5|{\"n\": 11001}", "11004|0.5|{\"n\": 11004}"],
            "{isolation}"
        );
        assert_eq!(
            other.rows(&format!("{next} limit 1 offset 1 for update skip locked")),
            ["11010|0.5|{\"n\": 11010}"],
            "{isolation}"
        );
        assert_eq!(
            other.error(&format!("{next} limit 3 for update nowait")),
            "55P03 could not obtain lock on row in relation \"jobs\"",
            "{isolation}"
        );
        other.tag("rollback");
        client.tag("rollback");
    }
    let take = format!(
        "update jobs set state = 'run' where id = (select id from ({next} limit 1 \
         for update skip locked) n) returning id"
    );
    assert_eq!(client.rows(&take), ["11001"]);
    let take = format!(
        "with n as ({next} limit 2 for update skip locked) \
         update jobs set state = 'run' from n where n.id = jobs.id returning jobs.id, jobs.args"
    );
    assert_eq!(
        client.rows(&take),
        ["11004|{\"n\": 11004}", "11007|{\"n\": 11007}"]
    );
    client
        .parse("s", &take.replace("limit 2", "limit $1"), &[])
        .unwrap();
    assert_eq!(client.describe("s").unwrap()[0], "t 20");
    client.bind("", "s", &[Some("1")]).unwrap();
    assert_eq!(
        client.execute("", 0).unwrap(),
        ["D 11010|{\"n\": 11010}", "C UPDATE 1"]
    );
    client.sync().unwrap();
}

#[test]
fn a_join_passes_over_what_is_locked() {
    let server = Server::new();
    let (mut client, mut other) = (prepared(&server), server.connect());
    let next = "select j.id from jobs j join queues q on q.state = j.state order by j.id \
                limit 2 for update of j skip locked";
    client.tag("begin; update jobs set at = null where id = 2");
    assert_eq!(other.rows(next), ["1", "3"]);
    other.tag("begin");
    assert_eq!(other.rows(next), ["1", "3"]);
    assert_eq!(client.rows(next), ["2", "4"]);
    client.tag("rollback");
    other.tag("rollback");
}

/// A part of the list is computed for each who reads it: two must not be given different ones.
#[test]
fn what_a_change_reads_is_read_by_nobody_else() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (part, is_steady) in [
        ("select id from jobs order by random() limit 1", false),
        ("select 1 as id where random() < 2", false),
        ("select id from jobs where id = 1", false),
        ("select 1 as id", true),
        ("values (1)", true),
    ] {
        let change = format!(
            "with p (id) as ({part}), q as (select * from p), u as (update queues set state = 'x' \
             from q where name = 'main' and q.id > 0 returning name) select count(*) from u"
        );
        assert_eq!(client.rows(&change), ["1"], "{part}");
        let twice = change.replace("from u", "from u, q");
        // What reads another part is as steady as that.
        match is_steady {
            true => assert_eq!(client.rows(&twice), ["1"], "{part}"),
            false => {
                let error = client.error(&twice);
                assert!(error.starts_with("0A000 WITH part \"q\""), "{error}");
            }
        }
        let twice = change
            .replace("from q", "from p q")
            .replace("from u", "from u, p");
        match is_steady {
            true => assert_eq!(client.rows(&twice), ["1"], "{part}"),
            false => {
                let error = client.error(&twice);
                assert!(error.starts_with("0A000 WITH part \"p\""), "{error}");
            }
        }
    }
}

#[test]
fn rows_that_a_part_takes_away_come_back_changed() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key)");
    client.tag("insert into t values (1), (2), (3)");
    assert_eq!(
        client.rows("with gone as (delete from t where a < 3 returning a) insert into t select a * 10 from gone returning a"),
        ["10", "20"]
    );
    assert_eq!(
        client.rows("with gone as (delete from t returning a) insert into t select a from gone where a > 3 returning a"),
        ["10", "20"]
    );
    client.tag(
        "with more as (insert into t values (1) returning a) insert into t select a + 1 from more",
    );
    assert_eq!(
        client.rows("select * from t order by a"),
        ["1", "2", "10", "20"]
    );
    assert!(
        client
            .error("with gone as (delete from t) insert into t select a from t")
            .starts_with("0A000 ")
    );
}
