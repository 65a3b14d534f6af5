//! From results to the client, who may be slower than we are, or not read at all. A stream
//! is read no further than the client takes it, and is at rest meanwhile (`unread.rs`). What
//! is there as a whole goes to a temporary file if it is much and the client waits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use thermocline_engine::{Database, RunOptions};

use super::unread::{Rest, Unread};
use super::{Client, STREAM_BYTES, Session};
use crate::error::Result;
use crate::output::{Formats, RowWriter};

/// A session at rest keeps a buffer for rows up to here, in bytes.
const ROW_BUFFER_BYTES: usize = 8 << 10;
/// Rows asked for at a time.
const PIECE_ROWS: usize = 1024;
/// How long a client may take nothing before its result leaves memory.
const PATIENCE: Duration = Duration::from_millis(100);

impl Client {
    /// Sends what the client takes without waiting; whether that was all.
    async fn flush_now(&mut self) -> Result<bool> {
        let mut flush = pin!(self.flush());
        poll_fn(|context| match flush.as_mut().poll(context) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| true)),
            Poll::Pending => Poll::Ready(Ok(false)),
        })
        .await
    }

    /// Sends for as long as `time`; whether that was all.
    async fn flush_within(&mut self, db: &Database, time: Duration) -> Result<bool> {
        let options = RunOptions::new();
        let mut flush = pin!(self.flush());
        let mut over = pin!(db.wait_for(&options, time));
        poll_fn(|context| {
            if let Poll::Ready(flushed) = flush.as_mut().poll(context) {
                return Poll::Ready(flushed.map(|()| true));
            }
            over.as_mut().poll(context).map(|_| Ok(false))
        })
        .await
    }
}

/// Moves what was written so far to the client.
pub(super) async fn send_rows(
    db: &Database,
    rows: &mut RowWriter,
    client: &mut Client,
) -> Result<()> {
    while let Some(piece) = rows.next_piece()? {
        send_bytes(db, &piece, rows, client).await?;
    }
    let last = rows.take_bytes();
    send_bytes(db, &last, rows, client).await?;
    rows.reuse(last);
    Ok(())
}

/// Sends a piece in parts, so that it is not twice in memory.
async fn send_bytes(
    db: &Database,
    bytes: &[u8],
    rows: &mut RowWriter,
    client: &mut Client,
) -> Result<()> {
    for part in bytes.chunks(STREAM_BYTES) {
        client.out.extend_from_slice(part);
        if client.out.len() < STREAM_BYTES || client.flush_now().await? {
            continue;
        }
        if rows.waits_large() && !client.flush_within(db, PATIENCE).await? {
            // Where no file can be had they stay in memory, for which they are charged.
            let _ = rows.spill(db.spill());
        }
        client.flush().await?;
    }
    Ok(())
}

impl Session {
    /// Keeps a writer's buffer for the next statement: of one large result not for the
    /// session's life.
    pub(super) fn keep_buffer(&mut self, rows: RowWriter) {
        let mut buffer = rows.into_buffer();
        buffer.clear();
        buffer.shrink_to(ROW_BUFFER_BYTES);
        self.row_buffer = buffer;
    }

    /// A result to be read as its client likes.
    pub(super) fn unread(&self, rest: Rest) -> Unread {
        let now = self.engine.db.now();
        self.engine.unread.enter(rest, &self.account, now)
    }

    /// Sends up to `limit` rows as the client takes them. How many, and whether there may be
    /// more.
    pub(super) async fn send_unread(
        &self,
        unread: &Unread,
        rows: &mut RowWriter,
        limit: usize,
        client: &mut Client,
    ) -> Result<(u64, bool)> {
        let db = &*self.engine.db;
        let options = self.options();
        let mut sent = 0;
        let mut more = true;
        while more && sent < limit {
            let mut held = unread.go_on(db, &options).await?;
            let mut waits = false;
            while !waits && sent < limit {
                let next = held.next(rows, (limit - sent).min(PIECE_ROWS));
                let taken = db.interruptible(&options, next).await??;
                if taken == 0 {
                    more = false;
                    break;
                }
                sent += taken;
                if rows.bytes_buffered() >= STREAM_BYTES {
                    rows.move_to(&mut client.out)?;
                    waits = !client.flush_now().await?;
                }
            }
            drop(held);
            if waits {
                client.flush().await?;
            }
        }
        rows.move_to(&mut client.out)?;
        client.flush_if_large().await?;
        Ok((sent as u64, more))
    }

    /// Passes over up to `limit` rows; how many there were, and what is hidden behind so many
    /// columns of the last one.
    pub(super) async fn skip_unread(
        &self,
        unread: &Unread,
        limit: usize,
        shown: Option<usize>,
    ) -> Result<(u64, Option<Vec<i64>>)> {
        let db = Arc::clone(&self.engine.db);
        let options = self.options();
        let mut held = unread.go_on(&db, &options).await?;
        let mut skipped = 0;
        let mut hidden = None;
        while skipped < limit {
            let mut rows = RowWriter::wire(Vec::new(), Formats::Text).hiding(shown);
            let next = held.next(&mut rows, (limit - skipped).min(PIECE_ROWS));
            match db.interruptible(&options, next).await?? {
                0 => break,
                taken => skipped += taken,
            }
            hidden = rows.take_hidden();
        }
        Ok((skipped as u64, hidden))
    }
}
