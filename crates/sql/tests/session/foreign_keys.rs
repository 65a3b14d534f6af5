//! Foreign keys between sessions. What one session sees of them is in the server's tests, where
//! PostgreSQL's answers are (`sql/foreign_keys.sql`).

use crate::fixture::{Connection, Server};

fn tables(server: &Server) {
    let mut client = server.connect();
    client.tag("create table parent (id int primary key, v int default 0)");
    client.tag("create table child (id int primary key, parent int references parent)");
    client.tag("create index on child (parent)");
    client.tag("create table apart (id int primary key, parent int references parent)");
    client.tag("insert into parent values (1), (2), (3)");
}

#[test]
fn whoever_commits_first_wins() {
    for level in ["read committed", "repeatable read"] {
        let server = Server::new();
        tables(&server);
        let (mut one, mut other) = (server.connect(), server.connect());
        let begin = format!("begin isolation level {level}");
        // Who refers to a row keeps nobody from deleting it ...
        one.tag(&begin);
        one.tag("insert into child values (1, 1)");
        other.tag("delete from parent where id = 1");
        assert_eq!(
            one.error("commit"),
            "23503 insert or update on table \"child\" violates foreign key constraint \"child_parent_fkey\" \
             [detail Key (parent)=(1) is not present in table \"parent\".]"
        );
        // ... and who deletes it keeps nobody from referring to it.
        one.tag(&begin);
        one.tag("delete from parent where id = 2");
        other.tag("insert into child values (2, 2)");
        let error = one.error("commit");
        assert!(
            error.starts_with("23503 update or delete on table \"parent\""),
            "{error}"
        );
        // A change that leaves the key as it is is in nobody's way.
        one.tag(&begin);
        one.tag("insert into child values (3, 3)");
        other.tag("update parent set v = v + 1 where id = 3");
        one.tag("commit");
        assert_eq!(one.rows("select id from child order by id"), ["2", "3"]);
    }
}

#[test]
fn a_table_without_an_index_is_locked_while_a_parent_goes() {
    let server = Server::new();
    tables(&server);
    let (mut one, mut other) = (server.connect(), server.connect());
    one.tag("begin");
    one.tag("delete from parent where id = 1");
    other.tag("set lock_timeout = 20");
    let error = other.error("insert into apart values (1, 2)");
    assert!(error.starts_with("55P03"), "{error}");
    // The one with an index is not.
    other.tag("insert into child values (1, 2)");
    one.tag("commit");
    let error = other.error("insert into apart values (1, 1)");
    assert!(error.starts_with("23503"), "{error}");
}

#[test]
fn who_takes_a_parent_away_keeps_the_tables_that_refer_to_it_as_they_are() {
    let server = Server::new();
    tables(&server);
    let (mut one, mut other) = (server.connect(), server.connect());
    one.tag("begin");
    one.tag("delete from parent where id = 1");
    other.tag("set lock_timeout = 20");
    for change in [
        "drop index child_parent_idx",
        "alter table child add column more int",
        "drop table child",
    ] {
        let error = other.error(change);
        assert!(error.starts_with("55P03"), "{change}: {error}");
    }
    // Rows of them are anybody's.
    other.tag("insert into child values (1, 2)");
    one.tag("commit");
    other.tag("drop index child_parent_idx");
    // What is rolled back to a savepoint holds nothing.
    one.tag("begin");
    one.tag("savepoint s");
    one.tag("delete from parent where id = 3");
    one.tag("rollback to s");
    other.tag("alter table child add column more int");
    one.tag("commit");
}

#[test]
fn what_constraints_are_set_to_goes_back_to_a_savepoint() {
    let server = Server::new();
    let mut client = server.connect();
    for indexed in [true, false] {
        client.tag("create table p (id int primary key)");
        client.tag("create table c (id int references p deferrable initially deferred)");
        if indexed {
            client.tag("create index on c (id)");
        }
        // What was found among what is taken back is not there any more.
        client.tag("begin");
        client.tag("insert into c values (1)");
        client.tag("savepoint s");
        client.tag("insert into p values (1)");
        client.tag("set constraints all immediate");
        client.tag("rollback to s");
        client.tag("insert into c values (2)");
        let error = client.error("commit");
        assert!(error.starts_with("23503"), "{error}");
        client.tag("insert into p values (1)");
        client.tag("insert into c values (1)");
        // Nor what was deleted.
        client.tag("begin");
        client.tag("delete from p");
        client.tag("savepoint s");
        client.tag("delete from c");
        client.tag("set constraints c_id_fkey immediate");
        client.tag("rollback to s");
        let error = client.error("commit");
        assert!(error.starts_with("23503"), "{error}");
        // What was said before a savepoint holds on.
        client.tag("begin");
        client.tag("set constraints all immediate");
        client.tag("savepoint s");
        client.tag("set constraints all deferred");
        client.tag("insert into c values (9)");
        client.tag("rollback to s");
        let error = client.error("insert into c values (9)");
        assert!(error.starts_with("23503"), "{error}");
        client.tag("rollback");
        assert_eq!(client.rows("select * from p, c"), ["1|1"]);
        client.tag("drop table c, p");
    }
}

