//! `ctid`, the place of a row, and the system columns that there are not.

use crate::fixture::Server;

#[test]
fn rows_are_told_apart_and_changed_by_their_places() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b text); create table k (id int primary key, v int)");
    client.tag("insert into t select n % 3, 'x' || n % 2 from generate_series(1, 60) n");
    client.tag("insert into k select n, n from generate_series(1, 50) n");
    // Each row has one, whatever the path, in memory or not.
    for evicted in [false, true] {
        if evicted {
            client.tag("call thermocline.evict('t', 1000000000)");
        }
        assert_eq!(
            client.rows("select count(*), count(distinct ctid) from t"),
            ["60|60"]
        );
        let place = client.rows("select ctid from k where id = 7").concat();
        let by_place = format!("select id, ctid = '{place}', k from k where ctid = '{place}'");
        assert_eq!(client.rows(&by_place), ["7|t|(7,7)"]);
    }
    // A change leaves a row where it is.
    let before = client.rows("select ctid, id from k order by id");
    client.tag("update k set v = v + 1");
    assert_eq!(client.rows("select ctid, id from k order by id"), before);
    // Duplicates go, batches of a few rows, and rows that a join finds.
    client.tag(
        "delete from t using t other where t.a = other.a and t.b = other.b and t.ctid > other.ctid",
    );
    assert_eq!(
        client.rows("select a, b from t order by 1, 2"),
        ["0|x0", "0|x1", "1|x0", "1|x1", "2|x0", "2|x1"]
    );
    let few = "delete from k where ctid in (select ctid from k order by id limit 20)";
    assert_eq!(client.tag(few), "DELETE 20");
    assert_eq!(client.rows("select min(id), count(*) from k"), ["21|30"]);
    let some = "update t set b = 'z' from k where t.ctid = (select max(ctid) from t) and k.id = 30";
    assert_eq!(client.tag(some), "UPDATE 1");
    assert_eq!(client.rows("select count(*) from t where b = 'z'"), ["1"]);
    // In a view, in a subquery that reads the row around it, beside whole rows.
    client.tag("create view places as select ctid as place, a from t");
    assert_eq!(
        client.rows("select count(*) from places p join t on p.place = t.ctid and p.a = t.a"),
        ["6"]
    );
    assert_eq!(
        client.rows(
            "select count(*) from t o where exists (select from t where t.ctid = o.ctid and t = o)"
        ),
        ["6"]
    );
    assert_eq!(
        client.rows("select pg_typeof(ctid), pg_typeof(t.tableoid) from t limit 1"),
        ["tid|oid"]
    );
}

#[test]
fn rows_of_column_tables_have_places_too() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v text) using columns");
    client.tag("insert into t select n, 'v' || n from generate_series(1, 500) n");
    for evicted in [false, true] {
        if evicted {
            client.tag("call thermocline.evict('t', 1000000000)");
        }
        let places = "select count(*), count(distinct ctid) from t";
        assert_eq!(client.rows(places), ["500|500"]);
        let place = client.rows("select ctid from t where v = 'v77'").concat();
        let by_place = format!("select id from t where ctid = '{place}'");
        assert_eq!(client.rows(&by_place), ["77"]);
    }
    let few = "delete from t where ctid in (select ctid from t where id > 490)";
    assert_eq!(client.tag(few), "DELETE 10");
}

#[test]
fn what_there_is_not_is_said() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key); create view v as select a from t");
    client.tag("create role clerk; grant select (a) on t to clerk");
    for (sql, error) in [
        (
            "select xmin from t",
            "0A000 system column \"xmin\" of table \"t\" is not supported",
        ),
        (
            "insert into t values (1) returning a, xmax",
            "0A000 system column \"xmax\" of table \"t\" is not supported",
        ),
        (
            "insert into t values (1) returning ctid",
            "0A000 ctid is not supported in an expression over the changed row",
        ),
        (
            "select ctid from t, t as u",
            "42702 column reference \"ctid\" is ambiguous",
        ),
        ("select ctid from v", "42703 column \"ctid\" does not exist"),
        (
            "select ctid from (select 1) s",
            "42703 column \"ctid\" does not exist",
        ),
        (
            "update t set ctid = '(0,1)'",
            "0A000 cannot assign to system column \"ctid\"",
        ),
        (
            "set role clerk; select ctid from t",
            "42501 permission denied for table t",
        ),
    ] {
        let found = client.error(sql);
        assert!(found.starts_with(error), "{sql}: {found}");
        client.tag("reset role");
    }
}

/// Whole rows of a table without a primary key, which changes find by their numbers.
#[test]
fn whole_rows_stand_beside_changes_of_tables_without_a_key() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int); insert into t values (1, 2), (3, 4), (3, 4)");
    let twice = "update t set b = b + (select count(*) from t u where u = t)";
    assert_eq!(client.tag(twice), "UPDATE 3");
    let locked = "select t, count from t, (select count(*) from t) c where a > 0 \
                  order by 1 for update of t";
    assert_eq!(client.rows(locked), ["(1,3)|3", "(3,6)|3", "(3,6)|3"]);
}
