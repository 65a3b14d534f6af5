//! The settings of a session: SET, SHOW, RESET and what the session itself
//! reads from them. A change inside a transaction is undone with it: the
//! values are an immutable map that a transaction keeps a copy of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Result, SqlError};
use crate::parse::statement::IsolationLevel;
use crate::styles::Styles;

mod beginning;
mod custom;
mod held;
mod looks;
mod memory;
mod path;
mod table;
mod without_effect;

use custom::{is_custom, unknown};

pub use table::{Definition, Kind, SERVER_VERSION, all, find};

/// The values that differ from the defaults, by lower-case name.
type Values = Arc<BTreeMap<String, String>>;

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What RESET goes back to: defaults, then the start-up parameters.
    initial: Values,
    /// What holds now.
    current: Values,
    /// What holds after the transaction: SET LOCAL changes only `current`.
    after: Values,
    /// Reported settings that changed since the client was told.
    changed: Vec<&'static str>,
    /// The session's temporary schema, once it has one.
    temporary_schema: Option<String>,
    read: Read,
}

/// A transaction's or savepoint's copy of the settings.
#[derive(Clone, Debug)]
pub struct SavedSettings {
    current: Values,
    after: Values,
}

/// What every statement reads, parsed once a change.
#[derive(Clone, Debug)]
struct Read {
    statement_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    idle_session_timeout: Option<Duration>,
    idle_in_transaction_timeout: Option<Duration>,
    log_min_duration_statement: Option<Duration>,
    log_parameter_max_length: Option<usize>,
    synchronous_commit: bool,
    isolation: IsolationLevel,
    read_only: bool,
    deferrable: bool,
    analytical_only: bool,
    tracks_statements: bool,
    styles: Arc<Styles>,
    paths: path::Paths,
    /// Who statements are run as.
    role: Arc<str>,
    /// What that role was when it was assumed.
    superuser: bool,
}

impl Settings {
    /// The settings of a new session of `user`; `fixed` are the server's own
    /// values, such as `memory_limit`.
    #[must_use]
    pub fn new(user: &str, fixed: &[(&str, String)]) -> Self {
        let mut values = BTreeMap::new();
        values.insert("session_authorization".to_owned(), user.to_owned());
        for (name, value) in fixed {
            values.insert((*name).to_owned(), value.clone());
        }
        let values = Arc::new(values);
        let mut settings = Self {
            initial: Arc::clone(&values),
            current: Arc::clone(&values),
            after: values,
            changed: Vec::new(),
            temporary_schema: None,
            read: Read {
                statement_timeout: None,
                lock_timeout: None,
                idle_session_timeout: None,
                idle_in_transaction_timeout: None,
                log_min_duration_statement: None,
                log_parameter_max_length: None,
                synchronous_commit: true,
                isolation: IsolationLevel::Serializable,
                read_only: false,
                deferrable: false,
                analytical_only: false,
                tracks_statements: true,
                styles: Styles::plain_shared(),
                paths: path::Paths::default(),
                role: Arc::from(user),
                superuser: false,
            },
        };
        settings.refresh();
        settings
    }

