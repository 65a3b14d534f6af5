//! What the server wants to know of this machine's users, read from `/proc` and `/etc/passwd`.
//!
//! Over loopback the kernel's table of sockets says whose the other end is. Only a row counts
//! that is connected from exactly there to exactly here, established and still held by a
//! process: of a socket that is closing the kernel shows user 0, whoever it was. A user that
//! the kernel cannot name here (of another name space) is nobody.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;

use thermocline_server::Host;

/// An established connection in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

#[derive(Debug)]
pub(crate) struct Machine {
    own_uid: u32,
    /// What stands for users without a number here.
    overflow_uid: u32,
}

impl Machine {
    pub(crate) fn new() -> std::io::Result<Self> {
        let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
        Ok(Self {
            own_uid: fs::metadata("/proc/self")?.uid(),
            overflow_uid: overflow.trim().parse().unwrap_or(65534),
        })
    }
}

impl Host for Machine {
    fn own_uid(&self) -> u32 {
        self.own_uid
    }

    fn user_name(&self, uid: u32) -> Option<String> {
        let users = fs::read_to_string("/etc/passwd").ok()?;
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let found = fields.nth(1)?.parse() == Ok(uid);
            found.then(|| name.to_owned())
        })
    }

    fn loopback_uid(&self, client: SocketAddr, server: SocketAddr) -> Option<u32> {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        let texts = tables
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok());
        texts
            .filter_map(|text| uid_in(&text, client, server))
            .find(|uid| *uid != self.overflow_uid)
    }
}

/// Whose the socket is that is connected from `client` to `server`.
fn uid_in(table: &str, client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let same = |text: &str, address: SocketAddr| {
        parse_address(text)
            .is_some_and(|(ip, port)| ip == address.ip().to_canonical() && port == address.port())
    };
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, _, _, _, uid, _, inode, ..] = fields.as_slice() else {
            return None;
        };
        let held = *state == ESTABLISHED && *inode != "0";
        (held && same(local, client) && same(remote, server))
            .then(|| uid.parse().ok())
            .flatten()
    })
}

/// An address as the kernel writes it: words of 32 bits in the machine's order, in hexadecimal.
fn parse_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = (0..address.len())
        .step_by(8)
        .map(|at| u32::from_str_radix(address.get(at..at + 8)?, 16).ok())
        .collect::<Option<Vec<u32>>>()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let address = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some((address.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_says_whose_a_connection_is_while_it_is_held() {
        let machine = Machine::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let ask = || machine.loopback_uid(peer, server.local_addr().unwrap());
        assert_eq!(ask(), Some(machine.own_uid()));
        // A client that has closed its end is nobody, whatever the table shows.
        drop(client);
        assert_eq!(ask(), None);
    }

    #[test]
    fn only_the_very_connection_counts() {
        let table = "head\n\
            0: 0100007F:D431 0100007F:1539 01 00:0 00:0 0 1000 0 77 1\n\
            1: 0100007F:D432 0100007F:1539 06 00:0 00:0 0 0 0 0 3\n\
            2: 0100007F:D433 0100007F:1539 01 00:0 00:0 0 0 0 0 3\n";
        let server = "127.0.0.1:5433".parse().unwrap();
        let of = |client: &str| uid_in(table, client.parse().unwrap(), server);
        assert_eq!(of("127.0.0.1:54321"), Some(1000));
        assert_eq!(of("[::ffff:127.0.0.1]:54321"), Some(1000));
        assert_eq!(of("127.0.0.1:54322"), None, "it waits to be forgotten");
        assert_eq!(of("127.0.0.1:54323"), None, "no process holds it");
        assert_eq!(of("127.0.0.1:54324"), None);
    }
}
