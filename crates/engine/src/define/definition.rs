//! DDL inside transactions.
//!
//! A transaction works on a draft of the catalog that only it sees ([`crate::catalog::draft`]). What it
//! changes it locks first: tables, and names, schemas, sequences, views, roles and rights. The
//! commit swaps the draft in under the locks of all partitions; a rollback
//! drops what was made. TRUNCATE gives a table new storage, so that its rows
//! come back by a rollback and the old ones cost nothing to drop.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thermocline_storage::log::Lsn;

use crate::access::Guards;
use crate::catalog::ddl::{
    Change, drop_function, drop_schema, drop_tablespace, free_name, free_row_name, has_schema,
    has_tablespace, is_free_for, is_read_by_none, name_taken, put_function, put_sequence,
    put_tablespace, put_type, put_view, with_trigger,
};
use crate::catalog::draft::Draft;
use crate::catalog::objects_by_number::{changes, retain};
use crate::catalog::sequence::Sequence;
use crate::catalog::{Catalog, IndexDef, SchemaDef, Table, TableDef, is_of_none};
use crate::format::record::{RecordKind, record_head};
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::ground::txn_id::Timestamp;
use crate::parts::Parts;
use crate::run::interactive::Transaction;
use crate::transaction::{RunOptions, TxnState};

impl Parts {
    /// Carries out a change of the catalog in a transaction. Others see it when
    /// that commits.
    pub async fn ddl(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        change: Change,
    ) -> Result<()> {
        // What the change was made out of: others may commit while this waits.
        let made_of = txn.catalog();
        self.there(options, &Scope::All).await?;
        self.begin_ddl(txn)?;
        if let Some(what) = change.what_grows() {
            self.memory().check_floor(what)?;
        }
        self.lock_objects(txn, options, &change, &made_of).await?;
        self.check_access(txn, &change)?;
        match change {
            Change::CreateTable(def) => self.create_table(txn, def),
            Change::DropTable(oid) => self.drop_table(txn, oid),
            Change::Truncate {
                tables,
                restart_identity,
            } => {
                for oid in tables {
                    self.truncate(txn, oid, restart_identity)?;
                }
                Ok(())
            }
            Change::AlterTable(def) => self.replace_table(txn, def),
            Change::CreateTrigger { table, trigger } => {
                let def = with_trigger(&self.drafted(txn, table)?.def, trigger);
                self.replace_table(txn, def)
            }
            Change::CreateIndex { table, index } => {
                self.create_index(txn, options, table, index).await
            }
            Change::DropIndex { table, index } => self.drop_index(txn, table, index),
            change => self.edit_names(txn, change),
        }
    }

    /// Has a sequence begin again, which only the transaction sees until it commits.
    fn restart_sequence(&self, txn: &mut Transaction, oid: u32, value: i64) -> Result<()> {
        let by = txn.state_mut()?.id;
        self.edit(txn, |catalog| {
            if let Some(def) = catalog.sequences.get_mut(&oid) {
                Arc::make_mut(def).restarted_by = by.0;
            }
            Ok(())
        })?;
        let restarted = self.begin_again_for(oid, by, value)?;
        self.draft(txn)?.restarted.push(restarted);
        Ok(())
    }

