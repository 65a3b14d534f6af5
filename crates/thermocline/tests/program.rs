//! The program as a user meets it: what it prints, what it refuses and with
//! which exit code, how it stops.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

mod support;

use support::{Running, directory, program, refused};

#[test]
fn it_says_what_it_runs_with_and_a_flag_beats_the_rest() {
    let directory = directory();
    let path = directory.path();
    fs::write(
        path.join("thermocline.toml"),
        "memory_limit = '128MB'\npartitions = 4\nport = 1\n",
    )
    .unwrap();
    let mut command = program(path);
    let running = Running::start(
        command
            .args(["serve", "-p", "0", "--io", "threads", "-D", "rows"])
            .env("THERMOCLINE_PORT", "2"),
    );
    assert!(running.printed[0].starts_with("thermocline "));
    assert_eq!(running.value("settings"), "thermocline.toml");
    assert_eq!(running.value("data"), "rows");
    assert_eq!(running.value("memory"), "256 MB (THERMOCLINE_MEMORY_LIMIT)");
    assert_eq!(running.value("partitions"), "4");
    assert!(running.value("recovery").starts_with("done in "));
    assert!(!running.value("device").is_empty());
    let expected = format!(
        "psql -h 127.0.0.1 -p {} -U postgres postgres",
        running.port()
    );
    assert_eq!(running.value("connect"), expected);
    assert!(path.join("rows").is_dir());
}

#[test]
fn the_file_in_the_data_directory_is_read_when_serve_is_left_out() {
    let directory = directory();
    let data = directory.path().join("thermocline-data");
    fs::create_dir(&data).unwrap();
    fs::write(
        data.join("thermocline.toml"),
        "memory_limit = '128MB'\nport = 0",
    )
    .unwrap();
    let mut command = program(directory.path());
    let running = Running::start(command.env_remove("THERMOCLINE_MEMORY_LIMIT"));
    let expected = "128 MB (thermocline-data/thermocline.toml: memory_limit)";
    assert_eq!(running.value("memory"), expected);
}

#[test]
fn what_cannot_be_is_refused_with_one_line_and_exit_code_2() {
    let directory = directory();
    let path = directory.path();
    let said = refused(program(path).args(["--memory-limit", "plenty"]));
    assert!(said.starts_with("--memory-limit: \"plenty\""), "{said}");

    fs::write(path.join("file"), "memory_limt = '1GB'").unwrap();
    let said = refused(program(path).args(["--config", "file"]));
    assert!(
        said.starts_with("file: memory_limt: unknown setting"),
        "{said}"
    );

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refused(program(path).args(["--port", &port]));
    assert!(said.contains(&port) && said.contains("in use"), "{said}");
    assert!(!path.join("thermocline-data").exists(), "nothing was made");

    // Permissions do not stop root, a file in the way stops everyone.
    let said = refused(program(path).args(["-p", "0", "-D", "file/data"]));
    assert!(said.starts_with("cannot use directory file/data"), "{said}");
}

#[test]
fn a_second_process_on_a_directory_is_refused() {
    let directory = directory();
    let path = directory.path();
    let mut first = Running::start(program(path).args(["-p", "0"]));
    let said = refused(program(path).args(["-p", "0"]));
    assert!(said.contains("in use by another process"), "{said}");
    first.signal("TERM");
    assert_eq!(first.wait().code(), Some(0));
    Running::start(program(path).args(["-p", "0"]));
}

