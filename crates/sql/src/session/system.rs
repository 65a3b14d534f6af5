//! ALTER SYSTEM and `pg_reload_conf()`: settings of the server, changed while it
//! runs and kept for its next start. Where they are kept is the program's.

use std::sync::Arc;

use thermocline_engine::Database;

use super::engine::Sessions;
use super::{Session, SessionContext, shown_bytes};
use crate::error::{Result, SqlError};
use crate::parse::statement::AlterSystem;

/// A setting that ALTER SYSTEM changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SystemSetting {
    /// The most bytes that the process takes.
    MemoryLimit,
    /// Bytes that pages of warm columns may take.
    WarmBuffer,
}

impl SystemSetting {
    /// All of them, in the order in which they are applied.
    pub const ALL: [Self; 2] = [Self::MemoryLimit, Self::WarmBuffer];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MemoryLimit => "memory_limit",
            Self::WarmBuffer => "warm_buffer",
        }
    }
}

/// Keeps what ALTER SYSTEM sets from one start to the next. Values are bytes.
pub trait SystemSettings: Send + Sync {
    /// Reads a value.
    ///
    /// # Errors
    /// 22023 for one that is no size or too small.
    fn read(&self, setting: SystemSetting, value: &str) -> Result<u64>;

    /// Keeps a value; `None`: forgets what was kept.
    ///
    /// # Errors
    /// 58030 when it cannot be kept; nothing is changed then.
    fn keep(&self, setting: SystemSetting, value: Option<u64>) -> Result<()>;

    /// The value that is kept, or else the one that the program was started with; `None`: the
    /// default, which is the database's to know.
    ///
    /// # Errors
    /// F0000 when what is kept cannot be read.
    fn kept(&self, setting: SystemSetting) -> Result<Option<u64>>;

    /// Takes up what else may have changed outside, such as certificates.
    ///
    /// # Errors
    /// F0000 when it cannot be read; what holds goes on to hold then.
    fn reload(&self) -> Result<()> {
        Ok(())
    }
}

impl Session {
    pub(super) fn alter_system(&mut self, alter: &AlterSystem) -> Result<()> {
        self.need_by_itself("ALTER SYSTEM")?;
        let sessions = &self.engine.sessions;
        let kept = kept_by(sessions)?;
        match alter.name.as_deref() {
            None => {
                for setting in SystemSetting::ALL {
                    kept.keep(setting, None)?;
                }
            }
            Some(name) => {
                let setting = setting_named(name)?;
                let value = alter.value.as_deref();
                let value = value.map(|value| kept.read(setting, value)).transpose()?;
                if let (SystemSetting::WarmBuffer, Some(bytes)) = (setting, value) {
                    self.engine.db.check_warm_buffer(bytes)?;
                }
                kept.keep(setting, value)?;
            }
        }
        apply(&self.engine.db, sessions)
    }
}

fn setting_named(name: &str) -> Result<SystemSetting> {
    let mut all = SystemSetting::ALL.into_iter();
    if let Some(setting) = all.find(|setting| setting.name() == name) {
        return Ok(setting);
    }
    Err(match crate::settings::find(name) {
        Some(setting) => SqlError::unsupported(
            format!(
                "ALTER SYSTEM changes memory_limit and warm_buffer only, not \"{}\"",
                setting.name
            ),
            "Give it in thermocline.toml, or with SET in a session.",
        ),
        None => SqlError::new(
            "42704",
            format!("unrecognized configuration parameter \"{name}\""),
        ),
    })
}

impl SessionContext {
    /// `pg_reload_conf()`
    pub(super) fn reload_settings(&self) -> Result<()> {
        kept_by(&self.sessions)?.reload()?;
        apply(&self.db, &self.sessions)
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

/// What is kept holds from now on.
fn apply(db: &Arc<Database>, sessions: &Sessions) -> Result<()> {
    let kept = kept_by(sessions)?;
    if let Some(limit) = kept.kept(SystemSetting::MemoryLimit)? {
        db.set_memory_limit(limit);
    }
    db.set_warm_buffer(kept.kept(SystemSetting::WarmBuffer)?);
    let shown = [
        (SystemSetting::MemoryLimit, shown_bytes(db.memory_limit())),
        (SystemSetting::WarmBuffer, shown_bytes(db.warm_buffer())),
    ];
    for session in sessions.all() {
        session.settings(|settings| {
            for (setting, value) in &shown {
                settings.set_fixed(setting.name(), value);
            }
        });
    }
    Ok(())
}
