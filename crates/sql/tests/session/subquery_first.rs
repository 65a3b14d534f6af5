//! Queries without FROM over one subquery, which the short path asks first.

use crate::fixture::Server;

#[test]
fn a_subquery_that_an_index_bounds_is_asked_first() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type pair as (a int, b text)");
    client.tag(
        "create table t (id int primary key, v text, n numeric(8,2), c char(5), j jsonb, a int[], p pair, d date)",
    );
    client.tag(
        "insert into t select i, 'v' || i, i + 0.5, 'c' || i % 10, jsonb_build_object('i', i), array[i, null], \
         row(i, 'b')::pair, date '2026-01-01' + i from generate_series(1, 20000) i",
    );
    client.tag("create function has(i int) returns bool language plpgsql as
         $$ begin if not exists (select 1 from t where id = i) then return false; end if; return true; end $$");
    client.tag(
        "create function v_of(i int) returns text language plpgsql as
         $$ begin return (select v from t where id = i); end $$",
    );
    for (query, expected) in [
        ("select exists (select 1 from t where id = 5)", "t"),
        ("select not exists (select * from t where id = 50000)", "t"),
        (
            "select exists (select from t where id between 5 and 9) and true",
            "t",
        ),
        ("select (select v from t where id = 5)", "v5"),
        ("select (select v from t where id = 50000) is null", "t"),
        (
            "select coalesce((select v from t where id = 50000), 'none')",
            "none",
        ),
        (
            "select 1 + (select count(*) from t where id < 10), 'x'",
            "10|x",
        ),
        (
            "select case (select v from t where id = 5) when 'v5' then 1 else 2 end",
            "1",
        ),
        ("select (select n from t where id = 5) * 2, 'a'", "11.00|a"),
        (
            "select octet_length((select c from t where id = 5)::text)",
            "2",
        ),
        ("select (select c from t where id = 5) || '!'", "c5!"),
        ("select (select j from t where id = 5) -> 'i'", "5"),
        ("select (select a from t where id = 5)", "{5,NULL}"),
        ("select (select p from t where id = 5)", "(5,b)"),
        ("select (select d from t where id = 5) + 1", "2026-01-07"),
        ("select (select max(id) from t where id < 7)", "6"),
        (
            "select (select v from t where id < 7 order by id desc limit 1 offset 1)",
            "v5",
        ),
        ("select has(7), v_of(7)", "t|v7"),
        ("select has(70000), v_of(70000) is null", "f|t"),
    ] {
        assert_eq!(client.rows(query), [expected], "{query}");
        if !query.contains("v_of") {
            let plan = client.rows(&format!("explain {query}")).join("\n");
            assert!(!plan.contains("Analytical"), "{query}: {plan}");
        }
    }
    // What is not asked always is not asked first.
    for (query, expected) in [
        (
            "select case when false then (select v from t where id < 3) end is null",
            "t",
        ),
        ("select coalesce('x', (select v from t where id < 3))", "x"),
        (
            "select exists (select 1 from t where id = 1), exists (select 1 from t where id = 0)",
            "t|f",
        ),
    ] {
        assert_eq!(client.rows(query), [expected], "{query}");
    }
    let several = client.error("select (select v from t where id < 3)");
    assert!(
        several.starts_with("21000 more than one row returned by a subquery"),
        "{several}"
    );
    client.tag("prepare p(int) as select exists (select 1 from t where id = $1), $1 + 1");
    assert_eq!(client.rows("execute p(5)"), ["t|6"]);
    assert_eq!(client.rows("execute p(-5)"), ["f|-4"]);
    client.tag("begin read only");
    assert_eq!(
        client.rows("select exists (select 1 from t where id = 5)"),
        ["t"]
    );
    client.tag("commit");
    client.tag("create role reader");
    client.tag("set role reader");
    let denied = client.error("select exists (select 1 from t where id = 5)");
    assert!(denied.starts_with("42501 "), "{denied}");
}
