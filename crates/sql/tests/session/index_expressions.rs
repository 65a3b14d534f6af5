//! Indexes over expressions, partial ones, and INCLUDE: what they refuse, what they are found for, how
//! the catalogs show them. What PostgreSQL 15 says is written down here.

use crate::fixture::{Connection, Server};

const PEOPLE: &str =
    "create table people (id int primary key, email text, name varchar(20), gone timestamp, n int)";

fn people(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag(PEOPLE);
    client.tag(
        "insert into people select i, 'P' || i || '@x', 'Name ' || i % 50,
         case when i % 3 = 0 then timestamp '2020-01-01' end, i % 100 from generate_series(1, 3000) i",
    );
    client
}

fn plan(client: &mut Connection, query: &str) -> String {
    client.rows(&format!("explain {query}")).join("\n")
}

#[test]
fn a_key_of_an_expression_is_had_by_one_row() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, email text)");
    client.tag("create unique index on t (lower(email))");
    client.tag("create unique index on t ((a + b))");
    client.tag("insert into t values (1, 2, 'X'), (2, 2, null), (3, 2, null)");
    assert_eq!(
        client.error("insert into t values (7, 7, 'x')"),
        "23505 duplicate key value violates unique constraint \"t_lower_idx\" [detail Key (lower(email))=(x) already exists.]"
    );
    assert_eq!(
        client.error("insert into t values (2, 1, 'y')"),
        "23505 duplicate key value violates unique constraint \"t_expr_idx\" [detail Key ((a + b))=(3) already exists.]"
    );
    client.tag("update t set email = 'Y' where a = 1");
    client.tag("insert into t values (7, 7, 'x')");
    let error = client.error("create unique index again on t ((b > 1))");
    assert!(
        error.starts_with("23505 could not create unique index \"again\" [detail Key ((b > 1))=(t) is duplicated.]"),
        "{error}"
    );
    assert_eq!(
        client.rows("select * from t order by a"),
        ["1|2|Y", "2|2|NULL", "3|2|NULL", "7|7|x"]
    );
}

#[test]
fn a_key_is_had_by_one_row_within_the_predicate() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b text, gone timestamp)");
    client.tag("create unique index u on t (lower(b)) where gone is null and a > 0");
    client.tag(
        "insert into t values (1, 'X', null), (0, 'X', null), (1, 'X', now()), (-1, 'x', null)",
    );
    assert_eq!(
        client.error("insert into t values (2, 'x', null)"),
        "23505 duplicate key value violates unique constraint \"u\" [detail Key (lower(b))=(x) already exists.]"
    );
    // Rows come into it, and leave it.
    let error = client.error("update t set a = 5 where a = 0");
    assert!(error.starts_with("23505"), "{error}");
    client.tag("update t set gone = now() where a = 1");
    client.tag("update t set a = 5 where a = 0");
    let error = client.error("update t set gone = null where a = 1");
    assert!(error.starts_with("23505"), "{error}");
    assert_eq!(
        client.rows("select a from t where gone is null order by a"),
        ["-1", "5"]
    );
    let error = client.error("create unique index on t (lower(b)) where a < 10");
    assert!(error.starts_with("23505"), "{error}");
}

