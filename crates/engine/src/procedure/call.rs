//! What a procedure's body sees: rows as values, by key and by range, in the
//! partitions that the call holds. What lies elsewhere is an error (38000), not
//! an empty result.
//!
//! Values are converted to the columns' types as an INSERT converts them, and
//! NOT NULL is checked. CHECK constraints, defaults and sequences are SQL's:
//! a procedure gives every column a value, and a table with CHECK constraints
//! cannot be written by one.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use thermocline_storage::key::prefix_successor;
use thermocline_values::cast::{CastContext, coerce};
use thermocline_values::value::{Value, ValueRef};

use super::Procedure;
use crate::access::{Access, Direction};
use crate::catalog::trigger::TriggerEvent;
use crate::catalog::{Catalog, IndexKind, Table};
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;

/// A row, as the call found it. Change `values` and give it to [`Call::update`].
#[derive(Debug, Clone)]
pub struct Row {
    id: RowId,
    /// The columns' values in the order of the table's definition.
    pub values: Vec<Value>,
}

/// One run of a procedure's body.
pub struct Call<'c, 'a> {
    access: &'c mut Access<'a>,
    catalog: &'c Catalog,
    procedure: &'c Procedure,
    now_us: i64,
    tuple: Vec<u8>,
}

/// A table by its name, with its schema or in `public`; 42P01.
pub(super) fn table_named<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Table>> {
    let (schema, table) = name.split_once('.').unwrap_or(("public", name));
    catalog
        .table_by_name(schema, table)
        .ok_or_else(|| Error::catalog("42P01", format!("relation \"{name}\" does not exist")))
}

/// Values in the types of the columns that they are for.
pub(super) fn coerced(table: &Table, columns: &[usize], values: &[Value]) -> Result<Vec<Value>> {
    let convert = |(&column, value): (&usize, &Value)| match value.data_type() {
        Some(from) => {
            let to = &table.def.columns[column].data_type;
            Ok(coerce(value.clone(), &from, to, CastContext::Assignment)?)
        }
        None => Ok(Value::Null),
    };
    columns.iter().zip(values).map(convert).collect()
}