#[test]
fn unknown_flags_are_refused() {
    let output = program(directory().path())
        .arg("--memory")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn version_and_probe_print_and_end() {
    let directory = directory();
    let output = program(directory.path()).arg("version").output().unwrap();
    let expected = format!("thermocline {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let output = program(directory.path())
        .args(["probe", "--seconds", "1"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("read latency"), "{printed}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let output = program(directory.path())
        .args([
            "probe",
            "--seconds",
            "1",
            "--emulate",
            "hdd",
            "--json",
            "figures",
        ])
        .output()
        .unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("emulated hdd over"), "{printed}");
    let figures = fs::read_to_string(directory.path().join("figures")).unwrap();
    let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(figures["emulated"], true);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let said = refused(program(directory.path()).args(["probe", "absent"]));
    let expected = "absent: not there; make it, or give a directory on the device to measure";
    assert_eq!(said, expected);
}

#[tokio::test]
async fn alter_system_changes_the_memory_limit_at_once_and_for_the_next_start() {
    let directory = directory();
    let path = directory.path();
    fs::write(
        path.join("thermocline.toml"),
        "memory_limit = '256MB'\nport = 0\n",
    )
    .unwrap();
    let start = || Running::start(program(path).env_remove("THERMOCLINE_MEMORY_LIMIT"));
    let shown = async |client: &tokio_postgres::Client| -> String {
        let rows = client.query("show memory_limit", &[]).await.unwrap();
        rows[0].get(0)
    };
    let mut running = start();
    let client = running.connect().await;
    let other = running.connect().await;
    let state = async |sql: &str| {
        let error = client.batch_execute(sql).await.unwrap_err();
        error.code().unwrap().code().to_owned()
    };
    assert_eq!(shown(&client).await, "256MB");
    assert_eq!(
        state("alter system set memory_limit = 'lots'").await,
        "22023"
    );
    assert_eq!(
        state("alter system set memory_limit = '1MB'").await,
        "22023"
    );
    assert_eq!(state("alter system set work_mem = '1MB'").await, "0A000");
    assert_eq!(state("alter system set no_such = 1").await, "42704");
    assert_eq!(state("set memory_limit = '1GB'").await, "55P02");
    assert_eq!(
        state("begin; alter system set memory_limit = '128MB'").await,
        "25001"
    );
    client.batch_execute("rollback").await.unwrap();
    assert_eq!(shown(&client).await, "256MB");
    client
        .batch_execute("alter system set memory_limit = '128MB'")
        .await
        .unwrap();
    assert_eq!(shown(&client).await, "128MB");
    assert_eq!(shown(&other).await, "128MB");
    let view = "select bytes from thermocline_memory where name = 'limit'";
    let rows = client.query(view, &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), 128 << 20);
    running.child.kill().unwrap();
    running.wait();
    let running = start();
    let expected = "128 MB (thermocline-data/thermocline.auto.toml: memory_limit)";
    assert_eq!(running.value("memory"), expected);
    let client = running.connect().await;
    let kept = path.join("thermocline-data/thermocline.auto.toml");
    fs::write(kept, "memory_limit = '160MB'").unwrap();
    let rows = client.query("select pg_reload_conf()", &[]).await.unwrap();
    assert!(rows[0].get::<_, bool>(0));
    assert_eq!(shown(&client).await, "160MB");
    client
        .batch_execute("alter system reset memory_limit")
        .await
        .unwrap();
    assert_eq!(shown(&client).await, "256MB");
}

#[tokio::test]
async fn alter_system_changes_the_buffer_of_warm_columns_beside_the_limit() {
    let directory = directory();
    let path = directory.path();
    fs::write(
        path.join("thermocline.toml"),
        "memory_limit = '256MB'\nwarm_buffer = '6MB'\nport = 0\n",
    )
    .unwrap();
    let start = || Running::start(program(path).env_remove("THERMOCLINE_MEMORY_LIMIT"));
    let shown = async |client: &tokio_postgres::Client| -> (String, i64) {
        let rows = client.query("show warm_buffer", &[]).await.unwrap();
        let view = "select bytes from thermocline_memory where name = 'warm_buffer_max'";
        let room = client.query(view, &[]).await.unwrap();
        (rows[0].get(0), room[0].get(0))
    };
    let mut running = start();
    let client = running.connect().await;
    assert_eq!(shown(&client).await, ("6MB".to_owned(), 6 << 20));
    for wrong in ["70MB", "0", "lots"] {
        let set = format!("alter system set warm_buffer = '{wrong}'");
        let error = client.batch_execute(&set).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "22023", "{wrong}");
    }
    for set in ["memory_limit = '128MB'", "warm_buffer = '16MB'"] {
        let set = format!("alter system set {set}");
        client.batch_execute(&set).await.unwrap();
    }
    assert_eq!(shown(&client).await, ("16MB".to_owned(), 16 << 20));
    running.child.kill().unwrap();
    running.wait();
    let running = start();
    let client = running.connect().await;
    assert_eq!(shown(&client).await, ("16MB".to_owned(), 16 << 20));
    let rows = client.query("show memory_limit", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, String>(0), "128MB");
    let reset = "alter system reset memory_limit";
    client.batch_execute(reset).await.unwrap();
    assert_eq!(shown(&client).await.0, "16MB", "it is kept beside it");
    let reset = "alter system reset all";
    client.batch_execute(reset).await.unwrap();
    assert_eq!(shown(&client).await, ("6MB".to_owned(), 6 << 20));
}

/// The short path holds what it reads until the statement's end; the analytical one does not.
#[tokio::test]
async fn a_query_that_needs_more_evicted_rows_than_memory_has_is_answered() {
    let directory = directory();
    let limit = ["-p", "0", "--memory-limit", "128MB"];
    let running = Running::start(program(directory.path()).args(limit));
    let mut client = running.connect().await;
    client
        .batch_execute("create table t (id int primary key, n int not null, v text not null)")
        .await
        .unwrap();
    // 200 MB, of which the statement wants 120: it may hold 32.
    for first in (0..200_000).step_by(20_000) {
        let insert = format!(
            "insert into t select i, i % 7, repeat('x', 1000) from generate_series({first}, {}) i",
            first + 19_999
        );
        client.batch_execute(&insert).await.unwrap();
    }
    let query = "select id, n, length(v) from t where id between $1 and $2 order by id";
    let explained = client
        .query(
            &format!(
                "explain {}",
                query.replace("$1", "1").replace("$2", "120000")
            ),
            &[],
        )
        .await
        .unwrap();
    let path: String = explained.last().unwrap().get(0);
    assert!(!path.contains("analytical"), "{path}");
    let right = |rows: &[tokio_postgres::Row], first: i32, last: i32| {
        assert_eq!(rows.len() as i32, last - first + 1);
        for (row, id) in rows.iter().zip(first..) {
            let found: (i32, i32, i32) = (row.get(0), row.get(1), row.get(2));
            assert_eq!(found, (id, id % 7, 1000));
        }
    };
    let rows = client.query(query, &[&1i32, &120_000i32]).await.unwrap();
    right(&rows, 1, 120_000);
    let simple = query.replace("$1", "1").replace("$2", "120000");
    let rows = client.simple_query(&simple).await.unwrap();
    let is_row = |m: &&tokio_postgres::SimpleQueryMessage| {
        matches!(m, tokio_postgres::SimpleQueryMessage::Row(_))
    };
    assert_eq!(rows.iter().filter(is_row).count(), 120_000);

    // In a transaction it sees the transaction's changes, and as much of it as is asked for.
    let transaction = client.transaction().await.unwrap();
    let changed = "update t set n = id % 7 + 100 where id = 5";
    transaction.batch_execute(changed).await.unwrap();
    let statement = transaction.prepare(query).await.unwrap();
    let portal = transaction.bind(&statement, &[&1i32, &120_000i32]).await;
    let portal = portal.unwrap();
    let rows = transaction.query_portal(&portal, 4).await.unwrap();
    right(&rows, 1, 4);
    let rows = transaction.query_portal(&portal, 1).await.unwrap();
    assert_eq!(rows[0].get::<_, i32>(1), 105);
    let rows = transaction.query_portal(&portal, 0).await.unwrap();
    right(&rows, 6, 120_000);
    transaction.rollback().await.unwrap();

    // What writes is refused, and says what to do.
    let error = client
        .batch_execute("update t set n = length(v) where id between 1 and 120000")
        .await
        .unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "53200", "{error}");
    // It goes on in parts if it takes long, until its changes are too many.
    let says = error.message().contains("fewer at a time")
        || error
            .hint()
            .is_some_and(|hint| hint.contains("Split the transaction"));
    assert!(says, "{error}");
}

