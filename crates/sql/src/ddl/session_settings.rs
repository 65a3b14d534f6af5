//! What sessions begin with: ALTER ROLE … SET and ALTER DATABASE … SET. It holds from a
//! session's start on; sessions that are there go on as they are.

use thermocline_engine::authority::SettingsOf;

use super::Definition;
use super::role::{may_make_roles, not_predefined};
use crate::error::{Result, SqlError};
use crate::parse::role::SettingChange;
use crate::session::DATABASE_NAME;
use crate::settings::{self, Settings, permission_denied};

/// Stands for all roles.
const ALL: u32 = 0;

impl Definition<'_> {
    /// Whose sessions a change is for.
    ///
    /// # Errors
    /// 42501 unless the user may change it; 42704 and 3D000 for who and what is not there.
    pub(super) fn settings_of(
        &self,
        role: Option<&str>,
        database: Option<&str>,
    ) -> Result<SettingsOf> {
        if let Some(name) = database
            && name != DATABASE_NAME
        {
            let message = format!("database \"{name}\" does not exist");
            return Err(SqlError::new("3D000", message)
                .with_hint(format!("The one database is \"{DATABASE_NAME}\".")));
        }
        let actor = self.actor()?;
        let role = match role {
            None if actor.is_superuser() => ALL,
            None if database.is_some() => {
                let message = format!("must be owner of database {DATABASE_NAME}");
                return Err(SqlError::new("42501", message));
            }
            None => {
                actor.need_superuser("alter settings globally")?;
                ALL
            }
            Some(name) => {
                let oid = self.role_oid(name)?;
                not_predefined(oid, name)?;
                match actor.authority().is_superuser(oid) {
                    true => actor.need_superuser("alter superusers")?,
                    false if oid == actor.role() => {}
                    false => may_make_roles(&actor)?,
                }
                oid
            }
        };
        Ok(SettingsOf {
            role,
            in_database: database.is_some(),
        })
    }

    /// Changes what these sessions begin with.
    ///
    /// # Errors
    /// 42704, 55P02 and 22023 as SET has them; 42501 for what only superusers may set.
    pub(super) async fn change_settings(
        &mut self,
        of: SettingsOf,
        change: &SettingChange,
    ) -> Result<()> {
        let actor = self.actor()?;
        let mut authority = (**actor.authority()).clone();
        let settings = authority.settings.entry(of).or_default();
        // What a superuser said for others stays until a superuser takes it back.
        let may_change = |name: &str| {
            let known = settings::find(name);
            actor.is_superuser() || !known.is_some_and(|setting| setting.superuser)
        };
        match change {
            SettingChange::All => settings.retain(|name, _| !may_change(name)),
            SettingChange::One(name, None) => {
                let name = name.to_lowercase();
                if !may_change(&name) {
                    return Err(permission_denied(&name));
                }
                settings.remove(&name);
            }
            SettingChange::One(name, Some(values)) => {
                let value = Settings::accepted(name, values, actor.is_superuser())?;
                settings.insert(name.to_lowercase(), value);
            }
        }
        if settings.is_empty() {
            authority.settings.remove(&of);
        }
        self.authorize(authority).await
    }
}
