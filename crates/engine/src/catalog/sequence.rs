//! What is known of a sequence: the last value that was given out, and how far the log is ahead.
//! How values are given out is in `sequences`.

use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_device::Mutation;

use crate::catalog::SequenceDef;

/// A sequence's state.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub state: Mutex<SequenceState>,
}

/// A sequence that begins again when its transaction commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restarted {
    pub oid: u32,
    /// Where the transaction was with it before, if it had it begin again already.
    pub before: Option<(u64, Place)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SequenceState {
    pub at: Place,
    /// What is logged: no value before it comes again.
    pub bound: Place,
    /// How values follow each other up to the bound.
    pub way: Option<Way>,
    /// Values up to the bound.
    pub ahead: u32,
    /// How many of these the record before the bound's covers.
    pub covered: u32,
    /// Where the bound's record ends, and the one's before.
    pub logged_to: [u64; 2],
    /// The transaction that has it begin again (TRUNCATE ... RESTART IDENTITY, ALTER SEQUENCE ...
    /// RESTART), and where it is for that one, until it ends. Others go on where they were; PostgreSQL
    /// has them wait. Nothing of it is logged before: after a crash it never was.
    pub restarted: Option<(u64, Place)>,
}

/// The last value given, or the first to give if none was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub value: i64,
    pub is_called: bool,
}

/// What a definition says of the values' order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycle: bool,
}

impl Way {
    pub fn of(def: &SequenceDef) -> Way {
        Way {
            increment: def.increment,
            min: def.min,
            max: def.max,
            cycle: def.cycle,
        }
    }
}

impl SequenceState {
    /// Where it is for the transaction that had it begin again, if that sees this definition.
    pub fn restarted_for(&mut self, def: &SequenceDef) -> Option<&mut Place> {
        let (_, place) = self
            .restarted
            .as_mut()
            .filter(|(by, _)| *by == def.restarted_by)?;
        Some(place)
    }

    pub fn new(value: i64, is_called: bool) -> Self {
        let at = Place { value, is_called };
        SequenceState {
            at,
            bound: at,
            ..SequenceState::default()
        }
    }
}

impl Sequence {
    pub fn new(value: i64, is_called: bool) -> Arc<Self> {
        Arc::new(Sequence {
            state: Mutex::new(SequenceState::new(value, is_called)),
        })
    }

    /// What a checkpoint keeps: a state from which no value repeats.
    pub fn durable(&self) -> (i64, bool) {
        let state = self.state.lock();
        let bound = match Mutation::NumbersLoggedForgotten.is_made() {
            true => state.at,
            false => state.bound,
        };
        (bound.value, bound.is_called)
    }

    pub fn restore(&self, value: i64, is_called: bool) {
        *self.state.lock() = SequenceState::new(value, is_called);
    }
}
