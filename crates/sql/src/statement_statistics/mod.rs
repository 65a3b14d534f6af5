//! `pg_stat_statements`: how often statements of each shape ran, for how long, with how many
//! rows, for each role. Statements that fail are not counted, as in PostgreSQL.
//!
//! A session counts in a table of its own ([`LocalStatistics`]). It merges that into the one of
//! all when it is full, now and then, when somebody looks, and when it ends. The table of all has
//! a fixed share of memory, charged to an account of its own as it grows; beyond it the
//! statements that are used least leave.

mod counts;
mod fingerprint;
mod local;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_engine::{Account, Charge, ChargeKind, Database};

pub(crate) use counts::{Counts, Execution};
pub(crate) use local::LocalStatistics;

use crate::session::now_us;

/// The table's share of `memory_limit`: one part of this many, at most [`BYTES_MAX`].
const SHARE_DIVISOR: u64 = 512;
const BYTES_MAX: u64 = 4 << 20;
/// An entry beside its text, in bytes.
const ENTRY_BYTES: u64 = 256;
/// Of the entries, how many leave when there is no room for one more.
const LEAVING_DIVISOR: usize = 20;
/// Uses count less from one time of leaving to the next.
const USAGE_DECAY: f64 = 0.99;

/// The number of a statement's shape.
pub(crate) fn query_id(text: &str) -> i64 {
    fingerprint::query_id(text)
}

/// What is shown of all executions of a statement by a role.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) user: u32,
    pub(crate) query_id: i64,
    pub(crate) text: Arc<str>,
    pub(crate) counts: Counts,
}

struct Kept {
    text: Arc<str>,
    counts: Counts,
    usage: f64,
}

/// The numbers of all sessions.
pub(crate) struct StatementStatistics {
    db: Arc<Database>,
    table: Mutex<Table>,
}

struct Table {
    entries: HashMap<(u32, i64), Kept>,
    bytes: u64,
    charge: Charge,
    /// How often entries had to leave.
    left: u64,
    /// Since when it counts.
    since_us: i64,
    _account: Account,
}

impl fmt::Debug for StatementStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementStatistics")
            .finish_non_exhaustive()
    }
}

impl StatementStatistics {
    pub(crate) fn new(db: Arc<Database>) -> Self {
        let account = db.clients().open();
        let table = Table {
            entries: HashMap::new(),
            bytes: 0,
            charge: account.nothing(ChargeKind::Statement),
            left: 0,
            since_us: now_us(),
            _account: account,
        };
        Self {
            db,
            table: Mutex::new(table),
        }
    }

    /// The most that the table takes, in bytes.
    fn bytes_max(&self) -> u64 {
        (self.db.memory_limit() / SHARE_DIVISOR).min(BYTES_MAX)
    }

    /// Counts an execution in the session's own table. `text` is the statement's, at `place` in
    /// what the client sent; it is looked at when the session has not counted it lately.
    #[inline]
    pub(crate) fn count(
        &self,
        local: &mut LocalStatistics,
        query_id: i64,
        role: &Arc<str>,
        execution: &Execution,
        text: &str,
    ) {
        if !local.add(query_id, role, execution) {
            self.begin(local, query_id, role, text);
            local.add(query_id, role, execution);
        }
        if local.is_due() {
            self.merge(local);
        }
    }

    #[cold]
    fn begin(&self, local: &mut LocalStatistics, query_id: i64, role: &Arc<str>, text: &str) {
        if local.is_full() {
            self.merge(local);
        }
        local.begin(query_id, role);
        let Some(user) = self.user(role) else { return };
        let is_known = |table: &Table| table.entries.contains_key(&(user, query_id));
        if is_known(&self.table.lock()) {
            return;
        }
        // Made without the lock: the text may be long.
        let shown = fingerprint::normalised(text.trim().trim_end_matches([';', ' ', '\n']));
        let bytes_max = self.bytes_max();
        let mut table = self.table.lock();
        if !is_known(&table) {
            table.insert((user, query_id), Arc::from(shown), bytes_max);
        }
    }

    fn user(&self, role: &str) -> Option<u32> {
        let catalog = self.db.catalog();
        catalog.authority.role_by_name(role).map(|role| role.oid)
    }

    /// Takes over what a session has counted.
    pub(crate) fn merge(&self, local: &mut LocalStatistics) {
        for slot in local.take() {
            let Some(user) = self.user(&slot.role) else {
                continue;
            };
            let mut table = self.table.lock();
            // One that has left meanwhile was used least.
            if let Some(kept) = table.entries.get_mut(&(user, slot.query_id)) {
                kept.counts.merge(&slot.counts);
                kept.usage += slot.counts.calls as f64;
            }
        }
    }

