//! The program's settings. A flag beats the environment, the environment beats
//! the file, the file beats the default (and what ALTER SYSTEM kept beats the file).
//! Every setting has the same name in all
//! of them (`--memory-limit`, `THERMOCLINE_MEMORY_LIMIT`, `memory_limit`).
//! Whatever is wrong is one line that says where it was said, and nothing is
//! started.

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thermocline::{DISK_RESERVE_BYTES, RECOVERY_TARGET};
use thermocline_device::IoEngine;
use thermocline_engine::{Identification, MEMORY_LIMIT_MIN, Merge, PARTITIONS_MAX};
use thermocline_server::{
    DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_MESSAGE_BYTES, DEFAULT_PORT,
    DEFAULT_SUPERUSER_RESERVED_CONNECTIONS, Rules,
};

use super::flags::{Flags, variable};
use super::{duration, machine, size};

/// The file in the data directory that ALTER SYSTEM writes.
pub(crate) const AUTO_FILE_NAME: &str = "thermocline.auto.toml";
/// The file that is looked for when none is named.
pub(crate) const FILE_NAME: &str = "thermocline.toml";
/// PostgreSQL's: who comes by the Unix socket is known.
const UNIX_SOCKET_PERMISSIONS: u32 = 0o777;
/// What `recovery_target` may be.
const RECOVERY_TARGET_MIN: Duration = Duration::from_millis(100);
const RECOVERY_TARGET_MAX: Duration = Duration::from_secs(3600);
const DEFAULT_DATA_DIR: &str = "thermocline-data";
/// When nothing says how much memory there is.
const FALLBACK_MEMORY_LIMIT: u64 = 1 << 30;

/// What the program runs with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Where the data is kept.
    pub(crate) data_dir: PathBuf,
    /// Where to listen: the port,
    pub(crate) port: u16,
    /// and the address.
    pub(crate) listen: IpAddr,
    /// The process's limit, in bytes, and why it is that.
    pub(crate) memory_limit: u64,
    /// For people: where `memory_limit` comes from.
    pub(crate) memory_limit_source: String,
    /// What it would be without ALTER SYSTEM.
    pub(crate) memory_limit_given: u64,
    /// 0: the engine chooses.
    pub(crate) partitions: u16,
    /// Clients at a time.
    pub(crate) max_connections: usize,
    /// Of these, for superusers only; None: as many as is usual, if there are more.
    pub(crate) superuser_reserved_connections: Option<usize>,
    /// Bytes of one message.
    pub(crate) max_message_bytes: usize,
    /// How the device is read.
    pub(crate) io: IoEngine,
    /// Where the log is archived.
    pub(crate) archive_directory: Option<PathBuf>,
    /// Below which directories BACKUP TO may write.
    pub(crate) backup_directories: Vec<PathBuf>,
    /// Bytes of temporary files; None: no limit.
    pub(crate) temp_file_limit: Option<u64>,
    /// Bytes of pages of warm columns; None: the default,
    pub(crate) warm_buffer: Option<u64>,
    /// and without ALTER SYSTEM.
    pub(crate) warm_buffer_given: Option<u64>,
    /// Bytes of the device that are kept for making room.
    pub(crate) disk_reserve: u64,
    /// How cold tuples are found; None: as suits the device.
    pub(crate) identification: Option<Identification>,
    /// What becomes of a fetched tuple; None: as suits the device.
    pub(crate) merge: Option<Merge>,
    /// What is logged.
    pub(crate) log: String,
    /// One JSON object a line, not text.
    pub(crate) log_json: bool,
    /// Which statements are logged: as sessions begin with it.
    pub(crate) log_min_duration_statement: String,
    /// How long a session may do nothing in a transaction, as sessions begin with it,
    pub(crate) idle_in_transaction_session_timeout: String,
    /// and in none.
    pub(crate) idle_session_timeout: String,
    /// Who may come in from where.
    pub(crate) hba: Rules,
    /// Where the Unix socket lies.
    pub(crate) unix_socket_directory: Option<PathBuf>,
    /// and who may use it.
    pub(crate) unix_socket_permissions: u32,
    /// Where metrics are told; None: nowhere.
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// How long a start may take to apply the log.
    pub(crate) recovery_target: Duration,
    /// TLS is spoken,
    pub(crate) ssl: bool,
    /// with this certificate
    pub(crate) ssl_cert_file: Option<PathBuf>,
    /// and this key.
    pub(crate) ssl_key_file: Option<PathBuf>,
    /// The file that was read.
    pub(crate) file: Option<PathBuf>,
}