#[test]
fn a_child_that_somebody_deletes_is_waited_for() {
    let server = Server::new();
    tables(&server);
    let mut one = server.connect();
    one.tag("insert into child values (1, 1)");
    one.tag("begin");
    one.tag("delete from child where id = 1");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.connect().tag("delete from parent where id = 1"));
        std::thread::sleep(std::time::Duration::from_millis(100));
        one.tag("commit");
        assert_eq!(waiting.join().expect("ends"), "DELETE 1");
    });
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// One random statement over the tables of [`no_row_refers_to_none_whatever_sessions_do`].
fn statement(random: &mut Random) -> String {
    let (parent, id) = (random.below(12), random.below(60));
    match random.below(13) {
        0 | 1 => format!("insert into parent values ({parent})"),
        2 | 3 => format!("delete from parent where id = {parent}"),
        4 => format!(
            "update parent set id = {} where id = {parent}",
            random.below(12)
        ),
        5 | 6 => format!(
            "insert into child values ({id}, {parent}, {})",
            random.below(12)
        ),
        7 => format!("update child set parent = {parent} where id = {id}"),
        8 => format!("delete from child where id = {id}"),
        9 => format!("insert into apart values ({id}, {parent})"),
        // The row moves to another partition.
        11 => format!("update child set id = {} where id = {id}", random.below(60)),
        10 => format!("insert into grandchild values ({id}, {})", random.below(60)),
        _ => format!("update apart set parent = {parent} where id < {id}"),
    }
}

fn transactions(client: &mut Connection, seed: u64, count: usize) -> Vec<String> {
    let mut random = Random(seed | 1);
    let mut codes = Vec::new();
    let mut run = |client: &mut Connection, sql: &str| {
        let answer = client.query(sql);
        let error = answer.iter().find(|line| line.starts_with('E'));
        if let Some(error) = error {
            let code = error.get(2..7).unwrap_or(error).to_owned();
            assert!(
                ["23503", "23505", "40001", "40P01", "25P02", "3B001"].contains(&code.as_str()),
                "{sql}: {error}"
            );
            codes.push(code);
        }
    };
    for _ in 0..count {
        if random.below(2) == 0 {
            run(client, &statement(&mut random));
            continue;
        }
        let level = random.of(&["read committed", "repeatable read", "serializable"]);
        run(client, &format!("begin isolation level {level}"));
        if random.below(3) == 0 {
            run(client, "set constraints all deferred");
        }
        for number in 0..=random.below(4) {
            if random.below(4) == 0 {
                run(client, &format!("savepoint s{number}"));
            }
            run(client, &statement(&mut random));
            if client.status() == 'E' && random.below(2) == 0 || random.below(6) == 0 {
                break;
            }
            if random.below(5) == 0 || client.status() == 'E' {
                run(
                    client,
                    &format!("rollback to s{}", random.below(number + 1)),
                );
            }
        }
        run(
            client,
            random.of(&["commit", "commit", "commit", "rollback"]),
        );
        if client.status() != 'I' {
            run(client, "rollback");
        }
    }
    codes
}

/// Sessions change tables that refer to each other, by all actions, with and without an index
/// over the referring columns, at all levels, deferred and not: at the end each row refers to
/// one that is there.
#[test]
fn no_row_refers_to_none_whatever_sessions_do() {
    for (seed, on_delete, on_update) in [
        (1, "no action", "no action"),
        (2, "cascade", "cascade"),
        (3, "set null", "cascade"),
        (4, "restrict", "set null"),
        (5, "set default", "no action"),
    ] {
        let server = Server::new();
        let mut client = server.connect();
        let action = format!("on delete {on_delete} on update {on_update}");
        for sql in [
            "create table parent (id int primary key)".to_owned(),
            format!(
                "create table child (id int primary key, parent int default 3 references parent \
                 {action} deferrable, other int references parent on delete cascade)"
            ),
            "create index on child (parent, id)".to_owned(),
            "create index on child using hash (other)".to_owned(),
            format!("create table apart (id int, parent int default 3 references parent {action})"),
            "create table grandchild (id int primary key, child int references child on delete \
             cascade deferrable initially deferred)"
                .to_owned(),
            "create index on grandchild (child)".to_owned(),
            "insert into parent select generate_series(0, 11)".to_owned(),
        ] {
            client.tag(&sql);
        }
        let codes: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let mut client = server.connect();
                    scope.spawn(move || transactions(&mut client, seed * 1000 + thread, 150))
                })
                .collect();
            let codes = threads.into_iter().map(|thread| thread.join());
            codes.flat_map(|codes| codes.expect("runs")).collect()
        });
        assert!(codes.iter().any(|code| code == "23503"), "{codes:?}");
        for (table, column, of) in [
            ("child", "parent", "parent"),
            ("child", "other", "parent"),
            ("apart", "parent", "parent"),
            ("grandchild", "child", "child"),
        ] {
            let orphans = format!(
                "select count(*) from {table} t where t.{column} is not null and not exists \
                 (select from {of} where id = t.{column})"
            );
            assert_eq!(
                client.rows(&orphans),
                ["0"],
                "{table}.{column}, seed {seed}"
            );
        }
    }
}
