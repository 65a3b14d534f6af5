//! A session: what one client does, from simple queries to pipelines of the
//! extended protocol. The server reads messages and calls the methods here;
//! they write the answers into [`Client::out`].
//!
//! Guarantees PostgreSQL's rules for when a transaction begins, fails and
//! ends. Memory for a result is bounded: what streams is flushed in pieces, as the client
//! takes them, what is there as a whole is charged and leaves for a temporary file when
//! nobody takes it. Errors leave the
//! session usable; the transaction they happened in is rolled back.

mod advisory;
mod analytical;
mod arguments;
mod by_query;
mod call;
mod calling;
mod charges;
mod computed;
mod context;
mod copy;
mod current_of;
mod cursor;
mod differences;
mod engine;
mod evict;
mod explain;
mod extended;
mod insert_select;
mod kept;
mod lock;
mod locking_read;
mod lookup;
mod materialized;
mod merge;
mod notify;
mod parameters;
mod plpgsql;
mod portal;
mod prepared;
mod procedure;
mod references;
mod residence;
mod run;
mod scroll;
mod sending;
mod shapes;
mod shelf;
mod signal;
mod simple;
mod statement_count;
mod statement_log;
mod system;
mod table_as;
mod tablespace;
mod temporary;
mod texts;
mod transaction;
mod triggers;
mod unread;
mod utility;
mod vacuum;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hashbrown::HashMap;
use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::{Account, Cancel, Charge};

pub(crate) use advisory::{AdvisoryLock, mode_of};
pub(crate) use analytical::Admitted;
pub(crate) use by_query::bytes_of;
pub(crate) use calling::{Asking, Call};
pub(crate) use context::qualified;
pub use context::{Doing, SessionContext, now_us, version};
pub use engine::{DATABASE_NAME, Engine};
pub(crate) use engine::{DATABASE_OID, Sessions};
pub(crate) use signal::Signal;
pub use statement_log::STATEMENT_LOG;
pub use system::{SystemSetting, SystemSettings};
pub(crate) use tablespace::missing as missing_tablespace;

use crate::error::{Result, SqlError};
use crate::messages;
use crate::settings::Settings;
use portal::Portal;
use prepared::{Prepared, Statements};
use texts::KeptTexts;
use transaction::TransactionState;

/// A future that may move between threads.
pub type SendFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The client's connection, as far as a session needs it while a statement
/// runs.
pub trait ClientLink: Send {
    /// Writes `out` to the client and empties it.
    fn flush<'a>(&'a mut self, out: &'a mut BytesMut) -> SendFuture<'a, io::Result<()>>;

    /// The payload of the next CopyData message; `None` for CopyDone, an
    /// error for CopyFail.
    fn copy_data<'a>(&'a mut self) -> SendFuture<'a, Result<Option<Bytes>>>;
}

/// What a session answers with.
pub struct Client {
    /// Messages ready to be sent.
    pub out: BytesMut,
    /// The connection.
    pub link: Box<dyn ClientLink>,
}

/// Answers longer than this are sent in pieces, in bytes.
pub(crate) const STREAM_BYTES: usize = 64 << 10;

