//! `thermocline serve`: from the settings to a running server and to its clean
//! end. What cannot be is said before anything is changed: the port is taken
//! before the database is opened.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::time::Instant;

use thermocline::{Embedded, Options};
use thermocline_device::Device;
use thermocline_engine::{RecoveryListener, RecoveryPart, RecoveryProgress};
use thermocline_server::{Config, OperatorPort, Server};
use thermocline_sql::Engine;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::certificate;
use super::flags::Flags;
use super::host::Machine;
use super::kept::KeptSettings;
use super::settings::Settings;
use super::{fail, log, refuse, say, size, watch};

/// The exit code of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

pub(crate) fn serve(flags: &Flags) -> ExitCode {
    let settings = match load(flags) {
        Ok(settings) => settings,
        Err(why) => return refuse(&why),
    };
    #[cfg(feature = "stop-points")]
    if let Err(why) = thermocline_device::check_stop_point() {
        return refuse(&why);
    }
    log::start(&settings);
    // Of the main thread, which accepts connections and is told of signals.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("could not start a thread: {error}")),
    };
    let config = match config(&settings) {
        Ok(config) => config,
        Err(why) => return refuse(&why),
    };
    let server = match runtime.block_on(Server::bind(config)) {
        Ok(server) => server,
        Err(error) => return refuse(&cannot_listen(&settings, &error)),
    };
    if let Err(error) = permit_socket(&settings, &server) {
        return refuse(&format!("the Unix socket's permissions: {error}"));
    }
    let operator_port = match settings.metrics_listen.map(OperatorPort::start).transpose() {
        Ok(port) => port,
        Err(error) => {
            return refuse(&format!(
                "--metrics-listen: cannot listen on the address: {error}"
            ));
        }
    };
    announce(&settings);
    if let Some(port) = &operator_port {
        say(&format!(
            "  metrics     http://{}/metrics",
            port.local_addr()
        ));
    }
    let begin = Instant::now();
    let database = match Embedded::open(&settings.data_dir, &options(&settings)) {
        Ok(database) => database,
        Err(error) => return refuse(&error),
    };
    let engine = Arc::clone(database.engine());
    engine.default_settings(session_defaults(&settings));
    engine.keep_settings(Box::new(KeptSettings::new(&settings, server.reload())));
    if let Err(error) = watch::start(Arc::clone(database.database())) {
        return fail(&format!("could not start a thread: {error}"));
    }
    let signals = {
        let _context = runtime.enter();
        Signals::new()
    };
    let signals = match signals {
        Ok(signals) => signals,
        Err(error) => return fail(&format!("signals: {error}")),
    };
    // Before it is said: who reads that line may ask at once.
    if let Some(port) = &operator_port {
        port.serving(&engine, server.metrics());
    }
    announce_ready(&settings, &server, &database, begin);
    run(&runtime, server, engine, signals, operator_port.as_ref());
    match database.close() {
        Ok(()) => {
            say("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => fail(&format!("stopping: {error}")),
    }
}

fn load(flags: &Flags) -> Result<Settings, String> {
    let directory =
        std::env::current_dir().map_err(|error| format!("working directory: {error}"))?;
    let environment =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    Settings::load(flags, environment, &directory).map_err(|wrong| wrong.to_string())
}

fn config(settings: &Settings) -> Result<Config, String> {
    let machine = Machine::new().map_err(|error| format!("/proc: {error}"))?;
    if let Some(directory) = &settings.unix_socket_directory {
        remove_old_socket(directory, settings.port)?;
    }
    Ok(Config {
        listen: settings.address(),
        unix_socket_directory: settings.unix_socket_directory.clone(),
        rules: settings.hba.clone(),
        tls: certificate::load(settings)?,
        host: Some(Arc::new(machine)),
        max_connections: settings.max_connections,
        superuser_reserved_connections: settings.reserved_connections(),
        max_message_bytes: settings.max_message_bytes,
        ..Config::default()
    })
}

/// A socket that a killed server left is in the way of the next one; one that answers is
/// another server's.
fn remove_old_socket(directory: &Path, port: u16) -> Result<(), String> {
    let path = directory.join(format!(".s.PGSQL.{port}"));
    let shown = path.display();
    match UnixStream::connect(&path) {
        Ok(_) => Err(format!("{shown}: another server answers there")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(&path).map_err(|error| format!("{shown}: {error}"))
        }
        // It is not there, or cannot be used: binding it says so.
        Err(_) => Ok(()),
    }
}

/// The umask has taken from the socket's mode what it takes from all files. Nobody is let in
/// before this.
fn permit_socket(settings: &Settings, server: &Server) -> io::Result<()> {
    let Some(directory) = &settings.unix_socket_directory else {
        return Ok(());
    };
    let port = server.local_addr()?.port();
    let mode = Permissions::from_mode(settings.unix_socket_permissions);
    fs::set_permissions(directory.join(format!(".s.PGSQL.{port}")), mode)
}

/// What sessions begin with, and what SHOW tells them of the server.
fn session_defaults(settings: &Settings) -> Vec<(&'static str, String)> {
    vec![
        (
            "log_min_duration_statement",
            settings.log_min_duration_statement.clone(),
        ),
        (
            "idle_in_transaction_session_timeout",
            settings.idle_in_transaction_session_timeout.clone(),
        ),
        (
            "idle_session_timeout",
            settings.idle_session_timeout.clone(),
        ),
        ("max_connections", settings.max_connections.to_string()),
        (
            "superuser_reserved_connections",
            settings.reserved_connections().to_string(),
        ),
    ]
}

fn options(settings: &Settings) -> Options {
    Options {
        memory_limit: settings.memory_limit,
        partitions: settings.partitions,
        io: settings.io,
        archive_directory: settings.archive_directory.clone(),
        backup_directories: settings.backup_directories.clone(),
        temp_file_limit: settings.temp_file_limit,
        warm_buffer: settings.warm_buffer,
        disk_reserve_bytes: settings.disk_reserve,
        recovery_target: settings.recovery_target,
        identification: settings.identification,
        merge: settings.merge,
        progress: Some(RecoveryListener::new(log_progress)),
        ..Options::default()
    }
}

/// A start that takes long says how far it is.
fn log_progress(progress: RecoveryProgress) {
    let RecoveryProgress { part, done, total } = progress;
    match part {
        RecoveryPart::Log => tracing::info!(
            "recovery: reading the log: {:.0} % of {}",
            done as f64 * 100.0 / total.max(1) as f64,
            size::show(total)
        ),
        RecoveryPart::Partitions => {
            tracing::info!("recovery: {done} of {total} partitions are there");
        }
    }
}

fn cannot_listen(settings: &Settings, error: &io::Error) -> String {
    let address = settings.address();
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "port {} on {} is in use; choose another with --port",
            settings.port, settings.listen
        ),
        _ => format!("cannot listen on {address}: {error}"),
    }
}

