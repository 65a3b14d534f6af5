//! From a client's first byte to its start-up parameters: encryption is answered, protocol
//! 3.x is negotiated down to 3.0, cancel requests are told apart. Everything here happens
//! before a session exists and under the authentication timeout.

use std::io;

use bytes::{Bytes, BytesMut};
use thermocline_sql::error::SqlError;
use thermocline_sql::messages;
use tokio::io::AsyncWriteExt;

use crate::message::Fields;
use crate::socket::{NoFrame, Socket};
use crate::stream::Stream;
use crate::tls::Tls;

/// The one database.
pub(crate) const DATABASE: &str = "postgres";

const CANCEL_REQUEST: i32 = 80_877_102;
const SSL_REQUEST: i32 = 80_877_103;
const GSSENC_REQUEST: i32 = 80_877_104;
/// Settings and options of one start-up packet.
const PARAMETERS_MAX: usize = 128;

/// What a client wants with its connection.
#[derive(Debug)]
pub(crate) enum Request {
    /// A session.
    Session(Startup),
    /// To cancel what another connection runs.
    Cancel { process_id: i32, secret: i32 },
}

/// The start-up packet, understood.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Startup {
    pub(crate) user: String,
    pub(crate) database: String,
    /// Settings, and `options` with more of them, in the order given.
    pub(crate) parameters: Vec<(String, String)>,
    /// The protocol's minor version is not 0, or there are protocol options;
    /// the client must be told that we speak 3.0 without any.
    negotiate: Option<Vec<String>>,
}

/// Answers requests for encryption. Gives what was read of the stream already, and whether it
/// is encrypted now. The stream is gone only if a handshake took it and failed.
pub(crate) async fn negotiate(
    stream: &mut Option<Stream>,
    tls: Option<&Tls>,
) -> io::Result<(BytesMut, bool)> {
    let (mut ssl_asked, mut gss_asked) = (false, false);
    loop {
        let Some(plain) = stream.as_mut() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut first = BytesMut::zeroed(4);
        plain.read_exact(&mut first).await?;
        if first[..] != 8u32.to_be_bytes() {
            return Ok((first, false));
        }
        first.resize(8, 0);
        plain.read_exact(&mut first[4..]).await?;
        let code = i32::from_be_bytes([first[4], first[5], first[6], first[7]]);
        match code {
            SSL_REQUEST if !ssl_asked => ssl_asked = true,
            GSSENC_REQUEST if !gss_asked => gss_asked = true,
            _ => return Ok((first, false)),
        }
        match (code, tls, stream.take()) {
            (SSL_REQUEST, Some(tls), Some(Stream::Tcp(mut tcp))) => {
                tcp.write_all(b"S").await?;
                *stream = Some(tls.accept(tcp).await?);
                return Ok((BytesMut::new(), true));
            }
            (_, _, Some(mut plain)) => {
                let answered = plain.write_all(b"N").await;
                *stream = Some(plain);
                answered?;
            }
            (_, _, None) => {}
        }
    }
}

/// Reads until the client has said what it wants.
pub(crate) async fn receive(socket: &Socket, out: &mut BytesMut) -> Result<Request, NoFrame> {
    let packet = packet(socket).await?;
    let mut fields = Fields::new(&packet);
    let code = fields.int32().map_err(NoFrame::Malformed)?;
    if code == CANCEL_REQUEST {
        let process_id = fields.int32().map_err(NoFrame::Malformed)?;
        let secret = fields.int32().map_err(NoFrame::Malformed)?;
        return Ok(Request::Cancel { process_id, secret });
    }
    let startup = Startup::read(code, fields).map_err(NoFrame::Malformed)?;
    if let Some(unknown) = &startup.negotiate {
        let unknown: Vec<&str> = unknown.iter().map(String::as_str).collect();
        messages::negotiate_protocol_version(out, 0, &unknown);
    }
    Ok(Request::Session(startup))
}

