//! Floor 4: the PostgreSQL wire protocol, version 3, over [`thermocline_sql`].
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | [`Config`]: where to listen, and every limit with its name |
//! | `listener.rs` | [`Server`]: accepting, refusing, the clean stop |
//! | `anteroom.rs` | sockets whose client was not let in yet, and who of them gives way |
//! | `startup.rs` | from the first byte to the start-up parameters |
//! | `gate.rs`, `hba.rs`, `scram.rs` | who may come in: the list, the kernel's word, passwords |
//! | `tls.rs`, `end_point.rs` | encryption; what a password exchange is bound to |
//! | `stream.rs`, `host.rs` | TCP and Unix sockets; what is asked of the machine |
//! | `crew.rs` | the threads that connections live on |
//! | `connection.rs` | the message loop of one connection |
//! | `running.rs` | a statement under watch: its panics and its vanishing client |
//! | `link.rs` | the socket as the session sees it: streaming results, COPY |
//! | `socket.rs` | framing, one write a batch, buffers that shrink again |
//! | `batch.rs` | a statement's messages from Bind to Sync, as one |
//! | `message.rs` | the fields of the messages that clients send |
//! | `message_boundary.rs` | where a message to a client ends, if its session is ended amid one |
//! | `registry.rs` | who is connected: connection slots, CancelRequest |
//! | `metrics.rs` | [`Metrics`]: what the server did |
//! | `operator_port.rs`, `http.rs`, `exposition.rs` | `/metrics` and `/health`; as much HTTP as they need; the names |
//!
//! One task a connection, on one thread for life. What a client sends can end that client's connection,
//! nothing else: malformed frames, oversized messages and even a panic inside a
//! session leave the others alone. Memory per connection is bounded by
//! `max_message_bytes` and a streaming buffer; a slow reader is waited for.

mod anteroom;
mod batch;
mod config;
mod connection;
mod crew;
mod end_point;
mod exposition;
mod gate;
mod hba;
mod host;
mod http;
mod large_message;
mod link;
mod listener;
mod message;
mod message_boundary;
mod metrics;
mod operator_port;
mod registry;
mod running;
mod scram;
mod socket;
mod startup;
mod stream;
mod tls;

pub use config::{
    Config, DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_MESSAGE_BYTES, DEFAULT_PORT,
    DEFAULT_SUPERUSER_RESERVED_CONNECTIONS,
};
pub use gate::Reload;
pub use hba::{DEFAULT_RULES, Rules};
pub use host::Host;
pub use listener::Server;
pub use metrics::{Metrics, MetricsSnapshot};
pub use operator_port::OperatorPort;
pub use tls::Tls;
