//! Functions of SQL: made, called on every path, replaced, dropped.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn a_call_is_what_the_body_says() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, v int);
         insert into t select n, n * 10 from generate_series(1, 20) n;
         create function double_it(bigint) returns bigint language sql immutable return $1 * 2;
         create function plus(a int, b int default 5) returns int language sql as 'select a + b';
         create function greatest_v() returns int language sql stable as 'select max(v) from t';
         create function v_of(wanted int) returns int language sql stable
             as $$ select v from t where t.id = wanted $$;
         create function below(int) returns setof t language sql stable
             as 'select * from t where id < $1 order by id';
         create function pairs(n int) returns table (a int, b text) language sql
             as $$ select i, 'n' || i from generate_series(1, n) i $$;
         create function known(text) returns int strict language sql as 'select 1';
         create function first_of(anyarray) returns anyelement language sql as 'select $1[1]'",
    );
    for (query, expected) in [
        ("select double_it(21)", &["42"][..]),
        ("select double_it(v) from t where id = 3", &["60"]),
        ("select sum(double_it(v)) from t", &["4200"]),
        (
            "select plus(1), plus(1, 2), plus(b => 3, a => 4)",
            &["6|3|7"],
        ),
        ("select greatest_v()", &["200"]),
        ("select id from t where v = greatest_v()", &["20"]),
        ("select v_of(4), v_of(99)", &["40|NULL"]),
        ("select sum(v_of(id)) from t where id < 4", &["60"]),
        ("select id, v from below(3)", &["1|10", "2|20"]),
        (
            "select t.id, b.id from t, below(t.id) b where t.id = 3",
            &["3|1", "3|2"],
        ),
        ("select * from pairs(2)", &["1|n1", "2|n2"]),
        ("select p.b from pairs(2) as p where a = 2", &["n2"]),
        ("select known('x'), known(null)", &["1|NULL"]),
        (
            "select first_of(array[7, 8]), first_of(array['a'])",
            &["7|a"],
        ),
        ("select public.plus(1)", &["6"]),
        // A value that is made anew each time is made once.
        (
            "select plus(x, x) is not null from (select random()::int x) s",
            &["t"],
        ),
    ] {
        assert_eq!(client.rows(query), expected, "{query}");
    }
    client.tag("insert into t values (21, double_it(100)::int), (22, plus(1, 1))");
    client.tag("update t set v = plus(v) where id = v_of(1) / 10 + 20");
    client.tag("delete from t where id = plus(12, 10)");
    assert_eq!(client.rows("select id, v from t where id > 20"), ["21|205"]);
}

