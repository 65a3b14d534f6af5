//! Cursors of a body: the rows of a query, taken one by one. They end with the call.

use super::Machine;
use super::frame::Held;
use super::rows::FoundRows;
use crate::error::{Result, SqlError};
use crate::plpgsql::tree::{Declared, Into, Source};

/// A cursor that is open.
pub(super) struct OpenCursor {
    found: FoundRows,
}

impl Machine<'_> {
    pub(super) async fn open(&mut self, slot: usize, rows: Option<&Source>) -> Result<()> {
        let declared = &self.compiled.body.slots[slot];
        if let Held::Cursor(Some(_), _) = self.frame.held[slot] {
            let message = format!("cursor \"{}\" already in use", declared.name);
            return Err(SqlError::new("42P03", message));
        }
        let found = match (rows, &declared.declared) {
            (Some(rows), _) => self.source(rows).await?,
            (None, Declared::Cursor(Some(query))) => self.query(query).await?,
            _ => return Err(SqlError::internal("a cursor without a query")),
        };
        self.frame.held[slot] = Held::Cursor(Some(Box::new(OpenCursor { found })), true);
        Ok(())
    }

    /// FETCH, or MOVE where nothing takes the row.
    pub(super) async fn fetch(&mut self, slot: usize, into: Option<&Into>) -> Result<()> {
        let mut cursor = self.taken(slot)?;
        let columns = cursor.found.columns();
        let row = self.next_row(&mut cursor.found);
        self.frame.held[slot] = Held::Cursor(Some(cursor), true);
        let row = row?;
        let is_found = row.is_some();
        if let Some(into) = into {
            self.give_row(&into.targets, &columns, row).await?;
        }
        self.counted(u64::from(is_found))
    }

    pub(super) fn close(&mut self, slot: usize) -> Result<()> {
        self.taken(slot).map(drop)
    }

    fn taken(&mut self, slot: usize) -> Result<Box<OpenCursor>> {
        let held = &mut self.frame.held[slot];
        let declared = &self.compiled.body.slots[slot];
        let name = &declared.name;
        let is_bound = matches!(declared.declared, Declared::Cursor(Some(_)));
        match held {
            Held::Cursor(cursor @ Some(_), _) => {
                let taken = cursor.take();
                taken.ok_or_else(|| SqlError::internal("a cursor that is not open"))
            }
            Held::Cursor(None, was_open) if *was_open || is_bound => {
                let message = format!("cursor \"{name}\" does not exist");
                Err(SqlError::new("34000", message))
            }
            _ => {
                let message = format!("cursor variable \"{name}\" is null");
                Err(SqlError::new("22004", message))
            }
        }
    }
}