    /// A setting given with the connection: RESET comes back to it.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn start_up(&mut self, name: &str, value: &str) -> Result<()> {
        self.set(name, Some(&[value.to_owned()]), false)?;
        self.initial = Arc::clone(&self.current);
        self.changed.clear();
        Ok(())
    }

    /// The value of a setting, as SHOW writes it.
    ///
    /// # Errors
    /// 42704 for a name that is no setting.
    pub fn show(&self, name: &str) -> Result<String> {
        self.get(name).ok_or_else(|| unrecognized(name))
    }

    /// The value of a setting, if there is one of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        let folded = name.to_lowercase();
        if let Some(value) = self.current.get(&folded) {
            return Some(value.clone());
        }
        if folded == "transaction_isolation" {
            return Some(self.read.isolation.name().to_owned());
        }
        find(&folded).map(|definition| definition.default.to_owned())
    }

    /// Changes a setting; `None` sets its default, `local` until the end of
    /// the transaction.
    ///
    /// # Errors
    /// 42704 for a name that is no setting, 55P02 for one that cannot be
    /// changed, 22023 for a value it does not take.
    pub fn set(&mut self, name: &str, value: Option<&[String]>, local: bool) -> Result<()> {
        let folded = name.to_lowercase();
        let definition = find(&folded);
        if matches!(folded.as_str(), "role" | "session_authorization") {
            // Whether it may be is not known here: see `assume`.
            return Err(SqlError::new(
                "55P02",
                format!("parameter \"{folded}\" cannot be changed by SET or a connection option"),
            )
            .with_hint("Use SET ROLE or SET SESSION AUTHORIZATION."));
        }
        if definition.is_some_and(|definition| definition.superuser) && !self.read.superuser {
            return Err(permission_denied(&folded));
        }
        let value = match (definition, value) {
            (Some(definition), _) if !definition.settable => {
                let refused = SqlError::new(
                    "55P02",
                    format!("parameter \"{}\" cannot be changed", definition.name),
                );
                return Err(match definition.name {
                    "memory_limit" | "warm_buffer" => {
                        refused.with_hint("ALTER SYSTEM SET changes it.")
                    }
                    _ => refused,
                });
            }
            (_, None) => None,
            (Some(definition), Some(values)) => Some(self.accept(definition, values)?),
            (None, Some(values)) if is_custom(&folded) => Some(values.join(", ")),
            (None, Some(_)) => return Err(unknown(name)),
        };
        if definition.is_none() && !is_custom(&folded) {
            return Err(unrecognized(name));
        }
        let value = value.or_else(|| self.initial.get(&folded).cloned());
        put(&mut self.current, &folded, value.as_ref());
        if !local {
            put(&mut self.after, &folded, value.as_ref());
        }
        if let Some(definition) = definition.filter(|definition| definition.reported) {
            self.note_change(definition.name);
        }
        self.refresh();
        Ok(())
    }

    fn accept(&self, definition: &Definition, values: &[String]) -> Result<String> {
        if definition.kind != Kind::DateStyle {
            return accept(definition, values);
        }
        // What is not said of it stays as it is.
        let name = definition.name.to_lowercase();
        let current = self.get(&name).unwrap_or_default();
        let reset = self
            .initial
            .get(&name)
            .map_or(definition.default, String::as_str);
        let value = values.join(",");
        looks::date_style(&value, &current, reset, || invalid(definition, values))
    }

    /// Changes a value of the server's, in all that RESET and a roll-back go back
    /// to as well.
    pub fn set_fixed(&mut self, name: &str, value: &str) {
        for values in [&mut self.initial, &mut self.current, &mut self.after] {
            put(values, name, Some(&value.to_owned()));
        }
    }

    /// All settings to what they were at the start.
    pub fn reset_all(&mut self) {
        let initial = Arc::clone(&self.initial);
        self.replace(SavedSettings {
            current: Arc::clone(&initial),
            after: initial,
        });
    }

    /// A copy to come back to.
    #[must_use]
    pub fn save(&self) -> SavedSettings {
        SavedSettings {
            current: Arc::clone(&self.current),
            after: Arc::clone(&self.after),
        }
    }

    /// Back to the copy: the transaction or its part was rolled back.
    pub fn restore(&mut self, saved: &SavedSettings) {
        self.replace(saved.clone());
    }

    /// The transaction committed: what SET LOCAL set is over.
    pub fn end_transaction(&mut self) {
        if !Arc::ptr_eq(&self.current, &self.after) {
            let after = Arc::clone(&self.after);
            self.replace(SavedSettings {
                current: Arc::clone(&after),
                after,
            });
        }
    }

    fn replace(&mut self, values: SavedSettings) {
        if Arc::ptr_eq(&self.current, &values.current) && Arc::ptr_eq(&self.after, &values.after) {
            return;
        }
        let before = std::mem::replace(&mut self.current, values.current);
        self.after = values.after;
        for definition in all().filter(|definition| definition.reported) {
            let name = definition.name.to_lowercase();
            if before.get(&name) != self.current.get(&name) {
                self.note_change(definition.name);
            }
        }
        self.refresh();
    }

    fn note_change(&mut self, name: &'static str) {
        if !self.changed.contains(&name) {
            self.changed.push(name);
        }
    }

    /// The reported settings that changed since this was last asked.
    pub fn take_changed(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.changed)
            .into_iter()
            .filter_map(|name| Some((name, self.get(name)?)))
            .collect()
    }

    /// All reported settings.
    #[must_use]
    pub fn reported(&self) -> Vec<(String, String)> {
        all()
            .filter(|definition| definition.reported)
            .filter_map(|definition| Some((definition.name.to_owned(), self.get(definition.name)?)))
            .collect()
    }

    /// All settings: name, value, description; in the order of names.
    #[must_use]
    pub fn all(&self) -> Vec<(String, String, &'static str)> {
        let mut all: Vec<_> = all()
            .filter_map(|definition| {
                let value = self.get(definition.name)?;
                Some((definition.name.to_owned(), value, definition.description))
            })
            .collect();
        all.sort_by_key(|(name, _, _)| name.to_lowercase());
        all
    }

    /// `statement_timeout`
    #[must_use]
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.read.statement_timeout
    }

    /// `lock_timeout`
    #[must_use]
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.read.lock_timeout
    }

    /// How long the client may leave the session idle, in a transaction or not.
    #[must_use]
    pub fn idle_timeout(&self, in_transaction: bool) -> Option<Duration> {
        match in_transaction {
            true => self.read.idle_in_transaction_timeout,
            false => self.read.idle_session_timeout,
        }
    }

    /// Statements that take as long are logged; none are without it.
    #[must_use]
    pub fn log_min_duration_statement(&self) -> Option<Duration> {
        self.read.log_min_duration_statement
    }

    /// The most bytes of a parameter's value that are logged; no bound of its own without it.
    #[must_use]
    pub fn log_parameter_max_length(&self) -> Option<usize> {
        self.read.log_parameter_max_length
    }

    /// Whether a commit waits until it is durable.
    #[must_use]
    pub fn synchronous_commit(&self) -> bool {
        self.read.synchronous_commit
    }

    /// `default_transaction_isolation`
    #[must_use]
    pub fn default_isolation(&self) -> IsolationLevel {
        self.read.isolation
    }

    /// `default_transaction_read_only`
    #[must_use]
    pub fn default_read_only(&self) -> bool {
        self.read.read_only
    }

    /// `default_transaction_deferrable`
    #[must_use]
    pub fn default_deferrable(&self) -> bool {
        self.read.deferrable
    }

    /// `thermocline.path`: whether queries that only read never take the
    /// short path.
    #[must_use]
    pub fn analytical_only(&self) -> bool {
        self.read.analytical_only
    }

    /// Who statements are run as: the session's user, or the role of SET ROLE.
    #[must_use]
    pub fn role(&self) -> Arc<str> {
        Arc::clone(&self.read.role)
    }

    /// Becomes another role, which is allowed: `setting` is `role` or
    /// `session_authorization`. `None` goes back to the start; another session user begins without SET ROLE.
    pub fn assume(&mut self, setting: &str, name: Option<&str>, is_superuser: bool, local: bool) {
        let superuser = if is_superuser { "on" } else { "off" };
        let mut values = vec![
            (
                setting,
                name.map(str::to_owned)
                    .or_else(|| self.initial.get(setting).cloned()),
            ),
            ("is_superuser", Some(superuser.to_owned())),
        ];
        if setting == "session_authorization" {
            values.push(("role", None));
        }
        for (name, value) in values {
            put(&mut self.current, name, value.as_ref());
            if !local {
                put(&mut self.after, name, value.as_ref());
            }
        }
        self.note_change("is_superuser");
        self.note_change("session_authorization");
        self.refresh();
    }

    /// The same, to look at.
    #[must_use]
    pub fn role_name(&self) -> &Arc<str> {
        &self.read.role
    }

    /// Whether executions are counted for `pg_stat_statements`.
    #[must_use]
    pub fn tracks_statements(&self) -> bool {
        self.read.tracks_statements
    }

    /// How dates, times and numbers look.
    #[must_use]
    pub fn styles(&self) -> Arc<Styles> {
        Arc::clone(&self.read.styles)
    }

    fn refresh(&mut self) {
        let text = |name: &str| self.get(name).unwrap_or_default();
        let timeout = |name: &str| {
            milliseconds(&text(name))
                .filter(|time| *time > 0)
                .and_then(|time| u64::try_from(time).ok())
                .map(Duration::from_millis)
        };
        let role = match text("role") {
            role if role == "none" => text("session_authorization"),
            role => role,
        };
        let role = match *role == *self.read.role {
            true => Arc::clone(&self.read.role),
            false => Arc::from(role),
        };
        let listed = names(&text("search_path"));
        let paths = self
            .read
            .paths
            .changed(listed, &role, self.temporary_schema.as_deref());
        self.read = Read {
            statement_timeout: timeout("statement_timeout"),
            lock_timeout: timeout("lock_timeout"),
            idle_session_timeout: timeout("idle_session_timeout"),
            idle_in_transaction_timeout: timeout("idle_in_transaction_session_timeout"),
            log_min_duration_statement: milliseconds(&text("log_min_duration_statement"))
                .and_then(|time| u64::try_from(time).ok())
                .map(Duration::from_millis),
            log_parameter_max_length: text("log_parameter_max_length").parse().ok(),
            synchronous_commit: text("synchronous_commit") != "off",
            isolation: IsolationLevel::from_name(&text("default_transaction_isolation"))
                .unwrap_or(IsolationLevel::Serializable),
            read_only: text("default_transaction_read_only") == "on",
            deferrable: text("default_transaction_deferrable") == "on",
            analytical_only: text("thermocline.path") == "analytical",
            tracks_statements: text("pg_stat_statements.track") != "none",
            styles: Styles::renewed(&self.read.styles, text),
            paths,
            role,
            superuser: text("is_superuser") == "on",
        };
    }
}