#[tokio::test]
async fn a_second_interrupt_stops_at_once() {
    let directory = directory();
    let mut running = Running::start(program(directory.path()).args(["-p", "0"]));
    let holder = running.connect().await;
    holder
        .batch_execute(
            "create table held (id int primary key, v int); insert into held values (1, 0)",
        )
        .await
        .unwrap();
    // A client that does not read its answer keeps its statement running.
    let slow = running.connect().await;
    let rows = slow.query_raw::<_, i32, _>("select * from generate_series(1, 10000000)", []);
    let _rows = rows.await.unwrap();
    running.signal("INT");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(
        running.child.try_wait().unwrap().is_none(),
        "waits for the statement"
    );
    let begin = Instant::now();
    running.signal("INT");
    assert_eq!(running.wait().code(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(1));
}

/// The statements that a server has logged, which went on to what it prints when it stops.
fn logged_statements(running: &mut Running) -> Vec<serde_json::Value> {
    let stderr = running.child.stderr.take().unwrap();
    running.signal("TERM");
    assert_eq!(running.wait().code(), Some(0));
    BufReader::new(stderr)
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).expect("each line is an object"))
        .filter(|event: &serde_json::Value| event["target"] == "statement")
        .collect()
}

#[tokio::test]
async fn slow_statements_are_logged_as_postgresql_logs_them() {
    let directory = directory();
    let mut running = Running::start(program(directory.path()).args([
        "-p",
        "0",
        "--log",
        "error",
        "--log-format",
        "json",
        "--log-min-duration-statement",
        "0",
    ]));
    let client = running.connect().await;
    client
        .batch_execute("create table t (a int primary key, b text); select 1\n-- two lines")
        .await
        .unwrap();
    let insert = client
        .prepare("insert into t values ($1, $2)")
        .await
        .unwrap();
    let long = format!("it's {}", "x".repeat(5000));
    client.execute(&insert, &[&1i32, &long]).await.unwrap();
    let again = client.execute(&insert, &[&1i32, &"twice"]).await;
    assert!(again.is_err());
    client.batch_execute("selec 1").await.unwrap_err();
    let many = format!("select '{}'", "y".repeat(100_000));
    client.batch_execute(&many).await.unwrap();
    let sink = client.copy_in::<_, &[u8]>("copy t from stdin").await;
    let mut sink = Box::pin(sink.unwrap());
    futures::SinkExt::send(&mut sink, &b"7\tseven\n"[..])
        .await
        .unwrap();
    sink.as_mut().finish().await.unwrap();
    for secret in [
        "create role alice login password 'hunter2'",
        "alter role alice password 'hunter2' nonsense",
        "alter role alice password hunter2",
        "alter role alice password 'hunter2",
        "select 1; alter role alice password 'hunter2'; select 1/0",
        "alter role nobody password 'hunter2'",
    ] {
        let _ = client.batch_execute(secret).await;
    }
    let _ = client
        .execute("alter role alice password 'hunter2'", &[])
        .await;
    // A role that is no superuser sets nothing of it; then it is off.
    client
        .batch_execute("set role alice; select 'as alice'")
        .await
        .unwrap();
    for sql in [
        "set log_min_duration_statement = -1",
        "reset log_min_duration_statement",
        "select set_config('log_min_duration_statement', '-1', false)",
        "select set_config('log_min_duration_statement', '-1', false) from t",
        "set log_parameter_max_length = 0",
    ] {
        let error = client.batch_execute(sql).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501", "{sql}");
    }
    let options = format!(
        "host=127.0.0.1 port={} user=alice options='-c log_min_duration_statement=-1'",
        running.port()
    );
    assert!(tokio_postgres::connect(&options, NoTls).await.is_err());
    client
        .batch_execute("reset role; set log_min_duration_statement = '1h'")
        .await
        .unwrap();
    client.batch_execute("select 'not slow'").await.unwrap();
    client
        .batch_execute("reset log_min_duration_statement")
        .await
        .unwrap();
    drop(client);
    let events = logged_statements(&mut running);
    let text = |event: &serde_json::Value| event["message"].as_str().unwrap().to_owned();
    let shown: Vec<String> = events.iter().map(text).collect();
    assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
    let hidden = "statement: <a command with a password>";
    let hidden = shown.iter().filter(|line| line.ends_with(hidden)).count();
    assert_eq!(hidden, 6, "{shown:?}");
    assert!(!shown.iter().any(|line| line.contains("not slow")));
    let found = |end: &str| {
        let found = events.iter().find(|event| text(event).ends_with(end));
        found.unwrap_or_else(|| panic!("no {end} in {shown:?}"))
    };
    for event in &events {
        let milliseconds = event["duration_ms"].as_f64().unwrap();
        assert!((0.0..30_000.0).contains(&milliseconds));
        let message = text(event);
        // Half a microsecond may be rounded either way.
        let said = message.strip_prefix("duration: ");
        let said = said.and_then(|rest| rest.split_once(" ms  "));
        let said: f64 = said
            .unwrap_or_else(|| panic!("{message}"))
            .0
            .parse()
            .unwrap();
        assert!(
            (said - milliseconds).abs() < 0.0011,
            "{message}: {milliseconds}"
        );
        assert!(message.len() < 10_000, "{}", message.len());
        assert_eq!(event["user"], "postgres");
        assert!(event["process_id"].as_i64().unwrap() > 0);
    }
    let created =
        found("statement: create table t (a int primary key, b text); select 1\n-- two lines");
    assert!(created.get("sqlstate").is_none());
    let parsed: Vec<_> = shown
        .iter()
        .filter(|line| line.contains("  parse s"))
        .collect();
    assert!(!parsed.is_empty(), "{shown:?}");
    assert!(shown.iter().any(|line| line.contains("  bind s")));
    let executed: Vec<_> = events
        .iter()
        .filter(|event| {
            text(event).contains("  execute s") && text(event).contains("insert into t")
        })
        .collect();
    assert_eq!(executed.len(), 2, "{shown:?}");
    let detail = executed[0]["detail"].as_str().unwrap();
    let expected = format!("parameters: $1 = '1', $2 = 'it''s {}...'", "x".repeat(1019));
    assert_eq!(detail, expected);
    assert_eq!(executed[1]["sqlstate"], "23505");
    assert!(executed[1]["error"].as_str().unwrap().contains("t_pkey"));
    let wrong = found("statement: selec 1");
    assert_eq!(wrong["sqlstate"], "42601");
    assert!(
        found("... (100009 bytes)")["message"]
            .as_str()
            .unwrap()
            .contains("select 'yyy")
    );
    assert!(found("copy t from stdin")["sqlstate"].is_null());
    found("select 'as alice'");
}