    /// Carries out a change of what has no rows: only the draft is another then.
    fn edit_names(&self, txn: &mut Transaction, change: Change) -> Result<()> {
        match change {
            Change::CreateSchema(name) => self.edit(txn, |catalog| {
                if catalog.schema(&name).is_some() {
                    return Err(Error::catalog(
                        "42P06",
                        format!("schema \"{name}\" already exists"),
                    ));
                }
                let oid = self.allocate_oid();
                catalog.schemas.push(SchemaDef { oid, name });
                Ok(())
            }),
            Change::DropSchema(name) => self.edit(txn, |catalog| drop_schema(catalog, &name)),
            Change::CreateSequence(def) => {
                let oid = def.oid;
                self.sequences()
                    .write()
                    .insert(oid, Sequence::new(def.start, false));
                self.draft(txn)?.made_sequences.push(oid);
                self.edit(txn, |catalog| {
                    free_name(catalog, &def.schema, &def.name)?;
                    has_schema(catalog, &def.schema)?;
                    catalog.sequences.insert(oid, Arc::new(def));
                    Ok(())
                })
            }
            Change::AlterSequence(def) => self.edit(txn, |catalog| put_sequence(catalog, def)),
            Change::RestartSequence { oid, value } => self.restart_sequence(txn, oid, value),
            Change::DropSequence(oid) => self.edit(txn, |catalog| {
                catalog.sequences.remove(&oid);
                Ok(())
            }),
            Change::CreateView(def) | Change::ReplaceView(def) => {
                self.edit(txn, |catalog| put_view(catalog, def))
            }
            Change::DropView(oid) => self.edit(txn, |catalog| {
                is_read_by_none(catalog, oid)?;
                catalog.views.remove(&oid);
                Ok(())
            }),
            Change::CreateType(def) => self.edit(txn, |catalog| {
                // Nobody else knows its number.
                def.tell();
                put_type(catalog, Arc::new(def))
            }),
            Change::AlterType(def) => {
                // Who made it uses it as it is now; what others see of theirs changes with the
                // commit.
                if !self.catalog().types.contains_key(&def.oid) {
                    def.tell();
                }
                self.edit(txn, |catalog| put_type(catalog, Arc::new(def)))
            }
            Change::DropType(oid) => self.edit(txn, |catalog| {
                is_of_none(catalog, oid)?;
                catalog.types.remove(&oid);
                Ok(())
            }),
            Change::CreateFunction(def) | Change::ReplaceFunction(def) => {
                self.edit(txn, |catalog| put_function(catalog, def))
            }
            Change::DropFunction(oid) => self.edit(txn, |catalog| drop_function(catalog, oid)),
            Change::CreateTablespace(def) | Change::AlterTablespace(def) => {
                self.edit(txn, |catalog| put_tablespace(catalog, def))
            }
            Change::DropTablespace(oid) => self.edit(txn, |catalog| drop_tablespace(catalog, oid)),
            Change::Comment { on, text } => self.edit(txn, |catalog| {
                let comments = Arc::make_mut(&mut catalog.comments);
                match text {
                    Some(text) => comments.insert(on, text),
                    None => comments.remove(&on),
                };
                Ok(())
            }),
            Change::Authorize(authority) => self.edit_as(txn, true, |catalog| {
                catalog.authority = Arc::from(authority);
                Ok(())
            }),
            Change::CreateTable(_)
            | Change::DropTable(_)
            | Change::Truncate { .. }
            | Change::AlterTable(_)
            | Change::CreateTrigger { .. }
            | Change::CreateIndex { .. }
            | Change::DropIndex { .. } => {
                Err(Error::Internal("rows change with more than a draft".into()))
            }
        }
    }

    fn drop_index(&self, txn: &mut Transaction, table: u32, index: u32) -> Result<()> {
        let table = self.drafted(txn, table)?;
        // A partition that this transaction puts the table's first row into has the
        // index, too: it is there again after a rollback.
        for partition in self.all_partitions() {
            partition.lock().table_mut(&table);
        }
        let mut def = table.def.clone();
        def.indexes.retain(|i| i.oid != index);
        let storage = def.storage;
        self.replace_table(txn, def)?;
        self.draft(txn)?.dropped_indexes.push((storage, index));
        // A rollback finds the rows in the index by the keys that they have now.
        txn.state_mut()?.raise_level()?;
        Ok(())
    }

    /// Makes this transaction one that changes the catalog. What a change is made of has to be
    /// locked before it is looked at, or the change is refused where others were faster.
    pub fn begin_ddl(&self, txn: &mut Transaction) -> Result<()> {
        self.check_open()?;
        let state = txn.state_mut()?;
        if state.read_only {
            return Err(Error::ReadOnly);
        }
        state.draft.get_or_insert_with(|| Draft::of(self.catalog()));
        Ok(())
    }

