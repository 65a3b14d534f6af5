//! `thermocline advise columns` beside a server of the program's.

mod support;

use support::{Running, directory, program};

fn advise(running: &Running, path: &std::path::Path, more: &[&str]) -> String {
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", running.port());
    let asked = program(path)
        .args(["advise", "columns", "--url", &url])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8(asked.stdout).unwrap();
    let complained = String::from_utf8_lossy(&asked.stderr);
    assert!(asked.status.success(), "{said} {complained}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_follows_what_statements_use_and_its_sql_can_be_run() {
    let directory = directory();
    let path = directory.path();
    let running = Running::start(program(path).args(["-p", "0"]));
    let client = running.connect().await;
    assert!(advise(&running, path, &[]).starts_with("There are no column tables"));
    client
        .batch_execute(
            "create table \"Of\" (id int primary key, often int, \"Wide\" text, never text) using columns;
             insert into \"Of\" select n, (n * 7919) % 100000, repeat(md5(n::text), 8), md5((-n)::text)
             from generate_series(1, 20000) n;",
        )
        .await
        .unwrap();
    client.batch_execute("vacuum \"Of\"").await.unwrap();
    assert!(advise(&running, path, &[]).starts_with("No statement has used a column"));
    for _ in 0..9 {
        client
            .batch_execute("select sum(often) from \"Of\"")
            .await
            .unwrap();
    }
    client
        .batch_execute("select max(length(\"Wide\")) from \"Of\"")
        .await
        .unwrap();
    let plenty = advise(&running, path, &[]);
    let state = |said: &str, column: &str| -> Vec<String> {
        let line = said.lines().find(|line| line.starts_with(column));
        let words = line.unwrap_or_else(|| panic!("{said}")).split_whitespace();
        words
            .skip(3)
            .filter(|word| !word.contains('.') && *word != "s")
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(
        state(&plenty, "public.\"Of\".often")[..],
        ["9", "hot", "hot", "hot", "hot"],
        "{plenty}"
    );
    assert_eq!(
        state(&plenty, "public.\"Of\".never")[..],
        ["0", "cold", "hot", "cold", "cold"],
        "{plenty}"
    );
    // The text has no room, and the buffer has a part of what there is.
    client
        .batch_execute("alter system set warm_buffer = '1MB'")
        .await
        .unwrap();
    let short = advise(&running, path, &["--memory", "2MB"]);
    assert_eq!(
        state(&short, "public.\"Of\".often")[2..],
        ["warm", "hot", "hot"],
        "{short}"
    );
    assert_eq!(
        state(&short, "public.\"Of\".\"Wide\"")[2..],
        ["warm", "warm", "cold"],
        "{short}"
    );
    let sql = short.split("-- by frequency").nth(1).unwrap();
    let sql = sql.split("--").next().unwrap();
    for statement in sql.lines().filter(|line| !line.is_empty()) {
        client.batch_execute(statement).await.unwrap();
    }
    let rows = client
        .query("select attname::text, state from thermocline_columns", &[])
        .await
        .unwrap();
    let states: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let states: Vec<(&str, &str)> = states.iter().map(|(a, b)| (&**a, &**b)).collect();
    assert_eq!(
        states,
        [
            ("id", "cold"),
            ("often", "hot"),
            ("Wide", "warm"),
            ("never", "cold")
        ]
    );
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let directory = directory();
    let path = directory.path();
    let refused = [
        (
            ["--memory", "much"],
            "--memory: \"much\" is not a size; write for example 256MB or 4GB",
        ),
        (
            ["--url", "postgres://postgres@127.0.0.1:1/postgres"],
            "--url: error connecting to server",
        ),
    ];
    for (given, why) in refused {
        let asked = program(path)
            .args(["advise", "columns"])
            .args(given)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&asked.stderr);
        assert_eq!(asked.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
