//! Options of views: what they check, by whose rights they read, and how they are shown.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

/// The statement is refused, in words that begin so.
fn refused(client: &mut Connection, sql: &str, begins: &str) {
    let error = client.error(sql);
    assert!(error.starts_with(begins), "{sql}: {error}");
}

#[test]
fn a_row_that_the_view_would_not_show_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int, c int default 7)");
    client.tag("create view v as select a, b as shown from t where b > 0 with check option");
    client.tag("insert into v values (1, 1)");
    let failing = |row: &str| {
        format!(
            "44000 new row violates check option for view \"v\" \
             [detail Failing row contains ({row}).]"
        )
    };
    assert_eq!(
        client.error("insert into v values (2, -1)"),
        failing("2, -1, 7")
    );
    // A condition that is NULL shows no row, other than a CHECK.
    assert_eq!(
        client.error("insert into v values (3, null)"),
        failing("3, null, 7")
    );
    assert_eq!(
        client.error("insert into v (a) values (3)"),
        failing("3, null, 7")
    );
    assert_eq!(
        client.error("update v set shown = -1 where a = 1"),
        failing("1, -1, 7")
    );
    assert_eq!(
        client.error("update v set shown = shown - 1"),
        failing("1, 0, 7")
    );
    assert_eq!(
        client.error("insert into v (a, shown) select x, 11 - x from generate_series(10, 12) x"),
        failing("11, 0, 7")
    );
    client.tag("create table many (x int)");
    client.tag("insert into many values (1), (2)");
    let by_query = "update v set shown = -x from many where a = x and x in (select x from many)";
    assert_eq!(client.error(by_query), failing("1, -1, 7"));
    assert_eq!(client.tag("update v set shown = 5 where a = 1"), "UPDATE 1");
    // The table takes it, and another view without the option, too.
    client.tag("insert into t values (4, -4)");
    client.tag("create view free as select a, b from t where b > 0");
    client.tag("insert into free values (5, -5)");
    assert_eq!(
        client.tag("update v set shown = 5 where a in (4, 5)"),
        "UPDATE 0"
    );
    // With triggers, which may make another row of it.
    client.tag(
        "create function less() returns trigger language plpgsql as \
         'begin new.b := new.b - 10; return new; end'",
    );
    client
        .tag("create trigger w before insert or update on t for each row execute function less()");
    assert_eq!(
        client.error("insert into v values (6, 6)"),
        failing("6, -4, 7")
    );
    assert_eq!(
        client.error("update v set shown = 9 where a = 1"),
        failing("1, -1, 7")
    );
    assert_eq!(client.tag("insert into v values (6, 16)"), "INSERT 0 1");
    // A column of the row's table is checked first.
    client.tag("alter table t add constraint odd check (b <> 3)");
    refused(&mut client, "insert into v values (7, 13)", "23514");
    assert_eq!(
        client.rows("select a, b from t order by a"),
        ["1|5", "4|-4", "5|-5", "6|6"]
    );
}

#[test]
fn options_are_kept_and_shown() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (a int, b int)");
    client.tag("create view c as select a, b from t where b > 1 with cascaded check option");
    client.tag("create view l with (check_option = local, security_invoker) as select a, b from t where b > 1");
    client.tag("create view n with (security_barrier = false) as select a from t");
    client.tag("create view w as select a from t with local check option");
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    let shown = "select relname, reloptions from pg_class where relkind = 'v' \
                 and relnamespace = 'public'::regnamespace order by 1";
    assert_eq!(
        client.rows(shown),
        [
            "c|{check_option=cascaded}",
            "l|{check_option=local,security_invoker=true}",
            "n|{security_barrier=false}",
            "w|{check_option=local}"
        ]
    );
    assert_eq!(
        client.rows(
            "select table_name, check_option, is_updatable from information_schema.views \
             where table_schema = 'public' order by 1"
        ),
        ["c|CASCADED|YES", "l|LOCAL|YES", "n|NONE|YES", "w|LOCAL|YES"]
    );
    assert_eq!(
        client.rows("select pg_get_viewdef('c'::regclass)"),
        [" select a, b from t where b > 1;"]
    );
    refused(&mut client, "insert into c values (1, 1)", "44000");
    // Without a condition all rows are shown.
    client.tag("insert into w values (null)");
    client.tag("alter view n set (security_invoker = on)");
    client.tag("alter table n reset (security_barrier)");
    client.tag("alter view l reset (check_option)");
    client.tag("create or replace view c as select a, b from t where b > 1");
    assert_eq!(
        client.rows(shown),
        [
            "c|NULL",
            "l|{security_invoker=true}",
            "n|{security_invoker=on}",
            "w|{check_option=local}"
        ]
    );
    client.tag("insert into c values (1, 1)");
    client.tag("insert into l values (1, 1)");
}