    pub(super) fn draft<'t>(&self, txn: &'t mut Transaction) -> Result<&'t mut Draft> {
        txn.state_mut()?
            .draft
            .as_mut()
            .ok_or_else(|| Error::Internal("no definition is under way".into()))
    }

    pub(crate) fn drafted(&self, txn: &mut Transaction, oid: u32) -> Result<Arc<Table>> {
        let catalog = self.draft(txn)?.catalog(&self.catalog());
        catalog.table(oid).cloned().ok_or_else(|| {
            Error::catalog("42P01", format!("relation with OID {oid} does not exist"))
        })
    }

    fn edit(
        &self,
        txn: &mut Transaction,
        edit: impl FnOnce(&mut Catalog) -> Result<()>,
    ) -> Result<()> {
        self.edit_as(txn, false, edit)
    }

    /// `authorizes`: roles or rights are changed.
    fn edit_as(
        &self,
        txn: &mut Transaction,
        authorizes: bool,
        edit: impl FnOnce(&mut Catalog) -> Result<()>,
    ) -> Result<()> {
        let draft = self.draft(txn)?;
        let before = draft.catalog(&self.catalog());
        let mut catalog = (*before).clone();
        edit(&mut catalog)?;
        catalog.authority = crate::catalog::authority_of(&catalog);
        catalog.comments = crate::catalog::comments_of(&catalog);
        catalog.version += 1;
        catalog.index_names(&before);
        draft.put(catalog, authorizes);
        Ok(())
    }

    fn create_table(&self, txn: &mut Transaction, mut def: TableDef) -> Result<()> {
        let storage = self.allocate_storage()?;
        def.take_storage(storage);
        let table = Arc::new(Table::new(def, self.partitions()));
        self.edit(txn, |catalog| {
            free_row_name(catalog, &table.def.schema, &table.def.name)?;
            let mut names = vec![table.def.name.as_str()];
            for index in &table.def.indexes {
                free_name(catalog, &table.def.schema, &index.name)?;
                if names.contains(&index.name.as_str()) {
                    return Err(name_taken(&index.name));
                }
                names.push(&index.name);
            }
            has_schema(catalog, &table.def.schema)?;
            has_tablespace(catalog, table.def.tablespace)?;
            catalog.tables.insert(table.def.oid, table.clone());
            Ok(())
        })?;
        self.draft(txn)?.made.push(storage);
        self.announce(txn.state_mut()?, table)
    }

    /// Logs how the rows are laid out that the transaction may put into a storage from
    /// now on, ahead of them. All who read rows that are not committed go by it.
    pub(crate) fn announce(&self, state: &mut TxnState, table: Arc<Table>) -> Result<()> {
        state.logged = true;
        let image = serde_json::to_vec(&table.def)
            .map_err(|error| Error::Internal(format!("encoding a table: {error}")))?;
        // Before it is in the log: a checkpoint that has the log up to there takes it from here.
        self.storages().put(&table);
        let shrinks = state.draft.as_ref().is_some_and(Self::takes_away);
        self.append_commit(
            &[&record_head(RecordKind::Draft, state.id.0), &image],
            || shrinks,
        )?;
        Ok(())
    }

    /// Puts a changed definition with the same storage into the draft.
    fn replace_table(&self, txn: &mut Transaction, mut def: TableDef) -> Result<()> {
        let before = self.drafted(txn, def.oid)?;
        def.keep_storage_of(&before.def);
        let known = self.storages().read().get(&def.storage).cloned();
        let known = known.as_ref().unwrap_or(&before);
        def.number_columns_after(&before.def, &known.def)?;
        let table = Arc::new(before.redefined(def));
        let widened = table.def.columns.len() != before.def.columns.len();
        let own = txn.state_mut()?.sees_draft_of(table.def.storage);
        self.edit(txn, |catalog| {
            if let Some(old) = catalog.tables.remove(&table.def.oid) {
                is_free_for(catalog, &table.def, &old.def)?;
            }
            has_tablespace(catalog, table.def.tablespace)?;
            catalog.tables.insert(table.def.oid, table.clone());
            Ok(())
        })?;
        match widened || own {
            true => {
                let reader = self.reader_of(&table, own);
                self.announce(txn.state_mut()?, reader)
            }
            false => Ok(()),
        }
    }

    fn drop_table(&self, txn: &mut Transaction, oid: u32) -> Result<()> {
        let table = self.drafted(txn, oid)?;
        is_read_by_none(&txn.catalog(), oid)?;
        self.draft(txn)?.dropped.push(table.def.storage);
        self.edit(txn, |catalog| {
            catalog.tables.remove(&oid);
            retain(&mut catalog.sequences, |_, s| {
                s.owned_by.is_none_or(|(owner, _)| owner != oid)
            });
            Ok(())
        })
    }

    fn truncate(&self, txn: &mut Transaction, oid: u32, restart_identity: bool) -> Result<()> {
        let old = self.drafted(txn, oid)?;
        self.swap_storage(txn, &old, old.def.clone())?;
        if restart_identity {
            let owned: Vec<(u32, i64)> = txn
                .catalog()
                .sequences
                .values()
                .filter(|s| s.owned_by.is_some_and(|(owner, _)| owner == oid))
                .map(|s| (s.oid, s.start))
                .collect();
            for (oid, start) in owned {
                self.restart_sequence(txn, oid, start)?;
            }
        }
        Ok(())
    }

    /// Gives a table of the draft new storage; the old one goes at commit.
    pub(crate) fn swap_storage(
        &self,
        txn: &mut Transaction,
        old: &Table,
        mut def: TableDef,
    ) -> Result<Arc<Table>> {
        def.take_storage(self.allocate_storage()?);
        let table = Arc::new(old.redefined(def));
        self.draft(txn)?.dropped.push(old.def.storage);
        self.edit(txn, |catalog| {
            catalog.tables.insert(table.def.oid, table.clone());
            Ok(())
        })?;
        self.draft(txn)?.made.push(table.def.storage);
        self.announce(txn.state_mut()?, table.clone())?;
        Ok(table)
    }

    async fn create_index(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        oid: u32,
        index: IndexDef,
    ) -> Result<()> {
        let old = self.drafted(txn, oid)?;
        self.edit(txn, |catalog| {
            free_name(catalog, &old.def.schema, &index.name)
        })?;
        let mut def = old.def.clone();
        if index.primary {
            for &column in &index.columns {
                def.columns[column].not_null = true;
            }
        }
        def.indexes.push(index.clone());
        if index.primary && def.partition_key.is_empty() {
            // Rows were spread; with a key to go by they are laid out anew, so
            // that a look-up goes to one partition.
            def.partition_key = index.columns.clone();
            return self.rebuild(txn, options, &old, def, None).await;
        }
        let table = Arc::new(old.redefined(def));
        let position = table.def.indexes.len() - 1;
        if index.unique
            && !table.is_local(position)
            && index.kind == crate::catalog::IndexKind::Hash
        {
            return Err(Error::Refused {
                sqlstate: "0A000",
                message: "a unique hash index without the partition key is not supported".into(),
                hint: "Use btree, or add the columns of the partition key.",
            });
        }
        self.build_index(txn, options, &old, &table, position)
            .await?;
        let storage = table.def.storage;
        self.replace_table(txn, table.def.clone())?;
        self.draft(txn)?.made_indexes.push((storage, index.oid));
        self.checkpoint_state().poke();
        Ok(())
    }

    /// Makes a committed draft the catalog. Under the locks of all partitions. Up to where the log
    /// has to be durable beside the commit's record, if anywhere.
    pub(crate) fn install(
        &self,
        draft: Draft,
        guards: &mut Guards<'_>,
        committed: Timestamp,
    ) -> Option<Lsn> {
        let mut catalog = self.catalog_lock().write();
        let new = draft.catalog(&catalog);
        let mut changed: Vec<&Arc<Table>> = Vec::new();
        for (_, old, new) in changes(&catalog.tables, &new.tables) {
            changed.extend(new);
            let Some(old) = old else {
                continue;
            };
            if let Some(new) = new
                && new.def.storage != old.def.storage
            {
                new.gate.emptied_at(committed);
            }
            old.retired.store(true, Ordering::Relaxed);
        }
        for table in &changed {
            self.storages().put(table);
        }
        let told = self.tell_changed_tablespaces(&catalog, &new);
        if !told.is_empty() {
            let follow = |table: &&Arc<Table>| told.contains(&table.def.tablespace);
            changed.extend(new.tables.values().filter(follow));
        }
        for storage in &draft.dropped {
            self.storages().remove(*storage);
        }
        for state in guards.iter_mut() {
            for (storage, _) in &draft.made_indexes {
                state.versions.detach(*storage);
            }
            for storage in &draft.dropped {
                self.drop_storage(state, *storage);
            }
            self.follow_policies(state, &changed);
            for (storage, oid) in &draft.dropped_indexes {
                if let Some(rows) = state.tables.rows_mut(*storage) {
                    rows.indexes_mut().retain(|slot| slot.oid != *oid);
                }
            }
        }
        let known = catalog.sequences.keys().chain(&draft.made_sequences);
        let gone: Vec<u32> = known
            .filter(|oid| !new.sequences.contains_key(*oid))
            .copied()
            .collect();
        self.drop_sequences(&gone);
        new.tell_types();
        *catalog = new;
        drop(catalog);
        self.commit_restarts(&draft.restarted)
    }

    pub(crate) fn drop_sequences(&self, gone: &[u32]) {
        self.sequences()
            .write()
            .retain(|oid, _| !gone.contains(oid));
    }

    /// Throws away a draft in which nothing was changed: a definition found that all is as it
    /// wants it, and nobody has to be told.
    pub(crate) fn discard_unchanged(&self, state: &mut TxnState) {
        if let Some(draft) = state.draft.take_if(|draft| draft.is_unchanged()) {
            self.discard(draft);
        }
    }

    /// Throws a draft away.
    pub(crate) fn discard(&self, draft: Draft) {
        self.drop_made(&draft.made, &draft.made_indexes);
        self.take_restarts_back(&draft.restarted);
        self.drop_sequences(&draft.made_sequences);
        for table in &draft.held {
            self.storages().put(table);
        }
    }

    /// Drops storages and indexes that a transaction made and that were nobody else's.
    pub(crate) fn drop_made(&self, storages: &[u32], indexes: &[(u32, u32)]) {
        if storages.is_empty() && indexes.is_empty() {
            // Perhaps not all partitions are there yet.
            return;
        }
        for partition in self.all_partitions() {
            let mut state = partition.lock();
            for storage in storages {
                self.drop_storage(&mut state, *storage);
            }
            for (storage, oid) in indexes {
                if let Some(rows) = state.tables.rows_mut(*storage) {
                    rows.indexes_mut().retain(|slot| slot.oid != *oid);
                }
            }
        }
        for storage in storages {
            self.storages().remove(*storage);
        }
    }

    /// Drops the rows of a storage in a partition. Its blocks go when nothing
    /// in them is alive.
    pub(crate) fn drop_storage(
        &self,
        state: &mut crate::rows::partition::PartitionState,
        storage: u32,
    ) {
        state.versions.forget_storage(storage);
        state.locks.retain(|row, _| row.0 != storage);
        state.uncommitted.retain(|row, _| row.0 != storage);
        if state.tables.remove(storage) {
            let partition = state.id;
            for block in self.blocks().blocks() {
                if block.table == storage && block.partition == partition {
                    self.give_up_block(block.id);
                }
            }
        }
    }
}
