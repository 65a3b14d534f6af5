//! Who comes in: the list of [`Rules`] says how a client has to show who it is, and this asks.
//! A wrong password, an unknown name and a role without a password look the same and take the
//! same time. An address that fails again and again waits longer each time.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use parking_lot::{Mutex, RwLock};
use thermocline_engine::Database;
use thermocline_engine::authority::FIRST_ROLE_NAME;
use thermocline_sql::error::SqlError;
use thermocline_sql::password::Verifier;

use crate::hba::{Method, Origin, Rules};
use crate::host::Host;
use crate::scram::{self, Failed};
use crate::socket::Socket;
use crate::startup::{DATABASE, Startup};
use crate::tls::Tls;

/// What the first failure costs; each further one twice as much.
const FAILURE_PAUSE: Duration = Duration::from_millis(100);
/// The most that a failure costs.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(3);
/// A failure is forgotten after this.
const FAILURE_REMEMBERED: Duration = Duration::from_secs(60);
/// Addresses whose failures are remembered.
const FAILURES_MAX: usize = 1024;

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    Tcp {
        client: SocketAddr,
        server: Option<SocketAddr>,
    },
    /// A Unix socket, and what the kernel says of who is there.
    Unix { uid: Option<u32> },
}

impl Peer {
    /// Where the client is; none on a Unix socket.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp { client, .. } => Some(*client),
            Self::Unix { .. } => None,
        }
    }
}

pub(crate) struct Gate {
    rules: Rules,
    tls: RwLock<Option<Arc<Tls>>>,
    host: Option<Arc<dyn Host>>,
    failures: Mutex<HashMap<IpAddr, (u32, Instant)>>,
}

/// Changes what a running server goes by.
#[derive(Clone)]
pub struct Reload(pub(crate) Arc<Gate>);

impl Reload {
    /// New connections are encrypted with this.
    pub fn set_tls(&self, tls: Tls) {
        *self.0.tls.write() = Some(Arc::new(tls));
    }
}

impl Gate {
    pub(crate) fn new(rules: Rules, tls: Option<Tls>, host: Option<Arc<dyn Host>>) -> Self {
        Self {
            rules,
            tls: RwLock::new(tls.map(Arc::new)),
            host,
            failures: Mutex::default(),
        }
    }

