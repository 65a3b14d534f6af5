//! The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677, 5929), as
//! PostgreSQL speaks it. Who does not exist or has no password goes through the same steps
//! with a made-up verifier, which is always the same for the same name.
//!
//! Everything a client sends has to be as expected to the byte: the channel binding, the
//! nonce, a proof of exactly 32 bytes. A client that could have bound the exchange to
//! TLS and says that the server could not is refused (a downgrade).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use thermocline_sql::error::SqlError;
use thermocline_sql::messages;
use thermocline_sql::password::{Hash, ITERATIONS, Verifier, keyed};

use crate::message::Fields;
use crate::socket::{NoFrame, Socket};

const PLAIN: &str = "SCRAM-SHA-256";
const PLUS: &str = "SCRAM-SHA-256-PLUS";
const BINDING: &str = "tls-server-end-point";
/// Bytes of chance in the server's part of the nonce.
const NONCE_BYTES: usize = 18;
/// Bytes of a client's part of the nonce at most.
const CLIENT_NONCE_BYTES_MAX: usize = 1024;

/// How an exchange can fail.
pub(crate) enum Failed {
    /// The client has gone.
    Gone,
    /// What it sent makes no sense.
    Malformed(SqlError),
    /// It does not know the password.
    Refused,
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Self {
        Self::Malformed(error)
    }
}

/// The verifier of nobody, for this name.
pub(crate) fn made_up(secret: &[u8], user: &str) -> Verifier {
    let salt = keyed(secret, &[b"salt", user.as_bytes()]);
    Verifier {
        iterations: ITERATIONS,
        salt: salt[..16].to_vec(),
        stored_key: keyed(secret, &[b"stored", user.as_bytes()]),
        server_key: keyed(secret, &[b"server", user.as_bytes()]),
    }
}

/// Asks for the password and checks it; `end_point` is the hash of the certificate if the
/// connection is encrypted. `known` is false for a made-up verifier. What is written last is
/// left in `out`, to go out with what follows.
pub(crate) async fn exchange(
    socket: &Socket,
    out: &mut BytesMut,
    verifier: &Verifier,
    known: bool,
    end_point: Option<&[u8]>,
) -> Result<(), Failed> {
    let offered: &[&str] = match end_point {
        Some(_) => &[PLUS, PLAIN],
        None => &[PLAIN],
    };
    messages::authentication_sasl(out, offered);
    socket.flush(out).await.map_err(|_| Failed::Gone)?;

    let first = response(socket).await?;
    let mut fields = Fields::new(&first);
    let mechanism = fields.string()?;
    let length = usize::try_from(fields.int32()?).map_err(|_| malformed("no first message"))?;
    let message = text(fields.bytes(length)?)?;
    fields.end()?;
    let bound = match mechanism {
        PLAIN => None,
        PLUS if end_point.is_some() => end_point,
        _ => {
            return Err(
                malformed("client selected an invalid SASL authentication mechanism").into(),
            );
        }
    };
    let client = ClientFirst::read(message, bound.is_some(), end_point.is_some())?;

    let chance: [u8; NONCE_BYTES] = rand::random();
    let nonce = format!("{}{}", client.nonce, STANDARD.encode(chance));
    let server_first = format!(
        "r={nonce},s={},i={}",
        STANDARD.encode(&verifier.salt),
        verifier.iterations
    );
    messages::authentication_sasl_data(out, false, &server_first);
    socket.flush(out).await.map_err(|_| Failed::Gone)?;

    let last = response(socket).await?;
    let last = text(&last)?;
    let (without_proof, proof) = last
        .rsplit_once(",p=")
        .ok_or_else(|| malformed("the final message has no proof"))?;
    let mut binding = client.header.as_bytes().to_vec();
    binding.extend_from_slice(bound.unwrap_or_default());
    let expected = format!("c={},r={nonce}", STANDARD.encode(&binding));
    if without_proof != expected {
        return Err(malformed("SCRAM channel binding or nonce check failed").into());
    }
    let proof: Hash = STANDARD
        .decode(proof)
        .ok()
        .and_then(|proof| proof.try_into().ok())
        .ok_or_else(|| malformed("the proof has a wrong length"))?;
    let spoken: [&[u8]; 5] = [
        client.bare.as_bytes(),
        b",",
        server_first.as_bytes(),
        b",",
        without_proof.as_bytes(),
    ];
    // Both are asked, so that it takes as long.
    let accepted = verifier.accepts(&spoken, &proof);
    if !(accepted && known) {
        return Err(Failed::Refused);
    }
    let signature = format!("v={}", STANDARD.encode(verifier.signature(&spoken)));
    messages::authentication_sasl_data(out, true, &signature);
    Ok(())
}

