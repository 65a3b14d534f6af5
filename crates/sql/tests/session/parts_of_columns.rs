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

#[test]
fn a_row_that_an_outer_join_has_not_is_no_row_of_nulls() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v int)");
    client.tag("create table keyless (id int, v int)");
    client.tag("create table u (k int, w text)");
    client.tag("insert into t values (1, 10)");
    client.tag("insert into keyless values (1, 10)");
    client.tag("insert into u values (1, 'one')");
    for table in ["t", "keyless"] {
        let from = format!("update {table} as c set v = v + 1 from u join u y on y.k = u.k");
        assert_eq!(
            client.rows(&format!(
                "{from} where u.k = c.id and c is not null and y is not null returning y, c, c.v"
            )),
            ["(1,one)|(1,11)|11"],
            "{table}"
        );
        // In PostgreSQL it is NULL.
        let outer = from.replace("join u y on y.k = u.k", "left join u y on y.k = 99");
        let error = client.error(&format!("{outer} where u.k = c.id returning y"));
        assert!(error.starts_with("0A000"), "{table}: {error}");
        assert_eq!(
            client.rows(&format!(
                "{outer} where u.k = c.id and y is null returning y.w, c.v"
            )),
            ["NULL|12"],
            "{table}"
        );
        client.tag(&format!("update {table} set v = 10"));
    }
    let error = client.error("insert into t values ((select pg_export_snapshot()::int), default)");
    assert!(
        error.starts_with("0A000") || error.starts_with("42883"),
        "{error}"
    );
    let explained = client.rows("explain delete from keyless using u where k = id");
    assert!(explained[0].contains("keyless"), "{explained:?}");
}

/// A change finds the rows that a query finds, whichever of the two evaluates the condition.
#[test]
fn conditions_mean_the_same_in_changes_and_in_queries() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type mood as enum ('sad', 'ok', 'happy')");
    client.tag(
        "create table c (id int primary key, a int[], s smallint, b bigint, n numeric, \
         x numeric(6,2), r real, d double precision, t text, vc varchar(5), ch char(4), \
         bo boolean, da date, ts timestamp(1), tz timestamptz, iv interval, by bytea, u uuid, \
         j jsonb, ne name, m mood, o oid, i inet)",
    );
    client.tag(
        "insert into c select g, array[g], g, g * 1000000000::bigint, g / 3.0, g * 1.10, g / 3.0, g / 3.0, \
         repeat('b', g), left('abcde', g), left('abcd', g), g % 2 = 0, date '2024-01-01' + g, \
         timestamp '2024-01-01' + g * interval '1 day', \
         timestamptz '2024-01-01 00:00+00' + g * interval '1 day', g * interval '10 days', \
         decode(lpad(g::text, 2, '0'), 'hex'), lpad(g::text, 32, '0')::uuid, \
         jsonb_build_object('k', g), ('n' || g)::name, (enum_range(null::mood))[1 + g % 3], g::oid, \
         ('10.0.0.' || g)::inet from generate_series(1, 6) g",
    );
    client.tag(
        "insert into c (id, n, iv, ch) values (7, 'NaN', '1 mon', 'ab'), (8, 1.0, '30 days', null)",
    );
    client.tag("create index on c (b); create index on c (t); create index on c (iv)");
    let operators = ["=", "<>", "<", "<=", ">", ">="];
    let pairs = [
        ("s", "3"),
        ("s", "3.0"),
        ("b", "3000000000"),
        ("b", "s * 1000000000::bigint"),
        ("n", "1"),
        ("n", "1.00"),
        ("n", "'NaN'"),
        ("x", "3.30"),
        ("x", "n"),
        ("r", "1"),
        ("r", "d"),
        ("d", "2.0"),
        ("t", "'bbb'"),
        ("t", "vc"),
        ("vc", "'abc'"),
        ("ch", "'ab'"),
        ("ch", "'ab  '"),
        ("ch", "vc"),
        ("bo", "true"),
        ("da", "'2024-01-04'"),
        ("da", "ts"),
        ("ts", "'2024-01-04'"),
        ("tz", "'2024-01-04 00:00+00'"),
        ("tz", "ts"),
        ("iv", "'30 days'"),
        ("iv", "'1 month'"),
        ("by", "'\\x03'"),
        ("u", "'00000000000000000000000000000003'"),
        ("j", "'{\"k\": 3}'"),
        ("ne", "'n3'"),
        ("m", "'ok'"),
        ("o", "3"),
        ("i", "'10.0.0.3'"),
        ("a", "array[3]"),
        ("id", "null"),
        ("3", "id"),
        ("2.5", "s"),
    ];
    let mut conditions: Vec<String> = Vec::new();
    for (left, right) in pairs {
        conditions.extend(
            operators
                .iter()
                .map(|sign| format!("{left} {sign} {right}")),
        );
        conditions.push(format!("not {left} < {right} or bo is not true"));
        conditions.push(format!(
            "{left} is distinct from {right} and id between 2 and 7"
        ));
        conditions.push(format!("{left} in ({right}, {right})"));
        conditions.push(format!("{left} not in ({right})"));
    }
    for extra in [
        "n is null",
        "(id, s) = (3, 3)",
        "id = any ('{2,3,99}')",
        "s = any (array[2, 3])",
        "n = any (array[1, null])",
        "t like 'b%' and vc ilike '%B%'",
        "id % 2 = 1 and -id < -2",
        "id + s * 2 - 1 > 5",
        "b / 7 > 1",
        "c.a[1] = 3",
        "j -> 'k' = '3'",
        "coalesce(s, 0) = 0",
    ] {
        conditions.push(extra.to_owned());
    }
    for condition in conditions {
        let found = client.query(&format!("select count(*) from c where {condition}"));
        // Only the analysis of whole changes has a form for the assignment.
        let changed = client.query(&format!("update c set a[1] = a[1] where {condition}"));
        let told = |answers: &[String]| {
            answers.iter().find_map(|answer| {
                let count = answer
                    .strip_prefix("D ")
                    .or_else(|| answer.strip_prefix("C UPDATE "));
                // Of an error its code.
                count.map_or_else(
                    || answer.strip_prefix("E ").map(|error| error[..5].to_owned()),
                    |count| Some(count.to_owned()),
                )
            })
        };
        assert_eq!(told(&changed), told(&found), "{condition}: {changed:?}");
    }
}
