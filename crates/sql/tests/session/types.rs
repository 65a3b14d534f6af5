//! Columns of the types that the storage knows as bytes, and expressions that only
//! `thermocline_query` has a form for, in all statements.

use crate::fixture::Server;

const TABLE: &str = "create table t (id int primary key, doc jsonb, raw json, tags text[], numbers int[], \
     span interval, at time, zoned timetz, address inet, net cidr, object oid, label name, \
     letter \"char\", card macaddr, bits bit(4), flags varbit(8), sums numeric[])";
const ROW: &str = r#"insert into t values (1, '{"a": 1, "b": [1, {"c": "x"}]}', '{"k":  [1]}',
     '{a,"b c",NULL}', array[1,2,3], '1 mon 2 days 03:04:05', '12:34:56.5', '10:00:00+02',
     '10.1.2.3/8', '10.0.0.0/8', 42, 'abc', 'x', '08:00:2b:01:02:03', b'1010', b'11', '{1.50,NaN}')"#;
const SHOWN: &str = r#"1|{"a": 1, "b": [1, {"c": "x"}]}|{"k":  [1]}|{a,"b c",NULL}|{1,2,3}|1 mon 2 days 03:04:05|12:34:56.5|10:00:00+02|10.1.2.3/8|10.0.0.0/8|42|abc|x|08:00:2b:01:02:03|1010|11|{1.50,NaN}"#;

#[test]
fn every_type_is_stored_and_comes_back_on_both_paths() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(client.tag(TABLE), "CREATE TABLE");
    assert_eq!(client.tag(ROW), "INSERT 0 1");
    assert_eq!(client.tag("insert into t (id) values (2)"), "INSERT 0 1");
    let nulls = format!("2{}", "|NULL".repeat(16));
    for path in ["auto", "analytical"] {
        client.query(&format!("set thermocline.path = {path}"));
        assert_eq!(
            client.rows("select * from t where id = 1"),
            [SHOWN],
            "{path}"
        );
        assert_eq!(
            client.rows("select * from t where id = 2"),
            [nulls.as_str()]
        );
    }
}

#[test]
fn functions_and_operators_work_in_every_statement() {
    let server = Server::new();
    let mut client = server.connect();
    client.query(TABLE);
    client.query(ROW);
    let by_key = "select doc ->> 'a', doc -> 'b' -> 1 ->> 'c', tags[1], upper(md5(label::text)) \
                  from t where id = 1 and doc @> '{\"a\": 1}' and 2 = any (numbers)";
    let expected = ["1|x|a|900150983CD24FB0D6963F7D28E17F72"];
    assert_eq!(client.rows(by_key), expected);
    let explained = client.rows(&format!("explain {by_key}"));
    assert!(
        explained.iter().any(|line| line.contains("Path: short")),
        "{explained:?}"
    );
    let changed = "update t set doc = jsonb_set(doc, '{a}', '99') || jsonb_build_object('n', id), \
                   tags = array_append(tags, 'new'), numbers = numbers || 4, span = span * 2 \
                   where jsonb_typeof(doc -> 'b') = 'array' returning doc, tags, numbers, span";
    assert_eq!(
        client.rows(changed),
        [
            r#"{"a": 99, "b": [1, {"c": "x"}], "n": 1}|{a,"b c",NULL,new}|{1,2,3,4}|2 mons 4 days 06:08:10"#
        ]
    );
    let upsert = "insert into t (id, doc) values (1, to_jsonb(array[1])) on conflict (id) do update \
                  set doc = t.doc || jsonb_build_object('was', excluded.doc) where t.doc ? 'a' \
                  returning doc -> 'was', (t.id, 'x') = (1, 'x')";
    assert_eq!(client.rows(upsert), ["[1]|t"]);
    assert_eq!(
        client.tag("delete from t where doc @> '{\"a\": 5}'"),
        "DELETE 0"
    );
    assert_eq!(
        client.tag("delete from t where doc @> '{\"a\": 99}'"),
        "DELETE 1"
    );
    client.query("create table n (v numeric, w numeric(5, 2))");
    for (sql, expected) in [
        (
            "insert into n (v) select 9e131071 + 9e131071 * x from generate_series(1, 2) x",
            "22003",
        ),
        (
            "insert into n (w) select 9e131071 + x from generate_series(1, 2) x",
            "22003",
        ),
        ("insert into t (id, doc) values (9, 'not json')", "22P02"),
        ("insert into t (id, doc) values (9, 5)", "42804"),
        ("insert into t (id, doc) values (9, '5'::text)", "42804"),
        ("insert into t (id, at) values (9, '25:00')", "22008"),
        ("insert into t (id, bits) values (9, b'10101')", "22026"),
        (
            "insert into t (id, flags) values (9, b'101010101')",
            "22001",
        ),
        ("insert into t (id, numbers) values (9, 'x')", "22P02"),
        ("update t set doc = nothing(doc)", "42883"),
        ("update t set tags = array_agg(tags)", "42803"),
        ("create index on t (doc)", "0A000"),
        ("create table u (v int[] primary key)", "0A000"),
        ("create table u (v regclass)", "0A000"),
        ("create table u (v nothing)", "42704"),
    ] {
        let error = client.error(sql);
        assert!(error.starts_with(expected), "{sql}: {error}");
    }
}

