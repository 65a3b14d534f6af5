//! What a terminal does next: a transaction by the mix, and its inputs by clauses 2.4 to 2.8.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{DISTRICTS, Scale};
use crate::workload::chance::nurand;
use crate::workload::{Kind, place_by_share};

/// The transactions and their shares.
pub(super) const KINDS: [Kind; 5] = [
    Kind {
        name: "new_order",
        percent: 45.0,
    },
    Kind {
        name: "payment",
        percent: 43.0,
    },
    Kind {
        name: "order_status",
        percent: 4.0,
    },
    Kind {
        name: "delivery",
        percent: 4.0,
    },
    Kind {
        name: "stock_level",
        percent: 4.0,
    },
];

/// A new order with an unused item (2.4.1.4).
pub(super) const ROLLED_BACK: &str = "unused item";

/// The syllables of last names (4.3.2.3).
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];
/// The constant C for last names while loading (2.1.6.1); a run's is larger by a valid delta.
pub(super) const C_LAST_LOAD: i64 = 35;

/// The last name with this number, from 0 to 999.
pub(super) fn last_name(number: i64) -> String {
    let syllable = |digit: i64| SYLLABLES[(digit % 10) as usize];
    [
        syllable(number / 100),
        syllable(number / 10),
        syllable(number),
    ]
    .concat()
}

/// Whose transaction it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Customer {
    /// The customer with this number.
    Id(i32),
    /// The middle one of those with this last name, by first name.
    Last(String),
}

/// A line of a new order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The item.
    pub item: i32,
    /// The warehouse whose stock it is taken from.
    pub supplier: i32,
    /// How many.
    pub quantity: i32,
}

/// A transaction and its inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Clause 2.4.
    NewOrder {
        /// The warehouse, district and customer.
        warehouse: i32,
        /// See above.
        district: i32,
        /// See above.
        customer: i32,
        /// What is ordered; an item that does not exist makes it roll back.
        lines: Vec<Line>,
    },
    /// Clause 2.5.
    Payment {
        /// Where it is paid.
        warehouse: i32,
        /// See above.
        district: i32,
        /// Where the customer belongs.
        customer_warehouse: i32,
        /// See above.
        customer_district: i32,
        /// Who pays.
        customer: Customer,
        /// How much, in hundredths.
        amount: i64,
    },
    /// Clause 2.6.
    OrderStatus {
        /// Where the customer belongs.
        warehouse: i32,
        /// See above.
        district: i32,
        /// Who asks.
        customer: Customer,
    },
    /// Clause 2.7, of all districts of a warehouse in one transaction.
    Delivery {
        /// Of which warehouse.
        warehouse: i32,
        /// By whom.
        carrier: i32,
    },
    /// Clause 2.8.
    StockLevel {
        /// Where.
        warehouse: i32,
        /// See above.
        district: i32,
        /// Items of which there are fewer are counted.
        threshold: i32,
    },
}

impl Operation {
    /// The place among [`KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Operation::NewOrder { .. } => 0,
            Operation::Payment { .. } => 1,
            Operation::OrderStatus { .. } => 2,
            Operation::Delivery { .. } => 3,
            Operation::StockLevel { .. } => 4,
        }
    }
}

/// A terminal (1.5, 2.4.1.1): it belongs to a warehouse and a district for stock levels. Where
/// there are fewer callers than warehouses each caller is all terminals by turns.
#[derive(Debug)]
pub struct Terminal {
    scale: Scale,
    single_warehouse: bool,
    /// The warehouse and the district, from 1.
    home: Option<(i32, i32)>,
    random: StdRng,
    c_last: i64,
    c_customer: i64,
    c_item: i64,
}

impl Terminal {
    pub(super) fn new(
        scale: Scale,
        single_warehouse: bool,
        (caller, callers): (usize, usize),
        seed: u64,
    ) -> Self {
        // The constants are of the run, the same for all its terminals.
        let mut of_run = StdRng::seed_from_u64(seed ^ 0x007C_C000);
        let delta = loop {
            let delta = of_run.random_range(65..=119);
            if delta != 96 && delta != 112 {
                break delta;
            }
        };
        let warehouses = scale.warehouses as usize;
        let home = (callers >= warehouses).then(|| {
            let district = caller / warehouses % DISTRICTS as usize;
            ((caller % warehouses) as i32 + 1, district as i32 + 1)
        });
        Terminal {
            scale,
            single_warehouse,
            home,
            random: StdRng::seed_from_u64(seed.wrapping_add((caller as u64) << 20)),
            c_last: C_LAST_LOAD + delta,
            c_customer: of_run.random_range(0..=1023),
            c_item: of_run.random_range(0..=8191),
        }
    }

    fn customer_id(&mut self) -> i32 {
        let customers = self.scale.customers.into();
        nurand(&mut self.random, 1023, 1, customers, self.c_customer) as i32
    }

    /// By last name in 60 of 100, by number otherwise.
    fn customer(&mut self) -> Customer {
        if self.random.random_range(0..100) < 60 {
            let last = i64::from(self.scale.last_names()) - 1;
            let number = nurand(&mut self.random, 255, 0, last, self.c_last);
            return Customer::Last(last_name(number));
        }
        Customer::Id(self.customer_id())
    }