impl Client {
    /// Sends what is there if it is much.
    async fn flush_if_large(&mut self) -> Result<()> {
        if self.out.len() < STREAM_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    async fn flush(&mut self) -> Result<()> {
        let flushed = self.link.flush(&mut self.out).await;
        flushed.map_err(|error| {
            SqlError::new("08006", format!("could not send data to client: {error}"))
        })
    }
}

/// One client's session.
pub struct Session {
    engine: Arc<Engine>,
    context: Arc<SessionContext>,
    /// What this session holds is charged to it.
    account: Account,
    _at_rest: Charge,
    transaction: TransactionState,
    statements: Statements,
    portals: HashMap<String, Portal>,
    /// Texts of the simple protocol.
    texts: KeptTexts<[Arc<Prepared>]>,
    /// Shapes of such texts.
    shapes: KeptTexts<shapes::Shape>,
    /// See [`Session::has_shape`].
    reading: shapes::Reading,
    /// Texts of the unnamed statement.
    unnamed_texts: KeptTexts<Prepared>,
    /// Kept between statements, so that rows need no new buffer.
    row_buffer: Vec<u8>,
    /// See [`Session::sync_follows`].
    sync_follows: bool,
    /// The rows that the statement has given or changed.
    rows_processed: u64,
    /// The functions of PL/pgSQL that it has called, and where it is in them.
    plpgsql: plpgsql::Calls,
    /// What its triggers are to be called for when a statement ends.
    triggers: triggers::Queue,
}

impl Session {
    /// A session of `user`; `parameters` are those of the start-up message.
    ///
    /// # Errors 3D000 for another database than the one there is, 28000 for a role that is
    /// not there or may not log in; 53300 beyond its connection limit and without memory
    /// for one more session; 22023 and 42704 for parameters that cannot be set.
    pub fn new(
        engine: Arc<Engine>,
        user: &str,
        database: &str,
        parameters: &[(String, String)],
        process_id: i32,
        _secret: i32,
    ) -> Result<Self> {
        if database != DATABASE_NAME && database != user {
            return Err(
                SqlError::new("3D000", format!("database \"{database}\" does not exist"))
                    .with_hint(format!("The one database is \"{DATABASE_NAME}\".")),
            );
        }
        let (account, at_rest) = charges::at_rest(&engine.db)?;
        let superuser = admit(&engine, user)?;
        let fixed = [
            (
                "is_superuser",
                if superuser { "on" } else { "off" }.to_owned(),
            ),
            ("memory_limit", shown_bytes(engine.db.memory_limit())),
            ("warm_buffer", shown_bytes(engine.db.warm_buffer())),
            ("partitions", engine.db.partitions().to_string()),
        ];
        let fixed: Vec<(&str, String)> = engine
            .sessions
            .defaults()
            .iter()
            .map(|(name, value)| (*name, value.clone()))
            .chain(fixed)
            .collect();
        let mut settings = Settings::new(user, &fixed);
        let refused = begin_with(&mut settings, &engine, user);
        for (name, value) in parameters {
            match name.as_str() {
                "user" | "database" | "replication" => {}
                "options" => start_up_options(&mut settings, value)?,
                // Options of the protocol itself, which the server negotiates.
                name if name.starts_with("_pq_.") => {}
                name => settings.start_up(name, value)?,
            }
        }
        let context = Arc::new(SessionContext::new(
            &engine.db,
            &engine.sessions,
            user,
            database,
            process_id,
            settings,
            account.clone(),
        ));
        context.notices.lock().extend(refused);
        engine.sessions.enter(&context);
        let transaction = TransactionState::new(Arc::clone(&context.transaction));
        Ok(Self {
            statements: Statements::new(Arc::clone(&engine.shelf)),
            texts: KeptTexts::new(Arc::clone(&engine.shelf), account.clone()),
            shapes: KeptTexts::new(Arc::clone(&engine.shelf), account.clone()),
            reading: shapes::Reading::default(),
            unnamed_texts: KeptTexts::new(Arc::clone(&engine.shelf), account.clone()),
            engine,
            context,
            account,
            _at_rest: at_rest,
            transaction,
            portals: HashMap::new(),
            row_buffer: Vec::new(),
            sync_follows: false,
            rows_processed: 0,
            plpgsql: plpgsql::Calls::default(),
            triggers: triggers::Queue::default(),
        })
    }

    /// The ParameterStatus set of a new connection.
    #[must_use]
    pub fn startup_parameters(&self) -> Vec<(String, String)> {
        self.context.settings(|settings| settings.reported())
    }

    /// The reported settings that changed, to be sent before ReadyForQuery.
    pub fn changed_parameters(&mut self) -> Vec<(&'static str, String)> {
        self.context.settings(Settings::take_changed)
    }

    /// What this session holds.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Says where its client is; None: over a Unix socket.
    pub fn comes_from(&self, client: Option<SocketAddr>) {
        let _ = self.context.client.set(client);
    }

    /// How long the client may leave the session as idle as it is now, and what ends it then.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<(Duration, SqlError)> {
        let in_transaction = self.transaction.status() != b'I';
        let allowed = self
            .context
            .settings(|settings| settings.idle_timeout(in_transaction))?;
        let error = match in_transaction {
            true => SqlError::new(
                "25P03",
                "terminating connection due to idle-in-transaction timeout",
            ),
            false => SqlError::new(
                "57P05",
                "terminating connection due to idle-session timeout",
            ),
        };
        Some((allowed, error))
    }

