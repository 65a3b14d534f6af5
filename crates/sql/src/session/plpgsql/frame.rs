//! What the variables of a call hold, and what it gives.

use std::sync::Arc;

use thermocline_engine::Charge;
use thermocline_query::datum::{Datum, Record};
use thermocline_query::error::QueryError;
use thermocline_query::size;
use thermocline_query::tree::Column;
use thermocline_query::types::ids;

use super::cursor::OpenCursor;
use crate::error::{Result, SqlError};

/// What a variable holds.
pub(super) enum Held {
    Value {
        oid: u32,
        modifier: i32,
        value: Datum,
    },
    Row(Row),
    /// A cursor that is open, and whether it was before.
    Cursor(Option<Box<OpenCursor>>, bool),
}

/// A variable that is a row.
#[derive(Default)]
pub(super) struct Row {
    /// The number of its type; 0 for `record`.
    pub(super) oid: u32,
    /// Its columns; a record has none before it is assigned.
    pub(super) columns: Option<Arc<[Column]>>,
    /// Its values; none for NULL.
    pub(super) values: Option<Vec<Datum>>,
}

impl Row {
    pub(super) fn column(&self, name: &str) -> Option<(usize, &Column)> {
        let mut columns = self.columns.iter().flat_map(|columns| columns.iter());
        let at = columns.position(|column| *column.name == *name)?;
        Some((at, &self.columns.as_ref()?[at]))
    }

    /// The error of a column that is not there.
    #[cold]
    pub(super) fn without(&self, name: &str, field: &str) -> QueryError {
        match self.columns {
            Some(_) => QueryError::new(
                "42703",
                format!("record \"{name}\" has no field \"{field}\""),
            ),
            None => QueryError::new("55000", format!("record \"{name}\" is not assigned yet"))
                .with_detail("The tuple structure of a not-yet-assigned record is indeterminate."),
        }
    }

    pub(super) fn value(&self, at: usize) -> Datum {
        let values = self.values.as_ref();
        values
            .and_then(|values| values.get(at))
            .cloned()
            .unwrap_or_default()
    }

    /// All of it as one value.
    pub(super) fn datum(&self) -> Datum {
        match (&self.columns, &self.values) {
            (Some(columns), Some(values)) => Datum::Record(Arc::new(Record {
                types: columns.iter().map(|column| column.oid).collect(),
                names: Some(columns.iter().map(|c| Arc::clone(&c.name)).collect()),
                modifiers: Some(columns.iter().map(|column| column.modifier).collect()),
                values: values.clone(),
            })),
            _ => Datum::Null,
        }
    }
}

impl Held {
    /// The number of its type and its modifier.
    pub(super) fn type_of(&self) -> (u32, i32) {
        match self {
            Self::Value { oid, modifier, .. } => (*oid, *modifier),
            Self::Row(Row { oid: 0, .. }) => (ids::RECORD, -1),
            Self::Row(row) => (row.oid, -1),
            Self::Cursor(..) => (ids::TEXT, -1),
        }
    }

    /// All of it as one value.
    pub(super) fn datum(&self) -> Datum {
        match self {
            Self::Value { value, .. } => value.clone(),
            Self::Row(row) => row.datum(),
            Self::Cursor(..) => Datum::Null,
        }
    }

    /// What it takes in memory beside itself.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Value { value, .. } => size::beyond(value),
            Self::Row(row) => row.values.as_ref().map_or(0, |values| size::values(values)),
            Self::Cursor(..) => 0,
        }
    }
}

/// A value and its type.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Typed {
    pub(in crate::session) value: Datum,
    pub(in crate::session) oid: u32,
    pub(in crate::session) modifier: i32,
}

/// A call that runs.
pub(super) struct Frame {
    pub(super) held: Vec<Held>,
    /// What the values of variables take, as far as it is charged.
    pub(super) charge: Charge,
    pub(super) bytes: u64,
    /// What RETURN has given.
    pub(super) returned: Option<Typed>,
    /// What RETURN NEXT and RETURN QUERY have given.
    pub(super) rows: Vec<Vec<Datum>>,
    pub(super) rows_charge: Charge,
    pub(super) row_count: u64,
    /// The errors that handlers around are for.
    pub(super) caught: Vec<SqlError>,
    /// Where the call is, for the CONTEXT of errors.
    pub(super) at: (u32, &'static str),
    /// The error that ends it has this call in its CONTEXT.
    pub(super) raises_again: bool,
    /// The columns of the rows that it gives.
    pub(super) columns: Arc<[Column]>,
    /// They are rows, not values of one column.
    pub(super) gives_rows: bool,
    /// How many turns of loops there were since others were let go first.
    pub(super) turns: u32,
}

impl Frame {
    /// Charges a variable's new value before it is kept.
    ///
    /// # Errors
    /// 53200 where there is no room for it.
    pub(super) fn keep(&mut self, slot: usize, held: Held) -> Result<()> {
        let before = self.held[slot].bytes() as u64;
        let bytes = (self.bytes + held.bytes() as u64).saturating_sub(before);
        if bytes > self.charge.bytes() {
            // By steps, so that a value that grows is not asked for each time.
            self.charge.resize(bytes + bytes / 4)?;
        }
        self.bytes = bytes;
        self.held[slot] = held;
        Ok(())
    }

    /// Charges a row of the result and keeps it.
    ///
    /// # Errors
    /// As [`Frame::keep`].
    pub(super) fn give(&mut self, row: Vec<Datum>) -> Result<()> {
        let bytes = size::values(&row) + size_of_val(row.as_slice()) + size_of::<Vec<Datum>>();
        self.rows_charge.grow(bytes as u64)?;
        self.rows.push(row);
        Ok(())
    }
}
