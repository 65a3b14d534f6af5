//! TLS: what a client may ask for before it says who it is. The answer to an SSLRequest is
//! one byte, and everything after the request's eight bytes goes to the handshake: bytes
//! that a third party put in before it can never be taken for the client's (CVE-2021-23214).
//!
//! An encrypted connection is carried by a task of its own between the TLS stream and a pair
//! of sockets, whose other end is served like any client.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use crate::end_point::end_point_hash;
use crate::stream::Stream;

/// How long a client may take for what was sent before its connection ended.
const LINGER: Duration = Duration::from_secs(2);

/// A certificate with its key, ready to serve.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    /// What SCRAM-SHA-256-PLUS binds to (RFC 5929, tls-server-end-point).
    end_point: Option<Arc<[u8]>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Of a chain of certificates and a key, both as PEM.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("certificate: {error}"))?;
        let first = chain.first().ok_or("certificate: there is none")?;
        let end_point = end_point_hash(first).map(Arc::from);
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("key: {error}"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            end_point,
        })
    }

    pub(crate) fn end_point(&self) -> Option<&Arc<[u8]>> {
        self.end_point.as_ref()
    }

    /// The handshake; gives the end that is to be served.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<Stream>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let encrypted = self.acceptor.accept(stream).await?;
        let (near, far) = UnixStream::pair()?;
        let (alive, gone) = oneshot::channel();
        tokio::spawn(carry(encrypted, far, gone));
        Ok(Stream::Tls {
            stream: near,
            _alive: alive,
        })
    }
}

/// Carries bytes both ways until the server's end is closed and all of it was sent, or was not
/// taken for a while. `gone` becomes ready when the server's end is closed.
async fn carry<S>(encrypted: S, plain: UnixStream, gone: oneshot::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut from_client, mut to_client) = split(encrypted);
    let (mut from_server, mut to_server) = plain.into_split();
    let inward = async {
        let copied = copy(&mut from_client, &mut to_server).await;
        // Whichever way it ended, the server sees the end of the client.
        to_server.shutdown().await.and(copied.map(|_| ()))
    };
    let outward = async {
        let copied = copy(&mut from_server, &mut to_client).await;
        to_client.shutdown().await.and(copied.map(|_| ()))
    };
    tokio::pin!(inward, outward);
    let both = async {
        tokio::select! {
            ended = &mut outward => ended,
            ended = &mut inward => {
                if let Err(error) = ended {
                    tracing::debug!("an encrypted connection: {error}");
                }
                outward.await
            }
        }
    };
    let ended = tokio::select! {
        ended = both => ended,
        () = async {
            let _ = gone.await;
            sleep(LINGER).await;
        } => Err(io::ErrorKind::TimedOut.into()),
    };
    if let Err(error) = ended {
        tracing::debug!("an encrypted connection: {error}");
    }
}
