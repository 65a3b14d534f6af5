//! The five transactions as procedures of the engine, each in the partitions of its
//! warehouses.
//!
//! Items are never changed: a new order's are read before it, so that it need not hold their
//! partitions. Where a row has left memory a body goes on without it, to find out what else it
//! needs; that run is thrown away and the body run again.

use std::ops::Bound;
use std::sync::Arc;

use thermocline_engine::{
    Call, Database, Direction, Error, Procedure, Reach, Result, Row, RunOptions,
};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::DISTRICTS;
use super::draw::{Customer, Operation};
use super::tables::column::*;
use super::tables::{CUSTOMER_BY_NAME, ORDERS_BY_CUSTOMER};
use crate::workload::cells::{int, int_of, money, money_of, text, text_of, units_of};
use crate::workload::{Ended, reads};

/// The SQLSTATE with which a new order of an unused item ends.
pub(super) const UNUSED_ITEM: &str = "P0001";
/// Bytes of a line in an argument of `tpcc_new_order`.
const LINE_BYTES: usize = 24;
/// The longest `c_data`.
const C_DATA_MAX: usize = 500;

/// All of them.
pub(super) fn all() -> Vec<Procedure> {
    let at_warehouse = |procedure: Procedure| {
        procedure
            .parameter("warehouse", DataType::Integer)
            .reach(|arguments| Ok(Reach::row("warehouse", &arguments[..1])))
    };
    let of_customer = |procedure: Procedure| {
        procedure
            .parameter("customer", DataType::Integer)
            .parameter("last", DataType::Text)
    };
    vec![
        Procedure::new("tpcc_new_order", new_order)
            .parameter("warehouse", DataType::Integer)
            .parameter("district", DataType::Integer)
            .parameter("customer", DataType::Integer)
            .parameter("lines", DataType::Bytea)
            .result("total", DataType::BigInt)
            .reach(|arguments| {
                let mut warehouses = vec![int_of(&arguments[0])];
                warehouses.extend(lines_of(&arguments[3])?.iter().map(|line| line.supplier));
                Ok(Reach::Rows(rows_of(&mut warehouses)))
            }),
        of_customer(
            Procedure::new("tpcc_payment", payment)
                .parameter("warehouse", DataType::Integer)
                .parameter("district", DataType::Integer)
                .parameter("customer_warehouse", DataType::Integer)
                .parameter("customer_district", DataType::Integer)
                .parameter("amount", DataType::BigInt),
        )
        .reach(|arguments| {
            let mut warehouses = vec![int_of(&arguments[0]), int_of(&arguments[2])];
            Ok(Reach::Rows(rows_of(&mut warehouses)))
        }),
        of_customer(
            at_warehouse(Procedure::new("tpcc_order_status", order_status))
                .parameter("district", DataType::Integer),
        )
        .result("lines", DataType::Integer),
        at_warehouse(Procedure::new("tpcc_delivery", delivery))
            .parameter("carrier", DataType::Integer)
            .result("delivered", DataType::Integer),
        at_warehouse(Procedure::new("tpcc_stock_level", stock_level))
            .parameter("district", DataType::Integer)
            .parameter("threshold", DataType::Integer)
            .result("low", DataType::Integer),
    ]
}

/// A row of each of these warehouses, once.
fn rows_of(warehouses: &mut Vec<i64>) -> Vec<(String, Vec<Value>)> {
    warehouses.sort_unstable();
    warehouses.dedup();
    let row = |warehouse: &i64| ("warehouse".to_owned(), vec![int(*warehouse)]);
    warehouses.iter().map(row).collect()
}

/// A line of a new order, with what is known of its item.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PricedLine {
    item: i64,
    supplier: i64,
    quantity: i64,
    /// In hundredths; below 0 there is no such item.
    price: i64,
    original: bool,
}

impl PricedLine {
    fn write(&self, out: &mut Vec<u8>) {
        for number in [self.item, self.supplier, self.quantity] {
            out.extend((number as i32).to_le_bytes());
        }
        out.extend(self.price.to_le_bytes());
        out.extend(i32::from(self.original).to_le_bytes());
    }

