//! Values that grow in expressions: refused before they are made, or within what a session and
//! analytical statements may have. In a database of a small limit; what the process takes at its
//! most is read from the kernel.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;
use thermocline_engine::{Config, Database};

use crate::fixture::Server;
use crate::{Victim, on_runtime};

/// What the largest statement may take beside the rest of the tests, in bytes.
const GROWTH_MAX: u64 = 512 << 20;

const EXPRESSIONS: &[&str] = &[
    "rpad(t.c, 2147483647)",
    "lpad(t.c, 2147483647)",
    "lpad(t.c, 2147483647, 'é')",
    "lpad(t.c, -5)",
    "rpad(t.c, -2147483648)",
    "lpad(t.c, 300000000)",
    "repeat(t.c, 2147483647)",
    "repeat(t.c, 300000000)",
    "repeat(repeat(repeat(t.c, 30000), 30000), 30000)",
    "replace(repeat('a', 100000), 'a', repeat('b', 100000))",
    "repeat(t.c, 100000000) || repeat(t.c, 100000000) || repeat(t.c, 100000000)",
    "concat(repeat(t.c, 100000000), repeat(t.c, 100000000), repeat(t.c, 100000000))",
    "concat_ws(repeat(t.c, 1000000), repeat(t.c, 100000000), t.c, repeat(t.c, 100000000))",
    "regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000), 'g')",
    "array_to_string(string_to_array(repeat('a,', 100000), ','), repeat('b', 100000))",
    "translate(repeat('a', 50000000), 'a', 'é')",
    "upper(repeat('ŉ', 50000000))",
    "length(repeat(t.c, 1000000000))",
    "array_repeat(t.c, 2000000000)",
    "generate_series(1, 2000000000)",
    "repeat(t.c, 1000000)::varchar(2)",
    "md5(repeat(t.c, 400000000))",
    "case when false then 'a' else repeat(t.c, 900000000) end",
    "encode(repeat(t.c, 200000000)::bytea, 'hex')",
];

const QUERIES: &[&str] = &[
    "select array_agg(repeat('x', 1000000)) from generate_series(1, 5000)",
    "select string_agg(rpad(t.c, 2000000), ',') from t join u on true",
    "select array_agg(rpad(t.c, 2000000)) from t join u on true",
    "select rpad(t.c, 2000000) from t join u on true order by 1",
    "select distinct rpad(t.c, 2000000 + u.id) from t join u on true",
    "select rpad(t.c, 100000000), rpad(t.c, 100000000), rpad(t.c, 100000000), rpad(t.c, 100000000) from t where id = 1",
    "select rpad(t.c, 100000000), rpad(t.c, 100000000), rpad(t.c, 100000000), rpad(t.c, 100000000) from t join u using (id)",
    "insert into t values (1000, repeat('x', 900000000))",
    "update t set c = repeat(c, 900000000) where id = 1",
    "select 1 from t where repeat(c, 900000000) = 'a' and id = 1",
    "select string_agg('a', repeat('x', 1000000)) from generate_series(1, 5000)",
    "select string_agg(repeat('x', 1000000), ',') from generate_series(1, 5000)",
    "select count(*) from t a, t b, t c, t d, t e where a.c || b.c || c.c || d.c || e.c = 'x'",
    "with recursive r as (select 'x'::text as s union all select s || s from r) select length(s) from r",
];

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes << 10)
}

#[test]
fn what_an_expression_builds_is_bounded() {
    on_runtime(|| {
        let config = Config::new(Arc::new(SimulatedDevice::new()))
            .memory_limit(256 << 20)
            .partitions(2);
        let server = Arc::new(Server::of(
            Database::open(config).expect("the database opens"),
        ));
        let mut victim = Victim::new(
            server,
            &[
                "create table t (id int primary key, c text)",
                "create table u (id int primary key)",
                "insert into t select g, 'x' from generate_series(1, 200) g",
                "insert into u select g from generate_series(1, 200) g",
            ],
        );
        let mut peak = peak_bytes();
        let mut ask = |sql: &str| {
            let state = victim.ask(sql);
            let now = peak_bytes();
            // The kernel's own count may fall a little: its threads' parts come together late.
            let more = now.saturating_sub(peak) >> 20;
            println!("{more:6} MB more, {state:?}: {sql}");
            if now > peak + GROWTH_MAX {
                victim
                    .failures
                    .push(format!("{sql}: takes {} MB", (now - peak) >> 20));
            }
            peak = now;
        };
        for expression in EXPRESSIONS {
            // What comes without end is the client's: here it is in the same process.
            let time = match expression.starts_with("generate_series") {
                true => "200ms",
                false => "2s",
            };
            ask(&format!("set statement_timeout = '{time}'"));
            ask(&format!("select {}", expression.replace("t.c", "'x'")));
            ask(&format!("select {expression} from t where id = 1"));
            ask(&format!("select {expression} from t join u using (id)"));
            let catalog = expression.replace("t.c", "relname::text");
            ask(&format!(
                "select {catalog} from pg_class where relname = 't'"
            ));
        }
        QUERIES.iter().for_each(|sql| ask(sql));
        victim.end();
    });
}
