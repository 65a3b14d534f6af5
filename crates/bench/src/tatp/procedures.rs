//! The seven transactions in this process. All rows of a subscriber lie in one partition; whose
//! number it is is looked up before, which no transaction changes.

use std::ops::Bound;
use std::sync::Arc;

use thermocline_engine::{Call, Database, Direction, Error, Procedure, Reach, Result, RunOptions};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::draw::{NO_ACCESS, NO_DESTINATION, NO_FORWARDING, Operation};
use super::load::BY_NUMBER;
use crate::workload::cells::{int_of, text};
use crate::workload::{Ended, reads};

/// The SQLSTATE with which a transaction ends whose special facility is not there.
pub(super) const NO_FACILITY: &str = "P0003";

const BIT_1: usize = 2;
const VLR_LOCATION: usize = 33;
const IS_ACTIVE: usize = 2;
const DATA_A: usize = 4;
const START_TIME: usize = 2;
const END_TIME: usize = 3;

pub(super) fn all() -> Vec<Procedure> {
    let of_subscriber =
        |name: &str, body: fn(&mut Call<'_, '_>, &[Value]) -> Result<Vec<Value>>| {
            Procedure::new(name, body)
                .parameter("subscriber", DataType::Integer)
                .result("found", DataType::Boolean)
                .reach(|arguments| Ok(Reach::row("subscriber", &arguments[..1])))
        };
    let small = |procedure: Procedure, name: &str| procedure.parameter(name, DataType::SmallInt);
    let with = |procedure: Procedure, names: &[&str]| names.iter().copied().fold(procedure, small);
    vec![
        of_subscriber("tatp_get_subscriber_data", get_subscriber_data),
        with(
            of_subscriber("tatp_get_new_destination", get_new_destination),
            &["facility", "start", "end"],
        ),
        with(
            of_subscriber("tatp_get_access_data", get_access_data),
            &["access"],
        ),
        with(
            of_subscriber("tatp_update_subscriber_data", update_subscriber_data),
            &["facility", "bit", "data"],
        ),
        of_subscriber("tatp_update_location", update_location)
            .parameter("location", DataType::BigInt),
        with(
            of_subscriber("tatp_insert_call_forwarding", insert_call_forwarding),
            &["facility", "start", "end"],
        )
        .parameter("to", DataType::Text),
        with(
            of_subscriber("tatp_delete_call_forwarding", delete_call_forwarding),
            &["facility", "start"],
        ),
    ]
}

/// Carries out an operation.
pub(super) async fn call(
    db: &Arc<Database>,
    options: &RunOptions,
    operation: &Operation,
) -> crate::Result<Ended> {
    let (int, small) = (
        |number: &i32| Value::Integer(*number),
        |number: &i16| Value::SmallInt(*number),
    );
    let subscriber_of = async |number: &str| {
        let key = [ValueRef::Text(number)];
        let found = reads::column_by(db, options, BY_NUMBER, &key, 0).await?;
        found.ok_or_else(|| Error::raised("P0002", format!("nobody has the number {number}")))
    };
    let (name, arguments, failure) = match operation {
        Operation::GetSubscriberData { subscriber } => {
            ("tatp_get_subscriber_data", vec![int(subscriber)], None)
        }
        Operation::GetNewDestination {
            subscriber,
            facility,
            start,
            end,
        } => (
            "tatp_get_new_destination",
            vec![int(subscriber), small(facility), small(start), small(end)],
            Some(NO_DESTINATION),
        ),
        Operation::GetAccessData { subscriber, access } => (
            "tatp_get_access_data",
            vec![int(subscriber), small(access)],
            Some(NO_ACCESS),
        ),
        Operation::UpdateSubscriberData {
            subscriber,
            facility,
            bit,
            data,
        } => (
            "tatp_update_subscriber_data",
            vec![int(subscriber), small(facility), small(bit), small(data)],
            None,
        ),
        Operation::UpdateLocation { number, location } => (
            "tatp_update_location",
            vec![subscriber_of(number).await?, Value::BigInt(*location)],
            None,
        ),
        Operation::InsertCallForwarding {
            number,
            facility,
            start,
            end,
            to,
        } => (
            "tatp_insert_call_forwarding",
            vec![
                subscriber_of(number).await?,
                small(facility),
                small(start),
                small(end),
                text(to.as_str()),
            ],
            None,
        ),
        Operation::DeleteCallForwarding {
            number,
            facility,
            start,
        } => (
            "tatp_delete_call_forwarding",
            vec![subscriber_of(number).await?, small(facility), small(start)],
            Some(NO_FORWARDING),
        ),
    };
    let found = db.call(options, name, &arguments).await?;
    match (matches!(found.as_slice(), [Value::Boolean(true)]), failure) {
        (true, _) => Ok(Ended::Done),
        (false, Some(failure)) => Ok(Ended::Expected(failure)),
        (false, None) => Err(format!("{name} found no row").into()),
    }
}

