//! A server of the program's for tests: started, asked, signalled, stopped.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::NoTls;

const PATIENCE: Duration = Duration::from_secs(30);

pub fn program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thermocline"));
    command
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("THERMOCLINE_") {
            command.env_remove(name);
        }
    }
    command.env("THERMOCLINE_MEMORY_LIMIT", "256MB");
    command
}

/// A running server, killed when dropped.
pub struct Running {
    pub child: Child,
    /// What it printed when it started.
    pub printed: Vec<String>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut printed = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.by_ref() {
            let line = line.unwrap();
            let last = line.contains("connect ");
            printed.push(line);
            if last {
                // The rest is read by nobody; it must not matter.
                return Self { child, printed };
            }
        }
        // It has ended: nothing more to read means nobody to write.
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("did not start: {printed:?} {said}");
    }

    pub fn value(&self, name: &str) -> &str {
        self.printed
            .iter()
            .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(' '))
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.printed))
            .trim()
    }

    pub fn port(&self) -> u16 {
        self.value("listening")
            .rsplit(':')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.child.id())])
            .status();
        assert!(status.unwrap().success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "still running");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub async fn connect(&self) -> tokio_postgres::Client {
        let config = format!("host=127.0.0.1 port={} user=postgres", self.port());
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
        tokio::spawn(async move {
            // Ends with an error when the server is stopped.
            let _ = connection.await;
        });
        client
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs what must not start, and returns its one line.
pub fn refused(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said.strip_prefix("thermocline: ")
        .unwrap()
        .trim()
        .to_owned()
}

pub fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}