fn references(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

impl<'c, 'a> Call<'c, 'a> {
    pub(super) fn new(
        access: &'c mut Access<'a>,
        catalog: &'c Catalog,
        procedure: &'c Procedure,
        now_us: i64,
    ) -> Self {
        Call {
            access,
            catalog,
            procedure,
            now_us,
            tuple: Vec::new(),
        }
    }

    /// The time of the call, in microseconds since 2000-01-01 UTC
    /// (`Value::TimestampTz`). The same in every run of it, at recovery too.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.now_us
    }

    /// A table, named with its schema or in `public`.
    ///
    /// # Errors
    /// 42P01 if there is none.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        table_named(self.catalog, name).cloned()
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// 42P10 without a primary key; 38000 if the key's partition is not held.
    pub fn get(&mut self, table: &Table, key: &[Value]) -> Result<Option<Row>> {
        match table.def.indexes.first() {
            Some(index) if index.primary => {}
            _ => {
                return Err(Error::raised(
                    "42P10",
                    format!("table \"{}\" has no primary key", table.def.name),
                ));
            }
        }
        let encoded = self.index_key(table, 0, key)?;
        let found = self.access.get(table, 0, &encoded)?;
        Ok(found.map(|(id, tuple)| row_of(table, id, tuple)))
    }

    /// The rows with this key in an index, in a fixed order.
    ///
    /// # Errors
    /// 42704 if the table has no such index; 38000 if the key's partition is not
    /// held.
    pub fn find(&mut self, table: &Table, index: &str, key: &[Value]) -> Result<Vec<Row>> {
        let index = index_named(table, index)?;
        let encoded = self.index_key(table, index, key)?;
        let mut found = Vec::new();
        self.access.find(table, index, &encoded, &mut found)?;
        // A hash index has them in the order of its making.
        found.sort_unstable();
        let mut rows = Vec::with_capacity(found.len());
        for id in found {
            if let Some(tuple) = self.access.tuple(table, id)? {
                rows.push(row_of(table, id, tuple));
            }
        }
        Ok(rows)
    }

    /// Up to `limit` rows in the order of an index (a B+tree) whose key begins
    /// with `prefix`, and lies between the bounds in the next column.
    ///
    /// # Errors
    /// 42704 if the table has no such ordered index; 38000 unless the call holds
    /// all partitions, or the prefix has the partition key of one it holds.
    pub fn range(
        &mut self,
        table: &Table,
        index: &str,
        prefix: &[Value],
        bounds: (Bound<Value>, Bound<Value>),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>> {
        let index = index_named(table, index)?;
        if table.def.indexes[index].kind != IndexKind::BTree {
            return Err(Error::raised(
                "42704",
                format!("index \"{}\" is not ordered", table.def.indexes[index].name),
            ));
        }
        let columns = &table.def.indexes[index].columns;
        self.hold(table, columns, prefix)?;
        let encode = |values: &[Value]| -> Result<Vec<u8>> {
            let mut key = Vec::with_capacity(32);
            let values = coerced(table, columns, values)?;
            table.encode_index_key(index, &references(&values), &mut key);
            Ok(key)
        };
        let with = |value: &Value| encode(&[prefix, std::slice::from_ref(value)].concat());
        // The first key after all that begin with this.
        let after = |mut key: Vec<u8>| prefix_successor(&mut key).then_some(key);
        let lower = match &bounds.0 {
            Bound::Unbounded => Some(encode(prefix)?),
            Bound::Included(value) => Some(with(value)?),
            Bound::Excluded(value) => after(with(value)?),
        };
        let Some(lower) = lower else {
            return Ok(Vec::new());
        };
        let upper = match &bounds.1 {
            Bound::Unbounded => after(encode(prefix)?),
            Bound::Included(value) => after(with(value)?),
            Bound::Excluded(value) => Some(with(value)?),
        };
        let mut rows = Vec::new();
        let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if limit > 0 {
            let lower = Bound::Included(lower.as_slice());
            self.access
                .range(table, index, lower, upper, direction, &mut |id, tuple| {
                    rows.push(row_of(table, id, tuple));
                    Ok(match rows.len() < limit {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(()),
                    })
                })?;
        }
        Ok(rows)
    }

    /// Inserts a row with a value for each column.
    ///
    /// # Errors
    /// 23505 if a unique key is taken. 23502 for a NULL that is refused. 42601
    /// for too few or too many values. 38000 if its partition is not held. Those
    /// of the conversion.
    pub fn insert(&mut self, table: &Table, values: &[Value]) -> Result<()> {
        self.fires_nothing(table, TriggerEvent::Insert)?;
        self.encode(table, values)?;
        if let Some(partition) = table.partition_of_tuple(&self.tuple) {
            self.hold_partition(table, partition)?;
        }
        if table.insert_needs_all_partitions() || table.def.partition_key.is_empty() {
            self.hold_all(table)?;
        }
        self.access.insert(table, &self.tuple).map(|_| ())
    }

    /// Replaces a row that this run has found by its changed values.
    ///
    /// # Errors
    /// As [`Call::insert`].
    pub fn update(&mut self, table: &Table, row: &Row) -> Result<()> {
        self.fires_nothing(table, TriggerEvent::Update)?;
        self.encode(table, &row.values)?;
        if let Some(partition) = table.partition_of_tuple(&self.tuple) {
            self.hold_partition(table, partition)?;
        }
        if table.insert_needs_all_partitions() {
            self.hold_all(table)?;
        }
        if table.is_referenced() {
            return Err(self.refused(table, "to which foreign keys refer"));
        }
        self.access.update(table, row.id, &self.tuple).map(|_| ())
    }

    /// Deletes a row that this run has found.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete(&mut self, table: &Table, row: &Row) -> Result<()> {
        self.fires_nothing(table, TriggerEvent::Delete)?;
        if table.is_referenced() {
            return Err(self.refused(table, "to which foreign keys refer"));
        }
        self.access.delete(table, row.id)
    }

    /// Whether this run has come to an evicted tuple: what it finds is incomplete
    /// and will be thrown away, and the body is run again.
    #[must_use]
    pub fn evicted(&self) -> bool {
        self.access.evicted()
    }

    /// Nobody calls triggers here.
    fn fires_nothing(&self, table: &Table, event: TriggerEvent) -> Result<()> {
        match table.fires(event) {
            false => Ok(()),
            true => Err(self.refused(table, "which has triggers for that")),
        }
    }

    fn refused(&self, table: &Table, which: &str) -> Error {
        Error::Refused {
            sqlstate: "0A000",
            message: format!(
                "procedure {} cannot change \"{}\", {which}",
                self.procedure.name, table.def.name
            ),
            hint: "Change the table by SQL, or drop the constraints or triggers.",
        }
    }

    fn encode(&mut self, table: &Table, values: &[Value]) -> Result<()> {
        let def = &table.def;
        if values.len() != def.columns.len() {
            return Err(Error::raised(
                "42601",
                format!(
                    "procedure {} gives {} values for the {} columns of \"{}\"",
                    self.procedure.name,
                    values.len(),
                    def.columns.len(),
                    def.name
                ),
            ));
        }
        if !def.checks.is_empty() {
            return Err(Error::Refused {
                sqlstate: "0A000",
                message: format!(
                    "procedure {} cannot write \"{}\", which has CHECK constraints",
                    self.procedure.name, def.name
                ),
                hint: "Drop the constraints, and check the values in the procedure.",
            });
        }
        if def.columns.iter().any(|column| column.hidden.is_some()) {
            return Err(self.refused(table, "which has indexes over expressions or partial ones"));
        }
        if def.columns.iter().any(|column| column.generated) {
            return Err(Error::Refused {
                sqlstate: "0A000",
                message: format!(
                    "procedure {} cannot write \"{}\", which has generated columns",
                    self.procedure.name, def.name
                ),
                hint: "Drop the columns' expressions, and compute the values in the procedure.",
            });
        }
        if !def.foreign_keys.is_empty() {
            return Err(self.refused(table, "which has foreign keys"));
        }
        let columns: Vec<usize> = (0..values.len()).collect();
        let values = coerced(table, &columns, values)?;
        for (column, value) in def.columns.iter().zip(&values) {
            if column.not_null && value.is_null() {
                return Err(Error::raised(
                    "23502",
                    format!(
                        "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                        column.name, def.name
                    ),
                ));
            }
        }
        self.tuple.clear();
        table.encode_tuple(&references(&values), &mut self.tuple);
        Ok(())
    }

    /// The whole key of an index whose rows the call holds.
    fn index_key(&self, table: &Table, index: usize, key: &[Value]) -> Result<Vec<u8>> {
        let def = &table.def.indexes[index];
        if key.len() != def.columns.len() {
            return Err(Error::raised(
                "42601",
                format!(
                    "index \"{}\" has {} columns, not {}",
                    def.name,
                    def.columns.len(),
                    key.len()
                ),
            ));
        }
        self.hold(table, &def.columns, key)?;
        let values = coerced(table, &def.columns, key)?;
        let mut encoded = Vec::with_capacity(32);
        table.encode_index_key(index, &references(&values), &mut encoded);
        Ok(encoded)
    }

    /// Makes sure that the call holds the partitions of all rows with these
    /// values in these columns.
    fn hold(&self, table: &Table, columns: &[usize], values: &[Value]) -> Result<()> {
        let known = &columns[..values.len().min(columns.len())];
        let key = &table.def.partition_key;
        let of_key = |column: &usize| {
            let at = known.iter().position(|c| c == column)?;
            Some(values[at].clone())
        };
        let key_values: Option<Vec<Value>> = key.iter().map(of_key).collect();
        match key_values {
            Some(values) if !key.is_empty() => {
                let values = coerced(table, key, &values)?;
                match table.partition_of_values(&references(&values)) {
                    Some(partition) => self.hold_partition(table, partition),
                    None => self.hold_all(table),
                }
            }
            _ => self.hold_all(table),
        }
    }

    fn hold_partition(&self, table: &Table, partition: u16) -> Result<()> {
        if self.access.holds(partition) {
            return Ok(());
        }
        Err(Error::raised(
            "38000",
            format!(
                "procedure {} came to a row of \"{}\" outside of its declared reach",
                self.procedure.name, table.def.name
            ),
        ))
    }

    fn hold_all(&self, table: &Table) -> Result<()> {
        if self.access.holds_all() {
            return Ok(());
        }
        Err(Error::raised(
            "38000",
            format!(
                "procedure {} needs rows of \"{}\" that may lie in any partition; declare \
                 Reach::All",
                self.procedure.name, table.def.name
            ),
        ))
    }
}

fn index_named(table: &Table, name: &str) -> Result<usize> {
    let found = table
        .def
        .indexes
        .iter()
        .position(|index| index.name == name);
    found.ok_or_else(|| {
        Error::raised(
            "42704",
            format!(
                "index \"{name}\" of table \"{}\" does not exist",
                table.def.name
            ),
        )
    })
}

fn row_of(table: &Table, id: RowId, tuple: &[u8]) -> Row {
    let values = (0..table.def.columns.len())
        .map(|column| table.value(tuple, column).to_owned())
        .collect();
    Row { id, values }
}
