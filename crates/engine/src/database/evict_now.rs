//! Eviction that somebody asks for (000 §3.3): of a table whose timing is `manual`, or of any that
//! may leave memory. It goes a block at a time, so that other statements of the thread come between.

use crate::catalog::Table;
use crate::cold::evict::{Evictor, ROUNDS_TO_COOL};
use crate::database::Database;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::ground::wait::give_way;
use crate::policy::Identification;
use crate::transaction::RunOptions;

impl Database {
    /// Evicts about `bytes` of a table's rows, in the order of its policy; fewer if no more can
    /// leave. How many rows and bytes left.
    ///
    /// # Errors
    /// 55000 if the table's rows never leave memory; 57014 on cancel: what has left stays on the
    /// device; the device's.
    pub async fn evict(
        &self,
        options: &RunOptions,
        table: &Table,
        bytes: u64,
    ) -> Result<(u64, u64)> {
        self.there(options, &Scope::All).await?;
        let storage = table.def.storage;
        let policy = self.policy_of(table);
        if policy.identification == Identification::Off {
            let name = &table.def.name;
            return Err(Error::catalog(
                "55000",
                format!(
                    "rows of \"{name}\" never leave memory: ALTER TABLE {name} SET (evictable = true, \
                     identification = temperature) lets them"
                ),
            ));
        }
        let mut evictor = Evictor::new(policy.block_bytes.max(4 << 10));
        let (mut all, mut idle) = ((0, 0), 0);
        while all.1 < bytes && idle < self.all_partitions().len() * ROUNDS_TO_COOL {
            self.check_open()?;
            options.cancel.check()?;
            // As it is now: it may be widened, or dropped, between two turns.
            let now = self.storages().read().get(&storage).cloned();
            let Some(table) = now else {
                break;
            };
            let freed = evictor.evict_next(self, &table)?;
            all.0 += freed.tuples;
            all.1 += freed.bytes;
            idle = match freed.tuples {
                0 => idle + 1,
                _ => 0,
            };
            give_way().await;
        }
        Ok(all)
    }
}
