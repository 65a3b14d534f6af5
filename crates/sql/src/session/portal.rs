//! Portals: a statement with its parameters, and the rows not yet taken from
//! it. Cursors of SQL are portals too and share their names. An analytical
//! result stays a stream; the rows of the short path, which its indexes bound,
//! are kept as values once somebody takes only some of them.

use std::collections::VecDeque;
use std::sync::Arc;

use thermocline_engine::Charge;
use thermocline_storage::value::Value;

use super::Session;
use super::analytical::AnalyticalRows;
use super::prepared::{Planned, Prepared};
use crate::error::{Result, SqlError};
use crate::output::{ColumnType, Formats, OutputColumn, RowWriter};

/// A portal.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    /// The plan it was bound with; `None` for what is not for the binder.
    pub(super) planned: Option<Arc<Planned>>,
    pub(super) parameters: Vec<Value>,
    pub(super) formats: Formats,
    pub(super) rows: PortalRows,
    /// It outlives its transaction (WITH HOLD).
    pub(super) held: bool,
    /// The values of its parameters.
    pub(super) _charge: Option<Charge>,
}

/// The rows of a portal that are not taken yet.
pub(super) enum PortalRows {
    /// It was not executed yet.
    Unstarted,
    /// Rows of the short path.
    Kept(VecDeque<Vec<Value>>),
    /// Rows of the analytical side.
    Stream(Box<AnalyticalRows>),
    /// All were taken.
    Finished,
}

impl PortalRows {
    /// Writes up to `rows_max` rows; the second value says that more may be
    /// there.
    pub(super) async fn take(
        &mut self,
        columns: &[OutputColumn],
        rows: &mut RowWriter,
        rows_max: usize,
    ) -> Result<(u64, bool)> {
        match self {
            Self::Unstarted => Err(SqlError::internal("a portal that was not started")),
            Self::Finished => Ok((0, false)),
            Self::Kept(kept) => {
                let count = kept.len().min(rows_max);
                for row in kept.drain(..count) {
                    write_row(&row, columns, rows)?;
                }
                // PostgreSQL finds out that nothing is left only when asked for more.
                let more = count == rows_max;
                if !more {
                    *self = Self::Finished;
                }
                Ok((count as u64, more))
            }
            Self::Stream(stream) => {
                let mut count = 0;
                while count < rows_max {
                    let taken = stream.next(rows, rows_max - count).await?;
                    if taken == 0 {
                        *self = Self::Finished;
                        return Ok((count as u64, false));
                    }
                    count += taken;
                }
                Ok((count as u64, true))
            }
        }
    }
}

/// Writes a row of kept values.
fn write_row(row: &[Value], columns: &[OutputColumn], rows: &mut RowWriter) -> Result<()> {
    rows.begin_row(row.len());
    for (value, column) in row.iter().zip(columns) {
        match (value, &column.data_type) {
            (Value::Null, _) => rows.null(),
            (value, ColumnType::Scalar(data_type)) => rows.value(value.as_ref(), data_type),
            (Value::Text(text), ColumnType::Other(other)) => rows.other(text, *other)?,
            (_, ColumnType::Other(_)) => {
                return Err(SqlError::internal(
                    "a kept value of a catalog type is no text",
                ));
            }
        }
    }
    rows.end_row();
    Ok(())
}

impl Session {
    /// The portal of this name.
    pub(super) fn portal(&self, name: &str) -> Result<&Portal> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    /// Closes the portals that belong to the transaction that ends.
    pub(super) fn close_transaction_portals(&mut self) {
        if !self.portals.is_empty() {
            self.portals.retain(|_, portal| portal.held);
        }
    }
}

#[cold]
pub(super) fn no_portal(name: &str) -> SqlError {
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}