#[test]
fn conflicts_are_told_by_the_index_that_is_meant() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table u (a int primary key, b text, gone timestamp)");
    client.tag("create unique index ui on u (lower(b)) where gone is null");
    client.tag("create unique index uj on u (a) include (b)");
    for sql in [
        "insert into u values (1, 'A') on conflict (lower(b)) do nothing",
        "insert into u values (1, 'A') on conflict (b) where gone is null do nothing",
        "insert into u values (1, 'A') on conflict (a, lower(b)) where gone is null do nothing",
        "insert into u values (1, 'A') on conflict (upper(b)) do nothing",
        "insert into u values (1, 'A') on conflict (lower(b)) where gone is not null do nothing",
    ] {
        let error = client.error(sql);
        assert!(
            error.starts_with("42P10 there is no unique or exclusion constraint matching"),
            "{sql}: {error}"
        );
    }
    let insert = |of: &str| format!("insert into u values (2, 'a') on conflict {of} returning *");
    client
        .tag("insert into u values (1, 'A') on conflict (lower(b)) where gone is null do nothing");
    let update = "(lower(b)) where gone is null do update set b = 'Q' || excluded.b";
    assert_eq!(client.rows(&insert(update)), ["1|Qa|NULL"]);
    client.tag("update u set b = 'A'");
    assert_eq!(
        client.rows(&insert(
            "((lower(b))) where gone is null and a > 1 do nothing"
        )),
        [""; 0]
    );
    assert_eq!(client.rows(&insert("do nothing")), [""; 0]);
    let error = client.error(&insert("(a) where a > 5 do nothing"));
    assert!(error.starts_with("23505"), "{error}");
    let error = client.error(&insert("(lower(b)) where gone is null and zz do nothing"));
    assert!(error.starts_with("42703"), "{error}");
    let error = client.error(&insert("on constraint ui do nothing"));
    assert!(error.starts_with("42704"), "{error}");
}

#[test]
fn what_an_index_cannot_be_made_of() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type mood as enum ('low', 'high')");
    client.tag(
        "create table t (a int, b text, m mood, j jsonb, g int generated always as (a + 1) stored)",
    );
    client.tag("insert into t values (1, 'x'), (0, 'y')");
    for (sql, error) in [
        (
            "create index on t (random())",
            "42P17 functions in index expression must be marked IMMUTABLE",
        ),
        (
            "create index on t ((now()))",
            "42P17 functions in index expression",
        ),
        (
            "create index on t (a) where random() > 0",
            "42P17 functions in index predicate must be marked IMMUTABLE",
        ),
        (
            "create index on t ((sum(a)))",
            "42803 aggregate functions are not allowed in index expressions",
        ),
        (
            "create index on t (a) where sum(a) > 0",
            "42803 aggregate functions are not allowed in index predicates",
        ),
        (
            "create index on t ((row_number() over ()))",
            "42P20 window functions are not allowed in index expressions",
        ),
        (
            "create index on t (generate_series(1, a))",
            "0A000 set-returning functions are not allowed in index expressions",
        ),
        (
            "create index on t (a) where (select true)",
            "0A000 cannot use subquery in index predicate",
        ),
        (
            "create index on t (a) where a",
            "42804 argument of WHERE must be type boolean, not type integer",
        ),
        (
            "create index on t (nosuch(a))",
            "42883 function nosuch(integer) does not exist",
        ),
        (
            "create index on t ((zz + 1))",
            "42703 column \"zz\" does not exist",
        ),
        (
            "create index on t (a) where zz > 1",
            "42703 column \"zz\" does not exist",
        ),
        (
            "create index on t (a) include (zz)",
            "42703 column \"zz\" does not exist",
        ),
        (
            "create index on t (a) include (lower(b))",
            "0A000 expressions are not supported in included columns",
        ),
        (
            "create index on t using hash (a) include (b)",
            "0A000 access method \"hash\" does not support included columns",
        ),
        (
            "create index on t (a) include (b desc)",
            "42P17 including column does not support ASC/DESC options",
        ),
        ("create index on t ((1 / a))", "22012 division by zero"),
        (
            "create index on t (a) where 1 / a > 0",
            "22012 division by zero",
        ),
        (
            "create index on t ((j -> 'a'))",
            "0A000 an index over an expression of type jsonb",
        ),
        (
            "create index on t ((g + 1))",
            "0A000 an index expression over generated column \"g\"",
        ),
        (
            "create index on t ((t))",
            "0A000 a whole row is not supported in index expressions",
        ),
        (
            "create index on t ((ctid::text))",
            "0A000 index creation on system columns",
        ),
    ] {
        let shown = client.error(sql);
        assert!(shown.starts_with(error), "{sql}: {shown}");
    }
    let error = client.error("create index on t (coalesce(b::char(3), 'x'))");
    assert!(
        error.starts_with("0A000 an index over an expression of type character"),
        "{error}"
    );
    // Nothing is left behind, and what is beyond a predicate is not computed.
    let columns = "select count(*) from pg_attribute where attrelid = 't'::regclass and attnum > 0";
    assert_eq!(client.rows(columns), ["5"]);
    client.tag("create index on t ((1 / a)) where a <> 0");
    client.tag("create index on t (a) where m = 'low'");
    client.tag("create index on t (coalesce(m, 'high'::mood)) where m > 'low'::mood");
    client.tag("insert into t values (0, 'z', 'low')");
    let many = (0..32).map(|n| format!("(a + {n})")).collect::<Vec<_>>();
    client.tag(&format!(
        "create index on t ({}) where a > 1",
        many.join(", ")
    ));
    let error = client.error(&format!("create index on t ({}, b)", many.join(", ")));
    assert!(
        error.starts_with("54011 cannot use more than 32 columns"),
        "{error}"
    );
    // A type that only an index names.
    client.tag("create index by_mood on t ((case when a > 0 then 'low'::mood end))");
    let error = client.error("drop type mood");
    assert!(error.starts_with("2BP01"), "{error}");
    let error = client.error("alter type mood rename value 'low' to 'lower'");
    assert!(
        error.starts_with("0A000 cannot rename label \"low\""),
        "{error}"
    );
    client.tag("alter table t drop column m; drop type mood cascade");
    assert_eq!(
        client.rows("select count(*) from pg_indexes where indexname = 'by_mood'"),
        ["0"]
    );
    // A row for which it cannot be computed is refused.
    client.tag("create index on t ((10 / (a - 5)))");
    let error = client.error("insert into t values (5, 'five')");
    assert!(error.starts_with("22012"), "{error}");
    let error = client.error("update t set a = 5 where a = 1");
    assert!(error.starts_with("22012"), "{error}");
    assert_eq!(
        client.rows("select a, b from t order by a, b"),
        ["0|y", "0|z", "1|x"]
    );
}

