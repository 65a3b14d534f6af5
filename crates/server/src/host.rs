//! What the server asks of the machine it runs on. It touches no file itself: the program
//! answers.

use std::fmt;
use std::net::SocketAddr;

/// Who is who on this machine.
pub trait Host: fmt::Debug + Send + Sync {
    /// The user that this process runs as.
    fn own_uid(&self) -> u32;

    /// The name of a user.
    fn user_name(&self, uid: u32) -> Option<String>;

    /// Which user of this machine holds the other end of a connection over loopback: the
    /// kernel's answer, not the client's. `None` when it cannot be told for certain.
    fn loopback_uid(&self, client: SocketAddr, server: SocketAddr) -> Option<u32>;
}
