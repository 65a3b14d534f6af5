//! Cursors: DECLARE, FETCH, CLOSE, and what they are to the protocol's portals.

use crate::fixture::Server;

#[test]
fn psql_fetches_in_pieces() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key)");
    client.tag("insert into t values (1), (2), (3), (4), (5)");
    client.tag("BEGIN");
    assert_eq!(
        client.tag(
            "DECLARE _psql_cursor NO SCROLL CURSOR FOR\nselect a from t where a > 0 order by a"
        ),
        "DECLARE CURSOR"
    );
    assert_eq!(
        client.query("FETCH FORWARD 2 FROM _psql_cursor"),
        ["T a:23", "D 1", "D 2", "C FETCH 2"]
    );
    assert_eq!(client.tag("move 1 in _psql_cursor"), "MOVE 1");
    assert_eq!(
        client.query("fetch _psql_cursor"),
        ["T a:23", "D 4", "C FETCH 1"]
    );
    assert_eq!(client.rows("fetch all from _psql_cursor"), ["5"]);
    assert_eq!(client.tag("fetch next from _psql_cursor"), "FETCH 0");
    assert_eq!(client.tag("CLOSE _psql_cursor"), "CLOSE CURSOR");
    assert!(client.error("fetch _psql_cursor").starts_with("34000 "));
    client.tag("ROLLBACK");
}

#[test]
fn a_cursor_needs_a_transaction_unless_it_is_held() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.error("declare c cursor for select 1"),
        "25P01 DECLARE CURSOR can only be used in transaction blocks"
    );
    client.tag("begin");
    client.tag("declare held cursor with hold for values (1), (2)");
    client.tag("declare gone cursor for values (3)");
    client.tag("commit");
    assert_eq!(client.rows("fetch 5 from held"), ["1", "2"]);
    assert!(client.error("fetch gone").starts_with("34000 "));
    assert!(
        client
            .error("declare held cursor with hold for select 1")
            .starts_with("42P03 ")
    );
    assert_eq!(client.tag("close all"), "CLOSE CURSOR ALL");
}

#[test]
fn a_cursor_of_sql_is_a_portal_of_the_protocol() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("begin");
    client.tag("declare srv cursor for values (1, 'x'), (2, 'y')");
    assert_eq!(
        client.describe_portal("srv").unwrap(),
        ["T column1:23 column2:25"]
    );
    client.parse("", "FETCH FORWARD 1 FROM srv", &[]).unwrap();
    assert_eq!(
        client.describe("").unwrap(),
        ["t ", "T column1:23 column2:25"]
    );
    client.bind("", "", &[]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D 1|x", "C FETCH 1"]);
    client.sync().unwrap();
    assert_eq!(client.execute("srv", 0).unwrap(), ["D 2|y", "C SELECT 1"]);
    client.sync().unwrap();
    client.tag("commit");
}

