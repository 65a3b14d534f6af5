//! A message so large that it waits for its memory: nothing of it is taken in
//! beyond what came with its announcement before the session's account has room for
//! all of it. What gets none is read past, so that the connection goes on, and refused.
//! Grants are for whole messages and come in order: clients that each hold a part
//! cannot wait for one another. Who holds a grant and sends nothing while others wait
//! loses it.

use std::sync::Arc;
use std::time::Duration;

use thermocline_engine::{Account, Charge, ChargeKind, Database, RunOptions};
use thermocline_sql::error::SqlError;

pub(crate) struct LargeMessage {
    tag: u8,
    /// With the tag and the length.
    bytes: usize,
    state: State,
}

enum State {
    /// Nobody has asked for its memory.
    Announced,
    /// It has its memory.
    Granted(Charge),
    /// It is read past; so much is still to come.
    Refused { left: usize, error: SqlError },
}

impl LargeMessage {
    /// The longest a message that holds memory may pause while others wait for some.
    pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(2);

    pub(crate) fn announced(tag: u8, bytes: usize) -> Self {
        Self {
            tag,
            bytes,
            state: State::Announced,
        }
    }

    /// What is to be asked for, in bytes, if it has not been.
    pub(crate) fn uncharged(&self) -> Option<u64> {
        matches!(self.state, State::Announced).then_some(self.bytes as u64)
    }

    /// Waits for the memory of a message.
    pub(crate) async fn grant(
        db: &Arc<Database>,
        account: &Account,
        bytes: u64,
    ) -> Result<Charge, SqlError> {
        let mut charge = account.nothing(ChargeKind::Message);
        db.charge_waiting(&mut charge, bytes, &RunOptions::new())
            .await?;
        Ok(charge)
    }

    /// What came of asking.
    pub(crate) fn settle(&mut self, granted: Result<Charge, SqlError>) {
        self.state = match granted {
            Ok(charge) => State::Granted(charge),
            Err(error) => self.refused(error),
        };
    }

    fn refused(&self, error: SqlError) -> State {
        State::Refused {
            left: self.bytes,
            error,
        }
    }

    pub(crate) fn holds_memory(&self) -> bool {
        matches!(self.state, State::Granted(_))
    }

    /// It has paused for too long while others wait.
    pub(crate) fn give_up(&mut self) {
        if self.holds_memory() {
            let error = SqlError::new(
                "53200",
                "out of memory for a message that its client has not finished",
            )
            .with_detail(format!(
                "The message was announced with {} bytes, and others waited for memory.",
                self.bytes
            ))
            .with_hint("Send the message again, or raise memory_limit.");
            self.state = self.refused(error);
        }
    }

    /// How much room the buffer should have beyond the `here` bytes in it.
    pub(crate) fn left(&self, here: usize) -> Option<usize> {
        self.holds_memory()
            .then(|| self.bytes.saturating_sub(here))
            .filter(|left| *left > 0)
    }

    /// How many of the `here` bytes in the buffer are to be thrown away.
    pub(crate) fn read_past(&mut self, here: usize) -> usize {
        match &mut self.state {
            State::Refused { left, .. } => {
                let past = here.min(*left);
                *left -= past;
                past
            }
            _ => 0,
        }
    }

    /// Whether all of it was read past.
    pub(crate) fn is_past(&self) -> bool {
        matches!(self.state, State::Refused { left: 0, .. })
    }

    pub(crate) fn into_refusal(self) -> Option<(u8, SqlError)> {
        match self.state {
            State::Refused { error, .. } => Some((self.tag, error)),
            _ => None,
        }
    }

    pub(crate) fn into_charge(self) -> Option<Charge> {
        match self.state {
            State::Granted(charge) => Some(charge),
            _ => None,
        }
    }
}
