//! Texts that differ in their literals only run by one plan (`session/shapes.rs`). Random texts, as
//! they are to one server and with so much blank behind them to another that they have no shape
//! there: all answers are the same bytes.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::fixture::{Connection, Server};

const STEPS: usize = 1500;
/// A text so long has no shape, and is not kept.
const PADDING: usize = 4097;

/// Texts with a mark for each literal: `#` a number, `@` a text, `%` either, or something else.
const TEXTS: [&str; 58] = [
    "select * from t where a = #",
    "SELECT a, b FROM t WHERE a = # AND b > #",
    "select * from t where a = % and c = %",
    "select count(*), min(b) from t where a between # and #",
    "select a from t where a >= # order by a limit 3",
    "select a, c from t where c = @ order by 1",
    "select a from t where c like @ order by a",
    "select a, d from t where a in (#, #, #) order by a",
    "select a from t where (a, b) = (#, #)",
    "select a + #, b * # - #, n / # from t where a = #",
    "select a, n from t where a = # and n = #",
    "select a, n + % from t where a = #",
    "select a from t where v = @ or f = @ order by a",
    "select a, v || @, f || @ from t where a = #",
    "select a, length(f || @) from t where a < # order by a",
    "select a from t where d = @ order by a",
    "select a, d + # from t where a = #",
    "select a, d - date @ from t where a = #",
    "select a from t where p > @ order by a",
    "select a, p + interval '1 day' from t where a = #",
    "select a, x from t where x > # order by a",
    "select a, x::numeric(10,2), (#)::numeric(5,1) from t where a = #",
    "select a, -#, - #, #::int2, -#::int2 from t where a = #",
    "select case when a > # then @ else @ end from t where a = #",
    "select coalesce(v, @), nullif(a, #) from t where a = #",
    "select a, u from t where u = @ order by a",
    "select a, j -> @, j ->> @ from t where a = #",
    "select a, j from t where j = % order by a",
    "select a, j @> % from t where a = #",
    "select t.a, s.c from t join s on s.a = t.a where t.a = #",
    "select t.a, s.c from t left join s on s.a = t.a and s.c <> @ where t.a = # order by 1, 2",
    "select a from t where o = % order by a",
    "select b % 7 from t where a = # and not o",
    "select a from t where a = #::bigint",
    "select a from t where a::text = @",
    "select substr(c, #, 2), left(c, #) from t where a = #",
    "select a, round(n, 1), round(x) from t where a = #",
    "select a from t where a = # for update",
    "select # + #",
    "select a from s where a = # order by #",
    "select a, count(*) from s group by a, # having count(*) > # order by a",
    "select (select c from s where s.a = t.a and s.c > @ order by c limit 1) from t where a = #",
    "select a from t where exists (select from s where s.a = t.a and s.c = @) and a < # order by a",
    "insert into t (a, b, c) values (#, #, @)",
    "insert into t (a, b, c) values (#, #, @) on conflict (a) do update set b = t.b + #",
    "insert into t (a, n, v, f) values (#, %, @, @) on conflict do nothing returning a, n, v, f",
    "insert into t (a, d, p) values (#, @, @) on conflict (a) do update set d = excluded.d",
    "insert into t (a, x, o, u, j) values (#, %, %, @, @) on conflict do nothing",
    "insert into s values (#, @), (#, @)",
    "update t set b = b + # where a = #",
    "update t set b = #, c = @ where a = # returning *",
    "update t set n = n * %, x = x + % where a = #",
    "update t set v = @, f = @ where a = #",
    "update t set d = @, p = @ where a = # returning d, p",
    "update t set o = %, j = % where a = #",
    "delete from t where a = # returning a, c",
    "delete from s where a = # and c = @",
    "select a from t where a = #; select a from s where a = #",
];

/// What is done beside, on both.
const BESIDE: [&str; 14] = [
    "begin",
    "begin",
    "commit",
    "rollback",
    "savepoint p",
    "rollback to p",
    "alter table t alter b type bigint",
    "alter table t alter b type int",
    "create index if not exists sc on s (c)",
    "drop index if exists sc",
    "alter table t add column if not exists z int default 3",
    "alter table t drop column if exists z",
    "set datestyle = 'iso, dmy'",
    "set datestyle = 'iso, mdy'",
];

