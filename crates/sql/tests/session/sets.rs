//! Functions that give rows in the select list of queries with groups. The rows are those that
//! PostgreSQL 15 gives.

use crate::fixture::Server;

#[test]
fn rows_are_made_before_they_are_grouped_by_them() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table few (id int primary key, a text)");
    client.tag("insert into few values (1, 'a'), (2, 'a'), (3, 'b')");
    for (query, rows) in [
        (
            "select a, count(*), min(id), unnest('{1,1,3}'::int[]) from few where id < 3 \
             group by a, unnest('{1,1,3}'::int[]) order by 4",
            &["a|4|1|1", "a|2|1|3"][..],
        ),
        (
            "select a, count(*), max(id), unnest('{1,1,3}'::int[]) from few where id = 1 \
             group by a order by 4",
            &["a|1|1|1", "a|1|1|1", "a|1|1|3"],
        ),
        (
            "select a, generate_series(1, 2) g, count(*) from few group by cube (a, g) \
             order by a, g",
            &[
                "a|1|2",
                "a|2|2",
                "a|NULL|4",
                "b|1|1",
                "b|2|1",
                "b|NULL|2",
                "NULL|1|3",
                "NULL|2|3",
                "NULL|NULL|6",
            ],
        ),
        (
            "select generate_series(1, id) + 1 x, sum(id) from few group by 1 \
             having sum(id) > 3 order by 1",
            &["2|6", "3|5"],
        ),
        (
            "select distinct on (a) a, generate_series(1, id) from few order by a, id desc",
            &["a|1", "a|2", "b|1", "b|2", "b|3"],
        ),
        (
            "select count(*), generate_series(1, count(*)::int) from few",
            &["3|1", "3|2", "3|3"],
        ),
    ] {
        assert_eq!(client.rows(query), rows, "{query}");
    }
}

#[test]
fn grouping_belongs_to_the_query_whose_columns_it_names() {
    let server = Server::new();
    let mut client = server.connect();
    for (query, rows) in [
        (
            "select (select grouping(v1)) from (values ((select 1))) v(v1) group by v1",
            &["0"][..],
        ),
        (
            "select (select grouping(v1)) from (values ((select 1))) v(v1) group by cube(v1) order by 1",
            &["0", "1"],
        ),
        (
            "select (select (select grouping(e, f) from (values (1)) v2(c)) \
             from (values (1, 2)) v1(a, b) group by (a, b)) \
             from (values (6, 7)) v3(e, f) group by rollup(e, f) order by 1",
            &["0", "1", "3"],
        ),
        (
            "select (select (select grouping(a, b) from (values (1)) v2(c)) \
             from (values (1, 2)) v1(a, b) group by (a, b)) \
             from (values (6, 7)) v3(e, f) group by rollup(e, f)",
            &["0", "0", "0"],
        ),
    ] {
        assert_eq!(client.rows(query), rows, "{query}");
    }
    let refused =
        client.error("select (select grouping(w1)) from (values (1, 2)) v(v1, w1) group by v1");
    assert!(refused.starts_with("42803 "), "{refused}");
}