/// A setting that cannot be, and where it was said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a value was said.
#[derive(Clone, Copy)]
enum Source<'a> {
    Flag,
    Environment,
    File(&'a Path),
}

impl Source<'_> {
    fn name(self, key: &str) -> String {
        match self {
            Source::Flag => format!("--{}", key.replace('_', "-")),
            Source::Environment => variable(key),
            Source::File(path) => format!("{}: {key}", path.display()),
        }
    }
}

impl Settings {
    /// All sources together. `environment` looks a variable up; `directory` is
    /// the working directory.
    pub(crate) fn load(
        flags: &Flags,
        environment: impl Fn(&str) -> Option<String>,
        directory: &Path,
    ) -> Result<Self, Wrong> {
        let mut settings = Self::default();
        let environment: Vec<(&'static str, String)> = flags
            .given()
            .into_iter()
            .filter_map(|(key, _)| Some((key, environment(&variable(key))?)))
            .chain(environment(&variable("config")).map(|path| ("config", path)))
            .collect();
        let from_environment = |wanted: &str| {
            environment
                .iter()
                .find_map(|(key, value)| (*key == wanted).then(|| value.clone()))
        };

        let named = flags
            .config
            .clone()
            .or_else(|| from_environment("config").map(PathBuf::from));
        let data_dir = flags
            .data_dir
            .clone()
            .or_else(|| from_environment("data_dir"))
            .map_or_else(|| settings.data_dir.clone(), PathBuf::from);
        if let Some((path, text)) = read_file(named, &data_dir, directory)? {
            settings.apply_file(&path, &text, |_| true)?;
            settings.file = Some(path);
        }
        for (key, value) in &environment {
            if *key != "config" {
                settings.apply(key, value, Source::Environment)?;
            }
        }
        for (key, value) in flags.given() {
            if let Some(value) = value {
                settings.apply(key, value, Source::Flag)?;
            }
        }
        let most = settings.max_connections;
        if let Some(reserved) = settings.superuser_reserved_connections
            && reserved >= most
        {
            return Err(Wrong(format!(
                "superuser_reserved_connections ({reserved}) must be less than max_connections ({most})"
            )));
        }
        settings.memory_limit_given = settings.memory_limit;
        settings.warm_buffer_given = settings.warm_buffer;
        let given = flags.given();
        let said = |key: &str| {
            let by_flag = given
                .iter()
                .any(|(one, value)| *one == key && value.is_some());
            by_flag || from_environment(key).is_some()
        };
        let kept = settings.data_dir.join(AUTO_FILE_NAME);
        if let Some(text) = read_kept(&directory.join(&kept))? {
            settings.apply_file(&kept, &text, |key| !said(key))?;
        }
        Ok(settings)
    }

    /// Connections that only superusers may have.
    pub(crate) fn reserved_connections(&self) -> usize {
        let usual = DEFAULT_SUPERUSER_RESERVED_CONNECTIONS.min(self.max_connections - 1);
        self.superuser_reserved_connections.unwrap_or(usual)
    }

    /// Where to listen.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.listen, self.port)
    }