const STRINGS: [&str; 22] = [
    "'a'",
    "'b'",
    "''",
    "'it''s'",
    "'a  '",
    "'abcdefgh'",
    "'%a%'",
    "'2024-02-29'",
    "'01/02/2024'",
    "'epoch'",
    "'2024-02-30'",
    "'infinity'",
    "'2024-01-01 12:30:00+02'",
    "'t'",
    "'5'",
    "' 5 '",
    "'{\"a\": 1}'",
    "'[1, 2]'",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
    "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
    "'ünï'",
    "'",
];

fn number(random: &mut StdRng) -> String {
    match random.random_range(0..60) {
        0 => "2147483647".to_owned(),
        1 => "2147483648".to_owned(),
        2 => "-2147483648".to_owned(),
        3 => "99999999999999999999".to_owned(),
        4 => "-32768".to_owned(),
        5 => format!("{}.50", random.random_range(0..9)),
        6 => format!("-{}.5", random.random_range(0..9)),
        7 => "1e2".to_owned(),
        8 => "0x1F".to_owned(),
        9..15 => format!("-{}", random.random_range(0..9)),
        _ => random.random_range(0..12).to_string(),
    }
}

fn text(random: &mut StdRng, form: &str) -> String {
    let mut text = String::new();
    for mark in form.chars() {
        match mark {
            '#' => text.push_str(&number(random)),
            '@' => text.push_str(STRINGS.choose(random).unwrap()),
            // `b % 7` and `'%a%'` are none: those stand alone here.
            '%' if !form.contains("% 7") => match random.random_range(0..5) {
                0 => text.push_str("null"),
                1 => text.push_str("true"),
                2 => text.push_str(&number(random)),
                _ => text.push_str(STRINGS.choose(random).unwrap()),
            },
            other => text.push(other),
        }
    }
    text
}

fn prepared(server: &Server) -> Connection {
    let mut connection = server.connect();
    for made in [
        "create table t (a int primary key, b int, c text, n numeric(10,2), v varchar(5), f char(4), \
         d date, p timestamptz, x float8, o bool, u uuid, j jsonb)",
        "create table s (a int, c text)",
        "insert into t select i, i * 3, chr(97 + i), i * 1.25, 'v' || i, 'f' || i, \
         date '2024-02-25' + i, timestamptz '2024-01-01 10:00:00+00' + i * interval '1 day', i / 4.0, \
         i % 2 = 0, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": 1}' from generate_series(0, 9) i",
        "insert into s select i % 5, chr(97 + i) from generate_series(0, 9) i",
        "create index on s (a)",
    ] {
        connection.rows(made);
    }
    connection
}

fn walk(seed: u64) -> u64 {
    let mut random = StdRng::seed_from_u64(seed);
    let (first, second) = (Server::new(), Server::new());
    let (mut shaped, mut plain) = (prepared(&first), prepared(&second));
    for step in 0..STEPS {
        let sql = match random.random_range(0..12) {
            0 => (*BESIDE.choose(&mut random).unwrap()).to_owned(),
            // A few come often, so that their shapes are known.
            1..10 => text(&mut random, TEXTS[(step / 60 * 7 + step % 3) % TEXTS.len()]),
            _ => {
                let form = TEXTS.choose(&mut random).unwrap();
                text(&mut random, form)
            }
        };
        let padded = format!("{sql}{:PADDING$}", "");
        let answers = shaped.query(&sql);
        let expected = plain.query(&padded);
        // The text's end is elsewhere.
        let at_end = |answer: &String| {
            answer.starts_with("E 42601")
                && (answer.contains("end of") || answer.contains("unterminated"))
        };
        if !answers.iter().any(at_end) || !expected.iter().any(at_end) {
            assert_eq!(answers, expected, "seed {seed}, step {step}: {sql}");
        }
        assert_eq!(shaped.status(), plain.status(), "seed {seed}: {sql}");
    }
    for connection in [&mut shaped, &mut plain] {
        connection.query("rollback");
    }
    let counted = "select queryid, calls, rows, query from pg_stat_statements \
                   where query !~ 'pg_stat' order by 1";
    assert_eq!(shaped.rows(counted), plain.rows(counted), "seed {seed}");
    assert_eq!(plain.session.shaped_runs(), 0);
    shaped.session.shaped_runs()
}

