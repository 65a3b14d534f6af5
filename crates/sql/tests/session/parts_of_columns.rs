//! Assignments to parts of columns, and other changes that PostgreSQL's own grammar reads.

use crate::fixture::Server;

#[test]
fn elements_and_slices_of_arrays_are_assigned() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, a int[], b text[], n numeric(5,1)[])");
    client.tag("insert into t (id, a[1], a[2], b[2:3]) values (1, 10, '20', '{x,y}')");
    client.tag("insert into t (id, a[2], a[1]) select g, g * 10, g from generate_series(2, 3) g");
    assert_eq!(
        client.rows("select * from t order by id"),
        [
            "1|{10,20}|[2:3]={x,y}|NULL",
            "2|{2,20}|NULL|NULL",
            "3|{3,30}|NULL|NULL"
        ]
    );
    assert_eq!(
        client.tag("update t set a[1] = a[2] + 1, a[4] = id, b[1] = 'z' where id = 1"),
        "UPDATE 1"
    );
    client.tag("update t set n[1] = 1.26, n[2] = '2' where id > 1");
    client.tag("update t set a[1:2] = array[7, 8, 9] where id = 3");
    assert_eq!(
        client.rows("select * from t order by id"),
        [
            "1|{21,20,NULL,1}|{z,x,y}|NULL",
            "2|{2,20}|NULL|{1.3,2.0}",
            "3|{7,8}|NULL|{1.3,2.0}"
        ]
    );
    for (statement, state) in [
        ("update t set a[null] = 1", "22004"),
        ("update t set a[1][1] = 1 where id = 1", "2202E"),
        ("update t set a[1] = 'x'", "22P02"),
        ("update t set a[1] = now()", "42804"),
        ("update t set a[1] = default", "0A000"),
        ("update t set a[1] = 1, a = '{}'", "42601"),
        ("update t set id[1] = 1", "42804"),
        ("update t set x[1] = 1", "42703"),
        ("insert into t (id, a[1], a) values (9, 1, '{}')", "42701"),
        ("update t set n[1] = 123456", "22003"),
    ] {
        let error = client.error(statement);
        assert!(error.contains(state), "{statement}: {error}");
    }
    client.tag("insert into t (id, a[1]) values (1, 5) on conflict (id) do update set a[2] = excluded.a[1]");
    assert_eq!(
        client.rows("select a from t where id = 1"),
        ["{21,5,NULL,1}"]
    );
    client.tag("prepare p (int, int) as update t set a[$1] = $2 where id = 2 returning a");
    assert_eq!(client.rows("execute p (1, 99)"), ["{99,20}"]);
    assert_eq!(client.rows("execute p (3, 98)"), ["{99,20,98}"]);
}

#[test]
fn fields_and_keys_are_assigned() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type point2 as (x int, y int)");
    client.tag("create type line2 as (a point2, b point2, names text[])");
    client.tag("create table t (id int primary key, p point2, l line2, j jsonb, ps point2[])");
    client.tag("insert into t (id, p.x, l.a.y, l.names[2]) values (1, 5, 6, 'n')");
    assert_eq!(
        client.rows("select p, l from t"),
        ["(5,)|(\"(,6)\",,[2:2]={n})"]
    );
    client.tag("update t set p.y = (p).x * 2, l.b.x = id, l.names[1] = 'm', ps[1].x = 3");
    assert_eq!(
        client.rows("select p, l, ps from t"),
        ["(5,10)|(\"(,6)\",\"(1,)\",\"{m,n}\")|{\"(3,)\"}"]
    );
    client.tag("update t set j['a']['b'] = '1', j['c'] = '[]'");
    client.tag("update t set j['c'][2] = '\"x\"'");
    assert_eq!(
        client.rows("select j from t"),
        ["{\"a\": {\"b\": 1}, \"c\": [null, null, \"x\"]}"]
    );
    for (statement, state) in [
        ("update t set p.z = 1", "42703"),
        ("update t set id.x = 1", "42804"),
        ("update t set t.id = 1", "42703"),
        ("update t set p.x = 'a'", "22P02"),
        ("update t set p.x = now()", "42804"),
        ("update t set j[null] = '1'", "22004"),
        ("update t set j['a']['b']['c'] = '1'", "22023"),
    ] {
        let error = client.error(statement);
        assert!(error.contains(state), "{statement}: {error}");
    }
}

#[test]
fn what_a_row_does_not_give_is_asked_before() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v text, n int default 7)");
    client.tag("create table u (k int primary key, w text)");
    client.tag("insert into u values (1, 'one'), (2, 'two')");
    client.tag("insert into t values (1, (select w from u where k = 1), default)");
    client.tag("insert into t (id, v, n) values ((select 8), 'gone', default)");
    client.tag("delete from t where id = 8");
    let upsert = "insert into t values (1, 'x') on conflict (id) do update \
                  set v = t.v || (select max(w) from u), n = default \
                  where t.n < (select count(*) + 10 from u) returning id, v, n, exists (select 1 from u)";
    assert_eq!(client.rows(upsert), ["1|onetwo|7|t"]);
    assert_eq!(
        client.rows("with w as (select 5 as five) insert into t values (2, 'b') on conflict (id) do nothing returning (select five from w), t"),
        ["5|(2,b,7)"]
    );
    let by_row = "update t set (v, n) = (select w, k * 100 from u where k = t.id) where id < 3 \
                  returning *, (select array_agg(w order by k) from u)";
    let mut found = client.rows(by_row);
    found.sort();
    assert_eq!(found, ["1|one|100|{one,two}", "2|two|200|{one,two}"]);
    let joined = "update t set n = n + k from u where k = id returning t.id, t.n, u.w, u";
    let mut found = client.rows(joined);
    found.sort();
    assert_eq!(found, ["1|101|one|(1,one)", "2|202|two|(2,two)"]);
    assert_eq!(
        client.rows("delete from t using u where k = id and k = 2 returning t, u.k + t.n"),
        ["(2,two,202)|204"]
    );
    let error = client.error("update t set v = 'y' returning (select w from u where k = n)");
    assert!(error.contains("0A000"), "{error}");
    let error = client.error("insert into t values (9, (select w from u))");
    assert!(error.contains("21000"), "{error}");
}