fn announce(settings: &Settings) {
    let memory = size::show(settings.memory_limit);
    say(&format!("thermocline {}", env!("CARGO_PKG_VERSION")));
    #[cfg(feature = "stop-points")]
    say("  built with stop-points: for crash trials, not for data");
    if let Some(file) = &settings.file {
        say(&format!("  settings    {}", file.display()));
    }
    say(&format!("  data        {}", settings.data_dir.display()));
    say(&format!(
        "  memory      {memory} ({})",
        settings.memory_limit_source
    ));
}

fn announce_ready(settings: &Settings, server: &Server, database: &Embedded, begin: Instant) {
    let address = server.local_addr().unwrap_or_else(|_| settings.address());
    let (host, port) = (address.ip(), address.port());
    say(&format!("  device      {}", database.device().describe()));
    say(&format!(
        "  partitions  {}",
        database.database().partitions()
    ));
    let recovery = database.database().recovery_report();
    say(&format!(
        "  recovery    done in {} ms: {} of {} partitions are there, {} records of log",
        begin.elapsed().as_millis(),
        recovery.partitions_there,
        database.database().partitions(),
        recovery.records
    ));
    say(&format!("  listening   {address}"));
    let host = if host.is_unspecified() {
        "127.0.0.1".to_owned()
    } else {
        host.to_string()
    };
    say(&format!(
        "  connect     psql -h {host} -p {port} -U postgres postgres"
    ));
}

/// Serves until SIGINT or SIGTERM; a second SIGINT ends the process at once,
/// which is safe at any time and costs the next start a longer recovery.
fn run(
    runtime: &Runtime,
    server: Server,
    engine: Arc<Engine>,
    mut signals: Signals,
    operator_port: Option<&OperatorPort>,
) {
    runtime.block_on(server.run(engine, async move {
        signals.stop().await;
        if let Some(port) = operator_port {
            port.stopping();
        }
        say("stopping; interrupt again to stop at once");
        tokio::spawn(async move {
            signals.interrupt.recv().await;
            log::last_words(&"interrupted, stopping at once");
            exit(INTERRUPTED);
        });
    }));
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
