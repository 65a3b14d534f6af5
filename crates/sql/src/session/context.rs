//! What a session knows of itself and tells to expressions: who and where it
//! is, its settings, the sequences it has used. Shared between the session and
//! the statements it runs; its locks are held for single look-ups only.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use thermocline_engine::authority::Privileges;
use thermocline_engine::{
    Account, Cancel, Catalog, Charge, ChargeKind, Database, ReadCounts, RunOptions, SequenceDef,
};
use thermocline_query::call::Asked;
use thermocline_query::datum::Datum;
use thermocline_values::value::Value;

use super::engine::{DATABASE_OID, Sessions};
use super::notify::Listening;
use super::signal::{Signal, Waits};
use crate::error::{Result, SqlError};
use crate::expr::SessionInfo;
use crate::one_row::ADVISORY;
use crate::privilege::{Actor, denied};
use crate::settings::{self, SERVER_VERSION, Settings};
use crate::statement_statistics::LocalStatistics;
use crate::styles::Styles;
use crate::temporary;

/// What a session does: nothing, and it is in no transaction,
pub(super) const IDLE: &str = "idle";
/// or a statement.
const ACTIVE: &str = "active";

/// Seconds from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_OFFSET_SECONDS: i64 = 946_684_800;

/// The time, in microseconds since 2000-01-01 UTC.
#[must_use]
pub fn now_us() -> i64 {
    let since_1970 = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    since_1970.saturating_sub(EPOCH_OFFSET_SECONDS * 1_000_000)
}

/// See the head of this file.
pub struct SessionContext {
    /// Who connected; statements may be run as another role since.
    pub user: String,
    /// The database's name.
    pub database: String,
    /// The number that BackendKeyData gave.
    pub process_id: i32,
    /// When the session began, in microseconds since 2000-01-01 UTC.
    pub started_us: i64,
    /// What the session holds is charged to it.
    pub account: Account,
    /// Where its client is; None over a Unix socket, unset in a program's own session.
    pub(super) client: OnceLock<Option<SocketAddr>>,
    pub(super) cancel: Cancel,
    /// The number of its transaction; 0 where there is none.
    pub(super) transaction: Arc<AtomicU64>,
    /// What its functions have to tell the client, until that is told.
    pub(super) notices: Mutex<Vec<(&'static str, SqlError)>>,
    /// See `notify.rs`.
    pub(super) listening: Listening,
    /// See `signal.rs`.
    pub(super) waits: Mutex<Waits>,
    /// How many functions of triggers stand in each other.
    trigger_depth: AtomicI32,
    /// EXPLAIN ANALYZE runs its statement.
    pub(super) explains: AtomicBool,
    /// The transaction has advisory locks of its own.
    pub(super) has_advisory: AtomicBool,
    /// What its advisory locks take.
    pub(super) advisory_charge: Mutex<Option<Charge>>,
    /// Transactions that ended well, and that did not.
    pub(super) committed: AtomicU64,
    pub(super) rolled_back: AtomicU64,
    pub(super) db: Arc<Database>,
    pub(super) sessions: Arc<Sessions>,
    /// What its statements took, until it is merged.
    pub(super) statements: Mutex<LocalStatistics>,
    /// The rows that its statement uses.
    pub(super) reads: Arc<ReadCounts>,
    settings: Mutex<Settings>,
    sequences: Mutex<Sequences>,
    /// Up to where the log must be durable before the client is told a sequence's number; 0
    /// if it is.
    numbers_logged_to: AtomicU64,
    running: Mutex<Running>,
}

/// The sequences that the session has used.
#[derive(Default)]
struct Sequences {
    values: HashMap<u32, i64>,
    last: Option<u32>,
}

/// What belongs to the statement that runs.
struct Running {
    /// `active`, `idle`, `idle in transaction`, …
    state: &'static str,
    /// The text that runs or ran last.
    text: Arc<str>,
    /// The catalog as the statement's transaction sees it.
    catalog: Arc<Catalog>,
    /// When the statement began.
    began_us: i64,
    /// When its transaction began: `now()`.
    transaction_us: i64,
    /// What the largest values that its expressions make are charged.
    values: Option<Charge>,
    /// When the state was last changed.
    changed_us: i64,
}

/// What a session does, as others see it.
#[derive(Clone, Debug)]
pub struct Doing {
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: &'static str,
    /// The text that runs or ran last.
    pub text: Arc<str>,
    /// When its transaction began, if it is in one; this and the following in microseconds
    /// since 2000-01-01 UTC.
    pub transaction_us: Option<i64>,
    /// When the statement began.
    pub statement_us: i64,
    /// When the state last changed.
    pub changed_us: i64,
}

impl SessionContext {
    pub(super) fn new(
        db: &Arc<Database>,
        sessions: &Arc<Sessions>,
        user: &str,
        database: &str,
        process_id: i32,
        settings: Settings,
        account: Account,
    ) -> Self {
        Self {
            account,
            user: user.to_owned(),
            database: database.to_owned(),
            process_id,
            started_us: now_us(),
            client: OnceLock::new(),
            cancel: Cancel::new(),
            transaction: Arc::default(),
            notices: Mutex::default(),
            explains: AtomicBool::new(false),
            has_advisory: AtomicBool::new(false),
            advisory_charge: Mutex::default(),
            waits: Mutex::default(),
            trigger_depth: AtomicI32::new(0),
            listening: Listening::default(),
            committed: AtomicU64::new(0),
            rolled_back: AtomicU64::new(0),
            db: Arc::clone(db),
            sessions: Arc::clone(sessions),
            statements: Mutex::default(),
            reads: Arc::default(),
            settings: Mutex::new(settings),
            numbers_logged_to: AtomicU64::new(0),
            sequences: Mutex::default(),
            running: Mutex::new(Running {
                state: IDLE,
                text: Arc::from(""),
                catalog: db.catalog(),
                began_us: 0,
                transaction_us: 0,
                values: None,
                changed_us: now_us(),
            }),
        }
    }

