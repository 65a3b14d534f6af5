//! The conditions of consistency (clause 3.3.2), computed here from the rows themselves, so
//! that the same check holds for the engine and for any server.
//!
//! 1 to 4 need a few sums for each district; 5 to 12 remember each order and each customer.
//! 11 is checked as it stands after deliveries, too: the orders of a district less its new
//! orders are those that the load had delivered, and its customers' deliveries.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{DISTRICTS, Scale};
use crate::Result;
use crate::workload::cells::{int_of, money_of};
use crate::workload::rows::Source;
use thermocline_values::value::Value;

/// More sentences would not be read.
const VIOLATIONS_MAX: usize = 200;

/// A warehouse and a district of it.
type District = (i64, i64);

/// What conditions 1 to 4 and 11 are about.
#[derive(Debug, Default)]
struct Sums {
    ytd: Option<i64>,
    next_order: i64,
    orders: i64,
    orders_max: i64,
    lines_said: i64,
    lines: i64,
    new_orders: i64,
    new_orders_min: Option<i64>,
    new_orders_max: i64,
    history: i64,
    deliveries: i64,
}

/// An order, and what its lines say.
#[derive(Debug, Default, Clone)]
struct Order {
    customer: i64,
    carrier: bool,
    lines_said: i64,
    lines: i64,
    undelivered: i64,
    amount_delivered: i64,
}

/// What belongs to a customer.
#[derive(Debug, Default, Clone)]
struct Account {
    balance: i64,
    ytd_payment: i64,
    delivered: i64,
    paid: i64,
}

/// What does not hold, one sentence each. `expected` is the sum of the districts' next order
/// numbers, where it is known.
pub(super) async fn check(
    scale: &Scale,
    source: &Source<'_>,
    all: bool,
    expected: Option<i64>,
) -> Result<Vec<String>> {
    let mut books = Books::default();
    books.read(source).await?;
    let mut found = books.first_four(scale);
    let next: i64 = books.districts.values().map(|sums| sums.next_order).sum();
    if let Some(expected) = expected
        && next != expected
    {
        found.push(format!(
            "by the new orders that were committed the districts' next orders sum to {expected}, \
             and they sum to {next}"
        ));
    }
    if all {
        let details = Details::read(source, &mut books).await?;
        found.extend(books.history(&details));
        found.extend(books.deliveries(scale));
        found.extend(details.orders());
        found.extend(details.customers());
    }
    if found.len() > VIOLATIONS_MAX {
        let more = found.len() - VIOLATIONS_MAX;
        found.truncate(VIOLATIONS_MAX);
        found.push(format!("and {more} more"));
    }
    Ok(found)
}

fn district_of(row: &[Value]) -> District {
    (int_of(&row[0]), int_of(&row[1]))
}

#[derive(Debug, Default)]
struct Books {
    warehouses: BTreeMap<i64, i64>,
    districts: BTreeMap<District, Sums>,
}

impl Books {
    fn of(&mut self, row: &[Value]) -> &mut Sums {
        self.districts.entry(district_of(row)).or_default()
    }

    async fn read(&mut self, source: &Source<'_>) -> Result<()> {
        source
            .each("warehouse", &["w_id", "w_ytd"], |row| {
                self.warehouses.insert(int_of(&row[0]), money_of(&row[1]));
            })
            .await?;
        let columns = ["d_w_id", "d_id", "d_ytd", "d_next_o_id"];
        source
            .each("district", &columns, |row| {
                let sums = self.of(row);
                sums.ytd = Some(money_of(&row[2]));
                sums.next_order = int_of(&row[3]);
            })
            .await?;
        let columns = ["o_w_id", "o_d_id", "o_id", "o_ol_cnt"];
        source
            .each("orders", &columns, |row| {
                let sums = self.of(row);
                sums.orders += 1;
                sums.orders_max = sums.orders_max.max(int_of(&row[2]));
                sums.lines_said += int_of(&row[3]);
            })
            .await?;
        source
            .each("new_order", &["no_w_id", "no_d_id", "no_o_id"], |row| {
                let (sums, order) = (self.of(row), int_of(&row[2]));
                sums.new_orders += 1;
                sums.new_orders_max = sums.new_orders_max.max(order);
                let min = sums.new_orders_min.get_or_insert(order);
                *min = order.min(*min);
            })
            .await?;
        source
            .each("order_line", &["ol_w_id", "ol_d_id"], |row| {
                self.of(row).lines += 1;
            })
            .await
    }

