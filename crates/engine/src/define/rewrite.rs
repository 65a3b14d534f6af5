//! Writing a table's rows anew, into new storage: where columns go, come with a value of each
//! row, or get another type, and where rows are to lie by another key. Old storage and new are
//! there until the transaction ends, which drops one of them.

use std::sync::Arc;

use thermocline_device::Mutation;

use crate::catalog::ddl::{Change, NewTuple};
use crate::catalog::{Table, TableDef};
use crate::define::entries::Strings;
use crate::define::filling::Filling;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::parts::Parts;
use crate::run::interactive::Transaction;
use crate::run::snapshot::SnapshotScan;
use crate::transaction::RunOptions;

impl Parts {
    /// Writes all rows of a table anew, by another definition: columns that are gone, new or of
    /// another type. They go into new storage, which takes the place of the old one at the
    /// commit, as TRUNCATE's does: snapshots from before see no rows from then on.
    ///
    /// # Errors
    /// As [`Parts::ddl`], what `tuple` says, and 23505 where keys that were different are
    /// the same now.
    pub async fn rewrite_table(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        def: TableDef,
        tuple: &NewTuple<'_>,
    ) -> Result<()> {
        let made_of = txn.catalog();
        self.there(options, &Scope::All).await?;
        self.begin_ddl(txn)?;
        self.memory().check_floor("a table that is written anew")?;
        let change = Change::AlterTable(def);
        self.lock_objects(txn, options, &change, &made_of).await?;
        self.check_access(txn, &change)?;
        let Change::AlterTable(mut def) = change else {
            return Err(Error::Internal("a change became another".into()));
        };
        // Tuples of the new storage have one layout, with all columns.
        for column in &mut def.columns {
            column.added_in = 0;
        }
        def.lost.clear();
        let old = self.drafted(txn, def.oid)?;
        self.rebuild(txn, options, &old, def, Some(tuple)).await
    }

    /// Copies the rows of `old` into new storage with another definition: as `new_tuple` makes
    /// them, or as they are.
    pub(crate) async fn rebuild(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        old: &Arc<Table>,
        def: TableDef,
        new_tuple: Option<&NewTuple<'_>>,
    ) -> Result<()> {
        // What it reads of the new storage it has read of the old one, which is there again when
        // it goes back to a savepoint.
        txn.note_table_read(old)?;
        let table = self.swap_storage(txn, old, def)?;
        let snapshot = txn.snapshot_of_now()?;
        let is_read =
            |partition: &u16| *partition != 1 || !Mutation::PartitionNotRewritten.is_made();
        let mut scans: Vec<SnapshotScan> = (0..self.partitions())
            .filter(is_read)
            .map(|partition| snapshot.scan(old, partition))
            .collect();
        let mut filling = Filling::new(self, options, &table, self.row_estimate(old));
        let (mut chunk, mut new) = (Strings::default(), Vec::new());
        // A chunk of each in turn: rows that came with ascending keys go into indexes so, too.
        while !scans.is_empty() {
            let mut left = Vec::with_capacity(scans.len());
            for mut scan in scans {
                options.cancel.check()?;
                let mut taken = Ok(());
                chunk.clear(usize::MAX);
                let more = scan
                    .next_chunk(&mut |_, tuple| match new_tuple {
                        // To make another takes longer than a partition should be held.
                        Some(_) => chunk.push(tuple),
                        None if taken.is_ok() => taken = filling.take(tuple),
                        None => {}
                    })
                    .await?;
                taken?;
                for tuple in chunk.iter() {
                    new.clear();
                    if let Some(new_tuple) = new_tuple {
                        new_tuple(old, tuple, &table, &mut new)?;
                    }
                    filling.take(&new)?;
                    if filling.is_full() {
                        filling.place(txn).await?;
                    }
                }
                if filling.is_full() {
                    filling.place(txn).await?;
                }
                self.interruptible(options, self.wait_for_room()).await??;
                if more {
                    left.push(scan);
                }
            }
            scans = left;
        }
        filling.finish(txn).await
    }
}
