//! The port for who runs the server: `/metrics` for Prometheus, `/health` for who balances load or restarts.
//!
//! It has a thread of its own, and takes no lock that a statement holds while it runs or waits,
//! nor memory that is charged: it answers while all partitions are busy, while memory is at its limit,
//! and while the database starts and stops. A client gets [`CONVERSATION_MAX`] and holds a few KB
//! meanwhile; there are [`CONNECTIONS_MAX`], and one more ends the oldest, so that clients that say nothing
//! keep nobody out. Nobody is asked who they are: what is told is numbers, of no row and no statement.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use thermocline_sql::Engine;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::exposition::{self, SERVES};
use crate::http::{Answer, Status, converse};
use crate::metrics::Metrics;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 8;
/// How long one may take, from its first byte to its last.
const CONVERSATION_MAX: Duration = Duration::from_secs(5);
/// How long to wait before accepting again when the machine has no socket left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const STARTING: u8 = 0;
const SERVING: u8 = 1;
const STOPPING: u8 = 2;

/// What the port tells of.
struct Told {
    phase: AtomicU8,
    server: OnceLock<(Weak<Engine>, Arc<Metrics>)>,
}

/// The port, which answers until the process ends.
pub struct OperatorPort {
    told: Arc<Told>,
    address: SocketAddr,
}