    /// Another warehouse than this, if there is one and it may be.
    fn remote(&mut self, home: i32) -> Option<i32> {
        let warehouses = self.scale.warehouses;
        if self.single_warehouse || warehouses == 1 {
            return None;
        }
        let other = self.random.random_range(1..warehouses);
        Some(if other < home { other } else { other + 1 })
    }

    fn new_order(&mut self, warehouse: i32) -> Operation {
        let district = self.random.random_range(1..=DISTRICTS);
        let customer = self.customer_id();
        let items = i64::from(self.scale.items);
        let rolls_back = self.random.random_range(1..=100) == 1;
        let count = self.random.random_range(5..=15usize);
        let mut lines: Vec<Line> = Vec::with_capacity(count);
        for _ in 0..count {
            let item = nurand(&mut self.random, 8191, 1, items, self.c_item) as i32;
            let is_remote = self.random.random_range(1..=100) == 1;
            let remote = if is_remote {
                self.remote(warehouse)
            } else {
                None
            };
            lines.push(Line {
                item,
                supplier: remote.unwrap_or(warehouse),
                quantity: self.random.random_range(1..=10),
            });
        }
        // Stocks in one order, so that two new orders do not wait for each other in a circle.
        lines.sort_by_key(|line| (line.supplier, line.item));
        if let Some(last) = lines.last_mut().filter(|_| rolls_back) {
            last.item = self.scale.items + 1;
        }
        Operation::NewOrder {
            warehouse,
            district,
            customer,
            lines,
        }
    }

    fn payment(&mut self, warehouse: i32) -> Operation {
        let district = self.random.random_range(1..=DISTRICTS);
        let is_remote = self.random.random_range(1..=100) > 85;
        let remote = if is_remote {
            self.remote(warehouse)
        } else {
            None
        };
        let (customer_warehouse, customer_district) = match remote {
            Some(other) => (other, self.random.random_range(1..=DISTRICTS)),
            None => (warehouse, district),
        };
        Operation::Payment {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer: self.customer(),
            amount: self.random.random_range(100..=500_000),
        }
    }
}

impl Iterator for Terminal {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let number = self.random.random_range(0.0..100.0);
        let (warehouse, home_district) = match self.home {
            Some(home) => home,
            None => (
                self.random.random_range(1..=self.scale.warehouses),
                self.random.random_range(1..=DISTRICTS),
            ),
        };
        Some(match place_by_share(&KINDS, number) {
            0 => self.new_order(warehouse),
            1 => self.payment(warehouse),
            2 => Operation::OrderStatus {
                warehouse,
                district: self.random.random_range(1..=DISTRICTS),
                customer: self.customer(),
            },
            3 => Operation::Delivery {
                warehouse,
                carrier: self.random.random_range(1..=10),
            },
            _ => Operation::StockLevel {
                warehouse,
                district: home_district,
                threshold: self.random.random_range(10..=20),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 1_000_000;

    fn terminal(warehouses: i32, single: bool, seed: u64) -> Terminal {
        let scale = Scale {
            warehouses,
            ..Scale::default()
        };
        Terminal::new(scale, single, (0, 1), seed)
    }

    #[test]
    fn names_are_made_of_syllables() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn a_million_transactions_have_the_mix_and_the_shares_of_the_specification() {
        let mut kinds = [0u64; 5];
        let (mut rolled_back, mut lines, mut remote_lines) = (0u64, 0u64, 0u64);
        let (mut payments, mut remote, mut by_name) = (0u64, 0u64, 0u64);
        for operation in terminal(10, false, 1).take(DRAWS) {
            kinds[operation.kind()] += 1;
            match operation {
                Operation::NewOrder {
                    warehouse,
                    lines: ordered,
                    ..
                } => {
                    rolled_back += u64::from(ordered.iter().any(|line| line.item == 100_001));
                    lines += ordered.len() as u64;
                    let far = ordered.iter().filter(|line| line.supplier != warehouse);
                    remote_lines += far.count() as u64;
                }
                Operation::Payment {
                    warehouse,
                    customer_warehouse,
                    customer,
                    ..
                } => {
                    payments += 1;
                    remote += u64::from(warehouse != customer_warehouse);
                    by_name += u64::from(matches!(customer, Customer::Last(_)));
                }
                _ => {}
            }
        }
        let near = |part: u64, whole: u64, percent: f64| {
            let found = part as f64 * 100.0 / whole as f64;
            assert!((found - percent).abs() < 0.5, "{found} is not {percent}");
        };
        for (count, kind) in kinds.iter().zip(KINDS) {
            near(*count, DRAWS as u64, kind.percent);
        }
        near(rolled_back, kinds[0], 1.0);
        near(remote_lines, lines, 1.0);
        near(remote, payments, 15.0);
        near(by_name, payments, 60.0);
        let mean = lines as f64 / kinds[0] as f64;
        assert!((9.9..10.1).contains(&mean), "{mean} lines an order");
    }

    #[test]
    fn in_a_single_warehouse_nothing_is_remote() {
        for operation in terminal(4, true, 2).take(100_000) {
            match operation {
                Operation::NewOrder {
                    warehouse, lines, ..
                } => assert!(lines.iter().all(|line| line.supplier == warehouse)),
                Operation::Payment {
                    warehouse,
                    customer_warehouse,
                    ..
                } => assert_eq!(warehouse, customer_warehouse),
                _ => {}
            }
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_operations_and_another_others() {
        let draw = |seed| terminal(2, false, seed).take(1000).collect::<Vec<_>>();
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }
}
