//! A client's connection below its frames: over TCP or a Unix socket, and of the latter kind,
//! too, when it comes out of TLS (`tls.rs`). Reading and writing need no more than `&self`.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// One end of a pair of sockets; who carries the bytes on to the other learns from its
    /// second part when it is gone.
    Tls {
        stream: UnixStream,
        _alive: oneshot::Sender<()>,
    },
}

/// A connection that was accepted, on its way to the thread that it will live on.
pub(crate) enum Unregistered {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Unregistered {
    /// Has this thread's runtime watch it.
    pub(crate) fn register(self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Self::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl Stream {
    /// Answers go out at once, not when the last segment was acknowledged.
    pub(crate) fn set_nodelay(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nodelay(true),
            Self::Unix(_) | Self::Tls { .. } => Ok(()),
        }
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.readable().await,
        }
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.writable().await,
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.writable().await,
        }
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await,
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.ready(interest).await,
        }
    }

    pub(crate) fn try_read_buf(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read_buf(buffer),
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.try_read_buf(buffer),
        }
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.try_write(bytes),
        }
    }

    /// Fills the whole buffer: for the few bytes before there are frames.
    pub(crate) async fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read_exact(buffer).await,
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.read_exact(buffer).await,
        }
    }

    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.write_all(bytes).await,
        }
    }

    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown().await,
            Self::Unix(stream) | Self::Tls { stream, .. } => stream.shutdown().await,
        }
    }
}