    /// A function of a trigger is called, or has ended.
    pub(super) fn trigger_depth(&self, more: i32) {
        self.trigger_depth.fetch_add(more, Ordering::Relaxed);
    }

    /// How many functions of triggers stand in each other.
    pub(super) fn triggers_around(&self) -> i32 {
        self.trigger_depth.load(Ordering::Relaxed)
    }

    /// Reads or changes the settings.
    pub fn settings<R>(&self, use_them: impl FnOnce(&mut Settings) -> R) -> R {
        use_them(&mut self.settings.lock())
    }

    /// How its dates, times and numbers look now.
    #[must_use]
    pub fn styles(&self) -> Arc<Styles> {
        self.settings(|settings| settings.styles())
    }

    /// The catalog as the running statement sees it.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.running.lock().catalog)
    }

    /// When the running transaction began, in microseconds since 2000-01-01
    /// UTC: `now()`.
    #[must_use]
    pub fn transaction_us(&self) -> i64 {
        self.running.lock().transaction_us
    }

    /// What `pg_stat_activity` shows.
    #[must_use]
    pub fn activity(&self) -> Doing {
        let running = self.running.lock();
        Doing {
            state: running.state,
            text: Arc::clone(&running.text),
            transaction_us: (running.state != IDLE).then_some(running.transaction_us),
            statement_us: running.began_us,
            changed_us: running.changed_us,
        }
    }

    /// Where its client is; None over a Unix socket.
    #[must_use]
    pub fn client_address(&self) -> Option<SocketAddr> {
        self.client.get().copied().flatten()
    }

    /// Whether it runs a statement.
    pub(super) fn is_active(&self) -> bool {
        self.running.lock().state == ACTIVE
    }

    pub(super) fn set_state(&self, state: &'static str) {
        let now = now_us();
        let mut running = self.running.lock();
        running.state = state;
        running.changed_us = now;
    }

    pub(super) fn begin_statement(
        &self,
        text: &Arc<str>,
        catalog: &Arc<Catalog>,
        began_us: i64,
        transaction_us: i64,
    ) {
        let mut running = self.running.lock();
        if running.state != ACTIVE {
            running.state = ACTIVE;
            running.changed_us = began_us;
        }
        if !Arc::ptr_eq(&running.text, text) {
            running.text = Arc::clone(text);
        }
        if !Arc::ptr_eq(&running.catalog, catalog) {
            running.catalog = Arc::clone(catalog);
        }
        running.began_us = began_us;
        running.transaction_us = transaction_us;
        running.values = None;
    }

    /// Another transaction begins amid a statement.
    pub(super) fn begin_transaction(&self, catalog: &Arc<Catalog>, began_us: i64) {
        let mut running = self.running.lock();
        running.catalog = Arc::clone(catalog);
        running.transaction_us = began_us;
    }

