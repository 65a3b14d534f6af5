//! Many rows by their keys at once.
//!
//! The keys of one partition are looked up under one lock, their cache lines
//! asked for before the first is touched. What is evicted of all of them is read
//! from the device together.

use std::ops::Range;

use thermocline_storage::log::Lsn;

use crate::access::RunKind;
use crate::catalog::Table;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::memory::fetched::Fetched;
use crate::parts::Parts;
use crate::parts::changes::Grant;
use crate::run::{Given, Outcome, Who};
use crate::transaction::RunOptions;
use crate::transaction::table_locks::Visit;

/// More would only hold more evicted tuples at a time.
const KEYS_AT_ONCE: usize = 4096;

impl Parts {
    /// Reads the rows that have these full keys in `index`, which is unique:
    /// calls `each` with the place of a key and its tuple, once for every key
    /// that is there, in no order. Each key is read as a statement of its own
    /// would: together they are no snapshot. What `each` saw may be passed on
    /// when this has returned without an error. `each` runs under the
    /// partition's lock: it must be short and must not call the database.
    pub async fn get_many<K: AsRef<[u8]>>(
        &self,
        options: &RunOptions,
        table: &Table,
        index: usize,
        keys: &[K],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        for first in (0..keys.len()).step_by(KEYS_AT_ONCE) {
            let places = first..keys.len().min(first + KEYS_AT_ONCE);
            self.get_some(options, table, index, keys, places, &mut each)
                .await?;
        }
        Ok(())
    }

    /// [`Parts::get_many`] for some of the keys.
    async fn get_some<K: AsRef<[u8]>>(
        &self,
        options: &RunOptions,
        table: &Table,
        index: usize,
        keys: &[K],
        places: Range<usize>,
        each: &mut impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let mut wanted = Vec::with_capacity(places.len());
        for place in places {
            let key = &keys[place];
            match table.partition_of_index_key(index, key.as_ref()) {
                Some(partition) => wanted.push((partition, place)),
                // The partition is not in the key: any may have it.
                None => wanted.extend((0..self.partitions()).map(|p| (p, place))),
            }
        }
        wanted.sort_unstable();
        let mut fetched = Fetched::new();
        let mut run = RunKind {
            read_only: true,
            attempt: 0,
        };
        let mut visit = Visit::default();
        while !wanted.is_empty() {
            self.admit(options).await?;
            if !self.arrivals().are_complete() {
                let partitions = wanted.iter().map(|(partition, _)| *partition);
                let scope = Scope::Many(partitions.collect());
                self.there(options, &scope).await?;
            }
            let mut left = Vec::new();
            let mut reads = Vec::new();
            let mut pins = Vec::new();
            let mut closed = None;
            let mut seen = Lsn::default();
            for group in wanted.chunk_by(|a, b| a.0 == b.0) {
                let mut done = 0;
                let mut body = |access: &mut crate::access::Access<'_>| {
                    let group_keys = group.iter().map(|(_, place)| keys[*place].as_ref());
                    access.prefetch(table, index, group_keys);
                    for &(partition, place) in group {
                        let missing = access.missing().len();
                        if let Some((_, tuple)) = access.get(table, index, keys[place].as_ref())? {
                            each(place, tuple);
                        } else if access.missing().len() > missing {
                            left.push((partition, place));
                        }
                        done += 1;
                    }
                    Ok(())
                };
                let scope = Scope::One(group[0].0);
                let who = Who::Visitor(&visit);
                let grant = &mut Grant::default();
                match self.attempt(
                    options,
                    &scope,
                    who,
                    Given::new(&fetched, run, grant),
                    &mut body,
                )? {
                    Outcome::Done((), lsn) | Outcome::Seen((), lsn) => seen = seen.max(lsn),
                    Outcome::Evicted(planned, pin) => {
                        reads.extend(planned);
                        pins.push(pin);
                    }
                    Outcome::Closed(gate, mode) => {
                        // The table is being changed.
                        closed = Some((gate, mode));
                        left.extend(&group[done..]);
                    }
                    Outcome::Held(_) | Outcome::Stale | Outcome::Lacks(_) => {
                        return Err(Error::Internal(
                            "who only reads meets no lock of a row".into(),
                        ));
                    }
                }
            }
            self.wait_durable(options, seen).await?;
            if let Some((gate, mode)) = closed {
                visit.leave();
                self.visit(&mut visit, options, &gate, mode).await?;
            }
            if !reads.is_empty() {
                self.fetch(options, &reads, &mut fetched).await?;
            }
            wanted = left;
            run.attempt += 1;
        }
        Ok(())
    }
}
