//! TPC-C's order lines, the table that grows: which of them its five transactions use
//! (TPC-C §2.4–2.8), in the proportions of its mix. A payment uses none.
//!
//! As there, a district begins with as many orders as it has customers, one of each, the
//! last three tenths of them not delivered.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::traces::{Event, Shape};

const DISTRICTS_PER_WAREHOUSE: usize = 10;
/// Order lines of a warehouse at the beginning: 10 districts, 3000 orders, 10 lines.
const WAREHOUSE_LINES: usize = 300_000;
const LINES: std::ops::RangeInclusive<u32> = 5..=15;
const LINES_MEAN: usize = 10;
/// Of each 100 transactions; the others are payments.
const NEW_ORDERS: u32 = 45;
const ORDER_STATUSES: u32 = 4;
const DELIVERIES: u32 = 4;
const STOCK_LEVELS: u32 = 4;
/// Orders that a stock-level transaction looks at.
const STOCK_LEVEL_ORDERS: usize = 20;

#[derive(Debug, Clone, Copy)]
struct Order {
    first: u32,
    lines: u32,
}

#[derive(Debug)]
struct District {
    orders: Vec<Order>,
    /// The last order of each customer.
    last_of: Vec<usize>,
    delivered: usize,
}

struct Town<'a> {
    districts: Vec<District>,
    random: StdRng,
    lines: u32,
    accesses: u64,
    to: &'a mut dyn FnMut(Event),
}

/// Goes through the trace.
pub(super) fn run(shape: &Shape, to: &mut dyn FnMut(Event)) {
    let warehouses = (shape.tuples / WAREHOUSE_LINES).max(1);
    let mut town = Town::new(shape, warehouses, to);
    let mut measured = false;
    while town.accesses < shape.accesses {
        if !measured && town.accesses >= shape.warm() {
            (town.to)(Event::Measure(Some(0)));
            measured = true;
        }
        // A terminal is of one warehouse.
        let warehouse = town.random.random_range(0..warehouses);
        town.transaction(warehouse * DISTRICTS_PER_WAREHOUSE);
    }
}

impl<'a> Town<'a> {
    fn new(shape: &Shape, warehouses: usize, to: &'a mut dyn FnMut(Event)) -> Self {
        let mut random = StdRng::seed_from_u64(shape.seed);
        let count = warehouses * DISTRICTS_PER_WAREHOUSE;
        let customers = (shape.tuples / count / LINES_MEAN).max(1);
        let mut districts: Vec<District> = (0..count)
            .map(|_| {
                let mut last_of: Vec<usize> = (0..customers).collect();
                last_of.shuffle(&mut random);
                District {
                    orders: Vec::new(),
                    last_of,
                    delivered: customers * 7 / 10,
                }
            })
            .collect();
        // Exactly the tuples that there are; an order is the mean of all orders.
        let mut lines = 0;
        for _ in 0..customers {
            for district in &mut districts {
                district.orders.push(Order {
                    first: lines,
                    lines: LINES_MEAN as u32,
                });
                lines += LINES_MEAN as u32;
            }
        }
        Town {
            districts,
            random,
            lines: (shape.tuples as u32).max(lines),
            accesses: 0,
            to,
        }
    }

    fn transaction(&mut self, first_district: usize) {
        let district = first_district + self.random.random_range(0..DISTRICTS_PER_WAREHOUSE);
        let kind = self.random.random_range(0..100);
        if kind < NEW_ORDERS {
            self.new_order(district);
        } else if kind < NEW_ORDERS + ORDER_STATUSES {
            let customer = self.customer();
            let order = self.districts[district].last_of[customer];
            self.access(self.districts[district].orders[order]);
        } else if kind < NEW_ORDERS + ORDER_STATUSES + DELIVERIES {
            for district in first_district..first_district + DISTRICTS_PER_WAREHOUSE {
                self.deliver(district);
            }
        } else if kind < NEW_ORDERS + ORDER_STATUSES + DELIVERIES + STOCK_LEVELS {
            let orders = self.districts[district].orders.len();
            for order in orders.saturating_sub(STOCK_LEVEL_ORDERS)..orders {
                self.access(self.districts[district].orders[order]);
            }
        }
    }

    fn new_order(&mut self, district: usize) {
        let customer = self.customer();
        let order = Order {
            first: self.lines,
            lines: self.random.random_range(LINES),
        };
        self.lines += order.lines;
        let district = &mut self.districts[district];
        district.last_of[customer] = district.orders.len();
        district.orders.push(order);
        for line in order.first..order.first + order.lines {
            (self.to)(Event::Insert(line));
        }
    }

    /// The oldest order that was not delivered, if there is one.
    fn deliver(&mut self, district: usize) {
        let district = &mut self.districts[district];
        if let Some(&order) = district.orders.get(district.delivered) {
            district.delivered += 1;
            self.access(order);
        }
    }

    fn access(&mut self, order: Order) {
        for line in order.first..order.first + order.lines {
            (self.to)(Event::Access(line));
        }
        self.accesses += u64::from(order.lines);
    }

    /// NURand (TPC-C §2.1.6), with A in the same proportion to the customers.
    fn customer(&mut self) -> usize {
        let customers = self.districts[0].last_of.len();
        let most = (customers / 3).next_power_of_two() - 1;
        let some = self.random.random_range(0..=most);
        (some | self.random.random_range(0..customers)) % customers
    }
}