    fn read(bytes: &[u8; LINE_BYTES]) -> Self {
        let number = |at: usize| {
            let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            i64::from(i32::from_le_bytes(bytes))
        };
        let low = number(12) & 0xffff_ffff;
        PricedLine {
            item: number(0),
            supplier: number(4),
            quantity: number(8),
            price: number(16) << 32 | low,
            original: number(20) != 0,
        }
    }
}

fn lines_of(argument: &Value) -> Result<Vec<PricedLine>> {
    let Value::Bytea(bytes) = argument else {
        return Err(Error::raised("22023", "the lines are bytes"));
    };
    let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
    if !rest.is_empty() {
        return Err(Error::raised("22023", "a line is cut off"));
    }
    Ok(lines.iter().map(PricedLine::read).collect())
}

/// Carries out an operation.
pub(super) async fn call(
    db: &Arc<Database>,
    options: &RunOptions,
    operation: &Operation,
) -> crate::Result<Ended> {
    let number = |number: &i32| Value::Integer(*number);
    let of_customer = |customer: &Customer| match customer {
        Customer::Id(id) => [Value::Integer(*id), Value::Null],
        Customer::Last(last) => [Value::Null, text(last.as_str())],
    };
    let (name, arguments) = match operation {
        Operation::NewOrder {
            warehouse,
            district,
            customer,
            lines,
        } => {
            let mut priced = Vec::with_capacity(lines.len() * LINE_BYTES);
            for line in priced_lines(db, options, lines).await? {
                line.write(&mut priced);
            }
            let mut arguments: Vec<Value> = [warehouse, district, customer].map(number).to_vec();
            arguments.push(Value::Bytea(priced));
            ("tpcc_new_order", arguments)
        }
        Operation::Payment {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer,
            amount,
        } => {
            let mut arguments: Vec<Value> =
                [warehouse, district, customer_warehouse, customer_district]
                    .map(number)
                    .to_vec();
            arguments.push(Value::BigInt(*amount));
            arguments.extend(of_customer(customer));
            ("tpcc_payment", arguments)
        }
        Operation::OrderStatus {
            warehouse,
            district,
            customer,
        } => {
            let mut arguments: Vec<Value> = [warehouse, district].map(number).to_vec();
            arguments.extend(of_customer(customer));
            ("tpcc_order_status", arguments)
        }
        Operation::Delivery { warehouse, carrier } => {
            ("tpcc_delivery", [warehouse, carrier].map(number).to_vec())
        }
        Operation::StockLevel {
            warehouse,
            district,
            threshold,
        } => (
            "tpcc_stock_level",
            [warehouse, district, threshold].map(number).to_vec(),
        ),
    };
    db.call(options, name, &arguments).await?;
    Ok(Ended::Done)
}

/// The lines with their items' prices.
async fn priced_lines(
    db: &Arc<Database>,
    options: &RunOptions,
    lines: &[super::Line],
) -> Result<Vec<PricedLine>> {
    let catalog = db.catalog();
    let items = (catalog.table_by_name("public", "item"))
        .ok_or_else(|| Error::raised("42P01", "table item is not there"))?;
    let key = |line: &super::Line| {
        let mut key = Vec::with_capacity(8);
        items.encode_index_key(0, &[ValueRef::Integer(line.item)], &mut key);
        key
    };
    let keys: Vec<Vec<u8>> = lines.iter().map(key).collect();
    let unknown = |line: &super::Line| PricedLine {
        item: line.item.into(),
        supplier: line.supplier.into(),
        quantity: line.quantity.into(),
        price: -1,
        original: false,
    };
    let mut priced: Vec<PricedLine> = lines.iter().map(unknown).collect();
    let options = reads::at_once(options);
    db.get_many(&options, items, 0, &keys, |place, tuple| {
        priced[place].price = money_of(&items.value(tuple, I_PRICE).to_owned());
        if let ValueRef::Text(data) = items.value(tuple, I_DATA) {
            priced[place].original = data.contains("ORIGINAL");
        }
    })
    .await?;
    Ok(priced)
}

