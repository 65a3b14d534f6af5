//! What all who apply the log's tail share: what it says of all partitions, and who makes room.

use parking_lot::Mutex;

use super::events::Events;
use crate::cold::evict::Evictor;
use crate::ground::error::Result;
use crate::memory::Pressure;
use crate::parts::Parts;
use crate::procedure::Procedures;

/// See the module's head.
pub(super) struct Tail {
    /// The manifest's catalog is as of this place.
    pub catalog_lsn: u64,
    pub events: Events,
    /// Those whose calls the log may have.
    pub procedures: Procedures,
    pub evictor: Mutex<Evictor>,
    /// Nothing is served before all partitions are there: what fails refuses the start.
    pub is_whole: bool,
}

impl Tail {
    /// Evicts while memory is short.
    pub fn make_room(&self, db: &Parts) -> Result<()> {
        db.memory().read_resident();
        if db.memory().pressure() == Pressure::None {
            return Ok(());
        }
        // Threads wait for it, or they would take more. Where partitions are brought by hand all
        // is one thread, and who has it may have paused there for others.
        let is_one_thread = db.settings().simulator.is_some() && !self.is_whole;
        let Some(mut evictor) = (match is_one_thread {
            true => self.evictor.try_lock(),
            false => Some(self.evictor.lock()),
        }) else {
            return Ok(());
        };
        db.memory().read_resident();
        while evictor.step(db)? {
            db.memory().read_resident();
        }
        Ok(())
    }
}
