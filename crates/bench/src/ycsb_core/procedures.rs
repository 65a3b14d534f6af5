//! YCSB's operations in this process. One on a single row holds its partition; a scan holds all,
//! since neighbours by key lie anywhere.

use std::ops::Bound;

use thermocline_engine::{Call, Direction, Error, Procedure, Reach, Result, Row};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::TABLE;
use crate::workload::cells::int_of;

pub(super) fn all(fields: usize) -> Vec<Procedure> {
    let of_row = |name: &str, body: fn(&mut Call<'_, '_>, &[Value]) -> Result<Vec<Value>>| {
        Procedure::new(name, body)
            .parameter("key", DataType::BigInt)
            .reach(|arguments| Ok(Reach::row(TABLE, &arguments[..1])))
    };
    let with_field = |procedure: Procedure| {
        procedure
            .parameter("field", DataType::Integer)
            .parameter("value", DataType::Text)
    };
    let insert = (0..fields).fold(of_row("ycsb_insert", insert), |procedure, field| {
        procedure.parameter(format!("field{field}"), DataType::Text)
    });
    vec![
        of_row("ycsb_read", read).result("bytes", DataType::Integer),
        with_field(of_row("ycsb_update", update)),
        with_field(of_row("ycsb_read_modify_write", read_modify_write)),
        insert,
        Procedure::new("ycsb_scan", scan)
            .parameter("key", DataType::BigInt)
            .parameter("length", DataType::Integer)
            .result("rows", DataType::Integer),
    ]
}

fn row(call: &mut Call<'_, '_>, key: &[Value]) -> Result<Option<Row>> {
    let table = call.table(TABLE)?;
    match call.get(&table, key)? {
        None if !call.evicted() => Err(Error::raised("P0002", "the row is not there")),
        row => Ok(row),
    }
}

/// The bytes of all fields.
fn bytes_of(row: &Row) -> i32 {
    let bytes = row.values.iter().map(|value| match value {
        Value::Text(text) => text.len(),
        _ => 0,
    });
    bytes.sum::<usize>() as i32
}

fn read(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let row = row(call, arguments)?;
    Ok(vec![Value::Integer(row.as_ref().map_or(0, bytes_of))])
}

fn update(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    if let Some(mut row) = row(call, &arguments[..1])? {
        row.values[1 + int_of(&arguments[1]) as usize] = arguments[2].clone();
        let table = call.table(TABLE)?;
        call.update(&table, &row)?;
    }
    Ok(Vec::new())
}

fn read_modify_write(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let before = row(call, &arguments[..1])?;
    std::hint::black_box(before.as_ref().map_or(0, bytes_of));
    update(call, arguments)
}

fn insert(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let table = call.table(TABLE)?;
    call.insert(&table, arguments)?;
    Ok(Vec::new())
}

fn scan(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let table = call.table(TABLE)?;
    let rows = call.range(
        &table,
        "usertable_pkey",
        &[],
        (Bound::Included(arguments[0].clone()), Bound::Unbounded),
        Direction::Ascending,
        int_of(&arguments[1]) as usize,
    )?;
    if rows.is_empty() && !call.evicted() {
        return Err(Error::raised("P0002", "a scan found no row"));
    }
    Ok(vec![Value::Integer(rows.len() as i32)])
}