#[test]
fn a_cursor_goes_back_over_few_and_many_rows() {
    let server = Server::new();
    let files = || server.engine.database().spill().report().files;
    let mut client = server.connect();
    client.query("create table t (id int primary key, v text)");
    client.tag("insert into t select g, repeat('x', 100) from generate_series(1, 20000) g");
    client.query("begin");
    for (name, scroll, last, sql) in [
        ("few", "", 9, "select id from t where id <= 9 order by id"),
        (
            "memory",
            "scroll",
            900,
            "select id, v from t where id <= 900 order by id",
        ),
        ("file", "scroll", 20_000, "select id, v from t order by id"),
    ] {
        client.query(&format!("declare {name} {scroll} cursor for {sql}"));
        let id = |row: &String| row.split('|').next().unwrap().parse::<i32>().unwrap();
        let mut ids = |what: &str| -> Vec<i32> {
            let rows = client.rows(&format!("{what} {name}"));
            rows.iter().map(id).collect()
        };
        assert!(ids("fetch prior from").is_empty());
        assert_eq!(ids("fetch 3 from"), [1, 2, 3]);
        assert_eq!(ids("fetch backward 2 from"), [2, 1]);
        assert_eq!(ids("fetch last from"), [last]);
        assert!(ids("fetch next from").is_empty());
        assert_eq!(ids("fetch -2 from"), [last, last - 1]);
        assert_eq!(ids("fetch absolute 5 from"), [5]);
        assert_eq!(ids("fetch relative -4 from"), [1]);
        assert_eq!(ids("fetch absolute -3 from"), [last - 2]);
        let all = ids("fetch backward all from");
        assert_eq!(all, (1..last - 2).rev().collect::<Vec<_>>());
        assert_eq!(ids("fetch all from"), (1..=last).collect::<Vec<_>>());
        for (sql, tag) in [
            ("move backward all in", format!("MOVE {last}")),
            ("move 7 in", "MOVE 7".to_owned()),
            ("move absolute 0 in", "MOVE 0".to_owned()),
        ] {
            assert_eq!(client.tag(&format!("{sql} {name}")), tag);
        }
    }
    assert_eq!(files(), 1);
    client.query("declare forward no scroll cursor for select id from t where id <= 9 order by id");
    assert_eq!(client.rows("fetch relative 3 from forward"), ["3"]);
    let error = client.error("fetch prior from forward");
    assert!(error.starts_with("55000"), "{error}");
    client.query("rollback");
    assert_eq!(files(), 0);
    // Of a held one the transaction that declared it is over.
    client.query("declare held scroll cursor with hold for select id from t order by id");
    assert_eq!(client.rows("fetch last from held"), ["20000"]);
    assert_eq!(client.rows("fetch first from held"), ["1"]);
}

#[test]
fn a_cursor_goes_with_what_it_was_declared_behind() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("begin; declare outer_one cursor for values (1), (2), (3); savepoint x");
    client.tag("declare inner_one cursor for values (4), (5)");
    assert_eq!(client.rows("fetch inner_one"), ["4"]);
    assert_eq!(client.rows("fetch outer_one"), ["1"]);
    client.tag("rollback to x");
    let error = client.error("fetch inner_one");
    assert!(error.starts_with("34000"), "{error}");
    client.tag("rollback to x");
    // What it had given stays given.
    assert_eq!(client.rows("fetch outer_one"), ["2"]);
    client
        .tag("declare kept cursor for values (6); savepoint y; declare two cursor for values (7)");
    client.tag("release y");
    assert_eq!(client.rows("fetch two"), ["7"]);
    client.tag("savepoint z; rollback to z");
    assert_eq!(client.rows("fetch kept"), ["6"]);
    client.tag("rollback");
    // One that is held was never there, either.
    client.tag("begin; declare held cursor with hold for values (1), (2); rollback");
    assert!(client.error("fetch held").starts_with("34000"));
    client.tag("declare held cursor with hold for values (1), (2)");
    client.tag("begin; select 1; rollback");
    assert_eq!(client.rows("fetch held"), ["1"]);
    client.tag("begin");
    assert!(client.error("select 1 / 0").starts_with("22012"));
    client.tag("commit");
    assert_eq!(client.rows("fetch held"), ["2"]);
}

#[test]
fn numbers_with_decimals_are_fetched_by_either_path() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create domain amount as numeric(10, 2)");
    client.tag("create table t (id int primary key, n numeric(12, 3), m amount, free numeric)");
    client.tag("insert into t values (1, 2.5, 3, 1e30), (2, -0.125, null, 0.10)");
    let all = [
        "1|2.500|3.00|1000000000000000000000000000000",
        "2|-0.125|NULL|0.10",
    ];
    for path in ["auto", "analytical"] {
        client.tag(&format!("set thermocline.path = {path}"));
        let declare =
            "begin; declare k scroll cursor for select * from t where n < 100 order by id";
        client.tag(declare);
        assert_eq!(client.rows("fetch 100 from k"), all, "{path}");
        assert_eq!(client.rows("fetch backward 1 from k"), all[1..], "{path}");
        client.tag(
            "commit; begin; declare h cursor with hold for select * from t order by id; commit",
        );
        assert_eq!(client.rows("fetch all from h"), all, "{path}");
        client.tag("close h");
    }
}
