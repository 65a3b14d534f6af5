//! Sequences. Values are handed out in memory; the log is written ahead for a batch of them,
//! so that a crash skips values but never repeats one that anybody was told: [`Given`] says
//! up to where the log must be durable before that. It is logged half a batch before it is
//! needed, so that hardly anybody waits for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thermocline_device::Mutation;

use crate::catalog::SequenceDef;
use crate::catalog::sequence::{Place, Sequence, SequenceState, Way};
use crate::format::record::{Reader, RecordKind, record_head};
use crate::ground::error::{Error, Result, log_failed};
use crate::parts::Parts;
use crate::transaction::RunOptions;

/// Values that are logged ahead.
const LOGGED_AHEAD: u32 = 32;
/// The next are logged when so many are left.
const RENEWED_AT: u32 = LOGGED_AHEAD / 2;

/// A value of a sequence that nobody was told yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a value is not told before the log is durable that keeps it from coming again"]
pub struct Given {
    /// The value.
    pub value: i64,
    /// Up to where the log has to be durable before anybody is told: see
    /// [`Parts::wait_for_log`].
    pub logged_to: u64,
}

/// Moves to the next value.
fn step(def: &SequenceDef, state: &mut Place) -> Result<()> {
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

/// The place to log, and how many values it is beyond `at`.
fn bound_after(def: &SequenceDef, at: Place) -> (Place, u32) {
    let (mut bound, mut ahead) = (at, 0);
    while ahead < LOGGED_AHEAD && step(def, &mut bound).is_ok() {
        ahead += 1;
    }
    (bound, ahead)
}

impl Parts {
    fn sequence(&self, oid: u32) -> Result<Arc<Sequence>> {
        self.sequences().read().get(&oid).cloned().ok_or_else(|| {
            Error::catalog(
                "42P01",
                format!("the sequence with OID {oid} does not exist"),
            )
        })
    }

    /// Logs that no value before this place comes again; where the record ends.
    fn log_bound(&self, oid: u32, bound: Place) -> Result<u64> {
        let mut body = [0; 13];
        body[..4].copy_from_slice(&oid.to_le_bytes());
        body[4..12].copy_from_slice(&bound.value.to_le_bytes());
        body[12] = u8::from(bound.is_called);
        self.append_log(&[&record_head(RecordKind::Sequence, 0), &body])
    }

    /// `nextval`. `def` comes from the catalog that the caller sees.
    pub fn next_value(&self, def: &SequenceDef) -> Result<Given> {
        self.check_open()?;
        let sequence = self.sequence(def.oid)?;
        let mut state = sequence.state.lock();
        let mut next = *state;
        step(def, &mut next.at)?;
        if next.ahead == 0 || next.way != Some(Way::of(def)) {
            (next.bound, next.ahead) = bound_after(def, next.at);
            next.logged_to = [self.log_bound(def.oid, next.bound)?; 2];
            next.way = Some(Way::of(def));
            next.covered = 0;
        } else {
            next.ahead -= 1;
        }
        let of_before = next.covered > 0;
        next.covered -= u32::from(of_before);
        let logged_to = next.logged_to[usize::from(of_before)];
        *state = next;
        if next.ahead == RENEWED_AT && next.covered == 0 {
            // In time, and by the way: a log that takes nothing is met when it is needed.
            let (bound, ahead) = bound_after(def, next.at);
            if let Ok(logged) = self.log_bound(def.oid, bound) {
                state.covered = next.ahead;
                (state.bound, state.ahead) = (bound, ahead);
                state.logged_to = [logged, next.logged_to[0]];
            }
        }
        Ok(Given {
            value: next.at.value,
            logged_to: logged_to.max(self.sequences_made().load(Ordering::Acquire)),
        })
    }

    /// `setval`. Up to where the log has to be durable before anybody is told.
    pub fn set_value(&self, def: &SequenceDef, value: i64, is_called: bool) -> Result<u64> {
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
        let logged_to = self.log_bound(def.oid, Place { value, is_called })?;
        *state = SequenceState::new(value, is_called);
        Ok(logged_to)
    }

    /// Waits until the log is durable up to there, as long as the statement may take.
    pub async fn wait_for_log(&self, options: &RunOptions, lsn: u64) -> Result<()> {
        if self.log().durable_lsn() >= lsn || Mutation::NumbersToldEarly.is_made() {
            return Ok(());
        }
        if self.works_alone() {
            return self.log().wait_durable_blocking(lsn).map_err(log_failed);
        }
        let durable = self.log().wait_durable(lsn);
        self.interruptible(options, durable)
            .await?
            .map_err(log_failed)
    }

    /// The last value and whether it was given out.
    pub fn last_value(&self, oid: u32) -> Option<(i64, bool)> {
        let sequence = self.sequences().read().get(&oid).cloned()?;
        let at = sequence.state.lock().at;
        Some((at.value, at.is_called))
    }

    /// Has sequences of the catalog begin again.
    pub(crate) fn restart_sequences(&self, oids: &[u32]) {
        let catalog = self.catalog();
        let sequences = self.sequences().read();
        for oid in oids {
            if let (Some(sequence), Some(def)) = (sequences.get(oid), catalog.sequences.get(oid)) {
                sequence.restore(def.start, false);
            }
        }
    }

    /// Applies a sequence's log record, of which the checkpoint does not know.
    pub(crate) fn replay_sequence(&self, bytes: &[u8]) -> Result<()> {
        let mut reader = Reader(bytes);
        let oid = reader.u32()?;
        let value = reader.u64()? as i64;
        let is_called = reader.u8()? != 0;
        let mut sequences = self.sequences().write();
        match sequences.get(&oid) {
            Some(sequence) => sequence.restore(value, is_called),
            None => {
                // Its catalog record may come later in the log. If none does, another sequence
                // must not get its id: it would begin here.
                self.allocate_oids_after(oid.wrapping_add(1));
                sequences.insert(oid, Sequence::new(value, is_called));
            }
        }
        Ok(())
    }
}