/// A row that must be there; None where it has left memory.
fn present(call: &Call<'_, '_>, row: Option<Row>, what: &str) -> Result<Option<Row>> {
    match row {
        None if !call.evicted() => Err(Error::raised("P0002", format!("{what} is not there"))),
        row => Ok(row),
    }
}

fn number_of(row: &Option<Row>, column: usize) -> i64 {
    row.as_ref().map_or(0, |row| int_of(&row.values[column]))
}

fn add(row: &mut Row, column: usize, number: i64) {
    row.values[column] = int(int_of(&row.values[column]) + number);
}

fn add_money(row: &mut Row, column: usize, hundredths: i64) {
    row.values[column] = money(money_of(&row.values[column]) + hundredths);
}

/// Clause 2.4.2.
fn new_order(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let (at, customer) = (&arguments[..2], &arguments[2]);
    let lines = lines_of(&arguments[3])?;
    let warehouses = call.table("warehouse")?;
    let warehouse = call.get(&warehouses, &at[..1])?;
    let warehouse = present(call, warehouse, "the warehouse")?;
    let customers = call.table("customer")?;
    let buyer = call.get(&customers, &[at, &arguments[2..3]].concat())?;
    let buyer = present(call, buyer, "the customer")?;
    let districts = call.table("district")?;
    let district = call.get(&districts, at)?;
    let district = present(call, district, "the district")?;
    let order = int(number_of(&district, D_NEXT_O_ID));
    let district_tax = (district.as_ref()).map_or(0, |row| units_of(&row.values[D_TAX], 4));
    if let Some(mut district) = district {
        add(&mut district, D_NEXT_O_ID, 1);
        call.update(&districts, &district)?;
    }
    let key = [at, &[order]].concat();
    let local = lines.iter().all(|line| line.supplier == int_of(&at[0]));
    if !call.evicted() {
        let orders = call.table("orders")?;
        let rest = [
            customer.clone(),
            Value::Timestamp(call.now()),
            Value::Null,
            int(lines.len() as i64),
            int(local.into()),
        ];
        call.insert(&orders, &[&key[..], &rest].concat())?;
        let new_orders = call.table("new_order")?;
        call.insert(&new_orders, &key)?;
    }
    let stocks = call.table("stock")?;
    let order_lines = call.table("order_line")?;
    let mut sum = 0;
    for (number, line) in (1..).zip(&lines) {
        if line.price < 0 {
            if call.evicted() {
                continue;
            }
            return Err(Error::raised(UNUSED_ITEM, "item number is not valid"));
        }
        let stock = call.get(&stocks, &[int(line.supplier), int(line.item)])?;
        let Some(mut stock) = present(call, stock, "the stock")? else {
            continue;
        };
        let left = int_of(&stock.values[S_QUANTITY]) - line.quantity;
        stock.values[S_QUANTITY] = int(if left >= 10 { left } else { left + 91 });
        add(&mut stock, S_YTD, line.quantity);
        add(&mut stock, S_ORDER_CNT, 1);
        let far = line.supplier != int_of(&at[0]);
        add(&mut stock, S_REMOTE_CNT, far.into());
        call.update(&stocks, &stock)?;
        // What the terminal would show: both "ORIGINAL" make a brand.
        std::hint::black_box(line.original && text_of(&stock.values[S_DATA]).contains("ORIGINAL"));
        let amount = line.quantity * line.price;
        sum += amount;
        if call.evicted() {
            continue;
        }
        let info = stock.values[S_DIST_01 + int_of(&at[1]) as usize - 1].clone();
        let rest = [
            int(number),
            int(line.item),
            int(line.supplier),
            Value::Null,
            int(line.quantity),
            money(amount),
            info,
        ];
        call.insert(&order_lines, &[&key[..], &rest].concat())?;
    }
    let discount = (buyer.as_ref()).map_or(0, |row| units_of(&row.values[C_DISCOUNT], 4));
    let tax = (warehouse.as_ref()).map_or(0, |row| units_of(&row.values[W_TAX], 4));
    let total = sum * (10_000 - discount) / 10_000 * (10_000 + tax + district_tax) / 10_000;
    Ok(vec![Value::BigInt(total)])
}

