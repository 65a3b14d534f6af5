//! How fast rows are grouped, in rows a second: `cargo run --release --example groups`.

#[allow(dead_code, reason = "a part is enough")]
#[path = "../tests/support/memory.rs"]
mod memory;

use memory::Memory;
use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::types::{self, ids};

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let rows: usize = 1_000_000;
    let columns = [
        ("flag", ids::BPCHAR),
        ("status", ids::TEXT),
        ("price", ids::NUMERIC),
        ("id", ids::INT8),
        ("number", ids::NUMERIC),
    ];
    let mut random = Random(5);
    let plain = Plain::default();
    let price = |cents: usize| {
        let text = format!("{}.{:02}", cents / 100, cents % 100);
        types::input(
            &Call::new(&plain, &[], ids::NUMERIC),
            ids::NUMERIC,
            &text,
            -1,
        )
        .expect("a price")
    };
    let made: Vec<Vec<Datum>> = (0..rows)
        .map(|_| {
            vec![
                Datum::text(["A", "N", "R"][random.below(3)]),
                Datum::text(["F", "O"][random.below(2)]),
                price(random.below(10_000_000)),
                Datum::Int8(random.below(500_000) as i64),
                price(random.below(50_000_000)),
            ]
        })
        .collect();
    let table = Memory::new(&columns, &made, 2);
    drop(made);
    for sql in [
        "SELECT flag, status, sum(price), avg(price), count(*) FROM t GROUP BY flag, status",
        "SELECT sum(price), avg(price), max(number), stddev(price) FROM t",
        "SELECT id, sum(price), count(*) FROM t GROUP BY id",
        "SELECT number, sum(price), count(*) FROM t GROUP BY number",
        "SELECT flag, count(DISTINCT id) FROM t GROUP BY flag",
        "SELECT DISTINCT number FROM t",
        "SELECT flag, status, string_agg(status, ','), count(*) FROM t GROUP BY flag, status",
        "SELECT number, array_agg(id) FROM t GROUP BY number",
    ] {
        let begun = std::time::Instant::now();
        let given = table.ask(sql).await.expect("groups");
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!(
            "{:>9.0} rows/s, {} groups: {sql}",
            rows as f64 / seconds,
            given.rows.len()
        );
    }
}
