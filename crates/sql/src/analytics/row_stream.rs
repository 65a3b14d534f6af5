//! The rows of an analytical statement, handed out as the receiver takes them.
//! No more than one batch waits; dropping the stream ends the statement.

use crate::typed::held;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use thermocline_analytical::form::{ColumnReader, Form};
use thermocline_engine::{Charge, Database, GroupCounts, Room};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result as QueryResult;
use thermocline_query::serial::read_short_numeric;
use thermocline_query::types::ids;
use thermocline_values::numeric::Numeric;
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::errors::sql_error;
use super::feed::Feed;
use super::scans::Scans;
use super::whole::WholeResult;
use crate::analysis::SettingChange;
use crate::error::{Result, SqlError};
use crate::output::{OutputColumn, PIECE_BYTES, RowWriter};
use crate::pg_catalog::SystemEnvironment;
use crate::typed::{TypedQuery, write_value};

enum Source {
    Batches {
        feed: Box<Feed>,
        output: Output,
        /// The current batch and the first row that was not taken from it.
        current: Option<(RecordBatch, usize)>,
    },
    Whole(WholeResult),
}

/// A result that is read row by row.
pub struct RowStream {
    columns: Arc<[OutputColumn]>,
    source: Source,
    turn: Option<Turn>,
    scans: Arc<Scans>,
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

/// What is known of a result's values on their way out.
pub(super) struct Output {
    /// Type and modifier of each column.
    types: Vec<(u32, i32)>,
    /// Knows names behind numbers.
    environment: Arc<SystemEnvironment>,
}

impl Output {
    pub(super) fn new(typed: &TypedQuery, environment: &Arc<SystemEnvironment>) -> Self {
        let columns = typed.query.columns();
        let types = columns.iter().map(|column| (column.oid, column.modifier));
        Self {
            types: types.collect(),
            environment: Arc::clone(environment),
        }
    }

    /// Writes one row.
    pub(super) fn write(
        &self,
        rows: &mut RowWriter,
        values: impl Iterator<Item = QueryResult<Datum>>,
    ) -> Result<()> {
        rows.begin_row(self.types.len());
        for (value, of) in values.zip(&self.types) {
            write_value(rows, &*self.environment, *of, &value?)?;
        }
        rows.end_row();
        Ok(())
    }

    /// Writes rows of a batch until they are a piece to send, and returns how many.
    fn write_batch(
        &self,
        batch: &RecordBatch,
        range: std::ops::Range<usize>,
        rows: &mut RowWriter,
    ) -> Result<usize> {
        let readers = self.types.iter().zip(batch.columns());
        let readers =
            readers.map(|((oid, _), array)| ColumnReader::new(Form::of(*oid), Arc::clone(array)));
        let readers = readers.collect::<QueryResult<Vec<_>>>()?;
        for row in range.clone() {
            rows.begin_row(readers.len());
            for (reader, of) in readers.iter().zip(&self.types) {
                self.write_from(reader, row, *of, rows)?;
            }
            rows.end_row();
            // A batch may be much more as text than it is in memory.
            if rows.bytes_buffered() >= PIECE_BYTES {
                return Ok(row + 1 - range.start);
            }
        }
        Ok(range.len())
    }

    /// Writes a value of a batch, texts and short numbers from where they lie.
    fn write_from(
        &self,
        reader: &ColumnReader,
        row: usize,
        of: (u32, i32),
        rows: &mut RowWriter,
    ) -> Result<()> {
        if let Some(text) = reader.text(row)
            && let Some(data_type) = held(of.0, of.1)
            // Who keeps `name` and `json` gets the bytes that tables hold.
            && !(rows.keeps_values() && data_type.other().is_some())
        {
            rows.value(ValueRef::Text(text), &data_type);
            return Ok(());
        }
        if of.0 == ids::NUMERIC
            && let Some((unscaled, scale)) = reader.opaque(row).and_then(read_short_numeric)
            && let Ok(scale) = u8::try_from(scale)
            && let Ok(number) = Numeric::new(unscaled.into(), scale)
        {
            rows.value(ValueRef::Numeric(number), &DataType::NUMERIC);
            return Ok(());
        }
        write_value(rows, &*self.environment, of, &reader.get(row)?)
    }

    fn told(&self, error: &DataFusionError) -> SqlError {
        self.environment.awaited.told(sql_error(error))
    }
}

impl RowStream {
    pub(super) fn of_batches(
        columns: Vec<OutputColumn>,
        output: Output,
        feed: Feed,
        (turn, scans): (Turn, Arc<Scans>),
    ) -> Self {
        Self {
            columns: columns.into(),
            source: Source::Batches {
                feed: Box::new(feed),
                output,
                current: None,
            },
            turn: Some(turn),
            scans,
        }
    }

    pub(super) fn of_whole(
        columns: Vec<OutputColumn>,
        rows: WholeResult,
        scans: Arc<Scans>,
    ) -> Self {
        Self {
            columns: columns.into(),
            source: Source::Whole(rows),
            turn: None,
            scans,
        }
    }

    /// Row groups that its scans came to, of those that have ended.
    #[must_use]
    pub fn group_counts(&self) -> GroupCounts {
        self.scans.counts()
    }

    /// Its operators with what they counted, one a line, if the session explains.
    #[must_use]
    pub fn operators(&self) -> Vec<String> {
        self.scans.ran()
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
            Source::Whole(rows) => rows.setting_changes(),
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
            Source::Whole(source) => source.write(rows, rows_max),
            Source::Batches {
                feed,
                output,
                current,
            } => loop {
                if let Some((batch, from)) = current {
                    let to = batch.num_rows().min(from.saturating_add(rows_max));
                    if to > *from {
                        let written = output.write_batch(batch, *from..to, rows)?;
                        rows.check()?;
                        *from += written;
                        return Ok(written);
                    }
                    if rows_max == 0 {
                        return Ok(0);
                    }
                }
                match feed.next().await? {
                    Some(batch) => {
                        let batch = batch.map_err(|error| output.told(&error))?;
                        *current = Some((batch, 0));
                    }
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
