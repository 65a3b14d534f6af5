//! What analysis and the system's relations may know of the session whose statement it is.

use std::net::SocketAddr;
use std::sync::Arc;

use thermocline_engine::WaitsFor;

use crate::expr::SessionInfo;
use crate::privilege::Actor;
use crate::session::{Asking, Sessions};
use crate::settings::Settings;
use crate::styles::Styles;

/// What a statement may know of its session; an owned copy, since a result is
/// streamed while the session goes on.
#[derive(Debug, Clone, Default)]
pub struct SessionFacts {
    /// Who the statement is run as.
    pub actor: Actor,
    /// Who the session is of.
    pub session_user: String,
    /// The database's name.
    pub database: String,
    /// The schemas that unqualified names are looked up in, in order.
    pub search_path: Vec<String>,
    /// The schemas that new relations go to, the first that there is.
    pub creation_path: Vec<String>,
    /// The number in BackendKeyData.
    pub process_id: i32,
    /// How many functions of triggers stand in each other.
    pub trigger_depth: i32,
    /// EXPLAIN ANALYZE will ask what became of the plan.
    pub explains: bool,
    /// The transaction's start, in microseconds since 2000-01-01 UTC.
    pub now_us: i64,
    /// How dates, times and numbers look.
    pub styles: Arc<Styles>,
    /// The session's settings, for a query that shows them.
    pub(crate) settings: Option<Arc<Settings>>,
    /// Transactions committed and rolled back since the start.
    pub transactions: (u64, u64),
    /// The session's own cursors and statements, for a query that shows them.
    pub own: Arc<Own>,
    /// What statements took, of all sessions.
    pub(crate) sessions: Option<Arc<Sessions>>,
    /// Who draws numbers of sequences.
    pub(crate) numbers: Option<Numbers>,
    /// Who calls functions that only the session runs.
    pub(crate) calls: Option<Calls>,
}

impl SessionFacts {
    /// The sessions there are, as the statement's role may see them: for a query that shows them.
    pub(crate) fn activity(&self) -> Vec<Activity> {
        let sessions = self.sessions.as_ref();
        let mut activity = sessions.map_or_else(Vec::new, |sessions| sessions.activity());
        for session in &mut activity {
            session.is_visible = self.actor.may_read_statements_of(&session.user);
        }
        activity
    }
}

/// The session, as far as it draws numbers of sequences.
#[derive(Clone)]
pub(crate) struct Numbers(pub(crate) Arc<dyn SessionInfo>);

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Numbers")
    }
}

/// Whoever calls functions for a statement that runs.
#[derive(Clone)]
pub(crate) struct Calls(pub(crate) Arc<dyn Asking>);

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Calls")
    }
}

/// What only its own session shows.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// As `pg_cursors` shows them.
    pub cursors: Vec<CursorFacts>,
    /// As `pg_prepared_statements` shows them.
    pub statements: Vec<StatementFacts>,
}

/// A cursor.
#[derive(Debug, Clone)]
pub struct CursorFacts {
    /// Its name.
    pub name: String,
    /// What its client sent to declare it.
    pub text: Arc<str>,
    /// It outlives its transaction.
    pub is_held: bool,
    /// Rows come in binary.
    pub is_binary: bool,
    /// It goes back, too.
    pub goes_back: bool,
    /// When it was made, in microseconds since 2000-01-01 UTC.
    pub made_us: i64,
}

/// A prepared statement.
#[derive(Debug, Clone)]
pub struct StatementFacts {
    /// Its name.
    pub name: String,
    /// What its client sent to prepare it.
    pub text: Arc<str>,
    /// The numbers of its parameters' types.
    pub parameters: Vec<u32>,
    /// By PREPARE, not by a message of the protocol.
    pub from_sql: bool,
    /// When it was made, in microseconds since 2000-01-01 UTC.
    pub made_us: i64,
}

/// A session, as `pg_stat_activity` shows it.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The number in BackendKeyData.
    pub process_id: i32,
    /// The user's name.
    pub user: String,
    /// `application_name`.
    pub application: String,
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: String,
    /// The statement that runs or ran last.
    pub query: String,
    /// Whether the statement's role may see more than its user and application.
    pub is_visible: bool,
    /// Where its client is: `Some(None)` over a Unix socket.
    pub client: Option<Option<SocketAddr>>,
    /// The session's start, in microseconds since 2000-01-01 UTC.
    pub started_us: i64,
    /// The transaction's start, if there is one.
    pub transaction_us: Option<i64>,
    /// The statement's start; 0 before the first.
    pub statement_us: i64,
    /// When the state last changed.
    pub changed_us: i64,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The number of its transaction; 0 if it has none.
    pub transaction: u64,
    /// What it holds, in bytes, in the order of [`thermocline_engine::ChargeKind::ALL`].
    pub holds: Vec<u64>,
}

/// A setting that a query changed by `set_config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The setting's name.
    pub name: String,
    /// The new value.
    pub value: String,
    /// Only until the transaction ends.
    pub local: bool,
}