#[test]
fn queries_find_what_is_indexed() {
    let server = Server::new();
    let mut client = people(&server);
    client.tag("create index lower_email on people (lower(email))");
    client.tag("create index on people ((n * 2), lower(name)) where gone is null");
    client.tag("create index on people using hash (upper(name))");
    for (query, index) in [
        (
            "select id from people where lower(email) = 'p7@x'",
            "lower_email",
        ),
        (
            "select id from people p where 'p7@x' = lower(p.email)",
            "lower_email",
        ),
        (
            "select id from people where lower(email) in ('p7@x', 'p8@x')",
            "lower_email",
        ),
        (
            "select id from people where lower(email) > 'p999' order by lower(email) limit 3",
            "lower_email",
        ),
        (
            "select id from people order by lower(email) limit 3",
            "lower_email",
        ),
        (
            "select id from people where upper(name) = 'NAME 7'",
            "people_upper_idx",
        ),
        (
            "select id from people where n * 2 = 14 and gone is null and id > 5",
            "people_expr_lower_idx",
        ),
        (
            "select id from people where n * 2 = 14 and lower(name) = 'name 7' and gone is null",
            "people_expr_lower_idx",
        ),
        (
            "select count(*) from people where lower(email) = 'p7@x'",
            "lower_email",
        ),
        (
            "update people set n = n where lower(email) = 'p7@x'",
            "lower_email",
        ),
        (
            "delete from people where lower(email) = 'nobody'",
            "lower_email",
        ),
    ] {
        let shown = plan(&mut client, query);
        assert!(shown.contains(index), "{query}: {shown}");
        assert!(!shown.contains("dropped"), "{query}: {shown}");
    }
    for query in [
        "select id from people where n * 2 = 14",
        "select id from people where n * 2 = 14 and gone is not null",
        "select id from people where n * 2 = 14 or gone is null",
        "select id from people where upper(email) = 'P7@X'",
    ] {
        let shown = plan(&mut client, query);
        assert!(!shown.contains("idx"), "{query}: {shown}");
    }
    assert_eq!(
        client.rows("select id, email, lower(email) from people where lower(email) = 'p7@x'"),
        ["7|P7@x|p7@x"]
    );
    client.tag("create table mails (mail text)");
    client.tag("insert into mails select 'p' || i || '@x' from generate_series(1, 5) i");
    for join in ["join", "left join"] {
        let query = format!("select id from mails {join} people on lower(email) = mail");
        let shown = plan(&mut client, &query);
        assert!(shown.contains("by lower_email (keys of a join)"), "{shown}");
        assert_eq!(
            client.rows(&format!("{query} order by 1")),
            ["1", "2", "3", "4", "5"]
        );
    }
    // What an outer join adds has no value, whatever is computed of NULL.
    client.tag("create index on people ((coalesce(n, -1)))");
    assert_eq!(
        client.rows("select v from (values (1), (5000)) v (v) left join people on id = v where coalesce(n, -1) = -1"),
        ["5000"]
    );
}

