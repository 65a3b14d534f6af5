//! Sequences. Values are handed out in memory; the log is written ahead for a
//! batch of them, so that a crash skips values but never repeats one.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::catalog::SequenceDef;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::record::{Reader, RecordKind, record_head};

/// Values that are logged ahead.
const LOGGED_AHEAD: i64 = 32;

/// A sequence's state.
#[derive(Debug)]
pub(crate) struct Sequence {
    state: Mutex<SequenceState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequenceState {
    /// The last value given, or the first to give if none was.
    pub value: i64,
    pub is_called: bool,
    /// Values that may still be given without logging.
    ahead: i64,
}

impl Sequence {
    pub fn new(value: i64, is_called: bool) -> Arc<Self> {
        Arc::new(Sequence {
            state: Mutex::new(SequenceState {
                value,
                is_called,
                ahead: 0,
            }),
        })
    }

    /// What a checkpoint keeps: a state from which no value repeats.
    pub fn durable(&self, def: &SequenceDef) -> (i64, bool) {
        let mut beyond = *self.state.lock();
        for _ in 0..beyond.ahead {
            if step(def, &mut beyond).is_err() {
                break;
            }
        }
        (beyond.value, beyond.is_called)
    }

    pub fn restore(&self, value: i64, is_called: bool) {
        *self.state.lock() = SequenceState {
            value,
            is_called,
            ahead: 0,
        };
    }
}

/// Moves to the next value.
fn step(def: &SequenceDef, state: &mut SequenceState) -> Result<()> {
    if !state.is_called {
        state.is_called = true;
        return Ok(());
    }
    let next = state.value.checked_add(def.increment);
    state.value = match next.filter(|n| (def.min..=def.max).contains(n)) {
        Some(next) => next,
        None if def.cycle && def.increment > 0 => def.min,
        None if def.cycle => def.max,
        None => {
            let (kind, bound) = if def.increment > 0 {
                ("maximum", def.max)
            } else {
                ("minimum", def.min)
            };
            return Err(Error::catalog(
                "2200H",
                format!(
                    "nextval: reached {kind} value of sequence \"{}\" ({bound})",
                    def.name
                ),
            ));
        }
    };
    Ok(())
}

/// The body of a sequence's log record.
fn body(oid: u32, value: i64, is_called: bool) -> [u8; 13] {
    let mut body = [0; 13];
    body[..4].copy_from_slice(&oid.to_le_bytes());
    body[4..12].copy_from_slice(&value.to_le_bytes());
    body[12] = u8::from(is_called);
    body
}

impl Database {
    fn sequence(&self, oid: u32) -> Result<Arc<Sequence>> {
        self.sequences.read().get(&oid).cloned().ok_or_else(|| {
            Error::catalog(
                "42P01",
                format!("the sequence with OID {oid} does not exist"),
            )
        })
    }

    /// `nextval`. `def` comes from the catalog that the caller sees.
    pub fn next_value(&self, def: &SequenceDef) -> Result<i64> {
        self.check_open()?;
        let sequence = self.sequence(def.oid)?;
        let mut state = sequence.state.lock();
        let mut next = *state;
        step(def, &mut next)?;
        if state.ahead == 0 {
            let mut beyond = next;
            let mut ahead = 0;
            while ahead < LOGGED_AHEAD && step(def, &mut beyond).is_ok() {
                ahead += 1;
            }
            self.append_log(&[
                &record_head(RecordKind::Sequence, 0),
                &body(def.oid, beyond.value, beyond.is_called),
            ])?;
            next.ahead = ahead;
        } else {
            next.ahead = state.ahead - 1;
        }
        *state = next;
        Ok(next.value)
    }

    /// `setval`.
    pub fn set_value(&self, def: &SequenceDef, value: i64, is_called: bool) -> Result<()> {
        self.check_open()?;
        if !(def.min..=def.max).contains(&value) {
            return Err(Error::catalog(
                "22003",
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    def.name, def.min, def.max
                ),
            ));
        }
        let sequence = self.sequence(def.oid)?;
        let mut state = sequence.state.lock();
        self.append_log(&[
            &record_head(RecordKind::Sequence, 0),
            &body(def.oid, value, is_called),
        ])?;
        *state = SequenceState {
            value,
            is_called,
            ahead: 0,
        };
        Ok(())
    }

    /// The last value and whether it was given out.
    pub fn last_value(&self, oid: u32) -> Option<(i64, bool)> {
        let sequence = self.sequences.read().get(&oid).cloned()?;
        let state = sequence.state.lock();
        Some((state.value, state.is_called))
    }

    /// Applies a sequence's log record.
    pub(crate) fn replay_sequence(&self, bytes: &[u8]) -> Result<()> {
        let mut reader = Reader(bytes);
        let oid = reader.u32()?;
        let value = reader.u64()? as i64;
        let is_called = reader.u8()? != 0;
        let mut sequences = self.sequences.write();
        match sequences.get(&oid) {
            Some(sequence) => sequence.restore(value, is_called),
            None => {
                // Its catalog record may come later in the log.
                sequences.insert(oid, Sequence::new(value, is_called));
            }
        }
        Ok(())
    }
}
