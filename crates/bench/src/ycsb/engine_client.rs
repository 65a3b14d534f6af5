//! A client of the engine: a row is found by the primary key's index, its
//! payload copied as a caller would; an update writes a whole new tuple. The
//! first run of a statement tells whether its tuple was in memory.

use std::sync::Arc;

use thermocline_engine::catalog::Table;
use thermocline_engine::{Database, RunOptions, Scope, TryGet};
use thermocline_values::value::ValueRef;

use super::client::Client;
use crate::Result;

/// The primary key's place among the indexes.
pub(super) const PRIMARY: usize = 0;

/// A client, with the buffers that it uses again and again.
pub struct EngineClient<'a> {
    db: &'a Arc<Database>,
    table: &'a Table,
    options: RunOptions,
    key: Vec<u8>,
    tuple: Vec<u8>,
    result: Vec<u8>,
    /// Those of a batch.
    keys: Vec<Vec<u8>>,
}

impl<'a> EngineClient<'a> {
    pub(super) fn new(db: &'a Arc<Database>, table: &'a Table, synchronous_commit: bool) -> Self {
        EngineClient {
            db,
            table,
            options: RunOptions {
                synchronous_commit,
                ..RunOptions::default()
            },
            key: Vec::new(),
            tuple: Vec::new(),
            result: Vec::new(),
            keys: Vec::new(),
        }
    }

    fn encode_key(&mut self, key: u64) {
        self.key.clear();
        let value = ValueRef::BigInt(key as i64);
        self.table
            .encode_index_key(PRIMARY, &[value], &mut self.key);
    }

    fn locate(&mut self, key: u64) -> Scope {
        self.encode_key(key);
        match self.table.partition_of_index_key(PRIMARY, &self.key) {
            Some(partition) => Scope::One(partition),
            None => Scope::All,
        }
    }
}

impl EngineClient<'_> {
    /// Deletes a row that is there.
    pub async fn delete(&mut self, key: u64) -> Result<()> {
        let scope = self.locate(key);
        let (table, key_bytes) = (self.table, &self.key);
        let found = self
            .db
            .one_shot(&self.options, scope, |access| {
                let found = access.get(table, PRIMARY, key_bytes)?;
                let row = found.map(|(row, _)| row);
                if let Some(row) = row {
                    access.delete(table, row)?;
                }
                Ok(row.is_some())
            })
            .await?;
        if !found {
            return Err(format!("row {key} is not there").into());
        }
        Ok(())
    }
}

impl Client for EngineClient<'_> {
    async fn read(&mut self, key: u64) -> Result<Option<bool>> {
        self.encode_key(key);
        let (db, table) = (self.db, self.table);
        let (options, key_bytes, result) = (&self.options, &self.key, &mut self.result);
        let mut copy = |tuple: &[u8]| {
            result.clear();
            if let ValueRef::Bytea(payload) = table.value(tuple, 1) {
                result.extend_from_slice(payload);
            }
        };
        let mut missed = false;
        let found = match db.try_get(options, table, PRIMARY, key_bytes, &mut copy)? {
            TryGet::Done(found) => found,
            // As `Database::get` goes on. A wait may be for the log, and is no miss then.
            TryGet::Wait => {
                let partition = table.partition_of_index_key(PRIMARY, key_bytes);
                db.one_shot(
                    options,
                    partition.map_or(Scope::All, Scope::One),
                    |access| {
                        let found = access.get(table, PRIMARY, key_bytes)?;
                        let found = found.map(|(_, tuple)| copy(tuple));
                        missed |= access.evicted();
                        Ok(found)
                    },
                )
                .await?
            }
        };
        if found.is_none() {
            return Err(format!("row {key} is not there").into());
        }
        Ok(Some(missed))
    }

    async fn read_many(&mut self, keys: &[u64]) -> Result<()> {
        let (db, table) = (self.db, self.table);
        self.keys.resize_with(keys.len(), Vec::new);
        for (encoded, key) in self.keys.iter_mut().zip(keys) {
            encoded.clear();
            table.encode_index_key(PRIMARY, &[ValueRef::BigInt(*key as i64)], encoded);
        }
        let (result, mut found) = (&mut self.result, 0);
        let copy = |_: usize, tuple: &[u8]| {
            found += 1;
            result.clear();
            if let ValueRef::Bytea(payload) = table.value(tuple, 1) {
                result.extend_from_slice(payload);
            }
        };
        db.get_many(&self.options, table, PRIMARY, &self.keys, copy)
            .await?;
        if found != keys.len() {
            return Err(format!("{found} of {} rows are there", keys.len()).into());
        }
        Ok(())
    }

    async fn update(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>> {
        let scope = self.locate(key);
        self.tuple.clear();
        let values = [ValueRef::BigInt(key as i64), ValueRef::Bytea(payload)];
        self.table.encode_tuple(&values, &mut self.tuple);
        let mut missed = false;
        let (table, key_bytes, tuple) = (self.table, &self.key, &self.tuple);
        let found = self
            .db
            .one_shot(&self.options, scope, |access| {
                let row = access.overwrite(table, PRIMARY, key_bytes, tuple)?;
                missed |= access.evicted();
                Ok(row.is_some())
            })
            .await?;
        if !found {
            return Err(format!("row {key} is not there").into());
        }
        Ok(Some(missed))
    }

    async fn insert(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>> {
        let scope = self.locate(key);
        self.tuple.clear();
        let values = [ValueRef::BigInt(key as i64), ValueRef::Bytea(payload)];
        self.table.encode_tuple(&values, &mut self.tuple);
        let mut missed = false;
        let (table, tuple) = (self.table, &self.tuple);
        self.db
            .one_shot(&self.options, scope, |access| {
                let inserted = access.insert(table, tuple).map(|_| ());
                missed |= access.evicted();
                inserted
            })
            .await?;
        Ok(Some(missed))
    }
}