    /// Conditions 1 to 4, and that the warehouses and districts themselves are there.
    fn first_four(&self, scale: &Scale) -> Vec<String> {
        let mut found = Vec::new();
        for warehouse in 1..=i64::from(scale.warehouses) {
            let Some(ytd) = self.warehouses.get(&warehouse) else {
                found.push(format!("warehouse {warehouse} is not there"));
                continue;
            };
            let districts = self.districts.range((warehouse, 0)..(warehouse + 1, 0));
            let sum: i64 = districts.filter_map(|(_, sums)| sums.ytd).sum();
            if sum != *ytd {
                found.push(format!(
                    "condition 1: warehouse {warehouse} has a sum of {ytd}, its districts of {sum} hundredths"
                ));
            }
            for district in 1..=i64::from(DISTRICTS) {
                match self.districts.get(&(warehouse, district)) {
                    Some(sums) if sums.ytd.is_some() => {
                        sums.two_to_four((warehouse, district), &mut found);
                    }
                    _ => found.push(format!("district {warehouse}.{district} is not there")),
                }
            }
        }
        found
    }

    /// Conditions 8 and 9.
    fn history(&self, details: &Details) -> Vec<String> {
        let mut found = Vec::new();
        for (warehouse, ytd) in &self.warehouses {
            let paid = details.paid_at.get(warehouse).copied().unwrap_or(0);
            if paid != *ytd {
                found.push(format!(
                    "condition 8: warehouse {warehouse} has a sum of {ytd}, its history of {paid} hundredths"
                ));
            }
        }
        for ((warehouse, district), sums) in &self.districts {
            if sums.ytd != Some(sums.history) {
                found.push(format!(
                    "condition 9: district {warehouse}.{district} has a sum of {:?}, its history of {} hundredths",
                    sums.ytd, sums.history
                ));
            }
        }
        found
    }

    /// Condition 11.
    fn deliveries(&self, scale: &Scale) -> Vec<String> {
        let mut found = Vec::new();
        for ((warehouse, district), sums) in &self.districts {
            let delivered = scale.delivered() + sums.deliveries;
            if sums.orders - sums.new_orders != delivered {
                found.push(format!(
                    "condition 11: district {warehouse}.{district} has {} orders and {} new ones, \
                     and {delivered} were delivered",
                    sums.orders, sums.new_orders
                ));
            }
        }
        found
    }
}

impl Sums {
    fn two_to_four(&self, (warehouse, district): District, found: &mut Vec<String>) {
        let last = self.next_order - 1;
        let new_max = match self.new_orders {
            0 => last,
            _ => self.new_orders_max,
        };
        if self.orders_max != last || new_max != last {
            found.push(format!(
                "condition 2: district {warehouse}.{district} goes on after {last}, its last order \
                 is {}, its last new one {new_max}",
                self.orders_max
            ));
        }
        if let Some(min) = self.new_orders_min
            && self.new_orders_max - min + 1 != self.new_orders
        {
            found.push(format!(
                "condition 3: district {warehouse}.{district} has {} new orders from {min} to {}",
                self.new_orders, self.new_orders_max
            ));
        }
        if self.lines_said != self.lines {
            found.push(format!(
                "condition 4: the orders of district {warehouse}.{district} say {} lines, and \
                 there are {}",
                self.lines_said, self.lines
            ));
        }
    }
}

/// What conditions 5 to 7, 10 and 12 are about.
#[derive(Debug, Default)]
struct Details {
    orders: HashMap<(i64, i64, i64), Order>,
    new_orders: HashSet<(i64, i64, i64)>,
    /// Lines whose order is not there.
    lost_lines: i64,
    accounts: HashMap<(i64, i64, i64), Account>,
    paid_at: HashMap<i64, i64>,
}

fn key_of(row: &[Value]) -> (i64, i64, i64) {
    (int_of(&row[0]), int_of(&row[1]), int_of(&row[2]))
}

