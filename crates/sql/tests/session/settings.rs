//! SET, SHOW, RESET and DISCARD, in and outside transactions.

use crate::fixture::Server;

#[test]
fn set_show_and_reset() {
    let server = Server::new();
    let mut client = server.connect_with(&[
        ("user", "postgres"),
        ("application_name", "test"),
        ("client_encoding", "'utf-8'"),
        ("options", "-c statement_timeout=5s"),
    ]);
    assert_eq!(
        client.query("show application_name"),
        ["T application_name:25", "D test", "C SHOW"]
    );
    assert_eq!(client.rows("show statement_timeout"), ["5s"]);
    assert_eq!(client.rows("show memory_limit"), ["4GB"]);
    assert_eq!(client.tag("set application_name to other"), "SET");
    assert_eq!(
        client.session.changed_parameters(),
        [("application_name", "other".to_owned())]
    );
    assert_eq!(client.session.changed_parameters(), []);
    assert_eq!(client.tag("reset application_name"), "RESET");
    assert_eq!(client.rows("show application_name"), ["test"]);
    assert_eq!(
        client.error("set no_such_thing = 1"),
        "42704 unrecognized configuration parameter \"no_such_thing\""
    );
    assert!(client.rows("show all").len() > 40);
}

#[test]
fn settings_follow_their_transaction() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("begin");
    client.tag("set local lock_timeout = '1s'");
    client.tag("set statement_timeout = '2s'");
    assert_eq!(client.rows("show lock_timeout"), ["1s"]);
    client.tag("commit");
    assert_eq!(client.rows("show lock_timeout"), ["0"]);
    assert_eq!(client.rows("show statement_timeout"), ["2s"]);
    client.tag("begin");
    client.tag("set statement_timeout = '3s'");
    client.tag("rollback");
    assert_eq!(client.rows("show statement_timeout"), ["2s"]);
}

#[test]
fn set_config_and_current_setting() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(client.rows("select set_config('jit', 'on', false)"), ["on"]);
    assert_eq!(client.rows("select current_setting('jit')"), ["on"]);
    assert_eq!(
        client.rows("select current_setting('app.none', true)"),
        ["NULL"]
    );
    assert!(
        client
            .error("select current_setting('app.none')")
            .starts_with("42704 ")
    );
    assert_eq!(client.rows("select current_schema()"), ["public"]);
    client.tag("set search_path = ''");
    assert_eq!(client.rows("select current_schema()"), ["NULL"]);
}

#[test]
fn discard_all_forgets_everything() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("set jit = on");
    client.tag("prepare p as select 1");
    assert_eq!(client.tag("discard all"), "DISCARD ALL");
    assert_eq!(client.rows("show jit"), ["off"]);
    assert!(client.error("execute p").starts_with("26000 "));
    // What asyncpg sends when it gives a connection back.
    let answers =
        client.query("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;");
    assert_eq!(
        answers[1..],
        [
            "D ",
            "C SELECT 1",
            "C CLOSE CURSOR ALL",
            "C UNLISTEN",
            "C RESET"
        ]
    );
}

#[test]
fn prepare_and_execute() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b text)");
    assert_eq!(
        client.tag("prepare put (int, text) as insert into t values ($1, $2)"),
        "PREPARE"
    );
    assert_eq!(client.tag("execute put(1, 'x')"), "INSERT 0 1");
    assert_eq!(client.tag("execute put(1 + 1, upper('y'))"), "INSERT 0 1");
    client.tag("prepare get as select b from t where a = $1");
    assert_eq!(
        client.query("execute get(2)"),
        ["T b:25", "D Y", "C SELECT 1"]
    );
    let error = client.error("execute get");
    assert!(
        error.starts_with("42601 wrong number of parameters"),
        "{error}"
    );
    assert_eq!(
        client.error("prepare get as select 1"),
        "42P05 prepared statement \"get\" already exists"
    );
    assert_eq!(client.tag("deallocate get"), "DEALLOCATE");
    assert_eq!(
        client.error("execute get(1)"),
        "26000 prepared statement \"get\" does not exist"
    );
    assert_eq!(client.tag("deallocate all"), "DEALLOCATE ALL");
}

#[test]
fn explain_says_the_path() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b text)");
    let plan = client.rows("explain select * from t where a = 1");
    assert!(plan.iter().any(|line| line.contains("t_pkey")), "{plan:?}");
    assert!(
        plan.iter().any(|line| line.contains("Path: short")),
        "{plan:?}"
    );
    client.rows("explain analyze insert into t values (1, 'x')");
    assert_eq!(client.rows("select count(*) from t"), ["1"]);
    client.rows("explain insert into t values (2, 'x')");
    assert_eq!(client.rows("select count(*) from t"), ["1"]);
}

#[test]
fn a_cancelled_statement_is_57014_and_the_next_one_runs() {
    let server = Server::new();
    let mut first = server.connect();
    let mut second = server.connect();
    let blocked = "update t set b = 3 where a = 1";
    first.tag("create table t (a int primary key, b int)");
    first.tag("insert into t values (1, 1)");
    first.tag("begin");
    first.tag("update t set b = 2 where a = 1");
    let cancel = second.session.cancel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            cancel.cancel();
        });
        assert!(second.error(blocked).starts_with("57014 "));
    });
    second.tag("set statement_timeout = '100ms'");
    assert!(second.error(blocked).starts_with("57014 "));
    second.tag("reset statement_timeout");
    second.tag("set lock_timeout = '100ms'");
    assert!(second.error(blocked).starts_with("55P03 "));
    assert_eq!(second.rows("select b from t where a = 1"), ["1"]);
    first.tag("rollback");
}