#[test]
fn what_no_view_can_have_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int)");
    client.tag("create view v as select a from t");
    let only = "0A000 WITH CHECK OPTION is supported only on automatically updatable views";
    for (sql, error) in [
        (
            "create view x as select count(*) from t with check option",
            only,
        ),
        (
            "create view x as select a + 1 as a from t with check option",
            only,
        ),
        (
            "create view x as select a from v with check option",
            "0A000 WITH CHECK OPTION on a view of a view is not supported",
        ),
        (
            "create view x as select a from t where a in (select b from t) with check option",
            "0A000 WITH CHECK OPTION with a subquery in the view's WHERE is not supported",
        ),
        (
            "create recursive view x (n) as values (1) with check option",
            "0A000 WITH CHECK OPTION not supported on recursive views",
        ),
        (
            "create view x with (check_option = foo) as select a from t",
            "22023 invalid value for enum option \"check_option\": foo",
        ),
        (
            "create view x with (security_invoker = maybe) as select a from t",
            "22023 invalid value for boolean option \"security_invoker\": maybe",
        ),
        (
            "create view x with (nope = 1) as select a from t",
            "22023 unrecognized parameter \"nope\"",
        ),
        (
            "create view x with (check_option = local) as select a from t with check option",
            "22023 parameter \"check_option\" specified more than once",
        ),
        (
            "create view x with (security_barrier) as select a from t",
            "0A000 security_barrier of a view is not supported",
        ),
        (
            "alter view v set (security_barrier = on)",
            "0A000 security_barrier",
        ),
        (
            "alter view v set (check_option = local)",
            "0A000 ALTER VIEW ... SET (check_option)",
        ),
        (
            "alter table v set (nope = 1)",
            "22023 unrecognized parameter \"nope\"",
        ),
    ] {
        refused(&mut client, sql, error);
    }
}

#[test]
fn a_view_of_the_invoker_reads_by_its_readers_rights() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int)");
    client.tag("insert into t values (1, 1), (2, 2)");
    client.tag("create role r");
    client.tag("grant usage on schema public to r");
    client.tag("create view own as select * from t");
    client.tag("create view inv with (security_invoker = on) as select * from t");
    client.tag("create view less with (security_invoker) as select a from t");
    client.tag("create view two as select a, count(*) as n from inv group by a");
    client.tag("grant select, insert, update on own, inv, less, two to r");
    let queries = [
        "where a = 1",
        "where b + 0 = 1",
        "group by a, b having a = 1",
    ];
    client.tag("prepare p as select count(*) from inv");
    assert_eq!(client.rows("execute p"), ["2"]);
    client.tag("set role r");
    let denied = "42501 permission denied for table t";
    refused(&mut client, "execute p", denied);
    for tail in queries {
        assert_eq!(
            client.rows(&format!("select a, b from own {tail}")),
            ["1|1"]
        );
        refused(&mut client, &format!("select a, b from inv {tail}"), denied);
    }
    refused(&mut client, "select * from two", denied);
    client.tag("insert into own values (3, 3)");
    refused(&mut client, "insert into inv values (4, 4)", denied);
    refused(&mut client, "update inv set b = 0 where a = 1", denied);
    client.tag("reset role");
    client.tag("grant select (a) on t to r");
    client.tag("set role r");
    // The view's query names both columns.
    refused(&mut client, "select a from inv where a = 1", denied);
    assert_eq!(client.rows("select a from less where a = 1"), ["1"]);
    assert_eq!(client.rows("select sum(a + 0) from less"), ["6"]);
    client.tag("reset role");
    client.tag("grant select, insert on t to r");
    client.tag("set role r");
    client.tag("insert into inv values (4, 4)");
    assert_eq!(client.rows("execute p"), ["4"]);
    refused(&mut client, "update inv set b = 0 where a = 1", denied);
}