#[test]
fn texts_of_a_shape_are_answered_as_they_stand() {
    let seed = std::env::var("THERMOCLINE_SHAPES_SEED");
    let seed: u64 = seed.map_or_else(|_| rand::random(), |seed| seed.parse().expect("a number"));
    let runs: u64 = (0..4).map(|more| walk(seed.wrapping_add(more))).sum();
    assert!(runs > STEPS as u64 / 5, "{runs}");
}

/// Of these texts the second and the third are runs of a shape; of others none is.
#[test]
fn which_texts_have_a_shape() {
    let server = Server::new();
    let mut client = prepared(&server);
    let mut runs_of = |form: &str, values: [&str; 4]| {
        let before = client.session.shaped_runs();
        for value in values {
            client.query(&form.replace('#', value));
        }
        client.session.shaped_runs() - before
    };
    let numbers = ["1", "2", "3", "4"];
    let strings = ["'1'", "'2'", "'3'", "'4'"];
    for (form, values) in [
        ("select * from t where a = #", numbers),
        ("select * from t where a = #;", numbers),
        ("select c from t where a = # and b > -1", numbers),
        ("select c from t where a = #", ["-1", "-2", "-3", "-4"]),
        ("select c from t where a in (#, 7)", numbers),
        ("select c from t where a between # and 5", numbers),
        ("update t set b = b + #, n = # where a = #", numbers),
        ("update t set b = b - # where a = #", numbers),
        ("update t set c = # where a = 1", strings),
        ("insert into s values (#, 'x''y')", numbers),
        (
            "insert into t (a, v, f, n) values (# + 20, 'a', 'b', 1.5)",
            numbers,
        ),
        ("delete from t where a = #", numbers),
        ("select a from t where a = # order by 1 limit 5", numbers),
        ("select a from t where a = '#'", numbers),
    ] {
        assert_eq!(runs_of(form, values), 2, "{form}");
    }
    for (form, values) in [
        ("select a from s order by #", ["1", "1 ", "1  ", "1   "]),
        ("select a from s limit #", numbers),
        ("select c::varchar(#) from s where a = 1", numbers),
        ("select # from generate_series(1, 2)", numbers),
        ("select count(*) from t x, t y where x.b + y.b = #", numbers),
        ("explain select a from t where a = #", numbers),
        ("select a from t where a = 1; select #", numbers),
        (
            "select a from t where p < # and 'now' = 'now'",
            ["'now'"; 4],
        ),
    ] {
        assert_eq!(runs_of(form, values), 0, "{form}");
    }
}

#[test]
fn what_is_told_of_a_run_is_its_own_text() {
    let server = Server::new();
    let (mut client, mut other) = (prepared(&server), server.connect());
    for value in 1..6 {
        let sql = format!("select b from t where a = {value}");
        assert_eq!(client.rows(&sql), [(value * 3).to_string()]);
        let shown = other.rows("select query from pg_stat_activity where pid = 1");
        assert_eq!(shown, [sql]);
    }
    assert_eq!(client.session.shaped_runs(), 3);
    // Who may not read any more is refused, and a table of the same name is another.
    for made in [
        "create role r",
        "create schema n",
        "create table n.t (a int primary key, b text)",
        "insert into n.t values (2, 'two')",
        "grant usage on schema n to r",
    ] {
        client.rows(made);
    }
    let sql = |value: u32| format!("select b from t where a = {value}");
    client.rows("set role r");
    assert!(client.error(&sql(2)).starts_with("42501"));
    client.rows("reset role");
    client.rows("set search_path = n, public");
    assert_eq!(client.rows(&sql(2)), ["two"]);
    client.rows("reset search_path");
    assert_eq!(client.rows(&sql(2)), ["6"]);
    client.rows("alter table t alter b type text");
    assert_eq!(client.rows(&sql(2)), ["6"]);
    client.rows("begin read only");
    for value in 1..5 {
        let refused = client.error(&format!("update t set b = '{value}' where a = {value}"));
        assert!(refused.starts_with("25006"), "{refused}");
        client.rows("rollback; begin read only");
    }
}
