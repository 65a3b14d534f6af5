//! Sequences. Values are handed out in memory; the log is written ahead for a batch of them,
//! so that a crash skips values but never repeats one that anybody was told: [`Given`] says
//! up to where the log must be durable before that. It is logged half a batch before it is
//! needed, so that hardly anybody waits for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thermocline_device::Mutation;
use thermocline_storage::log::Lsn;

use crate::catalog::SequenceDef;
use crate::catalog::sequence::{Place, Restarted, Sequence, SequenceState, Way};
use crate::format::record::{Reader, RecordKind, record_head};
use crate::ground::error::{Error, Result, log_failed};
use crate::ground::txn_id::TxnId;
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
        if let Some(place) = state.restarted_for(def) {
            // The commit logs where it has come to.
            step(def, place)?;
            return Ok(Given {
                value: place.value,
                logged_to: 0,
            });
        }
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
        if let Some(place) = state.restarted_for(def) {
            *place = Place { value, is_called };
            return Ok(0);
        }
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

    /// The last value and whether it was given out. `def` comes from the catalog that the caller sees.
    pub fn last_value(&self, def: &SequenceDef) -> Option<(i64, bool)> {
        let sequence = self.sequences().read().get(&def.oid).cloned()?;
        let mut state = *sequence.state.lock();
        let own = state.restarted_for(def).copied();
        let at = own.unwrap_or(state.at);
        Some((at.value, at.is_called))
    }

    /// Has a sequence begin again at a place, for this transaction, which has locked it.
    pub(crate) fn begin_again_for(&self, oid: u32, by: TxnId, value: i64) -> Result<Restarted> {
        let begin = Place {
            value,
            is_called: false,
        };
        let sequence = self.sequence(oid)?;
        let before = sequence.state.lock().restarted.replace((by.0, begin));
        Ok(Restarted { oid, before })
    }

    /// The transaction that had them begin again is taken back, or a part of it.
    pub(crate) fn take_restarts_back(&self, restarted: &[Restarted]) {
        let sequences = self.sequences().read();
        for one in restarted.iter().rev() {
            if let Some(sequence) = sequences.get(&one.oid) {
                sequence.state.lock().restarted = one.before;
            }
        }
    }

    /// Those of which the transaction took nothing: a commit's own record has them begin again.
    pub(crate) fn begun_again(&self, restarted: &[Restarted]) -> Vec<u32> {
        let catalog = self.catalog();
        let oids = restarted.iter().map(|one| one.oid);
        let unused = oids.filter(|oid| {
            let start = catalog.sequences.get(oid).map(|def| Place {
                value: def.start,
                is_called: false,
            });
            let sequence = self.sequences().read().get(oid).cloned();
            let at = sequence.and_then(|sequence| sequence.state.lock().restarted);
            at.is_some_and(|(_, at)| Some(at) == start)
        });
        unused.collect()
    }

    /// Before the commit's record: where the transaction has come beyond what is logged, no value
    /// of its own may come again, whichever records a crash leaves. Those that are skipped if
    /// this one is left alone do no harm.
    pub(crate) fn log_restarts(&self, restarted: &[Restarted]) -> Result<()> {
        let catalog = self.catalog();
        for Restarted { oid, .. } in restarted {
            let sequence = self.sequences().read().get(oid).cloned();
            let (Some(sequence), Some(def)) = (sequence, catalog.sequences.get(oid)) else {
                continue;
            };
            let state = *sequence.state.lock();
            let is_beyond = |(_, at): &(u64, Place)| match def.increment > 0 {
                true => at.value > state.bound.value,
                false => at.value < state.bound.value,
            };
            if let Some((_, at)) = state.restarted.filter(is_beyond) {
                self.log_bound(*oid, at)?;
            }
        }
        Ok(())
    }

    /// Behind the commit's record: where the transaction has come to holds for all. Up to where
    /// the log has to be durable for that.
    pub(crate) fn commit_restarts(&self, restarted: &[Restarted]) -> Option<Lsn> {
        let sequences = self.sequences().read();
        let mut logged = None;
        for Restarted { oid, .. } in restarted {
            let Some(sequence) = sequences.get(oid) else {
                continue;
            };
            let mut state = sequence.state.lock();
            // `None` for one that it had begin again twice.
            let Some((_, at)) = state.restarted.take() else {
                continue;
            };
            // A log that takes nothing stops the database.
            logged = self.log_bound(*oid, at).ok().or(logged);
            *state = SequenceState::new(at.value, at.is_called);
        }
        logged
    }

    /// Has sequences of the catalog begin again, as a commit's record in the log says.
    pub(crate) fn begin_sequences_again(&self, oids: &[u32]) {
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
