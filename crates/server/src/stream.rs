//! A client's connection below its frames: over TCP or a Unix socket, and of the latter kind,
//! too, when it comes out of TLS (`tls.rs`). Reading and writing need no more than `&self`.

use std::cell::RefCell;
use std::io::{self, Read};

use bytes::BytesMut;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

/// The most that one read takes, in bytes.
const READ_PART_BYTES: usize = 64 << 10;

thread_local! {
    /// What is read comes here first: the kernel is given bytes that are there.
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_PART_BYTES].into());
}

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

    /// Reads what has come, as far as there is room. What was less than that was all: the next
    /// wait then waits, and asks the kernel for nothing.
    pub(crate) fn try_read_buf(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => {
                let read = || read_part(stream.into(), buffer);
                told(read, |read| stream.try_io(Interest::READABLE, read))
            }
            Self::Unix(stream) | Self::Tls { stream, .. } => {
                let read = || read_part(stream.into(), buffer);
                told(read, |read| stream.try_io(Interest::READABLE, read))
            }
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

/// Reads once; how many bytes, and whether there may be more.
fn read_part(socket: SockRef<'_>, buffer: &mut BytesMut) -> io::Result<(usize, bool)> {
    READ.with_borrow_mut(|read| {
        let room = buffer.capacity() - buffer.len();
        let part = &mut read[..room.min(READ_PART_BYTES)];
        let bytes = (&*socket).read(part)?;
        buffer.extend_from_slice(&part[..bytes]);
        Ok((bytes, bytes == 0 || bytes == part.len()))
    })
}

/// What `read` has read. Where that was all, `try_io` is told that a read would wait, which it
/// notes for the event that it has seen: one that comes after it counts.
fn told(
    read: impl FnOnce() -> io::Result<(usize, bool)>,
    try_io: impl FnOnce(&mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
) -> io::Result<usize> {
    let (mut read, mut bytes) = (Some(read), None);
    let tried = try_io(&mut || {
        let Some(read) = read.take() else {
            return Ok(());
        };
        let (came, is_more) = read()?;
        bytes = Some(came);
        match is_more {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    });
    match (bytes, tried) {
        (Some(bytes), _) => Ok(bytes),
        (None, tried) => tried.map(|()| 0),
    }
}