    /// Applies the keys of a file that are wanted.
    fn apply_file(
        &mut self,
        path: &Path,
        text: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), Wrong> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| {
                1 + text[..span.start.min(text.len())].matches('\n').count()
            });
            Wrong(format!(
                "{}, line {line}: {}",
                path.display(),
                error.message()
            ))
        })?;
        for (key, value) in table.iter().filter(|(key, _)| is_wanted(key)) {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                other => {
                    return Err(Wrong(format!(
                        "{}: {key}: a text or a number is wanted, not {}",
                        path.display(),
                        other.type_str()
                    )));
                }
            };
            self.apply(key, &value, Source::File(path))?;
        }
        Ok(())
    }

    fn apply(&mut self, key: &str, value: &str, source: Source<'_>) -> Result<(), Wrong> {
        let outcome = match key {
            "data_dir" => data_dir(value).map(|value| self.data_dir = value),
            "port" => number(value, 0, u64::from(u16::MAX)).map(|value| self.port = value as u16),
            "listen" => listen(value).map(|value| self.listen = value),
            "memory_limit" => memory_limit(value).map(|value| {
                self.memory_limit = value;
                self.memory_limit_source = source.name(key);
            }),
            "partitions" => partitions(value).map(|value| self.partitions = value),
            "max_connections" => {
                number(value, 1, 100_000).map(|value| self.max_connections = value as usize)
            }
            "max_message_bytes" => message_bytes(value).map(|value| self.max_message_bytes = value),
            "io" => io_engine(value).map(|value| self.io = value),
            "archive_directory" => data_dir(value).map(|v| self.archive_directory = Some(v)),
            "backup_directory" => directories(value).map(|v| self.backup_directories = v),
            "disk_reserve" => size::parse(value).map(|v| self.disk_reserve = v),
            "temp_file_limit" => size::parse(value).map(|v| self.temp_file_limit = Some(v)),
            "warm_buffer" => size::parse(value).map(|v| self.warm_buffer = Some(v)),
            "identification" => {
                choice(value, &Identification::NAMES).map(|value| self.identification = Some(value))
            }
            "merge" => match Merge::named(value.trim()) {
                Some(merge) => {
                    self.merge = Some(merge);
                    Ok(())
                }
                None => Err(format!(
                    "\"{value}\" is none of warm, always, update_only, top(5%)"
                )),
            },
            "log" => log(value).map(|value| self.log = value),
            "log_format" => {
                choice(value, &[("text", false), ("json", true)]).map(|value| self.log_json = value)
            }
            "log_min_duration_statement" => {
                session_setting(key, value).map(|value| self.log_min_duration_statement = value)
            }
            "superuser_reserved_connections" => number(value, 0, 100_000)
                .map(|value| self.superuser_reserved_connections = Some(value as usize)),
            "idle_in_transaction_session_timeout" => session_setting(key, value)
                .map(|value| self.idle_in_transaction_session_timeout = value),
            "idle_session_timeout" => {
                session_setting(key, value).map(|value| self.idle_session_timeout = value)
            }
            "hba" => Rules::parse(value).map(|value| self.hba = value),
            "unix_socket_directory" => {
                data_dir(value).map(|value| self.unix_socket_directory = Some(value))
            }
            "unix_socket_permissions" => {
                permissions(value).map(|value| self.unix_socket_permissions = value)
            }
            "metrics_listen" => metrics_listen(value).map(|value| self.metrics_listen = value),
            "recovery_target" => duration::parse(value, RECOVERY_TARGET_MIN, RECOVERY_TARGET_MAX)
                .map(|value| self.recovery_target = value),
            "ssl" => choice(value, &[("on", true), ("off", false)]).map(|value| self.ssl = value),
            "ssl_cert_file" => data_dir(value).map(|value| self.ssl_cert_file = Some(value)),
            "ssl_key_file" => data_dir(value).map(|value| self.ssl_key_file = Some(value)),
            _ => {
                let known: Vec<_> = Flags::default()
                    .given()
                    .iter()
                    .map(|(key, _)| *key)
                    .collect();
                return Err(Wrong(format!(
                    "{}: unknown setting; known are {}",
                    source.name(key),
                    known.join(", ")
                )));
            }
        };
        outcome.map_err(|why| Wrong(format!("{}: {why}", source.name(key))))
    }
}

impl Default for Settings {
    fn default() -> Self {
        let (memory_limit, memory_limit_source) = match machine::memory_bytes() {
            Some((bytes, whose)) => (
                (bytes / 2).max(MEMORY_LIMIT_MIN),
                format!("half of the {whose}'s {}", size::show(bytes)),
            ),
            None => (FALLBACK_MEMORY_LIMIT, "default".to_owned()),
        };
        Self {
            data_dir: PathBuf::from(DEFAULT_DATA_DIR),
            port: DEFAULT_PORT,
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            memory_limit,
            memory_limit_source,
            memory_limit_given: memory_limit,
            partitions: 0,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            superuser_reserved_connections: None,
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
            io: IoEngine::Auto,
            archive_directory: None,
            backup_directories: Vec::new(),
            temp_file_limit: None,
            warm_buffer: None,
            warm_buffer_given: None,
            disk_reserve: DISK_RESERVE_BYTES,
            identification: None,
            merge: None,
            log: "info".to_owned(),
            log_json: false,
            log_min_duration_statement: "-1".to_owned(),
            idle_in_transaction_session_timeout: "0".to_owned(),
            idle_session_timeout: "0".to_owned(),
            hba: Rules::default(),
            unix_socket_directory: None,
            unix_socket_permissions: UNIX_SOCKET_PERMISSIONS,
            metrics_listen: None,
            recovery_target: RECOVERY_TARGET,
            ssl: false,
            ssl_cert_file: None,
            ssl_key_file: None,
            file: None,
        }
    }
}

