//! What an expression costs by columns and row by row, in nanoseconds a row:
//! `cargo run --release --example columnar`.

#[allow(dead_code, reason = "a part is enough")]
#[path = "../tests/columnar/batch.rs"]
mod batch;
#[allow(dead_code, reason = "a part is enough")]
#[path = "../tests/columnar/random.rs"]
mod random;

use std::sync::Arc;
use std::time::Instant;

use batch::{Batch, COLUMNS, expression};
use random::Random;
use thermocline_analytical::evaluate::Context;
use thermocline_analytical::udf::RowFunction;
use thermocline_query::call::Plain;

fn main() {
    let context = Context::new(Arc::new(Plain::default()), Arc::default());
    let rows = 8192;
    let batch = Batch::random(&mut Random(1), rows, false);
    for sql in [
        "n * (1 - m)",
        "da <= date '1998-12-01' - 90",
        "x like '%BRASS'",
        "case when b then n * m else 0 end",
        "c = 'RAIL'",
        "m between 0.05 and 0.07 and n < 24",
        "substring(x, 1, 2)",
        "extract(year from da)",
        "i4 * j4 + i8",
        "n / m",
    ] {
        let expr = expression(sql).expect(sql);
        let nanos = |rounds: usize, f: &dyn Fn()| {
            let begun = Instant::now();
            (0..rounds).for_each(|_| f());
            begun.elapsed().as_nanos() as f64 / (rounds * rows) as f64
        };
        let before = nanos(20, &|| drop(batch.by_rows(&expr, &context)));
        let function = RowFunction::value(&expr, &|place| COLUMNS[place].1, &context);
        let after = nanos(100, &|| drop(batch.by_function(&function)));
        let key = RowFunction::key(&expr, &|place| COLUMNS[place].1, &context);
        let keys = nanos(20, &|| drop(batch.by_function(&key)));
        eprintln!("{sql}: {before:.0} ns a row before, {after:.1} now; key {keys:.1}");
    }
}
