//! What all sessions of a server share: the database, the analytical side, the
//! list of who is connected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use thermocline_engine::ChargeKind;
use thermocline_engine::{Database, Reclaim};

use super::advisory::{AdvisoryLock, AdvisoryLocks};
use super::context::SessionContext;
use super::notify::Notifications;
use super::shelf::Shelf;
use super::system::SystemSettings;
use super::temporary;
use super::unread::UnreadResults;
use crate::analysis::Activity;
#[cfg(feature = "analytics")]
use crate::analytics::{Analytics, SmallStatements};
use crate::error::Result;
use crate::statement_statistics::StatementStatistics;
use crate::temporary::schema_named;

/// The name of the one database of a directory.
pub const DATABASE_NAME: &str = "postgres";
/// Its number.
pub(crate) const DATABASE_OID: u32 = 5;

/// The sessions there are, by process id, and what those that left have done.
pub(crate) struct Sessions {
    statements: StatementStatistics,
    open: Mutex<BTreeMap<i32, Arc<SessionContext>>>,
    committed: AtomicU64,
    rolled_back: AtomicU64,
    notifications: Notifications,
    advisory: AdvisoryLocks,
    /// Where ALTER SYSTEM keeps what it sets.
    pub(super) system: OnceLock<Box<dyn SystemSettings>>,
    /// What sessions begin with, where it is not the settings' own default.
    defaults: OnceLock<Vec<(&'static str, String)>>,
    /// The number of the last temporary schema.
    last_temporary: AtomicU32,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    fn new(db: &Arc<Database>) -> Self {
        Self {
            statements: StatementStatistics::new(Arc::clone(db)),
            open: Mutex::default(),
            notifications: Notifications::new(db),
            advisory: AdvisoryLocks::default(),
            committed: AtomicU64::new(0),
            rolled_back: AtomicU64::new(0),
            system: OnceLock::new(),
            defaults: OnceLock::new(),
            // Whatever a crash has left behind keeps its number.
            last_temporary: AtomicU32::new(temporary::last_number(db)),
        }
    }

    /// Who listens to what.
    pub(super) fn notifications(&self) -> &Notifications {
        &self.notifications
    }

    /// The advisory locks.
    pub(super) fn advisory(&self) -> &AdvisoryLocks {
        &self.advisory
    }

    /// The sessions that have the advisory lock for which this one waits.
    pub(crate) fn advisory_blockers(&self, process_id: i32) -> Vec<i32> {
        self.advisory.blockers(process_id)
    }

    /// Each advisory lock with its session, and whether that has it or waits for it.
    pub(crate) fn advisory_locks(&self) -> Vec<(i32, AdvisoryLock, bool)> {
        self.advisory.list()
    }

    /// The name of a temporary schema that no other session has, nor had.
    pub(super) fn new_temporary_schema(&self) -> String {
        schema_named(self.last_temporary.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The numbers of statements, of those sessions that have merged theirs.
    pub(super) fn statements(&self) -> &StatementStatistics {
        &self.statements
    }

    /// The numbers of statements, of all sessions.
    pub(crate) fn merged_statements(&self) -> &StatementStatistics {
        for session in self.all() {
            self.statements.merge(&mut session.statements.lock());
        }
        &self.statements
    }

    pub(super) fn enter(&self, session: &Arc<SessionContext>) {
        self.open
            .lock()
            .insert(session.process_id, Arc::clone(session));
    }

    pub(super) fn leave(&self, session: &SessionContext) {
        self.advisory.release_all(session.process_id, None);
        self.statements.merge(&mut session.statements.lock());
        let mut open = self.open.lock();
        open.remove(&session.process_id);
        let add = |total: &AtomicU64, of: &AtomicU64| {
            total.fetch_add(of.load(Ordering::Relaxed), Ordering::Relaxed);
        };
        add(&self.committed, &session.committed);
        add(&self.rolled_back, &session.rolled_back);
    }

    /// The sessions there are.
    pub(super) fn all(&self) -> Vec<Arc<SessionContext>> {
        self.open.lock().values().cloned().collect()
    }

    /// What sessions begin with, where it is not the settings' own default.
    pub(super) fn defaults(&self) -> &[(&'static str, String)] {
        self.defaults.get().map_or(&[], Vec::as_slice)
    }

    /// The session with this number.
    pub(crate) fn find(&self, process_id: i32) -> Option<Arc<SessionContext>> {
        self.open.lock().get(&process_id).cloned()
    }

    /// How many sessions a user has.
    pub(super) fn count_of(&self, user: &str) -> usize {
        let open = self.open.lock();
        open.values().filter(|session| session.user == user).count()
    }

    /// Transactions committed and rolled back since the start.
    pub(crate) fn transactions(&self) -> (u64, u64) {
        let open = self.open.lock();
        let mut committed = self.committed.load(Ordering::Relaxed);
        let mut rolled_back = self.rolled_back.load(Ordering::Relaxed);
        for session in open.values() {
            committed += session.committed.load(Ordering::Relaxed);
            rolled_back += session.rolled_back.load(Ordering::Relaxed);
        }
        (committed, rolled_back)
    }

    /// The sessions as `pg_stat_activity` shows them.
    pub(crate) fn activity(&self) -> Vec<Activity> {
        let open: Vec<_> = self.open.lock().values().cloned().collect();
        open.iter()
            .map(|session| {
                let doing = session.activity();
                let waits_for = session.cancel.waits_for();
                Activity {
                    process_id: session.process_id,
                    user: session.user.clone(),
                    application: session
                        .settings(|settings| settings.get("application_name"))
                        .unwrap_or_default(),
                    state: doing.state.to_owned(),
                    query: doing.text.to_string(),
                    is_visible: true,
                    client: session.client.get().copied(),
                    started_us: session.started_us,
                    transaction_us: doing.transaction_us,
                    statement_us: doing.statement_us,
                    changed_us: doing.changed_us,
                    waits_for,
                    transaction: session.transaction.load(Ordering::Relaxed),
                    holds: ChargeKind::ALL
                        .iter()
                        .map(|kind| session.account.held(*kind))
                        .collect(),
                }
            })
            .collect()
    }
}

/// What all sessions share.
pub struct Engine {
    pub(crate) db: Arc<Database>,
    #[cfg(feature = "analytics")]
    pub(crate) analytics: Arc<Analytics>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) unread: UnreadResults,
    /// Statements that are idle leave when memory is asked for.
    pub(crate) shelf: Arc<Shelf>,
}

impl Engine {
    /// SQL over `db`.
    ///
    /// # Errors
    /// When the analytical side cannot be set up.
    pub fn new(db: Arc<Database>) -> Result<Arc<Self>> {
        crate::one_row::prepare();
        // It was opened before there was anybody to tell.
        db.catalog().tell_types();
        let shelf = Arc::<Shelf>::default();
        let idle: Weak<dyn Reclaim> = Arc::<Shelf>::downgrade(&shelf);
        db.clients().on_shortage(idle);
        let engine = Arc::new(Self {
            shelf,
            #[cfg(feature = "analytics")]
            analytics: Arc::new(Analytics::new(Arc::clone(&db), db.memory_limit())?),
            sessions: Arc::new(Sessions::new(&db)),
            unread: UnreadResults::default(),
            db,
        });
        temporary::drop_what_is_left(&engine.db);
        Ok(engine)
    }

    /// What became of analytical statements that were taken for small.
    #[cfg(feature = "analytics")]
    #[must_use]
    pub fn small_statements(&self) -> &SmallStatements {
        self.analytics.small_statements()
    }

    /// Says where ALTER SYSTEM keeps what it sets; without it the command is
    /// refused. The first call counts.
    pub fn keep_settings(&self, system: Box<dyn SystemSettings>) {
        let _ = self.sessions.system.set(system);
    }

    /// Says what settings all later sessions begin with, in the words that SHOW writes. The
    /// first call counts.
    pub fn default_settings(&self, defaults: Vec<(&'static str, String)>) {
        let _ = self.sessions.defaults.set(defaults);
    }

    /// The names of all functions that statements can call.
    #[must_use]
    pub fn function_names(&self) -> BTreeSet<String> {
        thermocline_query::functions::all()
            .map(|function| function.name.to_owned())
            .collect()
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.db
    }

    /// How many sessions there are.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.open.lock().len()
    }

    /// Transactions committed and rolled back since the start.
    #[must_use]
    pub fn transactions(&self) -> (u64, u64) {
        self.sessions.transactions()
    }
}