/// The customer with a number, or the middle one of those with a last name (2.5.2.2).
fn customer_of(
    call: &mut Call<'_, '_>,
    at: &[Value],
    id: &Value,
    last: &Value,
) -> Result<Option<Row>> {
    let customers = call.table("customer")?;
    if !matches!(id, Value::Null) {
        let row = call.get(&customers, &[at, std::slice::from_ref(id)].concat())?;
        return present(call, row, "the customer");
    }
    let key = [at, std::slice::from_ref(last)].concat();
    let mut rows = call.find(&customers, CUSTOMER_BY_NAME, &key)?;
    rows.sort_by(|a, b| text_of(&a.values[C_FIRST]).cmp(text_of(&b.values[C_FIRST])));
    let middle = rows.len().div_ceil(2).saturating_sub(1);
    let row = (middle < rows.len()).then(|| rows.swap_remove(middle));
    present(call, row, "a customer of that name")
}

/// Clause 2.5.2.
fn payment(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let (at, of) = (&arguments[..2], &arguments[2..4]);
    let amount = int_of(&arguments[4]);
    let warehouses = call.table("warehouse")?;
    let warehouse = call.get(&warehouses, &at[..1])?;
    let warehouse = present(call, warehouse, "the warehouse")?;
    let districts = call.table("district")?;
    let district = call.get(&districts, at)?;
    let district = present(call, district, "the district")?;
    let payer = customer_of(call, of, &arguments[5], &arguments[6])?;
    let (Some(mut warehouse), Some(mut district), Some(mut payer)) = (warehouse, district, payer)
    else {
        return Ok(Vec::new());
    };
    add_money(&mut warehouse, W_YTD, amount);
    call.update(&warehouses, &warehouse)?;
    add_money(&mut district, D_YTD, amount);
    call.update(&districts, &district)?;
    add_money(&mut payer, C_BALANCE, -amount);
    add_money(&mut payer, C_YTD_PAYMENT, amount);
    add(&mut payer, C_PAYMENT_CNT, 1);
    let id = payer.values[C_ID].clone();
    if text_of(&payer.values[C_CREDIT]) == "BC" {
        let mut data = format!(
            "{} {} {} {} {} {amount} {}",
            int_of(&id),
            int_of(&of[1]),
            int_of(&of[0]),
            int_of(&at[1]),
            int_of(&at[0]),
            text_of(&payer.values[C_DATA])
        );
        data.truncate(C_DATA_MAX);
        payer.values[C_DATA] = text(data);
    }
    let customers = call.table("customer")?;
    call.update(&customers, &payer)?;
    let history = call.table("history")?;
    let data = format!(
        "{}    {}",
        text_of(&warehouse.values[W_NAME]),
        text_of(&district.values[D_NAME])
    );
    let rest = [id, Value::Timestamp(call.now()), money(amount), text(data)];
    call.insert(&history, &[at, of, &rest].concat())?;
    Ok(Vec::new())
}

/// The rows of one key's prefix in an ordered index, in order.
fn rows_below(
    call: &mut Call<'_, '_>,
    (table, index): (&str, &str),
    prefix: &[Value],
    direction: Direction,
    limit: usize,
) -> Result<Vec<Row>> {
    let table = call.table(table)?;
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    call.range(&table, index, prefix, bounds, direction, limit)
}

const ORDER_LINES: (&str, &str) = ("order_line", "order_line_pkey");

/// Clause 2.6.2: how many lines the customer's last order has.
fn order_status(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let at = &arguments[..2];
    let asking = customer_of(call, at, &arguments[2], &arguments[3])?;
    let Some(asking) = asking else {
        return Ok(vec![int(0)]);
    };
    let of = [at, &asking.values[C_ID..=C_ID]].concat();
    let by_customer = ("orders", ORDERS_BY_CUSTOMER);
    let orders = rows_below(call, by_customer, &of, Direction::Descending, 1)?;
    let Some(order) = orders.first() else {
        return match call.evicted() {
            true => Ok(vec![int(0)]),
            false => Err(Error::raised("P0002", "the customer has no order")),
        };
    };
    let key = [at, &order.values[O_ID..=O_ID]].concat();
    let lines = rows_below(call, ORDER_LINES, &key, Direction::Ascending, usize::MAX)?;
    Ok(vec![int(lines.len() as i64)])
}