#[test]
fn a_partial_index_is_used_where_the_query_implies_it() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, k int, x int, s text, on_it boolean, d date)");
    client.tag("insert into t select i, i % 500, i % 40, 's' || i % 5, i % 7 = 0, date '2020-01-01' + i from generate_series(1, 3000) i");
    for (predicate, implied, not) in [
        (
            "x > 3",
            &[
                "x > 5",
                "x >= 4",
                "x = 9",
                "x > 3",
                "5 < x",
                "x in (7, 9)",
                "x = 4 or x = 5",
            ][..],
            &[
                "x > 2",
                "x >= 3",
                "x <> 3",
                "x < 9",
                "x = 3",
                "x in (7, 1)",
                "x = 4 or k > 5",
                "x > 5.5",
            ][..],
        ),
        (
            "x <= 3",
            &["x < 3", "x = 3", "x <= 3", "x <= 2 and s = 'a'"][..],
            &["x < 4", "x <= 4", "x is null"][..],
        ),
        (
            "x <> 3",
            &["x < 3", "x = 4", "x > 3", "x >= 4", "x <> 3"][..],
            &["x <= 3", "x <> 4", "x >= 3"][..],
        ),
        (
            "x is not null",
            &[
                "x = 3",
                "x < 9",
                "x + 1 = 4",
                "x in (1, 2)",
                "x is not null",
                "abs(x) > 7",
            ][..],
            &[
                "coalesce(x, 1) = 1",
                "x is null",
                "x is distinct from 3",
                "x = 3 or k > 7",
            ][..],
        ),
        (
            "s = 's1'",
            &["s = 's1'", "s in ('s1')"][..],
            &["s = 's2'", "s in ('s1', 's2')", "s > 's0'"][..],
        ),
        (
            "s in ('s1', 's2')",
            &["s = 's1'", "s in ('s2')", "s in ('s2', 's1')"][..],
            &["s = 's3'", "s in ('s1', 's3')"][..],
        ),
        (
            "x > 3 and s = 's1'",
            &["s = 's1' and x = 5", "x > 4 and d is null and s = 's1'"][..],
            &["x = 5", "s = 's1'"][..],
        ),
        (
            "x > 30 or s = 's1'",
            &[
                "x > 35",
                "s = 's1'",
                "x > 30 or s = 's1'",
                "x = 31 or s = 's1'",
            ][..],
            &["x > 20", "x > 35 or s = 's2'"][..],
        ),
        (
            "on_it",
            &["on_it", "on_it = true", "on_it and x > 3"][..],
            &["not on_it", "on_it = false", "on_it is not true", "x > 3"][..],
        ),
        (
            "not on_it",
            &["not on_it", "on_it = false"][..],
            &["on_it"][..],
        ),
        (
            "d > date '2024-01-01'",
            &["d > date '2024-02-01'", "d = date '2025-01-01'"][..],
            &["d > date '2023-12-31'", "d <> date '2020-05-05'"][..],
        ),
    ] {
        let asked = |given: &str| format!("select id from t where ({given}) and k = 7 order by id");
        let all: Vec<&str> = implied.iter().chain(not).copied().collect();
        let before: Vec<_> = all.iter().map(|given| client.rows(&asked(given))).collect();
        client.tag(&format!(
            "create index partial_idx on t (k) where {predicate}"
        ));
        for (given, before) in all.iter().zip(before) {
            let shown = plan(&mut client, &asked(given));
            assert_eq!(
                shown.contains("partial_idx"),
                implied.contains(given),
                "{predicate}: {given}: {shown}"
            );
            assert_eq!(client.rows(&asked(given)), before, "{predicate}: {given}");
        }
        client.tag("drop index partial_idx");
    }
}

