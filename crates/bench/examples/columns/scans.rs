//! Scans with conditions, as TPC-H's queries 1 and 6 have them, computed by this program: over tuples with the
//! conditions looked at here, over tuples of the rows that groups give when they are asked, and over vectors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use thermocline_engine::{Database, GroupRows, Result, RowId, ScanSink, Snapshot, Table, block_on};
use thermocline_storage::columns::{ColumnTest, IntegerVector, StringVector, Test, Vector};
use thermocline_values::value::ValueRef;

const THREADS: u16 = 2;
const REPEATS: usize = 5;

const ORDER: usize = 1;
const QUANTITY: usize = 4;
const PRICE: usize = 5;
const DISCOUNT: usize = 6;
const TAX: usize = 7;
const RETURNED: usize = 8;
const STATUS: usize = 9;
const SHIPPED: usize = 10;

/// A query: its conditions, the columns that it reads, and what it makes of a row.
struct Query {
    name: &'static str,
    asked: Vec<ColumnTest>,
    columns: &'static [usize],
    /// Whether rows are added up by flag and status.
    grouped: bool,
}

fn between(column: usize, low: i64, high: i64) -> ColumnTest {
    let test = Test::Integers(vec![(low, high)]);
    ColumnTest { column, test }
}

fn queries() -> [Query; 3] {
    [
        Query {
            name: "like Q1",
            asked: vec![between(SHIPPED, i64::MIN, 10_400)],
            columns: &[QUANTITY, PRICE, DISCOUNT, TAX, RETURNED, STATUS, SHIPPED],
            grouped: true,
        },
        Query {
            name: "like Q6",
            asked: vec![
                between(SHIPPED, 8730, 9094),
                between(DISCOUNT, 5, 7),
                between(QUANTITY, i64::MIN, 23),
            ],
            columns: &[QUANTITY, PRICE, DISCOUNT, SHIPPED],
            grouped: false,
        },
        Query {
            name: "a range of orders",
            asked: vec![between(ORDER, 1000, 2000)],
            columns: &[ORDER, PRICE, DISCOUNT],
            grouped: false,
        },
    ]
}

/// By flag and status: rows, and sums of price × (100 − discount), tax and quantity.
type Sums = BTreeMap<(u8, u8), [i64; 4]>;

/// Adds up rows.
struct Adder<'a> {
    query: &'a Query,
    table: &'a Table,
    vectors: bool,
    sums: Sums,
}

fn integer(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::BigInt(value) => value,
        ValueRef::Integer(value) | ValueRef::Date(value) => i64::from(value),
        ValueRef::Numeric(value) => value.mantissa() as i64,
        other => panic!("{other:?} is no number"),
    }
}

fn first(value: ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Text(text) => text.as_bytes().first().copied().unwrap_or(0),
        other => panic!("{other:?} is no text"),
    }
}

fn add(sums: &mut Sums, key: (u8, u8), price: i64, discount: i64, tax: i64, quantity: i64) {
    let of = sums.entry(key).or_default();
    of[0] += 1;
    of[1] = of[1].wrapping_add(price * (100 - discount));
    of[2] += tax;
    of[3] += quantity;
}