#[test]
fn keys_and_indexes_over_them_are_in_their_order() {
    let server = Server::new();
    let mut client = server.connect();
    client.query(
        "create table t (span interval primary key, at time, address inet unique, label name)",
    );
    client.query("create index on t (at desc, label)");
    client.query(
        "insert into t values ('1 mon', '10:00', '10.0.0.1', 'b'), ('-1 days', '09:00', '10.0.0.0/8', 'a'), \
         ('29 days 23:59:59', '10:00', '::1', 'a'), ('00:00:01', null, '10.0.0.2', null)",
    );
    assert!(
        client
            .error("insert into t values ('30 days')")
            .starts_with("23505")
    );
    assert!(
        client
            .error("insert into t values ('5 days', null, '10.0.0.1')")
            .starts_with("23505")
    );
    assert_eq!(
        client.rows("select span from t where span = '30 days'"),
        ["1 mon"]
    );
    let order = ["-1 days", "00:00:01", "29 days 23:59:59", "1 mon"];
    for path in ["auto", "analytical"] {
        client.query(&format!("set thermocline.path = {path}"));
        assert_eq!(
            client.rows("select span from t order by span"),
            order,
            "{path}"
        );
        assert_eq!(
            client.rows("select span from t where span between '0' and '1 mon' order by 1"),
            order[1..],
            "{path}"
        );
        assert_eq!(
            client.rows("select label, at from t order by at desc, label limit 3"),
            ["NULL|NULL", "a|10:00:00", "b|10:00:00"],
            "{path}"
        );
        assert_eq!(
            client.rows("select address from t where address > '10.0.0.1' order by address"),
            ["10.0.0.2", "::1"],
            "{path}"
        );
    }
}

