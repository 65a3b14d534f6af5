//! Backup, restore and check as an operator meets them: the program's
//! subcommands beside a server at work, and `BACKUP` through a real client.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tokio_postgres::NoTls;

fn program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thermocline"));
    command
        .current_dir(directory)
        .env("THERMOCLINE_MEMORY_LIMIT", "256MB")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a subcommand to its end: exit code, stdout, stderr.
fn run(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = program(directory).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A server, killed when dropped.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let mut command = program(directory);
        command.args(["serve", "-p", "0"]).args(arguments);
        Self::started_by(command)
    }

    fn started_by(mut command: Command) -> Self {
        let command = command
            .env("THERMOCLINE_MEMORY_LIMIT", "256MB")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            if let Some(address) = line.trim().strip_prefix("listening ") {
                let port = address.rsplit(':').next().unwrap().to_owned();
                return Self { child, port };
            }
        }
        let output = child.wait_with_output().unwrap();
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    }

    async fn connect(&self) -> tokio_postgres::Client {
        let config = format!("host=127.0.0.1 port={} user=postgres", self.port);
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
        tokio::spawn(async move {
            // Ends with an error when the server is killed.
            let _ = connection.await;
        });
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn ids(client: &tokio_postgres::Client) -> Vec<i32> {
    let rows = client.query("select id from t order by id", &[]).await;
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn insert(client: &tokio_postgres::Client, ids: std::ops::Range<i32>) {
    for id in ids {
        let inserted = client
            .execute("insert into t values ($1, repeat('x', 500))", &[&id])
            .await;
        assert_eq!(inserted.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_running_server_is_backed_up_and_any_moment_restored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let arguments = [
        ["-D", "data"],
        ["--archive-directory", "archive"],
        ["--backup-directory", "."],
    ];
    let arguments = arguments.concat();
    let server = Server::start(path, &arguments);
    let client = server.connect().await;
    client
        .batch_execute("create table t (id int primary key, v text)")
        .await
        .unwrap();
    insert(&client, 0..200).await;
    let (code, said, error) = run(path, &["backup", "-p", &server.port, "kept"]);
    assert_eq!(code, 0, "{error}");
    assert!(said.starts_with("generation 1 at LSN "), "{said}");

    insert(&client, 200..300).await;
    let moment = client.query_one("select now()::text", &[]).await.unwrap();
    let moment: String = moment.get(0);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    insert(&client, 300..310).await;
    // The same through SQL, from any client; not within a transaction.
    let target = path.join("kept").display().to_string();
    client
        .batch_execute(&format!("BACKUP TO '{target}' WITH (max_rate = 1000000)"))
        .await
        .unwrap();
    let state = |error: tokio_postgres::Error| error.code().unwrap().code().to_owned();
    let refused = client
        .batch_execute(&format!("begin; backup to '{target}'; commit"))
        .await;
    assert_eq!(state(refused.unwrap_err()), "25001");
    client.batch_execute("rollback").await.unwrap();
    let refused = client.batch_execute("backup to 'relative'").await;
    assert_eq!(state(refused.unwrap_err()), "42602");
    insert(&client, 310..320).await;
    let (code, said, _) = run(path, &["backup", "--list", "kept"]);
    assert_eq!((code, said.lines().count()), (0, 3), "{said}");

    // A server has it open.
    let (code, _, said) = run(path, &["check", "data"]);
    assert_eq!(code, 2);
    assert!(said.contains("in use by another process"), "{said}");
    drop(client);
    drop(server);
    let (code, said, error) = run(path, &["check", "data"]);
    assert_eq!(code, 0, "{said}{error}");
    assert!(said.starts_with("sound: "), "{said}");

    let restores: [(&str, &[&str], i32); 4] = [
        ("first", &["--generation", "1"], 200),
        ("newest", &[], 310),
        (
            "moment",
            &["--to-time", &moment, "--log", "archive", "--log", "data"],
            300,
        ),
        ("all", &["--log", "archive", "--log", "data"], 320),
    ];
    for (name, more, rows) in restores {
        let mut arguments = vec!["restore", "kept", name];
        arguments.extend(more);
        let (code, said, error) = run(path, &arguments);
        assert_eq!(code, 0, "{name}: {error}");
        assert!(said.starts_with("restored generation "), "{said}");
        let (code, said, _) = run(path, &["check", "--json", name]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("\"findings\":0"), "{said}");
        let server = Server::start(path, &["-D", name]);
        let found = ids(&server.connect().await).await;
        assert_eq!(found, (0..rows).collect::<Vec<_>>(), "{name}");
    }
    let (code, _, said) = run(path, &["restore", "kept", "all"]);
    assert_eq!(code, 2);
    assert!(said.contains("is a data directory"), "{said}");
}

#[tokio::test]
async fn damage_is_found_with_exit_code_1_and_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    {
        let server = Server::start(path, &["-D", "data"]);
        let client = server.connect().await;
        client
            .batch_execute("create table t (id int primary key, v text)")
            .await
            .unwrap();
        insert(&client, 0..200).await;
        client.batch_execute("checkpoint").await.unwrap();
    }
    // Closed, it is backed up without a server.
    let (code, said, error) = run(path, &["backup", "-D", "data", "kept"]);
    assert_eq!(code, 0, "{error}");
    assert!(said.starts_with("generation 1 at LSN "), "{said}");

    let blocks = path.join("data/blocks");
    let mut bytes = fs::read(&blocks).unwrap();
    let at = bytes.windows(40).position(|w| w == [b'x'; 40]).unwrap();
    bytes[at + 7] ^= 1;
    fs::write(&blocks, bytes).unwrap();
    let (code, said, _) = run(path, &["check", "data"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("blocks at byte "), "{said}");
    assert!(said.contains("table public.t"), "{said}");
    let (code, said, _) = run(path, &["check", "--json", "data"]);
    assert_eq!(code, 1);
    assert!(said.contains("\"file\":\"blocks\""), "{said}");
    // It is not copied; the first backup has the block as it was, and restores.
    let (code, _, said) = run(path, &["backup", "-D", "data", "elsewhere"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("blocks at byte "), "{said}");
    let (code, _, said) = run(path, &["restore", "kept", "again"]);
    assert_eq!(code, 0, "{said}");
    let (code, said, _) = run(path, &["check", "again"]);
    assert_eq!(code, 0, "{said}");

    for absent in [["check", "absent"], ["check", "."]] {
        let (code, _, said) = run(path, &absent);
        assert_eq!(code, 2);
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// All files and directories below a path, with their modes and contents.
fn everything(path: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![path.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let contents = match metadata.is_file() {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            if metadata.is_dir() {
                waiting.push(path.clone());
            }
            found.push((path, metadata.mode() & 0o7777, contents));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_backup_destroys_nothing_wherever_it_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir_all(path.join("allowed/strangers")).unwrap();
    for name in ["log-0000000000001000", "checkpoint-00000001-0000", "x"] {
        fs::write(path.join("allowed/strangers").join(name), name).unwrap();
    }
    fs::create_dir(path.join("allowed/nested")).unwrap();
    fs::create_dir(path.join("allowed/nested/inner")).unwrap();
    std::os::unix::fs::symlink("/", path.join("allowed/root")).unwrap();
    {
        let other = Server::start(path, &["-D", "allowed/stopped"]);
        let client = other.connect().await;
        let made = client.batch_execute("create table t (id int primary key, v text)");
        made.await.unwrap();
        insert(&client, 0..20).await;
    }
    let running = Server::start(path, &["-D", "allowed/running"]);
    let arguments = [
        ["-D", "allowed/data"],
        ["--archive-directory", "allowed/archive"],
        ["--backup-directory", "allowed"],
    ];
    let server = Server::start(path, &arguments.concat());
    let client = server.connect().await;
    let made = client.batch_execute("create table t (id int primary key, v text); checkpoint");
    made.await.unwrap();
    insert(&client, 0..20).await;
    let kept = ["strangers", "stopped", "nested", "archive"];
    let all_kept = || kept.map(|name| everything(&path.join("allowed").join(name)));
    let before = all_kept();
    let (code, _, said) = run(path, &["backup", "-p", &server.port, "allowed/good"]);
    assert_eq!(code, 0, "{said}");
    let refusals = [
        ("allowed/data", "55000"),
        ("allowed/data/inner", "55000"),
        ("allowed/archive", "55000"),
        ("allowed", "55000"),
        ("allowed/strangers", "55000"),
        ("allowed/nested", "55000"),
        ("allowed/stopped", "55000"),
        ("allowed/running", "55000"),
        ("allowed/root/tmp", "42501"),
        ("allowed/../elsewhere", "42501"),
        ("elsewhere", "42501"),
    ];
    for (name, state) in refusals {
        let target = path.join(name).display().to_string();
        let refused = client.batch_execute(&format!("BACKUP TO '{target}'")).await;
        let refused = refused.expect_err(name);
        let refused = refused.as_db_error().unwrap();
        assert_eq!(refused.code().code(), state, "{name}: {refused}");
        assert!(refused.hint().is_some(), "{name}: {refused}");
        let (code, _, said) = run(path, &["backup", "-p", &server.port, &target]);
        assert_eq!((code, said.contains(state)), (1, true), "{name}: {said}");
        assert!(said.contains("hint: "), "{said}");
        // Without a server, whoever may write there may not destroy either.
        if state == "55000" && name != "allowed" {
            let (code, _, said) = run(path, &["backup", "-D", "allowed/stopped", &target]);
            assert_eq!(code, 1, "{name}: {said}");
        }
        // Nor is it a place to restore to.
        if state == "55000" {
            let (code, _, said) = run(path, &["restore", "allowed/good", name]);
            assert_eq!(code, 2, "{name}: {said}");
        }
    }
    assert!(!path.join("elsewhere").exists());
    // The stopped database was opened and closed, which a checkpoint of its own ends.
    let after = all_kept();
    for (number, name) in kept
        .iter()
        .enumerate()
        .filter(|(_, name)| **name != "stopped")
    {
        assert!(after[number] == before[number], "{name}");
    }
    insert(&client, 20..30).await;
    assert_eq!(ids(&client).await, (0..30).collect::<Vec<_>>());
    let other = running.connect().await;
    other
        .batch_execute("create table t (id int primary key, v text)")
        .await
        .unwrap();
    insert(&other, 0..5).await;
    drop((client, server));
    let server = Server::start(path, &["-D", "allowed/data"]);
    assert_eq!(
        ids(&server.connect().await).await,
        (0..30).collect::<Vec<_>>()
    );
    drop(server);
    let stopped = Server::start(path, &["-D", "allowed/stopped"]);
    assert_eq!(
        ids(&stopped.connect().await).await,
        (0..20).collect::<Vec<_>>()
    );

    // Not set, nobody may; and a server does not start with places that are its own.
    let backup = format!("backup to '{}'", path.join("new").display());
    let refused = other.batch_execute(&backup).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
    for (setting, place) in [
        ("--archive-directory", "new/data"),
        ("--archive-directory", "new/data/archive"),
        ("--backup-directory", "new/data/backups"),
        ("--archive-directory", "allowed/data"),
        ("--archive-directory", "allowed/running"),
    ] {
        let (code, _, said) = run(
            path,
            &["serve", "-p", "0", "-D", "new/data", setting, place],
        );
        assert_eq!(code, 2, "{setting} {place}: {said}");
    }
}

#[tokio::test]
async fn nobody_else_can_read_what_the_program_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("data")).unwrap();
    fs::set_permissions(path.join("data"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_thermocline");
    let serve = format!(
        "umask 0; exec {program} serve -p 0 -D data --archive-directory made/archive \
         --backup-directory backups"
    );
    command.args(["-c", &serve]).current_dir(path);
    let server = Server::started_by(command);
    let client = server.connect().await;
    for statement in [
        "create table t (id int primary key, v text)",
        "insert into t select i, repeat('x', 1000) from generate_series(1, 5000) i",
        "alter system set memory_limit = '256MB'",
        "checkpoint",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
    let target = path.join("backups/first").display().to_string();
    client
        .batch_execute(&format!("backup to '{target}'"))
        .await
        .unwrap();
    let (code, _, said) = run(path, &["restore", "backups/first", "restored"]);
    assert_eq!(code, 0, "{said}");
    let found = everything(path);
    for name in [
        "data/manifest",
        "data/LOCK",
        "data/blocks",
        "made/archive",
        "restored/blocks",
    ] {
        assert!(
            found.iter().any(|(file, ..)| file.ends_with(name)),
            "{name}"
        );
    }
    for (file, mode, _) in found {
        let most = if file.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, most, "{}: {mode:o}", file.display());
    }
}
