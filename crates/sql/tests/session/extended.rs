//! The extended protocol: parse, bind, execute; binary values, suspended portals.

use thermocline_engine::block_on;

use crate::fixture::{Connection, Server};

fn connection(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b text)");
    client.tag("insert into t values (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four')");
    client
}

#[test]
fn a_statement_is_prepared_described_and_executed() {
    let server = Server::new();
    let mut client = connection(&server);
    client
        .parse("s", "select a, b from t where a = $1", &[])
        .unwrap();
    assert_eq!(client.describe("s").unwrap(), ["t 23", "T a:23 b:25"]);
    for (value, row) in [("1", "D 1|one"), ("3", "D 3|three")] {
        client.bind("", "s", &[Some(value)]).unwrap();
        assert_eq!(client.execute("", 0).unwrap(), [row, "C SELECT 1"]);
        client.sync().unwrap();
    }
    client.bind("", "s", &[None]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["C SELECT 0"]);
}

#[test]
fn parameters_and_results_in_binary() {
    let server = Server::new();
    let mut client = connection(&server);
    // An int8 for an int4 column, as TATP sends it.
    client
        .parse("", "select a, b from t where a = $1", &[20])
        .unwrap();
    let value = 2i64.to_be_bytes();
    let values = [Some(&value[..])];
    block_on(client.session.bind("", "", &[1], &values, &[1, 0])).unwrap();
    assert_eq!(client.describe_portal("").unwrap(), ["T a:23b b:25"]);
    assert_eq!(
        client.execute("", 0).unwrap(),
        ["D [00, 00, 00, 02]|two", "C SELECT 1"]
    );
    client.sync().unwrap();
    assert_eq!(client.describe("").unwrap()[0], "t 20");
}

/// The formats that a Bind of FETCH says are its own, and not those of the cursor from then on.
#[test]
fn each_fetch_has_its_own_format() {
    let server = Server::new();
    let mut client = connection(&server);
    client.tag("begin");
    client.tag("declare c cursor for select a from t order by a");
    for (format, row) in [
        (1, "D [00, 00, 00, 01]"),
        (0, "D 2"),
        (1, "D [00, 00, 00, 03]"),
    ] {
        client.parse("", "fetch 1 from c", &[]).unwrap();
        block_on(client.session.bind("", "", &[], &[], &[format])).unwrap();
        assert_eq!(client.execute("", 0).unwrap(), [row, "C FETCH 1"]);
    }
    assert_eq!(client.rows("fetch 1 from c"), ["4"]);
    client.tag("rollback");
}

#[test]
fn row_limits_suspend_the_portal() {
    let server = Server::new();
    let mut client = connection(&server);
    client
        .parse("", "select a from t where a > 0 order by a", &[])
        .unwrap();
    client.bind("", "", &[]).unwrap();
    assert_eq!(client.execute("", 3).unwrap(), ["D 1", "D 2", "D 3", "s"]);
    assert_eq!(client.execute("", 3).unwrap(), ["D 4", "C SELECT 1"]);
    assert_eq!(client.execute("", 3).unwrap(), ["C SELECT 0"]);
    client.sync().unwrap();
    assert_eq!(client.execute("", 3).unwrap_err().sqlstate, "34000");
}

#[test]
fn named_portals_live_until_the_transaction_ends() {
    let server = Server::new();
    let mut client = connection(&server);
    client.tag("begin");
    client
        .parse("s", "select a from t where a > 0 order by a", &[])
        .unwrap();
    client.bind("p", "s", &[]).unwrap();
    assert_eq!(client.execute("p", 1).unwrap(), ["D 1", "s"]);
    client.sync().unwrap();
    assert_eq!(client.execute("p", 1).unwrap(), ["D 2", "s"]);
    assert_eq!(client.bind("p", "s", &[]).unwrap_err().sqlstate, "42P03");
    client.sync().unwrap();
    client.tag("rollback");
    assert_eq!(client.execute("p", 1).unwrap_err().sqlstate, "34000");
}

