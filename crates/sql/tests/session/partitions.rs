//! Declared partitions, as far as PostgreSQL's answers to a script (`server/tests/sql/partitions.sql`) do
//! not tell: paths, plans that are kept, sessions beside each other, column tables, restarts.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

fn visits(client: &mut Connection) {
    client.tag(
        "create table visit (id int, at int, what text, primary key (id, at)) partition by range (at); \
         create table visit_1 partition of visit for values from (0) to (10); \
         create table visit_2 partition of visit for values from (10) to (20) using columns; \
         create table visit_rest partition of visit default",
    );
}

#[test]
fn a_statement_with_the_key_is_short_and_one_over_several_is_not() {
    let server = Server::new();
    let mut client = server.connect();
    visits(&mut client);
    client.tag("insert into visit select g, g, 'v' || g from generate_series(1, 30) g");
    let path = |client: &mut Connection, sql: &str| {
        let lines = client.rows(&format!("explain {sql}"));
        lines.last().cloned().unwrap_or_default()
    };
    let short = "Path: short";
    for sql in [
        "select * from visit where id = 5 and at = 5",
        "select what from visit where at = 15 and id = 15",
        "select max(what) from visit where id = 5 and at = 5",
        "update visit set what = '' where id = 5 and at = 5",
        "delete from visit where at = 17",
        "insert into visit values (100, 1)",
    ] {
        assert!(path(&mut client, sql).starts_with(short), "{sql}");
    }
    let several = "select * from visit where id = 5";
    assert!(path(&mut client, several).contains("a partitioned table"));
    client.tag("prepare one (int, int) as select what from visit where id = $1 and at = $2");
    for key in [5, 15, 25] {
        let row = client.rows(&format!("execute one ({key}, {key})"));
        assert_eq!(row, [format!("v{key}")]);
    }
    assert_eq!(client.rows("execute one (5, 6)"), [""; 0]);
    client.tag("set thermocline.path = analytical");
    assert_eq!(client.rows("execute one (15, 15)"), ["v15"]);
    assert_eq!(
        client.rows("select count(*), sum(id) from visit"),
        ["30|465"]
    );
    assert_eq!(
        client.rows("select id from visit where at between 8 and 12 order by 1"),
        ["8", "9", "10", "11", "12"]
    );
    let plan = client.rows("explain select id from visit where at between 12 and 14");
    let scans = plan.iter().filter(|line| line.contains("SnapshotScan"));
    assert_eq!(scans.count(), 1, "{plan:?}");
}

#[test]
fn a_change_that_fails_leaves_all_partitions_as_they_were() {
    let server = Server::new();
    let mut client = server.connect();
    visits(&mut client);
    client.tag("insert into visit select g, g, 'v' from generate_series(1, 30) g");
    let sums = "select count(*), sum(at), count(distinct what) from visit";
    let before = client.rows(sums);
    for sql in [
        "update visit set what = 1 / (25 - at)",
        "update visit set at = 5, id = 1 where at in (15, 25)",
        "insert into visit select g, g from generate_series(29, 31) g",
        "delete from visit where 1 / (25 - at) > -9",
    ] {
        client.error(sql);
        assert_eq!(client.rows(sums), before, "{sql}");
    }
    // A partition by itself keeps its rows, too.
    assert!(
        client
            .error("update visit_1 set at = 15 where id = 9")
            .starts_with("23514")
    );
    assert_eq!(client.rows(sums), before);
    assert_eq!(client.tag("update visit set at = at + 10"), "UPDATE 30");
    assert_eq!(client.rows("select count(*) from visit_1"), ["0"]);
    assert_eq!(client.rows("select count(*) from visit_2"), ["9"]);
    assert_eq!(client.rows("select count(*) from visit_rest"), ["21"]);
}

#[test]
fn who_stores_a_row_beside_a_new_partition_stores_it_there() {
    let server = Server::new();
    let (mut one, mut other) = (server.connect(), server.connect());
    visits(&mut one);
    other.tag("prepare put (int) as insert into visit values ($1, $1, 'p')");
    other.tag("prepare put_rest (int) as insert into visit_rest values ($1, $1, 'r')");
    other.tag("execute put (31)");
    other.tag("execute put_rest (41)");
    one.tag("begin");
    one.tag("create table visit_5 partition of visit for values from (50) to (60)");
    let waiting = thread::spawn(move || {
        other.tag("execute put (51)");
        let refused = other.error("execute put_rest (52)");
        (other, refused)
    });
    thread::sleep(Duration::from_millis(200));
    one.tag("commit");
    let (mut other, refused) = waiting.join().unwrap();
    assert!(refused.starts_with("23514"), "{refused}");
    assert_eq!(one.rows("select id from visit_5"), ["51"]);
    // Rows that the default partition has already are in the way.
    let taken = "create table visit_3 partition of visit for values from (30) to (40)";
    assert!(one.error(taken).starts_with("23514"));
    one.tag("alter table visit detach partition visit_rest");
    assert!(other.error("execute put (32)").starts_with("23514"));
    other.tag("execute put_rest (52)");
    one.tag(taken);
    one.tag("drop table visit_5");
    assert_eq!(other.rows("select count(*) from visit"), ["0"]);
    assert_eq!(other.rows("select count(*) from visit_rest"), ["3"]);
}

#[test]
fn partitions_are_there_after_a_restart() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    visits(&mut client);
    client.tag(
        "create table place (c text, n numeric, at timestamptz, id uuid) partition by list (c)",
    );
    client.tag("create table place_a partition of place for values in ('a', null)");
    client.tag(
        "create table place_b partition of place for values in ('b') partition by hash (n, at)",
    );
    client.tag(
        "create table place_b_0 partition of place_b for values with (modulus 1, remainder 0)",
    );
    client.tag("create index on place (n)");
    client.tag("insert into visit select g, g, 'v' from generate_series(1, 30) g");
    client
        .tag("insert into place values ('a', 1, null), (null, 2, null), ('b', 3.5, '2024-01-01')");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(
        client.rows("select count(*), sum(at) from visit"),
        ["30|465"]
    );
    assert_eq!(
        client.rows("select n from place order by n"),
        ["1", "2", "3.5"]
    );
    client.tag("insert into place values ('b', 4)");
    assert_eq!(client.rows("select count(*) from place_b_0"), ["2"]);
    assert!(
        client
            .error("insert into place values ('c')")
            .starts_with("23514")
    );
    let links = "select count(*) from pg_inherits i join pg_class c on c.oid = inhrelid where relkind = 'i'";
    assert_eq!(client.rows(links), ["5"]);
}

#[test]
fn what_is_not_done_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    visits(&mut client);
    client.tag("create table plain (id int, at int)");
    client.tag("create function f() returns trigger language plpgsql as 'begin return new; end'");
    for sql in [
        "create table x (a int) partition by range ((a + 1))",
        "create trigger t before insert on visit for each row execute function f()",
        "create trigger t before insert on visit_1 for each row execute function f()",
        "create table y (id int, at int, foreign key (id, at) references visit)",
        "create index on visit_1 ((id + 1))",
        "create unique index on visit (id)",
        "declare c cursor for select * from visit; update visit set what = '' where current of c",
    ] {
        let refused = client.error(&format!("begin; {sql}"));
        assert!(refused.starts_with("0A000"), "{sql}: {refused}");
        client.tag("rollback");
    }
    client.tag("create table other (at int, id int not null, what text)");
    let order = "alter table visit attach partition other for values from (20) to (30)";
    assert!(client.error(order).starts_with("42804"));
    client.tag("alter table other alter at set not null");
    assert!(client.error(order).starts_with("0A000"));
}
