//! Commands of the log's tail: the procedure is run again, on the partition as
//! the records before have left it, and has to do what it did.
//!
//! Nobody else is there: no locks, no snapshots. Rows of transactions that were
//! open are there, unseen; one that stands in the way of a recorded row number
//! or a unique key had been rolled back when the procedure ran.

use std::sync::Arc;

use crate::access::{Access, Fetched, RecordedRows, RunKind, Scope, Scratch};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::fetch::plan;
use crate::procedure::command::Command;
use crate::row_id::RowId;
use thermocline_device::block_on;

impl Database {
    /// Runs a command again, of which its partition's image does not know. The
    /// scratch vectors are the caller's, for the next.
    pub(super) fn replay_command(
        self: &Arc<Self>,
        body: &[u8],
        lsn: u64,
        scratch: &mut Box<Scratch>,
    ) -> Result<()> {
        let command = Command::parse(body)?;
        let partition = command.partition;
        let procedure = self.procedures().get(&command.name).ok_or_else(|| {
            Error::raised(
                "42883",
                format!(
                    "the log has a call of procedure {}, which is not registered: open the \
                     database with it in the configured procedures",
                    command.name
                ),
            )
        })?;
        for &(storage, row) in &command.inserted {
            let state = self.partitions[partition as usize].lock();
            let dead = state.owner_of((storage, row)).is_some();
            drop(state);
            let table = self.storages.read().get(&storage).cloned();
            if let Some(table) = table.filter(|_| dead) {
                self.remove_row(&table, RowId::new(partition, row))?;
            }
        }
        let catalog = self.catalog();
        let mut fetched = Fetched::new();
        let mut run = RunKind::default();
        loop {
            let guards = self.lock(&Scope::One(partition))?;
            let taken = std::mem::take(scratch);
            let mut access = Access::new(self, guards, None, &fetched, taken, run);
            access.insert_as(RecordedRows::new(command.inserted.clone()));
            let result = procedure.run(&mut access, &catalog, command.now_us, &command.arguments);
            if access.evicted() {
                let missing = access.missing().iter().map(|m| (m.row, m.address));
                let planned = plan(&self.blocks, missing);
                access.undo();
                *scratch = access.into_scratch();
                let (reads, pin) = planned?;
                block_on(self.fetcher.fetch(&reads, &mut fetched, u64::MAX))?;
                drop(pin);
                run.attempt += 1;
                continue;
            }
            let why = match result {
                Ok(_) if access.did_as_recorded(command.digest) => {
                    access.finish_overlay(0, false);
                    *scratch = access.into_scratch();
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

    /// Builds the indexes that the catalog has and the images have not, as soon
    /// as a command may look rows up in them.
    pub(super) fn complete_indexes(self: &Arc<Self>) -> Result<()> {
        let catalog = self.catalog();
        let storages = self.storages();
        for table in catalog.tables.values() {
            // Rows that are not committed yet may have more columns.
            let table = storages.get(&table.def.storage).unwrap_or(table);
            for position in 0..table.def.indexes.len() {
                self.rebuild_missing_index(table, position)?;
            }
        }
        Ok(())
    }
}
