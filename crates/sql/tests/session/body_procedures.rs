//! Procedures of PL/pgSQL through the extended protocol, over a crash, and beside other statements
//! of a message. What one session sees of them is in the server's tests (`sql/procedures.sql`).

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn a_call_is_described_and_takes_parameters() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create procedure p(a int, inout b text, out c bigint) language plpgsql as \
         $$ begin b := b || a; c := a * 2; end $$",
    );
    client.parse("s", "call p($1, $2, null)", &[]).unwrap();
    let described = client.describe("s").unwrap();
    assert_eq!(described, ["t 23 25", "T b:25 c:20"]);
    let arguments = [Some("21"), Some("x")];
    client.bind("", "s", &arguments).unwrap();
    let answers = client.execute("", 0).unwrap();
    assert_eq!(answers.last().unwrap(), "C CALL");
    client.sync().unwrap();
    // One that gives nothing has no columns.
    client.tag("create procedure q() language plpgsql as $$ begin end $$");
    client.parse("n", "call q()", &[]).unwrap();
    assert_eq!(client.describe("n").unwrap().last().unwrap(), "n");
    client.sync().unwrap();
}

#[test]
fn arguments_are_given_by_name() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create procedure p(inout x int, y int default 3, z text default 'z') language plpgsql as \
         $$ begin x := x + y; end $$",
    );
    for (call, x) in [
        ("call p(y => 2, x => 1)", "3"),
        ("call p(1, z => 'a', y => 8)", "9"),
        ("call p(x => 5)", "8"),
        ("call p(5, z => 'b')", "8"),
    ] {
        assert_eq!(client.rows(call), [x], "{call}");
    }
    client.tag("create function f() returns int language sql as 'select 1'");
    for (call, error) in [
        ("call p(1, x => 1)", "42883"),
        ("call p(y => 1)", "42883"),
        ("call p(q => 1, x => 2)", "42883"),
        ("call p(x => 1, x => 2)", "42601"),
        ("call p(x => 1, 2)", "42601"),
        ("call f()", "42809"),
    ] {
        let refused = client.error(call);
        assert!(refused.starts_with(error), "{call}: {refused}");
    }
}

#[test]
fn what_a_procedure_commits_stays_and_the_rest_goes() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (id int)");
    client.tag(
        "create procedure p() language plpgsql as $$ begin insert into t values (1); commit; \
         insert into t values (2); rollback; insert into t values (3); commit; \
         insert into t values (4); raise exception 'no'; end $$",
    );
    assert!(client.error("call p()").starts_with("P0001 no"));
    assert_eq!(client.rows("select id from t order by id"), ["1", "3"]);
    assert_eq!(client.status(), 'I');
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows("select id from t order by id"), ["1", "3"]);
    // Beside other statements of a message it is a part of their transaction.
    let answers = client.query("insert into t values (5); call p()");
    let refused = answers.iter().any(|line| line.starts_with("E 2D000"));
    assert!(refused, "{answers:?}");
    let answers = client.query("call p(); insert into t values (6)");
    let refused = answers.iter().any(|line| line.starts_with("E 2D000"));
    assert!(refused, "{answers:?}");
    assert_eq!(client.rows("select id from t order by id"), ["1", "3"]);
    server.is_sound();
}

#[test]
fn a_procedure_that_never_ends_is_ended() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int)");
    client.tag(
        "create procedure p() language plpgsql as \
         $$ begin loop insert into t values (1); commit; end loop; end $$",
    );
    client.tag("set statement_timeout = 200");
    assert!(client.error("call p()").starts_with("57014"));
    assert_eq!(client.status(), 'I');
    assert_eq!(client.rows("select count(*) > 0 from t"), ["t"]);
}
