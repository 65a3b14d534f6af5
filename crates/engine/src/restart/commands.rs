//! Commands of the log's tail: the procedure is run again, on the partition as
//! the records before have left it, and has to do what it did.
//!
//! Nobody else is there: no locks, no snapshots. Rows of transactions that were
//! open are there, unseen. One that stands in the way of a recorded row number
//! or a unique key had been rolled back when the procedure ran.

use std::sync::Arc;

use super::apply::Replayer;
use super::events::Definitions;
use super::tail::Tail;
use crate::access::{Access, RecordedRows, RunKind};
use crate::format::command::Command;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::scope::Scope;
use crate::memory::fetched::Fetched;
use crate::parts::Parts;
use crate::procedure::Procedure;
use crate::rows::fetch::plan;
use thermocline_device::block_on;

impl Tail {
    /// Whether the procedure of a command can be called.
    pub(super) fn check_command(&self, body: &[u8]) -> Result<()> {
        self.procedure_of(&Command::parse(body)?).map(drop)
    }

    fn procedure_of(&self, command: &Command) -> Result<Arc<Procedure>> {
        self.procedures.get(&command.name).ok_or_else(|| {
            Error::raised(
                "42883",
                format!(
                    "the log has a call of procedure {}, which is not registered; register the \
                     procedure, and open the database again",
                    command.name
                ),
            )
        })
    }
}

impl Replayer {
    /// Runs a command again, of which the partition's image does not know.
    pub(super) fn replay_command(
        &mut self,
        db: &Parts,
        tail: &Tail,
        body: &[u8],
        lsn: u64,
    ) -> Result<()> {
        let command = Command::parse(body)?;
        let partition = self.partition;
        let procedure = tail.procedure_of(&command)?;
        for &(storage, row) in &command.inserted {
            let state = db.all_partitions()[usize::from(partition)].lock();
            let dead = state.owner_of((storage, row)).is_some();
            drop(state);
            let table = self.definitions.tables.get(&storage);
            if let Some(table) = table.filter(|_| dead) {
                db.remove_row(table, RowId::new(partition, row))?;
            }
        }
        let catalog = self.definitions.catalog.clone();
        let mut fetched = Fetched::new();
        let mut run = RunKind::default();
        loop {
            let guards = db.lock(&Scope::One(partition))?;
            let taken = std::mem::take(&mut self.scratch);
            let mut access = Access::new(db, guards, None, &fetched, taken, run);
            access.run_again(RecordedRows::new(command.inserted.clone()), &catalog);
            let result = procedure.run(&mut access, &catalog, command.now_us, &command.arguments);
            if access.evicted() {
                let missing = access.missing().iter().map(|m| (m.row, m.address));
                let planned = plan(db.blocks(), missing);
                access.undo();
                self.scratch = access.into_scratch();
                let (reads, pin) = planned?;
                block_on(db.fetcher().fetch(&reads, &mut fetched, u64::MAX))?;
                drop(pin);
                run.attempt += 1;
                continue;
            }
            let why = match result {
                Ok(_) if access.did_as_recorded(command.digest) => {
                    access.finish_overlay(0, false);
                    self.scratch = access.into_scratch();
                    return Ok(());
                }
                Ok(_) => "it changed other rows, or changed them otherwise".to_owned(),
                Err(error @ (Error::OutOfMemory(_) | Error::Io(..))) => return Err(error),
                Err(error) => error.to_string(),
            };
            return Err(Error::Corrupt(format!(
                "procedure {} did not do what it did before the restart ({why}), at {lsn} of the \
                 log: it is not deterministic, or not the one that was called",
                command.name
            )));
        }
    }

    /// Builds the indexes that the catalog has and the partition has not, as soon
    /// as a command may look rows up in them.
    pub(super) fn complete_indexes(&mut self, db: &Parts) -> Result<()> {
        let Definitions { catalog, tables } = &*self.definitions;
        for table in catalog.tables.values() {
            // Rows that are not committed yet may have more columns.
            let table = tables.get(&table.def.storage).unwrap_or(table);
            for position in 0..table.def.indexes.len() {
                db.build_missing_index(table, position, self.partition)?;
            }
        }
        self.indexes_complete = true;
        Ok(())
    }
}
