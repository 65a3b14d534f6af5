//! The server's flags, and the rows of the page on settings: what `--help` says of a flag, its
//! default, and the long text are printed there (`program/reference.rs`). Each is a setting of
//! the same name in the environment and in the file; `settings.rs` reads them.

use std::path::PathBuf;

/// What the command line says; everything may be absent.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Flags {
    /// Where the data is kept [default: ./thermocline-data]
    ///
    /// The server makes the directory if it is absent. One process uses it at a time. Its mode is
    /// 0700 and that of its files 0600, whatever the umask; a start removes further permissions.
    /// The same holds for the archive, backups and restored directories. A directory that others
    /// may use and that holds only other things is refused.
    #[arg(short = 'D', long, value_name = "DIRECTORY")]
    pub(super) data_dir: Option<String>,
    /// The TCP port to listen on [default: 5433]
    ///
    /// 0 takes a free port and prints it.
    #[arg(short = 'p', long, value_name = "PORT")]
    pub(super) port: Option<String>,
    /// The address to listen on; `*` is all of them [default: 127.0.0.1]
    ///
    /// Clients from other machines need TLS and a password (docs/guides/access.md).
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
    /// The most memory that the process takes, e.g. 256MB or 4GB [default: half of what there is]
    ///
    /// The limit is for all of it: rows, indexes, network buffers, queries. When the rows outgrow
    /// it, cold rows go to the device. When the device cannot keep up, writers wait. At least 64MB.
    #[arg(long, value_name = "SIZE")]
    pub(super) memory_limit: Option<String>,
    /// Partitions of a new database, a power of two up to 1024 [default: eight for each core]
    ///
    /// A database keeps the number it was made with.
    #[arg(long, value_name = "NUMBER")]
    pub(super) partitions: Option<String>,
    /// The most clients at a time [default: 100]
    ///
    /// One more gets `53300 sorry, too many clients already`.
    #[arg(long, value_name = "NUMBER")]
    pub(super) max_connections: Option<String>,
    /// How many of max_connections only superusers may have [default: 3]
    ///
    /// Others get `53300` when no more are left. Less than `max_connections`.
    #[arg(long, value_name = "NUMBER")]
    pub(super) superuser_reserved_connections: Option<String>,
    /// End a session whose client is silent for so long in a transaction [default: 0, never]
    ///
    /// The session gets `25P03`, and its transaction is rolled back. `SET` changes it for a
    /// session.
    #[arg(long, value_name = "TIME")]
    pub(super) idle_in_transaction_session_timeout: Option<String>,
    /// End a session whose client is silent for so long outside of a transaction [default: 0,
    /// never]
    ///
    /// The session gets `57P05`. `SET` changes it for a session.
    #[arg(long, value_name = "TIME")]
    pub(super) idle_session_timeout: Option<String>,
    /// The largest message that a client may send [default: 64MB]
    ///
    /// A message is a statement, a set of parameters or a piece of COPY. 64kB to 1GB. A larger one
    /// ends that connection with `54000`.
    #[arg(long, value_name = "SIZE")]
    pub(super) max_message_bytes: Option<String>,
    /// How cold rows are found: temperature, clock, fifo, lru, alru, s3fifo, offline or off [default: as
    /// suits the device]
    ///
    /// The policies are compared on traces (docs/internals/policies.md).
    #[arg(long, value_name = "POLICY")]
    pub(super) identification: Option<String>,
    /// What becomes of a row that was read from the device: warm, always, update_only or top(5%) [default:
    /// as suits the device]
    ///
    /// The policies are compared on traces (docs/internals/policies.md).
    #[arg(long, value_name = "POLICY")]
    pub(super) merge: Option<String>,
    /// How the device is read: auto, io_uring or threads [default: auto]
    ///
    /// The kernel forbids io_uring in many containers. `auto` tries, and prints what it found.
    #[arg(long, value_name = "ENGINE")]
    pub(super) io: Option<String>,
    /// Where closed segments of the log are copied, for restores to a point in time [default:
    /// nowhere]
    ///
    /// The server makes the directory if it is absent. An archive is of one database
    /// (docs/guides/backup.md#keep-the-log-for-a-point-in-time).
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) archive_directory: Option<String>,
    /// Below which directories BACKUP TO may write; several with commas between them [default:
    /// none, BACKUP TO is refused]
    ///
    /// The server makes them if they are absent. Without one `BACKUP TO`, and `thermocline backup`
    /// through a server, are refused (`42501`): a client must not write wherever the server may
    /// (docs/guides/backup.md).
    #[arg(long, value_name = "DIRECTORIES")]
    pub(super) backup_directory: Option<String>,
    /// Space of the device that is kept for making room when it is full; 0 keeps none [default:
    /// 96MB]
    ///
    /// `DELETE`, `TRUNCATE`, `DROP` and the checkpoint that gives their space back still work on a
    /// full device. They get as much of it as they need at a time, and other writes are refused
    /// until the reserve is whole again or as much is free. The server takes the reserve when four
    /// times as much is free. A checkpoint writes the rows that changed since the last one: where
    /// it must succeed whatever is in memory, set `memory_limit` plus 96MB.
    #[arg(long, value_name = "SIZE")]
    pub(super) disk_reserve: Option<String>,
    /// The most that temporary files may take together, e.g. 10GB [default: what the device has
    /// room for]
    ///
    /// Temporary files hold results that wait for their client, cursors `WITH HOLD`, and sorts and
    /// aggregations beyond their memory. A statement that needs more gets `53400`. The files lie in
    /// `.temporary` in the data directory, have no names, and leave the last 16 MB of the device to
    /// the log.
    #[arg(long, value_name = "SIZE")]
    pub(super) temp_file_limit: Option<String>,
    /// Bytes that pages of warm columns may take, e.g. 64MB [default: a thirty-second of
    /// `memory_limit`]
    ///
    /// At most a quarter of `memory_limit`, and part of it (docs/explain/columns.md).
    #[arg(long, value_name = "SIZE")]
    pub(super) warm_buffer: Option<String>,
    /// Who may come in from where, entries with semicolons or lines between them [default: this
    /// user, others by password]
    ///
    /// For example `host all all 127.0.0.1/32 trust` (docs/guides/access.md).
    #[arg(long, value_name = "ENTRIES")]
    pub(super) hba: Option<String>,
    /// Where the Unix socket lies [default: none, there is no socket]
    ///
    /// The socket is called `.s.PGSQL.` and the port.
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) unix_socket_directory: Option<String>,
    /// Who may use the Unix socket, as chmod writes it [default: 0777]
    #[arg(long, value_name = "MODE")]
    pub(super) unix_socket_permissions: Option<String>,
    /// Where /metrics and /health are answered: a port of this machine, or an address and a port
    /// [default: off]
    ///
    /// For example `9187` or `*:9187` (docs/reference/metrics.md).
    #[arg(long, value_name = "ADDRESS")]
    pub(super) metrics_listen: Option<String>,
    /// How long a start after a kill may take to apply the log [default: 1s]
    ///
    /// 100ms to 1h. A checkpoint begins when half of it is reached, by the cost that the last start
    /// measured. At all of it the checkpoint takes the device at full speed. A smaller value writes
    /// more.
    #[arg(long, value_name = "TIME")]
    pub(super) recovery_target: Option<String>,
    /// Speak TLS with clients that ask for it: on or off [default: off]
    ///
    /// `thermocline certificate` makes a certificate (docs/guides/access.md).
    #[arg(long, value_name = "SWITCH")]
    pub(super) ssl: Option<String>,
    /// The certificate, or the chain, as PEM [default: server.crt in the data directory]
    #[arg(long, value_name = "FILE")]
    pub(super) ssl_cert_file: Option<String>,
    /// The certificate's key, as PEM [default: server.key in the data directory]
    ///
    /// A key that other users may read is refused.
    #[arg(long, value_name = "FILE")]
    pub(super) ssl_key_file: Option<String>,
    /// How the log is written: text or json [default: text]
    ///
    /// `json` writes one object a line, whatever it holds.
    #[arg(long, value_name = "FORMAT")]
    pub(super) log_format: Option<String>,
    /// Log statements that take as long, e.g. 250ms; 0 logs all [default: -1, none]
    ///
    /// A number alone is milliseconds. Superusers may change it for their session
    /// (docs/guides/monitor.md#slow-statements).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) log_min_duration_statement: Option<String>,
    /// What is logged to stderr: error, warn, info, debug, trace, or a filter [default: info]
    ///
    /// A filter tells modules apart, as in `warn,thermocline_server=debug`.
    #[arg(long, value_name = "FILTER")]
    pub(super) log: Option<String>,
    /// The file with settings [default: thermocline.toml in the data directory, or else in the
    /// working directory]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl Flags {
    /// The settings by their names in the file, with what the command line says.
    pub(super) fn given(&self) -> [(&'static str, &Option<String>); 29] {
        [
            ("data_dir", &self.data_dir),
            ("port", &self.port),
            ("listen", &self.listen),
            ("memory_limit", &self.memory_limit),
            ("partitions", &self.partitions),
            ("max_connections", &self.max_connections),
            (
                "superuser_reserved_connections",
                &self.superuser_reserved_connections,
            ),
            (
                "idle_in_transaction_session_timeout",
                &self.idle_in_transaction_session_timeout,
            ),
            ("idle_session_timeout", &self.idle_session_timeout),
            ("max_message_bytes", &self.max_message_bytes),
            ("identification", &self.identification),
            ("merge", &self.merge),
            ("io", &self.io),
            ("archive_directory", &self.archive_directory),
            ("backup_directory", &self.backup_directory),
            ("disk_reserve", &self.disk_reserve),
            ("temp_file_limit", &self.temp_file_limit),
            ("warm_buffer", &self.warm_buffer),
            ("hba", &self.hba),
            ("unix_socket_directory", &self.unix_socket_directory),
            ("unix_socket_permissions", &self.unix_socket_permissions),
            ("metrics_listen", &self.metrics_listen),
            ("recovery_target", &self.recovery_target),
            ("ssl", &self.ssl),
            ("ssl_cert_file", &self.ssl_cert_file),
            ("ssl_key_file", &self.ssl_key_file),
            ("log_format", &self.log_format),
            (
                "log_min_duration_statement",
                &self.log_min_duration_statement,
            ),
            ("log", &self.log),
        ]
    }
}

/// The name of a setting in the environment.
pub(super) fn variable(key: &str) -> String {
    format!("THERMOCLINE_{}", key.to_ascii_uppercase())
}