#[test]
fn catalogs_show_them() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, email text, d date, s text)");
    client.tag("create unique index on t (lower(email), (a + b)) where a > 0");
    client.tag("create index on t (a) include (b, d)");
    client
        .tag("create index on t ((a is null), coalesce(a, b), (a::text), upper(email), upper(s))");
    client.tag("create index on t using hash (lower(email)) where d is null and s = 'open'");
    let definitions =
        client.rows("select indexdef from pg_indexes where tablename = 't' order by 1");
    let shown = [
        "CREATE INDEX t_a_b_d_idx ON public.t USING btree (a) INCLUDE (b, d)",
        "CREATE INDEX t_expr_coalesce_a_upper_upper1_idx ON public.t USING btree (((a IS NULL)), COALESCE(a, b), (a::text), upper(email), upper(s))",
        "CREATE INDEX t_lower_idx ON public.t USING hash (lower(email)) WHERE (d IS NULL AND s = 'open')",
        "CREATE UNIQUE INDEX t_lower_expr_idx ON public.t USING btree (lower(email), ((a + b))) WHERE (a > 0)",
    ];
    assert_eq!(definitions.len(), shown.len());
    for (given, shown) in definitions.iter().zip(shown) {
        assert_eq!(given.to_lowercase(), shown.to_lowercase());
    }
    assert_eq!(
        client.rows(
            "select c.relname, i.indnatts, i.indnkeyatts, i.indkey, pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid)
             from pg_index i join pg_class c on c.oid = indexrelid where indrelid = 't'::regclass order by 1"
        ),
        [
            "t_a_b_d_idx|3|1|1 2 4|NULL|NULL",
            "t_expr_coalesce_a_upper_upper1_idx|5|5|0 0 0 0 0|(a IS NULL), COALESCE(a, b), (a::text), upper(email), upper(s)",
            "t_lower_expr_idx|2|2|0 0|lower(email), (a + b)|(a > 0)",
            "t_lower_idx|1|1|0|lower(email)|(d IS NULL AND s = 'open')",
        ]
        .map(|row| match row.matches('|').count() {
            4 => format!("{row}|NULL"),
            _ => row.to_owned(),
        })
    );
    assert_eq!(
        client.rows("select attname, attnum, atttypid::regtype from pg_attribute where attrelid = 't_lower_expr_idx'::regclass order by 2"),
        ["lower|1|text", "expr|2|integer"]
    );
    // No statement sees what is computed for them.
    assert_eq!(client.rows("select * from t"), [""; 0]);
    client.tag("insert into t values (1, 2, 'E', null, 'open')");
    assert_eq!(client.rows("table t"), ["1|2|E|NULL|open"]);
    assert_eq!(client.rows("select t from t"), ["(1,2,E,,open)"]);
    assert_eq!(
        client.rows("select to_json(t) from t"),
        ["{\"a\":1,\"b\":2,\"email\":\"E\",\"d\":null,\"s\":\"open\"}"]
    );
    assert_eq!(
        client.rows("delete from t returning *"),
        ["1|2|E|NULL|open"]
    );
    let error = client.error("insert into t values (1, 2, 'E', null, 'open', 5)");
    assert!(error.starts_with("42601"), "{error}");
    let seen = "select string_agg(column_name, ' ' order by ordinal_position) from information_schema.columns where table_name = 't'";
    assert_eq!(client.rows(seen), ["a b email d s"]);
    assert_eq!(
        client.rows("select count(*) from pg_attribute where attrelid = 't'::regclass and attnum > 0 and not attisdropped"),
        ["5"]
    );
    assert_eq!(
        client.rows("select count(*) from pg_attrdef where adrelid = 't'::regclass"),
        ["0"]
    );
    client.tag("create table like_t (like t including all)");
    let count = "select count(*) from pg_indexes where tablename = 'like_t'";
    assert_eq!(client.rows(count), ["4"]);
    client.tag("alter table t add column z int default 7");
    client.tag("insert into t (a, email) values (3, 'Three')");
    assert_eq!(
        client.rows("select * from t where lower(email) = 'three'"),
        ["3|NULL|Three|NULL|NULL|7"]
    );
    let copied = client.query("copy t to stdout");
    assert!(
        copied.contains(&"d 3\t\\N\tThree\t\\N\t\\N\t7\n".to_owned()),
        "{copied:?}"
    );
    client.copy("copy t from stdin", &["4\t1\tFour\t\\N\topen\t9\n"]);
    assert_eq!(
        client.rows("select z from t where lower(email) = 'four' and a > 0"),
        ["9"]
    );
}