impl Details {
    async fn read(source: &Source<'_>, books: &mut Books) -> Result<Self> {
        let mut details = Details::default();
        let columns = [
            "o_w_id",
            "o_d_id",
            "o_id",
            "o_c_id",
            "o_carrier_id",
            "o_ol_cnt",
        ];
        source
            .each("orders", &columns, |row| {
                let order = Order {
                    customer: int_of(&row[3]),
                    carrier: !row[4].is_null(),
                    lines_said: int_of(&row[5]),
                    ..Order::default()
                };
                details.orders.insert(key_of(row), order);
            })
            .await?;
        source
            .each("new_order", &["no_w_id", "no_d_id", "no_o_id"], |row| {
                details.new_orders.insert(key_of(row));
            })
            .await?;
        let columns = [
            "ol_w_id",
            "ol_d_id",
            "ol_o_id",
            "ol_delivery_d",
            "ol_amount",
        ];
        source
            .each("order_line", &columns, |row| {
                let Some(order) = details.orders.get_mut(&key_of(row)) else {
                    details.lost_lines += 1;
                    return;
                };
                order.lines += 1;
                match row[3].is_null() {
                    true => order.undelivered += 1,
                    false => order.amount_delivered += money_of(&row[4]),
                }
            })
            .await?;
        let columns = [
            "c_w_id",
            "c_d_id",
            "c_id",
            "c_balance",
            "c_ytd_payment",
            "c_delivery_cnt",
        ];
        source
            .each("customer", &columns, |row| {
                let account = Account {
                    balance: money_of(&row[3]),
                    ytd_payment: money_of(&row[4]),
                    ..Account::default()
                };
                details.accounts.insert(key_of(row), account);
                books.of(row).deliveries += int_of(&row[5]);
            })
            .await?;
        let columns = [
            "h_w_id", "h_d_id", "h_c_w_id", "h_c_d_id", "h_c_id", "h_amount",
        ];
        source
            .each("history", &columns, |row| {
                let amount = money_of(&row[5]);
                *details.paid_at.entry(int_of(&row[0])).or_default() += amount;
                books.of(row).history += amount;
                let customer = key_of(&row[2..]);
                details.accounts.entry(customer).or_default().paid += amount;
            })
            .await?;
        for ((warehouse, district, _), order) in &details.orders {
            let customer = (*warehouse, *district, order.customer);
            details.accounts.entry(customer).or_default().delivered += order.amount_delivered;
        }
        Ok(details)
    }

    /// Conditions 5, 6 and 7.
    fn orders(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (key, order) in &self.orders {
            let name = format!("order {}.{}.{}", key.0, key.1, key.2);
            if order.carrier == self.new_orders.contains(key) {
                found.push(format!(
                    "condition 5: {name} {} a carrier, and {} a new order",
                    if order.carrier { "has" } else { "has not" },
                    if order.carrier { "is" } else { "is not" },
                ));
            }
            if order.lines_said != order.lines {
                found.push(format!(
                    "condition 6: {name} says {} lines, and has {}",
                    order.lines_said, order.lines
                ));
            }
            let expected = if order.carrier { 0 } else { order.lines };
            if order.undelivered != expected {
                found.push(format!(
                    "condition 7: {name} {} a carrier, and {} of its {} lines have no date",
                    if order.carrier { "has" } else { "has not" },
                    order.undelivered,
                    order.lines
                ));
            }
        }
        for key in &self.new_orders {
            if !self.orders.contains_key(key) {
                found.push(format!("condition 5: new order {key:?} is no order"));
            }
        }
        if self.lost_lines > 0 {
            found.push(format!(
                "condition 6: {} lines are of no order",
                self.lost_lines
            ));
        }
        found.sort_unstable();
        found
    }

    /// Conditions 10 and 12.
    fn customers(&self) -> Vec<String> {
        let mut found = Vec::new();
        for ((warehouse, district, id), account) in &self.accounts {
            let name = format!("customer {warehouse}.{district}.{id}");
            if account.balance != account.delivered - account.paid {
                found.push(format!(
                    "condition 10: {name} has a balance of {}, was delivered {} and paid {} hundredths",
                    account.balance, account.delivered, account.paid
                ));
            }
            if account.balance + account.ytd_payment != account.delivered {
                found.push(format!(
                    "condition 12: {name} has a balance of {} and paid {} this year, and was \
                     delivered {} hundredths",
                    account.balance, account.ytd_payment, account.delivered
                ));
            }
        }
        found.sort_unstable();
        found
    }
}
