//! Statements that DataFusion runs give PostgreSQL's rows, types and errors.

use crate::fixture::{Connection, Server};

/// DataFusion's tasks run on a runtime, as they do in the server.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("the runtime starts")
}

fn with_tables(test: impl FnOnce(&mut Connection)) {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (a integer primary key, b bigint, n numeric(12,2), u numeric, \
         f double precision, s varchar(10), c char(5), d date, ts timestamp, tz timestamptz, \
         bo boolean, si smallint)",
    );
    client.tag("create table o (id integer, a integer, amount numeric(15,2))");
    client.tag(
        "insert into t values \
         (1, 10, 1.50, 1.5, 0.5, 'one', 'ab', '2024-01-31', '2024-01-31 10:00:00', \
          '2024-01-31 10:00:00+00', true, 1), \
         (2, 20, 2.25, 2.25, 1.5, 'two', 'abc', '2024-02-29', '2024-02-29 11:30:00.5', \
          '2024-02-29 11:30:00+00', false, 2), \
         (3, 30, null, 3, 2.5, 'three', null, '1999-12-31', '1999-12-31 23:59:59', \
          '1999-12-31 23:59:59+00', null, 3), \
         (4, null, 100.00, null, 1e20, null, 'x', null, null, null, true, null), \
         (5, 9223372036854775807, -7.77, 0.001, -0.25, 'five', 'ab', '2024-01-31', \
          '2024-01-31 10:00:00', '2024-01-31 10:00:00+00', false, 5)",
    );
    client.tag("insert into o values (1, 1, 10.00), (2, 1, 20.00), (3, 2, 5.55), (4, 7, 1.00)");
    test(&mut client);
}

/// Each query and the rows PostgreSQL 15 gives it.
const ROWS: &[(&str, &[&str])] = &[
    (
        "select t.a, t.b, n, u, f, s, c, d, ts, tz, bo, si from t join (select 1 as a) x on x.a = t.a",
        &["1|10|1.50|1.5|0.5|one|ab   |2024-01-31|2024-01-31 10:00:00|2024-01-31 10:00:00+00|t|1"],
    ),
    (
        "select count(*), count(b), sum(a), sum(b), sum(n), sum(u), sum(f), sum(si) from t group by 1 = 1",
        &["5|4|15|9223372036854775867|95.98|6.751|1e+20|11"],
    ),
    (
        "select avg(a), avg(n), avg(f), avg(si), avg(u) from t group by 1 = 1",
        &["3.0000000000000000|23.9950000000000000|2e+19|2.7500000000000000|1.6877500000000000"],
    ),
    (
        "select t.a, sum(amount) from t left join o on o.a = t.a group by t.a order by 2 desc, 1",
        &["3|NULL", "4|NULL", "5|NULL", "1|30.00", "2|5.55"],
    ),
    (
        "select s, count(*) from t group by s order by s nulls first limit 2",
        &["NULL|1", "five|1"],
    ),
    (
        "select a, row_number() over (order by a desc), sum(a) over (order by a) from t order by a",
        &["1|5|1", "2|4|3", "3|3|6", "4|2|10", "5|1|15"],
    ),
    (
        "select a from t where exists (select 1 from o where o.a = t.a) order by a",
        &["1", "2"],
    ),
    (
        "select a from t where a not in (select a from o) order by a",
        &["3", "4", "5"],
    ),
    (
        "with x as (select a, n from t where a < 3) select x.a, y.a from x, x y order by 1, 2",
        &["1|1", "1|2", "2|1", "2|2"],
    ),
    (
        "select a from t union select a from o order by a",
        &["1", "2", "3", "4", "5", "7"],
    ),
    (
        "select d + 1, d - date '2024-01-01', extract(year from d) from t, o where o.id = 1 and t.a = 2",
        &["2024-03-01|59|2024"],
    ),
    (
        "select ts - timestamp '2024-01-01 00:00:00' from t, o where t.a = 1 and o.id = 1",
        &["30 days 10:00:00"],
    ),
    (
        "select t.a / 2, t.a % 2, n / 2, 100.00 * n from t, o where o.id = 1 and t.a in ('1', '2') order by 1, t.a",
        &[
            "0|1|0.75000000000000000000|150.0000",
            "1|0|1.12500000000000000000|225.0000",
        ],
    ),
    (
        "select cast(f as int), n::text, s || t.a, c || '|' from t, o where o.id = 1 and t.a = 3",
        &["2|NULL|three3|NULL"],
    ),
    (
        "select g, g * 2 from generate_series(1, 3) as g order by g desc",
        &["3|6", "2|4", "1|2"],
    ),
    (
        "select relname, (select count(*) from t) from pg_class where relname = 't'",
        &["t|5"],
    ),
    (
        "select string_agg(s, ',' order by s) from t group by 1 = 1",
        &["five,one,three,two"],
    ),
];

