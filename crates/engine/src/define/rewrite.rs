//! Writing a table's rows anew, into new storage: where columns go, come with a value of each
//! row, or get another type, and where rows are to lie by another key. Old storage and new are
//! there until the transaction ends, which drops one of them.

use std::sync::Arc;

use thermocline_device::Mutation;

use crate::catalog::ddl::{Change, NewTuple};
use crate::catalog::{Table, TableDef};
use crate::define::index_build::duplicated;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::ground::wait::give_way;
use crate::parts::Parts;
use crate::run::interactive::Transaction;
use crate::run::snapshot::SnapshotScan;
use crate::transaction::RunOptions;

/// Rows that are put in their place under one lock of the partitions.
const ROWS_AT_ONCE: usize = 500;

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
        self.rebuild(txn, options, &old, def, tuple).await
    }

    /// Copies the rows of `old`, as `new_tuple` makes them, into new storage with another layout.
    pub(crate) async fn rebuild(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        old: &Arc<Table>,
        def: TableDef,
        new_tuple: &NewTuple<'_>,
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
        // A chunk of each in turn: rows that came with ascending keys go into indexes so, too.
        while !scans.is_empty() {
            let mut left = Vec::with_capacity(scans.len());
            for mut scan in scans {
                options.cancel.check()?;
                let mut rows: Vec<Vec<u8>> = Vec::new();
                let more = scan
                    .next_chunk(|_, tuple| rows.push(tuple.to_vec()))
                    .await?;
                for some in rows.chunks_mut(ROWS_AT_ONCE) {
                    for row in some.iter_mut() {
                        let mut new = Vec::with_capacity(row.len());
                        new_tuple(old, row, &table, &mut new)?;
                        *row = new;
                    }
                    let inserted = self.in_transaction(txn, options, Scope::All, |access| {
                        for tuple in some.iter() {
                            access.insert(&table, tuple)?;
                        }
                        Ok(())
                    });
                    inserted.await.map_err(duplicated)?;
                    give_way().await;
                }
                self.interruptible(options, self.wait_for_room()).await??;
                if more {
                    left.push(scan);
                }
            }
            scans = left;
        }
        Ok(())
    }
}
