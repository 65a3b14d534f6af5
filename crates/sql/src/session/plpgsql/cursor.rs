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
        if let Held::Cursor(Some(_)) = self.frame.held[slot] {
            let message = format!("cursor \"{}\" already in use", declared.name);
            return Err(SqlError::new("42P03", message));
        }
        let found = match (rows, &declared.declared) {
            (Some(rows), _) => self.source(rows).await?,
            (None, Declared::Cursor(Some(query))) => self.query(query).await?,
            _ => return Err(SqlError::internal("a cursor without a query")),
        };
        self.frame.held[slot] = Held::Cursor(Some(Box::new(OpenCursor { found })));
        Ok(())
    }

    /// FETCH, or MOVE where nothing takes the row.
    pub(super) async fn fetch(&mut self, slot: usize, into: Option<&Into>) -> Result<()> {
        let mut cursor = self.taken(slot)?;
        let columns = cursor.found.columns();
        let row = self.next_row(&mut cursor.found);
        self.frame.held[slot] = Held::Cursor(Some(cursor));
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
        let held = std::mem::replace(&mut self.frame.held[slot], Held::Cursor(None));
        match held {
            Held::Cursor(Some(cursor)) => Ok(cursor),
            _ => {
                let name = &self.compiled.body.slots[slot].name;
                let message = format!("cursor variable \"{name}\" is null");
                Err(SqlError::new("22004", message))
            }
        }
    }
}