impl ScanSink for Adder<'_> {
    fn tuple(&mut self, _: RowId, tuple: &[u8]) {
        let value = |column: usize| self.table.value(tuple, column);
        let has = |test: &ColumnTest| match &test.test {
            Test::Integers(ranges) => {
                let value = integer(value(test.column));
                ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&value))
            }
            _ => true,
        };
        if !self.query.asked.iter().all(has) {
            return;
        }
        let (price, discount) = (integer(value(PRICE)), integer(value(DISCOUNT)));
        match self.query.grouped {
            true => {
                let key = (first(value(RETURNED)), first(value(STATUS)));
                let (tax, quantity) = (integer(value(TAX)), integer(value(QUANTITY)));
                add(&mut self.sums, key, price, discount, tax, quantity);
            }
            false => add(&mut self.sums, (0, 0), price, discount, 0, 0),
        }
    }

    fn group(&mut self, rows: &GroupRows<'_>) -> Result<bool> {
        if !self.vectors || rows.reader.has_odd() {
            return Ok(false);
        }
        let integers = |column: usize| match rows.reader.vector(column) {
            Some(Vector::Integers(all)) => decoded(&all, rows.positions),
            _ => panic!("column {column} is not one of integers"),
        };
        let (price, discount) = (integers(PRICE), integers(DISCOUNT));
        if !self.query.grouped {
            for (price, discount) in price.iter().zip(&discount) {
                add(&mut self.sums, (0, 0), *price, *discount, 0, 0);
            }
            return Ok(true);
        }
        let (tax, quantity) = (integers(TAX), integers(QUANTITY));
        // A small group may have other encodings: its rows come as tuples.
        let (Some(returned), Some(status)) = (words(rows, RETURNED), words(rows, STATUS)) else {
            return Ok(false);
        };
        // By the words' numbers: few of each.
        let mut sums = vec![[0i64; 4]; returned.0.len() * status.0.len()];
        for row in 0..rows.positions.len() {
            let key = returned.1[row] as usize * status.0.len() + status.1[row] as usize;
            let of = &mut sums[key];
            of[0] += 1;
            of[1] = of[1].wrapping_add(price[row] * (100 - discount[row]));
            of[2] += tax[row];
            of[3] += quantity[row];
        }
        for (number, sums) in sums.into_iter().enumerate().filter(|(_, sums)| sums[0] > 0) {
            let (a, b) = (number / status.0.len(), number % status.0.len());
            let letter =
                |words: &StringVector<'_>, at| words.get(at).and_then(<[u8]>::first).copied();
            let key = (
                letter(&returned.0, a).unwrap_or(0),
                letter(&status.0, b).unwrap_or(0),
            );
            let all = self.sums.entry(key).or_default();
            all.iter_mut()
                .zip(sums)
                .for_each(|(all, sum)| *all = all.wrapping_add(sum));
        }
        Ok(true)
    }
}

fn decoded(all: &IntegerVector<'_>, positions: &[u16]) -> Vec<i64> {
    let mut values = Vec::with_capacity(positions.len());
    all.each(positions, |value| values.push(value));
    values
}

/// The words of a column and the rows' numbers of them, where it has a dictionary.
fn words<'a>(rows: &GroupRows<'a>, column: usize) -> Option<(StringVector<'a>, Vec<i64>)> {
    match rows.reader.vector(column) {
        Some(Vector::Dictionary(words, numbers)) => {
            Some((words, decoded(&numbers, rows.positions)))
        }
        _ => None,
    }
}

/// Runs a query on all partitions by two threads; its sums.
fn run(snapshot: &Snapshot, table: &Arc<Table>, query: &Query, asks: bool, vectors: bool) -> Sums {
    let partitions = snapshot.database().partitions();
    let asked: Arc<[ColumnTest]> = match asks {
        true => query.asked.clone().into(),
        false => Arc::default(),
    };
    let work = |thread: u16| {
        let mut adder = Adder {
            query,
            table,
            vectors,
            sums: Sums::new(),
        };
        for partition in (thread..partitions).step_by(usize::from(THREADS)) {
            let mut scan = snapshot.scan_columns(table, partition, query.columns, &asked);
            while block_on(scan.next_rows(&mut adder)).expect("scans") {}
        }
        adder.sums
    };
    let of_threads = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
        let sums = threads
            .into_iter()
            .map(|thread| thread.join().expect("ends"));
        sums.collect::<Vec<_>>()
    });
    let mut all = Sums::new();
    for (key, sums) in of_threads.into_iter().flatten() {
        let of = all.entry(key).or_default();
        of.iter_mut()
            .zip(sums)
            .for_each(|(all, sum)| *all = all.wrapping_add(sum));
    }
    all
}

/// Prints the least of some times of each query, in the ways that it can be answered.
pub fn measure(db: &Database, table: &Arc<Table>) {
    let snapshot = db.snapshot();
    for query in queries() {
        let mut answer = None;
        for (way, asks, vectors) in [
            ("tuples of all rows", false, false),
            ("groups asked, tuples", true, false),
            ("groups asked, vectors", true, true),
        ] {
            // A table of rows is asked nothing.
            if asks && !table.is_columns() {
                continue;
            }
            let times = (0..REPEATS).map(|_| {
                let begun = Instant::now();
                let sums = run(&snapshot, table, &query, asks, vectors);
                let took = begun.elapsed().as_secs_f64() * 1e3;
                assert_eq!(
                    *answer.get_or_insert_with(|| sums.clone()),
                    sums,
                    "the same rows"
                );
                took
            });
            let least = times.fold(f64::INFINITY, f64::min);
            println!("  {:<18} {way:<22} {least:9.1} ms", query.name);
        }
        let rows: i64 = answer
            .iter()
            .flat_map(BTreeMap::values)
            .map(|sums| sums[0])
            .sum();
        println!("  {:<18} {rows} rows", query.name);
    }
}
