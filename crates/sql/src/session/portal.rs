//! Portals: a statement with its parameters, and the rows not yet taken from
//! it. Cursors of SQL are portals too and share their names. An analytical
//! result stays a stream while nobody else needs its turn (`unread.rs`). The rows of the
//! short path, and of statements that write, are kept once somebody takes only some of them.

use std::sync::Arc;

use thermocline_engine::Charge;
use thermocline_values::value::Value;

use super::Session;
use super::current_of::{Stand, numbers_of};
use super::prepared::{Planned, Prepared};
use super::scroll::Scroll;
use super::unread::Unread;
use crate::analysis::{CursorFacts, Own};
use crate::error::{Result, SqlError};
use crate::output::Formats;

/// A portal.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    /// The plan it was bound with; `None` for what is no query.
    pub(super) planned: Option<Arc<Planned>>,
    pub(super) parameters: Vec<Value>,
    pub(super) formats: Formats,
    pub(super) rows: PortalRows,
    /// It is executed in the batch in which it was bound: its plan need not be looked at again.
    pub(super) is_fresh: bool,
    /// It outlives its transaction (WITH HOLD).
    pub(super) held: bool,
    /// The rows that it stands on, for WHERE CURRENT OF.
    pub(super) stand: Option<Stand>,
    /// The transaction that declared it has ended.
    pub(super) is_of_before: bool,
    /// How many savepoints there were when a cursor was declared: it goes with what was done since
    /// the last of them. A portal of a message stays.
    pub(super) savepoints: usize,
    /// When it was made, in microseconds since 2000-01-01 UTC.
    pub(super) made_us: i64,
    /// The values of its parameters.
    pub(super) _charge: Option<Charge>,
}

/// The rows of a portal that are not taken yet.
pub(super) enum PortalRows {
    /// It was not executed yet.
    Unstarted,
    /// There are rows, or may be.
    Open(Unread),
    /// Of a cursor that goes back, too.
    Scroll(Box<Scroll>),
    /// All were taken.
    Finished,
}

impl Portal {
    /// Whether its rows may be fetched backwards.
    pub(super) fn goes_back(&self) -> bool {
        matches!(&self.rows, PortalRows::Scroll(scroll) if !scroll.forward_only)
    }

    /// Notes the row on which a cursor that goes back stands.
    ///
    /// # Errors
    /// Those of its file.
    pub(super) fn look(&mut self) -> Result<()> {
        if let (PortalRows::Scroll(scroll), Some(stand)) = (&mut self.rows, &mut self.stand) {
            stand.at = match scroll.position() {
                Some(row) => Some(numbers_of(scroll, row, stand.shown)?),
                None => None,
            };
        }
        Ok(())
    }
}

impl Session {
    /// The portal of this name.
    pub(super) fn portal(&self, name: &str) -> Result<&Portal> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    /// What `pg_cursors` and `pg_prepared_statements` show.
    pub(super) fn own(&self) -> Own {
        let cursor = |(name, portal): (&String, &Portal)| CursorFacts {
            name: name.clone(),
            text: portal.prepared.shown_message(),
            is_held: portal.held,
            is_binary: portal.formats == Formats::Binary,
            goes_back: portal.goes_back(),
            made_us: portal.made_us,
        };
        Own {
            cursors: self.portals.iter().map(cursor).collect(),
            statements: self.statements.facts(),
        }
    }

    /// Closes the portals that belong to the transaction that ends.
    pub(super) fn close_transaction_portals(&mut self) {
        if !self.portals.is_empty() {
            self.portals.retain(|_, portal| portal.held);
        }
    }

    /// Closes the portals of a transaction that has failed, unless a savepoint may bring it back.
    pub(super) fn close_failed_portals(&mut self) {
        if !self.transaction.has_savepoints() {
            self.close_transaction_portals();
        }
    }

    /// What is held outlives a transaction that was committed; with another one it never was.
    pub(super) fn settle_held(&mut self, committed: bool) {
        if !self.portals.is_empty() {
            self.portals.retain(|_, portal| {
                let stays = committed || portal.is_of_before;
                portal.is_of_before = true;
                portal.savepoints = 0;
                stays
            });
        }
    }

    /// Closes the cursors that were declared behind a savepoint that is gone back to.
    pub(super) fn close_cursors_behind(&mut self, savepoints: usize) {
        if !self.portals.is_empty() {
            self.portals
                .retain(|_, portal| portal.savepoints < savepoints);
        }
    }

    /// The cursors that were declared behind a savepoint belong to what is around it.
    pub(super) fn release_cursors(&mut self, savepoints: usize) {
        for portal in self.portals.values_mut() {
            portal.savepoints = portal.savepoints.min(savepoints);
        }
    }
}

#[cold]
pub(super) fn no_portal(name: &str) -> SqlError {
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}