#[test]
fn statements_between_two_syncs_are_one_transaction() {
    let server = Server::new();
    let mut client = connection(&server);
    client
        .parse("put", "insert into t values ($1, $2)", &[])
        .unwrap();
    client.bind("", "put", &[Some("5"), Some("five")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["C INSERT 0 1"]);
    client.bind("", "put", &[Some("1"), Some("again")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap_err().sqlstate, "23505");
    client.sync().unwrap();
    assert_eq!(client.rows("select count(*) from t"), ["4"]);
    // Alone, it is a transaction of its own.
    client.bind("", "put", &[Some("5"), Some("five")]).unwrap();
    client.session.sync_follows(true);
    assert_eq!(client.execute("", 0).unwrap(), ["C INSERT 0 1"]);
    client.sync().unwrap();
    assert_eq!(client.rows("select count(*) from t"), ["5"]);
}

/// Whether the Sync has arrived when a statement begins is chance: answers do not depend on it.
#[test]
fn a_pipeline_is_no_transaction_block_whatever_has_arrived() {
    let server = Server::new();
    for sync_follows in [true, false] {
        let mut client = connection(&server);
        client.tag("create table u (a int)");
        let executed = |client: &mut Connection, text: &str| {
            client.parse("", text, &[]).unwrap();
            client.bind("", "", &[]).unwrap();
            client.session.sync_follows(sync_follows);
            client.execute("", 0).map_err(|error| error.sqlstate)
        };
        // As PostgreSQL 15 answers.
        let refused = [
            ("", "declare c cursor for select 1", "25P01"),
            ("select 1", "declare c cursor for select 1", "25P01"),
            ("", "lock table u", "25P01"),
            ("select 1", "lock table u", "25P01"),
            ("select 1", "vacuum u", "25001"),
            ("show work_mem", "vacuum u", "25001"),
            ("select 1", "create index concurrently on u (a)", "25001"),
        ];
        for (first, then, sqlstate) in refused {
            if !first.is_empty() {
                executed(&mut client, first).unwrap();
            }
            let error = executed(&mut client, then).unwrap_err();
            assert_eq!(error, sqlstate, "{first}; {then}");
            client.session.extended_error();
            client.sync().unwrap();
        }
        for by_itself in [
            "vacuum u",
            "create index concurrently on u (a)",
            "discard all",
        ] {
            executed(&mut client, by_itself).unwrap();
            client.sync().unwrap();
            // It commits at once, and nothing goes on behind it.
            executed(&mut client, "vacuum u").unwrap();
            executed(&mut client, by_itself).unwrap();
            executed(&mut client, "select 1").unwrap();
            let error = executed(&mut client, by_itself).unwrap_err();
            assert_eq!(error, "25001", "vacuum; {by_itself}; select 1; {by_itself}");
            client.session.extended_error();
            client.sync().unwrap();
        }
        let ends =
            "do 'begin insert into u values (1); commit; insert into u values (2); rollback; end'";
        for first in ["", "select 1"] {
            if !first.is_empty() {
                executed(&mut client, first).unwrap();
            }
            executed(&mut client, ends).unwrap();
            client.sync().unwrap();
        }
        assert_eq!(client.rows("select a from u"), ["1", "1"]);
        client.tag("drop table t");
        client.tag("drop table u");
    }
}

#[test]
fn begin_in_a_pipeline() {
    let server = Server::new();
    let mut client = connection(&server);
    client.parse("", "BEGIN", &[]).unwrap();
    client.bind("", "", &[]).unwrap();
    assert_eq!(client.describe_portal("").unwrap(), ["n"]);
    assert_eq!(client.execute("", 0).unwrap(), ["C BEGIN"]);
    client.parse("", "delete from t where a = $1", &[]).unwrap();
    client.bind("", "", &[Some("1")]).unwrap();
    assert_eq!(client.execute("", 1).unwrap(), ["C DELETE 1"]);
    client.sync().unwrap();
    assert_eq!(client.status(), 'T');
    let error = client.parse("", "selec", &[]).unwrap_err();
    assert_eq!(error.sqlstate, "42601");
    client.sync().unwrap();
    assert_eq!(client.status(), 'E');
    client.parse("", "ROLLBACK", &[]).unwrap();
    client.bind("", "", &[]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["C ROLLBACK"]);
    client.sync().unwrap();
    assert_eq!(client.status(), 'I');
    assert_eq!(client.rows("select count(*) from t"), ["4"]);
}

#[test]
fn an_empty_statement() {
    let server = Server::new();
    let mut client = server.connect();
    client.parse("", " ; ", &[]).unwrap();
    assert_eq!(client.describe("").unwrap(), ["t ", "n"]);
    client.bind("", "", &[]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["I"]);
    let error = client.parse("", "select 1; select 2", &[]).unwrap_err();
    assert_eq!(
        error.message,
        "cannot insert multiple commands into a prepared statement"
    );
}

#[test]
fn a_statement_whose_rows_change_shape_is_refused() {
    let server = Server::new();
    let mut client = connection(&server);
    client
        .parse("all", "select * from t where a = $1", &[])
        .unwrap();
    client
        .parse("one", "select b from t where a = $1", &[])
        .unwrap();
    client.tag("alter table t add column c int default 7");
    client.bind("", "one", &[Some("1")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D one", "C SELECT 1"]);
    let error = client.bind("", "all", &[Some("1")]).unwrap_err();
    assert_eq!(error.sqlstate, "0A000");
    assert_eq!(error.message, "cached plan must not change result type");
    client.sync().unwrap();
    assert_eq!(client.rows("select * from t where a = 1"), ["1|one|7"]);
}

#[test]
fn names_and_numbers_that_do_not_fit() {
    let server = Server::new();
    let mut client = connection(&server);
    assert_eq!(client.bind("", "none", &[]).unwrap_err().sqlstate, "26000");
    client
        .parse("s", "select b from t where a = $1", &[])
        .unwrap();
    let error = client.parse("s", "select 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate, "42P05");
    assert_eq!(client.bind("", "s", &[]).unwrap_err().sqlstate, "08P01");
    let error = client.bind("", "s", &[Some("x")]).unwrap_err();
    assert_eq!(error.sqlstate, "22P02");
    client.session.close_statement("s");
    assert_eq!(client.describe("s").unwrap_err().sqlstate, "26000");
    client.sync().unwrap();
}

#[test]
fn sql_and_protocol_share_the_names_of_statements() {
    let server = Server::new();
    let mut client = connection(&server);
    client.tag("prepare neword (int) as select b from t where a = $1");
    client.bind("", "neword", &[Some("2")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D two", "C SELECT 1"]);
    client.sync().unwrap();
    client
        .parse("s", "select b from t where a = $1", &[])
        .unwrap();
    assert_eq!(client.rows("execute s(3)"), ["three"]);
}