#[test]
fn functions_are_replaced_shown_and_dropped() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create function f(int) returns int language sql as 'select $1 + 1'");
    client.parse("p", "select f(1)", &[]).unwrap();
    client.bind("", "p", &[]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D 2", "C SELECT 1"]);
    client.sync().unwrap();
    client.tag("create or replace function f(int) returns int language sql as 'select $1 + 2'");
    client.bind("", "p", &[]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D 3", "C SELECT 1"]);
    client.sync().unwrap();
    client.tag("create function f(text) returns text language sql as $$ select $1 || '!' $$");
    assert_eq!(client.rows("select f(1), f('a'::text)"), ["3|a!"]);
    assert_eq!(
        client.rows(
            "select proname, pronargs, prorettype::regtype, prosrc from pg_proc \
             where pronamespace = 'public'::regnamespace and proargtypes[0] = 'int'::regtype"
        ),
        ["f|1|integer|select $1 + 2"]
    );
    for (statement, expected) in [
        (
            "create function f(int) returns int language sql as 'select 1'",
            "42723 function \"f\" already exists with same argument types",
        ),
        (
            "create or replace function f(int) returns text language sql as 'select 1'",
            "42P13",
        ),
        (
            "create function g() returns int language sql as 'select a'",
            "42703",
        ),
        (
            "create function g() returns int language sql as 'select $1'",
            "42P02",
        ),
        (
            "create function g() returns int language sql as $$ select 'x'::text $$",
            "42P13 return type mismatch in function declared to return integer",
        ),
        (
            "create function g() returns int language sql as 'select 1, 2'",
            "42P13",
        ),
        (
            "create function g() returns int language plperl as 'begin end'",
            "0A000 functions of language plperl are not supported",
        ),
        (
            "create function g() returns int language sql as 'delete from t'",
            "42P13 return type mismatch in function declared to return integer",
        ),
        ("drop function f", "42725 function name \"f\" is not unique"),
        (
            "drop function f(date)",
            "42883 function f(date) does not exist",
        ),
        ("select f(now())", "42883"),
        ("select f(1), f(2) from f(1, 2)", "42883"),
    ] {
        let error = client.error(statement);
        assert!(error.starts_with(expected), "{statement}: {error}");
    }
    let long = " ".repeat(1 << 20);
    let long = format!("create function g() returns int language sql as 'select 1 --{long}'");
    assert!(client.error(&long).starts_with("54000"));
    client.tag("drop function if exists nothing(int)");
    // What a rollback takes away is not there.
    client.tag("begin; drop function f(int); rollback");
    assert_eq!(client.rows("select f(1)"), ["3"]);
    client.tag("drop function f(int), f(text)");
    assert!(client.error("select f(1)").starts_with("42883"));
    client.tag("create type pair as (a int, b int)");
    client.tag("create function of_pair(pair) returns int language sql as 'select $1.a + $1.b'");
    client.tag("create function to_pair(a int) returns pair language sql as 'select a, a + 1'");
    assert_eq!(
        client.rows("select of_pair(to_pair(4)), (to_pair(1)).b"),
        ["9|2"]
    );
    assert!(client.error("drop type pair").starts_with("2BP01"));
}

#[test]
fn functions_in_each_other_end() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create function f(int) returns int language sql as 'select 1'");
    client.tag(
        "create or replace function f(int) returns int language sql \
         as 'select case when $1 = 0 then 0 else f($1 - 1) + f($1 - 2) end'",
    );
    assert_eq!(client.rows("select f(0)"), ["0"]);
    let error = client.error("select f(3)");
    assert!(error.starts_with("54001 "), "{error}");
    // Each of them twice as many calls as the one before.
    client.tag("create function f0(int) returns int language sql as 'select $1 + 1'");
    let create = |at: u32| {
        let below = at - 1;
        format!(
            "create function f{at}(int) returns int language sql \
             as 'select f{below}($1) + f{below}($1)'"
        )
    };
    for at in 1..12 {
        client.tag(&create(at));
    }
    assert_eq!(client.rows("select f5(1)"), ["64"]);
    assert!(client.error(&create(12)).starts_with("54001"));
    // What is given is computed once, however often it is named.
    client.tag("create function twice(int) returns int language sql as 'select $1 + $1'");
    let nested = format!("{}id{}", "twice(".repeat(10), ")".repeat(10));
    assert_eq!(
        client.rows(&format!("select {nested} from (values (1), (2)) t (id)")),
        ["1024", "2048"]
    );
}

#[test]
fn functions_outlive_a_crash_and_others_definitions() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let (mut first, mut second) = (server.connect(), server.connect());
    // Each is made in a catalog that has not the other.
    first.tag("begin; create function one() returns int language sql as 'select 1'");
    second.tag("begin; create function two() returns int language sql as 'select 2'");
    second.tag("create function gone() returns int language sql as 'select 3'");
    first.tag("commit");
    second.tag("drop function gone(); commit");
    first.tag("checkpoint");
    first.tag("create or replace function one() returns int language sql as 'select 11'");
    drop((first, second));
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows("select one(), two()"), ["11|2"]);
    assert!(client.error("select gone()").starts_with("42883"));
    assert!(client.error("drop schema public").starts_with("2BP01"));
}

#[test]
fn who_calls_needs_the_rights_of_the_body() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table secret (a int); insert into secret values (7); create role r login");
    client.tag("create function peek() returns int language sql as 'select a from secret'");
    client.tag("grant create on schema public to r");
    let mut other = server.connect();
    other.tag("set role r");
    assert!(other.error("select peek()").starts_with("42501"));
    assert!(other.error("drop function peek()").starts_with("42501"));
    let replace = "create or replace function peek() returns int language sql as 'select 1'";
    assert!(other.error(replace).starts_with("42501"));
    other.tag("create function own() returns int language sql as 'select 1'");
    assert!(client.error("drop role r").starts_with("2BP01"));
    client.tag("drop owned by r");
    assert!(client.error("select own()").starts_with("42883"));
}

