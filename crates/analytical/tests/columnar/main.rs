//! Expressions by columns and row by row: values, errors and keys are the same.

#![allow(dead_code, reason = "each test uses a part")]

mod batch;
mod random;

use std::sync::Arc;

use batch::{Batch, check, expression};
use random::Random;
use thermocline_analytical::columnar;
use thermocline_analytical::evaluate::Context;
use thermocline_analytical::udf::RowFunction;
use thermocline_query::call::Plain;

fn context() -> Context {
    Context::new(Arc::new(Plain::default()), Arc::default())
}

const ROWS: usize = 60;

#[test]
fn each_kind_of_expression_is_the_same_both_ways() {
    let context = context();
    let mut random = Random(0x5eed_cafe);
    let mut unknown = 0;
    for _ in 0..6 {
        for sql in random::each(&mut random) {
            let Ok(expr) = expression(&sql) else {
                unknown += 1;
                continue;
            };
            for unusual in [false, true] {
                let batch = Batch::random(&mut random, ROWS, unusual);
                check(&sql, &expr, &batch, &context);
            }
        }
    }
    eprintln!("{unknown} expressions were refused");
}

#[test]
fn nested_expressions_are_the_same_both_ways() {
    let context = context();
    let seed = std::env::var("RANDOM")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let mut random = Random(seed.unwrap_or(0x00c0_ffee));
    let count = std::env::var("COUNT")
        .ok()
        .and_then(|count| count.parse().ok());
    let (mut asked, mut refused) = (0, 0);
    for round in 0..count.unwrap_or(4000) {
        let kind = *random.pick(&['b', 'i', 'f', 'n', 't', 'c', 'd', 's']);
        let sql = random::expression(&mut random, kind, 1 + round % 3);
        let Ok(expr) = expression(&sql) else {
            refused += 1;
            continue;
        };
        asked += 1;
        let batch = Batch::random(&mut random, ROWS, round % 4 == 0);
        check(&sql, &expr, &batch, &context);
    }
    let (computed, given_up) = columnar::counts();
    eprintln!(
        "{asked} expressions, {refused} refused; batches: {computed} by columns, {given_up} given up"
    );
    assert!(asked > refused && computed > given_up);
}

/// What is to be computed by columns, over usual values.
const BY_COLUMNS: &[&str] = &[
    "n * (1 - m)",
    "n * (1 - m) * (1 + m)",
    "case when b then n * m else 0 end",
    "case when x like 'PROMO%' then n * (1 - m) else 0 end",
    "da <= date '1998-12-01' - 90",
    "da < date '1994-01-01' + interval '1 year'",
    "m between 0.05 and 0.07",
    "x like '%BRASS'",
    "x not like '%a%b%'",
    "c = 'RAIL'",
    "c in ('RAIL', 'AIR', 'REG AIR')",
    "i4 in (1, 2, 3)",
    "i4 in (abs(-1), 2, 3)",
    "x in ('a', lower('B'))",
    "x in ('a', 'b')",
    "i4 + j4 * 2 - i2 / j4 % j2",
    "i8 * j4",
    "f8 * g8 + r4 / g8",
    "n + m - q * 2",
    "n / m",
    "-n",
    "-i4",
    "da + 3 > db",
    "da + interval '1 month' <= ts",
    "b and not e or i4 is null",
    "n is not null and x is null",
    "b is true",
    "b is not unknown",
    "i4 is distinct from j4",
    "coalesce(n, 0)",
    "nullif(i4, 1)",
    "case i4 when 1 then 'one' when 2 then 'two' else x end",
    "greatest(i4, j4)",
    "substring(x, 1, 2)",
    "substring(c, 1, 2)",
    "lower(x) || upper(y)",
    "length(x) + length(c)",
    "i4::int8::numeric * n",
    "n::float8 * f8",
    "round(n, 1)",
    "n::numeric(10,1)",
    "v::text = y",
    "x::char(4)",
    "extract(year from da)",
    "extract(month from ts)",
    "date_part('day', da)",
    "date_trunc('month', ts)",
    "i4 <> 0 and j4 / i4 > 1",
    "case when i4 <> 0 then j4 / i4 else 0 end",
    "i8 > i4 and i2 <= i8",
    "q < n",
    "x < y and c >= d",
    "b = e",
    "tz < timestamptz '1998-12-01 00:00+00'",
    "replace(x, 'a', 'b') = y",
    "n is distinct from m",
];

#[test]
fn what_makes_much_of_a_batch_is_computed_row_by_row() {
    let context = context();
    let mut random = Random(78);
    let batch = Batch::random(&mut random, 500, false);
    for (sql, computed) in [
        ("length(repeat(x || 'a', 10)) + length(x)", true),
        ("length(repeat(x || 'a', 20000)) + length(x)", false),
    ] {
        let expr = expression(sql).expect(sql);
        let program = columnar::Program::of(std::slice::from_ref(&expr), &context).expect(sql);
        let is_computed = batch.is_computed(&program, &expr, &context);
        assert_eq!(is_computed, computed, "{sql}");
        check(sql, &expr, &batch, &context);
    }
}

#[test]
fn usual_values_are_computed_by_columns() {
    let context = context();
    let mut random = Random(77);
    let batch = Batch::random(&mut random, 500, false);
    for sql in BY_COLUMNS {
        let expr = expression(sql).expect(sql);
        assert!(RowFunction::is_columnar(&expr, &context), "{sql}");
        let program = columnar::Program::of(std::slice::from_ref(&expr), &context).expect(sql);
        assert!(batch.is_computed(&program, &expr, &context), "{sql}");
        check(sql, &expr, &batch, &context);
    }
}

#[test]
fn a_branch_that_is_not_reached_does_not_fail() {
    let context = context();
    let mut random = Random(5);
    let batch = Batch::random(&mut random, 500, true);
    for sql in [
        "i4 <> 0 and 10 / i4 > 1",
        "i4 = 0 or 10 / i4 > 1",
        "case when i4 = 0 then 0 else 10 / i4 end",
        "case when n = 0 then 0 else 10 / n end",
        "coalesce(case when i4 = 0 then 1 end, 10 / i4)",
    ] {
        let expr = expression(sql).expect(sql);
        assert!(batch.by_rows(&expr, &context).is_ok(), "{sql}");
        let program = columnar::Program::of(std::slice::from_ref(&expr), &context).expect(sql);
        assert!(batch.is_computed(&program, &expr, &context), "{sql}");
        check(sql, &expr, &batch, &context);
    }
}