#[test]
fn defaults_checks_copy_and_prepared_statements_know_them() {
    let server = Server::new();
    let mut client = server.connect();
    client.query(
        "create table t (id int primary key, doc jsonb not null default '{}' check (jsonb_typeof(doc) = 'object'), \
         hash text default upper(md5('a')), tags text[] default array[]::text[])",
    );
    assert_eq!(
        client.rows("insert into t (id) values (1) returning *"),
        ["1|{}|0CC175B9C0F1B6A831C399E269772661|{}"]
    );
    assert!(
        client
            .error("insert into t values (2, '[]')")
            .starts_with("23514")
    );
    client.query("alter table t add column span interval default '1 day', add column at time(2) default '10:00:00.126'");
    assert_eq!(client.rows("select span, at from t"), ["1 day|10:00:00.13"]);
    client.query(
        "prepare p (int, jsonb) as update t set doc = doc || $2 where id = $1 returning doc",
    );
    assert_eq!(
        client.rows("execute p (1, '{\"x\": [1]}')"),
        [r#"{"x": [1]}"#]
    );
    client.copy(
        "copy t (id, doc, tags, span) from stdin",
        &["2\t{\"from\": \"copy\"}\t{a,b}\t01:00:00\n3\t{}\t\\N\t\\N\n"],
    );
    assert_eq!(
        client.rows("select doc ->> 'from', tags[2], span from t where id in (2, 3) order by id"),
        ["copy|b|01:00:00", "NULL|NULL|NULL"]
    );
    client.query("insert into t (id, doc, span) select id + 10, doc || '{\"y\": 1}', span * 2 from t where id < 3");
    assert_eq!(
        client.rows("select id, doc, span from t where id > 10 order by id"),
        [
            r#"11|{"x": [1], "y": 1}|2 days"#,
            r#"12|{"y": 1, "from": "copy"}|02:00:00"#
        ]
    );
    assert_eq!(
        client.rows("select count(*), sum(span), max(at) from t"),
        ["5|3 days 03:00:00|10:00:00.13"]
    );
}

/// What PostgreSQL 15 shows; tables keep `char(n)` without its blanks.
#[test]
fn char_has_its_blanks_on_both_paths() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table q (id int primary key, c char(5), d char(5));
         insert into q values (1, 'ab', 'cd'), (2, null, 'x')",
    );
    for path in ["auto", "analytical"] {
        client.tag(&format!("set thermocline.path = {path}"));
        for (sql, rows) in [
            ("select c, d from q where id = 1", &["ab   |cd   "][..]),
            (
                "select min(c), max(d), octet_length(min(c)) from q",
                &["ab   |x    |5"],
            ),
            (
                "select coalesce(c, 'zz'), coalesce(c, d) from q where id = 1",
                &["ab   |ab   "],
            ),
            (
                "select case when id = 1 then c else 'no' end, greatest(c, d) from q where id = 1",
                &["ab   |cd   "],
            ),
            (
                "select coalesce(c, 'x'), count(*) from q group by 1 order by 1",
                &["ab   |1", "x|1"],
            ),
            (
                "select s.x from (select coalesce(c, 'zz') as x, id from q) s where s.id = 1",
                &["ab   "],
            ),
            (
                "select min(d), c from q group by c having max(d) > 'a' order by c",
                &["cd   |ab   ", "x    |NULL"],
            ),
            ("select id from q where c = 'ab' and id = 1", &["1"]),
        ] {
            assert_eq!(client.rows(sql), rows, "{path}: {sql}");
        }
    }
}

#[test]
fn what_a_number_names_is_shown_on_both_paths() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create type mood as enum ('sad'); create table t (a int primary key, o oid, m mood);
         insert into t values (1, 't'::regclass::oid, 'sad')",
    );
    for path in ["auto", "analytical"] {
        client.tag(&format!("set thermocline.path = {path}"));
        for (query, expected) in [
            // The short path showed the number.
            ("select tableoid::regclass from t", "t"),
            ("select tableoid::regclass::text from t where a = 1", "t"),
            ("select o::regclass from t where a = 1", "t"),
            ("select coalesce(o::regclass, 't') from t", "t"),
            ("select 't'::regclass from t", "t"),
            ("select 'is ' || o::regclass::text from t", "is t"),
            ("select max(o::regclass::text) from t", "t"),
            ("select format_type(o, -1) from t", "???"),
            ("select pg_typeof(m) from t", "mood"),
            ("select count(*) from t where o = 't'::regclass", "1"),
            ("select count(*) from t where o::regclass::text = 't'", "1"),
            ("select count(*) from t where tableoid = 't'::regclass", "1"),
        ] {
            assert_eq!(client.rows(query), [expected], "{path}: {query}");
        }
    }
    let error = client.error("update t set a = 1 returning tableoid::regclass");
    assert!(error.starts_with("0A000 a name of an object"), "{error}");
    assert_eq!(
        client.rows("update t set a = 2 returning tableoid = 't'::regclass"),
        ["t"]
    );
}