    /// Changes a setting for the client: SET, RESET, `set_config`.
    ///
    /// # Errors
    /// As [`Settings::set`]; what only superusers change asks the role as it is now.
    pub fn set(&self, name: &str, value: Option<&[String]>, local: bool) -> Result<()> {
        let superusers = settings::find(name).filter(|setting| setting.superuser);
        if let Some(setting) = superusers
            && !self.actor()?.is_superuser()
        {
            return Err(settings::permission_denied(setting.name));
        }
        self.settings(|settings| settings.set(name, value, local))
    }

    /// Who statements are run as now.
    ///
    /// # Errors
    /// 42704 when the role has been dropped.
    pub fn actor(&self) -> Result<Actor> {
        let role = self.settings(|settings| settings.role());
        Actor::named(&role, &self.catalog())
    }

    /// The session's user: who connected, unless SET SESSION AUTHORIZATION said another.
    #[must_use]
    pub fn session_user(&self) -> String {
        let user = self.settings(|settings| settings.get("session_authorization"));
        user.unwrap_or_else(|| self.user.clone())
    }

    /// SET and RESET of ROLE and SESSION AUTHORIZATION.
    pub(super) fn assume(&self, setting: &str, name: Option<&str>, local: bool) -> Result<()> {
        // A role that this transaction has made may be taken in it.
        let catalog = self.catalog();
        let authority = &catalog.authority;
        let is_superuser = |name: &str| {
            let role = authority.role_by_name(name);
            role.is_some_and(|role| role.superuser)
        };
        let session_user = self.session_user();
        let role_is_given = setting == "role";
        let name = name.filter(|name| !(role_is_given && *name == "none"));
        let Some(name) = name else {
            let back = if role_is_given {
                &session_user
            } else {
                &self.user
            };
            let superuser = is_superuser(back);
            self.settings(|settings| settings.assume(setting, None, superuser, local));
            return Ok(());
        };
        let Some(role) = authority.role_by_name(name) else {
            return Err(SqlError::new(
                "22023",
                format!("role \"{name}\" does not exist"),
            ));
        };
        if role_is_given {
            let mine = authority.role_by_name(&session_user);
            if !mine.is_some_and(|mine| authority.is_member(mine.oid, role.oid)) {
                return Err(SqlError::new(
                    "42501",
                    format!("permission denied to set role \"{name}\""),
                ));
            }
        } else if name != self.user && !is_superuser(&self.user) {
            return Err(SqlError::new(
                "42501",
                format!("permission denied to set session authorization \"{name}\""),
            ));
        }
        let superuser = role.superuser;
        self.settings(|settings| settings.assume(setting, Some(name), superuser, local));
        Ok(())
    }

    /// The sequence of a name or a number, if it may be used so; none for NULL.
    fn usable_sequence(
        &self,
        given: Option<&Value>,
        needs: Privileges,
    ) -> Result<Option<Arc<SequenceDef>>> {
        let Some(Value::BigInt(oid)) = given else {
            return Ok(None);
        };
        let oid = u32::try_from(*oid).unwrap_or_default();
        let found = self.catalog().sequences.get(&oid).cloned();
        let sequence = found.ok_or_else(|| {
            let message = format!("the relation with OID {oid} is not a sequence");
            SqlError::new("42809", message)
        })?;
        let path = self.settings.lock().search_path();
        temporary::not_others(&sequence.schema, &path)?;
        self.actor()?
            .need_sequence(&self.catalog(), &sequence, needs)?;
        Ok(Some(sequence))
    }

    /// Forgets the sequences' values (DISCARD SEQUENCES).
    pub(super) fn discard_sequences(&self) {
        *self.sequences.lock() = Sequences::default();
    }

    /// The session's temporary schema, which need not be there yet.
    pub(super) fn temporary_schema(&self) -> Option<String> {
        self.settings(|settings| settings.temporary_schema().map(str::to_owned))
    }

    /// Whether the session has something temporary.
    pub(super) fn has_temporary(&self) -> bool {
        let schema = self.temporary_schema();
        schema.is_some_and(|schema| self.db.catalog().schema(&schema).is_some())
    }

    /// Gives the session a temporary schema, if it has none: what it defines may go there.
    pub(super) fn take_temporary_schema(&self) {
        self.settings(|settings| {
            if settings.temporary_schema().is_none() {
                settings.set_temporary_schema(self.sessions.new_temporary_schema());
            }
        });
    }

