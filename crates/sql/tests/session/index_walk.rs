//! Tables with indexes over expressions and partial ones answer as one without any, over random
//! changes, transactions, savepoints, evictions and restarts.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

const ROWS: i64 = 400;
const SCHEMAS: [(&str, &str); 3] = [
    ("plain", "memory"),
    ("indexed", "memory"),
    ("grouped", "columns"),
];

/// `@a` and `@b` are numbers.
const QUERIES: [&str; 17] = [
    "select id, mail from t where lower(mail) = 'mail @a'",
    "select id from t where lower(mail) in ('mail @a', 'mail @b') and gone is null",
    "select id from t where gone is null and k = @a % 20",
    "select id from t where gone is null and k between @a % 20 and @b % 20",
    "select id, k from t where gone is null and k is not null",
    "select id from t where k + id = @a",
    "select id from t where state = 'open' and k > @b % 20",
    "select id from t where state in ('open', 'new') and k = @a % 20",
    "select id from t where upper(state) = 'NEW' and id < @a",
    "select a.id, b.id from t a join t b on b.k = a.k and b.gone is null where lower(a.mail) = 'mail @a' and a.gone is null",
    "select a.id, b.k from t a left join t b on b.id = a.id + 1 and b.state = 'open' where a.k + a.id = @b",
    "select a.id, b.id from t a left join t b on lower(b.mail) = lower(a.mail) and b.gone is null where a.id < @a % 20",
    "select a.id, b.id, c.id from t a left join t b on b.k + b.id = a.id left join t c on c.k = b.k and c.state = 'open' where a.id = @a",
    "select a.id, b.id from t a full join t b on b.k + b.id = a.id + @b and b.state = 'open' where a.id = @a or b.k = 3",
    "select count(*) from t where state = 'open' and k = 5",
    "select id from t where coalesce(k, -1) = -1",
    "select id from t where exists (select from t u where u.id = t.id and lower(u.mail) = 'mail @b')",
];

const CHANGES: [&str; 10] = [
    "update t set mail = 'Mail ' || (id + @a) % 500 where id between @b and @b + 20",
    "update t set gone = case when gone is null then timestamp '2020-01-01' end where id % 7 = @a % 7",
    "update t set state = 'open' where lower(mail) = 'mail @a'",
    "update t set state = null, k = null where k + id = @b",
    "update t set k = (k + @a) % 20 where gone is null and k = @b % 20",
    "delete from t where state = 'done' and id between @a and @a + 30",
    "delete from t where lower(mail) in ('mail @a', 'mail @b')",
    "insert into t select @a * 1000 + n + 5000, 'MAIL ' || n % 500, n % 20, 'new', null from generate_series(1, 15) n on conflict do nothing",
    "insert into t values (@a, 'Mail @b', @b % 20, 'open', null) on conflict (id) do update set mail = excluded.mail, state = excluded.state, gone = null",
    "merge into t using (select @a a) s on t.id = s.a when matched then update set k = 3 when not matched then insert values (s.a, 'mail new', 3, 'open', null)",
];

fn filled(client: &mut Connection) {
    for (schema, method) in SCHEMAS {
        client.tag(&format!(
            "create schema {schema}; set search_path = {schema}"
        ));
        client.tag(&format!(
            "create table t (id int primary key, mail text, k int, state text, gone timestamp) using {method}"
        ));
        let indexes = || {
            [
                "create index on t (lower(mail))",
                "create index on t (k) where gone is null",
                "create index on t ((k + id))",
                "create index on t (k desc) where state = 'open'",
                "create index on t using hash (k) where state in ('open', 'new')",
                "create index on t (upper(state), (k % 3)) where state is not null",
                "create unique index on t (id, lower(mail)) include (k) where gone is null",
            ]
        };
        let rows = format!(
            "insert into t select n, 'Mail ' || n, n % 20, (array['open', 'new', 'done'])[1 + n % 3],
             case when n % 4 = 0 then timestamp '2021-01-01' end from generate_series(1, {ROWS}) n"
        );
        // Some are made of rows that are there.
        for (number, index) in indexes().into_iter().enumerate() {
            if number == 3 {
                client.tag(&rows);
            }
            if schema != "plain" {
                client.tag(index);
            }
        }
    }
}

