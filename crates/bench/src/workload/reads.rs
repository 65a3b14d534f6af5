//! Reads of single rows that no transaction changes, beside a procedure: what they say stays
//! true, so that the procedure need not hold their partitions. They do not wait for the log:
//! what others changed in those partitions is not what they tell.

use std::sync::Arc;

use thermocline_engine::{Database, Error, Result, RunOptions, Scope};
use thermocline_values::value::{Value, ValueRef};

/// The same, without a wait for the log.
pub fn at_once(options: &RunOptions) -> RunOptions {
    RunOptions {
        synchronous_commit: false,
        ..options.clone()
    }
}

/// The row with this primary key, if there is one.
pub async fn row(
    db: &Arc<Database>,
    options: &RunOptions,
    table: &str,
    key: &[ValueRef<'_>],
) -> Result<Option<Vec<Value>>> {
    let catalog = db.catalog();
    let table = (catalog.table_by_name("public", table))
        .ok_or_else(|| Error::raised("42P01", format!("table {table} is not there")))?;
    let mut encoded = Vec::with_capacity(16);
    table.encode_index_key(0, key, &mut encoded);
    let mut found = None;
    db.get_many(&at_once(options), table, 0, &[encoded], |_, tuple| {
        let value = |column| table.value(tuple, column).to_owned();
        found = Some((0..table.def.columns.len()).map(value).collect());
    })
    .await?;
    Ok(found)
}

/// A column of the first row with this key in another index, wherever it lies.
pub async fn column_by(
    db: &Arc<Database>,
    options: &RunOptions,
    (table, index): (&str, &str),
    key: &[ValueRef<'_>],
    column: usize,
) -> Result<Option<Value>> {
    let catalog = db.catalog();
    let table = (catalog.table_by_name("public", table))
        .ok_or_else(|| Error::raised("42P01", format!("table {table} is not there")))?;
    let place = (table.def.indexes.iter())
        .position(|one| one.name == index)
        .ok_or_else(|| Error::raised("42704", format!("index {index} is not there")))?;
    let mut encoded = Vec::with_capacity(16);
    table.encode_index_key(place, key, &mut encoded);
    let mut rows = Vec::new();
    db.one_shot(&at_once(options), Scope::All, |access| {
        rows.clear();
        access.find(table, place, &encoded, &mut rows)?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let tuple = access.tuple(table, *row)?;
        Ok(tuple.map(|tuple| table.value(tuple, column).to_owned()))
    })
    .await
}
