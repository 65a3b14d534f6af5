//! Every setting there is: its name as SHOW writes it, its default, what
//! values it takes, whether clients are told of its changes.

use super::without_effect;

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// on, off and their synonyms
    Bool,
    /// A whole number within bounds.
    Integer(i64, i64),
    /// A number within bounds.
    Real(f64, f64),
    /// An amount of memory in pieces of so many kB, within bounds; units are understood and shown.
    Memory(i64, i64, i64),
    /// A time in milliseconds; units are understood and shown.
    Milliseconds,
    /// A time in milliseconds, or -1 for never.
    MillisecondsOrNever,
    /// One of these words.
    Enum(&'static [&'static str]),
    /// Any text.
    Text,
    /// Names in a list.
    Names,
    /// The server's encoding and its synonyms.
    Encoding,
    /// A time zone.
    TimeZone,
    /// How dates are written, and in which order they are read.
    DateStyle,
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its name as SHOW ALL writes it.
    pub name: &'static str,
    /// Its value in a new session.
    pub default: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Whether a session may change it.
    pub settable: bool,
    /// Whether only superusers may.
    pub superuser: bool,
    /// Whether clients are told its value (ParameterStatus).
    pub reported: bool,
    /// One line about it.
    pub description: &'static str,
}

/// PostgreSQL's release whose behaviour this is: clients choose their catalog
/// queries by it.
pub const SERVER_VERSION: &str = concat!("15.18 (Thermocline ", env!("CARGO_PKG_VERSION"), ")");

const ISOLATION_LEVELS: &[&str] = &[
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
];
const MESSAGE_LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error",
];