async fn packet(socket: &Socket) -> Result<Bytes, NoFrame> {
    loop {
        if let Some(packet) = socket.startup_packet()? {
            return Ok(packet);
        }
        socket.fill().await;
    }
}

impl Startup {
    fn read(version: i32, mut fields: Fields<'_>) -> Result<Self, SqlError> {
        let (major, minor) = (version >> 16, version & 0xffff);
        if major != 3 {
            return Err(SqlError::unsupported(
                format!(
                    "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0"
                ),
                "Use a client that speaks protocol 3.0.",
            ));
        }
        let mut startup = Self::default();
        let mut database = None;
        let mut unknown = Vec::new();
        loop {
            let name = fields.string()?;
            if name.is_empty() {
                break;
            }
            let value = fields.string()?;
            match name {
                "user" => startup.user = value.to_owned(),
                "database" => database = Some(value.to_owned()),
                "replication" => refuse_replication(value)?,
                name if name.starts_with("_pq_.") => unknown.push(name.to_owned()),
                name => startup.parameters.push((name.to_owned(), value.to_owned())),
            }
            if startup.parameters.len() + unknown.len() > PARAMETERS_MAX {
                return Err(SqlError::new("54000", "too many start-up parameters"));
            }
        }
        fields.end().map_err(|_| {
            SqlError::protocol("invalid startup packet layout: expected terminator as last byte")
        })?;
        if startup.user.is_empty() {
            return Err(SqlError::new(
                "28000",
                "no PostgreSQL user name specified in startup packet",
            ));
        }
        startup.database = database
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| startup.user.clone());
        if minor != 0 || !unknown.is_empty() {
            startup.negotiate = Some(unknown);
        }
        Ok(startup)
    }
}

fn refuse_replication(value: &str) -> Result<(), SqlError> {
    match value {
        "false" | "off" | "no" | "0" => Ok(()),
        _ => Err(SqlError::unsupported(
            "replication is not supported",
            "Copy the database with BACKUP TO, or thermocline backup.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: i32, body: &[u8]) -> Result<Startup, SqlError> {
        Startup::read(version, Fields::new(body))
    }

    #[test]
    fn the_database_is_the_users_name_unless_given() {
        let startup = read(3 << 16, b"user\0postgres\0\0").unwrap();
        assert_eq!(startup.database, "postgres");
        assert_eq!(startup.negotiate, None);
        let startup = read(3 << 16, b"user\0a\0database\0b\0\0").unwrap();
        assert_eq!(startup.database, "b");
    }

    #[test]
    fn newer_minor_versions_and_protocol_options_are_negotiated() {
        let startup = read(3 << 16 | 2, b"user\0postgres\0\0").unwrap();
        assert_eq!(startup.negotiate, Some(vec![]));
        let startup = read(3 << 16, b"user\0postgres\0_pq_.x\0y\0\0").unwrap();
        assert_eq!(startup.negotiate, Some(vec!["_pq_.x".to_owned()]));
        assert_eq!(read(2 << 16, b"\0").unwrap_err().sqlstate, "0A000");
    }

    #[test]
    fn settings_are_kept_and_replication_is_refused() {
        let packet = b"user\0postgres\0TimeZone\0UTC\0options\0-c jit=off\0\0";
        let parameters = read(3 << 16, packet).unwrap().parameters;
        let expected = [("TimeZone", "UTC"), ("options", "-c jit=off")];
        assert_eq!(
            parameters,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let replica = b"user\0postgres\0replication\0database\0\0";
        assert_eq!(read(3 << 16, replica).unwrap_err().sqlstate, "0A000");
    }

    #[test]
    fn packets_that_are_cut_or_too_long_are_refused() {
        assert_eq!(read(3 << 16, b"user\0").unwrap_err().sqlstate, "08P01");
        assert_eq!(
            read(3 << 16, b"user\0postgres\0\0x").unwrap_err().sqlstate,
            "08P01"
        );
        assert_eq!(read(3 << 16, b"\0").unwrap_err().sqlstate, "28000");
    }
}