/// Clause 2.7.4, for all districts of the warehouse: how many orders were delivered.
fn delivery(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let (warehouse, carrier) = (&arguments[0], &arguments[1]);
    let new_orders = call.table("new_order")?;
    let orders = call.table("orders")?;
    let order_lines = call.table("order_line")?;
    let customers = call.table("customer")?;
    let mut delivered = 0;
    for district in 1..=DISTRICTS {
        let at = [warehouse.clone(), Value::Integer(district)];
        let waiting = ("new_order", "new_order_pkey");
        let oldest = rows_below(call, waiting, &at, Direction::Ascending, 1)?;
        let Some(oldest) = oldest.first() else {
            continue;
        };
        call.delete(&new_orders, oldest)?;
        let key = [&at[..], &oldest.values[NO_O_ID..=NO_O_ID]].concat();
        let order = call.get(&orders, &key)?;
        let order = present(call, order, "the order")?;
        let mut sum = 0;
        for mut line in rows_below(call, ORDER_LINES, &key, Direction::Ascending, usize::MAX)? {
            sum += money_of(&line.values[OL_AMOUNT]);
            line.values[OL_DELIVERY_D] = Value::Timestamp(call.now());
            call.update(&order_lines, &line)?;
        }
        let Some(mut order) = order else {
            continue;
        };
        order.values[O_CARRIER_ID] = carrier.clone();
        call.update(&orders, &order)?;
        let buyer = [&at[..], &order.values[O_C_ID..=O_C_ID]].concat();
        let buyer = call.get(&customers, &buyer)?;
        if let Some(mut buyer) = present(call, buyer, "the customer")? {
            add_money(&mut buyer, C_BALANCE, sum);
            add(&mut buyer, C_DELIVERY_CNT, 1);
            call.update(&customers, &buyer)?;
        }
        delivered += 1;
    }
    Ok(vec![int(delivered)])
}

/// Clause 2.8.2: how many items of the last twenty orders are low in stock.
fn stock_level(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let (at, threshold) = (&arguments[..2], int_of(&arguments[2]));
    let districts = call.table("district")?;
    let district = call.get(&districts, at)?;
    let Some(district) = present(call, district, "the district")? else {
        return Ok(vec![int(0)]);
    };
    let next = int_of(&district.values[D_NEXT_O_ID]);
    let order_lines = call.table("order_line")?;
    let lines = call.range(
        &order_lines,
        ORDER_LINES.1,
        at,
        (Bound::Included(int(next - 20)), Bound::Excluded(int(next))),
        Direction::Ascending,
        usize::MAX,
    )?;
    let mut items: Vec<i64> = (lines.iter())
        .map(|line| int_of(&line.values[OL_I_ID]))
        .collect();
    items.sort_unstable();
    items.dedup();
    let stocks = call.table("stock")?;
    let mut low = 0;
    for item in items {
        let stock = call.get(&stocks, &[at[0].clone(), int(item)])?;
        if let Some(stock) = present(call, stock, "the stock")? {
            low += i64::from(int_of(&stock.values[S_QUANTITY]) < threshold);
        }
    }
    Ok(vec![int(low)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_from_an_argument_as_they_went() {
        let lines = [
            PricedLine {
                item: 100_001,
                supplier: 3,
                quantity: 10,
                price: -1,
                original: false,
            },
            PricedLine {
                item: 1,
                supplier: 1,
                quantity: 5,
                price: 9_999_999_999,
                original: true,
            },
        ];
        let mut bytes = Vec::new();
        lines.iter().for_each(|line| line.write(&mut bytes));
        assert_eq!(lines_of(&Value::Bytea(bytes)).expect("lines"), lines);
        assert!(lines_of(&Value::Bytea(vec![0; LINE_BYTES + 1])).is_err());
        assert!(lines_of(&Value::Null).is_err());
    }
}