impl OperatorPort {
    /// Listens and answers from now on: that the database starts.
    ///
    /// # Errors
    /// The address cannot be listened on, e.g. `AddrInUse`; there is no thread left.
    pub fn start(address: SocketAddr) -> io::Result<Self> {
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let told = Arc::new(Told {
            phase: AtomicU8::new(STARTING),
            server: OnceLock::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let tells = Arc::clone(&told);
        thread::Builder::new()
            .name("operator-port".into())
            .spawn(move || runtime.block_on(serve(listener, tells)))?;
        Ok(Self { told, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// From now on the server serves.
    pub fn serving(&self, engine: &Arc<Engine>, metrics: Arc<Metrics>) {
        let _ = self.told.server.set((Arc::downgrade(engine), metrics));
        self.told.phase.store(SERVING, Relaxed);
    }

    /// From now on it stops.
    pub fn stopping(&self) {
        self.told.phase.store(STOPPING, Relaxed);
    }
}

impl Told {
    fn answer(&self, path: &str) -> Answer {
        let engine = self.server.get().and_then(|(engine, metrics)| {
            let engine = engine.upgrade()?;
            Some((engine, metrics))
        });
        let failed = engine
            .as_ref()
            .and_then(|(engine, _)| engine.database().stopped_because());
        let health = health(self.phase.load(Relaxed), failed.as_deref());
        match path {
            "/metrics" => {
                let serves = engine.as_ref();
                let serves = serves.map(|(engine, metrics)| (&**engine, &***metrics));
                Answer::metrics(exposition::metrics(health, serves))
            }
            "/health" if health == SERVES => Answer::text(Status::Ok, health),
            "/health" => Answer::text(Status::Unavailable, health),
            _ => Answer::text(Status::NotFound, "/metrics and /health are here"),
        }
    }
}

/// What /health says: 200 for [`SERVES`], 503 for all else.
fn health(phase: u8, failed: Option<&str>) -> &str {
    match (phase, failed) {
        (STARTING, _) => "starts",
        (SERVING, None) => SERVES,
        (SERVING, Some(why)) => why,
        _ => "stops",
    }
}

async fn serve(listener: StdListener, told: Arc<Told>) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!("the port for metrics cannot be used: {error}");
            return;
        }
    };
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("accepting a connection for metrics failed: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS_MAX
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let told = Arc::clone(&told);
        let conversation = converse(stream, move |path| told.answer(path));
        let task = tokio::spawn(async move {
            let _ = tokio::time::timeout(CONVERSATION_MAX, conversation).await;
        });
        open.push_back(task.abort_handle());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    use thermocline_device::SimulatedDevice;
    use thermocline_engine::{Config, Database};

    use super::*;

    fn started() -> OperatorPort {
        OperatorPort::start("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    fn ask(port: &OperatorPort, path: &str) -> String {
        let mut stream = TcpStream::connect(port.local_addr()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn health_is_that_of_the_moment() {
        let port = started();
        let said = ask(&port, "/health");
        assert!(
            said.starts_with("HTTP/1.1 503 ") && said.ends_with("\r\n\r\nstarts\n"),
            "{said}"
        );
        assert!(ask(&port, "/metrics").contains("\nthermocline_healthy 0\n"));
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(4 << 30);
        let database = Database::open(config).unwrap();
        let engine = Engine::new(Arc::clone(&database)).unwrap();
        port.serving(&engine, Arc::default());
        let said = ask(&port, "/health");
        assert!(
            said.starts_with("HTTP/1.1 200 ") && said.ends_with("\r\n\r\nserves\n"),
            "{said}"
        );
        assert!(ask(&port, "/metrics").contains("\nthermocline_healthy 1\n"));
        port.stopping();
        assert!(ask(&port, "/health").ends_with("\r\n\r\nstops\n"));
        drop(engine);
        database.close().unwrap();
        assert!(!ask(&port, "/metrics").contains("thermocline_memory_limit_bytes"));
        assert!(ask(&port, "/elsewhere").starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn a_failed_device_is_no_health() {
        assert_eq!(health(SERVING, None), SERVES);
        assert_eq!(health(SERVING, Some("the log stopped")), "the log stopped");
        assert_eq!(health(STARTING, Some("the log stopped")), "starts");
        assert_eq!(health(STOPPING, None), "stops");
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_out() {
        let port = started();
        let mut silent: Vec<TcpStream> = (0..100)
            .map(|_| TcpStream::connect(port.local_addr()).unwrap())
            .collect();
        for (number, stream) in silent.iter_mut().enumerate() {
            // Some of them say a part; those that were ended can't.
            let _ = stream.write_all(&b"GET /metrics HTTP/1.1\r\nX: "[..number % 25]);
        }
        let begin = Instant::now();
        assert!(ask(&port, "/health").starts_with("HTTP/1.1 503 "));
        assert!(begin.elapsed() < CONVERSATION_MAX, "{:?}", begin.elapsed());
        // The last ones have their time, and no more.
        let mut last = silent.pop().unwrap();
        let mut rest = Vec::new();
        let _ = last.read_to_end(&mut rest);
        assert!(rest.is_empty());
        assert!(
            begin.elapsed() < 3 * CONVERSATION_MAX,
            "{:?}",
            begin.elapsed()
        );
    }

    /// Each line is one that Prometheus reads; each name has its help and type before it, once,
    /// and says its unit.
    #[test]
    fn metrics_are_in_the_text_format() {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(4 << 30);
        let database = Database::open(config).unwrap();
        let engine = Engine::new(Arc::clone(&database)).unwrap();
        let port = started();
        port.serving(&engine, Arc::default());
        let said = ask(&port, "/metrics");
        let (_, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(
            body.ends_with('\n') && body.len() < 16 << 10,
            "{}",
            body.len()
        );
        let mut families: Vec<(String, String)> = Vec::new();
        let mut helped = String::new();
        let mut series = std::collections::HashSet::new();
        for line in body.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').unwrap();
                assert!(text.ends_with('.'), "{line}");
                helped = name.to_owned();
                continue;
            }
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(name, helped);
                assert!(
                    families.iter().all(|(known, _)| known != name),
                    "{name} twice"
                );
                assert!(matches!(kind, "gauge" | "counter" | "summary"), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                families.push((name.to_owned(), kind.to_owned()));
                continue;
            }
            let (key, value) = line.rsplit_once(' ').unwrap();
            assert!(series.insert(key.to_owned()), "{key} twice");
            assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
            let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
            assert!(labels.ends_with('}'), "{line}");
            let (family, kind) = families.last().unwrap();
            let own = name == family
                || kind == "summary"
                    && [format!("{family}_sum"), format!("{family}_count")]
                        .contains(&name.to_owned());
            assert!(own, "{line} below {family}");
            assert!(name.starts_with("thermocline_"), "{line}");
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(name.bytes().all(plain), "{line}");
            let units = ["ms", "us", "kb", "mb", "percent"];
            assert!(!name.split('_').any(|word| units.contains(&word)), "{name}");
        }
        assert!(families.len() > 50, "{}", families.len());
        let documented = include_str!("../../../docs/reference/metrics.md");
        for (name, _) in &families {
            assert!(
                documented.contains(&format!("`{name}`")),
                "{name} is not in docs/reference/metrics.md"
            );
        }
        drop(engine);
        database.close().unwrap();
    }
}
