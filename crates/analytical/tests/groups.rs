//! What DataFusion groups is what `Group` groups: all aggregates, over keys and arguments of all
//! types. `GROUPING SETS` of two sets that are the same are always grouped by `Group`.

#[allow(dead_code, reason = "each test uses a part")]
#[path = "support/memory.rs"]
mod memory;
#[allow(dead_code, reason = "samples of another crate's tests")]
#[path = "../../query/tests/samples/mod.rs"]
mod samples;

use std::sync::Arc;

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use memory::{Given, Memory};
use thermocline_analytical::sort_key::{self, Direction};
use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::functions::{self, AggregateKind, Body};
use thermocline_query::types::numeric::Numeric;
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

/// Columns: their names and types. Sums of the numbers of some overflow; those called `calm` are
/// such that sums of floats are exact in any order.
const COLUMNS: &[(&str, u32)] = &[
    ("bool", ids::BOOL),
    ("int2", ids::INT2),
    ("int4", ids::INT4),
    ("int8", ids::INT8),
    ("oid", ids::OID),
    ("float4", ids::FLOAT4),
    ("float8", ids::FLOAT8),
    ("numeric", ids::NUMERIC),
    ("text", ids::TEXT),
    ("bpchar", ids::BPCHAR),
    ("bytea", ids::BYTEA),
    ("date", ids::DATE),
    ("time", ids::TIME),
    ("timetz", ids::TIMETZ),
    ("timestamp", ids::TIMESTAMP),
    ("timestamptz", ids::TIMESTAMPTZ),
    ("interval", ids::INTERVAL),
    ("uuid", ids::UUID),
    ("jsonb", ids::JSONB),
    ("inet", ids::INET),
    ("range", ids::NUMRANGE),
    ("bits", ids::BIT),
    ("ints", ids::INT4_ARRAY),
    ("lsn", ids::PG_LSN),
    ("calm4", ids::FLOAT4),
    ("calm8", ids::FLOAT8),
    ("calmer8", ids::FLOAT8),
    ("money", ids::NUMERIC),
    ("wide", ids::NUMERIC),
];

fn value(name: &str, oid: u32, random: &mut Random) -> Datum {
    let plain = Plain::default();
    let texts: Vec<Option<&str>> = match name {
        "calm4" | "calm8" | "calmer8" => {
            vec![
                Some("0"),
                Some("-0"),
                Some("1.5"),
                Some("-2.25"),
                Some("64"),
                None,
            ]
        }
        "money" => vec![
            Some("1.50"),
            Some("1.5"),
            Some("0.00"),
            Some("-123.45"),
            Some("7"),
            None,
        ],
        "wide" => vec![
            Some("170141183460469231731687303715884105727"),
            Some("-99999999999999999999999999999999999999.99"),
            Some("1e-30"),
            Some("0.1"),
            Some("9223372036854775807"),
            None,
        ],
        "bits" => vec![Some("1010"), Some("0110"), None],
        _ => samples::of(oid),
    };
    let text = texts[random.below(texts.len())];
    let Some(text) = text else {
        return Datum::Null;
    };
    types::input(&Call::new(&plain, &[], oid), oid, text, -1).expect("a sample of the type")
}

fn table(seed: u64, rows: usize, streams: usize) -> Memory {
    let mut random = Random(seed);
    let row = |random: &mut Random| {
        let columns = COLUMNS.iter();
        columns
            .map(|(name, oid)| value(name, *oid, random))
            .collect::<Vec<_>>()
    };
    let rows: Vec<Vec<Datum>> = (0..rows).map(|_| row(&mut random)).collect();
    Memory::new(COLUMNS, &rows, streams)
}

/// Calls of aggregates whose arguments are columns.
fn calls(random: &mut Random) -> Vec<String> {
    let mut calls = vec!["count(*)".to_owned()];
    for function in functions::all() {
        let Body::Aggregate(aggregate) = &function.body else {
            continue;
        };
        if aggregate.kind != AggregateKind::Normal {
            continue;
        }
        let mut column = |oid: u32| {
            let fits = |(_, of): &&(&str, u32)| match oid {
                ids::ANY | ids::ANYELEMENT | ids::ANYNONARRAY => types::element_of(*of).is_none(),
                ids::ANYARRAY => types::element_of(*of).is_some(),
                _ => *of == oid,
            };
            let columns: Vec<_> = COLUMNS.iter().filter(fits).collect();
            (!columns.is_empty()).then(|| columns[random.below(columns.len())].0)
        };
        let arguments: Option<Vec<&str>> =
            function.arguments.iter().map(|oid| column(*oid)).collect();
        if let Some(arguments) = arguments
            && !arguments.is_empty()
        {
            calls.push(format!("{}({})", function.name, arguments.join(", ")));
        }
    }
    calls
}

/// Whether the aggregate's result depends on what rounds first.
fn rounds(call: &str) -> bool {
    [
        "var",
        "stddev",
        "corr",
        "covar",
        "regr",
        "sum(float",
        "avg(float",
    ]
    .iter()
    .any(|name| call.starts_with(name))
}

