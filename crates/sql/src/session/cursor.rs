//! Cursors of SQL: DECLARE, FETCH, MOVE. They are portals (`portal.rs`). One that goes back keeps
//! all its rows (`scroll.rs`): where SCROLL says so, and where nothing is said and they are few.

use std::future::ready;
use std::sync::Arc;

use super::portal::{Portal, PortalRows};
use super::prepared::Prepared;
use super::run::Run;
use super::scroll::Scroll;
use super::transaction::Block;
use super::utility::no_cursor;
use super::{Client, STREAM_BYTES, Session};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{Formats, RowWriter};
use crate::parse::statement::{Declare, Direction, Fetch, Statement};

/// Rows that are written before it is asked whether the statement is to go on.
const PIECE_ROWS: usize = 1024;

impl Session {
    pub(super) async fn declare(&mut self, declare: &Declare, run: &Run<'_>) -> Result<()> {
        if !declare.hold && !self.is_in_block() {
            return Err(SqlError::new(
                "25P01",
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if self.portals.contains_key(&declare.name) {
            return Err(SqlError::new(
                "42P03",
                format!("cursor \"{}\" already exists", declare.name),
            ));
        }
        let text = Arc::clone(&run.prepared.text);
        let charge = self.charge_prepared(&text).await?;
        let query = Statement::Query(declare.query.clone());
        let prepared = Prepared::new(text, Some(query), run.prepared.declared.clone());
        let prepared = prepared
            .of_message(run.prepared)
            .of_depth(run.prepared.depth);
        let prepared = Arc::new(prepared.charged(charge));
        let planned = self.plan(&prepared, &declare.query).await?;
        let mut portal = Portal {
            prepared,
            planned: Some(Arc::clone(&planned)),
            parameters: Vec::new(),
            formats: if declare.binary {
                Formats::Binary
            } else {
                Formats::Text
            },
            rows: PortalRows::Unstarted,
            is_fresh: false,
            held: declare.hold,
            stand: None,
            // The statement is its own transaction where there is no other.
            is_of_before: self.transaction.block() == Block::None,
            savepoints: self.transaction.savepoints(),
            made_us: self.context.activity().statement_us,
            _charge: None,
        };
        if !self.start_standing(&mut portal, &planned).await? {
            self.start_portal(&mut portal, &declare.query).await?;
        }
        let mut scroll = None;
        if let PortalRows::Open(unread) = &portal.rows {
            let db = Arc::clone(&self.engine.db);
            let options = self.options();
            let mut held = unread.go_on(&db, &options).await?;
            if declare.hold || declare.scroll == Some(true) {
                // While its transaction is there.
                held.keep_all(&db, &options).await?;
            }
            let goes_back = match declare.scroll {
                Some(scroll) => scroll,
                None => held.is_small(&db, &options).await?,
            };
            if goes_back {
                let (kept, columns) = held.take_kept();
                scroll = Some(Scroll::of(kept, columns, &self.account, db.spill())?);
            }
        }
        if let (PortalRows::Scroll(scroll), Some(false)) = (&mut portal.rows, declare.scroll) {
            scroll.forward_only = true;
        }
        if let Some(scroll) = scroll {
            portal.rows = PortalRows::Scroll(Box::new(scroll));
        }
        self.portals.insert(declare.name.clone(), portal);
        Ok(())
    }

    pub(super) async fn fetch(
        &mut self,
        fetch: &Fetch,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        let mut portal = self
            .portals
            .remove(&fetch.cursor)
            .ok_or_else(|| no_cursor(&fetch.cursor))?;
        let columns = portal
            .planned
            .as_ref()
            .and_then(|planned| planned.columns.clone())
            .unwrap_or_default();
        // Bind says the formats of this FETCH alone; in the simple protocol they are as declared.
        let declared = portal.formats.clone();
        if !run.describe {
            portal.formats = run.formats.clone();
        } else if !fetch.skip {
            messages::row_description(&mut client.out, &columns, &portal.formats);
        }
        let is_forward = match fetch.direction {
            Direction::Relative(by) => by > 0,
            Direction::Forward(count) => count != Some(0),
            _ => false,
        };
        if !is_forward && !portal.goes_back() {
            portal.formats = declared;
            self.portals.insert(fetch.cursor.clone(), portal);
            return Err(SqlError::new("55000", "cursor can only scan forward")
                .with_hint("Declare it with SCROLL option to enable backward scan."));
        }
        let count = match (&mut portal.rows, fetch.direction) {
            (PortalRows::Scroll(scroll), direction) if fetch.skip => {
                let count = scroll.pass(direction).count as u64;
                portal.look()?;
                count
            }
            (PortalRows::Scroll(_), direction) => {
                self.send_scrolled(&mut portal, direction, client).await?
            }
            (_, Direction::Relative(by @ 1..)) => {
                let before = usize::try_from(by - 1).unwrap_or(usize::MAX);
                self.go_forward(&mut portal, before, true, client).await?;
                self.go_forward(&mut portal, 1, fetch.skip, client).await?
            }
            (_, Direction::Forward(count)) => {
                let count = count.map_or(usize::MAX, |count| {
                    usize::try_from(count).unwrap_or(usize::MAX)
                });
                self.go_forward(&mut portal, count, fetch.skip, client)
                    .await?
            }
            _ => {
                return Err(SqlError::internal(
                    "a cursor that goes back without its rows",
                ));
            }
        };
        portal.formats = declared;
        self.portals.insert(fetch.cursor.clone(), portal);
        self.rows_processed = count;
        Self::fetched(client, fetch.skip, count);
        Ok(())
    }

    /// Sends or passes over up to `limit` rows of a cursor that only goes forward.
    async fn go_forward(
        &mut self,
        portal: &mut Portal,
        limit: usize,
        skip: bool,
        client: &mut Client,
    ) -> Result<u64> {
        match &portal.rows {
            PortalRows::Open(unread) if skip => {
                let shown = portal.stand.as_ref().map(|stand| stand.shown);
                let (count, at) = self.skip_unread(unread, limit, shown).await?;
                if let Some(stand) = &mut portal.stand {
                    stand.at = at.filter(|_| count == limit as u64);
                }
                Ok(count)
            }
            _ => Ok(self.send_portal_rows(portal, limit, client).await?.0),
        }
    }

    /// Sends the rows that lie in a direction of a cursor that goes back; how many.
    pub(super) async fn send_scrolled(
        &mut self,
        portal: &mut Portal,
        direction: Direction,
        client: &mut Client,
    ) -> Result<u64> {
        let PortalRows::Scroll(scroll) = &mut portal.rows else {
            return Ok(0);
        };
        let (db, options) = (Arc::clone(&self.engine.db), self.options());
        let buffer = std::mem::take(&mut self.row_buffer);
        let rows = RowWriter::wire(buffer, portal.formats.clone());
        let shown = portal.stand.as_ref().map(|stand| stand.shown);
        let mut rows = rows.styled(self.context.styles()).hiding(shown);
        let span = scroll.pass(direction);
        for at in 0..span.count {
            let number = match span.backward {
                true => span.first - at,
                false => span.first + at,
            };
            scroll.write(number, &mut rows)?;
            if at % PIECE_ROWS == PIECE_ROWS - 1 {
                db.interruptible(&options, ready(())).await?;
            }
            if rows.bytes_buffered() >= STREAM_BYTES {
                rows.move_to(&mut client.out)?;
                client.flush().await?;
            }
        }
        rows.move_to(&mut client.out)?;
        client.flush_if_large().await?;
        self.keep_buffer(rows);
        portal.look()?;
        Ok(span.count as u64)
    }
}