fn put(values: &mut Values, name: &str, value: Option<&String>) {
    if values.get(name) == value {
        return;
    }
    let values = Arc::make_mut(values);
    match value {
        Some(value) => values.insert(name.to_owned(), value.clone()),
        None => values.remove(name),
    };
}

/// What whoever is no superuser hears.
#[cold]
pub(crate) fn permission_denied(name: &str) -> SqlError {
    SqlError::new(
        "42501",
        format!("permission denied to set parameter \"{name}\""),
    )
}

#[cold]
fn unrecognized(name: &str) -> SqlError {
    SqlError::new(
        "42704",
        format!("unrecognized configuration parameter \"{name}\""),
    )
}

/// The value of a setting in the form that SHOW writes: for those who give sessions their
/// defaults.
///
/// # Errors
/// 42704 for a name that is no setting, 22023 for a value it does not take.
pub fn accepted(name: &str, value: &str) -> Result<String> {
    let definition = find(name).ok_or_else(|| unrecognized(name))?;
    accept(definition, &[value.to_owned()])
}

#[cold]
fn invalid(definition: &Definition, values: &[String]) -> SqlError {
    let (name, value) = (definition.name, values.join(", "));
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new("22023", message)
}

/// The value in the form that SHOW writes, if the setting takes it.
fn accept(definition: &Definition, values: &[String]) -> Result<String> {
    let invalid = || invalid(definition, values);
    if definition.kind == Kind::Names {
        let path: Vec<String> = values.iter().map(|name| quoted_name(name)).collect();
        // `SET search_path = 'a, b'` names one schema, but set_config and
        // start-up options give the whole list in one string.
        return Ok(if values.len() == 1 && values[0].contains(',') {
            values[0].clone()
        } else {
            path.join(", ")
        });
    }
    if definition.kind == Kind::DateStyle {
        let (value, default) = (values.join(","), definition.default);
        return looks::date_style(&value, default, default, invalid);
    }
    let [value] = values else {
        return Err(SqlError::new(
            "22023",
            format!("SET {} takes only one argument", definition.name),
        ));
    };
    let word = value.trim().to_lowercase();
    match definition.kind {
        Kind::Bool => match word.as_str() {
            "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on".to_owned()),
            "off" | "false" | "no" | "0" | "f" | "n" => Ok("off".to_owned()),
            _ => Err(SqlError::new(
                "22023",
                format!("parameter \"{}\" requires a Boolean value", definition.name),
            )),
        },
        Kind::Integer(min, max) => {
            let number: i64 = word.parse().map_err(|_| invalid())?;
            if number < min || number > max {
                return Err(SqlError::new(
                    "22023",
                    format!(
                        "{number} is outside the valid range for parameter \"{}\" ({min} .. {max})",
                        definition.name
                    ),
                ));
            }
            Ok(number.to_string())
        }
        Kind::Real(min, max) => {
            let number: f64 = word.parse().map_err(|_| invalid())?;
            if !(min..=max).contains(&number) {
                return Err(SqlError::new(
                    "22023",
                    format!(
                        "{number} is outside the valid range for parameter \"{}\" ({min} .. {max})",
                        definition.name
                    ),
                ));
            }
            Ok(number.to_string())
        }
        Kind::Memory(unit, min, max) => memory::accept(definition.name, value, unit, min..=max),
        Kind::Milliseconds | Kind::MillisecondsOrNever => {
            let least = match definition.kind {
                Kind::MillisecondsOrNever => -1,
                _ => 0,
            };
            let time = milliseconds(&word)
                .filter(|time| (least..=i64::from(i32::MAX)).contains(time))
                .ok_or_else(|| {
                    invalid().with_hint(
                        "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
                    )
                })?;
            Ok(shown_milliseconds(time))
        }
        Kind::Enum(words) => enum_value(definition, words, &word)
            .ok_or_else(|| invalid().with_hint(format!("Available values: {}.", words.join(", ")))),
        Kind::Encoding => match word.trim_matches('\'').replace(['-', '_'], "").as_str() {
            "utf8" | "unicode" | "sqlascii" => Ok("UTF8".to_owned()),
            _ => Err(invalid()),
        },
        Kind::TimeZone => looks::time_zone(value, invalid),
        Kind::Text | Kind::Names | Kind::DateStyle => Ok(value.clone()),
    }
}