fn shown(given: &Given, by_key: [bool; 2]) -> Vec<(Vec<u8>, Vec<u8>, Datum)> {
    let plain = Plain::default();
    let mut rows: Vec<(Vec<u8>, Vec<u8>, Datum)> = Vec::new();
    for row in &given.rows {
        let mut bytes = [Vec::new(), Vec::new()];
        let columns = row.iter().zip(&given.types).zip(&mut bytes);
        for (((value, oid), bytes), by_key) in columns.zip(by_key) {
            sort_key::directed(*oid, value, Direction::default(), bytes).ok();
            if !by_key && !value.is_null() {
                let call = Call::new(&plain, &[], *oid);
                bytes.extend(types::to_text(&call, *oid, value).expect("a text").bytes());
            }
        }
        let [key, value] = bytes;
        rows.push((key, value, row.last().cloned().unwrap_or_default()));
    }
    rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    rows
}

fn close(a: &Datum, b: &Datum) -> bool {
    let (Datum::Float8(a), Datum::Float8(b)) = (a, b) else {
        return false;
    };
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

fn compare(call: &str, native: &Result<Given>, own: &Result<Given>, streams: usize) {
    let (native, own) = match (native, own) {
        (Ok(native), Ok(own)) => (native, own),
        (Err(native), Err(own)) => {
            assert!(streams > 1 || native.sqlstate == own.sqlstate, "{call}");
            return;
        }
        // Which sums overflow depends on the order of rows.
        _ if rounds(call) && (streams > 1 || call.contains("DISTINCT")) => return,
        (native, own) => panic!(
            "{call}: {:?} and {:?}",
            native.as_ref().err(),
            own.as_ref().err()
        ),
    };
    assert!(own.plan.contains("Group:"), "{call}: {}", own.plan);
    // Of equal keys and values the first or the last is shown, whichever came so.
    let extreme = call.starts_with("min") || call.starts_with("max");
    let distinct = call.contains("DISTINCT");
    let by_key = [
        streams > 1 || distinct,
        (streams > 1 && extreme) || distinct,
    ];
    let (native, own) = (shown(native, by_key), shown(own, by_key));
    assert_eq!(native.len() * 2, own.len(), "{call}");
    for (native, own) in native.iter().zip(own.iter().step_by(2)) {
        let same = native.1 == own.1 || (rounds(call) && close(&native.2, &own.2));
        assert!(
            native.0 == own.0 && same,
            "{call}: {:?} and {:?}",
            native.2,
            own.2
        );
    }
}

async fn all_aggregates(seed: u64, streams: usize) {
    let mut random = Random(seed);
    let rows = 40 + random.below(200);
    let mut table = table(seed, rows, streams);
    if seed.is_multiple_of(2) {
        table = table.hurried();
    }
    let mut natives = 0;
    for call in calls(&mut random) {
        let (key, _) = COLUMNS[random.below(COLUMNS.len())];
        let mut call = call;
        if random.below(4) == 0 && !call.contains('*') {
            call = call.replace('(', "(DISTINCT ");
        }
        if random.below(3) == 0 {
            let filter = ["int4 > 0", "money >= 1.5", "bool"][random.below(3)];
            call = format!("{call} FILTER (WHERE {filter})");
        }
        let (native, own) = match random.below(4) {
            0 => (
                format!("SELECT 1, {call} FROM t"),
                format!("SELECT 1, {call} FROM t GROUP BY GROUPING SETS ((), ())"),
            ),
            _ => (
                format!("SELECT {key}, {call} FROM t GROUP BY {key}"),
                format!("SELECT {key}, {call} FROM t GROUP BY GROUPING SETS (({key}), ({key}))"),
            ),
        };
        let native = table.ask(&native).await;
        let own = table.ask(&own).await;
        if let Ok(native) = &native {
            let is_native = !native.plan.contains("Group:");
            natives += usize::from(is_native);
            // What depends on the order of rows has none here.
            if !is_native && streams > 1 {
                continue;
            }
        }
        compare(&call, &native, &own, streams);
    }
    assert!(natives > 80, "{natives} are computed by DataFusion");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_aggregates_are_the_same_in_one_stream() {
    for seed in 1..4 {
        all_aggregates(seed, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_aggregates_are_the_same_in_several_streams() {
    for seed in 4..7 {
        all_aggregates(seed, 3).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn distinct_aggregates_stand_beside_others() {
    for streams in [1, 3] {
        let table = table(11, 300, streams).hurried();
        for (select, by) in [
            (
                "count(DISTINCT money), sum(money), count(*), max(text)",
                "inet",
            ),
            (
                "sum(DISTINCT int8), count(DISTINCT int8), avg(calm8)",
                "text, int4",
            ),
            (
                "count(DISTINCT int4) FILTER (WHERE bool), min(text)",
                "date",
            ),
            (
                "sum(DISTINCT int8 / 2), count(DISTINCT int8 / 2), sum(int2)",
                "bytea",
            ),
            ("regr_avgx(DISTINCT calm8, calmer8), count(*)", "uuid"),
        ] {
            let sql = |by: &str| {
                let list = by.replace(['(', ')'], "");
                let list = list.trim_start_matches("GROUPING SETS ");
                let list = list.split(", ").take(2).collect::<Vec<_>>();
                format!(
                    "SELECT row_to_json(row({}, {select})) FROM t GROUP BY {by}",
                    list[0]
                )
            };
            let native = table.ask(&sql(by)).await.expect("groups");
            assert!(!native.plan.contains("Group:"), "{}", native.plan);
            let twice = format!("GROUPING SETS (({by}), ({by}))");
            let own = table.ask(&sql(&twice)).await.expect("groups");
            let texts = |given: &Given| {
                let rows = given.rows.iter().map(|row| format!("{:?}", row[0]));
                let mut rows: Vec<String> = rows.collect();
                rows.sort();
                rows
            };
            let (native, own) = (texts(&native), texts(&own));
            assert_eq!(native.len() * 2, own.len());
            if streams == 1 || !select.contains("calm") {
                for (native, own) in native.iter().zip(own.iter().step_by(2)) {
                    assert_eq!(native, own, "{select}");
                }
            }
        }
    }
}

/// Memory for a part of the groups, with a disk or without.
fn short_of_memory(bytes: usize, disk: DiskManagerMode) -> Arc<RuntimeEnv> {
    let disk = DiskManagerBuilder::default().with_mode(disk);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(bytes)))
        .with_disk_manager_builder(disk)
        .build_arc()
        .expect("an environment")
}

fn many_groups(streams: usize) -> Memory {
    let columns = [
        ("k", ids::NUMERIC),
        ("b", ids::BPCHAR),
        ("x", ids::INT8),
        ("s", ids::TEXT),
        ("n", ids::NUMERIC),
    ];
    let mut random = Random(3);
    let row = |random: &mut Random| {
        let number = random.below(20_000);
        vec![
            Datum::Numeric(Numeric::from_parts(number as i128, 2)),
            Datum::text(format!("{}   ", random.below(7))),
            Datum::Int8(random.below(1000) as i64),
            Datum::text(format!("a text that is somewhat longer, {}", number % 97)),
            Datum::Numeric(Numeric::from_parts(random.below(1_000_000) as i128, 3)),
        ]
    };
    let rows: Vec<Vec<Datum>> = (0..50_000).map(|_| row(&mut random)).collect();
    Memory::new(&columns, &rows, streams)
}

fn sorted(given: &Given) -> Vec<String> {
    let rows = given.rows.iter().map(|row| format!("{row:?}"));
    let mut rows: Vec<String> = rows.collect();
    rows.sort_unstable();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_do_not_fit_wait_on_disk() {
    for (bytes, streams, sql) in [
        (
            6 << 20,
            1,
            "SELECT k, sum(n), count(*), max(b), avg(n), stddev(n) FROM t GROUP BY k",
        ),
        (
            6 << 20,
            2,
            "SELECT k, sum(n), count(*), max(x), avg(n) FROM t GROUP BY k",
        ),
        (
            3 << 20,
            2,
            "SELECT trim(b), count(DISTINCT k), sum(n) FROM t GROUP BY trim(b)",
        ),
        (3 << 20, 2, "SELECT DISTINCT k, s FROM t"),
        (
            3 << 20,
            2,
            "SELECT x, k FROM t UNION SELECT x + 1, k FROM t",
        ),
        (
            3 << 20,
            1,
            "SELECT k, array_agg(x), string_agg(s, ','), count(*) FROM t GROUP BY k",
        ),
        (
            4 << 20,
            1,
            "SELECT k, b, GROUPING(k, b), sum(n), count(*), max(s) \
             FROM t GROUP BY GROUPING SETS ((k), (k, b), (b), ())",
        ),
        (
            4 << 20,
            1,
            "SELECT k, b, GROUPING(k, b), sum(n), count(DISTINCT x), \
             percentile_cont(0.5) WITHIN GROUP (ORDER BY x), json_agg(x), jsonb_agg(x ORDER BY x) \
             FROM t GROUP BY GROUPING SETS ((k), (k, b))",
        ),
        (
            2 << 20,
            2,
            "SELECT k, array_agg(x ORDER BY x, s), sum(DISTINCT n), count(DISTINCT x) FROM t GROUP BY k",
        ),
    ] {
        let with = |runtime| many_groups(streams).with_runtime(runtime);
        let free = with(Arc::default()).ask(sql).await.expect("groups");
        let none = with(short_of_memory(bytes, DiskManagerMode::Disabled));
        let refused = none.ask(sql).await.err().map(|error| error.sqlstate);
        assert_eq!(refused, Some("53200"), "{sql}");
        let short = with(short_of_memory(bytes, DiskManagerMode::OsTmpDirectory));
        let short = short.ask(sql).await;
        let short = short.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert!(sorted(&free) == sorted(&short), "{sql}");
    }
}
