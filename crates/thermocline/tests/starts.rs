//! What is there after a start: a new process, which knows only what the directory has.

mod support;

use support::{Running, directory, program};

#[tokio::test]
async fn a_clean_stop_keeps_everything_and_tells_its_clients() {
    let directory = directory();
    let path = directory.path();
    for signal in ["INT", "TERM"] {
        let mut running = Running::start(program(path).args(["-p", "0"]));
        let client = running.connect().await;
        client
            .batch_execute("create table if not exists kept (id int primary key)")
            .await
            .unwrap();
        let count = client
            .query("select id from kept", &[])
            .await
            .unwrap()
            .len();
        assert_eq!(count, usize::from(signal == "TERM"));
        client
            .execute("insert into kept values ($1)", &[&(count as i32)])
            .await
            .unwrap();
        running.signal(signal);
        assert_eq!(running.wait().code(), Some(0));
        assert!(client.simple_query("select 1").await.is_err());
    }
}

#[tokio::test]
async fn a_killed_server_keeps_what_it_acknowledged() {
    let directory = directory();
    let path = directory.path();
    let mut running = Running::start(program(path).args(["-p", "0"]));
    let client = running.connect().await;
    client
        .batch_execute("create table kept (id int primary key)")
        .await
        .unwrap();
    for id in 0..100 {
        client
            .execute("insert into kept values ($1)", &[&id])
            .await
            .unwrap();
    }
    running.child.kill().unwrap();
    running.wait();
    let running = Running::start(program(path).args(["-p", "0"]));
    let client = running.connect().await;
    let rows = client
        .query("select id from kept order by id", &[])
        .await
        .unwrap();
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
}

/// A process that has defined no type learns of those that are there, however the last one ended.
#[tokio::test]
async fn users_types_are_known_after_a_start() {
    let directory = directory();
    let path = directory.path();
    let read = "select e::text, d + 1, (c).name, a[2]::text, c::text from things";
    for start in 0..3 {
        let mut running = Running::start(program(path).args(["-p", "0"]));
        let client = running.connect().await;
        if start == 0 {
            let define = "create type level as enum ('low', 'high');
                 create domain small as int check (value < 10);
                 create type place as (name text, level level);
                 create table things (e level primary key, d small, c place, a level[]);
                 create function next(small) returns int language sql as 'select $1 + 1';
                 insert into things values ('high', 5, row('here', 'low'), '{low,high}')";
            client.batch_execute(define).await.unwrap();
        }
        let rows = client.simple_query(read).await.unwrap();
        let found: Vec<_> = rows
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => {
                    Some((0..5).map(|at| row.get(at).unwrap()).collect::<Vec<_>>())
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            found,
            [["high", "6", "here", "high", "(here,low)"]],
            "start {start}"
        );
        for works in [
            "select 'low'::level, next(d), sum(d) from things group by d",
            "update things set d = 6, c.level = 'high' where e = 'high'",
            "update things set d = 5, c.level = 'low' where e > 'low'",
        ] {
            client.batch_execute(works).await.unwrap();
        }
        let refused = client.batch_execute("update things set d = 10").await;
        assert_eq!(refused.unwrap_err().code().unwrap().code(), "23514");
        match start {
            0 => running.child.kill().unwrap(),
            _ => running.signal("TERM"),
        }
        running.wait();
    }
}