    /// All that was counted; sessions have merged before.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let table = self.table.lock();
        let entries = table.entries.iter();
        entries
            .filter(|(_, kept)| kept.counts.calls > 0)
            .map(|((user, query_id), kept)| Entry {
                user: *user,
                query_id: *query_id,
                text: Arc::clone(&kept.text),
                counts: kept.counts,
            })
            .collect()
    }

    /// How often entries had to leave, and since when all is counted.
    pub(crate) fn info(&self) -> (u64, i64) {
        let table = self.table.lock();
        (table.left, table.since_us)
    }

    /// Forgets what `which` says of user and number.
    pub(crate) fn forget(&self, which: impl Fn(u32, i64) -> bool) {
        let mut table = self.table.lock();
        let table = &mut *table;
        let mut freed = 0;
        table.entries.retain(|(user, query_id), kept| {
            let goes = which(*user, *query_id);
            freed += if goes { bytes_of(&kept.text) } else { 0 };
            !goes
        });
        table.give_back(freed);
        if table.entries.is_empty() {
            table.left = 0;
            table.since_us = now_us();
        }
    }
}

fn bytes_of(text: &str) -> u64 {
    ENTRY_BYTES + text.len() as u64
}

impl Table {
    fn insert(&mut self, key: (u32, i64), text: Arc<str>, bytes_max: u64) {
        let bytes = bytes_of(&text);
        while self.bytes + bytes > bytes_max {
            if !self.make_room() {
                return;
            }
        }
        // Whoever runs statements goes first when memory is short.
        if self.charge.grow(bytes).is_err() {
            self.make_room();
            if self.charge.grow(bytes).is_err() {
                return;
            }
        }
        self.bytes += bytes;
        let kept = Kept {
            text,
            counts: Counts::default(),
            usage: 1.0,
        };
        self.entries.insert(key, kept);
    }

    /// Has those leave that are used least; false when none is left.
    fn make_room(&mut self) -> bool {
        let mut by_usage: Vec<((u32, i64), f64)> = Vec::with_capacity(self.entries.len());
        for (key, kept) in &mut self.entries {
            kept.usage *= USAGE_DECAY;
            by_usage.push((*key, kept.usage));
        }
        if by_usage.is_empty() {
            return false;
        }
        by_usage.sort_by(|one, other| one.1.total_cmp(&other.1));
        let leaving = (by_usage.len() / LEAVING_DIVISOR).max(1);
        let mut freed = 0;
        for (key, _) in by_usage.into_iter().take(leaving) {
            if let Some(kept) = self.entries.remove(&key) {
                freed += bytes_of(&kept.text);
            }
        }
        self.left += 1;
        self.give_back(freed);
        true
    }

    fn give_back(&mut self, bytes: u64) {
        self.bytes -= bytes;
        let _ = self.charge.resize(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thermocline_device::SimulatedDevice;
    use thermocline_engine::Config;

    use super::*;

    const ONE: Execution = Execution {
        time: Duration::from_micros(5),
        is_call: true,
        rows: 1,
        hot: 1,
        cold: 0,
    };

    fn statistics() -> StatementStatistics {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
        StatementStatistics::new(Database::open(config).unwrap())
    }

    #[test]
    fn sessions_are_added_up() {
        let all = statistics();
        let role: Arc<str> = Arc::from("postgres");
        let mut sessions = [LocalStatistics::default(), LocalStatistics::default()];
        for local in &mut sessions {
            for number in 0..100 {
                let text = format!("select {} from t{}", number, number % 50);
                let id = query_id(&text);
                all.count(local, id, &role, &ONE, &text);
            }
        }
        for local in &mut sessions {
            all.merge(local);
        }
        let entries = all.entries();
        assert_eq!(entries.len(), 50);
        assert!(entries.iter().all(|entry| entry.counts.calls == 4));
        assert!(
            entries
                .iter()
                .all(|entry| entry.text.starts_with("select $1 from t"))
        );
        all.forget(|_, id| id == entries[0].query_id);
        assert_eq!(all.entries().len(), 49);
        all.forget(|_, _| true);
        assert!(all.entries().is_empty());
        let table = all.table.lock();
        assert_eq!((table.bytes, table.charge.bytes()), (0, 0));
        drop(table);
        all.db.close().unwrap();
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_least_leaves() {
        let all = statistics();
        let role: Arc<str> = Arc::from("postgres");
        let mut local = LocalStatistics::default();
        let often = "select often from t";
        for number in 0..30_000 {
            let text = format!("select a{number} from {}", "t".repeat(200));
            all.count(&mut local, query_id(&text), &role, &ONE, &text);
            all.count(&mut local, query_id(often), &role, &ONE, often);
            let table = all.table.lock();
            assert!(table.bytes <= all.bytes_max());
            assert_eq!(table.bytes, table.charge.bytes());
        }
        all.merge(&mut local);
        let entries = all.entries();
        let kept = entries.iter().find(|entry| *entry.text == *often).unwrap();
        assert_eq!(kept.counts.calls, 30_000);
        assert!(entries.len() > 1000, "{}", entries.len());
        assert!(all.info().0 > 0);
        all.db.close().unwrap();
    }
}