#[test]
fn out_arguments_are_the_columns_of_a_row() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, v int); insert into t values (1, 10), (2, 20);
         create type pair as (a numeric(5,1), b varchar(3));
         create function two_of(out a int, out b text) language sql as $$ select 1, 'x'::text $$;
         create function around(n int, out below int, out int) language sql
             as 'select $1 - 1, $1 + 1';
         create function of_t(wanted int, out id int, out v int) language sql
             as 'select id, v from t where t.id = wanted';
         create function strictly(n int, out a int, out b int) strict language sql
             as 'select $1, $1';
         create function dup(f1 anyelement, f2 out anyelement, f3 out anyarray) language sql
             as 'select $1, array[$1, $1]';
         create function pair_of() returns pair language sql as 'select 1.26, $$abc$$::varchar';
         create function pairs() returns setof pair language sql
             as 'select 1.26, $$abc$$::varchar';
         create function since(d date default '2020-01-02', n numeric default null) returns date
             language sql as 'select $1';
         create function many() returns setof int language sql as 'select v from t'",
    );
    for (query, expected) in [
        // What was the last column alone.
        ("select two_of()", &["(1,x)"][..]),
        ("select * from two_of()", &["1|x"]),
        ("select b from two_of() as f", &["x"]),
        ("select f.y from two_of() as f(x, y)", &["x"]),
        ("select * from around(5)", &["4|6"]),
        ("select below, column2 from around(5)", &["4|6"]),
        ("select id, around(id) from t", &["1|(0,2)", "2|(1,3)"]),
        (
            "select t.id, o.v from t, of_t(t.id) o order by 1",
            &["1|10", "2|20"],
        ),
        ("select * from of_t(7)", &["NULL|NULL"]),
        ("select * from strictly(null)", &["NULL|NULL"]),
        ("select * from dup('x'::text)", &["x|{x,x}"]),
        ("select dup(2)", &["(2,\"{2,2}\")"]),
        // The columns of a type have its lengths and digits.
        ("select pair_of()", &["(1.3,abc)"]),
        ("select * from pair_of()", &["1.3|abc"]),
        ("select * from pairs()", &["1.3|abc"]),
        ("select since()", &["2020-01-02"]),
    ] {
        assert_eq!(client.rows(query), expected, "{query}");
    }
    for (statement, expected) in [
        // It was answered with the rows of many().
        (
            "select * from abs(many())",
            "0A000 set-returning functions must appear at top level of FROM",
        ),
        ("select * from coalesce(many())", "0A000"),
        ("select * from two_of() as f(a int, b text)", "42601"),
        (
            "create function g(a int, a int) returns int language sql as 'select 1'",
            "42P13 parameter name \"a\" used more than once",
        ),
        (
            "create function g(out a int = 1) language sql as 'select 1'",
            "42P13 only input parameters can have default values",
        ),
        (
            "create function g(int, out anyelement, out anyarray) language sql \
             as 'select $1, array[$1]'",
            "42P13 cannot determine result data type",
        ),
        (
            "create function g(anyelement) returns anyrange language sql as 'select 1'",
            "42P13 cannot determine result data type",
        ),
    ] {
        let error = client.error(statement);
        assert!(error.starts_with(expected), "{statement}: {error}");
    }
}

#[test]
fn semicolons_in_a_block_end_its_statements_only() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create function sign_of(x int) returns text language sql begin atomic \
         select case when x < 0 then 'minus' else 'plus' end; end; \
         create table t (a int); insert into t values (-1), (1)",
    );
    assert_eq!(
        client.rows("select a, sign_of(a) from t order by a"),
        ["-1|minus", "1|plus"]
    );
    client
        .tag("create function two() returns int language sql begin atomic select 1; select 2; end");
    assert_eq!(client.rows("select two()"), ["2"]);
    // A transaction's BEGIN is none of a block.
    client.tag("begin; insert into t values (2); end");
    assert_eq!(client.rows("select count(*) from t"), ["3"]);
}
