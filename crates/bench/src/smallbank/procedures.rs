//! The six transactions in this process. A customer's rows lie in one partition.

use std::sync::Arc;

use thermocline_engine::{Call, Database, Error, Procedure, Reach, Result, RunOptions};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::draw::Operation;
use super::{CHECK, DEPOSIT, OVERDRAWN, PENALTY, SENT, WITHDRAWAL};
use crate::workload::Ended;
use crate::workload::cells::int_of;

/// The SQLSTATE with which a transaction ends for which there is too little money.
pub(super) const TOO_LITTLE: &str = "P0004";

type Body = fn(&mut Call<'_, '_>, &[Value]) -> Result<Vec<Value>>;

pub(super) fn all() -> Vec<Procedure> {
    let row = |customer: &Value| ("accounts".to_owned(), vec![customer.clone()]);
    let of_customers = move |name: &str, parameters: &[&str], body: Body| {
        let procedure = Procedure::new(name, body)
            .result("result", DataType::BigInt)
            .reach(move |arguments| Ok(Reach::Rows(arguments.iter().map(row).collect())));
        (parameters.iter()).fold(procedure, |procedure, name| {
            procedure.parameter(*name, DataType::BigInt)
        })
    };
    let (one, two) = (["customer"], ["from", "to"]);
    vec![
        of_customers("smallbank_amalgamate", &two, amalgamate),
        of_customers("smallbank_balance", &one, balance),
        of_customers("smallbank_deposit_checking", &one, deposit_checking),
        of_customers("smallbank_send_payment", &two, send_payment),
        of_customers("smallbank_transact_savings", &one, transact_savings),
        of_customers("smallbank_write_check", &one, write_check),
    ]
}

/// Carries out an operation.
pub(super) async fn call(
    db: &Arc<Database>,
    options: &RunOptions,
    operation: &Operation,
) -> crate::Result<Ended> {
    let (name, customers) = match *operation {
        Operation::Amalgamate { from, to } => ("smallbank_amalgamate", vec![from, to]),
        Operation::Balance { customer } => ("smallbank_balance", vec![customer]),
        Operation::DepositChecking { customer } => ("smallbank_deposit_checking", vec![customer]),
        Operation::SendPayment { from, to } => ("smallbank_send_payment", vec![from, to]),
        Operation::TransactSavings { customer } => ("smallbank_transact_savings", vec![customer]),
        Operation::WriteCheck { customer } => ("smallbank_write_check", vec![customer]),
    };
    let arguments: Vec<Value> = customers.into_iter().map(Value::BigInt).collect();
    let result = db.call(options, name, &arguments).await?;
    let overdrawn = matches!(operation, Operation::WriteCheck { .. })
        && matches!(result.as_slice(), [Value::BigInt(1)]);
    Ok(match overdrawn {
        true => Ended::Expected(OVERDRAWN),
        false => Ended::Done,
    })
}

/// Looks the customer up, as each transaction does first.
fn look_up(call: &mut Call<'_, '_>, customer: &Value) -> Result<()> {
    let accounts = call.table("accounts")?;
    let found = call.get(&accounts, std::slice::from_ref(customer))?;
    match found.is_none() && !call.evicted() {
        true => Err(Error::raised("P0002", "the customer is not there")),
        false => Ok(()),
    }
}

/// The balance in a table, changed by `changed`; what it was. Nothing is changed, and 0 told,
/// where the row has left memory.
fn change(
    call: &mut Call<'_, '_>,
    table: &str,
    customer: &Value,
    changed: impl FnOnce(i64) -> Result<Option<i64>>,
) -> Result<i64> {
    let table = call.table(table)?;
    let Some(mut row) = call.get(&table, std::slice::from_ref(customer))? else {
        return match call.evicted() {
            true => Ok(0),
            false => Err(Error::raised("P0002", "the balance is not there")),
        };
    };
    let balance = int_of(&row.values[1]);
    if let Some(changed) = changed(balance)? {
        row.values[1] = Value::BigInt(changed);
        call.update(&table, &row)?;
    }
    Ok(balance)
}

fn enough(balance: i64, taken: i64) -> Result<Option<i64>> {
    match balance >= taken {
        true => Ok(Some(balance - taken)),
        false => Err(Error::raised(TOO_LITTLE, "there is too little money")),
    }
}

fn result(number: i64) -> Result<Vec<Value>> {
    Ok(vec![Value::BigInt(number)])
}

fn amalgamate(call: &mut Call<'_, '_>, customers: &[Value]) -> Result<Vec<Value>> {
    look_up(call, &customers[0])?;
    look_up(call, &customers[1])?;
    let savings = change(call, "savings", &customers[0], |_| Ok(Some(0)))?;
    let checking = change(call, "checking", &customers[0], |_| Ok(Some(0)))?;
    let moved = savings + checking;
    change(call, "checking", &customers[1], |balance| {
        Ok(Some(balance + moved))
    })?;
    result(moved)
}

fn balance(call: &mut Call<'_, '_>, customer: &[Value]) -> Result<Vec<Value>> {
    look_up(call, &customer[0])?;
    let savings = change(call, "savings", &customer[0], |_| Ok(None))?;
    let checking = change(call, "checking", &customer[0], |_| Ok(None))?;
    result(savings + checking)
}

fn deposit_checking(call: &mut Call<'_, '_>, customer: &[Value]) -> Result<Vec<Value>> {
    look_up(call, &customer[0])?;
    result(change(call, "checking", &customer[0], |balance| {
        Ok(Some(balance + DEPOSIT))
    })?)
}

fn send_payment(call: &mut Call<'_, '_>, customers: &[Value]) -> Result<Vec<Value>> {
    look_up(call, &customers[0])?;
    look_up(call, &customers[1])?;
    change(call, "checking", &customers[0], |balance| {
        enough(balance, SENT)
    })?;
    result(change(call, "checking", &customers[1], |balance| {
        Ok(Some(balance + SENT))
    })?)
}

fn transact_savings(call: &mut Call<'_, '_>, customer: &[Value]) -> Result<Vec<Value>> {
    look_up(call, &customer[0])?;
    result(change(call, "savings", &customer[0], |balance| {
        enough(balance, WITHDRAWAL)
    })?)
}

/// 1 where the account was overdrawn, 0 otherwise.
fn write_check(call: &mut Call<'_, '_>, customer: &[Value]) -> Result<Vec<Value>> {
    look_up(call, &customer[0])?;
    let savings = change(call, "savings", &customer[0], |_| Ok(None))?;
    let mut overdrawn = false;
    change(call, "checking", &customer[0], |balance| {
        overdrawn = savings + balance < CHECK;
        let penalty = if overdrawn { PENALTY } else { 0 };
        Ok(Some(balance - CHECK - penalty))
    })?;
    result(overdrawn.into())
}
