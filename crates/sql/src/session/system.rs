//! ALTER SYSTEM and `pg_reload_conf()`: settings of the server, changed while it
//! runs and kept for its next start. Where they are kept is the program's.

use std::sync::Arc;

use thermocline_engine::Database;

use super::engine::Sessions;
use super::{Session, SessionContext, shown_bytes};
use crate::error::{Result, SqlError};
use crate::parse::statement::AlterSystem;

/// The one setting that ALTER SYSTEM changes.
const MEMORY_LIMIT: &str = "memory_limit";

/// Keeps what ALTER SYSTEM sets from one start to the next.
pub trait SystemSettings: Send + Sync {
    /// Keeps `memory_limit` (`None`: forgets what was kept) and returns the limit
    /// that holds from now on, in bytes.
    ///
    /// # Errors
    /// 22023 for a value that is no size or too small, 58030 when it cannot be
    /// kept; nothing is changed then.
    fn alter_memory_limit(&self, value: Option<&str>) -> Result<u64>;

    /// The limit that is kept, or else the one that the program was started
    /// with, in bytes.
    ///
    /// # Errors
    /// F0000 when what is kept cannot be read.
    fn kept_memory_limit(&self) -> Result<u64>;

    /// Takes up what else may have changed outside, such as certificates.
    ///
    /// # Errors
    /// F0000 when it cannot be read; what holds goes on to hold then.
    fn reload(&self) -> Result<()> {
        Ok(())
    }
}

impl Session {
    pub(super) fn alter_system(&self, alter: &AlterSystem) -> Result<()> {
        if self.transaction.block() != super::transaction::Block::None {
            return Err(SqlError::new(
                "25001",
                "ALTER SYSTEM cannot run inside a transaction block",
            ));
        }
        let name = alter.name.as_deref().unwrap_or(MEMORY_LIMIT);
        if name != MEMORY_LIMIT {
            return Err(match crate::settings::find(name) {
                Some(setting) => SqlError::unsupported(
                    format!(
                        "ALTER SYSTEM changes {MEMORY_LIMIT} only, not \"{}\"",
                        setting.name
                    ),
                    "Give it in thermocline.toml, or with SET in a session.",
                ),
                None => SqlError::new(
                    "42704",
                    format!("unrecognized configuration parameter \"{name}\""),
                ),
            });
        }
        let sessions = &self.engine.sessions;
        let limit = kept_by(sessions)?.alter_memory_limit(alter.value.as_deref())?;
        apply_memory_limit(&self.engine.db, sessions, limit);
        Ok(())
    }
}

impl SessionContext {
    /// `pg_reload_conf()`
    pub(super) fn reload_settings(&self) -> Result<()> {
        let kept = kept_by(&self.sessions)?;
        kept.reload()?;
        let limit = kept.kept_memory_limit()?;
        apply_memory_limit(&self.db, &self.sessions, limit);
        Ok(())
    }
}

fn kept_by(sessions: &Sessions) -> Result<&dyn SystemSettings> {
    match sessions.system.get() {
        Some(system) => Ok(&**system),
        None => Err(SqlError::unsupported(
            "ALTER SYSTEM is not supported by an embedded database",
            "Database::set_memory_limit changes the limit of an embedded database.",
        )),
    }
}

fn apply_memory_limit(db: &Arc<Database>, sessions: &Sessions, bytes: u64) {
    db.set_memory_limit(bytes);
    let shown = shown_bytes(db.memory_limit());
    for session in sessions.all() {
        session.settings(|settings| settings.set_fixed(MEMORY_LIMIT, &shown));
    }
}