/// What ALTER SYSTEM kept, if anything.
pub(crate) fn read_kept(path: &Path) -> Result<Option<String>, Wrong> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(Wrong(format!("{}: {error}", path.display()))),
    }
}

/// The one file that is read: the named one, which must exist; or the data
/// directory's; or the working directory's.
fn read_file(
    named: Option<PathBuf>,
    data_dir: &Path,
    directory: &Path,
) -> Result<Option<(PathBuf, String)>, Wrong> {
    let must_exist = named.is_some();
    let candidates = match named {
        Some(path) => vec![path],
        None => vec![data_dir.join(FILE_NAME), PathBuf::from(FILE_NAME)],
    };
    for path in candidates {
        match fs::read_to_string(directory.join(&path)) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if is_absent(&error) && !must_exist => {}
            Err(error) => return Err(Wrong(format!("{}: {error}", path.display()))),
        }
    }
    Ok(None)
}

/// A file in the place of a directory is told about when that is opened.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("\"{text}\" is not a number from {least} to {most}"))
}

fn data_dir(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        Err("an empty directory name".to_owned())
    } else {
        Ok(PathBuf::from(text))
    }
}

fn directories(text: &str) -> Result<Vec<PathBuf>, String> {
    text.split(',').map(|name| data_dir(name.trim())).collect()
}

fn listen(text: &str) -> Result<IpAddr, String> {
    match text.trim() {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        "*" => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        address => address.parse().map_err(|_| {
            format!("\"{text}\" is not an address; write for example 127.0.0.1, ::1 or *")
        }),
    }
}

/// A port alone is one of this machine: metrics are told to whoever asks.
fn metrics_listen(text: &str) -> Result<Option<SocketAddr>, String> {
    let text = text.trim();
    if text == "off" {
        return Ok(None);
    }
    let (address, port) = match text.rsplit_once(':') {
        Some((address, port)) => (listen(address.trim_matches(['[', ']']))?, port),
        None => (IpAddr::V4(Ipv4Addr::LOCALHOST), text),
    };
    let port = port.parse().map_err(|_| {
        format!(
            "\"{text}\" is not a port, nor an address and a port; write for example 9187 or *:9187"
        )
    })?;
    Ok(Some(SocketAddr::new(address, port)))
}

/// As chmod writes it, in octal digits.
fn permissions(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let mode = u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8);
    mode.ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("\"{text}\" is not a mode; write for example 0770"))
}

pub(crate) fn memory_limit(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    if bytes < MEMORY_LIMIT_MIN {
        return Err(format!(
            "{} is too little; the least is {}",
            size::show(bytes),
            size::show(MEMORY_LIMIT_MIN)
        ));
    }
    Ok(bytes)
}

fn message_bytes(text: &str) -> Result<usize, String> {
    const LEAST: u64 = 64 << 10;
    const MOST: u64 = 1 << 30;
    let bytes = size::parse(text)?;
    if !(LEAST..=MOST).contains(&bytes) {
        return Err(format!("\"{text}\" is not from 64kB to 1GB"));
    }
    Ok(bytes as usize)
}

fn partitions(text: &str) -> Result<u16, String> {
    let number = number(text, 1, u64::from(PARTITIONS_MAX))?;
    if number.is_power_of_two() {
        Ok(number as u16)
    } else {
        Err(format!("{number} is not a power of two"))
    }
}

fn io_engine(text: &str) -> Result<IoEngine, String> {
    match text.trim() {
        "auto" => Ok(IoEngine::Auto),
        "io_uring" => Ok(IoEngine::IoUring),
        "threads" => Ok(IoEngine::Threads),
        _ => Err(format!(
            "\"{text}\" is not a way to read the device; write auto, io_uring or threads"
        )),
    }
}

/// One of the named choices.
fn choice<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text.trim());
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        format!(
            "\"{text}\" is not a choice; write one of {}",
            names.join(", ")
        )
    })
}

/// The value of a setting that sessions have too, in the words that SHOW writes.
fn session_setting(name: &str, value: &str) -> Result<String, String> {
    let accepted = thermocline_sql::settings::accepted(name, value);
    accepted.map_err(|error| match &error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message.clone(),
    })
}

fn log(text: &str) -> Result<String, String> {
    text.parse::<tracing_subscriber::EnvFilter>()
        .map(|_| text.to_owned())
        .map_err(|error| format!("\"{text}\" is not a log filter: {error}"))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