fn enum_value(definition: &Definition, words: &[&str], word: &str) -> Option<String> {
    let boolean = match word {
        "true" | "yes" | "1" => "on",
        "false" | "no" | "0" => "off",
        other => other,
    };
    let found = words
        .iter()
        .find(|allowed| **allowed == word || **allowed == boolean)?;
    debug_assert!(definition.settable);
    Some((*found).to_owned())
}

/// A time in milliseconds: a number and a unit, which is ms when missing.
fn milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let split = text
        .find(|character: char| {
            !character.is_ascii_digit() && !matches!(character, '.' | '-' | '+')
        })
        .unwrap_or(text.len());
    let number: f64 = text[..split].parse().ok()?;
    let factor = match text[split..].trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    let time = (number * factor).round();
    (time.abs() < 9.0e15).then_some(time as i64)
}

/// As SHOW writes a time: in the largest unit that is exact.
fn shown_milliseconds(time: i64) -> String {
    if time < 0 {
        return time.to_string();
    }
    for (unit, factor) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("min", 60_000),
        ("s", 1000),
        ("ms", 1),
    ] {
        if time != 0 && time % factor == 0 {
            return format!("{}{unit}", time / factor);
        }
    }
    "0".to_owned()
}

/// A name as it stands in a search path.
fn quoted_name(name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The names in a comma-separated list with optional double quotes.
fn names(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut quoted = false;
    let mut was_quoted = false;
    for character in list.chars().chain([',']) {
        match character {
            '"' => {
                // A doubled quote inside a quoted name is a quote.
                if !quoted && was_quoted {
                    name.push('"');
                }
                quoted = !quoted;
                was_quoted = true;
            }
            ',' if !quoted => {
                let taken = std::mem::take(&mut name);
                let taken = if was_quoted {
                    taken
                } else {
                    taken.trim().to_lowercase()
                };
                if !taken.is_empty() {
                    names.push(taken);
                }
                was_quoted = false;
            }
            ' ' if !quoted => {}
            other => name.push(other),
        }
    }
    names
}

#[cfg(test)]
mod tests;