    pub(crate) fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.read().clone()
    }

    /// Lets a client in, or says why not.
    pub(crate) async fn admit(
        &self,
        db: &Database,
        socket: &Socket,
        out: &mut BytesMut,
        startup: &Startup,
        peer: Peer,
        tls: Option<&Tls>,
    ) -> Result<(), SqlError> {
        let Startup { user, database, .. } = startup;
        let address = match peer {
            Peer::Tcp { client, .. } => Some(client.ip().to_canonical()),
            Peer::Unix { .. } => None,
        };
        let origin = Origin {
            address,
            encrypted: tls.is_some(),
        };
        let catalog = db.catalog();
        let authority = &catalog.authority;
        let is_member =
            |group: &str| match (authority.role_by_name(user), authority.role_by_name(group)) {
                (Some(role), Some(group)) => {
                    authority.roles_of(role.oid, false).contains(&group.oid)
                }
                _ => false,
            };
        let methods = self.rules.find(origin, database, user, is_member);
        for method in methods.unwrap_or(&[Method::Reject]) {
            match method {
                Method::Trust => return known_database(database),
                Method::Reject => break,
                Method::Peer if self.proves(peer, user) => return known_database(database),
                Method::Peer => {}
                Method::Scram => {
                    self.password(db, socket, out, user, address, tls).await?;
                    return known_database(database);
                }
            }
        }
        Err(refused(methods, origin, startup))
    }

    /// Whether the kernel says that `user` of this machine is at the other end, or the user
    /// that runs this server, who may be anybody: its files are the database. A user of the
    /// machine who happens to be called as the first superuser is (PostgreSQL's own) is not it.
    fn proves(&self, peer: Peer, user: &str) -> bool {
        let Some(host) = &self.host else {
            return false;
        };
        let uid = match peer {
            Peer::Unix { uid } => uid,
            Peer::Tcp {
                client,
                server: Some(server),
            } if client.ip().to_canonical().is_loopback() => host.loopback_uid(client, server),
            Peer::Tcp { .. } => None,
        };
        uid.is_some_and(|uid| {
            let named = || host.user_name(uid).is_some_and(|name| name == user);
            uid == host.own_uid() || (user != FIRST_ROLE_NAME && named())
        })
    }

    async fn password(
        &self,
        db: &Database,
        socket: &Socket,
        out: &mut BytesMut,
        user: &str,
        address: Option<IpAddr>,
        tls: Option<&Tls>,
    ) -> Result<(), SqlError> {
        let kept = verifier_of(db, user);
        let secret = db.database_id().to_be_bytes();
        let nobody = scram::made_up(&secret, user);
        let verifier = kept.as_ref().unwrap_or(&nobody);
        let end_point = tls.and_then(Tls::end_point).map(|hash| &hash[..]);
        let outcome = scram::exchange(socket, out, verifier, kept.is_some(), end_point).await;
        match outcome {
            Ok(()) => {
                if let Some(address) = address {
                    self.failures.lock().remove(&address);
                }
                Ok(())
            }
            Err(Failed::Malformed(error)) => {
                self.pause(address).await;
                Err(error)
            }
            Err(Failed::Gone) => Err(SqlError::new(
                "08006",
                "the client disconnected while the server asked for a password",
            )),
            Err(Failed::Refused) => {
                tracing::info!("password authentication failed for user {user:?} from {address:?}");
                self.pause(address).await;
                Err(SqlError::new(
                    "28P01",
                    format!("password authentication failed for user \"{user}\""),
                ))
            }
        }
    }

    /// Waits before a failure is told.
    async fn pause(&self, address: Option<IpAddr>) {
        let failed = match address {
            None => 0,
            Some(address) => {
                let mut failures = self.failures.lock();
                failures.retain(|_, (_, last)| last.elapsed() < FAILURE_REMEMBERED);
                if failures.len() >= FAILURES_MAX {
                    failures.clear();
                }
                let (count, last) = failures.entry(address).or_insert((0, Instant::now()));
                *last = Instant::now();
                let failed = *count;
                *count = count.saturating_add(1);
                failed
            }
        };
        let pause = FAILURE_PAUSE.saturating_mul(1 << failed.min(10));
        tokio::time::sleep(pause.min(FAILURE_PAUSE_MAX)).await;
    }
}

/// What the role's password is checked with, if it has one that still holds.
fn verifier_of(db: &Database, user: &str) -> Option<Verifier> {
    let catalog = db.catalog();
    let role = catalog.authority.role_by_name(user)?;
    let expired = role
        .valid_until_us
        .is_some_and(|until| until <= thermocline_sql::session::now_us());
    let verifier = role.verifier.as_deref().and_then(Verifier::parse)?;
    (!expired).then_some(verifier)
}

fn known_database(database: &str) -> Result<(), SqlError> {
    match database == DATABASE {
        true => Ok(()),
        false => Err(SqlError::new(
            "3D000",
            format!("database \"{database}\" does not exist"),
        )),
    }
}

fn refused(methods: Option<&[Method]>, origin: Origin, startup: &Startup) -> SqlError {
    let Startup { user, database, .. } = startup;
    if methods.is_some_and(|methods| methods.contains(&Method::Peer)) {
        return SqlError::new(
            "28000",
            format!("Peer authentication failed for user \"{user}\""),
        );
    }
    let host = match origin.address {
        Some(address) => format!("host \"{address}\""),
        None => "host \"[local]\"".to_owned(),
    };
    let encryption = match origin.encrypted {
        true => "SSL encryption",
        false => "no encryption",
    };
    let what = match methods {
        Some(_) => "the list of who may come in rejects connection for",
        None => "no entry in the list of who may come in for",
    };
    SqlError::new(
        "28000",
        format!("{what} {host}, user \"{user}\", database \"{database}\", {encryption}"),
    )
    .with_hint("The setting hba is that list.")
}