#[test]
fn rows_are_postgresqls() {
    with_tables(|client| {
        for (sql, expected) in ROWS {
            assert_eq!(client.rows(sql), *expected, "{sql}");
        }
    });
}

#[test]
fn columns_have_postgresqls_names_and_types() {
    with_tables(|client| {
        let columns = |client: &mut Connection, sql: &str| client.query(sql).swap_remove(0);
        assert_eq!(
            columns(
                client,
                "select count(*), sum(t.a), sum(b), avg(t.a), max(s), min(d), 1 + 1, n / 2, t.s \
                 from t join o on o.a = t.a group by n, s"
            ),
            "T count:20 sum:20 sum:1700 avg:1700 max:25 min:1082 ?column?:23 ?column?:1700 s:1043"
        );
        assert_eq!(
            columns(
                client,
                "select t.a, o.a, c, case when bo then 1 else 2 end from t, o"
            ),
            "T a:23 a:23 c:1042 case:23"
        );
    });
}

#[test]
fn errors_are_postgresqls() {
    with_tables(|client| {
        for (sql, expected) in [
            ("select t.a / 0 from t, o", "22012 division by zero"),
            ("select n / 0 from t, o", "22012 division by zero"),
            (
                "select t.a * 2000000000 from t, o",
                "22003 integer out of range",
            ),
            ("select b + 1 from t, o", "22003 bigint out of range"),
            (
                "select nope from t, o",
                "42703 column \"nope\" does not exist",
            ),
            (
                "select t.nope from t, o",
                "42703 column t.nope does not exist",
            ),
            (
                "select 1 from t, nosuch",
                "42P01 relation \"nosuch\" does not exist",
            ),
            (
                "select a from t, o",
                "42702 column reference \"a\" is ambiguous",
            ),
            (
                "select s from t, o where s > 5",
                "42883 operator does not exist: character varying > integer",
            ),
            (
                "select 1 from t, o where t.a = 'x'",
                "22P02 invalid input syntax for type integer: \"x\"",
            ),
        ] {
            let error = client.error(sql);
            assert!(error.starts_with(expected), "{sql}: {error}");
        }
        // The session goes on.
        assert_eq!(client.rows("select count(*) from t, o"), ["20"]);
    });
}

#[test]
fn parameters_take_the_type_of_what_they_meet() {
    with_tables(|client| {
        client
            .parse(
                "q",
                "select t.a, o.id from t join o on o.a = t.a where n > $1 and s = $2",
                &[],
            )
            .expect("it parses");
        let described = client.describe("q").expect("it is described");
        assert_eq!(described[0], "t 1700 25");
        client
            .bind("", "q", &[Some("2"), Some("two")])
            .expect("it is bound");
        let answers = client.execute("", 0).expect("it runs");
        assert_eq!(answers[0], "D 2|3");
        client.sync().expect("the pipeline ends");
    });
}

#[test]
fn a_transaction_sees_its_own_rows_in_an_analytical_query() {
    with_tables(|client| {
        client.tag("begin");
        client.tag("insert into o values (9, 5, 1.00)");
        assert_eq!(
            client.rows("select t.a from t join o on o.a = t.a where o.id = 9"),
            ["5"]
        );
        client.tag("rollback");
        assert!(
            client
                .rows("select t.a from t join o on o.a = t.a where o.id = 9")
                .is_empty()
        );
    });
}

#[test]
fn a_large_result_streams_and_is_complete() {
    with_tables(|client| {
        client.tag("create table l (k bigint primary key, v text)");
        client.tag("insert into l select g, 'value ' || g from generate_series(1, 30000) as g");
        assert_eq!(
            client.rows("select count(*), sum(k), min(v) from l, o where o.id = 1"),
            ["30000|450015000|value 1"]
        );
        let rows = client.rows("select k from l join o on o.id = 1 order by k desc");
        assert_eq!(rows.len(), 30000);
        assert_eq!((rows[0].as_str(), rows[29999].as_str()), ("30000", "1"));
    });
}

#[test]
fn our_views_tell_of_memory_tables_devices_and_policy() {
    with_tables(|client| {
        let memory = client.rows("select name from thermocline_memory where bytes > 0 order by 1");
        assert!(memory.contains(&"limit".to_owned()), "{memory:?}");
        assert_eq!(
            client.rows(
                "select relname, tuples_hot, tuples_cold from thermocline_tables order by relname"
            ),
            ["o|4|0", "t|5|0"]
        );
        assert_eq!(
            client.rows("select count(*) from thermocline_devices"),
            ["1"]
        );
        assert_eq!(
            client.rows("select value from thermocline_policy where name = 'retrieval'"),
            ["restart"]
        );
        assert_eq!(
            client.rows("select part, unit, done, total, under_way from thermocline_recovery"),
            [
                "partitions|partitions|4|4|f",
                "images|bytes|0|0|f",
                "log|bytes|0|0|f",
                "settling|NULL|NULL|NULL|f",
                "warm-up|sweeps|0|16|f"
            ]
        );
    });
}
