//! The rows that TPC-C begins with (clause 4.3.3.1).
//!
//! A load falls into parts: pieces of the items; of each warehouse itself with its districts,
//! pieces of its stock, and one part for each district with its customers and orders.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use thermocline_values::value::Value;

use super::draw::{C_LAST_LOAD, last_name};
use super::tables::{
    CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, WAREHOUSE,
};
use super::{DISTRICTS, Scale};
use crate::Result;
use crate::workload::Sink;
use crate::workload::cells::{decimal, int, money, text};
use crate::workload::chance::{alphanumeric, digits, nurand};

/// Items or stocks of one part.
const PIECE: i32 = 10_000;
/// When everything was entered that a load makes: 2026-01-01, in microseconds since 2000.
const LOADED_AT: i64 = 820_540_800_000_000;
/// What a customer paid before, in hundredths.
const FIRST_PAYMENT: i64 = 1000;

/// Into how many parts the load falls.
pub(super) fn parts(scale: &Scale) -> u64 {
    let pieces = (scale.items as u64).div_ceil(PIECE as u64);
    pieces + scale.warehouses as u64 * of_warehouse(pieces)
}

fn of_warehouse(pieces: u64) -> u64 {
    1 + pieces + DISTRICTS as u64
}

/// The rows of a part.
pub(super) fn part(
    scale: &Scale,
    part: u64,
    random: &mut StdRng,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let pieces = (scale.items as u64).div_ceil(PIECE as u64);
    let piece = |number: u64| {
        let first = number as i32 * PIECE + 1;
        first..=(first + PIECE - 1).min(scale.items)
    };
    let Some(part) = part.checked_sub(pieces) else {
        return piece(part).try_for_each(|item| sink(ITEM, &item_row(item, random)));
    };
    let warehouse = (part / of_warehouse(pieces)) as i32 + 1;
    match part % of_warehouse(pieces) {
        0 => warehouse_and_districts(scale, warehouse, random, sink),
        number if number <= pieces => {
            piece(number - 1).try_for_each(|item| sink(STOCK, &stock_row(warehouse, item, random)))
        }
        number => {
            let district = (number - pieces) as i32;
            customers(scale, warehouse, district, random, sink)?;
            orders(scale, warehouse, district, random, sink)
        }
    }
}

/// Texts of 26 to 50 characters, of which a tenth has "ORIGINAL" somewhere.
fn data(random: &mut StdRng) -> Value {
    let mut data = alphanumeric(random, 26, 50);
    if random.random_range(0..10) == 0 {
        let at = random.random_range(0..=data.len() - 8);
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    text(data)
}

fn item_row(item: i32, random: &mut StdRng) -> [Value; 5] {
    [
        int(item.into()),
        int(random.random_range(1..=10_000)),
        text(alphanumeric(random, 14, 24)),
        money(random.random_range(100..=10_000)),
        data(random),
    ]
}

fn stock_row(warehouse: i32, item: i32, random: &mut StdRng) -> Vec<Value> {
    let mut row = vec![
        int(warehouse.into()),
        int(item.into()),
        int(random.random_range(10..=100)),
    ];
    row.extend((0..DISTRICTS).map(|_| text(alphanumeric(random, 24, 24))));
    row.extend([int(0), int(0), int(0), data(random)]);
    row
}

/// Streets, city, state and zip.
fn address(random: &mut StdRng) -> [Value; 5] {
    [
        text(alphanumeric(random, 10, 20)),
        text(alphanumeric(random, 10, 20)),
        text(alphanumeric(random, 10, 20)),
        text(alphanumeric(random, 2, 2)),
        text(digits(random, 4) + "11111"),
    ]
}

fn warehouse_and_districts(
    scale: &Scale,
    warehouse: i32,
    random: &mut StdRng,
    sink: &mut Sink<'_>,
) -> Result<()> {
    // As the sum of the history is: each customer paid once.
    let of_district = i64::from(scale.customers) * FIRST_PAYMENT;
    let mut row = vec![int(warehouse.into()), text(alphanumeric(random, 6, 10))];
    row.extend(address(random));
    row.push(decimal(random.random_range(0..=2000), 4));
    row.push(money(of_district * i64::from(DISTRICTS)));
    sink(WAREHOUSE, &row)?;
    for district in 1..=DISTRICTS {
        let mut row = vec![int(warehouse.into()), int(district.into())];
        row.push(text(alphanumeric(random, 6, 10)));
        row.extend(address(random));
        row.push(decimal(random.random_range(0..=2000), 4));
        row.push(money(of_district));
        row.push(int(i64::from(scale.customers) + 1));
        sink(DISTRICT, &row)?;
    }
    Ok(())
}

fn customers(
    scale: &Scale,
    warehouse: i32,
    district: i32,
    random: &mut StdRng,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let names = i64::from(scale.last_names());
    for customer in 1..=scale.customers {
        let number = i64::from(customer) - 1;
        let name = match number < names {
            true => number,
            false => nurand(random, 255, 0, names - 1, C_LAST_LOAD),
        };
        let mut row = vec![
            int(warehouse.into()),
            int(district.into()),
            int(customer.into()),
            text(alphanumeric(random, 8, 16)),
            text("OE"),
            text(last_name(name)),
        ];
        row.extend(address(random));
        let credit = match random.random_range(0..10) {
            0 => "BC",
            _ => "GC",
        };
        row.extend([
            text(digits(random, 16)),
            Value::Timestamp(LOADED_AT),
            text(credit),
            money(5_000_000),
            decimal(random.random_range(0..=5000), 4),
            money(-FIRST_PAYMENT),
            money(FIRST_PAYMENT),
            int(1),
            int(0),
            text(alphanumeric(random, 300, 500)),
        ]);
        sink(CUSTOMER, &row)?;
        let row = [
            int(warehouse.into()),
            int(district.into()),
            int(warehouse.into()),
            int(district.into()),
            int(customer.into()),
            Value::Timestamp(LOADED_AT),
            money(FIRST_PAYMENT),
            text(alphanumeric(random, 12, 24)),
        ];
        sink(HISTORY, &row)?;
    }
    Ok(())
}

/// One order a customer, in random order; the last three tenths are not delivered.
fn orders(
    scale: &Scale,
    warehouse: i32,
    district: i32,
    random: &mut StdRng,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut customers: Vec<i32> = (1..=scale.customers).collect();
    customers.shuffle(random);
    for (order, customer) in (1..).zip(customers) {
        let delivered = order <= scale.delivered();
        let lines = random.random_range(5..=15);
        let key = [int(warehouse.into()), int(district.into()), int(order)];
        let mut row = key.to_vec();
        row.extend([int(customer.into()), Value::Timestamp(LOADED_AT)]);
        row.push(match delivered {
            true => int(random.random_range(1..=10)),
            false => Value::Null,
        });
        row.extend([int(lines), int(1)]);
        sink(ORDERS, &row)?;
        if !delivered {
            sink(NEW_ORDER, &key)?;
        }
        for line in 1..=lines {
            let mut row = key.to_vec();
            row.extend([
                int(line),
                int(random.random_range(1..=i64::from(scale.items))),
                int(warehouse.into()),
            ]);
            let (date, amount) = match delivered {
                true => (Value::Timestamp(LOADED_AT), 0),
                false => (Value::Null, random.random_range(1..=999_999)),
            };
            row.extend([date, int(5), money(amount)]);
            row.push(text(alphanumeric(random, 24, 24)));
            sink(ORDER_LINE, &row)?;
        }
    }
    Ok(())
}
