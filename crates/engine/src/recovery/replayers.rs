//! Replayers in threads: each has its share of the partitions and applies what it
//! is handed, in that order.
//!
//! Pieces are copied out of the log's buffer into batches. There are a few of
//! them for each thread, and none more: who hands out waits for one to come back,
//! so that what is under way takes a bounded part of the memory limit. The
//! first error stops all; no thread outlives the call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::apply::{Action, Piece, Replayer, Shared};
use super::replay::Hands;
use crate::error::{Error, Result};
use crate::transaction::TxnId;

/// Bytes of a batch, unless a single piece has more.
const BATCH_BYTES: usize = 128 << 10;
/// Pieces of a batch.
const BATCH_PIECES: usize = 1024;
/// Batches of each thread: being filled, waiting, being applied.
const BATCHES: usize = 3;

/// Pieces on their way to a replayer.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    pieces: Vec<Held>,
}

/// A piece whose body ends here in its batch, and begins where the last ended.
struct Held {
    action: Action,
    lsn: u64,
    transaction: TxnId,
    end: usize,
}

impl Batch {
    fn push(&mut self, piece: &Piece<'_>) {
        self.bytes.extend_from_slice(piece.body);
        self.pieces.push(Held {
            action: piece.action,
            lsn: piece.lsn,
            transaction: piece.transaction,
            end: self.bytes.len(),
        });
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.pieces.len() >= BATCH_PIECES
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.bytes.clear();
        // A large record leaves nothing behind.
        self.bytes.shrink_to(2 * BATCH_BYTES);
    }

    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut begin = 0;
        self.pieces.iter().map(move |held| Piece {
            action: held.action,
            lsn: held.lsn,
            transaction: held.transaction,
            body: &self.bytes[std::mem::replace(&mut begin, held.end)..held.end],
        })
    }
}

/// The way to a replayer's thread and back.
struct Lane {
    full: Sender<Batch>,
    empty: Receiver<Batch>,
    filling: Batch,
    /// Batches sent that have not come back.
    sent: usize,
}

impl Lane {
    fn push(&mut self, piece: &Piece<'_>) -> Result<()> {
        self.filling.push(piece);
        match self.filling.is_full() {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// Sends what was filled, and has an empty batch in its place.
    fn send(&mut self) -> Result<()> {
        let next = match self.sent + 1 < BATCHES {
            true => Batch::default(),
            false => self.take_back()?,
        };
        let full = std::mem::replace(&mut self.filling, next);
        self.full.send(full).map_err(|_| ended())?;
        self.sent += 1;
        Ok(())
    }

    fn take_back(&mut self) -> Result<Batch> {
        let batch = self.empty.recv().map_err(|_| ended())?;
        self.sent -= 1;
        Ok(batch)
    }

    /// Waits until all that was pushed is applied.
    fn wait(&mut self) -> Result<()> {
        if !self.filling.pieces.is_empty() {
            self.send()?;
        }
        while self.sent > 0 {
            drop(self.take_back()?);
        }
        Ok(())
    }
}

/// A thread is gone: what it said to that is found when it is joined.
fn ended() -> Error {
    Error::Internal("a thread that applies the log has ended".into())
}

/// The threads, as whoever reads the log sees them.
pub(super) struct Replayers {
    lanes: Vec<Lane>,
}

impl Replayers {
    /// Has a piece applied that is of one partition.
    pub fn give(&mut self, partition: u16, piece: &Piece<'_>) -> Result<()> {
        let lane = usize::from(partition) % self.lanes.len();
        self.lanes[lane].push(piece)
    }

    /// Has a piece applied in all partitions.
    pub fn give_all(&mut self, piece: &Piece<'_>) -> Result<()> {
        self.lanes.iter_mut().try_for_each(|lane| lane.push(piece))
    }

    /// Waits until all that was given is applied.
    pub fn wait(&mut self) -> Result<()> {
        // All at work first.
        for lane in self.lanes.iter_mut() {
            if !lane.filling.pieces.is_empty() {
                lane.send()?;
            }
        }
        self.lanes.iter_mut().try_for_each(Lane::wait)
    }
}

/// Runs `dispatch` with so many threads that apply what it gives.
pub(super) fn replay_in_threads<T>(
    shared: &Shared<'_>,
    threads: usize,
    dispatch: impl FnOnce(&mut Hands<'_>) -> Result<T>,
) -> Result<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut workers = Vec::new();
        let mut started = Ok(());
        for number in 0..threads {
            let (full, filled) = channel();
            let (emptied, empty) = channel();
            let work = {
                let stop = &stop;
                move || {
                    let replayer = Replayer::new(shared, number, threads);
                    let applied = apply_batches(replayer, &filled, &emptied, stop);
                    if applied.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    applied
                }
            };
            let builder = thread::Builder::new().name("replayer".into());
            match builder.spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    started = Err(Error::io(error, "starting a thread"));
                    break;
                }
            }
            lanes.push(Lane {
                full,
                empty,
                filling: Batch::default(),
                sent: 0,
            });
        }
        let mut hands = Hands::Others(Replayers { lanes });
        let result = started.and_then(|()| dispatch(&mut hands));
        if result.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        // Without it the threads come to their end.
        drop(hands);
        let mut first: Option<(u64, Error)> = None;
        for worker in workers {
            let applied = worker
                .join()
                .unwrap_or_else(|_| Err((0, Error::Internal("applying the log panicked".into()))));
            if let Err((lsn, error)) = applied
                && first.as_ref().is_none_or(|(other, _)| lsn < *other)
            {
                first = Some((lsn, error));
            }
        }
        match first {
            Some((_, error)) => Err(error),
            None => result,
        }
    })
}

/// A thread's life. An error comes with the record at which it happened.
fn apply_batches(
    mut replayer: Replayer<'_>,
    filled: &Receiver<Batch>,
    emptied: &Sender<Batch>,
    stop: &AtomicBool,
) -> std::result::Result<(), (u64, Error)> {
    while let Ok(mut batch) = filled.recv() {
        for piece in batch.pieces() {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            replayer.apply(&piece).map_err(|error| (piece.lsn, error))?;
        }
        batch.clear();
        // Nobody wants it back at the end.
        let _ = emptied.send(batch);
    }
    Ok(())
}