pub(super) const fn user(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Definition {
    Definition {
        name,
        default,
        kind,
        settable: true,
        superuser: false,
        reported: false,
        description,
    }
}

/// One that only superusers change.
const fn superuser(mut definition: Definition) -> Definition {
    definition.superuser = true;
    definition
}

const fn fixed(name: &'static str, default: &'static str, description: &'static str) -> Definition {
    Definition {
        name,
        default,
        kind: Kind::Text,
        settable: false,
        superuser: false,
        reported: false,
        description,
    }
}

const fn reported(mut definition: Definition) -> Definition {
    definition.reported = true;
    definition
}

/// The settings that do something, by name without regard to case.
const SETTINGS: &[Definition] = &[
    reported(user(
        "application_name",
        "",
        Kind::Text,
        "Sets the application name to be reported in statistics and logs.",
    )),
    user(
        "bytea_output",
        "hex",
        Kind::Enum(&["escape", "hex"]),
        "Sets the output format for bytea.",
    ),
    user(
        "check_function_bodies",
        "on",
        Kind::Bool,
        "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.",
    ),
    reported(user(
        "client_encoding",
        "UTF8",
        Kind::Encoding,
        "Sets the client's character set encoding.",
    )),
    user(
        "client_min_messages",
        "notice",
        Kind::Enum(MESSAGE_LEVELS),
        "Sets the message levels that are sent to the client.",
    ),
    reported(user(
        "DateStyle",
        "ISO, MDY",
        Kind::DateStyle,
        "Sets the display format for date and time values.",
    )),
    superuser(user(
        "deadlock_timeout",
        "1s",
        Kind::Milliseconds,
        "Accepted for compatibility; a deadlock is found when the last of its waits begins.",
    )),
    user(
        "default_table_access_method",
        "heap",
        Kind::Enum(&["heap", "memory", "columns", "column"]),
        "The access method of a new table that says none.",
    ),
    user(
        "default_tablespace",
        "",
        Kind::Text,
        "Sets the default tablespace to create tables and indexes in.",
    ),
    user(
        "default_transaction_deferrable",
        "off",
        Kind::Bool,
        "Sets the default deferrable status of new transactions.",
    ),
    user(
        "default_transaction_isolation",
        "serializable",
        Kind::Enum(ISOLATION_LEVELS),
        "Sets the transaction isolation level of each new transaction.",
    ),
    reported(user(
        "default_transaction_read_only",
        "off",
        Kind::Bool,
        "Sets the default read-only status of new transactions.",
    )),
    user(
        "extra_float_digits",
        "1",
        Kind::Integer(-15, 3),
        "Sets the number of digits displayed for floating-point values.",
    ),
    user(
        "idle_in_transaction_session_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed idle time between queries, when in a transaction.",
    ),
    user(
        "idle_session_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed idle time between queries, when not in a transaction.",
    ),
    reported(fixed(
        "in_hot_standby",
        "off",
        "Shows whether hot standby is currently active.",
    )),
    reported(fixed(
        "integer_datetimes",
        "on",
        "Shows whether datetimes are integer based.",
    )),
    reported(user(
        "IntervalStyle",
        "postgres",
        Kind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "Sets the display format for interval values.",
    )),
    user(
        "lc_messages",
        "C",
        Kind::Text,
        "Sets the language in which messages are displayed.",
    ),
    user(
        "lc_monetary",
        "C",
        Kind::Text,
        "Sets the locale for formatting monetary amounts.",
    ),
    user(
        "lc_numeric",
        "C",
        Kind::Text,
        "Sets the locale for formatting numbers.",
    ),
    user(
        "lc_time",
        "C",
        Kind::Text,
        "Sets the locale for formatting date and time values.",
    ),
    fixed(
        "lc_collate",
        "C",
        "Shows the collation order locale: strings compare by their bytes.",
    ),
    fixed(
        "lc_ctype",
        "C",
        "Shows the character classification and case conversion locale.",
    ),
    user(
        "lock_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed duration of any wait for a lock.",
    ),
    superuser(user(
        "log_min_duration_statement",
        "-1",
        Kind::MillisecondsOrNever,
        "Sets the minimum execution time above which all statements will be logged; 0 logs all, -1 none.",
    )),
    superuser(user(
        "log_parameter_max_length",
        "1024",
        Kind::Integer(-1, 1_073_741_823),
        "Sets the maximum length in bytes of each parameter's value that is logged with a statement; -1 is as much as a line takes.",
    )),
    fixed(
        "max_connections",
        "100",
        "Sets the maximum number of concurrent connections.",
    ),
    fixed(
        "max_identifier_length",
        "63",
        "Shows the maximum identifier length.",
    ),
    fixed(
        "max_index_keys",
        "32",
        "Shows the maximum number of index keys.",
    ),
    fixed(
        "memory_limit",
        "0",
        "Shows the most bytes that the process takes.",
    ),
    fixed(
        "partitions",
        "0",
        "Shows the number of partitions that rows are spread over.",
    ),
    user(
        "password_encryption",
        "scram-sha-256",
        Kind::Enum(&["scram-sha-256"]),
        "Chooses the algorithm for encrypting passwords.",
    ),
    superuser(user(
        "pg_stat_statements.track",
        "top",
        Kind::Enum(&["none", "top", "all"]),
        "Selects which statements are counted by pg_stat_statements.",
    )),
    user(
        "quote_all_identifiers",
        "off",
        Kind::Bool,
        "When generating SQL fragments, quote all identifiers.",
    ),
    user("role", "none", Kind::Text, "Sets the current role."),
    user(
        "row_security",
        "on",
        Kind::Bool,
        "Accepted for compatibility; there are no row policies.",
    ),
    user(
        "search_path",
        "\"$user\", public",
        Kind::Names,
        "Sets the schema search order for names that are not schema-qualified.",
    ),
    reported(fixed(
        "server_encoding",
        "UTF8",
        "Shows the server (database) character set encoding.",
    )),
    reported(fixed(
        "server_version",
        SERVER_VERSION,
        "Shows the server version.",
    )),
    fixed(
        "server_version_num",
        "150018",
        "Shows the server version as an integer.",
    ),
    reported(fixed(
        "is_superuser",
        "on",
        "Shows whether the current user is a superuser.",
    )),
    reported(user(
        "session_authorization",
        "postgres",
        Kind::Text,
        "Sets the session user name.",
    )),
    reported(user(
        "standard_conforming_strings",
        "on",
        Kind::Enum(&["on"]),
        "Causes '...' strings to treat backslashes literally.",
    )),
    user(
        "statement_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed duration of any statement.",
    ),
    fixed(
        "superuser_reserved_connections",
        "3",
        "Sets the number of connection slots reserved for superusers.",
    ),
    user(
        "synchronous_commit",
        "on",
        Kind::Enum(&["local", "remote_write", "remote_apply", "on", "off"]),
        "Sets whether a commit waits until it is durable.",
    ),
    user(
        "thermocline.path",
        "auto",
        Kind::Enum(&["auto", "analytical"]),
        "Chooses how queries that only read are run: as the planner decides, or all on the analytical path.",
    ),
    reported(user(
        "TimeZone",
        "UTC",
        Kind::TimeZone,
        "Sets the time zone for displaying and interpreting time stamps.",
    )),
    fixed(
        "transaction_deferrable",
        "off",
        "Shows whether a transaction waits for a snapshot that cannot fail: none does.",
    ),
    user(
        "transaction_isolation",
        "serializable",
        Kind::Enum(ISOLATION_LEVELS),
        "Sets the current transaction's isolation level.",
    ),
    user(
        "transaction_read_only",
        "off",
        Kind::Bool,
        "Sets the current transaction's read-only status.",
    ),
    fixed(
        "warm_buffer",
        "0",
        "Shows the bytes that pages of warm columns may take.",
    ),
];

/// All settings.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    SETTINGS.iter().chain(without_effect::SETTINGS)
}

/// The setting of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Definition> {
    all().find(|definition| definition.name.eq_ignore_ascii_case(name))
}