fn said(text: &str, (a, b): (i64, i64)) -> String {
    text.replace("@a", &a.to_string())
        .replace("@b", &b.to_string())
}

fn answer(client: &mut Connection, schema: &str, query: &str) -> Vec<String> {
    client.tag(&format!("set search_path = {schema}"));
    let mut rows = client.rows(query);
    rows.sort();
    rows
}

#[derive(Debug, Clone)]
enum Step {
    Ask(&'static str, (i64, i64)),
    Change(&'static str, (i64, i64)),
    Say(&'static str),
    Leave,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let numbers = || (0..ROWS, 0..ROWS);
    prop_oneof![
        10 => (select(&QUERIES[..]), numbers()).prop_map(|(query, of)| Step::Ask(query, of)),
        8 => (select(&CHANGES[..]), numbers()).prop_map(|(change, of)| Step::Change(change, of)),
        4 => select(vec!["begin", "commit", "rollback", "savepoint s", "rollback to s", "release s"])
            .prop_map(Step::Say),
        1 => Just(Step::Leave),
        1 => Just(Step::Restart),
    ]
}

struct World {
    device: Arc<SimulatedDevice>,
    server: Option<Server>,
    client: Option<Connection>,
    savepoint: bool,
}

impl World {
    fn client(&mut self) -> &mut Connection {
        self.client.as_mut().expect("a client")
    }

    fn end(&mut self) {
        if self.client().status() != 'I' {
            self.client().tag("rollback");
        }
        self.savepoint = false;
    }

    fn take(&mut self, step: &Step) {
        let within = self.client().status() != 'I';
        match step {
            Step::Ask(query, numbers) => {
                let query = said(query, *numbers);
                let client = self.client();
                let expected = answer(client, "plain", &query);
                for schema in ["indexed", "grouped"] {
                    let given = answer(client, schema, &query);
                    assert_eq!(given, expected, "{schema}: {query}");
                }
            }
            Step::Change(change, numbers) => {
                let change = said(change, *numbers);
                let client = self.client();
                let tags = SCHEMAS.map(|(schema, _)| {
                    client.tag(&format!("set search_path = {schema}"));
                    client.tag(&change)
                });
                assert!(tags.iter().all(|tag| *tag == tags[0]), "{change}: {tags:?}");
            }
            Step::Say("begin") if !within => {
                self.client().tag("begin");
            }
            Step::Say(end @ ("commit" | "rollback")) if within => {
                self.client().tag(end);
                self.savepoint = false;
            }
            Step::Say("savepoint s") if within => {
                self.client().tag("savepoint s");
                self.savepoint = true;
            }
            Step::Say(say @ ("rollback to s" | "release s")) if within && self.savepoint => {
                self.client().tag(say);
                self.savepoint = *say == "rollback to s";
            }
            Step::Say(_) => {}
            Step::Leave if !within => {
                self.client()
                    .tag("call thermocline.evict('indexed.t', 100000000)");
                self.client().tag("vacuum grouped.t");
                let server = self.server.as_ref().expect("a server");
                server.is_sound();
            }
            Step::Leave => {}
            Step::Restart => {
                self.end();
                self.client = None;
                // What a crash leaves is in a test of its own: there nothing runs beside.
                drop(self.server.take());
                let server = Server::on(&self.device);
                self.client = Some(server.connect());
                self.server = Some(server);
            }
        }
    }
}

#[test]
fn answers_are_those_without_indexes() {
    let mut runner = TestRunner::new(Config {
        cases: 8,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    });
    let steps = prop::collection::vec(step(), 10..60);
    let ran = runner.run(&steps, |steps| {
        let device = Arc::new(SimulatedDevice::new());
        let server = Server::on(&device);
        let mut client = server.connect();
        filled(&mut client);
        let mut world = World {
            device,
            server: Some(server),
            client: Some(client),
            savepoint: false,
        };
        for step in &steps {
            world.take(step);
        }
        world.end();
        // All indexes agree with the rows.
        for query in QUERIES {
            world.take(&Step::Ask(query, (7, 11)));
        }
        let server = world.server.as_ref().expect("a server");
        server.is_sound();
        drop(world.client);
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}