#[test]
fn who_may_read_some_columns_reads_by_these() {
    let server = Server::new();
    let mut client = people(&server);
    client.tag("create index on people (lower(email))");
    client.tag("create unique index on people (lower(name), id) where n > 5");
    client.tag("create role reader; grant select (id, email) on people to reader; grant insert on people to reader");
    client.tag("set role reader");
    assert_eq!(
        client.rows("select id from people where lower(email) = 'p7@x'"),
        ["7"]
    );
    let error = client.error("select id from people where lower(name) = 'x'");
    assert!(error.starts_with("42501"), "{error}");
    let error = client.error("insert into people values (1, 'e', 'Name 1', null, 9) on conflict (lower(name), id) where n > 5 do nothing");
    assert!(error.starts_with("42501"), "{error}");
    client.tag("reset role; grant select on people to reader; set role reader");
    let shown = plan(
        &mut client,
        "select id from people where lower(email) = 'p7@x'",
    );
    assert!(shown.contains("people_lower_idx"), "{shown}");
    client.tag("reset role; drop owned by reader; drop role reader");
}

#[test]
fn keys_include_columns() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, c text, d int, primary key (a) include (c), unique (b) include (c, d))");
    let shown = "select conname, pg_get_constraintdef(oid), conkey from pg_constraint \
                 where conrelid = $$NAME$$::regclass order by 1";
    let of = |name: &str| shown.replace("$$NAME$$", &format!("'{name}'"));
    assert_eq!(
        client.rows(&of("t")),
        [
            "t_b_c_d_key|UNIQUE (b) INCLUDE (c, d)|{2}",
            "t_pkey|PRIMARY KEY (a) INCLUDE (c)|{1}",
        ]
    );
    // Only the key's columns are unique, and found for conflicts.
    client.tag("insert into t values (1, 1, 'x', 1)");
    assert!(
        client
            .error("insert into t values (1, 2, 'y', 2)")
            .contains("23505")
    );
    assert!(
        client
            .error("insert into t values (2, 1, 'y', 2)")
            .contains("23505")
    );
    client.tag("insert into t values (2, 2, 'x', 1)");
    client.tag("insert into t values (3, 2, 'z', 9) on conflict (b) do update set d = excluded.d");
    assert_eq!(
        client.rows("select * from t order by a"),
        ["1|1|x|1", "2|2|x|9"]
    );
    client.tag("create table u (like t including all)");
    assert_eq!(
        client.rows(&of("u")),
        [
            "u_b_c_d_key|UNIQUE (b) INCLUDE (c, d)|{2}",
            "u_pkey|PRIMARY KEY (a) INCLUDE (c)|{1}",
        ]
    );
    client.tag("alter table u add constraint both_of unique (a, b) include (d)");
    client.tag("alter table u rename column d to e");
    let last = "select pg_get_constraintdef(oid) from pg_constraint where conname = 'both_of'";
    assert_eq!(client.rows(last), ["UNIQUE (a, b) INCLUDE (e)"]);
    // A column that goes takes along what names it.
    client.tag("alter table u drop column e");
    assert_eq!(
        client.rows(&of("u")),
        ["u_pkey|PRIMARY KEY (a) INCLUDE (c)|{1}"]
    );
    let missing = "create table v (a int, unique (a) include (nothing))";
    assert!(client.error(missing).contains("42703"));
}
