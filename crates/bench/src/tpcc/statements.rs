//! The five transactions over the wire, by prepared statements: what a client of any
//! PostgreSQL would send.

use std::time::{SystemTime, UNIX_EPOCH};

use thermocline_values::value::Value;
use tokio_postgres::{Client, Row, Statement};

use super::DISTRICTS;
use super::draw::{Customer, Operation, ROLLED_BACK};
use crate::Result;
use crate::workload::Ended;
use crate::workload::cells::{Cell, int_of, money, money_of, text_of, units_of};

/// Microseconds from 1970 to 2000.
const UNIX_TO_2000_US: i64 = 946_684_800_000_000;

/// What a connection has prepared.
pub struct Statements {
    warehouse_tax: Statement,
    next_order: Statement,
    buyer: Statement,
    insert_order: Statement,
    insert_new_order: Statement,
    item: Statement,
    /// One for each district: they return its text.
    stock: Vec<Statement>,
    insert_line: Statement,
    pay_warehouse: Statement,
    pay_district: Statement,
    customers_by_name: Statement,
    pay: Statement,
    pay_with_data: Statement,
    customer_data: Statement,
    insert_history: Statement,
    status: Statement,
    status_by_name: Statement,
    last_order: Statement,
    lines: Statement,
    oldest: Statement,
    delete_new_order: Statement,
    carry: Statement,
    deliver_lines: Statement,
    credit: Statement,
    district_next: Statement,
    low: Statement,
}

const OF_CUSTOMER: &str = "c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
const BY_NAME: &str = "c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first";

