//! Where to listen, and the limits, each with its name. The defaults are
//! PostgreSQL's where PostgreSQL has the limit too.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::hba::Rules;
use crate::host::Host;
use crate::tls::Tls;

/// The port when nothing else is said; PostgreSQL's own stays free.
pub const DEFAULT_PORT: u16 = 5433;
/// Sessions at a time when nothing else is said.
pub const DEFAULT_MAX_CONNECTIONS: usize = 100;
/// Of these, for superusers only when nothing else is said.
pub const DEFAULT_SUPERUSER_RESERVED_CONNECTIONS: usize = 3;
/// Bytes of one message when nothing else is said.
pub const DEFAULT_MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A start-up packet longer than this is refused (PostgreSQL's limit).
pub(crate) const STARTUP_PACKET_BYTES_MAX: usize = 10_000;
/// Messages that carry only names are refused above this (PostgreSQL's limit).
pub(crate) const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;
/// Answers are written when they exceed this, whether the batch has ended or not.
pub(crate) const FLUSH_BYTES: usize = 64 << 10;
/// A message longer than this has memory of its own.
pub(crate) const KEPT_BUFFER_BYTES: usize = 128 << 10;
/// A buffer that grew beyond this is given back once it is empty: there may be thousands of
/// connections that have nothing to do.
pub(crate) const IDLE_BUFFER_BYTES: usize = 32 << 10;
/// Room made for a read.
pub(crate) const READ_BYTES: usize = 16 << 10;
/// So much is read of one client before others have their turn.
pub(crate) const TURN_BYTES: usize = 256 << 10;
/// How much of what a client sends ahead is read while its statement runs.
pub(crate) const READ_AHEAD_BYTES: usize = 64 << 10;
/// Sockets whose client was not let in yet: see `anteroom.rs`.
pub(crate) const PENDING_CONNECTIONS_MAX: usize = 64;
/// How long the server listens to each of them before it may have to give way.
pub(crate) const PENDING_PATIENCE: Duration = Duration::from_millis(500);
/// How long a client may take to say what it wants, if `authentication_timeout` is longer.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// The directory of the Unix socket, which is named as PostgreSQL's clients look for it;
    /// none: no such socket.
    pub unix_socket_directory: Option<PathBuf>,
    /// Who may come from where.
    pub rules: Rules,
    /// What TLS is spoken with; none: not at all.
    pub tls: Option<Tls>,
    /// Says which of the machine's users is at the other end; without it nobody is known.
    pub host: Option<Arc<dyn Host>>,
    /// Sessions at a time; one more is refused with 53300.
    pub max_connections: usize,
    /// Of these, how many only superusers may have.
    pub superuser_reserved_connections: usize,
    /// Bytes of one message; a larger one ends the connection with 54000.
    pub max_message_bytes: usize,
    /// How long a client may take from connecting to being let in.
    pub authentication_timeout: Duration,
    /// How long a client that stopped sending may still receive the answer of
    /// a running statement before that is cancelled.
    pub vanished_client_grace: Duration,
    /// How long running statements may go on when the server stops, before
    /// they are cancelled.
    pub stop_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            unix_socket_directory: None,
            rules: Rules::default(),
            tls: None,
            host: None,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            superuser_reserved_connections: DEFAULT_SUPERUSER_RESERVED_CONNECTIONS,
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
            authentication_timeout: Duration::from_secs(60),
            vanished_client_grace: Duration::from_millis(250),
            stop_grace: Duration::from_secs(3),
        }
    }
}
