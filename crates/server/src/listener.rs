//! Accepting connections, refusing those that are too many, and the clean
//! stop: idle clients are told at once, running statements may finish for a
//! few seconds, then their sessions end as `pg_terminate_backend` ends one, then they are left.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use socket2::{Domain, SockAddr, Socket as Socket2, Type};
use thermocline_sql::error::SqlError;
use thermocline_sql::{Engine, Session, messages};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::anteroom::{Anteroom, Leaves, Place};
use crate::config::{
    Config, PENDING_CONNECTIONS_MAX, PENDING_PATIENCE, SILENCE_MAX, STARTUP_PACKET_BYTES_MAX,
};
use crate::connection::Connection;
use crate::crew::Crew;
use crate::gate::{Gate, Peer, Reload};
use crate::link::stopped;
use crate::metrics::Metrics;
use crate::registry::{Registry, Slot};
use crate::socket::{NoFrame, Socket};
use crate::startup::{self, Request, Startup};
use crate::stream::{Stream, Unregistered};
use crate::tls::Tls;

/// How long to wait before accepting again when the machine has no socket left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Clients that may wait in the kernel's queue; the system may know a lower limit.
const BACKLOG: u32 = 4096;
/// How long sessions have to end when they must.
const END_GRACE: Duration = Duration::from_secs(4);

/// A server that listens. [`Server::run`] serves.
pub struct Server {
    listener: TcpListener,
    unix: Option<UnixListener>,
    config: Config,
    metrics: Arc<Metrics>,
    gate: Arc<Gate>,
    crew: Crew,
}

struct Shared {
    config: Config,
    engine: Arc<Engine>,
    registry: Arc<Registry>,
    anteroom: Arc<Anteroom>,
    metrics: Arc<Metrics>,
    gate: Arc<Gate>,
}