/// The client's first message, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct ClientFirst<'a> {
    /// What it says of channel binding, with its commas.
    header: &'a str,
    bare: &'a str,
    nonce: &'a str,
}

impl<'a> ClientFirst<'a> {
    fn read(message: &'a str, bound: bool, could_bind: bool) -> Result<Self, SqlError> {
        let (flag, rest) = message
            .split_once(',')
            .ok_or_else(|| malformed("the first message ends too early"))?;
        match flag {
            "n" if !bound => {}
            "y" if !bound && could_bind => {
                return Err(
                    SqlError::new("28000", "SCRAM channel binding negotiation error").with_detail(
                        "The client supports SCRAM channel binding but thinks the server does not. \
                     However, this server does support channel binding.",
                    ),
                );
            }
            "y" if !bound => {}
            flag if bound && flag.strip_prefix("p=") == Some(BINDING) => {}
            _ => return Err(malformed("the channel binding is not the one agreed on")),
        }
        let (authorized, bare) = rest
            .split_once(',')
            .ok_or_else(|| malformed("the first message ends too early"))?;
        if !authorized.is_empty() {
            return Err(SqlError::unsupported(
                "client uses authorization identity, but it is not supported",
                "Use a client that sends no authorization identity.",
            ));
        }
        // The name is that of the start-up packet; what stands here is passed over.
        let mut attributes = bare.split(',');
        let named = attributes.next().is_some_and(|name| name.starts_with("n="));
        let nonce = attributes
            .next()
            .and_then(|nonce| nonce.strip_prefix("r="))
            .filter(|nonce| {
                (1..=CLIENT_NONCE_BYTES_MAX).contains(&nonce.len())
                    && nonce.bytes().all(|byte| byte.is_ascii_graphic())
            });
        match nonce {
            Some(nonce) if named => Ok(Self {
                header: &message[..message.len() - bare.len()],
                bare,
                nonce,
            }),
            _ => Err(malformed("the first message has no name or no nonce")),
        }
    }
}

async fn response(socket: &Socket) -> Result<bytes::Bytes, Failed> {
    loop {
        match socket.frame() {
            Ok(Some(frame)) if frame.tag == b'p' => return Ok(frame.body),
            Ok(Some(frame)) => {
                let what = format!("expected SASL response, got message type {}", frame.tag);
                return Err(SqlError::protocol(what).into());
            }
            Ok(None) => socket.fill().await,
            Err(NoFrame::Closed) => return Err(Failed::Gone),
            Err(NoFrame::Malformed(error) | NoFrame::Refused(_, error)) => {
                return Err(error.into());
            }
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|_| malformed("it is no text"))
}

#[cold]
fn malformed(what: &str) -> SqlError {
    SqlError::protocol("malformed SCRAM message").with_detail(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_message_is_taken_apart() {
        let read = ClientFirst::read("n,,n=,r=abc", false, false).unwrap();
        assert_eq!(
            (read.header, read.bare, read.nonce),
            ("n,,", "n=,r=abc", "abc")
        );
        assert!(ClientFirst::read("p=tls-server-end-point,,n=,r=abc", true, true).is_ok());
    }

    #[test]
    fn what_does_not_fit_the_agreement_is_refused() {
        for (message, bound, could) in [
            ("y,,n=,r=abc", false, true),
            ("p=tls-server-end-point,,n=,r=abc", false, true),
            ("n,,n=,r=abc", true, true),
            ("p=tls-unique,,n=,r=abc", true, true),
            ("n,a=admin,n=,r=abc", false, false),
            ("n,,m=x,n=,r=abc", false, false),
            ("n,,n=,r=", false, false),
            ("n,,n=", false, false),
            ("", false, false),
        ] {
            assert!(
                ClientFirst::read(message, bound, could).is_err(),
                "{message}"
            );
        }
    }

    #[test]
    fn nobody_has_the_same_verifier_each_time() {
        assert!(made_up(b"secret", "eve") == made_up(b"secret", "eve"));
        assert!(made_up(b"secret", "eve") != made_up(b"secret", "adam"));
    }
}
