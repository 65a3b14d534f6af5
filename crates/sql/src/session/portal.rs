//! Portals: a statement with its parameters, and the rows not yet taken from
//! it. Cursors of SQL are portals too and share their names. An analytical
//! result stays a stream while nobody else needs its turn (`unread.rs`); the rows of the
//! short path, and of statements that write, are kept once somebody takes only some of them.

use std::sync::Arc;

use thermocline_engine::Charge;
use thermocline_storage::value::Value;

use super::Session;
use super::prepared::{Planned, Prepared};
use super::scroll::Scroll;
use super::unread::Unread;
use crate::error::{Result, SqlError};
use crate::output::Formats;

/// A portal.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    /// The plan it was bound with; `None` for what is not for the binder.
    pub(super) planned: Option<Arc<Planned>>,
    pub(super) parameters: Vec<Value>,
    pub(super) formats: Formats,
    pub(super) rows: PortalRows,
    /// It outlives its transaction (WITH HOLD).
    pub(super) held: bool,
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

impl Session {
    /// The portal of this name.
    pub(super) fn portal(&self, name: &str) -> Result<&Portal> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    /// Closes the portals that belong to the transaction that ends.
    pub(super) fn close_transaction_portals(&mut self) {
        if !self.portals.is_empty() {
            self.portals.retain(|_, portal| portal.held);
        }
    }
}

#[cold]
pub(super) fn no_portal(name: &str) -> SqlError {
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}