impl Server {
    /// Listens. Clients that connect wait until [`Server::run`], so that a
    /// server can listen before its database has recovered.
    ///
    /// # Errors
    /// The address cannot be listened on, e.g. `AddrInUse`.
    pub async fn bind(config: Config) -> io::Result<Self> {
        let listener = listen(config.listen)?;
        let unix = match &config.unix_socket_directory {
            Some(directory) => {
                let port = listener.local_addr()?.port();
                let name = format!(".s.PGSQL.{port}");
                Some(listen_local(&directory.join(name))?)
            }
            None => None,
        };
        let gate = Gate::new(
            config.rules.clone(),
            config.tls.clone(),
            config.host.clone(),
        );
        Ok(Self {
            listener,
            unix,
            gate: Arc::new(gate),
            config,
            metrics: Arc::new(Metrics::default()),
            crew: Crew::start(std::thread::available_parallelism().map_or(1, usize::from))?,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The operating system cannot say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// To change, while it runs, what it goes by.
    #[must_use]
    pub fn reload(&self) -> Reload {
        Reload(Arc::clone(&self.gate))
    }

    /// The server's counters.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Serves until `shutdown` is ready, then stops cleanly. When this returns
    /// no session is left.
    pub async fn run(self, engine: Arc<Engine>, shutdown: impl Future<Output = ()>) {
        let Self {
            listener,
            unix,
            config,
            metrics,
            gate,
            mut crew,
        } = self;
        let shared = Arc::new(Shared {
            registry: Arc::new(Registry::new(
                config.max_connections,
                config.superuser_reserved_connections,
                Arc::clone(&metrics),
            )),
            anteroom: Arc::new(Anteroom::new(PENDING_CONNECTIONS_MAX, PENDING_PATIENCE)),
            config,
            engine,
            metrics,
            gate,
        });
        let mut shutdown = pin!(shutdown);
        loop {
            let next = async {
                shared.anteroom.room().await;
                accept(&listener, unix.as_ref()).await
            };
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = next => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    Metrics::add(&shared.metrics.connections_accepted, 1);
                    let place = shared.anteroom.enter(&peer);
                    let shared = Arc::clone(&shared);
                    crew.give(move || connection(shared, stream, peer, place));
                }
                Err(error) => {
                    tracing::warn!("accepting a connection failed: {error}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        shared.anteroom.close();
        shared.registry.close();
        let grace = shared.config.stop_grace;
        if timeout(grace, crew.drain()).await.is_err() {
            shared.registry.end_all();
            if timeout(END_GRACE, crew.drain()).await.is_err() {
                tracing::warn!("{} connections did not end in time", crew.living());
                crew.end_at_once();
                // Who does not even notice that is left behind.
                let _ = timeout(END_GRACE, crew.drain()).await;
            }
        }
    }
}

/// Listens on an address; many may wait to be accepted.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The same on a Unix socket.
fn listen_local(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket2::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(BACKLOG.cast_signed())?;
    socket.set_nonblocking(true)?;
    UnixListener::from_std(socket.into())
}

/// The next client, wherever it comes from.
async fn accept(
    listener: &TcpListener,
    unix: Option<&UnixListener>,
) -> io::Result<(Unregistered, Peer)> {
    let tcp = |(stream, client): (TcpStream, SocketAddr)| {
        let server = stream.local_addr().ok();
        let stream = Unregistered::Tcp(stream.into_std()?);
        Ok((stream, Peer::Tcp { client, server }))
    };
    let Some(unix) = unix else {
        return listener.accept().await.and_then(tcp);
    };
    tokio::select! {
        accepted = listener.accept() => accepted.and_then(tcp),
        accepted = unix.accept() => {
            let (stream, _) = accepted?;
            let uid = stream.peer_cred().ok().map(|peer| peer.uid());
            Ok((Unregistered::Unix(stream.into_std()?), Peer::Unix { uid }))
        }
    }
}

fn too_many() -> SqlError {
    SqlError::new("53300", "sorry, too many clients already")
}

/// Sends a socket away that gives way to a newer one, without waiting for anything. What does
/// not fit the socket's empty buffer is lost, which a closed connection explains too.
fn turn_away(shared: &Shared, stream: &Stream) {
    Metrics::add(&shared.metrics.connections_refused, 1);
    // A socket that is closed with something unread loses what was written to it.
    let _ = stream.try_read_buf(&mut BytesMut::with_capacity(STARTUP_PACKET_BYTES_MAX));
    let mut out = BytesMut::new();
    messages::error_response(&mut out, "FATAL", &too_many());
    if let Err(error) = stream.try_write(&out) {
        tracing::debug!("sending a client away: {error}");
    }
}

/// One connection, from its first byte to its last.
async fn connection(shared: Arc<Shared>, stream: Unregistered, peer: Peer, mut place: Place) {
    let stream = match stream.register() {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!("accepting a connection failed: {error}");
            return;
        }
    };
    let speaks = place.speaker();
    speaks.is_listened_to();
    let tls = shared.gate.tls();
    let allowed = shared.config.authentication_timeout;
    let deadline = Instant::now() + allowed;
    let spoken_by = Instant::now() + allowed.min(SILENCE_MAX);
    let mut stream = Some(stream);
    let negotiated = tokio::select! {
        biased;
        negotiated = timeout_at(
            spoken_by,
            startup::negotiate(&mut stream, tls.as_deref()),
        ) => match negotiated {
            Ok(Ok(negotiated)) => Some(negotiated),
            Ok(Err(error)) => {
                tracing::debug!("a client before its start-up packet: {error}");
                None
            }
            Err(_) => None,
        },
        why = place.left() => match why {
            // It hears so below.
            Leaves::Stopping => Some((BytesMut::new(), false)),
            Leaves::GivesWay => {
                if let Some(stream) = &stream {
                    turn_away(&shared, stream);
                }
                return;
            }
        },
    };
    let (Some((first, encrypted)), Some(stream)) = (negotiated, stream) else {
        Metrics::add(&shared.metrics.startups_failed, 1);
        return;
    };
    let tls = tls.filter(|_| encrypted);
    let socket = Arc::new(Socket::new(
        stream,
        first,
        shared.config.max_message_bytes,
        Arc::clone(&shared.metrics),
    ));
    let mut out = BytesMut::new();
    let entered = async {
        let received = timeout_at(spoken_by, startup::receive(&socket, &mut out)).await;
        let request = received.unwrap_or(Err(NoFrame::Closed))?;
        speaks.has_spoken();
        let admitted = admit(&shared, &socket, &mut out, &request, peer, tls.as_deref());
        let admitted = timeout_at(deadline, admitted).await;
        admitted.unwrap_or(Err(NoFrame::Closed))?;
        Ok(request)
    };
    let request = tokio::select! {
        biased;
        request = entered => request,
        why = place.left() => match why {
            Leaves::Stopping => Err(NoFrame::Malformed(stopped())),
            Leaves::GivesWay => {
                Metrics::add(&shared.metrics.connections_refused, 1);
                messages::error_response(&mut out, "FATAL", &too_many());
                return socket.write_at_once(out).await;
            }
        },
    };
    let startup = match request {
        Ok(Request::Session(startup)) => startup,
        Ok(Request::Cancel { process_id, secret }) => {
            // No answer, as in PostgreSQL: it would tell whether the key fits.
            shared.registry.cancel(process_id, secret);
            return;
        }
        Err(NoFrame::Closed) => {
            Metrics::add(&shared.metrics.startups_failed, 1);
            return;
        }
        Err(NoFrame::Malformed(error) | NoFrame::Refused(_, error)) => {
            return refuse(&shared, socket, out, &error, place).await;
        }
    };
    match open(&shared, &startup) {
        Ok((session, slot)) => {
            drop(place);
            session.comes_from(peer.address());
            socket.belongs_to(
                Arc::clone(shared.engine.database()),
                session.account().clone(),
                session.cancel(),
            );
            let grace = shared.config.vanished_client_grace;
            Connection::new(socket, session, slot, out, grace)
                .serve()
                .await;
        }
        Err(error) => refuse(&shared, socket, out, &error, place).await,
    }
}

/// Lets a client in that wants a session.
async fn admit(
    shared: &Shared,
    socket: &Socket,
    out: &mut BytesMut,
    request: &Request,
    peer: Peer,
    tls: Option<&Tls>,
) -> Result<(), NoFrame> {
    if let Request::Session(startup) = request {
        let db = shared.engine.database();
        let admitted = shared.gate.admit(db, socket, out, startup, peer, tls);
        admitted.await.map_err(NoFrame::Malformed)?;
    }
    Ok(())
}

fn open(shared: &Shared, startup: &Startup) -> Result<(Session, Slot), SqlError> {
    let catalog = shared.engine.database().catalog();
    let role = catalog.authority.role_by_name(&startup.user);
    let superuser = role.is_some_and(|role| role.superuser);
    let slot = shared.registry.enter(superuser).inspect_err(|_| {
        Metrics::add(&shared.metrics.connections_refused, 1);
    })?;
    let session = Session::new(
        Arc::clone(&shared.engine),
        &startup.user,
        &startup.database,
        &startup.parameters,
        slot.process_id,
        slot.secret(),
    )?;
    Ok((session, slot))
}

async fn refuse(
    shared: &Shared,
    socket: Arc<Socket>,
    mut out: BytesMut,
    error: &SqlError,
    mut place: Place,
) {
    Metrics::add(&shared.metrics.startups_failed, 1);
    messages::error_response(&mut out, "FATAL", error);
    let last_words = async {
        socket.flush_last(out).await;
        if let Some(socket) = Arc::into_inner(socket) {
            socket.close().await;
        }
    };
    let gives_way = async {
        while place.left().await != Leaves::GivesWay {
            // A stop waits for its last words as for all others'.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        () = last_words => {}
        () = gives_way => {}
    }
}