    /// What stops the running statement, or the session.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.context.cancel.clone()
    }

    /// `I`, `T` or `E`, for ReadyForQuery.
    #[must_use]
    pub fn transaction_status(&self) -> u8 {
        self.transaction.status()
    }

    /// Says that the message after the next Execute is a Sync: that statement
    /// is a transaction of its own. Without it each batch of the extended
    /// protocol is run as a transaction of several statements, which is right
    /// but costs more.
    pub fn sync_follows(&mut self, follows: bool) {
        self.sync_follows = follows;
    }

    /// Rolls back what is open, and drops what is temporary; the client is gone.
    pub async fn terminate(&mut self) {
        self.portals.clear();
        self.transaction
            .rollback(&self.engine.db, &self.context)
            .await;
        self.leave_nothing_temporary().await;
    }

    /// What follows an error: the transaction fails, its portals go.
    async fn failed(&mut self) {
        self.transaction.fail();
        self.close_failed_portals();
        self.transaction
            .end_failed(&self.engine.db, &self.context)
            .await;
        if self.transaction.block() == transaction::Block::None {
            self.settle_held(false);
        }
    }

    /// Tells the client something, if it wants to hear of it.
    fn notify(&self, client: &mut Client, severity: &str, notice: &SqlError) {
        let least = self
            .context
            .settings(|settings| settings.get("client_min_messages"))
            .unwrap_or_default();
        let wanted = match least.as_str() {
            "error" => false,
            "warning" => severity == "WARNING",
            _ => true,
        };
        if wanted {
            messages::notice_response(&mut client.out, severity, notice);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.context.stop_listening();
        self.engine.sessions.leave(&self.context);
    }
}

/// Whether the role may have one more session; and whether it is a superuser.
/// Takes over what sessions of a role begin with; warnings of what is no longer accepted.
fn begin_with(
    settings: &mut Settings,
    engine: &Engine,
    user: &str,
) -> Vec<(&'static str, SqlError)> {
    let catalog = engine.db.catalog();
    let authority = &catalog.authority;
    let role = authority.role_by_name(user).map_or(0, |role| role.oid);
    let begun = authority.settings_for(role);
    let refused = begun.filter_map(|(name, value)| settings.begin_with(name, value).err());
    refused.map(|error| ("WARNING", error)).collect()
}

fn admit(engine: &Engine, user: &str) -> Result<bool> {
    let catalog = engine.db.catalog();
    let Some(role) = catalog.authority.role_by_name(user) else {
        return Err(SqlError::new(
            "28000",
            format!("role \"{user}\" does not exist"),
        ));
    };
    if !role.login {
        return Err(SqlError::new(
            "28000",
            format!("role \"{user}\" is not permitted to log in"),
        ));
    }
    let connect = catalog
        .authority
        .privileges(role.oid, &Object::Database)
        .contains(Privileges::CONNECT);
    if !connect {
        return Err(crate::privilege::denied("database", DATABASE_NAME)
            .with_detail("User does not have CONNECT privilege."));
    }
    let limit = usize::try_from(role.connection_limit).unwrap_or(usize::MAX);
    if !role.superuser && engine.sessions.count_of(user) >= limit {
        return Err(SqlError::new(
            "53300",
            format!("too many connections for role \"{user}\""),
        ));
    }
    Ok(role.superuser)
}

/// `-c name=value` and `--name=value` of the start-up option `options`; a
/// backslash keeps a blank in a value.
fn start_up_options(settings: &mut Settings, options: &str) -> Result<()> {
    let mut words = vec![String::new()];
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        match (character, words.last_mut()) {
            ('\\', Some(word)) => word.extend(characters.next()),
            (' ', _) => words.push(String::new()),
            (other, Some(word)) => word.push(other),
            (_, None) => {}
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let assignment = if word == "-c" {
            words.next()
        } else if let Some(rest) = word.strip_prefix("--") {
            Some(rest.to_owned())
        } else {
            word.strip_prefix("-c").map(str::to_owned)
        };
        let assigned = assignment
            .as_deref()
            .and_then(|assignment| assignment.split_once('='));
        let Some((name, value)) = assigned else {
            return Err(SqlError::syntax(format!(
                "invalid command-line argument for server process: {word}"
            )));
        };
        settings.start_up(&name.replace('-', "_"), value)?;
    }
    Ok(())
}

/// A number of bytes as SHOW writes it.
fn shown_bytes(bytes: u64) -> String {
    for (unit, shift) in [("GB", 30), ("MB", 20), ("kB", 10)] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_start_up_message() {
        let mut settings = Settings::new("postgres", &[]);
        start_up_options(
            &mut settings,
            "-c statement_timeout=5s --search-path=a,b -cjit=on -c application_name=a\\ b",
        )
        .unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap(), "5s");
        assert_eq!(settings.show("jit").unwrap(), "on");
        assert_eq!(settings.show("application_name").unwrap(), "a b");
        assert_eq!(*settings.search_path(), ["a".to_owned(), "b".to_owned()]);
        assert!(start_up_options(&mut settings, "-x").is_err());
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit() {
        assert_eq!(shown_bytes(256 << 20), "256MB");
        assert_eq!(shown_bytes(1 << 30), "1GB");
        assert_eq!(shown_bytes(1000), "1000B");
    }
}