#[test]
fn what_the_program_says_before_it_ends_is_json_too() {
    let directory = directory();
    let path = directory.path();
    let mut first = Running::start(program(path).args(["-p", "0"]));
    let second = program(path)
        .args(["-p", "0", "--log-format", "json"])
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&second.stderr).unwrap();
    assert!(
        said["message"]
            .as_str()
            .unwrap()
            .contains("in use by another process")
    );
    assert_eq!(said["level"], "ERROR");
    first.signal("TERM");
    first.wait();
}

/// A GET of `/metrics` or `/health`, with the time it may take.
fn get(port: u16, path: &str, patience: Duration) -> String {
    use std::io::{Read, Write};
    let begin = Instant::now();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(patience)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(begin.elapsed() < patience, "{:?}", begin.elapsed());
    said
}

fn metric(said: &str, name: &str) -> f64 {
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("no {name} in {said}"));
    line.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_told_while_partitions_are_busy_and_memory_is_full() {
    let directory = directory();
    let mut running = Running::start(program(directory.path()).args([
        "-p",
        "0",
        "--memory-limit",
        "64MB",
        "--metrics-listen",
        "0",
    ]));
    let url = running.value("metrics").to_owned();
    let port = url.strip_prefix("http://127.0.0.1:").unwrap();
    let port: u16 = port.strip_suffix("/metrics").unwrap().parse().unwrap();
    let patience = Duration::from_secs(3);
    assert!(get(port, "/health", patience).starts_with("HTTP/1.1 200 "));
    let client = running.connect().await;
    client
        .batch_execute("create table t (id int primary key, n int, v text)")
        .await
        .unwrap();
    // More than memory, and then statements that hold all partitions.
    let mut clients = Vec::new();
    for first in [0, 50_000] {
        let client = running.connect().await;
        clients.push(tokio::spawn(async move {
            for from in (first..first + 50_000).step_by(10_000) {
                let insert = format!(
                    "insert into t select i, 0, repeat('x', 1000) from generate_series({from}, {}) i",
                    from + 9_999
                );
                client.batch_execute(&insert).await.unwrap();
            }
            for _ in 0..5 {
                let _ = client
                    .batch_execute("update t set n = n + 1 where n < 100 and id % 10 = 0")
                    .await;
            }
        }));
    }
    let mut asked = 0;
    let mut resident: f64 = 0.0;
    while clients.iter().any(|client| !client.is_finished()) {
        let said = tokio::task::spawn_blocking(move || get(port, "/metrics", patience));
        let said = said.await.unwrap();
        resident = resident.max(metric(&said, "thermocline_memory_resident_bytes"));
        asked += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for client in clients {
        client.await.unwrap();
    }
    // A client's end is seen once its socket has told the server.
    let begin = Instant::now();
    let mut said = get(port, "/metrics", patience);
    while metric(&said, "thermocline_connections") > 1.0 && begin.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(5));
        said = get(port, "/metrics", patience);
    }
    assert!(asked > 10, "{asked}");
    assert!(resident > 32e6, "{resident}");
    assert!(metric(&said, "thermocline_evictions_total") > 0.0);
    assert!(
        metric(
            &said,
            "thermocline_transactions_total{outcome=\"committed\"}"
        ) >= 11.0
    );
    assert_eq!(metric(&said, "thermocline_connections"), 1.0);
    drop(client);
    running.signal("TERM");
    assert_eq!(running.wait().code(), Some(0));
}

#[test]
fn the_unix_socket_has_the_mode_that_was_asked_for() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    for (given, expected) in [(None, 0o777), (Some("0700"), 0o700)] {
        let mut command = program(directory.path());
        command.args(["-p", "0", "--unix-socket-directory", "."]);
        if let Some(given) = given {
            command.args(["--unix-socket-permissions", given]);
        }
        let running = Running::start(&mut command);
        let path = format!(".s.PGSQL.{}", running.port());
        let metadata = fs::metadata(directory.path().join(path)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, expected);
    }
}
