//! Rows of a table, one after the other, from the engine or from a server: what checks read.

use std::pin::pin;
use std::sync::Arc;

use futures::TryStreamExt;
use thermocline_engine::Database;
use thermocline_values::value::Value;
use tokio_postgres::Client;

use super::cells::Cell;
use crate::Result;

/// Where rows are read.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// In this process.
    Engine(&'a Arc<Database>),
    /// Over the wire.
    Wire(&'a Client),
}

impl Source<'_> {
    /// Calls `each` with these columns of all rows of a table, in no order.
    pub async fn each(
        &self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&[Value]) + Send,
    ) -> Result<()> {
        self.each_of(table, columns, &mut each).await
    }

    async fn each_of(
        &self,
        table: &str,
        columns: &[&str],
        each: &mut (dyn FnMut(&[Value]) + Send),
    ) -> Result<()> {
        match self {
            Source::Engine(db) => {
                let found = db.catalog().table_by_name("public", table).cloned();
                let table = found.ok_or_else(|| format!("table {table} is not there"))?;
                let place = |name: &&str| {
                    let found = table.def.column_named(name);
                    found.ok_or_else(|| format!("there is no column {name}"))
                };
                let places: Vec<usize> = columns
                    .iter()
                    .map(place)
                    .collect::<std::result::Result<_, String>>()?;
                let snapshot = db.snapshot();
                let mut values = Vec::with_capacity(places.len());
                for partition in 0..db.partitions() {
                    let mut scan = snapshot.scan(&table, partition);
                    let mut one = |_, tuple: &[u8]| {
                        values.clear();
                        let value = |place: &usize| table.value(tuple, *place).to_owned();
                        values.extend(places.iter().map(value));
                        each(&values);
                    };
                    while scan.next_chunk(&mut one).await? {}
                }
                Ok(())
            }
            Source::Wire(client) => {
                let sql = format!("SELECT {} FROM {table}", columns.join(", "));
                let none: [&str; 0] = [];
                let rows = client.query_raw(&sql, none).await?;
                let mut rows = pin!(rows);
                let mut values = Vec::with_capacity(columns.len());
                while let Some(row) = rows.try_next().await? {
                    values.clear();
                    for place in 0..columns.len() {
                        let Cell(value) = row.try_get(place)?;
                        values.push(value);
                    }
                    each(&values);
                }
                Ok(())
            }
        }
    }

    /// How many rows a table has.
    pub async fn count(&self, table: &str, column: &str) -> Result<u64> {
        let mut count = 0;
        self.each(table, &[column], |_| count += 1).await?;
        Ok(count)
    }
}