impl Statements {
    /// Prepares all.
    pub(super) async fn prepare(connection: &Client) -> Result<Self> {
        let mut stock = Vec::new();
        for district in 1..=DISTRICTS {
            let sql = format!(
                "UPDATE stock SET s_quantity = CASE WHEN s_quantity - $3 >= 10 \
                 THEN s_quantity - $3 ELSE s_quantity - $3 + 91 END, s_ytd = s_ytd + $3, \
                 s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $4 \
                 WHERE s_w_id = $1 AND s_i_id = $2 RETURNING s_dist_{district:02}, s_data"
            );
            stock.push(connection.prepare(&sql).await?);
        }
        let prepare = async |sql: &str| connection.prepare(sql).await;
        Ok(Statements {
            warehouse_tax: prepare("SELECT w_tax FROM warehouse WHERE w_id = $1").await?,
            next_order: prepare(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
                 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax",
            )
            .await?,
            buyer: prepare(&format!(
                "SELECT c_discount, c_last, c_credit FROM customer WHERE {OF_CUSTOMER}"
            ))
            .await?,
            insert_order: prepare(
                "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, \
                 o_all_local) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .await?,
            insert_new_order: prepare("INSERT INTO new_order VALUES ($1, $2, $3)").await?,
            item: prepare("SELECT i_price, i_name, i_data FROM item WHERE i_id = $1").await?,
            stock,
            insert_line: prepare(
                "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, \
                 ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            )
            .await?,
            pay_warehouse: prepare(
                "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 RETURNING w_name",
            )
            .await?,
            pay_district: prepare(
                "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
                 RETURNING d_name",
            )
            .await?,
            customers_by_name: prepare(&format!("SELECT c_id FROM customer WHERE {BY_NAME}"))
                .await?,
            pay: prepare(&format!(
                "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = \
                 c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1 WHERE {OF_CUSTOMER}"
            ))
            .await?,
            pay_with_data: prepare(&format!(
                "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = \
                 c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, c_data = $5 \
                 WHERE {OF_CUSTOMER}"
            ))
            .await?,
            customer_data: prepare(&format!(
                "SELECT c_credit, c_data FROM customer WHERE {OF_CUSTOMER}"
            ))
            .await?,
            insert_history: prepare(
                "INSERT INTO history (h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_date, \
                 h_amount, h_data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            )
            .await?,
            status: prepare(&format!(
                "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE {OF_CUSTOMER}"
            ))
            .await?,
            status_by_name: prepare(&format!(
                "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer WHERE {BY_NAME}"
            ))
            .await?,
            last_order: prepare(
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 \
                 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1",
            )
            .await?,
            lines: prepare(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
                 FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )
            .await?,
            oldest: prepare(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
                 ORDER BY no_o_id LIMIT 1",
            )
            .await?,
            delete_new_order: prepare(
                "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
            )
            .await?,
            carry: prepare(
                "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 \
                 AND o_id = $3 RETURNING o_c_id",
            )
            .await?,
            deliver_lines: prepare(
                "UPDATE order_line SET ol_delivery_d = $4 WHERE ol_w_id = $1 AND ol_d_id = $2 \
                 AND ol_o_id = $3 RETURNING ol_amount",
            )
            .await?,
            credit: prepare(&format!(
                "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = \
                 c_delivery_cnt + 1 WHERE {OF_CUSTOMER}"
            ))
            .await?,
            district_next: prepare(
                "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
            )
            .await?,
            low: prepare(
                "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1 \
                 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_w_id = $1 \
                 AND s_i_id = ol_i_id AND s_quantity < $5",
            )
            .await?,
        })
    }

    /// Carries out an operation.
    pub(super) async fn execute(
        &self,
        connection: &Client,
        operation: &Operation,
    ) -> Result<Ended> {
        connection.batch_execute("BEGIN").await?;
        let on = On(self, connection);
        let keep = match operation {
            Operation::NewOrder { .. } => on.new_order(operation).await?,
            Operation::Payment { .. } => on.payment(operation).await?,
            Operation::OrderStatus {
                warehouse,
                district,
                customer,
            } => on.order_status(*warehouse, *district, customer).await?,
            Operation::Delivery { warehouse, carrier } => on.delivery(*warehouse, *carrier).await?,
            Operation::StockLevel {
                warehouse,
                district,
                threshold,
            } => on.stock_level(*warehouse, *district, *threshold).await?,
        };
        if keep {
            connection.batch_execute("COMMIT").await?;
            return Ok(Ended::Done);
        }
        connection.batch_execute("ROLLBACK").await?;
        Ok(Ended::Expected(ROLLED_BACK))
    }
}

fn now() -> Result<Cell> {
    let unix_us = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
    Ok(Cell(Value::Timestamp(unix_us as i64 - UNIX_TO_2000_US)))
}

fn cell(row: &Row, column: usize) -> Result<Value> {
    let Cell(value) = row.try_get(column)?;
    Ok(value)
}

/// The statements on their connection. Each transaction says whether it is to be kept.
struct On<'a>(&'a Statements, &'a Client);

impl On<'_> {
    async fn new_order(&self, operation: &Operation) -> Result<bool> {
        let On(statements, connection) = self;
        let Operation::NewOrder {
            warehouse,
            district,
            customer,
            lines,
        } = operation
        else {
            return Err("not a new order".into());
        };
        let row = connection
            .query_one(&statements.warehouse_tax, &[warehouse])
            .await?;
        let warehouse_tax = units_of(&cell(&row, 0)?, 4);
        let row = connection
            .query_one(&statements.next_order, &[warehouse, district])
            .await?;
        let (order, district_tax): (i32, _) = (row.try_get(0)?, units_of(&cell(&row, 1)?, 4));
        let row = connection
            .query_one(&statements.buyer, &[warehouse, district, customer])
            .await?;
        let discount = units_of(&cell(&row, 0)?, 4);
        let local = i32::from(lines.iter().all(|line| line.supplier == *warehouse));
        let count = lines.len() as i32;
        connection
            .execute(
                &statements.insert_order,
                &[
                    warehouse,
                    district,
                    &order,
                    customer,
                    &now()?,
                    &count,
                    &local,
                ],
            )
            .await?;
        connection
            .execute(&statements.insert_new_order, &[warehouse, district, &order])
            .await?;
        let stock = &statements.stock[(*district - 1) as usize];
        let mut sum = 0;
        for (number, line) in (1i32..).zip(lines) {
            let Some(row) = connection
                .query_opt(&statements.item, &[&line.item])
                .await?
            else {
                return Ok(false);
            };
            let price = money_of(&cell(&row, 0)?);
            let remote = i32::from(line.supplier != *warehouse);
            let row = connection
                .query_one(
                    stock,
                    &[&line.supplier, &line.item, &line.quantity, &remote],
                )
                .await?;
            let info = Cell(cell(&row, 0)?);
            let amount = price * i64::from(line.quantity);
            sum += amount;
            connection
                .execute(
                    &statements.insert_line,
                    &[
                        warehouse,
                        district,
                        &order,
                        &number,
                        &line.item,
                        &line.supplier,
                        &line.quantity,
                        &Cell(money(amount)),
                        &info,
                    ],
                )
                .await?;
        }
        let tax = warehouse_tax + district_tax;
        std::hint::black_box(sum * (10_000 - discount) / 10_000 * (10_000 + tax) / 10_000);
        Ok(true)
    }

    async fn payment(&self, operation: &Operation) -> Result<bool> {
        let On(statements, connection) = self;
        let Operation::Payment {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer,
            amount,
        } = operation
        else {
            return Err("not a payment".into());
        };
        let amount_cell = Cell(money(*amount));
        let row = connection
            .query_one(&statements.pay_warehouse, &[warehouse, &amount_cell])
            .await?;
        let warehouse_name = cell(&row, 0)?;
        let row = connection
            .query_one(
                &statements.pay_district,
                &[warehouse, district, &amount_cell],
            )
            .await?;
        let district_name = cell(&row, 0)?;
        let (at, in_district) = (customer_warehouse, customer_district);
        let id: i32 = match customer {
            Customer::Id(id) => *id,
            Customer::Last(last) => {
                let rows = connection
                    .query(&statements.customers_by_name, &[at, in_district, last])
                    .await?;
                middle(&rows)?.try_get(0)?
            }
        };
        let row = connection
            .query_one(&statements.customer_data, &[at, in_district, &id])
            .await?;
        let paid = if text_of(&cell(&row, 0)?) == "BC" {
            let mut data = format!(
                "{id} {in_district} {at} {district} {warehouse} {amount} {}",
                text_of(&cell(&row, 1)?)
            );
            data.truncate(500);
            connection
                .execute(
                    &statements.pay_with_data,
                    &[at, in_district, &id, &amount_cell, &data],
                )
                .await?
        } else {
            connection
                .execute(&statements.pay, &[at, in_district, &id, &amount_cell])
                .await?
        };
        if paid != 1 {
            return Err(format!("a payment of customer {id} changed {paid} rows").into());
        }
        let data = format!(
            "{}    {}",
            text_of(&warehouse_name),
            text_of(&district_name)
        );
        connection
            .execute(
                &statements.insert_history,
                &[
                    warehouse,
                    district,
                    at,
                    in_district,
                    &id,
                    &now()?,
                    &amount_cell,
                    &data,
                ],
            )
            .await?;
        Ok(true)
    }

    async fn order_status(
        &self,
        warehouse: i32,
        district: i32,
        customer: &Customer,
    ) -> Result<bool> {
        let On(statements, connection) = self;
        let id: i32 = match customer {
            Customer::Id(id) => {
                let row = connection
                    .query_one(&statements.status, &[&warehouse, &district, id])
                    .await?;
                row.try_get(0)?
            }
            Customer::Last(last) => {
                let rows = connection
                    .query(&statements.status_by_name, &[&warehouse, &district, last])
                    .await?;
                middle(&rows)?.try_get(0)?
            }
        };
        let row = connection
            .query_one(&statements.last_order, &[&warehouse, &district, &id])
            .await?;
        let order: i32 = row.try_get(0)?;
        let lines = connection
            .query(&statements.lines, &[&warehouse, &district, &order])
            .await?;
        if lines.is_empty() {
            return Err(format!("order {warehouse}.{district}.{order} has no lines").into());
        }
        Ok(true)
    }

    async fn delivery(&self, warehouse: i32, carrier: i32) -> Result<bool> {
        let On(statements, connection) = self;
        for district in 1..=DISTRICTS {
            let Some(row) = connection
                .query_opt(&statements.oldest, &[&warehouse, &district])
                .await?
            else {
                continue;
            };
            let order: i32 = row.try_get(0)?;
            let key: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                [&warehouse, &district, &order];
            if connection
                .execute(&statements.delete_new_order, &key)
                .await?
                == 0
            {
                // At READ COMMITTED another delivery has taken it meanwhile.
                continue;
            }
            let row = connection
                .query_one(
                    &statements.carry,
                    &[&warehouse, &district, &order, &carrier],
                )
                .await?;
            let customer: i32 = row.try_get(0)?;
            let lines = connection
                .query(
                    &statements.deliver_lines,
                    &[&warehouse, &district, &order, &now()?],
                )
                .await?;
            let mut sum = 0;
            for line in &lines {
                sum += money_of(&cell(line, 0)?);
            }
            connection
                .execute(
                    &statements.credit,
                    &[&warehouse, &district, &customer, &Cell(money(sum))],
                )
                .await?;
        }
        Ok(true)
    }

    async fn stock_level(&self, warehouse: i32, district: i32, threshold: i32) -> Result<bool> {
        let On(statements, connection) = self;
        let row = connection
            .query_one(&statements.district_next, &[&warehouse, &district])
            .await?;
        let next: i32 = row.try_get(0)?;
        let row = connection
            .query_one(
                &statements.low,
                &[&warehouse, &district, &(next - 20), &next, &threshold],
            )
            .await?;
        std::hint::black_box(int_of(&cell(&row, 0)?));
        Ok(true)
    }
}

/// The middle one of the customers of a name, who are in the order of their first names.
fn middle(rows: &[Row]) -> Result<&Row> {
    let place = rows.len().div_ceil(2).saturating_sub(1);
    Ok(rows.get(place).ok_or("no customer has that name")?)
}
