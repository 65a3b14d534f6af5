//! The rows of an analytical statement, handed out as the receiver takes them.
//! No more than one batch waits; dropping the stream ends the statement.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use thermocline_engine::{Charge, Database, Room};
use thermocline_storage::value::Value;

use super::errors::sql_error;
use super::feed::Feed;
use super::rows::write_rows;
use crate::error::Result;
use crate::output::{OutputColumn, RowWriter};
use crate::pg_catalog::CatalogRows;

enum Source {
    Batches {
        feed: Feed,
        /// The current batch and the first row that was not taken from it.
        current: Option<(RecordBatch, usize)>,
    },
    Catalog(CatalogRows),
}

/// A result that is read row by row.
pub struct RowStream {
    columns: Arc<[OutputColumn]>,
    source: Source,
    turn: Option<Turn>,
}

/// What a statement that runs holds.
pub(super) struct Turn {
    db: Arc<Database>,
    /// Its memory.
    charge: Charge,
    /// The planner's and operators' code; none while nobody reads.
    room: Option<Room>,
    /// A part of the charge was given to rows that are kept.
    set_aside: bool,
}

impl Turn {
    pub(super) fn new(db: Arc<Database>, charge: Charge, room: Room) -> Self {
        Self {
            db,
            charge,
            room: Some(room),
            set_aside: false,
        }
    }

    /// Has the code in memory again, if it was let go.
    async fn wake(&mut self) -> Result<()> {
        if self.room.is_none() {
            self.room = Some(self.db.run_code().await?);
        }
        Ok(())
    }
}

/// A setting that a query changed by `set_config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The setting's name.
    pub name: String,
    /// The new value.
    pub value: String,
    /// Only until the transaction ends.
    pub local: bool,
}

impl RowStream {
    pub(super) fn of_batches(columns: Vec<OutputColumn>, feed: Feed, turn: Turn) -> Self {
        Self {
            columns: columns.into(),
            source: Source::Batches {
                feed,
                current: None,
            },
            turn: Some(turn),
        }
    }

    pub(crate) fn of_catalog(columns: Vec<OutputColumn>, rows: CatalogRows) -> Self {
        Self {
            columns: columns.into(),
            source: Source::Catalog(rows),
            turn: None,
        }
    }

    /// Whether it holds a turn.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.turn.is_some()
    }

    /// Says that nobody reads for a while: the code it runs may leave memory.
    pub fn rest(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.room = None;
        }
    }

    /// A part of its charge, the first time, for rows that are kept.
    pub fn set_aside(&mut self, bytes: u64) -> Option<Charge> {
        let turn = self.turn.as_mut().filter(|turn| !turn.set_aside)?;
        turn.set_aside = true;
        Some(turn.charge.split(bytes))
    }

    /// The result's columns.
    #[must_use]
    pub fn columns(&self) -> &Arc<[OutputColumn]> {
        &self.columns
    }

    /// The settings that the query changed; the session has to apply them
    /// before it goes on.
    #[must_use]
    pub fn setting_changes(&self) -> &[SettingChange] {
        match &self.source {
            Source::Batches { .. } => &[],
            Source::Catalog(rows) => rows.setting_changes(),
        }
    }

    /// Writes up to `rows_max` further rows, fewer where they are long, and returns how
    /// many; 0 when there are no more.
    ///
    /// # Errors
    /// Whatever the execution fails with; the stream is of no use then.
    pub async fn next_batch(&mut self, rows: &mut RowWriter, rows_max: usize) -> Result<usize> {
        if let Some(turn) = &mut self.turn {
            turn.wake().await?;
        }
        match &mut self.source {
            Source::Catalog(source) => source.write(rows, rows_max),
            Source::Batches { feed, current } => loop {
                if let Some((batch, from)) = current {
                    let to = batch.num_rows().min(from.saturating_add(rows_max));
                    if to > *from {
                        let written = write_rows(batch, &self.columns, *from, to, rows);
                        let written = written.map_err(sql_error)?;
                        rows.check()?;
                        *from += written;
                        return Ok(written);
                    }
                    if rows_max == 0 {
                        return Ok(0);
                    }
                }
                match feed.next().await? {
                    Some(batch) => *current = Some((batch.map_err(sql_error)?, 0)),
                    None => {
                        *current = None;
                        return Ok(0);
                    }
                }
            },
        }
    }

    /// Up to `rows_max` further rows as values; none when there are no more.
    ///
    /// # Errors
    /// As [`Self::next_batch`].
    pub async fn next_values(&mut self, rows_max: usize) -> Result<Vec<Vec<Value>>> {
        let mut writer = RowWriter::values();
        self.next_batch(&mut writer, rows_max).await?;
        Ok(writer.take_values())
    }
}
