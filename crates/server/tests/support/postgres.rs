//! A private PostgreSQL 15 to compare with: its data in a temporary
//! directory, listening on loopback only, stopped when it is dropped. Tests
//! that find none on the machine say so and do without. PostgreSQL refuses to
//! run as root: there it runs as the user `postgres`.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// A running PostgreSQL.
pub struct Postgres {
    pub address: SocketAddr,
    server: Child,
    _directory: TempDir,
}

/// psql, if there is one.
pub fn psql() -> Option<PathBuf> {
    let own = Path::new(PROGRAMS).join("psql");
    if own.exists() {
        return Some(own);
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join("psql"))
        .find(|path| path.exists())
}

impl Postgres {
    /// Starts one; says why not when there is none.
    pub fn start() -> Result<Self, String> {
        let initdb = Path::new(PROGRAMS).join("initdb");
        let postgres = Path::new(PROGRAMS).join("postgres");
        if !initdb.exists() || !postgres.exists() {
            return Err(format!("there is no PostgreSQL 15 in {PROGRAMS}"));
        }
        let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let user = match (root, postgres_user()) {
            (false, _) => None,
            (true, Some(user)) => Some(user),
            (true, None) => return Err("root, and there is no user postgres".to_owned()),
        };
        let directory = tempfile::tempdir().unwrap();
        if let Some((uid, gid)) = user {
            chown(directory.path(), Some(uid), Some(gid)).unwrap();
        }
        let data = directory.path().join("data");
        let as_user = |program: &Path| {
            let mut command = Command::new(program);
            command
                .current_dir(directory.path())
                .stdin(Stdio::null())
                .env("LC_ALL", "C");
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command
        };
        let made = as_user(&initdb)
            .args(["-U", "postgres", "--auth=trust", "--no-sync"])
            .args(["--locale=C", "--encoding=UTF8", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {made:?}");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let mut server = as_user(&postgres);
        server.arg("-D").arg(&data).arg("-F");
        for setting in [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "timezone=UTC".to_owned(),
            "shared_buffers=16MB".to_owned(),
            "autovacuum=off".to_owned(),
        ] {
            server.arg("-c").arg(setting);
        }
        let server = server
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut running = Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            server,
            _directory: directory,
        };
        running.wait_until_ready();
        Ok(running)
    }

    fn wait_until_ready(&mut self) {
        let log = self._directory.path().join("log");
        let began = Instant::now();
        loop {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if said.contains("ready to accept connections")
                && TcpStream::connect(self.address).is_ok()
            {
                return;
            }
            let ended = self.server.try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < Duration::from_secs(30),
                "PostgreSQL did not start ({ended:?}): {said}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A fast shutdown; killed outright it would leave shared memory.
        let pid = self.server.id().to_string();
        let told = Command::new("kill").args(["-INT", &pid]).status();
        if !told.is_ok_and(|status| status.success()) {
            let _ = self.server.kill();
        }
        let _ = self.server.wait();
    }
}

/// The user and group numbers of `postgres`.
fn postgres_user() -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != "postgres" {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        Some((uid, fields.next()?.parse().ok()?))
    })
}