fn found(found: bool) -> Result<Vec<Value>> {
    Ok(vec![Value::Boolean(found)])
}

fn get_subscriber_data(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let subscribers = call.table("subscriber")?;
    found(call.get(&subscribers, arguments)?.is_some())
}

fn get_new_destination(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let facilities = call.table("special_facility")?;
    let facility = call.get(&facilities, &arguments[..2])?;
    let active = facility.is_some_and(|row| int_of(&row.values[IS_ACTIVE]) == 1);
    if !active && !call.evicted() {
        return found(false);
    }
    let forwardings = call.table("call_forwarding")?;
    let rows = call.range(
        &forwardings,
        "call_forwarding_pkey",
        &arguments[..2],
        (Bound::Unbounded, Bound::Included(arguments[2].clone())),
        Direction::Ascending,
        usize::MAX,
    )?;
    let end = int_of(&arguments[3]);
    let is_open = |row: &thermocline_engine::Row| {
        int_of(&row.values[START_TIME]) <= int_of(&arguments[2])
            && end < int_of(&row.values[END_TIME])
    };
    found(rows.iter().any(is_open))
}

fn get_access_data(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let accesses = call.table("access_info")?;
    found(call.get(&accesses, arguments)?.is_some())
}

fn no_facility<T>() -> Result<T> {
    Err(Error::raised(
        NO_FACILITY,
        "there is no such special facility",
    ))
}

fn update_subscriber_data(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let subscribers = call.table("subscriber")?;
    let row = call.get(&subscribers, &arguments[..1])?;
    let is_there = row.is_some();
    if let Some(mut row) = row {
        row.values[BIT_1] = arguments[2].clone();
        call.update(&subscribers, &row)?;
    }
    let facilities = call.table("special_facility")?;
    match call.get(&facilities, &arguments[..2])? {
        Some(mut row) => {
            row.values[DATA_A] = arguments[3].clone();
            call.update(&facilities, &row)?;
        }
        None => return no_facility(),
    }
    found(is_there)
}

fn update_location(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let subscribers = call.table("subscriber")?;
    let Some(mut row) = call.get(&subscribers, &arguments[..1])? else {
        return found(false);
    };
    row.values[VLR_LOCATION] = arguments[1].clone();
    call.update(&subscribers, &row)?;
    found(true)
}

fn insert_call_forwarding(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let facilities = call.table("special_facility")?;
    if call.get(&facilities, &arguments[..2])?.is_none() {
        return no_facility();
    }
    let forwardings = call.table("call_forwarding")?;
    call.insert(&forwardings, arguments)?;
    found(true)
}

fn delete_call_forwarding(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let forwardings = call.table("call_forwarding")?;
    let Some(row) = call.get(&forwardings, arguments)? else {
        return found(false);
    };
    call.delete(&forwardings, &row)?;
    found(true)
}