    /// The first schema of the search path that exists.
    #[must_use]
    pub fn current_schema(&self) -> Option<String> {
        let path = self.settings.lock().creation_path();
        let catalog = self.catalog();
        path.iter()
            .find(|schema| {
                let of_system = matches!(schema.as_str(), "pg_catalog" | "information_schema");
                of_system || catalog.schemas.iter().any(|there| there.name == **schema)
            })
            .cloned()
    }
    /// Waits until no number of a sequence that this session has seen can come again: before
    /// the client is told anything.
    pub(super) async fn keep_numbers(&self, options: impl FnOnce() -> RunOptions) -> Result<()> {
        let logged_to = self.numbers_logged_to.load(Ordering::Relaxed);
        if logged_to > 0 {
            self.db.wait_for_log(&options(), logged_to).await?;
            self.numbers_logged_to.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn note_sequence(&self, sequence: u32, value: i64) {
        let mut sequences = self.sequences.lock();
        sequences.values.insert(sequence, value);
        sequences.last = Some(sequence);
    }

    fn current_value(&self, sequence: &SequenceDef) -> Result<i64> {
        let value = self.sequences.lock().values.get(&sequence.oid).copied();
        value.ok_or_else(|| {
            SqlError::new(
                "55000",
                format!(
                    "currval of sequence \"{}\" is not yet defined in this session",
                    sequence.name
                ),
            )
        })
    }

    fn last_value(&self) -> Result<i64> {
        let sequences = self.sequences.lock();
        sequences
            .last
            .and_then(|last| sequences.values.get(&last).copied())
            .ok_or_else(|| SqlError::new("55000", "lastval is not yet defined in this session"))
    }

    fn set_value(&self, sequence: &SequenceDef, value: i64, is_called: bool) -> Result<i64> {
        let logged_to = self.db.set_value(sequence, value, is_called)?;
        self.numbers_logged_to
            .fetch_max(logged_to, Ordering::Relaxed);
        if is_called {
            self.note_sequence(sequence.oid, value);
        }
        Ok(value)
    }

    fn set_config(&self, name: &str, value: &str, local: bool) -> Result<String> {
        self.set(name, Some(&[value.to_owned()]), local)?;
        self.settings(|settings| settings.show(name))
    }
}

/// PostgreSQL's `version()`.
#[must_use]
pub fn version() -> String {
    format!(
        "PostgreSQL {SERVER_VERSION} on {}-{}, compiled by rustc, {}-bit",
        std::env::consts::ARCH,
        std::env::consts::OS,
        usize::BITS
    )
}

/// The parts of a name written as SQL writes it, in a text.
pub(crate) fn qualified(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for character in name.trim().chars() {
        match character {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            _ => {
                if let Some(part) = parts.last_mut() {
                    if quoted {
                        part.push(character);
                    } else {
                        part.extend(character.to_lowercase());
                    }
                }
            }
        }
    }
    parts
}

impl SessionInfo for SessionContext {
    fn room_for_value(&self, bytes: u64) -> Result<()> {
        let mut running = self.running.lock();
        let nothing = || self.account.nothing(ChargeKind::Value);
        let charge = running.values.get_or_insert_with(nothing);
        // It is made of another, or another of it.
        let wanted = bytes * 2;
        if charge.bytes() < wanted {
            charge.resize(wanted)?;
        }
        Ok(())
    }

    fn check_interrupted(&self) -> Result<()> {
        Ok(self.cancel.check()?)
    }

    fn sleep(&self, seconds: f64) -> Result<()> {
        Self::sleep(self, seconds)
    }

    fn called(&self, asked: &Asked<'_>) -> Result<Datum> {
        self.given_by(asked)
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value> {
        let text = |at: usize| match arguments.get(at) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let boolean = |at: usize| match arguments.get(at) {
            Some(Value::Boolean(value)) => Some(*value),
            _ => None,
        };
        Ok(match name {
            "version" => Value::Text(version()),
            "current_schema" => self.current_schema().map_or(Value::Null, Value::Text),
            "current_database" | "current_catalog" => Value::Text(self.database.clone()),
            "current_user" | "current_role" | "user" => {
                Value::Text(self.settings(|settings| settings.role()).to_string())
            }
            "session_user" => Value::Text(self.session_user()),
            "pg_backend_pid" => Value::Integer(self.process_id),
            "pg_is_in_recovery" => Value::Boolean(false),
            "pg_reload_conf" => {
                if !self.actor()?.is_superuser() {
                    return Err(denied("function", "pg_reload_conf"));
                }
                self.reload_settings()?;
                Value::Boolean(true)
            }
            "pg_stat_statements_reset" => {
                if !self.actor()?.is_superuser() {
                    return Err(denied("function", "pg_stat_statements_reset"));
                }
                let wanted = |at: usize| match arguments.get(at) {
                    Some(Value::BigInt(number)) if *number != 0 => Some(*number),
                    _ => None,
                };
                let (user, database, query) = (wanted(0), wanted(1), wanted(2));
                if database.is_none_or(|database| database == i64::from(DATABASE_OID)) {
                    let statements = self.sessions.merged_statements();
                    statements.forget(|of, id| {
                        user.is_none_or(|user| user == i64::from(of))
                            && query.is_none_or(|query| query == id)
                    });
                }
                Value::Text(String::new())
            }
            "pg_notify" => {
                self.notify(text(0).unwrap_or(""), text(1).unwrap_or(""))?;
                Value::Text(String::new())
            }
            name if ADVISORY.contains(&name) => self.advisory(name, arguments)?,
            "pg_cancel_backend" | "pg_terminate_backend" => {
                let Some(Value::Integer(process_id)) = arguments.first() else {
                    return Ok(Value::Null);
                };
                let signal = match (name, arguments.get(1)) {
                    ("pg_cancel_backend", _) => Signal::Cancel,
                    (_, Some(Value::BigInt(timeout))) => Signal::Terminate(*timeout),
                    (_, Some(_)) => return Ok(Value::Null),
                    (_, None) => Signal::Terminate(0),
                };
                Value::Boolean(self.signal(&self.actor()?, *process_id, signal)?)
            }
            "current_setting" => match text(0) {
                Some(name) if boolean(1) == Some(true) => self
                    .settings
                    .lock()
                    .get(name)
                    .map_or(Value::Null, Value::Text),
                Some(name) => Value::Text(self.settings.lock().show(name)?),
                None => Value::Null,
            },
            "set_config" => match text(0) {
                Some(name) => Value::Text(self.set_config(
                    name,
                    text(1).unwrap_or(""),
                    boolean(2).unwrap_or(false),
                )?),
                None => return Err(SqlError::new("22004", "SET requires parameter name")),
            },
            "nextval" => {
                let needs = Privileges::USAGE | Privileges::UPDATE;
                match self.usable_sequence(arguments.first(), needs)? {
                    Some(sequence) => Value::BigInt(self.next_value(sequence.oid)?),
                    None => Value::Null,
                }
            }
            "currval" => {
                let needs = Privileges::USAGE | Privileges::SELECT;
                match self.usable_sequence(arguments.first(), needs)? {
                    Some(sequence) => Value::BigInt(self.current_value(&sequence)?),
                    None => Value::Null,
                }
            }
            "lastval" => Value::BigInt(self.last_value()?),
            "setval" => {
                let sequence = self.usable_sequence(arguments.first(), Privileges::UPDATE)?;
                match (sequence, arguments.get(1)) {
                    (Some(sequence), Some(Value::BigInt(value))) => {
                        let is_called = boolean(2).unwrap_or(true);
                        Value::BigInt(self.set_value(&sequence, *value, is_called)?)
                    }
                    _ => Value::Null,
                }
            }
            "pg_trigger_depth" => Value::Integer(self.triggers_around()),
            "clock_timestamp" => Value::TimestampTz(now_us()),
            "statement_timestamp" => Value::TimestampTz(self.running.lock().began_us),
            _ => {
                return Err(SqlError::new(
                    "42883",
                    format!("function {name}() does not exist"),
                ));
            }
        })
    }

    fn next_value(&self, sequence: u32) -> Result<i64> {
        let catalog = self.catalog();
        let def = catalog.sequences.get(&sequence).ok_or_else(|| {
            SqlError::new(
                "42P01",
                format!("the sequence with OID {sequence} does not exist"),
            )
        })?;
        let given = self.db.next_value(def)?;
        self.numbers_logged_to
            .fetch_max(given.logged_to, Ordering::Relaxed);
        self.note_sequence(sequence, given.value);
        Ok(given.value)
    }

    fn see(&self, catalog: &Arc<Catalog>) {
        self.running.lock().catalog = Arc::clone(catalog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_texts_are_folded_and_unquoted() {
        assert_eq!(qualified("App.\"Seq.X\""), ["app", "Seq.X"]);
        assert_eq!(qualified(" s "), ["s"]);
    }

    #[test]
    fn the_version_can_be_parsed_by_sqlalchemy() {
        let version = version();
        let rest = version.strip_prefix("PostgreSQL ").unwrap();
        assert!(rest.starts_with("15."), "{version}");
    }
}
